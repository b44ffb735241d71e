"""Declarations suggested from values: on request only, and flagged to the end.

What is suggested here was read off confidential rows.  It is for the steward's marked private
workspace; every column carries ``data_dependent=True``, which follows each release made with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.axis import day_text, next_period, text_day
from core.column import Column
from core.errors import SchemaError
from core.kinds import DEFAULT_BINS, FALSE_WORDS, TRUE_WORDS, Kind
from core.private.raw import RawTable
from core.private.values import axis_values, distinct, parsed_number, texts_of
from core.schema import DATE_UNITS, Schema

#: Texts that mean "missing" wherever they occur among labels; a label "None" or "NA" stays one.
_MARKERS = ("?", "-", "--", "n/a", "N/A", "#N/A", "<NA>", "NULL", "null")
#: Further texts that mean "missing" among numbers and dates, where they can be nothing else.
_MARKERS_AMONG_NUMBERS = ("NA", "na", "nan", "NaN", "None", "none", ".")
#: Numbers that often stand for "missing"; mentioned, never assumed.
_CODES = tuple(sign * int("9" * digits) for digits in (2, 3, 4, 5) for sign in (1, -1))
_DATE_FORMS = (None, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")
_MOST_CATEGORIES = 100
_MOST_PERIODS = 64
_MOST_DECIMALS = 6
_FEW_ROWS = 20
_LONG_TEXT = 40
_NUMBERED = re.compile(r"(?:^|[\s_.-])(id|ids|key|uuid|nr|no|number|code)$|(?<=[a-z])(Id|ID)$")


@dataclass(frozen=True)
class Suggestion:
    """A schema read off the values, and what its reader should look at."""

    schema: Schema
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Counts only; the schema repeats values."""
        return f"Suggestion({len(self.schema.columns)} columns, {len(self.notes)} notes)"


@dataclass(frozen=True)
class _Cells:
    """One column's different values and how often each occurs, nulls and blanks apart."""

    series: pd.Series[Any]
    values: tuple[Any, ...]
    counts: NDArray[np.int64]
    decimal: str

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(texts_of(value)[0].strip() for value in self.values)


def suggest_schema(raw: RawTable) -> Suggestion:
    """Kinds, categories and bounds read off the values of a table.

    Every column is flagged as data dependent.  Identifiers and free text are excluded with a
    reason.  Nothing is decided that only a person can know: numbers such as 999 that may mean
    "missing" are mentioned in the notes.
    """
    columns, notes = [], []
    for name in raw.names:
        column, said = _suggested(raw, name)
        columns.append(replace(column, data_dependent=True))
        notes += [f"column {name!r}: {words}" for words in said]
    return Suggestion(Schema(tuple(columns)), tuple(notes))


