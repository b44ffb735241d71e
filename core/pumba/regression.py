"""Linear regression from draws of a Gram matrix (stage 2 of PUMBA).

Given the true sums, least squares and its sampling distribution are functions of them; draws of
the sums therefore give draws of the coefficients that carry both kinds of uncertainty.

Source: PUMBA (arXiv 2604.24817), Theorem 2 (Bernstein–von Mises); White (1980) for the sandwich.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from core.errors import EstimationError
from core.pumba.conjugate import ConjugatePrior, conjugate_draws
from core.pumba.draws import FloatArray, ParameterDraws, StatisticDraws
from core.pumba.gram import NoisyGram
from core.pumba.gram_laws import GramTarget, gram_target
from core.pumba.gram_support import SINGULAR, positive_definite
from core.pumba.least_squares import LeastSquares, Units, least_squares, scaled_moments
from core.pumba.priors import NormalPrior
from core.pumba.robust import Robust

__all__ = ["ConjugatePrior", "Estimand", "Vcov", "regression_posterior"]

Vcov = Literal["classical", "t", "hc"]
Estimand = Literal["population", "sample"]

#: Share of a predictor's spread that the predictors before it leave, below which it is collinear.
COLLINEAR = 1e-3
#: Share of draws from which something is worth a note.
SOME_DRAWS = 0.01


def regression_posterior(
    problem: NoisyGram,
    grams: StatisticDraws,
    outcome: str,
    predictors: Sequence[str],
    *,
    generator: np.random.Generator,
    vcov: Vcov = "classical",
    estimand: Estimand = "population",
    sampling: float = 1.0,
    prior: Mapping[str, NormalPrior] | None = None,
    conjugate: ConjugatePrior | None = None,
) -> ParameterDraws:
    """Posterior of the least-squares coefficients; costs no privacy.

    Parameters
    ----------
    problem, grams
        The releases, and stage 1's draws of the true moments.
    outcome, predictors
        Column names.
    generator
        Of stage 2.
    vcov
        Sampling distribution given the sums: ``classical`` N(b, s² (X'X)⁻¹), ``t`` (the same with
        σ² drawn as RSS / χ²), or ``hc`` (sandwich, for residuals of unequal spread; needs the
        sums of degree 3 and 4).
    estimand
        ``population``, or ``sample``: the least-squares fit of the rows themselves, so that only
        the privacy noise is uncertain.
    sampling
        Factor on the sampling variance (design effect times finite population correction).
    prior
        Normal priors of coefficients by name, in the units of the results.
    conjugate
        Normal–inverse-gamma prior; the draws given the sums are then exact.

    Returns
    -------
    ParameterDraws
        Named ``intercept``, the predictors, and ``residual_sd``.

    Raises
    ------
    EstimationError
        Unknown columns, too few rows, or settings that do not fit the releases.
    """
    _check_columns(problem, outcome, predictors)
    names = ("intercept", *predictors, "residual_sd")
    check_sampling(estimand, sampling)
    _check_priors(names, prior or {}, conjugate, whole=estimand == "population")
    if conjugate is not None and (vcov == "hc" or sampling != 1):
        raise EstimationError(
            "a conjugate prior stands for the whole of stage 2; leave out robust variances, "
            "design effects and population sizes"
        )
    chosen = [0, *(1 + problem.names.index(name) for name in (*predictors, outcome))]
    units = Units.of([problem.variables[index - 1] for index in chosen[1:]])
    target = gram_target(problem)
    model = _model(problem, target, chosen, units, vcov)
    fits = model(grams.values)
    if estimand == "sample":
        values = repeats = _results(units, fits.squares.coefficients, fits.sd)
    elif conjugate is not None:
        values, repeats = (
            _results(units, *conjugate_draws(fits.moments, units, conjugate, generator))
            for _ in range(2)
        )
    else:
        placed = {names.index(name): one for name, one in (prior or {}).items()}
        values, repeats = (_population(fits, units, placed, sampling, generator) for _ in range(2))
    factor = 0.0 if estimand == "sample" else sampling
    return ParameterDraws(
        names=names,
        values=values,
        repeats=repeats,
        naive=_naive(model, target, chosen, units, factor),
        diagnostics=grams.diagnostics,
        notes=(*target.notes, *_notes(fits, predictors, estimand)),
    )


def _check_columns(problem: NoisyGram, outcome: str, predictors: Sequence[str]) -> None:
    for name in (outcome, *predictors):
        if name not in problem.names:
            raise EstimationError(
                f"column {name!r} has no released sums; the columns are " + ", ".join(problem.names)
            )
    if not predictors:
        raise EstimationError("a regression needs at least one predictor")
    if len({outcome, *predictors}) != 1 + len(predictors):
        raise EstimationError("outcome and predictors must be different columns")
    if isinstance(problem.count, int) and problem.count <= len(predictors) + 1:
        raise EstimationError(
            f"{problem.count} rows cannot determine {len(predictors) + 1} coefficients and a "
            "residual spread; leave out predictors"
        )


def check_sampling(estimand: str, sampling: float) -> None:
    """Refuse an unknown estimand, and a factor that no variance can have."""
    if estimand not in ("population", "sample"):
        raise EstimationError(f"the estimand {estimand!r} is unknown; use population or sample")
    if not (np.isfinite(sampling) and sampling >= 0):
        raise EstimationError("the factor on the sampling variance must be a number of at least 0")


def _check_priors(
    names: tuple[str, ...],
    prior: Mapping[str, NormalPrior],
    conjugate: ConjugatePrior | None,
    *,
    whole: bool,
) -> None:
    if not whole and (prior or conjugate is not None):
        raise EstimationError(
            "priors are for population parameters; for the sample itself leave them out"
        )
    if conjugate is not None:
        if prior:
            raise EstimationError("give normal priors of coefficients, or a conjugate one")
        conjugate.check(len(names) - 1)
    for name in prior:
        if name == "residual_sd":
            raise EstimationError(
                "a normal prior of residual_sd would allow negative values; give priors of "
                "coefficients, or a conjugate prior"
            )
        if name not in names:
            raise EstimationError(
                f"a prior is given for {name!r}, which is no parameter; those are "
                + ", ".join(names[:-1])
            )


@dataclass(frozen=True, eq=False)
class _Fits:
    """Least squares of R moment matrices in scaled columns, with their sampling distribution.

    ``count``, ``freedom`` and ``sd`` are (R,): rows, degrees of freedom, residual sd.
    """

    vcov: Vcov
    moments: FloatArray
    squares: LeastSquares
    count: FloatArray
    freedom: FloatArray
    sd: FloatArray
    robust: Robust | None

    def draw(
        self, sampling: float, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients (p + 1, R), residual sd (R,), and the sd that scaled the coefficients."""
        shape = self.squares.coefficients.shape
        root = np.sqrt(sampling)
        if self.vcov == "t":
            relative = np.sqrt(self.freedom / generator.chisquare(self.freedom))
            used = self.sd * relative
            logarithm = np.log(relative)
        else:
            spread = 1 / np.sqrt(2 * self.freedom)
            if self.robust is not None:
                spread = self.robust.residual_spread
            used = self.sd
            logarithm = spread * generator.standard_normal(shape[1])
        normal = generator.standard_normal(shape)
        if self.robust is not None:
            deviation = self.robust.deviations(normal)
        else:
            deviation = used * self.squares.spreads(normal)
        residual = self.sd * np.exp(root * logarithm)
        return self.squares.coefficients + root * deviation, residual, used

    def covariance(self, used: FloatArray) -> FloatArray:
        """Sampling covariance of the coefficients, (R, p + 1, p + 1)."""
        if self.robust is not None:
            return self.robust.covariance
        return used[:, None, None] ** 2 * self.squares.inverse()


_Model = Callable[[FloatArray], _Fits]


def _model(
    problem: NoisyGram, target: GramTarget, chosen: list[int], units: Units, vcov: Vcov
) -> _Model:
    """How moment matrices (R, d, d) become fits."""
    if vcov == "hc" and not problem.fourth:
        raise EstimationError(
            "robust (hc) variances need the sums of all products of degree 3 and 4 of outcome and "
            "predictor, which were not released and cannot be had from second moments; use "
            "classical, or release them for a regression on one predictor"
        )
    if vcov not in ("classical", "t", "hc"):
        raise EstimationError(f"vcov {vcov!r} is unknown; use classical, t or hc")

    def fit(values: FloatArray) -> _Fits:
        moments = scaled_moments(values, chosen, units.scaling)
        squares = least_squares(moments)
        count = moments[0, 0]
        freedom = np.maximum(count - len(squares.pivots), 1.0)
        robust = None
        if vcov == "hc":
            robust = Robust.of(target.support, values, squares, chosen, freedom)
        sd = np.sqrt(squares.residual / freedom)
        return _Fits(vcov, moments, squares, count, freedom, sd, robust)

    return fit


def _results(units: Units, coefficients: FloatArray, sd: FloatArray) -> FloatArray:
    """Draws (R, p + 2) in the units of the results from scaled ones (p + 1, R) and (R,)."""
    result = np.empty((coefficients.shape[1], len(coefficients) + 1))
    result[:, :-1] = (units.coefficients @ coefficients).T + units.origin
    result[:, -1] = units.residual * sd
    return result


def _population(
    fits: _Fits,
    units: Units,
    prior: Mapping[int, NormalPrior],
    sampling: float,
    generator: np.random.Generator,
) -> FloatArray:
    """One draw of the parameters for each draw of the sums.

    A normal prior is an observation m0 of a coefficient: a draw from the likelihood's normal is
    moved towards a draw from the prior by the gain, which gives the precision-weighted posterior
    exactly (Matheron's rule).
    """
    coefficients, sd, used = fits.draw(sampling, generator)
    values = _results(units, coefficients, sd)
    if not prior:
        return values
    places = list(prior)
    spread = np.array([one.sd for one in prior.values()])
    means = np.array([one.mean for one in prior.values()])
    observed = means + spread * generator.standard_normal((len(values), len(places)))
    covariance = sampling * (units.coefficients @ fits.covariance(used) @ units.coefficients.T)
    cross = covariance[:, :, places]
    inner = cross[:, places] + np.diag(spread**2)
    move = np.linalg.solve(inner, (observed - values[:, places])[:, :, None])
    values[:, :-1] += (cross @ move)[:, :, 0]
    return values


def _naive(
    model: _Model, target: GramTarget, chosen: list[int], units: Units, sampling: float
) -> FloatArray:
    """Estimate and standard error (k, 2) from the released sums as if they had no noise."""
    released = (target.support.moments @ target.centres)[None]
    moments = scaled_moments(released, chosen, units.scaling)
    count = float(moments[0, 0, 0])
    size = len(chosen)
    result = np.full((size, 2), np.nan)
    if count <= size - 1 or not positive_definite(moments, np.full(1, SINGULAR * count))[0]:
        return result
    fits = model(released)
    result[:, 0] = _results(units, fits.squares.coefficients, fits.sd)[0]
    covariance = units.coefficients @ fits.covariance(fits.sd)[0] @ units.coefficients.T
    relative = 1 / np.sqrt(2 * fits.freedom[0])
    if fits.robust is not None:
        relative = fits.robust.residual_spread[0]
    with np.errstate(invalid="ignore"):
        result[:-1, 1] = np.sqrt(sampling * np.diag(covariance))
    result[-1, 1] = np.sqrt(sampling) * relative * result[-1, 0]
    return result


def _notes(fits: _Fits, predictors: Sequence[str], estimand: Estimand) -> list[str]:
    notes: list[str] = []
    if fits.vcov != "hc" and estimand == "population":
        notes.append(
            "Sampling variance assumes residuals of the same spread everywhere; second moments "
            "alone cannot tell otherwise."
        )
    collinear = (fits.squares.spread[1:] < COLLINEAR).mean(axis=1)
    for name, share in zip(predictors, cast(FloatArray, collinear), strict=True):
        if share >= SOME_DRAWS:
            notes.append(
                f"In {share:.0%} of the draws {name} hardly varies apart from the predictors "
                "before it: the releases do not determine its coefficient, and the draws have "
                "very long tails."
            )
    short = float((fits.count < len(fits.squares.pivots) + 1).mean())
    if short > 0:
        notes.append(
            f"In {short:.0%} of the draws the unknown number of rows is too small for this many "
            "coefficients; one degree of freedom was assumed there."
        )
    return notes
