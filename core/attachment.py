"""A table behind its door: read, encoded, recognised, and attached to its population.

The raw table is handed into the private room here and nowhere else outside it; nothing in this
module looks at a value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from core.addresses import is_database
from core.errors import ReadingError, SimulationError
from core.plan import POINT, Plan, ReadingPlan
from core.private.batches import BatchedSource, refuse_persons
from core.private.coding import encode, modelled_in_file
from core.private.earlier_fingerprint import recognised
from core.private.fingerprint import fingerprint, secret
from core.private.ibis_connection import DatabaseTable, location_of, open_database
from core.private.ledger import Ledger, Population
from core.private.reading import RawTable, ReadingReport, read_table
from core.private.source import InMemorySource, Primitive, Source
from core.private.streaming import (
    StreamedBatches,
    StreamedTable,
    needs_batches,
    open_table,
    survey,
)
from core.private.streaming_files import is_pattern
from core.private.vault import Vault
from core.private.zcdp import format_rho
from core.protocols import Progress

#: Owner of populations where nobody logs in.
LOCAL_OWNER = "local"

#: A table before it is attached: read whole, on disk, or in its database.
Table = RawTable | StreamedTable | DatabaseTable


@dataclass(frozen=True)
class Attached:
    """The vault, the table's public random id, and what its owner should know.

    ``notes`` are for the owner's own screen: a new population, or a table known elsewhere.
    """

    vault: Vault
    ledger: Ledger
    table_id: str
    notes: tuple[str, ...] = ()


def population_of(plan: Plan, *, owner: str = LOCAL_OWNER, simulated: bool = False) -> Population:
    """The ledger's terms that a plan declares."""
    terms = plan.population
    return Population(
        name=terms.name,
        relation=terms.relation,
        unit=terms.unit,
        cap=terms.cap,
        delta=terms.delta,
        owner=owner,
        simulated=simulated,
        expected_rows=terms.expected_rows,
    )


def read_for(plan: Plan, data: str | Path | bytes, name: str | None = None) -> RawTable:
    """Read a table as the plan's ``[reading]`` section says; decimals have a point unless it says.

    Only :func:`settled` finds settings out, because finding out looks at rows.
    """
    reading = plan.reading
    if reading.decimal is None:
        reading = replace(reading, decimal=POINT)
    return read_as(reading, data, name)


def open_for(plan: Plan, data: str | Path) -> Table:
    """A file read whole; or, opened only, what does not fit into memory or lies in several files.

    Parameters
    ----------
    data
        A file; a folder of Parquet or CSV files, or a glob, all files with the same columns; or
        the address of a table in a database, see :mod:`core.private.ibis_connection`.

    Raises
    ------
    ReadingError
        There is no table, or the settings do not fit it.
    """
    if isinstance(data, str) and is_database(data):
        refuse_persons(plan.population.unit)
        if plan.reading.rename:
            raise ReadingError(
                "[reading.rename] is for files; columns of a database are renamed in a view"
            )
        return open_database(data)
    if not needs_batches(data):
        return read_for(plan, data)
    refuse_persons(plan.population.unit)
    return open_table(
        data,
        delimiter=plan.reading.delimiter,
        encoding=plan.reading.encoding,
        decimal=plan.reading.decimal or POINT,
        formula_guard=plan.reading.formula_guard,
        rename=dict(plan.reading.rename) or None,
    )


def places_of(data: str | Path) -> tuple[Path, ...]:
    """The file or folder that a table is read from; of a glob, the folder that it looks into."""
    if isinstance(data, str) and is_database(data):
        file = location_of(data).file
        return () if file is None else (file,)
    return (Path(data).parent if is_pattern(data) else Path(data),)


def read_as(reading: ReadingPlan, data: str | Path | bytes, name: str | None = None) -> RawTable:
    """Read a table with these settings.

    Raises
    ------
    ReadingError
        The file is no table, or the settings do not fit it.
    """
    return read_table(
        data,
        name=name,
        sheet=reading.sheet,
        delimiter=reading.delimiter,
        encoding=reading.encoding,
        decimal=reading.decimal,
        rename=dict(reading.rename) or None,
        day_numbers=reading.day_numbers,
        formula_guard=reading.formula_guard,
    )


