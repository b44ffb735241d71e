"""The sections of a plan as value types; each refuses what cannot be meant."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from core.errors import PlanError
from core.privci.structures import STRUCTURES
from core.releases import Relation, Unit
from core.visible import invisible

ENGINES = ("auto", "exact", "entropic", "mbi")
#: Forms in which the synthetic table can be written.
FORMS = ("csv", "parquet", "spreadsheet")
THIRDS = (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
#: Larger settings are typing errors.
MOST_ROWS_PER_UNIT = 1_000_000
MOST_EXPECTED_ROWS = 10**10
MOST_SYNTHETIC_ROWS = 100_000_000
LARGEST_SEED = 2**63 - 1


def without_none(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Only what is set: TOML knows no None."""
    return {key: value for key, value in plain.items() if value is not None}


@dataclass(frozen=True)
class PopulationPlan:
    """Whom the rows are about, and the terms of their ledger.

    Attributes
    ----------
    name
        The steward's name for the population; all its tables share one ledger.
    relation, unit
        Neighbouring relation and unit of protection, fixed when the ledger is made.
    cap
        The most that may ever be spent, in rho.
    delta
        For display as epsilon only; rho is the promise.
    expected_rows
        A public guess at the number of rows, for forecasts and warnings.
    """

    name: str
    relation: Relation = Relation.ADD_REMOVE
    unit: Unit = field(default_factory=Unit)
    cap: Fraction = Fraction(1)
    delta: float = 1e-9
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse a name that is empty or hides something, and a delta that is no probability."""
        if not isinstance(self.name, str):
            raise PlanError("population: name must be a text")
        hidden = invisible(self.name.strip())
        if hidden is not None:
            raise PlanError(
                f"population: name holds an invisible character (U+{ord(hidden):04X}); write it "
                "without, so that no two names look alike"
            )
        # One name, one ledger: no second cap through a blank or another form of an accent.
        object.__setattr__(self, "name", unicodedata.normalize("NFC", self.name).strip())
        if not self.name:
            raise PlanError("population: give it a name, such as 'applicants 2026'")
        if not 0 < self.delta < 1:
            raise PlanError("population: delta must lie strictly between 0 and 1")
        if not 1 <= self.unit.rows <= MOST_ROWS_PER_UNIT:
            raise PlanError(
                "population: unit_rows must be a whole number of at least 1 and at most "
                f"{MOST_ROWS_PER_UNIT:,}"
            )
        persons = self.unit.rows > 1 or self.unit.person_column is not None
        if self.relation is Relation.REPLACE_ONE and persons:
            raise PlanError(
                "population: with persons as units the row count is private, so that replace_one "
                "does not fit; choose add_remove"
            )
        if self.expected_rows is not None and not 1 <= self.expected_rows <= MOST_EXPECTED_ROWS:
            raise PlanError(
                "population: expected_rows must be a whole number of at least 1 and at most "
                f"{MOST_EXPECTED_ROWS:,}, or left out"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain form, without settings that are at their defaults."""
        return without_none(
            {
                "name": self.name,
                "relation": self.relation.value,
                "unit_rows": self.unit.rows,
                "unit_person_column": self.unit.person_column,
                "cap": str(self.cap),
                "delta": self.delta,
                "expected_rows": self.expected_rows,
            }
        )


@dataclass(frozen=True)
class ReadingPlan:
    """How to read the file where its own marks do not say.

    Attributes
    ----------
    delimiter, encoding, decimal, sheet, formula_guard
        See :func:`core.private.reading.read_table`.  A comma may be both delimiter and decimal
        sign: numbers then stand in quotes, and a line where they do not has too many cells and is
        refused.
    rename
        Names as found (repeated and empty ones: as proposed), and the names as declared.
    day_numbers
        Excel: date columns whose plain numbers are day numbers.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    day_numbers: tuple[str, ...] = ()
    formula_guard: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain form, without settings that are at their defaults."""
        return without_none(
            {
                "delimiter": self.delimiter,
                "encoding": self.encoding,
                "decimal": self.decimal,
                "sheet": self.sheet,
                "rename": dict(self.rename) or None,
                "day_numbers": list(self.day_numbers) or None,
                "formula_guard": self.formula_guard,
            }
        )


@dataclass(frozen=True)
class TreePlan:
    """The paid part of PrivCI: price, structure, and shares of the three steps."""

    rho: Fraction
    structure: str = "privci"
    split: tuple[Fraction, Fraction, Fraction] = THIRDS

    def __post_init__(self) -> None:
        """Refuse unknown structures and impossible splits."""
        if self.structure not in STRUCTURES:
            raise PlanError(f"tree: structure must be one of {', '.join(STRUCTURES)}")
        if len(self.split) != 3 or any(part <= 0 for part in self.split):
            raise PlanError("tree: split needs three positive shares (one-way, selection, two-way)")
        if sum(self.split) != 1:
            total = sum(self.split)
            object.__setattr__(self, "split", tuple(part / total for part in self.split))

    def to_dict(self) -> dict[str, Any]:
        """Plain form; fractions as text."""
        return {
            "rho": str(self.rho),
            "structure": self.structure,
            "split": [str(part) for part in self.split],
        }


@dataclass(frozen=True)
class SyntheticPlan:
    """The free part: rows to draw (``None``: the noisy total), engine, seed, and file forms.

    ``types`` declares Arrow types of Parquet columns, by column; others get their natural type.
    """

    rows: int | None = None
    engine: str = "auto"
    seed: int = 0
    files: tuple[str, ...] = ("csv",)
    types: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse unknown engines and forms, and negative sizes."""
        if "csv" not in self.files or not set(self.files) <= set(FORMS):
            raise PlanError(f"synthetic: files lists some of {', '.join(FORMS)}, and always csv")
        if self.engine not in ENGINES:
            raise PlanError(f"synthetic: engine must be one of {', '.join(ENGINES)}")
        if self.rows is not None and not 0 <= self.rows <= MOST_SYNTHETIC_ROWS:
            raise PlanError(
                f"synthetic: rows must lie between 0 and at most {MOST_SYNTHETIC_ROWS:,}, or be "
                "left out"
            )
        if not 0 <= self.seed <= LARGEST_SEED:
            raise PlanError(
                f"synthetic: seed must be a whole number of at least 0 and at most {LARGEST_SEED}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain form, without settings that are at their defaults."""
        return without_none(
            {
                "rows": self.rows,
                "engine": self.engine,
                "seed": self.seed,
                "files": None if self.files == ("csv",) else list(self.files),
                "types": dict(self.types) or None,
            }
        )


@dataclass(frozen=True)
class DemoOrigin:
    """Which embedded demo table the plan was written for."""

    name: str
    rows: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"name": self.name, "rows": self.rows, "seed": self.seed}
