"""Moves of many cells at once, for tables whose releases tie the cells to one another.

The whole counts are the rounded values of a continuous vector whose density is constant on unit
cubes; any sampler of that vector samples the counts.  Given its Laplace noises' variances (a
scale mixture of normals), the vector is nearly normal, with the mean and covariance of generalised
least squares.  So it is moved by an autoregressive step of that normal law, and Metropolis's rule
corrects for rounding, bounds and censored releases.

Sources: Park and Casella, "The Bayesian Lasso" (2008), for the mixture; Cotter, Roberts, Stuart
and White, "MCMC methods for functions" (2013), for the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.pumba.laws import FloatArray
from core.pumba.noisy_table import TableQuery

IntArray = NDArray[np.int64]
Curve = Callable[[FloatArray], FloatArray]

#: Cells at least this many standard deviations above 0 move in blocks.
FAR = 2.0
#: Largest block under one covariance, and where each chain has its own.
LARGEST, LARGEST_MIXED = 150, 16
#: Shares of its present value that the vector keeps in a step.
KEPT = (0.0, 0.7, 0.95)


@dataclass(frozen=True, eq=False)
class Blocks:
    """What block moves need to know of a table.

    Attributes
    ----------
    weights
        (releases, cells).
    values, scales
        Of each release.
    laplace, censored
        Which releases have Laplace noise, and which were cut off.
    curves
        Log likelihood of each release at weighted sums.
    top
        Largest count of each cell.
    fixed
        Whether the cells' sum is exact.
    far
        Cells that move in blocks.
    """

    weights: FloatArray
    values: FloatArray
    scales: FloatArray
    laplace: NDArray[np.bool_]
    censored: NDArray[np.bool_]
    curves: Sequence[Curve]
    top: FloatArray
    fixed: bool
    far: IntArray

    @classmethod
    def of(
        cls,
        factors: Sequence[TableQuery],
        curves: Sequence[Curve],
        top: FloatArray,
        *,
        fixed: bool,
        centre: FloatArray,
        deviation: FloatArray,
    ) -> Blocks:
        """From a table's releases and the least squares fit to them."""
        releases = [factor.statistic for factor in factors]
        return cls(
            np.array([factor.weights for factor in factors]),
            np.array([release.value for release in releases]),
            np.array([release.law.scale for release in releases]),
            np.array([release.law.family.laplace for release in releases]),
            np.array([release.value in release.clamped for release in releases]),
            curves,
            top,
            fixed,
            np.flatnonzero(centre >= FAR * deviation),
        )

    @property
    def useful(self) -> bool:
        """Whether there is a block to move."""
        return len(self.far) > 2

    @property
    def mixed(self) -> bool:
        """Whether some noise is Laplace's, so that each chain has a covariance of its own."""
        return bool(np.any(self.laplace & ~self.censored))

    def move(self, counts: FloatArray, generator: np.random.Generator) -> FloatArray:
        """The next state of each chain (chains, cells)."""
        size = min(len(self.far), LARGEST_MIXED if self.mixed else LARGEST)
        cells = generator.choice(self.far, size, replace=False)
        # With an exact sum one cell of the block takes what the others leave.
        free, basis = cells, self.weights[:, cells]
        if self.fixed:
            free, basis = cells[:-1], basis[:, :-1] - basis[:, -1:]
        sums = counts @ self.weights.T
        precision = self._precision(self.values - sums, generator)
        own = counts[:, free]
        law = _Normal.of(basis, precision, self.values - sums + own @ basis.T)
        now = own + generator.random(own.shape) - 0.5
        kept = float(generator.choice(KEPT))
        proposed, log_ratio = law.step(now, kept, generator)
        step = np.rint(proposed) - own
        moved = counts.copy()
        moved[:, free] += step
        if self.fixed:
            moved[:, cells[-1]] -= step.sum(axis=1)
        changed = sums + step @ basis.T
        log_ratio += self._log(changed, precision) - self._log(sums, precision)
        possible = np.all((moved >= 0) & (moved <= self.top), axis=1)
        accepted = possible & (np.log(1.0 - generator.random(len(counts))) < log_ratio)
        states: FloatArray = np.where(accepted[:, None], moved, counts)
        return states

    def _precision(self, residuals: FloatArray, generator: np.random.Generator) -> FloatArray:
        """Inverse variances of the noises: (1 or chains, releases)."""
        if not self.mixed:
            return (self.scales**-2)[None, :]
        # 1 / variance given the residual is inverse Gaussian.
        distance = np.maximum(np.abs(residuals), 1e-6 * self.scales)
        drawn = generator.wald(1.0 / (self.scales * distance), self.scales**-2.0)
        return np.where(self.laplace, drawn, self.scales**-2)

    def _log(self, sums: FloatArray, precision: FloatArray) -> FloatArray:
        """Log likelihood of all releases, given the variances of those with Laplace noise."""
        terms = np.where(self.censored, 0.0, precision * (self.values - sums) ** 2)
        log: FloatArray = -0.5 * terms.sum(axis=1)
        for index in np.flatnonzero(self.censored).tolist():
            log += self.curves[index](sums[:, index])
        return log


def apply(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Products of matrices (1 or chains, a, b) with vectors (chains, b)."""
    if len(matrices) == 1:
        shared: FloatArray = vectors @ matrices[0].T
        return shared
    products: FloatArray = (matrices @ vectors[..., None])[..., 0]
    return products


@dataclass(frozen=True, eq=False)
class _Normal:
    """N(mean, root rootᵀ), one a chain or one root for all."""

    mean: FloatArray
    root: FloatArray
    inverse: FloatArray  #: of the root

    @classmethod
    def of(cls, basis: FloatArray, precision: FloatArray, target: FloatArray) -> _Normal:
        """Least squares of ``target`` on ``basis``, and room for what rounding adds."""
        weighted: FloatArray = basis.T * precision[:, None, :]
        covariance = cast(FloatArray, np.linalg.inv(weighted @ basis))
        mean = apply(covariance, apply(weighted, target))
        root = np.linalg.cholesky(covariance + np.eye(basis.shape[1]) / 12.0)
        return cls(mean, cast(FloatArray, root), cast(FloatArray, np.linalg.inv(root)))

    def step(
        self, now: FloatArray, kept: float, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """A reversible step, and log N(now) - log N(proposed)."""
        before = apply(self.inverse, now - self.mean)
        fresh = generator.standard_normal(now.shape)
        after = kept * before + np.sqrt(1.0 - kept**2) * fresh
        proposed = self.mean + apply(self.root, after)
        return proposed, 0.5 * ((after**2).sum(axis=1) - (before**2).sum(axis=1))
