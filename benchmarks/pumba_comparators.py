"""What PUMBA is compared with: intervals for a noisy mean and for a noisy simple regression.

All of it is written from the papers' formulas, shares no code with ``core.pumba``, and works on
many data sets at once where the method allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, stdtrit

FloatArray = NDArray[np.float64]

#: Probability left out at each end.
TAIL = 0.025
#: What Ferrando, Wang and Sheldon put in place of negative eigenvalues and variances.
REPAIR = 0.1


# -- the noisy mean --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MeanReleases:
    """Noisy sums of x and x² of many data sets of the same size, with Laplace noise."""

    totals: FloatArray
    squares: FloatArray
    count: int
    scale: float  #: Laplace scale of ``totals``

    @property
    def means(self) -> FloatArray:
        """Noisy total over the number of rows."""
        return self.totals / self.count

    @property
    def variances(self) -> FloatArray:
        """Noisy mean of squares less the square of the noisy mean: negative at times."""
        return self.squares / self.count - self.means**2


def oracle(releases: MeanReleases, variance: float) -> FloatArray:
    """Wang, Kifer, Lee and Karwa 2018, with the variance known.

    The law of the noise is kept exactly, the sampling error is normal: the interval comes from
    the law of N(0, σ²/n) + Laplace(b/n).
    """
    half = normal_laplace_quantile(
        1 - TAIL, np.sqrt(variance / releases.count), releases.scale / releases.count
    )
    return _around(releases.means, half)


def plug_in(releases: MeanReleases, *, floor: bool) -> FloatArray:
    """The oracle's interval with the noisy variance; a negative one gives no interval, or 0."""
    variances = np.where(releases.variances > 0, releases.variances, 0.0 if floor else np.nan)
    half = normal_laplace_quantile(
        1 - TAIL, np.sqrt(variances / releases.count), releases.scale / releases.count
    )
    return _around(releases.means, half)


def naive_mean(releases: MeanReleases) -> FloatArray:
    """The release taken for the truth: mean ± z sd/√n, with the sd floored at 0."""
    sd = np.sqrt(np.maximum(releases.variances, 0.0) / releases.count)
    return _around(releases.means, ndtri(1 - TAIL) * sd)


def bootstrap_mean(
    releases: MeanReleases, repetitions: int, generator: np.random.Generator
) -> FloatArray:
    """Parametric bootstrap (Ferrando, Wang and Sheldon 2022) with a normal model.

    New data from the model that the release suggests, the mechanism run again, percentiles of the
    mean.  Given the model the sum of normal data is drawn directly.
    """
    sd = np.sqrt(np.maximum(releases.variances, 0.0) / releases.count)
    again = releases.means + sd * generator.standard_normal((repetitions, sd.size))
    again += generator.laplace(0.0, releases.scale / releases.count, again.shape)
    return np.quantile(again, (TAIL, 1 - TAIL), axis=0).T


def normal_laplace_cdf(z: FloatArray, sd: FloatArray, scale: float) -> FloatArray:
    """P(N(0, sd²) + Laplace(scale) <= z), elementwise; sd may be 0.

    Integrating the normal against both branches of the Laplace law, with products of a large and
    a small factor taken in logarithms.
    """
    sd = np.maximum(sd, 1e-9 * scale)
    ratio = sd / scale
    grow = np.exp(ratio**2 / 2 + z / scale + log_ndtr(-z / sd - ratio))
    fall = np.exp(ratio**2 / 2 - z / scale + log_ndtr(z / sd - ratio))
    return np.asarray(ndtr(z / sd) + (grow - fall) / 2)


def normal_laplace_quantile(probability: float, sd: FloatArray | float, scale: float) -> FloatArray:
    """The z above 0 with ``normal_laplace_cdf(z) = probability``, by bisection; NaN for NaN."""
    spread = np.asarray(sd, dtype=np.float64)
    low = np.zeros_like(spread)
    # P(A + B > a + b) <= P(A > a) + P(B > b), each of which gets half of the tail.
    high = spread * ndtri((1 + probability) / 2) - scale * np.log(1 - probability)
    for _ in range(60):
        middle = (low + high) / 2
        below = normal_laplace_cdf(middle, spread, scale) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.where(np.isnan(spread), np.nan, (low + high) / 2))


def _around(centre: FloatArray, half: FloatArray) -> FloatArray:
    return np.stack([centre - half, centre + half], axis=-1)


