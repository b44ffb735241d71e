"""The noise laws of released sums along one step that moves several of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.pumba.draws import FloatArray
from core.pumba.gram_laws import Coordinate, GramTarget
from core.pumba.laws import truncated, truncated_gaussian, truncated_laplace
from core.pumba.pooled import ProductLaw
from core.statistics import NoisyStatistic


class Releases:
    """All releases behind a target, one row of ``values`` each, for K chains.

    A value that was cut off at its clamp is unknown; it is drawn given the true sum, which makes
    the others' laws what they would be without the clamp.
    """

    def __init__(self, target: GramTarget, chains: int) -> None:
        found: list[tuple[int, NoisyStatistic]] = [
            (index, one) for index, law in enumerate(target.laws) for one in _releases(law)
        ]
        self.coordinates = np.array([index for index, _ in found], dtype=np.intp)
        self.laplace = np.array([one.law.family.laplace for _, one in found], dtype=bool)
        self.scales = np.array([one.law.scale for _, one in found])
        self.values = np.repeat(np.array([[one.value] for _, one in found]), chains, axis=1)
        self._cut = [(row, one) for row, (_, one) in enumerate(found) if one.value in one.clamped]

    def renew(self, theta: FloatArray, generator: np.random.Generator) -> None:
        """Draw what was cut off, given the sums θ (c, K)."""
        for row, one in self._cut:
            below = one.value == one.clamped[0]
            low, high = (-np.inf, one.value) if below else (one.value, np.inf)
            true = theta[self.coordinates[row]]
            self.values[row] = truncated(one.law, true, low, high, generator)


def _releases(law: Coordinate | None) -> Sequence[NoisyStatistic]:
    return () if law is None else law.releases


class Step:
    """Moving all sums along one vector: which releases it concerns, and draws of its length."""

    def __init__(self, vector: FloatArray, releases: Releases) -> None:
        concerned = np.flatnonzero(vector[releases.coordinates])
        laplace = releases.laplace[concerned]
        self._releases = releases
        self._laplace, self._normal = concerned[laplace], concerned[~laplace]
        self._vector = vector
        self._rates = self._rate(self._laplace)
        precisions = self._rate(self._normal) ** 2
        total = float(precisions.sum())
        self._weights = precisions / total if total else precisions
        self._sd = total**-0.5 if total else 0.0

    def _rate(self, rows: FloatArray) -> FloatArray:
        """How many noise scales a unit step is, for each of these releases."""
        moved = self._vector[self._releases.coordinates[rows]]
        result: FloatArray = np.abs(moved) / self._releases.scales[rows]
        return result

    def _places(self, rows: FloatArray, theta: FloatArray) -> FloatArray:
        """Step lengths at which each release equals its true sum, (m, K)."""
        places = self._releases.coordinates[rows]
        gap = self._releases.values[rows] - theta[places]
        result: FloatArray = gap / self._vector[places][:, None]
        return result

    def draw(
        self, theta: FloatArray, low: FloatArray, high: FloatArray, uniform: FloatArray
    ) -> FloatArray:
        """Quantiles ``uniform`` of the step on [low, high], each (K,), from the sums θ (c, K)."""
        breaks = self._places(self._laplace, theta)
        centre = self._weights @ self._places(self._normal, theta)
        if not len(breaks):
            return truncated_gaussian(self._sd, centre, low, high, uniform)
        if len(breaks) == 1 and not self._sd:
            return truncated_laplace(1 / self._rates[0], breaks[0], low, high, uniform)
        return ProductLaw(breaks, self._rates, centre, self._sd).draw(low, high, uniform)
