"""Hostile files at the application's own doors: a sentence on the page, never a traceback."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import house
from pages.shared.project import KEY
from tests.app.conftest import go
from tests.hostile import payloads, seeds
from tests.hostile.test_plain_data import JSONS, PROJECTS, STATISTICS
from tests.hostile.test_tables import REFUSED

TABLES = (
    *("UTF-16 without a mark", "10,000 columns", "a million quotation marks", "billion laughs"),
    *("Parquet texts that are no UTF-8", "a truncated workbook", "500 repeated names"),
)


def upload(app: AppTest, key: str, name: str, data: bytes) -> AppTest:
    app.file_uploader(key=key).set_value((name, data, "application/octet-stream")).run()
    return app


def told(app: AppTest) -> str:
    assert not app.exception, app.exception[0].message
    return " ".join(error.value for error in app.error)


@pytest.fixture
def data_page(app):
    app.run()
    return go(app, "data")


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_is_refused_is_told_on_the_page(case, data_page):
    name, make, words = REFUSED[case]
    app = upload(data_page, "upload", name, make())
    text = told(app)
    assert words.split()[0].strip("'") in text
    assert not any(canary in text for canary in seeds.CANARIES)
    assert app.session_state[KEY].table is None
    assert house.ledger().populations() == []


def test_a_table_of_payloads_is_shown_and_runs_nothing(data_page):
    app = upload(data_page, "upload", "<script>.csv", payloads.table())
    assert told(app) == ""
    assert app.session_state[KEY].table is not None
    shown = " ".join(one.value for one in (*app.markdown, *app.caption, *app.info))
    for mark in ("<script", "<img", "\u202e"):
        assert mark not in shown.replace("\\<", "")


@pytest.mark.parametrize("case", ["deep lists", "an integer of 5,000 digits", "a name twice"])
def test_a_codebook_that_is_refused_is_told_on_the_page(case, data_page):
    app = upload(data_page, "upload", "t.csv", seeds.csv_files()[0])
    app = upload(app, "codebook", "book.json", JSONS[case][0])
    assert JSONS[case][1] in told(app).replace("\\", "")


@pytest.mark.parametrize("case", ["a value of 1e308", "a scale of 1e-320", "bounds of 1e300"])
def test_published_statistics_that_are_refused_are_told_on_the_page(case, app):
    app.run()
    go(app, "posterior")
    app.segmented_control(key="posterior_door").set_value("published").run()
    app.text_area(key="published_text").set_value(STATISTICS[case][0].decode()).run()
    assert STATISTICS[case][1] in told(app).replace("\\", "")


@pytest.mark.parametrize("document", PROJECTS[3:], ids=range(len(PROJECTS) - 3))
def test_a_kept_project_of_another_shape_opens_nothing(document, app):
    entry = house.store().save_project("p", {"version": 1}, owner="local")
    plain = {**document} if isinstance(document, dict) else {}
    if plain.get("attempt") == float("inf"):
        plain["attempt"] = "inf"  # the store keeps finite numbers only
    house.store().change_project(entry.project_id, lambda _: plain, name="p", owner="local")
    app.query_params["project"] = entry.project_id
    app.run()
    assert not app.exception
    assert app.session_state[KEY].identity != entry.project_id or not app.session_state[KEY].runs
