"""The union-find filter against graphs searched from scratch."""

from __future__ import annotations

import itertools
import time

import networkx as nx
import numpy as np
import pytest

from core.errors import RolesError
from core.privci.constraint import ConstraintFilter
from core.roles import Constraint

FAIR = Constraint(frozenset({"s"}), frozenset({"o"}), frozenset({"a"}))


def random_constraints(
    rng: np.random.Generator, names: list[str], count: int
) -> tuple[Constraint, ...]:
    """Constraints with random S, O and A; any of them may be empty."""
    rules = []
    for k in range(count):
        parts = rng.integers(0, 4, size=len(names))
        sets = [{n for n, p in zip(names, parts, strict=True) if p == side} for side in (0, 1, 2)]
        rules.append(Constraint(*map(frozenset, sets), name=f"rule {k}"))
    return tuple(rules)


def breaks(graph: nx.Graph, rule: Constraint) -> bool:
    """Whether some path outside A connects an S with an O."""
    rest = graph.subgraph(set(graph) - rule.admissible)
    return any(
        component & rule.protected and component & rule.outcome
        for component in nx.connected_components(rest)
    )


def naive_forbidden(graph: nx.Graph, rules: tuple[Constraint, ...]) -> set[tuple[str, str]]:
    """Pairs whose edge would break a rule, found by trying."""
    result = set()
    for pair in itertools.combinations(sorted(graph), 2):
        tried = graph.copy()
        tried.add_edge(*pair)
        if any(breaks(tried, rule) for rule in rules):
            result.add(pair)
    return result


@pytest.mark.parametrize("seed", range(520))
def test_filter_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(int(rng.integers(1, 8)))]
    rules = random_constraints(rng, names, int(rng.integers(0, 4)))
    rows = ConstraintFilter(names, rules)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    forbidden = naive_forbidden(graph, rules)
    while True:
        connected = {pair for pair in itertools.combinations(names, 2) if nx.has_path(graph, *pair)}
        expected = set(itertools.combinations(names, 2)) - connected - forbidden
        assert set(rows.candidates()) == expected
        assert list(rows.candidates()) == sorted(expected)
        assert {pair.pair for pair in rows.forbidden()} == forbidden - connected
        for pair in itertools.combinations(names, 2):
            assert rows.allowed(*pair) == rows.allowed(*reversed(pair)) == (pair in expected)
            assert (rows.why(*pair) is not None) == (pair in forbidden)
        assert rows.components == tuple(
            sorted(tuple(sorted(part)) for part in nx.connected_components(graph))
        )
        assert rows.is_separated()
        if not expected:
            break
        chosen = sorted(expected)[int(rng.integers(len(expected)))]
        new = rows.join(*chosen)
        graph.add_edge(*chosen)
        before, forbidden = forbidden, naive_forbidden(graph, rules)
        assert before <= forbidden, "an infeasible pair stays infeasible"
        assert {pair.pair for pair in new} == {
            pair for pair in forbidden - before if not nx.has_path(graph, *pair)
        }


def test_reasons_name_the_path_that_they_speak_of() -> None:
    names = ["sex", "zip", "marital", "income", "bonus", "age"]
    rule = Constraint(
        frozenset({"sex", "zip"}), frozenset({"income"}), frozenset({"age"}), proxies={"zip"}
    )
    rows = ConstraintFilter(names, [rule])
    first = {pair.pair: pair.reason for pair in rows.forbidden()}
    assert first["income", "sex"] == "'sex' is protected, and 'income' is an outcome"
    assert first["income", "zip"] == "'zip' is a declared proxy, and 'income' is an outcome"
    rows.join("marital", "sex")
    why = rows.why("income", "marital")
    assert why is not None
    assert why.reason == (
        "'marital' stands on the protected side through 'sex' — 'marital', "
        "and 'income' is an outcome"
    )
    rows.join("bonus", "income")
    why = rows.why("marital", "bonus")
    assert why is not None
    assert why.reason == (
        "'marital' stands on the protected side through 'sex' — 'marital', "
        "and 'bonus' stands on the outcome side through 'income' — 'bonus'"
    )
    assert rows.why("age", "income") is None


