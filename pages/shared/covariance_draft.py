"""Settings of the next covariance release as typed, and the plan that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from core.axis import day_text
from core.errors import JustitiaError, PlanError
from core.pace.preview import CovariancePreview, preview
from core.plan import CovariancePlan, Plan
from core.plan_sections import PopulationPlan
from core.roles import Roles
from core.schema import Column, Kind, Schema
from pages.shared.project import Project, Run

METHOD_WORDS = {
    "pace_auto": "Automatic",
    "pace": "Adaptive loop",
    "ssp_clip_sure": "One shot, clipped and shrunk",
    "ssp_tight": "One shot, tight noise",
    "ssp": "One shot, plain noise",
    "diagonal": "Variances only",
    "adaptive_cov": "AdaptiveCov",
}
METHOD_HELP = {
    "pace_auto": "A rough look at every entry first; what came out decides whether the rest goes "
    "to single entries, to a second look at all of them, or to the variances alone.",
    "pace": "Variances first, then round by round the entry that seems furthest off.",
    "ssp_clip_sure": "Rows that lie far out are pulled in to a privately chosen distance, every "
    "entry gets noise once, and correlations that noise could explain are shrunk away.",
    "ssp_tight": "Noise on every entry, at the smallest scale that the analysis allows.",
    "ssp": "Noise on every entry, as textbooks do it: the reference that others are held against.",
    "diagonal": "All of the budget on the variances; every correlation is taken as zero.",
    "adaptive_cov": "Dong, Liang and Yi (2022), for comparison.",
}


@dataclass(frozen=True)
class Draft:
    """What the steward chose and typed so far; it may not fit together yet.

    Attributes
    ----------
    columns
        Chosen names.
    rho
        Price.
    method
        One of ``METHOD_WORDS``.
    public
        Whether public means are typed, by column; else noisy ones are measured first.
    means, widths
        Typed texts by column; empty ones count as not typed.
    """

    columns: tuple[str, ...]
    rho: Fraction
    method: str = "pace_auto"
    public: bool = False
    means: Mapping[str, str] = field(default_factory=dict)
    widths: Mapping[str, str] = field(default_factory=dict)

    def part(self, schema: Schema) -> CovariancePlan:
        """The covariance that the draft asks for.

        Raises
        ------
        PlanError, SchemaError
            Something is missing or no number; the message names the column.
        """
        if not self.columns:
            raise PlanError("choose at least one column")
        means, widths = {}, {}
        for name in self.columns:
            if self.public:
                text = self.means.get(name, "").strip()
                if not text:
                    raise PlanError(
                        f"column {name!r}: type its public mean, or let the means be private"
                    )
                means[name] = number(schema[name], text, "public mean")
            if width := self.widths.get(name, "").strip():
                widths[name] = length(schema[name], width)
        return CovariancePlan(self.columns, self.rho, self.method, means, widths)


def number(column: Column, text: str, what: str) -> float:
    """A value of a column as typed: a number, or a date for a date column."""
    if column.kind is Kind.DATE:
        return column.to_axis(text, what)
    return _float(column, text, what)


def length(column: Column, text: str) -> float:
    """A typed half-width, in the column's unit (days for dates)."""
    return _float(column, text, "half-width")


def _float(column: Column, text: str, what: str) -> float:
    try:
        found = float(text.replace(" ", ""))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise PlanError(f"column {column.name!r}: the {what} {text!r} is no number, such as 12.5")
    return found


def value_words(column: Column, value: float) -> str:
    """A value of a column for people; dates as dates."""
    if column.kind is Kind.DATE:
        return day_text(round(value), None)
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def numeric(project: Project) -> tuple[str, ...]:
    """Columns with declared bounds that are not left out of releases, in file order."""
    ignored = (project.roles or Roles()).ignored
    return tuple(c.name for c in project.modelled if c.axis and c.name not in ignored)


def draft_of(project: Project, left: Fraction) -> Draft:
    """The draft at hand, within what is there and what is left."""
    names = numeric(project)
    draft = project.covariance_draft
    if draft is None:
        draft = _first(project, names, left)
    kept = tuple(name for name in names if name in set(draft.columns))
    if draft.columns and not kept:
        kept = names  # another table
    draft = replace(draft, columns=kept, rho=min(draft.rho, left))
    project.covariance_draft = draft
    return draft


def _first(project: Project, names: tuple[str, ...], left: Fraction) -> Draft:
    """Like the latest release, or all columns at a quarter of the cap."""
    population = project.population
    assert population is not None
    runs = project.runs_of("covariance")
    if runs and (then := plan_of(runs[-1]).covariance) is not None:
        schema = project.schema
        assert schema is not None
        known = [name for name in then.means if name in schema]
        return Draft(
            then.columns,
            then.rho,
            then.method,
            bool(then.means),
            {name: _text(schema[name], then.means[name]) for name in known},
            {name: f"{width:.12g}" for name, width in then.half_widths.items()},
        )
    return Draft(names, min(left, population.cap / 4))


def _text(column: Column, value: float) -> str:
    return value_words(column, value) if column.kind is Kind.DATE else f"{value:.12g}"


def change(project: Project, **changes: Any) -> None:
    """Set fields of the draft."""
    project.covariance_draft = replace(project.covariance_draft, **changes)


def whole_plan(project: Project, part: CovariancePlan) -> Plan:
    """A plan with the covariance as its only part.

    Raises
    ------
    JustitiaError
        It does not fit the declarations or the cap.
    """
    assert project.population is not None
    assert project.schema is not None
    return Plan(
        project.population,
        project.schema,
        project.roles or Roles(),
        None,
        reading=project.settled,
        demo=project.demo,
        covariance=part,
    )


@lru_cache(maxsize=32)
def _read(run: Run) -> Plan:
    return run.read_plan()


def plan_of(run: Run) -> Plan:
    """The plan of a run, read once."""
    return _read(run)


def paid_run(project: Project, part: CovariancePlan) -> Run | None:
    """The latest purchase of this very covariance of what is attached now."""
    for run in reversed(project.runs_of("covariance")):
        then = plan_of(run).covariance
        if then is not None and then.paid() == part.paid() and not project.stale(run):
            return run
    return None


def outlook(population: PopulationPlan, draft: Draft, rho: Fraction) -> CovariancePreview | None:
    """Predicted errors; None without columns or an expected number of rows."""
    if not draft.columns or not population.expected_rows:
        return None
    try:
        return preview(
            len(draft.columns),
            rho,
            expected_rows=population.expected_rows,
            relation=population.relation,
            unit_rows=population.unit.rows,
            private_means=not draft.public,
        )
    except JustitiaError:
        return None
