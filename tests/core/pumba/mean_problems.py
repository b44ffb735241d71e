"""Bounded means to infer, and their first stage by plain rejection."""

from __future__ import annotations

import numpy as np

from core.pumba.means import BoundedMean
from core.statistics import Family, NoiseLaw, NoisyStatistic

LAPLACE, GAUSSIAN = Family.LAPLACE, Family.GAUSSIAN


def release(value, scale, family=LAPLACE, lattice=1.0, clamped=(None, None)):
    return NoisyStatistic(float(value), NoiseLaw(family, scale, lattice), clamped)


def proposals(statistic, size, rng):
    """True values by adding the noise to the release."""
    family, scale, step = statistic.law.family, statistic.law.scale, statistic.law.lattice
    if family is Family.LAPLACE:
        noise = rng.laplace(0, scale, size)
    elif family is Family.GAUSSIAN:
        noise = rng.normal(0, scale, size)
    elif family is Family.DISCRETE_GAUSSIAN and scale > 100 * step:
        noise = step * np.rint(rng.normal(0, scale, size) / step)
    else:
        reach = int(12 * scale / step) + 60
        points = np.arange(-reach, reach + 1) * step
        power = 1 if family is Family.DISCRETE_LAPLACE else 2
        mass = np.exp(-(np.abs(points / scale) ** power) / power)
        noise = rng.choice(points, size, p=mass / mass.sum())
    return statistic.value + noise


def reject(problem, draws, rng):
    """Stage 1 by plain rejection, against the support written out again."""
    kept, size = [], 400_000
    low, high = problem.lower, problem.upper
    while sum(map(len, kept)) < draws:
        n = problem.count
        if isinstance(n, NoisyStatistic):
            n = np.rint(proposals(n, size, rng))
        else:
            n = np.full(size, float(n))
        sums = [proposals(one, size, rng) for one in problem.releases]
        safe = np.maximum(n, 1)
        inside = (n >= 1) & (n * low <= sums[0]) & (sums[0] <= n * high)
        if len(sums) > 1:
            inside &= sums[1] >= sums[0] ** 2 / safe
            inside &= sums[1] <= (low + high) * sums[0] - n * low * high
        if len(sums) > 2:
            inside &= sums[2] >= sums[1] ** 2 / safe
            inside &= sums[2] <= max(low**2, high**2) * sums[1]
        kept.append(np.column_stack([n, *sums])[inside])
    return np.concatenate(kept)[:draws]


PROBLEMS = {
    "usual": BoundedMean("x", 0, 1, 200, release(100, 0.556), release(60, 5.0)),
    "gaussian": BoundedMean("x", 0, 1, 200, release(100, 2.0, GAUSSIAN), release(60, 5, GAUSSIAN)),
    "too large a square": BoundedMean("x", 0, 1, 50, release(26, 2.0), release(31, 3.0)),
    "too small a square": BoundedMean("x", -1, 1, 50, release(-20, 3.0), release(2, 4.0)),
    "sum outside": BoundedMean("x", -2, 1, 20, release(24, 4.0), release(9, 5.0, GAUSSIAN)),
    "positive bounds": BoundedMean("x", 2, 5, 30, release(92, 5.0, GAUSSIAN), release(300, 9.0)),
    "no squares": BoundedMean("x", 0, 1, 30, release(31, 2.0)),
    "quartics": BoundedMean("x", -1, 1, 60, release(5, 4.0), release(22, 5.0), release(14, 6.0)),
    "quartics at odds": BoundedMean(
        "x", -1, 1, 40, release(5, 4.0), release(12, 3.0, GAUSSIAN), release(14, 3.0)
    ),
    "noisy count": BoundedMean(
        "x", 0, 1, release(30, 2.0, Family.DISCRETE_LAPLACE), release(22, 2.0), release(17, 3.0)
    ),
    "noisy count, no squares": BoundedMean(
        "x", 1, 3, release(12, 4.0, Family.DISCRETE_GAUSSIAN), release(35, 3.0)
    ),
    "whole numbers": BoundedMean(
        "x",
        0,
        4,
        15,
        release(31, 1.5, Family.DISCRETE_LAPLACE),
        release(82, 4.0, Family.DISCRETE_GAUSSIAN),
    ),
    "whole sum": BoundedMean(
        "x", 0, 1, 12, release(11, 1.0, Family.DISCRETE_GAUSSIAN), release(9, 2.0)
    ),
    "fine steps": BoundedMean(
        "x",
        -1,
        1,
        40,
        release(8, 2.0, Family.DISCRETE_GAUSSIAN, 2.0**-20),
        release(15, 2.0, Family.DISCRETE_GAUSSIAN, 2.0**-20),
    ),
}
