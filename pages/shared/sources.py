"""Tables that stay where they are: choosing one below an offered folder, or in a database."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core import sources
from core.attachment import settled
from core.errors import JustitiaError, ReadingError
from core.plan import ReadingPlan
from core.sources import CONNECTION, FOLDER, Offer, ServerTable
from pages.shared import house, people, uploads
from pages.shared.network import plain
from pages.shared.project import Project
from pages.shared.widgets import TEXT, main

UPLOAD = "upload"
WAYS = {
    UPLOAD: "Upload",
    FOLDER: "Server",
    CONNECTION: "Database",
}
#: What Start calls them.
DOORS = {
    UPLOAD: ("Upload a file", ":material/upload_file:"),
    FOLDER: ("A file or folder on the server", ":material/folder:"),
    CONNECTION: ("A database connection", ":material/database:"),
}
COUNTED = {
    FOLDER: "The rows stay where they are: they are counted there, batch by batch, when something "
    "is released. Before that they are read once, to recognise the table and to find damage. "
    "Nothing is copied or shown.",
    CONNECTION: "The rows stay in the database, which counts them when something is released. "
    "Before that it is asked for the columns and the number of rows only. Nothing is copied or "
    "shown.",
}
#: Why nothing that shows rows is offered for such a table.
NO_ROWS = (
    "The rows of this table stay where they are and are not held here. What needs the rows "
    "themselves is not available for it: the first rows, suggestions from values, and the "
    "comparison with the real table. Upload a file that fits into memory to have those."
)
ASIDE = "as the file suggests"
DELIMITERS = {ASIDE: None, "comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
DECIMALS = {"point": ".", "comma": ","}


def who() -> frozenset[str]:
    """Names by which the administrator may offer something to whoever is here."""
    if not people.shared():
        return frozenset({people.LOCAL})
    found = people.person()
    return frozenset() if found is None else frozenset({found.identity, found.email} - {""})


def offer() -> Offer:
    """What is offered to whoever is here; nothing where the settings are wrong."""
    try:
        return sources.offered(who())
    except ReadingError:
        return Offer()


def ways() -> tuple[str, ...]:
    """Ways to a table besides an upload."""
    found = offer()
    return (*([FOLDER] if found.folders else []), *([CONNECTION] if found.connections else []))


def doors(project: Project) -> None:
    """On Start: one button for each way to a table, where there are several."""
    for way in (UPLOAD, *ways()):
        label, icon = DOORS[way]
        if st.button(label, key=f"way_{way}", icon=icon, width="stretch"):
            project.way = way
            st.switch_page("pages/steps/data.py")


def choose_way(project: Project) -> str:
    """Where the table is; an upload where nothing else is offered."""
    try:
        sources.offered(who())
    except ReadingError as error:
        st.warning(plain(str(error)), icon=":material/build:")
    options = [UPLOAD, *ways()]
    if len(options) == 1:
        return UPLOAD
    standing = project.source.kind if project.source is not None else UPLOAD
    if st.session_state.get("way") not in options:
        st.session_state.pop("way", None)
    if project.way in options:
        st.session_state["way"] = project.way
    project.way = ""
    picked = st.segmented_control(
        "Where is the table?",
        options,
        default=None if "way" in st.session_state else standing,
        format_func=WAYS.__getitem__,
        key="way",
        required=True,
        persist_state="session",
    )
    return picked if picked in options else UPLOAD


def draw(project: Project, way: str) -> None:
    """Choose a table that stays where it is."""
    (_folder if way == FOLDER else _connection)(project)
    st.caption(COUNTED[way], width=TEXT)


def _folder(project: Project) -> None:
    folders = offer().folders
    name = _pick("Folder", tuple(folders), "server_folder")
    if project.listing is None or project.listing[0] != name:
        _look(project, name)
    problem, found = project.listing[1:]
    if problem:
        st.error(plain(problem), icon=":material/error:")
        return
    st.selectbox(
        "File or folder",
        found.tables,
        index=None,
        format_func=_entry,
        key=f"server_path_{name}",
        placeholder="choose, or type a path below the folder",
        accept_new_options=True,
        help="Parquet or CSV. A folder is one table: all its files have the same columns.",
    )
    if not found.tables:
        st.caption("No Parquet or CSV file was found below this folder.")
    elif found.more:
        st.caption(f"The first {len(found.tables)} are listed; type the path of another.")
    with st.popover("Reading options for CSV", icon=":material/tune:"):
        st.selectbox("Separator", tuple(DELIMITERS), key="server_delimiter")
        st.selectbox("Decimal mark", tuple(DECIMALS), key="server_decimal")
        st.text_input("Encoding", key="server_encoding", placeholder="utf-8")

    def take_it() -> None:
        reading = ReadingPlan(
            delimiter=DELIMITERS[st.session_state["server_delimiter"]],
            decimal=DECIMALS[st.session_state["server_decimal"]],
            encoding=st.session_state["server_encoding"].strip() or None,
        )
        path = st.session_state[f"server_path_{name}"]
        take(project, ServerTable(FOLDER, name, _typed(path)), reading)

    with st.container(horizontal=True):
        _use(take_it)
        st.button(
            "Look again",
            key="server_look",
            icon=":material/refresh:",
            on_click=_look,
            args=(project, name),
            help="List the folder anew.",
        )


def _look(project: Project, name: str) -> None:
    try:
        project.listing = (name, "", sources.listing(offer().folders[name]))
    except (KeyError, ReadingError) as error:
        project.listing = (name, str(error), None)


def _entry(path: str) -> str:
    """How a path is shown: the folder itself in words."""
    if path == ".":
        return "the whole folder"
    return path if path.lower().endswith(sources.ENDINGS) else f"{path.rstrip('/')}/"


def _typed(path: str | None) -> str:
    return (path or "").strip().rstrip("/")


def _connection(project: Project) -> None:
    known = offer().connections
    name = _pick("Connection", tuple(known), "server_connection")
    tables = known[name].tables
    left, right = st.columns(2)
    key = f"server_table_{name}"
    with left:
        if tables is None:
            st.text_input("Table", key=key, placeholder="such as people, or schema.people")
        else:
            st.selectbox("Table", tables, index=None, key=key)
    with right:
        st.text_input(
            "Version of the rows",
            key="server_version",
            placeholder="such as the day of its last change",
            max_chars=100,
            help="The table is recognised by its name and this text, not by its rows. Give another "
            "as soon as the rows change, and the same as long as they do not.",
        )

    def take_it() -> None:
        table = (st.session_state[key] or "").strip()
        version = st.session_state["server_version"].strip()
        if not table or not version:
            lacking = "the table" if not table else "a version of its rows"
            project.problem = f"Name {lacking}, then choose again."
            return
        take(project, ServerTable(CONNECTION, name, table, version), ReadingPlan())

    _use(take_it)


def _pick(label: str, names: tuple[str, ...], key: str) -> str:
    """One of several; nothing is asked where there is only one."""
    if len(names) == 1:
        st.markdown(f"{label}: **{plain(names[0])}**")
        return names[0]
    if st.session_state.get(key) not in names:
        st.session_state.pop(key, None)
    return st.selectbox(label, names, key=key)


def _use(take_it: object) -> None:
    st.button(main("Use this table", "check"), key="server_use", type="primary", on_click=take_it)


def take(project: Project, wanted: ServerTable, reading: ReadingPlan) -> None:
    """Take a table by its columns; what cannot be opened changes nothing."""
    if not wanted.table:
        project.problem = "Choose a file or folder first."
        return
    try:
        chosen, table = sources.choose(wanted, reading, offer(), house.ledger())
    except JustitiaError as error:
        project.problem = str(error)
        return
    uploads.keeper().forget()  # an uploaded file that this table replaces
    project.header = ()
    project.reading = reading
    project.settled = settled(reading, table.report)
    types = dict(getattr(table, "storage", {}))
    project.synthetic = replace(project.synthetic, types=types)
    told = tuple(getattr(table, "notes", ()))[:1]  # what it goes by; NO_ROWS says the rest
    project.attach(None, chosen.label, table.names, source=chosen)
    kinds = sources.kinds_of(table)
    asked = [row["name"] for row in project.draft if not row["kind"] and row["name"] in kinds]
    project.draft = tuple(
        {**row, "kind": kinds[row["name"]].value} if row["name"] in asked else row
        for row in project.draft
    )
    words = f"Kinds of {len(asked)} columns follow from their names and types; no value was read."
    project.reading_notes = (*table.report.notes, *told, *((words,) if asked else ()))
    project.keep()
