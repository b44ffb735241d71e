"""Gaps between groups: against fairlearn, against chance, and their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equalized_odds_difference,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.fairness import decision_fairness, outcome_fairness
from core.audit.gaps import Gap, Labelled, Manner, Rate, RateTable, group_gap
from core.roles import Constraint
from tests.core.audit.made import BARE, RULE, random_world, world_of


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(30, 200))
@settings(max_examples=12, deadline=None)
def test_gaps_are_fairlearns(seed, groups, rows):
    generator = np.random.default_rng(seed)
    group = np.concatenate([np.repeat(np.arange(groups), 4), generator.integers(0, groups, rows)])
    truth = np.concatenate(
        [np.tile([0, 0, 1, 1], groups), generator.binomial(1, 0.3 + 0.1 * group[4 * groups :])]
    )
    decision = generator.binomial(1, 0.2 + 0.3 * truth + 0.05 * group)
    world = world_of({"s": group, "o": truth}, [groups, 2])
    found = decision_fairness(world, decision, BARE, minimum=1, permutations=20, draws=20)
    head = found.headline
    said = {"y_true": truth, "y_pred": decision, "sensitive_features": group}
    assert head.parity.size == pytest.approx(demographic_parity_difference(**said))
    assert head.equalized_odds.size == pytest.approx(equalized_odds_difference(**said))
    assert head.mean_odds == pytest.approx(equalized_odds_difference(**said, agg="mean"))
    frame = MetricFrame(
        metrics={
            "selection": selection_rate,
            "true": true_positive_rate,
            "false": false_positive_rate,
        },
        **said,
    )
    assert [rate.rate for rate in head.rates] == pytest.approx(frame.by_group["selection"])
    for name, part in (
        ("selection", head.parity),
        ("true", head.true_positive),
        ("false", head.false_positive),
    ):
        rates = frame.by_group[name]
        for side in (part.one, part.other):
            assert side.rate == pytest.approx(rates[int(side.group[1:])])
        assert part.size == pytest.approx(rates.max() - rates.min())
    # the outcome itself: fairlearn on the truth as if it were decided
    own = outcome_fairness(world, BARE, minimum=1, permutations=20, draws=20)
    expected = demographic_parity_difference(y_true=truth, y_pred=truth, sensitive_features=group)
    assert own.columns[0].headline.parity.size == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_gaps_within_cells_against_group_by(seed, strata, minimum):
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(1, 200))
    world = random_world(generator, rows, [3, 2, strata])
    frame = pd.DataFrame({name: world.codes[f"c{i}"] for i, name in enumerate("soa")})
    rule = Constraint(frozenset({"c0"}), frozenset({"c1"}), frozenset({"c2"}))
    found = outcome_fairness(world, rule, minimum=minimum, permutations=20, draws=20)
    table = frame.groupby(["a", "s"])["o"].agg(["size", "mean"]).reset_index()
    table = table[table["size"] >= minimum]
    table = table[table.groupby("a")["s"].transform("size") > 1]
    if frame["o"].nunique() < 2:
        assert "one value only" in found.columns[0].reason
        return
    within = found.columns[0].headline.within
    by = table.groupby("a")
    gaps, weights = by["mean"].max() - by["mean"].min(), by["size"].sum()
    assert len(within.strata) == len(gaps)
    if not len(gaps):
        assert within.mean is None
        assert f"two groups of at least {minimum} rows" in within.note
        return
    assert within.mean == pytest.approx(np.average(gaps, weights=weights))
    assert within.covered == pytest.approx(weights.sum() / rows)
    for one in within.strata:
        value = int(one.labels[0][1:])
        assert one.gap.size == pytest.approx(gaps[value])
        assert one.rows == weights[value]
        rates = table[table["a"] == value]
        assert [rate.rate for rate in one.rates] == pytest.approx(rates["mean"].tolist())
        assert [rate.group for rate in one.rates] == [f"v{s}" for s in rates["s"]]
    assert [one.rows for one in within.strata] == sorted(weights, reverse=True)


def test_chance_gap_is_what_dealing_the_outcome_gives():
    generator = np.random.default_rng(3)
    world = random_world(generator, 400, [3, 2, 4])
    rule = Constraint(frozenset({"c0"}), frozenset({"c1"}), frozenset({"c2"}))
    head = outcome_fairness(world, rule, draws=2_000, seed=1).columns[0].headline
    event, group, stratum = (world.codes[name].copy() for name in ("c1", "c0", "c2"))
    within, parity = [], []
    for _ in range(500):
        for value in range(4):
            inside = np.flatnonzero(stratum == value)
            event[inside] = event[generator.permutation(inside)]
        table = RateTable.of(event == 1, group, stratum, minimum=10)
        within.append(float(table.mean_gap()))
        dealt = generator.permutation(event) == 1
        rates = [dealt[group == value].mean() for value in range(3)]
        parity.append(max(rates) - min(rates))
    for naive, found in ((within, head.within.chance), (parity, head.parity.chance)):
        assert abs(np.mean(naive) - found) < 4 * np.std(naive) / np.sqrt(400)


def test_interval_of_a_signed_gap_covers():
    covered = 0
    for seed in range(200):
        generator = np.random.default_rng([5, seed])
        group = generator.integers(0, 2, 300)
        event = generator.random(300) < 0.6 - 0.25 * group
        groups = Labelled(group, (("A",), ("B",)))
        gap = group_gap(event, groups, Manner(10, 200, 0.9, generator))
        assert (gap.one.group, gap.other.group) == ("A", "B")
        covered += gap.low <= -0.25 <= gap.high
    # 200 at 0.9: mean 180, standard deviation 4.2
    assert 160 <= covered <= 196


def test_intervals_of_sizes_are_folded_at_zero():
    one, other = Rate("A", 9, 0.5), Rate("B", 9, 0.4)
    assert Gap(one, other, -0.3, 0.1).interval == (0.0, 0.3)
    assert Gap(one, other, -0.3, -0.1).interval == (0.1, 0.3)
    assert Gap(one, other, 0.05, 0.2).interval == (0.05, 0.2)
    assert Gap(one, other).interval == (None, None)
    assert Gap(one, one).words == "'A' level with 'A' (both 0.500)"


def test_no_dependence_within_cells_lies_at_its_chance():
    ratios = []
    for seed in range(40):
        generator = np.random.default_rng([8, seed])
        stratum = generator.integers(0, 6, 1_500)
        world = world_of(
            {
                "s": generator.binomial(1, 0.2 + 0.1 * stratum),
                "o": generator.binomial(1, 0.1 + 0.12 * stratum),
                "a": stratum,
            },
            [2, 2, 6],
        )
        found = outcome_fairness(world, RULE, seed=seed, permutations=20)
        head = found.columns[0].headline
        assert head.parity.size > 2 * head.parity.chance  # explained by the stratum
        ratios.append(head.within.mean / head.within.chance)
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.std(ratios) / np.sqrt(40))
