"""Audit: are the synthetic rows good and fair enough to sign, and what of that may be published."""

from __future__ import annotations

import streamlit as st

from core.audit.settings import LEARNERS
from core.bundle import file_name
from core.errors import JustitiaError
from core.report.page import released_report
from pages.shared import audit_cards, audit_detail, audit_rules, guards, waiting, widgets
from pages.shared import audit_work as work
from pages.shared import project as state
from pages.shared.audit_controls import workspace
from pages.shared.held import held
from pages.shared.jobs import desk
from pages.shared.network import label, plain

project = state.current()
widgets.head(
    "Audit",
    "Are the synthetic rows good and fair enough to sign? The first part follows from the release "
    "and may be published. The second looks at the real table and is for your eyes only.",
    project,
)
guards.require(project, "tree")
holding = held(project)
assert holding is not None
made = waiting.derived(project, holding)
widgets.stale_badge(project, holding.runs[0])
settings = work.settings_of(project)
key = work.key_of(holding, settings)
audit = work.released(project, key)
if audit is None:
    try:
        job = desk().find(key) or work.start(made, key, settings)
    except JustitiaError as error:
        st.error(plain(str(error)), title="No audit")
        st.stop()
    if job.active:
        widgets.job_panel(key, cancel="Nothing is lost: an audit is free and can be made again.")
        st.stop()
    audit = work.released(project, key)
    if audit is None:
        waiting.ended(job)


def change() -> None:
    """Take new settings; the audit is made again for nothing."""
    wanted = {}
    assert audit is not None
    for name in sorted({one for rule in audit.rules for one in rule.rule.outcome}):
        chosen = st.session_state.get(f"audit_favourable_{name}")
        if chosen:
            wanted[name] = chosen
    project.problem = work.change_settings(
        project,
        {
            "favourable": wanted,
            "use_protected": st.session_state["audit_use_protected"],
            "learners": tuple(st.session_state["audit_learners"]),
            "minimum": int(st.session_state["audit_minimum"]),
            "seed": int(st.session_state["audit_seed"]),
        },
    )


def report() -> bytes:
    """The publishable part as one page; nothing of the private workspace is in it."""
    assert audit is not None
    return released_report(audit).content


with st.container(border=True, key="audit_public"):
    st.badge("may be published", icon=":material/public:", color="green")
    st.markdown(
        "Everything in this part follows from the noisy release and the synthetic rows. It costs "
        "nothing and tells nothing that the bundle does not tell.",
        width=widgets.TEXT,
    )
    st.markdown(audit_cards.summary(audit.scorecard.scores))
    for note in audit.notes:
        st.caption(plain(note))
    audit_cards.board(audit.scorecard.publishable, "audit_cards")
    widgets.download(
        "Download this part as a report",
        report,
        file_name("audit.html", made.releases.simulated),
        "audit_report",
        help="One HTML page that opens without a network. It holds this part only.",
    )
    one, two, three, four, five = st.tabs(["Columns", "Pairs", "Outcomes", "Models", "Proxies"])
    with one:
        audit_detail.columns(audit)
    with two:
        audit_detail.released_pairs(audit)
    with three:
        audit_rules.released(audit)
    with four:
        audit_rules.released_models(audit)
    with five:
        audit_rules.proxies(audit.rules, "audit_proxies")
    with st.expander("Settings of the audit", icon=":material/tune:"):
        schema = audit.release.schema
        for name in sorted({one for rule in audit.rules for one in rule.rule.outcome}):
            cells = list(schema[name].cells)
            st.selectbox(
                f"Favourable outcome of {label(name)}",
                cells,
                index=cells.index(settings.favourable[name])
                if name in settings.favourable
                else None,
                format_func=label,
                placeholder="by itself: yes, or the last of two cells",
                key=f"audit_favourable_{name}",
                help="Gaps between groups are gaps in the share of rows with this outcome.",
            )
        st.multiselect(
            "Models",
            LEARNERS,
            default=list(settings.learners),
            key="audit_learners",
            help="Logistic regression, and gradient boosting (many small decision trees).",
        )
        st.toggle(
            "Models may use the protected columns too",
            value=settings.use_protected,
            key="audit_use_protected",
        )
        with st.container(horizontal=True):
            st.number_input(
                "Smallest group shown",
                min_value=1,
                max_value=10_000,
                value=settings.minimum,
                key="audit_minimum",
                help="Groups of fewer rows are left out of gaps, and it is said how many.",
            )
            st.number_input(
                "Seed",
                min_value=0,
                max_value=2**31 - 1,
                value=settings.seed,
                key="audit_seed",
                help="Of intervals, shuffles and folds. Same seed, same figures.",
            )
        st.button("Audit again", key="audit_again", icon=":material/refresh:", on_click=change)
        if project.problem:
            st.error(plain(project.problem), title="Not possible")
            project.problem = ""

workspace(project, holding, audit, key)
guards.next_step("release", "Go on to Release")
