"""How long releases and projects are kept: results go, the ledger's rows stay.

A policy says for how many days the stored bytes of a release, and a project that nobody saved
again, are kept.  Deleting never shrinks a ledger: charge, price, state and hash of every release
stay for ever, and the budget stays spent.  What was deleted cannot be replayed; to get it again is
a new release with a new charge.  Uploaded tables have no policy, because they are never stored.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select

from core.errors import PlanError
from core.private.ledger import Ledger, SpendState
from core.private.ledger_tables import (
    delete_release,
    population_rows,
    project_rows,
    release_rows,
    spend_rows,
)
from core.release_log import Act, ReleaseLog, append

#: Environment variables that declare the policy, in days.
RELEASES, PROJECTS = "JUSTITIA_KEEP_RELEASES_DAYS", "JUSTITIA_KEEP_PROJECTS_DAYS"
_LONGEST = 36_500


@dataclass(frozen=True)
class Policy:
    """For how long things are kept; None is for ever, which is the default.

    Attributes
    ----------
    releases
        Since the release was stored.
    projects
        Since the project was last saved.
    """

    releases: timedelta | None = None
    projects: timedelta | None = None

    @property
    def words(self) -> str:
        """The policy in one sentence.

        >>> Policy(timedelta(days=365)).words
        'releases are kept for 365 days, projects for ever; the ledger is kept for ever'
        """
        shown = [
            "for ever" if kept is None else f"for {kept.days} days"
            for kept in (self.releases, self.projects)
        ]
        return f"releases are kept {shown[0]}, projects {shown[1]}; the ledger is kept for ever"


@dataclass(frozen=True)
class Expired:
    """What a policy no longer keeps: request ids of releases, and ids of projects."""

    releases: tuple[str, ...]
    projects: tuple[str, ...]


def policy_from(settings: Mapping[str, str] | None = None) -> Policy:
    """The policy that the environment declares.

    Raises
    ------
    PlanError
        A value is not a whole number of days.

    Examples
    --------
    >>> policy_from({"JUSTITIA_KEEP_RELEASES_DAYS": "30"}).releases
    datetime.timedelta(days=30)
    """
    found = os.environ if settings is None else settings
    return Policy(*(days(found.get(name, ""), name) for name in (RELEASES, PROJECTS)))


def days(text: str, what: str) -> timedelta | None:
    """A number of days as typed; nothing typed is for ever.

    Raises
    ------
    PlanError
        It is not a whole number between 1 and 36,500.

    Examples
    --------
    >>> days("0003650000", "--keep-releases")
    Traceback (most recent call last):
    core.errors.PlanError: --keep-releases must be a whole number of days, such as 365, or left out
    """
    typed = text.strip()
    if not typed:
        return None
    whole = typed.isascii() and typed.isdecimal() and len(typed) <= len(str(_LONGEST))
    if not (whole and 1 <= int(typed) <= _LONGEST):
        raise PlanError(f"{what} must be a whole number of days, such as 365, or left out")
    return timedelta(days=int(typed))


def expired(ledger: Ledger, policy: Policy, now: datetime | None = None) -> Expired:
    """What would go now; changes nothing."""
    with ledger.database.reading() as connection:
        return Expired(
            tuple(row.request_id for row in _old_releases(connection, policy, now)),
            tuple(row.id for row in _old_projects(connection, policy, now)),
        )


def enforce(ledger: Ledger, policy: Policy, actor: str, now: datetime | None = None) -> Expired:
    """Delete what the policy no longer keeps, and log each deletion, in one transaction.

    Charges that are still being measured are never touched.

    Parameters
    ----------
    actor
        Who deletes, for the log.
    now
        UTC; the clock's unless given.

    Returns
    -------
    Expired
        What went.

    Raises
    ------
    LedgerError
        The database refused; then nothing was deleted.
    """
    ReleaseLog(ledger)
    with ledger.writing() as book:
        connection = book.connection
        if ledger.database.is_sqlite:
            # Overwrites what is deleted, instead of only marking its pages as free.
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        releases = _old_releases(connection, policy, now)
        projects = _old_projects(connection, policy, now)
        for row in releases:
            delete_release(book, row.id, row.request_id)
            append(
                connection,
                actor,
                Act.RESULT_DELETED,
                owner=row.owner,
                population=row.name,
                request_id=row.request_id,
                detail=f"retention: {policy.words}; SHA-256 {row.release_sha256}",
            )
        for row in projects:
            connection.execute(delete(project_rows).where(project_rows.c.id == row.id))
            append(
                connection,
                actor,
                Act.PROJECT_DELETED,
                owner=row.owner,
                detail=f"retention: {policy.words}; project {row.id}",
            )
    if releases or projects:
        _empty_the_write_ahead_log(ledger)
    return Expired(tuple(row.request_id for row in releases), tuple(row.id for row in projects))


def _old_releases(connection: Connection, policy: Policy, now: datetime | None) -> list[Any]:
    if policy.releases is None:
        return []
    before = ((now or datetime.now(UTC)) - policy.releases).isoformat()
    final = (SpendState.DONE.value, SpendState.PARTIAL.value)
    query = (
        select(
            spend_rows.c.id,
            spend_rows.c.request_id,
            spend_rows.c.release_sha256,
            population_rows.c.name,
            population_rows.c.owner,
        )
        .join(release_rows, release_rows.c.spend_id == spend_rows.c.id)
        .join(population_rows, population_rows.c.id == spend_rows.c.population_id)
        .where(spend_rows.c.state.in_(final), spend_rows.c.finished_at < before)
        .order_by(spend_rows.c.id)
    )
    return list(connection.execute(query))


def _old_projects(connection: Connection, policy: Policy, now: datetime | None) -> list[Any]:
    if policy.projects is None:
        return []
    before = ((now or datetime.now(UTC)) - policy.projects).isoformat()
    query = (
        select(project_rows.c.id, project_rows.c.owner)
        .where(project_rows.c.updated_at < before)
        .order_by(project_rows.c.id)
    )
    return list(connection.execute(query))


def _empty_the_write_ahead_log(ledger: Ledger) -> None:
    """What was deleted must not live on in SQLite's side file."""
    if ledger.database.path is None:
        return
    with closing(sqlite3.connect(ledger.database.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
