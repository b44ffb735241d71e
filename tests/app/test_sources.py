"""Tables on the server in the workbench: offered or absent, chosen, released, found again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.shared import house, jobs, opening
from pages.shared import sources as pages_sources
from pages.shared.network import plain
from pages.shared.project import KEY
from pages.shared.whose import PERSON
from tests.app.conftest import ROOT, Held, cancel_button, go
from tests.app.test_data_page import STAFF, declare, opened, release, upload, words
from tests.app.test_people import ANNA

POPULATION = "staff 2026"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """staff.csv and parts/{1,2}.csv with the same rows, offered as "registry"."""
    folder = tmp_path / "registry"
    (folder / "parts").mkdir(parents=True)
    (folder / "staff.csv").write_text(STAFF)
    header, *rows = STAFF.splitlines(keepends=True)
    for name, some in (("1", rows[:30]), ("2", rows[30:])):
        (folder / "parts" / f"{name}.csv").write_text("".join([header, *some]))
    _offer(tmp_path, monkeypatch, f"[folders.registry]\npath = '{folder}'\n")
    return folder


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows in a database, offered as "clinic"."""
    import duckdb

    place = tmp_path / "people.duckdb"
    lines = [line.split(",") for line in STAFF.splitlines()]
    frame = pd.DataFrame(lines[1:], columns=lines[0])
    with duckdb.connect(place) as connection:
        connection.register("frame", frame)
        connection.execute("create table people as select * from frame")
    file = tmp_path / "connections.toml"
    file.write_text(f"[clinic]\nurl = 'duckdb://{place}'\ntables = ['people']\n")
    monkeypatch.setenv("JUSTITIA_CONNECTIONS", str(file))
    _offer(tmp_path, monkeypatch, "[connections.clinic]\n")


def _offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "sources.toml"
    file.write_text(text)
    monkeypatch.setenv("JUSTITIA_SOURCES", str(file))


def keys(app: AppTest) -> set[str]:
    return {str(button.key) for button in app.button}


def choose(app: AppTest, path: str) -> AppTest:
    """From Start to the columns of a table of the folder."""
    app.run()
    app.button(key="way_folder").click().run()
    assert not app.exception, app.exception[0].message
    app.selectbox(key="server_path_registry").set_value(path).run()
    app.button(key="server_use").click().run()
    assert not app.exception, app.exception[0].message
    return app


def prepared(app: AppTest, path: str) -> AppTest:
    """Everything up to the release button."""
    declare(choose(app, path), POPULATION)
    go(app, "roles")
    app.button(key="save_roles").click().run()
    go(app, "budget")
    app.button(key="apply_plan").click().run()
    return go(app, "tree")


def spent() -> object:
    return house.ledger().spent(POPULATION, owner=house.owner())


def test_nothing_is_offered_by_default(app: AppTest) -> None:
    app.run()
    assert not {"way_folder", "way_connection"} & keys(app)
    go(app, "data")
    assert all(group.key != "way" for group in app.segmented_control)
    assert len(app.file_uploader) > 0


def test_only_what_the_administrator_offers_is_there(app: AppTest, folder: Path) -> None:
    app.run()
    assert "way_folder" in keys(app)
    assert "way_connection" not in keys(app), "absent, not greyed out"


def test_a_folder_goes_all_the_way_and_is_the_uploaded_table(app: AppTest, folder: Path) -> None:
    choose(app, "parts")
    project = app.session_state[KEY]
    assert project.table is None
    assert [row["flagged"] for row in project.draft] == [False, False]
    assert "stay where they are" in words(app)
    assert "suggest" not in keys(app)
    assert not app.toggle, "no first rows are offered"
    declare(app, POPULATION)
    release(app, sex="protected", grade="outcome")
    run = project.run
    once = spent()
    go(app, "audit")
    assert pages_sources.NO_ROWS in words(app)
    other = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    upload(opened(other), "staff.csv", STAFF)
    declare(other, POPULATION)
    release(other, sex="protected", grade="outcome")
    assert other.session_state[KEY].run.table_id == run.table_id
    assert other.session_state[KEY].run.request_id == run.request_id
    assert spent() == once, "the same rows, the same plan: replayed for nothing"


def test_a_reload_finds_the_table_again(app: AppTest, folder: Path) -> None:
    prepared(app, "staff.csv")
    project = app.session_state[KEY]
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    again.query_params["project"] = project.identity
    again.run()
    assert again.session_state[KEY].source == project.source
    go(again, "tree")
    again.button(key="release_tree").click().run()
    assert again.session_state[KEY].release() is not None, words(again)
    assert str(folder) not in str(house.store().open_project(project.identity).document)


