from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.against_release import _projected, mean_absolute_noise
from core.audit.associations import Cells, cramers_v, midpoints, pearson
from core.audit.distances import (
    FLOOR,
    chance_variation,
    combinations,
    paired,
    random_split,
)
from core.audit.fidelity import (
    Fidelity,
    against_release,
    correlation_difference,
    joint_distance,
    kullback_leibler,
    marginal_distances,
    quantile_differences,
    total_variation,
)
from core.audit.quantiles import quantiles
from core.audit.resampling import bootstrap
from core.audit.worlds import World, real_world, synthetic_world
from core.errors import EstimationError
from core.private.table import CodedTable
from core.private.zcdp import as_rho
from core.privci.compress import project_on_simplex
from core.privci.sample import synthesize
from core.privci.select import release_tree
from core.roles import Roles
from core.schema import Column, Kind, Schema
from core.simulation import discrete_gaussian, simulated_vault
from tests.core.audit.made import labelled, random_world, world_of
from tests.core.privci.models import release_of


def shares_of(world, names):
    """Dense shares by a route of its own."""
    sizes = [world.size(name) for name in names]
    sample = np.stack([world.codes[name] for name in names], axis=1)
    edges = [np.arange(size + 1) - 0.5 for size in sizes]
    return np.histogramdd(sample, bins=edges)[0] / world.rows


def shuffled(world, seed=0):
    """Every column shuffled on its own: the same one-way tables, nothing else left."""
    generator = np.random.default_rng(seed)
    codes = {name: generator.permutation(column) for name, column in world.codes.items()}
    return World("shuffled rows", world.schema, codes, world.rows, world.private)


def compare(first, second):
    """All parts, as an audit puts them together."""
    return Fidelity(
        tuple(marginal_distances(first, second, ways) for ways in (1, 2, 3)),
        joint_distance(first, second),
        correlation_difference(first, second),
        quantile_differences(first, second, draws=50),
        0.95,
    )


def chained_world(rows=2_000, columns=4, seed=0, **more):
    """Each column nearly repeats the one before."""
    generator = np.random.default_rng(seed)
    codes = {"c0": generator.integers(0, 5, rows)}
    for place in range(1, columns):
        fresh = generator.random(rows) < 0.05
        before = codes[f"c{place - 1}"]
        codes[f"c{place}"] = np.where(fresh, generator.integers(0, 5, rows), before)
    return world_of(codes, [5] * columns, **more)


# -- distances --------------------------------------------------------------------------------


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


def test_a_world_against_itself_is_perfect():
    world = chained_world()
    found = compare(world, world.take(np.arange(world.rows)[::-1]))
    for part in found.marginals:
        assert part.tv.max() == 0.0
        assert np.abs(part.kl).max() < 1e-9
    assert (found.joint.tv, found.joint.kl) == pytest.approx((0.0, 0.0), abs=1e-9)
    assert found.correlations.cramers_v.difference.max() == pytest.approx(0.0, abs=1e-12)
    assert all(
        figure.value == pytest.approx(0, abs=1e-9)
        for figure in found.figures()
        if figure.value is not None
    )


def test_a_world_against_its_shuffled_columns_is_terrible():
    world = chained_world()
    found = compare(world, shuffled(world))
    one, two, three = found.marginals
    assert one.tv.max() == 0.0
    neighbours = [place for place, names in enumerate(two.names) if names == ("c0", "c1")]
    assert two.tv[neighbours[0]] > 0.7
    assert two.tv.mean() > 10 * two.chance.mean()
    assert three.tv.min() > 0.7
    assert found.joint.tv > 0.8
    assert found.joint.kl > 1.0
    assert found.correlations.cramers_v.difference.min() > 0.7
    assert two.worst(2)[0] in {0, 3, 5}  # (c0, c1), (c1, c2), (c2, c3)


def test_both_directions_of_the_divergence():
    first, second = world_of({"x": [0, 0, 1, 1]}, [2]), world_of({"x": [0, 0, 0, 0]}, [2])
    there, back = (
        marginal_distances(one, other, 1) for one, other in ((first, second), (second, first))
    )
    assert there.kl[0] == pytest.approx(0.5 * np.log(0.5) + 0.5 * np.log(0.5 / FLOOR), rel=1e-6)
    assert back.kl[0] == pytest.approx(np.log(2), rel=1e-6)
    assert there.tv[0] == back.tv[0] == 0.5


# -- chance and standard errors ---------------------------------------------------------------


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


# -- associations -----------------------------------------------------------------------------


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


def numeric_columns():
    return (
        Column("x", Kind.INTEGER, lower=0, upper=9, bins=5, missing_label="(gone)"),
        Column("y", Kind.REAL, lower=-1.0, upper=1.0, edges=(-1.0, 0.0, 0.5, 1.0)),
    )


