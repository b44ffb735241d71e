from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from core.errors import EstimationError
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.privci.certificate import conditional_mutual_information
from core.privci.reconstruct import fit
from core.privci.sample import (
    expand,
    member_shares,
    round_systematically,
    round_table,
    sample,
    synthesize,
)
from core.privci.select import release_tree
from core.roles import Roles
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault
from tests.core.privci.models import random_edges, random_model, release_of


def table_of(codes, one, other, shape):
    flat = codes[one].astype(np.int64) * shape[1] + codes[other]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)


@given(st.integers(0, 2**32 - 1), st.integers(0, 5000))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_tables_of_the_sample_follow_the_model_within_a_row(seed, rows):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 9))
    sizes = [int(size) for size in generator.integers(1, 12, count)]
    model = random_model(generator, sizes, random_edges(generator, count))
    codes = sample(model, rows, generator)
    assert list(codes) == list(model.columns)
    for name, size, table in zip(model.columns, model.sizes, model.node, strict=True):
        assert codes[name].shape == (rows,)
        counts = np.bincount(codes[name], minlength=size)
        assert len(counts) == size
        assert np.abs(counts - rows * table).max() < 1 + 1e-6
    for (one, other), table in zip(model.edge_names, model.edge, strict=True):
        apart = np.abs(table_of(codes, one, other, table.shape) - rows * table)
        assert apart.max() < 1 + 1e-6


def test_a_large_sample_is_within_a_row_everywhere():
    generator = np.random.default_rng(0)
    model = random_model(generator, [30] * 14, random_edges(generator, 14, 1.0))
    codes = sample(model, 50_000, generator)
    for (one, other), table in zip(model.edge_names, model.edge, strict=True):
        apart = np.abs(table_of(codes, one, other, table.shape) - 50_000 * table)
        assert apart.max() < 1 + 1e-6


def test_columns_joined_through_a_third_are_independent_given_it():
    generator = np.random.default_rng(4)
    model = random_model(generator, [4, 3, 5], [(0, 1), (0, 2)])
    rows, figures = 20_000, []
    for seed in range(60):
        codes = sample(model, rows, np.random.default_rng(seed))
        flat = np.ravel_multi_index([codes[name] for name in ("c001", "c002", "c000")], (3, 5, 4))
        joint = np.bincount(flat, minlength=60).reshape(3, 5, 4)
        figures.append(2 * rows * np.log(2) * conditional_mutual_information(joint / rows))
    # the likelihood ratio of independence is chi-squared with (3-1)(5-1)*4 degrees of freedom
    assert np.mean(figures) == pytest.approx(32, abs=5 * np.sqrt(2 * 32 / 60))
    assert max(figures) < chi2.ppf(1 - 1e-6, 32)


def test_rounding_favours_no_cell():
    model = random_model(np.random.default_rng(2), [6, 7], [(0, 1)])
    rows = 25
    mean = np.zeros((6, 7))
    for seed in range(2000):
        codes = sample(model, rows, np.random.default_rng(seed))
        mean += table_of(codes, "c000", "c001", (6, 7)) / 2000
    apart = np.abs(mean - rows * model.edge[0])
    assert apart.max() < 0.25
    assert apart.mean() < 0.08


def test_the_same_seed_gives_the_same_rows_and_another_one_others():
    model = random_model(np.random.default_rng(0), [5, 6, 7], [(0, 1), (1, 2)])
    one, same, other = (sample(model, 500, np.random.default_rng(seed)) for seed in (1, 1, 2))
    for name in model.columns:
        np.testing.assert_array_equal(one[name], same[name])
    assert any((one[name] != other[name]).any() for name in model.columns)


def test_sizes_from_nothing_to_a_million():
    model = random_model(np.random.default_rng(0), [2, 300], [(0, 1)])
    assert all(column.size == 0 for column in sample(model, 0, np.random.default_rng(0)).values())
    assert sample(model, 1, np.random.default_rng(0))["c001"].shape == (1,)
    large = sample(model, 1_000_000, np.random.default_rng(0))
    assert large["c001"].dtype == np.uint16
    np.testing.assert_allclose(np.bincount(large["c000"]), 1e6 * model.node[0], atol=2)
    for rows in (-1, 2.5):
        with pytest.raises(EstimationError, match="whole number"):
            sample(model, rows, np.random.default_rng(0))