# -- the noisy simple regression -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LineReleases:
    """Sums x, x², y, xy, y² of many data sets of the same size, one data set a row."""

    sums: FloatArray
    count: int

    def centred(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centred sums of x², xy, y²."""
        x, xx, y, xy, yy = self.sums.T
        return xx - x * x / self.count, xy - x * y / self.count, yy - y * y / self.count


def slope_by_ols(releases: LineReleases) -> FloatArray:
    """Classical t interval of the slope; none where x² or the residuals sum to 0 or less.

    On true sums this is least squares, on noisy sums the naive interval.
    """
    xx, xy, yy = releases.centred()
    degrees = releases.count - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = xy / xx
        residual = yy - slope * xy
        usable = (xx > 0) & (residual > 0)
        error = np.sqrt(np.where(usable, residual, np.nan) / degrees / np.where(usable, xx, 1.0))
    return _around(np.where(usable, slope, np.nan), stdtrit(degrees, 1 - TAIL) * error)


def hybrid_bootstrap(
    sums: FloatArray,
    count: int,
    scale: float,
    repetitions: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Interval of the slope by the hybrid bootstrap of Ferrando, Wang and Sheldon 2022.

    With Q = X'X/n and β from the noisy sums,
    β* = (Q + V*/n)⁻¹ Qβ + (Q + V*/n)⁻¹ (Z*/√n + w*/n), Z* ~ N(0, s²Q),
    V* and w* new noise on X'X and X'y.  Negative eigenvalues of Q and a negative s² become 0.1.
    X has a column of ones, so that one entry of X'X carries no noise.
    """
    x, xx, y, xy, yy = sums / count
    moments, cross = np.array([[1.0, x], [x, xx]]), np.array([y, xy])
    values, vectors = np.linalg.eigh(moments)
    moments = (vectors * np.where(values > 0, values, REPAIR)) @ vectors.T
    coefficients = np.linalg.solve(moments, cross)
    variance = (yy - coefficients @ cross) * count / (count - 2)
    variance = variance if variance > 0 else REPAIR
    noise = generator.laplace(0.0, scale / count, (repetitions, 4))
    renewed = np.empty((repetitions, 2, 2))
    renewed[:, 0, 0] = moments[0, 0]
    renewed[:, 0, 1] = renewed[:, 1, 0] = moments[0, 1] + noise[:, 0]
    renewed[:, 1, 1] = moments[1, 1] + noise[:, 1]
    root = np.linalg.cholesky(variance / count * moments)
    right = moments @ coefficients + generator.standard_normal((repetitions, 2)) @ root.T
    slopes = np.linalg.solve(renewed, (right + noise[:, 2:])[:, :, None])[:, 1, 0]
    return np.asarray(np.quantile(slopes, (TAIL, 1 - TAIL)))


# -- effective draws -------------------------------------------------------------------------


def effective_size(chain: FloatArray) -> float:
    """Effective number of independent draws in a chain (Geyer's initial monotone sequence, 1992).

    Autocorrelations are summed in pairs of neighbours until a pair is no longer positive, each
    pair counted at most as much as the one before.
    """
    size = chain.size
    centred = chain - chain.mean()
    transform = np.fft.rfft(centred, 1 << (2 * size - 1).bit_length())
    covariance = np.fft.irfft(np.abs(transform) ** 2)[:size] / size
    if covariance[0] <= 0:
        return 1.0
    correlation = covariance / covariance[0]
    pairs = correlation[0 : size - 1 : 2] + correlation[1:size:2]
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if ends.size else pairs)
    return float(size / max(2 * pairs.sum() - 1, 1 / size))


# -- noisy 2 × 2 tables ----------------------------------------------------------------------


def woolf(cells: FloatArray) -> FloatArray:
    """Woolf's interval of the log odds ratio of tables (…, 4); none where a cell is 0 or less."""
    usable = np.where((cells > 0).all(axis=-1, keepdims=True), cells, np.nan)
    odds = np.log(usable) @ np.array([1.0, -1.0, -1.0, 1.0])
    return _around(odds, ndtri(1 - TAIL) * np.sqrt((1 / usable).sum(axis=-1)))


def wald_difference(cells: FloatArray) -> FloatArray:
    """Wald interval of p(second | second row) - p(second | first row) of tables (…, 4)."""
    rows = cells[..., 0::2] + cells[..., 1::2]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = cells[..., 1::2] / rows
        variance = (chance * (1 - chance) / rows).sum(axis=-1)
    usable = (rows > 0).all(axis=-1) & (variance >= 0)
    half = ndtri(1 - TAIL) * np.sqrt(np.where(usable, variance, np.nan))
    return _around(chance[..., 1] - chance[..., 0], half)
