"""Questions put to noisy statistics: the problem, and which parameters are wanted of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.errors import EstimationError

if TYPE_CHECKING:
    from core.pumba.gram import NoisyGram
    from core.pumba.means import BoundedMean
    from core.pumba.tables import NoisyTable


@dataclass(frozen=True)
class Facts:
    """What warnings need to know and the numbers do not tell.

    Attributes
    ----------
    clipped
        (column, lower, upper) in the column's own units: values outside counted as the bounds.
    selected
        What was measured because an earlier noisy look made it look large or strong.
    repeated
        Statistics of which two releases were entered, taken to be independent.
    attenuation
        (covariate, τ) of area-level covariates: standard deviation of the noise on an area's value
        over the standard deviation of the values between areas.
    weighted
        The sums are sums of survey weights.
    stated
        Family and scale of the noise are what somebody else says, not what we drew.
    """

    clipped: tuple[tuple[str, float, float], ...] = ()
    selected: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    attenuation: tuple[tuple[str, float], ...] = ()
    weighted: bool = False
    stated: bool = True


@dataclass(frozen=True, eq=False)
class TableAnalysis:
    """Proportions and measures of association of a one- or two-way table.

    ``quantities`` None asks for all that the shape of the table has.  ``edges`` are the bin edges
    of a one-way table of a numeric column; its median and quartiles are then given as well.
    """

    title: str
    table: NoisyTable
    quantities: tuple[str, ...] | None = None
    edges: tuple[float, ...] | None = None
    facts: Facts = field(default=Facts())


@dataclass(frozen=True, eq=False)
class MeanAnalysis:
    """Mean and standard deviation of one bounded column."""

    title: str
    mean: BoundedMean
    facts: Facts = field(default=Facts())


@dataclass(frozen=True, eq=False)
class DifferenceAnalysis:
    """Difference of the means of two groups with rows of their own: the first minus the second."""

    title: str
    first: BoundedMean
    second: BoundedMean
    facts: Facts = field(default=Facts())


@dataclass(frozen=True, eq=False)
class RegressionAnalysis:
    """Linear regression of ``outcome`` on ``predictors``, by least squares."""

    title: str
    gram: NoisyGram
    outcome: str
    predictors: tuple[str, ...]
    facts: Facts = field(default=Facts())

    def __post_init__(self) -> None:
        """Refuse a regression without predictors, and a column used twice."""
        if not self.predictors:
            raise EstimationError(f"{self.title}: a regression needs at least one predictor")
        names = (self.outcome, *self.predictors)
        if len(set(names)) != len(names):
            raise EstimationError(f"{self.title}: outcome and predictors must be different columns")


@dataclass(frozen=True, eq=False)
class CorrelationAnalysis:
    """Pearson correlations of ``pairs`` (None: of all pairs of columns)."""

    title: str
    gram: NoisyGram
    pairs: tuple[tuple[str, str], ...] | None = None
    facts: Facts = field(default=Facts())


Analysis = (
    TableAnalysis | MeanAnalysis | DifferenceAnalysis | RegressionAnalysis | CorrelationAnalysis
)