@given(st.lists(st.floats(0, 50), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_systematic_rounding(values, seed):
    expected = np.array(values)
    if expected.sum() < 1:
        expected = expected + 1
    expected *= round(expected.sum()) / expected.sum()
    counts = round_systematically(expected, np.random.default_rng(seed))
    assert counts.sum() == round(expected.sum())
    assert (counts >= 0).all()
    assert np.abs(counts - expected).max() < 1 + 1e-6


def test_systematic_rounding_is_unbiased():
    expected = np.array([0.3, 1.25, 2.45, 0.0, 4.0])
    generator = np.random.default_rng(0)
    mean = np.mean([round_systematically(expected, generator) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean, expected, atol=0.04)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_rounded_tables_keep_rows_exactly_and_columns_nearly(seed):
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 15, 2))
    totals = generator.integers(0, 40, shape[0])
    expected = totals[:, None] * generator.dirichlet(np.full(shape[1], 0.3), shape[0])
    counts = round_table(expected, totals, expected.sum(axis=0), generator)
    np.testing.assert_array_equal(counts.sum(axis=1), totals)
    assert (counts >= 0).all()
    assert (counts[expected == 0] == 0).all()
    assert np.abs(counts - expected).max() < 1 + 1e-6
    assert np.abs(counts.sum(axis=0) - expected.sum(axis=0)).max() < 3


def test_a_rounded_table_can_take_a_unit_back():
    counts = round_table(
        np.array([[2.0, 1.0]]), np.array([2]), np.array([2.0, 1.0]), np.random.default_rng(0)
    )
    assert counts.tolist() == [[1, 1]]


# -- opening merged cells --------------------------------------------------------------------


def compressed_release():
    return release_of(
        {"a": [400, 12, 9, 300, 11, 8], "b": [370, 370], "c": [1, 2, 700, 0]},
        (("a", "b"),),
        {("a", "b"): [[200, 200], [150, 150], [20, 20]]},
        sigma=10.0,
        maps={"a": [0, 2, 2, 1, 2, 2], "c": [1, 1, 0, 1]},
    )


def test_every_declared_level_comes_back():
    release = compressed_release()
    generator = np.random.default_rng(0)
    codes = {
        "a": np.repeat([0, 1, 2], [300, 200, 100]).astype(np.uint8),
        "b": generator.integers(0, 2, 600).astype(np.uint8),
        "c": np.ones(600, dtype=np.uint8),
    }
    opened = expand(codes, release, generator)
    assert list(opened) == ["a", "b", "c"]
    # these counts vary less than their noise: uniform
    assert np.bincount(opened["a"], minlength=6).tolist() == [300, 25, 25, 200, 25, 25]
    assert np.bincount(opened["c"], minlength=4).tolist() == [200, 200, 0, 200]
    np.testing.assert_array_equal(opened["b"], codes["b"])
    for name, recoded in release.recoding.maps.items():
        np.testing.assert_array_equal(recoded[opened[name]], codes[name])


def test_opening_looks_at_nothing_else_in_the_row():
    release = compressed_release()
    generator = np.random.default_rng(0)
    codes = {"a": np.full(4000, 2, dtype=np.uint8), "b": (np.arange(4000) < 2000).astype(np.uint8)}
    opened = expand(codes, release, generator)
    table = table_of(opened, "a", "b", (6, 2))[[1, 2, 4, 5]]
    statistic = ((table - 500) ** 2 / 500).sum()
    assert statistic < chi2.ppf(1 - 1e-6, 3)


def test_shares_follow_informative_counts_and_ignore_noise():
    release = release_of({"a": [30, 0, 0, 0], "b": [5, -5, 4, -4], "c": [-9, -8, -9, -9]}, sigma=5)
    one_way = {marginal.clique[0]: marginal for marginal in release.one_way}
    shares = member_shares(one_way["a"], (0, 1, 2, 3))
    assert shares[0] > 0.85
    assert (shares > 0).all()
    np.testing.assert_allclose(member_shares(one_way["b"], (0, 1, 2, 3)), 0.25, atol=0.06)
    np.testing.assert_allclose(member_shares(one_way["c"], (0, 1, 2, 3)), 0.25)
    assert member_shares(one_way["a"], (1, 2)).tolist() == [0.5, 0.5]


@given(st.lists(st.integers(-50, 200), min_size=2, max_size=30), st.floats(0.1, 100))
@settings(max_examples=200)
def test_shares_are_always_shares(values, sigma):
    (marginal,) = release_of({"a": values}, sigma=sigma).one_way
    shares = member_shares(marginal, tuple(range(len(values))))
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


def test_shares_are_nearer_to_the_truth_than_uniform_ones():
    generator = np.random.default_rng(0)
    truth = np.array([100.0, 40, 10, 0, 0, 0, 0, 30])
    errors = []
    for _ in range(300):
        noisy = np.rint(truth + generator.normal(size=8) * 20)
        (marginal,) = release_of({"a": noisy}, sigma=20.0).one_way
        shares = member_shares(marginal, tuple(range(8)))
        errors.append(np.abs(shares - truth / truth.sum()).sum())
    assert np.mean(errors) < 0.75 * np.abs(1 / 8 - truth / truth.sum()).sum()


# -- the whole way ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_synthetic_rows_do_not_depend_on_column_order(order):
    one_way = {"a": [400, 12, 9, 300, 11, 8], "b": [370, 370], "c": [1, 2, 700, 0]}
    edges, tables = (("a", "b"),), {("a", "b"): [[200, 200], [150, 150], [20, 20]]}
    maps = {"a": [0, 2, 2, 1, 2, 2], "c": [1, 1, 0, 1]}
    made = [
        synthesize(release_of(declared, edges, tables, sigma=10.0, maps=maps), seed=3)
        for declared in (one_way, {name: one_way[name] for name in order})
    ]
    assert list(made[1].frame.columns) == list(order)
    for name in "abc":
        np.testing.assert_array_equal(made[0].codes[name], made[1].codes[name])


def test_synthesize_takes_rows_fit_and_seed():
    release = compressed_release()
    fitted = fit(release, engine="exact")
    made = synthesize(release, fitted, rows=10, seed=5)
    assert made.fit is fitted
    assert (len(made.frame), made.rows, made.seed) == (10, 10, 5)
    assert synthesize(release).rows == max(1, round(release.total))
    assert synthesize(release, rows=0).frame.empty
    for column in release.schema.columns:
        assert set(made.frame[column.name]) <= set(column.cells)


# -- field cases: what other tools lost ------------------------------------------------------


def released(frame, schema, rho, seed):
    raw = RawTable(frame, "field", ReadingReport("memory"))
    vault = simulated_vault(encode(raw, schema), seed=seed)
    grant = vault.grant(Fraction(rho), "tree", "request")
    return release_tree(grant, schema, Roles(), structure="mst")


@pytest.mark.parametrize("seed", range(3))
def test_missing_numbers_stay_missing(seed):
    wage = np.full(5000, "", dtype=object)
    wage[3000:3500] = [str(value) for value in np.linspace(1000, 5000, 500).astype(int)]
    frame = pd.DataFrame({"job": ["no"] * 3000 + ["yes"] * 2000, "wage": wage})
    schema = Schema(
        (
            Column("job", Kind.CATEGORICAL, categories=("no", "yes")),
            Column("wage", Kind.REAL, lower=0, upper=6000, bins=10),
        )
    )
    made = synthesize(released(frame, schema, 1, seed), seed=seed).frame
    missing, job = made["wage"].isna(), made["job"]
    assert 0.89 <= missing.mean() <= 0.91
    assert missing[job == "no"].mean() >= 0.98
    assert 0.72 <= missing[job == "yes"].mean() <= 0.78


def rare_level(rho, seed):
    plan = np.repeat(["basic", "plus", "carer"], [6000, 3900, 100])
    region = np.tile(["north", "east", "south", "west"], 2500)
    churn = np.where((plan == "carer") | (np.arange(10_000) % 5 == 0), "yes", "no")
    frame = pd.DataFrame({"plan": plan, "region": region, "churn": churn})
    schema = Schema(
        tuple(
            Column(name, Kind.CATEGORICAL, categories=tuple(sorted(set(frame[name]))))
            for name in frame
        )
    )
    return synthesize(released(frame, schema, rho, seed), seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_category_is_kept(seed):
    made = rare_level(1, seed).frame
    carers = made["plan"] == "carer"
    assert 0.008 <= carers.mean() <= 0.012
    assert (made["churn"][carers] == "yes").mean() >= 0.9


def test_a_pooled_category_comes_back_and_stays_in_the_domain():
    shares = []
    for seed in range(8):
        made = rare_level("1/1000", seed)
        assert {"basic", "carer", "plus"} <= set(made.frame["plan"].cat.categories)
        shares.append((made.frame["plan"] == "carer").mean())
    assert np.mean(shares) > 0
