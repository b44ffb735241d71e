"""Laws of noise seen from the released value: truncated draws, masses and lattice likelihoods.

All functions broadcast, work in logarithms and stay finite however far the release lies outside
the interval (inverse distribution functions, mirrored so that the interval lies in a lower tail).
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from core.errors import StatisticError
from core.statistics import Family, NoiseLaw, NoisyStatistic

FloatArray = NDArray[np.float64]
#: A number, or an array that broadcasts with the others.
Numbers = float | FloatArray

#: Beyond this many standard deviations two terms of the normal tail's expansion are exact.
FAR_TAIL = 1e3
#: Intervals narrower than this (in standard deviations) have a log density that is linear.
NARROW = 1e-5
#: Longest table of a discrete Gaussian's distribution function.
LONGEST_TABLE = 1 << 21
LOG_2 = math.log(2.0)
LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)


def truncated(
    law: NoiseLaw,
    centre: Numbers,
    low: Numbers,
    high: Numbers,
    generator: np.random.Generator,
    *,
    size: int | tuple[int, ...] | None = None,
) -> FloatArray:
    """Draw T with density proportional to the noise's density at ``centre - T`` on [low, high].

    A discrete family is taken as the continuous one of the same scale: right where its step is
    tiny against the scale; :func:`lattice_log_likelihood` serves the others.

    Parameters
    ----------
    law
        Family and scale, in units of T.
    centre, low, high
        Released value and ends, broadcast against each other; ends may be infinite or equal.
    size
        Shape of the result; the arguments must broadcast to it (default: their own shape).

    Raises
    ------
    StatisticError
        If an interval is empty or an argument is no number.
    """
    centre_, low_, high_ = _checked(centre, low, high)
    shape = np.broadcast_shapes(centre_.shape, low_.shape, high_.shape) if size is None else size
    uniform = open_uniform(generator, shape)
    if law.family.laplace:
        return truncated_laplace(law.scale, centre_, low_, high_, uniform)
    return truncated_gaussian(law.scale, centre_, low_, high_, uniform)


def open_uniform(generator: np.random.Generator, shape: int | tuple[int, ...]) -> FloatArray:
    """Uniform numbers strictly between 0 and 1, of which all logarithms are finite."""
    return np.maximum(generator.random(shape), 2.0**-54)


def truncated_laplace(
    scale: Numbers, centre: Numbers, low: Numbers, high: Numbers, uniform: Numbers
) -> FloatArray:
    """Quantiles ``uniform`` of the Laplace law at ``centre`` cut to [low, high]."""
    below = (np.asarray(low, dtype=np.float64) - centre) / scale
    above = (np.asarray(high, dtype=np.float64) - centre) / scale
    mirrored = above < 0
    near = np.where(mirrored, -above, below)
    far = np.where(mirrored, -below, above)
    # One side: an exponential from ``near`` (>= 0) on.
    outside = np.maximum(near, 0.0)
    one = outside - np.log1p(uniform * np.expm1(outside - np.maximum(far, outside)))
    # Both sides of the centre: which side, then an exponential from 0 on.
    left = -np.expm1(np.minimum(near, 0.0))
    right = -np.expm1(-np.maximum(far, 0.0))
    position = uniform * (left + right)
    # The two arguments are masses beyond the draw, so neither logarithm meets 0 or cancels.
    left_draw = np.log1p(np.minimum(position - left, 0.0))
    right_draw = -np.log1p(-np.minimum(np.maximum(position - left, 0.0), right))
    standard = np.where(near >= 0, one, np.where(position <= left, left_draw, right_draw))
    draw = centre + np.asarray(scale) * np.where(mirrored, -standard, standard)
    return cast(FloatArray, np.clip(draw, low, high))


def truncated_gaussian(
    scale: Numbers, centre: Numbers, low: Numbers, high: Numbers, uniform: Numbers
) -> FloatArray:
    """Quantiles ``uniform`` of N(centre, scale²) cut to [low, high]; a scale of 0 is allowed."""
    sigma = np.asarray(scale, dtype=np.float64)
    safe = np.where(sigma > 0, sigma, 1.0)
    below = (np.asarray(low, dtype=np.float64) - centre) / safe
    above = (np.asarray(high, dtype=np.float64) - centre) / safe
    mirrored = below > -above  # no sum: both ends may be infinite
    start, end = np.where(mirrored, -above, below), np.where(mirrored, -below, above)
    width = end - start
    log_start, log_end = log_ndtr(start), log_ndtr(end)
    # Both masses can be so small that only their ratio is a number.
    ratio = np.exp(np.minimum(_log_ratio(start, end, width, log_start - log_end), 0.0))
    share = uniform + (1.0 - np.asarray(uniform)) * ratio
    standard = ndtri_exp(log_end + np.log(share))
    standard = np.where(end < -FAR_TAIL, end - _tail_distance(-end, -np.log(share)), standard)
    narrow = width < NARROW
    if np.any(narrow):
        origin = np.where(narrow, start, 0.0)
        gap = np.where(narrow, width, 0.0)
        shifted = origin + linear_quantile(-origin - 0.5 * gap, gap, uniform)
        standard = np.where(narrow, shifted, standard)
    standard = np.where(mirrored, -standard, standard)
    draw = np.where(sigma > 0, centre + safe * standard, np.broadcast_to(centre, standard.shape))
    return cast(FloatArray, np.clip(draw, low, high))


def interval_log_mass(law: NoiseLaw, centre: Numbers, low: Numbers, high: Numbers) -> FloatArray:
    """Log of the probability that noise around ``centre`` puts into [low, high].

    Discrete families count as continuous, as in :func:`truncated`; an interval without length has
    log mass -inf.

    Raises
    ------
    StatisticError
        If an interval is empty or an argument is no number.
    """
    centre_, low_, high_ = _checked(centre, low, high)
    below, above = (low_ - centre_) / law.scale, (high_ - centre_) / law.scale
    if law.family.laplace:
        return laplace_log_mass(below, above)
    return gaussian_log_mass(below, above)


def log_density(law: NoiseLaw, distance: Numbers) -> FloatArray:
    """Log density of a continuous family, or log probability of a discrete one, at ``distance``."""
    steps = np.abs(np.asarray(distance, dtype=np.float64)) / law.scale
    shape = -steps if law.family.laplace else -0.5 * steps**2
    return shape - _log_normaliser(law)


def log_cumulative(law: NoiseLaw, distance: Numbers) -> FloatArray:
    """Log of P(noise <= distance), on the lattice where the family is discrete."""
    at = np.asarray(distance, dtype=np.float64)
    if law.family is Family.LAPLACE:
        return _laplace_log_cumulative(at / law.scale)
    if law.family is Family.GAUSSIAN:
        return log_ndtr(at / law.scale)
    # A hair above, so that a multiple of the step counts as itself after rounding.
    steps = np.floor(at / law.lattice + 1e-9)
    unit = law.scale / law.lattice
    if law.family is Family.DISCRETE_LAPLACE:
        return _discrete_laplace_log_cumulative(steps, unit)
    return _discrete_gaussian_log_cumulative(steps, unit)


def lattice_log_likelihood(statistic: NoisyStatistic, support: Numbers) -> FloatArray:
    """Log likelihood of the release at candidate true values, clamping included.

    A release at the end of its clamp is censored: all that is known is that the noisy value lay
    there or beyond.  For Laplace noise and a clamp on or outside the support's edge this is, up
    to a constant, the density itself (nothing was lost); for Gaussian noise it is not.

    Parameters
    ----------
    statistic
        Release, law and clamp.
    support
        Candidate true values, in the release's units (any shape).
    """
    true = np.asarray(support, dtype=np.float64)
    low, high = statistic.clamped
    if low is not None and statistic.value == low:
        return log_cumulative(statistic.law, low - true)
    if high is not None and statistic.value == high:
        return log_cumulative(statistic.law, true - high)
    return log_density(statistic.law, statistic.value - true)


def normal_laplace_cdf(z: Numbers, sigma: float, b: float) -> FloatArray:
    """P(N(0, sigma²) + Laplace(b) <= z).

    Source: Reed, "The normal-Laplace distribution and its relatives" (2006).
    """
    at = np.asarray(z, dtype=np.float64)
    shift = sigma**2 / (2 * b**2)
    ratio = sigma / b
    lower = np.exp(shift + at / b + log_ndtr(-at / sigma - ratio))
    upper = np.exp(shift - at / b + log_ndtr(at / sigma - ratio))
    return cast(FloatArray, np.exp(log_ndtr(at / sigma)) + 0.5 * (lower - upper))


def normal_laplace_quantile(probability: Numbers, sigma: float, b: float) -> FloatArray:
    """Inverse of :func:`normal_laplace_cdf` by bisection (to the last digits).

    Raises
    ------
    StatisticError
        If a probability does not lie strictly between 0 and 1.
    """
    wanted = np.asarray(probability, dtype=np.float64)
    if not np.all((wanted > 0) & (wanted < 1)):
        raise StatisticError("a quantile needs a probability strictly between 0 and 1")
    # One of the two terms exceeds half of any deviation.
    reach = 2 * (40.0 * sigma + b * np.log(2 / np.minimum(wanted, 1 - wanted)))
    low, high = -reach, reach
    for _ in range(90):
        middle = 0.5 * (low + high)
        below = normal_laplace_cdf(middle, sigma, b) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def _checked(
    centre: Numbers, low: Numbers, high: Numbers
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The three as arrays; refuses empty intervals and NaN."""
    centre_ = np.asarray(centre, dtype=np.float64)
    low_, high_ = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    if not (np.all(low_ <= high_) and np.all(np.isfinite(centre_))):
        raise StatisticError("a truncated law needs a finite centre and low <= high")
    return centre_, low_, high_


