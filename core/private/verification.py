"""Is the ledger what happened?  The chain, the accounts, the releases and the witness, compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, select

from core.errors import LedgerError
from core.private.chain import START, Broken, Event, chained, read_events, subject_of
from core.private.database import Database
from core.private.history import POPULATION, Accounts
from core.private.ledger_tables import event_rows, population_rows, release_rows, spend_rows
from core.private.witness import Witness


@dataclass(frozen=True)
class ChainReport:
    """What a verification found.

    Attributes
    ----------
    intact
        Whether everything agrees.
    words
        One sentence: how long the chain is, or what is wrong, and the way out.
    rows
        Rows of the chain.
    head
        Hash of the last one; note it elsewhere, and compare it later.
    broken_at
        The first row that is wrong, if one is.
    """

    intact: bool
    words: str
    rows: int
    head: str
    broken_at: int | None = None


def verify(database: Database, witness: Witness | None, *, releases: bool = True) -> ChainReport:
    """Compare chain, accounts, stored releases and witness; reads only.

    Parameters
    ----------
    releases
        Whether to hash every stored release again too.
    """
    seen = [] if witness is None else witness.seen()  # first: it holds committed rows only
    with database.reading(snapshot=True) as connection:
        events = read_events(connection)
        head = events[-1].hash if events else START
        try:
            accounts = replayed(events)
            _check_subjects(connection, events)
            if witness is not None:
                check_witness(witness, seen, events)
            _check_accounts(connection, accounts, events)
            _check_releases(connection, accounts, events, hashing=releases)
        except Broken as broken:
            return ChainReport(False, str(broken), len(events), head, broken.row)
    words = f"chain intact: {len(events)} rows, the last one {head[:16]}"
    return ChainReport(True, words, len(events), head)


def replayed(events: Sequence[Event]) -> Accounts:
    """Follow the chain from its start and play the events again.

    Raises
    ------
    Broken
        A row is missing, does not follow from the one before, or could not have happened.
    """
    accounts, previous = Accounts(), START
    for number, event in enumerate(events, 1):
        if event.sequence != number:
            raise Broken(f"chain broken at row {number}: this row is missing{_WAY_OUT}", number)
        if chained(number, previous, event.body) != event.hash:
            earlier = f"it does not follow from row {number - 1}, so that one of the two"
            what = "it" if number == 1 else earlier
            raise Broken(
                f"chain broken at row {number}: {what} was changed after it was written{_WAY_OUT}",
                number,
            )
        try:
            accounts.apply(event.content)
        except LedgerError as error:
            raise Broken(f"chain broken at row {number}: {error}{_WAY_OUT}", number) from error
        previous = event.hash
    if not events:
        raise Broken(f"chain broken at row 1: all rows are missing{_WAY_OUT}", 1)
    return accounts


_WAY_OUT = "; restore a backup from before that (python -m core ledger --restore FILE)"
_MEND = (
    "; the chain itself is whole: python -m core ledger --mend makes the tables again what it says"
)


def check_witness(witness: Witness, seen: Sequence[Event], events: Sequence[Event]) -> None:
    """Refuse a chain that is not the one this machine saw.

    Raises
    ------
    Broken
        Rows that were seen are missing, or are others.
    """
    for event in seen:
        if event.sequence > len(events):
            raise Broken(witness.older(len(events), seen[-1].sequence), len(events) + 1)
        if events[event.sequence - 1].hash != event.hash:
            raise Broken(witness.rewritten(event.sequence), event.sequence)


def _check_subjects(connection: Connection, events: Sequence[Event]) -> None:
    """The column by which events are found says what their bodies say."""
    columns = event_rows.c
    query = select(columns.sequence, columns.subject).order_by(columns.sequence)
    for event, (row, subject) in zip(events, connection.execute(query), strict=True):
        if subject != subject_of(event.content):
            raise Broken(
                f"chain broken at row {row}: it is filed under another request{_WAY_OUT}", row
            )


def _check_accounts(connection: Connection, accounts: Accounts, events: Sequence[Event]) -> None:
    """The tables that programs read are those that follow from the chain."""
    told = {
        (str(row["name"]), str(row["owner"])): {name: row[name] for name in POPULATION}
        for row in _rows(connection, select(population_rows))
    }
    if missing := [payer for payer in accounts.populations if payer not in told]:
        row = _row_of(events, "population", *missing[0])
        raise Broken(f"the population that row {row} made is missing{_MEND}", row)
    if set(told) - set(accounts.populations):
        raise Broken(f"a population is listed that no row of the chain made{_MEND}")
    for payer, columns in accounts.populations.items():
        if part := _difference(told[payer], columns):
            row = _row_of(events, "population", *payer)
            raise Broken(
                f"the {part} of the population that row {row} made is another one than the chain "
                f"says{_MEND}",
                row,
            )
    _check_spends(connection, accounts, events)


def _check_spends(connection: Connection, accounts: Accounts, events: Sequence[Event]) -> None:
    query = select(spend_rows, population_rows.c.name, population_rows.c.owner).join(
        population_rows, population_rows.c.id == spend_rows.c.population_id
    )
    told = {str(row["request_id"]): row for row in _rows(connection, query)}
    for identity, columns in accounts.spends.items():
        listed = told.get(identity)
        if listed is None:
            row = _row_of(events, "charged", identity)
            raise Broken(f"the charge of row {row} ({identity}) is missing{_MEND}", row)
        part = _difference(listed, columns)
        if (listed["name"], listed["owner"]) != accounts.payers[identity]:
            part = "population"
        if part:
            row = _row_of(events, "charged", identity)
            raise Broken(
                f"the {part} of the charge of row {row} ({identity}) is another one than the "
                f"chain says{_MEND}",
                row,
            )
    for identity in told:
        if identity not in accounts.spends:
            raise Broken(f"a charge is listed that no row of the chain made ({identity}){_MEND}")


def _check_releases(
    connection: Connection, accounts: Accounts, events: Sequence[Event], *, hashing: bool
) -> None:
    columns = (spend_rows.c.request_id, *((release_rows.c.blob,) if hashing else ()))
    query = select(*columns).join(release_rows, release_rows.c.spend_id == spend_rows.c.id)
    waiting = accounts.stored()
    with connection.execute(query.execution_options(yield_per=10)) as rows:
        for row in rows:
            promised = waiting.pop(row.request_id, None)
            if row.request_id in accounts.removed:
                raise Broken(
                    f"the release of request {row.request_id} was deleted and is there again"
                    f"{_MEND}",
                    _row_of(events, "removed", row.request_id),
                )
            if promised is None or (hashing and _hash_of(row.blob) != promised):
                raise Broken(
                    f"the release of request {row.request_id} is not the one that was stored; "
                    "restore a backup (python -m core ledger --restore FILE)",
                    _row_of(events, "settled", row.request_id),
                )
    for identity in waiting:
        raise Broken(
            f"the release of request {identity} is missing{_MEND}",
            _row_of(events, "settled", identity),
        )


def _hash_of(blob: object) -> str | None:
    return hashlib.sha256(blob).hexdigest() if isinstance(blob, bytes | memoryview) else None


def _rows(connection: Connection, query: Any) -> list[Mapping[str, Any]]:
    return [row._asdict() for row in connection.execute(query)]


def _difference(listed: Mapping[str, Any], columns: Mapping[str, Any]) -> str | None:
    """The first column that differs, by name."""
    for name, value in columns.items():
        if listed[name] != value and not (name in ("rho", "cap") and _same(listed[name], value)):
            return name
    return None


def _same(one: Any, other: Any) -> bool:
    try:
        return Fraction(one) == Fraction(other)
    except (ValueError, TypeError, ZeroDivisionError):
        return False


def _row_of(events: Sequence[Event], kind: str, *words: str) -> int | None:
    """The first row of this kind about a request, or about a population by name and owner.

    It looks through all rows: for messages only.
    """
    for event in events:
        content = event.content
        found = [content.get("request_id")]
        if kind == "population":
            found = [content.get("name"), content.get("owner")]
        if content["kind"] == kind and found == list(words):
            return event.sequence
    return None
