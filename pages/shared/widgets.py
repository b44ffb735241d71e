"""Small pieces that several pages draw: title, ledger lines, job panel, stale badge, notes."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import streamlit as st

from core.errors import JustitiaError
from core.private.ledger import Population
from core.private.zcdp import epsilon, format_rho
from pages.shared import downloads, house, people
from pages.shared.jobs import Job, JobState, desk
from pages.shared.network import plain
from pages.shared.project import Project, Run

POLL_SECONDS = 0.4
#: Media types of downloads, by ending.
MIMES = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "npz": "application/octet-stream",
    "parquet": "application/vnd.apache.parquet",
    "zip": "application/zip",
}
#: Places in the queue from the second on.
ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
#: Stage in which a source tells which tenth of its rows it has read.
ROWS = "rows"
#: Width of running text in pixels: about 80 characters.
TEXT = 720
RHO_HELP = (
    "ρ (rho) measures how much everything released so far may depend on any one person; charges "
    "add up, and the cap is where they stop. ε at δ says the same in the more common unit. The "
    "Budget page puts it in words."
)


def download(label: str, data: Callable[[], bytes], file: str, key: str, **settings: Any) -> None:
    """A button that serialises a stored artefact when it is pressed, and draws nothing anew."""
    mime = MIMES[file.rpartition(".")[2]]
    st.download_button(
        label,
        data=downloads.held(data, file, mime, key),
        file_name=file,
        mime=mime,
        on_click="ignore",
        key=key,
        **{"icon": ":material/download:", **settings},
    )


def theme() -> str:
    """``light`` or ``dark``, as the browser shows it."""
    kind = getattr(st.context.theme, "type", None)
    return "dark" if kind == "dark" else "light"


def phone() -> bool:
    """Whether the browser says that it runs on a telephone: columns stack, names must be short."""
    found = st.context.headers
    return found.get("Sec-CH-UA-Mobile") == "?1" or "Mobi" in (found.get("User-Agent") or "")


def main(label: str, icon: str, *, disabled: bool = False) -> str:
    """Label of a page's main button, with its icon.

    Streamlit writes on primary buttons in white, also where the primary colour is light; the theme
    gives the name violet to the ink that can be read on it in both themes.
    """
    words = f":material/{icon}: {label}"
    return words if disabled else f":violet[{words}]"


def head(title: str, promise: str, project: Project) -> None:
    """Title, one sentence, the ledger line (the sidebar is folded away on phones), and notes."""
    st.title(title)
    st.markdown(promise, width=TEXT)
    line = ledger_line(project)
    if line:
        st.caption(line)
    for note in project.notes:
        st.info(plain(note), icon=":material/info:")
    project.notes = ()


def account(project: Project) -> tuple[Population, Fraction] | None:
    """The project's population as the ledger knows it, and what is spent; None before that."""
    if project.population is None:
        return None
    try:
        name, owner = project.population.name, house.owner()
        known = house.ledger().population(name, owner)
        return known, house.ledger().spent(name, owner=owner)
    except JustitiaError:
        return None


def ledger_line(project: Project) -> str:
    """One line: whose budget, how much of it is spent, and what that is as epsilon."""
    if project.population is None:
        return ""
    found = account(project)
    if found is None:
        return (
            f":material/account_balance: {plain(project.population.name)} · nothing spent · "
            f"cap ρ = {format_rho(project.population.cap)}"
        )
    known, spent = found
    left = known.cap - spent
    return (
        f":material/account_balance: {plain(known.name)} · spent ρ = {format_rho(spent)} of "
        f"{format_rho(known.cap)} · left {format_rho(left)}{epsilon_words(spent, known.delta)}"
    )


def epsilon_words(rho: Fraction, delta: float) -> str:
    """What a rho is as epsilon at the population's delta, to stand behind it."""
    if rho <= 0:
        return ""
    return f" · ε = {epsilon(rho, delta):.2f} at δ = {delta:.0e}"


def sidebar(project: Project) -> None:
    """Who is here, and the ledger, beside every page."""
    people.door()
    st.header("Budget", anchor=False)
    if project.population is None:
        st.caption("Nothing is spent: no population is named yet.")
        return
    found = account(project)
    cap = project.population.cap if found is None else found[0].cap
    spent = Fraction(0) if found is None else found[1]
    st.caption(plain(project.population.name))
    st.progress(min(float(spent / cap), 1.0), text=f"spent ρ = {format_rho(spent)}")
    st.caption(
        f"cap ρ = {format_rho(cap)} · left ρ = {format_rho(cap - spent)}"
        f"{epsilon_words(spent, project.population.delta)}",
        help=RHO_HELP,
    )


