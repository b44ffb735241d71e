"""Doors to what outlives a session: ledger, store and log, always for the owner who is here."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from core.errors import UnknownProject
from core.measuring import stored_release as core_release
from core.outcome import Release
from core.plan import PopulationPlan
from core.private.ledger import Ledger, Population, Spend, SpendState
from core.store import Store
from pages.shared.people import GUEST, LOCAL, actor, check_cap, demo_only, owner, shared

if TYPE_CHECKING:
    from pages.shared.project import Project

__all__ = ["GUEST", "LOCAL", "actor", "demo_only", "owner", "shared"]

#: Name in the store of projects that were kept for a reload and never saved under a name.
UNLISTED = "(not listed)"
#: Such a project is forgotten when it is this old and this many newer ones of its owner exist.
UNLISTED_LIFE = timedelta(days=30)
UNLISTED_KEPT = 200
_ledgers: dict[str | None, Ledger] = {}
_lock = threading.Lock()


def ledger() -> Ledger:
    """The ledger that ``JUSTITIA_LEDGER`` names, or the one in the user's own folder."""
    url = os.environ.get("JUSTITIA_LEDGER") or None
    with _lock:
        known = _ledgers.get(url)
    if known is not None:
        return known
    opened = Ledger(url)  # not under the lock: where the database is away, everybody waits at once
    with _lock:
        known = _ledgers.setdefault(url, opened)
    if known is not opened:
        opened.close()
    return known


def close(url: str | None) -> None:
    """Close a ledger that is no longer needed."""
    with _lock:
        opened = _ledgers.pop(url, None)
    if opened is not None:
        opened.close()


def store() -> Store:
    """The store beside the ledger."""
    return Store(ledger())


def spend(request_id: str) -> Spend | None:
    """The ledger's row of a request of this owner, if it was ever charged."""
    row = ledger().spend(request_id)
    return row if row is None or row.owner == owner() else None


def stored_release(request_id: str) -> Release | None:
    """The release that a request paid for, of whichever kind, or None while there is none.

    None, too, once the retention policy has deleted it.
    """
    row = spend(request_id)
    if row is None or row.state not in {SpendState.DONE, SpendState.PARTIAL}:
        return None
    if deleted(row):
        return None
    return core_release(ledger(), row)


def deleted(row: Spend) -> bool:
    """Whether a charge had a result that the retention policy deleted."""
    return row.release_kind is not None and ledger().release_blob(row.request_id) is None


def save_project(project: Project) -> None:
    """Keep a project (without rows); an empty one is not worth keeping.

    Runs and signatures that another tab added meanwhile are kept too: what was paid for must not
    be lost.
    """
    if not project.draft:
        return
    from pages.shared.saved import runs_of, signatures_of, to_plain

    name = project.name if project.listed else UNLISTED

    def merged(kept: Mapping[str, Any]) -> dict[str, Any]:
        mine = {run.request_id for run in project.runs}
        others = tuple(run for run in runs_of(kept) if run.request_id not in mine)
        project.runs = (*others, *project.runs)
        project.sign_off = {**signatures_of(kept), **project.sign_off}
        return to_plain(project)

    if project.identity:
        try:
            store().change_project(project.identity, merged, name=name, owner=project.owner)
            return
        except UnknownProject:
            pass  # it was forgotten meanwhile; what is on the page is worth keeping
    store().prune_projects(
        UNLISTED, older_than=UNLISTED_LIFE, keep=UNLISTED_KEPT, owner=project.owner
    )
    entry = store().save_project(name, to_plain(project), owner=project.owner)
    project.identity = entry.project_id


def open_project(identity: str) -> Project:
    """A kept project of this owner.

    Raises
    ------
    LedgerError
        There is none of that id, or it cannot be read; nothing about other owners is told.
    """
    from pages.shared.saved import project_from

    document = store().open_project(identity, owner=owner()).document
    return project_from(document, identity, owner())


def saved_projects() -> tuple[tuple[str, str], ...]:
    """Id and name of the projects that this owner saved under a name, the latest first."""
    return tuple(
        (entry.project_id, entry.name)
        for entry in store().projects(owner())
        if entry.name != UNLISTED
    )


def check_population(population: PopulationPlan, *, demo: bool = False) -> None:
    """Register a population, or make sure that its terms are those of the ledger.

    Made-up people (``demo``) may have any cap.

    Raises
    ------
    LedgerError
        The ledger knows it on other terms.
    PlanError
        It is new, and its cap is larger than this person may set.
    """
    if not demo and population.name not in own_populations():
        check_cap(population.cap)
    ledger().create_population(
        Population(
            population.name,
            population.relation,
            population.unit,
            population.cap,
            population.delta,
            owner=owner(),
            expected_rows=population.expected_rows,
        )
    )


def own_populations() -> tuple[str, ...]:
    """Names of this owner's populations."""
    return tuple(sorted(known.name for known in ledger().populations(owner=owner())))


def known_populations() -> tuple[str, ...]:
    """Names of the owner's populations of real people, to ask whom a table is about."""
    if demo_only():
        return ()
    return tuple(name for name in own_populations() if not name.startswith("demo "))
