"""The picture's geometry: the wall separates, gates are passed, nothing wobbles."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.privci.constraint import ConstraintFilter
from core.roles import Roles
from pages.shared.lanes import WALL, Lane, lay_out, rule_of, sides

LETTERS = tuple("abcdefghij")


@st.composite
def legal_trees(draw):
    """Roles and a legal forest grown in random order."""
    names = LETTERS[: draw(st.integers(3, 10))]
    roles = Roles({name: draw(st.sampled_from("SOAII")) for name in names})
    rows = ConstraintFilter(names, roles.constraints)
    edges = []
    while candidates := rows.candidates():
        edge = draw(st.sampled_from(candidates))
        rows.join(*edge)
        edges.append(edge)
        if draw(st.integers(0, 9)) == 0:
            break
    return names, roles, tuple(edges)


@given(legal_trees())
@settings(max_examples=60, deadline=None)
def test_sides_agree_with_components_of_the_graph_without_gates(case) -> None:
    names, roles, edges = case
    rule = rule_of(roles)
    lanes = sides(names, rule, edges)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edges)
    graph.remove_nodes_from(rule.admissible)
    for component in nx.connected_components(graph):
        has_s, has_o = bool(component & rule.protected), bool(component & rule.outcome)
        found = {lanes[name] for name in component}
        if has_s and not has_o:
            assert found == {Lane.PROTECTED}
        elif has_o and not has_s:
            assert found == {Lane.OUTCOME}
        elif not has_s:
            assert found <= {Lane.NICHE, Lane.OPEN}
            assert len(found) == 1


@given(legal_trees())
@settings(max_examples=60, deadline=None)
def test_every_legal_path_across_passes_a_gate_and_no_legal_edge_jumps(case) -> None:
    names, roles, edges = case
    if not roles.constraints:
        return
    for step in range(len(edges) + 1):
        layout = lay_out(names, roles, edges[:step], settled=edges)
        assert not any(link.illegal for link in layout.links)
        for spot in layout.spots:
            if spot.lane is Lane.PROTECTED:
                assert spot.x < -WALL
            if spot.lane is Lane.OUTCOME:
                assert spot.x > WALL
            if spot.lane in {Lane.GATE, Lane.NICHE}:
                assert abs(spot.x) < WALL


@given(legal_trees())
@settings(max_examples=60, deadline=None)
def test_a_column_moves_only_when_its_lane_changes(case) -> None:
    names, roles, edges = case
    before = lay_out(names, roles, (), settled=edges)
    for step in range(1, len(edges)):
        after = lay_out(names, roles, edges[:step], settled=edges)
        for name in names:
            old, new = before.spot(name), after.spot(name)
            if old.lane is new.lane:
                assert (old.x, old.y) == (new.x, new.y)
            else:
                assert old.lane in {Lane.OPEN, Lane.NICHE}
        before = after


@given(legal_trees())
@settings(max_examples=60, deadline=None)
def test_no_two_columns_share_a_place_and_links_end_at_their_columns(case) -> None:
    names, roles, edges = case
    for step in (0, len(edges) // 2, len(edges)):
        layout = lay_out(names, roles, edges[:step], settled=edges)
        places = {(spot.x, spot.y) for spot in layout.spots}
        assert len(places) == len(names)
        for link in layout.links:
            ends = {layout.spot(name) for name in link.edge}
            assert {link.path[0], link.path[-1]} == {(spot.x, spot.y) for spot in ends}


def test_an_unconstrained_edge_jumps_the_wall() -> None:
    roles = Roles({"s": "S", "o": "O", "a": "A", "i": "I"})
    layout = lay_out(("s", "o", "a", "i"), roles, (("i", "o"), ("i", "s"), ("a", "o")))
    illegal = [link.edge for link in layout.links if link.illegal]
    assert illegal in ([("i", "o")], [("i", "s")])


def test_sixty_columns_are_laid_out_without_overlap() -> None:
    names = tuple(f"column_{i:02d}" for i in range(60))
    roles = Roles({names[0]: "S", names[1]: "O", names[2]: "A", names[3]: "A"})
    edges = tuple((names[2 if i % 2 else 0], names[i]) for i in range(4, 60))
    layout = lay_out(names, roles, edges)
    assert len({(spot.x, spot.y) for spot in layout.spots}) == 60


@pytest.mark.parametrize("roles", [Roles(), Roles({"a": "S"}), Roles({"a": "A"})])
def test_incomplete_roles_are_drawn_too(roles: Roles) -> None:
    layout = lay_out(("a", "b", "c"), roles, (("a", "b"), ("b", "c")))
    assert {spot.name for spot in layout.spots} == {"a", "b", "c"}
