"""The paid pipeline on simulated and real noise."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from core import demo
from core.private.coding import encode
from core.private.ledger import Ledger, Population
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.private.vault import Vault
from core.privci.select import release_tree
from core.privci.structures import rounds
from core.releases import (
    Relation,
    Unit,
)
from core.roles import Roles
from core.simulation import simulated_vault
from tests.core.privci.grants import (
    ROLES,
    Codes,
    chain_codes,
    schema_of,
    simulated,
)
from tests.core.privci.test_constraint import breaks, random_constraints


@pytest.fixture
def codes() -> Codes:
    return chain_codes(np.random.default_rng(4), ["s", "x", "o", "a", "y", "z"])


# -- on the simulated grant ------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["privci", "privci-exact", "prefair"])
def test_separation_holds_for_random_roles_seeds_and_budgets(structure: str) -> None:
    for seed in range(70):
        rng = np.random.default_rng(seed)
        names = [f"c{i}" for i in range(int(rng.integers(1, 8)))]
        codes = chain_codes(rng, names, rows=200)
        roles = Roles(further=random_constraints(rng, names, int(rng.integers(1, 4))))
        rho = Fraction(int(10 ** rng.uniform(0, 4)), 1000)
        release = simulated(codes, roles, rho, seed, structure=structure)
        graph = nx.Graph(release.edges)
        graph.add_nodes_from(names)
        assert nx.is_forest(graph)
        assert not any(breaks(graph, rule) for rule in roles.constraints)
        assert release.provenance.debited <= rho
        if len(release.edges) == len(names) - 1 and len(names) > 1:
            assert release.provenance.forfeited <= rho / 1000


@pytest.mark.parametrize(
    "names",
    [
        ["index", "level_0", "count", "0", "weight"],
        ["a b", "A b", "a_b", "a.b", 'a"b'],
    ],
)
def test_awkward_names_in_every_order(names: list[str]) -> None:
    rng = np.random.default_rng(0)
    columns = [np.repeat(np.arange(5), 60), np.repeat(np.arange(5), 60)]
    columns += [rng.integers(0, 2, 300) for _ in range(3)]
    codes = dict(zip(names, columns, strict=True))
    copies = tuple(sorted(names[:2]))
    for seed, order in enumerate(itertools.islice(itertools.permutations(names), 0, 120, 6)):
        release = simulated({name: codes[name] for name in order}, Roles(), Fraction(1), seed)
        assert copies in release.edges
        assert release.schema.names == order


def test_many_columns_few_rows_find_most_pairs_at_a_large_budget() -> None:
    rng = np.random.default_rng(1)
    codes: Codes = {}
    for i in range(40):
        first = rng.integers(0, 2, 180)
        codes[f"p{i:02}a"] = first
        codes[f"p{i:02}b"] = np.where(rng.random(180) < 0.9, first, 1 - first)
    release = simulated(codes, Roles(), Fraction(10))
    found = {(f"p{i:02}a", f"p{i:02}b") for i in range(40)} & set(release.edges)
    assert len(found) >= 30
    assert release.one_way[0].sigma == pytest.approx(3.46, abs=0.01)
    noisy = simulated(codes, Roles(), Fraction(1, 10))
    assert noisy.one_way[0].sigma == pytest.approx(34.6, abs=0.1)


def test_noise_scales_are_those_of_the_method() -> None:
    codes = chain_codes(np.random.default_rng(0), "abcdefg")
    for relation, factor in ((Relation.ADD_REMOVE, 1), (Relation.REPLACE_ONE, 2)):
        schema = schema_of(codes)
        table = CodedTable(schema, codes, {}, 2000)
        grant = simulated_vault(table, seed=0, relation=relation).grant(Fraction(3, 10), "t", "id")
        assert grant is not None
        release = release_tree(grant, schema, Roles(), structure="privci-exact")
        assert release.one_way[0].sigma == pytest.approx((factor * 7 / 0.2) ** 0.5, rel=1e-3)
        assert release.two_way[0].sigma == pytest.approx((factor * 6 / 0.2) ** 0.5, rel=1e-3)
        assert release.scores is not None
        assert release.scores.sigma == pytest.approx(factor * (21 / 0.2) ** 0.5, rel=1e-3)


@pytest.mark.parametrize("structure", ["privci", "privci-exact"])
def test_real_noise_debits_what_its_own_maps_say(codes: Codes, structure: str) -> None:
    schema, rho = schema_of(codes), Fraction(1, 3)
    population = Population(name="people", relation=Relation.ADD_REMOVE, unit=Unit(), cap=rho)
    ledger = Ledger("sqlite://")
    ledger.create_population(population)
    source = InMemorySource(CodedTable(schema, codes, {}, 2000))
    grant = Vault(source, population, ledger).grant(rho, "tree", "id")
    assert grant is not None
    where = release_tree(grant, schema, ROLES, structure=structure).provenance
    assert where.noise.startswith("OpenDP")
    assert where.rho == rho
    assert Fraction(999, 1000) * rho <= where.debited <= rho


@pytest.fixture(scope="module")
def hiring() -> CodedTable:
    """The demo's coded rows."""
    raw = read_table(demo.csv_bytes("hiring"), name="demo.csv")
    return encode(raw, demo.schema("hiring"))


@pytest.mark.parametrize("block", range(5))
def test_separation_holds_on_the_demo_for_random_roles(hiring: CodedTable, block: int) -> None:
    """Two hundred role sets with one or two constraints, seeds, structures and budgets."""
    names = list(hiring.schema.names)
    for seed in range(40 * block, 40 * block + 40):
        rng = np.random.default_rng(seed)
        roles = Roles(further=random_constraints(rng, names, 1 + seed % 2))
        rho = Fraction(int(10 ** rng.uniform(0, 4)), 1000)
        grant = simulated_vault(hiring, seed=seed).grant(rho, "tree", "id")
        assert grant is not None
        structure = ("privci", "privci-exact", "prefair")[seed % 3]
        release = release_tree(grant, hiring.schema, roles, structure=structure)
        graph = nx.Graph(release.edges)
        graph.add_nodes_from(names)
        assert nx.is_forest(graph)
        assert not any(breaks(graph, rule) for rule in roles.constraints)
        assert len(release.edges) <= rounds(structure, names, roles.constraints)
        assert release.provenance.debited <= rho
        if len(release.edges) == rounds(structure, names, roles.constraints) > 0:
            assert release.provenance.forfeited <= rho / 1000
