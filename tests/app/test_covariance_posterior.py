"""Posteriors from the measured entries, on the covariance page: free, and refused in words."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from pages.shared.project import KEY
from tests.app.test_covariance_page import ready, release_of, released, rows, shown, words


def key_of(app: AppTest) -> str:
    return f"cov_{app.session_state[KEY].best_run('covariance').request_id[-12:]}"


def ask(app: AppTest) -> AppTest:
    app.toggle(key=f"{key_of(app)}_ask").set_value(True).run()
    assert not app.exception, app.exception[0].message
    return app


@pytest.fixture
def asked(app: AppTest) -> AppTest:
    return ask(released(app, "ssp_tight"))


def test_nothing_is_drawn_until_it_is_asked_for(app: AppTest) -> None:
    released(app, "ssp_tight")
    assert not app.toggle(key=f"{key_of(app)}_ask").value
    assert not [box for box in app.selectbox if box.label == "Parameter"]


def test_a_regression_from_measured_entries_is_free(asked: AppTest) -> None:
    said = words(asked)
    assert "95% interval" in said
    assert "the clipped population" in said, "the bounds are named"
    (parameter,) = [box for box in asked.selectbox if box.label == "Parameter"]
    predictors = asked.multiselect(key=f"{key_of(asked)}_ask_predictors_applied_on").value
    assert parameter.options == ["intercept", *predictors, "residual_sd"]
    assert len(predictors) == 3
    assert len(rows()) == 1


def test_other_columns_are_another_question(asked: AppTest) -> None:
    key = key_of(asked)
    asked.selectbox(key=f"{key}_ask_outcome").set_value("savings").run()
    asked.multiselect(key=f"{key}_ask_predictors_savings").set_value(["age"]).run()
    assert not asked.exception
    (parameter,) = [box for box in asked.selectbox if box.label == "Parameter"]
    assert parameter.options == ["intercept", "age", "residual_sd"]
    asked.multiselect(key=f"{key}_ask_predictors_savings").set_value([]).run()
    assert "at least one predictor" in words(asked)
    assert len(rows()) == 1


def test_a_correlation_of_two_columns(asked: AppTest) -> None:
    key = key_of(asked)
    asked.segmented_control(key=f"{key}_ask_kind").set_value("correlation").run()
    asked.selectbox(key=f"{key}_ask_first").set_value("age").run()
    asked.selectbox(key=f"{key}_ask_second_age").set_value("savings").run()
    assert not asked.exception
    assert any("cor(age, savings)" in str(metric.label) for metric in asked.metric)
    assert len(rows()) == 1


def test_a_release_without_products_says_so(app: AppTest) -> None:
    ask(released(app, "diagonal"))
    said = words(app)
    assert "never measured" in said
    assert "No posterior" in said


def test_public_means_are_refused_in_words(app: AppTest) -> None:
    ready(app)
    app.radio(key="cov_method").set_value("ssp").run()
    app.pills(key="cov_columns").set_value(["age", "savings"]).run()
    app.segmented_control(key="cov_means").set_value("public, typed here").run()
    generation = app.session_state[KEY].generation
    for name, mean in (("age", "45"), ("savings", "5000")):
        app.text_input(key=f"cov_means_{generation}_{name}").set_value(mean).run()
    app.checkbox(key="cov_public_facts").check().run()
    app.button(key="release_covariance").click().run()
    shown(app)
    assert release_of(app).means.public
    ask(app)
    assert "sums were never measured" in words(app)


def _with_a_gap() -> None:
    """A page of its own: four columns of which the last measured product is left out."""
    from dataclasses import replace

    from core.pace.estimate import estimate
    from pages.shared import covariance_posterior
    from tests.core.pace.tables import correlated, released

    release = released(correlated(300, 4, 1), "1", means="private", method="ssp")
    (draw,) = release.draws
    kept = [i for i, pair in enumerate(release.pairs.tolist()) if pair != [1, 2]]
    gap = replace(
        release,
        draws=(replace(draw, stop=len(kept)),),
        pairs=release.pairs[kept],
        sums=release.sums[kept],
        sigmas=release.sigmas[kept],
    )
    covariance_posterior.draw(gap, estimate(release), "gap")


def test_a_block_with_a_gap_names_it() -> None:
    app = AppTest.from_function(_with_a_gap, default_timeout=60).run()
    app.toggle(key="gap_ask").set_value(True).run()
    assert not app.exception, app.exception[0].message
    predictors = app.multiselect(key="gap_ask_predictors_x03")
    assert len(predictors.value) == 2, "the suggestion goes round the gap"
    predictors.set_value(["x00", "x01", "x02"]).run()
    assert "x01 × x02 was never measured" in words(app)
