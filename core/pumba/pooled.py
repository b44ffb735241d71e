"""Products of noise laws on a line: several releases of one sum, or one step that moves several.

The log density of Laplace releases is piecewise linear, with breaks at the released values;
Gaussian ones add one parabola.  Masses and draws are therefore exact, piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from scipy.special import logsumexp

from core.pumba.draws import FloatArray
from core.pumba.laws import gaussian_log_mass, truncated_gaussian, truncated_laplace
from core.statistics import NoisyStatistic

#: Slopes below this share of the steepest count as this steep, so that they have an inverse.
FLAT = 1e-12
#: What a generator's uniform draw in (0, 1] is at least.
SMALLEST_UNIFORM = 2.0**-53


class ProductLaw:
    """Density ∝ exp(-Σ rate_m |x - place_m| - (x - centre)² / (2 sd²)) on K lines at once.

    Parameters
    ----------
    places
        (m, K): breaks.
    rates
        (m,): rates above 0.
    centre, sd
        (K,) and a number: the normal factor; ``sd`` 0 leaves it out (m is then at least 1).
    """

    def __init__(
        self, places: FloatArray, rates: FloatArray, centre: FloatArray, sd: float
    ) -> None:
        self._sd = sd
        self._origin = centre if sd else places[0]
        order = np.argsort(places, axis=0)
        ordered = np.take_along_axis(places, order, axis=0) - self._origin
        steps = rates[order]
        total = float(rates.sum())
        start = np.zeros((1, ordered.shape[1]))
        slope = total - 2 * np.concatenate([start, np.cumsum(steps, axis=0)])
        least = FLAT * total
        self._slope = np.where(np.abs(slope) < least, least, slope)
        moved = np.cumsum(steps * ordered, axis=0)
        whole = moved[-1] if len(moved) else 0.0
        self._constant = 2 * np.concatenate([start, moved]) - whole
        infinite = np.full_like(start, np.inf)
        self._edges = np.concatenate([-infinite, ordered, infinite])

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log integral over [low, high], each (K,), up to a constant."""
        masses = self._masses(*self._pieces(low, high))
        return cast(FloatArray, logsumexp(masses, axis=0))

    def draw(self, low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
        """Quantiles ``uniform`` on [low, high], each (K,): the piece, then the place in it."""
        starts, ends = self._pieces(low, high)
        masses = self._masses(starts, ends)
        largest = masses.max(axis=0)
        shares = np.exp(masses - np.where(np.isfinite(largest), largest, 0.0))
        reached = np.cumsum(shares, axis=0)
        level = uniform * reached[-1]
        chosen = np.minimum((level > reached).sum(axis=0), len(shares) - 1)[None]

        def of(table: FloatArray) -> FloatArray:
            return cast(FloatArray, np.take_along_axis(table, chosen, axis=0)[0])

        inside = of(shares)
        rest = (level - (of(reached) - inside)) / np.where(inside > 0, inside, 1.0)
        rest = np.clip(rest, SMALLEST_UNIFORM, 1.0)
        start, end, slope = of(starts), of(ends), of(self._slope)
        if self._sd:
            x = truncated_gaussian(self._sd, self._sd**2 * slope, start, end, rest)
        else:
            top = np.where(slope > 0, end, start)
            x = truncated_laplace(1 / np.abs(slope), top, start, end, rest)
        return np.clip(x + self._origin, low, high)

    def _pieces(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of each piece within [low, high], (m + 1, K); empty ones have equal ends."""
        first, last = low - self._origin, high - self._origin
        return np.clip(self._edges[:-1], first, last), np.clip(self._edges[1:], first, last)

    def _masses(self, starts: FloatArray, ends: FloatArray) -> FloatArray:
        """Log integral over each piece."""
        slope, constant = self._slope, self._constant
        empty = starts >= ends
        if self._sd:
            shift = self._sd * slope
            first = np.where(empty, 0.0, starts / self._sd)
            last = np.where(empty, 1.0, ends / self._sd)
            size = constant + 0.5 * shift**2 + np.log(self._sd * np.sqrt(2 * np.pi))
            mass = size + gaussian_log_mass(first - shift, last - shift)
        else:
            steep = np.abs(slope)
            top = np.where(empty, 0.0, np.where(slope > 0, ends, starts))
            width = np.where(empty, 1.0, ends - np.where(empty, 0.0, starts))
            with np.errstate(divide="ignore"):  # a width that underflows has no mass
                mass = constant + slope * top + np.log(-np.expm1(-steep * width) / steep)
        return np.where(empty, -np.inf, mass)


class PooledLikelihood:
    """Likelihood of a sum that was released several times; continuous families only."""

    def __init__(self, releases: Sequence[NoisyStatistic]) -> None:
        laplace = [one for one in releases if one.law.family.laplace]
        normal = [one for one in releases if not one.law.family.laplace]
        weights = np.array([one.law.scale**-2.0 for one in normal])
        values = np.array([one.value for one in normal])
        sd = float(weights.sum() ** -0.5) if normal else 0.0
        centre = float(weights @ values / weights.sum()) if normal else 0.0
        self._laplace = laplace
        self._centre, self._sd = centre, sd
        self._law = ProductLaw(
            np.array([one.value for one in laplace]).reshape(-1, 1),
            np.array([1 / one.law.scale for one in laplace]),
            np.array([centre]),
            sd,
        )

    def log(self, true: FloatArray) -> FloatArray:
        """Log density, up to a constant."""
        total = np.zeros(np.shape(true))
        for one in self._laplace:
            total -= np.abs(true - one.value) / one.law.scale
        if self._sd:
            total -= 0.5 * ((true - self._centre) / self._sd) ** 2
        return total

    def log_mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Log integral of the density over [low, high], up to the same constant."""
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        first, last = (np.broadcast_to(end, shape).ravel() for end in (low, high))
        return self._law.log_mass(first, last).reshape(shape)

    def draw(self, low: FloatArray, high: FloatArray, uniform: FloatArray) -> FloatArray:
        """Quantiles ``uniform`` on [low, high]."""
        shape = np.broadcast_shapes(np.shape(low), np.shape(high), np.shape(uniform))
        flat = [np.broadcast_to(one, shape).ravel() for one in (low, high, uniform)]
        return self._law.draw(*flat).reshape(shape)
