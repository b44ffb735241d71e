"""The private workspace of the Audit page: opened with a reason, marked, and closed again."""

from __future__ import annotations

import streamlit as st

from core.audit.audits import PrivateAudit, ReleasedAudit
from core.errors import JustitiaError
from pages.shared import actions, audit_cards, audit_detail, audit_rules, guards, widgets
from pages.shared import audit_work as work
from pages.shared.held import Held
from pages.shared.jobs import desk
from pages.shared.network import plain
from pages.shared.project import Project
from pages.shared.sources import NO_ROWS

BANNER = (
    "What stands below is computed from the real table, without any noise. It may not be "
    "published, quoted or kept: no download, bundle or statement holds any of it. Who looked and "
    "why is written into the log."
)


def workspace(project: Project, holding: Held, audit: ReleasedAudit, key: str) -> None:
    """Everything that looks at the real table, under one banner."""
    with st.container(border=True, key="private_workspace"):
        st.error(
            BANNER,
            title="Private workspace: for your eyes only",
            icon=":material/visibility_lock:",
        )
        if project.look is not None and project.look.audit_key != key:
            project.close_look()  # it was set beside other rows
        opened = project.look
        if opened is None:
            _door(project, holding, audit, key)
            return
        if opened.found is None:
            job = desk().find(opened.identity)
            if job is not None and job.active:
                widgets.job_panel(job.identity, cancel="Nothing is kept and nothing is spent.")
                return
            widgets.job_ended(job)
            st.button("Close", key="audit_close_failed", on_click=project.close_look)
            return
        _show(project, audit, opened.found)


def _door(project: Project, holding: Held, audit: ReleasedAudit, key: str) -> None:
    if project.source is not None:
        st.markdown(f":material/visibility_off: {NO_ROWS}")
        return
    if not actions.has_rows(project):
        st.markdown(
            ":material/pending: The table is not attached. Put the file in again on Data to "
            "compare with it."
        )
        st.page_link(guards.PAGES["data"], label="Go to Data", icon=":material/arrow_forward:")
        return

    def enter() -> None:
        try:
            work.open_look(project, holding, audit, key, st.session_state["audit_reason"])
        except JustitiaError as error:
            project.confirm_problem = str(error)

    st.text_input(
        "Why do you look at the real table?",
        key="audit_reason",
        max_chars=200,
        placeholder="for example: check before signing",
        help="Logged with your name and the population. Name no person here.",
    )
    st.button(
        "Compare with the real table", key="audit_look", icon=":material/lock_open:", on_click=enter
    )
    st.caption("Costs no budget, because nothing of it leaves this screen.")
    if project.confirm_problem:
        st.error(plain(project.confirm_problem), title="Not compared")
        project.confirm_problem = ""


def _show(project: Project, audit: ReleasedAudit, beside: PrivateAudit) -> None:
    private = beside.scorecard.private
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(audit_cards.summary(private))
        st.button(
            "Close and forget",
            key="audit_close",
            icon=":material/visibility_off:",
            on_click=project.close_look,
        )
    for note in beside.notes:
        st.caption(plain(note))
    audit_cards.board(private, "audit_private_cards")
    names = ["Columns", "Pairs", "Both worlds", "Models", "Proxies", "All distances"]
    one, two, three, four, five, six = st.tabs(names, key="audit_private_tabs")
    with one:
        audit_detail.columns(audit, beside)
    with two:
        audit_detail.real_pairs(beside)
    with three:
        audit_rules.side_by_side(beside)
    with four:
        audit_rules.transfer(beside)
    with five:
        audit_rules.proxies(beside.rules, "audit_private_proxies")
    with six:
        audit_detail.everything(beside)
