"""Associations of pairs of columns in two worlds.

Numeric columns are seen through their declared cells: correlations use the cells' midpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audit.distances import combinations
from core.audit.figures import Figure
from core.audit.paired import require_rows
from core.audit.resampling import share_interval, standard_error
from core.audit.worlds import World
from core.kinds import Kind
from core.schema import Column

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BINNED = "numeric values as midpoints of their declared cells"


@dataclass(frozen=True, eq=False, repr=False)
class Associations:
    """One measure of association for many pairs, in two worlds.

    Attributes
    ----------
    names
        The pairs.
    first, second
        (pairs,) the measure in each world, NaN where a column does not vary there.
    deviation
        Standard error of the mean absolute difference.
    possible
        How many pairs there are; where more than were looked at, those were drawn at random.
    """

    names: tuple[tuple[str, ...], ...]
    first: FloatArray
    second: FloatArray
    deviation: float
    possible: int

    @property
    def difference(self) -> FloatArray:
        """(pairs,) absolute difference, NaN where either world has none."""
        found: FloatArray = np.abs(self.first - self.second)
        return found

    @property
    def undefined(self) -> int:
        """Pairs without a difference."""
        return int(np.count_nonzero(np.isnan(self.difference)))

    def figure(self, key: str, title: str, private: bool, caveat: str, level: float) -> Figure:
        """The mean absolute difference over the pairs that have one."""
        found = self.difference[~np.isnan(self.difference)]
        if not found.size:
            reason = "no pair of such columns" if not self.names else "no pair varies in both"
            return Figure(key, title, None, "", private, reason=reason)
        words = [caveat] if caveat else []
        if len(self.names) < self.possible:
            words.append(f"a random sample of {len(self.names):,} of {self.possible:,} pairs")
        if self.undefined:
            words.append(f"{self.undefined:,} pairs left out: a column does not vary")
        mean = float(found.mean())
        low, high = share_interval(mean, self.deviation, level)
        return Figure(
            key, title, mean, "", private, low=low, high=high, level=level, reason="; ".join(words)
        )


@dataclass(frozen=True, eq=False, repr=False)
class CorrelationDifference:
    """How associations of pairs differ between two worlds.

    Attributes
    ----------
    pearson
        Pairs of numeric and date columns, rows with both values only.
    cramers_v
        All pairs; the missing-cell and the other-cell are cells like any other.
    private
        True when either world is.
    """

    pearson: Associations
    cramers_v: Associations
    private: bool

    def figures(self, level: float = 0.95) -> tuple[Figure, ...]:
        """Both mean absolute differences."""
        return (
            self.pearson.figure(
                "fidelity.correlation.pearson",
                "Difference of correlations, mean over numeric pairs",
                self.private,
                BINNED,
                level,
            ),
            self.cramers_v.figure(
                "fidelity.correlation.cramers_v",
                "Difference of Cramér's V, mean over pairs",
                self.private,
                "",
                level,
            ),
        )


def correlation_difference(
    first: World, second: World, *, limit: int = 2000, seed: int = 0
) -> CorrelationDifference:
    """Pearson correlations of numeric pairs and Cramér's V of all pairs, in both worlds.

    Parameters
    ----------
    limit, seed
        More pairs than this are sampled without replacement.

    Raises
    ------
    EstimationError
        When a world has no rows.

    Notes
    -----
    Costs nothing; private when either world is.
    """
    require_rows(first, second)
    names = first.schema.names
    numeric = tuple(name for name in names if first.schema[name].axis)
    middle = {name: midpoints(first.schema[name]) for name in numeric}

    def linear(pair: tuple[str, ...], cells: Cells) -> tuple[float, FloatArray]:
        return pearson(cells, middle[pair[0]], middle[pair[1]])

    return CorrelationDifference(
        pearson=_compare(first, second, numeric, linear, limit=limit, seed=seed),
        cramers_v=_compare(
            first, second, names, lambda _, cells: cramers_v(cells), limit=limit, seed=seed
        ),
        private=first.private or second.private,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """The occupied cells of a pair of columns in one world.

    Attributes
    ----------
    one, other
        (cells,) code of each column.
    counts
        (cells,) rows, at least 1.
    place
        (rows,) each row's position among the cells.
    """

    one: IntArray
    other: IntArray
    counts: IntArray
    place: IntArray

    @classmethod
    def of(cls, world: World, pair: tuple[str, ...]) -> Cells:
        """Count a pair."""
        size, width = world.size(pair[0]), world.size(pair[1])
        flat = world.codes[pair[0]].astype(np.int64) * width + world.codes[pair[1]]
        if size * width <= 4 * world.rows + 4096:
            counts = np.bincount(flat, minlength=size * width)
            held = np.flatnonzero(counts)
            place, counts = (np.cumsum(counts > 0) - 1)[flat], counts[held]
        else:
            held, place, counts = np.unique(flat, return_inverse=True, return_counts=True)
        return cls(held // width, held % width, counts, place)


def cramers_v(cells: Cells) -> tuple[float, FloatArray]:
    """Cramér's V over the rows and columns that occur, and its influence by cell.

    NaN where either column has one value only.

    Notes
    -----
    Cramér (1946), "Mathematical methods of statistics", section 21.9.  With shares p, V squared is
    the sum of p_ij^2 / (p_i p_j), less 1, over the smaller number of levels less 1.
    """
    share = cells.counts / cells.counts.sum()
    one, other = np.bincount(cells.one, share), np.bincount(cells.other, share)
    levels = min(np.count_nonzero(one), np.count_nonzero(other)) - 1
    if levels < 1:
        return np.nan, np.zeros(len(share))
    ratio = share / (one[cells.one] * other[cells.other])
    value = float(np.sqrt(min(max(float(share @ ratio) - 1.0, 0.0) / levels, 1.0)))
    if value == 0.0:
        return value, np.zeros(len(share))
    spent = np.bincount(cells.one, share * ratio) / np.where(one > 0, one, 1.0)
    taken = np.bincount(cells.other, share * ratio) / np.where(other > 0, other, 1.0)
    slope = 2 * ratio - spent[cells.one] - taken[cells.other]
    return value, slope / (2 * value * levels)


def pearson(cells: Cells, middle: FloatArray, other_middle: FloatArray) -> tuple[float, FloatArray]:
    """Correlation of two columns' midpoints over rows that have both, and its influence by cell.

    Parameters
    ----------
    middle, other_middle
        Midpoint of each cell, NaN for the missing-cell and the other-cell.

    Notes
    -----
    NaN where either column has one value only.  The influence of a row with standard scores u, v
    is u v - r (u^2 + v^2) / 2 (Hampel 1974, "The influence curve", section 4).
    """
    x, y = middle[cells.one], other_middle[cells.other]
    both = np.isfinite(x) & np.isfinite(y)
    nothing = np.zeros(len(x))
    rows = float(cells.counts[both].sum())
    if not both.any():
        return np.nan, nothing
    weight = np.where(both, cells.counts, 0) / rows
    x, y = np.where(both, x, x[both][0]), np.where(both, y, y[both][0])
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, nothing
    u, v = x - weight @ x, y - weight @ y
    u, v = u / np.sqrt(weight @ u**2), v / np.sqrt(weight @ v**2)
    value = float(np.clip(weight @ (u * v), -1.0, 1.0))
    influence = np.where(both, u * v - value * (u**2 + v**2) / 2, 0.0)
    return value, influence * (cells.counts.sum() / rows)


def midpoints(column: Column) -> FloatArray:
    """Midpoint of each cell of a numeric or date column, NaN for cells that are no number.

    >>> age = Column("age", Kind.INTEGER, lower=0, upper=9, bins=2)
    >>> midpoints(age).tolist()
    [2.0, 7.0, nan]
    """
    edges = np.asarray(column.axis, dtype=np.float64)
    whole = 0.0 if column.kind is Kind.REAL else 1.0
    found = np.full(column.size, np.nan)
    found[: column.declared_size] = (edges[:-1] + edges[1:] - whole) / 2
    return found


Measure = Callable[[tuple[str, ...], Cells], tuple[float, FloatArray]]


def _compare(
    first: World,
    second: World,
    names: tuple[str, ...],
    measure: Measure,
    *,
    limit: int,
    seed: int,
) -> Associations:
    """One measure for all pairs of these columns (or a sample), in both worlds."""
    pairs, possible = combinations(names, 2, limit=limit, seed=seed)
    found = np.full((2, len(pairs)), np.nan)
    influences = (np.zeros(first.rows), np.zeros(second.rows))
    for place, pair in enumerate(pairs):
        cells = Cells.of(first, pair), Cells.of(second, pair)
        results = [measure(pair, one) for one in cells]
        found[:, place] = [value for value, _ in results]
        sign = np.sign(found[0, place] - found[1, place])
        if np.isfinite(sign):
            for side, (_, influence) in enumerate(results):
                influences[side][:] += sign * influence[cells[side].place]
    defined = max(int(np.count_nonzero(np.isfinite(found).all(axis=0))), 1)
    return Associations(
        names=pairs,
        first=found[0],
        second=found[1],
        deviation=standard_error([rows / defined for rows in influences]),
        possible=possible,
    )
