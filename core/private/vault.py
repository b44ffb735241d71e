"""The one door to a table: it charges first, then hands out grants.

The other way in, :meth:`Vault.not_private`, is explicit, logged and meant for ``core.audit``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from core.errors import LedgerError, ReadingError, SchemaError, SimulationError
from core.moments import IntArray
from core.private.grant import Grant
from core.private.ledger import Charge, Ledger, Population, Spend, SpendState
from core.private.noise import Noise, OpenDPNoise
from core.private.source import InMemorySource, Source
from core.private.terms import Confined, GrantTerms, SourceSlot
from core.protocols import Progress
from core.releases import Unit
from core.schema import LABELLED_KINDS, Kind, Schema

if TYPE_CHECKING:
    import pandas as pd

SIMULATED_FLAG = "SIMULATED, NOT PRIVATE"
DOMAIN_FLAG = "data-dependent domain"
UNIT_FLAG = "unit unverified"
DELTA_FLAG = "delta above 1/(10 n)"

_logger = logging.getLogger("justitia.not_private")


class Vault(Confined):
    """A table attached to its population's ledger.

    Parameters
    ----------
    source
        Exact answers about the coded table.
    population
        The ledger's terms, already created in ``ledger``.
    ledger
        Where charges are booked before anything is computed.
    noise
        OpenDP's samplers unless given.
    allow_real_data
        Let seeded noise loose on a population that is not simulated.  Its releases are marked
        ``SIMULATED, NOT PRIVATE`` and are for rehearsals only.

    Raises
    ------
    LedgerError
        When the ledger knows the population on other terms.
    SchemaError
        When the table was not cut to the population's unit of protection.
    SimulationError
        For seeded noise on a population that is not simulated.
    """

    def __init__(
        self,
        source: Source,
        population: Population,
        ledger: Ledger,
        noise: Noise | None = None,
        *,
        allow_real_data: bool = False,
    ) -> None:
        noise = OpenDPNoise() if noise is None else noise
        _check_terms(population, ledger.population(population.name, population.owner))
        _check_unit(population, source.unit)
        if noise.simulated and not population.simulated and not allow_real_data:
            raise SimulationError(
                f"population {population.name!r} holds real people, and simulated noise is seeded "
                "and protects nobody; use a simulated population, or allow it explicitly"
            )
        self._slot = SourceSlot(source)
        self._schema = source.schema
        self._population = population
        self._ledger = ledger
        self._noise = noise

    def __repr__(self) -> str:
        """Only public facts."""
        return f"Vault({self._population.name!r}, {len(self._schema.columns)} columns)"

    @property
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""
        return self._schema

    @property
    def population(self) -> Population:
        """The terms under which the table is protected."""
        return self._population

    # -- the paid door ---------------------------------------------------------------------

    def grant(self, rho: Fraction, what: str, request_id: str) -> Grant | None:
        """Charge ρ and return its grant, or None when this request id was charged before.

        Raises
        ------
        BudgetExceeded
            When the charge would pass the cap.  The data were not touched.
        LedgerError
            When the id was charged for something else.
        """
        return self.grants((Charge(request_id, what, rho),))[0]

    def grants(self, charges: Sequence[Charge]) -> tuple[Grant | None, ...]:
        """Charge all or none, in one transaction; None marks an id that was charged before.

        Of two calls with the same id, exactly one gets the grant; the other replays what the
        ledger stores for it.
        """
        self._slot.get()  # a forgotten table must not cost anything
        terms = self._population
        booked = self._ledger.charge(terms.name, charges, owner=terms.owner)
        return tuple(self._issue(spend) if fresh else None for spend, fresh in booked)

    def complete(self, grant: Grant, blob: bytes, kind: str, *, partial: bool = False) -> None:
        """Close the grant and store its release and final state, in one transaction.

        Parameters
        ----------
        blob
            The frozen release; it must hold nothing but noisy answers and public facts.
        kind
            Type name of the release.
        partial
            Whether a cancel ended it early.
        """
        grant.close()
        state = SpendState.PARTIAL if partial else SpendState.DONE
        self._ledger.finish(grant.request_id, blob, kind, grant.debited, state)

    def fail(self, grant: Grant, message: str) -> None:
        """Close the grant and record that its charge is spent without a result.

        Parameters
        ----------
        message
            Why, in words that hold no value of the table.
        """
        grant.close()
        self._ledger.fail(grant.request_id, message)

    def watch(self, progress: Progress | None) -> None:
        """Whom to tell while rows are read, in per cent; may raise ``Cancelled``.  None: nobody."""
        self._slot.watch(progress)

    def close(self) -> None:
        """Forget the table: the vault, its grants and audit handles drop the rows."""
        self._slot.forget()

    # -- the unpaid door -------------------------------------------------------------------

    def not_private(self, reason: str) -> NotPrivate:
        """Raw access for ``core.audit``; logged with population and reason, and nothing else.

        Raises
        ------
        ReadingError
            Without a reason.
        """
        words = " ".join(reason.split())
        if not words:
            raise ReadingError("raw access needs a reason, which is logged; say what it is for")
        self._slot.get()
        _logger.warning("population %r: raw access: %s", self._population.name, words)
        return NotPrivate(self._slot)

    # -- details ---------------------------------------------------------------------------

    def _issue(self, spend: Spend) -> Grant:
        population = self._population
        simulated = self._noise.simulated or population.simulated
        terms = GrantTerms(
            what=spend.what,
            request_id=spend.request_id,
            population=population.name,
            rho=spend.rho,
            relation=population.relation,
            unit=population.unit,
            delta=population.delta,
            simulated=simulated,
            flags=_flags(population, self._schema, simulated),
        )
        return Grant(self._slot, self._noise, terms)


class NotPrivate(Confined):
    """Raw answers, for audits on the steward's own screen; nothing from it may be exported.

    It can be neither copied nor pickled, and dies when the vault forgets the table.
    """

    def __init__(self, slot: SourceSlot) -> None:
        self.__slot = slot

    def __repr__(self) -> str:
        """Only public facts."""
        return "NotPrivate(raw access, never to be exported)"

    @property
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""
        return self.__slot.get().schema

    def counts(self, cliques: Sequence[tuple[str, ...]]) -> list[IntArray]:
        """Exact contingency tables on declared cells."""
        return self.__slot.get().counts(cliques)

    def codes(self) -> dict[str, IntArray]:
        """A copy of all cell codes, one ``int64`` array a column."""
        table = self.__memory().table
        return {name: np.array(codes, dtype=np.int64) for name, codes in table.codes.items()}

    def frame(self) -> pd.DataFrame:
        """A copy of the rows, in schema order.

        Labelled columns hold their cell's label; integer and real columns their clipped number
        and dates a timestamp, missing where the file had none.
        """
        import pandas as pd

        table = self.__memory().table
        columns: dict[str, object] = {}
        for column in table.schema.columns:
            if column.kind in LABELLED_KINDS:
                labels = np.array(column.cells, dtype=object)
                columns[column.name] = labels[table.codes[column.name]]
            elif column.kind is Kind.DATE:
                days = pd.Series(table.numbers[column.name]) - pd.Timestamp(0).toordinal()
                columns[column.name] = pd.to_datetime(days, unit="D")
            else:
                columns[column.name] = table.numbers[column.name].copy()
        return pd.DataFrame(columns, index=pd.RangeIndex(table.rows))

    def __memory(self) -> InMemorySource:
        source = self.__slot.get()
        if not isinstance(source, InMemorySource):
            raise ReadingError("rows can be shown for tables in memory only")
        return source


def _check_terms(population: Population, recorded: Population) -> None:
    same = (
        population.relation is recorded.relation
        and population.unit == recorded.unit
        and population.simulated == recorded.simulated
    )
    if not same:
        raise LedgerError(
            f"population {population.name!r} was created with another relation or unit; these "
            "are fixed for its life, because their losses do not add up: use its own terms"
        )


def _check_unit(population: Population, enforced: Unit) -> None:
    """Refuse a unit whose bound the coded table does not keep.

    (Several rows a unit under ``replace_one`` are refused by the population itself.)  A table cut
    to a person's rows does not fit the unit "one row" either: adding a row may push another out.
    """
    unit = population.unit
    if unit.person_column == enforced.person_column and (
        unit.person_column is None or unit.rows == enforced.rows
    ):
        return
    raise SchemaError(
        "the table was not cut to the rows a person that the population declares; encode it "
        "with the population's unit"
    )


def _flags(population: Population, schema: Schema, simulated: bool) -> tuple[str, ...]:
    """Every caveat that follows from public facts."""
    expected = population.expected_rows
    found = {
        SIMULATED_FLAG: simulated,
        DOMAIN_FLAG: bool(schema.data_dependent),
        UNIT_FLAG: not population.unit.verified,
        # Only the steward's public bound is consulted, never the table's own row count.
        DELTA_FLAG: expected is not None and population.delta * 10 * expected > 1,
    }
    return tuple(words for words, applies in found.items() if applies)
