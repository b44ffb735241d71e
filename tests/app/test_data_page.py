"""Own tables: reading, declaring, whose data it is, replacing and removing files."""

from __future__ import annotations

import io

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from core.plan import ReadingPlan
from core.schema import Kind
from pages.shared import actions, house
from pages.shared.held import held
from pages.shared.network import plain
from pages.shared.project import KEY
from pages.shared.whose import NEW
from tests.app.conftest import ROOT, go

STAFF = "sex,grade\n" + "f,A\nm,B\n" * 50
OTHER_ROWS = "sex,grade\n" + "m,A\nm,B\n" * 50
OTHER_COLUMNS = "sex,team\n" + "f,red\nm,blue\n" * 50
CODEBOOK = "name,kind,categories\nsex,categorical,f|m\ngrade,ordinal,A|B|C\n"


def words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(str(item.value) for kind in kinds for item in kind)


def opened(app: AppTest) -> AppTest:
    app.run()
    return go(app, "data")


def upload(app: AppTest, name: str, content: str | bytes, key: str = "upload") -> AppTest:
    data = content.encode() if isinstance(content, str) else content
    app.file_uploader(key=key).set_value((name, data, "text/csv")).run()
    assert not app.exception, app.exception[0].message
    return app


def declare(app: AppTest, population: str) -> AppTest:
    project = app.session_state[KEY]
    generation = project.generation
    kinds = {"sex": "categorical", "grade": "ordinal", "team": "categorical"}
    values = {"sex": "f | m", "grade": "A | B | C", "team": "red | blue"}
    for index, row in enumerate(project.draft):
        if not row["kind"]:
            key = f"column_{generation}_{index}"
            app.selectbox(key=f"{key}_kind").set_value(kinds[row["name"]]).run()
            app.text_input(key=f"{key}_categories").set_value(values[row["name"]]).run()
    whose = f"population_{generation}"
    known = house.known_populations()
    if known:
        app.selectbox(key=f"{whose}_same").set_value(
            population if population in known else NEW
        ).run()
    if population not in known:
        app.text_input(key=f"{whose}_name").set_value(population).run()
    if any(box.key == f"{whose}_expected_rows" for box in app.text_input):
        app.text_input(key=f"{whose}_expected_rows").set_value("100").run()
    app.checkbox(key="public_domain").check().run()
    app.button(key="confirm_schema").click().run()
    assert not app.exception
    return app


def release(app: AppTest, **roles: str) -> AppTest:
    go(app, "roles")
    identity = app.session_state[KEY].identity
    for name, role in roles.items():
        app.segmented_control(key=f"role_{identity}_{name}").set_value(role).run()
    app.button(key="save_roles").click().run()
    go(app, "budget")
    app.button(key="apply_plan").click().run()
    go(app, "tree")
    app.button(key="release_tree").click().run()
    assert not app.exception
    assert app.session_state[KEY].release() is not None, words(app)
    return app


