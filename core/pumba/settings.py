"""How a posterior is asked for: free settings, which a release does not depend on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.errors import EstimationError
from core.pumba.priors import NormalPrior
from core.pumba.summaries import Rope, check_level

Estimand = Literal["population", "sample"]
MINIMUM_DRAWS = 100
MAXIMUM_DRAWS = 1_000_000


@dataclass(frozen=True)
class Settings:
    """How a posterior is asked for.

    Attributes
    ----------
    level
        Probability of the intervals.
    estimand
        ``population``: what the rows were drawn from; ``sample``: the rows themselves, so that
        only the privacy noise is uncertain.
    draws, seed
        Number of draws, and the seed of both stages.
    priors
        Normal priors by parameter name, in the parameters' units; others stay flat.
    alpha
        Dirichlet parameter of each cell of a table; 1 is exact where the total is known.
    vcov
        Stage 2 of regressions: ``classical`` (normal), ``t`` (residual variance drawn as well) or
        ``hc`` (robust to unequal variances; needs sums of degree 3 and 4).
    design_effect
        Factor by which a clustered or weighted design multiplies sampling variance.
    population_size
        Rows of the finite population that the rows were sampled from; shrinks sampling variance
        by 1 - n/N.
    rope
        Region of practical equivalence.
    """

    level: float = 0.95
    estimand: Estimand = "population"
    draws: int = 4000
    seed: int = 0
    priors: Mapping[str, NormalPrior] = field(default_factory=dict)
    alpha: float = 1.0
    vcov: Literal["classical", "t", "hc"] = "classical"
    design_effect: float = 1.0
    population_size: int | None = None
    rope: Rope | None = None

    def __post_init__(self) -> None:
        """Refuse settings that no posterior can have."""
        check_level(self.level)
        if self.estimand not in ("population", "sample"):
            raise EstimationError(
                f"the estimand {self.estimand!r} is unknown; use population or sample"
            )
        if not MINIMUM_DRAWS <= self.draws <= MAXIMUM_DRAWS:
            raise EstimationError(
                f"draws must lie between {MINIMUM_DRAWS:,} and {MAXIMUM_DRAWS:,}; 4000 is usual"
            )
        if self.seed < 0:
            raise EstimationError("a seed is a whole number of at least 0")
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise EstimationError("alpha, the prior count of a cell, must be a number above 0")
        if self.vcov not in ("classical", "t", "hc"):
            raise EstimationError(f"vcov {self.vcov!r} is unknown; use classical, t or hc")
        if not (math.isfinite(self.design_effect) and self.design_effect > 0):
            raise EstimationError("the design effect must be a number above 0; 1 is none")
        if self.population_size is not None and self.population_size < 1:
            raise EstimationError("the size of the population must be a whole number above 0")