def _suggested(raw: RawTable, name: str) -> tuple[Column, list[str]]:
    series = raw.frame[name]
    cells = _cells(series, raw.report.decimal)
    if not cells.values:
        return _empty(name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _dictionary(name, series)
    if isinstance(series.dtype, pd.BooleanDtype):
        return Column(name, Kind.BOOLEAN, categories=("False", "True")), []
    attempts: tuple[Callable[[str, _Cells], tuple[Column, list[str]] | None], ...] = (
        _truth,
        _date,
        _number,
    )
    for attempt in attempts:
        found = attempt(name, cells)
        if found is not None:
            return found
    return _labels(name, cells)


def _cells(series: pd.Series[Any], decimal: str) -> _Cells:
    positions, values = distinct(series)
    counts = np.bincount(positions[positions >= 0], minlength=len(values))
    kept = [
        index
        for index, value in enumerate(values)
        if counts[index] and not (isinstance(value, str) and not value.strip())
    ]
    return _Cells(series, tuple(values[i] for i in kept), counts[kept].astype(np.int64), decimal)


def _empty(name: str) -> tuple[Column, list[str]]:
    label = Column(name, Kind.TEXT).missing_label
    column = Column(name, Kind.CATEGORICAL, other_label=label)
    return column, ["every cell is empty; it stays empty in the synthetic table"]


def _markers(cells: _Cells, further: Sequence[str] = ()) -> tuple[str, ...]:
    present = set(cells.texts)
    return tuple(marker for marker in (*_MARKERS, *further) if marker in present)


def _note_of(markers: Sequence[str]) -> list[str]:
    if not markers:
        return []
    listed = ", ".join(repr(marker) for marker in markers)
    return [f"{listed} is read as missing; take it off missing_markers if it is a real value"]


def _truth(name: str, cells: _Cells) -> tuple[Column, list[str]] | None:
    """Two labels of which one says false and one true."""
    markers = _markers(cells)
    labels = sorted(set(cells.texts) - set(markers))
    if len(labels) != 2:
        return None
    false = [label for label in labels if label.casefold() in FALSE_WORDS]
    true = [label for label in labels if label.casefold() in TRUE_WORDS]
    if len(false) != 1 or len(true) != 1:
        return None
    column = Column(
        name, Kind.BOOLEAN, categories=(false[0], true[0]), missing_markers=("", *markers)
    )
    return column, _note_of(markers)


# -- numbers and dates ---------------------------------------------------------------------


def _number(name: str, cells: _Cells) -> tuple[Column, list[str]] | None:
    markers = _markers(cells, _MARKERS_AMONG_NUMBERS)
    texts = [text for text in cells.texts if text not in markers]
    if not texts or any(re.fullmatch(r"[+-]?0\d+", text) for text in texts):
        return None  # leading zeros belong to codes, not to numbers
    trial = Column(name, Kind.REAL, lower=0, upper=1, missing_markers=("", *markers))
    values, unreadable = axis_values(cells.series, trial, cells.decimal)
    if unreadable.any() or np.isnan(values).all():
        return None
    notes = _note_of(markers)
    finite = values[np.isfinite(values)]
    if np.isinf(values).any():
        notes.append("infinite values are no bounds; they will be clipped to the declared bounds")
    if not len(finite) or np.abs(finite).max() > 2.0**53:
        return None
    notes += _sentinels(np.unique(finite))
    base = Column(name, Kind.TEXT, missing_markers=("", *markers))
    if (finite == np.floor(finite)).all():
        return _integer(base, cells, finite, notes)
    return _real(base, texts, finite, cells.decimal, notes)


def _sentinels(values: NDArray[np.float64]) -> list[str]:
    """Numbers like 999 at either end, far from all others."""
    notes = []
    for end, rest in ((values[-1:], values[:-1]), (values[:1], values[1:])):
        if len(rest) < 2 or int(end[0]) not in _CODES or end[0] != int(end[0]):
            continue
        if abs(end[0] - rest).min() > rest[-1] - rest[0]:
            notes.append(
                f"{int(end[0])} lies far from all other values and may mean missing; if so, add "
                "it to missing_markers and mend the bounds"
            )
    return notes


def _integer(
    base: Column, cells: _Cells, values: NDArray[np.float64], notes: list[str]
) -> tuple[Column, list[str]]:
    different = np.unique(values)
    low, high = int(different[0]), int(different[-1])
    numbered = len(different) == len(values) >= _FEW_ROWS
    if numbered and _NUMBERED.search(base.name):
        reason = "a different number in every row, and a name that says identifier"
        return Column(base.name, Kind.IDENTIFIER, reason=reason), notes
    if numbered and high - low + 1 == len(different):
        notes = [*notes, "a running number without gaps; if it only counts rows, exclude it"]
    column = replace(base, kind=Kind.INTEGER, lower=low, upper=high)
    return column, [*notes, _check_bounds]


def _real(
    base: Column,
    texts: Sequence[str],
    values: NDArray[np.float64],
    decimal: str,
    notes: list[str],
) -> tuple[Column, list[str]]:
    low, high = float(values.min()), float(values.max())
    if low == high:
        text = next(text for text in texts if parsed_number(text, decimal) == low)
        column = Column(
            base.name, Kind.CATEGORICAL, categories=(text,), missing_markers=base.missing_markers
        )
        return column, [*notes, "one value only; suggested as a single category"]
    places = [_decimals(text, decimal) for text in texts]
    decimals = max((place for place in places if place is not None), default=0)
    settings: dict[str, Any] = {}
    if None not in places and decimals <= _MOST_DECIMALS:
        widest = (high - low) * 10**decimals * (1 - 1e-9)
        settings = {"decimals": decimals, "bins": max(1, min(DEFAULT_BINS, int(widest)))}
    try:
        column = replace(base, kind=Kind.REAL, lower=low, upper=high, **settings)
    except SchemaError:  # bounds so close that bins or decimals cannot be told apart
        column = replace(base, kind=Kind.REAL, lower=low, upper=high, bins=1)
    return column, [*notes, _check_bounds]


_check_bounds = "bounds are the smallest and largest value; replace them by public ones"


def _decimals(text: str, decimal: str) -> int | None:
    """Decimals written in a text; 0 for infinite values, None with an exponent."""
    if parsed_number(text, decimal) in (np.inf, -np.inf):
        return 0
    if "e" in text.casefold():
        return None
    _, _, places = text.partition(decimal)
    return len(places)


def _date(name: str, cells: _Cells) -> tuple[Column, list[str]] | None:
    markers = _markers(cells, _MARKERS_AMONG_NUMBERS)
    texts = [text for text in cells.texts if text not in markers]
    if not texts:
        return None
    forms = [form for form in _DATE_FORMS if _all_days(name, cells, markers, form, texts)]
    if not forms:
        return None
    form = forms[0]
    trial = Column(name, Kind.DATE, lower="2000-01-01", upper="2000-12-31", date_format=form)
    trial = replace(trial, missing_markers=("", *markers))
    values, _ = axis_values(cells.series, trial, cells.decimal)
    low, high = int(np.nanmin(values)), int(np.nanmax(values))
    notes = [*_note_of(markers), _check_bounds]
    if form == "%Y%m%d":
        notes.append(
            "whole numbers read as dates (year, month, day run together); if kept as numbers "
            "instead, synthetic days may be impossible"
        )
    if len(forms) > 1:
        notes.append(f"day and month could be swapped; read as {form}, check date_format")
    unit = next((u for u in DATE_UNITS if _periods(low, high, u) <= _MOST_PERIODS), "year")
    column = replace(trial, lower=day_text(low, None), upper=day_text(high, None), unit=unit)
    return column, notes


def _all_days(
    name: str, cells: _Cells, markers: Sequence[str], form: str | None, texts: Sequence[str]
) -> bool:
    """Whether every value is a day in this form (a plausible one where it looks like a number)."""
    if form == "%Y%m%d":
        days = [text_day(text, form) for text in texts if re.fullmatch(r"(19|20)\d{6}", text)]
        return len(days) == len(texts) and None not in days
    if any(isinstance(value, str) for value in cells.values) and not all(
        re.search(r"\d\D\d", text) for text in texts
    ):
        return False
    if form is not None and any(text_day(text, form) is None for text in texts[:_FEW_ROWS]):
        return False  # spares trying a form on every number of a long column
    trial = Column(name, Kind.DATE, lower="2000-01-01", upper="2000-12-31", date_format=form)
    trial = replace(trial, missing_markers=("", *markers))
    values, unreadable = axis_values(cells.series, trial, cells.decimal)
    return not unreadable.any() and not np.isnan(values).all()


def _periods(low: int, high: int, unit: str) -> int:
    count, day = 0, low
    while day <= high and count <= _MOST_PERIODS:
        day = next_period(day, unit)
        count += 1
    return count


# -- labels --------------------------------------------------------------------------------


def _dictionary(name: str, series: pd.Series[Any]) -> tuple[Column, list[str]]:
    """A Parquet dictionary: its own values are the categories, its order the order."""
    labels = tuple(texts_of(value)[0] for value in series.cat.categories)
    named = tuple(label for label in labels if label.strip())
    if len(named) > _MOST_CATEGORIES:
        reason = f"more than {_MOST_CATEGORIES} different texts"
        return Column(name, Kind.TEXT, reason=reason), []
    kind = Kind.ORDINAL if series.cat.ordered else Kind.CATEGORICAL
    return Column(name, kind, categories=named), ["categories are those of the file's dictionary"]


def _labels(name: str, cells: _Cells) -> tuple[Column, list[str]]:
    markers = _markers(cells)
    kept = [index for index, text in enumerate(cells.texts) if text not in markers]
    labels = sorted({cells.texts[index] for index in kept})
    rows = int(cells.counts[kept].sum())
    if not labels:
        column, notes = _empty(name)
        return replace(column, missing_markers=("", *markers)), [*_note_of(markers), *notes]
    if len(labels) == rows >= _FEW_ROWS:
        return Column(name, Kind.IDENTIFIER, reason="a different text in every row"), []
    length = sum(len(cells.texts[i]) * int(cells.counts[i]) for i in kept) / rows
    if length > _LONG_TEXT and len(labels) > _FEW_ROWS:
        return Column(name, Kind.TEXT, reason="long texts of many kinds"), []
    if len(labels) > _MOST_CATEGORIES:
        reason = f"more than {_MOST_CATEGORIES} different texts"
        return Column(name, Kind.TEXT, reason=reason), []
    notes = _note_of(markers)
    doubtful = sorted(set(labels) & set(_MARKERS_AMONG_NUMBERS))
    if doubtful:
        listed = ", ".join(repr(label) for label in doubtful)
        notes.append(f"{listed} is kept as a category; if it means missing, make it a marker")
    notes.append("categories are those that occur; add public ones that do not")
    column = Column(
        name, Kind.CATEGORICAL, categories=tuple(labels), missing_markers=("", *markers)
    )
    return column, notes
