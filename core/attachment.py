"""A table behind its door: read, encoded, recognised, and attached to its population.

The raw table is handed into the private room here and nowhere else outside it; nothing in this
module looks at a value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from core.errors import ReadingError, SimulationError
from core.plan import POINT, Plan, ReadingPlan
from core.private.coding import encode
from core.private.fingerprint import fingerprint, secret
from core.private.ledger import Ledger, Population
from core.private.reading import RawTable, ReadingReport, read_table
from core.private.source import InMemorySource
from core.private.vault import Vault
from core.private.zcdp import format_rho

#: Owner of populations where nobody logs in.
LOCAL_OWNER = "local"


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


def attach(plan: Plan, raw: RawTable, ledger: Ledger, owner: str = LOCAL_OWNER) -> Attached:
    """Bring a table into the private room, under the plan's population of this owner.

    Nothing is charged.  The fingerprint only recognises a table that was seen before.

    Raises
    ------
    ReadingError
        A setting of the file was found out from its rows and is not declared.
    SchemaError
        The file lacks a declared column.
    LedgerError
        The population exists with another relation or unit.
    """
    _check_declared(plan, raw.report)
    wanted = population_of(plan, owner=owner)
    notes = [_standing(ledger, wanted)]
    key = secret(ledger)
    table = encode(raw, plan.encoded, unit=plan.population.unit, key=key)
    population = ledger.create_population(wanted)
    mark = fingerprint(raw.frame, key)
    others = [name for name in ledger.seen_in(mark, wanted.owner) if name != wanted.name]
    if others:
        notes.append(
            f"this table was attached before, to population {others[0]!r}: if these are the same "
            "people, use that name, so that their losses add up"
        )
    table_id = ledger.table_id(population.name, mark, owner=owner)
    vault = Vault(InMemorySource(table), population, ledger)
    return Attached(vault, ledger, table_id, tuple(notes))


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


def attach_simulated(plan: Plan, raw: RawTable, seed: int, *, allow_real: bool = False) -> Attached:
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
    table = encode(raw, plan.encoded, unit=plan.population.unit, key=key)
    vault = Vault(InMemorySource(table), population, ledger, noise=SeededNoise(seed))
    return Attached(vault, ledger, "simulated")


def is_demo(plan: Plan, raw: RawTable) -> bool:
    """Whether the table is, value for value, the embedded demo that the plan names."""
    from core import demo

    origin = plan.demo
    if origin is None or origin.name not in demo.names() or not 0 <= origin.rows <= 1_000_000:
        return False
    made = read_table(demo.csv_bytes(origin.name, rows=origin.rows, seed=origin.seed))
    key = b"comparison of public demo tables"
    return fingerprint(made.frame, key) == fingerprint(raw.frame, key)
