"""Populations, their caps, and every spend: charged first, exact, and never refunded.

A charge is one short transaction that ends before any computing starts.  It moves from
``charged`` to ``done``, ``partial`` or ``spent, no result`` exactly once; the release and its
state are written together.  Losses of one population's tables add up here (composition of zCDP,
Bun and Steinke 2016, Lemma 1.7).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from sqlalchemy import insert, select, update

from core.errors import BudgetExceeded, LedgerError
from core.private.accounts import Charge, Population, Spend, SpendState
from core.private.database import BUSY_SECONDS, Clash, Database, home, secret_path
from core.private.ledger_tables import (
    charge_rows,
    existing_population,
    find_population,
    open_charge,
    population_columns,
    population_rows,
    process_of,
    read_spends,
    read_spent,
    release_rows,
    settle,
    spend_rows,
    table_rows,
    to_population,
    to_text,
)
from core.private.zcdp import as_rho, format_rho

__all__ = ["Charge", "Ledger", "Population", "Spend", "SpendState"]

_MAXIMUM_MESSAGE = 1000


class Ledger:
    """Exact accounts of all populations in one database; opening it settles crashed charges.

    Parameters
    ----------
    url
        ``sqlite:///FILE``, ``sqlite://`` (in memory, usable from several threads),
        ``postgresql://...``; None for ``justitia.sqlite`` in ``JUSTITIA_HOME`` (``~/.justitia``).
    busy_seconds
        How long a transaction waits for another one.

    Raises
    ------
    LedgerError
        The database cannot be opened.

    Examples
    --------
    >>> from core.releases import Relation, Unit
    >>> ledger = Ledger("sqlite://")
    >>> terms = Population("patients", Relation.ADD_REMOVE, Unit(), Fraction(3, 10))
    >>> _ = ledger.create_population(terms)
    >>> for number in range(3):
    ...     _ = ledger.charge("patients", [Charge(f"r{number}", "tree", Fraction(1, 10))])
    >>> ledger.remaining("patients")
    Fraction(0, 1)
    """

    def __init__(self, url: str | None = None, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.database = Database(url, busy_seconds=busy_seconds)
        #: Secret of a ledger that lives in memory, gone with it.
        self.memory_secret = secrets.token_bytes(32)
        self.recover()

    @property
    def secret_file(self) -> Path | None:
        """Where the fingerprint secret lives: beside the file, in the home folder, or nowhere."""
        if self.database.path is not None:
            return secret_path(self.database.path)
        return None if self.database.is_sqlite else home() / "justitia.secret"

    def close(self) -> None:
        """Close what is open; an in-memory ledger is gone then."""
        self.database.close()

    # -- populations -----------------------------------------------------------------------

    def create_population(self, population: Population) -> Population:
        """Register a population, or return the one of that name if its terms are the same.

        The stored cap wins over the declared one (only :meth:`set_cap` changes it); ``delta`` and
        ``expected_rows`` are for display, and the newest declaration is kept.

        Raises
        ------
        LedgerError
            The population exists with another relation or unit, or is simulated and this is not.
        """
        try:
            return self._create(population)
        except Clash:  # another process created it at the same moment: compare with that one
            return self._create(population)

    def _create(self, wanted: Population) -> Population:
        with self.database.writing() as connection:
            row = find_population(connection, wanted.name, wanted.owner, lock=True)
            if row is None:
                connection.execute(insert(population_rows).values(**population_columns(wanted)))
                return wanted
            stored = to_population(row)
            _check_same_terms(stored, wanted)
            expected = wanted.expected_rows or stored.expected_rows
            stored = replace(stored, delta=wanted.delta, expected_rows=expected)
            connection.execute(
                update(population_rows)
                .where(population_rows.c.id == row.id)
                .values(delta=stored.delta, expected_rows=expected)
            )
            return stored

    def population(self, name: str, owner: str = "local") -> Population:
        """The population of that name and owner; LedgerError when there is none."""
        with self.database.reading() as connection:
            return to_population(existing_population(connection, name, owner))

    def populations(self, owner: str | None = None) -> list[Population]:
        """All populations, or one owner's, by name."""
        query = select(population_rows).order_by(population_rows.c.name, population_rows.c.owner)
        if owner is not None:
            query = query.where(population_rows.c.owner == owner)
        with self.database.reading() as connection:
            return [to_population(row) for row in connection.execute(query)]

    def set_cap(self, name: str, cap: Fraction, *, owner: str = "local") -> Population:
        """Change a cap, on purpose; it cannot go below what is spent already.

        Raises
        ------
        BudgetError
            The cap is not a positive finite number.
        LedgerError
            There is no such population, or it spent more than that.
        """
        cap = as_rho(cap)
        with self.database.writing() as connection:
            row = existing_population(connection, name, owner, lock=True)
            spent = read_spent(connection, row.id)
            if cap < spent:
                raise LedgerError(
                    f"population {name!r} has spent rho = {format_rho(spent)} already; its cap "
                    "cannot be lower than that"
                )
            connection.execute(
                update(population_rows)
                .where(population_rows.c.id == row.id)
                .values(cap=to_text(cap))
            )
            return replace(to_population(row), cap=cap)

    # -- spending --------------------------------------------------------------------------

    def charge(
        self, population_name: str, charges: Sequence[Charge], *, owner: str = "local"
    ) -> tuple[tuple[Spend, bool], ...]:
        """Charge all of them or none; ids that were charged before cost nothing.

        Parameters
        ----------
        population_name, owner
            Whose budget is spent.
        charges
            What to pay for.

        Returns
        -------
        tuple
            For each charge the spend, and whether it is fresh (False: it existed before).

        Raises
        ------
        BudgetExceeded
            The fresh charges together would pass the cap; nothing was charged.
        LedgerError
            There is no such population, an id occurs twice, or an id was used for another
            population, purpose or amount.
        """
        ids = [charge.request_id for charge in charges]
        if len(set(ids)) != len(ids):
            raise LedgerError("one request id occurs twice in a charge; give each its own")
        with self.database.writing() as connection:
            row = existing_population(connection, population_name, owner, lock=True)
            known = {spend.request_id: spend for spend in read_spends(connection, ids=ids)}
            for charge in charges:
                if charge.request_id in known:
                    _check_same_charge(known[charge.request_id], charge, population_name, owner)
            fresh = [charge for charge in charges if charge.request_id not in known]
            _check_room(to_population(row), read_spent(connection, row.id), fresh)
            if fresh:
                connection.execute(insert(spend_rows), charge_rows(row.id, fresh))
            stored = {spend.request_id: spend for spend in read_spends(connection, ids=ids)}
        return tuple((stored[identity], identity not in known) for identity in ids)

    def finish(
        self,
        request_id: str,
        blob: bytes,
        kind: str,
        debited: Fraction,
        state: SpendState = SpendState.DONE,
    ) -> Spend:
        """Store the release and its state in one transaction.

        Parameters
        ----------
        blob, kind
            The release's bytes and the name of its type.
        debited
            What the draws cost by the noise's own map.
        state
            ``DONE``, or ``PARTIAL`` after a cancel that kept what was measured.

        Raises
        ------
        LedgerError
            The id is unknown or finished, or the draws cost more than was charged.
        """
        if state not in (SpendState.DONE, SpendState.PARTIAL):
            raise LedgerError("a release finishes a charge as done or partial")
        with self.database.writing() as connection:
            row = open_charge(connection, request_id)
            if not 0 <= debited <= Fraction(row.rho):
                raise LedgerError(
                    f"request {request_id!r}: the draws cost rho = {format_rho(debited)}, but "
                    f"{format_rho(Fraction(row.rho))} was charged"
                )
            connection.execute(insert(release_rows).values(spend_id=row.id, blob=bytes(blob)))
            return settle(
                connection,
                row,
                state,
                debited=to_text(Fraction(debited)),
                release_kind=kind,
                release_sha256=hashlib.sha256(blob).hexdigest(),
            )

    def fail(self, request_id: str, message: str) -> Spend:
        """Mark a charge as spent without a result; ``message`` says why, without any value.

        Raises
        ------
        LedgerError
            The id is unknown or finished.
        """
        with self.database.writing() as connection:
            row = open_charge(connection, request_id)
            return settle(connection, row, SpendState.NO_RESULT, message=_one_line(message))

    def recover(self) -> tuple[Spend, ...]:
        """Mark charges of this host's dead processes as spent without a result.

        Charges of living processes and of other hosts are left alone; where the system cannot
        tell, :meth:`fail` settles a charge by hand.

        Returns
        -------
        tuple
            The spends that were settled now.
        """
        waiting = select(spend_rows).where(spend_rows.c.state == SpendState.CHARGED.value)
        with self.database.reading() as connection:
            dead = [row.id for row in connection.execute(waiting) if process_of(row).is_known_dead]
        if not dead:
            return ()
        message = "the program ended before the release was stored"
        query = waiting.where(spend_rows.c.id.in_(dead)).with_for_update()
        with self.database.writing() as connection:
            return tuple(
                settle(connection, row, SpendState.NO_RESULT, message=message)
                for row in connection.execute(query).all()
            )

    # -- reading ---------------------------------------------------------------------------

    def spend(self, request_id: str) -> Spend | None:
        """The spend of that id, or None when nothing was charged under it."""
        with self.database.reading() as connection:
            found = read_spends(connection, ids=[request_id])
        return found[0] if found else None

    def spends(self, population: str, *, owner: str = "local") -> list[Spend]:
        """All spends of a population, in the order of their charges."""
        with self.database.reading() as connection:
            row = existing_population(connection, population, owner)
            return read_spends(connection, population_id=row.id)

    def spent(self, population: str, *, owner: str = "local") -> Fraction:
        """Exact sum of everything that was charged, whatever became of it."""
        with self.database.reading() as connection:
            return read_spent(connection, existing_population(connection, population, owner).id)

    def remaining(self, population: str, *, owner: str = "local") -> Fraction:
        """Exact rest of the cap, never negative."""
        with self.database.reading() as connection:
            row = existing_population(connection, population, owner)
            return Fraction(row.cap) - read_spent(connection, row.id)

    def release_blob(self, request_id: str) -> bytes | None:
        """The stored release's bytes, checked against their hash; None when there is none.

        Raises
        ------
        LedgerError
            The bytes are not those that were stored.
        """
        query = (
            select(release_rows.c.blob, spend_rows.c.release_sha256)
            .join(spend_rows, spend_rows.c.id == release_rows.c.spend_id)
            .where(spend_rows.c.request_id == request_id)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        if hashlib.sha256(row.blob).hexdigest() != row.release_sha256:
            raise LedgerError(
                f"the release of request {request_id!r} is damaged; restore a backup of the ledger"
            )
        return bytes(row.blob)

    # -- tables ----------------------------------------------------------------------------

    def table_id(self, population: str, fingerprint: str, *, owner: str = "local") -> str:
        """A random public id for a table, the same whenever it is attached to this population.

        The fingerprint itself stays in the ledger.  It reminds of a table that was attached
        before; it does not stop anybody who changes a cell.
        """
        try:
            return self._table_id(population, fingerprint, owner)
        except Clash:  # another process attached the same table at the same moment
            return self._table_id(population, fingerprint, owner)

    def knows_tables(self) -> bool:
        """Whether any table was ever attached, so that a secret must exist."""
        with self.database.reading() as connection:
            return connection.execute(select(table_rows.c.table_id).limit(1)).first() is not None

    def seen_in(self, fingerprint: str, owner: str = "local") -> tuple[str, ...]:
        """Names of this owner's populations to which a table was attached before."""
        query = (
            select(population_rows.c.name)
            .join(table_rows, table_rows.c.population_id == population_rows.c.id)
            .where(table_rows.c.fingerprint == fingerprint, population_rows.c.owner == owner)
            .order_by(population_rows.c.name)
        )
        with self.database.reading() as connection:
            return tuple(connection.execute(query).scalars())

    def _table_id(self, population: str, fingerprint: str, owner: str) -> str:
        with self.database.writing() as connection:
            row = existing_population(connection, population, owner)
            seen = connection.execute(
                select(table_rows.c.table_id).where(
                    table_rows.c.population_id == row.id, table_rows.c.fingerprint == fingerprint
                )
            ).scalar_one_or_none()
            if seen is not None:
                return str(seen)
            fresh = secrets.token_hex(8)
            connection.execute(
                insert(table_rows).values(
                    population_id=row.id, fingerprint=fingerprint, table_id=fresh
                )
            )
            return fresh


def _one_line(message: str) -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in message)
    return shown[:_MAXIMUM_MESSAGE]


def _check_same_terms(stored: Population, wanted: Population) -> None:
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


def _check_room(population: Population, spent: Fraction, fresh: Sequence[Charge]) -> None:
    asked = sum((charge.rho for charge in fresh), Fraction(0))
    left = population.cap - spent
    if asked > left:
        raise BudgetExceeded(
            f"population {population.name!r} has rho = {format_rho(left)} left of its cap "
            f"{format_rho(population.cap)}, and this asks for {format_rho(asked)}; nothing was "
            "spent and the data were not touched. Ask for less, or raise the cap on purpose"
        )


def _check_same_charge(stored: Spend, charge: Charge, population: str, owner: str) -> None:
    same_owner = (stored.population, stored.owner) == (population, owner)
    if not same_owner or (stored.what, stored.rho) != (charge.what, charge.rho):
        raise LedgerError(
            f"request {charge.request_id!r} was charged before for another population, purpose "
            "or amount; give the new one an id of its own"
        )
