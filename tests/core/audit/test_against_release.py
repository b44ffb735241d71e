"""Rows against released noisy tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.against_release import _projected, mean_absolute_noise
from core.audit.fidelity import against_release
from core.audit.worlds import real_world, synthetic_world
from core.errors import EstimationError
from core.private.table import CodedTable
from core.private.zcdp import as_rho
from core.privci.compress import project_on_simplex
from core.privci.sample import synthesize
from core.privci.select import release_tree
from core.roles import Roles
from core.schema import Schema
from core.simulation import discrete_gaussian, simulated_vault
from tests.core.audit.made import chained_world, labelled, random_world, shuffled, world_of
from tests.core.privci.models import release_of


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
