"""Counts of single cells: where their likelihood lies, tilted so that the cells fit a total.

Multiplying every cell's likelihood by exp(tilt · k) changes nothing once the sum of the cells is
given.  With the right tilt the cells' own laws add up to the total on average, so that a window
around each holds all but a share of 1e-19 of its mass, however far off the released values are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from core.pumba.laws import FloatArray, lattice_log_likelihood, log_density
from core.pumba.noisy_table import NoisyTable, TableQuery
from core.pumba.sums import bracket
from core.statistics import NoiseLaw, NoisyStatistic

#: Widest window of a cell that the exact sampler takes on.
WIDEST = 1 << 21
#: A tilt steeper than all releases by this much makes every count a certainty.
CERTAIN = 50.0


@dataclass(frozen=True, eq=False)
class Rows:
    """Log likelihoods of several whole unknowns, one a row, each the product of releases.

    ``members`` has, a row, (weight, release) pairs.
    """

    members: tuple[tuple[tuple[float, NoisyStatistic], ...], ...]
    _groups: dict[tuple[NoiseLaw, float], tuple[list[int], list[float]]] = field(init=False)
    _single: list[tuple[int, float, NoisyStatistic]] = field(init=False)

    def __post_init__(self) -> None:
        """Put releases that share law and weight into one vectorised group."""
        groups: dict[tuple[NoiseLaw, float], tuple[list[int], list[float]]]
        groups = defaultdict(lambda: ([], []))
        single = []
        for row, releases in enumerate(self.members):
            for weight, release in releases:
                if release.value in release.clamped:
                    single.append((row, weight, release))
                else:
                    group = groups[release.law, weight]
                    group[0].append(row)
                    group[1].append(release.value)
        object.__setattr__(self, "_groups", dict(groups))
        object.__setattr__(self, "_single", single)

    def log(self, points: FloatArray) -> FloatArray:
        """At points (rows, g)."""
        logs = np.zeros(points.shape)
        for (law, weight), (rows, values) in self._groups.items():
            centre = np.array(values)[:, None]
            # A row may occur twice in a group: two releases of one cell.
            np.add.at(logs, rows, log_density(law, centre - weight * points[rows]))
        for row, weight, release in self._single:
            logs[row] += lattice_log_likelihood(release, weight * points[row])
        return logs

    def highest(self) -> FloatArray:
        """A count of each row beyond which all its releases speak against more."""
        tops = [
            max(abs(release.value) + 60.0 * release.law.scale for _, release in releases)
            if releases
            else 0.0
            for releases in self.members
        ]
        highest: FloatArray = np.ceil(np.array(tops)) + 1.0
        return highest

    def steepest(self, top: FloatArray) -> float:
        """The largest slope of any row's log likelihood on [0, top]."""
        steepest = 0.0
        for releases, end in zip(self.members, top, strict=True):
            slope = 0.0
            for weight, release in releases:
                scale = release.law.scale / abs(weight)
                farthest = abs(release.value / weight) + end
                slope += 1.0 / scale if release.law.family.laplace else farthest / scale**2
            steepest = max(steepest, slope)
        return steepest


@dataclass(frozen=True, eq=False)
class Windows:
    """Probabilities of whole unknowns on windows: ``first[j] + arange(len(mass[j]))``."""

    first: tuple[int, ...]
    mass: tuple[FloatArray, ...]

    @classmethod
    def around(cls, rows: Rows, top: FloatArray, tilt: float) -> Windows | None:
        """Tilted laws on [0, top]; None where a window is too wide."""

        def density(points: FloatArray) -> FloatArray:
            return rows.log(points) + tilt * points

        low, high = bracket(lambda points: density(np.rint(points)), np.zeros(len(top)), top)
        low, high = np.floor(low), np.ceil(high)
        width = int((high - low).max()) + 1
        if width > WIDEST or width * len(top) > 8 * WIDEST:
            return None
        points = low[:, None] + np.arange(width)
        logs = np.where(points <= high[:, None], density(points), -np.inf)
        mass = np.exp(logs - logs.max(axis=1, keepdims=True))
        mass /= mass.sum(axis=1, keepdims=True)
        parts = [trim(int(start), row) for start, row in zip(low, mass, strict=True)]
        return cls(tuple(first for first, _ in parts), tuple(kept for _, kept in parts))

    @property
    def mean(self) -> float:
        """Sum of the rows' means."""
        return float(
            sum(
                float(np.dot(start + np.arange(len(mass)), mass))
                for start, mass in zip(self.first, self.mass, strict=True)
            )
        )

    @property
    def variance(self) -> float:
        """Sum of the rows' variances."""
        total = 0.0
        for mass in self.mass:
            at = np.arange(len(mass))
            mean = float(np.dot(at, mass))
            total += float(np.dot((at - mean) ** 2, mass))
        return total


