"""What an analyst asks of a table: a mean, a proportion, a table, a regression, a correlation.

Public: a question names columns and categories, and is checked against declarations alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from core.column import Column, require_columns
from core.errors import PlanError
from core.kinds import LABELLED_KINDS, MAXIMUM_TABLE_CELLS
from core.moments import Indicator, MomentFrame
from core.schema import Schema

#: Questions with more features than this would measure thousands of sums.
MOST_FEATURES = 60
#: More groups than this are a table, not a comparison of means.
MOST_GROUPS = 100


class AnalysisKind(StrEnum):
    """What is asked for."""

    MEAN = "mean"
    PROPORTION = "proportion"
    TABLE = "table"
    DIFFERENCE = "difference"
    REGRESSION = "regression"
    CORRELATION = "correlation"


#: Which settings belong to which kind, beside name and kind: (needed, optional).
SETTINGS: dict[AnalysisKind, tuple[frozenset[str], frozenset[str]]] = {
    AnalysisKind.MEAN: (
        frozenset({"outcome"}),
        frozenset({"by", "groups", "moments", "rows"}),
    ),
    AnalysisKind.PROPORTION: (frozenset({"outcome"}), frozenset({"by"})),
    AnalysisKind.TABLE: (frozenset({"variables"}), frozenset()),
    AnalysisKind.DIFFERENCE: (frozenset({"outcome", "by"}), frozenset({"groups", "moments"})),
    AnalysisKind.REGRESSION: (
        frozenset({"outcome", "predictors"}),
        frozenset({"reference", "robust", "rows"}),
    ),
    AnalysisKind.CORRELATION: (frozenset({"variables"}), frozenset({"rows"})),
}


@dataclass(frozen=True)
class AnalysisSpec:
    """One question.

    Attributes
    ----------
    kind
        ``mean`` of a numeric column (in each group of ``by``, if given), ``proportion`` of the
        cells of a column (in each cell of ``by``), ``table`` of one or two columns, ``difference``
        between the means of two or more groups, linear ``regression`` of a numeric column, or
        ``correlation`` of two or more numeric columns.
    name
        How results are called.
    outcome
        The column that is averaged, counted or explained.
    predictors
        Numeric columns as they are, columns of labels as one indicator a declared category.
    variables
        Columns of a table or a correlation.
    by
        Column of the groups.
    groups
        Labels of ``by`` to keep; all declared cells unless given.
    reference
        (column, label): the category without an indicator; the first declared one unless given.
    robust
        Measure sums of degree 3 and 4, so that intervals hold under unequal spread (one numeric
        predictor only).
    moments
        4 measures fourth moments too, for intervals of a standard deviation; else 2.
    rows
        ``own`` pays for a row count where it is private; ``tree`` uses the one that an earlier
        tree release of the same table version paid for.
    """

    kind: AnalysisKind
    name: str
    outcome: str | None = None
    predictors: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    by: str | None = None
    groups: tuple[str, ...] = ()
    reference: tuple[tuple[str, str], ...] = ()
    robust: bool = False
    moments: int = 2
    rows: str = "own"

    def __post_init__(self) -> None:
        """Normalise lists; refuse settings that do not go together."""
        set_ = object.__setattr__
        try:
            set_(self, "kind", AnalysisKind(self.kind))
        except ValueError as error:
            known = ", ".join(kind.value for kind in AnalysisKind)
            raise PlanError(f"an analysis is one of {known}") from error
        if not isinstance(self.name, str) or not self.name.strip():
            raise PlanError("an analysis needs a name; results and files carry it")
        for setting in ("predictors", "variables", "groups"):
            set_(self, setting, self._texts(setting))
        pairs = self.reference.items() if isinstance(self.reference, Mapping) else self.reference
        try:
            set_(self, "reference", tuple(sorted((str(a), str(b)) for a, b in pairs)))
        except (TypeError, ValueError) as error:
            raise self.error("reference gives one category a column") from error
        self._check_settings()
        self._check_columns()

    def error(self, words: str) -> PlanError:
        """An error about this analysis, to be raised by the caller."""
        return PlanError(f"analysis {self.name!r}: {words}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that the question names, once each."""
        named = (self.outcome, *self.predictors, *self.variables, self.by)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def counts(self) -> bool:
        """Whether counts answer the question; means, regressions, correlations need sums."""
        return self.kind in {AnalysisKind.PROPORTION, AnalysisKind.TABLE}

    @property
    def clique(self) -> tuple[str, ...]:
        """Columns of the contingency table, groups first."""
        if self.kind is AnalysisKind.TABLE:
            return self.variables
        return tuple(name for name in (self.by, self.outcome) if name is not None)

    # -- plain form ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain form for plans and stores: settings that differ from their defaults."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value == item.default and item.name not in {"kind", "name"}:
                continue
            plain[item.name] = list(value) if isinstance(value, tuple) else value
        plain["kind"] = self.kind.value
        if self.reference:
            plain["reference"] = dict(self.reference)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AnalysisSpec:
        """Inverse of :meth:`to_dict`.

        Raises
        ------
        PlanError
            For unknown settings and values of the wrong type.
        """
        if not isinstance(plain, Mapping):
            raise PlanError("an analysis is a table of settings")
        known = [item.name for item in fields(cls)]
        unknown = sorted(str(key) for key in plain if key not in known)
        if unknown:
            raise PlanError(f"analysis: unknown setting {unknown[0]!r}; known: {', '.join(known)}")
        for needed in ("kind", "name"):
            if needed not in plain:
                raise PlanError(f"analysis: the setting {needed} is missing")
        return cls(**{key: plain[key] for key in plain})

    # -- checks ----------------------------------------------------------------------------

    def _texts(self, setting: str) -> tuple[str, ...]:
        value = getattr(self, setting)
        if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
            raise self.error(f"{setting} is a list of texts")
        if not all(isinstance(text, str) for text in value):
            raise self.error(f"{setting} is a list of texts")
        found = tuple(value)
        if len(set(found)) != len(found):
            raise self.error(f"{setting} names something twice; keep one")
        return found

    def _check_settings(self) -> None:
        needed, optional = SETTINGS[self.kind]
        for item in fields(self):
            if item.name in {"kind", "name"}:
                continue
            given = getattr(self, item.name) != item.default
            if item.name in needed and not given:
                raise self.error(f"a {self.kind.value} needs {item.name}")
            if given and item.name not in needed | optional:
                raise self.error(f"{item.name} has no meaning for a {self.kind.value}; drop it")
        for setting in ("outcome", "by"):
            value = getattr(self, setting)
            if value is not None and not isinstance(value, str):
                raise self.error(f"{setting} is the name of a column")
        if not isinstance(self.robust, bool):
            raise self.error("robust is true or false")
        if self.moments not in {2, 4} or isinstance(self.moments, bool):
            raise self.error("moments is 2 or 4")
        if self.rows not in {"own", "tree"}:
            raise self.error("rows is 'own' or 'tree'")
        if self.groups and self.by is None:
            raise self.error("groups are labels of the column by; give it as well")

    def _check_columns(self) -> None:
        names = [self.outcome, *self.predictors, *self.variables, self.by]
        present = [name for name in names if name is not None]
        if len(set(present)) != len(present):
            raise self.error("a column is named twice; each has one part in a question")
        if self.kind is AnalysisKind.TABLE and len(self.variables) > 2:
            raise self.error("a table has one or two columns")
        if self.kind is AnalysisKind.CORRELATION and len(self.variables) < 2:
            raise self.error("a correlation needs at least two columns")
        if self.kind is AnalysisKind.DIFFERENCE and len(self.groups) == 1:
            raise self.error("a difference needs at least two groups")
        if self.robust and len(self.predictors) != 1:
            raise self.error("robust intervals are measured for one predictor only")
        if self.rows == "tree" and self.by is not None:
            raise self.error("the rows of groups are counted on their own; leave out rows")
        strangers = [column for column, _ in self.reference if column not in self.predictors]
        if strangers:
            raise self.error(f"the reference names {strangers[0]!r}, which is no predictor")

    def check(self, schema: Schema) -> Schema:
        """Refuse what does not fit the declarations; returns those of the columns in use.

        Raises
        ------
        SchemaError, PlanError
            Unknown or excluded columns, numbers where labels are needed and the reverse, bounds
            that hold one value only, unknown labels.
        """
        require_columns(self.columns, schema.names)
        used = schema.select(self.columns)
        for column in used.columns:
            if not column.is_modelled:
                raise column.error("identifiers and free text enter no analysis")
        if self.counts:
            cells = math.prod(schema[name].size for name in self.clique)
            if cells > MAXIMUM_TABLE_CELLS:
                raise self.error(
                    f"the table has {cells} cells, more than {MAXIMUM_TABLE_CELLS}; declare fewer"
                )
            return used
        _Features(self, used)
        return used

    def frame(self, schema: Schema) -> MomentFrame:
        """Features of the sums: complete cases of all columns in use."""
        return _Features(self, self.check(schema)).frame


