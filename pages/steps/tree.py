"""Tree: the release that is paid for; then the tree as it grew, as often as you like."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from core.forecast import Verdict, forecast_of
from core.roles import Roles
from pages.shared import actions, confirm, guards, house, opening, pictures, replay, widgets
from pages.shared import project as state
from pages.shared.jobs import Job, desk
from pages.shared.money import epsilon, format_rho
from pages.shared.network import plain

project = state.current()
widgets.head(
    "Tree",
    "Release the dependency tree. Edges are chosen one by one, noisily, among those that the rule "
    "still allows. **Only the release button spends budget.**",
    project,
)
if project.best_run() is None:
    guards.require(project, "plan")
plan, roles = project.plan, project.roles
names = project.released_names
opening.watch(project, actions.pay)
run = project.run
job = desk().find(run.request_id) if run else None


def release() -> None:
    """Charge and measure; a second click joins the first."""
    try:
        actions.release_tree(project)
    except JustitiaError as error:
        project.problem = f"{error} Nothing was spent."


def again() -> None:
    """Spend again on purpose; only while the tick that was shown still stands."""
    if not st.session_state.get(f"again_{project.attempt}"):
        return
    try:
        actions.release_again(project, project.attempt)
    except JustitiaError as error:
        project.problem = f"{error} Nothing was spent."


def watched(running: Job) -> bool:
    """Draw the next edges; once all are shown the page goes on."""
    more = replay.live(running, project, names, roles or Roles())
    if not running.active and not more:
        project.watching = ""
    return more


if project.problem:
    st.error(plain(project.problem), title="Not released")
    project.problem = ""

# -- a job is running ------------------------------------------------------------------------
if job is not None and roles is not None and (job.active or project.watching == job.identity):
    if project.watching != job.identity:
        project.watching, project.drawn = job.identity, 0
    widgets.job_panel(
        job.identity,
        cancel="Cancel keeps what was already measured; the whole charge stays spent.",
        picture=watched,
    )
    st.stop()

widgets.job_ended(job)
if run is not None:
    widgets.paid_state(run, job, "tick “spend again” below")

# -- the button ------------------------------------------------------------------------------
current = None
if plan is not None:
    current = next((known for known in reversed(project.runs) if not project.stale(known)), None)
    charged = current is not None and house.spend(current.request_id) is not None
    waiting = []
    if confirm.unconfirmed(project):
        waiting.append("Data has changes that are not confirmed")
    if project.role_draft != project.roles:
        waiting.append("Roles has changes that are not saved")
    if not actions.has_table(project):
        waiting.append("the table is not attached; put the file in again on Data")
    if not charged:
        with st.container(border=True, key="release_box"):
            st.markdown(
                f"**Release {len(names)} columns for ρ = {format_rho(plan.tree.rho)}** "
                f"(ε = {epsilon(plan.tree.rho, plan.population.delta):.2f} at "
                f"δ = {plan.population.delta:.0e}), charged to "
                f"“{plain(plan.population.name)}” before the table is touched. "
                f"Protected: {plain(plan.population.unit.words)}."
            )
            for words in waiting:
                st.markdown(f":material/pending: {words}.")
            st.button(
                widgets.main(
                    f"Release for ρ = {format_rho(plan.tree.rho)}",
                    "lock_open",
                    disabled=bool(waiting),
                ),
                key="release_tree",
                type="primary",
                on_click=release,
                disabled=bool(waiting),
            )
    elif not waiting:
        with st.expander("Release again, for another charge", icon=":material/replay:"):
            st.markdown(
                "The same plan was released for this table already, and looking at it is free. "
                "A new release draws new noise **and spends again**."
            )
            st.checkbox(
                f"Spend another ρ = {format_rho(plan.tree.rho)}", key=f"again_{project.attempt}"
            )
            st.button(
                "Spend again",
                key="spend_again",
                icon=":material/payments:",
                on_click=again,
                disabled=not st.session_state.get(f"again_{project.attempt}"),
            )

# -- what there is to see --------------------------------------------------------------------
best = project.best_run()
if best is None:
    if roles is not None and names:
        st.header("Before: what the rule allows", anchor=False)
        pairs = pictures.before(names, roles, key="before")
        pictures.forbidden_table(pairs)
    st.stop()
runs = [known for known in project.runs if project.release(known) is not None]
if len(runs) > 1:
    chosen = st.selectbox(
        "Release",
        range(len(runs)),
        index=len(runs) - 1,
        format_func=lambda index: f"{index + 1}: {runs[index].table}",
        key=f"shown_run_{len(runs)}",
    )
    best = runs[chosen]
released = project.release(best)
assert released is not None
with st.container(horizontal=True, vertical_alignment="center"):
    st.header("The tree as it grew", anchor=False, width="content")
    widgets.stale_badge(project, best)
    if released.partial:
        st.badge("partial", icon=":material/timelapse:", color="orange")
    if forecast_of(released).verdict is Verdict.MOSTLY_NOISE:
        st.badge("mostly noise", icon=":material/grain:", color="orange")
if released.partial:
    st.warning(
        f"Cancelled on the way. Kept: {replay.kept(released)}. The whole charge of "
        f"ρ = {format_rho(best.read_plan().tree.rho)} stays spent, because it was made before the "
        "table was touched. What was kept can be replayed, fitted and downloaded for nothing.",
        title="Partial release",
        icon=":material/timelapse:",
    )
replay.replay(released, f"replay_{best.request_id[-12:]}")
replay.tables(released, f"Tree of {best.table}")
guards.next_step("synthetic", "Go on to Synthetic")

# -- comparison, demo data only --------------------------------------------------------------
key = actions.comparison_key(project)
if key is not None:
    with st.expander("Compare with other structures (simulated, demo data only)"):
        st.markdown(
            "Four structures on the demo table with simulated noise and throw-away ledgers. "
            "**Simulated, not private**: for learning, never for publishing. On real data this "
            "would cost budget, so it is not offered there."
        )
        comparing = desk().find(key)
        if comparing is None or not (comparing.active or comparing.result):
            st.button(
                "Simulate four structures",
                key="compare",
                icon=":material/compare:",
                on_click=actions.compare_structures,
                args=(project,),
            )
            widgets.job_ended(comparing)
        elif comparing.active:
            widgets.job_panel(key, cancel="Nothing is spent either way.")
        else:
            picked = st.segmented_control(
                "Structure", list(comparing.result), default="mst", required=True, key="compared"
            )
            other = comparing.result[picked or "mst"]
            if isinstance(other, str):
                st.info(plain(other))
            else:
                pictures.show(
                    other.schema.names, other.roles, other.edges, key=f"compared_{picked}"
                )
                st.caption(
                    "Simulated, not private. Dashed edges jump the wall: the rule forbids them."
                )
