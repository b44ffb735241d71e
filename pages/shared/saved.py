"""A project as plain JSON, without rows; and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from core.errors import JustitiaError, LedgerError
from core.plan_settings import (
    demo_section,
    population_section,
    reading_section,
    synthetic_section,
    tree_section,
)
from core.roles import Roles
from core.schema import Schema
from core.sources import ServerTable
from pages.shared.project import Project, Run

Part = TypeVar("Part")
VERSION = 1


def to_plain(project: Project) -> dict[str, Any]:
    """Everything that the steward chose, and the ids of what was paid for."""
    return {
        "version": VERSION,
        "name": project.name,
        "listed": project.listed,
        "demo": None if project.demo is None else project.demo.to_dict(),
        "table_name": project.table_name,
        "table_number": project.table_number,
        "source": None if project.source is None else project.source.to_dict(),
        "reading": project.reading.to_dict(),
        "settled": project.settled.to_dict(),
        "draft": [dict(row) for row in project.draft],
        "population_draft": dict(project.population_draft),
        "schema": None if project.schema is None else project.schema.to_dict(),
        "population": None if project.population is None else project.population.to_dict(),
        "role_draft": None if project.role_draft is None else project.role_draft.to_dict(),
        "roles": None if project.roles is None else project.roles.to_dict(),
        "tree": None if project.tree is None else project.tree.to_dict(),
        "synthetic": project.synthetic.to_dict(),
        "fitted": project.fitted,
        "attempt": project.attempt,
        "runs": [
            [run.request_id, run.plan, run.table, run.table_id, run.what, run.attempt]
            for run in project.runs
        ],
        "views": {key: dict(value) for key, value in project.views.items()},
        "sign_off": {key: dict(value) for key, value in project.sign_off.items()},
    }


def runs_of(plain: Mapping[str, Any]) -> tuple[Run, ...]:
    """The paid requests of a kept project."""
    return tuple(Run(*run) for run in plain["runs"])


def signatures_of(plain: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """The signatures of a kept project, by bundle hash."""
    return dict(plain["sign_off"])


def project_from(plain: object, identity: str, owner: str) -> Project:
    """A project from a document that may be of another version, or anybody's.

    Raises
    ------
    LedgerError
        It is no document of a project; the message quotes nothing of it.
    """
    try:
        return from_plain(cast(Mapping[str, Any], plain), identity, owner)
    except (JustitiaError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise LedgerError(
            "this project was kept by another version and cannot be opened; its releases are "
            "still in the ledger, and running the same plan on the same table replays them"
        ) from None


def from_plain(plain: Mapping[str, Any], identity: str, owner: str) -> Project:
    """Inverse of :func:`to_plain`; an uploaded table is gone and has to be put in again."""
    if plain["version"] != VERSION:
        raise ValueError("project of another version")
    return Project(
        identity=identity,
        owner=owner,
        name=plain["name"],
        listed=bool(plain["listed"]),
        demo=_if_there(plain["demo"], demo_section),
        table_name=plain["table_name"],
        table_number=int(plain["table_number"]),
        source=_if_there(plain.get("source"), ServerTable.from_dict),
        reading=reading_section(plain["reading"]),
        settled=reading_section(plain["settled"]),
        draft=tuple(plain["draft"]),
        population_draft=dict(plain["population_draft"]),
        schema=_if_there(plain["schema"], Schema.from_dict),
        population=_if_there(plain["population"], population_section),
        role_draft=_if_there(plain["role_draft"], Roles.from_dict),
        roles=_if_there(plain["roles"], Roles.from_dict),
        tree=_if_there(plain["tree"], tree_section),
        synthetic=synthetic_section(plain["synthetic"]),
        fitted=bool(plain["fitted"]),
        attempt=int(plain["attempt"]),
        runs=runs_of(plain),
        views=dict(plain.get("views", {})),
        sign_off=signatures_of(plain),
    )


def _if_there(plain: Any, read: Callable[[Any], Part]) -> Part | None:
    return None if plain is None else read(plain)
