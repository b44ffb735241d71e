"""Data: read a table, declare its columns in public terms, and say whose data it is."""

from __future__ import annotations

import streamlit as st

from core import codebook
from core.errors import JustitiaError
from pages.shared import actions, confirm, guards, house, sources, uploads
from pages.shared import project as state
from pages.shared.columns import edit_columns
from pages.shared.network import plain
from pages.shared.whose import edit_population
from pages.shared.widgets import TEXT, head

project = state.current()
head(
    "Data",
    "Declare what each column may hold, from public knowledge and before anybody looks. "
    "Nothing on this page spends budget.",
    project,
)


def uploaded() -> None:
    """A file was put in, replaced or taken away."""
    file = uploads.held("upload")
    if file is None:
        project.forget_table()
        project.say("The file is gone from memory. Releases stay readable.")
        return
    try:
        uploads.check_size(file)
    except JustitiaError as error:
        project.problem = str(error)
        return
    actions.take_upload(project, file.name, file.getvalue())


def imported() -> None:
    """A codebook was put in: its declarations replace those of columns with the same name."""
    file = uploads.held("codebook")
    if file is None:
        return
    try:
        uploads.check_size(file, codebook.MAXIMUM_BYTES)
        found = codebook.read_codebook(file.getvalue())
    except JustitiaError as error:
        project.problem = str(error)
        return
    confirm.take_declarations(project, found, file.name)


def suggest() -> None:
    """Suggestions from values, on request: every one of them is flagged to the end."""
    try:
        confirm.take_suggestions(project)
    except JustitiaError as error:
        project.problem = str(error)


st.header("Table", anchor=False)
if project.demo is not None:
    st.markdown(
        f":material/science: Demo table **{project.demo.name}**, {project.demo.rows:,} made-up "
        "people. Its declarations are filled in; look them over and confirm."
    )
elif project.table is not None:
    st.markdown(f":material/lock: Attached: **{plain(project.table_label)}**, in memory only.")
elif project.source is not None:
    st.markdown(
        f":material/lock: Chosen: **{plain(project.table_label)}**. Its rows stay where they are."
    )
elif project.table_name:
    st.markdown(
        f":material/link_off: **{plain(project.table_name)}** is no longer attached. Everything "
        "works without it, except spending; put the file in again for that."
    )
if house.demo_only():
    st.caption("Without a login this server works with demo data only.")
else:
    with st.expander(
        "A table of your own" if sources.ways() else "Upload a table of your own",
        expanded=not project.draft,
        icon=":material/table:" if sources.ways() else ":material/upload_file:",
    ):
        way = sources.choose_way(project)
        if way == sources.UPLOAD:
            uploads.uploader(
                "CSV, Parquet or Excel file",
                ["csv", "tsv", "txt", "parquet", "pq", "xlsx"],
                "upload",
                on_change=uploaded,
            )
            confirm.reading_options(project)
        else:
            sources.draw(project, way)
if project.problem:
    st.error(plain(project.problem), title="This table was not taken", icon=":material/error:")
    project.problem = ""
for note in project.reading_notes:
    st.caption(f":material/info: {plain(note)}")
if not project.draft:
    guards.require(project, "draft")

if project.source is not None:
    st.caption(f":material/visibility_off: {sources.NO_ROWS}", width=TEXT)
confirm.private_workspace(project)

st.header("Columns", anchor=False)
st.markdown(
    "Each line: what a column holds, its categories or its lowest and highest value, its bins, and "
    "what a missing value counts as. Categories stand between bars: `low | middle | high`. What a "
    "file holds beyond them falls into one “other” cell; numbers move to the nearest bound.",
    width=TEXT,
)
with st.container(horizontal=True, key="column_tools"):
    with st.popover("Import a codebook", icon=":material/menu_book:"):
        uploads.uploader(
            "Codebook (CSV or JSON)",
            ["csv", "json", "txt"],
            "codebook",
            bytes_at_most=codebook.MAXIMUM_BYTES,
            on_change=imported,
        )
        st.caption("Public declarations; they replace those of columns with the same name.")
    if project.source is None:
        with st.popover("Suggest from values", icon=":material/lightbulb:"):
            st.markdown(
                "Suggestions look at the rows. What they reveal is **not** covered by the "
                "guarantee, so every release made with one is flagged **data-dependent domain**, "
                "in the statement too. A codebook avoids that."
            )
            st.button(
                "Look at the values and suggest",
                key="suggest",
                on_click=suggest,
                disabled=not actions.has_rows(project) or project.demo is not None,
            )
edit_columns(project)

st.header("People", anchor=False)
with st.container(border=True):
    edit_population(project)

confirm.confirm_box(project)
if project.schema is not None and project.population is not None:
    confirm.summary(project)
    guards.next_step("roles", "Go on to Roles")
