"""The rest of the Data page: reading options, declarations from elsewhere, and confirming."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core import sources
from core.errors import JustitiaError, SchemaError
from core.private.reading import preview
from core.roles import Role, Roles
from core.schema import Schema
from pages.shared import actions, house, uploads
from pages.shared.declare import column_of, problem, row_of
from pages.shared.network import plain
from pages.shared.project import Project, start_roles
from pages.shared.whose import read_population
from pages.shared.widgets import main

ASIDE = "as the file suggests"
DELIMITERS = {ASIDE: None, "comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
DECIMALS = {ASIDE: None, "point": ".", "comma": ","}
ENCODINGS = (ASIDE, "utf-8", "utf-16", "cp1252", "latin-1")


def reading_options(project: Project) -> None:
    """How to read the file where its own marks do not say; and names for nameless columns."""
    if uploads.held("upload") is None:
        return
    if project.header:
        _names(project)
    with st.container(horizontal=True, vertical_alignment="bottom", key="reading"):
        st.selectbox("Separator", tuple(DELIMITERS), key="delimiter")
        st.selectbox("Decimal mark", tuple(DECIMALS), key="decimal")
        st.selectbox("Encoding", ENCODINGS, key="encoding")
        st.text_input("Sheet (Excel)", key="sheet", placeholder="first sheet")

        def again() -> None:
            encoding = st.session_state["encoding"]
            project.reading = replace(
                project.reading,
                delimiter=DELIMITERS[st.session_state["delimiter"]],
                decimal=DECIMALS[st.session_state["decimal"]],
                encoding=None if encoding == ASIDE else encoding,
                sheet=st.session_state["sheet"] or None,
            )
            _take(project)

        st.button("Read again", icon=":material/refresh:", on_click=again)


def _take(project: Project) -> None:
    """Read the uploaded file, if it was not let go since the page was drawn."""
    file = uploads.held("upload")
    if file is not None:
        actions.take_upload(project, file.name, file.getvalue())


def _names(project: Project) -> None:
    proposal = project.header
    st.markdown("**Names for the columns.** Edit them if you like, then take the file.")
    for index, name in enumerate(proposal):
        st.text_input(f"Column {index + 1}", value=name, key=f"header_{index}")

    def take() -> None:
        wanted = {
            name: st.session_state[f"header_{index}"].strip() or name
            for index, name in enumerate(proposal)
        }
        project.reading = replace(project.reading, rename=wanted)
        _take(project)

    st.button(
        main("Take the file with these names", "check"), key="take", type="primary", on_click=take
    )


def private_workspace(project: Project) -> None:
    """The first rows, for the steward's eyes, only when asked for and plainly marked."""
    if not actions.has_rows(project):
        return
    if not st.toggle(
        "Show the first rows (private workspace)",
        key="show_rows",
        help="For your eyes: raw values, straight from the file. Do not share this view.",
    ):
        return
    with st.container(border=True, key="private_workspace"):
        st.markdown(
            ":material/visibility_lock: **Private workspace.** Raw values, not protected by "
            "anything. Nothing of this enters a release or leaves this page."
        )
        st.dataframe(
            preview(actions.rows_of(project), rows=20),
            hide_index=True,
            alt="First rows of the table, private workspace",
        )


def take_declarations(project: Project, found: Schema, source: str) -> None:
    """Put declarations from a codebook into the draft, by column name."""
    known = {column.name: row_of(column) for column in found.columns}
    names = [row["name"] for row in project.draft]
    taken = [name for name in names if name in known]
    foreign = [name for name in known if name not in names]
    project.draft = tuple(known.get(row["name"], row) for row in project.draft)
    project.generation += 1
    words = f"{source}: declarations of {len(taken)} columns were taken."
    if foreign:
        words += f" Not in the table: {', '.join(foreign[:6])}."
    project.say(words)
    project.keep()


