"""The ledger's tables, and how populations, charges and spends lie in them.

Amounts of rho are text, ``"numerator/denominator"``, and are added in Python: no database adds
fractions exactly.  The functions run inside a transaction that the ledger opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    Text,
    UniqueConstraint,
    delete,
    insert,
    select,
    update,
)

from core.errors import LedgerError
from core.private.accounts import Charge, Population, Spend, SpendState
from core.private.history import charged, removed, settled, terms_changed
from core.private.processes import Process
from core.releases import Relation, Unit

if TYPE_CHECKING:
    from core.private.chain import Book

#: Version of the tables below; a newer one in the file is refused, not guessed at.
TABLES_VERSION = 2
#: The first version had no chain of events.
UNCHAINED_VERSION = 1

metadata = MetaData()

version_rows = Table(
    "justitia_version",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
)

population_rows = Table(
    "justitia_population",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("relation", String(20), nullable=False),
    Column("unit_rows", Integer, nullable=False),
    Column("unit_person_column", Text),
    Column("cap", Text, nullable=False),
    Column("delta", Float, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("expected_rows", Integer),
    UniqueConstraint("name", "owner"),
)

spend_rows = Table(
    "justitia_spend",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("request_id", String(200), nullable=False, unique=True),
    Column("population_id", ForeignKey(population_rows.c.id), nullable=False, index=True),
    Column("what", Text, nullable=False),
    Column("rho", Text, nullable=False),
    Column("debited", Text),
    Column("state", String(20), nullable=False, index=True),
    Column("created_at", String(40), nullable=False),
    Column("finished_at", String(40)),
    Column("release_kind", Text),
    Column("release_sha256", String(64)),
    Column("message", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("process_start", Text, nullable=False),
)

release_rows = Table(
    "justitia_release",
    metadata,
    Column("spend_id", ForeignKey(spend_rows.c.id), primary_key=True),
    Column("blob", LargeBinary, nullable=False),
)

#: What happened, in order; see :mod:`core.private.chain`.  Rows are added and never changed.
event_rows = Table(
    "justitia_event",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("subject", String(200), index=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)

table_rows = Table(
    "justitia_table",
    metadata,
    Column("population_id", ForeignKey(population_rows.c.id), primary_key=True),
    Column("fingerprint", String(64), primary_key=True),
    Column("table_id", String(32), nullable=False),
)

project_rows = Table(
    "justitia_project",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(200), nullable=False, index=True),
    Column("name", String(200), nullable=False),
    Column("updated_at", String(40), nullable=False),
    Column("document", Text, nullable=False),
)


def to_text(amount: Fraction) -> str:
    """An amount as it is stored."""
    return f"{amount.numerator}/{amount.denominator}"


def _now() -> str:
    return datetime.now(UTC).isoformat()


def find_population(
    connection: Connection, name: str, owner: str, *, lock: bool = False
) -> Row[Any] | None:
    """A population's row; ``lock`` keeps others from charging until the transaction ends."""
    query = select(population_rows).where(
        population_rows.c.name == name, population_rows.c.owner == owner
    )
    if lock:
        query = query.with_for_update()  # SQLite has its one write lock already
    return connection.execute(query).one_or_none()


def existing_population(
    connection: Connection, name: str, owner: str, *, lock: bool = False
) -> Row[Any]:
    """As :func:`find_population`; LedgerError when there is none."""
    row = find_population(connection, name, owner, lock=lock)
    if row is None:
        raise LedgerError(f"there is no population {name!r} here; create it, or check its name")
    return row


def population_columns(population: Population) -> dict[str, Any]:
    """The row of a new population."""
    return {
        "name": population.name,
        "owner": population.owner,
        "relation": population.relation.value,
        "unit_rows": population.unit.rows,
        "unit_person_column": population.unit.person_column,
        "cap": to_text(population.cap),
        "delta": population.delta,
        "simulated": population.simulated,
        "expected_rows": population.expected_rows,
    }


def to_population(row: Row[Any]) -> Population:
    """The population that a row holds."""
    return Population(
        name=row.name,
        relation=Relation(row.relation),
        unit=Unit(row.unit_rows, row.unit_person_column),
        cap=Fraction(row.cap),
        delta=row.delta,
        owner=row.owner,
        simulated=row.simulated,
        expected_rows=row.expected_rows,
    )


