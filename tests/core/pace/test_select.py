"""The paid loop: privacy by record and replay, exact debits, and what it selects."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from core.errors import BudgetError, Cancelled, PlanError, SchemaError
from core.pace import paid, rounds
from core.pace.estimate import estimate
from core.pace.release import METHODS, CovarianceRelease
from core.pace.select import release_covariance
from core.private import moments as moments_module
from core.private import sensitivity
from core.private.noise import OpenDPNoise
from core.releases import Unit
from core.schema import Column, Kind, Schema
from core.simulation import SeededNoise
from tests.core.pace.tables import ADD, BOTH, REPLACE, correlated, names_of, released, zero_means
from tests.privacy import scripts
from tests.privacy.replay import (
    Violation,
    check_neighbours,
    make_grant,
    neighbour_plan,
    neighbouring_rows,
)

COLUMNS = list(scripts.NUMERIC)


def covariance(method="pace", **settings):
    def run(grant):
        release = release_covariance(grant, scripts.SCHEMA, COLUMNS, method=method, **settings)
        assert isinstance(release, CovarianceRelease)
        return release

    return run


def pairs(relation, count, seed=0, unit_rows=1):
    generator = np.random.default_rng(seed)
    for index, rows, kind in neighbour_plan(count, relation):
        base, other = neighbouring_rows(
            generator, scripts.draw_row, rows=rows, kind=kind, unit_rows=unit_rows
        )
        yield index, scripts.table_of(base), scripts.table_of(other)


# -- privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("method", METHODS)
def test_releases_of_neighbours_differ_by_what_was_declared(method, relation):
    worst = Fraction(0)
    for index, table, neighbour in pairs(relation, 20, METHODS.index(method)):
        ratios = check_neighbours(
            covariance(method),
            table,
            neighbour,
            seed=index,
            relation=relation,
            rho=(Fraction(1, 1000), Fraction(1, 2), Fraction(10))[index % 3],
        )
        worst = max(worst, *ratios)
    assert worst > Fraction(1, 3)


@pytest.mark.parametrize("settings", [{"means": {"age": 30.0, "pay": 0.0, "since": 737500.0}},
                                      {"half_widths": {"age": 5.0, "pay": 20.0}}])  # fmt: skip
def test_public_means_and_widths_keep_the_promise(settings):
    for index, table, neighbour in pairs(ADD, 30, 5):
        check_neighbours(covariance("pace", **settings), table, neighbour, seed=index)


def test_persons_with_several_rows():
    for index, table, neighbour in pairs(ADD, 30, 6, unit_rows=3):
        check_neighbours(covariance("pace_auto"), table, neighbour, seed=index, unit=Unit(3))


def test_the_real_noise_keeps_the_promise_too():
    for index, table, neighbour in pairs(ADD, 6, 7):
        check_neighbours(covariance("pace"), table, neighbour, seed=index, noise=OpenDPNoise())


# -- planted faults: each makes the replay fail ---------------------------------------------


def check_all(method, relation, count, noise=None):
    for index, table, neighbour in pairs(relation, count, 8):
        check_neighbours(
            covariance(method),
            table,
            neighbour,
            seed=index,
            relation=relation,
            rho=Fraction(20),
            noise=None if noise is None else noise(index),
        )


def refuted(method="pace", relation=ADD, noise=None):
    with pytest.raises(Violation):
        check_all(method, relation, 40, noise)


def exact_rows(grant):
    return grant._Grant__slot.get()


def test_a_reference_from_the_data_is_caught(monkeypatch):
    honest = paid.PaidRun.select

    def peeking(self, matrix, rho):
        exact = exact_rows(self.grant).gram(self.box) / 2.0**24
        return honest(self, -2 * exact / self.rows, rho)

    monkeypatch.setattr(paid.PaidRun, "select", peeking)
    refuted()


def test_an_exact_row_count_is_caught(monkeypatch):
    monkeypatch.setattr(
        paid.PaidRun, "rows", property(lambda self: float(exact_rows(self.grant).row_count() + 1))
    )
    refuted()


def test_means_from_the_data_are_caught(monkeypatch):
    honest = paid.measure_means

    def peeking(grant, schema, rows, rho):
        means = honest(grant, schema, rows, rho)
        exact = exact_rows(grant).row_count()
        return replace(means, values=means.values + exact)

    monkeypatch.setattr(paid, "measure_means", peeking)
    refuted()


def test_forgetting_to_clip_is_caught(monkeypatch):
    monkeypatch.setattr(
        moments_module,
        "to_grid",
        lambda scaled, grid: np.trunc(np.clip(np.nan_to_num(scaled), -3, 3) * grid),
    )
    refuted()


def test_a_missing_factor_of_two_in_the_scores_is_caught(monkeypatch):
    monkeypatch.setattr(sensitivity, "entry_score", lambda relation, rows=1: rows)
    refuted(relation=REPLACE)


def test_an_edge_measured_at_the_price_of_a_square_is_caught(monkeypatch):
    monkeypatch.setattr(
        sensitivity, "moment_vector", lambda monomials, *rest, **named: Fraction(len(monomials), 2)
    )
    refuted()


def test_a_stopping_rule_that_reads_the_data_is_caught(monkeypatch):
    honest = rounds.one_round

    def peeking(run, *rest):
        found = honest(run, *rest)
        return found if exact_rows(run.grant).row_count() % 2 else (0.0, 1.0)

    monkeypatch.setattr(rounds, "one_round", peeking)
    refuted()


def test_halved_noise_is_caught():
    class HalfSigma(SeededNoise):
        def gaussian(self, values, *, sensitivity_squared, rho):
            honest = super().gaussian(values, sensitivity_squared=sensitivity_squared, rho=rho)
            return replace(honest, sigma=honest.sigma / 2)

    refuted(noise=HalfSigma)


# -- debits --------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rho", ["1/1000000", "1/3", "1000000000"])
def test_every_part_of_the_budget_is_accounted_for(method, relation, rho):
    release = released(correlated(300, 5, 1), rho, method=method, relation=relation)
    parts = [release.rows.rho, release.means.rho, *(draw.rho for draw in release.draws)]
    parts += [step.selection_rho for step in release.rounds]
    parts += [release.clip.rho] if release.clip is not None else []
    where = release.provenance
    assert sum(parts) == where.debited <= where.rho == Fraction(rho)
    if method == "ssp":
        # The looser analysis of plain noise pays for what the triangle does not need.
        moments = where.rho - release.rows.rho
        share = Fraction(1, 2) if relation is REPLACE else Fraction(5 * 6, 2 * 25)
        if relation is REPLACE:
            share = Fraction(25, 2 * 25)
        assert where.debited - release.rows.rho <= moments * share
        assert where.debited - release.rows.rho >= moments * share * Fraction(999, 1000)
    else:
        assert where.debited >= where.rho * Fraction(999, 1000)


def test_private_means_and_the_count_have_their_shares():
    release = released(correlated(200, 4, 2), "1", means="private", mean_share=Fraction(1, 5))
    assert Fraction(199, 1000) <= release.means.rho <= Fraction(1, 5)
    assert Fraction(99, 10000) <= release.rows.rho <= Fraction(1, 100)
    public = released(correlated(200, 4, 2), "1", relation=REPLACE)
    assert (public.rows.rho, public.rows.public, public.rows.value) == (0, True, 200.0)
    assert (public.means.rho, public.means.public) == (0, True)


# -- what the loop does --------------------------------------------------------------------


def test_it_finds_the_edges_that_stand_out_and_stops_there():
    values = correlated(4000, 12, 3)
    release = released(values, "2", method="pace", relation=REPLACE, seed=4)
    chain = {tuple(names_of(12)[i : i + 2]) for i in range(11)}
    chosen = [step.chosen for step in release.rounds]
    assert chain <= set(chosen)
    assert set(chosen[:8]) <= chain
    # Annealing: later rounds are dearer, and their noise is smaller.
    assert release.rounds[-1].sigma < release.rounds[0].sigma / 2


def test_the_first_draw_is_the_diagonal_and_each_round_one_entry():
    release = released(correlated(500, 6, 4), "1/10", method="pace")
    assert [draw.stage for draw in release.draws] == ["diagonal", *["round"] * len(release.rounds)]
    for step in release.rounds:
        draw = release.draws[step.draw]
        (a, b) = release.pairs[draw.start]
        assert (release.columns[a], release.columns[b]) == step.chosen
        assert draw.stop == draw.start + 1
        assert step.measured == release.sums[draw.start] / release.rows.value


def test_squares_ride_free_where_rows_are_replaced():
    values = np.sign(correlated(3000, 50, 5))
    release = released(values, "1/30", relation=REPLACE, seed=1)
    assert release.route == "rounds"
    riding = [draw for draw in release.draws if draw.stage == "round"]
    assert {draw.stop - draw.start for draw in riding} <= {1, 3}
    assert any(draw.stop - draw.start == 3 for draw in riding)
    alone = released(values, "1/30", relation=ADD, seed=1)
    assert alone.route == "rounds"
    assert all(draw.stop - draw.start == 1 for draw in alone.draws if draw.stage == "round")


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bytes(method):
    once, twice = (
        released(correlated(200, 4, 6), "1/2", method=method, seed=3).to_bytes() for _ in range(2)
    )
    assert once == twice


# -- progress and cancel -------------------------------------------------------------------


def test_progress_tells_every_round():
    seen = []
    release = released(
        correlated(300, 5, 7), "1/10", method="pace", progress=lambda *call: seen.append(call)
    )
    assert [call[0] for call in seen[:3]] == ["means", "means", "diagonal"]
    told = [call[3] for call in seen if call[0] == "rounds"]
    assert tuple(told) == release.rounds
    assert all(0 <= done <= total for _, done, total, _ in seen)


def cancelling(after):
    calls = []

    def progress(*call):
        calls.append(call)
        if len(calls) > after:
            raise Cancelled("enough")

    return progress


def test_a_cancel_before_anything_was_paid_is_a_cancel():
    with pytest.raises(Cancelled):
        released(correlated(50, 3, 8), "1", progress=cancelling(0))


@pytest.mark.parametrize("method", METHODS)
def test_a_cancel_keeps_what_was_paid(method):
    values = correlated(50, 3, 8)
    kept = released(values, "1", method=method, progress=cancelling(2))
    assert kept.partial
    assert kept.provenance.debited <= kept.provenance.rho
    assert CovarianceRelease.from_bytes(kept.to_bytes()).to_bytes() == kept.to_bytes()
    assert np.isfinite(estimate(kept).covariance).all()


def test_a_cancel_in_the_rounds_forfeits_the_rest():
    kept = released(correlated(400, 6, 9), "1", method="pace", progress=cancelling(5))
    assert (kept.partial, len(kept.rounds)) == (True, 3)
    assert kept.provenance.forfeited > Fraction(2, 5)
    assert estimate(kept).measured.sum() <= 6 + 2 * 3


# -- refusals ------------------------------------------------------------------------------


def refusals():
    zero = zero_means(3)
    return {
        "method": ({"method": "magic"}, PlanError, "unknown method"),
        "word": ({"means": "public"}, PlanError, "neither"),
        "lacks": ({"means": {"x00": 0.0}}, PlanError, "lacks 'x01'"),
        "stranger": ({"means": {**zero, "q": 0.0}}, PlanError, "names 'q'"),
        "outside": ({"means": {**zero, "x00": 3.0}}, PlanError, "bounds"),
        "nan": ({"means": {**zero, "x00": float("nan")}}, PlanError, "bounds"),
        "width": ({"half_widths": {"x00": 0.0}}, PlanError, "half-width"),
        "width of a stranger": ({"half_widths": {"q": 1.0}}, PlanError, "'q'"),
        "no means": ({"mean_share": Fraction(0)}, BudgetError, "mean_share"),
        "all means": ({"mean_share": Fraction(99, 100)}, BudgetError, "mean_share"),
    }


@pytest.mark.parametrize("name", sorted(refusals()))
def test_wrong_questions_cost_nothing(name):
    settings, kind, words = refusals()[name]
    with pytest.raises(kind, match=words):
        released(correlated(20, 3, 0), "1", **settings)


@pytest.mark.parametrize(
    ("columns", "words"),
    [([], "at least one"), (["age", "age"], "twice"), (["nobody"], "nobody"), (["job"], "needs")],
)
def test_wrong_columns_cost_nothing(columns, words):
    table = scripts.table_of([])
    grant = make_grant(table, SeededNoise(0))
    with pytest.raises(SchemaError, match=words):
        release_covariance(grant, scripts.SCHEMA, columns)
    assert grant.debited == 0


def test_a_column_of_one_declared_value():
    schema = Schema(
        (
            Column("one", Kind.INTEGER, lower=7, upper=7),
            Column("x", Kind.REAL, lower=-1, upper=1, bins=2),
        )
    )
    from core.private.table import CodedTable

    rows = 40
    table = CodedTable(
        schema,
        {name: np.zeros(rows, dtype=np.uint8) for name in ("one", "x")},
        {"one": np.full(rows, 7.0), "x": np.linspace(-1, 1, rows)},
        rows,
    )
    release = release_covariance(make_grant(table, SeededNoise(0)), schema, ["x", "one"])
    found = estimate(release)
    assert found.columns == ("one", "x")
    assert np.isfinite(found.correlation).all()
