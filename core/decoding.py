"""Cells back to values, and tables to files: all of it after the noise, and free.

Bins are undone by uniform draws within the cell.  Everything is a function of codes, public
declarations and the generator; nothing here has seen a row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.axis import day_text, decimal_grid
from core.column import Column
from core.errors import SchemaError
from core.schema import LABELLED_KINDS, Kind, Schema
from core.spreadsheet import guarded

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_EXACT_INTEGERS = 2.0**53


def decode(
    codes: Mapping[str, NDArray[Any]], schema: Schema, generator: np.random.Generator
) -> pd.DataFrame:
    """Values for cell codes, columns in schema order.

    Labels come back letter for letter, as pandas categoricals over the declared categories (the
    other-cell's label last, if it is a cell of its own; ordinals keep their order).  Integers are
    uniform over the integers of their cell (``Int64``); reals uniform in their cell, with
    ``decimals`` over the multiples in it (``float64``; ``Int64`` with no decimals, so that files
    have no ".0"); dates uniform over the days of their cell,
    as text in ``date_format``.  The missing-cell is empty, and so is the other-cell of columns
    with an axis, whose values are unknown; a missing-cell that is a declared category keeps its
    label.

    Parameters
    ----------
    codes
        One array of cell codes for every modelled column, all of one length.
    schema
        The declarations; excluded columns do not come back.
    generator
        Draws column by column in the order of their names, so the same generator gives the same
        table whatever the order of the file.

    Raises
    ------
    SchemaError
        If a column has no codes, or a code lies outside its domain.
    """
    modelled = {column.name: column for column in schema.modelled}
    if set(codes) != set(modelled):
        odd = sorted(set(codes) ^ set(modelled))[0]
        raise SchemaError(f"column {odd!r}: codes and schema must have the same columns")
    decoded = {
        name: _decoded(np.asarray(codes[name]), modelled[name], generator)
        for name in sorted(modelled)
    }
    if len({len(values) for values in decoded.values()}) > 1:
        raise SchemaError("all columns need the same number of codes")
    return pd.DataFrame({name: decoded[name] for name in modelled})


def _decoded(codes: NDArray[Any], column: Column, generator: np.random.Generator) -> Any:
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise SchemaError(f"column {column.name!r}: codes must be a vector of integers")
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < column.size:
        raise SchemaError(f"column {column.name!r}: a code lies outside the domain")
    cells = codes.astype(np.int64)
    if column.kind in LABELLED_KINDS:
        return _labels(cells, column)
    empty = cells >= column.declared_size
    cells = np.where(empty, 0, cells)
    if column.kind is Kind.REAL:
        reals = _reals(cells, column, generator)
        if column.decimals == 0 and bool((np.abs(reals) < _EXACT_INTEGERS).all()):
            return pd.arrays.IntegerArray(np.rint(reals).astype(np.int64), empty)
        reals[empty] = np.nan
        return reals
    edges = np.asarray(column.axis, dtype=np.int64)
    whole = generator.integers(edges[cells], edges[cells + 1])
    if column.kind is Kind.INTEGER:
        return pd.arrays.IntegerArray(whole, empty)
    return _dates(whole, empty, column.date_format)


def _labels(cells: IntArray, column: Column) -> pd.Categorical:
    labels = list(column.categories)
    if column.other_code == len(labels) and column.other_code != column.missing_code:
        labels.append(column.other_label)
    codes = np.where(cells < len(labels), cells, -1)
    return pd.Categorical.from_codes(
        codes, categories=pd.Index(labels, dtype="str"), ordered=column.kind is Kind.ORDINAL
    )


def _reals(cells: IntArray, column: Column, generator: np.random.Generator) -> FloatArray:
    grid = None if column.decimals is None else decimal_grid(column.axis, column.decimals)
    if column.decimals is not None and grid is not None:
        first, last = grid
        multiples = generator.integers(first[cells], last[cells], endpoint=True)
        return multiples / float(10**column.decimals)
    edges = np.asarray(column.axis)
    low, high = edges[cells], edges[cells + 1]
    values = low + (high - low) * generator.random(len(cells))
    # Rounding may reach the upper edge, which belongs to the next cell.
    return cast(FloatArray, np.minimum(values, np.nextafter(high, low)))


def _dates(days: IntArray, empty: BoolArray, form: str | None) -> Any:
    different, inverse = np.unique(days, return_inverse=True)
    texts = np.array([day_text(int(day), form) for day in different], dtype=object)
    written = texts[inverse] if len(days) else np.zeros(0, dtype=object)
    written[empty] = None
    return pd.array(written, dtype="str")


# -- files ---------------------------------------------------------------------------------


def csv_bytes(frame: pd.DataFrame, spreadsheet: bool = False) -> bytes:
    r"""A table as CSV: UTF-8, comma, decimal point, empty for missing, lines end in CRLF.

    Parameters
    ----------
    frame
        What :func:`decode` returns, or any table.
    spreadsheet
        For Excel and its like: with a byte-order mark, and with an apostrophe before every text
        cell and column name that would be read as a formula, see :mod:`core.spreadsheet`.
        Numbers stay numbers.  Reading such a file back with ``core.private.reading`` takes
        exactly that apostrophe off again.

    Examples
    --------
    >>> csv_bytes(pd.DataFrame({"a": ["=1+1", "x"], "b": [-5, 2]}), spreadsheet=True)
    b"\xef\xbb\xbfa,b\r\n'=1+1,-5\r\nx,2\r\n"
    """
    if spreadsheet:
        frame = pd.DataFrame(
            {guarded(str(name)): _guarded_cells(frame[name]) for name in frame.columns}
        )
    buffer = io.StringIO(newline="")
    frame.to_csv(buffer, index=False, lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL)
    return buffer.getvalue().encode("utf-8-sig" if spreadsheet else "utf-8")


def _guarded_cells(series: pd.Series[Any]) -> pd.Series[Any]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        labels = [guarded(str(label)) for label in series.cat.categories]
        return series.cat.rename_categories(labels)
    if pd.api.types.is_string_dtype(series.dtype) or series.dtype == object:
        return series.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
    return series


def parquet_bytes(
    frame: pd.DataFrame,
    schema: Schema | None = None,
    storage: Mapping[str, str] | None = None,
) -> bytes:
    """A table as Parquet, with the types of the input where they are known.

    Parameters
    ----------
    frame
        What :func:`decode` returns.
    schema
        Declarations; needed to turn labels into booleans and date texts into dates.
    storage
        Arrow type name of each column of the input, see ``core.private.raw.RawTable.storage``.
        A label that is no value of the stored type (such as the other-cell's) is written as null;
        a column whose values do not fit the type at all keeps its own.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from core.arrow_types import stored

    arrays = [
        stored(
            frame[name],
            None if schema is None or name not in schema else schema[name],
            None if storage is None else storage.get(name),
        )
        for name in frame.columns
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays, names=[str(name) for name in frame.columns]), buffer)
    return buffer.getvalue()
