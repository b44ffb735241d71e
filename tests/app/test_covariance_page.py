"""The covariance page in-process: one button spends, everything else is free."""

from __future__ import annotations

from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from core.pace.release import METHODS, CovarianceRelease
from core.private.ledger import Charge, SpendState
from pages.shared import (
    actions,
    house,
    jobs,
)
from pages.shared.covariance_draft import METHOD_HELP, METHOD_WORDS, paid_run, whole_plan
from pages.shared.project import KEY
from tests.app.conftest import ROOT, Held, cancel_button, go

NAMES = ("age", "monthly_income", "savings", "loan_amount", "debt_ratio", "applied_on")


def words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    found = [item for kind in kinds for item in kind]
    titles = [item.title for item in found if getattr(item, "title", None)]
    return "\n".join(str(text) for text in [*titles, *(item.value for item in found)])


def rows() -> list:
    return [
        spend
        for population in house.ledger().populations()
        for spend in house.ledger().spends(population.name)
    ]


def ready(app: AppTest) -> AppTest:
    app.run()
    app.button(key="demo_lending").click().run()
    go(app, "data")
    app.checkbox(key="public_domain").check().run()
    app.button(key="confirm_schema").click().run()
    return go(app, "covariance")


def shown(app: AppTest) -> AppTest:
    """Look on until the incoming rounds are all drawn (a browser polls by itself)."""
    for _ in range(60):
        if any(str(header.value).startswith("The matrix") for header in app.header):
            return app
        app.run()
        assert not app.exception, app.exception[0].message
    raise AssertionError("the picture never ended")


def released(app: AppTest, method: str = "pace") -> AppTest:
    ready(app)
    app.radio(key="cov_method").set_value(method).run()
    app.button(key="release_covariance").click().run()
    assert not app.exception, app.exception[0].message
    return shown(app)


def release_of(app: AppTest) -> CovarianceRelease:
    project = app.session_state[KEY]
    found = project.released(project.best_run("covariance"))
    assert isinstance(found, CovarianceRelease)
    return found


def has(app: AppTest, key: str) -> bool:
    return any(button.key == key for button in app.button)


# -- before ------------------------------------------------------------------------------------


def test_the_locked_page_says_what_is_missing(app: AppTest) -> None:
    app.run()
    go(app, "covariance")
    assert ":material/lock:" in words(app)
    assert not has(app, "release_covariance")


def test_all_numeric_columns_are_chosen_and_nothing_is_spent(app: AppTest) -> None:
    ready(app)
    assert tuple(app.pills(key="cov_columns").value) == NAMES
    said = words(app)
    assert "plain noise" in said
    assert "at most" in said, "what the price means for one person"
    assert "columns for ρ = 0.5" in said
    for _ in range(2):
        app.run()
    assert rows() == []


def test_the_price_is_typed_or_slid(app: AppTest) -> None:
    ready(app)
    app.text_input(key="cov_rho_text").set_value("1/3").run()
    draft = app.session_state[KEY].covariance_draft
    assert draft.rho == Fraction(1, 3)
    app.text_input(key="cov_rho_text").set_value("3").run()
    assert "more than what is left" in words(app)
    assert app.session_state[KEY].covariance_draft.rho == Fraction(1, 3)
    app.select_slider(key="cov_rho").set_value("2").run()
    assert app.session_state[KEY].covariance_draft.rho == 2
    assert "no meaningful protection" in words(app)
    app.text_input(key="cov_rho_text").set_value("1e-6").run()
    assert not app.exception
    assert "mostly noise" in words(app)


