"""Paired comparisons over folds and budgets: Wilcoxon, effect size, Holm; and means of runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

Key = TypeVar("Key", bound=Hashable)

#: Differences below it are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Paired:
    """First minus second over pairs.

    Attributes
    ----------
    pairs
        Pairs in which both have the figure.
    difference
        Median difference.
    effect
        Matched-pairs rank-biserial correlation: share of the ranks in favour of the first minus
        share against it, from -1 to 1 (Kerby 2014).
    p_value
        Two-sided, of Wilcoxon's signed-rank test without the pairs that are equal (exact up to 50
        pairs without ties); 1 when all are equal.
    first, second
        Medians.
    """

    pairs: int
    difference: float
    effect: float
    p_value: float
    first: float
    second: float


def compare(first: ArrayLike, second: ArrayLike) -> Paired | None:
    """Compare two columns of pairs; pairs with a missing figure (NaN) are left out.

    None without a pair.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != other.shape:
        raise ValueError("pairs need one value on either side")
    there = np.isfinite(one) & np.isfinite(other)
    one, other = one[there], other[there]
    if not len(one):
        return None
    difference = one - other
    difference[np.abs(difference) < ROUNDING] = 0.0
    moved = difference[difference != 0]
    effect, p_value = 0.0, 1.0
    if len(moved):
        ranks = stats.rankdata(np.abs(moved))
        effect = float((ranks * np.sign(moved)).sum() / ranks.sum())
        p_value = float(stats.wilcoxon(moved).pvalue)
    return Paired(
        len(one),
        float(np.median(difference)),
        effect,
        p_value,
        float(np.median(one)),
        float(np.median(other)),
    )


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Adjusted p-values of one family of tests (Holm 1979)."""
    adjusted: dict[Key, float] = {}
    highest = 0.0
    falling = sorted(p_values, key=lambda name: p_values[name])
    for rank, name in enumerate(falling):
        highest = max(highest, min(1.0, (len(falling) - rank) * p_values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True)
class Unpaired:
    """Difference of two means over independent runs, with its standard error."""

    difference: float
    error: float
    p_value: float


def means_apart(first: ArrayLike, second: ArrayLike) -> Unpaired:
    """Welch's comparison of the means of independent runs, two-sided (Welch 1947)."""
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    parts = np.array([one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)])
    error = float(np.sqrt(parts.sum()))
    difference = float(one.mean() - other.mean())
    if error <= ROUNDING:
        return Unpaired(difference, 0.0, 1.0 if abs(difference) < ROUNDING else 0.0)
    freedom = parts.sum() ** 2 / (parts**2 / np.array([len(one) - 1, len(other) - 1])).sum()
    return Unpaired(difference, error, float(2 * stats.t.sf(abs(difference) / error, freedom)))