def read_spends(
    connection: Connection,
    *,
    ids: Sequence[str] | None = None,
    population_id: int | None = None,
) -> list[Spend]:
    """Spends of these ids, or of one population, in the order of their charges."""
    query = (
        select(spend_rows, population_rows.c.name, population_rows.c.owner)
        .join(population_rows, population_rows.c.id == spend_rows.c.population_id)
        .order_by(spend_rows.c.id)
    )
    if ids is not None:
        query = query.where(spend_rows.c.request_id.in_(ids))
    if population_id is not None:
        query = query.where(spend_rows.c.population_id == population_id)
    return [_spend(row) for row in connection.execute(query)]


def _spend(row: Row[Any]) -> Spend:
    return Spend(
        request_id=row.request_id,
        population=row.name,
        what=row.what,
        rho=Fraction(row.rho),
        debited=None if row.debited is None else Fraction(row.debited),
        state=SpendState(row.state),
        created_at=datetime.fromisoformat(row.created_at),
        finished_at=None if row.finished_at is None else datetime.fromisoformat(row.finished_at),
        release_kind=row.release_kind,
        release_sha256=row.release_sha256,
        message=row.message,
        owner=row.owner,
    )


def process_of(row: Row[Any]) -> Process:
    """The process that made the charge in a row."""
    return Process(row.host, row.pid, row.process_start)


def read_spent(connection: Connection, population_id: int) -> Fraction:
    """Exact sum of a population's charges."""
    query = select(spend_rows.c.rho).where(spend_rows.c.population_id == population_id)
    return sum((Fraction(rho) for rho in connection.scalars(query)), Fraction(0))


def charge_rows(population_id: int, charges: Sequence[Charge]) -> list[dict[str, Any]]:
    """Rows of new charges, made by this process now."""
    process, now = Process.current(), _now()
    return [
        {
            "population_id": population_id,
            "request_id": charge.request_id,
            "what": charge.what,
            "rho": to_text(charge.rho),
            "state": SpendState.CHARGED.value,
            "created_at": now,
            "message": "",
            "host": process.host,
            "pid": process.pid,
            "process_start": process.start,
        }
        for charge in charges
    ]


def book_charges(book: Book, population: Row[Any], charges: Sequence[Charge]) -> None:
    """Write new charges and their events; the one place that makes spends."""
    rows = charge_rows(population.id, charges)
    book.connection.execute(insert(spend_rows), rows)
    book.append(*(charged(population.name, population.owner, row) for row in rows))


def open_charge(connection: Connection, request_id: str) -> Row[Any]:
    """The row of a charge that is still open, locked; LedgerError when there is none."""
    query = select(spend_rows).where(spend_rows.c.request_id == request_id).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise LedgerError(f"nothing was charged under request {request_id!r}")
    if row.state != SpendState.CHARGED.value:
        raise LedgerError(
            f"request {request_id!r} is finished ({row.state}); a finished charge never changes"
        )
    return row


def change_terms(book: Book, row: Row[Any], **changes: Any) -> None:
    """Write another cap, delta or expected number of rows, and its event."""
    book.connection.execute(
        update(population_rows).where(population_rows.c.id == row.id).values(**changes)
    )
    book.append(terms_changed(row.name, row.owner, **changes))


def settle(book: Book, row: Row[Any], state: SpendState, **columns: Any) -> Spend:
    """Write a charge's final state and its event; the one place that changes a spend."""
    changes = {**columns, "state": state.value, "finished_at": _now()}
    book.connection.execute(update(spend_rows).where(spend_rows.c.id == row.id).values(**changes))
    book.append(settled(row.request_id, changes))
    return read_spends(book.connection, ids=[row.request_id])[0]


def delete_release(book: Book, spend_id: int, request_id: str) -> None:
    """Delete a stored release on purpose, with its event; its charge stays as it is."""
    book.connection.execute(delete(release_rows).where(release_rows.c.spend_id == spend_id))
    book.append(removed(request_id))
