"""What follows from releases, computed once for the screen, the files and their check."""

from __future__ import annotations

from dataclasses import dataclass

from core.outcome import Releases
from core.pace.estimate import Estimate, estimate
from core.plan import Plan
from core.privci.certificate import Certificate, certificate
from core.privci.reconstruct import Fit, fit
from core.privci.sample import Synthetic, synthesize
from core.protocols import Progress
from core.pumba.posterior import Posterior
from core.pumba.questions import answerable, posteriors_of
from core.pumba.release import StatisticsRelease
from core.pumba.settings import Settings


@dataclass(frozen=True, eq=False)
class Free:
    """Fitted tree, synthetic rows and certificate; posteriors; completed covariance.

    ``answers`` has the posteriors of each ``[[posterior]]``, in the plan's order; none for one
    that was cancelled before its question could be answered.
    """

    fitted: Fit | None = None
    synthetic: Synthetic | None = None
    certificate: Certificate | None = None
    answers: tuple[tuple[Posterior, ...], ...] = ()
    estimate: Estimate | None = None

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """All posteriors, in the same order."""
        return tuple(one for answer in self.answers for one in answer)


def free_of(plan: Plan, releases: Releases, progress: Progress | None = None) -> Free:
    """Everything that a plan makes of its releases; costs no privacy."""
    fitted = synthetic = proof = None
    if releases.tree is not None:
        settings = plan.synthetic
        fitted = fit(releases.tree, engine=settings.engine, progress=progress)
        synthetic = synthesize(
            releases.tree, fitted, rows=settings.rows, engine=settings.engine, seed=settings.seed
        )
        proof = certificate(releases.tree, fitted)
    answers = tuple(
        _answers(release, part.settings, progress)
        for release, part in zip(releases.statistics, plan.posteriors, strict=True)
    )
    found = None if releases.covariance is None else estimate(releases.covariance)
    return Free(fitted, synthetic, proof, answers, found)


def _answers(
    release: StatisticsRelease, settings: Settings, progress: Progress | None
) -> tuple[Posterior, ...]:
    if release.partial and not answerable(release):
        return ()
    return posteriors_of(release, settings, progress)
