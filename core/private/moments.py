"""Exact integer moments of clipped, scaled rows.

Every factor is clipped to [-1, 1] and cut to a power-of-two grid *towards zero*, so that no
rounding can push a row over its bound; the row clip is enforced on the integers.  A missing value
counts as the column's declared constant if it has one (the coded table holds it then), else as the
centre: it contributes zero, and in a frame of whole rows its row does.  Sums stay below 2**53, so
float64 products accumulate them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from core.moments import (
    SUMMAND_BITS,
    FloatArray,
    IntArray,
    MomentFrame,
    MomentRequest,
)

#: More rows than this could overflow exact float64 sums.
MAXIMUM_ROWS = 1 << (53 - SUMMAND_BITS)
#: Numbers held in one chunk of scaled rows.
CHUNK_NUMBERS = 1 << 20

Numbers = Mapping[str, FloatArray]


def exact_moments(numbers: Numbers, request: MomentRequest) -> IntArray:
    """Sums over rows of ``grid**degree`` times each monomial, as exact integers.

    Returns
    -------
    ndarray
        ``int64``, one entry a monomial, without the request's diagonal multipliers.
    """
    position = {name: index for index, name in enumerate(request.columns)}
    picks = np.array([[position[name] for name in names] for names in request.monomials])
    total = np.zeros(len(picks), dtype=np.int64)
    summand = _SUMMANDS[request.degree]
    for units in grid_rows(numbers, request.frame, request.grid):
        total += summand(units, picks)
    assert np.all(np.abs(total) < 1 << 53)
    return total


def gram(numbers: Numbers, frame: MomentFrame) -> IntArray:
    """All second moments of a frame on its grid: a symmetric ``int64`` matrix."""
    size = len(frame.columns)
    total = np.zeros((size, size), dtype=np.int64)
    for units in grid_rows(numbers, frame, 1 << (SUMMAND_BITS // 2)):
        total += (units.T @ units).astype(np.int64)
    assert np.all(np.abs(total) < 1 << 53)
    return total


def norm_grid(columns: int) -> int:
    """Grid for squared norms: ``columns * grid**2`` is at most ``2**SUMMAND_BITS``.

    >>> norm_grid(1), norm_grid(4), norm_grid(260)
    (4096, 2048, 128)
    """
    return 1 << ((SUMMAND_BITS - (columns - 1).bit_length()) // 2)


def norm_excess(numbers: Numbers, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
    """For each squared radius, the sum over rows of what exceeds it.

    Parameters
    ----------
    radii
        Squared radii in units of ``norm_grid(d)**-2``.

    Returns
    -------
    ndarray
        ``int64``, same units.
    """
    total = np.zeros(len(radii), dtype=np.int64)
    for units in grid_rows(numbers, frame, norm_grid(len(frame.columns))):
        norms = np.sum(units * units, axis=1).astype(np.int64)
        total += [int(np.maximum(norms - radius, 0).sum()) for radius in radii]
    assert np.all(total < 1 << 53)
    return total


def grid_rows(numbers: Numbers, frame: MomentFrame, grid: int) -> Iterator[FloatArray]:
    """Chunks of scaled rows: float64 matrices of whole numbers within ``[-grid, grid]``."""
    rows = len(numbers[frame.columns[0]])
    step = max(CHUNK_NUMBERS // len(frame.columns), 1)
    for start in range(0, rows, step):
        units = np.empty((min(step, rows - start), len(frame.columns)))
        lacking = np.zeros(len(units), dtype=np.bool_)
        for index, (name, scale) in enumerate(frame.scales):
            # An overflow is a value far outside, which the clip brings back.
            with np.errstate(over="ignore"):
                scaled = (numbers[name][start : start + step] - scale.centre) / scale.half_width
            units[:, index] = to_grid(scaled, grid)
            lacking |= np.isnan(numbers[name][start : start + step])
        if frame.whole_rows:
            units[lacking] = 0.0
        if frame.clip_squared is not None:
            clip_rows(units, grid, frame.clip_squared)
        yield units


def to_grid(scaled: FloatArray, grid: int) -> FloatArray:
    """Clip to [-1, 1], cut towards zero to ``1 / grid``; missing becomes 0.

    >>> to_grid(np.array([0.9, -0.9, 7.0, np.nan]), 4)
    array([ 3., -3.,  4.,  0.])
    """
    clipped = np.clip(np.nan_to_num(scaled, nan=0.0), -1.0, 1.0)
    units: FloatArray = np.trunc(clipped * grid)
    return units


def clip_rows(units: FloatArray, grid: int, clip_squared: Fraction) -> None:
    """Shrink rows in place so that their integer norm obeys the clip exactly."""
    bound = int(clip_squared * grid * grid)
    norms = np.sum(units * units, axis=1)
    over = np.flatnonzero(norms > bound)
    if not over.size:
        return
    rows = np.trunc(units[over] * np.sqrt(bound / norms[over])[:, None])
    # Float rounding may leave a row a hair outside: one unit towards zero is always enough.
    outside = np.sum(rows * rows, axis=1) > bound
    rows[outside] -= np.sign(rows[outside])
    assert np.all(np.sum(rows * rows, axis=1) <= bound)
    units[over] = rows


def _sums(units: FloatArray, picks: IntArray) -> IntArray:
    sums: IntArray = units.sum(axis=0).astype(np.int64)
    return sums[picks[:, 0]]


def _products(units: FloatArray, picks: IntArray) -> IntArray:
    return (units.T @ units).astype(np.int64)[picks[:, 0], picks[:, 1]]


def _higher(units: FloatArray, picks: IntArray) -> IntArray:
    values = [int(np.prod(units[:, list(pick)], axis=1).sum()) for pick in picks]
    return np.array(values, dtype=np.int64)


_SUMMANDS: dict[int, Callable[[FloatArray, IntArray], IntArray]] = {
    1: _sums,
    2: _products,
    3: _higher,
    4: _higher,
}
