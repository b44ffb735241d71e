"""Counts of some columns in two worlds, cell by cell, and how far chance alone sets them apart.

Cells are numbered over the combinations that occur in either world, so that the joint table of all
columns costs as little as the rows it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.audit.worlds import World
from core.errors import EstimationError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Paired:
    """Cells of some columns, numbered alike in two worlds.

    Attributes
    ----------
    first, second
        Cell of every row of each world.
    cells
        How many cells are numbered; some may hold no row.
    """

    first: IntArray
    second: IntArray
    cells: int

    @cached_property
    def counts(self) -> tuple[IntArray, IntArray]:
        """Rows of each cell, in each world."""
        return (
            np.bincount(self.first, minlength=self.cells),
            np.bincount(self.second, minlength=self.cells),
        )

    @property
    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Shares of each cell, in each world."""
        one, other = self.counts
        return one / len(self.first), other / len(self.second)


def require_rows(*worlds: World) -> None:
    """Refuse worlds without rows.

    Raises
    ------
    EstimationError
        Naming the world.
    """
    for world in worlds:
        if world.rows == 0:
            raise EstimationError(f"no rows in the {world.name}, so there is nothing to compare")


def paired(first: World, second: World, names: Sequence[str]) -> Paired:
    """Number the cells of some columns alike in two worlds.

    Raises
    ------
    EstimationError
        When a world has no rows, or the worlds declare a column differently.
    """
    require_rows(first, second)
    rows = first.rows + second.rows
    one = np.zeros(first.rows, dtype=np.int64)
    other = np.zeros(second.rows, dtype=np.int64)
    cells = 1
    for name in names:
        size = first.size(name)
        if second.size(name) != size:
            raise EstimationError(f"column {name!r} has other cells in the {second.name}")
        one = one * size + first.codes[name]
        other = other * size + second.codes[name]
        cells *= size
        if cells > 4 * rows + 4096:  # mostly empty: number the cells that occur
            values, numbers = np.unique(np.concatenate([one, other]), return_inverse=True)
            one, other = numbers[: first.rows], numbers[first.rows :]
            cells = len(values)
    return Paired(one, other, cells)


def random_split(first: int, second: int) -> FloatArray:
    """Mean absolute difference of a cell's shares when rows are dealt at random to two tables.

    Parameters
    ----------
    first, second
        Rows of the two tables, at least 1 each.

    Returns
    -------
    ndarray
        (first + second + 1,) by the number of rows that the cell has in both tables together.

    Notes
    -----
    The first table's count is hypergeometric; its mean absolute deviation has a closed form, twice
    the upper partial sum of (x - mean) P(x), which telescopes (Ramasubban 1958, "The mean
    difference and the mean deviation of some discontinuous distributions").
    """
    from scipy.special import gammaln

    if first < 1 or second < 1:
        raise EstimationError("both tables need at least one row")
    rows = first + second
    held = np.arange(rows + 1, dtype=np.float64)

    def log_choose(among: FloatArray | float, chosen: FloatArray | float) -> FloatArray:
        return np.asarray(
            gammaln(np.add(among, 1.0))
            - gammaln(np.add(chosen, 1.0))
            - gammaln(np.subtract(among, chosen) + 1.0)
        )

    # the smallest count above the mean; where there is none the cell cannot deviate
    above = np.floor(first * held / rows) + 1
    possible = (above <= np.minimum(held, first)) & (first - above <= rows - held)
    count = np.where(possible, above, np.maximum(0.0, first + held - rows))
    log_mass = (
        log_choose(held, count)
        + log_choose(rows - held, first - count)
        - log_choose(float(rows), float(first))
    )
    upper = count * (rows - held - first + count) / rows * np.exp(log_mass)
    deviation: FloatArray = np.where(possible, 2 * upper, 0.0) * (1 / first + 1 / second)
    return deviation


def chance_variation(table: Paired, split: FloatArray) -> float:
    """Mean total variation when all rows of two worlds are dealt at random to their tables.

    Parameters
    ----------
    split
        From :func:`random_split` for the same numbers of rows.
    """
    one, other = table.counts
    return 0.5 * float(split[one + other].sum())
