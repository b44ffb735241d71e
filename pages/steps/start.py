"""Start: the promise, three ways in, and where you left off."""

from __future__ import annotations

import streamlit as st

from core import demo
from core.errors import JustitiaError
from pages.shared import actions, guards, house, sources
from pages.shared import project as state
from pages.shared.network import plain
from pages.shared.widgets import head, main

project = state.current()
head(
    "Justitia",
    "Publish a synthetic copy of a table about people: private by a proof, fair by a rule that "
    "you can see, and priced before anything is touched.",
    project,
)


def begin(name: str) -> None:
    state.put(actions.start_demo(name))


def reopen(identity: str) -> None:
    try:
        state.put(house.open_project(identity))
    except JustitiaError as error:
        project.say(str(error))


if project.draft:
    need = guards.first_missing(project, "release")
    page = guards.NEEDS[need][1] if need else "synthetic"
    with st.container(border=True, key="left_off"):
        name = plain(project.name or project.table_label or "your project")
        st.markdown(f"**Where you left off:** {name}")
        words = guards.NEEDS[need][0] if need else "The tree is released."
        st.caption(words)
        st.page_link(
            guards.PAGES[page],
            label=guards.NEEDS[need][2] if need else "Go on to Synthetic",
            icon=":material/arrow_forward:",
        )

left, middle, right = st.columns(3)
with left.container(border=True, height="stretch"):
    st.header("Try a demo", anchor=False)
    st.markdown("Made-up people, known truth, nothing to lose. Five minutes from here to a bundle.")
    for name in demo.names():
        st.button(
            main(f"Start with {name}", "play_arrow", disabled=name != demo.names()[0]),
            key=f"demo_{name}",
            type="primary" if name == demo.names()[0] else "secondary",
            width="stretch",
            on_click=begin,
            args=(name,),
            help=demo.describe(name),
        )
with middle.container(border=True, height="stretch"):
    st.header("Use your own table", anchor=False)
    st.markdown(
        "CSV, Parquet or Excel. What you upload stays in this server's memory and is never written."
    )
    if house.demo_only():
        st.info("Without a login this server works with demo data only.", icon=":material/lock:")
    elif sources.ways():
        sources.doors(project)
    else:
        st.page_link(guards.PAGES["data"], label="Upload on Data", icon=":material/upload_file:")
with right.container(border=True, height="stretch"):
    st.header("Open a project", anchor=False)
    saved = [] if house.demo_only() else house.saved_projects()
    if not saved:
        st.markdown("Projects that you save under a name are listed here. They hold no rows.")
    for identity, name in saved[:8]:
        st.button(
            plain(name),
            key=f"open_{identity}",
            icon=":material/folder_open:",
            width="stretch",
            on_click=reopen,
            args=(identity,),
        )

if project.draft:
    with st.container(border=True, key="save_box"):
        st.header("Keep this project", anchor=False)

        def save() -> None:
            name = st.session_state["project_name"].strip()
            if name in ("", house.UNLISTED):
                project.say("Give the project a name of its own to save it.")
                return
            project.change(name=name, listed=True)
            project.say(f"Saved as “{plain(name)}”, without rows.")

        with (
            st.form("save_project", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input(
                "Name of the project", value=project.name, key="project_name", max_chars=80
            )
            st.form_submit_button("Save project", icon=":material/save:", on_click=save)
        st.caption(
            "Saved are declarations, roles, plan and the ids of releases, never rows. Attach the "
            "table again to spend again; everything else works without it."
        )
        if project.table is not None or project.source is not None:
            st.button(
                "Forget this table",
                icon=":material/delete:",
                on_click=project.forget_table,
                help="Drops uploaded rows from memory now, or the way to a table on the server. "
                "Releases stay readable.",
            )

st.caption(
    "The order of work is the order of the menu: Data, Roles, Budget, Tree, Synthetic, Release. "
    "Buttons that spend budget say so and name the price: on Tree, Posterior and Covariance."
)
