"""Pages that need what follows from the releases: it is there, or they wait for it and stop."""

from __future__ import annotations

from typing import NoReturn

import streamlit as st

from core.deriving import Derived
from pages.shared import actions, widgets
from pages.shared.held import Held
from pages.shared.jobs import Job, desk
from pages.shared.project import Project


def derived(project: Project, holding: Held) -> Derived:
    """What was made from the releases; where it is not there it is made anew, for nothing."""
    made = actions.derived(project, holding)
    if made is not None:
        return made
    job = desk().find(holding.key) or actions.derive_files(holding)
    if job.active:
        widgets.job_panel(holding.key, cancel="Nothing is spent either way.")
        st.stop()
    made = actions.derived(project, holding)
    if made is None:
        ended(job)
    return made


def ended(job: Job) -> NoReturn:
    """How free work ended without a result, a button that begins it anew, and no more page."""
    begin_again(job)
    st.stop()


def begin_again(job: Job, key: str = "begin_again") -> None:
    """How free work ended without a result, and a button that begins it anew."""
    widgets.job_ended(job)
    st.button(
        "Begin again",
        key=key,
        icon=":material/refresh:",
        on_click=desk().forget,
        args=(job.identity,),
    )
