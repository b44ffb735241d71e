"""How a column's values are written: date forms, decimals, and texts that mean "missing".

What is told here is for the steward's own screen and plan.  The form of a date and the number of
decimals are properties of the file, not of a person in it; a missing marker is told as a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.column import Column
from core.errors import SchemaError
from core.kinds import Kind
from core.private.values import axis_values, distinct, parsed_number, texts_of

#: Date forms that are tried, ISO (None) first.
DATE_FORMS = (None, "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")
#: More decimals than this are taken for the noise of binary fractions.
MOST_DECIMALS = 6
#: Texts that mean "missing" wherever they occur among labels; a label "None" or "NA" stays one.
_MARKERS = ("?", "-", "--", "NULL", "null", "<NA>", ".")
_MARKERS_IN_ANY_CASE = frozenset(
    {"n/a", "#n/a", "n.a.", "n. a.", "k.a.", "k. a.", "k.a", "keine angabe", "ohne angabe"}
)
#: Further texts that mean "missing" among numbers and dates, where they can be nothing else.
_AMONG_NUMBERS = ("NA", "na", "nan", "NaN", "None", "none")
#: Labels that may mean "missing" and may be an answer; mentioned, never assumed.
_DOUBTFUL = frozenset(
    {"na", "nan", "none", "unbekannt", "unknown", "missing", "weiß nicht", "weiss nicht"}
)
#: At most so many different odd texts among numbers or dates can be markers.
_MOST_ODD = 5
#: Fewer different numbers or dates than this may as well be labels.
_FEWEST_READABLE = 5


@dataclass(frozen=True)
class Cells:
    """One column's different values and how often each occurs, nulls and blanks apart."""

    series: pd.Series[Any]
    values: tuple[Any, ...]
    counts: NDArray[np.int64]
    decimal: str

    def __repr__(self) -> str:
        """No value."""
        return "Cells(confidential)"

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Each different value as stripped text."""
        return tuple(texts_of(value)[0].strip() for value in self.values)

    @property
    def repeat(self) -> bool:
        """Whether some value occurs in several rows."""
        return bool((self.counts > 1).any())

    @property
    def nothing_missing(self) -> bool:
        """Whether no cell is null or blank."""
        return int(self.counts.sum()) == len(self.series)


def cells_of(series: pd.Series[Any], decimal: str) -> Cells:
    """The different values of a column."""
    positions, values = distinct(series)
    counts = np.bincount(positions[positions >= 0], minlength=len(values))
    kept = [
        index
        for index, value in enumerate(values)
        if counts[index] and not (isinstance(value, str) and not value.strip())
    ]
    return Cells(series, tuple(values[i] for i in kept), counts[kept].astype(np.int64), decimal)


# -- missing markers -----------------------------------------------------------------------


def markers_among_labels(cells: Cells) -> tuple[str, ...]:
    """Texts of a column that mean "missing" even among labels."""
    found = dict.fromkeys(text for text in cells.texts if _is_marker(text))
    return tuple(sorted(found))


def _is_marker(text: str) -> bool:
    return text in _MARKERS or text.casefold() in _MARKERS_IN_ANY_CASE


def doubtful_labels(labels: Sequence[str]) -> list[str]:
    """Labels that a person may want to make markers."""
    return [label for label in labels if label.casefold() in _DOUBTFUL]


def markers_among_numbers(cells: Cells) -> tuple[str, ...]:
    """Texts of a column of numbers or dates that mean "missing": known ones, and a few odd words.

    Odd words count where at least three quarters of the other cells hold digits, at least five of
    them different.  A text with a digit in it, such as ``5+`` or ``< 10``, is a value.
    """
    known = [text for text in cells.texts if _is_marker(text) or text in _AMONG_NUMBERS]
    wordy, other = set(), set()
    odd_cells = other_cells = 0
    for text, count in zip(cells.texts, cells.counts.tolist(), strict=True):
        if text in known:
            continue
        if _is_word(text, cells.decimal):
            wordy.add(text)
            odd_cells += count
        else:
            other.add(text)
            other_cells += count
    few = 0 < len(wordy) <= _MOST_ODD and 3 * odd_cells <= other_cells
    if not few or len(other) < _FEWEST_READABLE:
        wordy = set()
    return tuple(sorted({*known, *wordy}))


def _is_word(text: str, decimal: str) -> bool:
    return not any(sign.isnumeric() for sign in text) and parsed_number(text, decimal) is None


# -- dates and decimals --------------------------------------------------------------------


def decimals_in(text: str, decimal: str) -> int | None:
    """Decimals written in a number; 0 for infinite values, None with an exponent."""
    if parsed_number(text, decimal) in (np.inf, -np.inf):
        return 0
    if "e" in text.casefold():
        return None
    _, _, places = text.partition(decimal)
    return len(places)


def usual_decimals(cells: Cells) -> int | None:
    """Decimals that at least 99 in 100 numbers of a column stay within, if they are few.

    One row cannot move it, so that it can stand in a public declaration.
    """
    typed = [not isinstance(value, str) for value in cells.values]
    totals: dict[int, int] = {}
    for text, count, is_typed in zip(cells.texts, cells.counts.tolist(), typed, strict=True):
        sign = "." if is_typed else cells.decimal
        number = parsed_number(text, sign)
        if number is None or not np.isfinite(number):
            continue
        places = decimals_in(text, sign)
        key = MOST_DECIMALS + 1 if places is None else places
        totals[key] = totals.get(key, 0) + count
    read = 0
    for places, count in sorted(totals.items()):
        read += count
        if 100 * read >= 99 * sum(totals.values()):
            return places if places <= MOST_DECIMALS else None
    return None


def readable_forms(cells: Cells, column: Column) -> list[str | None]:
    """Date forms that read at least half of a column's cells, the one that reads most first."""
    values = pd.Series(list(cells.values), dtype=object)
    found: list[tuple[int, int, str | None]] = []
    for rank, form in enumerate(DATE_FORMS):
        trial = Column(
            column.name,
            Kind.DATE,
            lower="2000-01-01",
            upper="2000-12-31",
            date_format=form,
        )
        days, _ = axis_values(values, trial, cells.decimal)
        read = int(cells.counts[~np.isnan(days)].sum())
        if 2 * read >= int(cells.counts.sum()) > 0:
            found.append((-read, rank, form))
    most = min((read for read, _, _ in found), default=0)
    return [form for read, _, form in sorted(found, key=lambda it: it[:2]) if read == most]


