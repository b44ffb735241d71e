"""Demo worlds: declared, reproducible, and with the causal facts that they claim."""

from __future__ import annotations

import csv
import io
import itertools
import time
from dataclasses import FrozenInstanceError
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import demo
from core.demo.world import choose
from core.errors import PlanError
from core.roles import Role
from core.schema import Kind

NAMES = demo.names()
SEEDS = (demo.DEFAULT_SEED, 1, 17, 2026, 4711)


# -- oracles: a plain encoder, pair scores, and conditional mutual information ----------------


def encode(name: str, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Cell codes by the schema; fails where a value lies outside its declared domain."""
    codes = {}
    for column in demo.schema(name).modelled:
        values = frame[column.name]
        empty = values.isna().to_numpy()
        if column.categories:
            found = pd.Index(column.categories).get_indexer(values.fillna(column.categories[0]))
            assert found.min(initial=0) >= 0, column.name
        else:
            low, high = column.bounds
            if column.kind is Kind.DATE:
                numbers = np.array([day.toordinal() for day in values], dtype=float)
            else:
                numbers = values.astype("Float64").fillna(low).to_numpy(dtype=float)
            assert ((numbers >= low) & (numbers <= high)).all(), column.name
            found = np.searchsorted(column.axis[1:-1], numbers, side="right")
        if empty.any():
            assert column.missing_code is not None, column.name
            found = np.where(empty, column.missing_code, found)
        codes[column.name] = found
    return codes


def spanning_tree(name: str, codes: dict[str, np.ndarray], columns: list[str]) -> nx.Graph:
    """Noise-free maximum spanning tree on q = |M - N p p'|, by networkx."""
    sizes = {column.name: column.size for column in demo.schema(name).modelled}
    graph = nx.Graph()
    for a, b in itertools.combinations(sorted(columns), 2):
        joint = np.zeros((sizes[a], sizes[b]))
        np.add.at(joint, (codes[a], codes[b]), 1)
        independent = np.outer(joint.sum(1), joint.sum(0)) / joint.sum()
        graph.add_edge(a, b, weight=float(np.abs(joint - independent).sum()))
    return nx.maximum_spanning_tree(graph)


def tree_joint(
    tree: nx.Graph, codes: dict[str, np.ndarray], columns: list[str], sizes: dict[str, int]
) -> np.ndarray:
    """The tree's joint distribution over ``columns``, one axis each, by brute force."""
    shape = [sizes[name] for name in columns]

    def spread(table: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        order = np.argsort([columns.index(name) for name in names])
        target = [sizes[name] if name in names else 1 for name in columns]
        return table.transpose(order).reshape(target)

    joint = np.ones(shape)
    degree = dict(tree.degree)
    rows = len(next(iter(codes.values())))
    for name in columns:
        share = np.bincount(codes[name], minlength=sizes[name]) / rows
        divisor = np.where(share > 0, share, 1.0) ** (degree[name] - 1)
        joint = joint / spread(divisor, (name,))
    for a, b in tree.edges:
        table = np.zeros((sizes[a], sizes[b]))
        np.add.at(table, (codes[a], codes[b]), 1 / rows)
        joint = joint * spread(table, (a, b))
    return joint


def conditional_information(joint: np.ndarray) -> float:
    """I(O; S | A) in bits of a table with axes (O, S, A)."""

    def entropy(table: np.ndarray) -> float:
        cells = table[table > 0]
        return float(-(cells * np.log2(cells)).sum())

    pairs = entropy(joint.sum(1)) + entropy(joint.sum(0))
    return pairs - entropy(joint) - entropy(joint.sum((0, 1)))


def flatten(codes: dict[str, np.ndarray], names: list[str]) -> np.ndarray:
    """One code for several columns together, packed without gaps."""
    together = np.stack([codes[name] for name in names])
    return np.unique(together, axis=1, return_inverse=True)[1].ravel()


def sides(name: str) -> tuple[str, str, list[str], list[str]]:
    """Protected, outcome, admissible and proxy columns of a demo's own roles."""
    roles = demo.roles(name)
    (protected,) = roles.having(Role.PROTECTED)
    (outcome,) = roles.having(Role.OUTCOME)
    return protected, outcome, sorted(roles.having(Role.ADMISSIBLE)), sorted(roles.proxies)


def independence_excess(name: str, frame: pd.DataFrame, permutations: int = 60) -> float:
    """Sample CMI(O; S and proxies | A) above its permutation floor, in floor deviations."""
    protected, outcome, admissible, proxies = sides(name)
    codes = encode(name, frame)
    side, given_a = flatten(codes, [protected, *proxies]), flatten(codes, admissible)
    shape = (codes[outcome].max() + 1, side.max() + 1, given_a.max() + 1)

    def information(shuffled: np.ndarray) -> float:
        cells = np.ravel_multi_index((codes[outcome], shuffled, given_a), shape)
        table = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
        return conditional_information(table / len(cells))

    generator = np.random.default_rng(3)
    by_cell = np.argsort(given_a, kind="stable")
    floor = []
    for _ in range(permutations):
        shuffled = np.empty_like(side)
        shuffled[by_cell] = side[np.lexsort((generator.random(len(side)), given_a))]
        floor.append(information(shuffled))
    return (information(side) - float(np.mean(floor))) / float(np.std(floor))


# -- declarations ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_declarations_are_public_and_modest(name):
    schema, roles = demo.schema(name), demo.roles(name)
    assert schema.data_dependent == ()
    assert {column.kind for column in schema.columns} >= set(Kind) - {Kind.TEXT}
    assert 12 <= len(schema.modelled) <= 13
    assert all(2 <= column.size <= 12 for column in schema.modelled)
    (excluded,) = [column for column in schema.columns if not column.is_modelled]
    assert excluded.kind is Kind.IDENTIFIER
    assert excluded.reason
    roles.check(tuple(column.name for column in schema.modelled))
    assert roles.ignored == {excluded.name}
    protected, outcome, admissible, proxies = sides(name)
    (constraint,) = roles.constraints
    assert constraint.protected == {protected, *proxies}
    assert constraint.outcome == {outcome}
    assert constraint.admissible == set(admissible)
    assert admissible
    assert proxies
    assert len(demo.describe(name).split()) > 40
    assert "\n" not in demo.describe(name)


@pytest.mark.parametrize("name", NAMES)
def test_default_table_keeps_its_declarations(name):
    frame = demo.table(name)
    schema, truth = demo.schema(name), demo.truth(name)
    assert len(frame) == 20_000
    assert tuple(frame.columns) == schema.names
    codes = encode(name, frame)
    for column in schema.modelled:
        declared = np.bincount(codes[column.name], minlength=column.size)
        assert (declared[: column.declared_size] > 0).all(), column.name
    with_holes = {column for column in frame if frame[column].isna().any()}
    assert with_holes == {column for column, _ in truth.missing}
    assert all(frame[column].isna().mean() < 0.1 for column in with_holes)
    (identifier,) = [c.name for c in schema.columns if not c.is_modelled]
    assert frame[identifier].is_unique


def test_missing_values_follow_their_declared_rules():
    hiring = demo.table("hiring", rows=60_000)
    by_referral = hiring["salary_expectation"].isna().groupby(hiring["referral"]).mean()
    assert by_referral["no"] == pytest.approx(0.05, abs=0.006)
    assert by_referral["yes"] == pytest.approx(0.14, abs=0.015)
    assert hiring["career_gap_months"].isna().mean() == pytest.approx(0.03, abs=0.004)
    admissions = demo.table("admissions", rows=60_000)
    abroad = admissions["school_grade"].isna().groupby(admissions["home_region"]).mean()
    assert abroad["abroad"] == pytest.approx(0.25, abs=0.03)
    assert abroad.drop("abroad").max() < 0.02


# -- reproducibility ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_seed_decides_the_table(name):
    first, again = demo.table(name, 500, 5), demo.table(name, 500, 5)
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(demo.table(name, 500, 6))


@pytest.mark.parametrize("name", NAMES)
def test_fair_world_differs_in_the_outcome_only_and_one_way(name):
    protected, outcome, _, _ = sides(name)
    biased, fair = demo.table(name), demo.table(name, biased=False)
    pd.testing.assert_frame_equal(biased.drop(columns=outcome), fair.drop(columns=outcome))
    categories = list(demo.schema(name)[outcome].categories)
    level = {label: code for code, label in enumerate(categories)}
    step = biased[outcome].map(level) - fair[outcome].map(level)
    pushes = demo.truth(name).direct_log_odds
    push = biased[protected].map(pushes)
    assert (step[push == 0] == 0).all()
    assert (step[push > 0] >= 0).all()
    assert (step[push < 0] <= 0).all()
    changed = demo.changed_outcomes(name)
    assert set(changed) == set(pushes)
    for label, size in pushes.items():
        if size == 0:
            assert changed[label] == 0.0
        else:
            assert changed[label] > 0.08


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tiny_tables(name, rows):
    frame = demo.table(name, rows)
    assert len(frame) == rows
    assert tuple(frame.columns) == demo.schema(name).names
    encode(name, frame)
    assert len(demo.csv_bytes(name, rows).decode().splitlines()) == rows + 1


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    rows=st.integers(0, 400),
    seed=st.integers(0, 2**40),
    biased=st.booleans(),
)
def test_every_draw_stays_in_the_declared_domain(name, rows, seed, biased):
    codes = encode(name, demo.table(name, rows, seed, biased=biased))
    for column in demo.schema(name).modelled:
        assert codes[column.name].max(initial=0) < column.size


@pytest.mark.parametrize("name", NAMES)
def test_default_table_is_fast(name):
    demo.table(name, 10)
    started = time.process_time()
    demo.table(name)
    assert time.process_time() - started < 0.3


# -- the facts that the demos teach -----------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_truth_is_a_graph_whose_only_unfair_path_is_the_direct_edge(name):
    truth = demo.truth(name)
    protected, outcome, admissible, proxies = sides(name)
    assert truth.direct == (protected, outcome)
    assert truth.admissible == tuple(admissible)
    assert truth.proxies == tuple(proxies)
    graph = nx.DiGraph(truth.edges)
    assert nx.is_directed_acyclic_graph(graph)
    shown = {column.name for column in demo.schema(name).modelled}
    assert set(graph) | set(truth.latent) == shown | set(truth.latent)
    assert [column for column, _ in truth.equations if column not in shown] == list(truth.latent)
    assert {column for column, _ in truth.equations} == set(graph)
    assert not nx.is_d_separator(graph, {outcome}, {protected, *proxies}, set(admissible))
    fair = graph.copy()
    fair.remove_edge(*truth.direct)
    assert nx.is_d_separator(fair, {outcome}, {protected, *proxies}, set(admissible))
    paths = {tuple(path) for path in nx.all_simple_paths(fair, protected, outcome)}
    assert set(truth.legitimate) == paths
    assert paths
    assert all(set(path[1:-1]) & set(admissible) for path in paths)
    for proxy in proxies:
        assert (protected, proxy) in truth.edges
        assert (proxy, outcome) not in truth.edges
    with pytest.raises(FrozenInstanceError):
        truth.name = "other"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_unconstrained_tree_takes_a_forbidden_way(name, seed):
    protected, outcome, admissible, _ = sides(name)
    codes = encode(name, demo.table(name, seed=seed))
    tree = spanning_tree(name, codes, list(codes))
    beside = tree.subgraph(set(tree) - set(admissible))
    assert nx.has_path(beside, protected, outcome)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_unconstrained_model_depends_given_the_admissible(name, seed):
    protected, outcome, admissible, proxies = sides(name)
    columns = sorted([protected, outcome, *admissible, *proxies])
    sizes = {column.name: column.size for column in demo.schema(name).modelled}
    codes = encode(name, demo.table(name, seed=seed))
    tree = spanning_tree(name, codes, columns)
    joint = tree_joint(tree, codes, columns, sizes)
    assert joint.sum() == pytest.approx(1.0)
    groups = ([outcome], [protected, *proxies], admissible)
    order = [columns.index(column) for group in groups for column in group]
    lengths = [int(np.prod([sizes[column] for column in group])) for group in groups]
    model = conditional_information(joint.transpose(order).reshape(lengths))
    assert model > 0.01  # a hundred times the 1e-4 bits that the tests of the release ask for


def test_brute_force_information_is_zero_on_a_separated_tree():
    # Positive control of the oracle: S - A - O has no information left given A.
    protected, outcome, admissible, _ = sides("lending")
    columns = [outcome, protected, "credit_history"]
    sizes = {column.name: column.size for column in demo.schema("lending").modelled}
    codes = encode("lending", demo.table("lending"))
    tree = nx.Graph([(protected, "credit_history"), ("credit_history", outcome)])
    assert "credit_history" in admissible
    joint = tree_joint(tree, codes, columns, sizes)
    assert joint.sum() == pytest.approx(1.0)
    assert abs(conditional_information(joint)) < 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_outcome_is_independent_given_the_admissible_only_in_the_fair_world(name, seed):
    assert independence_excess(name, demo.table(name, seed=seed, biased=False)) < 3.5
    assert independence_excess(name, demo.table(name, seed=seed), permutations=20) > 30


@pytest.mark.parametrize("name", NAMES)
def test_legitimate_path_alone_still_makes_groups_differ(name):
    # In the fair world the outcome depends on the group, through the admissible columns alone.
    protected, outcome, admissible, _ = sides(name)
    codes = encode(name, demo.table(name, rows=100_000, biased=False))
    links = [protected, *admissible, outcome]
    empty = np.zeros_like(codes[protected])

    def information(a: str, b: str) -> float:
        cells = np.zeros((codes[a].max() + 1, codes[b].max() + 1, 1))
        np.add.at(cells, (codes[a], codes[b], empty), 1 / len(empty))
        return conditional_information(cells)

    assert information(links[0], links[-1]) > 5e-4
    assert any(
        information(protected, link) > 5e-3 and information(link, outcome) > 5e-3
        for link in admissible
    )


def test_shares_of_choose_are_as_asked():
    noise = np.random.default_rng(1)
    plain = np.bincount(choose(noise, 50_000, [1.0, 3.0, 0.0, 4.0]), minlength=4) / 50_000
    assert plain == pytest.approx([0.125, 0.375, 0.0, 0.5], abs=0.01)
    table = np.tile([[0.5, 0.5, 0.0], [0.0, 0.2, 1.8]], (25_000, 1))
    codes = choose(noise, 50_000, table)
    assert np.bincount(codes[::2], minlength=3) / 25_000 == pytest.approx([0.5, 0.5, 0], abs=0.02)
    assert np.bincount(codes[1::2], minlength=3) / 25_000 == pytest.approx([0, 0.1, 0.9], abs=0.02)


# -- files and refusals -----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_written_file_is_plain_and_reads_back(name):
    blob = demo.csv_bytes(name, rows=800, seed=9)
    assert not blob.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in blob
    rows = list(csv.DictReader(io.StringIO(blob.decode("utf-8"), newline="")))
    frame, schema = demo.table(name, 800, 9), demo.schema(name)
    assert tuple(rows[0]) == schema.names
    for column in schema.columns:
        for text, value in zip((row[column.name] for row in rows), frame[column.name], strict=True):
            if pd.isna(value):
                assert text == ""
            elif column.kind is Kind.DATE:
                assert text == value.date().isoformat()
            elif column.is_numeric:
                assert float(text) == value
                decimals = text.partition(".")[2]
                wanted = 0 if column.kind is Kind.INTEGER else column.decimals
                assert len(decimals) == wanted
            else:
                assert text == value


def test_same_arguments_same_bytes():
    assert demo.csv_bytes("hiring", 300) == demo.csv_bytes("hiring", rows=300)
    assert demo.csv_bytes("hiring", 300) != demo.csv_bytes("hiring", 300, seed=1)


@pytest.mark.parametrize("call", [demo.table, demo.schema, demo.roles, demo.truth, demo.describe])
def test_unknown_name_is_refused_with_the_way_out(call):
    with pytest.raises(PlanError, match=r"'housing'.*hiring, lending, admissions"):
        call("housing")


@pytest.mark.parametrize("bad", [-1, 1.5, True, "10"])
@pytest.mark.parametrize("what", ["rows", "seed"])
def test_bad_sizes_are_refused(what, bad):
    with pytest.raises(PlanError, match=f"'hiring': {what} must be a whole number"):
        demo.table("hiring", **{what: bad})


def test_the_page_about_the_demos_states_true_sizes():
    page = (Path(__file__).parents[2] / "docs" / "demo.md").read_text("utf-8")
    stated = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(tuple(f"| {name} |" for name in NAMES))
    ]
    true = []
    for name in NAMES:
        protected, outcome, _, _ = sides(name)
        best = demo.schema(name)[outcome].categories[-1]
        biased, fair = demo.table(name), demo.table(name, biased=False)
        changed = demo.changed_outcomes(name)
        for label, push in demo.truth(name).direct_log_odds.items():
            shares = [
                float((world[outcome][world[protected] == label] == best).mean())
                for world in (biased, fair)
            ]
            percent = [f"{100 * share:.0f} %" for share in (*shares, changed[label])]
            true.append([name, label, f"{push:+.1f}", *percent])
    assert stated == true
