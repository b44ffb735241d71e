"""Counts of a table given releases of any weighted sums of its cells: Gibbs on the lattice.

Many chains move at once along whole-number directions that keep what accurate releases fix: one
cell, or two cells of a row (column, table) in opposite ways, or the four corners of a rectangle.
Along a direction a chain picks among points of a randomly placed, randomly spaced grid through
its present state, with the probabilities of the target; that leaves the target invariant for any
noise, censored or not, and there is nothing to tune.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.protocols import Progress
from core.pumba.draws import Diagnostics, FloatArray, StatisticDraws
from core.pumba.laws import lattice_log_likelihood
from core.pumba.noisy_table import NoisyTable
from core.pumba.table_blocks import Blocks
from core.pumba.table_windows import cell_tops, split_releases
from core.statistics import NoisyStatistic

IntArray = NDArray[np.int64]

GROUPS, CHAINS = 8, 400
#: Block moves in a sweep.
BLOCKS = 3
#: Cells far from 0 that move along lines in a sweep.
LEAST_LINES = 4
#: Points of the grid along a direction.
POINTS = 24
#: Logarithms of the least and greatest spacing, in standard deviations.
SPACING = (-3.0, 0.7)
FIRST_SWEEPS, MOST_SWEEPS = 20, 1280
AGREEMENT = 1.01
#: Most numbers that the trace may hold.
MOST_STORED = 1 << 25
#: Longest table of a censored release's likelihood.
LONGEST_TABLE = 1 << 20


@dataclass(frozen=True, eq=False)
class Direction:
    """Cells that move, by how much each, and what that does to each release's weighted sum."""

    cells: IntArray
    steps: FloatArray
    slopes: FloatArray
    scale: float  #: standard deviation of a step under normal noise of the same variances


