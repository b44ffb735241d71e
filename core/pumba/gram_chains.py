"""Parallel Markov chains over the sums of a Gram matrix, moved one coordinate at a time.

Given all others, one sum moves the moment matrix A along a fixed direction E, and the admissible
steps are an interval: with P the inverse of A, A + t E stays positive definite for t in
(-1 / λmax(P E), -1 / λmin(P E)); the linear rows bound t by ratios of slacks.  On that interval
the product of the noise laws that the step concerns is drawn exactly.

Both the released sums θ and the sums φ of scaled columns are moved: the former mix well where the
noise is small beside the support, the latter where the support shapes the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.pumba.draws import FloatArray
from core.pumba.gram_laws import GramTarget
from core.pumba.gram_slices import Direction, direction
from core.pumba.gram_steps import Releases, Step
from core.pumba.gram_support import SINGULAR, MomentSupport

REFRESH = 8  #: sweeps between exact inversions
#: Steps to matrices with a pivot below this share of the rows are refused (as by Metropolis).
NEARLY_SINGULAR = 10 * SINGULAR
INSIDE = 1.0 - 1e-8  #: share of each slice that is used, so that rounding does not leave it


@dataclass(frozen=True, eq=False)
class _Move:
    """One direction: how matrix, sums θ and φ, rows and releases follow a step along it."""

    direction: Direction
    raw: list[tuple[int, float]]
    scaled: list[tuple[int, float]]
    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    column: FloatArray
    step: Step


class Chains:
    """State of K chains: sums θ and φ, inverse moment matrices, slacks of the rows."""

    def __init__(
        self, target: GramTarget, start: FloatArray, generator: np.random.Generator
    ) -> None:
        """Start at sums θ (c, K) inside the support."""
        self._generator = generator
        self._support = target.support
        self._fewest = 1.0 if target.count is None else None
        self._scaled = self._support.to_scaled @ start
        self._safe = self._scaled.copy()
        releases = Releases(target, start.shape[1])
        self._releases = releases
        self._moves = [
            self._move(*found, releases) for found in moves(self._support, target.count is None)
        ]
        self._refresh()

    @property
    def theta(self) -> FloatArray:
        """Sums in the coordinates of the releases, (c, K)."""
        return self._theta

    def _move(self, raw: FloatArray, scaled: FloatArray, releases: Releases) -> _Move:
        cone = self._support.scaled
        column = cone.rows @ scaled
        column[np.abs(column) < 1e-12 * np.abs(column).max()] = 0.0
        return _Move(
            direction=direction(np.tensordot(scaled, cone.directions, axes=1)),
            raw=[(int(place), float(raw[place])) for place in np.flatnonzero(raw)],
            scaled=[(int(place), float(scaled[place])) for place in np.flatnonzero(scaled)],
            positive=np.flatnonzero(column > 0),
            negative=np.flatnonzero(column < 0),
            column=column[:, None],
            step=Step(raw, releases),
        )

    def sweep(self, number: int) -> None:
        """Move along every direction once, in random order."""
        if number % REFRESH == 0:
            self._refresh()
        self._releases.renew(self._theta, self._generator)
        for index in self._generator.permutation(len(self._moves)):
            self._advance(self._moves[index])

    def _refresh(self) -> None:
        """Compute everything anew; chains that rounding drove out return to where they were."""
        cone = self._support.scaled
        out = ~cone.contains(self._scaled)
        if out.any():
            self._scaled[:, out] = self._safe[:, out]
        self._safe = self._scaled.copy()
        self._theta = self._support.to_raw @ self._scaled
        inverse = np.linalg.inv(np.moveaxis(cone.matrices(self._scaled), 2, 0))
        self._inverse = np.ascontiguousarray(np.moveaxis(inverse, 0, 2))
        self._slack = cone.rows @ self._scaled

    def _advance(self, move: _Move) -> None:
        along = move.direction.at(self._inverse)
        low, high = along.low, along.high
        if move.positive.size:
            ratio = self._slack[move.positive] / move.column[move.positive]
            low = np.maximum(low, -ratio.min(axis=0))
        if move.negative.size:
            ratio = self._slack[move.negative] / -move.column[move.negative]
            high = np.minimum(high, ratio.min(axis=0))
        if self._fewest is not None and move.scaled[0][0] == 0:
            low = np.maximum(low, self._fewest - self._scaled[0])
        low = np.minimum(low, 0.0) * INSIDE
        high = np.maximum(high, 0.0) * INSIDE
        uniform = 1.0 - self._generator.random(low.shape)  # in (0, 1]
        step = np.clip(move.step.draw(self._theta, low, high, uniform), low, high)
        step = along.take(self._inverse, step, 1.0 / (NEARLY_SINGULAR * self._scaled[0]))
        for place, factor in move.scaled:
            self._scaled[place] += factor * step
        for place, factor in move.raw:
            self._theta[place] += factor * step
        if move.positive.size:
            self._slack[move.positive] += move.column[move.positive] * step
        if move.negative.size:
            self._slack[move.negative] += move.column[move.negative] * step


def moves(support: MomentSupport, unknown_count: bool) -> list[tuple[FloatArray, FloatArray]]:
    """Directions as vectors in θ and in φ: each sum of either kind, without repeats."""
    first = 0 if unknown_count else 1
    found = []
    for index in range(first, len(support.coordinates)):
        unit = np.eye(len(support.coordinates))[index]
        found.append((unit, support.to_scaled[:, index].copy()))
        if np.count_nonzero(support.to_raw[:, index]) > 1:
            found.append((support.to_raw[:, index].copy(), unit))
    return found