def test_public_means_and_half_widths_are_typed_a_column(app: AppTest) -> None:
    ready(app)
    app.pills(key="cov_columns").set_value(["age", "applied_on"]).run()
    app.segmented_control(key="cov_means").set_value("public, typed here").run()
    assert "type its public mean" in words(app)
    assert not has(app, "release_covariance")
    generation = app.session_state[KEY].generation
    app.text_input(key=f"cov_means_{generation}_age").set_value("forty").run()
    assert "no number" in words(app)
    app.text_input(key=f"cov_means_{generation}_age").set_value("900").run()
    app.text_input(key=f"cov_means_{generation}_applied_on").set_value("2024-07-01").run()
    assert "outside its declared bounds" in words(app)
    app.text_input(key=f"cov_means_{generation}_age").set_value("45").run()
    app.text_input(key=f"cov_widths_{generation}_age").set_value("-3").run()
    assert "must be a finite number above 0" in words(app)
    assert not has(app, "release_covariance")
    app.text_input(key=f"cov_widths_{generation}_age").set_value("30").run()
    assert app.button(key="release_covariance").disabled
    app.checkbox(key="cov_public_facts").check().run()
    app.button(key="release_covariance").click().run()
    shown(app)
    release = release_of(app)
    assert release.means.public
    assert dict(zip(release.columns, release.means.values, strict=True))["age"] == 45
    assert len(rows()) == 1


def test_no_column_chosen_is_said(app: AppTest) -> None:
    ready(app)
    app.pills(key="cov_columns").set_value([]).run()
    assert "choose at least one column" in words(app)
    assert not has(app, "release_covariance")


def test_every_method_has_its_words() -> None:
    assert set(METHOD_WORDS) == set(METHOD_HELP) == set(METHODS)


# -- the release -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pace_auto", "pace", "diagonal"])
def test_one_click_releases_once_and_looking_is_free(app: AppTest, method: str) -> None:
    released(app, method)
    (spend,) = rows()
    assert (spend.rho, spend.what, spend.state) == (Fraction(1, 2), "covariance", SpendState.DONE)
    said = words(app)
    assert METHOD_WORDS[method] in said
    assert "rows" in said
    for page in ("data", "covariance", "ledger", "covariance"):
        go(app, page)
    (after,) = rows()
    assert after.release_sha256 == spend.release_sha256


def test_a_second_click_joins_and_a_second_tab_replays(app: AppTest, held: Held) -> None:
    ready(app)
    app.button(key="release_covariance").click().run()
    project = app.session_state[KEY]
    part = project.covariance_draft.part(project.schema)
    for _ in range(2):  # what the second click's callback does
        actions.release_part(project, whole_plan(project, part), "covariance", 1)
    assert len(held.waiting) == 1
    held.release()
    assert len(rows()) == 1
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.query_params["project"] = app.query_params["project"]
    other.run()
    go(other, "covariance")
    shown(other)
    actions.release_part(other.session_state[KEY], whole_plan(project, part), "covariance", 1)
    assert len(rows()) == 1
    assert release_of(other).to_bytes() == release_of(app).to_bytes()


def test_spending_again_takes_a_tick_and_charges_once(app: AppTest) -> None:
    released(app)
    assert app.button(key="cov_spend_again").disabled
    app.checkbox(key="cov_again_2").check().run()
    app.button(key="cov_spend_again").click().run()
    shown(app)
    assert len(rows()) == 2
    project = app.session_state[KEY]
    part = project.covariance_draft.part(project.schema)
    actions.release_part(project, whole_plan(project, part), "covariance", 2)  # a double click
    assert len(rows()) == 2
    go(app, "covariance")
    assert app.button(key="cov_spend_again").disabled
    assert paid_run(project, part).attempt == 2
    (chooser,) = [box for box in app.selectbox if box.label == "Release"]
    before = words(app)
    chooser.select_index(0).run()
    assert not app.exception
    assert words(app) != before


def test_another_choice_of_columns_is_another_release(app: AppTest) -> None:
    released(app)
    app.pills(key="cov_columns").set_value(["age", "savings", "debt_ratio"]).run()
    app.button(key="release_covariance").click().run()
    shown(app)
    assert len(rows()) == 2
    assert release_of(app).size == 3


