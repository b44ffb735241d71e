"""Bringing ledger and chain together again: old ledgers, restored backups, altered tables.

Nothing here makes a population's spent sum smaller: charges that only the tables know are taken
into the chain, and charges that only the chain or the witness know are put back into the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from core.private.accounts import SpendState
from core.private.chain import Book, insert_events, lock_chain, read_events
from core.private.database import Database
from core.private.history import Accounts, charged, lost, opened, population_made, removed, settled
from core.private.ledger_tables import population_rows, release_rows, spend_rows
from core.private.verification import check_witness, replayed
from core.private.witness import Witness

_LOST = "the release was lost; what was charged for it stays spent"


@dataclass(frozen=True)
class Mended:
    """What was put in order.

    Attributes
    ----------
    rows
        Rows of the chain that came back from the witness.
    charges, rho
        Charges that came back into the accounts, and their sum.
    adopted
        Charges that the chain did not know and knows now.
    lost
        Ids of requests whose stored release is gone.
    """

    rows: int
    charges: int
    rho: Fraction
    adopted: int
    lost: tuple[str, ...]


def adopt(connection: Connection) -> None:
    """Begin the chain of a ledger that has none, with everything that it holds."""
    book = Book(connection)
    accounts, beginning = Accounts(), opened(adopted=True)
    book.append(beginning)
    accounts.apply(beginning)
    _adopt_missing(book, accounts)
    stored = _stored(connection)
    book.append(*(removed(identity) for identity in accounts.stored() if identity not in stored))


def mend(database: Database, witness: Witness | None) -> Mended:
    """Put back what the witness saw and the ledger lacks, and make the tables what the chain says.

    The witness is only read.

    Raises
    ------
    LedgerError
        The chain itself is broken, or it is not the one that this machine saw: only a backup from
        before helps.  Nothing was changed.
    """
    seen = [] if witness is None else witness.seen()
    with database.writing() as connection:
        lock_chain(connection)
        events = read_events(connection)
        replayed(events)
        missing = [event for event in seen if event.sequence > len(events)]
        if witness is not None:
            check_witness(witness, seen[: len(seen) - len(missing)], events)
        events += missing
        accounts = replayed(events)  # the witness has to continue the chain without a gap
        insert_events(connection, missing)
        _restore_populations(connection, accounts)
        back = _restore_spends(connection, accounts)
        _delete_again(connection, accounts)
        book = Book(connection)
        adopted = _adopt_missing(book, accounts)
        gone = _lose_missing(book, accounts)
    rho = sum((Fraction(accounts.spends[identity]["rho"]) for identity in back), Fraction(0))
    return Mended(len(missing), len(back), rho, adopted, gone)


def _adopt_missing(book: Book, accounts: Accounts) -> int:
    """Let the chain know populations and charges that only the tables know."""
    contents: list[Mapping[str, Any]] = []
    for row in book.connection.execute(select(population_rows).order_by(population_rows.c.id)):
        if (row.name, row.owner) not in accounts.populations:
            contents.append(population_made(row._asdict()))
    query = (
        select(spend_rows, population_rows.c.name, population_rows.c.owner)
        .join(population_rows, population_rows.c.id == spend_rows.c.population_id)
        .order_by(spend_rows.c.id)
    )
    adopted = 0
    for row in book.connection.execute(query):
        if row.request_id not in accounts.spends:
            contents.append(charged(row.name, row.owner, row._asdict(), adopted=True))
            if row.state != SpendState.CHARGED.value:
                contents.append(settled(row.request_id, row._asdict()))
            adopted += 1
    if contents:
        book.append(*contents)
        for content in contents:
            accounts.apply(content)
    return adopted


def _restore_populations(connection: Connection, accounts: Accounts) -> None:
    ids = _population_ids(connection)
    for payer, columns in accounts.populations.items():
        if payer in ids:
            connection.execute(
                update(population_rows).where(population_rows.c.id == ids[payer]).values(**columns)
            )
        else:
            connection.execute(insert(population_rows).values(**columns))


def _restore_spends(connection: Connection, accounts: Accounts) -> list[str]:
    """Make the spends what the chain says; ids of those that were missing."""
    ids = _population_ids(connection)
    there = set(connection.scalars(select(spend_rows.c.request_id)))
    back = []
    for identity, columns in accounts.spends.items():
        values = {**columns, "population_id": ids[accounts.payers[identity]]}
        if identity in there:
            connection.execute(
                update(spend_rows).where(spend_rows.c.request_id == identity).values(**values)
            )
        else:
            connection.execute(insert(spend_rows).values(**values))
            back.append(identity)
    return back


def _population_ids(connection: Connection) -> dict[tuple[str, str], int]:
    return {(row.name, row.owner): row.id for row in connection.execute(select(population_rows))}


def _stored(connection: Connection) -> set[str]:
    """Requests whose release is in the store."""
    query = select(spend_rows.c.request_id).join(
        release_rows, release_rows.c.spend_id == spend_rows.c.id
    )
    return set(connection.scalars(query))


def _delete_again(connection: Connection, accounts: Accounts) -> None:
    """Delete releases that were deleted on purpose and came back with a backup."""
    for identity in accounts.removed & _stored(connection):
        spend = select(spend_rows.c.id).where(spend_rows.c.request_id == identity)
        connection.execute(
            delete(release_rows).where(release_rows.c.spend_id == spend.scalar_subquery())
        )


def _lose_missing(book: Book, accounts: Accounts) -> tuple[str, ...]:
    """Mark finished charges whose release is not in the store."""
    stored = _stored(book.connection)
    gone = tuple(identity for identity in accounts.stored() if identity not in stored)
    if gone:
        contents = [lost(identity, _LOST) for identity in gone]
        book.append(*contents)
        for content in contents:
            accounts.apply(content)
        for identity in gone:
            book.connection.execute(
                update(spend_rows)
                .where(spend_rows.c.request_id == identity)
                .values(**accounts.spends[identity])
            )
    return gone
