"""Number and date columns as suggested from values; see :mod:`core.private.suggestions`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.axis import day_text, next_period, text_day
from core.column import Column
from core.errors import SchemaError
from core.kinds import DEFAULT_BINS, INTEGER_CELLS, Kind
from core.private.forms import (
    DATE_FORMS,
    MOST_DECIMALS,
    Cells,
    decimals_in,
    markers_among_numbers,
)
from core.private.skew import growing_edges
from core.private.values import axis_values, parsed_number
from core.schema import DATE_UNITS

MOST_CATEGORIES = 100
FEW_ROWS = 20
#: Numbers that often stand for "missing"; mentioned, never assumed.
_CODES = tuple(sign * int("9" * digits) for digits in (2, 3, 4, 5) for sign in (1, -1))
_MOST_PERIODS = 64
#: Whole numbers of one length with at least so many digits, all different, number the rows.
_LONG_NUMBER = 4
#: Names of columns that number rows, if the values all differ.
_NUMBERED = re.compile(
    r"(?i:(?:^|[\s_.-])(id|ids|key|uuid|nr|no|number|code)$)"
    r"|(?<=[a-z])(Id|ID|Nr)$"
    r"|(?i:(nummer|kennung|kennzeichen|schlüssel|schluessel)$)"
)
#: Names of columns that tell people apart, also where values repeat.
PERSON_NAME = re.compile(
    r"(?i:(?:^|[\s_.-])(id|uuid)$)"
    r"|(?<=[a-z])(Id|ID)$"
    r"|(?i:^(person|patient|client|customer|member|student|kunde|mitarbeiter|versicher|matrikel)"
    r".*(id|no|nr|number|nummer)$)"
)
_CHECK_BOUNDS = "bounds are the smallest and largest value; replace them by public ones"


def note_of_markers(markers: Sequence[str]) -> list[str]:
    """What is told about markers that were taken off the values."""
    if not markers:
        return []
    listed = ", ".join(repr(marker) for marker in markers)
    if len(markers) > 1:
        return [f"{listed} are read as missing; take real values off missing_markers"]
    return [f"{listed} is read as missing; take it off missing_markers if it is a real value"]


# -- numbers and dates ---------------------------------------------------------------------


def suggested_number(name: str, cells: Cells) -> tuple[Column, list[str]] | None:
    """A column whose cells are numbers, but for missing markers; else None."""
    markers = markers_among_numbers(cells)
    texts = [text for text in cells.texts if text not in markers]
    if not texts or any(re.fullmatch(r"[+-]?0\d+", text) for text in texts):
        return None  # leading zeros belong to codes, not to numbers
    trial = Column(name, Kind.REAL, lower=0, upper=1, missing_markers=("", *markers))
    values, unreadable = axis_values(cells.series, trial, cells.decimal)
    if unreadable.any() or np.isnan(values).all():
        return None
    notes = note_of_markers(markers)
    finite = values[np.isfinite(values)]
    if np.isinf(values).any():
        notes.append("infinite values are no bounds; they will be clipped to the declared bounds")
    if not len(finite) or np.abs(finite).max() >= 2.0**53:
        return None  # beyond exact arithmetic, one past the bound included
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
    base: Column, cells: Cells, values: NDArray[np.float64], notes: list[str]
) -> tuple[Column, list[str]]:
    different = np.unique(values)
    low, high = int(different[0]), int(different[-1])
    reason = _numbers_rows(base.name, values, different)
    if reason is not None:
        return Column(base.name, Kind.IDENTIFIER, reason=reason), notes
    column = replace(base, kind=Kind.INTEGER, lower=low, upper=high)
    if high - low < INTEGER_CELLS:
        return column, [*notes, _CHECK_BOUNDS]
    return _skewed(column, values, 1.0, [*notes, _CHECK_BOUNDS])


def _numbers_rows(
    name: str, values: NDArray[np.float64], different: NDArray[np.float64]
) -> str | None:
    """Why whole numbers are an identifier, or None where they are a measurement."""
    if len(different) < len(values):
        person = PERSON_NAME.search(name) and len(different) > MOST_CATEGORIES
        return "many different numbers, and a name that says identifier" if person else None
    if len(values) < FEW_ROWS:
        return None
    if _NUMBERED.search(name):
        return "a different number in every row, and a name that says identifier"
    if different[-1] - different[0] + 1 == len(different):
        return "a running number without gaps; declare it integer if it is a measurement"
    lengths = {len(str(int(end))) for end in (different[0], different[-1])}
    is_rounded = bool(np.mean(different % 5 == 0) > 0.5)
    if len(lengths) == 1 and min(lengths) >= _LONG_NUMBER and different[0] > 0 and not is_rounded:
        return (
            "a different whole number of the same length in every row; declare it integer if it "
            "is a measurement"
        )
    return None


def _skewed(
    column: Column, values: NDArray[np.float64], step: float, notes: list[str]
) -> tuple[Column, list[str]]:
    """Edges that grow instead of equal bins, where most values would share one bin."""
    edges = growing_edges(values, step)
    if edges is None or len(edges) < 3:
        return column, notes
    try:
        column = replace(column, bins=None, edges=edges)
    except SchemaError:  # edges that cannot be told apart; equal bins remain
        return column, notes
    words = (
        "skewed: equal bins would put most rows into one, so the edges follow the values, with "
        "cells of their own for very frequent ones; replace them by public ones"
    )
    return column, [*notes, words]


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
    written = [decimals_in(text, decimal) for text in texts]
    decimals = max((place for place in written if place is not None), default=0)
    settings: dict[str, Any] = {}
    if None not in written and decimals <= MOST_DECIMALS:
        widest = (high - low) * 10**decimals * (1 - 1e-9)
        settings = {"decimals": decimals, "bins": max(1, min(DEFAULT_BINS, int(widest)))}
    try:
        column = replace(base, kind=Kind.REAL, lower=low, upper=high, **settings)
    except SchemaError:  # bounds so close that bins or decimals cannot be told apart
        column = replace(base, kind=Kind.REAL, lower=low, upper=high, bins=1)
        return column, [*notes, _CHECK_BOUNDS]
    places = settings.get("decimals", MOST_DECIMALS - int(np.ceil(np.log10(high - low))))
    return _skewed(column, values, 10.0**-places, [*notes, _CHECK_BOUNDS])


def suggested_date(name: str, cells: Cells) -> tuple[Column, list[str]] | None:
    """A column whose cells are days of one form, but for missing markers; else None."""
    markers = markers_among_numbers(cells)
    texts = [text for text in cells.texts if text not in markers]
    if not texts:
        return None
    forms = [form for form in DATE_FORMS if _all_days(name, cells, markers, form, texts)]
    if not forms:
        return None
    form = forms[0]
    trial = Column(name, Kind.DATE, lower="2000-01-01", upper="2000-12-31", date_format=form)
    trial = replace(trial, missing_markers=("", *markers))
    values, _ = axis_values(cells.series, trial, cells.decimal)
    low, high = int(np.nanmin(values)), int(np.nanmax(values))
    notes = [*note_of_markers(markers), _CHECK_BOUNDS]
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
    name: str, cells: Cells, markers: Sequence[str], form: str | None, texts: Sequence[str]
) -> bool:
    """Whether every value is a day in this form (a plausible one where it looks like a number)."""
    if form == "%Y%m%d":
        days = [text_day(text, form) for text in texts if re.fullmatch(r"(19|20)\d{6}", text)]
        return len(days) == len(texts) and None not in days
    if any(isinstance(value, str) for value in cells.values) and not all(
        re.search(r"\d\D\d", text) for text in texts
    ):
        return False
    if form is not None and any(text_day(text, form) is None for text in texts[:FEW_ROWS]):
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
