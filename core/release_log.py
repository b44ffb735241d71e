"""Who released what: an append-only log of acts, kept beside the ledger and exported with it.

The ledger says what was charged and what became of it.  The log adds the acts around it: who
asked, who signed, who moved a cap, what a retention policy deleted.  Its table refuses updates and
deletions, and every entry carries the hash of the one before, so that a log which was altered
behind the database's back does not check any more.
"""

from __future__ import annotations

import csv
import getpass
import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
    text,
)

from core.errors import LedgerError
from core.private.accounts import Population, check_name, one_line
from core.private.ledger import Ledger
from core.spreadsheet import guarded_label

#: Hash that the first entry follows.
BEGINNING = "0" * 64
#: Key of PostgreSQL's advisory lock around one addition: a chain has one end.
_ADDITION_LOCK = 0x4A75734C

metadata = MetaData()

log_rows = Table(
    "justitia_log",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("actor", Text, nullable=False),
    Column("act", String(40), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("population", String(200), nullable=False),
    Column("request_id", String(200), nullable=False),
    Column("detail", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
)

_REFUSAL = "the log of releases is append-only"
_SQLITE_GUARDS = tuple(
    f"CREATE TRIGGER justitia_log_no_{verb.lower()} BEFORE {verb} ON justitia_log "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    for verb in ("UPDATE", "DELETE")
)
_POSTGRES_GUARDS = (
    "CREATE OR REPLACE FUNCTION justitia_log_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER justitia_log_rows BEFORE UPDATE OR DELETE ON justitia_log "
    "FOR EACH ROW EXECUTE FUNCTION justitia_log_refuse()",
    "CREATE TRIGGER justitia_log_whole BEFORE TRUNCATE ON justitia_log "
    "FOR EACH STATEMENT EXECUTE FUNCTION justitia_log_refuse()",
)


class Act(StrEnum):
    """What somebody did."""

    ASKED = "asked for a release"
    SIGNED = "signed a bundle"
    CAP = "changed a cap"
    LOOKED = "looked at the real rows"
    RESULT_DELETED = "deleted a result"
    PROJECT_DELETED = "deleted a project"


@dataclass(frozen=True)
class Entry:
    """One line of the log.

    Attributes
    ----------
    number
        1, 2, 3 and so on, without gaps.
    at
        UTC.
    actor
        Who did it, as the login or the command line names them.
    owner, population, request_id
        What it was about; empty where it was about none.
    detail
        More, in words: a bundle's hash, a cap before and after.  Never a value of a table.
    previous, digest
        Hash of the entry before, and of this one.
    """

    number: int
    at: datetime
    actor: str
    act: Act
    owner: str
    population: str
    request_id: str
    detail: str
    previous: str
    digest: str


class ReleaseLog:
    """The log in a ledger's database; made where it is missing.

    Examples
    --------
    >>> log = ReleaseLog(Ledger("sqlite://"))
    >>> _ = log.add("anna", Act.SIGNED, population="patients", detail="bundle 77a0")
    >>> [(entry.number, entry.actor, entry.act.value) for entry in log.entries()]
    [(1, 'anna', 'signed a bundle')]
    >>> log.check()
    1
    """

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database
        self._make()

    def add(
        self,
        actor: str,
        act: Act,
        *,
        owner: str = "local",
        population: str = "",
        request_id: str = "",
        detail: str = "",
    ) -> Entry:
        """Append one entry; see :class:`Entry` for what it holds.

        Raises
        ------
        LedgerError
            The actor's name is unusable, or the database refused; then nothing was written.
        """
        with self._database.writing() as connection:
            return append(
                connection,
                actor,
                act,
                owner=owner,
                population=population,
                request_id=request_id,
                detail=detail,
            )

    def entries(self, *, owner: str | None = None) -> list[Entry]:
        """All entries, or those about one owner's populations, oldest first."""
        query = select(log_rows).order_by(log_rows.c.number)
        if owner is not None:
            query = query.where(log_rows.c.owner == owner)
        with self._database.reading() as connection:
            return [_entry(row) for row in connection.execute(query)]

    def check(self) -> int:
        """How many entries there are, each of them following from the one before.

        Whoever can write to the database can also write a whole new chain: note the last digest
        somewhere else, such as in the minutes, to notice that.

        Raises
        ------
        LedgerError
            An entry was altered, removed or slipped in; the message names the first such number.
        """
        previous, count = BEGINNING, 0
        for count, entry in enumerate(self.entries(), 1):
            if (entry.number, entry.previous) != (count, previous) or entry.digest != _digest(
                entry
            ):
                raise LedgerError(
                    f"the log of releases does not follow from itself at entry {count}: it was "
                    "altered; compare it with a backup"
                )
            previous = entry.digest
        return count

    def _make(self) -> None:
        with self._database.reading() as connection:
            if inspect(connection).has_table(log_rows.name):
                return
        with self._database.writing() as connection:
            if not self._database.is_sqlite:
                _lock(connection)
            if inspect(connection).has_table(log_rows.name):
                return  # another process made it at the same moment
            metadata.create_all(connection)
            for guard in _SQLITE_GUARDS if self._database.is_sqlite else _POSTGRES_GUARDS:
                connection.execute(text(guard))


def append(
    connection: Connection,
    actor: str,
    act: Act,
    *,
    owner: str = "local",
    population: str = "",
    request_id: str = "",
    detail: str = "",
) -> Entry:
    """As :meth:`ReleaseLog.add`, inside a writing transaction that the caller opened."""
    check_name(actor, "the name of who acts")
    if connection.dialect.name != "sqlite":
        _lock(connection)  # SQLite has its one write lock already
    last = connection.execute(
        select(log_rows.c.number, log_rows.c.digest).order_by(log_rows.c.number.desc()).limit(1)
    ).one_or_none()
    entry = Entry(
        number=1 if last is None else last.number + 1,
        at=datetime.now(UTC),
        actor=actor,
        act=act,
        owner=owner,
        population=population,
        request_id=request_id,
        detail=one_line(detail),
        previous=BEGINNING if last is None else last.digest,
        digest="",
    )
    columns = {**asdict(entry), "at": entry.at.isoformat(), "act": act.value}
    columns["digest"] = _digest(entry)
    connection.execute(insert(log_rows).values(**columns))
    return Entry(**{**asdict(entry), "digest": columns["digest"]})


def set_cap(
    ledger: Ledger, actor: str, population: str, cap: Fraction, *, owner: str, reason: str
) -> Population:
    """Change a population's cap, and log who did so and why; a cap that stands changes nothing.

    Raises
    ------
    LedgerError
        There is no such population, or it spent more than that; nothing was changed or logged.
    """
    known = ledger.population(population, owner)
    before = known.cap
    if cap == before:
        return known  # a second click on the same button
    changed = ledger.set_cap(population, cap, owner=owner)
    ReleaseLog(ledger).add(
        actor,
        Act.CAP,
        owner=owner,
        population=population,
        detail=f"from rho = {before} to {changed.cap}: {reason}",
    )
    return changed


def _lock(connection: Connection) -> None:
    connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADDITION_LOCK})"))


