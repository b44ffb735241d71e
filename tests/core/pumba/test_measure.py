"""The paid part of an analysis: draws, debits, cancels, and what the answers are of."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from core.errors import BudgetError, BudgetExceeded, Cancelled, PlanError, SchemaError
from core.private.noise import OpenDPNoise
from core.protocols import StatisticsGrant
from core.pumba.measure import release_statistics
from core.pumba.release import problems
from core.pumba.requests import AnalysisSpec, plan_request
from core.schema import Column, Kind, Schema
from core.statistics import Family, NoiseLaw, NoisyStatistic
from tests.core.private.grants import CountingSource
from tests.core.pumba.staff import ADD, REPLACE, SCHEMA, SPECS, grant_of, measured, staff
from tests.privacy.replay import make_grant

NAMES = sorted(SPECS)
FAMILY = NoisyStatistic(2000.0, NoiseLaw(Family.GAUSSIAN, 3.0))
SHARED = AnalysisSpec("mean", "age", outcome="age", rows="tree")


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", NAMES)
def test_draws_follow_the_plan_and_spend_the_budget(name, relation):
    grant: StatisticsGrant = grant_of(relation=relation)
    release = release_statistics(grant, SCHEMA, SPECS[name], expected_rows=500)
    where = release.provenance
    plan = plan_request(SPECS[name], SCHEMA, relation, where.unit, grant.rho, expected_rows=500)
    assert dict(release.split) == plan.split
    assert grant.rho * Fraction(999, 1000) <= grant.debited <= grant.rho
    assert where.debited == grant.debited
    answers = [*release.tables, *(moments for _, moments in release.sums)]
    assert len(answers) == len(plan.draws)
    for draw, answer in zip(plan.draws, answers, strict=True):
        assert draw.rho * Fraction(999, 1000) <= answer.rho <= draw.rho * (1 + Fraction(1, 10**9))
        sigma = answer.sigma if hasattr(answer, "sigma") else answer.sigmas[0]
        assert sigma == pytest.approx(draw.sigma, rel=1e-6)
    assert not release.partial


def test_the_last_draw_takes_exactly_what_is_left():
    class Purse:
        """Says what was asked for."""

        def __init__(self, grant):
            self.grant, self.asked = grant, []

        def __getattr__(self, name):
            return getattr(self.grant, name)

        def moments(self, request, rho):
            self.asked.append(rho)
            return self.grant.moments(request, rho)

    purse = Purse(grant_of(rho=Fraction(1, 7)))
    release_statistics(purse, SCHEMA, SPECS["regression"], split=(1, 3, 7))
    assert sum(purse.asked) == Fraction(1, 7)
    assert purse.asked[0] == Fraction(1, 77)


def test_with_the_real_noise():
    for relation in (ADD, REPLACE):
        grant = make_grant(staff(), OpenDPNoise(), relation=relation)
        release = release_statistics(grant, SCHEMA, SPECS["regression"])
        assert Fraction(999, 1000) <= grant.debited <= 1
        assert "OpenDP" in release.provenance.noise


# -- what is measured ----------------------------------------------------------------------


def complete_rows(table):
    frame = pd.DataFrame({**table.numbers, "job": table.codes["job"], "sex": table.codes["sex"]})
    return frame[frame["pay"].notna() & (frame["job"] < 3)]


PRECISE = {"rho": Fraction(10**6), "relation": ADD}


def test_sums_are_of_complete_rows_in_scaled_units():
    table = staff()
    found = measured(SPECS["regression"], table, **PRECISE).measured
    rows = complete_rows(table)
    pay, age = (rows["pay"] - 5) / 5, (rows["age"] - 40) / 20
    clerk = (rows["job"] == 0).astype(float)
    expected = {
        (): len(rows),
        ("pay",): pay.sum(),
        ("age", "pay"): (age * pay).sum(),
        ("job=clerk", "pay"): (clerk * pay).sum(),
        ("job=clerk", "sex=m"): (clerk * rows["sex"]).sum(),
        ("pay", "pay"): (pay**2).sum(),
    }
    for names, value in expected.items():
        assert found[names].value == pytest.approx(value, abs=0.01)
    assert ("job=clerk", "job=judge") not in found
    assert ("job=clerk", "job=clerk") not in found


def test_least_squares_from_the_sums_is_least_squares_on_the_rows():
    table = staff()
    (gram,) = problems(measured(SPECS["regression"], table, **PRECISE))
    assert gram.names == ("job=clerk", "job=judge", "age", "sex=m", "pay")
    size = len(gram.names)
    matrix = np.zeros((size + 1, size + 1))
    matrix[0, 0] = gram.count.value
    for place, first in enumerate(gram.variables, start=1):
        matrix[0, place] = gram.sums[first.name].value
        for other, second in enumerate(gram.variables, start=1):
            names = gram.names[min(place, other) - 1], gram.names[max(place, other) - 1]
            if names in gram.products:
                matrix[place, other] = gram.products[names].value
            elif first.name == second.name:
                matrix[place, other] = gram.sums[first.name].value
            else:
                assert first.exclusive == second.exclusive
    matrix[:, 0] = matrix[0]
    beta = np.linalg.solve(matrix[:size, :size], matrix[:size, size])
    rows = complete_rows(table)
    design = np.column_stack(
        [
            np.ones(len(rows)),
            rows["job"] == 0,
            rows["job"] == 2,
            (rows["age"] - 40) / 20,
            rows["sex"],
        ]
    ).astype(float)
    expected = np.linalg.lstsq(design, (rows["pay"] - 5) / 5, rcond=None)[0]
    np.testing.assert_allclose(beta, expected, atol=1e-4)


def test_means_by_group():
    table = staff()
    judges, clerks = problems(measured(SPECS["difference"], table, **PRECISE))
    rows = complete_rows(table)
    for problem, code, label in ((judges, 2, "job=judge"), (clerks, 0, "job=clerk")):
        pay = rows.loc[rows["job"] == code, "pay"]
        assert label in problem.name
        assert problem.count.value == len(pay)
        mean = problem.origin + problem.unit * problem.total.value / problem.count.value
        assert mean == pytest.approx(pay.mean(), abs=1e-4)
        assert problem.squares.value == pytest.approx((((pay - 5) / 5) ** 2).sum(), abs=0.01)
        assert problem.quartics.value == pytest.approx((((pay - 5) / 5) ** 4).sum(), abs=0.01)


def test_missing_pay_is_left_out_and_not_taken_for_the_middle():
    table = staff()
    (problem,) = problems(measured(SPECS["mean with gaps"], table, **PRECISE))
    pay = table.numbers["pay"]
    assert problem.count.value == np.isfinite(pay).sum() < table.rows
    mean = problem.origin + problem.unit * problem.total.value / problem.count.value
    assert mean == pytest.approx(np.nanmean(pay), abs=1e-4)
    assert abs(np.nan_to_num(pay, nan=5.0).mean() - np.nanmean(pay)) > 0.01


def test_the_noise_is_what_it_says():
    exact = measured(SPECS["correlation"], **PRECISE).measured
    scores = []
    for seed in range(150):
        found = measured(SPECS["correlation"], seed=seed, rho=Fraction(1, 100)).measured
        scores += [
            (found[names].value - exact[names].value) / found[names].law.scale for names in exact
        ]
    scores = np.array(scores)  # 900 independent standard normals
    assert abs(scores.mean()) < 5 / 30
    assert abs(scores.std() - 1) < 5 / 42


# -- the number of rows --------------------------------------------------------------------


def test_a_public_number_of_rows_costs_nothing():
    release = measured(SPECS["mean"], relation=REPLACE)
    assert release.public_rows == 2000
    assert () not in release.measured
    gaps = measured(SPECS["mean with gaps"], relation=REPLACE)
    assert gaps.public_rows is None
    assert gaps.measured[()].law.scale > 0
    assert measured(SPECS["table"], relation=REPLACE).public_rows == 2000
    assert measured(SPECS["table"]).public_rows is None
    groups = measured(SPECS["means by group"], relation=REPLACE)
    assert groups.public_rows is None


def test_the_row_count_of_a_tree_replaces_a_draw():
    release = measured(SHARED, row_count=FAMILY)
    assert release.shared_rows == FAMILY
    assert () not in release.measured
    (problem,) = problems(release)
    assert problem.count == FAMILY
    own = measured(SPECS["mean"])
    assert release.measured[("age",)].law.scale < own.measured[("age",)].law.scale
    public = measured(SHARED, relation=REPLACE, row_count=2000)
    assert (public.public_rows, public.shared_rows) == (2000, None)


@pytest.mark.parametrize(
    ("spec", "row_count", "words"),
    [
        (SHARED, None, "needs the noisy row count"),
        (SHARED, 2000, "needs the noisy row count"),
        (SPECS["mean"], FAMILY, "does not use"),
    ],
)
def test_row_counts_that_do_not_fit_cost_nothing(spec, row_count, words):
    grant = grant_of()
    with pytest.raises(PlanError, match=words):
        release_statistics(grant, SCHEMA, spec, row_count=row_count)
    assert grant.debited == 0


# -- refusals and cancels ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "settings", "error"),
    [
        (AnalysisSpec("mean", "x", outcome="job"), {}, SchemaError),
        (AnalysisSpec("mean", "x", outcome="nobody"), {}, SchemaError),
        (AnalysisSpec("mean", "x", outcome="zero"), {}, SchemaError),
        (SPECS["mean"], {"split": (1, 2)}, BudgetError),
    ],
)
def test_wrong_questions_cost_nothing(spec, settings, error, monkeypatch):
    schema = Schema((*SCHEMA.columns, Column("zero", Kind.INTEGER, lower=0, upper=0)))
    grant = grant_of()
    source = CountingSource(staff())
    monkeypatch.setattr(grant, "_open", lambda: source)
    with pytest.raises(error):
        release_statistics(grant, schema, spec, **settings)
    assert (grant.debited, source.accesses) == (0, 0)


def stop_at(place):
    events = []

    def progress(stage, done, total, detail):
        events.append((stage, done, total, detail))
        if done == place:
            raise Cancelled("stop")

    return progress, events


def test_progress_names_the_next_draw():
    progress, events = stop_at(None)
    measured(SPECS["regression"], progress=progress)
    assert events == [
        ("statistics", 0, 3, "count"),
        ("statistics", 1, 3, "sums"),
        ("statistics", 2, 3, "products"),
        ("statistics", 3, 3, None),
    ]


def test_a_cancel_before_the_first_draw_keeps_nothing():
    grant = grant_of()
    with pytest.raises(Cancelled):
        release_statistics(grant, SCHEMA, SPECS["regression"], progress=stop_at(0)[0])
    assert grant.debited == 0


@pytest.mark.parametrize("name", ["regression", "mean with gaps", "robust", "difference"])
def test_a_cancel_keeps_what_was_measured(name):
    whole = measured(SPECS[name])
    for place in range(1, len(whole.split)):
        grant = grant_of()
        release = release_statistics(grant, SCHEMA, SPECS[name], progress=stop_at(place)[0])
        assert release.partial
        assert len(release.sums) == place
        assert 0 < grant.debited < grant.rho
        assert release.provenance.forfeited == grant.rho - grant.debited
    last = measured(SPECS[name], progress=stop_at(len(whole.split))[0])
    assert not last.partial


def test_an_empty_purse_refuses():
    grant = grant_of()
    grant.row_count(grant.rho / 2)
    with pytest.raises(BudgetExceeded):
        release_statistics(grant, SCHEMA, SPECS["table"])
