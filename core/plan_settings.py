"""From the plain tables of a plan file to its sections; what has the wrong type is named.

Every message says which section and which key it is about, and what belongs there.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from core.errors import BudgetError, PlanError
from core.plan_sections import (
    LARGEST_SEED,
    MOST_EXPECTED_ROWS,
    MOST_ROWS_PER_UNIT,
    MOST_SYNTHETIC_ROWS,
    THIRDS,
    DemoOrigin,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
)
from core.private.zcdp import as_rho
from core.releases import Relation, Unit

_SPLIT = "tree: split needs three positive shares (one-way, selection, two-way)"


class Section:
    """One section of a plan, read setting by setting.

    Raises
    ------
    PlanError
        It is no table of settings, holds an unknown one, or one of the wrong type.
    """

    def __init__(self, name: str, plain: object, known: tuple[str, ...]) -> None:
        if not isinstance(plain, Mapping):
            raise PlanError(f"plan: {name} must be a section, [{name}]")
        refuse_unknown(plain, known, name)
        self.name = name
        self.plain: Mapping[str, object] = plain

    def __contains__(self, key: str) -> bool:
        """Whether the setting is given."""
        return key in self.plain

    def text(self, key: str) -> str | None:
        """A text, or None where it is left out."""
        value = self.plain.get(key)
        if value is not None and not isinstance(value, str):
            raise PlanError(f"{self.name}: {key} must be a text")
        return value

    def truth(self, key: str) -> bool | None:
        """A truth value, or None where it is left out."""
        value = self.plain.get(key)
        if value is not None and not isinstance(value, bool):
            raise PlanError(f"{self.name}: {key} must be true or false")
        return value

    def whole(self, key: str, least: int, most: int) -> int | None:
        """A whole number between two bounds, or None where it is left out."""
        value = self.plain.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise PlanError(
                f"{self.name}: {key} must be a whole number of at least {least} and at most "
                f"{most:,}"
            )
        return value

    def number(self, key: str, default: float) -> float:
        """A number."""
        value = self.plain.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PlanError(f"{self.name}: {key} must be a number, such as {default:g}")
        try:
            return float(value)
        except OverflowError as error:
            raise PlanError(f"{self.name}: {key} is far too large") from error

    def texts(self, key: str, what: str) -> tuple[str, ...]:
        """A list of texts; empty where it is left out."""
        value = self.plain.get(key, ())
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
            raise PlanError(f"{self.name}: {key} must be a list of {what}")
        return tuple(value)

    def mapping(self, key: str) -> dict[str, str]:
        """A table of texts; empty where it is left out."""
        value = self.plain.get(key, {})
        if not isinstance(value, Mapping) or not all(isinstance(x, str) for x in value.values()):
            raise PlanError(f"{self.name}: {key} must map column names to texts")
        return {str(name): text for name, text in value.items()}

    def price(self, key: str) -> Fraction:
        """An amount of budget."""
        return _price(self.plain[key], f"{self.name} {key}", key)


def refuse_unknown(plain: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    """Refuse a setting that nobody knows, by its name.

    Raises
    ------
    PlanError
        With the settings that are known.
    """
    unknown = sorted(str(key) for key in plain if key not in known)
    if unknown:
        raise PlanError(f"{where}: unknown setting {unknown[0]!r}; known: {', '.join(known)}")


def _price(value: object, where: str, name: str) -> Fraction:
    try:
        return as_rho(value, name)  # type: ignore[arg-type]
    except BudgetError as error:
        raise PlanError(f"{where}: {error}") from error


def population_section(plain: object) -> PopulationPlan:
    """The section ``[population]``."""
    keys = (
        *("name", "relation", "unit_rows", "unit_person_column"),
        *("cap", "delta", "expected_rows"),
    )
    section = Section("population", plain, keys)
    try:
        relation = Relation(section.text("relation") or Relation.ADD_REMOVE)
    except ValueError as error:
        raise PlanError("population: relation must be add_remove or replace_one") from error
    return PopulationPlan(
        name=section.text("name") or "",
        relation=relation,
        unit=Unit(
            section.whole("unit_rows", 1, MOST_ROWS_PER_UNIT) or 1,
            section.text("unit_person_column") or None,
        ),
        cap=section.price("cap") if "cap" in section else Fraction(1),
        delta=section.number("delta", 1e-9),
        expected_rows=section.whole("expected_rows", 0, MOST_EXPECTED_ROWS) or None,
    )


def tree_section(plain: object) -> TreePlan:
    """The section ``[tree]``."""
    section = Section("tree", plain, ("rho", "structure", "split"))
    if "rho" not in section:
        raise PlanError('tree: say what it may cost, for example rho = "0.5"')
    split = section.plain.get("split", THIRDS)
    if not isinstance(split, list | tuple) or len(split) != 3:
        raise PlanError(_SPLIT)
    first, second, third = (_price(part, "tree split", "a share") for part in split)
    return TreePlan(
        section.price("rho"), section.text("structure") or "privci", (first, second, third)
    )


def synthetic_section(plain: object) -> SyntheticPlan:
    """The section ``[synthetic]``."""
    section = Section("synthetic", plain, ("rows", "engine", "seed", "files", "types"))
    files = section.texts("files", "file forms") if "files" in section else ("csv",)
    return SyntheticPlan(
        rows=section.whole("rows", 0, MOST_SYNTHETIC_ROWS),
        engine=section.text("engine") or "auto",
        seed=section.whole("seed", 0, LARGEST_SEED) or 0,
        files=tuple(dict.fromkeys(files)),
        types=section.mapping("types"),
    )


def reading_section(plain: object) -> ReadingPlan:
    """The section ``[reading]``."""
    names = ("delimiter", "encoding", "decimal", "sheet")
    section = Section("reading", plain, (*names, "rename", "day_numbers", "formula_guard"))
    return ReadingPlan(
        **{key: section.text(key) for key in names},
        rename=section.mapping("rename"),
        day_numbers=section.texts("day_numbers", "column names"),
        formula_guard=section.truth("formula_guard"),
    )


def demo_section(plain: object) -> DemoOrigin:
    """The section ``[demo]``."""
    section = Section("demo", plain, ("name", "rows", "seed"))
    name, rows = section.text("name"), section.whole("rows", 0, MOST_SYNTHETIC_ROWS)
    if not name or rows is None:
        raise PlanError("demo: name and rows are required; drop [demo] for a table of your own")
    return DemoOrigin(name, rows, section.whole("seed", 0, LARGEST_SEED) or 0)
