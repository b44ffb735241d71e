"""Opening a table that stays where it is, before it is charged for: a job with Cancel.

Recognising a large table means reading it once, which takes a while.  So a release from such a
table is two jobs: this one opens and recognises it and costs nothing; when it has ended well, the
page that was asked charges and measures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import streamlit as st

from core import sources
from core.attachment import Attached, attach
from core.errors import JustitiaError, ReadingError
from core.plan import Plan
from core.protocols import Progress
from pages.shared import house, widgets
from pages.shared.jobs import JobState, desk
from pages.shared.project import Project
from pages.shared.sources import offer

CANCELLED = "Cancelled before anything was charged."
GONE = (
    "The table that was opened is not here any more: another tab went on with it, or the server "
    "was started anew. The ledger says whether anything was spent."
)


@dataclass(frozen=True)
class Opening:
    """A release that waits for its table to be opened."""

    identity: str
    plan: Plan
    what: str
    attempt: int
    check: Callable[[], object]


class Pay(Protocol):
    """Charges for a part of a plan, and measures it; ``check`` may refuse right before that."""

    def __call__(
        self,
        project: Project,
        attached: Attached,
        plan: Plan,
        what: str,
        attempt: int,
        *,
        check: Callable[[], object] | None,
    ) -> object:
        """Do it, in a job."""


def start(project: Project, plan: Plan, what: str, attempt: int) -> None:
    """Open and recognise the project's table in a job; a second click joins the first.

    Raises
    ------
    JustitiaError
        Persons are the unit, which such a table cannot serve.
    """
    known = project.source
    if known is None:
        raise ReadingError("no table on the server is chosen; choose one on Data")
    sources.check_unit(plan.population.unit)
    text = "\n".join([project.identity, what, str(attempt), repr(known.to_dict()), plan.to_toml()])
    identity = f"open-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    offered, ledger, owner = offer(), house.ledger(), house.owner()

    def open_it() -> sources.Opened:
        return sources.open_again(known, plan.reading, offered, ledger)

    def work(progress: Progress) -> Attached:
        progress("opening the table", 0, 0, None)
        return attach(plan, open_it(), ledger, owner, progress=progress)

    desk().forget(identity)  # one that ended while nobody waited for it may be out of date
    desk().submit(identity, "Reading the table once, to recognise it", work)
    project.opening = Opening(identity, plan, what, attempt, open_it)


def watch(project: Project, pay: Pay) -> None:
    """Go on with a release whose table was opened; stop the page while it is being opened."""
    waiting: Opening | None = project.opening
    if waiting is None:
        return
    job = desk().find(waiting.identity)
    if job is not None and job.active:
        widgets.job_panel(
            waiting.identity, cancel="Nothing is charged yet; Cancel costs nothing at all."
        )
        st.stop()
    project.opening = None
    if job is None:
        project.problem = GONE
        return
    attached = job.result
    desk().forget(waiting.identity)
    if job.state is JobState.CANCELLED:
        st.warning(CANCELLED, title="Cancelled", icon=":material/stop_circle:")
        return
    if job.state is not JobState.DONE:
        project.problem = f"{job.message.rstrip('.')}. Nothing was spent."
        return
    try:
        pay(
            project,
            attached,
            waiting.plan,
            waiting.what,
            waiting.attempt,
            check=waiting.check,
        )
    except JustitiaError as error:
        attached.vault.close()
        project.problem = f"{error} Nothing was spent."
