"""Data-augmentation MCMC for a noisy simple regression (Ju, Awan, Gong and Rao 2022), twice.

One function is the sampler; ``chain`` is that function compiled by numba, ``interpreted_chain``
the same function in plain NumPy.  The model: x ~ N(μ, ω²), y given x ~ N(α + βx, σ²), both
clamped to [0, 1] before they are summed, conjugate normal-inverse-gamma priors.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Priors: μ | ω² ~ N(0.5, ω²/k), (α, β) | σ² ~ N(0, σ²/k I), ω² and σ² inverse gamma (shape, rate).
PRIOR_ROWS, PRIOR_SHAPE, PRIOR_RATE = 0.01, 1.0, 0.1


def interpreted_chain(
    noisy: FloatArray, scale: float, start: FloatArray, sweeps: int, generator: Any
) -> tuple[FloatArray, float]:
    """Slopes of ``sweeps`` sweeps, and the share of accepted rows.

    ``noisy`` has the sums of x, x², y, xy, y² with Laplace noise of that scale; the chain starts
    from the columns x and y of ``start`` (2, n).  A sweep draws the parameters given the imputed
    rows, then proposes every row anew from its model and accepts with the ratio of the noise
    densities of the sums; proposals are drawn at once, acceptance goes row by row because it
    depends on the rows before.
    """
    x, y, count = start[0].copy(), start[1].copy(), start.shape[1]
    slopes = np.empty(sweeps)
    accepted = 0
    for sweep in range(sweeps):
        # μ and ω² given x
        rows = PRIOR_ROWS + count
        centre = (PRIOR_ROWS * 0.5 + x.sum()) / rows
        rate = PRIOR_RATE + 0.5 * ((x - centre) ** 2).sum() + 0.5 * PRIOR_ROWS * (centre - 0.5) ** 2
        spread = np.sqrt(rate / generator.standard_gamma(PRIOR_SHAPE + 0.5 * count))
        mean = centre + spread / np.sqrt(rows) * generator.standard_normal()
        # α, β and σ² given x and y
        one, sx, sxx = rows, x.sum(), PRIOR_ROWS + (x * x).sum()
        sy, sxy = y.sum(), (x * y).sum()
        determinant = one * sxx - sx * sx
        intercept = (sxx * sy - sx * sxy) / determinant
        slope = (one * sxy - sx * sy) / determinant
        rate = PRIOR_RATE + 0.5 * max((y * y).sum() - intercept * sy - slope * sxy, 0.0)
        deviation = np.sqrt(rate / generator.standard_gamma(PRIOR_SHAPE + 0.5 * count))
        # (α, β) has covariance σ² [[n, sx], [sx, sxx]]⁻¹
        slope += deviation * np.sqrt(one / determinant) * generator.standard_normal()
        intercept = (
            sy / one - (slope * sx) / one + deviation / np.sqrt(one) * generator.standard_normal()
        )
        slopes[sweep] = slope
        # every row anew
        proposed_x = mean + spread * generator.standard_normal(count)
        proposed_y = intercept + slope * proposed_x + deviation * generator.standard_normal(count)
        allowed = scale * generator.standard_exponential(count)
        u, v = np.clip(x, 0.0, 1.0), np.clip(y, 0.0, 1.0)
        p, q = np.clip(proposed_x, 0.0, 1.0), np.clip(proposed_y, 0.0, 1.0)
        g0 = noisy[0] - u.sum()
        g1 = noisy[1] - (u * u).sum()
        g2 = noisy[2] - v.sum()
        g3 = noisy[3] - (u * v).sum()
        g4 = noisy[4] - (v * v).sum()
        distance = abs(g0) + abs(g1) + abs(g2) + abs(g3) + abs(g4)
        for i in range(count):
            h0 = g0 + u[i] - p[i]
            h1 = g1 + u[i] * u[i] - p[i] * p[i]
            h2 = g2 + v[i] - q[i]
            h3 = g3 + u[i] * v[i] - p[i] * q[i]
            h4 = g4 + v[i] * v[i] - q[i] * q[i]
            other = abs(h0) + abs(h1) + abs(h2) + abs(h3) + abs(h4)
            if other - distance < allowed[i]:
                g0, g1, g2, g3, g4, distance = h0, h1, h2, h3, h4, other
                x[i] = proposed_x[i]
                y[i] = proposed_y[i]
                accepted += 1
    return slopes, accepted / (sweeps * count)


chain = numba.njit(cache=True)(interpreted_chain)


def slopes_given(
    noisy: FloatArray, scale: float, count: int, sweeps: int, generator: np.random.Generator
) -> FloatArray:
    """Slopes of the compiled chain, started from rows that know nothing of the release."""
    start = 0.5 + 0.25 * generator.standard_normal((2, count))
    slopes: FloatArray = chain(noisy, scale, start, sweeps, generator)[0]
    return slopes