def as_written(cells: Cells, column: Column) -> tuple[Column, list[str]]:
    """A declared column with the file's date form or decimals where it declares none.

    Returns
    -------
    column
        As declared where a form is declared or none is found.
    notes
        What was set.
    """
    markers = {marker.strip() for marker in column.missing_markers}
    kept = [index for index, text in enumerate(cells.texts) if text not in markers]
    rest = Cells(
        cells.series, tuple(cells.values[i] for i in kept), cells.counts[kept], cells.decimal
    )
    if column.kind is Kind.DATE and column.date_format is None:
        return _with_form(rest, column)
    if column.kind is Kind.REAL and column.decimals is None:
        return _with_decimals(rest, column)
    return column, []


def _with_form(cells: Cells, column: Column) -> tuple[Column, list[str]]:
    forms = readable_forms(cells, column)
    if not forms or None in forms:
        return column, []
    try:
        changed = replace(column, date_format=forms[0])
    except SchemaError:
        return column, [f"dates seem to be written as {forms[0]}; declare date_format"]
    notes = [f"dates are written as {forms[0]} in the file; date_format was set to it"]
    if len(forms) > 1:
        notes.append(f"day and month could be swapped; read as {forms[0]}, check date_format")
    return changed, notes


def _with_decimals(cells: Cells, column: Column) -> tuple[Column, list[str]]:
    decimals = usual_decimals(cells)
    if decimals is None:
        return column, []
    try:
        changed = replace(column, decimals=decimals)
    except SchemaError:  # a bin without any number of so few decimals
        return column, []
    return changed, [f"numbers have {decimals} decimals in the file; decimals was set to it"]
