"""What follows from releases, computed once for the screen, the files and their check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import EstimationError
from core.outcome import Releases
from core.pace.estimate import Estimate, estimate
from core.plan import Plan
from core.privci.certificate import Certificate, certificate
from core.privci.reconstruct import Fit, fit
from core.privci.sample import Synthetic, synthesize
from core.protocols import Progress
from core.pumba.posterior import Posterior
from core.pumba.questions import posteriors_of


@dataclass(frozen=True, eq=False)
class Free:
    """Fitted tree, synthetic rows and certificate; posteriors; completed covariance.

    ``answers`` has the posteriors of each ``[[posterior]]``, in the plan's order.  One that was
    cancelled early, or that cannot be computed, has none, and ``unanswered`` names it with the
    reason: it must not keep from people what else was paid for.
    """

    fitted: Fit | None = None
    synthetic: Synthetic | None = None
    certificate: Certificate | None = None
    answers: tuple[tuple[Posterior, ...], ...] = ()
    unanswered: tuple[tuple[str, str], ...] = ()
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
    answers: list[tuple[Posterior, ...]] = []
    unanswered: list[tuple[str, str]] = []
    for release, part in zip(releases.statistics, plan.posteriors, strict=True):
        try:
            answers.append(posteriors_of(release, part.settings, progress))
        except (EstimationError, np.linalg.LinAlgError) as error:
            answers.append(())
            unanswered.append((part.spec.name, f"no answer: {error}"))
    found = None if releases.covariance is None else estimate(releases.covariance)
    return Free(fitted, synthetic, proof, tuple(answers), tuple(unanswered), found)