def group_labels(spec: AnalysisSpec, schema: Schema) -> tuple[str, ...]:
    """Groups in their declared order, or in the order that the question gives."""
    if spec.by is None:
        return ()
    return spec.groups or declared_cells(schema[spec.by])


def declared_cells(column: Column) -> tuple[str, ...]:
    """Labels of the declared cells, without the missing-cell and the other-cell."""
    return column.cells[: column.declared_size]


def indicator_name(column: str, label: str) -> str:
    """Name of the feature that marks one category.

    >>> indicator_name("job", "clerk")
    'job=clerk'
    """
    return f"{column}={label}"


def reference_label(spec: AnalysisSpec, column: Column) -> str:
    """The category of a predictor without an indicator."""
    return dict(spec.reference).get(column.name, column.categories[0])


class _Features:
    """Numbers and indicators of a question on sums, checked against declarations."""

    def __init__(self, spec: AnalysisSpec, schema: Schema) -> None:
        self.spec, self.schema = spec, schema
        self.numbers: list[str] = []
        self.indicators: dict[str, Indicator] = {}
        if spec.kind is AnalysisKind.CORRELATION:
            self._numeric(*spec.variables)
        elif spec.outcome is not None:
            self._numeric(spec.outcome)
        self._predictors()
        if spec.by is not None:
            self._groups(schema[spec.by])
        clash = sorted(set(self.numbers) & set(self.indicators))
        if clash:
            raise spec.error(f"the column {clash[0]!r} is called like an indicator; rename it")
        if len(self.numbers) + len(self.indicators) > MOST_FEATURES + MOST_GROUPS:
            raise spec.error(f"more than {MOST_FEATURES} features; use fewer columns or categories")
        self.frame = self._frame()
        if spec.rows == "tree" and self.frame.may_miss(schema):
            raise spec.error(
                "rows = 'tree' counts all rows, and a row may miss one of these columns by their "
                "declarations; use rows = 'own', or give missing values a constant"
            )

    def _frame(self) -> MomentFrame:
        scales = MomentFrame.from_bounds(self.schema, self.numbers).scales
        return MomentFrame(scales, None, tuple(self.indicators.items()), complete=True)

    def _numeric(self, *names: str) -> None:
        for name in names:
            column = self.schema[name]
            if column.kind in LABELLED_KINDS:
                raise column.error(
                    f"a {self.spec.kind.value} needs numbers or dates here, and the column is "
                    f"{column.kind.value}"
                )
            low, high = column.bounds
            if low >= high:
                raise column.error(
                    "lower must be below upper: with one possible value there is nothing to measure"
                )
            self.numbers.append(name)

    def _predictors(self) -> None:
        for name in self.spec.predictors:
            column = self.schema[name]
            if column.kind not in LABELLED_KINDS:
                self._numeric(name)
                continue
            if self.spec.robust:
                raise self.spec.error("robust intervals are measured for a numeric predictor only")
            reference = reference_label(self.spec, column) if column.categories else ""
            self._label(column, reference)
            if len(column.categories) < 2:
                raise column.error("a predictor needs at least two categories")
            for label in column.categories:
                if label != reference:
                    self._indicate(column, label)
        numeric = [name for name, _ in self.spec.reference if name in self.numbers]
        if numeric:
            raise self.spec.error(f"{numeric[0]!r} is numeric and has no reference category")
        if len(self.indicators) > MOST_FEATURES:
            raise self.spec.error(
                f"more than {MOST_FEATURES} indicators; use fewer columns or categories"
            )

    def _groups(self, column: Column) -> None:
        labels = group_labels(self.spec, self.schema)
        if len(labels) < 2 and self.spec.kind is AnalysisKind.DIFFERENCE:
            raise column.error("a difference needs at least two groups")
        if not 1 <= len(labels) <= MOST_GROUPS:
            raise column.error(f"groups are 1 to {MOST_GROUPS} declared cells; name those to keep")
        for label in labels:
            self._label(column, label)
            self._indicate(column, label)

    def _label(self, column: Column, label: str) -> None:
        if label not in declared_cells(column):
            raise column.error(f"{label!r} is none of its declared cells")

    def _indicate(self, column: Column, label: str) -> None:
        name = indicator_name(column.name, label)
        if name in self.indicators:
            raise self.spec.error(f"two indicators are called {name!r}; rename a column")
        self.indicators[name] = Indicator(column.name, column.cells.index(label))
