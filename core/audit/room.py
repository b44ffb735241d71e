"""The audit room: synthetic rows against their release, and beside the real table.

Two doors.  :func:`audit_released` needs nothing but released things, and all it finds may be
published.  :func:`audit_private` needs the real rows behind a logged handle, and nothing it finds
may leave the steward's screen::

    from core.audit.room import audit_private, audit_released
    from core.audit.worlds import real_world

    found = audit_released(derived.release, derived.synthetic, derived.certificate)
    handle = vault.not_private("fitness of the release for teaching")
    beside = audit_private(found, real_world(handle, derived.release.schema))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.audit.audits import ModelAudit, PrivateAudit, ReleasedAudit, RuleAudit, between
from core.audit.fairness import OutcomeFairness, decision_fairness, outcome_fairness
from core.audit.fidelity import (
    Fidelity,
    against_release,
    correlation_difference,
    joint_distance,
    marginal_distances,
    quantile_differences,
)
from core.audit.judging import private_scorecard, released_scorecard
from core.audit.proxies import ProxySuggestion, proxy_suggestions
from core.audit.settings import AuditSettings
from core.audit.utility import Predictions, assess, cross_fit, train
from core.audit.worlds import World, synthetic_world
from core.errors import EstimationError
from core.outcome import Releases
from core.privci.certificate import Certificate
from core.privci.sample import Synthetic
from core.protocols import Progress
from core.releases import TreeRelease
from core.roles import Constraint, Roles
from core.statement import MOSTLY_NOISE, SIMULATED, quality_flags

__all__ = [
    "AuditSettings",
    "ModelAudit",
    "PrivateAudit",
    "ReleasedAudit",
    "RuleAudit",
    "audit_private",
    "audit_released",
]

STAGE = "audit"


def audit_released(
    release: TreeRelease,
    synthetic: Synthetic | World,
    certificate: Certificate,
    *,
    settings: AuditSettings | None = None,
    progress: Progress | None = None,
    notes: Sequence[str] = (),
) -> ReleasedAudit:
    """Audit synthetic rows against what was released.

    Parameters
    ----------
    release, synthetic, certificate
        A tree release, rows made of it, and what its tree proves.
    progress
        Called after each step; may raise :class:`~core.errors.Cancelled`.
    notes
        Caveats to carry on, such as that the rows were made again on another machine.

    Raises
    ------
    EstimationError
        The rows were not made with the release's declarations, or are real ones.

    Notes
    -----
    Costs nothing: everything follows from released values.
    """
    settings = settings or AuditSettings()
    world = (
        synthetic if isinstance(synthetic, World) else synthetic_world(synthetic, release.schema)
    )
    if world.private:
        raise EstimationError(
            "the rows of a released audit are synthetic; real ones belong into audit_private"
        )
    rules = _active(release)
    steps = _Steps(progress, 1 + sum(2 + len(_models(rule, settings)) for rule in rules))
    distances = against_release(release, world, seed=settings.seed)
    steps.done("distances to the released tables")
    said = _said(release)
    audited = tuple(
        _released_rule(release, certificate, _Task(world, rule, settings, steps)) for rule in rules
    )
    return ReleasedAudit(
        release,
        certificate,
        world,
        distances,
        audited,
        released_scorecard(certificate, distances, audited, noisy=MOSTLY_NOISE in said),
        settings,
        (*notes, *_rows_note(world, settings), *_flags(release, said)),
    )


def audit_private(
    released: ReleasedAudit, real: World, *, progress: Progress | None = None
) -> PrivateAudit:
    """Set the synthetic rows of a released audit beside the real table.

    Parameters
    ----------
    released
        The publishable part; its settings are used again.
    real
        The real rows, from :func:`~core.audit.worlds.real_world`.
    progress
        Called after each step; may raise :class:`~core.errors.Cancelled`.

    Raises
    ------
    EstimationError
        The rows are not real ones, or declared otherwise than the release.

    Notes
    -----
    Charges no budget and gives no privacy: nothing found here may be published.
    """
    if not real.private:
        raise EstimationError("a private audit needs the real rows, behind a logged handle")
    if real.schema.to_dict() != released.release.schema.to_dict():
        raise EstimationError("the real rows have other declarations than the release")
    if not real.rows:
        raise EstimationError("the real table holds no rows, so there is nothing to compare")
    settings = released.settings
    rules = [found.rule for found in released.rules]
    steps = _Steps(progress, 5 + sum(2 + 2 * len(_models(rule, settings)) for rule in rules))
    fidelity = _fidelity(real, released.synthetic, settings, steps)
    audited = tuple(_private_rule(released, _Task(real, rule, settings, steps)) for rule in rules)
    return PrivateAudit(
        released,
        real,
        fidelity,
        audited,
        private_scorecard(released, fidelity, audited),
        _rows_note(real, settings),
    )


# -- steps -----------------------------------------------------------------------------------


class _Steps:
    """Counts steps, so that a person sees how far it is and can stop."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._count = progress, total, 0

    def done(self, what: str) -> None:
        """One more step."""
        self._count += 1
        if self._progress is not None:
            self._progress(STAGE, self._count, self._total, what)


