"""How close synthetic rows are to another world, and to the released noisy tables.

The parts can be had one by one; :class:`Fidelity` holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.audit.against_release import NoisyDistances, ReleaseDistances, against_release
from core.audit.associations import CorrelationDifference, correlation_difference
from core.audit.distances import (
    JointDistance,
    MarginalDistances,
    joint_distance,
    kullback_leibler,
    marginal_distances,
    total_variation,
)
from core.audit.figures import Figure
from core.audit.quantiles import QuantileDifferences, quantile_differences

__all__ = [
    "CorrelationDifference",
    "Fidelity",
    "JointDistance",
    "MarginalDistances",
    "NoisyDistances",
    "QuantileDifferences",
    "ReleaseDistances",
    "against_release",
    "correlation_difference",
    "joint_distance",
    "kullback_leibler",
    "marginal_distances",
    "quantile_differences",
    "total_variation",
]


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity:
    """Everything that sets two worlds apart.

    Attributes
    ----------
    marginals
        Distances over one-, two- and three-way tables.
    joint
        Distance over all columns at once.
    correlations, quantiles
        Associations of pairs and quantiles of numeric columns.
    level
        Coverage of the intervals.
    """

    marginals: tuple[MarginalDistances, ...]
    joint: JointDistance
    correlations: CorrelationDifference
    quantiles: QuantileDifferences
    level: float

    def figures(self) -> tuple[Figure, ...]:
        """All of it as figures."""
        return (
            *(figure for part in self.marginals for figure in part.figures(self.level)),
            *self.joint.figures(self.level),
            *self.correlations.figures(self.level),
            *self.quantiles.figures(),
        )
