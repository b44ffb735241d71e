"""The benchmarks' own arithmetic against oracles, and the PrivCI grid on a small made-up table."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks import privci, privci_peers, privci_store, report
from benchmarks.privci_cells import (
    METHODS,
    NOISE_FREE,
    REAL,
    Cell,
    fold_of,
    grid,
    rho_of,
    run_cell,
    table_of,
)
from benchmarks.privci_metrics import equalized_odds, measure, parity, within_gap
from benchmarks.privci_results import CLAIMS, Results, expected, expected_words, judged
from benchmarks.privci_scores import run_block
from benchmarks.privci_statistics import Paired, compare, holm, means_apart
from benchmarks.privci_store import Store

ROWS = 700


@pytest.fixture(autouse=True)
def _fresh() -> None:
    table_of.cache_clear()
    fold_of.cache_clear()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A table in the form of compas.csv in which race matters for the outcome beyond the charge."""
    generator = np.random.default_rng(5)
    race = generator.random(ROWS) < 0.5
    felony = generator.random(ROWS) < 0.4 + 0.2 * race
    priors = generator.poisson(1 + 2 * race)
    again = generator.random(ROWS) < 0.2 + 0.3 * race + 0.2 * felony
    frame = pd.DataFrame(
        {
            "race": np.where(race, "African-American", "Caucasian"),
            "is_recid": again.astype(int),
            "c_charge_degree": np.where(felony, "F", "M"),
            "age_cat": np.array(["Less than 25", "25 - 45", "Greater than 45"])[
                generator.integers(0, 3, ROWS)
            ],
            "priors_count": priors,
        }
    )
    frame.to_csv(tmp_path / "compas.csv", index=False)
    return tmp_path


# -- statistics --------------------------------------------------------------------------------


def test_paired_comparison_is_scipys_with_the_effect_by_hand() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        one, other = generator.normal(0.3, 1, 25), generator.normal(0, 1, 25)
        found = compare(one, other)
        assert found is not None
        assert found.p_value == pytest.approx(stats.wilcoxon(one, other).pvalue)
        # over all pairs of pairs: share with a positive mean, twice, less one (Hodges-Lehmann)
        difference = one - other
        walsh = [difference[i] + difference[j] for i in range(25) for j in range(i, 25)]
        assert found.effect == pytest.approx(2 * np.mean(np.array(walsh) > 0) - 1)
        assert found.difference == np.median(difference)


def test_paired_comparison_leaves_out_what_is_missing_and_survives_ties() -> None:
    assert compare([math.nan], [1.0]) is None
    same = compare([1.0, 2.0, math.nan], [1.0, 2.0, 3.0])
    assert same is not None
    assert (same.pairs, same.difference, same.effect, same.p_value) == (2, 0.0, 0.0, 1.0)
    rounding = compare([1.0, 2.0], [1.0 + 1e-15, 2.0])
    assert rounding is not None
    assert rounding.p_value == 1.0
    one_sided = compare([1.0] * 6, [0.0] * 6)
    assert one_sided is not None
    assert one_sided.effect == 1.0


def test_holm_by_hand() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.9})
    assert found == pytest.approx({"a": 0.04, "b": 0.09, "c": 0.09, "d": 0.9})
    assert holm({}) == {}
    assert max(holm({"a": 0.6, "b": 0.7}).values()) == 1.0


def test_welch_is_scipys_and_a_constant_is_no_trouble() -> None:
    generator = np.random.default_rng(2)
    one, other = generator.normal(0, 1, 40), generator.normal(0.5, 3, 25)
    found = means_apart(one, other)
    oracle = stats.ttest_ind(one, other, equal_var=False)
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert found.difference / found.error == pytest.approx(oracle.statistic)
    assert means_apart([1.0, 1.0], [1.0, 1.0]).p_value == 1.0
    assert means_apart([2.0, 2.0], [1.0, 1.0]).p_value == 0.0


