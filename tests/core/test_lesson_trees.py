"""The trees of a lesson: against networkx and repeated simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import lessons
from core.lessons.people import Remembered, _coded, scores
from core.lessons.trees import releases
from core.private.source import InMemorySource
from core.privci.select import release_tree
from core.privci.structures import STRUCTURES
from core.releases import Recoding
from core.simulation import simulated_vault
from tests.core.lesson_stages import NAMES, PLENTY, SURE, stage


@pytest.mark.parametrize("name", NAMES)
def test_the_true_world_keeps_the_rule_by_itself_and_the_biased_one_breaks_it(name):
    about = stage(name)
    true, biased, _ = lessons.worlds(name, PLENTY).shown
    assert true.proof.holds
    assert not biased.proof.holds
    assert lessons.way_around(about, biased.edges) == (about.protected, about.outcome)
    # Without noise the release is the best tree, so more budget cannot change it any more.
    assert lessons.ideal(about, "mst") == biased.edges


@pytest.mark.parametrize("name", NAMES)
def test_the_strongest_tree_is_that_of_networkx(name):
    for biased in (False, True):
        graph = nx.Graph()
        for (one, other), weight in scores(name, biased).items():
            graph.add_edge(one, other, weight=weight)
        expected = {tuple(sorted(edge)) for edge in nx.maximum_spanning_tree(graph).edges}
        assert set(lessons.strongest(stage(name), biased=biased)) == expected


@pytest.mark.parametrize("structure", list(STRUCTURES))
@pytest.mark.parametrize("rho", [lessons.RHOS[0], lessons.RHOS[4]])
def test_a_release_is_what_a_vault_on_the_rows_gives(structure, rho):
    about = stage("hiring")
    for seed, found in zip((0, 11), releases(about, rho, structure, (0, 11)), strict=True):
        vault = simulated_vault(_coded("hiring"), seed=seed)
        grant = vault.grant(rho, "tree", "a tree from rows")
        other = release_tree(grant, vault.schema, about.declared, structure=structure)
        vault.close()
        assert found.edges == other.edges
        for mine, theirs in zip(
            (*found.one_way, *found.two_way), (*other.one_way, *other.two_way), strict=True
        ):
            assert mine.clique == theirs.clique
            assert np.array_equal(mine.values, theirs.values)
        assert found.provenance.simulated
        assert "SIMULATED, NOT PRIVATE" in found.provenance.flags


def test_remembered_tables_are_those_of_the_rows():
    fast, slow = Remembered("lending"), InMemorySource(_coded("lending"))
    maps = {"origin": np.array([0, 1, 1]), "debt_ratio": np.array([0, 0, 1, 2, 2, 2])}
    cliques = [("origin",), ("debt_ratio", "origin"), ("origin", "debt_ratio"), ("age", "decision")]
    for recoding in (None, Recoding(maps)):
        pairs = zip(fast.counts(cliques, recoding), slow.counts(cliques, recoding), strict=True)
        for mine, theirs in pairs:
            assert np.array_equal(mine, theirs)


@pytest.mark.slow
def test_edge_shares_are_those_of_repeated_simulation():
    """A hundred vaults on the rows, with seeds of their own, against the lesson's draws."""
    about, rho, many = stage("hiring"), Fraction(3, 100_000), 100
    found = lessons.settling(about, rho, draws=many)
    counted: Counter[tuple[str, str]] = Counter()
    broken = 0
    for seed in range(50_000, 50_000 + many):
        vault = simulated_vault(_coded("hiring"), seed=seed)
        grant = vault.grant(rho, "tree", "again")
        edges = release_tree(grant, vault.schema, about.declared).edges
        vault.close()
        counted.update(edges)
        broken += not lessons.judged(about, edges).holds
    shares = {one.edge: one.share for one in found.edges}
    unsettled = 0
    for edge in set(shares) | set(counted):
        mine, theirs = shares.get(edge, 0.0), counted[edge] / many
        pooled = (mine + theirs) / 2
        assert abs(mine - theirs) <= SURE * math.sqrt(2 * pooled * (1 - pooled) / many) + 1e-9
        unsettled += 0.1 < pooled < 0.9
    assert unsettled >= 5
    assert broken == found.broken == 0


@pytest.mark.parametrize("name", NAMES)
def test_more_budget_settles_the_tree(name):
    about = stage(name)
    for structure in ("privci", "mst"):
        few, some, much = (
            lessons.settling(about, lessons.RHOS[index], structure) for index in (0, 4, -1)
        )
        assert few.expected < 0.4 < some.expected < much.expected
        assert much.expected > 0.98
        assert few.expected_quality < some.expected_quality <= much.expected_quality + 1e-9
        if structure == "privci":
            assert few.broken == some.broken == much.broken == 0
        else:
            assert much.broken == 1
            assert few.broken > 0.5
        rounds = len(much.ideal)
        assert sum(one.share for one in few.edges) == pytest.approx(rounds)
        assert {one.edge for one in much.edges if one.ideal} == set(much.ideal)
    forbidden = [one for one in lessons.settling(about, PLENTY, "mst").edges if one.forbidden]
    assert (about.protected, about.outcome) in [tuple(sorted(o.edge)) for o in forbidden] or (
        about.outcome,
        about.protected,
    ) in [o.edge for o in forbidden]


def test_the_curve_is_the_settling_at_every_step_of_the_slider():
    about = stage("lending")
    found = lessons.curve(about, draws=2)
    assert [one.rho for one in found] == list(lessons.RHOS)
    assert found[3] is lessons.settling(about, lessons.RHOS[3], draws=2)


@st.composite
def forests(draw):
    """A random forest on the hiring demo's columns."""
    names = stage("hiring").columns
    graph = nx.Graph()
    graph.add_nodes_from(names)
    pairs = list(itertools.combinations(sorted(names), 2))
    for one, other in draw(st.permutations(pairs))[: draw(st.integers(0, 40))]:
        if not nx.has_path(graph, one, other):
            graph.add_edge(one, other)
    return [tuple(sorted(edge)) for edge in graph.edges]


@settings(max_examples=80, deadline=None)
@given(forests(), st.booleans())
def test_ways_around_the_gates_are_those_of_networkx(edges, hidden):
    about = stage("hiring", hidden=hidden)
    graph = nx.Graph(edges)
    graph.add_nodes_from(about.judge.columns)
    free = graph.subgraph(set(graph) - set(about.admissible))
    reached = nx.node_connected_component(free, about.outcome)
    assert lessons.open_ways(about, edges) == reached - {about.outcome}
    clash = reached & about.judge.protected
    assert lessons.judged(about, edges).holds == (not clash)
    path = lessons.way_around(about, edges)
    assert bool(path) == bool(clash)
    if path:
        assert path[0] in about.judge.protected
        assert path[-1] == about.outcome
        assert all(free.has_edge(*step) for step in itertools.pairwise(path))
        assert len(path) == 1 + min(
            nx.shortest_path_length(free, about.outcome, name) for name in clash
        )
    # The outline names the rule's columns only, and breaks the rule exactly where the tree does.
    outline = lessons.outline(about, edges)
    assert {name for edge in outline for name in edge} <= about.judge.columns
    assert bool(lessons.way_around(about, outline)) == bool(clash)
    assert set(edges) & set(itertools.combinations(sorted(about.judge.columns), 2)) <= set(outline)
