"""Single values to labels, numbers and days; each value by itself, whatever else the column holds.

A CSV cell is a text, a Parquet or Excel cell may be typed; the same value leads to the same cell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.axis import text_day
from core.column import Column
from core.kinds import FALSE_WORDS, TRUE_WORDS, Kind

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_GROUPED_BY_COMMA = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", flags=re.ASCII)
_GROUPED_BY_POINT = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?", flags=re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?", flags=re.ASCII | re.DOTALL)
_UNIX_EPOCH = date(1970, 1, 1).toordinal()
_EXACT_INTEGERS = 2**53


def distinct(series: pd.Series[Any]) -> tuple[IntArray, list[Any]]:
    """Position of each row's value in the list of different values, -1 for nulls.

    Values are different when their types are: 1, 1.0 and True are three values, so that which of
    them comes first in the file changes nothing.  The two zeros are one value, written 0.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = np.asarray(series.cat.codes, dtype=np.int64)
        return codes, list(series.cat.categories.tolist())
    if series.dtype != object:
        if series.dtype.kind == "f":
            series = series + 0.0  # a negative zero becomes the other one
        positions, values = pd.factorize(series)
        return cast(IntArray, positions.astype(np.int64)), list(values.tolist())
    null = series.isna().to_numpy()
    index: dict[tuple[type, Any], int] = {}
    found = np.full(len(series), -1, dtype=np.int64)
    for row, value in enumerate(series.array):
        if not null[row]:
            one = value + 0.0 if isinstance(value, float) else value
            found[row] = index.setdefault((type(one), one), len(index))
    return found, [one for _, one in index]


def texts_of(value: object) -> tuple[str, ...]:
    """The ways in which a value may be written as a label, most natural first.

    >>> texts_of(3.0), texts_of(True), texts_of("a ")
    (('3', '3.0'), ('True', 'true', 'TRUE'), ('a ',))
    """
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool | np.bool_):
        word = str(bool(value))
        return word, word.lower(), word.upper()
    if isinstance(value, int | np.integer):
        return str(int(value)), f"{int(value)}.0"
    if isinstance(value, Decimal):
        whole = (str(int(value)),) if value.is_finite() and value == int(value) else ()
        return (str(value), *whole)
    if isinstance(value, float | np.floating):
        number = float(value)
        return (str(int(number)), repr(number)) if number.is_integer() else (repr(number),)
    if isinstance(value, datetime):
        day = (value.date().isoformat(),) if value.time() == datetime.min.time() else ()
        return (*day, value.isoformat(), value.isoformat(sep=" "))
    if isinstance(value, date):
        return (value.isoformat(),)
    return (str(value),)


def row_texts(series: pd.Series[Any]) -> list[str]:
    """Every row's value as one canonical text; nulls are empty."""
    positions, values = distinct(series)
    texts = np.array([*(texts_of(value)[0] for value in values), ""], dtype=object)
    return cast(list[str], texts[positions].tolist())


# -- labels --------------------------------------------------------------------------------


def label_codes(values: Sequence[object], column: Column) -> list[int]:
    """Code of each value in a labelled column; -1 for missing ones, else always a cell."""
    exact = {label: code for code, label in enumerate(column.categories)}
    stripped: dict[str, int] = {}
    for label, code in exact.items():
        stripped.setdefault(label.strip(), code)
    words: dict[str, int] = {}
    if column.kind is Kind.BOOLEAN:
        false, true = column.truth_codes
        words = dict.fromkeys(FALSE_WORDS, false) | dict.fromkeys(TRUE_WORDS, true)
    markers = {"", *(marker.strip() for marker in column.missing_markers)}
    other = cast(int, column.other_code)

    def code_of(value: object) -> int:
        texts = texts_of(value)
        for text in texts:
            if text in exact:
                return exact[text]
        for text in texts:
            plain = text.strip()
            if plain in markers:
                return -1
            code = exact.get(plain, stripped.get(plain, words.get(plain.casefold())))
            if code is not None:
                return code
        return other

    return [code_of(value) for value in values]


# -- numbers and days ----------------------------------------------------------------------


