"""Everything that follows from releases for free: fits, rows, posteriors, matrices, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.artefacts import artefacts
from core.bundle import bundle_bytes
from core.errors import ReleaseError
from core.free import Free, free_of
from core.outcome import Releases
from core.pace.estimate import Estimate
from core.plan import Plan
from core.privci.certificate import Certificate
from core.privci.sample import Synthetic
from core.protocols import Progress
from core.pumba.posterior import Posterior
from core.releases import TreeRelease


@dataclass(frozen=True, eq=False)
class Derived:
    """Releases, what was made of them, and the files that show it."""

    releases: Releases
    free: Free
    files: Mapping[str, bytes]
    bundle: bytes

    @property
    def release(self) -> TreeRelease:
        """The tree.

        Raises
        ------
        ReleaseError
            The plan has none.
        """
        if self.releases.tree is None:
            raise ReleaseError("this plan has no [tree]; look at its other releases")
        return self.releases.tree

    @property
    def synthetic(self) -> Synthetic | None:
        """Synthetic rows, where there is a tree."""
        return self.free.synthetic

    @property
    def certificate(self) -> Certificate | None:
        """What the tree proves, where there is one."""
        return self.free.certificate

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """One for each analysis, in the plan's order."""
        return self.free.posteriors

    @property
    def estimate(self) -> Estimate | None:
        """The completed covariance, where one was released."""
        return self.free.estimate


def derive(
    plan: Plan,
    releases: Releases,
    ledger: Mapping[str, Any],
    progress: Progress | None = None,
) -> Derived:
    """Fit, sample, infer, certify and write every file in memory; costs nothing, touches no rows.

    Parameters
    ----------
    plan
        Its free settings are used: rows, engine, level, estimand, seeds.
    ledger
        Public account of the population up to these releases.
    """
    free = free_of(plan, releases, progress)
    files = artefacts(plan, releases, free, ledger)
    return Derived(releases, free, files, bundle_bytes(files, releases.simulated))
