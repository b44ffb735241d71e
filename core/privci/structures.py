"""The structures on offer: ``mst``, ``privci``, ``privci-exact`` and ``prefair``, one engine.

Every structure is a spanning forest that is as large as its rule permits.  Scores may be negative
(noise); a pair is then still joined, because a missing edge says "independent", which no noisy
score can claim.  "Best" therefore means: most edges first, then the largest total score.
Ties fall to the pair whose names come first, so the order of columns changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import EstimationError, PlanError
from core.privci.constraint import ConstraintFilter, Pair
from core.privci.exact_structure import Labels, best_labels
from core.releases import SelectionStep
from core.roles import Constraint

#: Name and one line for each structure.
STRUCTURES: Mapping[str, str] = {
    "mst": "no constraint: the unconstrained baseline",
    "privci": "greedy under the constraint (arXiv 2603.12112)",
    "privci-exact": "the best constrained tree from noisy scores of all pairs",
    "prefair": "greedy; outcomes touch admissible columns only",
}


@dataclass(frozen=True)
class Forest:
    """A chosen forest.

    Attributes
    ----------
    edges
        Pairs in the order of joining, names sorted.
    score
        Total score of the edges.
    method
        ``greedy``, ``exact`` or ``heuristic`` (local search, where exact is out of reach).
    """

    edges: tuple[Pair, ...]
    score: float
    method: str


def growth(
    structure: str, columns: Sequence[str], constraints: Sequence[Constraint]
) -> ConstraintFilter:
    """The filter under which a structure grows.

    Raises
    ------
    PlanError
        No structure has that name.
    """
    if structure not in STRUCTURES:
        raise PlanError(f"structure {structure!r} is unknown; choose {', '.join(STRUCTURES)}")
    if structure == "mst":
        return ConstraintFilter(columns, ())
    return ConstraintFilter(
        columns, constraints, outcomes_touch_admissible_only=structure == "prefair"
    )


def rounds(structure: str, columns: Sequence[str], constraints: Sequence[Constraint]) -> int:
    """Most edges that the structure can have, from public roles alone.

    This is the number of selection rounds that the budget is split over (``privci-exact`` has one
    joint draw instead, but as many edges).  It is met exactly for ``mst``, for ``prefair`` and
    under one constraint: d - 1, or d - 2 when A is empty.  Several constraints can end in an
    earlier forest; the budget of the rounds left over is then forfeited.

    >>> rule = Constraint(frozenset({"s"}), frozenset({"o"}))
    >>> rounds("mst", ["s", "o", "x"], [rule]), rounds("privci", ["s", "o", "x"], [rule])
    (2, 1)
    """
    joinable = growth(structure, columns, constraints).candidates()
    spanning = ConstraintFilter(columns, ())
    for pair in joinable:
        if spanning.allowed(*pair):
            spanning.join(*pair)
    parts = len(spanning.components)
    if structure in ("privci", "privci-exact") and any(
        rule.is_active and not rule.admissible for rule in constraints
    ):
        parts = max(parts, 2)
    return len(columns) - parts


def record(index: int, pair: Pair, rows: ConstraintFilter) -> SelectionStep:
    """Join a pair and write the step down."""
    candidates = rows.count()
    forbidden = rows.join(*pair)
    return SelectionStep(index, pair, candidates, rows.components, forbidden)


def greedy_forest(
    scores: Mapping[Pair, float],
    columns: Sequence[str],
    constraints: Sequence[Constraint],
    *,
    structure: str = "privci",
) -> Forest:
    """Kruskal by falling score under the structure's filter; no privacy of its own.

    Parameters
    ----------
    scores
        Score of each pair that may be used, names sorted.
    columns
        Names of all columns.
    constraints
        The list (S_k, O_k, A_k).
    structure
        ``mst``, ``privci`` or ``prefair``.

    Notes
    -----
    Not optimal under a constraint:

    >>> rule = Constraint(frozenset({"s"}), frozenset({"o"}), frozenset({"a"}))
    >>> trap = {("s", "x"): 10.0, ("o", "x"): 9.9, ("a", "x"): 9.0, ("a", "s"): 8.0,
    ...         ("a", "o"): 0.0, ("o", "s"): 0.0}
    >>> greedy_forest(trap, "soxa", [rule]).score, exact_forest(trap, "soxa", [rule]).score
    (19.0, 26.9)
    """
    rows = growth(structure, columns, constraints)
    edges = []
    for pair in _falling(scores):
        if rows.allowed(*pair):
            rows.join(*pair)
            edges.append(pair)
    return _forest(edges, scores, "greedy")


def exact_forest(
    scores: Mapping[Pair, float], columns: Sequence[str], constraints: Sequence[Constraint]
) -> Forest:
    """The best constrained forest: most edges, then the largest total score.

    A forest keeps constraint k exactly when every column outside A_k can be labelled S-side or
    O-side (S_k and O_k fixed) such that edges outside A_k join equal labels.  Given the labels the
    best forest is a maximum spanning forest of the allowed pairs, so the search is over the labels
    of neutral columns: all of them up to 14 free labels in total (method ``exact``), local search
    from several starts beyond (method ``heuristic``; at least as good as ``privci`` on the same
    scores, and as ``prefair`` where that has as many edges).

    Parameters
    ----------
    scores
        Score of each pair that may be used, names sorted; negative scores are fine.
    columns
        Names of all columns.
    constraints
        The list (S_k, O_k, A_k).
    """
    names = sorted(columns)
    index = {name: i for i, name in enumerate(names)}
    active = [rule for rule in constraints if rule.is_active]
    ConstraintFilter(columns, constraints)  # refuses columns that are not modelled
    quality = np.full((len(names), len(names)), -np.inf)
    falling = _falling(scores)
    for one, other in falling:
        quality[index[one], index[other]] = scores[one, other]
        quality[index[other], index[one]] = scores[one, other]
    labels = Labels.of(names, active)
    greedy = greedy_forest(scores, columns, constraints)
    sides, exact = best_labels(
        quality, labels, labels.consistent([(index[a], index[b]) for a, b in greedy.edges])
    )
    rows = ConstraintFilter(columns, constraints)
    edges = []
    for one, other in falling:
        equal = bool(np.all(sides[:, index[one]] & sides[:, index[other]]))
        if equal and rows.allowed(one, other):
            rows.join(one, other)
            edges.append((one, other))
    return _forest(edges, scores, "exact" if exact else "heuristic")


def _falling(scores: Mapping[Pair, float]) -> list[Pair]:
    for (one, other), value in scores.items():
        if not one < other:
            raise ValueError(f"pair {(one, other)} is not in sorted order")
        if not math.isfinite(value):
            raise EstimationError(f"the score of {one!r} and {other!r} is not a finite number")
    return sorted(scores, key=lambda pair: (-scores[pair], pair))


def _forest(edges: Sequence[Pair], scores: Mapping[Pair, float], method: str) -> Forest:
    return Forest(tuple(edges), math.fsum(scores[pair] for pair in edges), method)
