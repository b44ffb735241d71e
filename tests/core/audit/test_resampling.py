from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from core.audit import resampling
from core.audit.resampling import (
    bootstrap,
    bootstrap_table,
    normal_interval,
    percentiles,
    standard_error,
)
from core.errors import EstimationError
from tests.core.audit.made import random_world, world_of


def share_of_ones(world):
    return float(np.mean(world.codes["c0"] == 1))


def test_interval_of_a_share_has_the_binomial_width():
    world = random_world(np.random.default_rng(0), 400, [2])
    low, high = bootstrap(world, share_of_ones, draws=2_000, seed=1)
    share = share_of_ones(world)
    deviation = np.sqrt(share * (1 - share) / 400)
    assert low < share < high
    assert (high - low) / (2 * 1.96 * deviation) == pytest.approx(1.0, abs=0.1)
    narrow = bootstrap(world, share_of_ones, draws=2_000, level=0.5, seed=1)
    assert (narrow[1] - narrow[0]) / (2 * 0.6745 * deviation) == pytest.approx(1.0, abs=0.15)


def test_intervals_cover_as_often_as_they_say():
    covered = 0
    for seed in range(300):
        world = random_world(np.random.default_rng([7, seed]), 300, [2])
        low, high = bootstrap(world, share_of_ones, draws=200, level=0.9, seed=seed)
        covered += low <= 0.5 <= high
    # 300 draws at 0.9 (a little less by few redraws): mean 270, standard deviation 5.2
    assert 245 <= covered <= 290


def test_redrawn_tables_and_redrawn_rows_have_one_law(monkeypatch):
    generator = np.random.default_rng(3)
    codes = generator.integers(0, 6, 200)
    by_rows = bootstrap(
        world_of({"c0": codes}),
        lambda world: float(np.var(world.codes["c0"])),
        draws=4_000,
        seed=1,
        level=0.8,
    )
    table = np.bincount(codes, minlength=6).reshape(2, 3)
    values = np.arange(6)

    def variance(counts):
        share = counts.ravel() / counts.sum()
        return float(share @ (values - share @ values) ** 2)

    for cost in (0, 1_000):  # as a multinomial table, and row by row
        monkeypatch.setattr(resampling, "MULTINOMIAL_CELL", cost)
        by_table = bootstrap_table(table, variance, draws=4_000, seed=3, level=0.8)
        # the ends' own standard errors are about 0.005
        assert by_table == pytest.approx(by_rows, abs=0.03)
        assert by_table[1] - by_table[0] > 0.3
    assert variance(table) == pytest.approx(np.var(codes))


def test_worlds_are_redrawn_independently():
    generator = np.random.default_rng(5)
    worlds = [random_world(generator, 300, [2]) for _ in range(2)]

    def difference(one, other):
        return share_of_ones(one) - share_of_ones(other)

    low, high = bootstrap(worlds, difference, draws=2_000, seed=2)
    assert (high - low) / (2 * 1.96 * np.sqrt(2 * 0.25 / 300)) == pytest.approx(1.0, abs=0.1)
    # one world against itself: its copies are redrawn apart as well
    low, high = bootstrap([worlds[0]] * 2, difference, draws=500, seed=2)
    assert low < 0 < high


def test_same_seed_same_interval():
    world = random_world(np.random.default_rng(0), 50, [2])
    assert bootstrap(world, share_of_ones, seed=4) == bootstrap(world, share_of_ones, seed=4)
    assert bootstrap(world, share_of_ones, seed=4) != bootstrap(world, share_of_ones, seed=9)


def test_no_rows_no_interval():
    empty = world_of({"c0": []}, [2])
    assert bootstrap(empty, share_of_ones) == (None, None)
    assert bootstrap([random_world(np.random.default_rng(0), 5, [2]), empty], max) == (None, None)
    assert bootstrap_table(np.zeros((2, 2), dtype=np.int64), lambda table: 1.0) == (None, None)


def test_figures_that_are_often_undefined_have_no_interval():
    assert percentiles([None] * 11 + [1.0] * 89, level=0.9) == (None, None)
    assert percentiles([None] * 10 + [1.0] * 90, level=0.9) == (1.0, 1.0)
    assert percentiles([float("nan")] * 5, level=0.9) == (None, None)
    assert percentiles([], level=0.9) == (None, None)


def test_shifted_to_the_figure():
    low, high = percentiles(np.arange(101.0), level=0.9, centre=0.0)
    assert (low, high) == (-45.0, 45.0)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95])
def test_levels_are_probabilities(level):
    with pytest.raises(EstimationError, match="between 0 and 1"):
        percentiles([1.0, 2.0], level=level)
    with pytest.raises(EstimationError, match="between 0 and 1"):
        normal_interval(0.0, 1.0, level=level)


def test_standard_error_of_means_is_the_textbook_one():
    generator = np.random.default_rng(1)
    one, other = generator.normal(size=50), generator.normal(size=80) + 100
    expected = np.sqrt(np.var(one) / 50 + np.var(other) / 80)
    assert standard_error([one, other]) == pytest.approx(expected)
    low, high = normal_interval(3.0, expected, level=0.8)
    assert (low, high) == pytest.approx(scipy.stats.norm.interval(0.8, 3.0, expected))
