"""Ways to start: a demo with its plan, a first plan for one's own table, and its check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from core import demo
from core.attachment import read_as, read_for, settled
from core.codebook import read_codebook
from core.column import require_columns
from core.draft_text import draft_text
from core.errors import PlanError, SchemaError
from core.notes import grouped
from core.plan import (
    DemoOrigin,
    Plan,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
)
from core.private.fitness import ignored, repeats, table_fit, written_as
from core.private.reading import HeaderError, RawTable
from core.private.suggestions import PERSON_NOTE, suggest_schema
from core.releases import Unit
from core.roles import Role, Roles, suggest_roles
from core.schema import Column, Kind, Schema

#: What the demo's plan spends, and the cap of its population.
DEMO_RHO = Fraction(1, 2)
DEMO_CAP = Fraction(2)

#: What stands above everything that was read off the rows without noise.
PRIVATE = "private workspace: not for publication"


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
    notes: list[tuple[str, str]] = []
    suggested: dict[str, Column] = {}
    said: tuple[str, ...] = ()
    if suggest:
        suggestion = suggest_schema(raw)
        suggested = {column.name: column for column in suggestion.schema.columns}
        said = (
            *suggestion.notes,
            "suggested declarations are flagged 'data-dependent domain' to the end",
        )
    declared = {} if codebook is None else _declared(raw, codebook, notes)
    columns = tuple(
        declared.get(name) or suggested.get(name) or _undeclared(name, notes) for name in raw.names
    )
    schema = Schema(columns)
    roles = _roles(schema, notes)
    plan = Plan(
        population=PopulationPlan(name=Path(data).stem or "my population"),
        schema=schema,
        roles=roles,
        tree=TreePlan(Fraction(1, 10)),
        synthetic=SyntheticPlan(types=_types(raw)),
        reading=settled(reading, raw.report),
    )
    if raw.report.format == "parquet":
        said = (*said, "column types were taken from the file's own schema, for a Parquet output")
    return Draft(draft_text(plan), (*raw.report.notes, *said, *grouped(notes)))


def check_output(out: str | Path, sources: Sequence[str | Path], *, force: bool = False) -> None:
    """Refuse to write over a file that is there, and over the sources whatever was asked for.

    Raises
    ------
    PlanError
        ``out`` is one of ``sources`` (also by a link), a folder, or a file and not ``force``.
    """
    target = Path(out)
    for source in map(Path, sources):
        same = target.resolve() == source.resolve()
        if same or (target.exists() and source.exists() and target.samefile(source)):
            raise PlanError(
                f"--out {target.name} is the same file as {source.name}, which would be lost; "
                "give the plan another name"
            )
    if target.is_dir():
        raise PlanError(f"--out {target.name} is a folder; name a file in it")
    if not force and (target.exists() or target.is_symlink()):
        raise PlanError(
            f"--out {target.name} exists already; choose another name, or replace it with --force"
        )


def check_fit(plan: Plan, data: str | Path) -> tuple[str, ...]:
    """Lines on how well a table fits a plan's released columns, for the steward's own screen.

    Costs nothing and promises nothing: coarse shares of the rows, without noise.

    Raises
    ------
    ReadingError, SchemaError
        As a run would, before any charge.
    """
    raw = read_for(plan, data)
    lines = [PRIVATE]
    if not plan.schema.modelled:
        return (*lines, "no column is declared yet; declare at least one")
    fits = table_fit(raw, plan.released)
    for fit in fits:
        hint = f" -> {fit.hint}" if fit.hint else ""
        hardly = "HARDLY ANY VALUE FITS. " if fit.hardly else ""
        lines.append(f"{fit.name} ({fit.kind.value}): {hardly}{fit.words}{hint}")
    person = plan.population.unit.person_column
    if person is None:
        several = [
            column.name
            for column in plan.schema.columns
            if column.kind is Kind.IDENTIFIER and column.name in raw.names
            if repeats(raw, column.name)
        ]
        lines += grouped((name, PERSON_NOTE) for name in several)
    left = ignored(raw, plan.released)
    if left:
        lines.append(f"not released: {', '.join(left)}")
    bad = [fit.name for fit in fits if fit.hint]
    lines.append(
        f"look at: {', '.join(bad)}" if bad else "every released column fits its declaration"
    )
    return tuple(lines)


def _declared(
    raw: RawTable, codebook: str | Path, notes: list[tuple[str, str]]
) -> dict[str, Column]:
    """A codebook's columns, with the file's date forms and decimals where it declares none."""
    book = read_codebook(codebook)
    try:
        require_columns(book.names, raw.names)
    except SchemaError as error:
        raise SchemaError(
            f"the codebook does not fit the file: {error}; write the name in the codebook as the "
            "file does, or take its line out"
        ) from error
    declared: dict[str, Column] = {}
    for column in book.columns:
        declared[column.name], said = written_as(raw, column)
        notes += [(column.name, words) for words in said]
        if column.kind is Kind.IDENTIFIER and repeats(raw, column.name):
            notes.append((column.name, PERSON_NOTE))
    if any(column.is_modelled for column in declared.values()):
        for fit in table_fit(raw, Schema(tuple(declared.values()))):
            if fit.hardly:
                notes.append((fit.name, f"hardly any value fits its declaration; {fit.hint}"))
    return declared


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


def _types(raw: RawTable) -> dict[str, str]:
    """Column types of a Parquet file, declared for a Parquet output."""
    return dict(raw.storage) if raw.report.format == "parquet" else {}


def _undeclared(name: str, notes: list[tuple[str, str]]) -> Column:
    notes.append((name, "not declared yet and stays out until you declare it"))
    return Column(name, Kind.TEXT, reason="not declared yet")


def _roles(schema: Schema, notes: list[tuple[str, str]]) -> Roles:
    """Roles suggested from names only; everything else starts inadmissible."""
    modelled = tuple(column.name for column in schema.modelled)
    by_column = dict.fromkeys(modelled, Role.INADMISSIBLE)
    for suggestion in suggest_roles(modelled):
        by_column[suggestion.name] = suggestion.role
        words = suggestion.role.name.lower()
        notes.append((suggestion.name, f"role {words}: {suggestion.reason}"))
    return Roles(by_column)
