"""What the marginals of a tree release say by themselves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from core.errors import Cancelled
from core.privci.select import release_tree
from core.pumba.from_tree import SELECTION, UNPOOLED, row_count_of, tree_tables
from core.pumba.tables import draw_counts
from core.releases import Recoding
from core.roles import Role, Roles
from core.schema import Schema
from core.simulation import simulated_vault
from core.statistics import Family
from tests.core.private.tables import categorical, coded
from tests.core.pumba.staff import ADD, REPLACE

SIZES = {"a": 2, "b": 2, "c": 3, "d": 3}
SCHEMA = Schema(tuple(categorical(name, size) for name, size in SIZES.items()))
ROLES = Roles(dict.fromkeys(SIZES, Role.ADMISSIBLE))
ROWS = 1500


def table_of(seed=0, rows=ROWS):
    """b mostly repeats a; the last cell of d is rare."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, rows)
    b = np.where(generator.random(rows) < 0.8, a, 1 - a)
    c = (a + generator.integers(0, 2, rows)) % 3
    d = np.where(generator.random(rows) < 0.004, 2, 0)
    d[:2] = 1
    return coded(SIZES, {"a": a, "b": b, "c": c, "d": d})


def tree(relation=ADD, seed=1, rho=Fraction(1, 2), table=None, **settings):
    vault = simulated_vault(table or table_of(), seed=seed, relation=relation)
    return release_tree(vault.grant(rho, "tree", "id"), SCHEMA, ROLES, **settings)


@pytest.fixture(scope="module")
def release():
    return tree()


def test_every_one_way_table_and_every_unpooled_pair(release):
    found = tree_tables(release)
    singles = [one.columns for one in found.tables if len(one.columns) == 1]
    pairs = [one.columns for one in found.tables if len(one.columns) == 2]
    assert singles == [("a",), ("b",), ("c",), ("d",)]
    pooled = {pair for pair, _ in found.refusals}
    assert pooled == {pair for pair in release.edges if "d" in pair}
    assert set(pairs) | pooled == set(release.edges)
    assert pooled
    assert all("“d” were pooled" in reason for _, reason in found.refusals)
    assert found.table("b", "a") is found.table("a", "b") is not None
    assert found.table("a", "nobody") is None


def test_cells_and_margins_are_the_released_ones(release):
    pair = tree_tables(release).table("a", "b")
    (marginal,) = [m for m in release.two_way if m.clique == ("a", "b")]
    assert [cell.value for cell in pair.table.cells] == marginal.values.ravel().tolist()
    assert {cell.law.scale for cell in pair.table.cells} == {marginal.sigma}
    assert {cell.law.family for cell in pair.table.cells} == {Family.DISCRETE_GAUSSIAN}
    one_way = {m.clique[0]: m for m in release.one_way}
    weights = np.array([query.weights for query in pair.table.queries])
    assert weights.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    margins = [query.statistic.value for query in pair.table.queries]
    assert margins == [*one_way["a"].values.tolist(), *one_way["b"].values.tolist()]
    assert {q.statistic.law.scale for q in pair.table.queries} == {one_way["a"].sigma}


def test_margins_are_an_offer(release):
    with_them = tree_tables(release).table("a", "b")
    alone = tree_tables(release, margins=False).table("a", "b")
    assert not alone.table.queries
    assert alone.caveats == (SELECTION,)
    assert with_them.caveats == (SELECTION, UNPOOLED)
    assert tree_tables(release).table("a").caveats == ()


def test_margins_sharpen_the_counts():
    """Averaged over releases, draws with margins lie closer to the true cells."""
    truth = np.array([[600, 150], [150, 600]], dtype=float)
    table = coded(
        SIZES,
        {
            "a": np.repeat([0, 0, 1, 1], [600, 150, 150, 600]),
            "b": np.repeat([0, 1, 0, 1], [600, 150, 150, 600]),
            "c": np.tile([0, 1, 2], ROWS // 3),
            "d": np.tile([0, 1, 2], ROWS // 3),
        },
    )
    errors = {True: [], False: []}
    for seed in range(12):
        release = tree(seed=seed, rho=Fraction(1, 50), table=table)
        for margins, kept in errors.items():
            found = tree_tables(release, margins=margins).table("a", "b").table
            draws = draw_counts(found, 400, np.random.default_rng(seed)).values
            kept.append(((draws - truth.ravel()) ** 2).mean())
    assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])


def test_the_total_is_known_only_where_it_is_public(release):
    assert all(one.table.total is None for one in tree_tables(release).tables)
    public = tree(relation=REPLACE)
    assert all(one.table.total == ROWS for one in tree_tables(public).tables)
    assert row_count_of(public) == ROWS


def test_the_row_count_of_all_one_way_tables():
    """Unbiased, and as precise as it says."""
    scores = []
    for seed in range(100):
        found = row_count_of(tree(seed=seed, structure="mst"))
        assert found.law.family is Family.GAUSSIAN
        scores.append((found.value - ROWS) / found.law.scale)
    assert abs(np.mean(scores)) < 0.5
    assert 0.6 < np.std(scores) < 1.4


def test_the_row_count_is_sharper_than_any_single_table(release):
    found = row_count_of(release)
    best = min(np.sqrt(m.values.size) * m.sigma for m in release.one_way)
    assert found.law.scale < best
    assert found.value == release.total


def test_a_cancelled_tree_refuses_the_pairs_that_it_never_measured():
    def progress(stage, done, total, detail):
        if stage == "selection" and done == total:
            raise Cancelled("stop")

    release = tree(progress=progress)
    assert release.partial
    found = tree_tables(release)
    assert {len(one.columns) for one in found.tables} == {1}
    assert [pair for pair, _ in found.refusals] == list(release.edges)
    assert all("cancelled" in reason for _, reason in found.refusals)


def test_pooling_of_either_column_refuses_the_pair(release):
    pooled = {**release.recoding.maps, "c": np.array([0, 1, 1]), "a": np.array([0, 1])}
    found = tree_tables(replace(release, recoding=Recoding(pooled)))
    refused = {pair for pair, _ in found.refusals}
    assert refused == {pair for pair in release.edges if set(pair) & {"c", "d"}}
    assert found.table("a", "b") is not None


def test_columns_of_one_cell_have_no_table():
    sizes = {"a": 2, "b": 1}
    schema = Schema(tuple(categorical(name, size) for name, size in sizes.items()))
    roles = Roles(dict.fromkeys(sizes, Role.ADMISSIBLE))
    table = coded(sizes, {"a": [0, 1] * 50, "b": [0] * 100})
    grant = simulated_vault(table, seed=0).grant(Fraction(1), "tree", "id")
    found = tree_tables(release_tree(grant, schema, roles, structure="mst"))
    assert [one.columns for one in found.tables] == [("a",), ("a", "b")]
