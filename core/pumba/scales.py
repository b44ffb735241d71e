"""From the standard deviation of noise to the scale of its family."""

from __future__ import annotations

import math

from core.errors import StatisticError
from core.statistics import Family


def scale_of(family: Family, sd: float, step: float = 1.0) -> float:
    """The scale (b or sigma) at which a family has a standard deviation.

    Raises
    ------
    StatisticError
        For a standard deviation that is no finite number above 0.

    >>> round(scale_of(Family.LAPLACE, 2.0), 6)
    1.414214
    """
    if not (math.isfinite(sd) and sd > 0):
        raise StatisticError("a standard deviation of noise must be a finite number above 0")
    if family is Family.LAPLACE:
        return sd / math.sqrt(2.0)
    if family is Family.DISCRETE_LAPLACE:
        # sd = step / (√2 sinh(step / 2b)), solved for b.
        return step / (2.0 * math.asinh(step / (math.sqrt(2.0) * sd)))
    if family is Family.DISCRETE_GAUSSIAN and sd < 1.5 * step:
        return step * _discrete_sigma(sd / step)
    return sd


def _discrete_sigma(sd: float) -> float:
    """Sigma of the discrete Gaussian on whole numbers with this sd, by bisection."""
    low, high = 0.0, max(2.0 * sd, 1.0)
    for _ in range(80):
        middle = (low + high) / 2.0
        weights = [math.exp(-((k / middle) ** 2) / 2.0) for k in range(1, 40)]
        second = 2.0 * sum(k * k * weight for k, weight in enumerate(weights, 1))
        below = second < sd * sd * (1.0 + 2.0 * sum(weights))
        low, high = (middle, high) if below else (low, middle)
    return high
