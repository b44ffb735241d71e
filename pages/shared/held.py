"""What a project holds that was paid for, put together as one plan with its releases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.errors import JustitiaError
from core.outcome import Releases
from core.plan import Plan
from core.plan_parts import settings_from
from pages.shared.project import Project, Run


@dataclass(frozen=True, eq=False)
class Held:
    """The latest release of every kind on one table, as one plan.

    Attributes
    ----------
    plan, releases, identities
        What goes into the bundle; identities in the order of the plan's parts.
    runs
        The same as the project's runs.
    left_out
        Why other releases of the project are not in the bundle, in words.
    key
        Id of the free job that makes the bundle from it.
    """

    plan: Plan
    releases: Releases
    identities: tuple[str, ...]
    runs: tuple[Run, ...]
    left_out: tuple[str, ...]
    key: str


def held(project: Project) -> Held | None:
    """What the bundle would hold now; None while nothing was released."""
    runs = [run for run in project.runs if project.released(run) is not None]
    if not runs:
        return None
    base = project.best_run() or runs[-1]
    plan = base.read_plan()
    kept: dict[str, Run] = {}
    left_out: list[str] = []
    for run in runs:
        name = _name(run)
        if run.what == "tree" and run is not base:
            continue
        reason = _unfit(run, base, plan)
        if reason:
            left_out.append(f"{name}: {reason}")
        else:
            kept[name] = run
    parts = [run for run in kept.values() if run.what == "tree"]
    parts += [run for run in kept.values() if run.what == "posterior"]
    parts += [run for run in kept.values() if run.what == "covariance"]
    whole = _whole(project, plan, parts)
    found = tuple(project.released(run) for run in parts)
    releases = Releases.of(tuple(one for one in found if one is not None))
    identities = tuple(run.request_id for run in parts)
    text = json.dumps([identities, whole.to_dict()], sort_keys=True)
    key = f"derive-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return Held(whole, releases, identities, tuple(parts), tuple(left_out), key)


def _name(run: Run) -> str:
    plan = run.read_plan()
    return f"analysis {plan.posteriors[-1].spec.name}" if run.what == "posterior" else run.what


def _unfit(run: Run, base: Run, plan: Plan) -> str:
    """Why a release cannot stand in one bundle with the base, or nothing."""
    then = run.read_plan()
    if run.table_id != base.table_id or then.population.name != plan.population.name:
        return "it is about another table or population"
    mine = then.released
    same = set(mine.names) <= set(plan.schema.names)
    if not same or plan.schema.select(mine.names).to_dict() != mine.to_dict():
        return "its columns were declared in another way"
    return ""


def _whole(project: Project, plan: Plan, runs: Sequence[Run]) -> Plan:
    """One plan of all parts, with the free settings of now."""
    posteriors = []
    covariance = None
    for run in runs:
        then = run.read_plan()
        if run.what == "posterior":
            part = then.posteriors[-1]
            view = project.views.get(run.request_id)
            if view is not None:
                part = replace(part, settings=settings_from(view, part.settings))
            posteriors.append(part)
        if run.what == "covariance":
            covariance = then.covariance
    tree = plan.tree if any(run.what == "tree" for run in runs) else None
    rho = sum(part.rho for part in (tree, *posteriors, covariance) if part is not None)
    # The cap may have been raised between two releases; the ledger has the one that counts.
    population = replace(plan.population, cap=max(plan.population.cap, rho))
    try:
        return replace(
            plan,
            population=population,
            tree=tree,
            posteriors=tuple(posteriors),
            covariance=covariance,
            synthetic=project.synthetic,
        )
    except JustitiaError as error:
        raise JustitiaError(f"the releases do not fit into one bundle: {error}") from error