def _log_normaliser(law: NoiseLaw) -> float:
    """Log of the sum (or integral) of the unnormalised density."""
    unit = law.scale / law.lattice
    if law.family is Family.LAPLACE:
        return math.log(2.0 * law.scale)
    if law.family is Family.GAUSSIAN:
        return math.log(law.scale) + LOG_ROOT_2_PI
    if law.family is Family.DISCRETE_LAPLACE:
        return -math.log(math.tanh(0.5 / unit))
    if unit > 3.0:  # Poisson summation: the rest is below 2 exp(-2 pi² sigma²) < 1e-76
        return math.log(unit) + LOG_ROOT_2_PI
    steps = np.arange(1, 40)
    return math.log1p(2.0 * float(np.exp(-0.5 * (steps / unit) ** 2).sum()))


def _laplace_log_cumulative(at: FloatArray) -> FloatArray:
    upper = np.log1p(-0.5 * np.exp(-np.maximum(at, 0.0)))
    return cast(FloatArray, np.where(at < 0, at - LOG_2, upper))


def _discrete_laplace_log_cumulative(steps: FloatArray, unit: float) -> FloatArray:
    """P(Z <= k) is p^-k / (1 + p) below 0 and 1 - p^(k + 1) / (1 + p) from 0 on."""
    constant = math.log1p(math.exp(-1.0 / unit))
    upper = np.log1p(-np.exp(-(np.maximum(steps, 0.0) + 1.0) / unit - constant))
    return cast(FloatArray, np.where(steps < 0, steps / unit - constant, upper))


