"""Where releases and projects persist: the ledger's own database.

Releases were paid for and never change.  A project is what a person works on (schema, roles,
plan, derived artefacts) as one JSON document without rows; a change replaces it.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update

from core.errors import LedgerError, UnknownProject
from core.private.accounts import Spend, check_name
from core.private.ledger import Ledger
from core.private.ledger_tables import project_rows

#: Largest project document; a table does not fit, which is the point.
MAXIMUM_DOCUMENT_BYTES = 5_000_000
_DEEPEST = 50


@dataclass(frozen=True)
class StoredRelease:
    """A release's bytes, the name of its type, and the spend that paid for it."""

    blob: bytes
    kind: str
    spend: Spend


@dataclass(frozen=True)
class ProjectEntry:
    """One line of the list of projects; ``updated_at`` is UTC."""

    project_id: str
    owner: str
    name: str
    updated_at: datetime


@dataclass(frozen=True)
class Project:
    """A project with its document."""

    entry: ProjectEntry
    document: dict[str, Any]


class Store:
    """Releases and projects beside the ledger.

    Parameters
    ----------
    ledger
        Whose database to use.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # -- releases --------------------------------------------------------------------------

    def release(self, request_id: str) -> StoredRelease:
        """The release that was paid for under an id; reading it again is free.

        Raises
        ------
        LedgerError
            There is no release of that id, or its bytes are damaged.
        """
        spend = self._ledger.spend(request_id)
        blob = self._ledger.release_blob(request_id)
        if spend is None or blob is None or spend.release_kind is None:
            state = "nothing was charged" if spend is None else spend.state.value
            if spend is not None and spend.release_kind is not None:
                state += "; its result was deleted under the retention policy"
            raise LedgerError(f"request {request_id!r} has no release ({state})")
        return StoredRelease(blob, spend.release_kind, spend)

    def releases(self, population: str, *, owner: str = "local") -> list[Spend]:
        """The spends of a population that have a release, in the order of their charges."""
        spends = self._ledger.spends(population, owner=owner)
        return [spend for spend in spends if spend.release_kind is not None]

    # -- projects --------------------------------------------------------------------------

    def save_project(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        owner: str = "local",
    ) -> ProjectEntry:
        """Save a new project; :meth:`change_project` changes one.

        Parameters
        ----------
        name
            Shown in the list; several projects may share it.
        document
            Plain JSON (texts, finite numbers, truth values, null, lists, objects); no rows.
        owner
            Whose it is.

        Raises
        ------
        LedgerError
            The document is not plain JSON or too large, or the name is unusable.
        """
        check_name(name, "a project's name")
        check_name(owner, "an owner's name")
        text = _to_json(document)
        now = datetime.now(UTC)
        project_id = secrets.token_hex(8)
        columns = {"name": name, "updated_at": now.isoformat(), "document": text}
        with self._ledger.database.writing() as connection:
            connection.execute(insert(project_rows).values(id=project_id, owner=owner, **columns))
        return ProjectEntry(project_id, owner, name, now)

    def change_project(
        self,
        project_id: str,
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        *,
        name: str,
        owner: str = "local",
    ) -> ProjectEntry:
        """Replace a project by what follows from it; nobody else saves it meanwhile.

        Parameters
        ----------
        change
            Makes the new document of the kept one, see :meth:`save_project`; quick, and without
            the store.

        Raises
        ------
        UnknownProject
            This owner has no project of that id.
        LedgerError
            As :meth:`save_project` does.
        """
        check_name(name, "a project's name")
        mine = (project_rows.c.id == project_id, project_rows.c.owner == owner)
        with self._ledger.database.writing() as connection:
            kept = select(project_rows.c.document).where(*mine).with_for_update()
            document = connection.execute(kept).scalar_one_or_none()
            if document is None:
                raise _unknown(project_id)
            text = _to_json(change(json.loads(document)))
            now = datetime.now(UTC)
            columns = {"name": name, "updated_at": now.isoformat(), "document": text}
            connection.execute(update(project_rows).where(*mine).values(**columns))
        return ProjectEntry(project_id, owner, name, now)

    def open_project(self, project_id: str, *, owner: str = "local") -> Project:
        """A project and its document; LedgerError when this owner has none of that id."""
        query = select(project_rows).where(
            project_rows.c.id == project_id, project_rows.c.owner == owner
        )
        with self._ledger.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise _unknown(project_id)
        return Project(_entry(row), json.loads(row.document))

    def projects(self, owner: str = "local") -> list[ProjectEntry]:
        """One owner's projects, the latest first."""
        columns = project_rows.c
        query = (
            select(columns.id, columns.owner, columns.name, columns.updated_at)
            .where(columns.owner == owner)
            .order_by(columns.updated_at.desc(), columns.id)
        )
        with self._ledger.database.reading() as connection:
            return [_entry(row) for row in connection.execute(query)]

    def delete_project(self, project_id: str, *, owner: str = "local") -> None:
        """Forget a project; what it spent and released stays in the ledger.

        Raises
        ------
        LedgerError
            This owner has no project of that id.
        """
        with self._ledger.database.writing() as connection:
            gone = connection.execute(
                delete(project_rows).where(
                    project_rows.c.id == project_id, project_rows.c.owner == owner
                )
            )
            if gone.rowcount == 0:
                raise _unknown(project_id)

    def prune_projects(
        self, name: str, *, older_than: timedelta, keep: int, owner: str = "local"
    ) -> int:
        """Forget one owner's old projects of one name; spends and releases stay in the ledger.

        Parameters
        ----------
        name
            Only projects of exactly this name are looked at.
        older_than, keep
            A project goes if it was last saved longer ago than this *and* ``keep`` others of the
            name are newer.
        owner
            Whose projects.

        Returns
        -------
        int
            How many went.
        """
        columns = project_rows.c
        mine = (columns.owner == owner) & (columns.name == name)
        newest = (
            select(columns.id)
            .where(mine)
            .order_by(columns.updated_at.desc(), columns.id)
            .limit(keep)
            .scalar_subquery()
        )
        before = (datetime.now(UTC) - older_than).isoformat()
        old = delete(project_rows).where(
            mine, columns.updated_at < before, columns.id.not_in(newest)
        )
        with self._ledger.database.writing() as connection:
            return int(connection.execute(old).rowcount)


