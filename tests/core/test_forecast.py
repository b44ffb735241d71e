"""Forecasts against the method's formulas, and against what a release then does."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from core.errors import BudgetError, PlanError, RolesError
from core.forecast import Verdict, forecast, forecast_of
from core.outlook import outlook_for
from core.plan import Plan, PopulationPlan, TreePlan
from core.private.table import CodedTable
from core.private.zcdp import epsilon, guessing_bound
from core.privci.select import release_tree
from core.promise import NO_PROTECTION
from core.releases import Relation, Unit
from core.roles import Role, Roles
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault


def coins(count: int) -> Schema:
    """Yes/no columns of exactly two cells."""
    return Schema(
        tuple(
            Column(
                f"c{i:02}",
                Kind.BOOLEAN,
                categories=("no", "yes"),
                missing="constant",
                missing_constant="no",
                other_label="no",
            )
            for i in range(count)
        )
    )


def test_eighty_columns_of_180_rows_are_mostly_noise_at_a_tenth() -> None:
    view = forecast(coins(80), Roles(), Fraction(1, 10), expected_rows=180)
    assert view.one_way_sigma == pytest.approx(math.sqrt(80 * 3 / (2 * 0.1)), rel=1e-3)  # ≈ 35
    assert round(view.one_way_sigma) == 35
    assert view.two_way_persons == 45
    assert view.verdict is Verdict.MOSTLY_NOISE
    words = " ".join((*view.sentences, *view.suggestions))
    assert "±34.6 persons" in words
    assert "45 of 180 persons" in words
    assert "ostly noise" in words
    assert "fewer columns" in words
    generous = forecast(coins(80), Roles(), Fraction(10), expected_rows=180)
    assert generous.one_way_sigma == pytest.approx(3.46, abs=0.01)
    assert generous.verdict is Verdict.CLEAR
    assert generous.suggestions == ()


def test_taking_the_advice_lifts_the_verdict() -> None:
    rho = Fraction(1, 10)
    view = forecast(coins(80), Roles(), rho, expected_rows=180)
    fewer = int(view.suggestions[0].split("about ")[1].split(" ")[0])
    assert forecast(coins(fewer), Roles(), rho, expected_rows=180).verdict is not (
        Verdict.MOSTLY_NOISE
    )
    more = Fraction(view.suggestions[-1].split("rho = ")[1].split(",")[0])
    assert forecast(coins(80), Roles(), more * Fraction(11, 10), expected_rows=180).verdict is not (
        Verdict.MOSTLY_NOISE
    )


def test_pooling_is_suggested_where_columns_have_many_cells() -> None:
    wide = Schema(
        tuple(
            Column(f"c{i}", Kind.CATEGORICAL, categories=tuple(f"v{j}" for j in range(40)))
            for i in range(6)
        )
    )
    view = forecast(wide, Roles(), Fraction(1, 2), expected_rows=5000)
    assert view.verdict is not Verdict.CLEAR
    (line,) = [line for line in view.suggestions if line.startswith("Pool")]
    cells = int(line.split("about ")[1].split(" ")[0])
    pooled = Schema(
        tuple(
            Column(f"c{i}", Kind.CATEGORICAL, categories=tuple(f"v{j}" for j in range(cells - 2)))
            for i in range(6)
        )
    )
    better = forecast(pooled, Roles(), Fraction(1, 2), expected_rows=5000)
    order = [Verdict.MOSTLY_NOISE, Verdict.COARSE, Verdict.CLEAR]
    assert order.index(better.verdict) > order.index(view.verdict)


@pytest.mark.parametrize("structure", ["mst", "privci", "prefair", "privci-exact"])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("rows", [1, 3])
def test_the_numbers_are_the_formulas(structure: str, relation: Relation, rows: int) -> None:
    roles = Roles({"c00": "S", "c01": "O"})  # no admissible column: one edge less
    split = (Fraction(1, 2), Fraction(1, 5), Fraction(3, 10))
    view = forecast(
        coins(9), roles, Fraction(2), structure=structure, split=split, relation=relation,
        unit=Unit(rows), expected_rows=1000,
    )  # fmt: skip
    edges = 8 if structure == "mst" else 7
    factor = (1 if relation is Relation.ADD_REMOVE else 2) * rows**2
    score = (1 if relation is Relation.ADD_REMOVE else 2) * rows
    assert view.rounds == edges
    assert view.one_way_sigma == pytest.approx(math.sqrt(9 * factor / (2 * 1.0)), rel=1e-3)
    assert view.two_way_sigma == pytest.approx(math.sqrt(edges * factor / (2 * 0.6)), rel=1e-3)
    if structure == "privci-exact":
        assert view.selection_epsilon is None
        assert view.selection_noise == pytest.approx(score * math.sqrt(35 / (2 * 0.4)), rel=1e-3)
    else:
        epsilon = math.sqrt(8 * 0.4 / edges)
        assert view.selection_epsilon == pytest.approx(epsilon, rel=1e-3)
        assert view.selection_noise == pytest.approx(2 * score / epsilon, rel=1e-3)
    noun = "persons" if rows == 1 else "rows"
    assert noun in view.sentences[1]  # after the warning about so high a price


def test_without_expected_rows_the_verdict_is_open() -> None:
    view = forecast(coins(4), Roles(), Fraction(1))
    assert view.verdict is Verdict.UNKNOWN
    assert view.one_way_persons is view.two_way_persons is view.visible_dependence is None
    assert view.suggestions == ()
    assert "expected number of rows" in view.sentences[-1]


def test_a_forecast_without_expected_rows_names_the_setting() -> None:
    assert "[population] expected_rows" in forecast(coins(4), Roles(), Fraction(1)).sentences[-1]


@pytest.mark.parametrize(
    ("rho", "flagged"), [("1/10", False), ("9/5", False), ("19/10", True), ("500", True)]
)
def test_an_absurd_price_is_flagged_however_clear_the_result(rho: str, flagged: bool) -> None:
    view = forecast(coins(4), Roles(), Fraction(rho), expected_rows=10_000)
    assert view.verdict is Verdict.CLEAR
    assert (view.flags == (NO_PROTECTION,)) == flagged
    assert view.sentences[0].startswith("No meaningful protection") == flagged
    # The rule: a guess that is right once in a hundred may be right more often than wrong.
    assert (guessing_bound(Fraction(rho), 0.01) > 0.5) == flagged


def test_no_advice_recommends_a_price_that_protects_nobody() -> None:
    view = forecast(coins(80), Roles(), Fraction(1, 10), expected_rows=20)
    assert view.verdict is Verdict.MOSTLY_NOISE
    assert "protects nobody" in view.suggestions[-1]
    assert "rho = " not in view.suggestions[-1]


def test_the_forecast_of_a_plan_begins_with_its_price() -> None:
    plan = Plan(
        PopulationPlan("people", Relation.REPLACE_ONE, delta=1e-6),
        coins(3),
        Roles(),
        TreePlan(Fraction(1, 10)),
    )
    price, guess, *rest = outlook_for(plan).sentences
    shown = f"{epsilon(Fraction(1, 10), 1e-6):.4g}"
    assert price == f"The price is rho = 0.1: epsilon = {shown} at delta = 1e-06."
    assert "at most 3.51 times in 100" in guess
    assert "another row in place of that person's" in guess
    assert (
        tuple(rest)
        == forecast(
            plan.schema, plan.roles, Fraction(1, 10), relation=Relation.REPLACE_ONE
        ).sentences
    )


def test_one_column_has_no_edges_to_speak_of() -> None:
    view = forecast(coins(1), Roles(), Fraction(1), expected_rows=100)
    assert view.rounds == 0
    assert view.two_way_sigma is view.selection_noise is view.selection_epsilon is None
    assert view.verdict is Verdict.CLEAR
    tiny = forecast(coins(1), Roles(), Fraction(1, 10**6), expected_rows=100)
    assert tiny.verdict is Verdict.MOSTLY_NOISE


def test_ignored_columns_do_not_count() -> None:
    roles = Roles({"c03": Role.IGNORE})
    assert forecast(coins(4), roles, Fraction(1)).columns == 3


def test_what_a_release_refuses_a_forecast_refuses() -> None:
    with pytest.raises(PlanError):
        forecast(coins(3), Roles(), Fraction(1), structure="star")
    with pytest.raises(BudgetError):
        forecast(coins(3), Roles(), Fraction(0))
    with pytest.raises(BudgetError):
        forecast(coins(3), Roles(), Fraction(1), split=(1, 1))
    with pytest.raises(RolesError):
        forecast(coins(3), Roles({"nobody": Role.OUTCOME}), Fraction(1))


@pytest.mark.parametrize("structure", ["privci", "privci-exact"])
def test_a_release_has_the_noise_that_was_forecast(structure: str) -> None:
    schema, roles = coins(6), Roles({"c00": "S", "c01": "O", "c02": "A"})
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 2, 400).astype(np.uint8) for name in schema.names}
    grant = simulated_vault(CodedTable(schema, codes, {}, 400), seed=0).grant(
        Fraction(1, 5), "tree", "id"
    )
    assert grant is not None
    release = release_tree(grant, schema, roles, structure=structure)
    view = forecast(schema, roles, Fraction(1, 5), structure=structure, expected_rows=400)
    assert release.one_way[0].sigma == pytest.approx(view.one_way_sigma, rel=1e-3)
    assert release.two_way[0].sigma == pytest.approx(view.two_way_sigma, rel=1e-3)
    if release.scores is not None:
        assert release.scores.sigma == pytest.approx(view.selection_noise, rel=1e-3)
    after = forecast_of(release)
    assert after.expected_rows == pytest.approx(400, abs=60)
    assert after.one_way_sigma == view.one_way_sigma