def _discrete_gaussian_log_cumulative(steps: FloatArray, unit: float) -> FloatArray:
    """By summing the probabilities from nine standard deviations below on."""
    if steps.size == 0:
        return steps.copy()
    # By symmetry only the lower half is summed: P(Z <= k) = 1 - P(Z <= -k - 1).
    lower = np.where(steps < 0, steps, -steps - 1.0)
    first = float(lower.min()) - math.ceil(9.0 * unit) - 1.0
    if -first > LONGEST_TABLE:  # the steps are tiny against sigma, or the value absurdly far
        return log_ndtr((steps + 0.5) / unit)
    support = np.arange(first, 0.0)
    masses = -0.5 * (support / unit) ** 2 - _log_normaliser(
        NoiseLaw(Family.DISCRETE_GAUSSIAN, unit)
    )
    table = np.logaddexp.accumulate(masses)
    logs = table[(lower - first).astype(np.int64)]
    return cast(FloatArray, np.where(steps < 0, logs, np.log1p(-np.exp(logs))))


def laplace_log_mass(below: FloatArray, above: FloatArray) -> FloatArray:
    """Log probability of [below, above] under the standard Laplace law."""
    mirrored = above < 0
    near, far = np.where(mirrored, -above, below), np.where(mirrored, -below, above)
    start = np.maximum(near, 0.0)
    with np.errstate(divide="ignore"):  # an interval without length has log mass -inf
        one = -start - LOG_2 + np.log(-np.expm1(start - np.maximum(far, start)))
        inside = -np.expm1(np.minimum(near, 0.0)) - np.expm1(-np.maximum(far, 0.0))
        both = np.log(inside) - LOG_2
    return cast(FloatArray, np.where(near >= 0, one, both))


