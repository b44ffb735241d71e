"""What an audit found: the part that may be published, and the part that may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

from core.audit.figures import Figure
from core.audit.proxies import ProxySuggestion
from core.audit.scorecard import Scorecard
from core.audit.settings import AuditSettings
from core.audit.utility import Utility
from core.audit.worlds import World
from core.privci.certificate import Certificate
from core.releases import TreeRelease
from core.roles import Constraint

if TYPE_CHECKING:
    from core.audit.fairness import DecisionFairness, OutcomeFairness
    from core.audit.fidelity import Fidelity, ReleaseDistances


def between(trained_on: str, tested_on: str) -> str:
    """Names of two worlds as a part of keys.

    >>> between("synthetic rows", "real table")
    'synthetic_rows_to_real_table'
    """
    return "_to_".join("_".join(name.split()) for name in (trained_on, tested_on))


@dataclass(frozen=True, eq=False, repr=False)
class ModelAudit:
    """One model for one outcome of one rule, tested in one world.

    Attributes
    ----------
    outcome
        The predicted column.
    learner
        ``logistic`` or ``boosting``.
    trained_on, tested_on
        Names of the worlds.  The same name twice means cross-fitted: no row is tested by a model
        that saw it.
    utility
        How well it predicts.
    fairness
        How its decisions treat the protected groups.
    """

    outcome: str
    learner: str
    trained_on: str
    tested_on: str
    utility: Utility
    fairness: DecisionFairness

    @property
    def worlds(self) -> str:
        """Both worlds as a part of keys."""
        return between(self.trained_on, self.tested_on)

    @property
    def moved(self) -> bool:
        """True when it is tested in another world than the one it was trained in."""
        return self.trained_on != self.tested_on

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All of them."""
        decided = (
            replace(one, key=f"{one.key}.{self.learner}.{self.worlds}")
            for one in self.fairness.figures()
        )
        return (*self.utility.figures, *decided)


@dataclass(frozen=True, eq=False, repr=False)
class RuleAudit:
    """One rule in one world.

    Attributes
    ----------
    rule
        The conditional independence that was asked for.
    outcomes
        Fairness of the outcome columns themselves.
    proxies
        Inadmissible columns, the one that carries most of S first.
    models
        Models trained on the synthetic rows, tested in this world; in the real world also models
        trained there, for comparison.
    """

    rule: Constraint
    outcomes: OutcomeFairness
    proxies: tuple[ProxySuggestion, ...]
    models: tuple[ModelAudit, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All of them."""
        return (
            *self.outcomes.figures(),
            *(figure for proxy in self.proxies for figure in (proxy.share, proxy.ranking)),
            *(figure for model in self.models for figure in model.figures),
        )


@dataclass(frozen=True, eq=False)
class ReleasedAudit:
    """Synthetic rows against what was released: all of it may be published.

    Attributes
    ----------
    release, certificate
        What was measured, and what its tree proves.
    synthetic
        The rows that were looked at.
    against_release
        Distances to the noisy one- and two-way tables, beside what noise alone would give.
    rules
        One entry an active rule.
    scorecard
        About a dozen numbers with verdicts.
    settings
        How it was computed.
    notes
        Caveats on the whole audit: simulated, rows made again, a cap on rows.
    """

    release: TreeRelease
    certificate: Certificate
    synthetic: World
    against_release: ReleaseDistances
    rules: tuple[RuleAudit, ...]
    scorecard: Scorecard
    settings: AuditSettings
    notes: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure."""
        rules = (figure for rule in self.rules for figure in rule.figures)
        return (*self.against_release.figures(), *rules)


class Seal:
    """Stops whatever copies or serialises its owner field by field."""

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        """What was computed from real rows stays in this process."""
        raise TypeError("a private audit can be neither copied nor pickled")


@dataclass(frozen=True, eq=False, repr=False)
class PrivateAudit:
    """Synthetic rows beside the real table: for the steward's own screen, never for a file.

    It cannot be copied or pickled, and shows nothing of itself in messages.

    Attributes
    ----------
    seal
        Stops copies made field by field.
    released
        The publishable part.
    real
        The real rows.
    fidelity
        Distances, correlations and quantiles, the real table first.
    rules
        The rules of ``released``, in the same order, in the real world.
    scorecard
        The released scores and the private ones.
    notes
        Caveats.
    """

    seal: Seal = field(init=False, default_factory=Seal)
    released: ReleasedAudit
    real: World
    fidelity: Fidelity
    rules: tuple[RuleAudit, ...]
    scorecard: Scorecard
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Only public facts."""
        return "PrivateAudit(not private, never to be exported)"

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        """What was computed from real rows stays in this process."""
        raise TypeError("a private audit can be neither copied nor pickled")

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure in which real rows entered."""
        rules = (figure for rule in self.rules for figure in rule.figures)
        return (*self.fidelity.figures(), *rules)

    def pairs(self) -> Iterator[tuple[RuleAudit, RuleAudit]]:
        """Each rule in the synthetic world and in the real one."""
        return zip(self.released.rules, self.rules, strict=True)