# -- metrics -----------------------------------------------------------------------------------


def test_differences_between_groups_by_hand() -> None:
    groups = np.repeat([0, 1], [20, 40])
    truth = np.tile([0, 1], 30)
    decisions = np.zeros(60, dtype=np.int64)
    decisions[:15] = 1
    decisions[20:30] = 1
    assert parity(decisions, groups) == pytest.approx(15 / 20 - 10 / 40)
    rates = [[decisions[(groups == g) & (truth == t)].mean() for g in (0, 1)] for t in (0, 1)]
    worst = max(abs(a - b) for a, b in rates)
    assert equalized_odds(truth, decisions, groups) == pytest.approx(worst)


def test_differences_between_groups_are_fairlearns() -> None:
    from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

    generator = np.random.default_rng(8)
    for _ in range(10):
        groups = generator.integers(0, 3, 400)
        truth = (generator.random(400) < 0.3 + 0.1 * groups).astype(np.int64)
        decisions = (generator.random(400) < 0.2 + 0.3 * truth + 0.1 * groups).astype(np.int64)
        assert parity(decisions, groups) == pytest.approx(
            demographic_parity_difference(truth, decisions, sensitive_features=groups)
        )
        assert equalized_odds(truth, decisions, groups) == pytest.approx(
            equalized_odds_difference(truth, decisions, sensitive_features=groups)
        )


def test_one_decision_for_all_is_no_difference() -> None:
    groups = np.repeat([0, 1], 20)
    assert parity(np.zeros(40, dtype=np.int64), groups) == 0
    assert equalized_odds(np.tile([0, 1], 20), np.ones(40, dtype=np.int64), groups) == 0


def test_small_groups_are_left_out() -> None:
    groups = np.repeat([0, 1, 2], [30, 30, 9])
    decisions = np.where(groups == 2, 1, 0)
    assert parity(decisions, groups) == 0.0
    assert parity(decisions, np.where(groups == 1, 0, groups)) is None
    truth = np.concatenate([np.tile([0, 1], 30), np.ones(9, dtype=np.int64)])
    assert equalized_odds(truth, decisions, groups) == 0.0


def test_gap_within_strata_by_hand() -> None:
    strata = np.repeat([0, 1, 2], [40, 20, 11])
    groups = np.concatenate([np.tile([0, 1], 20), np.tile([0, 1], 10), [0] * 10 + [1]])
    decisions = np.zeros(71, dtype=np.int64)
    decisions[:40][groups[:40] == 1] = 1  # a gap of 1 on 40 rows, none on 20, too few on the rest
    assert within_gap(decisions, groups, strata) == pytest.approx(40 / 60)
    assert within_gap(decisions[60:], groups[60:], strata[60:]) is None


def test_a_table_is_perfect_against_itself_and_terrible_when_shuffled(data: Path) -> None:
    fold = fold_of("compas", data, 0)
    same = measure(fold, fold.train.codes)
    assert same["kl"] == pytest.approx(0, abs=1e-9)
    assert same["tv"] == 0
    assert same["excess"] > 0.01
    generator = np.random.default_rng(0)
    mixed = {name: generator.permutation(codes) for name, codes in fold.train.codes.items()}
    shuffled = measure(fold, mixed)
    assert shuffled["tv"] > 0.1
    assert shuffled["kl"] > 0.1
    assert abs(shuffled["excess"]) < 0.01
    assert shuffled["auc"] < same["auc"]


# -- the grid ----------------------------------------------------------------------------------


def test_folds_are_stratified_and_cover_the_table_once(data: Path) -> None:
    folds = [fold_of("compas", data, index) for index in range(5)]
    assert sum(fold.test.rows for fold in folds) == ROWS
    assert all(fold.train.rows + fold.test.rows == ROWS for fold in folds)
    shares = [fold.test.codes["no_recid"].mean() for fold in folds]
    assert max(shares) - min(shares) < 0.02


