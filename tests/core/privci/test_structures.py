"""Greedy and exact forests against enumeration of every forest."""

from __future__ import annotations

import itertools
from functools import cache

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.errors import EstimationError, PlanError
from core.privci import exact_structure
from core.privci.structures import STRUCTURES, exact_forest, greedy_forest, growth, rounds
from core.roles import Constraint
from tests.core.privci.test_constraint import FAIR, breaks, random_constraints

TRAP = {
    ("s", "x"): 10.0,
    ("o", "x"): 9.9,
    ("a", "x"): 9.0,
    ("a", "s"): 8.0,
    ("a", "o"): 0.0,
    ("o", "s"): 0.0,
}

# -- the oracle: every forest on up to seven nodes -----------------------------------------------


@cache
def all_forests(size: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Edge sets (forests, pairs) and adjacency (forests, size, size) of every labelled forest."""
    pairs = list(itertools.combinations(range(size), 2))
    found: list[list[int]] = []

    def grow(first: int, chosen: list[int], component: list[int]) -> None:
        found.append(chosen)
        for index in range(first, len(pairs)):
            u, v = component[pairs[index][0]], component[pairs[index][1]]
            if u != v:
                grow(index + 1, [*chosen, index], [u if c == v else c for c in component])

    grow(0, [], list(range(size)))
    chosen = np.zeros((len(found), max(len(pairs), 1)), dtype=np.bool_)
    adjacency = np.zeros((len(found), size, size), dtype=np.bool_)
    for row, edges in enumerate(found):
        for index in edges:
            u, v = pairs[index]
            chosen[row, index] = adjacency[row, u, v] = adjacency[row, v, u] = True
    return chosen[:, : len(pairs)], adjacency


def test_the_oracle_knows_every_forest() -> None:
    # OEIS A001858: labelled forests on n nodes.
    counts = [len(all_forests(size)[0]) for size in range(1, 8)]
    assert counts == [1, 2, 7, 38, 291, 2932, 36961]


def best_by_enumeration(
    names: list[str], scores: dict[tuple[str, str], float], rules: tuple[Constraint, ...]
) -> tuple[int, float]:
    """Most edges, then the largest total score, over all forests that keep every rule."""
    chosen, adjacency = all_forests(len(names))
    pairs = list(itertools.combinations(names, 2))
    missing = np.array([pair not in scores for pair in pairs], dtype=np.bool_)
    valid = ~(chosen & missing).any(axis=1)
    for rule in rules:
        outside = np.array([name not in rule.admissible for name in names])
        reach = adjacency & outside[:, None] & outside[None, :]
        reach = reach | np.eye(len(names), dtype=np.bool_)
        for _ in range(3):  # paths of up to eight edges
            reach = np.matmul(reach, reach)
        protected = np.array([name in rule.protected for name in names])
        outcome = np.array([name in rule.outcome for name in names])
        valid &= ~reach[:, protected][:, :, outcome].any(axis=(1, 2))
    totals = chosen[valid] @ np.array([scores.get(pair, 0.0) for pair in pairs])
    edges = chosen[valid].sum(axis=1)
    return int(edges.max()), float(totals[edges == edges.max()].max())


def is_forest_within(
    edges: tuple[tuple[str, str], ...], names: list[str], rules: tuple[Constraint, ...]
) -> bool:
    graph = nx.Graph(edges)
    graph.add_nodes_from(names)
    return nx.is_forest(graph) and not any(breaks(graph, rule) for rule in rules)


def random_scores(rng: np.random.Generator, names: list[str]) -> dict[tuple[str, str], float]:
    """Plain, negative, tied or sparse scores."""
    pairs = list(itertools.combinations(names, 2))
    kind = int(rng.integers(4))
    values = {
        0: rng.gamma(0.7, size=len(pairs)),
        1: rng.normal(size=len(pairs)),
        2: rng.integers(-1, 3, size=len(pairs)).astype(float),
        3: rng.gamma(0.7, size=len(pairs)),
    }[kind]
    keep = rng.random(len(pairs)) < (0.7 if kind == 3 else 1.1)
    return {
        pair: float(value) for pair, value, kept in zip(pairs, values, keep, strict=True) if kept
    }


@pytest.mark.parametrize("seed", range(560))
def test_exact_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 7 if seed % 14 == 0 else int(rng.integers(1, 7))
    names = [f"c{i}" for i in range(size)]
    rules = random_constraints(rng, names, int(rng.integers(0, 4)))
    scores = random_scores(rng, names)
    forest = exact_forest(scores, list(rng.permutation(names)), rules)
    edges, score = best_by_enumeration(names, scores, rules)
    assert is_forest_within(forest.edges, names, rules)
    if forest.method == "exact":
        assert (len(forest.edges), forest.score) == (edges, pytest.approx(score, abs=1e-9))
    else:
        # Only several constraints can have more than 14 free labels on seven columns.
        assert len(rules) > 2
        assert len(forest.edges) <= edges


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.parametrize("structure", ["mst", "privci", "prefair"])
def test_greedy_equals_kruskal_from_scratch(seed: int, structure: str) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(int(rng.integers(1, 9)))]
    rules = random_constraints(rng, names, int(rng.integers(0, 3)))
    scores = random_scores(rng, names)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    for pair in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        tried = graph.copy()
        tried.add_edge(*pair)
        touches = any(
            rule.protected
            and rule.outcome
            and {u, v} & rule.outcome
            and not {u, v} & rule.admissible
            for rule in rules
            for u, v in [pair]
        )
        if structure != "mst" and any(breaks(tried, rule) for rule in rules):
            continue
        if (structure == "prefair" and touches) or not nx.is_forest(tried):
            continue
        graph = tried
    forest = greedy_forest(scores, names, rules, structure=structure)
    assert {frozenset(edge) for edge in forest.edges} == {frozenset(edge) for edge in graph.edges}
    assert len(forest.edges) <= rounds(structure, names, rules)


# -- the page's own claims ---------------------------------------------------------------------


def test_trap_greedy_19_exact_26_9() -> None:
    assert greedy_forest(TRAP, "soxa", [FAIR]).score == pytest.approx(19.0)
    best = exact_forest(TRAP, "soxa", [FAIR])
    assert (best.score, best.method) == (pytest.approx(26.9), "exact")
    assert best.edges == (("o", "x"), ("a", "x"), ("a", "s"))


@given(st.integers(0, 10**6), st.integers(3, 9), st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None)
def test_permuting_columns_changes_nothing(seed: int, size: int, random) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(size)]
    rules = random_constraints(rng, names, 1)
    scores = random_scores(rng, names)
    shuffled = list(names)
    random.shuffle(shuffled)
    items = list(scores.items())
    random.shuffle(items)
    assert exact_forest(scores, names, rules) == exact_forest(dict(items), shuffled, rules)
    for structure in ("mst", "privci", "prefair"):
        assert greedy_forest(scores, names, rules, structure=structure) == greedy_forest(
            dict(items), shuffled, rules, structure=structure
        )
        assert rounds(structure, names, rules) == rounds(structure, shuffled, rules)


@pytest.mark.parametrize("seed", range(60))
def test_exact_is_never_below_greedy_or_prefair_on_noise_free_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i:02}" for i in range(int(rng.integers(6, 13)))]
    order = list(rng.permutation(names))
    rule = Constraint(
        frozenset(order[:2]), frozenset(order[2:4]), frozenset(order[4 : 4 + seed % 3])
    )
    scores = {pair: float(rng.gamma(0.6)) for pair in itertools.combinations(names, 2)}
    best = exact_forest(scores, names, [rule])
    greedy = greedy_forest(scores, names, [rule])
    prefair = greedy_forest(scores, names, [rule], structure="prefair")
    assert best.method == "exact"
    assert len(best.edges) == len(greedy.edges) == rounds("privci", names, [rule])
    assert best.score >= greedy.score - 1e-9
    assert best.score >= prefair.score - 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_prefair_is_privci_with_every_inadmissible_column_protected(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(8)]
    order = list(rng.permutation(names))
    protected, outcome = frozenset(order[:2]), frozenset(order[2:3])
    admissible, rest = frozenset(order[3 : 3 + seed % 4]), frozenset(order[3 + seed % 4 :])
    scores = random_scores(rng, names)
    prefair = greedy_forest(
        scores, names, [Constraint(protected, outcome, admissible)], structure="prefair"
    )
    assert prefair == greedy_forest(
        scores, names, [Constraint(protected | rest, outcome, admissible)]
    )


def test_local_search_is_named_so_and_beats_its_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    reached = better = 0
    for case in range(60):
        names = [f"c{i:02}" for i in range(int(rng.integers(6, 11)))]
        order = list(rng.permutation(names))
        rules = [
            Constraint(frozenset(order[:1]), frozenset(order[1:2]), frozenset(order[2:3]), "one"),
            Constraint(frozenset(order[3:4]), frozenset(order[1:2]), frozenset(order[4:5]), "two"),
        ][: 1 + case % 2]
        scores = {pair: float(rng.gamma(0.5)) for pair in itertools.combinations(names, 2)}
        monkeypatch.setattr(exact_structure, "MAXIMUM_BITS", 20)
        best = exact_forest(scores, names, rules)
        monkeypatch.setattr(exact_structure, "MAXIMUM_BITS", 0)
        climbed = exact_forest(scores, names, rules)
        greedy = greedy_forest(scores, names, rules)
        prefair = greedy_forest(scores, names, rules, structure="prefair")
        assert (best.method, climbed.method) == ("exact", "heuristic")
        assert is_forest_within(climbed.edges, names, tuple(rules))
        rank = (len(climbed.edges), climbed.score + 1e-9)
        assert rank >= (len(greedy.edges), greedy.score)
        assert rank >= (len(prefair.edges), prefair.score)
        assert (len(best.edges), best.score + 1e-9) >= (len(climbed.edges), climbed.score)
        reached += climbed.score >= best.score - 1e-9
        better += climbed.score > greedy.score + 1e-9
    assert reached >= 54
    assert better >= 1


def test_more_than_14_neutral_columns_are_searched_and_said_to_be() -> None:
    rng = np.random.default_rng(3)
    names = ["s", "o", "a", *(f"x{i:02}" for i in range(15))]
    scores = {pair: float(rng.gamma(1)) for pair in itertools.combinations(sorted(names), 2)}
    forest = exact_forest(scores, names, [FAIR])
    assert forest.method == "heuristic"
    assert len(forest.edges) == len(names) - 1
    assert (
        exact_forest({p: s for p, s in scores.items() if "x14" not in p}, names[:-1], [FAIR]).method
        == "exact"
    )


# -- rounds and forests --------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["privci", "privci-exact", "prefair"])
def test_without_admissible_columns_two_parts_remain(structure: str) -> None:
    names = ["s", "t", "o", "x", "y"]
    rule = Constraint(frozenset({"s", "t"}), frozenset({"o"}))
    scores = dict.fromkeys(itertools.combinations(sorted(names), 2), 1.0)
    forest = (
        exact_forest(scores, names, [rule])
        if structure == "privci-exact"
        else greedy_forest(scores, names, [rule], structure=structure)
    )
    assert rounds(structure, names, [rule]) == 3 == len(forest.edges)
    assert is_forest_within(forest.edges, names, (rule,))


@pytest.mark.parametrize("seed", range(40))
def test_one_constraint_meets_its_number_of_rounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{i}" for i in range(int(rng.integers(1, 8)))]
    rules = random_constraints(rng, names, 1)
    scores = {pair: float(rng.normal()) for pair in itertools.combinations(names, 2)}
    for structure in ("mst", "privci", "prefair"):
        forest = greedy_forest(scores, names, rules, structure=structure)
        assert len(forest.edges) == rounds(structure, names, rules)
    assert len(exact_forest(scores, names, rules).edges) == rounds("privci-exact", names, rules)


def test_two_clashing_constraints_end_in_a_forest() -> None:
    # s may reach neither o (but through a) nor a (but through o): s stays alone.
    rules = (
        Constraint(frozenset("s"), frozenset("o"), frozenset("a"), "one"),
        Constraint(frozenset("s"), frozenset("a"), frozenset("o"), "two"),
    )
    scores = {("a", "o"): 1.0, ("a", "s"): 3.0, ("o", "s"): 2.0}
    assert rounds("privci", "soa", rules) == 1
    for forest in (greedy_forest(scores, "soa", rules), exact_forest(scores, "soa", rules)):
        assert forest.edges == (("a", "o"),)


def test_an_earlier_forest_can_surprise_and_exact_avoids_it() -> None:
    # Joining x to s first bars o from its only other partner: rounds is an upper bound.
    rules = (
        Constraint(frozenset("s"), frozenset("o"), frozenset("a"), "one"),
        Constraint(frozenset("a"), frozenset("o"), frozenset("x"), "two"),
    )
    scores = {("s", "x"): 9.0, ("a", "x"): 1.0, ("o", "x"): 1.0, ("a", "s"): 1.0}
    greedy, best = greedy_forest(scores, "soax", rules), exact_forest(scores, "soax", rules)
    assert len(greedy.edges) == 2
    assert len(best.edges) == 3 == rounds("privci", "soax", rules)


def test_negative_scores_do_not_shorten_a_tree() -> None:
    scores = dict.fromkeys(itertools.combinations("aosx", 2), -1.0)
    assert len(greedy_forest(scores, "soxa", [FAIR]).edges) == 3
    assert exact_forest(scores, "soxa", [FAIR]).score == pytest.approx(-3.0)


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_one_and_two_columns(names: list[str]) -> None:
    scores = {("a", "b"): 1.0} if len(names) == 2 else {}
    assert len(greedy_forest(scores, names, []).edges) == len(names) - 1
    assert len(exact_forest(scores, names, []).edges) == len(names) - 1
    rule = Constraint(frozenset({"a"}), frozenset({"b"}))
    if len(names) == 2:
        assert rounds("privci", names, [rule]) == 0
        assert exact_forest(scores, names, [rule]).edges == ()


def test_bad_input_is_refused() -> None:
    with pytest.raises(PlanError, match="structure 'tree' is unknown; choose mst"):
        growth("tree", "ab", [])
    with pytest.raises(EstimationError, match="not a finite number"):
        greedy_forest({("a", "b"): float("nan")}, "ab", [])
    with pytest.raises(ValueError, match="sorted order"):
        exact_forest({("b", "a"): 1.0}, "ab", [])
    assert set(STRUCTURES) == {"mst", "privci", "privci-exact", "prefair"}