def _entry(row: Any) -> ProjectEntry:
    return ProjectEntry(row.id, row.owner, row.name, datetime.fromisoformat(row.updated_at))


def _unknown(project_id: str) -> UnknownProject:
    return UnknownProject(f"there is no project {project_id!r} here; it may have been deleted")


def _to_json(document: Mapping[str, Any]) -> str:
    if not isinstance(document, dict):
        raise LedgerError("a project's document must be a JSON object (a dict)")
    _check_json(document, "document", 0)
    text = json.dumps(document, ensure_ascii=True, allow_nan=False)
    if len(text) > MAXIMUM_DOCUMENT_BYTES:
        raise LedgerError(
            f"the project is larger than {MAXIMUM_DOCUMENT_BYTES // 1_000_000} MB; it must hold "
            "declarations and settings, not rows"
        )
    return text


def _check_json(value: object, place: str, depth: int) -> None:
    """Refuse what JSON would change or lose; the message names the place, never the value."""
    if depth > _DEEPEST:
        raise LedgerError(f"the project's {place} is nested too deeply for JSON")
    if value is None or isinstance(value, str | bool):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise LedgerError(f"the project's {place} has a key that is not a text")
            _check_json(item, f"{place}[{key[:40]!r}]" if depth < 3 else place, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, place, depth + 1)
    elif type(value) not in (int, float) or (isinstance(value, float) and not math.isfinite(value)):
        raise LedgerError(
            f"the project's {place} holds a {type(value).__name__} that JSON cannot keep; "
            "write it as text, a finite number, a list or an object"
        )
