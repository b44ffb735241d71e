from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from core.audit.information import (
    _sums_by_rows,
    _sums_by_tables,
    _tables,
    conditional_information,
    information_interval,
    permutation_test,
    rule_information,
)
from core.errors import EstimationError
from core.privci.certificate import conditional_mutual_information
from core.roles import Constraint
from tests.core.audit.made import world_of

NATS = np.log(2)


def random_codes(seed, rows, sizes):
    generator = np.random.default_rng(seed)
    return [generator.integers(0, size, rows) for size in sizes]


# -- the figure -------------------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.tuples(*[st.integers(1, 5)] * 3),
)
@settings(max_examples=200, deadline=None)
def test_figure_is_the_mean_of_the_strata_s_mutual_information(seed, rows, sizes):
    outcome, protected, stratum = random_codes(seed, rows, sizes)
    expected = sum(
        np.mean(stratum == value)
        * mutual_info_score(outcome[stratum == value], protected[stratum == value])
        for value in np.unique(stratum)
    )
    found = conditional_information(outcome, protected, stratum)
    assert found == pytest.approx(expected / NATS, abs=1e-12)
    # the same number from the dense table that the certificate of a model uses
    table = np.zeros(sizes)
    np.add.at(table, (outcome, protected, stratum), 1 / rows)
    assert found == pytest.approx(conditional_mutual_information(table), abs=1e-12)


def test_figure_does_not_care_how_codes_are_numbered():
    outcome, protected, stratum = random_codes(3, 500, (3, 2, 6))
    plain = conditional_information(outcome, protected, stratum)
    spread = conditional_information(outcome * 10**9 - 5, protected * 77, stratum.astype(np.uint8))
    assert spread == plain
    assert conditional_information(protected, outcome, stratum) == pytest.approx(plain, abs=1e-14)


def test_several_columns_count_as_one():
    generator = np.random.default_rng(0)
    one, other, given_ = (generator.integers(0, 2, 400) for _ in range(3))
    world = world_of({"s1": one, "s2": other, "o": one ^ other, "a1": given_, "a2": 1 - given_})
    rule = Constraint(frozenset({"s1", "s2"}), frozenset({"o"}), frozenset({"a1", "a2"}))
    assert rule_information(world, rule, seed=1).bits == pytest.approx(
        conditional_information(one ^ other, 2 * one + other, given_), abs=1e-12
    )
    # neither column alone says anything, both together say nearly everything
    alone = Constraint(frozenset({"s1"}), frozenset({"o"}), frozenset({"a1", "a2"}))
    assert rule_information(world, alone, seed=1).bits < 0.02
    assert rule_information(world, rule, seed=1).bits > 0.95


def test_arrays_must_fit():
    with pytest.raises(EstimationError, match="one value a row"):
        conditional_information(np.zeros(3), np.zeros(3), np.zeros(2))
    with pytest.raises(EstimationError, match="two permutations"):
        permutation_test(*(np.zeros(3, dtype=int),) * 3, permutations=1)


# -- the law of the shuffles ------------------------------------------------------------------


def test_drawn_tables_follow_the_law_of_random_tables():
    # every table with these margins, against scipy's exact probabilities
    outcomes, groups = np.array([[3, 2, 1]]), np.array([[4, 2]])
    draws = 20_000
    drawn = _tables(outcomes, groups, draws, np.random.default_rng(5))[:, 0]
    assert (drawn.sum(axis=1) == outcomes).all()
    assert (drawn.sum(axis=2) == groups).all()
    law = scipy.stats.random_table(groups[0], outcomes[0])
    counts = Counter(tuple(table.ravel()) for table in drawn)
    probabilities = {key: law.pmf(np.reshape(key, (2, 3))) for key in counts}
    assert sum(probabilities.values()) == pytest.approx(1.0)  # all of them were met
    expected = [draws * probabilities[key] for key in counts]
    assert scipy.stats.chisquare(list(counts.values()), expected).pvalue > 1e-3


