"""Stage 1 for Gram matrices by Gibbs sampling in many parallel chains.

Convergence is judged by the nested R-hat for many short chains (Margossian, Hoffman, Sountsov,
Riou-Durand, Vehtari and Gelman, 2024): chains in one group share a start, groups start at
different points, and the groups' means must agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.protocols import Progress
from core.pumba.draws import Diagnostics, FloatArray
from core.pumba.gram_chains import Chains
from core.pumba.gram_laws import GramTarget

GROUPS = 8
FEWEST_CHAINS = 504
MOST_CHAINS = 2000
#: Matrices beyond this size are moved in the fewest chains, which are enough and cost less.
SMALL = 4
FIRST_SWEEPS = 20
MOST_SWEEPS = 2048  #: warm-up and recorded sweeps together
AGREEMENT = 1.005  #: largest nested R-hat at which sampling stops
LONG_ENOUGH = 8.0  #: recorded sweeps, in autocorrelation times


def gibbs(
    target: GramTarget,
    draws: int,
    generator: np.random.Generator,
    *,
    progress: Progress | None = None,
) -> tuple[FloatArray, Diagnostics]:
    """Draws of the sums (c, R) from parallel chains, with diagnostics.

    Warm-up is as long as what is recorded; both double until the groups agree or 2,048 sweeps are
    reached, which the reported R-hat then tells.
    """
    most = MOST_CHAINS if target.support.dimension <= SMALL else FEWEST_CHAINS
    number = min(most, max(FEWEST_CHAINS, math.ceil(draws / 4)))
    number = GROUPS * math.ceil(number / GROUPS)
    chains = Chains(target, starting_points(target, number), generator)
    kept = math.ceil(draws / number)
    sweeps = max(FIRST_SWEEPS, kept)
    for done in range(sweeps):
        chains.sweep(done)
    done = sweeps
    while True:
        record = Record(sweeps, kept)
        for step in range(sweeps):
            chains.sweep(done)
            done += 1
            record.add(step, chains.theta)
            if progress is not None:
                progress("statistics", step + 1, sweeps, "parallel Gibbs")
        r_hat, autocorrelation = record.convergence(target.free)
        settled = r_hat <= AGREEMENT and sweeps >= LONG_ENOUGH * autocorrelation
        if settled or 2 * done > MOST_SWEEPS:
            break
        sweeps = done
    theta = np.concatenate(record.kept, axis=1)[:, :draws]
    diagnostics = Diagnostics(
        method="gibbs",
        chains=number,
        sweeps=done,
        r_hat=r_hat,
        effective=record.effective(target.free, draws),
        outside_support=target.outside,
    )
    return theta, diagnostics


def starting_points(target: GramTarget, number: int) -> FloatArray:
    """Starts θ (c, ``number``) on the segment from an interior point towards the released values.

    The interior point has the moments of independent uniform columns.  The furthest admissible
    point is found by bisection; groups start at different shares of the way to it.
    """
    support = target.support
    released = target.centres
    law = target.laws[0]
    rows = float(released[0]) if law is None else max(float(released[0]), 2.0, law.scale)
    inside = rows * (support.to_raw @ support.uniform)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        point = inside + middle * (released - inside)
        if target.contains(point[:, None])[0]:
            low = middle
        else:
            high = middle
    shares = low * np.repeat(np.linspace(0.1, 0.97, GROUPS), number // GROUPS)
    points: FloatArray = inside[:, None] + shares * (released - inside)[:, None]
    return points


@dataclass
class _Half:
    """Sums over the sweeps of half a recording, for each coordinate and chain."""

    sweeps: int
    total: FloatArray
    squares: FloatArray


class Record:
    """Kept draws and running sums of one recording."""

    def __init__(self, sweeps: int, kept: int) -> None:
        self.kept: list[FloatArray] = []
        self._places = {((i + 1) * sweeps) // kept - 1 for i in range(kept)}
        self._half = sweeps // 2
        self._halves: list[_Half] = []
        self._origin: FloatArray | None = None

    def add(self, step: int, theta: FloatArray) -> None:
        """Record one sweep's state (c, K)."""
        if step in self._places:
            self.kept.append(theta.copy())
        if self._origin is None:
            self._origin = theta.mean(axis=1, keepdims=True)
        if step in (0, self._half):
            self._halves.append(_Half(0, np.zeros_like(theta), np.zeros_like(theta)))
        half = self._halves[-1]
        centred = theta - self._origin
        half.sweeps += 1
        half.total += centred
        half.squares += centred**2

    def convergence(self, free: tuple[int, ...]) -> tuple[float, float]:
        """Largest nested split R-hat, and largest autocorrelation time in sweeps."""
        chosen = list(free)
        means = [half.total[chosen] / half.sweeps for half in self._halves]
        group_means = np.concatenate(
            [mean.reshape(len(chosen), GROUPS, -1).mean(axis=2) for mean in means], axis=1
        )
        sweeps = sum(half.sweeps for half in self._halves)
        squares = np.sum([half.squares[chosen] for half in self._halves], axis=0) / sweeps
        overall = np.sum([half.total[chosen] for half in self._halves], axis=0) / sweeps
        tiny = np.finfo(float).tiny
        variance = np.maximum(squares.mean(axis=1) - overall.mean(axis=1) ** 2, tiny)
        between = group_means.var(axis=1, ddof=1)
        within = np.maximum(variance - between, tiny)
        r_hat = np.sqrt(1.0 + between / within)
        autocorrelation = sweeps * overall.var(axis=1) / variance
        return float(r_hat.max()), float(autocorrelation.max())

    def effective(self, free: tuple[int, ...], draws: int) -> float:
        """Smallest effective number of the kept draws, from the spread of the chains' means."""
        kept = np.stack(self.kept)[:, list(free)]
        if len(kept) == 1:
            return float(draws)
        ratio = len(kept) * kept.mean(axis=0).var(axis=1) / kept.var(axis=(0, 2))
        return float(draws / max(1.0, float(ratio.max())))
