"""Public declarations about a table: what each column may hold, fixed before data are looked at.

A :class:`Schema` never touches rows.  It says which *cells* a column has; encoding rows into
cells happens in ``core.private``, decoding cells into values in ``core.decoding``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from core.errors import SchemaError


class Kind(StrEnum):
    """What a column holds."""

    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    DATE = "date"
    IDENTIFIER = "identifier"
    TEXT = "text"


class Missing(StrEnum):
    """What becomes of a missing value: a cell of its own, or a declared constant."""

    CATEGORY = "category"
    CONSTANT = "constant"


class OutOfDomain(StrEnum):
    """What becomes of a value outside the declared domain: nearest bound, or the other-cell."""

    CLIP = "clip"
    OTHER = "other"


NUMERIC_KINDS = (Kind.INTEGER, Kind.REAL)
LABELLED_KINDS = (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BOOLEAN)
EXCLUDED_KINDS = (Kind.IDENTIFIER, Kind.TEXT)
DATE_UNITS = ("day", "week", "month", "quarter", "year")
#: One cell per integer up to this many integers, equal-width bins beyond: a public constant.
INTEGER_CELLS = 32
#: Equal-width bins where a numeric column declares neither bins nor edges: a public constant.
DEFAULT_BINS = 16
#: More cells than this in one column would make every pair table unreasonable.
MAXIMUM_CELLS = 10_000


@dataclass(frozen=True)
class Column:
    """One column's public declaration.

    Cells are numbered ``0 .. size-1``: first the declared cells (categories in their declared
    order, or bins from low to high), then the other-cell if it is a cell of its own, then the
    missing-cell if it is one.  ``other_label`` or ``missing_label`` may name a declared category;
    no extra cell is made then.

    Attributes
    ----------
    name
        The column's name, letter for letter as in the file.
    kind
        What it holds; identifiers and free text are excluded from every release.
    categories
        Labels of categorical, ordinal (in order) and boolean (exactly two) columns.
    lower, upper
        Public bounds, both inclusive: numbers, or ISO dates for ``date`` columns.
    bins, edges
        Equal-width bins, or the given inner and outer edges (cells are ``[edge_i, edge_i+1)``, the
        last one closed).  Neither given: see ``INTEGER_CELLS`` and ``DEFAULT_BINS``.
    unit
        Width of a date's bins.
    missing, missing_label, missing_constant, missing_markers
        The missing rule, and which texts in a file mean "missing" (compared after stripping).
    out_of_domain, other_label
        The rule for values outside the domain.  Labelled kinds know ``other`` only.
    decimals
        Decimals of a real column's synthetic values; ``None`` keeps full precision.
    date_format
        ``strftime`` form in which dates are read and written back; ``None`` is ISO.
    data_dependent
        True when any part of this declaration was suggested from values.
    reason
        Why the column is excluded, in words.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    lower: float | str | None = None
    upper: float | str | None = None
    bins: int | None = None
    edges: tuple[float | str, ...] = ()
    unit: str = "month"
    missing: Missing = Missing.CATEGORY
    missing_label: str = "(missing)"
    missing_constant: float | str | None = None
    missing_markers: tuple[str, ...] = ("",)
    out_of_domain: OutOfDomain | None = None
    other_label: str = "(other)"
    decimals: int | None = None
    date_format: str | None = None
    data_dependent: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        """Normalise enums and tuples, fill the kind's default rule, and validate."""
        set_ = object.__setattr__
        for name, enum in (("kind", Kind), ("missing", Missing), ("out_of_domain", OutOfDomain)):
            value = getattr(self, name)
            if value is None:
                continue
            try:
                set_(self, name, enum(value))
            except ValueError as error:
                allowed = ", ".join(member.value for member in enum)
                raise SchemaError(
                    f"column {self.name!r}: {name} must be one of {allowed}"
                ) from error
        for name in ("categories", "edges", "missing_markers"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise SchemaError(f"column {self.name!r}: {name} must be a list, not one text")
            set_(self, name, tuple(value))
        if self.out_of_domain is None:
            other = self.kind in LABELLED_KINDS
            set_(self, "out_of_domain", OutOfDomain.OTHER if other else OutOfDomain.CLIP)
        self._validate()

    # -- validation ------------------------------------------------------------------------

    def _validate(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("a column needs a name; give every column one")
        if self.kind in EXCLUDED_KINDS:
            return
        if self.kind in LABELLED_KINDS:
            self._validate_labels()
        else:
            self._validate_axis()
        if self.missing is Missing.CONSTANT:
            if self.missing_constant is None:
                raise SchemaError(
                    f"column {self.name!r}: missing = constant needs missing_constant"
                )
            self.constant_code  # noqa: B018 - the property validates the constant
        if self.size > MAXIMUM_CELLS:
            raise SchemaError(
                f"column {self.name!r}: {self.size} cells are more than {MAXIMUM_CELLS}; "
                "declare fewer bins, a wider unit, or exclude the column"
            )
        if self.size < 1:
            raise SchemaError(f"column {self.name!r}: the domain is empty; declare its cells")

    def _validate_labels(self) -> None:
        if not self.categories:
            raise SchemaError(f"column {self.name!r}: declare its categories")
        if any(not isinstance(label, str) for label in self.categories):
            raise SchemaError(f"column {self.name!r}: every category must be a text")
        if len(set(self.categories)) != len(self.categories):
            raise SchemaError(f"column {self.name!r}: a category is listed twice; keep one")
        if self.kind is Kind.BOOLEAN and len(self.categories) != 2:
            raise SchemaError(f"column {self.name!r}: a boolean has exactly two categories")
        if self.out_of_domain is OutOfDomain.CLIP:
            raise SchemaError(
                f"column {self.name!r}: labels cannot be clipped; use out_of_domain = other and "
                "let other_label name a category"
            )

    def _validate_axis(self) -> None:
        axis = self.axis
        if any(b <= a for a, b in itertools.pairwise(axis)):
            raise SchemaError(f"column {self.name!r}: edges must grow; lower must be below upper")
        if self.kind is Kind.DATE and self.unit not in DATE_UNITS:
            raise SchemaError(f"column {self.name!r}: unit must be one of {', '.join(DATE_UNITS)}")

    def to_axis(self, value: float | str | None, what: str) -> float:
        """A declared bound, edge or constant as a number (dates: proleptic day ordinal)."""
        if value is None:
            raise SchemaError(f"column {self.name!r}: declare {what}")
        if self.kind is Kind.DATE:
            try:
                return float(date.fromisoformat(str(value)).toordinal())
            except ValueError as error:
                raise SchemaError(
                    f"column {self.name!r}: {what} must be an ISO date such as 2024-01-31"
                ) from error
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise SchemaError(f"column {self.name!r}: {what} must be a number") from error
        if not math.isfinite(number):
            raise SchemaError(f"column {self.name!r}: {what} must be finite")
        if self.kind is Kind.INTEGER and number != math.floor(number):
            raise SchemaError(f"column {self.name!r}: {what} must be a whole number")
        if abs(number) > 2.0**53:
            raise SchemaError(f"column {self.name!r}: {what} is beyond exact arithmetic (2**53)")
        return number

    # -- geometry --------------------------------------------------------------------------

    @property
    def is_modelled(self) -> bool:
        """True unless the column is an identifier or free text."""
        return self.kind not in EXCLUDED_KINDS

    @property
    def is_numeric(self) -> bool:
        """True for integer and real columns."""
        return self.kind in NUMERIC_KINDS

    @property
    def bounds(self) -> tuple[float, float]:
        """Both public bounds as axis numbers, inclusive."""
        if self.edges and self.lower is None and self.upper is None:
            low = self.to_axis(self.edges[0], "edges")
            high = self.to_axis(self.edges[-1], "edges")
            return low, high
        return self.to_axis(self.lower, "lower"), self.to_axis(self.upper, "upper")

    @cached_property
    def axis(self) -> tuple[float, ...]:
        """Edges of the declared cells on the number line; cell i is ``[axis[i], axis[i+1])``.

        Integers and dates end one past the upper bound, so that every cell is half open; the last
        cell of a real column is closed.
        """
        if self.kind in LABELLED_KINDS or not self.is_modelled:
            return ()
        low, high = self.bounds
        if high < low or (high == low and self.kind is Kind.REAL):
            raise SchemaError(f"column {self.name!r}: lower must be below upper")
        if self.kind is Kind.DATE:
            return self._date_axis(int(low), int(high))
        if self.edges:
            inner = tuple(self.to_axis(edge, "edges") for edge in self.edges)
            if len(inner) < 2 or inner[0] != low or inner[-1] != high:
                raise SchemaError(
                    f"column {self.name!r}: edges must start at lower and end at upper"
                )
            if any(b <= a for a, b in itertools.pairwise(inner)):
                raise SchemaError(f"column {self.name!r}: edges must grow")
            return (*inner[:-1], high + 1) if self.kind is Kind.INTEGER else inner
        return self._equal_width(low, high)

    def _equal_width(self, low: float, high: float) -> tuple[float, ...]:
        count = self.bins
        if count is not None and (isinstance(count, bool) or int(count) != count or count < 1):
            raise SchemaError(f"column {self.name!r}: bins must be a whole number of at least 1")
        if count is not None and count > MAXIMUM_CELLS:
            raise SchemaError(f"column {self.name!r}: at most {MAXIMUM_CELLS} bins")
        if self.kind is Kind.INTEGER:
            total = int(high - low) + 1
            count = (total if total <= INTEGER_CELLS else DEFAULT_BINS) if count is None else count
            count = min(int(count), total)
            return tuple(low + (i * total) // count for i in range(count + 1))
        count = DEFAULT_BINS if count is None else int(count)
        return (*(low + (high - low) * i / count for i in range(count)), high)

    def _date_axis(self, low: int, high: int) -> tuple[float, ...]:
        if self.edges:
            inner = [int(self.to_axis(edge, "edges")) for edge in self.edges]
            if inner[0] != low or inner[-1] != high:
                raise SchemaError(
                    f"column {self.name!r}: edges must start at lower and end at upper"
                )
            return tuple(float(day) for day in (*inner[:-1], high + 1))
        starts = [low]
        while (following := _next_period(date.fromordinal(starts[-1]), self.unit)) <= high:
            starts.append(following)
            if len(starts) > MAXIMUM_CELLS:
                raise SchemaError(
                    f"column {self.name!r}: more than {MAXIMUM_CELLS} cells; use a wider unit"
                )
        return tuple(float(day) for day in (*starts, high + 1))

    @cached_property
    def declared_size(self) -> int:
        """Number of declared cells, without the other-cell and the missing-cell."""
        if self.kind in LABELLED_KINDS:
            return len(self.categories)
        return max(len(self.axis) - 1, 0)

    @cached_property
    def other_code(self) -> int | None:
        """Cell that takes out-of-domain values, or None where they are clipped."""
        if not self.is_modelled or self.out_of_domain is OutOfDomain.CLIP:
            return None
        if self.other_label in self.categories:
            return self.categories.index(self.other_label)
        return self.declared_size

    @cached_property
    def missing_code(self) -> int | None:
        """Cell that takes missing values under ``missing = category``, else None."""
        if not self.is_modelled or self.missing is not Missing.CATEGORY:
            return None
        if self.missing_label in self.categories:
            return self.categories.index(self.missing_label)
        extra = self.other_code is not None and self.other_code >= self.declared_size
        return self.declared_size + int(extra)

    @cached_property
    def constant_code(self) -> int | None:
        """Cell of ``missing_constant`` under ``missing = constant``, else None."""
        if not self.is_modelled or self.missing is not Missing.CONSTANT:
            return None
        if self.kind in LABELLED_KINDS:
            if str(self.missing_constant) not in self.categories:
                raise SchemaError(
                    f"column {self.name!r}: missing_constant must be one of its categories"
                )
            return self.categories.index(str(self.missing_constant))
        value = self.to_axis(self.missing_constant, "missing_constant")
        low, high = self.bounds
        if not low <= value <= high:
            raise SchemaError(
                f"column {self.name!r}: missing_constant must lie between lower and upper"
            )
        return min(sum(value >= edge for edge in self.axis[1:-1]), self.declared_size - 1)

    @cached_property
    def size(self) -> int:
        """Number of cells in all."""
        codes = [self.declared_size - 1, self.other_code, self.missing_code]
        return max(code for code in codes if code is not None) + 1

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """A public label for every cell, in code order."""
        labels = list(self.categories) or [self._bin_label(i) for i in range(self.declared_size)]
        if self.other_code is not None and self.other_code >= self.declared_size:
            labels.append(self.other_label)
        if self.missing_code is not None and self.missing_code >= self.declared_size:
            labels.append(self.missing_label)
        return tuple(labels)

    def _bin_label(self, index: int) -> str:
        low, high = self.axis[index], self.axis[index + 1]
        if self.kind is Kind.REAL:
            closing = "]" if index == self.declared_size - 1 else ")"
            return f"[{low:.10g}, {high:.10g}{closing}"
        if self.kind is Kind.INTEGER:
            return f"{low:.0f}" if high == low + 1 else f"{low:.0f} to {high - 1:.0f}"
        first, last = date.fromordinal(int(low)), date.fromordinal(int(high) - 1)
        return first.isoformat() if first == last else f"{first} to {last}"

    # -- plain form ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Only what differs from the defaults, as plain JSON types."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value == item.default:
                continue
            if isinstance(value, StrEnum):
                value = value.value
            plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Column:
        """Inverse of :meth:`to_dict`; unknown keys are refused by name."""
        known = [item.name for item in fields(cls)]
        unknown = sorted(set(plain) - set(known))
        label = plain.get("name", "?")
        if unknown:
            raise SchemaError(
                f"column {label!r}: unknown setting {unknown[0]!r}; known: {', '.join(known)}"
            )
        if "name" not in plain or "kind" not in plain:
            raise SchemaError(f"column {label!r}: name and kind are required")
        return cls(**dict(plain))


def _next_period(day: date, unit: str) -> int:
    """First day (ordinal) of the period after the one that holds ``day``."""
    if unit == "day":
        return day.toordinal() + 1
    if unit == "week":
        return (day + timedelta(days=7 - day.weekday())).toordinal()
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if months is None:
        raise SchemaError(f"unit must be one of {', '.join(DATE_UNITS)}")
    index = day.year * 12 + (day.month - 1) // months * months + months
    if index // 12 > date.max.year:
        return date.max.toordinal() + 1
    return date(index // 12, index % 12 + 1, 1).toordinal()


@dataclass(frozen=True)
class Schema:
    """The columns of a table in file order; validates on construction.

    >>> schema = Schema((Column("age", Kind.INTEGER, lower=18, upper=97, bins=4),))
    >>> schema["age"].cells
    ('18 to 37', '38 to 57', '58 to 77', '78 to 97', '(missing)')
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        """Refuse an empty schema and repeated names."""
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        if not names:
            raise SchemaError("a schema needs at least one column")
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise SchemaError(f"column {repeated[0]!r} is declared twice; rename or drop one")

    def __getitem__(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"no column is called {name!r}")

    def __contains__(self, name: object) -> bool:
        """Whether a column has that name."""
        return any(column.name == name for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names in file order."""
        return tuple(column.name for column in self.columns)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """Columns that can enter a release, in file order."""
        return tuple(column for column in self.columns if column.is_modelled)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Names of modelled columns whose declaration was suggested from values."""
        return tuple(column.name for column in self.modelled if column.data_dependent)

    def select(self, names: Sequence[str]) -> Schema:
        """The schema of these columns only, in schema order."""
        missing = [name for name in names if name not in self]
        if missing:
            raise SchemaError(f"no column is called {missing[0]!r}")
        wanted = set(names)
        return Schema(tuple(column for column in self.columns if column.name in wanted))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """Inverse of :meth:`to_dict`."""
        return cls(tuple(Column.from_dict(column) for column in plain.get("columns", ())))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, in hex."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
