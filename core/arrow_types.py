"""Synthetic columns in the Arrow types of the table they stand for."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from core.axis import text_day
from core.column import Column
from core.schema import Kind

_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=([01])>")
_DECIMAL = re.compile(r"(decimal(?:32|64|128|256))\((\d+), (-?\d+)\)")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")


def arrow_type(name: str) -> Any:
    """The Arrow type of that name.

    >>> str(arrow_type("dictionary<values=string, indices=int8, ordered=1>"))
    'dictionary<values=string, indices=int8, ordered=1>'

    Raises
    ------
    ValueError
        If there is no such flat type.
    """
    import pyarrow as pa

    if found := _DICTIONARY.fullmatch(name):
        return pa.dictionary(arrow_type(found[2]), arrow_type(found[1]), ordered=found[3] == "1")
    if found := _DECIMAL.fullmatch(name):
        return getattr(pa, found[1])(int(found[2]), int(found[3]))
    if found := _TIMESTAMP.fullmatch(name):
        return pa.timestamp(found[1], tz=found[2])
    return pa.type_for_alias(name)


def stored(series: pd.Series[Any], column: Column | None, name: str | None) -> Any:
    """A column as an Arrow array of the named type; of its natural type where that cannot be."""
    import pyarrow as pa

    if name is not None:
        try:
            return _converted(series, column, arrow_type(name))
        except (pa.ArrowException, ValueError, TypeError, OverflowError, KeyError):
            # Declared wider than the input's type, say; the values matter more than the type.
            pass
    return pa.Array.from_pandas(series)


def _converted(series: pd.Series[Any], column: Column | None, kind: Any) -> Any:
    import pyarrow as pa

    types = pa.types
    if types.is_null(kind) and series.notna().any():
        raise ValueError("a null column cannot hold values")
    if column is not None and column.kind is Kind.DATE and not _is_text(kind):
        days = _days(series, column)
        if types.is_timestamp(kind):
            return _midnights(days, kind)
        if types.is_date(kind):
            return pa.array(days.to_list(), pa.date32()).cast(kind)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _from_labels(series, column, kind)
    if types.is_decimal(kind):
        texts = [None if pd.isna(value) else f"{value:.{kind.scale}f}" for value in series]
        return pa.array(texts, pa.string()).cast(kind)
    return pa.Array.from_pandas(series).cast(kind)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _days(series: pd.Series[Any], column: Column) -> pd.Series[Any]:
    def day(text: Any) -> date | None:
        if pd.isna(text):
            return None
        if column.date_format is None:
            return date.fromisoformat(str(text))
        ordinal = text_day(str(text), column.date_format)
        return None if ordinal is None else date.fromordinal(ordinal)

    different = {text: day(text) for text in series.unique()}
    return pd.Series([different[text] for text in series], dtype=object)


def _midnights(days: pd.Series[Any], kind: Any) -> Any:
    """The first moment of each day in the column's zone."""
    import pyarrow as pa

    naive = np.array([np.datetime64(day, kind.unit) for day in days], dtype=f"M8[{kind.unit}]")
    moments = pd.Series(naive)
    if kind.tz is not None:
        # A night that starts twice starts the first time; one that has no midnight, at its end.
        first = np.ones(len(moments), dtype=np.bool_)
        moments = moments.dt.tz_localize(kind.tz, ambiguous=first, nonexistent="shift_forward")
    return pa.Array.from_pandas(moments).cast(kind)


def _from_labels(series: pd.Series[Any], column: Column | None, kind: Any) -> Any:
    """Labels as values of the stored type; those that are none become null."""
    import pyarrow as pa

    target = kind.value_type if pa.types.is_dictionary(kind) else kind
    labels = [_label_value(str(label), column, target) for label in series.cat.categories]
    kept = [index for index, label in enumerate(labels) if label is not None]
    if labels and not kept:
        raise ValueError("no label is a value of the stored type")
    places = np.full(len(labels) + 1, -1, dtype=np.int64)
    places[kept] = np.arange(len(kept))
    codes = places[series.cat.codes.to_numpy()]
    values = pa.array([labels[index] for index in kept], target)
    indices = pa.array(codes, mask=codes < 0)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            indices.cast(kind.index_type), values, ordered=kind.ordered
        )
    return values.take(indices)


def _label_value(label: str, column: Column | None, kind: Any) -> Any:
    """A label as a value of an Arrow type, or None."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        if column is None or label not in column.categories or column.kind is not Kind.BOOLEAN:
            return None
        return column.categories.index(label) == column.truth_codes[1]
    try:
        return pa.scalar(label).cast(kind).as_py()
    except pa.ArrowException:
        return None
