"""Exact laws and draws of the cells of a table, whether their sum is unknown, noisy or exact.

Forward convolution of the cells' laws, then backward sampling: given the sum of the first j
cells, cell j is drawn from its own law and accepted with the probability of what remains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.pumba.laws import FloatArray
from core.pumba.table_windows import Tilted, Windows, trim

IntArray = NDArray[np.int64]

#: Products of lengths up to which convolution is done term by term.
DIRECT = 1 << 22
#: Most numbers that the partial sums of all cells may take to store.
MOST_STORED = 1 << 25
ROUNDS = 25


@dataclass(frozen=True, eq=False)
class Law:
    """Probabilities of the whole numbers ``first + arange(len(mass))``."""

    first: int
    mass: FloatArray

    def at(self, points: IntArray) -> FloatArray:
        """Probability of each point, 0 outside."""
        index = points - self.first
        inside = (index >= 0) & (index < len(self.mass))
        return np.where(inside, self.mass[np.clip(index, 0, len(self.mass) - 1)], 0.0)

    def draw(self, size: int, generator: np.random.Generator) -> IntArray:
        """Independent draws."""
        cumulative = np.cumsum(self.mass)
        uniform = generator.random(size) * cumulative[-1]
        index = np.searchsorted(cumulative, uniform, side="right")
        drawn: IntArray = self.first + np.minimum(index, len(self.mass) - 1)
        return drawn

    def add(self, other: Law) -> Law:
        """Law of the sum of two independent numbers."""
        if len(self.mass) * len(other.mass) <= DIRECT:
            mass = np.convolve(self.mass, other.mass)
        else:
            from scipy import fft

            length = len(self.mass) + len(other.mass) - 1
            size = fft.next_fast_len(length, real=True)
            product = fft.rfft(self.mass, size) * fft.rfft(other.mass, size)
            mass = fft.irfft(product, size)[:length]
        return Law(*trim(self.first + other.first, mass))


def laws_of(windows: Windows) -> list[Law]:
    """One law a cell."""
    return [Law(first, mass) for first, mass in zip(windows.first, windows.mass, strict=True)]


def affordable(found: Tilted) -> bool:
    """Whether the partial sums of all cells can be stored; their windows grow like a root."""
    widths = np.sort([len(mass) for mass in found.cells.mass])[::-1].astype(float)
    return found.total is None or float(np.sqrt(np.cumsum(widths**2)).sum()) <= MOST_STORED


def draw_exact(found: Tilted, draws: int, generator: np.random.Generator) -> FloatArray:
    """Independent draws (draws, cells) of the counts."""
    laws = laws_of(found.cells)
    if found.total is None:
        return np.stack([law.draw(draws, generator) for law in laws], axis=1).astype(np.float64)
    # Widest first, so that what remains is always at least as wide as the cell that is drawn.
    order = sorted(range(len(laws)), key=lambda cell: -len(laws[cell].mass))
    partial = [laws[order[0]]]
    for cell in order[1:]:
        partial.append(partial[-1].add(laws[cell]))
    values = np.empty((draws, len(laws)))
    remaining = _total(partial[-1], *found.total).draw(draws, generator)
    for step in range(len(order) - 1, 0, -1):
        drawn = _backward(laws[order[step]], partial[step - 1], remaining, generator)
        values[:, order[step]] = drawn
        remaining = remaining - drawn
    values[:, order[0]] = remaining
    return values


def marginal_laws(found: Tilted) -> list[Law]:
    """Exact law of each cell's count given all releases."""
    laws = laws_of(found.cells)
    if found.total is None:
        return laws
    before, after = [Law(0, np.ones(1))], [Law(0, np.ones(1))]
    for forward, backward in zip(laws[:-1], laws[:0:-1], strict=True):
        before.append(before[-1].add(forward))
        after.append(after[-1].add(backward))
    first, mass = found.total
    marginals = []
    for cell, law in enumerate(laws):
        rest = before[cell].add(after[len(laws) - 1 - cell])
        # The probability that the rest makes up a total of this law, for each count of the cell.
        minus = Law(-(rest.first + len(rest.mass) - 1), rest.mass[::-1])
        needed = Law(first, mass).add(minus)
        points = law.first + np.arange(len(law.mass))
        joint = law.mass * needed.at(points)
        marginals.append(Law(*trim(law.first, joint / joint.sum())))
    return marginals


def total_law(found: Tilted) -> Law:
    """Exact law of the number of rows given all releases."""
    laws = laws_of(found.cells)
    everything = laws[0]
    for law in laws[1:]:
        everything = everything.add(law)
    if found.total is None:
        return everything
    law = _total(everything, *found.total)
    return Law(law.first, law.mass / law.mass.sum())


def _total(sums: Law, first: int, mass: FloatArray) -> Law:
    """The sum of the cells, weighted by what is known of the total."""
    points = first + np.arange(len(mass))
    joint = sums.at(points) * mass
    return Law(*trim(first, joint))


def _backward(own: Law, rest: Law, remaining: IntArray, generator: np.random.Generator) -> IntArray:
    """Draw a cell given its sum with the rest: own(k) rest(remaining - k)."""
    drawn = np.empty_like(remaining)
    open_ = np.arange(len(remaining))
    highest = rest.mass.max()
    for _ in range(ROUNDS):
        proposed = own.draw(len(open_), generator)
        share = rest.at(remaining[open_] - proposed) / highest
        accepted = generator.random(len(open_)) < share
        drawn[open_[accepted]] = proposed[accepted]
        open_ = open_[~accepted]
        if not len(open_):
            return drawn
    # Sums far from the rest's usual size: their few distinct values get a table each.
    points = own.first + np.arange(len(own.mass))
    values, where = np.unique(remaining[open_], return_inverse=True)
    for index, value in enumerate(values):
        members = open_[where == index]
        law = Law(own.first, own.mass * rest.at(value - points))
        drawn[members] = law.draw(len(members), generator)
    return drawn
