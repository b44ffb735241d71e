"""Covariance: release a private covariance matrix, then look at it in every way for nothing."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from core.plan import CovariancePlan
from pages.shared import actions, confirm, covariance_rounds, guards, house, opening, widgets
from pages.shared import covariance_results as results
from pages.shared import covariance_setup as setup
from pages.shared import project as state
from pages.shared.covariance_draft import draft_of, numeric, paid_run, plan_of, whole_plan
from pages.shared.jobs import Job, desk
from pages.shared.money import epsilon, format_rho
from pages.shared.network import plain
from pages.shared.project import Run

project = state.current()
widgets.head(
    "Covariance",
    "How the numeric columns go together: one private matrix with its correlations, its graph and "
    "its error bars. Only the release button spends budget.",
    project,
)
guards.require(project, "schema")
opening.watch(project, actions.pay)
population = project.population
assert population is not None
runs = project.runs_of("covariance")
run = runs[-1] if runs else None
job = desk().find(run.request_id) if run else None
found = widgets.account(project)
cap = population.cap if found is None else found[0].cap
spent = cap - cap if found is None else found[1]
left = cap - spent


def release(part: CovariancePlan, attempt: int) -> None:
    """Charge and measure; a second click joins the first."""
    try:
        actions.release_part(project, whole_plan(project, part), "covariance", attempt)
    except JustitiaError as error:
        project.problem = f"{error}. Nothing was spent.".replace("..", ".")


def again(part: CovariancePlan, attempt: int) -> None:
    """Spend again on purpose; a second click on the same button joins the first."""
    if st.session_state.get(f"cov_again_{attempt}"):
        release(part, attempt)


def watched(running: Job) -> bool:
    """Draw the next rounds; once all are shown the page goes on."""
    assert run is not None
    settings = plan_of(run).covariance
    assert settings is not None
    more = covariance_rounds.live(running, project, settings.columns)
    if not running.active and not more:
        project.watching = ""
    return more


def release_box(part: CovariancePlan, bought: Run | None) -> None:
    """The main button, or spending again on what was bought already."""
    waiting = []
    if confirm.unconfirmed(project):
        waiting.append("Data has changes that are not confirmed")
    if not actions.has_table(project):
        waiting.append("the table is not attached; put the file in again on Data")
    if (part.means or part.half_widths) and not st.checkbox(
        "The means and half-widths typed above were known before anybody looked at this table",
        key="cov_public_facts",
        persist_state="session",
        help="A mean or a spread read off this table gives its rows away, and no noise takes that "
        "back.",
    ):
        waiting.append("tick that the typed means and half-widths are public")
    price = format_rho(part.rho)
    charged = bought is not None and house.spend(bought.request_id) is not None
    if not charged:
        with st.container(border=True, key="cov_release_box"):
            count = len(part.columns)
            st.markdown(
                f"**Release the covariance of {count} {'column' if count == 1 else 'columns'} for "
                f"ρ = {price}** (ε = {epsilon(part.rho, population.delta):.2f} at "
                f"δ = {population.delta:.0e}), charged to “{plain(population.name)}” before the "
                f"table is touched. Protected: {plain(population.unit.words)}."
            )
            for words in waiting:
                st.markdown(f":material/pending: {words}.")
            st.button(
                widgets.main(f"Release for ρ = {price}", "lock_open", disabled=bool(waiting)),
                key="release_covariance",
                type="primary",
                on_click=release,
                args=(part, 1 if bought is None else bought.attempt),
                disabled=bool(waiting),
            )
    elif not waiting:
        assert bought is not None
        attempt = bought.attempt + 1
        with st.expander("Release again, for another charge", icon=":material/replay:"):
            st.markdown(
                "This very matrix was released for this table already, and looking at it is free. "
                "A new release draws new noise **and spends again**."
            )
            st.checkbox(f"Spend another ρ = {price}", key=f"cov_again_{attempt}")
            st.button(
                "Spend again",
                key="cov_spend_again",
                icon=":material/payments:",
                on_click=again,
                args=(part, attempt),
                disabled=not st.session_state.get(f"cov_again_{attempt}"),
            )


def before() -> None:
    """Settings, what they buy, and the button."""
    if left <= 0:
        st.error(
            "Everything up to the cap is spent. What was released stays usable; a new release "
            "needs a higher cap, which the ledger's owner can set on the Ledger page.",
            title="No budget left",
        )
        return
    draft = draft_of(project, left)
    chosen, effect = st.columns([5, 6], gap="large")
    with effect:
        setup.effect(project, draft, left)
    with chosen:
        setup.settings(project, draft, left)
        try:
            assert project.schema is not None
            part = draft.part(project.schema)
            whole_plan(project, part)
        except JustitiaError as error:
            st.info(plain(str(error)), title="Not ready yet", icon=":material/edit_note:")
            return
        release_box(part, paid_run(project, part))


if project.problem:
    st.error(plain(project.problem), title="Not released")
    project.problem = ""
if job is not None and (job.active or project.watching == job.identity):
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
    widgets.paid_state(run, job, "tick “spend another” below")

best = project.best_run("covariance")
if best is None:
    if not numeric(project):
        st.info(
            "No column holds numbers with declared bounds. Declare one as a whole number, a "
            "number or a date on Data.",
            icon=":material/info:",
        )
        st.page_link(guards.PAGES["data"], label="Go to Data", icon=":material/arrow_forward:")
        st.stop()
    before()
    st.stop()
results.show(project, best)
if numeric(project):
    with st.expander("Another release", icon=":material/add:", expanded=False):
        before()
guards.next_step("release", "Go on to Release")