def numeric_world(seed, rows=500):
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 5, rows)
    y = np.minimum(x // 2 + (generator.random(rows) < 0.3), 2)
    missing = generator.random(rows) < 0.1
    codes = {"x": np.where(missing, 5, x), "y": np.where(generator.random(rows) < 0.1, 3, y)}
    return world_of(codes, numeric_columns())


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


# -- quantiles --------------------------------------------------------------------------------


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


# -- against the release ----------------------------------------------------------------------


def noisy_release(generator, world, sigma, edges=(), maps=None, **more):
    """What a release of this world would hold, with seeded noise."""
    one_way = {
        name: world.table([name]) + discrete_gaussian(generator, sigma, (world.size(name),))
        for name in world.schema.names
    }
    two_way = {}
    for edge in edges:
        table = world.table(edge)
        for axis, name in enumerate(edge):
            if maps and name in maps:
                groups = np.eye(max(maps[name]) + 1, dtype=np.int64)[maps[name]]
                table = np.moveaxis(np.tensordot(table, groups, axes=(axis, 0)), -1, axis)
        two_way[edge] = table + discrete_gaussian(generator, sigma, table.shape)
    return release_of(one_way, edges, two_way, sigma=sigma, maps=maps, **more)


@pytest.mark.parametrize("sigma", [0.6, 6.0, 50.0])
def test_the_true_world_lies_at_the_noise_baseline(sigma):
    generator = np.random.default_rng(17)
    truth = random_world(generator, 3_000, [2, 5, 9])
    maps = {"c2": [0, 1, 2, 3, 3, 3, 3, 3, 3]}
    edges = (("c0", "c1"), ("c1", "c2"))
    tv, kl, noise, kl_noise = [], [], [], []
    for seed in range(150):
        release = noisy_release(generator, truth, sigma, edges, maps, public_rows=3_000)
        found = against_release(release, truth, draws=60, seed=seed)
        assert found.two_way.merged == (False, True)
        parts = (found.one_way, found.two_way)
        tv.append(np.concatenate([part.tv for part in parts]))
        kl.append(np.concatenate([part.kl for part in parts]))
        noise.append(np.concatenate([part.tv_noise for part in parts]))
        kl_noise.append(np.concatenate([part.kl_noise for part in parts]))
    tv, kl = np.array(tv), np.array(kl)
    assert np.ptp(noise, axis=0).max() < 1e-12  # a closed form
    assert (np.abs(tv.mean(axis=0) - noise[0]) < 4 * tv.std(axis=0) / np.sqrt(150)).all()
    spread = np.sqrt(kl.var(axis=0) / 150 + np.var(kl_noise, axis=0) / 150)
    assert (np.abs(kl.mean(axis=0) - np.mean(kl_noise, axis=0)) < 4 * spread + 1e-9).all()


def test_a_noisy_row_count_moves_the_baseline_little():
    generator = np.random.default_rng(3)
    truth = random_world(generator, 3_000, [4, 6])
    ratios = []
    for _ in range(200):
        found = against_release(noisy_release(generator, truth, 8.0), truth, draws=2)
        ratios.append(found.one_way.tv / found.one_way.tv_noise)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_another_world_lies_far_above_its_noise():
    generator = np.random.default_rng(5)
    truth = chained_world(3_000, 3)
    release = noisy_release(generator, truth, 4.0, (("c0", "c1"), ("c1", "c2")))
    found = against_release(release, shuffled(truth))
    assert (found.two_way.tv > 20 * found.two_way.tv_noise).all()
    assert found.one_way.tv.mean() < 2 * found.one_way.tv_noise.mean()
    figures = {figure.key: figure for figure in found.figures()}
    assert figures["fidelity.released.two_way.tv"].publishable
    assert figures["fidelity.released.two_way.tv"].baseline < 0.05


def test_a_whole_release_against_the_rows_behind_it():
    # through the front door: selection, compression and synthetic rows included
    generator = np.random.default_rng(9)
    world = chained_world(4_000, 4)
    codes = {**world.codes, "rare": np.minimum(generator.geometric(0.5, 4_000) - 1, 19)}
    schema = Schema((*world.schema.columns, labelled("rare", 20)))
    table = CodedTable(schema, {k: v.astype(np.uint8) for k, v in codes.items()}, {}, 4_000)
    ratios, followed, merged = [], [], 0
    for seed in range(40):
        vault = simulated_vault(table, seed=seed)
        release = release_tree(vault.grant(as_rho("0.1"), "tree", "r"), schema, Roles())
        real = real_world(vault.not_private("a test"), schema)
        truth = against_release(release, real, draws=2)
        assert all(figure.private for figure in truth.figures())
        for part in (truth.one_way, truth.two_way):
            ratios.append((part.tv / part.tv_noise).mean())
        rows = synthetic_world(synthesize(release, seed=seed), schema)
        found = against_release(release, rows, draws=2)
        assert all(figure.publishable for figure in found.figures())
        followed.append((found.two_way.tv / found.two_way.tv_noise).mean())
        merged += any(found.two_way.merged)
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.std(ratios) / np.sqrt(80))
    assert np.std(ratios) < 0.3
    # rows that were fitted to the noisy tables lie no further from them than the truth does
    assert np.mean(followed) < 1.0
    assert merged == 40


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0, 299.0, 301.0])
def test_mean_of_the_noise(sigma):
    support = np.arange(-20 * int(sigma + 1), 20 * int(sigma + 1) + 1)
    mass = np.exp(-(support**2) / (2 * sigma**2))
    expected = (np.abs(support) @ mass) / mass.sum()
    assert mean_absolute_noise(sigma) == pytest.approx(expected, rel=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=80, deadline=None)