def take_suggestions(project: Project) -> None:
    """Fill undeclared columns with suggestions from values, each of them flagged."""
    from core.private.suggestions import suggest_schema

    suggestion = suggest_schema(actions.rows_of(project))
    rows = {column.name: row_of(column) for column in suggestion.schema.columns}
    filled = [row["name"] for row in project.draft if not row["kind"] and row["name"] in rows]
    project.draft = tuple(
        {**rows[row["name"]], "flagged": True} if row["name"] in filled else row
        for row in project.draft
    )
    project.generation += 1
    project.say(
        f"{len(filled)} columns were suggested from values. Releases made with them are flagged "
        "“data-dependent domain”. To lose the flag, replace them by a codebook."
    )
    for note in suggestion.notes:
        project.say(note)
    project.keep()


# -- confirming ------------------------------------------------------------------------------


def drafted(project: Project) -> Schema | None:
    """The schema that the draft means, or None while something cannot be accepted."""
    try:
        return Schema(tuple(column_of(row) for row in project.draft))
    except (SchemaError, ValueError, TypeError):
        return None


def unconfirmed(project: Project) -> bool:
    """Whether the declarations on Data differ from those that were confirmed."""
    return project.schema is not None and drafted(project) != project.schema


def _confirm(project: Project) -> None:
    try:
        schema = Schema(tuple(column_of(row) for row in project.draft))
        population = read_population(project)
        if project.source is not None:
            sources.check_unit(population.unit)
        house.check_population(population, demo=project.demo is not None)
    except (JustitiaError, ValueError, TypeError) as error:
        project.confirm_problem = str(error)
        return
    project.schema, project.population = schema, population
    names = {column.name for column in schema.modelled}
    draft = project.role_draft or start_roles(schema)
    project.role_draft = _within(draft, names)
    if project.roles is not None:
        project.roles = _within(project.roles, names)
    project.say("Confirmed. Nothing was spent.")
    project.keep()


def _within(roles: Roles, names: set[str]) -> Roles:
    """Roles for the columns that can be modelled; new ones start inadmissible."""
    return Roles(
        {name: roles.by_column.get(name, Role.INADMISSIBLE) for name in sorted(names)},
        roles.proxies & names,
        tuple(rule for rule in roles.further if rule.columns <= names),
    )


def confirm_box(project: Project) -> None:
    """The tick, the button, and what is still in the way."""
    undecided = [row["name"] for row in project.draft if not row["kind"]]
    wrong = [words for row in project.draft if row["kind"] and (words := problem(row))]
    with st.container(border=True, key="confirm_box"):
        if undecided:
            names = ", ".join(plain(name) for name in undecided[:6])
            more = f" and {len(undecided) - 6} more" if len(undecided) > 6 else ""
            st.caption(f":material/pending: Not declared yet: {names}{more}.")
        for words in wrong[:6]:
            st.caption(f":material/error: {plain(words)}")
        st.checkbox(
            "These declarations come from public knowledge, not from looking at the rows "
            "(except where flagged).",
            key="public_domain",
            persist_state="session",
        )
        waiting = bool(undecided or wrong) or not st.session_state["public_domain"]
        st.button(
            main("Confirm schema", "check", disabled=waiting),
            key="confirm_schema",
            type="primary",
            on_click=_confirm,
            args=(project,),
            disabled=waiting,
        )
        if project.confirm_problem:
            st.error(plain(project.confirm_problem), title="Not confirmed yet")
            project.confirm_problem = ""
        if unconfirmed(project):
            st.warning(
                "What you typed differs from what is confirmed. Releases use what is confirmed; "
                "the Tree page waits until you confirm.",
                icon=":material/edit_note:",
            )


def summary(project: Project) -> None:
    """What is confirmed, in one line."""
    schema = project.schema
    if schema is None:
        return
    modelled = schema.modelled
    cells = sum(column.size for column in modelled)
    flagged = len(schema.data_dependent)
    words = f"Confirmed: {len(modelled)} columns with {cells:,} cells in all"
    left_out = len(schema.columns) - len(modelled)
    words += f", {left_out} left out" if left_out else ""
    words += f", {flagged} suggested from values" if flagged else ""
    st.caption(f":material/check_circle: {words}.")