@pytest.mark.parametrize("change", ["rows", "gone", "withdrawn"])
def test_what_changed_is_said_before_anything_is_charged(
    app: AppTest, folder: Path, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(app, "staff.csv")
    if change == "rows":
        (folder / "staff.csv").write_text(STAFF + "f,A\n")
    elif change == "gone":
        (folder / "staff.csv").unlink()
    else:
        _offer(tmp_path, monkeypatch, "")
    app.button(key="release_tree").click().run()
    assert not app.exception
    expected = {"rows": "no longer what", "gone": "no such table", "withdrawn": "not offered"}
    (told,) = app.error
    assert expected[change] in told.value
    assert "Nothing was spent." in told.value
    assert spent() == 0
    assert app.session_state[KEY].runs == ()


def test_cancel_while_the_table_is_read_costs_nothing(
    app: AppTest, folder: Path, held: Held
) -> None:
    prepared(app, "parts")
    app.button(key="release_tree").click().run()
    assert "costs nothing at all" in words(app)
    reading = cancel_button(app).key
    cancel_button(app).click().run()
    held.release()
    assert opening.CANCELLED in [warning.value for warning in app.warning]
    assert not app.error
    assert spent() == 0
    assert "release_tree" in keys(app), "it can be tried again"
    app.button(key="release_tree").click().run()
    assert cancel_button(app).key == reading
    held.release()
    app.run()
    assert cancel_button(app).key != reading, "a late click on the free Cancel is not for this job"
    cancel_button(app).click().run()
    assert spent() == 0
    app.button(key="release_tree").click().run()
    held.release()  # reads the table
    app.run()
    held.release()  # measures
    app.run()
    assert app.session_state[KEY].release() is not None, words(app)


def test_a_table_that_changes_in_the_queue_is_not_charged(
    app: AppTest, folder: Path, held: Held
) -> None:
    prepared(app, "parts")
    app.button(key="release_tree").click().run()
    held.release()  # reads the table
    app.run()
    (folder / "parts" / "2.csv").write_text("sex,grade\nf,A\n")
    held.release()  # would measure
    app.run()
    assert not app.exception
    (told,) = app.error
    assert "no longer what they were" in told.value
    assert "Nothing was spent." in told.value
    assert spent() == 0
    assert "release_tree" in keys(app)


def test_a_reading_that_nobody_waited_for_charges_nothing_and_is_made_anew(
    app: AppTest, folder: Path, held: Held
) -> None:
    prepared(app, "parts")
    app.button(key="release_tree").click().run()
    held.release()
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    again.query_params["project"] = app.session_state[KEY].identity
    again.run()
    go(again, "tree")
    assert spent() == 0, "only the session that asked goes on"
    again.button(key="release_tree").click().run()
    assert len(held.waiting) == 1, "what was read meanwhile may be out of date"


def test_a_table_that_another_tab_went_on_with_is_said(
    app: AppTest, folder: Path, held: Held
) -> None:
    prepared(app, "parts")
    app.button(key="release_tree").click().run()
    identity = app.session_state[KEY].opening.identity
    held.release()
    jobs.desk().forget(identity)  # as the tab does that goes on
    app.run()
    assert not app.exception
    assert plain(opening.GONE) in [error.value for error in app.error]
    assert spent() == 0


def test_a_person_column_is_refused_when_it_is_declared(app: AppTest, folder: Path) -> None:
    choose(app, "staff.csv")
    whose = f"population_{app.session_state[KEY].generation}"
    app.selectbox(key=f"{whose}_unit").set_value(PERSON).run()
    app.selectbox(key=f"{whose}_person").set_value("sex").run()
    declare(app, POPULATION)
    assert any("rows of a person" in error.value for error in app.error)
    assert app.session_state[KEY].population is None


def test_a_database_goes_all_the_way_and_says_what_it_goes_by(app: AppTest, clinic: None) -> None:
    app.run()
    app.button(key="way_connection").click().run()
    app.selectbox(key="server_table_clinic").set_value("people").run()
    app.button(key="server_use").click().run()
    assert any("version of its rows" in error.value for error in app.error)
    app.text_input(key="server_version").set_value("2026-07").run()
    app.button(key="server_use").click().run()
    assert not app.exception
    assert "not by its rows" in words(app)
    project = app.session_state[KEY]
    assert [row["kind"] for row in project.draft] == ["categorical", "categorical"]
    for index, labels in enumerate(("f | m", "A | B | C")):
        key = f"column_{project.generation}_{index}_categories"
        app.text_input(key=key).set_value(labels).run()
    declare(app, POPULATION)
    release(app, sex="protected", grade="outcome")
    assert "duckdb" not in str(house.store().open_project(project.identity).document)


def test_guests_and_other_people_are_offered_nothing(
    app: AppTest, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"[folders.registry]\npath = '{folder}'\nowners = ['anna@example.org']\n"
    _offer(tmp_path, monkeypatch, text)
    monkeypatch.setenv("JUSTITIA_MODE", "shared")
    app.run()
    assert "way_folder" not in keys(app)
    for claims, sees in (
        ({**ANNA, "sub": "bert", "email": "bert@example.org"}, False),
        ({**ANNA, "email_verified": False}, False),
        (ANNA, True),
    ):
        somebody = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        somebody.user = claims
        somebody.run()
        assert ("way_folder" in keys(somebody)) == sees


def test_wrong_settings_are_said_and_the_upload_still_works(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _offer(tmp_path, monkeypatch, "[folders.x]\npath = 'relative'\n")
    upload(opened(app), "staff.csv", STAFF)
    assert any("has to mend it" in warning.value for warning in app.warning)
    assert app.session_state[KEY].table is not None