def _active(release: TreeRelease) -> list[Constraint]:
    """Rules that ask for something of released columns."""
    names = set(release.schema.names)
    return [rule for rule in release.roles.constraints if rule.is_active and rule.columns <= names]


def _models(rule: Constraint, settings: AuditSettings) -> list[tuple[str, str]]:
    """Each outcome with each learner."""
    return [(name, learner) for name in sorted(rule.outcome) for learner in settings.learners]


def _said(release: TreeRelease) -> tuple[str, ...]:
    """The release's flags that are not about simulation, those from noisy facts included."""
    flags = dict.fromkeys((*release.provenance.flags, *quality_flags(Releases.of((release,)))))
    return tuple(flag for flag in flags if flag != SIMULATED)


def _flags(release: TreeRelease, said: Sequence[str]) -> tuple[str, ...]:
    """What the release itself says of its worth."""
    notes = []
    if release.provenance.simulated:
        notes.append("The noise was simulated: this release protects nobody.")
    notes += [f"Flag of the release: {flag}." for flag in said]
    if release.partial:
        notes.append("The release was cancelled early: some pairs were not measured.")
    return tuple(notes)


def _rows_note(world: World, settings: AuditSettings) -> tuple[str, ...]:
    if world.rows <= settings.training_rows:
        return ()
    return (
        f"Models were trained and tested on a random sample of {settings.training_rows:,} rows of "
        f"the {world.name}.",
    )


def _sample(world: World, settings: AuditSettings) -> World:
    """At most so many rows, drawn without replacement."""
    if world.rows <= settings.training_rows:
        return world
    generator = np.random.default_rng(settings.seed)
    return world.take(generator.permutation(world.rows)[: settings.training_rows])