def test_many_projections_are_single_ones(seed, cells):
    rows = np.random.default_rng(seed).normal(0.1, 0.5, (5, cells))
    expected = [project_on_simplex(row, 1.0) for row in rows]
    assert _projected(rows) == pytest.approx(np.array(expected), abs=1e-12)


def test_reasons_instead_of_distances_to_a_release():
    release = release_of({"a": [6, 4], "b": [5, 5]}, (("a", "b"),), {("a", "b"): [[3, 3], [2, 2]]})
    world = world_of({"a": [0, 1], "b": [1, 0]}, [2, 2])
    assert against_release(release, world).reason == ""
    empty = against_release(release, world.take(np.zeros(0, dtype=int)))
    assert [figure.value for figure in empty.figures()] == [None, None]
    assert "no rows" in empty.figures()[0].reason
    hidden = release_of({"a": [-6, 4], "b": [-5, 5]})
    assert "not positive" in against_release(hidden, world).reason
    alone = against_release(release_of({"a": [6, 4], "b": [5, 5]}), world)
    assert alone.one_way is not None
    assert alone.two_way is None
    assert alone.figures()[-1].reason == "no pair of columns was measured"
    with pytest.raises(EstimationError, match="'b' has other cells"):
        against_release(release, world_of({"a": [0], "b": [0]}, [2, 3]))
    with pytest.raises(EstimationError, match="'b' has other cells"):
        against_release(release, world_of({"a": [0]}, [2]))


def test_real_rows_against_a_release_stay_private():
    release = release_of({"a": [6, 4]})
    world = world_of({"a": [0, 1]}, [2], private=True, name="real table")
    assert all(figure.private for figure in against_release(release, world).figures())
    empty = world.take(np.zeros(0, dtype=int))
    assert all(figure.private for figure in against_release(release, empty).figures())


# -- figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("private", [False, True])
def test_figures_have_one_key_each_and_carry_the_mark(private):
    first = numeric_world(1)
    second = World("real table", first.schema, first.codes, first.rows, private)
    figures = compare(first, second).figures()
    assert len({figure.key for figure in figures}) == len(figures)
    assert {figure.private for figure in figures} == {private}
    assert all(
        figure.low <= figure.value <= figure.high for figure in figures if figure.low is not None
    )


def test_empty_worlds_are_refused_by_name():
    world = random_world(np.random.default_rng(0), 5, [2, 2])
    empty = World("real table", world.schema, {n: c[:0] for n, c in world.codes.items()}, 0, True)
    for look in (joint_distance, correlation_difference, lambda *w: marginal_distances(*w, 2)):
        for pair in ((world, empty), (empty, world)):
            with pytest.raises(EstimationError, match="no rows in the real table"):
                look(*pair)
    assert quantile_differences(world, empty).figures()[0].value is None


def test_cells_must_agree():
    with pytest.raises(EstimationError, match="column 'x' has other cells"):
        joint_distance(world_of({"x": [0]}, [2]), world_of({"x": [0]}, [3]))


def test_declared_cells_that_never_occur_and_columns_of_one_cell():
    first = world_of({"x": [0, 0, 4], "one": [0, 0, 0]}, [9, 1])
    second = world_of({"x": [4, 4, 0], "one": [0, 0, 0]}, [9, 1])
    found = compare(first, second)
    assert found.marginals[0].tv.tolist() == [pytest.approx(1 / 3), 0.0]
    assert found.marginals[0].chance[1] == 0.0
    three = found.marginals[2].figures()
    assert (three[0].value, three[0].reason) == (None, "fewer than 3 columns")


def test_all_columns_against_none():
    first = random_world(np.random.default_rng(0), 9, [2, 3])
    assert joint_distance(first, shuffled(first), ()).tv == 0.0
    assert chance_variation(paired(first, first, ()), random_split(9, 9)) == 0.0