@pytest.mark.parametrize("sizes", [(2, 2, 3), (3, 4, 5), (2, 3, 60)])
def test_both_ways_of_shuffling_have_one_law(sizes):
    outcome, protected, stratum = random_codes(9, 240, sizes)
    draws = 3_000
    one = _sums_by_rows(outcome, protected, stratum, draws, np.random.default_rng(1))
    other = _sums_by_tables(outcome, protected, stratum, draws, np.random.default_rng(2))
    assert scipy.stats.ks_2samp(one, other).pvalue > 1e-3
    assert one.std() > 0


def test_shuffles_against_shuffling_one_stratum_at_a_time():
    outcome, protected, stratum = random_codes(4, 120, (3, 3, 4))
    generator = np.random.default_rng(11)
    naive = []
    for _ in range(1_000):
        shuffled = protected.copy()
        for value in range(4):
            inside = np.flatnonzero(stratum == value)
            shuffled[inside] = shuffled[generator.permutation(inside)]
        naive.append(conditional_information(outcome, shuffled, stratum))
    found = permutation_test(outcome, protected, stratum, permutations=1_000, seed=3)
    error = np.std(naive) * np.sqrt(2 / 1_000)
    assert abs(found.floor - np.mean(naive)) < 4 * error
    assert found.floor_deviation == pytest.approx(np.std(naive), rel=0.1)


def test_floor_is_the_formula_where_tables_are_full():
    sizes, rows = (3, 4, 10), 20_000
    outcome, protected, stratum = random_codes(8, rows, sizes)
    found = permutation_test(outcome, protected, stratum, seed=8)
    formula = (sizes[0] - 1) * (sizes[1] - 1) * sizes[2] / (2 * rows * NATS)
    assert found.floor == pytest.approx(formula, rel=0.03)
    # and the spread of a chi-square with as many degrees of freedom
    freedom = (sizes[0] - 1) * (sizes[1] - 1) * sizes[2]
    deviation = np.sqrt(2 * freedom) / (2 * rows * NATS)
    assert found.floor_deviation == pytest.approx(deviation, rel=0.2)


# -- what it is for ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "sizes"), [(300, (2, 2, 8)), (200, (3, 3, 60))])
def test_excess_is_unbiased_and_p_uniform_on_independent_data(rows, sizes):
    # O and S depend on the stratum, and on each other through it, but not within it
    found = []
    for seed in range(200):
        generator = np.random.default_rng([20, rows, seed])
        stratum = generator.integers(0, sizes[2], rows)
        lean = 0.2 + 0.6 * stratum / sizes[2]
        outcome = generator.binomial(sizes[0] - 1, lean)
        protected = generator.binomial(sizes[1] - 1, 1 - lean)
        assert abs(np.corrcoef(outcome, protected)[0, 1]) < 0.9
        found.append(permutation_test(outcome, protected, stratum, permutations=199, seed=seed))
    excess = np.array([test.excess for test in found])
    assert abs(excess.mean()) < 2 * excess.std(ddof=1) / np.sqrt(200)
    assert np.mean([test.bits for test in found]) > 10 * excess.std(ddof=1) / np.sqrt(200)
    p_values = np.array([test.p_value for test in found])
    assert scipy.stats.kstest(p_values, "uniform").pvalue > 1e-3
    assert 0.01 <= np.mean(p_values <= 0.05) <= 0.10


def test_dependence_within_strata_is_seen():
    generator = np.random.default_rng(6)
    stratum, protected = generator.integers(0, 5, 2_000), generator.integers(0, 2, 2_000)
    outcome = generator.binomial(1, 0.4 + 0.2 * protected)
    found = permutation_test(outcome, protected, stratum, seed=6)
    assert found.p_value == 1 / 201
    assert found.excess > 10 * found.floor_deviation


def test_same_seed_same_answer():
    codes = random_codes(1, 300, (2, 3, 4))
    assert permutation_test(*codes, seed=4) == permutation_test(*codes, seed=4)
    assert permutation_test(*codes, seed=4).floor != permutation_test(*codes, seed=5).floor


