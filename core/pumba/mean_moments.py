"""Moments of bounded data behind draws of their sums, and the error of a standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.pumba.draws import FloatArray
from core.pumba.sums import Support

#: Standard deviations below this share of the range are rounding, not data.
LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of z behind each draw of the sums.

    Attributes
    ----------
    n, mean
        Rows and their mean.
    spread
        Mean squared deviation, divisor n (largest possible where squares were not released).
    variance
        The same with divisor n - 1, at most what the bounds allow a population.
    log_error
        Var(s²)/s⁴, the variance of the logarithm of the variance.
    """

    n: FloatArray
    mean: FloatArray
    spread: FloatArray
    variance: FloatArray
    log_error: FloatArray

    @classmethod
    def of(cls, support: Support, n: FloatArray, sums: FloatArray) -> Moments:
        """From sums (..., k) of z, z² and z⁴, as far as there are any, of n rows."""
        mean = sums[..., 0] / n
        largest = (support.upper - mean) * (mean - support.lower)
        if sums.shape[-1] < 2:
            return cls(n, mean, largest, largest, np.full(mean.shape, np.nan))
        spread = sums[..., 1] / n - mean**2
        least = (LEAST_SPREAD * (support.upper - support.lower)) ** 2
        spread = np.maximum(spread, least)
        # One row has no spread of its own; the bounds are all that is known then, and they leave
        # nothing to a mean that lies on one of them.
        variance = np.where(n > 1, spread * n / np.maximum(n - 1, 1), np.maximum(largest, least))
        degrees = np.maximum(n - 1, 1)
        if sums.shape[-1] < 3:
            return cls(n, mean, spread, variance, 2.0 / degrees)
        kurtosis = central_fourth(mean, spread, sums[..., 2] / n) / spread**2
        error = (kurtosis - (n - 3) / degrees) / n
        return cls(n, mean, spread, variance, np.maximum(error, 0.0))


def central_fourth(mean: FloatArray, spread: FloatArray, fourth: FloatArray) -> FloatArray:
    """Fourth central moment from the raw one, with the third central moment nearest to 0.

    With k3 the third central moment, ``fourth = k4 + 4 m k3 + 6 m² v + m⁴``; the moments exist if
    ``k3² <= v (k4 - v²)``.  That is a quadratic in k3 whose solutions are an interval.
    """
    symmetric = fourth - 6.0 * mean**2 * spread - mean**4
    middle = -2.0 * mean * spread
    inner = middle**2 + spread * (symmetric - spread**2)
    reach = np.sqrt(np.maximum(inner, 0.0))
    third = np.clip(0.0, middle - reach, middle + reach)
    fourth_central: FloatArray = np.maximum(symmetric - 4.0 * mean * third, spread**2)
    return fourth_central