def test_a_refusal_spends_nothing_and_says_so(app: AppTest) -> None:
    ready(app)
    name = app.session_state[KEY].population.name
    house.check_population(app.session_state[KEY].population)
    house.ledger().charge(name, [Charge("other", "elsewhere", Fraction(19, 10))])
    app.button(key="release_covariance").click().run()  # drawn before the other charge
    assert not app.exception
    assert len(rows()) == 1
    assert "This did not work" in words(app)
    assert app.session_state[KEY].covariance_draft.rho == Fraction(1, 10)
    app.button(key="release_covariance").click().run()
    shown(app)
    assert len(rows()) == 2
    go(app, "covariance")
    assert "No budget left" in words(app)


def test_a_charge_without_a_result_is_said_and_can_be_tried_again(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    import core.parts

    ready(app)
    with monkeypatch.context() as broken:

        def fail(*arguments, **settings):
            raise RuntimeError("17.5")

        broken.setattr(core.parts, "release_covariance", fail)
        app.button(key="release_covariance").click().run()
        app.run()
    assert not app.exception
    (spend,) = rows()
    assert spend.state is SpendState.NO_RESULT
    said = words(app)
    assert "Spent, no result" in said
    assert "17.5" not in said, "an error's own words may hold a value of the table"
    app.checkbox(key="cov_again_2").check().run()
    app.button(key="cov_spend_again").click().run()
    shown(app)
    assert [row.state for row in rows()].count(SpendState.DONE) == 1
    assert len(rows()) == 2


def test_cancel_in_the_queue_costs_nothing(app: AppTest, held: Held) -> None:
    ready(app)
    app.button(key="release_covariance").click().run()
    cancel_button(app).click().run()
    held.release()
    app.run()
    assert rows() == []
    assert "Nothing was spent" in words(app)


@pytest.mark.parametrize(("stage", "done"), [("rounds", 3), ("means", 1)])
def test_cancel_on_the_way_keeps_what_was_measured(
    app: AppTest, held: Held, stage: str, done: int
) -> None:
    ready(app)
    app.radio(key="cov_method").set_value("pace").run()
    app.button(key="release_covariance").click().run()
    job = jobs.desk().find(app.session_state[KEY].runs_of("covariance")[-1].request_id)
    told = job.progress

    def stop(where, step, total, detail):
        if (where, step) == (stage, done):
            job.cancel()
        told(where, step, total, detail)

    job.progress = stop
    held.release()
    app.run()
    shown(app)
    (spend,) = rows()
    assert spend.state is SpendState.PARTIAL
    said = words(app)
    assert "Partial release" in said
    assert f"{done if stage == 'rounds' else 0} rounds" in said
    assert "The whole charge of ρ = 0.5 stays spent" in said
    if stage == "means":
        assert "nothing can be estimated" in said
        assert has(app, "cov_spend_again")


def test_without_the_table_the_release_waits_and_results_stay(app: AppTest) -> None:
    released(app)
    project = app.session_state[KEY]
    project.demo = None
    app.run()
    assert not app.exception
    assert any(str(header.value).startswith("The matrix") for header in app.header)
    assert not has(app, "cov_spend_again")
    app.pills(key="cov_columns").set_value(["age", "savings"]).run()
    assert "the table is not attached" in words(app)
    assert app.button(key="release_covariance").disabled


def test_changed_declarations_mark_the_release_stale_and_delete_nothing(app: AppTest) -> None:
    from dataclasses import replace

    from core.schema import Schema

    released(app)
    project = app.session_state[KEY]
    changed = tuple(
        replace(column, upper=90, bins=None) if column.name == "age" else column
        for column in project.schema.columns
    )
    project.change(schema=Schema(changed))
    app.run()
    assert not app.exception
    assert "made with earlier declarations" in words(app)
    assert len(rows()) == 1


def test_a_column_of_text_alone_is_not_offered(app: AppTest) -> None:
    from core.schema import Schema

    ready(app)
    project = app.session_state[KEY]
    project.schema = Schema(tuple(c for c in project.schema.columns if not c.axis))
    app.run()
    assert not app.exception
    assert "No column holds numbers" in words(app)