@pytest.mark.parametrize("seed", range(40))
def test_every_chain_in_a_reason_is_a_path_to_the_right_side(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(9)]
    rules = random_constraints(rng, names, 2)
    rows = ConstraintFilter(names, rules)
    edges: set[frozenset[str]] = set()
    while candidates := rows.candidates():
        chosen = candidates[int(rng.integers(len(candidates)))]
        rows.join(*chosen)
        edges.add(frozenset(chosen))
        for pair in itertools.combinations(names, 2):
            why = rows.why(*pair)
            if why is None:
                continue
            (rule,) = [rule for rule in rules if rule.name == why.constraint]
            for part, side in zip(
                why.reason.split(", and "), (rule.protected, rule.outcome), strict=True
            ):
                if " through " not in part:
                    assert part.split("'")[1] in side
                    continue
                chain = part.split(" through ")[1].replace("'", "").split(" — ")
                assert chain[0] in side
                assert chain[-1] == part.split("'")[1]
                assert not set(chain) & rule.admissible
                assert all(frozenset(edge) in edges for edge in itertools.pairwise(chain))


def test_admissible_columns_join_both_sides() -> None:
    rows = ConstraintFilter("soa", [FAIR])
    assert rows.join("s", "a") == ()
    assert rows.join("o", "a") == ()
    assert rows.components == (("a", "o", "s"),)
    assert rows.is_separated()


def test_prefair_links_outcomes_to_admissible_columns_only() -> None:
    rule = Constraint(frozenset({"s"}), frozenset({"o", "p"}), frozenset({"a"}))
    rows = ConstraintFilter(["s", "o", "p", "a", "x"], [rule], outcomes_touch_admissible_only=True)
    assert set(rows.candidates()) == {
        ("a", "o"), ("a", "p"), ("a", "s"), ("a", "x"), ("s", "x"),
    }  # fmt: skip
    why = rows.why("o", "x")
    assert why is not None
    assert why.reason == (
        "'o' is an outcome, and PreFair links outcomes to admissible columns only, which 'x' is not"
    )
    why = rows.why("o", "p")
    assert why is not None
    assert "outcomes to admissible columns only" in why.reason


def test_joining_a_forbidden_pair_or_a_cycle_is_a_fault() -> None:
    rows = ConstraintFilter("soa", [FAIR])
    with pytest.raises(ValueError, match="must not be joined"):
        rows.join("s", "o")
    rows.join("a", "s")
    with pytest.raises(ValueError, match="must not be joined"):
        rows.join("s", "a")
    with pytest.raises(ValueError, match="must not be joined"):
        rows.join("s", "s")


def test_unknown_and_repeated_columns_are_refused() -> None:
    with pytest.raises(RolesError, match="names 'o', which is not modelled"):
        ConstraintFilter("sa", [FAIR])
    with pytest.raises(RolesError, match="twice"):
        ConstraintFilter(["a", "a"], [])


def test_a_hundred_columns_take_no_time() -> None:
    rng = np.random.default_rng(0)
    names = [f"c{i:03}" for i in range(100)]
    rule = Constraint(frozenset(names[:5]), frozenset(names[5:10]), frozenset(names[10:20]))
    start = time.process_time()
    rows = ConstraintFilter(names, [rule, Constraint(frozenset(names[:2]), frozenset(names[9:10]))])
    listed = len(rows.forbidden())
    while candidates := rows.candidates():
        listed += len(rows.join(*candidates[int(rng.integers(len(candidates)))]))
    assert time.process_time() - start < 2.0
    assert listed > 50
    assert len(rows.components) == 2  # the second constraint has no admissible column
