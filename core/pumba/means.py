"""Mean and standard deviation of bounded data, from noisy sums.

Stage 1 draws the true sums exactly (:mod:`core.pumba.sums`); stage 2 is the central limit theorem
for the mean, and the same for the logarithm of the variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.errors import StatisticError
from core.pumba.draws import Diagnostics, FloatArray, ParameterDraws, StatisticDraws
from core.pumba.laws import lattice_log_likelihood, open_uniform, truncated_gaussian
from core.pumba.likelihoods import DensityLikelihood, likelihood
from core.pumba.mean_moments import Moments
from core.pumba.priors import NormalPrior
from core.pumba.sums import IndexArray, SumProblem, Support, bracket
from core.statistics import Family, NoiseLaw, NoisyStatistic

Estimand = Literal["population", "sample"]

#: More candidate numbers of rows than this are weighed by interpolation.
MOST_COUNTS = 400
LONGEST_COUNTS = 1_000_000

POPOVICIU = (
    "no sum of squares was released, so the variance is taken as large as the bounds and the mean "
    "allow; the interval is wider than it need be, and there is none for the standard deviation"
)
NORMAL_SPREAD = (
    "the interval of the standard deviation takes the fourth moment of a normal distribution, "
    "because no sum of fourth powers was released"
)
SYMMETRIC_SPREAD = (
    "the interval of the standard deviation uses the released sum of fourth powers and takes the "
    "third central moment as 0 where the sums allow it, because no sum of cubes was released"
)
SAMPLE_SPREAD = "the standard deviation is that of the rows themselves, with divisor n"


@dataclass(frozen=True, eq=False)
class BoundedMean:
    """Noisy sums over rows of z, z² and z⁴, where ``x = origin + unit * z``.

    Attributes
    ----------
    name
        Column, for messages.
    lower, upper
        Bounds of z, to which the data were clipped before they were added up.
    count
        Number of rows, or its noisy release.
    total, squares, quartics
        Releases of the sums of z, z² and z⁴.  Their noises are independent.
    origin, unit
        From z to the column's own units; results are in the latter.
    """

    name: str
    lower: float
    upper: float
    count: int | NoisyStatistic
    total: NoisyStatistic
    squares: NoisyStatistic | None = None
    quartics: NoisyStatistic | None = None
    origin: float = 0.0
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Refuse bounds, counts and units that nothing can have."""
        what = f"the mean of {self.name!r}"
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise StatisticError(f"{what}: the bounds must be finite numbers")
        if self.lower >= self.upper:
            raise StatisticError(f"{what}: the lower bound must lie below the upper bound")
        if isinstance(self.count, int) and self.count < 1:
            raise StatisticError(f"{what}: the number of rows must be at least 1")
        if self.quartics is not None and self.squares is None:
            raise StatisticError(f"{what}: a sum of fourth powers needs the sum of squares as well")
        if not (math.isfinite(self.origin) and math.isfinite(self.unit) and self.unit > 0):
            raise StatisticError(f"{what}: the unit must be above 0 and the origin finite")

    @property
    def releases(self) -> tuple[NoisyStatistic, ...]:
        """The released sums, in the order of the columns of the draws."""
        given = (self.total, self.squares, self.quartics)
        return tuple(statistic for statistic in given if statistic is not None)

    @property
    def support(self) -> Support:
        """What the true sums can be."""
        return Support(self.lower, self.upper)


def draw_sums(problem: BoundedMean, draws: int, generator: np.random.Generator) -> StatisticDraws:
    """Stage 1: independent draws (draws, k) of the true sums; free post-processing.

    Columns are the sums of z, z² and z⁴ as far as released.  ``counts`` holds the number of rows
    behind each draw where it is noisy.
    """
    diagnostics = Diagnostics("exact", effective=float(draws), outside_support=_outside(problem))
    if isinstance(problem.count, int):
        n = np.array([float(problem.count)])
        sums = _sum_problem(problem, float(problem.count))
        return StatisticDraws(sums.draw(n, draws, generator)[0], diagnostics)
    n, row = _draw_counts(problem, problem.count, draws, generator)
    values = _sum_problem(problem, float(n.max())).draw_mixed(n, row, generator)
    return StatisticDraws(values, diagnostics, counts=n[row])


