"""From noisy statistics to a posterior: stage 1, stage 2, summary and warnings.

Stage 1 depends only on the statistics, the number of draws and the seed.  Level, prior, estimand
and region of equivalence belong to stage 2, which is cheap; keep stage 1 and change the settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import EstimationError
from core.protocols import Progress
from core.pumba.analyses import (
    Analysis,
    CorrelationAnalysis,
    DifferenceAnalysis,
    MeanAnalysis,
    RegressionAnalysis,
    TableAnalysis,
)
from core.pumba.draws import ParameterDraws, StatisticDraws
from core.pumba.judgement import judge
from core.pumba.settings import Settings
from core.pumba.summaries import ParameterSummary, summarize
from core.pumba.warnings import PosteriorWarning
from core.statistics import NoisyStatistic

if TYPE_CHECKING:
    from core.pumba.gram import NoisyGram
    from core.pumba.means import BoundedMean
    from core.pumba.tables import NoisyTable


@dataclass(frozen=True, eq=False)
class StageOne:
    """Draws of the true statistics behind one analysis: two sets for a difference, else one."""

    statistics: tuple[StatisticDraws, ...]
    draws: int
    seed: int


@dataclass(frozen=True, eq=False)
class Posterior:
    """The answer to one analysis."""

    title: str
    parameters: ParameterDraws
    summary: tuple[ParameterSummary, ...]
    warnings: tuple[PosteriorWarning, ...]
    settings: Settings


def posterior(
    problem: Analysis | NoisyTable | BoundedMean | NoisyGram,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Posterior:
    """Both stages at once; costs no privacy.

    Parameters
    ----------
    problem
        An analysis; or bare statistics, of which all usual parameters are then given (of a Gram
        matrix, the correlations).
    settings
        See :class:`Settings`.
    progress
        Called while stage 1 samples; may raise ``Cancelled``.

    Raises
    ------
    StatisticError, EstimationError
        The statistics cannot be what they are said to be, or do not allow the analysis.
    """
    settings = settings or Settings()
    analysis = analysis_of(problem)
    return finish(analysis, stage_one(analysis, settings.draws, settings.seed, progress), settings)


def analysis_of(problem: Analysis | NoisyTable | BoundedMean | NoisyGram) -> Analysis:
    """The usual analysis of bare statistics; an analysis stays as it is."""
    from core.pumba.gram import NoisyGram
    from core.pumba.means import BoundedMean
    from core.pumba.tables import NoisyTable

    if isinstance(problem, NoisyTable):
        return TableAnalysis(" × ".join(name for name, _ in problem.axes), problem)
    if isinstance(problem, BoundedMean):
        return MeanAnalysis(problem.name, problem)
    if isinstance(problem, NoisyGram):
        return CorrelationAnalysis("correlations", problem)
    return problem


def stage_one(
    analysis: Analysis, draws: int, seed: int, progress: Progress | None = None
) -> StageOne:
    """Draws of the true statistics given the released ones (stage 1); deterministic.

    Raises
    ------
    StatisticError, EstimationError
        As :func:`posterior`.
    """
    from core.pumba.gram import draw_grams
    from core.pumba.means import draw_sums
    from core.pumba.tables import draw_counts

    drawn: tuple[StatisticDraws, ...]
    first, second = (np.random.default_rng([seed, 1, group]) for group in (0, 1))
    with _within_reach(analysis):
        if isinstance(analysis, TableAnalysis):
            drawn = (draw_counts(analysis.table, draws, first, progress),)
        elif isinstance(analysis, MeanAnalysis):
            drawn = (draw_sums(analysis.mean, draws, first),)
        elif isinstance(analysis, DifferenceAnalysis):
            drawn = (
                draw_sums(analysis.first, draws, first),
                draw_sums(analysis.second, draws, second),
            )
        else:
            drawn = (draw_grams(analysis.gram, draws, first, progress=progress),)
    return StageOne(drawn, draws, seed)


@contextmanager
def _within_reach(analysis: Analysis) -> Iterator[None]:
    """Numbers that floating point cannot compute with end in a sentence of ours."""
    try:
        with np.errstate(all="ignore"):  # what becomes of it is looked at in the end
            yield
    except (ArithmeticError, ValueError) as error:
        raise _too_far(analysis) from error


def _too_far(analysis: Analysis) -> EstimationError:
    return EstimationError(
        f"{analysis.title}: its numbers lie too far apart to be computed with; check values, "
        "scales and bounds"
    )


def finish(analysis: Analysis, stage: StageOne, settings: Settings) -> Posterior:
    """Stage 2, summary and warnings from stage 1; deterministic and cheap.

    Raises
    ------
    EstimationError
        ``stage`` was drawn with other draws or another seed, or the settings do not fit.
    """
    if (stage.draws, stage.seed) != (settings.draws, settings.seed):
        raise EstimationError("draws or seed changed since stage 1; draw stage 1 again")
    with _within_reach(analysis):
        rows = rows_behind(analysis, stage)
        sampling = _sampling(analysis, rows, settings)
        parameters = _parameters(analysis, stage, settings, sampling)
        if not np.isfinite(parameters.values).all():
            raise _too_far(analysis)
        summary = summarize(parameters, level=settings.level, rope=settings.rope)
        warnings = judge(
            analysis,
            stage.statistics,
            rows=rows,
            parameters=parameters,
            summary=summary,
            settings=settings,
        )
    return Posterior(analysis.title, parameters, summary, warnings, settings)


def rows_behind(analysis: Analysis, stage: StageOne) -> tuple[float, ...]:
    """Number of rows behind each set of statistics: as given, or its posterior mean."""
    found = []
    for count, drawn in zip(_counts(analysis), stage.statistics, strict=True):
        if isinstance(count, int):
            found.append(float(count))
        elif isinstance(analysis, TableAnalysis):
            found.append(float(drawn.values.sum(axis=1).mean()))
        elif drawn.counts is not None:
            found.append(float(drawn.counts.mean()))
        else:
            found.append(float(drawn.values[:, 0, 0].mean()))
    return tuple(found)


def _counts(analysis: Analysis) -> tuple[int | NoisyStatistic | None, ...]:
    """The number of rows behind each set of statistics: exact, as released, or not released."""
    if isinstance(analysis, TableAnalysis):
        return (analysis.table.total,)
    if isinstance(analysis, MeanAnalysis):
        return (analysis.mean.count,)
    if isinstance(analysis, DifferenceAnalysis):
        return (analysis.first.count, analysis.second.count)
    return (analysis.gram.count,)


def _sampling(analysis: Analysis, rows: tuple[float, ...], settings: Settings) -> float:
    """Factor on the sampling variance: design effect times (1 - n/N)."""
    if settings.population_size is None:
        return settings.design_effect
    known = all(isinstance(count, int) for count in _counts(analysis))
    if known and sum(rows) > settings.population_size:
        raise EstimationError(
            f"{analysis.title}: {sum(rows):,.0f} rows cannot come from a population of "
            f"{settings.population_size:,}; correct the size of the population"
        )
    return settings.design_effect * max(0.0, 1.0 - sum(rows) / settings.population_size)


def _parameters(
    analysis: Analysis, stage: StageOne, settings: Settings, sampling: float
) -> ParameterDraws:
    """Stage 2 of each kind of analysis."""
    from core.pumba.correlation import correlation_posterior
    from core.pumba.means import difference, mean_posterior
    from core.pumba.regression import regression_posterior
    from core.pumba.tables import table_posterior

    generator = np.random.default_rng([settings.seed, 2])
    drawn = stage.statistics[0]
    if isinstance(analysis, TableAnalysis):
        if settings.priors:
            raise EstimationError(
                f"{analysis.title}: the prior of a table is alpha; normal priors are for means and "
                "slopes"
            )
        return table_posterior(
            analysis.table,
            drawn,
            analysis.quantities,
            generator,
            alpha=settings.alpha,
            estimand=settings.estimand,
            sampling=sampling,
            edges=analysis.edges,
        )
    if isinstance(analysis, CorrelationAnalysis):
        if settings.priors:
            raise EstimationError(f"{analysis.title}: priors of correlations are not offered")
        return correlation_posterior(
            analysis.gram,
            drawn,
            analysis.pairs,
            generator=generator,
            estimand=settings.estimand,
            sampling=sampling,
        )
    if isinstance(analysis, RegressionAnalysis):
        return regression_posterior(
            analysis.gram,
            drawn,
            analysis.outcome,
            analysis.predictors,
            generator=generator,
            vcov=settings.vcov,
            estimand=settings.estimand,
            sampling=sampling,
            prior=settings.priors,
        )
    problems = (
        (analysis.mean,)
        if isinstance(analysis, MeanAnalysis)
        else (analysis.first, analysis.second)
    )
    means = [
        mean_posterior(
            problem,
            sums,
            generator,
            estimand=settings.estimand,
            sampling=sampling,
            prior=settings.priors,
        )
        for problem, sums in zip(problems, stage.statistics, strict=True)
    ]
    return means[0] if len(means) == 1 else difference(*means)
