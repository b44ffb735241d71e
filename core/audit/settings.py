"""How an audit is computed: levels, draws, seeds and the smallest group that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.errors import PlanError

#: Models that can be trained; both come from scikit-learn.
LEARNERS = ("logistic", "boosting")


@dataclass(frozen=True)
class AuditSettings:
    """Settings of an audit; they change no release and cost no privacy.

    Attributes
    ----------
    level
        Coverage of the bootstrap intervals.
    draws
        Bootstrap draws of an interval.
    permutations
        Shuffles of the protected column within its strata, for the noise floor of information.
    minimum
        Groups and strata of fewer rows are left out of gaps, and counted.
    learners
        Models to train: ``logistic``, ``boosting``.
    favourable
        Label of the favourable cell by outcome column; by default the last declared cell (the
        true one of a yes/no column).
    use_protected
        Whether models may use the protected columns too, as in the papers' experiments.
    seed
        Seed of bootstrap, permutations, folds and row samples.
    training_rows
        Models are trained and tested on at most this many rows of a world, drawn at random; the
        figures say so.
    triples
        Three-way tables compared at most; the figures say so.

    Raises
    ------
    PlanError
        A setting is out of range.
    """

    level: float = 0.95
    draws: int = 200
    permutations: int = 200
    minimum: int = 10
    learners: tuple[str, ...] = LEARNERS
    favourable: Mapping[str, str] = field(default_factory=dict)
    use_protected: bool = True
    seed: int = 0
    training_rows: int = 20_000
    triples: int = 2_000

    def __post_init__(self) -> None:
        """Refuse what no audit can be computed with."""
        object.__setattr__(self, "learners", tuple(self.learners))
        object.__setattr__(self, "favourable", dict(self.favourable))
        if not 0.5 <= self.level < 1:
            raise PlanError("audit: level is a probability from 0.5 to below 1")
        for name, least in (
            ("draws", 20),
            ("permutations", 20),
            ("minimum", 1),
            ("training_rows", 100),
            ("triples", 1),
            ("seed", 0),
        ):
            if getattr(self, name) < least:
                raise PlanError(f"audit: {name} must be at least {least}")
        unknown = [name for name in self.learners if name not in LEARNERS]
        if unknown:
            raise PlanError(
                f"audit: no learner is called {unknown[0]!r}; choose from {', '.join(LEARNERS)}"
            )
