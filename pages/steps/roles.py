"""Roles: who is protected from whom, and at once what that forbids."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from core.roles import Roles
from pages.shared import guards, pictures, role_editor
from pages.shared import project as state
from pages.shared.network import plain
from pages.shared.project import start_roles
from pages.shared.widgets import head, main

project = state.current()
head(
    "Roles",
    "The rule: in the released tree every path between a protected column and the outcome passes "
    "an admissible one. Give each column its role and see what that forbids.",
    project,
)
guards.require(project, "schema")
if project.role_draft is None and project.schema is not None:
    project.role_draft = start_roles(project.schema)
draft = project.role_draft or Roles()


def save() -> None:
    """Take the roles as they stand."""
    try:
        draft.check(tuple(column.name for column in project.modelled))
    except JustitiaError as error:
        project.problem = str(error)
        return
    project.change(roles=project.role_draft)
    project.say("Roles are saved. Nothing was spent.")


if project.problem:
    st.error(plain(project.problem), title="Not possible")
    project.problem = ""
names = [c.name for c in project.modelled if c.name not in draft.ignored]
choose, see = st.columns(2, gap="medium")
with choose:
    with st.expander("What the letters mean", icon=":material/help:"):
        role_editor.legend()
    role_editor.edit_roles(project)
    with st.container(horizontal=True):
        st.button(
            "Suggest from names",
            key="suggest_roles",
            icon=":material/lightbulb:",
            on_click=role_editor.suggest,
            args=(project,),
            help="Looks at column names only, never at values. You decide.",
        )
    with st.expander("Further rules", expanded=bool(draft.further)):
        st.markdown("A second rule holds beside the first: the tree must satisfy all of them.")
        role_editor.edit_rules(project)
with see:
    if not names:
        st.info("Every column is left out. Give at least two of them a role.")
    else:
        pairs = pictures.before(names, draft, key="roles_picture")
        if draft.constraints:
            for rule in draft.constraints:
                st.markdown(f":material/gavel: **{plain(rule.name)}**: {plain(rule.words)}.")
            total = len(names) * (len(names) - 1) // 2
            st.markdown(f"{len(pairs)} of {total} pairs are forbidden from the start.")
        else:
            st.info(
                "Nothing is forbidden yet: the rule needs at least one protected (S) and one "
                "outcome (O) column.",
                icon=":material/info:",
            )
        pictures.forbidden_table(pairs)
        with st.expander("What the rule does not guarantee", icon=":material/warning:"):
            st.markdown(
                "The independence holds **in the synthetic data**. A model trained on them may "
                "use inadmissible columns from the outcome's side, which in the real world can "
                "still carry the protected attribute. Where a column stands in for a protected "
                "one, choose “proxy”: it then counts as protected, at the price of less "
                "information about the outcome."
            )

st.button(
    main("Save roles", "check", disabled=len(names) < 2),
    key="save_roles",
    type="primary",
    on_click=save,
    disabled=len(names) < 2,
)
if project.roles is not None and project.role_draft != project.roles:
    st.warning(
        "The roles above differ from the saved ones. Releases use the saved ones; the Tree page "
        "waits until you save.",
        icon=":material/edit_note:",
    )
elif project.roles is not None:
    guards.next_step("budget", "Go on to Budget")