def draw_gibbs(
    table: NoisyTable,
    draws: int,
    generator: np.random.Generator,
    progress: Progress | None = None,
) -> StatisticDraws:
    """Draws (draws, cells) from parallel chains, with nested R-hat and effective sample size.

    Warm-up is as long as what is kept; both double until the groups of chains agree and the draws
    are worth as many independent ones, or until 1,280 sweeps, which the diagnostics then tell.
    """
    chains = _Chains(table, generator)
    most = min(MOST_SWEEPS, max(FIRST_SWEEPS, MOST_STORED // chains.counts.size))
    sweeps, done = FIRST_SWEEPS, 0
    trace = np.empty((0, *chains.counts.shape))
    while True:
        recorded = []
        # At first all of the warm-up; afterwards what was recorded before becomes warm-up.
        warm_up = 0 if done else sweeps
        for step in range(warm_up + sweeps):
            chains.sweep()
            done += 1
            if step >= warm_up:
                recorded.append(chains.counts.copy())
            if progress is not None:
                progress("statistics", step + 1, warm_up + sweeps, "parallel Gibbs")
        trace = np.array(recorded)
        r_hat, effective = convergence(trace)
        if (r_hat <= AGREEMENT and effective >= draws) or 2 * sweeps > most:
            break
        sweeps = done
    diagnostics = Diagnostics(
        "gibbs",
        chains=CHAINS,
        sweeps=done,
        r_hat=r_hat,
        effective=min(effective, float(draws)),
        outside_support=table.outside_support,
    )
    return StatisticDraws(_thin(trace, draws, generator), diagnostics)


def convergence(trace: FloatArray) -> tuple[float, float]:
    """Largest nested R-hat and smallest effective sample size of a trace (sweeps, chains, k).

    The chains of a group, which stand next to each other, had one start in common.  The effective
    size is that of independent draws whose mean would vary as the chains' means do.

    Source: Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman, "Nested R-hat" (2024).
    """
    sweeps, number, size = trace.shape
    means = trace.mean(axis=0)
    variance = trace.reshape(-1, size).var(axis=0)
    moving = variance > 0
    if not np.any(moving):
        return 1.0, float(sweeps * number)
    grouped = means.reshape(GROUPS, -1, size)
    inside = trace.var(axis=0, ddof=1).reshape(GROUPS, -1, size).mean(axis=1)
    within = (grouped.var(axis=1, ddof=1) + inside).mean(axis=0)
    between = grouped.mean(axis=1).var(axis=0, ddof=1)
    r_hat = np.sqrt(1.0 + between[moving] / within[moving])
    spread = np.maximum(means.var(axis=0, ddof=1), variance / (sweeps * number))
    effective = number * variance[moving] / spread[moving]
    return float(r_hat.max()), float(min(effective.min(), sweeps * number))


def _thin(trace: FloatArray, draws: int, generator: np.random.Generator) -> FloatArray:
    """``draws`` states, evenly from the trace and in random order."""
    flat = trace.reshape(-1, trace.shape[-1])
    if draws > len(flat):
        return flat[generator.integers(0, len(flat), draws)]
    chosen = np.linspace(0, len(flat) - 1, draws).astype(np.int64)
    thinned: FloatArray = flat[generator.permutation(chosen)]
    return thinned


class _Chains:
    """States (chains, cells) and the weighted sums (chains, releases) that go with them."""

    def __init__(self, table: NoisyTable, generator: np.random.Generator) -> None:
        self._generator = generator
        self._fixed = table.total if isinstance(table.total, int) else None
        self._shape = table.shape
        self._factors = [
            factor
            for factor in table.factors
            if self._fixed is None or len(set(factor.weights)) > 1
        ]
        self._weights = np.array([factor.weights for factor in self._factors])
        self._top = cell_tops(table, split_releases(table))
        self._deviations = np.array([factor.statistic.law.sd for factor in self._factors])
        reach = np.abs(self._weights) @ self._top
        self._logs = [
            _Curve(factor.statistic, float(end))
            for factor, end in zip(self._factors, reach, strict=True)
        ]
        self._directions: dict[tuple[int, ...], Direction] = {}
        centre, covariance = self._least_squares()
        self._blocks = Blocks.of(
            self._factors,
            self._logs,
            self._top,
            fixed=self._fixed is not None,
            centre=centre,
            deviation=np.sqrt(np.diag(covariance)),
        )
        self.counts = self._starts(centre, covariance)
        self._sums = self.counts @ self._weights.T

    def sweep(self) -> None:
        """As many moves of each kind as there are cells, and some of whole blocks."""
        size = self.counts.shape[1]
        if self._blocks.useful:
            for _ in range(1 if self._blocks.mixed else BLOCKS):
                self.counts = self._blocks.move(self.counts, self._generator)
            self._sums = self.counts @ self._weights.T
        for cell in self._line_cells(size):
            if self._fixed is None:
                self._move(self._direction((int(cell),)))
            self._move(self._direction(self._pair(int(cell))))
            if len(self._shape) == 2 and min(self._shape) > 1 and cell % 2 == 0:
                self._move(self._direction(self._rectangle()))

    def _line_cells(self, size: int) -> IntArray:
        """Cells that move alone and in small sets: all that blocks leave out, and a few others."""
        if not self._blocks.useful:
            return self._generator.permutation(size)
        near = np.setdiff1d(np.arange(size), self._blocks.far)
        few = min(len(self._blocks.far), max(LEAST_LINES, len(self._blocks.far) // 8))
        others = self._generator.choice(self._blocks.far, few, replace=False)
        return self._generator.permutation(np.concatenate([near, others]))

    def _pair(self, cell: int) -> tuple[int, int]:
        """Another cell: of the same row, of the same column, or any."""
        size = self.counts.shape[1]
        kind = self._generator.integers(3) if len(self._shape) == 2 else 2
        while True:
            other = int(self._generator.integers(size))
            if kind < 2 and self._shape[1 - kind] > 1:
                row, column = np.unravel_index(cell, self._shape)
                if kind == 0:
                    column = self._generator.integers(self._shape[1])
                else:
                    row = self._generator.integers(self._shape[0])
                other = int(np.ravel_multi_index((int(row), int(column)), self._shape))
            if other != cell:
                return cell, other

    def _rectangle(self) -> tuple[int, int, int, int]:
        rows = self._generator.choice(self._shape[0], 2, replace=False)
        columns = self._generator.choice(self._shape[1], 2, replace=False)
        first = rows * self._shape[1]
        corners = (first[0] + columns[0], first[0] + columns[1])
        return (*corners, first[1] + columns[1], first[1] + columns[0])

    def _direction(self, cells: tuple[int, ...]) -> Direction:
        """The cells alternate in sign."""
        if cells not in self._directions:
            steps = np.array([1.0, -1.0, 1.0, -1.0])[: len(cells)]
            index = np.array(cells, dtype=np.int64)
            slopes = self._weights[:, index] @ steps
            information = float(((slopes / self._deviations) ** 2).sum())
            self._directions[cells] = Direction(index, steps, slopes, information**-0.5)
        return self._directions[cells]

    def _move(self, direction: Direction) -> None:
        generator, number = self._generator, len(self.counts)
        # Any law of the spacing does that does not look at the state.  Wide ones cross the flat
        # stretches that Laplace releases at odds with each other leave; 1 reaches every point.
        spacing = max(1.0, round(direction.scale * math.exp(generator.uniform(*SPACING))))
        if generator.random() < 0.1:
            spacing = 1.0
        place = generator.integers(0, POINTS, number)
        offsets = cast(FloatArray, spacing * (np.arange(POINTS) - place[:, None]))
        logs = np.zeros(offsets.shape)
        for index in np.flatnonzero(direction.slopes):
            logs += self._logs[index].along(self._sums[:, index], direction.slopes[index], offsets)
        for cell, step in zip(direction.cells, direction.steps, strict=True):
            moved = self.counts[:, cell, None] + step * offsets
            logs[(moved < 0) | (moved > self._top[cell])] = -np.inf
        mass = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        target = generator.random(number) * mass[:, -1]
        chosen = (mass <= target[:, None]).sum(axis=1)
        step = offsets[np.arange(number), np.minimum(chosen, POINTS - 1)]
        self.counts[:, direction.cells] += step[:, None] * direction.steps
        self._sums += step[:, None] * direction.slopes

    def _least_squares(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the cells under normal noise of the same variances."""
        scaled = self._weights / self._deviations[:, None]
        values = np.array([factor.statistic.value for factor in self._factors])
        covariance = np.linalg.inv(scaled.T @ scaled)
        centre = covariance @ scaled.T @ (values / self._deviations)
        if self._fixed is not None:
            gain = covariance.sum(axis=1) / covariance.sum()
            centre = centre + gain * (self._fixed - centre.sum())
            covariance = covariance - np.outer(gain, covariance.sum(axis=0))
        return centre, covariance

    def _starts(self, centre: FloatArray, covariance: FloatArray) -> FloatArray:
        """One point a group: the least squares fit, spread out, made whole and possible."""
        root = np.linalg.cholesky(
            covariance + 1e-9 * np.trace(covariance) / len(centre) * np.eye(len(centre))
        )
        normal = self._generator.standard_normal((GROUPS, len(centre)))
        counts = np.clip(np.rint(centre + 2.0 * normal @ root.T), 0.0, self._top)
        if self._fixed is not None:
            for row in counts:
                _make_total(row, self._fixed, self._top, self._generator)
        starts: FloatArray = np.repeat(counts, CHAINS // GROUPS, axis=0)
        return starts


class _Curve:
    """Log likelihood of one release at weighted sums; censored ones from a table."""

    def __init__(self, statistic: NoisyStatistic, reach: float) -> None:
        self._statistic = statistic
        self._table: FloatArray | None = None
        self._reach = math.ceil(reach)
        self._scale = statistic.law.scale
        self._laplace = statistic.law.family.laplace
        self._censored = statistic.value in statistic.clamped
        if self._censored and self._reach <= LONGEST_TABLE:
            points = np.arange(-self._reach, self._reach + 1.0)
            self._table = lattice_log_likelihood(statistic, points)

    def along(self, sums: FloatArray, slope: float, offsets: FloatArray) -> FloatArray:
        """At ``sums + slope * offsets`` (chains, points), up to a constant."""
        if self._censored:
            return self(sums[:, None] + slope * offsets)
        distance = (self._statistic.value - sums)[:, None] - slope * offsets
        distance /= self._scale
        return -np.abs(distance) if self._laplace else -0.5 * distance**2

    def __call__(self, sums: FloatArray) -> FloatArray:
        """At sums of any shape; those out of reach belong to impossible counts."""
        if self._table is None:
            return lattice_log_likelihood(self._statistic, sums)
        index = np.clip(sums + self._reach, 0, len(self._table) - 1)
        return self._table[index.astype(np.int64)]


def _make_total(
    counts: FloatArray, total: int, top: FloatArray, generator: np.random.Generator
) -> None:
    """Add to or take from random cells until the counts add up (a start need not be likely)."""
    while (missing := total - counts.sum()) != 0:
        room = np.flatnonzero(counts < top if missing > 0 else counts > 0)
        share = max(1.0, abs(missing) // len(room))
        cell = generator.choice(room)
        limit = top[cell] - counts[cell] if missing > 0 else counts[cell]
        counts[cell] += math.copysign(min(share, limit, abs(missing)), missing)