def settled(reading: ReadingPlan, report: ReadingReport) -> ReadingPlan:
    """These settings, with what was found out about a CSV file filled in: declare it so."""
    if report.format != "csv":
        return reading
    return replace(
        reading,
        delimiter=reading.delimiter or report.delimiter,
        encoding=reading.encoding or report.encoding,
        decimal=reading.decimal or report.decimal,
    )


def _check_declared(plan: Plan, report: ReadingReport) -> None:
    """Refuse a table whose reading one row could change for all others."""
    for what in ("delimiter", "encoding", "decimal"):
        declared, used = getattr(plan.reading, what), getattr(report, what)
        if declared is None and what in report.guessed and used != POINT:
            raise ReadingError(
                f"the file's {what} was found out from its rows, on which nothing may depend; "
                f"declare it in the plan: [reading] {what} = {used!r}, if that is right"
            )
        if what == "decimal" and report.format == "csv" and used != (declared or POINT):
            raise ReadingError(
                f"the file was read with another decimal sign than the plan declares; declare "
                f"[reading] decimal = {used!r}, or read it again"
            )


def attach(
    plan: Plan,
    raw: Table,
    ledger: Ledger,
    owner: str = LOCAL_OWNER,
    *,
    progress: Progress | None = None,
) -> Attached:
    """Bring a table into the private room, under the plan's population of this owner.

    Nothing is charged.  The fingerprint only recognises a table that was seen before.  A table
    that is read in batches is read once for that, ``progress`` told.

    Raises
    ------
    ReadingError
        A setting of the file was found out from its rows and is not declared; or a file that is
        read in batches is damaged, or persons are the unit.
    SchemaError
        The file lacks a declared column.
    LedgerError
        The population exists with another relation or unit.
    """
    _check_declared(plan, raw.report)
    key = secret(ledger)
    if isinstance(raw, DatabaseTable):
        asked = raw.source(plan.encoded, plan.population.unit)
        return attach_source(plan, asked, raw.mark(key), ledger, owner, notes=raw.notes)
    if isinstance(raw, StreamedTable):
        source, mark = _in_batches(plan, raw, key, progress)
        return attach_source(plan, source, mark, ledger, owner)
    table = _in_memory(plan, raw, key)
    mark = recognised(ledger, raw.frame, key, plan.population.name, owner)
    return attach_source(plan, table, mark, ledger, owner)


def attach_source(
    plan: Plan,
    source: Source,
    mark: str,
    ledger: Ledger,
    owner: str = LOCAL_OWNER,
    *,
    notes: tuple[str, ...] = (),
) -> Attached:
    """Attach any source of exact answers; the seam for tables that are not read here.

    Parameters
    ----------
    plan
        Its population is the table's; ``source`` was made for ``plan.encoded`` and the
        population's unit.
    source
        Exact answers; confidential.
    mark
        What the table is recognised by: :func:`core.private.fingerprint.fingerprint` of its rows
        or, where they never leave their engine, :func:`core.private.fingerprint.declared_mark`.
    notes
        What the owner should know besides; a declared mark must be said here.

    Raises
    ------
    LedgerError
        The population exists with another relation or unit.
    ReadingError
        The source cannot serve what the plan asks for.
    SchemaError
        The source does not keep the population's unit.
    """
    _check_served(plan, source)
    wanted = population_of(plan, owner=owner)
    found = [_standing(ledger, wanted), *notes]
    population = ledger.create_population(wanted)
    others = [name for name in ledger.seen_in(mark, wanted.owner) if name != wanted.name]
    if others:
        found.append(
            f"this table was attached before, to population {others[0]!r}: if these are the same "
            "people, use that name, so that their losses add up"
        )
    vault = Vault(source, population, ledger)
    table_id = ledger.table_id(population.name, mark, owner=owner)
    return Attached(vault, ledger, table_id, tuple(found))


