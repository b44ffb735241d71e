"""Search over side labels for the best constrained forest, many labelings at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.roles import Constraint

#: Free labels up to which all labelings are tried (2**14 forests); local search beyond.
MAXIMUM_BITS = 14
#: Labelings evaluated at a time: keeps the working set in the processor's cache.
_CHUNK = 512
#: Rounds of improvement a start may take; every round improves, so this bounds the work only.
_MAXIMUM_ROUNDS = 200

#: Two columns may be joined under a constraint when their labels share a bit.
_PROTECTED_SIDE, _OUTCOME_SIDE, _BOTH = 1, 2, 3

LabelArray = NDArray[np.uint8]
FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Labels:
    """Fixed labels per constraint and column, and where the free ones are.

    Attributes
    ----------
    fixed
        (constraints, columns): S-side, O-side or both (admissible); free ones stand S-side.
    free
        (constraint, column) of every free label.
    """

    fixed: LabelArray
    free: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, names: Sequence[str], constraints: Sequence[Constraint]) -> Labels:
        """Labels of columns in the order of ``names``."""
        fixed = np.full((len(constraints), len(names)), _PROTECTED_SIDE, dtype=np.uint8)
        free = []
        for k, rule in enumerate(constraints):
            for i, name in enumerate(names):
                if name in rule.admissible:
                    fixed[k, i] = _BOTH
                elif name in rule.outcome:
                    fixed[k, i] = _OUTCOME_SIDE
                elif name not in rule.protected:
                    free.append((k, i))
        return cls(fixed, tuple(free))

    def consistent(self, edges: Sequence[tuple[int, int]]) -> LabelArray:
        """Labels under which all edges of a constrained forest are allowed."""
        sides = self.fixed.copy()
        free = set(self.free)
        for k in range(len(sides)):
            reached = [i for i in range(sides.shape[1]) if sides[k, i] == _OUTCOME_SIDE]
            for node in reached:
                for one, other in edges:
                    if node in (one, other):
                        neighbour = other if node == one else one
                        if (k, neighbour) in free and sides[k, neighbour] != _OUTCOME_SIDE:
                            sides[k, neighbour] = _OUTCOME_SIDE
                            reached.append(neighbour)
        return sides


def best_labels(quality: FloatArray, labels: Labels, start: LabelArray) -> tuple[LabelArray, bool]:
    """Labels whose maximum spanning forest is best, and whether that is proven.

    Parameters
    ----------
    quality
        Symmetric (columns, columns) scores; ``-inf`` where a pair is not available.
    labels
        Fixed and free labels.
    start
        A labeling to improve on where enumeration is out of reach.
    """
    if len(labels.free) <= MAXIMUM_BITS:
        return _enumerate(quality, labels), True
    outcome_side = labels.fixed.copy()
    for k, node in labels.free:
        outcome_side[k, node] = _OUTCOME_SIDE
    climbed = [_climb(quality, labels, sides) for sides in (start, labels.fixed, outcome_side)]
    return max(climbed, key=lambda found: found[0])[1], False


def heaviest_forests(
    quality: FloatArray, sides: LabelArray
) -> tuple[IndexArray, FloatArray, IndexArray]:
    """Maximum spanning forest of the allowed pairs for many labelings at once (Prim).

    Parameters
    ----------
    quality
        Symmetric (d, d) scores.
    sides
        (labelings, constraints, d) labels.

    Returns
    -------
    tuple
        Edges and total score of each forest, and the (labelings, d) parents (-1 at roots).
    """
    count, _, size = sides.shape
    rows = np.arange(count)
    best = np.full((count, size), -np.inf)
    parents = np.full((count, size), -1, dtype=np.intp)
    outside = np.ones((count, size), dtype=np.bool_)
    edges = np.zeros(count, dtype=np.intp)
    total = np.zeros(count)
    for _ in range(size):
        pick = best.argmax(axis=1)
        value = best[rows, pick]
        connected = np.isfinite(value)
        pick = np.where(connected, pick, outside.argmax(axis=1))
        edges += connected
        total += np.where(connected, value, 0.0)
        outside[rows, pick] = False
        gain = quality[pick]
        better = (gain > best) & outside
        for k in range(sides.shape[1]):
            better &= (sides[:, k, :] & sides[rows, k, pick][:, None]) != 0
        np.copyto(best, gain, where=better)
        np.copyto(parents, pick[:, None], where=better)
        best[rows, pick] = -np.inf
    return edges, total, parents


def _enumerate(quality: FloatArray, labels: Labels) -> LabelArray:
    bits = len(labels.free)
    best: tuple[tuple[int, float], LabelArray] | None = None
    for first in range(0, 2**bits, _CHUNK):
        numbers = np.arange(first, min(first + _CHUNK, 2**bits))
        sides = np.repeat(labels.fixed[None], len(numbers), axis=0)
        for bit, (k, node) in enumerate(labels.free):
            sides[:, k, node] = np.where(numbers >> bit & 1, _OUTCOME_SIDE, _PROTECTED_SIDE)
        rank, winner = _winner(quality, sides)
        if best is None or rank > best[0]:
            best = rank, sides[winner]
    assert best is not None
    return best[1]


def _winner(quality: FloatArray, sides: LabelArray) -> tuple[tuple[int, float], int]:
    """Rank and index of the best labeling: most edges, then score, then the first."""
    edges, total, _ = heaviest_forests(quality, sides)
    total = np.where(edges == edges.max(), total, -np.inf)
    winner = int(total.argmax())
    return (int(edges[winner]), float(total[winner])), winner


def _climb(
    quality: FloatArray, labels: Labels, start: LabelArray
) -> tuple[tuple[int, float], LabelArray]:
    """Steepest ascent: flip one free label, or a whole branch of the current forest."""
    sides = start
    rank, _ = _winner(quality, sides[None])
    for _ in range(_MAXIMUM_ROUNDS):
        parents = heaviest_forests(quality, sides[None])[2][0]
        moves = np.repeat(sides[None], len(labels.free), axis=0)
        for move, (k, node) in enumerate(labels.free):
            moves[move, k, node] ^= _BOTH
        branches = list(_flipped_branches(labels, sides, parents))
        if branches:
            moves = np.concatenate([moves, np.stack(branches)])
        found, winner = _winner(quality, moves)
        # A gain below rounding is none; without this a tie could go round in circles.
        if found[0] < rank[0] or (
            found[0] == rank[0] and found[1] <= rank[1] + 1e-12 * max(1.0, abs(rank[1]))
        ):
            break
        rank, sides = found, moves[winner]
    return rank, sides


def _flipped_branches(
    labels: Labels, sides: LabelArray, parents: IndexArray
) -> Iterator[LabelArray]:
    """Labelings that move one branch of free columns to the other side.

    Cutting an edge of the forest leaves, outside A_k, the component of either end; it may move
    when none of its labels is fixed.
    """
    edges = [(int(node), int(parent)) for node, parent in enumerate(parents) if parent >= 0]
    neighbours: list[list[int]] = [[] for _ in parents]
    for one, other in edges:
        neighbours[one].append(other)
        neighbours[other].append(one)
    for k in range(len(sides)):
        free = {node for constraint, node in labels.free if constraint == k}
        for one, other in edges:
            for root, cut in ((one, other), (other, one)):
                branch = _branch(root, cut, neighbours, sides[k])
                if len(branch) > 1 and branch <= free:
                    flipped = sides.copy()
                    flipped[k, sorted(branch)] ^= _BOTH
                    yield flipped


def _branch(root: int, cut: int, neighbours: list[list[int]], sides: LabelArray) -> set[int]:
    seen, queue = {root}, [root]
    for node in queue:
        for neighbour in neighbours[node]:
            if neighbour in seen or sides[neighbour] == _BOTH or {node, neighbour} == {root, cut}:
                continue
            seen.add(neighbour)
            queue.append(neighbour)
    return seen if sides[root] != _BOTH else set()
