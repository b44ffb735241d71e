"""A project as plain JSON, without rows; and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from core.plan import DemoOrigin, PopulationPlan, ReadingPlan, SyntheticPlan, TreePlan
from core.releases import Relation, Unit
from core.roles import Roles
from core.schema import Schema
from pages.shared.project import Project, Run

VERSION = 1


def to_plain(project: Project) -> dict[str, Any]:
    """Everything that the steward chose, and the ids of what was paid for."""
    return {
        "version": VERSION,
        "name": project.name,
        "listed": project.listed,
        "demo": None
        if project.demo is None
        else [project.demo.name, project.demo.rows, project.demo.seed],
        "table_name": project.table_name,
        "table_number": project.table_number,
        "reading": _reading(project.reading),
        "settled": _reading(project.settled),
        "draft": [dict(row) for row in project.draft],
        "population_draft": dict(project.population_draft),
        "schema": None if project.schema is None else project.schema.to_dict(),
        "population": _population(project.population),
        "role_draft": None if project.role_draft is None else project.role_draft.to_dict(),
        "roles": None if project.roles is None else project.roles.to_dict(),
        "tree": None
        if project.tree is None
        else [
            str(project.tree.rho),
            project.tree.structure,
            [str(part) for part in project.tree.split],
        ],
        "synthetic": [
            project.synthetic.rows,
            project.synthetic.engine,
            project.synthetic.seed,
            list(project.synthetic.files),
            dict(project.synthetic.types),
        ],
        "fitted": project.fitted,
        "attempt": project.attempt,
        "runs": [[run.request_id, run.plan, run.table, run.table_id] for run in project.runs],
        "sign_off": {key: dict(value) for key, value in project.sign_off.items()},
    }


def _reading(reading: ReadingPlan) -> dict[str, Any]:
    plain = asdict(reading)
    return {**plain, "rename": dict(reading.rename), "day_numbers": list(reading.day_numbers)}


def _to_reading(plain: Mapping[str, Any]) -> ReadingPlan:
    return ReadingPlan(**{**plain, "day_numbers": tuple(plain["day_numbers"])})


def _population(population: PopulationPlan | None) -> dict[str, Any] | None:
    if population is None:
        return None
    return {
        "name": population.name,
        "relation": population.relation.value,
        "rows": population.unit.rows,
        "person": population.unit.person_column,
        "cap": str(population.cap),
        "delta": population.delta,
        "expected_rows": population.expected_rows,
    }


def runs_of(plain: Mapping[str, Any]) -> tuple[Run, ...]:
    """The paid requests of a kept project."""
    return tuple(Run(*run) for run in plain["runs"])


def from_plain(plain: Mapping[str, Any], identity: str, owner: str) -> Project:
    """Inverse of :func:`to_plain`; the table is gone and has to be attached again."""
    if plain["version"] != VERSION:
        raise ValueError("project of another version")
    population, tree, demo = plain["population"], plain["tree"], plain["demo"]
    return Project(
        identity=identity,
        owner=owner,
        name=plain["name"],
        listed=bool(plain["listed"]),
        demo=None if demo is None else DemoOrigin(*demo),
        table_name=plain["table_name"],
        table_number=int(plain["table_number"]),
        reading=_to_reading(plain["reading"]),
        settled=_to_reading(plain["settled"]),
        draft=tuple(plain["draft"]),
        population_draft=dict(plain["population_draft"]),
        schema=None if plain["schema"] is None else Schema.from_dict(plain["schema"]),
        population=None
        if population is None
        else PopulationPlan(
            population["name"],
            Relation(population["relation"]),
            Unit(population["rows"], population["person"]),
            Fraction(population["cap"]),
            float(population["delta"]),
            population["expected_rows"],
        ),
        role_draft=None if plain["role_draft"] is None else Roles.from_dict(plain["role_draft"]),
        roles=None if plain["roles"] is None else Roles.from_dict(plain["roles"]),
        tree=None
        if tree is None
        else TreePlan(Fraction(tree[0]), tree[1], tuple(Fraction(part) for part in tree[2])),
        synthetic=SyntheticPlan(
            *plain["synthetic"][:3], tuple(plain["synthetic"][3]), plain["synthetic"][4]
        ),
        fitted=bool(plain["fitted"]),
        attempt=int(plain["attempt"]),
        runs=runs_of(plain),
        sign_off=dict(plain["sign_off"]),
    )
