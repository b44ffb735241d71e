"""Sensitivity of every query that a grant answers: one function a row of the privacy rules.

L2 sensitivities are *squared* and exact (``Fraction``); selection scores have a plain sensitivity.
``rows`` is k, the most rows that one protected unit can have: a unit's effect is at most the sum
of k single rows' effects, so every sensitivity grows by k and ρ by k².  ``exact`` in a docstring
means that some pair of tables attains the value; ``bound`` that none exceeds it.

The moment rows hold for rows scaled into the box [-1, 1]^d, see :class:`core.moments.MomentFrame`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import numpy as np

from core.errors import BudgetError
from core.moments import Monomial
from core.releases import Relation

Edge = tuple[str, str]

#: Graphs of up to this many nodes get their maximum cut by enumeration, others the edge count.
CUT_NODES = 16


def _by(relation: Relation, add_remove: Fraction | int, replace_one: Fraction | int) -> Fraction:
    return Fraction(add_remove if relation is Relation.ADD_REMOVE else replace_one)


def _positive(value: int, what: str) -> None:
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise BudgetError(f"{what} must be a whole number of at least 1")


def histograms(tables: int, relation: Relation, rows: int = 1) -> Fraction:
    """T contingency tables of any order, released together: T, or 2T (exact).

    A row adds 1 to one cell of each table; a replaced row moves from one cell to another.
    """
    _positive(tables, "the number of tables")
    _positive(rows, "the rows a unit")
    return _by(relation, tables, 2 * tables) * rows**2


def row_count(relation: Relation, rows: int = 1) -> Fraction:
    """The number of rows: 1, or 0 because it is public (exact).

    Raises
    ------
    BudgetError
        Under ``replace_one`` with k > 1: replacing a unit may change how many rows it has, so
        the count is private again.
    """
    _positive(rows, "the rows a unit")
    if relation is Relation.REPLACE_ONE and rows > 1:
        raise BudgetError("the row count is private when a unit may have several rows")
    return _by(relation, 1, 0) * rows**2


def pair_score(relation: Relation, rows: int = 1) -> int:
    """L1 distance of one pair table to a *frozen* reference, plain: 1, or 2 (exact).

    Frozen: recomputing the reference from the data pushes this beyond 3.
    """
    _positive(rows, "the rows a unit")
    return int(_by(relation, 1, 2)) * rows


def pair_score_vector(pairs: int, relation: Relation, rows: int = 1) -> Fraction:
    """Scores of m pairs as one vector: m, or 4m (bound)."""
    _positive(pairs, "the number of pairs")
    return pairs * Fraction(pair_score(relation, rows)) ** 2


def centred_sums(half_widths: Sequence[Fraction], relation: Relation, rows: int = 1) -> Fraction:
    """Sums of z = x - centre within ±h, jointly: Σh², or 4Σh² (exact).

    One column: h, or 2h, before squaring.
    """
    total = sum((Fraction(half) ** 2 for half in half_widths), Fraction(0))
    return _by(relation, total, 4 * total) * rows**2


def centred_squares(half_widths: Sequence[Fraction], relation: Relation, rows: int = 1) -> Fraction:
    """Sums of z² with z within ±h, jointly: Σh⁴ under both relations (exact).

    z² lies in [0, h²], so a replaced row changes it by no more than an added one.
    """
    total = sum((Fraction(half) ** 4 for half in half_widths), Fraction(0))
    return _by(relation, total, total) * rows**2


def product_sum(diagonal: bool, relation: Relation, rows: int = 1) -> Fraction:
    """One scaled sum x_j x_k: 1, or 4; of x_j²: 1 under both (exact)."""
    return _by(relation, 1, 1 if diagonal else 4) * rows**2


def diagonals(columns: int, relation: Relation, rows: int = 1) -> Fraction:
    """All d sums of squares of scaled columns: d under both relations (exact)."""
    _positive(columns, "the number of columns")
    return _by(relation, columns, columns) * rows**2


def triangle(
    columns: int,
    relation: Relation,
    rows: int = 1,
    weight_squared: Fraction = Fraction(1),
) -> Fraction:
    """All squares (with precision w² ≥ ½) and products of d scaled columns.

    (d² + (2w² - 1)d)/2 (exact); or d² while w² ≤ (d + 1)/2, then d²/2 + (w² - ½)d (exact for even
    d, bound for odd): the change is convex in the squares of both rows, so that its maximum lies at
    0/1 vectors.
    """
    _positive(columns, "the number of columns")
    weight = _weight(weight_squared)
    added = (Fraction(columns) ** 2 + (2 * weight - 1) * columns) / 2
    free = Fraction(columns) ** 2
    replaced = max(free, free / 2 + (weight - Fraction(1, 2)) * columns)
    return _by(relation, added, replaced) * rows**2


def clipped_triangle(
    clip_squared: Fraction,
    relation: Relation,
    rows: int = 1,
    weight_squared: Fraction = Fraction(1),
) -> Fraction:
    """The same for rows with squared norm at most C² ≥ 1 inside the box.

    (C⁴ + (2w² - 1)C²)/2, or twice that: with a clip the diagonal is not free (bound; exact where
    C² is a whole number of coordinates).
    """
    clip, weight = Fraction(clip_squared), _weight(weight_squared)
    if clip < 1:
        raise BudgetError("the clipped second moments need C of at least 1")
    total = clip**2 + (2 * weight - 1) * clip
    return _by(relation, total / 2, total) * rows**2


def _weight(weight_squared: Fraction) -> Fraction:
    weight = Fraction(weight_squared)
    if weight < Fraction(1, 2):
        raise BudgetError("the diagonal's relative precision must be at least 1/2")
    return weight


def edge_with_diagonals(relation: Relation, rows: int = 1) -> Fraction:
    """One product with both its squares at equal σ: 3, or 4 (exact)."""
    return _by(relation, 3, 4) * rows**2


def edges(graph: Collection[Edge], relation: Relation, rows: int = 1) -> Fraction:
    """Products on the edges of a graph: e (exact), or 4 maxcut ≤ 4e.

    The maximum cut is enumerated up to ``CUT_NODES`` nodes, which makes the value exact there.
    """
    return _by(relation, len(graph), 4 * maximum_cut(graph)) * rows**2


def maximum_cut(graph: Collection[Edge]) -> int:
    """Most edges that a split of the nodes can cut (the edge count on big graphs: a bound).

    >>> maximum_cut([("a", "b"), ("b", "c"), ("a", "c")])
    2
    """
    nodes = sorted({name for edge in graph for name in edge})
    if not 1 < len(nodes) <= CUT_NODES:
        return len(graph)
    masks = np.arange(1 << (len(nodes) - 1))
    side = {name: (masks >> index) & 1 for index, name in enumerate(nodes)}
    return int(np.sum([side[a] ^ side[b] for a, b in graph], axis=0).max())


def higher_sums(monomials: Iterable[Monomial], relation: Relation, rows: int = 1) -> Fraction:
    """Sums of degree 3 or 4 of scaled columns: 1 each, or 4 each and 1 if all powers are even.

    Jointly the squares add up (bound; each alone exact).
    """
    return _by(relation, 1, 1) * rows**2 * sum(_higher(names, relation) for names in monomials)


def _higher(names: Monomial, relation: Relation) -> Fraction:
    even = all(power % 2 == 0 for power in Counter(names).values())
    return _by(relation, 1, 1 if even else 4)


def clip_norm(relation: Relation, rows: int = 1) -> int:
    """Score -(Σ(‖x‖² - C²)₊ + …)/d of a candidate C, plain: 1 under both (bound).

    Each row's part lies in [0, 1], so replacing changes it by no more than adding.
    """
    _positive(rows, "the rows a unit")
    return int(_by(relation, 1, 1)) * rows


def entry_score(relation: Relation, rows: int = 1) -> int:
    """abs((X'X)_jk - n̂ Ŵ_jk) on sums against a frozen reference, plain: 1, or 2 (exact).

    On means (replace_one, n public) divide by n: 2/n.
    """
    _positive(rows, "the rows a unit")
    return int(_by(relation, 1, 2)) * rows


def moment_vector(
    monomials: Sequence[Monomial],
    relation: Relation,
    rows: int = 1,
    *,
    weight_squared: Fraction = Fraction(1),
    clip_squared: Fraction | None = None,
) -> Fraction:
    """Joint sensitivity of scaled sums of one degree, squares weighted by w (bound).

    Picks the smallest of the rows above that covers the set; a subset of a triangle changes by no
    more than the triangle.
    """
    degree = len(monomials[0])
    if degree == 1:
        return centred_sums([Fraction(1)] * len(monomials), relation, rows)
    if degree > 2:
        return higher_sums(monomials, relation, rows)
    graph = [(names[0], names[1]) for names in monomials if names[0] != names[1]]
    squares = [names[0] for names in monomials if names[0] == names[1]]
    weight = Fraction(weight_squared)
    bounds = [_separately(graph, squares, weight, relation)]
    if relation is Relation.REPLACE_ONE:
        degrees = Counter(name for edge in graph for name in edge)
        # A square of precision up to its column's number of edges rides along for free.
        extra = sum(max(weight - degrees[name], Fraction(0)) for name in squares)
        bounds.append(Fraction(4 * len(graph)) + extra)
    covered = max(weight, Fraction(1, 2)) if squares else Fraction(1, 2)
    bounds.append(triangle(len({n for m in monomials for n in m}), relation, 1, covered))
    if clip_squared is not None:
        bounds.append(clipped_triangle(clip_squared, relation, 1, covered))
    return min(bounds) * rows**2


def _separately(
    graph: Sequence[Edge], squares: Sequence[str], weight: Fraction, relation: Relation
) -> Fraction:
    """Products and squares bounded on their own."""
    products = edges(graph, relation) if graph else Fraction(0)
    return products + (weight * diagonals(len(squares), relation) if squares else 0)
