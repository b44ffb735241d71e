"""Columns of an Arrow batch as few cells and each row's position among them.

Labels and whole numbers of small range have few different cells in a batch.  These are coded by
the coder of whole tables, :func:`core.private.coding.coded_column`, and the rows look their codes
up; a column of many different values goes through that coder row by row.  Either way a value
meets the same code, so that batches and tables in memory agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.column import Column
from core.private.coding import coded_column
from core.private.fingerprint import Positions
from core.private.parquet_reading import damaged, is_text, plain_frame

#: Widest range of whole numbers that is looked up.
WINDOW = 4096

Codes = NDArray[Any]
FloatArray = NDArray[np.float64]


def series_of(cells: Any) -> pd.Series[Any]:
    """An Arrow array as the pandas column that the reader of whole files makes of it."""
    import pyarrow as pa

    frame = plain_frame(pa, pa.table({"cells": cells}))
    return frame["cells"]


class Spread:
    """Takes one column's batches apart; remembers the cells of the batch before.

    As long as a batch brings no new cell, the same series object is given again, so that whoever
    looked something up for its cells need not do so again.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._dictionary: Any = None
        self._window: tuple[Any, int, int] | None = None
        self._cells: pd.Series[Any] = pd.Series(dtype=object)

    def take_apart(self, column: Any) -> tuple[pd.Series[Any], Positions | None]:
        """Cells, and each row's position among them; None where every row is its own cell.

        Raises
        ------
        ReadingError
            A dictionary holds what no column of a table can.
        """
        import pyarrow as pa

        try:
            return self._apart(pa, column)
        except (pa.ArrowException, ValueError, OverflowError):
            raise damaged(self._file) from None  # their own words may quote a cell

    def _apart(self, pa: Any, column: Any) -> tuple[pd.Series[Any], Positions | None]:
        kind = column.type
        if is_text(pa, kind):
            column = column.cast(pa.large_string()).dictionary_encode()
        if pa.types.is_dictionary(column.type):
            return self._by_dictionary(pa, column)
        if pa.types.is_boolean(kind):
            return self._by_window(pa, kind, column.cast(pa.uint8()), 0, 1)
        if pa.types.is_integer(kind) or pa.types.is_date32(kind):
            numbers = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
            ends = _ends(numbers)
            if ends is not None:
                low, high = self._widened(kind, *ends)
                if high - low < WINDOW:
                    return self._by_window(pa, kind, numbers, low, high)
        return series_of(column), None

    def _by_dictionary(self, pa: Any, column: Any) -> tuple[pd.Series[Any], Positions]:
        words = column.dictionary
        if self._dictionary is None or not self._same(words):
            every = pa.array([*range(len(words)), None], pa.int32())
            if pa.types.is_large_string(words.type) or pa.types.is_string(words.type):
                cells = words.cast(pa.large_string()).take(every)
            else:
                cells = pa.DictionaryArray.from_arrays(every, words)
            self._cells, self._dictionary, self._window = series_of(cells), words, None
        indices = column.indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(len(words))
        return self._cells, indices.to_numpy(zero_copy_only=False)

    def _same(self, words: Any) -> bool:
        """Whether the dictionary is the one before, by its values."""
        known = self._dictionary
        return bool(known.type == words.type and known.equals(words))

    def _widened(self, kind: Any, low: int, high: int) -> tuple[int, int]:
        """The range, and that of the batches before, where both together are narrow enough."""
        if self._window is None or self._window[0] != kind:
            return low, high
        both = min(low, self._window[1]), max(high, self._window[2])
        return both if both[1] - both[0] < WINDOW else (low, high)

    def _by_window(
        self, pa: Any, kind: Any, numbers: Any, low: int, high: int
    ) -> tuple[pd.Series[Any], Positions]:
        """Every whole number of the range is a cell; the last cell is a missing one."""
        if self._window != (kind, low, high):
            every = pa.array([*range(low, high + 1), None], numbers.type).cast(kind)
            self._cells, self._window, self._dictionary = series_of(every), (kind, low, high), None
        lacking = numbers.null_count > 0
        plain = (numbers.fill_null(low) if lacking else numbers).to_numpy(zero_copy_only=False)
        positions = plain if low == 0 else plain - plain.dtype.type(low)
        if positions.dtype == np.int8:  # the difference may have wrapped round
            positions = positions.view(np.uint8)
        if lacking:
            positions = positions.astype(np.int32)
            positions[numbers.is_null().to_numpy(zero_copy_only=False)] = high - low + 1
        return self._cells, positions


def _ends(numbers: Any) -> tuple[int, int] | None:
    """Smallest and largest whole number, or None where all are missing."""
    import pyarrow.compute as pc

    ends = pc.min_max(numbers).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])


class ColumnCoder:
    """Codes the batches of one declared column as :func:`core.private.coding.encode` would."""

    def __init__(self, column: Column, decimal: str, file: str) -> None:
        self._column, self._decimal = column, decimal
        self._spread = Spread(file)
        self._cells: pd.Series[Any] | None = None
        self._codes: Codes = np.zeros(0, dtype=np.uint8)
        self._numbers: FloatArray | None = None

    def code(self, cells: Any, *, numbers: bool) -> tuple[Codes, FloatArray | None]:
        """Codes of an Arrow array and, if asked for, the numbers of a column with an axis."""
        values, positions = self._spread.take_apart(cells)
        if self._cells is not values:
            self._codes, self._numbers = coded_column(values, self._column, self._decimal)
            self._cells = values
        codes, found = self._codes, self._numbers if numbers else None
        if positions is None:
            return codes, found
        return codes.take(positions), None if found is None else found.take(positions)
