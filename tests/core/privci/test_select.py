"""The paid pipeline on an exact stand-in grant."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from core.errors import BudgetError, Cancelled, PlanError, RolesError
from core.private.table import CodedTable
from core.privci.select import HEURISTIC, normalised_split, release_tree
from core.privci.structures import exact_forest, greedy_forest
from core.releases import (
    Relation,
    TreeRelease,
)
from core.roles import Constraint, Role, Roles
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault
from tests.core.privci.grants import (
    ROLES,
    Codes,
    ExactGrant,
    chain_codes,
    schema_of,
    simulated,
)
from tests.core.privci.test_constraint import breaks


@pytest.fixture
def codes() -> Codes:
    return chain_codes(np.random.default_rng(4), ["s", "x", "o", "a", "y", "z"])


def true_scores(codes: Codes) -> dict[tuple[str, str], float]:
    """L1 distance from exact independence, by cross-tabulation."""
    scores = {}
    for one, other in itertools.combinations(sorted(codes), 2):
        joint, _, _ = np.histogram2d(
            codes[one], codes[other], bins=(codes[one].max() + 1, codes[other].max() + 1)
        )
        product = np.outer(joint.sum(1), joint.sum(0)) / joint.sum()
        scores[one, other] = float(np.abs(joint - product).sum())
    return scores


# -- the pipeline --------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["mst", "privci", "prefair", "privci-exact"])
def test_without_noise_the_tree_is_the_one_of_the_true_scores(codes: Codes, structure: str) -> None:
    grant = ExactGrant(codes)
    release = release_tree(grant, schema_of(codes), ROLES, structure=structure)
    scores = true_scores(codes)
    expected = (
        exact_forest(scores, list(codes), ROLES.constraints)
        if structure == "privci-exact"
        else greedy_forest(scores, list(codes), ROLES.constraints, structure=structure)
    )
    assert release.edges == expected.edges
    assert [marginal.clique for marginal in release.one_way] == [(n,) for n in sorted(codes)]
    assert [marginal.clique for marginal in release.two_way] == list(release.edges)
    for marginal in release.two_way:
        assert marginal.values.sum() == 2000
    assert release.total == pytest.approx(2000)
    assert not release.partial
    assert release.provenance.forfeited == 0
    assert (release.scores is not None) == (structure == "privci-exact")
    assert {pair.pair for pair in release.forbidden} >= (
        set() if structure == "mst" else {("o", "s")}
    )
    assert TreeRelease.from_bytes(release.to_bytes()).to_bytes() == release.to_bytes()


def test_budget_is_split_exactly_and_rounds_are_equal(codes: Codes) -> None:
    rho = Fraction(7, 10)
    grant = ExactGrant(codes, rho)
    split = (Fraction(1, 2), Fraction(1, 7), Fraction(5, 14))
    release = release_tree(grant, schema_of(codes), ROLES, split=split)
    assert release.split == split
    kinds = [kind for kind, _, _ in grant.calls]
    assert kinds == ["counts", *["select_pair"] * 5, "counts"]
    assert [cost for _, cost, _ in grant.calls] == [
        rho * split[0], *[rho * split[1] / 5] * 5, rho * split[2],
    ]  # fmt: skip
    assert grant.remaining == 0


def test_the_reference_is_frozen_and_made_of_released_values(codes: Codes) -> None:
    codes["x"] = np.where(codes["x"] > 0, 1, 0)
    codes["x"][:6] = [2, 3, 4, 5, 2, 3]  # four rare cells
    grant = ExactGrant(codes, sigma=1.0)
    release = release_tree(grant, schema_of(codes), ROLES)
    references = [detail[1] for kind, _, detail in grant.calls if kind == "select_pair"]
    assert all(reference is references[0] for reference in references)
    assert release.recoding.members("x", 6) == ((0,), (1,), (2, 3, 4, 5))
    shares = references[0].shares
    assert shares["x"].tolist() == pytest.approx(
        [np.mean(codes["x"] == 0), np.mean(codes["x"] == 1), 6 / 2000]
    )
    assert all(table.sum() == pytest.approx(1.0) for table in shares.values())
    assert references[0].recoding is release.recoding
    touching = [marginal for marginal in release.two_way if "x" in marginal.clique]
    assert touching
    assert all(m.values.shape[m.clique.index("x")] == 3 for m in touching)


def test_every_step_is_written_down(codes: Codes) -> None:
    release = release_tree(ExactGrant(codes), schema_of(codes), ROLES)
    graph = nx.Graph()
    graph.add_nodes_from(codes)
    seen = {pair.pair for pair in release.forbidden}
    for index, step in enumerate(release.steps):
        assert step.index == index
        open_pairs = [
            pair
            for pair in itertools.combinations(sorted(codes), 2)
            if not nx.has_path(graph, *pair) and not breaks_with(graph, pair)
        ]
        assert step.candidates == len(open_pairs)
        assert step.chosen in open_pairs
        graph.add_edge(*step.chosen)
        assert step.components == tuple(
            sorted(tuple(sorted(part)) for part in nx.connected_components(graph))
        )
        fresh = {pair.pair for pair in step.forbidden}
        assert not fresh & seen
        assert all(breaks_with(graph, pair) for pair in fresh)
        seen |= fresh


def breaks_with(graph: nx.Graph, pair: tuple[str, str]) -> bool:
    tried = graph.copy()
    tried.add_edge(*pair)
    return any(breaks(tried, rule) for rule in ROLES.constraints)


def test_column_order_changes_nothing_under_seeded_noise(codes: Codes) -> None:
    first = simulated(codes, ROLES, Fraction(1, 50))
    for order in itertools.islice(itertools.permutations(codes), 0, 720, 180):
        again = simulated({name: codes[name] for name in order}, ROLES, Fraction(1, 50))
        assert again.schema.names == order
        assert again.edges == first.edges
        for one, other in zip(
            (*first.one_way, *first.two_way), (*again.one_way, *again.two_way), strict=True
        ):
            assert one.clique == other.clique
            assert np.array_equal(one.values, other.values)


def test_ignored_and_excluded_columns_stay_out(codes: Codes) -> None:
    schema = Schema((*schema_of(codes).columns, Column("id", Kind.IDENTIFIER, reason="key")))
    roles = Roles({**ROLES.by_column, "y": Role.IGNORE, "id": Role.IGNORE})
    release = release_tree(ExactGrant(codes), schema, roles)
    assert release.schema.names == ("s", "x", "o", "a", "z")
    assert len(release.edges) == 4


def test_public_row_count_is_used_where_it_is_public(codes: Codes) -> None:
    grant = ExactGrant(codes, relation=Relation.REPLACE_ONE)
    release = release_tree(grant, schema_of(codes), ROLES)
    assert release.public_rows == 2000
    assert [kind for kind, rho, _ in grant.calls if kind == "row_count" and rho == 0]
    private = ExactGrant(codes)
    assert release_tree(private, schema_of(codes), ROLES).public_rows is None
    assert all(kind != "row_count" for kind, _, _ in private.calls)


# -- what is refused before anything is paid -------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"structure": "star"}, PlanError, "structure 'star' is unknown"),
        ({"split": (1, 1)}, BudgetError, "three positive numbers"),
        ({"split": (1, 0, 1)}, BudgetError, "three positive numbers"),
        ({"split": (1, float("nan"), 1)}, BudgetError, "three positive numbers"),
        ({"split": (1, float("inf"), 1)}, BudgetError, "three positive numbers"),
        ({"split": (1, True, "x")}, BudgetError, "three positive numbers"),
        ({"split": "123"}, BudgetError, "three positive numbers"),
        ({"roles": Roles({"nobody": Role.OUTCOME})}, RolesError, "nobody"),
        ({"roles": Roles(dict.fromkeys("sxoayz", Role.IGNORE))}, RolesError, "no column is left"),
        (
            {"roles": Roles({"y": "ignore"}, further=(Constraint({"s"}, {"o"}, {"y"}),))},
            RolesError,
            "which is ignored",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_paid(codes: Codes, changes, error, words) -> None:
    grant = ExactGrant(codes)
    arguments = {"roles": ROLES, **changes}
    roles = arguments.pop("roles")
    with pytest.raises(error, match=words):
        release_tree(grant, schema_of(codes), roles, **arguments)
    assert grant.calls == []


def test_floats_in_a_split_mean_their_decimals() -> None:
    assert normalised_split((0.1, 0.2, 0.7)) == (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10))
    assert normalised_split((1 / 3, 1 / 3, 1 / 3)) == (Fraction(1, 3),) * 3


# -- cancelling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["privci", "privci-exact"])
def test_a_cancel_keeps_what_was_paid(codes: Codes, structure: str) -> None:
    def watch(stage: str, done: int, total: int, detail: object) -> None:
        reports.append((stage, done, total))
        if len(reports) == stop:
            raise Cancelled("cancelled")

    reports: list[tuple[str, int, int]] = []
    stop = 0
    whole = release_tree(
        ExactGrant(codes), schema_of(codes), ROLES, structure=structure, progress=watch
    )
    everything = list(reports)
    selections = [("selection", i + 1, 5) for i in range(5)]
    assert everything == [
        ("one-way", 0, 1), ("one-way", 1, 1),
        *(selections if structure == "privci" else [("selection", 1, 1)]), ("two-way", 1, 1),
    ]  # fmt: skip
    for stop in range(1, len(everything) + 1):
        reports.clear()
        grant = ExactGrant(codes)
        arguments = {"structure": structure, "progress": watch}
        if stop == 1:
            with pytest.raises(Cancelled):
                release_tree(grant, schema_of(codes), ROLES, **arguments)
            assert grant.calls == []
            continue
        release = release_tree(grant, schema_of(codes), ROLES, **arguments)
        assert release.partial == (stop < len(everything))
        assert len(release.one_way) == 6
        assert release.edges == whole.edges[: len(release.edges)]
        assert (len(release.two_way) == 5) == (stop == len(everything))
        assert release.provenance.forfeited == grant.remaining
        assert (grant.remaining == 0) == (stop == len(everything))
        TreeRelease.from_bytes(release.to_bytes())


# -- small and awkward tables ----------------------------------------------------------------------


def test_one_column_has_no_tree() -> None:
    codes = {"only": np.array([0, 1, 1])}
    grant = ExactGrant(codes)
    release = release_tree(grant, schema_of(codes), Roles())
    assert release.edges == release.two_way == ()
    assert not release.partial
    assert release.provenance.forfeited == Fraction(2, 3)


@pytest.mark.parametrize("structure", ["mst", "privci", "prefair", "privci-exact"])
def test_two_columns(structure: str) -> None:
    codes = {"s": np.array([0, 1, 1]), "o": np.array([0, 1, 0])}
    free = release_tree(ExactGrant(codes), schema_of(codes), Roles(), structure=structure)
    assert free.edges == (("o", "s"),)
    roles = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME})
    bound = release_tree(ExactGrant(codes), schema_of(codes), roles, structure=structure)
    assert bound.edges == ((("o", "s"),) if structure == "mst" else ())
    assert bound.provenance.forfeited == (0 if structure == "mst" else Fraction(2, 3))


def test_no_outcome_forbids_nothing(codes: Codes) -> None:
    roles = Roles({"s": Role.PROTECTED, "a": Role.ADMISSIBLE})
    free = release_tree(ExactGrant(codes), schema_of(codes), Roles(), structure="mst")
    for structure in ("privci", "prefair", "privci-exact"):
        release = release_tree(ExactGrant(codes), schema_of(codes), roles, structure=structure)
        assert release.edges == free.edges
        assert release.forbidden == ()


def test_an_empty_table_still_gives_a_tree(codes: Codes) -> None:
    schema = schema_of(codes)
    empty = {name: values[:0] for name, values in codes.items()}
    table = CodedTable(schema, empty, {}, 0)
    grant = simulated_vault(table, seed=1).grant(Fraction(1), "tree", "id")
    assert grant is not None
    release = release_tree(grant, schema, ROLES)
    assert len(release.edges) == 5


def test_clashing_constraints_forfeit_the_rounds_that_an_early_forest_leaves() -> None:
    codes = chain_codes(np.random.default_rng(2), "soax")
    # Without noise s-x comes first; the rules then leave o to nobody but a, which is not open.
    codes["x"] = codes["s"].copy()
    further = (
        Constraint(frozenset("s"), frozenset("o"), frozenset("a"), "one"),
        Constraint(frozenset("a"), frozenset("o"), frozenset("x"), "two"),
    )
    grant = ExactGrant(codes)
    release = release_tree(grant, schema_of(codes), Roles(further=further))
    assert len(release.edges) == 2
    assert not release.partial
    assert release.provenance.forfeited == Fraction(1, 3) * Fraction(1, 3)
    assert {name for edge in release.edges for name in edge} == set("sax")


def test_local_search_is_flagged() -> None:
    names = ["s", "o", "a", *(f"x{i:02}" for i in range(15))]
    codes = chain_codes(np.random.default_rng(0), names, rows=300)
    release = release_tree(ExactGrant(codes), schema_of(codes), ROLES, structure="privci-exact")
    assert HEURISTIC in release.provenance.flags
