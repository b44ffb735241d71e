"""From a whole noisy matrix to a positive definite one: Stein shrinkage and projection.

All of this is post-processing of released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Smallest eigenvalue of a fitted correlation matrix.
EIGENVALUE_FLOOR = 1e-9


def positive_variances(values: FloatArray, sigmas: FloatArray) -> FloatArray:
    """Second moments in [0, 1] given noisy ones: the mean of the truncated normal law.

    That is the posterior mean under a flat prior; it follows the noisy value where the noise is
    small, and is above 0 and below 1 always.

    >>> positive_variances(np.array([0.25, -0.3]), np.array([1e-9, 0.1])).round(4).tolist()
    [0.25, 0.0283]
    """
    from scipy.special import log_ndtr

    below, above = -values / sigmas, (1 - values) / sigmas
    # Mirrored where the interval lies in the upper tail, so that masses keep their digits.
    flip = below > 0
    low, high = np.where(flip, -above, below), np.where(flip, -below, above)
    log_low, log_high = log_ndtr(low), log_ndtr(high)
    log_mass = log_high + np.log(-np.expm1(np.minimum(log_low - log_high, -1e-300)))
    root = 0.5 * np.log(2 * np.pi)
    density_low = np.exp(np.minimum(-0.5 * low**2 - root - log_mass, 700.0))
    density_high = np.exp(np.minimum(-0.5 * high**2 - root - log_mass, 700.0))
    shift = np.where(flip, -1.0, 1.0) * (density_low - density_high)
    means = values + sigmas * shift
    smallest = np.minimum(1e-3 * sigmas, 0.5)
    result: FloatArray = np.clip(means, smallest, 1.0)
    return result


@dataclass(frozen=True)
class Shrinkage:
    """A soft threshold in standard deviations, and the unbiased estimate of its squared error."""

    threshold: float
    risk: float


def stein_shrinkage(values: FloatArray, sigmas: FloatArray) -> Shrinkage:
    """The soft threshold of least estimated risk (Donoho and Johnstone 1995, SureShrink).

    Parameters
    ----------
    values, sigmas
        Noisy numbers and their standard deviations, one-dimensional.

    Notes
    -----
    The threshold is t sigma_i for entry i.  Its risk is estimated without bias by
    Σ sigma² (1 - 2 [|z| <= t sigma] + min(|z|/sigma, t)²) (Stein 1981).
    """
    if not values.size:
        return Shrinkage(0.0, 0.0)
    scores = np.abs(values) / sigmas
    order = np.argsort(scores, kind="stable")
    scores, weights = scores[order], sigmas[order] ** 2
    total = float(weights.sum())
    # With t at the i-th score: entries 0..i lie below it.
    small = np.cumsum(weights)
    energy = np.cumsum(weights * scores**2)
    risks = total - 2 * small + energy + (total - small) * scores**2
    best = int(np.argmin(risks))
    if total <= float(risks[best]):
        return Shrinkage(0.0, total)
    return Shrinkage(float(scores[best]), max(float(risks[best]), 0.0))


def soft_threshold(values: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Move every value towards 0 by its threshold, and no further than 0."""
    shrunk: FloatArray = np.sign(values) * np.maximum(np.abs(values) - thresholds, 0.0)
    return shrunk


def to_correlation(matrix: FloatArray, variances: FloatArray) -> FloatArray:
    """Divide by standard deviations; unit diagonal, entries cut to [-1, 1]."""
    scale = 1.0 / np.sqrt(variances)
    correlation: FloatArray = np.clip(matrix * np.outer(scale, scale), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def nearest_correlation(correlation: FloatArray, floor: float = EIGENVALUE_FLOOR) -> FloatArray:
    """A positive definite correlation matrix: eigenvalues raised to the floor, diagonal 1 again.

    The matrix comes back as it is where its eigenvalues clear the floor.
    """
    symmetric = (correlation + correlation.T) / 2
    if _positive_definite(symmetric, floor):
        return symmetric
    eigenvalues, vectors = np.linalg.eigh(symmetric)
    raised = (vectors * np.maximum(eigenvalues, floor)) @ vectors.T
    scale = 1.0 / np.sqrt(raised.diagonal())
    projected: FloatArray = raised * np.outer(scale, scale)
    projected = (projected + projected.T) / 2
    np.fill_diagonal(projected, 1.0)
    return projected


def _positive_definite(symmetric: FloatArray, floor: float) -> bool:
    """Whether all eigenvalues clear the floor, by the attempt to factorise; fails fast."""
    try:
        np.linalg.cholesky(symmetric - floor * np.eye(len(symmetric)))
    except np.linalg.LinAlgError:
        return False
    return True


def shrunk_matrix(
    matrix: FloatArray, sigmas: FloatArray, *, target: FloatArray | None = None
) -> FloatArray:
    """Stein-shrunk, positive definite version of a noisy matrix in the unit box.

    Parameters
    ----------
    matrix, sigmas
        Noisy second moments and their standard deviations, (d, d).
    target
        Positive definite matrix whose correlations the noisy ones are shrunk to, and whose
        variances are kept; no correlations, and the truncated means of the noisy variances,
        unless given.
    """
    if target is None:
        variances = positive_variances(matrix.diagonal().copy(), sigmas.diagonal().copy())
        correlation = np.eye(len(matrix))
    else:
        variances = target.diagonal().copy()
        correlation = to_correlation(target, variances)
    upper = np.triu_indices(len(matrix), 1)
    deviations = np.sqrt(variances)
    unit = 1.0 / np.outer(deviations, deviations)[upper]
    residuals, noise = matrix[upper] * unit - correlation[upper], sigmas[upper] * unit
    threshold = stein_shrinkage(residuals, noise).threshold
    shrunk = np.zeros_like(matrix)
    shrunk[upper] = correlation[upper] + soft_threshold(residuals, threshold * noise)
    shrunk = np.clip(shrunk + shrunk.T, -1.0, 1.0)
    np.fill_diagonal(shrunk, 1.0)
    result: FloatArray = nearest_correlation(shrunk) * np.outer(deviations, deviations)
    return result
