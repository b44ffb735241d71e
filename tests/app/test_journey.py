"""The whole journey on demo data in-process; only one button spends, and only once."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from fractions import Fraction

import pytest
from streamlit.testing.v1 import AppTest

from core.private.ledger import SpendState
from core.privci.structures import STRUCTURES
from core.release_log import Act, ReleaseLog
from core.releases import TreeRelease
from pages.shared import house, jobs
from pages.shared.audit_controls import BANNER
from pages.shared.guards import PAGES
from pages.shared.project import KEY
from tests.app.conftest import ROOT, Held, cancel_button, go

JOURNEY = ("start", "data", "roles", "budget", "tree", "synthetic", "release", "ledger")


def rows() -> list:
    return [
        spend
        for population in house.ledger().populations()
        for spend in house.ledger().spends(population.name)
    ]


def start(app: AppTest) -> AppTest:
    app.run()
    app.button(key="demo_hiring").click().run()
    assert not app.exception
    return app


def plan(app: AppTest) -> AppTest:
    start(app)
    go(app, "data")
    app.checkbox(key="public_domain").check().run()
    app.button(key="confirm_schema").click().run()
    go(app, "roles")
    app.button(key="save_roles").click().run()
    go(app, "budget")
    app.button(key="apply_plan").click().run()
    assert app.session_state[KEY].plan is not None
    return app


def released(app: AppTest) -> AppTest:
    plan(app)
    go(app, "tree")
    app.button(key="release_tree").click().run()
    assert not app.exception
    return app


def made(app: AppTest) -> AppTest:
    released(app)
    go(app, "synthetic")
    app.button(key="fit_and_sample").click().run()
    assert not app.exception
    return app


def watch(app: AppTest) -> None:
    """Look on until the growing tree is complete (a browser polls by itself)."""
    for _ in range(40):
        app.run()
        assert not app.exception
        if "The tree as it grew" in [item.value for item in app.header]:
            return
    raise AssertionError("the picture never ended")


def words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(str(item.value) for kind in kinds for item in kind)


def test_the_journey_ends_with_a_signed_bundle(app: AppTest) -> None:
    made(app)
    assert "Every rule is proved" in words(app)
    go(app, "release")
    app.text_input(key="signer").set_value("A. Steward")
    app.text_area(key="purpose").set_value("teaching")
    app.form_submit_button[0].click().run()
    assert not app.exception
    assert "Signed by A. Steward" in words(app)
    go(app, "ledger")
    assert [metric.value for metric in app.metric][:3] == ["0.5", "1.5", "2"]
    (spend,) = rows()
    assert spend.state is SpendState.DONE
    assert spend.rho == Fraction(1, 2)


def test_a_bundle_is_signed_once_however_many_tabs_show_the_form(app: AppTest) -> None:
    made(app)
    go(app, "release")
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.query_params["project"] = app.query_params["project"]
    other.run()
    go(other, "release")
    for tab, name in ((app, "A. Steward"), (other, "B. Steward")):
        tab.text_input(key="signer").set_value(name)
        tab.text_area(key="purpose").set_value("teaching")
        tab.form_submit_button[0].click().run()
        assert not tab.exception
        assert "Signed by A. Steward" in words(tab)
    acts = [entry.act for entry in ReleaseLog(house.ledger()).entries()]
    assert acts.count(Act.SIGNED) == 1
    project = app.session_state[KEY]
    other.session_state[KEY].change(name="renamed by the other tab")
    kept = house.open_project(project.identity)
    assert kept.sign_off == project.sign_off
    assert len(kept.sign_off) == 1


def test_nothing_before_the_release_button_charges(app: AppTest) -> None:
    plan(app)
    for page in JOURNEY:
        go(app, page)
    assert rows() == []


def test_reruns_and_revisits_neither_spend_nor_redraw(app: AppTest) -> None:
    made(app)
    (before,) = rows()
    for page in JOURNEY * 2:
        go(app, page)
        app.run()
    (after,) = rows()
    assert after.release_sha256 == before.release_sha256
    assert after.request_id == before.request_id


def test_a_second_click_joins_the_first(app: AppTest, held: Held) -> None:
    plan(app)
    go(app, "tree")
    app.button(key="release_tree").click().run()
    project = app.session_state[KEY]
    from pages.shared import actions

    actions.release_tree(project)  # what the second click's callback does
    actions.release_tree(project)
    assert len(held.waiting) == 1
    held.release()
    actions.release_tree(project)
    assert len(rows()) == 1
    assert len(project.runs) == 1
    watch(app)
    assert "The tree as it grew" in [item.value for item in app.header]


def test_a_reload_finds_the_running_job_and_its_result(app: AppTest, held: Held) -> None:
    plan(app)
    go(app, "tree")
    app.button(key="release_tree").click().run()
    address = app.query_params["project"]
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    again.query_params["project"] = address
    again.run()
    go(again, "tree")
    assert cancel_button(again).label == "Cancel"
    held.release()
    watch(again)
    assert "The tree as it grew" in [item.value for item in again.header]
    assert len(rows()) == 1
    assert len(again.session_state[KEY].runs) == 1


def test_a_second_tab_that_releases_the_same_plan_replays(app: AppTest) -> None:
    plan(app)
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.query_params["project"] = app.query_params["project"]
    other.run()
    for tab in (app, other):
        go(tab, "tree")
        tab.button(key="release_tree").click().run()
        assert not tab.exception
    assert len(rows()) == 1
    first, second = (tab.session_state[KEY].release() for tab in (app, other))
    assert isinstance(first, TreeRelease)
    assert first.to_bytes() == second.to_bytes()


def test_spending_again_takes_a_tick_and_charges_once(app: AppTest) -> None:
    released(app)
    assert app.button(key="spend_again").disabled
    app.checkbox(key="again_1").check().run()
    app.button(key="spend_again").click().run()
    assert not app.exception
    assert len(rows()) == 2
    project = app.session_state[KEY]
    from pages.shared import actions

    actions.release_again(project, 1)  # the double click's second half
    assert len(rows()) == 2
    assert app.button(key="spend_again").disabled


def test_a_refusal_spends_nothing_and_says_so(app: AppTest) -> None:
    plan(app)
    project = app.session_state[KEY]
    from dataclasses import replace

    from core.private.ledger import Charge

    name = project.population.name
    house.ledger().charge(name, [Charge("other", "elsewhere", Fraction(19, 10))])
    go(app, "tree")
    app.button(key="release_tree").click().run()
    assert not app.exception
    assert len(rows()) == 1
    assert "This did not work" in " ".join(str(error.title) for error in app.error if error.title)
    assert project.release() is None
    project.change(tree=replace(project.tree, rho=Fraction(1, 10)))
    app.run()
    app.button(key="release_tree").click().run()
    assert len(rows()) == 2
    assert project.release() is not None


def test_cancel_in_the_queue_costs_nothing(app: AppTest, held: Held) -> None:
    plan(app)
    go(app, "tree")
    app.button(key="release_tree").click().run()
    cancel_button(app).click().run()
    held.release()
    app.run()
    assert rows() == []
    assert "Nothing was spent" in words(app)


def test_cancel_after_paid_steps_keeps_a_partial_release(app: AppTest, held: Held) -> None:
    plan(app)
    go(app, "tree")
    app.button(key="release_tree").click().run()
    run = app.session_state[KEY].run
    job = jobs.desk().find(run.request_id)
    told = job.progress

    def stop_at_the_third_edge(stage, done, total, detail):
        if stage == "selection" and done == 3:
            job.cancel()
        told(stage, done, total, detail)

    job.progress = stop_at_the_third_edge
    held.release()
    app.run()
    assert not app.exception
    (spend,) = rows()
    assert spend.state is SpendState.PARTIAL
    assert spend.rho == Fraction(1, 2)
    release = app.session_state[KEY].release()
    assert release.partial
    for _ in release.steps:  # the picture catches up, an edge at a time
        app.run()
    said = words(app)
    assert f"tables of {len(release.one_way)} columns, 3 edges of the tree, and the noisy" in said
    assert "The whole charge of ρ = 0.5 stays spent" in said
    go(app, "synthetic")


def test_old_projects_that_nobody_named_are_forgotten(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "UNLISTED_KEPT", 1)
    monkeypatch.setattr(house, "UNLISTED_LIFE", timedelta(0))
    app.run()
    app.button(key="demo_hiring").click().run()
    app.text_input(key="project_name").set_value("Mine").run()
    app.form_submit_button[0].click().run()
    mine = app.session_state[KEY].identity
    unnamed = []
    for name in ("lending", "admissions", "hiring"):
        app.button(key=f"demo_{name}").click().run()
        assert not app.exception
        unnamed.append(app.session_state[KEY].identity)
    kept = {entry.project_id for entry in house.store().projects()}
    assert kept == {mine, *unnamed[1:]}  # the newest one before the save, and the saved one
    house.store().delete_project(unnamed[-1])
    go(app, "data")
    app.session_state[KEY].keep()  # forgotten meanwhile: kept anew, with nothing lost
    assert app.session_state[KEY].identity not in unnamed


@pytest.mark.parametrize("page", [page for page in JOURNEY if page not in {"start", "data"}])
def test_a_locked_page_says_what_is_missing(app: AppTest, page: str) -> None:
    app.run()
    go(app, page)
    assert app.title[0].value == page.capitalize()
    assert ":material/lock:" in words(app)
    assert len(app.get("page_link")) >= 1


def test_every_page_draws_with_its_inputs(app: AppTest) -> None:
    made(app)
    for page in PAGES:
        go(app, page)
        problems = [error.value for error in app.error if error.value != BANNER]
        assert not problems


def test_changed_roles_mark_the_release_stale_and_delete_nothing(app: AppTest) -> None:
    made(app)
    project = app.session_state[KEY]
    key = f"role_{project.identity}_age"
    go(app, "roles")
    app.segmented_control(key=key).set_value("A").run()
    go(app, "tree")
    assert app.button(key="release_tree").disabled if _has(app, "release_tree") else True
    assert "not saved" in words(app) or not _has(app, "spend_again")
    go(app, "roles")
    app.button(key="save_roles").click().run()
    go(app, "tree")
    assert any("made with earlier roles" in str(item.value) for item in app.markdown)
    assert project.release() is not None
    assert len(rows()) == 1


def _has(app: AppTest, key: str) -> bool:
    return any(button.key == key for button in app.button)


def test_twenty_random_interactions_add_no_ledger_row(app: AppTest) -> None:
    made(app)
    (before,) = rows()
    chance = random.Random(20260)
    done = 0
    while done < 20:
        go(app, chance.choice(JOURNEY))
        choices = [
            *((box, None) for box in app.checkbox if not box.disabled and "again_" not in box.key),
            *((box, None) for box in app.toggle),
            *((slider, None) for slider in app.slider if not slider.disabled),
            *((box, None) for box in app.selectbox if not box.disabled and box.options),
            *((button, None) for button in app.button if _harmless(button)),
        ]
        if not choices:
            continue
        widget, _ = chance.choice(choices)
        _use(widget, chance)
        app.run()
        assert not app.exception, (widget, app.exception[0].message)
        done += 1
    assert [spend.request_id for spend in rows()] == [before.request_id]
    assert rows()[0].release_sha256 == before.release_sha256


def _harmless(button) -> bool:
    """Any button but those that start another project or spend on purpose."""
    key = button.key or ""
    return (
        not button.disabled
        and not key.startswith(("demo_", "open_"))
        and key
        not in {
            "release_tree",
            "spend_again",
        }
    )


def _use(widget, chance: random.Random) -> None:
    if widget.type in {"checkbox", "toggle"}:
        widget.set_value(not widget.value)
    elif widget.type == "slider":
        widget.set_value(chance.randint(int(widget.min), int(widget.max)))
    elif widget.type == "selectbox":
        widget.select_index(chance.randrange(len(widget.options)))
    else:
        widget.click()


def test_no_page_shows_a_true_count(app: AppTest) -> None:
    """Cell counts of the demo table, known here, appear on no page."""
    import pandas as pd

    from core import demo
    from pages.shared.actions import DEMO_ROWS, DEMO_SEED

    made(app)
    frame = demo.table("hiring", DEMO_ROWS, DEMO_SEED)
    counts = {
        int(count)
        for name in ("gender", "region", "education", "hired")
        for count in pd.Series(frame[name]).value_counts()
        if count > 999
    }
    assert len(counts) > 5
    for page in PAGES:
        go(app, page)
        shown = words(app)
        for frame_shown in app.dataframe:
            shown += frame_shown.value.to_csv()
        numbers = set(re.findall(r"\b\d+\b", shown.replace(",", "")))
        assert not numbers & {str(count) for count in counts}


def test_structures_are_compared_in_simulation_on_demo_data_only(app: AppTest) -> None:
    released(app)
    app.button(key="compare").click().run()
    assert not app.exception
    assert set(app.segmented_control(key="compared").options) == set(STRUCTURES)
    assert "Simulated, not private" in words(app)
    assert len(rows()) == 1, "simulation must not touch the ledger"
    project = app.session_state[KEY]
    from pages.shared import actions

    found = jobs.desk().find(actions.comparison_key(project)).result
    assert all(
        release.provenance.simulated for release in found.values() if not isinstance(release, str)
    )
    project.demo = None
    assert actions.comparison_key(project) is None
    assert actions.compare_structures(project) is None


def test_the_replay_plays_and_pauses(app: AppTest) -> None:
    released(app)
    (slider,) = [item for item in app.slider if item.label == "Step of the tree"]
    last = slider.value
    (play,) = [button for button in app.button if button.label == "Play"]
    play.click().run()
    (slider,) = [item for item in app.slider if item.label == "Step of the tree"]
    assert slider.value < last
    (pause,) = [button for button in app.button if button.label == "Pause"]
    pause.click().run()
    (slider,) = [item for item in app.slider if item.label == "Step of the tree"]
    stopped = slider.value
    app.run()
    (slider,) = [item for item in app.slider if item.label == "Step of the tree"]
    assert slider.value == stopped
