"""The page Posterior: one's own data for a price, published numbers for nothing."""

from __future__ import annotations

import csv
import io
from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from core.pumba.release import StatisticsRelease
from core.pumba.specification import AnalysisKind
from pages.shared import answers, house, jobs
from pages.shared.project import KEY
from pages.shared.published_answers import EXAMPLE
from tests.app.conftest import Held, cancel_button, go
from tests.app.test_journey import made, rows, start, words


def declared(app: AppTest) -> AppTest:
    start(app)
    go(app, "data")
    app.checkbox(key="public_domain").check().run()
    app.button(key="confirm_schema").click().run()
    return go(app, "posterior")


def ask(app: AppTest, kind: AnalysisKind) -> AppTest:
    app.selectbox(key="question_kind").set_value(kind).run()
    assert not app.exception
    return app


def pay(app: AppTest) -> AppTest:
    app.button(key="release_posterior").click().run()
    assert not app.exception
    return app


def test_without_a_schema_the_page_says_what_is_missing_and_keeps_the_free_doors(app):
    app.run()
    go(app, "posterior")
    assert "There is no table yet" in words(app)
    app.segmented_control(key="posterior_door").set_value("published").run()
    assert "costs nothing" in words(app)


def test_a_mean_is_asked_priced_paid_once_and_answered(app):
    declared(app)
    assert "What it buys" in words(app)
    assert not rows()
    pay(app)
    (spend,) = rows()
    assert spend.what == "posterior"
    assert spend.rho == Fraction(1, 10)
    project = app.session_state[KEY]
    release = project.released(project.runs_of("posterior")[-1])
    assert isinstance(release, StatisticsRelease)
    text = words(app)
    assert "interval:" in text
    assert "privacy noise" in text
    app.run()
    assert len(rows()) == 1
    assert "paid for already" in words(app)


def test_changing_the_view_spends_nothing_and_is_kept(app):
    declared(app)
    pay(app)
    project = app.session_state[KEY]
    (run,) = project.runs_of("posterior")
    app.slider(key=f"level_{run.request_id}").set_value(0.8).run()
    assert not app.exception
    assert "80% interval" in words(app)
    assert project.views[run.request_id]["level"] == pytest.approx(0.8)
    assert len(rows()) == 1


def test_a_cancelled_posterior_stays_cancelled_until_it_is_begun_again(app, monkeypatch):
    monkeypatch.setattr(answers, "PATIENCE", 0.0)
    held = Held()
    jobs.use_executor(held)
    declared(app)
    pay(app)
    held.release()  # measures
    app.run()
    cancel_button(app).click().run()
    for _ in range(2):
        assert not app.exception
        assert "Cancelled" in words(app)
        assert "interval:" not in words(app)
        app.run()
    assert len(held.waiting) == 1, "only what was cancelled"
    (again,) = [button for button in app.button if button.label == "Begin again"]
    again.click().run()
    held.release()
    app.run()
    assert "interval:" in words(app)
    assert len(rows()) == 1


def test_a_second_purchase_needs_a_tick(app):
    declared(app)
    pay(app)
    (run,) = app.session_state[KEY].runs_of("posterior")
    app.checkbox(key=f"question_again_{run.request_id}").check().run()
    pay(app)
    assert len(rows()) == 2
    assert len(app.session_state[KEY].runs_of("posterior")) == 2


@pytest.mark.parametrize("kind", list(AnalysisKind))
def test_every_kind_of_question_can_be_asked_and_answered(app, kind):
    declared(app)
    ask(app, kind)
    if kind in {AnalysisKind.TABLE, AnalysisKind.CORRELATION}:
        picker = app.multiselect(key=f"question_{kind.value}")
        picker.set_value(picker.options[:2]).run()
    if kind is AnalysisKind.REGRESSION:
        picker = app.multiselect(key="question_predictors")
        picker.set_value(picker.options[:2]).run()
    assert not app.exception
    pay(app)
    assert len(rows()) == 1
    assert "interval:" in words(app), words(app)
    go(app, "release")
    assert "statement" in words(app).lower()


def test_a_bundle_holds_the_tree_and_the_analysis(app):
    made(app)
    go(app, "posterior")
    pay(app)
    go(app, "release")
    assert not app.exception
    project = app.session_state[KEY]
    (bundle,) = project.derived.values()
    wanted = {"synthetic.csv", "posterior.csv", "statistics-1.npz", "release.npz"}
    assert wanted <= set(bundle.files)
    table = list(csv.DictReader(io.StringIO(bundle.files["posterior.csv"].decode())))
    assert {"mean", "sd"} <= {row["parameter"] for row in table}
    from core.bundle import verify

    assert verify(bundle.bundle).warnings == ()


def test_no_button_where_everything_is_spent(app):
    declared(app)
    project = app.session_state[KEY]
    house.check_population(project.population)
    house.ledger().set_cap(project.population.name, Fraction(1, 10))
    app.run()
    pay(app)
    assert "Everything up to the cap is spent" in "\n".join(item.value for item in app.error)


def test_published_statistics_are_answered_for_nothing(app):
    app.run()
    go(app, "posterior")
    app.segmented_control(key="posterior_door").set_value("published").run()
    app.text_area(key="published_text").set_value(EXAMPLE).run()
    assert not app.exception
    assert "interval:" in words(app)
    assert not rows()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("discrete_laplace,10", "discrete_laplace,-10"), "scale"),
        (("discrete_laplace", "cauchy"), "family"),
        ((",1463,", ",NaN,"), "value"),
    ],
)
def test_bad_published_statistics_are_one_clear_error(app, change, said):
    app.run()
    go(app, "posterior")
    app.segmented_control(key="posterior_door").set_value("published").run()
    app.text_area(key="published_text").set_value(EXAMPLE.replace(*change)).run()
    assert not app.exception
    (error,) = app.error
    assert said in error.value


def test_the_teaching_panel_tells_private_from_naive(app, monkeypatch):
    from pages.shared import teaching_panel

    monkeypatch.setattr(teaching_panel, "REPETITIONS", 5)
    app.run()
    go(app, "posterior")
    app.segmented_control(key="posterior_door").set_value("learn").run()
    app.button(key="teach").click().run()
    assert not app.exception
    assert len(app.metric) == 2
    assert not rows()


def test_released_marginals_are_answered_for_nothing(app):
    made(app)
    before = rows()
    app.toggle(key="tree_answers").set_value(True).run()
    assert not app.exception
    assert "interval:" in words(app)
    assert rows() == before
    picker = app.selectbox(key="tree_table")
    for place in (0, len(picker.options) - 1):
        app.selectbox(key="tree_table").select_index(place).run()
        assert not app.exception
        assert "interval:" in words(app)
