"""Intervals of audit figures: percentile bootstrap, and its first-order limit for large sums.

Seeds are explicit and everything here is free: rows are redrawn to see how much a figure would
move, nothing is released by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from core.audit.worlds import World
from core.errors import EstimationError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: Both ends, or neither where too few redrawn tables had the figure.
Interval = tuple[float, float] | tuple[None, None]
NO_INTERVAL: Interval = (None, None)

#: A figure must exist in at least this share of the redrawn tables.
DEFINED = 0.9
#: Drawing one cell of a multinomial table takes about as long as drawing this many rows.
MULTINOMIAL_CELL = 25


def bootstrap(
    worlds: World | Sequence[World],
    statistic: Callable[..., float | None],
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
    centre: float | None = None,
) -> Interval:
    """Percentile interval of a figure of one or several worlds; rows of each are redrawn.

    Parameters
    ----------
    worlds
        One world or several; each is redrawn with replacement, independently of the others.
    statistic
        Figure of the redrawn worlds, in the same order; None or NaN where it is undefined.
    draws
        Redrawn tables.
    level
        Coverage, between 0 and 1.
    seed
        Of the redrawing.
    centre
        See :func:`percentiles`.

    Returns
    -------
    tuple
        Both ends, or two times None: no rows, or undefined in more than a tenth of the draws.

    Notes
    -----
    Costs nothing; the interval is as private as the worlds.  Efron (1979), "Bootstrap methods".
    """
    several = (worlds,) if isinstance(worlds, World) else tuple(worlds)
    if not several or any(world.rows == 0 for world in several):
        return NO_INTERVAL
    generator = np.random.default_rng(seed)

    def figure() -> float | None:
        drawn = [
            world.take(generator.integers(0, world.rows, world.rows, dtype=np.int64))
            for world in several
        ]
        return statistic(*drawn)

    return percentiles([figure() for _ in range(draws)], level=level, centre=centre)


def bootstrap_table(
    counts: IntArray,
    statistic: Callable[[IntArray], float | None],
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
    centre: float | None = None,
) -> Interval:
    """:func:`bootstrap` for a function of a contingency table: the table is redrawn (multinomial).

    The law is that of redrawing rows, which is what happens where that is cheaper.

    Parameters
    ----------
    counts
        Table of any shape.
    statistic
        Figure of a table of that shape.
    """
    rows = int(counts.sum())
    if rows == 0:
        return NO_INTERVAL
    generator = np.random.default_rng(seed)
    shares = counts.ravel() / rows
    belongs = np.repeat(np.arange(counts.size), counts.ravel())

    def redrawn() -> IntArray:
        if MULTINOMIAL_CELL * counts.size < rows:
            return generator.multinomial(rows, shares).astype(np.int64)
        return np.bincount(belongs[generator.integers(0, rows, rows)], minlength=counts.size)

    found = [statistic(redrawn().reshape(counts.shape)) for _ in range(draws)]
    return percentiles(found, level=level, centre=centre)


def percentiles(
    found: Sequence[float | None] | FloatArray, *, level: float, centre: float | None = None
) -> Interval:
    """The middle ``level`` of redrawn figures.

    Parameters
    ----------
    centre
        The figure itself, where redrawing biases it: distances and information only grow when
        noise is added, and redrawing adds as much again as the rows had to begin with.  The draws
        are then shifted so that their mean is the figure.

    Examples
    --------
    >>> percentiles([3.0, 1.0, None, 2.0], level=0.5)
    (None, None)
    >>> percentiles([float(i) for i in range(101)], level=0.9, centre=10.0)
    (-35.0, 55.0)
    """
    _check_level(level)
    values = np.array([math.nan if one is None else one for one in found], dtype=np.float64)
    kept = values[np.isfinite(values)]
    if kept.size == 0 or kept.size < DEFINED * values.size:
        return NO_INTERVAL
    if centre is not None:
        kept = kept - kept.mean() + centre
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def normal_interval(value: float, deviation: float, *, level: float = 0.95) -> tuple[float, float]:
    """Normal interval of a figure with a standard error.

    >>> [round(end, 2) for end in normal_interval(10.0, 1.0)]
    [8.04, 11.96]
    """
    _check_level(level)
    reach = NormalDist().inv_cdf((1 + level) / 2) * deviation
    return value - reach, value + reach


def share_interval(value: float, deviation: float, level: float) -> tuple[float, float]:
    """Normal interval of a share, cut to 0 and 1.

    >>> share_interval(0.01, 0.02, 0.95)[0]
    0.0
    """
    low, high = normal_interval(value, deviation, level=level)
    return max(0.0, low), min(1.0, high)


def standard_error(influences: Sequence[FloatArray]) -> float:
    """Standard error of a figure from the influence of every row: the bootstrap's limit.

    One pass over the rows replaces redrawing them; for means of hundreds of distances that is the
    difference between a tenth of a second and a minute.

    Parameters
    ----------
    influences
        One array a table, not empty: how much the figure would move, to first order, if the
        table's share of rows like this one grew.  A constant may be left in.

    Notes
    -----
    Costs nothing.  Infinitesimal jackknife: Efron (1982), "The jackknife, the bootstrap and other
    resampling plans", chapter 6.
    """
    return math.sqrt(sum(float(rows.var()) / len(rows) for rows in influences))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise EstimationError("the coverage of an interval lies between 0 and 1")
