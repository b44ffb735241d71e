"""Which warnings an analysis deserves: the facts are gathered here and worded in ``warnings``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from core.pumba import warnings as say
from core.pumba.analyses import (
    Analysis,
    CorrelationAnalysis,
    DifferenceAnalysis,
    MeanAnalysis,
    RegressionAnalysis,
    TableAnalysis,
)
from core.pumba.draws import FloatArray, ParameterDraws, StatisticDraws
from core.pumba.summaries import ParameterSummary
from core.pumba.warnings import PosteriorWarning, Severity
from core.statistics import NoisyStatistic

if TYPE_CHECKING:
    from core.pumba.gram import NoisyGram
    from core.pumba.means import BoundedMean
    from core.pumba.settings import Settings
    from core.pumba.tables import NoisyTable

#: A cell with fewer rows than this has a share too close to 0 for large-sample formulas.
FEW = 5.0
#: A mean this close to a bound, as a share of the range; a regression that explains this much.
CLOSE, EXPLAINED = 0.02, 0.9
#: Equality of a discrete value and a sum is suspicious where chance makes it rarer than this.
COINCIDENCE = 0.05

_ORDER = {Severity.SERIOUS: 0, Severity.CAUTION: 1, Severity.NOTE: 2}


def judge(
    analysis: Analysis,
    statistics: tuple[StatisticDraws, ...],
    *,
    rows: tuple[float, ...],
    parameters: ParameterDraws,
    summary: tuple[ParameterSummary, ...],
    settings: Settings,
) -> tuple[PosteriorWarning, ...]:
    """All warnings, the serious ones first, each kind in the order of the codes."""
    facts = analysis.facts
    found = [
        *say.attenuated_covariates(facts.attenuation),
        *_of_statistics(analysis, statistics),
        *say.clipped(facts.clipped),
        *say.selected(facts.selected),
        *say.repeated(facts.repeated),
        *(say.noise_scales(list(noisy_statistics(analysis))) if facts.stated else ()),
        *say.monte_carlo(
            parameters.values, parameters.names, settings.level, parameters.diagnostics
        ),
    ]
    if settings.estimand == "sample":
        found += say.sample_estimand()
    else:
        found += _thin(analysis, statistics, rows)
        found += say.near_boundary(_near_boundary(analysis, statistics))
        found += say.noise_share(summary)
        found += say.design(settings.design_effect, settings.population_size, facts.weighted)
    return tuple(
        sorted(found, key=lambda warning: (_ORDER[warning.severity], int(warning.code[1:])))
    )


def noisy_statistics(analysis: Analysis) -> Iterable[NoisyStatistic]:
    """Every released value that an analysis uses."""
    if isinstance(analysis, TableAnalysis):
        yield from _of_table(analysis.table)
    elif isinstance(analysis, MeanAnalysis):
        yield from _of_mean(analysis.mean)
    elif isinstance(analysis, DifferenceAnalysis):
        yield from _of_mean(analysis.first)
        yield from _of_mean(analysis.second)
    else:
        yield from _of_gram(analysis.gram)


def _of_table(table: NoisyTable) -> Iterable[NoisyStatistic]:
    yield from table.cells
    yield from (query.statistic for query in table.queries)
    if isinstance(table.total, NoisyStatistic):
        yield table.total


def _of_mean(mean: BoundedMean) -> Iterable[NoisyStatistic]:
    for one in (mean.count, mean.total, mean.squares, mean.quartics):
        if isinstance(one, NoisyStatistic):
            yield one


def _of_gram(gram: NoisyGram) -> Iterable[NoisyStatistic]:
    if isinstance(gram.count, NoisyStatistic):
        yield gram.count
    for released in (*gram.sums.values(), *gram.products.values(), *gram.fourth.values()):
        yield from (released,) if isinstance(released, NoisyStatistic) else released


def _of_statistics(
    analysis: Analysis, statistics: tuple[StatisticDraws, ...]
) -> list[PosteriorWarning]:
    """What stage 1 and the released values show."""
    found: list[PosteriorWarning] = []
    outside = [drawn.diagnostics for drawn in statistics if drawn.diagnostics.outside_support]
    if outside:
        found += say.outside_support(outside[0], counts=isinstance(analysis, TableAnalysis))
    if isinstance(analysis, TableAnalysis):
        table = analysis.table
        released = sum(cell.value for cell in table.cells)
        total = table.total.value if isinstance(table.total, NoisyStatistic) else table.total
        found += say.sparse_table(table.cells, released if total is None else float(total))
        found += say.derived(_derived(table))
    return found


def _derived(table: NoisyTable) -> list[str]:
    """Totals and margins that equal the sum of the cells, noise included."""
    found = []
    if table.total is not None:
        total = table.total.value if isinstance(table.total, NoisyStatistic) else table.total
        if _adds_up(table.cells, float(total)):
            found.append("the total")
    for query in table.queries:
        covered = [
            cell for cell, weight in zip(table.cells, query.weights, strict=True) if weight == 1
        ]
        if len(covered) > 1 and _adds_up(covered, query.statistic.value):
            found.append(f"the margin {query.statistic.value:,.6g}")
    return found


def _adds_up(cells: Sequence[NoisyStatistic], value: float) -> bool:
    """Whether values add up to another one, where that can hardly be a coincidence."""
    step = max(cell.law.lattice if cell.law.family.discrete else 0.0 for cell in cells)
    spread = math.sqrt(sum(cell.law.sd**2 for cell in cells))
    unlikely = step < COINCIDENCE * math.sqrt(2 * math.pi) * spread
    total = math.fsum(cell.value for cell in cells)
    return unlikely and math.isclose(total, value, rel_tol=1e-12, abs_tol=1e-9)


def _thin(
    analysis: Analysis, statistics: tuple[StatisticDraws, ...], rows: tuple[float, ...]
) -> list[PosteriorWarning]:
    """The thinnest part that an estimate is conditional on."""
    parts = [(float(number), "this result") for number in rows]
    if isinstance(analysis, TableAnalysis) and len(analysis.table.axes) == 2:
        name, labels = analysis.table.axes[0]
        counts = statistics[0].values.mean(axis=0).reshape(len(labels), -1).sum(axis=1)
        parts = [
            (float(count), f"{name} = {label}") for count, label in zip(counts, labels, strict=True)
        ]
    elif isinstance(analysis, DifferenceAnalysis):
        parts = [
            (number, problem.name)
            for number, problem in zip(rows, (analysis.first, analysis.second), strict=True)
        ]
    elif isinstance(analysis, RegressionAnalysis | CorrelationAnalysis):
        sums = statistics[0].values[:, 0, :].mean(axis=0)
        for position, variable in enumerate(analysis.gram.variables, 1):
            if variable.indicator:
                share = (sums[position] / sums[0] - variable.lower) / (
                    variable.upper - variable.lower
                )
                inside = float(sums[0] * share)
                parts.append((min(inside, float(sums[0]) - inside), variable.name))
    return say.thin(*min(parts))


def _near_boundary(analysis: Analysis, statistics: tuple[StatisticDraws, ...]) -> list[str]:
    if isinstance(analysis, TableAnalysis):
        counts = statistics[0].values.mean(axis=0)
        few = int(np.count_nonzero(counts < FEW))
        if not few:
            return []
        return [f"{few} of {counts.size} cells have fewer than {FEW:g} rows or so"]
    if isinstance(analysis, RegressionAnalysis):
        explained = _explained(analysis, statistics[0])
        if explained > EXPLAINED:
            return [f"the predictors explain about {100 * explained:.0f} % of {analysis.outcome}"]
        return []
    if isinstance(analysis, CorrelationAnalysis):
        return []
    found = []
    means = (
        (analysis.mean,)
        if isinstance(analysis, MeanAnalysis)
        else (analysis.first, analysis.second)
    )
    for mean, drawn in zip(means, statistics, strict=True):
        rows = mean.count if drawn.counts is None else drawn.counts
        average = float((drawn.values[:, 0] / cast("FloatArray | int", rows)).mean())
        position = (average - mean.lower) / (mean.upper - mean.lower)
        if not CLOSE < position < 1.0 - CLOSE:
            which = "lower" if position < 0.5 else "upper"
            found.append(f"the mean of {mean.name} lies at its {which} bound")
    return found


def _explained(analysis: RegressionAnalysis, drawn: StatisticDraws) -> float:
    """R² of the average moment matrix."""
    names = ("", *analysis.gram.names)
    size = len(names)
    moments = drawn.values[:, :size, :size].mean(axis=0)
    y = names.index(analysis.outcome)
    x = [0, *(names.index(name) for name in analysis.predictors)]
    slopes = np.linalg.lstsq(moments[np.ix_(x, x)], moments[x, y], rcond=None)[0]
    total = moments[y, y] - moments[0, y] ** 2 / moments[0, 0]
    residual = moments[y, y] - moments[x, y] @ slopes
    return float(1.0 - residual / total) if total > 0 else 0.0