def draw_many_sums(
    problem: BoundedMean,
    totals: FloatArray,
    squares: FloatArray,
    draws: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Stage 1 for many releases that differ in their values only: (releases, draws, 2).

    Bounds, known count and laws are those of ``problem``; noise counts as continuous.

    Raises
    ------
    StatisticError
        If the count is noisy, or the problem has no sum of squares or one of fourth powers.
    """
    if not isinstance(problem.count, int) or problem.squares is None or problem.quartics:
        raise StatisticError("many releases at once need a known count and two sums")
    laws = [_continuous(law) for law in (problem.total.law, problem.squares.law)]
    sums = SumProblem(
        problem.support,
        DensityLikelihood(laws[0], totals[:, None]),
        DensityLikelihood(laws[1], squares[:, None]),
    )
    return sums.draw(np.full(len(totals), float(problem.count)), draws, generator)


def mean_posterior(
    problem: BoundedMean,
    sums: StatisticDraws,
    generator: np.random.Generator,
    *,
    estimand: Estimand = "population",
    sampling: float = 1.0,
    prior: Mapping[str, NormalPrior] | None = None,
) -> ParameterDraws:
    """Stage 2: draws of ``mean`` and ``sd`` (the latter only where squares were released).

    The mean is drawn from N(m, sampling v/n) cut to the bounds; the logarithm of the variance from
    N(log v, sampling Var(s²)/v²), cut at half the range.

    Parameters
    ----------
    problem, sums
        The problem and its stage 1.
    estimand
        ``population``, or ``sample`` for the mean and spread of the very rows.
    sampling
        Design effect times finite population correction, on the sampling variance.
    prior
        Normal priors of ``mean`` and ``sd`` in the column's units (population only).

    Raises
    ------
    StatisticError
        If a setting makes no sense for this problem.
    """
    priors = dict(prior or {})
    names = ("mean",) if problem.squares is None else ("mean", "sd")
    _check_settings(problem, names, estimand, sampling, priors)
    n = np.full(len(sums.values), problem.count) if sums.counts is None else sums.counts
    moments = Moments.of(problem.support, np.asarray(n, dtype=np.float64), sums.values)
    naive = _naive(problem, names, estimand, sampling)
    notes = _notes(problem, estimand)
    if estimand == "sample":
        values = np.column_stack([moments.mean, np.sqrt(moments.spread)][: len(names)])
        values = problem.unit * values + np.array([problem.origin, 0.0][: len(names)])
        return ParameterDraws(names, values, values, naive, sums.diagnostics, notes)
    stage_two = StageTwo(problem, moments, sampling, priors)
    values, repeats = (
        np.column_stack([stage_two.draw(name, generator) for name in names]) for _ in range(2)
    )
    return ParameterDraws(names, values, repeats, naive, sums.diagnostics, notes)


def difference(first: ParameterDraws, second: ParameterDraws) -> ParameterDraws:
    """The first group's parameters less the second's, from independent draws of the two.

    Raises
    ------
    StatisticError
        If parameters or numbers of draws differ.
    """
    if first.names != second.names or first.values.shape != second.values.shape:
        raise StatisticError("a difference needs the same parameters and numbers of draws twice")
    one, two = first.diagnostics, second.diagnostics
    diagnostics = Diagnostics(
        method=one.method if one.method == two.method else f"{one.method} and {two.method}",
        acceptance=min(one.acceptance, two.acceptance),
        chains=max(one.chains, two.chains),
        sweeps=max(one.sweeps, two.sweeps),
        r_hat=max(one.r_hat, two.r_hat),
        effective=min(one.effective, two.effective),
        outside_support=one.outside_support or two.outside_support,
    )
    estimate = first.naive[:, 0] - second.naive[:, 0]
    error = np.hypot(first.naive[:, 1], second.naive[:, 1])
    return ParameterDraws(
        tuple(f"difference of {name}s" for name in first.names),
        first.values - second.values,
        first.repeats - second.repeats,
        np.column_stack([estimate, error]),
        diagnostics,
        tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


class StageTwo:
    """Draws of the parameters given the moments."""

    def __init__(
        self,
        problem: BoundedMean,
        moments: Moments,
        sampling: float,
        priors: Mapping[str, NormalPrior],
    ) -> None:
        self._problem = problem
        self._moments = moments
        self._sampling = sampling
        self._priors = priors

    def draw(self, name: str, generator: np.random.Generator) -> FloatArray:
        """One draw of ``mean`` or ``sd`` for each draw of the moments, in the column's units."""
        return self._mean(generator) if name == "mean" else self._sd(generator)

    def _mean(self, generator: np.random.Generator) -> FloatArray:
        problem, moments = self._problem, self._moments
        centre = problem.origin + problem.unit * moments.mean
        error = problem.unit * np.sqrt(self._sampling * moments.variance / moments.n)
        if "mean" in self._priors:
            centre, error = self._priors["mean"].add(centre, error)
        low = problem.origin + problem.unit * problem.lower
        high = problem.origin + problem.unit * problem.upper
        return truncated_gaussian(error, centre, low, high, open_uniform(generator, centre.shape))

    def _sd(self, generator: np.random.Generator) -> FloatArray:
        problem, moments = self._problem, self._moments
        centre = np.log(problem.unit * np.sqrt(moments.variance))
        error = 0.5 * np.sqrt(self._sampling * moments.log_error)
        if "sd" in self._priors:
            prior = self._priors["sd"]
            # To the logarithm by the delta method; a flat prior stays flat.
            on_logs = NormalPrior(math.log(prior.mean), prior.sd / prior.mean)
            centre, error = on_logs.add(centre, error)
        half = 0.5 * problem.unit * (problem.upper - problem.lower)
        uniform = open_uniform(generator, centre.shape)
        return np.exp(truncated_gaussian(error, centre, -np.inf, math.log(half), uniform))


def _sum_problem(problem: BoundedMean, largest: float) -> SumProblem:
    """Likelihoods over the ranges that up to ``largest`` rows allow."""
    support = problem.support
    wide = max(support.lower**2, support.upper**2) * largest
    low, high = min(0.0, support.lower * largest), max(0.0, support.upper * largest)
    return SumProblem(
        support,
        likelihood(problem.total, low, high),
        None if problem.squares is None else likelihood(problem.squares, 0.0, wide),
        None
        if problem.quartics is None
        else likelihood(problem.quartics, 0.0, wide * max(support.lower**2, support.upper**2)),
    )


def _draw_counts(
    problem: BoundedMean, count: NoisyStatistic, draws: int, generator: np.random.Generator
) -> tuple[FloatArray, IndexArray]:
    """Distinct numbers of rows, and which of them each draw has."""
    largest = _largest_count(problem, count)
    sums = _sum_problem(problem, largest)

    def density(nodes: FloatArray) -> FloatArray:
        n = np.rint(nodes[0])
        log = lattice_log_likelihood(count, n) + sums.log_evidence(n)
        return log[None, :]

    low, high = bracket(density, np.array([1.0]), np.array([largest]))
    first, last = np.rint(low[0]), np.rint(high[0])
    # Millions of candidates (releases at odds with each other) are thinned out evenly.
    n = np.rint(np.linspace(first, last, int(min(last - first, LONGEST_COUNTS)) + 1))
    weighed = n
    if len(n) > MOST_COUNTS:
        weighed = np.unique(np.rint(np.linspace(n[0], n[-1], MOST_COUNTS)))
    logs = np.interp(n, weighed, sums.log_evidence(weighed)) + lattice_log_likelihood(count, n)
    cumulative = np.cumsum(np.exp(logs - logs.max()))
    index = np.searchsorted(cumulative, generator.random(draws) * cumulative[-1], side="right")
    used, row = np.unique(index, return_inverse=True)
    return n[used], row.astype(np.int64)


def _largest_count(problem: BoundedMean, count: NoisyStatistic) -> float:
    """A number of rows beyond which every release speaks against more of them."""
    reach = count.value + 60.0 * count.law.scale
    size = max(abs(problem.lower), abs(problem.upper))
    for power, statistic in zip((1, 2, 4), problem.releases, strict=False):
        reach = max(reach, (abs(statistic.value) + 60.0 * statistic.law.scale) / size**power)
    return float(math.ceil(max(reach, 2.0)))


def _continuous(law: NoiseLaw) -> NoiseLaw:
    return NoiseLaw(Family.LAPLACE if law.family.laplace else Family.GAUSSIAN, law.scale)


def _outside(problem: BoundedMean) -> bool:
    """Whether no rows have the released sums."""
    n = problem.count if isinstance(problem.count, int) else problem.count.value
    if n < 1:
        return True
    rows, support = np.array(float(n)), problem.support
    total = problem.total.value
    low, high = support.sums(rows)
    outside = not low <= total <= high
    if problem.squares is not None:
        squares = problem.squares.value
        top = (support.lower + support.upper) * total - n * support.lower * support.upper
        outside |= not total**2 / n <= squares <= top
        if problem.quartics is not None:
            low, high = support.quartics_given(rows, np.array(max(squares, 0.0)))
            outside |= not low <= problem.quartics.value <= high
    return bool(outside)


def _naive(
    problem: BoundedMean, names: tuple[str, ...], estimand: Estimand, sampling: float
) -> FloatArray:
    """Estimates and standard errors that take the releases as exact; NaN where undefined."""
    naive = np.full((len(names), 2), np.nan)
    n = float(problem.count if isinstance(problem.count, int) else problem.count.value)
    if n <= 0:
        return naive
    mean = problem.total.value / n
    naive[0, 0] = problem.origin + problem.unit * mean
    spread = (problem.upper - mean) * (mean - problem.lower)
    if problem.squares is not None:
        spread = problem.squares.value / n - mean**2
    if spread <= 0 or n <= 1:
        return naive
    sums = np.array([statistic.value for statistic in problem.releases])
    moments = Moments.of(problem.support, np.array(n), sums)
    sd = problem.unit * math.sqrt(float(moments.variance))
    scale = 0.0 if estimand == "sample" else math.sqrt(sampling)
    naive[0, 1] = scale * sd / math.sqrt(n)
    if len(names) > 1:
        size = problem.unit * math.sqrt(spread) if estimand == "sample" else sd
        naive[1] = size, scale * sd * 0.5 * math.sqrt(float(moments.log_error))
    return naive


def _notes(problem: BoundedMean, estimand: Estimand) -> tuple[str, ...]:
    if estimand == "sample":
        return () if problem.squares is None else (SAMPLE_SPREAD,)
    if problem.squares is None:
        return (POPOVICIU,)
    return (NORMAL_SPREAD if problem.quartics is None else SYMMETRIC_SPREAD,)


def _check_settings(
    problem: BoundedMean,
    names: tuple[str, ...],
    estimand: str,
    sampling: float,
    priors: Mapping[str, NormalPrior],
) -> None:
    what = f"the mean of {problem.name!r}"
    if estimand not in ("population", "sample"):
        raise StatisticError(f"{what}: the estimand is either 'population' or 'sample'")
    if not (math.isfinite(sampling) and sampling >= 0):
        raise StatisticError(f"{what}: the factor on the sampling variance must be at least 0")
    unknown = sorted(set(priors) - set(names))
    if unknown:
        raise StatisticError(f"{what}: there is no parameter {unknown[0]!r} to give a prior")
    if priors and estimand == "sample":
        raise StatisticError(f"{what}: a prior is for the population, not for the sample")
    if "sd" in priors and priors["sd"].mean <= 0:
        raise StatisticError(f"{what}: the prior of a standard deviation needs a mean above 0")