def gaussian_log_mass(below: FloatArray, above: FloatArray) -> FloatArray:
    """Log probability of [below, above] under the standard normal law."""
    mirrored = below > -above  # no sum: both ends may be infinite
    start, end = np.where(mirrored, -above, below), np.where(mirrored, -below, above)
    width = end - start
    log_start, log_end = log_ndtr(start), log_ndtr(end)
    log_ratio = np.minimum(_log_ratio(start, end, width, log_start - log_end), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # without length: log mass -inf
        mass = log_end + np.log(-np.expm1(log_ratio))
        middle = np.where(width < NARROW, 0.5 * (start + end), 0.0)
        narrow = -0.5 * middle**2 - LOG_ROOT_2_PI + np.log(width)
    return cast(FloatArray, np.where(width < NARROW, narrow, mass))


def _log_ratio(
    start: FloatArray, end: FloatArray, width: FloatArray, plain: FloatArray
) -> FloatArray:
    """Log of Phi(start) / Phi(end), from the tail's expansion where ``plain`` would cancel."""
    far = end < -FAR_TAIL
    if not np.any(far):
        return plain
    near = np.where(far, -end, 1.0)
    gap = np.where(far, width, 0.0)
    return np.where(far, -(near * gap + 0.5 * gap**2 + np.log1p(gap / near)), plain)


def _tail_distance(near: FloatArray, depth: FloatArray) -> FloatArray:
    """How far beyond ``near`` the normal tail has fallen by ``depth`` in logarithms.

    Solves ``near t + t²/2 + t/near = depth``; what is left out is of order near**-4.
    """
    start = np.maximum(near, 1.0)
    slope = start + 1.0 / start
    return 2.0 * depth / (slope + np.sqrt(slope**2 + 2.0 * depth))


def linear_quantile(slope: FloatArray, width: FloatArray, uniform: Numbers) -> FloatArray:
    """Quantile on [0, width] of a density proportional to exp(slope t)."""
    tilt = slope * width
    flat = np.abs(tilt) < 1e-9
    safe = np.where(flat, 1.0, tilt)
    # Mirrored for a rising density, so that expm1 never overflows.
    share = np.where(safe > 0, 1.0 - np.asarray(uniform), uniform)
    curved = -np.log1p(share * np.expm1(-np.abs(safe))) / np.abs(safe)
    curved = np.where(safe > 0, 1.0 - curved, curved)
    return width * np.where(flat, uniform, curved)
