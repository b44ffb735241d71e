"""Distances of tables, what chance alone gives, and standard errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.distances import FLOOR, chance_variation, combinations, paired, random_split
from core.audit.fidelity import (
    joint_distance,
    kullback_leibler,
    marginal_distances,
    total_variation,
)
from core.audit.resampling import bootstrap
from core.audit.worlds import World
from core.errors import EstimationError
from tests.core.audit.made import chained_world, random_world, shuffled, world_of


def shares_of(world, names):
    """Dense shares by a route of its own."""
    sizes = [world.size(name) for name in names]
    sample = np.stack([world.codes[name] for name in names], axis=1)
    edges = [np.arange(size + 1) - 0.5 for size in sizes]
    return np.histogramdd(sample, bins=edges)[0] / world.rows


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
@settings(max_examples=100, deadline=None)
def test_distances_of_shares_against_scipy(seed, cells):
    generator = np.random.default_rng(seed)
    p, q = (generator.dirichlet(np.full(cells, 0.3)) for _ in range(2))
    q[generator.random(cells) < 0.3] = 0.0
    q = q / q.sum() if q.sum() else np.full(cells, 1 / cells)
    # scipy rescales to shares, which is a matter of cells * 1e-12 here
    expected = scipy.stats.entropy(p + FLOOR, q + FLOOR)
    assert kullback_leibler(p, q) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert kullback_leibler(p, q, floor=0.5) == pytest.approx(
        scipy.special.rel_entr(p + 0.5, q + 0.5).sum()
    )
    assert total_variation(p, q) == pytest.approx(np.maximum(p - q, 0).sum())


def test_a_cell_that_one_table_lacks_costs_27_nats():
    p, q = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert kullback_leibler(p, q) == pytest.approx(-np.log(FLOOR), rel=1e-6)
    assert kullback_leibler(p, p) == 0.0
    assert total_variation(p, q) == 1.0


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 60), st.integers(1, 60))
@settings(max_examples=100, deadline=None)
def test_tables_of_worlds_against_dense_histograms(seed, ways, rows, other_rows):
    generator = np.random.default_rng(seed)
    sizes = [int(size) for size in generator.integers(1, 7, 3)]
    first = random_world(generator, rows, sizes)
    second = random_world(generator, other_rows, sizes)
    found = marginal_distances(first, second, ways)
    assert found.names == tuple(itertools.combinations(first.schema.names, ways))
    assert not found.sampled
    for place, names in enumerate(found.names):
        p, q = shares_of(first, names).ravel(), shares_of(second, names).ravel()
        assert found.tv[place] == pytest.approx(total_variation(p, q), abs=1e-12)
        assert found.kl[place] == pytest.approx(kullback_leibler(p, q), rel=1e-9, abs=1e-9)
    joint = joint_distance(first, second)
    p, q = (shares_of(world, first.schema.names).ravel() for world in (first, second))
    assert joint.tv == pytest.approx(total_variation(p, q), abs=1e-12)
    assert joint.kl == pytest.approx(kullback_leibler(p, q), rel=1e-9, abs=1e-9)


def test_wide_tables_are_counted_over_what_occurs():
    generator = np.random.default_rng(2)
    sizes = [5_000, 7_000, 9_000, 10_000, 10_000, 10_000]  # 3e23 cells
    first = random_world(generator, 200, sizes)
    second = first.take(generator.permutation(200))
    assert joint_distance(first, second).tv == 0.0
    assert marginal_distances(first, second, 3).tv.max() == 0.0
    # three rows of four are the same, the fourth never is
    codes = {name: column.copy() for name, column in first.codes.items()}
    codes["c3"][:50] = (codes["c3"][:50] + 1) % 10_000
    third = World("changed", first.schema, codes, 200, False)
    found = joint_distance(first, third)
    assert found.tv == pytest.approx(0.25)
    assert found.kl == pytest.approx(0.25 * np.log(1 / 200 / FLOOR), rel=1e-6)


def test_both_directions_of_the_divergence():
    first, second = world_of({"x": [0, 0, 1, 1]}, [2]), world_of({"x": [0, 0, 0, 0]}, [2])
    there, back = (
        marginal_distances(one, other, 1) for one, other in ((first, second), (second, first))
    )
    assert there.kl[0] == pytest.approx(0.5 * np.log(0.5) + 0.5 * np.log(0.5 / FLOOR), rel=1e-6)
    assert back.kl[0] == pytest.approx(np.log(2), rel=1e-6)
    assert there.tv[0] == back.tv[0] == 0.5


@given(st.integers(1, 25), st.integers(1, 25))
@settings(max_examples=60, deadline=None)
def test_chance_difference_of_a_cell_is_exact(first, second):
    found = random_split(first, second)
    count = np.arange(first + 1)
    for held in range(first + second + 1):
        mass = scipy.stats.hypergeom(first + second, held, first).pmf(count)
        expected = mass @ np.abs(count / first - (held - count) / second)
        assert found[held] == pytest.approx(expected, abs=1e-12)


def test_chance_is_what_dealing_rows_at_random_gives():
    generator = np.random.default_rng(1)
    pooled = random_world(generator, 300, [6, 30])
    found = []
    for _ in range(400):
        order = generator.permutation(300)
        first, second = pooled.take(order[:100]), pooled.take(order[100:])
        found.append(joint_distance(first, second))
    chance = {one.chance for one in found}
    assert max(chance) == pytest.approx(min(chance), abs=1e-12)  # of the pooled rows alone
    figures = [one.tv for one in found]
    assert abs(np.mean(figures) - chance.pop()) < 4 * np.std(figures) / np.sqrt(400)


def test_large_tables_keep_their_chance():
    found = random_split(40_000, 60_000)
    assert np.isfinite(found).all()
    assert found[0] == found[-1] == 0.0
    # half of all rows: the normal law's mean absolute value
    normal = np.sqrt(2 / np.pi * 0.25 * (1 / 40_000 + 1 / 60_000))
    assert found[50_000] == pytest.approx(normal, rel=1e-3)


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_standard_error_is_the_bootstraps(ways):
    first, second = chained_world(800, 4, seed=1), chained_world(500, 4, seed=2)
    codes = {**second.codes, "c1": np.minimum(second.codes["c1"], 3)}
    codes["c3"] = (codes["c3"] + (np.arange(500) % 3 == 0)) % 5
    second = World("other rows", second.schema, codes, 500, False)
    found = marginal_distances(first, second, ways)

    def mean(one, other):
        return float(marginal_distances(one, other, ways).tv.mean())

    low, high = bootstrap([first, second], mean, draws=150, seed=3, level=0.8)
    redrawn = (high - low) / (2 * 1.2816)
    assert found.deviation / redrawn == pytest.approx(1.0, abs=0.3)
    # one table's own
    place = found.worst(1)[0]
    low, high = bootstrap(
        [first, second],
        lambda one, other: joint_distance(one, other, found.names[place]).tv,
        draws=150,
        seed=4,
        level=0.8,
    )
    assert found.deviations[place] * 2 * 1.2816 / (high - low) == pytest.approx(1.0, abs=0.3)
    alone = joint_distance(first, second, found.names[place])
    assert alone.deviation == pytest.approx(found.deviations[place])


def test_samples_of_tables():
    names = tuple(f"c{i}" for i in range(60))
    chosen, possible = combinations(names, 3, limit=500, seed=1)
    assert possible == 34_220
    assert len(set(chosen)) == len(chosen) == 500
    everything = set(itertools.combinations(names, 3))
    assert set(chosen) <= everything
    assert chosen == combinations(names, 3, limit=500, seed=1)[0]
    assert chosen != combinations(names, 3, limit=500, seed=2)[0]
    # every column is met about as often: 25 times, standard deviation about 4.9
    met = np.array([sum(name in triple for triple in chosen) for name in names])
    assert met.min() > 5
    assert met.max() < 50
    assert combinations(names[:5], 2, limit=10, seed=0) == (
        tuple(itertools.combinations(names[:5], 2)),
        10,
    )
    # thousands of columns are sampled without listing their triples
    many = tuple(map(str, range(5_000)))
    assert len(combinations(many, 3, limit=20, seed=0)[0]) == 20


def test_a_sample_says_so():
    world = random_world(np.random.default_rng(0), 100, [2] * 8)
    found = marginal_distances(world, shuffled(world), 2, limit=5)
    assert found.sampled
    assert len(found.names) == len(found.tv) == 5
    assert "random sample of 5 of 28 pairs" in found.figures()[0].reason


def test_cells_must_agree():
    with pytest.raises(EstimationError, match="column 'x' has other cells"):
        joint_distance(world_of({"x": [0]}, [2]), world_of({"x": [0]}, [3]))


def test_all_columns_against_none():
    first = random_world(np.random.default_rng(0), 9, [2, 3])
    assert joint_distance(first, shuffled(first), ()).tv == 0.0
    assert chance_variation(paired(first, first, ()), random_split(9, 9)) == 0.0