def test_cells_have_seeds_of_their_own_and_come_out_the_same(data: Path) -> None:
    cells = list(grid(["compas"], METHODS, ["1", "10", NOISE_FREE], 5, 3))
    assert len(cells) == 5 * (2 * 4 * 3 + 4 + 1)
    assert len({seed for cell in cells for seed in cell.seeds}) == 2 * len(cells)
    cell = Cell("compas", 0, "10", 0, "privci")
    first, again = run_cell(cell, data), run_cell(cell, data)
    timed = {"seconds", "release_seconds"}
    assert {k: v for k, v in first.items() if k not in timed} == {
        k: v for k, v in again.items() if k not in timed
    }
    other = run_cell(Cell("compas", 0, "10", 1, "privci"), data)
    assert other["tv"] != first["tv"]


def test_noise_free_trees_are_the_best_spanning_trees(data: Path) -> None:
    fold = fold_of("compas", data, 1)
    graph = nx.Graph()
    for (one, other), score in fold.scores.items():
        graph.add_edge(one, other, weight=score)
    best = nx.maximum_spanning_tree(graph).size("weight")
    found = {method: run_cell(Cell("compas", 1, NOISE_FREE, 0, method), data) for method in METHODS}
    assert found["mst"]["score"] == pytest.approx(best)
    assert found["mst"]["violates"]
    # the best tree that keeps the rule, by trying every set of edges
    rule = fold.rule
    legal = []
    for size in (3, 4):
        for edges in itertools.combinations(fold.scores, size):
            tree = nx.Graph(edges)
            inner = tree.copy()
            inner.remove_nodes_from(rule.admissible)
            mixed = any(
                part & rule.protected and part & rule.outcome
                for part in nx.connected_components(inner)
            )
            if nx.is_forest(tree) and not mixed:
                legal.append((len(edges), sum(fold.scores[pair] for pair in edges)))
    assert found["privci-exact"]["score"] == pytest.approx(max(legal)[1])
    assert not found["privci-exact"]["violates"]
    assert not found["prefair"]["violates"]


def test_expected_scores_are_those_of_whole_releases(data: Path) -> None:
    noise_free = run_block("compas", "1e4", "privci-exact", range(2), data)["scores"]
    table = table_of("compas", data)
    from benchmarks.privci_trees import forests

    assert noise_free == pytest.approx([forests(table)[3].score] * 2)
    noisy = run_block("compas", "0.1", "privci", range(5), data)["scores"]
    assert len(set(noisy)) > 1
    assert max(noisy) <= forests(table)[0].score + 1e-9


