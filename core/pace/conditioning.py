"""Ridges and values with which double precision can compute the completion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Smallest ridge τ in units in which the fitted variances are about 1: below it K no longer fits
#: in double precision.  It moves W by at most about its square root.
SMALLEST_RIDGE = 1e-12
#: Squares further below 0 than this many standard deviations (or ten times as many sqrt(τ)) are
#: taken to lie there: noise does not reach so far.
LOWEST_SQUARE = 10.0


def conditioned(
    rows: IntArray,
    columns: IntArray,
    values: FloatArray,
    precisions: FloatArray,
    *,
    size: int,
    mu: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scales of the columns, and values and ridges of the entries.

    A column's squared scale is (abs(y) + sqrt(y² + 4τ))/2 of its square: about the variance that
    would be fitted to it alone.  A ridge is μ/λ, but at least ``SMALLEST_RIDGE`` in those units;
    and no square lies much further below 0 than noise reaches.

    Parameters
    ----------
    rows, columns, values, precisions
        (m,): the entries of a component, all squares among them.
    size
        Number of columns of the component.
    """
    ridge = mu / precisions
    values = values.copy()
    squares = np.flatnonzero(rows == columns)
    own = ridge[squares]
    reach = np.maximum(1 / np.sqrt(precisions[squares]), 10 * np.sqrt(own))
    level = np.maximum(values[squares], -LOWEST_SQUARE * reach)
    values[squares] = level
    squared = np.empty(size)
    squared[rows[squares]] = (np.abs(level) + np.sqrt(level**2 + 4 * own)) / 2
    floor = SMALLEST_RIDGE * squared[rows] * squared[columns]
    return np.sqrt(squared), values, np.maximum(ridge, floor)
