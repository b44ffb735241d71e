"""The conjugate posterior of a linear regression: exact draws given the sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.errors import EstimationError
from core.pumba.draws import FloatArray
from core.pumba.least_squares import Units


@dataclass(frozen=True, eq=False)
class ConjugatePrior:
    """Normal–inverse-gamma prior in the units of the results, intercept first.

    β | σ² ~ N(mean, σ² precision⁻¹) and σ² ~ IG(shape, rate); precision and rate may be 0.
    """

    mean: FloatArray
    precision: FloatArray
    shape: float
    rate: float

    def __post_init__(self) -> None:
        """Freeze copies; refuse numbers that no such prior can have."""
        mean = np.array(self.mean, dtype=np.float64)
        precision = np.array(self.precision, dtype=np.float64)
        if mean.ndim != 1 or precision.shape != (len(mean), len(mean)):
            raise EstimationError("a conjugate prior needs one mean a coefficient, and a matrix")
        if not (np.isfinite(mean).all() and np.isfinite(precision).all()):
            raise EstimationError("a conjugate prior's mean and precision must be finite numbers")
        if not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] < (
            -1e-10 * max(1.0, float(np.abs(precision).max()))
        ):
            raise EstimationError("a prior precision must be symmetric with no negative direction")
        if not (math.isfinite(self.shape) and math.isfinite(self.rate)) or self.rate < 0:
            raise EstimationError("a conjugate prior's shape and rate must be finite, the rate ≥ 0")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "precision", precision)

    def check(self, coefficients: int) -> None:
        """Refuse a prior of another regression."""
        if len(self.mean) != coefficients:
            raise EstimationError(
                f"the conjugate prior is about {len(self.mean)} coefficients, the regression has "
                f"{coefficients}, the intercept included"
            )


def conjugate_draws(
    moments: FloatArray,
    units: Units,
    prior: ConjugatePrior,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Scaled coefficients (p + 1, R) and residual sd (R,) given scaled moments (p+2, p+2, R).

    Λ = X'X + Λ₀, μ = Λ⁻¹(X'y + Λ₀ m₀), σ² ~ IG(a₀ + n/2, b₀ + (y'y + m₀'Λ₀m₀ - μ'Λμ) / 2).

    Raises
    ------
    EstimationError
        The prior's shape is so negative that some draws have no proper posterior.
    """
    back = units.coefficients
    scale = units.residual**2
    mean = np.linalg.solve(back, prior.mean - units.origin)
    precision = back.T @ prior.precision @ back / scale
    stacked = np.moveaxis(moments, 2, 0)
    inner = stacked[:, :-1, :-1] + precision
    right = stacked[:, :-1, -1] + precision @ mean
    centre = np.linalg.solve(inner, right[:, :, None])[:, :, 0]
    # The quadratic forms cancel; written as residuals from the posterior mean they do not.
    contrast = np.concatenate([-centre, np.ones((len(centre), 1))], axis=1)
    residual = np.einsum("ri,rij,rj->r", contrast, stacked, contrast)
    shift = centre - mean
    penalty = np.einsum("ri,ij,rj->r", shift, precision, shift)
    shape = prior.shape + stacked[:, 0, 0] / 2
    if np.any(shape <= 0):
        raise EstimationError("the conjugate prior's shape must exceed minus half of the rows")
    rate = prior.rate / scale + (np.maximum(residual, 0.0) + penalty) / 2
    rate = np.maximum(rate, np.finfo(float).tiny)
    sd = np.sqrt(rate / generator.gamma(shape))
    factor = np.linalg.cholesky(inner)
    normal = generator.standard_normal(centre.shape)
    deviation = np.linalg.solve(np.swapaxes(factor, 1, 2), normal[:, :, None])[:, :, 0]
    coefficients: FloatArray = (centre + sd[:, None] * deviation).T
    return coefficients, sd
