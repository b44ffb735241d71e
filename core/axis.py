"""Cells on a number line: equal-width bins, calendar periods, decimal grids and date texts.

Pure functions of public declarations; :class:`core.column.Column` puts names to their errors.
"""

from __future__ import annotations

import re
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

DATE_UNITS = ("day", "week", "month", "quarter", "year")
#: Parts of a date form that name a day or a time of day the same way in reading and writing.
DATE_DIRECTIVES = "YymdjbBHMSf%"


def integer_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """Edges of ``count`` near-equal runs of integers; the last edge lies one past ``high``.

    >>> integer_edges(0, 9, 3)
    (0.0, 3.0, 6.0, 10.0)
    """
    first, total = int(low), int(high) - int(low) + 1
    return tuple(float(first + (i * total) // count) for i in range(count + 1))


def real_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """Edges of ``count`` equal-width intervals from ``low`` to ``high``.

    >>> real_edges(0, 1, 4)
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    return (*(float(low + (high - low) * i / count) for i in range(count)), float(high))


def date_edges(low: int, high: int, unit: str, limit: int) -> tuple[float, ...]:
    """First days (proleptic ordinals) of the calendar periods, and one day past ``high``.

    Raises
    ------
    ValueError
        If there are more than ``limit`` periods.

    Examples
    --------
    >>> [str(date.fromordinal(int(day))) for day in date_edges(738900, 738960, "month", 99)]
    ['2024-01-15', '2024-02-01', '2024-03-01', '2024-03-16']
    """
    starts = [low]
    while (following := next_period(starts[-1], unit)) <= high:
        starts.append(following)
        if len(starts) > limit:
            raise ValueError("too many periods")
    return tuple(float(day) for day in (*starts, high + 1))


def next_period(ordinal: int, unit: str) -> int:
    """First day (ordinal) of the calendar period after the one that holds day ``ordinal``."""
    day = date.fromordinal(ordinal)
    if unit == "day":
        return ordinal + 1
    if unit == "week":
        return ordinal + 7 - day.weekday()
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    index = day.year * 12 + (day.month - 1) // months * months + months
    if index // 12 > date.max.year:
        return date.max.toordinal() + 1
    return date(index // 12, index % 12 + 1, 1).toordinal()


def decimal_grid(axis: tuple[float, ...], decimals: int) -> tuple[IntArray, IntArray] | None:
    """First and last multiple of ``10**-decimals`` in each cell of a real axis.

    Cells are ``[axis_i, axis_i+1)``, the last one closed; an empty cell has first > last.  None
    where the grid is finer than floating point tells apart: values are not rounded then.
    """
    scale = float(10**decimals)
    edges = np.asarray(axis, dtype=np.float64)
    if np.abs(edges).max() * scale >= 2.0**52:
        return None
    ceiling = np.ceil(edges * scale)
    # The product is rounded; settle which multiple is the first one at or above the edge.
    ceiling = np.where((ceiling - 1) / scale >= edges, ceiling - 1, ceiling)
    ceiling = np.where(ceiling / scale < edges, ceiling + 1, ceiling)
    first, last = ceiling[:-1], ceiling[1:] - 1
    last[-1] += ceiling[-1] / scale == edges[-1]
    return first.astype(np.int64), last.astype(np.int64)


def unknown_directive(form: str) -> str | None:
    """The first part of a date form that is not one of ``DATE_DIRECTIVES``, else None.

    >>> unknown_directive("%d.%m.%Y"), unknown_directive("%Y-%U")
    (None, '%U')
    """
    for found in re.finditer(r"%(.?)", form, flags=re.DOTALL):
        if not found[1] or found[1] not in DATE_DIRECTIVES:
            return found[0]
    return None


def names_every_day(form: str) -> bool:
    """Whether a date form tells year, month and day, so that no two days are written alike.

    >>> names_every_day("%Y%m%d"), names_every_day("%m/%Y")
    (True, False)
    """
    parts = set(re.findall(r"%(.)", form, flags=re.DOTALL))
    return "Y" in parts and ("j" in parts or ("d" in parts and bool(parts & set("mbB"))))


def day_text(ordinal: int, form: str | None) -> str:
    """A day in its written form; ISO where ``form`` is None.

    >>> day_text(738916, None), day_text(738916, "%Y%m%d")
    ('2024-01-31', '20240131')
    """
    day = date.fromordinal(ordinal)
    return day.isoformat() if form is None else day.strftime(form)


def text_day(text: str, form: str) -> int | None:
    """Inverse of :func:`day_text` for a given form, or None where the text does not fit."""
    try:
        return datetime.strptime(text, form).toordinal()
    except (ValueError, OverflowError, re.error):
        return None