def test_p_counts_ties():
    # two tables are possible; the one at hand is as far as the other: never "significant"
    found = permutation_test(np.array([0, 1]), np.array([0, 1]), np.zeros(2), seed=0)
    assert (found.bits, found.floor, found.p_value) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ((np.arange(50) % 2, np.arange(50) % 3, np.arange(50)), "no stratum holds two groups"),
        ((np.zeros(9, int), np.arange(9) % 2, np.zeros(9, int)), "no stratum holds two groups"),
        ((np.arange(9) % 2, np.ones(9, int), np.zeros(9, int)), "no stratum holds two groups"),
        ((np.zeros(0, int),) * 3, "no rows"),
    ],
    ids=["a stratum a row", "one outcome", "one group", "no rows"],
)
def test_nothing_to_compare_has_a_reason(codes, words):
    found = permutation_test(*codes)
    assert (found.bits, found.floor, found.p_value, found.informative_rows) == (0.0, 0.0, 1.0, 0)
    assert words in found.reason


def test_many_strata_leave_few_informative_rows():
    outcome, protected, stratum = random_codes(2, 1_000, (2, 2, 900))
    found = permutation_test(outcome, protected, stratum, seed=2)
    sizes = np.bincount(stratum)
    telling = [
        value
        for value in np.flatnonzero(sizes)
        if len(set(outcome[stratum == value])) == len(set(protected[stratum == value])) == 2
    ]
    assert found.informative_rows == sizes[telling].sum() < 500
    assert found.strata == len(np.flatnonzero(sizes))
    assert found.reason == ""
    assert abs(found.excess) < 5 * found.floor_deviation
    # rows of a kind that cannot differ neither add nor take away
    formula = 900 / (2 * 1_000 * NATS)
    assert found.floor < formula / 2  # the formula is for full tables


# -- intervals --------------------------------------------------------------------------------


def test_interval_covers_the_sampling_spread():
    def draw(seed):
        generator = np.random.default_rng([31, seed])
        stratum, protected = generator.integers(0, 4, 800), generator.integers(0, 2, 800)
        outcome = generator.binomial(1, 0.3 + 0.3 * protected)
        return outcome, protected, stratum

    figures = [conditional_information(*draw(seed)) for seed in range(300)]
    low, high = information_interval(*draw(0), seed=1)
    assert low < figures[0] < high
    assert (high - low) / (2 * 1.96 * np.std(figures)) == pytest.approx(1.0, abs=0.3)
    covered = [
        low <= np.mean(figures) <= high
        for low, high in (information_interval(*draw(seed), seed=seed) for seed in range(60))
    ]
    assert np.mean(covered) > 0.85


def test_interval_of_nothing():
    assert information_interval(*(np.zeros(0, int),) * 3) == (None, None)
    low, high = information_interval(*random_codes(1, 50, (2, 2, 2)), seed=2)
    assert 0 <= low <= high


# -- a published table ------------------------------------------------------------------------

TABLES = os.environ.get("JUSTITIA_BENCHMARK_TABLES", "")


@pytest.mark.skipif(
    not (TABLES and Path(TABLES, "german.csv").is_file()),
    reason="the German credit table is not shipped; JUSTITIA_BENCHMARK_TABLES names its folder",
)
def test_german_credit_lies_at_its_floor():
    table = pd.read_csv(Path(TABLES, "german.csv"))
    table["duration"] = pd.cut(table["duration"], [-1, 12, 24, 36, 999], labels=False)
    table["credit-amount"] = pd.qcut(table["credit-amount"], 4, labels=False)
    admissible = [
        *("checking-account", "credit-history", "duration", "credit-amount", "savings-account"),
        *("employment-since", "installment-rate", "existing-credits", "other-debtors", "property"),
    ]
    stratum = table.groupby(admissible).ngroup().to_numpy()
    outcome, protected = (pd.factorize(table[name])[0] for name in ("class-label", "sex"))
    found = permutation_test(outcome, protected, stratum, seed=0)
    assert found.bits == pytest.approx(0.0168, abs=5e-5)
    assert found.floor == pytest.approx(0.0152, abs=5e-4)
    assert found.p_value > 0.05
    assert found.informative_rows < 30
