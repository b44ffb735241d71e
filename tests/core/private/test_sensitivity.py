"""Every row of the sensitivity table, by brute force over tiny universes.

A table's neighbours differ by one row, and every query here is a sum over rows (or a distance to
a frozen reference of one), so the largest change is over single rows and pairs of rows.  All
contributions are convex in each coordinate on a side of zero, so that rows in {-1, 0, 1}^d
suffice for the box.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError
from core.private import sensitivity
from core.releases import Relation

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = (ADD, REPLACE)
COLUMNS = "abcd"


def corners(columns):
    return np.array(list(itertools.product((-1, 0, 1), repeat=columns)), dtype=np.int64)


def largest_change(contributions, relation, weights=None):
    """Largest squared L2 change of a sum, from one contribution a row (first axis)."""
    weights = np.ones(contributions.shape[1]) if weights is None else np.asarray(weights)
    if relation is ADD:
        return float((weights * contributions**2).sum(axis=1).max())
    difference = contributions[:, None, :] - contributions[None, :, :]
    return float((weights * difference**2).sum(axis=2).max())


def products(rows, monomials):
    place = {name: index for index, name in enumerate(COLUMNS)}
    columns = [np.prod(rows[:, [place[name] for name in names]], axis=1) for names in monomials]
    return np.stack(columns, axis=1)


def triangle_names(columns):
    return list(itertools.combinations_with_replacement(COLUMNS[:columns], 2))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("tables", [1, 2, 3])
def test_histograms(relation, tables):
    # Every row of a universe of `tables` columns with two cells, one-hot coded.
    universe = itertools.product(range(2), repeat=tables)
    rows = np.array([[int(v == c) for v in row for c in range(2)] for row in universe])
    assert largest_change(rows, relation) == sensitivity.histograms(tables, relation)


@pytest.mark.parametrize("relation", BOTH)
def test_two_way_tables_of_a_tree(relation):
    universe = list(itertools.product(range(2), repeat=4))
    rows = np.array(
        [
            [int((row[a], row[b]) == cell) for a, b in ((0, 1), (1, 2), (2, 3)) for cell in cells]
            for cells in [list(itertools.product(range(2), repeat=2))]
            for row in universe
        ]
    )
    assert largest_change(rows, relation) == sensitivity.histograms(3, relation)


def test_row_count():
    assert sensitivity.row_count(ADD) == 1
    assert sensitivity.row_count(ADD, 3) == 9
    assert sensitivity.row_count(REPLACE) == 0
    with pytest.raises(BudgetError, match="private"):
        sensitivity.row_count(REPLACE, 2)


def neighbours(rows, universe, relation):
    if relation is ADD:
        yield from ([*rows, row] for row in universe)
    else:
        for index, row in itertools.product(range(len(rows)), universe):
            yield [*rows[:index], row, *rows[index + 1 :]]


def pair_tables(rows, pairs):
    tables = [np.zeros((2, 2)) for _ in pairs]
    for row in rows:
        for table, (a, b) in zip(tables, pairs, strict=True):
            table[row[a], row[b]] += 1
    return tables


@pytest.mark.parametrize("relation", BOTH)
def test_pair_scores_against_a_frozen_reference(relation):
    pairs = [(0, 1), (0, 2), (1, 2)]
    universe = list(itertools.product(range(2), repeat=3))
    generator = np.random.default_rng(0)
    worst = worst_vector = 0.0
    for _ in range(40):
        rows = [universe[index] for index in generator.integers(0, 8, generator.integers(0, 4))]
        references = [generator.integers(0, 3, (2, 2)).astype(float) for _ in pairs]

        def scores(table, references=references):
            found = pair_tables(table, pairs)
            return np.array([np.abs(t - r).sum() for t, r in zip(found, references, strict=True)])

        for other in neighbours(rows, universe, relation):
            change = np.abs(scores(rows) - scores(other))
            worst = max(worst, change.max())
            worst_vector = max(worst_vector, (change**2).sum())
    assert worst == sensitivity.pair_score(relation)
    assert worst_vector <= sensitivity.pair_score_vector(3, relation)
    assert worst_vector > 0.6 * sensitivity.pair_score_vector(3, relation)


@pytest.mark.parametrize("relation", BOTH)
def test_centred_sums_and_squares(relation):
    halves = [Fraction(3), Fraction(1, 2)]
    ends = [np.linspace(-float(half), float(half), 9) for half in halves]
    rows = np.array(list(itertools.product(*ends)))
    assert largest_change(rows, relation) == sensitivity.centred_sums(halves, relation)
    assert largest_change(rows**2, relation) == sensitivity.centred_squares(halves, relation)
    assert largest_change(rows[:, :1], relation) == sensitivity.centred_sums(halves[:1], relation)


@pytest.mark.parametrize("relation", BOTH)
def test_one_product_and_one_square(relation):
    rows = corners(2)
    assert largest_change(products(rows, ["ab"]), relation) == sensitivity.product_sum(
        False, relation
    )
    assert largest_change(products(rows, ["aa"]), relation) == sensitivity.product_sum(
        True, relation
    )


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_all_diagonals(relation, columns):
    squares = corners(columns) ** 2
    assert largest_change(squares, relation) == sensitivity.diagonals(columns, relation)


WEIGHTS = [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(5, 2), Fraction(4), Fraction(9)]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_triangle(relation, columns, weight):
    names = triangle_names(columns)
    weights = [float(weight) if a == b else 1.0 for a, b in names]
    found = largest_change(products(corners(columns), names), relation, weights)
    declared = sensitivity.triangle(columns, relation, weight_squared=weight)
    assert found <= declared
    if relation is ADD or columns % 2 == 0:
        assert found == declared
    else:
        assert found >= declared - 1  # odd d: sqrt(d² - 1) at w = 1


def test_the_free_diagonal_exists_under_replace_one_only():
    for columns in (2, 3, 4):
        free = Fraction(columns + 1, 2)
        plain = sensitivity.triangle(columns, REPLACE, weight_squared=Fraction(1, 2))
        assert sensitivity.triangle(columns, REPLACE, weight_squared=free) == plain == columns**2
        assert sensitivity.triangle(columns, ADD, weight_squared=free) > sensitivity.triangle(
            columns, ADD
        )


def clipped_rows(columns, clip_squared, seed=0):
    """Corners and random directions, all with |x_j| <= 1 and squared norm <= C²."""
    generator = np.random.default_rng(seed)
    rows = [corners(columns).astype(float), generator.uniform(-1, 1, (150, columns))]
    found = np.concatenate(rows)
    norms = np.maximum((found**2).sum(axis=1), 1e-12)
    return found * np.minimum(1, np.sqrt(float(clip_squared) / norms))[:, None]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("clip", [Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)])
def test_clipped_triangle(relation, columns, weight, clip):
    names = triangle_names(columns)
    weights = [float(weight) if a == b else 1.0 for a, b in names]
    contributions = products(clipped_rows(columns, clip), names)
    found = largest_change(contributions, relation, weights)
    declared = float(sensitivity.clipped_triangle(clip, relation, weight_squared=weight))
    assert found <= declared * (1 + 1e-12)
    attained = clip.denominator == 1 and clip * (1 if relation is ADD else 2) <= columns
    if attained:  # disjoint 0/1 rows with C² ones
        assert found == pytest.approx(declared, rel=1e-12)


@pytest.mark.parametrize("relation", BOTH)
def test_edge_with_both_diagonals(relation):
    found = largest_change(products(corners(2), ["aa", "ab", "bb"]), relation)
    assert found == sensitivity.edge_with_diagonals(relation)


ALL_EDGES = list(itertools.combinations(COLUMNS, 2))
GRAPHS = [[edge for bit, edge in enumerate(ALL_EDGES) if mask >> bit & 1] for mask in range(1, 64)]


@pytest.mark.parametrize("relation", BOTH)
def test_edges_of_every_graph_on_four_nodes(relation):
    rows = corners(4)
    for graph in GRAPHS:
        found = largest_change(products(rows, graph), relation)
        declared = sensitivity.edges(graph, relation)
        assert found == declared
        assert declared <= 4 * len(graph)


def test_maximum_cut_of_known_graphs():
    complete = list(itertools.combinations([f"n{i}" for i in range(7)], 2))
    assert sensitivity.maximum_cut(complete) == 12
    cycle = [(str(i), str((i + 1) % 5)) for i in range(5)]
    assert sensitivity.maximum_cut(cycle) == 4
    big = [(f"m{i:02}", f"m{i + 1:02}") for i in range(40)]
    assert sensitivity.maximum_cut(big) == 40


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("degree", [3, 4])
def test_higher_sums(relation, degree):
    rows = corners(4)
    for names in itertools.combinations_with_replacement(COLUMNS, degree):
        found = largest_change(products(rows, [names]), relation)
        assert found == sensitivity.higher_sums([names], relation)
    every = list(itertools.combinations_with_replacement(COLUMNS[:3], degree))
    joint = largest_change(products(corners(3), every), relation)
    assert joint <= sensitivity.higher_sums(every, relation)


@pytest.mark.parametrize("relation", BOTH)
def test_clip_norm_score(relation):
    generator = np.random.default_rng(0)
    rows = np.concatenate([corners(3), generator.uniform(-1, 1, (100, 3))])
    for clip in (1, 1.5, 2.5):
        parts = np.maximum((rows**2).sum(axis=1) - clip, 0)[:, None] / 3
        found = np.sqrt(largest_change(parts, relation))
        assert found <= sensitivity.clip_norm(relation)
    assert np.sqrt(largest_change((corners(3) ** 2).sum(axis=1)[:, None] / 3, relation)) == 1


@pytest.mark.parametrize("relation", BOTH)
def test_entry_score_against_a_frozen_reference(relation):
    rows = corners(2)
    worst = 0.0
    for reference, base in itertools.product(np.linspace(-3, 3, 13), (-2, -1, 0, 1, 2)):
        part = np.prod(rows, axis=1)
        before = np.abs(base - reference)
        if relation is ADD:
            change = np.abs(np.abs(base + part - reference) - before)
        else:
            change = np.abs(
                np.abs(base + part[:, None] - reference) - np.abs(base + part[None, :] - reference)
            )
        worst = max(worst, float(change.max()))
    assert worst == sensitivity.entry_score(relation)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_moment_vectors_are_bounded(data):
    """The dispatcher never declares less than what brute force finds, for any set of sums."""
    degree = data.draw(st.integers(1, 4))
    every = ["".join(names) for names in itertools.combinations_with_replacement("abcd", degree)]
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=10, unique=True))
    monomials = [tuple(names) for names in chosen]
    relation = data.draw(st.sampled_from(BOTH))
    weight = data.draw(st.sampled_from([*WEIGHTS, Fraction(1, 9)])) if degree == 2 else Fraction(1)
    clip = data.draw(st.sampled_from([None, Fraction(1), Fraction(3, 2), Fraction(2)]))
    rows = corners(4) if clip is None else clipped_rows(4, clip)
    weights = [float(weight) if len(set(names)) == 1 else 1.0 for names in monomials]
    if degree != 2:
        weights = [1.0] * len(monomials)
    found = largest_change(products(rows, monomials), relation, weights)
    declared = sensitivity.moment_vector(
        monomials, relation, weight_squared=weight, clip_squared=clip
    )
    assert found <= float(declared) * (1 + 1e-12)


@pytest.mark.parametrize("relation", BOTH)
def test_moment_vectors_meet_the_rows_of_the_table(relation):
    names = triangle_names(4)
    vector = sensitivity.moment_vector
    assert vector(names, relation) == sensitivity.triangle(4, relation)
    assert vector([("a", "a"), ("a", "b"), ("b", "b")], relation) == (
        sensitivity.edge_with_diagonals(relation)
    )
    assert vector([("a",), ("b",)], relation) == sensitivity.centred_sums(
        [Fraction(1)] * 2, relation
    )
    assert vector([("a", "a"), ("b", "b")], relation) == sensitivity.diagonals(2, relation)
    assert vector([("a", "b"), ("b", "c")], relation) == sensitivity.edges(
        [("a", "b"), ("b", "c")], relation
    )
    clipped = vector(names, relation, clip_squared=Fraction(2))
    assert clipped == min(
        sensitivity.clipped_triangle(Fraction(2), relation), sensitivity.triangle(4, relation)
    )
    assert clipped < sensitivity.triangle(4, relation) or relation is REPLACE


FUNCTIONS = {
    "histograms": lambda relation, rows: sensitivity.histograms(3, relation, rows),
    "pair_score_vector": lambda relation, rows: sensitivity.pair_score_vector(3, relation, rows),
    "centred_sums": lambda relation, rows: sensitivity.centred_sums([Fraction(2)], relation, rows),
    "centred_squares": lambda relation, rows: sensitivity.centred_squares(
        [Fraction(2)], relation, rows
    ),
    "product_sum": lambda relation, rows: sensitivity.product_sum(False, relation, rows),
    "diagonals": lambda relation, rows: sensitivity.diagonals(3, relation, rows),
    "triangle": lambda relation, rows: sensitivity.triangle(3, relation, rows),
    "clipped_triangle": lambda relation, rows: sensitivity.clipped_triangle(
        Fraction(2), relation, rows
    ),
    "edge_with_diagonals": sensitivity.edge_with_diagonals,
    "edges": lambda relation, rows: sensitivity.edges([("a", "b")], relation, rows),
    "higher_sums": lambda relation, rows: sensitivity.higher_sums([tuple("aab")], relation, rows),
    "moment_vector": lambda relation, rows: sensitivity.moment_vector([("a", "b")], relation, rows),
    "pair_score": sensitivity.pair_score,
    "clip_norm": sensitivity.clip_norm,
    "entry_score": sensitivity.entry_score,
}


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_k_rows_scale_every_sensitivity(name, relation):
    plain = name in ("pair_score", "clip_norm", "entry_score")
    one = FUNCTIONS[name](relation, 1)
    assert isinstance(one, int if plain else Fraction)
    for rows in (2, 7):
        assert FUNCTIONS[name](relation, rows) == one * (rows if plain else rows**2)


def test_k_rows_are_attained_by_k_equal_rows():
    rows = np.array([[1, 0], [0, 1]])
    for k in (2, 3):
        assert largest_change(k * rows, ADD) == sensitivity.histograms(1, ADD, k)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_nonsense_is_refused(bad):
    with pytest.raises(BudgetError):
        sensitivity.histograms(bad, ADD)
    with pytest.raises(BudgetError):
        sensitivity.pair_score(ADD, bad)
    with pytest.raises(BudgetError):
        sensitivity.triangle(2, ADD, weight_squared=Fraction(49, 100))
    with pytest.raises(BudgetError):
        sensitivity.clipped_triangle(Fraction(1, 2), ADD)
