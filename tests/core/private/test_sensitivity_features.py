"""Sensitivities of sums of numbers and indicators, by brute force over tiny universes.

A row is a point of {-1, 0, 1}² (with random points inside the box beside them), a cell of each of
two coded columns, and possibly no complete case, in which it contributes nothing.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError, SchemaError
from core.moments import SUMMAND_BITS, Indicator, MomentFrame, MomentRequest, Scale
from core.private import feature_sensitivity, sensitivity
from core.private.feature_sensitivity import families, feature_sums, moments_sensitivity
from core.private.moments import exact_moments
from core.releases import Relation
from core.schema import Column, Kind, Schema

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
BOTH = (ADD, REPLACE)
#: Cells with an indicator; the last cell of each column has none.
CELLS = {"J": 3, "K": 2}
INDICATORS = tuple(
    (f"{column}{code}", Indicator(column, code))
    for column, cells in CELLS.items()
    for code in range(cells)
)
FRAME = MomentFrame(
    (("a", Scale(0.0, 1.0)), ("b", Scale(0.0, 1.0))), indicators=INDICATORS, complete=True
)
WHOLE = 1 << SUMMAND_BITS


def request_of(*monomials, frame=FRAME):
    return MomentRequest(frame, tuple(monomials), mixed=True)


def universe(seed=0, inside=6):
    """All rows: numbers (rows, 2) and cells (rows, 2)."""
    points = [*itertools.product((-1.0, 0.0, 1.0), repeat=2)]
    points += np.random.default_rng(seed).uniform(-1, 1, (inside, 2)).tolist()
    rows = [
        (*point, *cells)
        for point in points
        for cells in itertools.product(*(range(size + 1) for size in CELLS.values()))
    ]
    return np.array(rows)


def contributions(request, rows):
    """What each row adds to each sum, cut to the grid, in scaled units."""
    found = []
    cells = dict(INDICATORS)
    for names in request.monomials:
        product = np.ones(len(rows))
        for name in names:
            if name in cells:
                place = 2 + list(CELLS).index(cells[name].column)
                product *= rows[:, place] == cells[name].code
            else:
                product *= rows[:, "ab".index(name)]
        found.append(np.trunc(product * WHOLE) / WHOLE)
    return np.stack(found, axis=1)


def largest_change(request, relation, *, may_miss, rows=None):
    parts = contributions(request, universe() if rows is None else rows)
    if relation is ADD:
        return float((parts**2).sum(axis=1).max())
    worst = float(((parts[:, None, :] - parts[None, :, :]) ** 2).sum(axis=2).max())
    return max(worst, float((parts**2).sum(axis=1).max())) if may_miss else worst


def declared(request, relation, *, may_miss=True, rows=1):
    return float(feature_sums(request, relation, rows, may_miss=may_miss))


def cells_of(column):
    return [(name,) for name, cell in INDICATORS if cell.column == column]


def times(names, *numbers):
    return [(*name, *numbers) for name in names]


#: (sums, squared sensitivity under add_remove, under replace_one); all attained.
EXACT = {
    "complete rows": ([()], 1, 1),
    "one cell": ([("J0",)], 1, 1),
    "cells of one column": (cells_of("J"), 1, 2),
    "cells of two columns": ([*cells_of("J"), *cells_of("K")], 2, 4),
    "cells of a pair of columns": (
        [(*j, *k) for j in cells_of("J") for k in cells_of("K")],
        1,
        2,
    ),
    "sum by group": (times(cells_of("J"), "a"), 1, 4),
    "sum in one group": ([("J0", "a")], 1, 4),
    "squares by group": (times(cells_of("J"), "a", "a"), 1, 2),
    "squares in one group": ([("J0", "a", "a")], 1, 1),
    "products by group": (times(cells_of("J"), "a", "b"), 1, 4),
    "counts and sums by group": ([*cells_of("J"), *times(cells_of("J"), "a")], 2, 4),
    "counts, sums, squares by group": (
        [*cells_of("J"), *times(cells_of("J"), "a"), *times(cells_of("J"), "a", "a")],
        3,
        6,
    ),
    "fourth powers by group": (times(cells_of("J"), "a", "a", "a", "a"), 1, 2),
    "sum and square": ([("a",), ("a", "a")], 2, 4),
    "count, sum and square": ([(), ("a",), ("a", "a")], 3, 4),
    "sums": ([("a",), ("b",)], 2, 8),
    "sum and cells": ([("a",), *cells_of("J")], 2, 6),
    "sum by group and cells of another column": (
        [*times(cells_of("J"), "a"), *cells_of("K")],
        2,
        6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_rows_that_are_attained(name):
    monomials, added, replaced = EXACT[name]
    request = request_of(*monomials)
    for relation, expected in ((ADD, added), (REPLACE, replaced)):
        found = largest_change(request, relation, may_miss=True)
        value = declared(request, relation)
        assert found == expected
        assert expected <= value <= expected * (1 + 1e-5)


def test_means_by_group_cost_what_one_mean_costs():
    """Add/remove: exactly; replace one: the squares alone cost twice, counts ride along."""
    group, one = times(cells_of("J"), "a"), [("a",)]
    for relation in BOTH:
        assert declared(request_of(*group), relation) == declared(request_of(*one), relation)
    many = [("a", f"J{code}") for code in range(50)]
    frame = MomentFrame(
        (("a", Scale(0.0, 1.0)),),
        indicators=tuple((f"J{code}", Indicator("J", code)) for code in range(50)),
        complete=True,
    )
    assert declared(request_of(*many, frame=frame), ADD) == 1
    assert declared(request_of(*many, frame=frame), REPLACE) == 4


def test_the_whole_gram_matrix_of_two_numbers_and_a_column():
    products = [("a", "a"), ("a", "b"), ("b", "b")]
    products += [(*j, x) for j in cells_of("J") for x in "ab"]
    everything = [("a",), ("b",), *cells_of("J"), *products]
    request = request_of(*everything)
    for relation in BOTH:
        found, value = largest_change(request, relation, may_miss=True), declared(request, relation)
        assert found <= value <= 1.3 * found


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_set_of_sums_is_declared_too_small(data):
    names = ["a", "b", *(name for name, _ in INDICATORS)]
    every = [
        monomial
        for degree in range(5)
        for monomial in itertools.combinations_with_replacement(names, degree)
        if valid(monomial)
    ]
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=12, unique=True))
    relation = data.draw(st.sampled_from(BOTH))
    may_miss = data.draw(st.booleans())
    request = request_of(*chosen)
    rows = universe(seed=data.draw(st.integers(0, 10**6)), inside=3)
    found = largest_change(request, relation, may_miss=may_miss, rows=rows)
    assert found <= declared(request, relation, may_miss=may_miss) * (1 + 1e-12)


def valid(monomial):
    columns = [dict(INDICATORS)[name].column for name in monomial if name not in "ab"]
    return len(set(columns)) == len(columns)


def test_many_coded_columns_fall_back_to_family_by_family(monkeypatch):
    request = request_of(*EXACT["counts, sums, squares by group"][0], ("a",), ("K0", "b"), ())
    exact = declared(request, REPLACE)
    monkeypatch.setattr(feature_sensitivity, "AGREEMENT_COLUMNS", 0)
    crude = declared(request, REPLACE)
    assert largest_change(request, REPLACE, may_miss=True) <= exact <= crude
    assert crude == 2 + 4 + 2 + 4 + 4 + 0


def test_the_cut_to_the_grid_is_paid_for():
    """Joint rows of the table hold for uncut products; cutting adds a hair, and is declared."""
    joint = declared(request_of(("a",), ("a", "a")), REPLACE)
    assert 4 < joint < 4 * (1 + 1e-5)


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("relation", BOTH)
def test_k_rows_scale_the_square(rows, relation):
    for monomials, *_ in EXACT.values():
        request = request_of(*monomials)
        one = feature_sums(request, relation, may_miss=True)
        assert isinstance(one, Fraction)
        assert feature_sums(request, relation, rows, may_miss=True) == one * rows**2


# -- the number of complete rows -----------------------------------------------------------

MAY = Column("a", Kind.REAL, lower=-1, upper=1)
CLIPPED = {"lower": -1, "upper": 1, "missing": "constant", "missing_constant": 0}
NEVER = Column("a", Kind.REAL, **CLIPPED)
OUTSIDE = Column("a", Kind.REAL, **CLIPPED, out_of_domain="other")
COUNT = request_of((), frame=MomentFrame((("a", Scale(0.0, 1.0)),), complete=True))


@pytest.mark.parametrize(
    ("column", "added", "replaced"), [(MAY, 1, 1), (NEVER, 1, 0), (OUTSIDE, 1, 1)]
)
def test_the_count_of_complete_rows_is_public_by_declaration_only(column, added, replaced):
    schema = Schema((column,))
    assert moments_sensitivity(COUNT, schema, ADD) == added
    assert moments_sensitivity(COUNT, schema, REPLACE) == replaced


def test_the_count_of_units_with_several_rows_is_private():
    with pytest.raises(BudgetError, match="private"):
        moments_sensitivity(COUNT, Schema((NEVER,)), REPLACE, 2)
    assert moments_sensitivity(COUNT, Schema((MAY,)), REPLACE, 2) == 4


def test_plain_frames_keep_the_rows_of_the_table():
    frame = MomentFrame((("a", Scale(0.0, 1.0)), ("b", Scale(0.0, 1.0))))
    request = MomentRequest.triangle(frame, Fraction(3, 2))
    schema = Schema((MAY, Column("b", Kind.REAL, lower=-1, upper=1)))
    assert moments_sensitivity(request, schema, ADD) == 1 + 2 * Fraction(9, 4)


def test_families_are_sums_that_differ_in_their_cells_alone():
    found = families(
        [("J0", "a"), ("J2", "a"), ("J0", "K1", "a"), ("a",), ("J1",)], dict(INDICATORS)
    )
    assert [(f.numbers, sorted(f.columns), f.members) for f in found] == [
        (("a",), ["J"], 2),
        (("a",), ["J", "K"], 1),
        (("a",), [], 1),
        ((), ["J"], 1),
    ]


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("clip", [None, Fraction(3, 2)])
def test_rows_of_zeros_change_no_more_than_others(columns, relation, clip):
    """A row that misses a number counts as zeros: the triangle's sensitivity covers it."""
    names = [f"x{index}" for index in range(columns)]
    frame = MomentFrame(
        tuple((name, Scale(0.0, 1.0)) for name in names), clip_squared=clip, whole_rows=True
    )
    request = MomentRequest.triangle(frame)
    values = (-1.0, -0.6, 0.0, 1.0, np.nan)
    sums = []
    for row in itertools.product(values, repeat=columns):
        numbers = {name: np.array([value]) for name, value in zip(names, row, strict=True)}
        found = exact_moments(numbers, request) / request.grid**2
        assert not np.isnan(row).any() or not found.any()
        sums.append(found)
    bound = float(
        sensitivity.moment_vector(request.monomials, relation, clip_squared=frame.clip_squared)
    )
    others = [np.zeros(len(sums[0]))] if relation is Relation.ADD_REMOVE else sums
    worst = max(float(((one - other) ** 2).sum()) for one in sums for other in others)
    assert worst <= bound + 1e-9
    assert worst > 0.3 * bound


def test_whole_rows_are_asked_of_numbers_alone():
    with pytest.raises(SchemaError, match="numbers alone"):
        MomentFrame((("x", Scale(0.0, 1.0)),), None, (("y", Indicator("y", 0)),), whole_rows=True)
