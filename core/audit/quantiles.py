"""Quantiles of numeric columns in two worlds, read off their declared cells.

Values count as evenly spread within a cell, as synthetic values are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audit.figures import Figure
from core.audit.resampling import NO_INTERVAL, bootstrap
from core.audit.worlds import World
from core.kinds import Kind
from core.schema import Column

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Quantiles that are compared.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False, repr=False)
class QuantileDifferences:
    """Quantiles of numeric and date columns in two worlds.

    Attributes
    ----------
    names
        Columns that hold a number in both worlds.
    empty
        Columns that do not.
    levels
        Which quantiles.
    first, second
        (columns, levels) quantiles in the column's own units; dates as day ordinals.
    share
        (columns, levels) absolute difference as a share of the declared range.
    low, high
        Bootstrap interval of the mean share, both None without one.
    level
        Its coverage.
    private
        True when either world is.
    """

    names: tuple[str, ...]
    empty: tuple[str, ...]
    levels: tuple[float, ...]
    first: FloatArray
    second: FloatArray
    share: FloatArray
    low: float | None
    high: float | None
    level: float
    private: bool

    def figures(self) -> tuple[Figure, ...]:
        """The mean difference, and the largest one."""
        key, title = "fidelity.quantiles", "Difference of quantiles as a share of the range"
        if not self.names:
            reason = "no numeric column holds a number in both"
            return (Figure(key, f"{title}, mean", None, "share", self.private, reason=reason),)
        caveat = "values spread evenly within their declared cells"
        if self.empty:
            caveat += f"; {len(self.empty)} columns without a number left out"
        row, column = np.unravel_index(int(self.share.argmax()), self.share.shape)
        at = f"{self.names[int(row)]} at {self.levels[int(column)]:.0%}"
        return (
            Figure(
                key,
                f"{title}, mean",
                float(self.share.mean()),
                "share",
                self.private,
                low=self.low,
                high=self.high,
                level=self.level,
                reason=caveat,
            ),
            Figure(
                f"{key}.worst",
                f"{title}, largest: {at}",
                float(self.share.max()),
                "share",
                self.private,
                reason=caveat,
            ),
        )


def quantile_differences(
    first: World,
    second: World,
    *,
    levels: tuple[float, ...] = QUANTILES,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> QuantileDifferences:
    """Quantiles of every numeric and date column in both worlds.

    Parameters
    ----------
    levels
        Which quantiles, each above 0 and at most 1.
    draws, level, seed
        Of the bootstrap interval of the mean difference.

    Notes
    -----
    Costs nothing; private when either world is.  The missing-cell and the other-cell are left out.
    """
    columns = [column for column in first.schema.columns if column.axis]
    kept: list[Column] = []
    empty: list[Column] = []
    for column in columns:
        held = [histogram(world, column).sum() for world in (first, second)]
        (kept if min(held) > 0 else empty).append(column)
    private = first.private or second.private
    found = np.zeros((2, len(kept), len(levels)))
    for place, column in enumerate(kept):
        for side, world in enumerate((first, second)):
            found[side, place] = quantiles(histogram(world, column), column, levels)
    ranges = np.array([column.axis[-1] - column.axis[0] for column in kept])
    share = np.abs(found[0] - found[1]) / np.reshape(ranges, (-1, 1))

    def mean(one: World, other: World) -> float | None:
        differences = []
        for column in kept:
            tables = histogram(one, column), histogram(other, column)
            if min(table.sum() for table in tables) == 0:
                return None
            there = [quantiles(table, column, levels) for table in tables]
            differences.append(np.abs(there[0] - there[1]) / (column.axis[-1] - column.axis[0]))
        return float(np.mean(differences))

    low, high = NO_INTERVAL
    if kept:
        narrow = [_only(world, kept) for world in (first, second)]
        low, high = bootstrap(
            narrow, mean, draws=draws, level=level, seed=seed, centre=float(share.mean())
        )
    return QuantileDifferences(
        names=tuple(column.name for column in kept),
        empty=tuple(column.name for column in empty),
        levels=levels,
        first=found[0],
        second=found[1],
        share=share,
        low=None if low is None else max(0.0, low),
        high=high,
        level=level,
        private=private,
    )


def _only(world: World, columns: list[Column]) -> World:
    """The same rows, these columns only."""
    schema = world.schema.select([column.name for column in columns])
    return World(world.name, schema, world.codes, world.rows, world.private)


def histogram(world: World, column: Column) -> IntArray:
    """Rows of each declared cell."""
    counted = np.bincount(world.codes[column.name], minlength=column.size)
    return counted[: column.declared_size]


def quantiles(counts: IntArray, column: Column, levels: tuple[float, ...]) -> FloatArray:
    """Smallest values that at least these shares of the numbers do not exceed.

    Parameters
    ----------
    counts
        (declared cells,) rows, not all zero.

    Examples
    --------
    >>> age = Column("age", Kind.INTEGER, lower=0, upper=9, bins=2)
    >>> quantiles(np.array([5, 5]), age, (0.1, 0.5, 0.9)).tolist()
    [0.0, 4.0, 8.0]
    """
    edges = np.asarray(column.axis, dtype=np.float64)
    reached = np.cumsum(counts)
    wanted = np.asarray(levels) * reached[-1] - 1e-9  # a level that is reached exactly counts
    cell = np.searchsorted(reached, wanted, side="left")
    inside = (wanted - (reached[cell] - counts[cell])) / counts[cell]
    value = edges[cell] + np.clip(inside, 0.0, 1.0) * (edges[cell + 1] - edges[cell])
    if column.kind is Kind.REAL:
        return np.asarray(value, dtype=np.float64)
    whole: FloatArray = np.maximum(np.ceil(value) - 1, edges[cell])
    return whole