@pytest.mark.slow
def test_whole_run_resumes_and_writes_its_page(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "docs"
    monkeypatch.setattr(privci, "FOLDER", folder)
    monkeypatch.setattr(privci, "REPORT", folder / "privci.md")
    command = ["--data", str(data), "--datasets", "compas", "--eps", "10", NOISE_FREE]
    command += ["--folds", "2", "--seeds", "1", "--draws", "4", "--jobs", "1"]
    command += ["--store", str(tmp_path / "store"), "--resume"]
    assert privci.main([*command, "--write"]) == 0
    page = (folder / "privci.md").read_text(encoding="utf-8")
    for heading in ("## Which claims hold", "## Expected score", "### compas", "0 of 12"):
        assert heading in page
    picture = (folder / "privci-auc.svg").read_text(encoding="utf-8")
    assert ">compas</text>" in picture
    capsys.readouterr()

    def refuse(*_: object) -> None:
        raise AssertionError("everything is stored")

    monkeypatch.setattr(privci, "run_cell", refuse)
    assert privci.main(command) == 0
    assert capsys.readouterr().out.count("## ") == page.count("## ") - 1  # no curves
    (tmp_path / "store" / "compas" / "mst-eps10-fold0-seed0.json").unlink()
    with pytest.raises(AssertionError, match="everything is stored"):
        privci.main(command)


def test_cells_of_other_code_are_stale(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("a/b", {"kl": 1.0})
    assert store.read("a/b") == {"kl": 1.0}
    stored = json.loads((tmp_path / "a" / "b.json").read_text())
    (tmp_path / "a" / "b.json").write_text(json.dumps({**stored, "code": "older"}))
    assert store.get("a/b") is None
    with pytest.raises(KeyError, match="not stored"):
        store.read("a/b")


def test_cells_are_stale_when_the_audit_answers_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    before = privci_store.fingerprint()
    assert privci_store.fingerprint() == before
    honest = privci_store.measure

    def shifted(*arguments: Any) -> dict[str, float | None]:
        figures = honest(*arguments)
        return {**figures, "floor": figures["floor"] + 1e-6}

    monkeypatch.setattr(privci_store, "measure", shifted)
    assert privci_store.fingerprint() != before


@pytest.mark.parametrize(
    "command",
    [
        ["--eps", "nought"],
        ["--eps", "-1"],
        ["--datasets", "adult"],
        ["--data", "/nowhere"],
        ["--seeds", "0"],
        ["--folds", "6"],
        ["--peer", "dpmm"],
        ["--peer", "unheard-of=python"],
    ],
)
def test_impossible_options_are_refused(command: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        privci.main(command)
    assert refused.value.code == 2


def test_peers_are_measured_like_ourselves(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privci_peers, "PEERS", {"copy": "tests.copying_recipe"})
    store = Store(tmp_path / "store")
    cells = privci_peers.cells("copy", ["compas"], ["1"], 5)
    assert [cell.fold for cell in cells] == [0, 1]
    privci_peers.run_peer("copy", sys.executable, cells, data, store, resume=False)
    for cell in cells:
        real = run_cell(Cell("compas", cell.fold, NOISE_FREE, 0, REAL), data)
        found = store.read(cell.name)
        assert found["label"] == "copies the rows"
        assert found["tv"] == 0
        assert found["auc"] == pytest.approx(real["auc"], abs=1e-6)
        assert found["cmi"] == pytest.approx(real["cmi"])
    monkeypatch.setattr(privci_peers, "PEERS", {"copy": "tests.no_such_recipe"})
    with pytest.raises(SystemExit, match="peer copy failed"):
        privci_peers.run_peer("copy", sys.executable, cells, data, store, resume=False)


# -- verdicts ----------------------------------------------------------------------------------


def paired(effect: float, p_value: float, first: float = 1.0, second: float = 1.0) -> Paired:
    return Paired(25, effect, effect, p_value, first, second)


def test_verdicts() -> None:
    def short(kind: str, item: Paired, adjusted: float, breaks: bool = True) -> str:
        return judged(kind, item, adjusted, unconstrained_breaks=breaks)[1]

    assert short("at-least", paired(0.9, 1e-6), 1e-4) == "better"
    assert short("at-least", paired(-0.9, 1e-6), 1e-4) == "**worse**"
    assert short("at-most", paired(-0.9, 1e-6), 1e-4) == "better"
    assert short("at-most", paired(0.9, 0.2), 1.0) == "tie"
    assert short("at-most", paired(0.9, 1e-3), 0.3) == "worse?"
    assert short("at-least", paired(0.9, 1e-3), 0.3) == "better?"
    # sameness goes by the unadjusted p-value: adjusting would make it easier to claim
    assert short("like", paired(0.5, 0.01), 1.0) == "**higher**"
    assert short("like", paired(0.1, 0.6), 1.0) == "holds"
    assert short("like", Paired(25, 0.0, 0.1, 0.9, 0.0, 1e-18), 1.0) == "–"
    assert short("far-below", paired(-1, 1e-7, 0.001, 0.05), 1e-5) == "holds"
    assert short("far-below", paired(-1, 1e-7, 0.03, 0.05), 1e-5) == "lower"
    assert short("far-below", paired(-0.1, 0.5, 0.05, 0.05), 1.0) == "**no**"
    assert short("far-below", paired(1, 1e-7, 0.06, 0.05), 1e-5) == "**no**"
    assert short("far-below", paired(-0.6, 0.002, 0.001, 0.05), 0.07) == "lower?"
    assert short("far-below", paired(-0.1, 0.5), 1.0, breaks=False) == "–"


def test_results_pair_by_fold_and_budget_and_average_seeds() -> None:
    figures = {}
    for fold, epsilon, seed in itertools.product(range(5), ("1", "10"), range(2)):
        for method, shift in (("privci", 0.0), ("prefair", 1.0), ("mst", -1.0)):
            cell = Cell("t", fold, epsilon, seed, method)
            value = fold + float(epsilon) + shift * (1 + fold / 10) + (seed - 0.5)
            figures[cell] = {"kl": value, "violates": method == "mst"}
    results = Results(figures, ["t"], ["1", "10"], 5)
    assert results.value("t", "privci", "10", 3, "kl") == pytest.approx(13)
    assert results.median("t", "privci", "1", "kl") == pytest.approx(3)
    assert math.isnan(results.median("t", "privci", "1", "tv"))
    found = results.tests["t", "kl", "privci", "prefair"]
    assert (found.pairs, found.effect) == (10, -1.0)
    assert found.difference == pytest.approx(-1.2)
    claim = next(claim for claim in CLAIMS if claim.metric == "kl")
    assert results.claimed[claim.on("t")] == found.p_value  # no other claim was measured
    assert results.adjusted[claim.on("t")] == pytest.approx(2 * found.p_value)  # and against mst
    assert results.verdict(claim, "t").short == "better"
    assert results.broken(("privci", "prefair")) == (0, 40)
    assert results.breaks("t", "mst")
    assert not results.breaks("t", "privci")


def test_expected_scores_are_judged_by_difference() -> None:
    generator = np.random.default_rng(3)
    scores = {
        ("t", "1", "privci-exact"): generator.normal(2.0, 0.1, 100),
        ("t", "1", "privci"): generator.normal(1.8, 0.1, 100),
        ("t", "1", "prefair"): generator.normal(2.2, 0.1, 100),
    }
    found = expected(scores)
    words = {key[2]: expected_words(*item) for key, item in found.items()}
    assert words == {"privci": "holds: better", "prefair": "**does not hold**: worse"}


# -- what all benchmarks share -----------------------------------------------------------------


def test_tables_and_promises_look_alike() -> None:
    lines = report.bar_table([report.Bar("fast", "1 s", True), ("small", "9 GB", False)])
    assert lines[0] == "| promise | found | met |"
    assert lines[2:] == ["| fast | 1 s | yes |", "| small | 9 GB | **NO** |", ""]
    assert [report.short(x) for x in (1234.5, 0.01234, 0.0, -1e-9, math.nan, math.inf)] == [
        *("1,234", "0.0123", "0", "0", "", "inf")
    ]


def test_peers_are_named_with_their_interpreter() -> None:
    parser = argparse.ArgumentParser()
    report.peer_option(parser, ("dpmm",))
    found = parser.parse_args(["--peer", "dpmm=/a=b/python"]).peer
    assert found == [("dpmm", "/a=b/python")]
    assert parser.parse_args([]).peer == []


def test_digest_sees_code_and_not_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ROOT", tmp_path)
    file = tmp_path / "one.py"
    file.write_text('"""Words."""\nx = 1\n')
    first = report.code_digest(["one.py"])
    file.write_text('"""Other words."""\n# a comment\nx = (1)\n')
    assert report.code_digest(["one.py"]) == first
    file.write_text("x = 2\n")
    assert report.code_digest(["one.py"]) != first


def test_budgets_are_the_reference_values() -> None:
    for epsilon, rho in (("0.1", 0.000177), ("1", 0.014973), ("10", 1.090786)):
        assert float(rho_of(epsilon)) == pytest.approx(rho, abs=1e-6)
    assert rho_of(NOISE_FREE) > 1000
