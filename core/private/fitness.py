"""How well a table fits its declarations, in words and coarse shares.

Allowed for the steward's own screen, in a place marked "private workspace", and for nothing else:
even a coarse share is read off the rows without noise.  Counts never leave this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.column import Column
from core.kinds import LABELLED_KINDS, Kind
from core.private.coding import require_in_file, undeclared
from core.private.forms import as_written, cells_of, readable_forms
from core.private.raw import RawTable
from core.private.values import axis_values, distinct, label_codes
from core.schema import Schema

BoolArray = NDArray[np.bool_]

#: Upper ends of the bands in which shares are told, and their words.
_BANDS = (
    (0.01, "hardly any (below 1 %)"),
    (0.05, "a few (1 to 5 %)"),
    (0.25, "some (5 to 25 %)"),
    (0.75, "about half (25 to 75 %)"),
    (0.95, "most (75 to 95 %)"),
    (1.0, "nearly all (above 95 %)"),
)
#: Below this share of fitting values a hint says what to look at.
_DOUBTFUL = 0.75
_HARDLY = 0.05
#: This share of the values in one of several bins suggests another unit than the declared one.
_ONE_BIN = 0.99


@dataclass(frozen=True)
class Fit:
    """How one column's cells fit its declaration, in words.

    Attributes
    ----------
    words
        Coarse shares that fit, that cannot be read, that lie outside, and that are missing.
    hint
        What to look at, or an empty text.
    hardly
        Whether hardly any value fits, so that the declaration is probably of something else.
    """

    name: str
    kind: Kind
    words: str
    hint: str
    hardly: bool


def share_words(part: int, whole: int) -> str:
    """A share in one of eight bands.

    >>> share_words(0, 9), share_words(1, 3), share_words(9, 9)
    ('none', 'about half (25 to 75 %)', 'all')
    """
    if part == 0:
        return "none"
    if part >= whole:
        return "all"
    return next(words for end, words in _BANDS if part <= end * whole)


def table_fit(raw: RawTable, schema: Schema) -> tuple[Fit, ...]:
    """How each declared and modelled column fits, in schema order.

    Raises
    ------
    SchemaError
        If a declared column is not in the file.
    """
    columns = schema.modelled
    require_in_file(raw, [column.name for column in columns])
    return tuple(_fit(raw, column) for column in columns)


def ignored(raw: RawTable, schema: Schema) -> tuple[str, ...]:
    """Names of the file's columns that a release does not use."""
    return undeclared(raw, Schema(schema.modelled)) if schema.modelled else raw.names


def repeats(raw: RawTable, name: str) -> bool:
    """Whether some value of a column occurs in several rows, as a person's id may."""
    return cells_of(raw.frame[name], raw.report.decimal).repeat


def written_as(raw: RawTable, column: Column) -> tuple[Column, list[str]]:
    """A declared column with the date form or decimals of the file; see :func:`as_written`."""
    return as_written(cells_of(raw.frame[column.name], raw.report.decimal), column)


# -- one column ----------------------------------------------------------------------------


def _fit(raw: RawTable, column: Column) -> Fit:
    series = raw.frame[column.name]
    if column.kind in LABELLED_KINDS:
        missing, unreadable, outside = _labels(series, column)
    else:
        missing, unreadable, outside = _axis(series, column, raw.report.decimal)
    rows = len(series)
    wrong = int(np.count_nonzero(unreadable | outside))
    present = rows - int(np.count_nonzero(missing))
    told = [f"fit: {share_words(present - wrong, rows)}"]
    for what, cells in (
        (f"cannot be read as {_WORDS[column.kind]}", unreadable),
        ("not among the categories" if column.categories else "beyond the bounds", outside),
        ("missing", missing),
    ):
        if cells.any():
            told.append(f"{what}: {share_words(int(np.count_nonzero(cells)), rows)}")
    fits = (present - wrong) / present if present else 1.0
    hint = "every cell is missing" if rows and not present else ""
    if fits < _DOUBTFUL:
        hint = _hint(raw, column, int(unreadable.sum()) >= int(outside.sum()))
    elif present and column.kind not in LABELLED_KINDS and _in_one_bin(raw, column):
        hint = "nearly all values lie in one bin; is it another unit, or declare finer edges"
    return Fit(column.name, column.kind, "; ".join(told), hint, fits < _HARDLY)


_WORDS = {
    Kind.INTEGER: "numbers",
    Kind.REAL: "numbers",
    Kind.DATE: "dates of the declared form",
    Kind.CATEGORICAL: "labels",
    Kind.ORDINAL: "labels",
    Kind.BOOLEAN: "labels",
}


def _labels(series: pd.Series[Any], column: Column) -> tuple[BoolArray, BoolArray, BoolArray]:
    positions, values = distinct(series)
    if column.categories:
        apart = "(other)"  # a label of its own, so that a declared category is not taken for it
        while apart in (*column.categories, column.missing_label):
            apart += "'"
        column = replace(column, other_label=apart)
    codes = np.array([*label_codes(values, column), -1], dtype=np.int64)[positions]
    missing = codes < 0
    return missing, np.zeros(len(series), dtype=np.bool_), codes == cast(int, column.other_code)


def _axis(
    series: pd.Series[Any],
    column: Column,
    decimal: str,
) -> tuple[BoolArray, BoolArray, BoolArray]:
    values, unreadable = axis_values(series, column, decimal)
    low, high = column.bounds
    return np.isnan(values) & ~unreadable, unreadable, (values < low) | (values > high)


def _in_one_bin(raw: RawTable, column: Column) -> bool:
    values, _ = axis_values(raw.frame[column.name], column, raw.report.decimal)
    low, high = column.bounds
    inside = values[(values >= low) & (values <= high)]
    if column.declared_size < 3 or len(np.unique(inside)) < 3:
        return False
    cells = np.searchsorted(column.axis[1:-1], inside, side="right")
    return int(np.bincount(cells).max()) >= _ONE_BIN * len(inside)


def _hint(raw: RawTable, column: Column, is_unreadable: bool) -> str:
    """What to look at in a column that hardly fits."""
    if column.kind in LABELLED_KINDS:
        return _label_hint(raw, column)
    if not is_unreadable:
        return "check the bounds and the unit (thousands, cents, months instead of years)"
    cells = cells_of(raw.frame[column.name], raw.report.decimal)
    if column.kind is Kind.DATE:
        forms = [form or "%Y-%m-%d (none needed)" for form in readable_forms(cells, column)]
        if forms:
            return f"the file seems to write dates as {forms[0]}; declare date_format"
        return "declare date_format as the file writes dates"
    other = "." if raw.report.decimal == "," else ","
    _, unreadable = axis_values(raw.frame[column.name], column, other)
    if unreadable.mean() < 1 - _DOUBTFUL:
        return f"the file seems to write decimals with {other!r}; declare decimal under [reading]"
    return "if texts stand for missing, name them as missing_markers; or is it no number"


def _label_hint(raw: RawTable, column: Column) -> str:
    _, values = distinct(raw.frame[column.name])
    declared = {label.strip().casefold() for label in column.categories}
    folded = pd.Series([str(value).strip().casefold() for value in values], dtype="str")
    if len(folded) and folded.isin(list(declared)).mean() > _DOUBTFUL:
        return "small and capital letters differ; write the labels as the file does"
    return "check the spelling of the categories, and whether the file holds codes instead"