def demoted(text: str) -> str:
    """A Markdown document as part of a page: its headings become small ones."""
    return re.sub(r"^(#{1,2}) ", lambda match: "##" + match[1] + " ", text, flags=re.MULTILINE)


def stale_badge(project: Project, run: Run) -> None:
    """Say with which earlier choices something was made; nothing paid for is deleted."""
    changed = project.stale(run)
    if changed:
        st.badge(
            f"made with earlier {', '.join(changed)}",
            icon=":material/history:",
            color="orange",
        )


def job_panel(
    identity: str,
    *,
    cancel: str,
    picture: Callable[[Job], bool] | None = None,
) -> None:
    """Watch a job: steps, progress, place in the queue, Cancel; the page reruns when it ends.

    Parameters
    ----------
    identity
        The job's id.
    cancel
        What Cancel means for the money, in one sentence.
    picture
        Draws what came so far; false once it has nothing more to show.
    """

    @st.fragment(run_every=POLL_SECONDS)
    def watch() -> None:
        job = desk().find(identity)
        if job is None:
            st.rerun()
        with st.container(border=True, key="job"):
            _job_words(job)
            if job.active:
                st.button(
                    "Cancelling…" if job.cancelling else "Cancel",
                    key=f"cancel_{identity}",  # a click meant for the job before is not for this
                    icon=":material/stop_circle:",
                    on_click=job.cancel,
                    disabled=job.cancelling,
                )
                st.caption(cancel)
            more = picture(job) if picture is not None else False
        if not job.active and not more:
            st.rerun()

    watch()


def place_in_line(ahead: int) -> str:
    """A place in the queue, in words; the job that runs now is the first in line.

    >>> place_in_line(0), place_in_line(1), place_in_line(11), place_in_line(21)
    ('starts next', 'second in line', '12th in line', '22nd in line')
    """
    if ahead == 0:
        return "starts next"
    if ahead <= len(ORDINALS):
        return f"{ORDINALS[ahead - 1]} in line"
    place = ahead + 1
    teen = place % 100 in {11, 12, 13}
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending} in line"


def _job_words(job: Job) -> None:
    title = plain(job.title)  # names an analysis, and with it perhaps a column of the file
    if job.state is JobState.QUEUED:
        place = place_in_line(desk().ahead(job.identity))
        st.progress(0.0, text=f"{title}: waiting, {place}")
        return
    if not job.active:
        st.progress(1.0, text=f"{title}: measured; the steps in the order of choice")
        return
    share = min(job.done / job.total, 1.0) if job.total else 0.0
    count = f" ({job.done} of {job.total})" if job.total else ""
    words = f"{job.stage or 'starting'}{count}"
    if job.stage == ROWS:  # told as a share, in tenths, because their number may be private
        words = f"reading rows, {100 * share:.0f} %"
    st.progress(share, text=f"{title}: {words}")


def job_ended(job: Job | None) -> None:
    """How a finished job ended, when it did not end well."""
    if job is None or job.active or job.state is JobState.DONE:
        return
    if job.state is JobState.CANCELLED:
        st.warning(plain(job.message), title="Cancelled", icon=":material/stop_circle:")
    else:
        st.error(plain(job.message), title="This did not work", icon=":material/error:")


def paid_state(run: Run, job: Job | None, retry: str) -> None:
    """What became of a charge that has no release: spent without a result, or under way elsewhere.

    ``retry`` says how to try again, as part of a sentence.
    """
    row = house.spend(run.request_id)
    if row is None:
        return
    if row.state is house.SpendState.NO_RESULT:
        st.error(
            f"ρ = {format_rho(row.rho)} was spent and there is no result"
            f"{': ' + plain(row.message) if row.message else ''}. The ledger keeps the charge. "
            f"Earlier releases are unharmed; to try again, {retry}.",
            title="Spent, no result",
        )
    elif house.deleted(row):
        st.warning(
            f"The result of this charge of ρ = {format_rho(row.rho)} was deleted under the "
            "retention policy. The ledger keeps the charge and the result's hash; to have it "
            f"again, {retry}.",
            title="No longer kept",
            icon=":material/auto_delete:",
        )
    elif row.state is house.SpendState.CHARGED and job is None:
        st.warning(
            "Another server process is measuring this release. Reload this page in a moment; "
            "nothing is charged twice.",
            icon=":material/hourglass:",
        )
