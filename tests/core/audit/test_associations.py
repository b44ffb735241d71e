"""Correlations and Cramér's V of pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.associations import Cells, cramers_v, midpoints, pearson
from core.audit.fidelity import correlation_difference
from tests.core.audit.made import labelled, numeric_columns, numeric_world, shuffled, world_of


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 5), st.integers(5, 200))
@settings(max_examples=100, deadline=None)
def test_cramers_v_against_scipy(seed, one, other, rows):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, one, rows)
    y = np.where(generator.random(rows) < 0.5, x % other, generator.integers(0, other, rows))
    cells = Cells.of(world_of({"x": x, "y": y}, [one + 2, other + 1]), ("x", "y"))
    table = np.zeros((one, other), dtype=int)
    np.add.at(table, (x, y), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    value, _ = cramers_v(cells)
    if min(table.shape) < 2:
        assert np.isnan(value)
    else:
        expected = scipy.stats.contingency.association(table, "cramer", correction=False)
        assert value == pytest.approx(expected, abs=1e-7)


def test_pearson_is_numpys_on_midpoints_of_complete_rows():
    world = numeric_world(4)
    x = np.array([0.5, 2.5, 4.5, 6.5, 8.5, np.nan])[world.codes["x"]]
    y = np.array([-0.5, 0.25, 0.75, np.nan])[world.codes["y"]]
    both = np.isfinite(x) & np.isfinite(y)
    assert 300 < both.sum() < 500
    middle = [midpoints(column) for column in numeric_columns()]
    value, _ = pearson(Cells.of(world, ("x", "y")), *middle)
    assert value == pytest.approx(np.corrcoef(x[both], y[both])[0, 1], abs=1e-12)


@pytest.mark.parametrize("measure", ["pearson", "cramers_v"])
def test_influences_are_derivatives(measure):
    world = numeric_world(5)
    cells = Cells.of(world, ("x", "y"))
    middle = [midpoints(column) for column in numeric_columns()]

    def value(counts):
        moved = Cells(cells.one, cells.other, counts, cells.place)
        return pearson(moved, *middle) if measure == "pearson" else cramers_v(moved)

    _, influence = value(cells.counts.astype(float))
    shares = cells.counts / cells.counts.sum()
    assert abs(shares @ influence) < 1e-9  # an influence function has mean 0
    for place in range(len(shares)):
        step = 1e-6
        moved = (1 - step) * shares
        moved[place] += step
        slope = (value(moved)[0] - value(shares)[0]) / step
        assert influence[place] == pytest.approx(slope, abs=1e-3)


def test_correlations_of_two_worlds():
    first, second = numeric_world(6), shuffled(numeric_world(6))
    found = correlation_difference(first, second)
    assert found.pearson.names == found.cramers_v.names == (("x", "y"),)
    assert found.pearson.first[0] > 0.7
    assert abs(found.pearson.second[0]) < 0.15
    figures = found.figures()
    assert figures[0].low < figures[0].value < figures[0].high
    assert "midpoints" in figures[0].reason


def test_columns_that_do_not_vary_are_left_out_of_correlations():
    codes = {"x": [0, 1, 2, 3], "y": [1, 1, 1, 1], "z": [0, 1, 0, 1]}
    columns = [*numeric_columns(), labelled("z", 2)]
    world = world_of(codes, columns)
    found = correlation_difference(world, world)
    assert np.isnan(found.pearson.difference).all()
    pearson_figure, cramer = found.figures()
    assert pearson_figure.value is None
    assert "no pair varies" in pearson_figure.reason
    assert cramer.value == 0.0
    assert "2 pairs left out: a column does not vary" in cramer.reason
    alone = world_of({"z": [0, 1]}, [2])
    assert "no pair of such columns" in correlation_difference(alone, alone).figures()[0].reason


def test_wide_pairs_need_no_dense_table():
    generator = np.random.default_rng(8)
    codes = generator.integers(0, 10_000, 300)
    world = world_of({"x": codes, "y": (codes * 7) % 10_000}, [10_000, 10_000])
    found = correlation_difference(world, shuffled(world))
    assert found.cramers_v.first[0] == pytest.approx(1.0)  # a bijection
