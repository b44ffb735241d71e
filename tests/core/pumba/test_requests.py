"""Questions, and the statistics, splits and predictions that are planned for them."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError, PlanError, SchemaError
from core.moments import MomentFrame
from core.pumba import requests
from core.pumba.layouts import layouts
from core.pumba.requests import AnalysisSpec, plan_request
from core.pumba.working_model import targets
from core.releases import Unit
from core.schema import Column, Kind, Schema
from tests.core.pumba.staff import ADD, REPLACE, SCHEMA, SPECS

RHO = Fraction(1, 10)
NAMES = sorted(SPECS)


def planned(spec, relation=ADD, rho=RHO, schema=SCHEMA, unit=None, **settings_):
    return plan_request(spec, schema, relation, unit or Unit(), rho, **settings_)


# -- questions -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_questions_survive_their_plain_form(name):
    spec = SPECS[name]
    plain = json.loads(json.dumps(spec.to_dict()))
    assert AnalysisSpec.from_dict(plain) == spec
    assert set(spec.columns) <= set(SCHEMA.names)


def test_plain_form_holds_only_what_was_set():
    assert SPECS["mean"].to_dict() == {"kind": "mean", "name": "age", "outcome": "age"}
    assert SPECS["regression"].to_dict()["reference"] == {"job": "cook"}


WRONG = {
    "kind": ({"kind": "median"}, "is one of"),
    "name": ({"name": " "}, "needs a name"),
    "no outcome": ({"outcome": None}, "needs outcome"),
    "strange setting": ({"predictors": ["age"]}, "no meaning for a mean"),
    "variables": ({"kind": "table", "outcome": None}, "needs variables"),
    "text for a list": ({"kind": "table", "outcome": None, "variables": "age"}, "list of texts"),
    "numbers in a list": ({"kind": "table", "outcome": None, "variables": [1]}, "list of texts"),
    "three columns": (
        {"kind": "table", "outcome": None, "variables": ["age", "pay", "job"]},
        "one or two",
    ),
    "twice": ({"kind": "table", "outcome": None, "variables": ["age", "age"]}, "twice"),
    "itself": ({"kind": "regression", "predictors": ["pay"]}, "named twice"),
    "alone": ({"kind": "correlation", "outcome": None, "variables": ["age"]}, "at least two"),
    "one group": ({"kind": "difference", "by": "sex", "groups": ["f"]}, "two groups"),
    "groups of nothing": ({"groups": ["f"]}, "give it as well"),
    "moments": ({"moments": 3}, "2 or 4"),
    "moments true": ({"moments": True}, "2 or 4"),
    "robust": ({"kind": "regression", "predictors": ["age"], "robust": 1}, "true or false"),
    "robust for two": (
        {"kind": "regression", "predictors": ["age", "job"], "robust": True},
        "one predictor",
    ),
    "rows": ({"rows": "mine"}, "'own' or 'tree'"),
    "rows of groups": ({"rows": "tree", "by": "sex"}, "counted on their own"),
    "reference": (
        {"kind": "regression", "predictors": ["age"], "reference": {"job": "cook"}},
        "no predictor",
    ),
    "reference list": (
        {"kind": "regression", "predictors": ["job"], "reference": 5},
        "one category",
    ),
    "column of a wrong type": ({"outcome": 5}, "name of a column"),
    "unknown setting": ({"colour": "red"}, "unknown setting"),
}


@pytest.mark.parametrize("name", WRONG)
def test_questions_that_cannot_be_meant(name):
    change, words = WRONG[name]
    with pytest.raises(PlanError, match=words):
        AnalysisSpec.from_dict({"kind": "mean", "name": "x", "outcome": "pay", **change})


@pytest.mark.parametrize("plain", [None, [], {"kind": "mean"}, {"name": "x"}])
def test_what_is_no_question(plain):
    with pytest.raises(PlanError):
        AnalysisSpec.from_dict(plain)


MISFITS = {
    "unknown": ({"outcome": "agee"}, SchemaError, "agee"),
    "identifier": ({"outcome": "id"}, SchemaError, "no analysis"),
    "labels": ({"outcome": "job"}, SchemaError, "numbers or dates"),
    "groups": ({"by": "job", "groups": ("clerk", "king")}, SchemaError, "'king'"),
    "the missing cell as a group": (
        {"by": "job", "groups": ("clerk", "(missing)")},
        SchemaError,
        "declared cells",
    ),
    "reference": (
        {"kind": "regression", "predictors": ("job",), "reference": {"job": "king"}},
        SchemaError,
        "'king'",
    ),
    "reference of a number": (
        {"kind": "regression", "predictors": ("age",), "reference": {"age": "30"}},
        PlanError,
        "numeric",
    ),
    "robust on labels": (
        {"kind": "regression", "predictors": ("job",), "robust": True},
        PlanError,
        "numeric predictor",
    ),
    "rows of the tree": ({"rows": "tree"}, PlanError, "may miss"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_questions_that_do_not_fit_the_declarations(name):
    change, error, words = MISFITS[name]
    spec = AnalysisSpec(**{"kind": "mean", "name": "x", "outcome": "pay", **change})
    with pytest.raises(error, match=words):
        planned(spec)


def test_bounds_that_hold_one_value_are_refused_before_any_charge():
    schema = Schema((Column("zero", Kind.INTEGER, lower=0, upper=0), *SCHEMA.columns))
    for spec in (
        AnalysisSpec("mean", "x", outcome="zero"),
        AnalysisSpec("regression", "x", outcome="pay", predictors=("zero",)),
        AnalysisSpec("correlation", "x", variables=("zero", "pay")),
    ):
        with pytest.raises(SchemaError, match="'zero': lower must be below upper"):
            planned(spec, schema=schema)


def test_huge_tables_and_too_many_categories_are_refused():
    labels = tuple(str(index) for index in range(4000))
    schema = Schema(
        (
            Column("a", Kind.CATEGORICAL, categories=labels),
            Column("b", Kind.CATEGORICAL, categories=labels),
            Column("y", Kind.REAL, lower=0, upper=1),
        )
    )
    for spec, words in (
        (AnalysisSpec("table", "x", variables=("a", "b")), "cells"),
        (AnalysisSpec("regression", "x", outcome="y", predictors=("a",)), "indicators"),
        (AnalysisSpec("difference", "x", outcome="y", by="a"), "declared cells"),
    ):
        with pytest.raises((PlanError, SchemaError), match=words):
            planned(spec, schema=schema)


def test_a_column_called_like_an_indicator():
    schema = Schema((Column("job=cook", Kind.REAL, lower=0, upper=1), *SCHEMA.columns))
    spec = AnalysisSpec("regression", "x", outcome="pay", predictors=("job=cook", "job"))
    with pytest.raises(PlanError, match="rename"):
        planned(spec, schema=schema)


# -- plans ---------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", NAMES)
def test_shares_are_fractions_that_sum_to_the_budget(name, relation):
    found = planned(SPECS[name], relation)
    assert sum(found.split.values()) == 1
    assert sum(draw.rho for draw in found.draws) == RHO
    assert all(share >= Fraction(1, 100) for share in found.split.values())
    assert len(found.sentences) > len(found.draws)
    assert "id" not in found.schema
    for draw in found.draws:
        cost = draw.sensitivity**2 / (2 * draw.sigma**2)
        assert cost == pytest.approx(float(draw.rho), rel=1e-6)


def test_noise_is_shown_in_the_columns_own_units():
    found = planned(SPECS["regression"])
    sums = next(draw for draw in found.draws if draw.name == "sums")
    assert dict(sums.statistics) == {
        "sum of age": pytest.approx(20 * sums.sigma),
        "sum of pay": pytest.approx(5 * sums.sigma),
        "sum of job=clerk": sums.sigma,
        "sum of job=judge": sums.sigma,
        "sum of sex=m": sums.sigma,
    }
    products = dict(next(d for d in found.draws if d.name == "products").statistics)
    assert products["sum of age × pay"] == pytest.approx(20 * products["sum of job=clerk × pay"])
    assert "sum of job=clerk × job=judge" not in products


def test_the_count_is_paid_for_only_where_it_is_private():
    assert "count" in planned(SPECS["mean"]).split
    assert planned(SPECS["mean"], REPLACE).draws[0].statistics[0][0] != "rows"
    assert planned(SPECS["mean"], REPLACE).count_known
    gaps = planned(SPECS["mean with gaps"], REPLACE)
    assert not gaps.count_known
    assert gaps.draws[0].statistics[0][0] == "rows"
    shared = AnalysisSpec("mean", "x", outcome="age", rows="tree")
    assert "count" not in planned(shared).split


def test_sums_of_mixed_degree_are_drawn_together_only_where_that_is_cheaper():
    assert set(planned(SPECS["mean"]).split) == {"count", "sums", "products"}
    assert set(planned(SPECS["mean"], REPLACE).split) == {"joint"}
    joint = planned(SPECS["mean"], REPLACE).predictions[0]
    apart = planned(SPECS["mean"], REPLACE, split={"sums": 2, "products": 1}).predictions[0]
    assert joint.noise_half_width < apart.noise_half_width


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", ["mean with gaps", "regression", "difference", "correlation"])
def test_the_split_beats_every_split_on_a_grid(name, relation):
    """Oracle: brute force over all shares in steps of 1/20."""
    spec, rows = SPECS[name], 1000
    found = planned(spec, relation, expected_rows=rows)
    frame = spec.frame(found.schema)
    answers = targets(spec, frame, rows)
    price = requests._Price(found.schema, relation, Unit(), RHO)
    chosen = grid = np.inf
    for layout in layouts(spec, frame, relation, count_known=found.count_known):
        costs = requests._costs(layout, answers, price)
        if layout.names == tuple(found.split):
            shares = np.array([float(share) for share in found.split.values()])
            chosen = requests._loss(costs, answers, shares)
        for steps in itertools.product(range(1, 20), repeat=len(layout.names) - 1):
            if sum(steps) < 20:
                shares = np.array([*steps, 20 - sum(steps)]) / 20
                grid = min(grid, requests._loss(costs, answers, shares))
    assert chosen <= grid + 1e-4


def test_more_rows_move_the_split_but_not_the_draws():
    few, many = (planned(SPECS["mean"], expected_rows=rows) for rows in (30, 10**6))
    assert few.split.keys() == many.split.keys()
    assert few.split != many.split
    assert planned(SPECS["mean"]).assumed
    assert not few.assumed


@pytest.mark.parametrize(
    "split", [{"count": 1, "sums": "0.3", "products": 0.2}, (1, "0.3", 0.2), [10, 3, 2]]
)
def test_given_splits_are_kept_exactly(split):
    found = planned(SPECS["mean"], split=split)
    assert found.split == {
        "count": Fraction(2, 3),
        "sums": Fraction(1, 5),
        "products": Fraction(2, 15),
    }


@pytest.mark.parametrize(
    "split",
    [
        {"count": 1},
        (1, 2),
        (1, 2, 0),
        (1, 2, -1),
        (1, 2, "x"),
        (1, 2, float("nan")),
        {"count": 1, "sums": 1, "cubes": 1},
    ],
)
def test_splits_that_do_not_fit(split):
    with pytest.raises(BudgetError, match="split"):
        planned(SPECS["mean"], split=split)
    with pytest.raises(BudgetError, match="split"):
        planned(SPECS["table"], split=split)


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), 0.5, None])
def test_budgets_that_are_none(rho):
    for name in ("mean", "table"):
        with pytest.raises(BudgetError):
            planned(SPECS[name], rho=rho)


def test_units_of_several_rows_scale_the_noise():
    one, many = (planned(SPECS["regression"], unit=Unit(rows)) for rows in (1, 3))
    for first, second in zip(one.draws, many.draws, strict=True):
        assert second.sensitivity == pytest.approx(3 * first.sensitivity)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_question_is_planned_whatever_the_budget(data):
    name = data.draw(st.sampled_from(NAMES))
    relation = data.draw(st.sampled_from([ADD, REPLACE]))
    rho = data.draw(st.fractions(Fraction(1, 10**6), 100, max_denominator=10**6))
    rows = data.draw(st.integers(1, 10**9))
    found = planned(SPECS[name], relation, rho, expected_rows=rows)
    assert sum(found.split.values()) == 1
    for prediction in found.predictions:
        assert 0 <= prediction.noise_half_width <= prediction.half_width < np.inf


# -- predictions against simulation --------------------------------------------------------


def even_rows(rows, columns, generator):
    """Scaled numbers as the working model has them: mean square 1/3, mean off the middle."""
    mean, sd = 1 / 12**0.5, (1 / 3 - 1 / 12) ** 0.5
    return mean + sd * generator.choice([-1.0, 1.0], (rows, columns))


def test_the_predicted_noise_of_a_slope_is_that_of_noisy_normal_equations():
    """First-order noise of least squares from noisy sums, by simulation."""
    generator = np.random.default_rng(0)
    rows, runs = 20_000, 3000
    x = even_rows(rows, 2, generator)
    slopes = np.array([0.5, -0.5]) * 0.5**0.5
    residual = generator.normal(scale=(0.125) ** 0.5, size=rows)
    y = 1 / 12**0.5 + (x - x.mean(axis=0)) @ slopes + residual - residual.mean()
    z = np.column_stack([np.ones(rows), x, y])
    gram = z.T @ z
    spec = AnalysisSpec("regression", "r", outcome="y", predictors=("u", "v"))
    schema = Schema(tuple(Column(name, Kind.REAL, lower=-1, upper=1) for name in "uvy"))
    found = planned(spec, schema=schema, rho=Fraction(1, 2), expected_rows=rows)
    names = ("", "u", "v", "y")
    noise = np.zeros((runs, 4, 4))
    for draw in found.draws:
        for monomial in draw.request.monomials:
            places = sorted(names.index(name) for name in ("", "", *monomial)[-2:])
            noise[:, places[0], places[1]] = generator.normal(scale=draw.sigma, size=runs)
    upper = np.triu(np.ones((4, 4)), 1) * noise
    noisy = gram + upper + upper.transpose(0, 2, 1) + noise * np.eye(4)
    beta = np.linalg.solve(noisy[:, :3, :3], noisy[:, :3, 3:])[:, 1:, 0]
    for place in (0, 1):
        assert found.predictions[place].noise_half_width == pytest.approx(
            1.96 * beta[:, place].std(), rel=0.35
        )


def test_the_predicted_noise_of_a_mean_is_that_of_a_ratio():
    generator = np.random.default_rng(1)
    found = planned(SPECS["mean"], expected_rows=5000)
    sigmas = {draw.name: draw.sigma for draw in found.draws}
    total = 5000 / 12**0.5 + generator.normal(scale=sigmas["sums"], size=20_000)
    count = 5000 + generator.normal(scale=sigmas["count"], size=20_000)
    assert found.predictions[0].noise_half_width == pytest.approx(
        1.96 * 20 * (total / count).std(), rel=0.03
    )


def test_the_predicted_noise_of_a_correlation_and_a_standard_deviation():
    generator = np.random.default_rng(2)
    rows, runs = 50_000, 20_000
    mean, square = 1 / 12**0.5, 1 / 3
    found = planned(SPECS["correlation"], expected_rows=rows)
    sigma = {draw.name: draw.sigma for draw in found.draws}

    def noisy(value, name):
        return value + generator.normal(scale=sigma[name], size=runs)

    n = noisy(rows, "count")
    sums = [noisy(sign * mean * rows, "sums") / n for sign in (1, -1)]
    squares = [noisy(square * rows, "products") / n for _ in range(2)]
    product = noisy((0.5 * (square - mean**2) - mean**2) * rows, "products") / n
    spreads = [b - a**2 for a, b in zip(sums, squares, strict=True)]
    correlation = (product - sums[0] * sums[1]) / np.sqrt(spreads[0] * spreads[1])
    assert found.predictions[0].noise_half_width == pytest.approx(
        1.96 * correlation.std(), rel=0.25
    )
    found = planned(SPECS["mean"], expected_rows=rows)
    sigma = {draw.name: draw.sigma for draw in found.draws}
    n = noisy(rows, "count")
    spread = noisy(square * rows, "products") / n - (noisy(mean * rows, "sums") / n) ** 2
    assert found.predictions[1].noise_half_width == pytest.approx(
        1.96 * 20 * np.sqrt(spread).std(), rel=0.05
    )


def test_planning_reads_declarations_only():
    """The same plan for any table: there is nothing but declarations to read."""
    again = plan_request(SPECS["regression"], Schema.from_dict(SCHEMA.to_dict()), ADD, Unit(), RHO)
    assert again == planned(SPECS["regression"])
    assert isinstance(again.draws[0].request.frame, MomentFrame)
