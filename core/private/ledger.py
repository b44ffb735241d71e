"""Populations, their caps, and every spend: charged first, exact, and never refunded.

A charge is one short transaction that ends before any computing starts.  It moves from
``charged`` to ``done``, ``partial`` or ``spent, no result`` exactly once; the release and its
state are written together.  Losses of one population's tables add up here (composition of zCDP,
Bun and Steinke 2016, Lemma 1.7).
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from core.errors import LedgerError
from core.private.accounts import (
    Charge,
    Population,
    Spend,
    SpendState,
    check_room,
    check_same_charge,
    check_same_terms,
    one_line,
)
from core.private.chain import Book, Broken
from core.private.database import BUSY_SECONDS, Clash, Database, home, secret_path
from core.private.history import population_made
from core.private.known_tables import KnownTables
from core.private.ledger_tables import (
    book_charges,
    change_terms,
    event_rows,
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
    to_population,
    to_text,
)
from core.private.verification import ChainReport, verify
from core.private.witness import Witness
from core.private.zcdp import as_rho, format_rho

if TYPE_CHECKING:
    from core.private.mending import Mended

__all__ = ["Charge", "Ledger", "Population", "Spend", "SpendState"]

_logger = logging.getLogger("justitia.ledger")


class Ledger(KnownTables):
    """Exact accounts of all populations in one database; opening it settles crashed charges.

    Parameters
    ----------
    url
        ``sqlite:///FILE``, ``sqlite://`` (in memory, usable from several threads),
        ``postgresql://...``; None for what ``JUSTITIA_LEDGER`` names, or ``justitia.sqlite`` in
        ``JUSTITIA_HOME`` (``~/.justitia``).
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
        self.witness = Witness.of(self.database)
        #: Why nothing can be charged, in words; None when the chain is the one seen before.
        self.trouble = self._catch_up()
        if self.trouble is None:
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

    @contextmanager
    def writing(self) -> Iterator[Book]:
        """A write transaction with the chain's book; the witness learns of it when it is done.

        Raises
        ------
        LedgerError
            The database refused, or the chain is not the one seen before; nothing was changed.
        """
        with self.database.writing() as connection:
            book = Book(connection, self.witness)
            yield book
        if self.witness is not None:
            try:
                self.witness.note(book.events)
            except LedgerError as error:  # it is committed: the next one to write notes it too
                _logger.warning("%s", error)

    def _catch_up(self) -> str | None:
        """Let the witness learn of rows that it missed; says why where the chain is another one."""
        if self.witness is None:
            return None
        with self.database.reading(snapshot=True) as connection:
            try:
                events = self.witness.unseen(connection)
            except Broken as trouble:
                return str(trouble)
        self.witness.note(events)
        return None

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
        with self.writing() as book:
            row = find_population(book.connection, wanted.name, wanted.owner, lock=True)
            if row is None:
                columns = population_columns(wanted)
                book.connection.execute(insert(population_rows).values(**columns))
                book.append(population_made(columns))
                return wanted
            stored = to_population(row)
            check_same_terms(stored, wanted)
            expected = wanted.expected_rows or stored.expected_rows
            if (stored.delta, stored.expected_rows) != (wanted.delta, expected):
                stored = replace(stored, delta=wanted.delta, expected_rows=expected)
                change_terms(book, row, delta=stored.delta, expected_rows=expected)
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
        with self.writing() as book:
            row = existing_population(book.connection, name, owner, lock=True)
            spent = read_spent(book.connection, row.id)
            if cap < spent:
                raise LedgerError(
                    f"population {name!r} has spent rho = {format_rho(spent)} already; its cap "
                    "cannot be lower than that"
                )
            if cap != Fraction(row.cap):
                change_terms(book, row, cap=to_text(cap))
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
        with self.writing() as book:
            connection = book.connection
            row = existing_population(connection, population_name, owner, lock=True)
            known = {spend.request_id: spend for spend in read_spends(connection, ids=ids)}
            for charge in charges:
                if charge.request_id in known:
                    check_same_charge(known[charge.request_id], charge, population_name, owner)
            fresh = [charge for charge in charges if charge.request_id not in known]
            check_room(to_population(row), read_spent(connection, row.id), fresh)
            if fresh:
                book_charges(book, row, fresh)
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
        with self.writing() as book:
            row = open_charge(book.connection, request_id)
            if not 0 <= debited <= Fraction(row.rho):
                raise LedgerError(
                    f"request {request_id!r}: the draws cost rho = {format_rho(debited)}, but "
                    f"{format_rho(Fraction(row.rho))} was charged"
                )
            stored = insert(release_rows).values(spend_id=row.id, blob=bytes(blob))
            book.connection.execute(stored)
            return settle(
                book,
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
        with self.writing() as book:
            row = open_charge(book.connection, request_id)
            return settle(book, row, SpendState.NO_RESULT, message=one_line(message))

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
        query = waiting.where(spend_rows.c.id.in_(dead)).order_by(spend_rows.c.id)
        with self.writing() as book:
            return tuple(
                settle(book, row, SpendState.NO_RESULT, message=message)
                for row in book.connection.execute(query.with_for_update()).all()
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
            return max(Fraction(row.cap) - read_spent(connection, row.id), Fraction(0))

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

    # -- the chain -------------------------------------------------------------------------

    def verify(self, *, releases: bool = True) -> ChainReport:
        """Whether chain, accounts, stored releases and this machine's memory agree; reads only."""
        return verify(self.database, self.witness, releases=releases)

    def chain_head(self, request_ids: Sequence[str]) -> str | None:
        """Hash of the latest event about these requests; it commits to everything before it.

        Salted, so that it can be published: it tells nothing about when anything happened.
        """
        columns = event_rows.c
        query = select(columns.hash).where(columns.subject.in_(request_ids))
        with self.database.reading() as connection:
            return connection.scalars(query.order_by(columns.sequence.desc()).limit(1)).first()

    def has_event(self, hash_: str) -> bool:
        """Whether a published hash is one of this chain's."""
        query = select(event_rows.c.sequence).where(event_rows.c.hash == hash_)
        with self.database.reading() as connection:
            return connection.scalars(query).first() is not None

    def mend(self) -> Mended:
        """Put back what this machine saw and the ledger lacks; nothing is ever spent less.

        Raises
        ------
        LedgerError
            The chain itself is broken or another one; only a backup from before helps.
        """
        from core.private.mending import mend

        found = mend(self.database, self.witness)
        self.trouble = self._catch_up()
        self.recover()
        return found
