"""Exact integer sums of products of features, over all rows or complete cases only.

A feature is a scaled number within [-1, 1] or the indicator of one cell.  Each row's product is
cut to the grid *towards zero*, so that no rounding can push a row over its bound, and a product
that is never negative stays so.  Products of indicators alone count rows, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.moments import FloatArray, IntArray, MomentFrame, MomentRequest
from core.private.table import CodedTable

#: Numbers held in one chunk of features.
CHUNK_NUMBERS = 1 << 20

BoolArray = NDArray[np.bool_]


def feature_moments(table: CodedTable, request: MomentRequest) -> IntArray:
    """Sums over rows of ``request.whole`` times each monomial, as exact integers.

    Returns
    -------
    ndarray
        ``int64``, one entry a monomial.
    """
    total = np.zeros(len(request.monomials), dtype=np.int64)
    cells = request.frame.cells
    for numbers, within in feature_rows(table, request.frame):
        for place, names in enumerate(request.monomials):
            rows = within[""]
            for name in names:
                if name in cells:
                    rows = rows & within[name]
            product: FloatArray = rows.astype(np.float64)
            for name in names:
                if name not in cells:
                    product *= numbers[name]
            total[place] += int(np.trunc(product * request.whole).sum())
    assert np.all(np.abs(total) < 1 << 53)
    return total


def feature_rows(
    table: CodedTable, frame: MomentFrame
) -> Iterator[tuple[dict[str, FloatArray], dict[str, BoolArray]]]:
    """Chunks of rows: scaled, clipped numbers by name, and which rows lie in each named cell.

    The rows that count at all stand under the empty name.
    """
    step = max(CHUNK_NUMBERS // len(frame.features), 1)
    for start in range(0, table.rows, step):
        chunk = slice(start, start + step)
        numbers = {}
        for name, scale in frame.scales:
            # An overflow is a value far outside, which the clip brings back.
            with np.errstate(over="ignore"):
                scaled = (table.numbers[name][chunk] - scale.centre) / scale.half_width
            numbers[name] = np.clip(np.nan_to_num(scaled, nan=0.0), -1.0, 1.0)
        within = {
            name: table.codes[cell.column][chunk] == cell.code for name, cell in frame.indicators
        }
        within[""] = counted_rows(table, frame, chunk)
        yield numbers, within


def counted_rows(table: CodedTable, frame: MomentFrame, chunk: slice) -> BoolArray:
    """Rows that count: those that miss no column of the frame, or all where none may miss."""
    size = len(range(*chunk.indices(table.rows)))
    counted = np.ones(size, dtype=np.bool_)
    if not frame.may_miss(table.schema):  # by the declarations, on which the count's price rests
        return counted
    for name in frame.columns:
        counted &= ~np.isnan(table.numbers[name][chunk])
    for name in {cell.column for _, cell in frame.indicators}:
        counted &= ~np.isin(table.codes[name][chunk], frame.absent_codes(table.schema[name]))
    return counted
