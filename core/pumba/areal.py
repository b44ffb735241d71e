"""Regression over areas whose covariates were published with noise of known size.

Here the noise is on each area's value, so the noise in the sums grows with the number of areas
and PUMBA's theorem does not apply: noise on a covariate attenuates its slope by 1 / (1 + τ²), and
imputing each area's value around its release attenuates it to 1 / (1 + 2 τ²), with τ the noise's
standard deviation over the covariate's.  The corrected estimator takes the known noise (co)variance
out of the sums of squares and products.

Source: Fuller (1987), Measurement Error Models, section 3.1; Buonaccorsi (2010), chapter 5, for
noise variances that differ by area and for the sandwich.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.errors import EstimationError
from core.pumba.areal_data import ArealData, ArealVariable, Attenuation, attenuation
from core.pumba.draws import Diagnostics, FloatArray, ParameterDraws

__all__ = [
    "ArealData",
    "ArealFit",
    "ArealVariable",
    "Attenuation",
    "areal_posterior",
    "attenuation",
    "corrected_fit",
    "imputed_draws",
    "naive_fit",
]

Method = Literal["sandwich", "bootstrap"]

#: Bootstrap weights held at once.
WORKING_SET = 4_000_000


@dataclass(frozen=True, eq=False)
class ArealFit:
    """Coefficients (q + 1,), intercept first, and their covariance (q + 1, q + 1).

    Attributes
    ----------
    noise_covariance
        Part of ``covariance`` that comes from the noise, the rest being sampling.
    draws
        (R, q + 1): replicates of the bootstrap; None for the sandwich.
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    covariance: FloatArray
    noise_covariance: FloatArray
    draws: FloatArray | None = None

    @property
    def standard_errors(self) -> FloatArray:
        """(q + 1,)."""
        result: FloatArray = np.sqrt(np.diag(self.covariance))
        return result

    def intervals(self, level: float = 0.95) -> FloatArray:
        """(q + 1, 2): percentiles of the bootstrap, or normal intervals."""
        from scipy.special import ndtri

        if not 0 < level < 1:
            raise EstimationError("a level lies strictly between 0 and 1")
        tail = (1 - level) / 2
        if self.draws is not None:
            return np.quantile(self.draws, [tail, 1 - tail], axis=0).T
        reach = -float(ndtri(tail)) * self.standard_errors
        return np.stack([self.coefficients - reach, self.coefficients + reach], axis=1)


def naive_fit(data: ArealData) -> ArealFit:
    """Least squares on the published values as if they had no noise, with HC1 errors."""
    return _fit(data, np.zeros_like(data.noise))


def corrected_fit(
    data: ArealData,
    *,
    method: Method = "sandwich",
    draws: int = 2000,
    generator: np.random.Generator | None = None,
) -> ArealFit:
    """Least squares with the known noise (co)variance taken out of the sums.

    Solves Σ (w w' - V) β = Σ (w y - c), with V the noise covariance of an area's covariates w and c
    theirs with the outcome's noise.  Noise on the outcome alone only adds to the residual.

    Parameters
    ----------
    data
        Areas.
    method
        ``sandwich`` (M-estimation) or ``bootstrap`` (areas drawn with replacement).
    draws, generator
        Of the bootstrap.

    Raises
    ------
    EstimationError
        The noise is as large as the covariates' spread, so that no slope can be estimated.
    """
    fit = _fit(data, data.noise)
    if method == "sandwich":
        return fit
    if method != "bootstrap":
        raise EstimationError(f"method {method!r} is unknown; use sandwich or bootstrap")
    if generator is None or draws < 2:
        raise EstimationError("a bootstrap needs a generator and at least two draws")
    replicates = _bootstrap(data, draws, generator)
    covariance = np.cov(replicates, rowvar=False)
    from_noise = _at_most(fit.noise_covariance, covariance)
    return ArealFit(data.names, fit.coefficients, covariance, from_noise, replicates)


