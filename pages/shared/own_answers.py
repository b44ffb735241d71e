"""The door to one's own data: ask, see what it would buy, release, and look at the answers."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from core.parts import parts_of
from core.plan_parts import PosteriorPlan, settings_from, settings_to
from core.pumba.questions import analyses_of
from core.pumba.release import StatisticsRelease
from core.pumba.requests import StatisticsRequest
from pages.shared import actions, answers, guards, house, money, opening, question_form, widgets
from pages.shared.jobs import desk
from pages.shared.money import epsilon, format_rho
from pages.shared.network import label, plain
from pages.shared.project import Project, Run


def draw(project: Project) -> None:
    """The whole door."""
    opening.watch(project, actions.pay)
    runs = [run for run in project.runs_of("posterior") if project.released(run) is not None]
    if not runs:
        guards.require(project, "schema")
    if project.problem:
        st.error(plain(project.problem), title="Not released")
        project.problem = ""
    if _running(project):
        st.stop()
    if guards.has(project, "schema"):
        with st.expander(
            "Ask another question" if runs else "Ask a question",
            expanded=not runs,
            icon=":material/help_center:",
        ):
            _question(project)
    if runs:
        _released(project, runs)
        guards.next_step("release", "Go on to Release")


def _running(project: Project) -> bool:
    """Watch the latest request while it is measured; say how it ended if it did not end well."""
    mine = project.runs_of("posterior")
    if not mine:
        return False
    job = desk().find(mine[-1].request_id)
    if job is not None and job.active:
        widgets.job_panel(
            job.identity,
            cancel="Cancel keeps what was already measured; the whole charge stays spent.",
        )
        return True
    widgets.job_ended(job)
    widgets.paid_state(mine[-1], job, "tick “spend another” beside the question")
    return False


# -- before ----------------------------------------------------------------------------------


def _question(project: Project) -> None:
    found = widgets.account(project)
    population = project.population
    assert population is not None
    cap = population.cap if found is None else found[0].cap
    left = cap if found is None else cap - found[1]
    if left <= 0:
        st.error(
            "Everything up to the cap is spent. What was released stays usable; a new question "
            "needs a higher cap, which the ledger's owner can set on the Ledger page.",
            title="No budget left",
        )
        return
    form, effect = st.columns([5, 6], gap="large")
    with form:
        asked = question_form.ask(project, left)
    with effect:
        if asked.part is None:
            st.info(plain(asked.missing), icon=":material/edit_note:")
            return
        try:
            request = question_form.planned(project, asked.part)
        except JustitiaError as error:
            st.error(plain(str(error)), title="This cannot be released")
            return
        _outlook(request)
        st.markdown(money.guess(asked.part.rho, 0.01))
    with form:
        _button(project, asked.part)


def _outlook(request: StatisticsRequest) -> None:
    st.markdown("**What it buys**")
    if request.assumed:
        st.caption(
            "You did not say how many rows to expect (Data, population); the figures below assume "
            f"{request.expected_rows:,}."
        )
    st.table(
        {
            "answer": [plain(one.name) for one in request.predictions],
            "95 % interval, about": [f"± {one.half_width:.3g}" for one in request.predictions],
            "by the noise alone": [f"± {one.noise_half_width:.3g}" for one in request.predictions],
        },
        hide_index=True,
        alt="Predicted half-widths of the intervals",
    )
    st.markdown("**What will be measured**")
    st.table(
        {
            "draw": [draw.name for draw in request.draws],
            "statistics": [str(_statistics(draw)) for draw in request.draws],
            "share of ρ": [f"{float(draw.share):.1%}" for draw in request.draws],
            "noise (σ)": [f"{draw.sigma:.3g}" for draw in request.draws],
        },
        hide_index=True,
        alt="Draws with their shares of the price",
    )
    st.caption(
        "Predicted from bounds, noise and the number of rows that you typed; the table is not "
        "looked at. σ in rows for counts, in half-ranges for sums."
    )


def _statistics(draw: object) -> int:
    request = getattr(draw, "request", None)
    return len(request.monomials) if request is not None else 1


def _button(project: Project, part: PosteriorPlan) -> None:
    population = project.population
    assert population is not None
    known = _same(project, part)
    attempt = 1 if known is None else known.attempt
    if known is not None:
        st.info(
            "This very question was paid for already; its answer is below, and looking at it is "
            "free.",
            icon=":material/replay:",
        )
        if not st.checkbox(
            f"Spend another ρ = {format_rho(part.rho)} on new noise",
            key=f"question_again_{known.request_id}",
        ):
            return
        attempt += 1
    waiting = (
        "" if actions.has_table(project) else "The table is not attached; put the file in on Data."
    )
    if waiting:
        st.markdown(f":material/pending: {waiting}")

    def release() -> None:
        try:
            plan = question_form.plan_for(project, part)
            actions.release_part(project, plan, "posterior", attempt)
        except JustitiaError as error:
            project.problem = f"{error} Nothing was spent."

    st.button(
        widgets.main(
            f"Release for ρ = {format_rho(part.rho)}", "lock_open", disabled=bool(waiting)
        ),
        key="release_posterior",
        type="primary",
        on_click=release,
        disabled=bool(waiting),
        help=f"ε = {epsilon(part.rho, population.delta):.2f} at δ = {population.delta:.0e}, "
        "charged before the table is touched.",
    )


def _same(project: Project, part: PosteriorPlan) -> Run | None:
    """The latest purchase of this very question on the attached table, by its request id."""
    (*_, wanted) = parts_of(question_form.plan_for(project, part))
    for run in reversed(project.runs_of("posterior")):
        mine = run.request_id == wanted.request_id(run.table_id, run.attempt)
        if mine and run.table == project.table_label and house.spend(run.request_id) is not None:
            return run
    return None


# -- after -----------------------------------------------------------------------------------


def _released(project: Project, runs: list[Run]) -> None:
    place = len(runs) - 1
    if len(runs) > 1:
        place = st.selectbox(
            "Released analysis",
            range(len(runs)),
            index=len(runs) - 1,
            format_func=lambda index: label(_title(runs[index])),
            key=f"posterior_run_{len(runs)}",
        )
    run = runs[place]
    release = project.released(run)
    assert isinstance(release, StatisticsRelease)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(plain(release.spec.name), anchor=False, width="content")
        widgets.stale_badge(project, run)
        if release.partial:
            st.badge("partial", icon=":material/timelapse:", color="orange")
    simulated = release.provenance.simulated
    if simulated:
        st.error("Seeded noise: this gives no privacy and must not be published.")
    try:
        analyses = analyses_of(release)
    except JustitiaError as error:
        st.error(plain(str(error)), title="No posterior")
        return
    part = run.read_plan().posteriors[-1]
    settings = settings_from(project.views.get(run.request_id, {}), part.settings)
    chosen = answers.show(run.request_id, analyses, settings, simulated=simulated)
    if chosen != settings:
        project.change(views={**project.views, run.request_id: settings_to(chosen)})
    where = release.provenance
    st.caption(
        f"Paid for with ρ = {format_rho(where.rho)} · {plain(where.unit.words)} · the settings "
        "above are free and go into the bundle as they stand."
    )


def _title(run: Run) -> str:
    part = run.read_plan().posteriors[-1]
    again = f", purchase {run.attempt}" if run.attempt > 1 else ""
    return f"{part.spec.name} (ρ = {format_rho(part.rho)}{again})"