def test_an_own_table_goes_all_the_way(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    project = app.session_state[KEY]
    assert [row["kind"] for row in project.draft] == ["", ""], "nothing is suggested unasked"
    assert app.button(key="confirm_schema").disabled
    declare(app, "staff 2026")
    assert project.schema["grade"].kind is Kind.ORDINAL
    assert project.population.expected_rows == 100
    release(app, sex="S", grade="O")
    assert project.release().schema.names == ("sex", "grade")
    assert not project.release().provenance.flags


def test_suggestions_come_only_on_request_and_are_flagged_to_the_end(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    app.button(key="suggest").click().run()
    project = app.session_state[KEY]
    assert all(row["flagged"] for row in project.draft)
    assert "data-dependent domain" in words(app)
    declare(app, "staff 2026")
    release(app, sex="S", grade="O")
    assert "data-dependent domain" in project.release().provenance.flags


def test_a_codebook_declares_without_a_flag(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    upload(app, "codebook.csv", CODEBOOK, key="codebook")
    project = app.session_state[KEY]
    assert [row["kind"] for row in project.draft] == ["categorical", "ordinal"], words(app)
    declare(app, "staff 2026")
    assert project.schema["grade"].categories == ("A", "B", "C")
    assert project.schema.data_dependent == ()


def test_what_is_typed_is_kept_at_once_and_what_is_wrong_is_named(app: AppTest) -> None:
    upload(opened(app), "ages.csv", "age\n30\n40\n")
    key = f"column_{app.session_state[KEY].generation}_0"
    app.selectbox(key=f"{key}_kind").set_value("integer").run()
    app.text_input(key=f"{key}_lower").set_value("0").run()
    app.text_input(key=f"{key}_upper").set_value("12o").run()
    assert "upper must be a number" in words(app)
    assert app.text_input(key=f"{key}_upper").value == "12o"
    address = app.query_params["project"]
    app.text_input(key=f"{key}_upper").set_value("120").run()
    reloaded = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    reloaded.query_params["project"] = address
    reloaded.run()
    go(reloaded, "data")
    project = reloaded.session_state[KEY]
    (row,) = project.draft
    assert (row["lower"], row["upper"]) == ("0", "120")
    assert reloaded.text_input(key=f"column_{project.generation}_0_upper").value == "120"


def test_an_unconfirmed_edit_blocks_the_release(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    declare(app, "staff 2026")
    go(app, "roles")
    app.button(key="save_roles").click().run()
    go(app, "budget")
    app.button(key="apply_plan").click().run()
    go(app, "data")
    key = f"column_{app.session_state[KEY].generation}_1_categories"
    app.text_input(key=key).set_value("A | B | C | D").run()
    go(app, "tree")
    assert app.button(key="release_tree").disabled
    assert "not confirmed" in words(app)
    go(app, "data")
    app.button(key="confirm_schema").click().run()
    go(app, "tree")
    assert not app.button(key="release_tree").disabled


def test_replacing_the_file_asks_whose_it_is_and_keeps_the_first_release(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    declare(app, "staff 2026")
    release(app, sex="S", grade="O")
    project = app.session_state[KEY]
    first = project.run
    go(app, "data")
    upload(app, "staff.csv", OTHER_ROWS)
    assert project.population is None
    assert project.table_number == 2
    assert project.roles.role("sex") == "S"
    assert "carried over for 2 columns" in words(app)
    go(app, "tree")
    assert "made with earlier" in words(app)
    go(app, "data")
    app.text_input(key=f"population_{project.generation}_name").set_value("others").run()
    app.checkbox(key="public_domain").check().run()
    app.button(key="confirm_schema").click().run()
    assert project.population is None
    assert "same people" in words(app), "a new file must be given its people on purpose"
    declare(app, "staff 2026")
    go(app, "budget")
    app.button(key="apply_plan").click().run()
    go(app, "tree")
    assert not app.button(key="release_tree").disabled
    app.button(key="release_tree").click().run()
    assert project.run.request_id != first.request_id
    assert project.run.table == "staff.csv (table 2)"
    assert first.table == "staff.csv (table 1)"
    assert len(house.ledger().spends("staff 2026")) == 2
    go(app, "data")
    upload(app, "staff.csv", OTHER_COLUMNS)
    assert plain("gone: grade") in words(app)
    assert set(project.roles.by_column) == {"sex"}
    app.file_uploader(key="upload").set_value(None).run()
    assert project.table is None
    assert project.release(first) is not None
    go(app, "synthetic")


def test_forgetting_the_table_keeps_the_release(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF)
    declare(app, "staff 2026")
    release(app, sex="S", grade="O")
    go(app, "start")
    (forget,) = [button for button in app.button if button.label == "Forget this table"]
    forget.click().run()
    assert app.session_state[KEY].table is None
    go(app, "tree")
    assert app.session_state[KEY].release() is not None
    assert not [button for button in app.button if button.key == "spend_again"]


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("people.csv", b"age,age,,city\n34,35,x,Ulm\n", "appears twice"),
        ("people.csv", b"\x89PNG\r\n\x1a\n" + bytes(64), "people.csv"),
        ("people.csv", b"age,city\n", "people.csv"),
        ("people.xlsx", b"not a zip", "people.xlsx"),
    ],
    ids=["repeated", "picture", "header only", "not excel"],
)
def test_a_file_that_cannot_be_read_changes_nothing(app, name, content, word) -> None:
    upload(opened(app), "staff.csv", STAFF)
    before = app.session_state[KEY].draft
    upload(app, name, content)
    (error,) = app.error
    assert word in error.value.replace("\\", "")
    assert app.session_state[KEY].draft == before
    assert app.session_state[KEY].table_name == "staff.csv"


def test_names_for_nameless_columns_are_offered_and_edited(app: AppTest) -> None:
    upload(opened(app), "people.csv", "age\tage\t\tcity\n34\t35\tx\tUlm\n51\t50\ty\tJena\n")
    offered = [box.value for box in app.text_input if (box.key or "").startswith("header_")]
    assert offered == ["age", "age_2", "column_3", "city"]
    app.text_input(key="header_1").set_value("age_then").run()
    app.button(key="take").click().run()
    assert not app.exception
    names = [row["name"] for row in app.session_state[KEY].draft]
    assert names == ["age", "age_then", "column_3", "city"], words(app)
    assert "tab" in words(app)


def test_many_columns_are_edited_in_one_grid(app: AppTest) -> None:
    names = [f"c{i}" for i in range(200)]
    table = pd.DataFrame({name: ["a", "b"] for name in names})
    buffer = io.StringIO()
    table.to_csv(buffer, index=False)
    upload(opened(app), "wide.csv", buffer.getvalue())
    project = app.session_state[KEY]
    key = f"columns_{project.generation}"
    assert not any((box.key or "").startswith("column_") for box in app.text_input)
    from pages.shared import columns

    class State(dict):
        pass

    edits = {key: {"edited_rows": {3: {"kind": "categorical", "categories": "a | b"}}}}
    original, columns.st.session_state = columns.st.session_state, State(edits)
    try:
        columns._grid_edited(project, key)
    finally:
        columns.st.session_state = original
    assert project.draft[3]["categories"] == "a | b"
    assert project.base[3]["categories"] == "", "the grid's input must not be fed its output"
    app.run()
    assert not app.exception


def test_the_preview_is_shown_only_in_the_private_workspace(app: AppTest) -> None:
    upload(opened(app), "staff.csv", STAFF.replace("f,A", "zebra,A"))
    assert "zebra" not in words(app) + "".join(f.value.to_csv() for f in app.dataframe)
    app.toggle(key="show_rows").set_value(True).run()
    box = app.container(key="private_workspace")
    assert "zebra" in box.dataframe[0].value.to_csv()
    assert "Private workspace" in words(app)


def declare_as(app: AppTest, population: str) -> None:
    project = app.session_state[KEY]
    for index, values in enumerate(("f | m", "A | B | C")):
        key = f"column_{project.generation}_{index}"
        app.selectbox(key=f"{key}_kind").set_value("categorical").run()
        app.text_input(key=f"{key}_categories").set_value(values).run()
    app.text_input(key=f"population_{project.generation}_name").set_value(population).run()
    app.checkbox(key="public_domain").check().run()
    app.button(key="confirm_schema").click().run()
    assert not app.exception


def test_what_was_found_out_about_a_file_is_declared_from_then_on(app: AppTest) -> None:
    rows = "grade;sex;größe\n" + "A;f;1,5\nB;m;2,5\n" * 50
    upload(opened(app), "staff.csv", rows.encode("cp1252"))
    project = app.session_state[KEY]
    assert project.reading == ReadingPlan()
    assert (project.settled.delimiter, project.settled.decimal) == (";", ",")
    assert project.settled.encoding == "cp1252"
    index = project.generation
    app.selectbox(key=f"column_{index}_2_kind").set_value("real").run()
    app.text_input(key=f"column_{index}_2_lower").set_value("1").run()
    app.text_input(key=f"column_{index}_2_upper").set_value("3").run()
    declare(app, "staff of a semicolon")
    release(app, sex="S", grade="O")
    assert project.plan.reading == project.settled
    upload(go(app, "data"), "comma.csv", STAFF)
    assert app.session_state[KEY].settled.delimiter == ",", "another file is looked at afresh"


def test_a_parquet_download_has_the_types_of_a_parquet_upload(app: AppTest) -> None:
    types = {"sex": pa.dictionary(pa.int8(), pa.string()), "grade": pa.large_string()}
    table = pa.table({"sex": ["f", "m"] * 50, "grade": ["A", "B"] * 50}, pa.schema(types))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    upload(opened(app), "staff.parquet", buffer.getvalue())
    declare(app, "staff in parquet")
    release(app, sex="S", grade="O")
    go(app, "synthetic")
    app.button(key="fit_and_sample").click().run()
    project = app.session_state[KEY]
    holding = held(project)
    made = actions.derived(project, holding)
    blob = actions.table_bytes(holding, made.synthetic, "parquet")
    assert pq.read_schema(io.BytesIO(blob)).types == table.schema.types
    csv = actions.table_bytes(holding, made.synthetic, "csv")
    assert csv == made.files["synthetic.csv"]


HOSTILE = "![x](http://example.org/a.png)"


def texts(app: AppTest) -> str:
    """Everything on a page that Streamlit reads as Markdown: texts and the labels of widgets."""
    kinds = ("selectbox", "text_input", "segmented_control", "checkbox", "button", "text_area")
    labels = [str(item.label) for kind in kinds for item in getattr(app, kind)]
    headings = [str(item.value) for kind in (app.title, app.header, app.subheader) for item in kind]
    return "\n".join([words(app), *labels, *headings])


def test_names_are_never_read_as_markdown(app: AppTest) -> None:
    content = f'"{HOSTILE}",grade\n' + "f,A\nm,B\n" * 50
    upload(opened(app), "staff.csv", content)
    project = app.session_state[KEY]
    index = project.generation
    app.selectbox(key=f"column_{index}_0_kind").set_value("categorical").run()
    app.text_input(key=f"column_{index}_0_categories").set_value(f"f | m | {HOSTILE}").run()
    seen = [texts(app)]
    declare(app, f"people {HOSTILE}")
    seen.append(texts(app))
    go(app, "roles")
    seen.append(texts(app))
    app.button(key="suggest_roles").click().run() if app.button(key="suggest_roles") else None
    seen.append(texts(app))
    release(app, **{HOSTILE: "S", "grade": "O"})
    for page in ("tree", "synthetic", "release", "ledger", "budget", "start"):
        go(app, page)
        if page == "synthetic":
            app.button(key="fit_and_sample").click().run()
        assert not app.exception
        seen.append(texts(app))
    upload(go(app, "data"), "staff.csv", OTHER_ROWS)
    seen.append(texts(app))
    assert "example" in "".join(seen), "the name was shown at all"
    for number, text in enumerate(seen):
        assert HOSTILE not in text, (number, text[max(text.find(HOSTILE) - 200, 0) :][:400])
