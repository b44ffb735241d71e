"""The paid parts of a plan: what each costs, what its request id follows from, how it is measured.

Each part is a charge of its own, so that a plan which grows by an analysis replays what was paid
for before and pays for the analysis alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from core.outcome import Release
from core.pace.frames import count_is_public
from core.pace.select import release_covariance
from core.plan import POINT, CovariancePlan, Plan, PosteriorPlan, TreePlan
from core.privci.select import release_tree
from core.protocols import MarginalGrant, MomentGrant, Progress, StatisticsGrant
from core.pumba.from_tree import row_count_of
from core.pumba.measure import release_statistics
from core.releases import TreeRelease
from core.schema import Schema


class Grant(MarginalGrant, MomentGrant, StatisticsGrant, Protocol):
    """Noisy answers of every kind; each part uses its own."""


#: Measures one part: (grant, declarations, the plan's tree release if there is one, progress).
Measure = Callable[[Grant, Schema, TreeRelease | None, Progress | None], Release]


@dataclass(frozen=True)
class Part:
    """One charge.

    Attributes
    ----------
    what
        ``tree``, ``posterior`` or ``covariance``: how the ledger calls it.
    title
        The same for people, with the analysis' name.
    rho
        Its price.
    kind
        Type name of the release.
    paid
        Everything that is paid for, in plain form; the request id is a hash of it.
    measure
        Does the work.
    """

    what: str
    title: str
    rho: Fraction
    kind: str
    paid: Mapping[str, Any]
    measure: Measure

    def request_id(self, table_id: str, attempt: int = 1) -> str:
        """Id of the charge: a hash of what is paid for and the table version.

        Settings that cost nothing (rows, engine, level, seed) do not enter it.
        """
        text = json.dumps({**self.paid, "table": table_id}, sort_keys=True, ensure_ascii=False)
        base = f"{self.what}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
        return base if attempt == 1 else f"{base}-{attempt}"


def parts_of(plan: Plan) -> tuple[Part, ...]:
    """The tree, the analyses in the plan's order, the covariance."""
    parts = [] if plan.tree is None else [_tree(plan, plan.tree)]
    parts += [_posterior(plan, settings) for settings in plan.posteriors]
    if plan.covariance is not None:
        parts.append(_covariance(plan, plan.covariance))
    return tuple(parts)


def request_id(plan: Plan, table_id: str, attempt: int = 1) -> str:
    """Request id of a plan's first part, which for most plans is the tree."""
    return parts_of(plan)[0].request_id(table_id, attempt)


def _terms(plan: Plan, released: Schema) -> dict[str, Any]:
    population = plan.population
    return {
        "population": population.name,
        "relation": population.relation.value,
        "unit": [population.unit.rows, population.unit.person_column],
        "schema": plan.encoded_for(released).to_dict(),
        "decimal": plan.reading.decimal or POINT,
    }


def _tree(plan: Plan, settings: TreePlan) -> Part:
    paid = {
        **_terms(plan, plan.tree_schema),
        "roles": plan.roles.to_dict(),
        "rho": str(settings.rho),
        "structure": settings.structure,
        "split": [str(part) for part in settings.split],
    }

    def measure(
        grant: Grant, schema: Schema, tree: TreeRelease | None, progress: Progress | None
    ) -> Release:
        return release_tree(
            grant,
            schema,
            plan.roles,
            structure=settings.structure,
            split=settings.split,
            progress=progress,
        )

    return Part("tree", "the tree", settings.rho, "TreeRelease", paid, measure)


def _posterior(plan: Plan, settings: PosteriorPlan) -> Part:
    spec = settings.spec
    paid = {
        **_terms(plan, plan.schema.select(_in_order(plan.schema, spec.columns))),
        "rho": str(settings.rho),
        "analysis": spec.to_dict(),
    }
    if not spec.counts:
        # The expected number of rows decides how the price is split over the sums.
        paid["expected_rows"] = plan.population.expected_rows
    if spec.rows == "tree" and plan.tree is not None:
        paid["tree"] = dict(_tree(plan, plan.tree).paid)

    def measure(
        grant: Grant, schema: Schema, tree: TreeRelease | None, progress: Progress | None
    ) -> Release:
        known = row_count_of(tree) if spec.rows == "tree" and tree is not None else None
        return release_statistics(
            grant,
            schema,
            spec,
            expected_rows=plan.population.expected_rows,
            row_count=known,
            progress=progress,
        )

    title = f"the statistics of {spec.name!r}"
    return Part("posterior", title, settings.rho, "StatisticsRelease", paid, measure)


def _covariance(plan: Plan, settings: CovariancePlan) -> Part:
    paid = {
        **_terms(plan, plan.schema.select(_in_order(plan.schema, settings.columns))),
        **settings.paid(),
    }
    measured = plan.schema.select(_in_order(plan.schema, settings.columns))
    if not count_is_public(measured, plan.population.relation):
        # It steadies the noisy number of rows, by which the sums are divided.
        paid["expected_rows"] = plan.population.expected_rows

    def measure(
        grant: Grant, schema: Schema, tree: TreeRelease | None, progress: Progress | None
    ) -> Release:
        return release_covariance(
            grant,
            schema,
            settings.columns,
            method=settings.method,
            means=settings.means_setting,
            half_widths=dict(settings.half_widths) or None,
            expected_rows=plan.population.expected_rows,
            progress=progress,
        )

    return Part("covariance", "the covariance", settings.rho, "CovarianceRelease", paid, measure)


def _in_order(schema: Schema, names: tuple[str, ...]) -> list[str]:
    wanted = set(names)
    return [name for name in schema.names if name in wanted]