def trim(first: int, mass: FloatArray, share: float = 1e-22) -> tuple[int, FloatArray]:
    """Without ends whose mass is nothing beside the largest; rounding below 0 is 0."""
    mass = np.maximum(mass, 0.0)
    large = np.flatnonzero(mass > share * mass.max())
    return first + int(large[0]), mass[large[0] : large[-1] + 1]


@dataclass(frozen=True, eq=False)
class Split:
    """A table's releases, sorted by what they are about."""

    cells: Rows
    total: tuple[tuple[float, NoisyStatistic], ...]
    others: tuple[TableQuery, ...]


def split_releases(table: NoisyTable) -> Split:
    """Releases of one cell, of the sum of all cells, and all others."""
    cells: list[list[tuple[float, NoisyStatistic]]] = [[] for _ in table.cells]
    total, others = [], []
    for factor in table.factors:
        weights = np.array(factor.weights)
        used = np.flatnonzero(weights)
        if len(used) == 1:
            cells[used[0]].append((float(weights[used[0]]), factor.statistic))
        elif np.all(weights == weights[0]):
            total.append((float(weights[0]), factor.statistic))
        else:
            others.append(factor)
    return Split(Rows(tuple(tuple(cell) for cell in cells)), tuple(total), tuple(others))


@dataclass(frozen=True, eq=False)
class Tilted:
    """Windows of the cells under the right tilt, and the total's law under the opposite one.

    ``total`` is None where the cells are independent, else (first, mass) of the number of rows: a
    single point where it is exact.
    """

    cells: Windows
    total: tuple[int, FloatArray] | None


def tilted(table: NoisyTable, split: Split) -> Tilted | None:
    """Find the tilt by bisection and secants; None where windows get too wide."""
    top = cell_tops(table, split)
    exact = table.total if isinstance(table.total, int) else None
    if exact is None and not split.total:
        alone = Windows.around(split.cells, top, 0.0)
        return None if alone is None else Tilted(alone, None)
    sums = Rows((split.total,))
    reach = np.array([top.sum()])

    def evaluate(at: float) -> tuple[Windows, tuple[int, FloatArray], float, float] | None:
        cells = Windows.around(split.cells, top, at)
        if cells is None:
            return None
        if exact is not None:
            return cells, (exact, np.ones(1)), cells.mean - exact, cells.variance
        total = Windows.around(sums, reach, -at)
        if total is None:
            return None
        gap = cells.mean - total.mean
        return cells, (total.first[0], total.mass[0]), gap, cells.variance + total.variance

    high = split.cells.steepest(top) + sums.steepest(reach) + CERTAIN
    low, at = -high, 0.0
    for step in range(100):
        found = evaluate(at)
        if found is None:
            return None
        cells, total, gap, variance = found
        if abs(gap) <= 0.1 * np.sqrt(variance) + 1e-9 or high - low < 1e-12:
            break
        low, high = (low, at) if gap > 0 else (at, high)
        newton = at - gap / variance if variance > 1e-9 else np.inf
        # Every third step halves the interval: Newton crawls where the variance changes fast.
        at = newton if low < newton < high and step % 3 < 2 else 0.5 * (low + high)
    return Tilted(cells, total)


def cell_tops(table: NoisyTable, split: Split) -> FloatArray:
    """The largest count that need be considered in each cell."""
    if isinstance(table.total, int):
        top = np.full(len(table.cells), float(table.total))
    else:
        # What pulls a count up is its own release, the total's, or a margin's.
        shared = (split.total, *(((1.0, other.statistic),) for other in split.others))
        pull = Rows(tuple(shared)).highest().max(initial=0.0)
        top = split.cells.highest() + pull
    return top if table.cap is None else np.minimum(top, float(table.cap))
