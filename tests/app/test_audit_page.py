"""The page Audit: a publishable part, and a private workspace behind a logged reason."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.release_log import Act, ReleaseLog
from pages.shared import audit_work, house, jobs
from pages.shared.held import held as holding
from pages.shared.project import KEY
from tests.app.conftest import Held, cancel_button, go
from tests.app.test_journey import made, rows, words


@pytest.fixture
def page(app: AppTest) -> AppTest:
    made(app)
    return go(app, "audit")


def look(app: AppTest, reason: str = "check before signing") -> AppTest:
    app.text_input(key="audit_reason").set_value(reason).run()
    app.button(key="audit_look").click().run()
    assert not app.exception, app.exception[0].message
    return app


def looks() -> list:
    return [entry for entry in ReleaseLog(house.ledger()).entries() if entry.act is Act.LOOKED]


def test_without_a_tree_the_page_says_what_is_missing(app):
    app.run()
    go(app, "audit")
    assert "There is no table yet" in words(app)


def test_the_publishable_part_has_verdicts_and_reasons_and_looks_at_nothing_real(page):
    project = page.session_state[KEY]
    audit = project.audit[1]
    assert all(score.publishable for score in audit.scorecard.scores)
    assert 6 <= len(audit.scorecard.scores) <= 20
    text = words(page)
    assert "may be published" in text
    assert any("without any noise" in error.value for error in page.error)
    assert project.look is None
    assert not looks()
    assert len(rows()) == 1


def test_a_reason_is_needed_and_logged_before_anything_is_looked_at(page):
    look(page, "   ")
    assert page.session_state[KEY].look is None
    assert not looks()
    look(page)
    (entry,) = looks()
    assert "check before signing" in entry.detail
    shown = go(page, "ledger").dataframe
    assert any("check before signing" in str(table.value) for table in shown)
    go(page, "audit")
    beside = page.session_state[KEY].look.found
    assert beside.scorecard.private
    assert len(rows()) == 1  # a look charges nothing


def test_forgetting_the_table_stops_a_look_on_its_way(page, monkeypatch):
    project = page.session_state[KEY]
    held = Held()
    jobs.use_executor(held)
    after = []

    def half_way(audit, real, *, progress):
        project.drop_rows()
        progress("the next step", 1, 2, None)
        after.append("it went on")

    monkeypatch.setattr(audit_work, "audit_private", half_way)
    look(page)
    job = jobs.desk().find(project.look.identity)
    held.release()
    assert job.state is jobs.JobState.CANCELLED
    assert not after


def test_a_double_click_looks_once(page):
    look(page)
    project = page.session_state[KEY]
    opened = project.look
    key, audit = project.audit
    audit_work.open_look(project, holding(project), audit, key, "check before signing")
    assert project.look is opened
    assert len(looks()) == 1


def test_a_click_while_the_table_is_opened_looks_once_too(page, monkeypatch):
    project, opening = page.session_state[KEY], audit_work.attach
    _, audit = project.audit

    def clicked_again(*arguments):
        audit_work.open_look(project, holding(project), audit, project.audit[0], "check")
        return opening(*arguments)

    monkeypatch.setattr(audit_work, "attach", clicked_again)
    audit_work.open_look(project, holding(project), audit, project.audit[0], "check")
    assert len(looks()) == 1


def test_a_table_that_is_forgotten_while_it_is_opened_is_not_looked_at(page, monkeypatch):
    project, opening, vaults = page.session_state[KEY], audit_work.attach, []

    def forgotten(*arguments):
        attached = opening(*arguments)
        vaults.append(weakref.ref(attached.vault))
        project.drop_rows()
        return attached

    monkeypatch.setattr(audit_work, "attach", forgotten)
    audit_work.open_look(project, holding(project), project.audit[1], project.audit[0], "check")
    assert project.look is None
    assert not looks()
    gc.collect()
    assert vaults[0]() is None


def test_whatever_goes_wrong_while_the_table_is_opened_the_door_opens_again(page, monkeypatch):
    project = page.session_state[KEY]

    def full(*arguments):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(audit_work, "attach", full)
        with pytest.raises(MemoryError):
            audit_work.open_look(
                project, holding(project), project.audit[1], project.audit[0], "check"
            )
    look(page)
    assert len(looks()) == 1


def test_forgetting_the_table_drops_a_look_that_waits_in_line(page):
    project, held = page.session_state[KEY], Held()
    jobs.use_executor(held)
    look(page)
    job = jobs.desk().find(project.look.identity)
    assert job.state is jobs.JobState.QUEUED
    work = weakref.ref(job._work)
    project.drop_rows()
    assert job.state is jobs.JobState.CANCELLED
    gc.collect()
    assert work() is None
    held.release()
    assert not looks()


def test_a_cancelled_audit_can_be_made_again(app):
    made(app)
    held = Held()
    jobs.use_executor(held)
    go(app, "audit")
    cancel_button(app).click().run()
    held.release()
    app.run()
    assert "Cancelled" in words(app)
    app.button(key="begin_again").click().run()
    held.release()
    app.run()
    assert not app.exception
    assert "may be published" in words(app)
    assert len(rows()) == 1


def test_nothing_private_is_in_the_report_the_store_or_the_bundle(page):
    look(page)
    project = page.session_state[KEY]
    needles = {
        repr(figure.value)
        for figure in project.look.found.figures
        if figure.value is not None and len(repr(figure.value)) > 12
    }
    assert len(needles) > 20
    kept = project.identity
    document = repr(house.store().open_project(kept, owner=house.owner()).document)
    made_files = next(iter(project.derived.values())).files
    bodies = [document, *(body.decode("utf-8", "replace") for body in made_files.values())]
    assert not [needle for needle in needles if any(needle in body for body in bodies)]


def test_closing_forgets_what_was_found_and_forgetting_the_table_does_too(page):
    look(page)
    first = weakref.ref(page.session_state[KEY].look.found)
    page.button(key="audit_close").click().run()
    assert page.session_state[KEY].look is None
    look(page)
    project = page.session_state[KEY]
    second = weakref.ref(project.look.found)
    project.forget_table()
    assert project.look is None
    page.run()
    gc.collect()
    assert first() is None
    assert second() is None


def test_new_settings_make_a_new_audit_and_close_the_look(page):
    look(page)
    before = page.session_state[KEY].audit[0]
    page.number_input(key="audit_seed").set_value(5).run()
    page.button(key="audit_again").click().run()
    assert not page.exception
    project = page.session_state[KEY]
    assert project.audit[0] != before
    assert project.look is None


def test_every_drill_down_draws(page):
    look(page)
    for key in ("audit_column", "audit_private_column"):
        box = page.selectbox(key=key)
        box.set_value(box.options[-1]).run()
        assert not page.exception
    for key in ("audit_pair", "audit_real_pair"):
        page.selectbox(key=key).select_index(2).run()
        assert not page.exception
    assert len(page.get("plotly_chart")) >= 8


def test_another_table_than_the_released_one_is_not_looked_at(page):
    project = page.session_state[KEY]
    project.demo = replace(project.demo, seed=project.demo.seed + 1)
    look(page)
    assert "not the one that was released" in words(page)
    assert project.look is None
    assert not looks()
