"""One column's public declaration: its kind, its cells, and its rules for everything else."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from core import column_rules
from core.axis import date_edges, day_text, integer_edges, real_edges
from core.errors import SchemaError
from core.kinds import (
    DEFAULT_BINS,
    EXCLUDED_KINDS,
    FALSE_WORDS,
    INTEGER_CELLS,
    LABELLED_KINDS,
    MAXIMUM_CELLS,
    NUMERIC_KINDS,
    TRUE_WORDS,
    Kind,
    Missing,
    OutOfDomain,
)
from core.notes import close_matches


@dataclass(frozen=True)
class Column:
    """One column's public declaration.

    Cells are numbered ``0 .. size-1``: first the declared cells (categories in their declared
    order, or bins from low to high), then the other-cell if it is a cell of its own, then the
    missing-cell if it is one.  ``other_label`` or ``missing_label`` may name a declared category;
    no extra cell is made then.  When both carry the same label they share one cell: what lies
    outside the domain counts as missing.  A categorical column may then have no categories at
    all, which declares it empty.

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
        Blank texts and the nulls of typed files are always missing.
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
        """Normalise enums, tuples and numbers, fill the kind's default rule, and validate."""
        for name, value in column_rules.normalised(self).items():
            object.__setattr__(self, name, value)
        column_rules.validate(self)

    def error(self, words: str) -> SchemaError:
        """An error about this column, to be raised by the caller."""
        return SchemaError(f"column {self.name!r}: {words}")

    def to_axis(self, value: float | str | None, what: str) -> float:
        """A declared bound, edge or constant as a number (dates: proleptic day ordinal).

        Raises
        ------
        SchemaError
            If it is absent, not of the column's kind, infinite, or beyond 2**53.
        """
        return column_rules.to_axis(self, self.kind, value, what)

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
        """Both public bounds as axis numbers, inclusive; outer edges stand in for them."""
        low = self.edges[0] if self.edges and self.lower is None else self.lower
        high = self.edges[-1] if self.edges and self.upper is None else self.upper
        return self.to_axis(low, "lower"), self.to_axis(high, "upper")

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
            raise self.error("lower must be below upper")
        if self.edges:
            inner = tuple(self.to_axis(edge, "edges") for edge in self.edges)
            if len(inner) < 2 or inner[0] != low or inner[-1] != high:
                raise self.error("edges must start at lower and end at upper")
            return inner if self.kind is Kind.REAL else (*inner[:-1], high + 1)
        if self.kind is Kind.DATE:
            try:
                return date_edges(int(low), int(high), self.unit, MAXIMUM_CELLS)
            except ValueError as error:
                raise self.error(
                    f"more than {MAXIMUM_CELLS} cells; use a wider unit or closer bounds"
                ) from error
        if self.kind is Kind.REAL:
            return real_edges(low, high, DEFAULT_BINS if self.bins is None else self.bins)
        total = int(high - low) + 1
        default = total if total <= INTEGER_CELLS else DEFAULT_BINS
        return integer_edges(low, high, min(default if self.bins is None else self.bins, total))

    def cell_of(self, value: float) -> int:
        """Declared cell that holds a number (a day ordinal) between the bounds."""
        return int(np.searchsorted(self.axis[1:-1], value, side="right"))

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
        if self.other_code is None or self.other_code < self.declared_size:
            return self.declared_size
        return self.declared_size + int(self.missing_label != self.other_label)

    @cached_property
    def constant_code(self) -> int | None:
        """Cell of ``missing_constant`` under ``missing = constant``, else None."""
        if not self.is_modelled or self.missing is not Missing.CONSTANT:
            return None
        if self.kind in LABELLED_KINDS:
            if str(self.missing_constant) not in self.categories:
                raise self.error("missing_constant must be one of its categories")
            return self.categories.index(str(self.missing_constant))
        value = self.to_axis(self.missing_constant, "missing_constant")
        low, high = self.bounds
        if not low <= value <= high:
            raise self.error("missing_constant must lie between lower and upper")
        return self.cell_of(value)

    @cached_property
    def size(self) -> int:
        """Number of cells in all."""
        codes = [self.declared_size - 1, self.other_code, self.missing_code]
        return max(code for code in codes if code is not None) + 1

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """A public label for every cell, in code order."""
        labels = list(self.categories) or self._bin_labels()
        if self.other_code is not None and self.other_code >= self.declared_size:
            labels.append(self.other_label)
        if self.missing_code is not None and self.missing_code >= len(labels):
            labels.append(self.missing_label)
        return tuple(labels)

    @cached_property
    def truth_codes(self) -> tuple[int, int]:
        """Codes of (false, true) in a boolean column.

        By the meaning of its two labels where both are words for true and false, else by order:
        the first category is false, the second true.

        >>> Column("sick", Kind.BOOLEAN, categories=("yes", "no")).truth_codes
        (1, 0)
        >>> Column("sex", Kind.BOOLEAN, categories=("M", "F")).truth_codes
        (0, 1)
        """
        words = [label.strip().casefold() for label in self.categories]
        return (1, 0) if words[0] in TRUE_WORDS and words[1] in FALSE_WORDS else (0, 1)

    def _bin_labels(self) -> list[str]:
        pairs = list(itertools.pairwise(self.axis))
        if self.kind is Kind.REAL:
            texts = [f"{edge:.10g}" for edge in self.axis]
            if len(set(texts)) != len(texts):
                texts = [repr(edge) for edge in self.axis]
            inner = [f"[{low}, {high})" for low, high in itertools.pairwise(texts)]
            return [*inner[:-1], f"{inner[-1][:-1]}]"]
        if self.kind is Kind.INTEGER:
            return [
                f"{low:.0f}" if high == low + 1 else f"{low:.0f} to {high - 1:.0f}"
                for low, high in pairs
            ]
        days = [(day_text(int(low), None), day_text(int(high) - 1, None)) for low, high in pairs]
        return [first if first == last else f"{first} to {last}" for first, last in days]

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
        if not isinstance(plain, Mapping):
            raise SchemaError("a column must be a table of settings such as name and kind")
        known = [item.name for item in fields(cls)]
        unknown = sorted(str(key) for key in plain if key not in known)
        label = plain.get("name", "?")
        if unknown:
            raise SchemaError(
                f"column {label!r}: unknown setting {unknown[0]!r}; known: {', '.join(known)}"
            )
        if "name" not in plain or "kind" not in plain:
            raise SchemaError(f"column {label!r}: name and kind are required")
        return cls(**dict(plain))


def require_columns(wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse the first wanted name that is not known.

    Raises
    ------
    SchemaError
        Naming the column and, where one is close, the name that may have been meant.
    """
    for name in wanted:
        if name not in known:
            folded = str(name).strip().casefold()
            close = [other for other in known if other.strip().casefold() == folded]
            close = close or close_matches(str(name), known)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise SchemaError(f"no column is called {name!r}{hint}")