def _terms(data: ArealData, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Each area's part of the corrected sums: (m, q + 1, q + 1) and (m, q + 1)."""
    design, outcome = data.design, data.outcome.values
    squares = design[:, :, None] * design[:, None, :] - noise[:, :-1, :-1]
    return squares, design * outcome[:, None] - noise[:, :-1, -1]


def _fit(data: ArealData, noise: FloatArray) -> ArealFit:
    squares, products = _terms(data, noise)
    total = squares.sum(axis=0)
    _refuse_indefinite(total, data)
    coefficients = np.linalg.solve(total, products.sum(axis=0))
    scores = squares @ coefficients - products
    areas, size = scores.shape
    bread = np.linalg.inv(total)
    scale = areas / (areas - size)
    covariance = scale * bread @ (scores.T @ scores) @ bread.T
    from_noise = scale * bread @ _noise_meat(data, noise, coefficients) @ bread.T
    return ArealFit(data.names, coefficients, covariance, _at_most(from_noise, covariance))


def _refuse_indefinite(total: FloatArray, data: ArealData) -> None:
    """Refuse sums of squares from which the noise leaves nothing."""
    scale = 1 / np.sqrt(np.maximum((data.design**2).sum(axis=0), np.finfo(float).tiny))
    if np.linalg.eigvalsh(scale[:, None] * total * scale)[0] > 1e-10:
        return
    worst = max(attenuation(data), key=lambda one: max(one.partial, one.ratio))
    raise EstimationError(
        f"the noise on {worst.name!r} is at least as large as what its values differ between "
        "areas, so its slope cannot be estimated; use larger areas or leave it out"
    )


def _noise_meat(data: ArealData, noise: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Sum over areas of the scores' variance given the true values, for normal noise.

    With true covariates x, true residual r, noise e on x and g = e'β - f, an area's score is
    -x r + x g - e r + e g - E[e g].
    """
    contrast = np.append(coefficients, -1.0)
    shared = noise[:, :-1] @ contrast
    own = np.einsum("i,mij,j->m", contrast, noise, contrast)
    residual = data.design @ coefficients - data.outcome.values
    design = data.design
    squares = np.einsum("m,mi,mj->ij", own, design, design)
    extra = np.einsum("m,mij->ij", residual**2 - own, noise[:, :-1, :-1])
    result: FloatArray = squares + extra + shared.T @ shared
    return result


def _at_most(part: FloatArray, whole: FloatArray) -> FloatArray:
    """The part of a covariance, within 0 and the whole in every direction."""
    values, vectors = np.linalg.eigh(whole)
    root = vectors * np.sqrt(np.maximum(values, np.finfo(float).tiny))
    inner = np.linalg.solve(root, np.linalg.solve(root, part).T)
    shares, turns = np.linalg.eigh((inner + inner.T) / 2)
    limited = turns * np.clip(shares, 0.0, 1.0) @ turns.T
    result: FloatArray = root @ limited @ root.T
    return result


def _bootstrap(data: ArealData, draws: int, generator: np.random.Generator) -> FloatArray:
    """Corrected coefficients of areas drawn with replacement, (R, q + 1)."""
    squares, products = _terms(data, data.noise)
    areas, size = products.shape
    flat = np.concatenate([squares.reshape(areas, -1), products], axis=1)
    found: list[FloatArray] = []
    step = max(1, WORKING_SET // areas)
    for start in range(0, draws, step):
        number = min(step, draws - start)
        weights = generator.multinomial(areas, np.full(areas, 1 / areas), size=number)
        totals = weights @ flat
        matrices = totals[:, : size * size].reshape(number, size, size)
        if np.linalg.eigvalsh(matrices).min() <= 0:
            raise EstimationError(
                "in some bootstrap replicates the noise exceeds the spread of the covariates; use "
                "the sandwich, larger areas, or fewer covariates"
            )
        found.append(np.linalg.solve(matrices, totals[:, size * size :, None])[:, :, 0])
    return np.concatenate(found)


def imputed_draws(data: ArealData, draws: int, generator: np.random.Generator) -> FloatArray:
    """What goes wrong: each area's values imputed around their release, then least squares.

    (R, q + 1) draws of the coefficients: N(b, s² (X'X)⁻¹) given each imputed table.  Slopes are
    attenuated to about 1 / (1 + 2 τ²) of the truth, and more areas do not help; for comparison.
    """
    root = None
    if data.covariance is not None:
        values, vectors = np.linalg.eigh(data.noise)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    spread = np.sqrt(np.diagonal(data.noise, axis1=1, axis2=2))
    published = np.column_stack([data.design, data.outcome.values])
    areas, size = data.design.shape
    result = np.empty((draws, size))
    for row in range(draws):
        normal = generator.standard_normal((areas, size + 1))
        noise = spread * normal if root is None else (root @ normal[:, :, None])[:, :, 0]
        table = published + noise
        design, outcome = table[:, :-1], table[:, -1]
        inverse = np.linalg.inv(design.T @ design)
        centre = inverse @ (design.T @ outcome)
        variance = float(((outcome - design @ centre) ** 2).sum()) / (areas - size)
        factor = np.linalg.cholesky(variance * inverse)
        result[row] = centre + factor @ generator.standard_normal(size)
    return result


def areal_posterior(
    data: ArealData,
    draws: int,
    generator: np.random.Generator,
    *,
    method: Method = "sandwich",
) -> ParameterDraws:
    """Corrected coefficients as draws, with the naive ones beside them; costs no privacy.

    The covariance of values and repeats is the part of the variance that comes from the noise.

    Raises
    ------
    EstimationError
        As :func:`corrected_fit`.
    """
    fit = corrected_fit(data, method=method, draws=max(draws, 2), generator=generator)
    plain = naive_fit(data)
    shared = _normal(fit.noise_covariance, draws, generator)
    rest = fit.covariance - fit.noise_covariance
    values, repeats = (fit.coefficients + shared + _normal(rest, draws, generator) for _ in "ab")
    notes = [
        f"The noise on {one.name} is {one.ratio:.2g} times the spread between areas "
        f"({one.partial:.2g} times what the other covariates leave of it)."
        for one in attenuation(data)
        if one.serious
    ]
    return ParameterDraws(
        names=fit.names,
        values=values,
        repeats=repeats,
        naive=np.column_stack([plain.coefficients, plain.standard_errors]),
        diagnostics=Diagnostics(method="exact", effective=float(draws)),
        notes=(
            "Estimates with the known noise taken out of the sums of squares; normal "
            "approximation over areas.",
            *notes,
        ),
    )


def _normal(covariance: FloatArray, draws: int, generator: np.random.Generator) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    result: FloatArray = generator.standard_normal((draws, len(values))) @ root.T
    return result
