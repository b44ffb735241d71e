"""The likelihood of one release as a measure on the line of true values.

Three kinds: the noise's density around the release, the probability of a censored release, and a
table on a lattice that is coarse against the noise.  Each knows its log value, its log mass on
intervals and how to draw on intervals.
"""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from core.errors import StatisticError
from core.pumba.laws import (
    LOG_ROOT_2_PI,
    FloatArray,
    Numbers,
    gaussian_log_mass,
    laplace_log_mass,
    lattice_log_likelihood,
    log_cumulative,
    log_density,
    truncated_gaussian,
    truncated_laplace,
)
from core.statistics import Family, NoiseLaw, NoisyStatistic

IndexArray = NDArray[np.int64]

#: Noise with a scale of fewer steps than this is taken on its lattice, other noise as continuous:
#: the density changes by less than 1 / (24 · 25²) in the mean over a step.
COARSE = 25.0
LONGEST_LATTICE = 1 << 20
BISECTIONS = 60


class Likelihood(Protocol):
    """What the samplers of sums need to know about one release."""

    def log(self, true: FloatArray) -> FloatArray:
        """Log likelihood at true values, up to a constant."""
        ...

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log of its integral (or sum) over [low, high], up to the same constant."""
        ...

    def draw(self, low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
        """Quantiles ``uniform`` of the true value on [low, high]."""
        ...


def likelihood(statistic: NoisyStatistic, low: float, high: float) -> Likelihood:
    """The likelihood of a release whose true value lies in [low, high]."""
    law = statistic.law
    coarse = law.family.discrete and law.scale < COARSE * law.lattice
    if coarse and (high - low) / law.lattice <= LONGEST_LATTICE:
        return LatticeLikelihood(statistic, low, high)
    continuous = Family.LAPLACE if law.family.laplace else Family.GAUSSIAN
    smooth = NoiseLaw(continuous, law.scale)
    first, last = statistic.clamped
    if first is not None and statistic.value == first:
        return CensoredLikelihood(smooth, first, upper=False)
    if last is not None and statistic.value == last:
        return CensoredLikelihood(smooth, last, upper=True)
    return DensityLikelihood(smooth, statistic.value)


class DensityLikelihood:
    """A release that was not cut off; ``centre`` may be an array, one release a row."""

    def __init__(self, law: NoiseLaw, centre: Numbers) -> None:
        self._law = law
        self._centre = np.asarray(centre, dtype=np.float64)

    def log(self, true: FloatArray) -> FloatArray:
        """Log density of the noise."""
        return log_density(self._law, self._centre - true)

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log probability of the interval around the release."""
        below = (low - self._centre) / self._law.scale
        above = (high - self._centre) / self._law.scale
        mass = laplace_log_mass if self._law.family.laplace else gaussian_log_mass
        return mass(below, above)

    def draw(self, low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
        """Truncated noise around the release."""
        quantile = truncated_laplace if self._law.family.laplace else truncated_gaussian
        return quantile(self._law.scale, self._centre, low, high, uniform)


class CensoredLikelihood:
    """A release at the end of its clamp: P(noise <= end - true), or >= for an upper end.

    In ``x = (end - true) / scale`` the likelihood is the distribution function F of the standard
    noise, whose integral G(x) = E max(x - noise, 0) is known in closed form.
    """

    def __init__(self, law: NoiseLaw, end: float, *, upper: bool) -> None:
        self._law = law
        self._end = end
        self._sign = -1.0 if upper else 1.0

    def log(self, true: FloatArray) -> FloatArray:
        """Log probability that the noisy value lay at the end or beyond."""
        return log_cumulative(self._law, self._sign * (self._end - true))

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log integral of that probability."""
        start, end = self._standard(low, high)
        upper, lower = self._log_integral(end), self._log_integral(start)
        with np.errstate(divide="ignore"):  # an interval without length has log mass -inf
            mass = upper + np.log(-np.expm1(np.minimum(lower - upper, 0.0)))
            narrow = self._log_value(0.5 * (start + end)) + np.log(end - start)
        mass = np.where(upper - lower < 1e-6, narrow, mass)
        return cast(FloatArray, mass + np.log(self._law.scale))

    def draw(self, low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
        """By bisection on log G, which is increasing."""
        start, end = self._standard(low, high)
        upper, lower = self._log_integral(end), self._log_integral(start)
        # In x the quantile 1 - u belongs to the true value's quantile u, or u where mirrored.
        share = 1.0 - uniform if self._sign > 0 else uniform
        target = upper + np.log(share + (1.0 - share) * np.exp(np.minimum(lower - upper, 0.0)))
        for _ in range(BISECTIONS):
            middle = 0.5 * (start + end)
            below = self._log_integral(middle) < target
            start, end = np.where(below, middle, start), np.where(below, end, middle)
        true = self._end - self._sign * self._law.scale * 0.5 * (start + end)
        return np.clip(true, low, high)

    def _standard(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        ends = [self._sign * (self._end - edge) / self._law.scale for edge in (low, high)]
        first, second = np.broadcast_arrays(*ends)
        return (second, first) if self._sign > 0 else (first, second)

    def _log_value(self, x: FloatArray) -> FloatArray:
        return log_cumulative(NoiseLaw(self._law.family, 1.0), x)

    def _log_integral(self, x: FloatArray) -> FloatArray:
        if self._law.family is Family.LAPLACE:
            positive = np.maximum(x, 0.0)
            return cast(
                FloatArray,
                np.where(x < 0, x - np.log(2.0), np.log(positive + 0.5 * np.exp(-positive))),
            )
        far = np.minimum(x, -20.0) ** -2.0  # Mills ratio expanded: G = phi / x² (1 - 3/x² + ...)
        series = np.log1p(far * (-3.0 + far * (15.0 + far * (-105.0 + far * 945.0))))
        tail = -0.5 * x**2 - LOG_ROOT_2_PI + np.log(far) + series
        near = np.maximum(x, -20.0)
        density = -0.5 * near**2 - LOG_ROOT_2_PI
        # Above 8 the density is nothing beside x; below, x * Phi / phi is well scaled.
        low = density + np.log1p(np.minimum(near, 8.0) * _mills(np.minimum(near, 8.0)))
        high = np.log(np.maximum(near, 8.0))
        return cast(FloatArray, np.where(x < -20.0, tail, np.where(x > 8.0, high, low)))


def _mills(x: FloatArray) -> FloatArray:
    """Phi(x) / phi(x)."""
    return cast(FloatArray, np.exp(log_ndtr(x) + 0.5 * x**2 + LOG_ROOT_2_PI))


class LatticeLikelihood:
    """A table of the likelihood on the multiples of a coarse step; honours a clamp."""

    def __init__(self, statistic: NoisyStatistic, low: float, high: float) -> None:
        self.step = statistic.law.lattice
        # The true value differs from the release by whole steps.
        first = np.ceil((low - statistic.value) / self.step - 1e-9)
        last = np.floor((high - statistic.value) / self.step + 1e-9)
        if last < first:
            raise StatisticError("no multiple of the noise's step lies within the bounds")
        self._first = float(first)
        self._value = statistic.value
        self._statistic = statistic
        points = statistic.value + self.step * np.arange(first, last + 1)
        logs = lattice_log_likelihood(statistic, points)
        # Sums from below and from above: the smaller one of an interval does not cancel.
        self._below = np.concatenate([[-np.inf], np.logaddexp.accumulate(logs)])
        self._above = np.concatenate([np.logaddexp.accumulate(logs[::-1])[::-1], [-np.inf]])

    def log(self, true: FloatArray) -> FloatArray:
        """Log probability of the release."""
        return lattice_log_likelihood(self._statistic, true)

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log sum over the lattice points of the interval."""
        start, end = self._indices(low, high)
        _, large, small = self._sums(start, end)
        with np.errstate(divide="ignore"):  # no point inside: log mass -inf
            mass = large + np.log(-np.expm1(np.minimum(small - large, 0.0)))
        return cast(FloatArray, np.where(end > start, mass, -np.inf))

    def draw(self, low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
        """A lattice point of the interval."""
        start, end = self._indices(low, high)
        from_below, large, small = self._sums(start, end)
        target = large + np.log(uniform + (1.0 - uniform) * np.exp(np.minimum(small - large, 0.0)))
        up = np.searchsorted(self._below, target, side="left") - 1
        down = len(self._above) - 1 - np.searchsorted(self._above[::-1], target, side="left")
        index = np.clip(np.where(from_below, up, down), start, np.maximum(end - 1, start))
        return self._value + self.step * (self._first + index)

    def _sums(
        self, start: IndexArray, end: IndexArray
    ) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Whether to sum from below, and the log sums whose difference is the interval's."""
        from_below = self._below[end] < self._above[start]
        large = np.where(from_below, self._below[end], self._above[start])
        small = np.where(from_below, self._below[start], self._above[end])
        # An empty interval at an end of the table has two sums of nothing.
        return from_below, np.where(end > start, large, 0.0), small

    def points(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The lattice points within intervals (rows,), one interval a row, padded with NaN."""
        start, end = self._indices(low, high)
        offsets = start[:, None] + np.arange(max(int((end - start).max(initial=1)), 1))
        points = self._value + self.step * (self._first + offsets)
        return cast(FloatArray, np.where(offsets < end[:, None], points, np.nan))

    def _indices(self, low: FloatArray, high: FloatArray) -> tuple[IndexArray, IndexArray]:
        """First point inside and the one after the last, as indices into the sums from below."""
        start = np.ceil((low - self._value) / self.step - 1e-9) - self._first
        end = np.floor((high - self._value) / self.step + 1e-9) - self._first + 1.0
        size = len(self._below) - 1
        first = np.clip(start, 0, size).astype(np.int64)
        return first, np.clip(end, first, size).astype(np.int64)
