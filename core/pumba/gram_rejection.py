"""Stage 1 for Gram matrices by rejection: noise laws on each entry, kept if inside the support."""

from __future__ import annotations

import math

import numpy as np

from core.errors import EstimationError
from core.protocols import Progress
from core.pumba.draws import Diagnostics, FloatArray
from core.pumba.gram_laws import GramTarget
from core.statistics import Family

#: Proposals after which the share of accepted ones decides whether rejection goes on.
PILOT = 4000
#: Share from which it goes on whatever the number of draws.
ENOUGH_ACCEPTANCE = 0.01
#: Numbers that may be computed otherwise (about a second).
WORTHWHILE = 60_000_000
#: Proposals after which rejection gives up even where it was insisted on.
MOST_PROPOSALS = 50_000_000
#: Numbers held at once while proposals are checked; keeps them in the cache.
WORKING_SET = 400_000
#: An entry whose law has at least this mass within its bounds is proposed without truncation.
LITTLE_LOST = math.log(0.8)


def rejection(
    target: GramTarget,
    draws: int,
    generator: np.random.Generator,
    *,
    insist: bool = False,
    progress: Progress | None = None,
) -> tuple[FloatArray, Diagnostics] | None:
    """Independent draws of the sums (c, R), or None where too few proposals are accepted.

    Raises
    ------
    EstimationError
        With ``insist``: hardly any of 50 million proposals was accepted.
    """
    propose = _Proposals(target, generator)
    numbers = len(target.support.raw.rows) + 2 * target.support.dimension**2
    largest = max(256, WORKING_SET // numbers)
    kept: list[FloatArray] = []
    accepted = proposed = 0
    while accepted < draws:
        rate = max(accepted / proposed, ENOUGH_ACCEPTANCE / 10) if proposed else 1.0
        size = int(min(largest, math.ceil(1.02 * (draws - accepted) / rate) + 16))
        theta = propose(size)
        inside = target.contains(theta)
        found = theta if inside.all() else theta[:, inside]
        kept.append(found)
        accepted += found.shape[1]
        proposed += size
        if not insist and proposed >= PILOT and accepted < ENOUGH_ACCEPTANCE * proposed:
            expected = (draws - accepted) * proposed / max(accepted, 0.5)
            if expected * numbers > WORTHWHILE:
                return None
        if proposed > MOST_PROPOSALS and accepted < draws:
            raise EstimationError(
                f"rejection accepted {accepted:,} of {proposed:,} proposals; use parallel Gibbs"
            )
        if progress is not None:
            progress("statistics", min(accepted, draws), draws, "rejection")
    theta = np.concatenate(kept, axis=1)[:, :draws]
    diagnostics = Diagnostics(
        method="rejection",
        acceptance=accepted / proposed,
        effective=float(draws),
        outside_support=target.outside,
    )
    return theta, diagnostics


class _Proposals:
    """Independent draws of all entries from their laws, truncated to their bounds."""

    def __init__(self, target: GramTarget, generator: np.random.Generator) -> None:
        self._target = target
        self._generator = generator
        low, high = target.bounds
        self._low, self._high = low, high
        self._plain: dict[Family, list[int]] = {Family.LAPLACE: [], Family.GAUSSIAN: []}
        self._truncated: list[int] = []
        for index in target.free:
            law = target.laws[index]
            assert law is not None
            ends = np.array([low[index], high[index]])
            if law.family is not None and law.likelihood.log_mass(ends[0], ends[1]) >= LITTLE_LOST:
                self._plain[law.family].append(index)
            else:
                self._truncated.append(index)
        self._scales = np.array([0.0 if law is None else law.scale for law in target.laws])

    def __call__(self, size: int) -> FloatArray:
        """``size`` proposals (c, size)."""
        target = self._target
        theta = np.empty((len(target.centres), size))
        if target.count is not None:
            theta[0] = target.count
        for family, members in self._plain.items():
            if not members:
                continue
            shape = (len(members), size)
            noise = (
                self._generator.laplace(size=shape)
                if family is Family.LAPLACE
                else self._generator.standard_normal(shape)
            )
            noise *= self._scales[members, None]
            noise += target.centres[members, None]
            theta[members] = noise
        for index in self._truncated:
            law = target.laws[index]
            assert law is not None
            uniform = 1.0 - self._generator.random(size)  # in (0, 1]
            theta[index] = law.likelihood.draw(
                np.asarray(self._low[index]), np.asarray(self._high[index]), uniform
            )
        return theta