def axis_values(
    series: pd.Series[Any], column: Column, decimal: str
) -> tuple[FloatArray, BoolArray]:
    """Unclipped axis numbers of a numeric or date column, NaN where there is none.

    Returns
    -------
    values
        Numbers, or day ordinals; infinite where the file says so.
    unreadable
        Rows that hold something that is neither a number (a date) nor missing.
    """
    fast = _typed(series, column)
    if fast is not None:
        return fast, np.zeros(len(series), dtype=np.bool_)
    positions, values = distinct(series)
    markers = {"", *(marker.strip() for marker in column.missing_markers)}
    markers_as_numbers = numeric_markers(column)
    numbers = np.full(len(values) + 1, np.nan)
    unreadable = np.zeros(len(values) + 1, dtype=np.bool_)
    for index, value in enumerate(values):
        plain = value.strip() if isinstance(value, str) else value
        if plain in markers:
            continue
        if column.kind is Kind.DATE:
            number = _day(plain, column.date_format)
        else:
            number = _number(plain, decimal)
            if not isinstance(plain, str) and number in markers_as_numbers:
                continue
        if number is None:
            unreadable[index] = True
        else:
            numbers[index] = number
    return numbers[positions], unreadable[positions]


def numeric_markers(column: Column) -> list[float]:
    """Missing markers that are numbers, so that they are found in typed files as well."""
    numbers = (parsed_number(marker.strip()) for marker in column.missing_markers)
    return [number for number in numbers if number is not None and not math.isnan(number)]


def _typed(series: pd.Series[Any], column: Column) -> FloatArray | None:
    """Whole columns of plain numbers or timestamps at once, where no marker can hide in them."""
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        series = series.dt.tz_localize(None)
    if column.kind is Kind.DATE:
        if not pd.api.types.is_datetime64_dtype(series.dtype):
            return None
        moments = series.to_numpy()
        days = moments.astype("datetime64[D]").astype(np.int64).astype(np.float64)
        return np.where(np.isnat(moments), np.nan, days + _UNIX_EPOCH)
    is_number = pd.api.types.is_numeric_dtype(series.dtype)
    if not is_number or isinstance(series.dtype, pd.CategoricalDtype):
        return None
    numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
    for marker in numeric_markers(column):
        numbers = np.where(numbers == marker, np.nan, numbers)
    return cast(FloatArray, numbers)


def _number(value: object, decimal: str) -> float | None:
    """A value as a number; None where it is none, NaN where it says "not a number"."""
    if isinstance(value, str):
        return parsed_number(value, decimal)
    if isinstance(value, bool | int | float | Decimal | np.number | np.bool_):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
        except ValueError:  # a signalling NaN
            return math.nan
    return None


def parsed_number(text: str, decimal: str = ".") -> float | None:
    """A stripped text as a number, or None.

    >>> parsed_number("1,234.5"), parsed_number("1.234,5", decimal=","), parsed_number("12o")
    (1234.5, 1234.5, None)
    """
    if decimal == ",":
        if "." in text:
            if not _GROUPED_BY_POINT.fullmatch(text):
                return None
            text = text.replace(".", "")
        text = text.replace(",", ".")
    elif "," in text:
        if not _GROUPED_BY_COMMA.fullmatch(text):
            return None
        text = text.replace(",", "")
    if "_" in text or not text.isascii():
        return None  # Python would read 1_000 and digits of other scripts
    try:
        return float(text)
    except ValueError:
        return None


def _day(value: object, form: str | None) -> float | None:
    """A value as a day ordinal, or None.

    A whole number such as 20240131 is a date only in the form that the column declares.
    """
    if isinstance(value, date):  # timestamps too: the day that they show in their own zone
        return float(value.toordinal())
    if not isinstance(value, str):
        number = _number(value, ".")
        if form is None or isinstance(value, bool) or number is None or not number.is_integer():
            return None
        value = str(int(number))
    if form is None:
        return _iso_day(value)
    day = text_day(value, form)
    return None if day is None else float(day)


def _iso_day(text: str) -> float | None:
    if not _ISO_DATE.fullmatch(text):
        return None
    try:
        return float(date.fromisoformat(text[:10]).toordinal())
    except ValueError:
        return None
