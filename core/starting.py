"""Ways to start: a demo with its plan, or a first plan for one's own table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from core import demo
from core.attachment import read_as, settled
from core.codebook import read_codebook
from core.errors import PlanError, SchemaError
from core.plan import (
    DemoOrigin,
    Plan,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
)
from core.private.reading import HeaderError, RawTable
from core.private.suggestions import suggest_schema
from core.releases import Unit
from core.roles import Role, Roles, suggest_roles
from core.schema import Column, Kind, Schema

#: What the demo's plan spends, and the cap of its population.
DEMO_RHO = Fraction(1, 2)
DEMO_CAP = Fraction(2)

_HEADING = """\
# A plan says everything that you chose; nothing in it comes from a row unless it says so.
# 1. Check every column below: kind, categories or bounds, missing rule.  Bounds and categories
#    must be public knowledge, fixed before anybody looks at the data.
# 2. Give each column a role: protected, outcome, admissible, inadmissible, ignore.
# 3. Choose a price (tree.rho) and name the population.
# Then: python -m core run PLAN --data FILE --out FOLDER
"""


def demo_plan(name: str = "hiring", rows: int = 20_000, seed: int = 0) -> Plan:
    """The plan that goes with an embedded demo table."""
    if name not in demo.names():
        raise PlanError(f"there is no demo {name!r}; there are: {', '.join(demo.names())}")
    return Plan(
        population=PopulationPlan(
            name=f"demo {name}", unit=Unit(), cap=DEMO_CAP, expected_rows=max(rows, 1)
        ),
        schema=demo.schema(name),
        roles=demo.roles(name),
        tree=TreePlan(DEMO_RHO),
        demo=DemoOrigin(name, rows, seed),
    )


def write_demo(directory: str | Path, name: str, rows: int, seed: int) -> tuple[Path, Path]:
    """Write ``demo.csv`` and ``plan.toml``; returns their paths."""
    if not 0 <= rows <= 1_000_000:
        raise PlanError("--rows must lie between 0 and 1,000,000")
    plan = demo_plan(name, rows, seed)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    data, text = folder / "demo.csv", folder / "plan.toml"
    data.write_bytes(demo.csv_bytes(name, rows=rows, seed=seed))
    text.write_text(plan.to_toml(), encoding="utf-8")
    return data, text


@dataclass(frozen=True)
class Draft:
    """Text of a first plan, and what its author should look at."""

    text: str
    notes: tuple[str, ...]


def draft_plan(
    data: str | Path,
    *,
    suggest: bool = False,
    codebook: str | Path | None = None,
    reading: ReadingPlan | None = None,
    accept_names: bool = False,
) -> Draft:
    """A first plan for a table, from a codebook, from names only, or (on request) from values.

    Parameters
    ----------
    data
        The table; only its column names are used unless ``suggest`` is set.
    suggest
        Suggest declarations from values.  Every release made with them carries the flag
        "data-dependent domain".
    codebook
        Public declarations; wins over suggestions.
    reading
        How to read the file; the plan repeats it.
    accept_names
        Take the names that are offered for repeated or empty ones; the plan keeps them under
        ``[reading.rename]``, where they can be edited.

    Raises
    ------
    ReadingError
        The file cannot be read; a :class:`HeaderError` offers names.
    """
    raw, reading = _read(data, ReadingPlan() if reading is None else reading, accept_names)
    names = raw.names
    notes = list(raw.report.notes)
    declared = {} if codebook is None else {c.name: c for c in read_codebook(codebook).columns}
    absent = sorted(set(declared) - set(names))
    if absent:
        raise SchemaError(f"the codebook declares {absent[0]!r}, which the file does not have")
    suggested: dict[str, Column] = {}
    if suggest:
        suggestion = suggest_schema(raw)
        suggested = {column.name: column for column in suggestion.schema.columns}
        notes += suggestion.notes
        notes.append("suggested declarations are flagged 'data-dependent domain' to the end")
    columns = tuple(
        declared.get(name) or suggested.get(name) or _undeclared(name, notes) for name in names
    )
    schema = Schema(columns)
    roles = _roles(schema, notes)
    plan = Plan(
        population=PopulationPlan(name=Path(data).stem or "my population"),
        schema=schema,
        roles=roles,
        tree=TreePlan(Fraction(1, 10)),
        synthetic=SyntheticPlan(types=_types(raw, notes)),
        reading=settled(reading, raw.report),
    )
    return Draft(_HEADING + "\n" + plan.to_toml(), tuple(notes))


def _read(
    data: str | Path, reading: ReadingPlan, accept_names: bool
) -> tuple[RawTable, ReadingPlan]:
    try:
        return read_as(reading, data), reading
    except HeaderError as error:
        if not accept_names:
            raise
        pairs = zip(error.names, error.proposal, strict=True)
        offered = {offer: offer for found, offer in pairs if found != offer}
    reading = replace(reading, rename=offered)
    return read_as(reading, data), reading


def _types(raw: RawTable, notes: list[str]) -> dict[str, str]:
    """Column types of a Parquet file, declared for a Parquet output."""
    if raw.report.format != "parquet":
        return {}
    notes.append("column types were taken from the file's own schema, for a Parquet output")
    return dict(raw.storage)


def _undeclared(name: str, notes: list[str]) -> Column:
    notes.append(f"column {name!r} is not declared yet and stays out until you declare it")
    return Column(name, Kind.TEXT, reason="not declared yet")


def _roles(schema: Schema, notes: list[str]) -> Roles:
    """Roles suggested from names only; everything else starts inadmissible."""
    modelled = tuple(column.name for column in schema.modelled)
    by_column = dict.fromkeys(modelled, Role.INADMISSIBLE)
    for suggestion in suggest_roles(modelled):
        by_column[suggestion.name] = suggestion.role
        notes.append(
            f"column {suggestion.name!r} looks like {suggestion.role}: {suggestion.reason}"
        )
    return Roles(by_column)
