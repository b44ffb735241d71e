"""From releases to the analyses that posteriors answer: one release may answer several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from core.protocols import Progress
from core.pumba.analyses import (
    Analysis,
    CorrelationAnalysis,
    DifferenceAnalysis,
    Facts,
    MeanAnalysis,
    RegressionAnalysis,
    TableAnalysis,
)
from core.pumba.from_tree import TreeTable
from core.pumba.gram import NoisyGram
from core.pumba.means import BoundedMean
from core.pumba.posterior import Posterior, posterior
from core.pumba.release import StatisticsRelease, problems, regressors
from core.pumba.settings import Settings
from core.pumba.specification import AnalysisKind, group_labels
from core.pumba.tables import NoisyTable
from core.schema import Schema

#: With more groups than this, each is compared with the first only.
ALL_PAIRS = 4


def analyses_of(release: StatisticsRelease) -> tuple[Analysis, ...]:
    """The analyses that a release answers, in order; costs nothing.

    A table, a regression and a correlation are one.  A mean in groups is one a group; a
    difference is one a group and one a pair of groups (with more than four groups: each group
    against the first).

    Raises
    ------
    EstimationError
        A cancel came before all that the question needs was measured.
    """
    spec, schema = release.spec, release.schema
    facts = Facts(clipped=_clipped(release), stated=False)
    found = problems(release)
    first = found[0]
    if isinstance(first, NoisyTable):
        return (TableAnalysis(spec.name, first, edges=_edges(schema, spec.clique), facts=facts),)
    if isinstance(first, NoisyGram):
        if spec.kind is AnalysisKind.CORRELATION:
            return (CorrelationAnalysis(spec.name, first, facts=facts),)
        assert spec.outcome is not None
        predictors = regressors(release)
        return (RegressionAnalysis(spec.name, first, spec.outcome, predictors, facts),)
    means = [problem for problem in found if isinstance(problem, BoundedMean)]
    labels = group_labels(spec, schema)
    if not labels:
        return (MeanAnalysis(spec.name, means[0], facts),)
    return _groups(release, means, labels, facts)


def _groups(
    release: StatisticsRelease, means: Sequence[BoundedMean], labels: Sequence[str], facts: Facts
) -> tuple[Analysis, ...]:
    name = release.spec.name
    analyses: list[Analysis] = [
        MeanAnalysis(f"{name}: {label}", mean, facts)
        for label, mean in zip(labels, means, strict=True)
    ]
    if release.spec.kind is AnalysisKind.DIFFERENCE:
        every = len(labels) <= ALL_PAIRS
        pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if every or a == 0]
        analyses += [
            DifferenceAnalysis(f"{name}: {labels[a]} minus {labels[b]}", means[a], means[b], facts)
            for a, b in pairs
        ]
    return tuple(analyses)


def posteriors_of(
    release: StatisticsRelease, settings: Settings, progress: Progress | None = None
) -> tuple[Posterior, ...]:
    """Posteriors of all analyses that a release answers; costs no privacy.

    Raises
    ------
    EstimationError
        A cancelled release lacks what the question needs, or the settings do not fit it.
    """
    return tuple(posterior(one, settings, progress) for one in analyses_of(release))


def analysis_of_tree_table(found: TreeTable, schema: Schema) -> TableAnalysis:
    """What a table of a tree release says; a pair is marked as selected."""
    title = " × ".join(found.columns)
    facts = Facts(selected=(title,) if len(found.columns) > 1 else (), stated=False)
    edges = _edges(schema, found.columns)
    return TableAnalysis(title, found.table, edges=edges, facts=facts)


def _clipped(release: StatisticsRelease) -> tuple[tuple[str, float, float], ...]:
    """Bounds of the numbers behind sums, for the sentence that names the clipped population."""
    if release.spec.counts:
        return ()
    frame = release.spec.frame(release.schema)
    return tuple(
        (name, scale.centre - scale.half_width, scale.centre + scale.half_width)
        for name, scale in frame.scales
    )


def _edges(schema: Schema, clique: Sequence[str]) -> tuple[float, ...] | None:
    """Bin edges of a one-way table of a number, when no cell stands beside the bins."""
    if len(clique) != 1:
        return None
    column = schema[clique[0]]
    if not column.axis or len(column.axis) != column.size + 1:
        return None
    return column.axis
