"""What a ledger speaks of: populations, charges and spends, validated on construction."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from core.errors import BudgetError, BudgetExceeded, LedgerError, SchemaError
from core.private.zcdp import as_rho, format_rho
from core.releases import Relation, Unit

_MAXIMUM_NAME = 200
_MAXIMUM_MESSAGE = 1000
_MAXIMUM_ROWS = 2**31 - 1


class SpendState(StrEnum):
    """What became of a charge."""

    CHARGED = "charged"
    DONE = "done"
    PARTIAL = "partial"
    NO_RESULT = "spent, no result"


@dataclass(frozen=True)
class Population:
    """The people whom a ledger protects, and the terms fixed when it was created.

    Attributes
    ----------
    name, owner
        Together the population's identity.
    relation, unit
        What neighbouring tables are, and the unit of protection; never changed.
    cap
        Largest total rho.
    delta
        For display as (epsilon, delta) only.
    simulated
        True for demos and tests: seeded noise is allowed, and nothing released protects anybody.
    expected_rows
        The steward's public guess at the number of rows, for previews of the error.
    """

    name: str
    relation: Relation
    unit: Unit
    cap: Fraction
    delta: float = 1e-9
    owner: str = "local"
    simulated: bool = False
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        """Normalise relation and cap; refuse what a ledger cannot keep."""
        check_name(self.name, "a population's name")
        check_name(self.owner, "an owner's name")
        try:
            object.__setattr__(self, "relation", Relation(self.relation))
        except ValueError as error:
            raise LedgerError(
                "the relation is add_remove (default; the row count is private) or replace_one"
            ) from error
        object.__setattr__(self, "cap", as_rho(self.cap))
        if isinstance(self.delta, bool) or not 0 < self.delta < 1:
            raise BudgetError("delta must lie between 0 and 1, such as 1e-9")
        for number, what in ((self.unit.rows, "rows a person"), (self.expected_rows, "rows")):
            if number is not None and not _is_whole(number):
                raise LedgerError(f"the number of {what} must be a whole number of at least 1")
        if self.relation is Relation.REPLACE_ONE and (
            self.unit.rows > 1 or self.unit.person_column is not None
        ):
            # A person without an id, or with somebody else's, changes how many rows are kept.
            raise SchemaError(
                "with persons as units the row count is private, so that replace_one does not "
                "fit; choose add_remove"
            )


@dataclass(frozen=True)
class Charge:
    """A price to pay: ``request_id`` makes it happen once, however often it is asked for."""

    request_id: str
    what: str
    rho: Fraction

    def __post_init__(self) -> None:
        """Refuse an unusable id and anything but a positive finite budget."""
        check_name(self.request_id, "a request id")
        check_name(self.what, "the purpose of a charge")
        object.__setattr__(self, "rho", as_rho(self.rho))


@dataclass(frozen=True)
class Spend:
    """One line of the ledger.

    Attributes
    ----------
    rho
        What was charged; it stays spent in every state.
    debited
        What the draws cost by the noise's own map, once there is a release.
    created_at, finished_at
        UTC; kept beside the release, not in its bytes.
    release_kind, release_sha256
        Type and hash of the stored release, if there is one.
    message
        Why there is no result; never a value of the table.
    """

    request_id: str
    population: str
    what: str
    rho: Fraction
    debited: Fraction | None
    state: SpendState
    created_at: datetime
    finished_at: datetime | None
    release_kind: str | None
    release_sha256: str | None
    message: str
    owner: str = "local"


def check_same_terms(stored: Population, wanted: Population) -> None:
    """Refuse a population on other terms than those that were fixed when it was made.

    Raises
    ------
    LedgerError
        The relation, the unit, or whether it is simulated differ.
    """
    for part, words in (
        ("relation", "relation"),
        ("unit", "unit of protection"),
        ("simulated", "kind (simulated or real)"),
    ):
        if getattr(stored, part) != getattr(wanted, part):
            raise LedgerError(
                f"population {stored.name!r} exists with another {words}; that is fixed when a "
                "ledger is created. Use the same one, or another population's name"
            )


def check_room(population: Population, spent: Fraction, fresh: Sequence[Charge]) -> None:
    """Refuse charges that together would pass a population's cap.

    Raises
    ------
    BudgetExceeded
        They would; nothing was charged.
    """
    asked = sum((charge.rho for charge in fresh), Fraction(0))
    left = max(population.cap - spent, Fraction(0))
    if asked > left:
        raise BudgetExceeded(
            f"population {population.name!r} has rho = {format_rho(left)} left of its cap "
            f"{format_rho(population.cap)}, and this asks for {format_rho(asked)}; nothing was "
            "spent and the data were not touched. Ask for less, or raise the cap on purpose"
        )


def check_same_charge(stored: Spend, charge: Charge, population: str, owner: str) -> None:
    """Refuse a request id that was charged for something else.

    Raises
    ------
    LedgerError
        Population, owner, purpose or amount differ.
    """
    same_owner = (stored.population, stored.owner) == (population, owner)
    if not same_owner or (stored.what, stored.rho) != (charge.what, charge.rho):
        raise LedgerError(
            f"request {charge.request_id!r} was charged before for another population, purpose "
            "or amount; give the new one an id of its own"
        )


def one_line(message: str) -> str:
    """A message as it is stored: printable, on one line, and not endless."""
    shown = "".join(letter if letter.isprintable() else " " for letter in message)
    return shown[:_MAXIMUM_MESSAGE]


def check_name(name: object, what: str) -> None:
    """Refuse a name that no database, listing or file could carry.

    Raises
    ------
    LedgerError
        The name is not a text, blank, too long, or has characters that cannot be shown.
    """
    if not isinstance(name, str) or not name.strip():
        raise LedgerError(f"{what} must be a text that is not blank")
    if len(name) > _MAXIMUM_NAME:
        raise LedgerError(f"{what} is longer than {_MAXIMUM_NAME} characters; shorten it")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise LedgerError(f"{what} holds characters that cannot be shown; leave them out")


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= _MAXIMUM_ROWS
