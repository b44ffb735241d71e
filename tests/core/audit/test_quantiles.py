"""Quantiles read off declared cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.fidelity import quantile_differences
from core.audit.quantiles import quantiles
from core.schema import Column, Kind
from tests.core.audit.made import labelled, numeric_columns, world_of


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
@settings(max_examples=150, deadline=None)
def test_quantiles_of_whole_numbers_are_observed_ones(values):
    column = Column("x", Kind.INTEGER, lower=0, upper=9)
    counts = np.bincount(values, minlength=10)
    levels = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
    expected = np.quantile(values, levels, method="inverted_cdf")
    assert quantiles(counts, column, levels).tolist() == expected.tolist()


@given(st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(any))
@settings(max_examples=100, deadline=None)
def test_quantiles_of_binned_numbers_spread_evenly(counts):
    column = Column("x", Kind.REAL, lower=0.0, upper=8.0, edges=(0.0, 1.0, 2.0, 4.0, 8.0))
    reach = np.cumsum([0, *counts]) / sum(counts)
    found = quantiles(np.array(counts), column, (0.1, 0.5, 0.9))
    # the distribution function, linear within cells, at the quantile
    assert np.interp(found, column.axis, reach) == pytest.approx([0.1, 0.5, 0.9], abs=1e-6)


def test_quantile_differences_have_units_and_shares():
    columns = [Column("age", Kind.INTEGER, lower=20, upper=59, bins=4), labelled("z", 2)]
    first = world_of({"age": [0] * 50 + [1] * 50, "z": [0, 1] * 50}, columns)
    second = world_of({"age": [1] * 50 + [2] * 50, "z": [0, 1] * 50}, columns, private=True)
    found = quantile_differences(first, second, seed=1)
    assert found.names == ("age",)
    assert found.second - found.first == pytest.approx(10.0)
    assert found.share == pytest.approx(0.25)
    mean, worst = found.figures()
    assert mean.private
    assert worst.private
    assert mean.low <= mean.value <= mean.high
    assert "age at" in worst.title


def test_columns_without_numbers_have_no_quantiles():
    columns = list(numeric_columns())
    gone = world_of({"x": [5, 5], "y": [0, 1]}, columns)
    there = world_of({"x": [1, 2], "y": [0, 1]}, columns)
    found = quantile_differences(gone, there)
    assert (found.names, found.empty) == (("y",), ("x",))
    assert "1 columns without a number left out" in found.figures()[0].reason
    nothing = quantile_differences(world_of({"z": [0]}, [2]), world_of({"z": [1]}, [2]))
    assert nothing.figures()[0].value is None