def _entry(row: Row[Any]) -> Entry:
    found = dict(row._mapping)
    return Entry(**{**found, "at": datetime.fromisoformat(row.at), "act": Act(row.act)})


def _digest(entry: Entry) -> str:
    """Hash of everything but the digest itself; the previous one is part of it."""
    values = [
        entry.number,
        entry.at.isoformat(),
        *(str(getattr(entry, field.name)) for field in fields(Entry)[2:-1]),
    ]
    return hashlib.sha256(json.dumps(values, ensure_ascii=True).encode()).hexdigest()


def account() -> str:
    """Who acts on the command line: the operating system's account."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        name = f"user {os.getuid()}"
    return f"{name} (command line)"


# -- who released what ---------------------------------------------------------------------------

HEADER = (
    "when (UTC)",
    "who",
    "act",
    "owner",
    "population",
    "request",
    "what",
    "rho",
    "state",
    "release SHA-256",
    "detail",
)


def who_released_what(ledger: Ledger, *, owner: str | None = None) -> Iterator[tuple[str, ...]]:
    """The log joined with what the ledger says became of each request, oldest first.

    A charge that nobody logged (made by a program that uses the ledger directly) is listed all
    the same, with the owner of its population as who.

    Parameters
    ----------
    owner
        Only what is about this owner's populations; None for everybody's.

    Yields
    ------
    tuple of str
        One line for :data:`HEADER`.
    """
    charged = {
        spend.request_id: spend
        for population in ledger.populations(owner)
        for spend in ledger.spends(population.name, owner=population.owner)
    }
    lines = []
    asked = set()
    for entry in ReleaseLog(ledger).entries(owner=owner):
        spend = charged.get(entry.request_id)
        asked |= {entry.request_id} if entry.act is Act.ASKED else set()
        about = ("", "", "nothing was charged" if entry.act is Act.ASKED else "", "")
        if spend is not None:
            about = (spend.what, str(spend.rho), spend.state.value, spend.release_sha256 or "")
        who = (entry.actor, entry.act.value, entry.owner, entry.population, entry.request_id)
        lines.append((entry.at, (*who, *about, entry.detail)))
    for identity, spend in charged.items():
        if identity not in asked:
            who = (spend.owner, Act.ASKED.value, spend.owner, spend.population, identity)
            about = (spend.what, str(spend.rho), spend.state.value, spend.release_sha256 or "")
            lines.append((spend.created_at, (*who, *about, "from the ledger alone")))
    for at, line in sorted(lines, key=lambda pair: pair[0]):
        yield (at.isoformat(timespec="seconds"), *line)


def csv_text(lines: Sequence[tuple[str, ...]]) -> str:
    """The lines as CSV that a spreadsheet cannot take for formulas."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for line in lines:
        writer.writerow([guarded_label(cell) for cell in line])
    return out.getvalue()