# -- one rule --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Task:
    """One rule to audit in one world."""

    world: World
    rule: Constraint
    settings: AuditSettings
    steps: _Steps

    def outcomes(self) -> OutcomeFairness:
        """Outcomes by group."""
        settings = self.settings
        found = outcome_fairness(
            self.world,
            self.rule,
            minimum=settings.minimum,
            favourable=settings.favourable,
            permutations=settings.permutations,
            draws=settings.draws,
            level=settings.level,
            seed=settings.seed,
        )
        self.steps.done(f"{self.rule.name}: outcomes by group, {self.world.name}")
        return found

    def proxies(self, roles: Roles, certificate: Certificate) -> tuple[ProxySuggestion, ...]:
        """What inadmissible columns tell of S."""
        found = proxy_suggestions(
            self.world,
            self.rule,
            roles,
            sides=_sides(certificate, self.rule),
            minimum=self.settings.minimum,
            level=self.settings.level,
            seed=self.settings.seed,
        )
        self.steps.done(f"{self.rule.name}: proxies, {self.world.name}")
        return found

    def features(self) -> tuple[str, ...]:
        """Every column but the rule's outcomes, and but S itself where models must not see it."""
        hidden = self.rule.outcome
        if not self.settings.use_protected:
            hidden = hidden | self.rule.protected
        return tuple(name for name in self.world.schema.names if name not in hidden)

    def crossed(self, outcome: str, learner: str) -> ModelAudit:
        """A model of this world's rows, tested on them; no row by a model that saw it."""
        sample = _sample(self.world, self.settings)
        seed = self.settings.seed
        predicted = cross_fit(sample, outcome, self.features(), learner=learner, seed=seed)
        return self.audited(predicted, sample, (outcome, learner), self.world.name)

    def moved(self, origin: World, outcome: str, learner: str) -> ModelAudit:
        """A model of another world's rows, tested on this world's."""
        seed, sample = self.settings.seed, _sample(self.world, self.settings)
        there = _sample(origin, self.settings)
        model = train(there, outcome, self.features(), learner=learner, seed=seed)
        return self.audited(model.predict(sample), sample, (outcome, learner), origin.name)

    def audited(
        self, predicted: Predictions, sample: World, what: tuple[str, str], trained_on: str
    ) -> ModelAudit:
        """Figures of one model's predictions for these rows."""
        (outcome, learner), settings = what, self.settings
        worlds = between(trained_on, self.world.name)
        utility = assess(
            predicted,
            sample,
            outcome,
            draws=settings.draws,
            level=settings.level,
            seed=settings.seed,
            key=f"utility.{self.rule.name}.{outcome}.{learner}.{worlds}",
        )
        fairness = decision_fairness(
            sample,
            predicted.decisions,
            self.rule,
            outcome=outcome,
            minimum=settings.minimum,
            favourable=settings.favourable.get(outcome),
            permutations=settings.permutations,
            draws=settings.draws,
            level=settings.level,
            seed=settings.seed,
            private=predicted.private,
        )
        words = f"{self.rule.name}: {learner} model of {outcome}"
        self.steps.done(f"{words}, {trained_on} to {self.world.name}")
        return ModelAudit(outcome, learner, trained_on, self.world.name, utility, fairness)


def _released_rule(release: TreeRelease, certificate: Certificate, task: _Task) -> RuleAudit:
    return RuleAudit(
        task.rule,
        task.outcomes(),
        task.proxies(release.roles, certificate),
        tuple(task.crossed(*what) for what in _models(task.rule, task.settings)),
    )


def _private_rule(released: ReleasedAudit, task: _Task) -> RuleAudit:
    outcomes = task.outcomes()
    proxies = task.proxies(released.release.roles, released.certificate)
    models = []
    for what in _models(task.rule, task.settings):
        models += [task.moved(released.synthetic, *what), task.crossed(*what)]
    return RuleAudit(task.rule, outcomes, proxies, tuple(models))


def _sides(certificate: Certificate, rule: Constraint) -> Mapping[str, str]:
    """Where columns stand when the admissible ones are taken out of the tree."""
    sides: dict[str, str] = {}
    for proof in certificate.separation:
        if proof.constraint.name != rule.name:
            continue
        for part in proof.components:
            side = "outcome" if part.outcome else "protected" if part.protected else ""
            sides |= dict.fromkeys(part.columns, side)
    return sides


def _fidelity(real: World, synthetic: World, settings: AuditSettings, steps: _Steps) -> Fidelity:
    """The parts one by one, so that a person can stop in between."""
    marginals = []
    for ways, words in ((1, "columns"), (2, "pairs"), (3, "triples")):
        marginals.append(
            marginal_distances(real, synthetic, ways, limit=settings.triples, seed=settings.seed)
        )
        steps.done(f"distances of {words}")
    joint = joint_distance(real, synthetic)
    steps.done("distance over all columns")
    correlations = correlation_difference(
        real, synthetic, limit=settings.triples, seed=settings.seed
    )
    quantiles = quantile_differences(
        real, synthetic, draws=settings.draws, level=settings.level, seed=settings.seed
    )
    steps.done("correlations and quantiles")
    return Fidelity(tuple(marginals), joint, correlations, quantiles, settings.level)
