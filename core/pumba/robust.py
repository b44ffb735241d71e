"""Sandwich variances from sums of degree up to 4, for one predictor.

With the moment matrix M of (1, x, y, x², xy, y²), residual e = y - b0 - b1 x and x e are
combinations of the basis, so that the meat is a quadratic form in M and never negative.

Source: White (1980), with the n / (n - 2) correction (HC1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.pumba.draws import FloatArray
from core.pumba.gram_support import MomentSupport
from core.pumba.least_squares import LeastSquares


@dataclass(frozen=True, eq=False)
class Robust:
    """Sampling distribution of intercept and slope, in scaled columns.

    Attributes
    ----------
    covariance
        (R, 2, 2).
    residual_spread
        (R,): standard error of the logarithm of the residual standard deviation.
    """

    covariance: FloatArray
    residual_spread: FloatArray

    @classmethod
    def of(
        cls,
        support: MomentSupport,
        values: FloatArray,
        fits: LeastSquares,
        chosen: list[int],
        freedom: FloatArray,
    ) -> Robust:
        """From moment matrices (R, d, d) of degree 4; ``chosen`` is (0, predictor, outcome)."""
        x, y = chosen[1] - 1, chosen[2] - 1
        scaling = support.scaling
        moments = scaling @ values @ scaling.T
        count = moments[:, 0, 0]
        b0, b1 = fits.coefficients
        one = np.ones_like(b0)
        residual = {(): -b0, (x,): -b1, (y,): one}
        times_x = {(x,): -b0, (x, x): -b1, (x, y): one}
        squared = {
            (): b0**2,
            (x,): 2 * b0 * b1,
            (y,): -2 * b0,
            (x, x): b1**2,
            (x, y): -2 * b1,
            (y, y): one,
        }
        places = {monomial: place for place, monomial in enumerate(support.basis)}
        scores = np.stack([_vector(places, terms) for terms in (residual, times_x)], axis=2)
        meat = np.swapaxes(scores, 1, 2) @ moments @ scores
        bread = fits.inverse()
        covariance = (count / freedom)[:, None, None] * (bread @ meat @ bread)
        square = _vector(places, squared)
        fourth = np.einsum("ri,rij,rj->r", square, moments, square)
        kurtosis = count * fourth / meat[:, 0, 0] ** 2
        spread = np.sqrt(np.maximum(kurtosis - 1.0, 0.0) / (4 * count))
        return cls(covariance, spread)

    def deviations(self, normal: FloatArray) -> FloatArray:
        """Deviations (2, R) with this covariance from standard normals (2, R)."""
        first = np.sqrt(np.maximum(self.covariance[:, 0, 0], np.finfo(float).tiny))
        slope = self.covariance[:, 0, 1] / first
        rest = np.sqrt(np.maximum(self.covariance[:, 1, 1] - slope**2, 0.0))
        return np.stack([first * normal[0], slope * normal[0] + rest * normal[1]])


def _vector(
    places: dict[tuple[int, ...], int], terms: dict[tuple[int, ...], FloatArray]
) -> FloatArray:
    """Coefficients (R, d) over the basis; the square of a scaled indicator is 1."""
    number = len(next(iter(terms.values())))
    vector = np.zeros((number, len(places)))
    for monomial, factor in terms.items():
        ordered = tuple(sorted(monomial))
        vector[:, places.get(ordered, 0)] += factor
    return vector
