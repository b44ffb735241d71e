"""Own tables in several sessions and of several owners: what is kept, opened again, and unseen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest
from streamlit.testing.v1 import AppTest

from core.errors import LedgerError
from pages.shared import house
from pages.shared.project import KEY, Run, fresh
from tests.app.conftest import ROOT, go
from tests.app.test_data_page import STAFF, declare, declare_as, opened, release, upload, words


def survey_saved(app: AppTest, people: str, name: str) -> None:
    """A released table of one's own, in a project that is saved under a name."""
    upload(opened(app), "staff.csv", STAFF)
    declare(app, people)
    release(app, sex="S", grade="O")
    go(app, "start")
    app.text_input(key="project_name").set_value(name)
    app.form_submit_button[0].click().run()


def test_two_sessions_never_see_each_other(app: AppTest) -> None:
    upload(opened(app), "staff_of_the_clinic.csv", STAFF.replace("grade", "diagnosis"))
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.run()
    for page in ("start", "data", "roles", "budget", "tree", "synthetic", "release", "ledger"):
        go(other, page)
        shown = words(other)
        assert "staff_of_the_clinic" not in shown
        assert "diagnosis" not in shown
        assert not [button for button in other.button if (button.key or "").startswith("open_")]
    assert other.session_state[KEY] is not app.session_state[KEY]
    assert other.session_state[KEY].table is None


def test_a_project_saved_under_a_name_is_opened_without_rows(app: AppTest) -> None:
    survey_saved(app, "staff 2026", "Staff survey")
    assert "without rows" in words(app)
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.run()
    (button,) = [item for item in other.button if (item.key or "").startswith("open_")]
    assert button.label == "Staff survey"
    button.click().run()
    project = other.session_state[KEY]
    assert project.table is None
    go(other, "tree")
    assert "The tree as it grew" in [item.value for item in other.header]
    document = house.store().open_project(project.identity).document
    assert "f,A" not in str(document)
    go(other, "data")
    assert "no longer attached" in words(other)


def test_without_a_login_the_shared_server_has_demo_data_only(app, monkeypatch) -> None:
    monkeypatch.setenv("JUSTITIA_MODE", "shared")
    app.user = {"is_logged_in": False}
    opened(app)
    assert not app.file_uploader
    assert "demo data only" in words(app)
    go(app, "start")
    app.button(key="demo_lending").click().run()
    assert not app.exception
    assert app.session_state[KEY].demo.name == "lending"


def test_owners_on_a_shared_server_see_neither_projects_nor_people_of_others(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUSTITIA_MODE", "shared")
    app.user = {"is_logged_in": True, "sub": "anna"}
    survey_saved(app, "staff of anna", "Anna's survey")
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    other.user = {"is_logged_in": True, "sub": "ben"}
    other.query_params["project"] = app.query_params["project"]
    other.run()
    assert other.session_state[KEY].identity == "", "an address alone opens nobody's project"
    assert "Anna" not in words(other)
    assert not [button for button in other.button if (button.key or "").startswith("open_")]
    upload(go(other, "data"), "staff.csv", STAFF)
    assert "staff of anna" not in str([box.options for box in other.selectbox])
    declare_as(other, "staff of anna")
    # The same name is another population: it has an owner, a cap and a ledger of its own.
    known = house.ledger().populations()
    assert sorted((found.name, found.owner) for found in known) == [
        ("staff of anna", "anna"),
        ("staff of anna", "ben"),
    ]
    assert house.ledger().spent("staff of anna", owner="anna") > 0
    assert house.ledger().spent("staff of anna", owner="ben") == 0
    assert not house.ledger().spends("staff of anna", owner="ben")


@pytest.mark.parametrize("damage", ["gone", "another version"])
def test_a_project_that_cannot_be_opened_says_so(app: AppTest, damage: str) -> None:
    upload(opened(app), "staff.csv", STAFF)
    go(app, "start")
    app.text_input(key="project_name").set_value("Survey")
    app.form_submit_button[0].click().run()
    identity = app.session_state[KEY].identity
    if damage == "gone":
        house.store().delete_project(identity)
    else:
        house.store().change_project(identity, lambda kept: {**kept, "version": 99}, name="Survey")
    later = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    later.query_params["project"] = identity
    later.run()
    assert not later.exception
    assert ("no project" if damage == "gone" else "another version") in words(later)
    assert later.session_state[KEY].identity == ""
    if damage != "gone":
        later.run()
        later.button(key=f"open_{identity}").click().run()
        assert not later.exception
        assert "another version" in words(later)


def test_visitors_wait_for_a_ledger_that_is_away_at_the_same_time(monkeypatch) -> None:
    """One after the other, the last of many would wait for everybody's timeout."""

    def away(url: str | None) -> None:
        sleep(0.3)
        raise LedgerError("the ledger is away")

    def visit(_: int) -> None:
        with pytest.raises(LedgerError):
            house.ledger()

    monkeypatch.setattr(house, "Ledger", away)
    monkeypatch.setattr(house, "_ledgers", {})
    begun = monotonic()
    visit(0)
    alone = monotonic() - begun
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(visit, range(6)))
    assert monotonic() - begun - alone < 3 * alone


def test_two_tabs_keep_what_each_of_them_paid_for(app: AppTest) -> None:
    first = fresh()
    first.change(draft=({"name": "age", "kind": ""},))
    other = house.open_project(first.identity)
    for tab, paid in ((first, "paid by the first"), (other, "paid by the other")):
        tab.change(runs=(*tab.runs, Run(paid, "plan", "table", "id")))
    first.change(name="renamed")
    kept = [run.request_id for run in house.open_project(first.identity).runs]
    assert kept == ["paid by the other", "paid by the first"], "a tab's own runs are its latest"