def _check_served(plan: Plan, source: Source) -> None:
    """Refuse a plan that asks for what the source cannot answer, before anything is charged."""
    analyses = bool(plan.posteriors) or plan.covariance is not None
    if analyses and Primitive.MOMENTS not in source.serves:
        raise ReadingError(
            "this database does not compute with numbers exactly as this program does, so that "
            "means and covariances cannot be released from it; take the analyses off the plan, or "
            "export the table as Parquet files"
        )


def _in_memory(plan: Plan, raw: RawTable, key: bytes) -> InMemorySource:
    return InMemorySource(encode(raw, plan.encoded, unit=plan.population.unit, key=key))


def _in_batches(
    plan: Plan, table: StreamedTable, key: bytes, progress: Progress | None
) -> tuple[BatchedSource, str]:
    """Exact answers, and the fingerprint; all files are read to their end once, to be sure."""
    refuse_persons(plan.population.unit)
    modelled_in_file(table, plan.encoded)
    found = survey(table, key, progress)
    batches = StreamedBatches(table, plan.encoded, found.rows)
    return BatchedSource(batches, plan.population.unit), found.mark


def _standing(ledger: Ledger, wanted: Population) -> str:
    """Where the population stands, for its owner's own screen."""
    known = {found.name: found for found in ledger.populations(wanted.owner)}
    if wanted.name not in known:
        return (
            f"population {wanted.name!r} is new: its ledger starts empty, with a cap of rho "
            f"{format_rho(wanted.cap)}; the same people must always go by the same name"
        )
    cap = known[wanted.name].cap
    spent = ledger.spent(wanted.name, owner=wanted.owner)
    words = (
        f"population {wanted.name!r} has spent rho {format_rho(spent)} of its cap {format_rho(cap)}"
    )
    if cap != wanted.cap:
        words += (
            f", which is the ledger's, not the plan's {format_rho(wanted.cap)}; to change it: "
            "python -m core ledger --population NAME --set-cap RHO"
        )
    return words


def attach_simulated(
    plan: Plan,
    raw: Table,
    seed: int,
    *,
    allow_real: bool = False,
    progress: Progress | None = None,
) -> Attached:
    """As :func:`attach`, with seeded noise and a throw-away ledger; for demos and teaching.

    Raises
    ------
    SimulationError
        The table is not the embedded demo that the plan names, and ``allow_real`` is not set.
    """
    if not allow_real and not is_demo(plan, raw):
        raise SimulationError(
            "simulated noise is seeded and protects nobody, and this table is not the embedded "
            "demo that the plan names; to rehearse on it all the same, and publish nothing, "
            "allow it explicitly (--allow-real-data)"
        )
    from core.simulation import SeededNoise

    _check_declared(plan, raw.report)
    ledger = Ledger("sqlite://")
    population = ledger.create_population(population_of(plan, simulated=True))
    key = hashlib.sha256(f"simulated {seed}".encode()).digest()
    source: Source
    if isinstance(raw, DatabaseTable):
        source = raw.source(plan.encoded, plan.population.unit)
    elif isinstance(raw, StreamedTable):
        source, _ = _in_batches(plan, raw, key, progress)
    else:
        source = _in_memory(plan, raw, key)
    _check_served(plan, source)
    vault = Vault(source, population, ledger, noise=SeededNoise(seed))
    return Attached(vault, ledger, "simulated")


def is_demo(plan: Plan, raw: Table) -> bool:
    """Whether the table is, value for value, the embedded demo that the plan names."""
    from core import demo

    if isinstance(raw, DatabaseTable):  # whose rows nobody compares
        return False
    origin = plan.demo
    if origin is None or origin.name not in demo.names() or not 0 <= origin.rows <= 1_000_000:
        return False
    made = read_table(demo.csv_bytes(origin.name, rows=origin.rows, seed=origin.seed))
    key = b"comparison of public demo tables"
    mark = fingerprint(raw.frame, key) if isinstance(raw, RawTable) else survey(raw, key).mark
    return fingerprint(made.frame, key) == mark
