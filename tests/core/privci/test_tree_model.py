from __future__ import annotations

import dataclasses

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import EstimationError
from core.privci.tree_model import root_to_leaf
from tests.core.privci.models import brute_joint, random_edges, random_model


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_order_visits_every_node_once_and_parents_first(seed, count):
    generator = np.random.default_rng(seed)
    edges = random_edges(generator, count)
    visits = root_to_leaf(count, edges)
    assert sorted(visit.node for visit in visits) == list(range(count))
    seen = set()
    for visit in visits:
        if visit.parent is not None:
            assert visit.parent in seen
            assert set(edges[visit.edge]) == {visit.node, visit.parent}
        seen.add(visit.node)
    graph = networkx.Graph(edges)
    graph.add_nodes_from(range(count))
    roots = sum(visit.parent is None for visit in visits)
    assert roots == networkx.number_connected_components(graph)
    assert root_to_leaf(count, edges[::-1])[0].node == 0


@pytest.mark.parametrize("edges", [((0, 1), (1, 2), (0, 2)), ((0, 1), (0, 1))])
def test_cycles_are_refused(edges):
    with pytest.raises(EstimationError, match="cycle"):
        root_to_leaf(3, edges)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_projection_equals_the_brute_force_joint(seed):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 7))
    sizes = [int(size) for size in generator.integers(1, 5, count)]
    model = random_model(generator, sizes, random_edges(generator, count))
    joint = brute_joint(model)
    assert joint.sum() == pytest.approx(1)
    wanted = generator.permutation(count)[: generator.integers(1, count + 1)]
    rest = tuple(i for i in range(count) if i not in wanted)
    # axes of the brute table stand in index order; bring them into the asked order
    expected = joint.sum(axis=rest).transpose(np.argsort(np.argsort(wanted)))
    found = model.project([model.columns[i] for i in wanted])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_projection_on_a_long_chain_needs_only_small_tables():
    generator = np.random.default_rng(1)
    count = 300
    model = random_model(generator, [4] * count, [(i, i + 1) for i in range(count - 1)])
    table = model.project(("c000", "c299"), cap=64)
    np.testing.assert_allclose(table.sum(axis=1), model.node[0], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=0), model.node[299], atol=1e-12)


def test_projection_refuses_too_large_tables_and_wrong_names():
    model = random_model(np.random.default_rng(0), [10, 10, 10], [(0, 1), (1, 2)])
    with pytest.raises(EstimationError, match="cap"):
        model.project(model.columns, cap=999)
    assert model.project(model.columns, cap=1000).shape == (10, 10, 10)
    with pytest.raises(EstimationError, match="no column 'x'"):
        model.project(("x",))
    with pytest.raises(EstimationError, match="once"):
        model.project(("c000", "c000"))


def test_impossible_parents_get_a_uniform_conditional():
    model = random_model(np.random.default_rng(0), [2, 3], [(0, 1)])
    table = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]])
    model = dataclasses.replace(
        model, node=(np.array([1.0, 0.0]), np.array([0.2, 0.3, 0.5])), edge=(table,)
    )
    np.testing.assert_allclose(model.conditional(model.visits[1])[1], 1 / 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"total": 0.0}, "positive"),
        ({"total": float("nan")}, "positive"),
        ({"columns": ("b", "a")}, "sorted"),
        ({"node": (np.array([0.5, 0.5]), np.array([0.5, 0.6]))}, "sum to one"),
        ({"node": (np.array([0.5, 0.5]), np.array([1.5, -0.5]))}, "not negative"),
        ({"node": (np.array([0.5, 0.5]), np.array([np.nan, 1]))}, "finite"),
        ({"node": (np.array([0.5, 0.5]), np.ones(1))}, "shape"),
        ({"edge": (np.array([[0.4, 0.2], [0.2, 0.2]]),)}, "disagree"),
        ({"edges": ((1, 0),)}, "lower index"),
        ({"edges": ()}, "one table an edge"),
        ({"sizes": (2,)}, "one size"),
    ],
)
def test_malformed_models_are_refused(change, words):
    model = random_model(np.random.default_rng(0), [2, 2], [(0, 1)], names=("a", "b"))
    half = np.array([0.5, 0.5])
    model = dataclasses.replace(model, node=(half, half), edge=(np.full((2, 2), 0.25),))
    with pytest.raises(EstimationError, match=words):
        dataclasses.replace(model, **change)
