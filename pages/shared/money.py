"""Budgets on the pages: amounts in words, the steps of the slider, and what a budget buys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from core.errors import BudgetError
from core.forecast import Forecast, forecast
from core.plan import TreePlan
from core.private.zcdp import as_rho, epsilon, format_rho
from core.statement import guessing_sentence
from pages.shared.project import Project

__all__ = [
    "Curve",
    "as_rho",
    "curve",
    "epsilon",
    "first_plan",
    "format_rho",
    "guess",
    "outlook",
    "percent",
    "steps",
    "typed",
    "words",
]

#: The slider's steps in every power of ten.
DIGITS = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(7))
#: More columns than this make the curve too slow to draw while a slider moves.
CURVE_COLUMNS = 40


@dataclass(frozen=True)
class Curve:
    """Noise of a pair's cell, and persons in a typical one, for every step of the slider."""

    budgets: tuple[float, ...]
    noise: tuple[float, ...]
    persons: tuple[float, ...] | None


def steps(left: Fraction, chosen: Fraction) -> list[str]:
    """Exact amounts for the slider, up to what is left, with the chosen one among them."""
    ladder = {digit * Fraction(10) ** power for power in range(-3, 3) for digit in DIGITS}
    return [str(rho) for rho in sorted({*(rho for rho in ladder if rho < left), left, chosen})]


def words(text: str) -> str:
    """An exact amount as people read it."""
    return format_rho(as_rho(text))


def typed(text: str, left: Fraction) -> Fraction:
    """An amount that the steward typed.

    Raises
    ------
    BudgetError
        It is no amount, or more than is left.
    """
    wanted = as_rho(text)
    if wanted > left:
        raise BudgetError(f"ρ = {text} is more than what is left, {format_rho(left)}")
    return wanted


def percent(value: int) -> Fraction:
    """A share of a hundred."""
    return Fraction(value, 100)


def first_plan(left: Fraction, cap: Fraction) -> TreePlan:
    """Where the budget page starts: a quarter of the cap, or what is left."""
    return TreePlan(min(left, cap / 4))


def outlook(project: Project, tree: TreePlan, rho: Fraction) -> Forecast:
    """What a budget buys, from public facts only."""
    population, schema, roles = project.population, project.schema, project.roles
    if population is None or schema is None or roles is None:
        raise BudgetError("confirm schema and roles first")
    return forecast(
        schema,
        roles,
        rho,
        structure=tree.structure,
        split=tree.split,
        relation=population.relation,
        unit=population.unit,
        expected_rows=population.expected_rows,
    )


@lru_cache(maxsize=64)
def guess(rho: Fraction, baseline: float) -> str:
    """What rho means for one person; public arithmetic, kept because it takes a while."""
    return guessing_sentence(rho, baseline)


def curve(project: Project, tree: TreePlan, options: Sequence[str]) -> Curve | None:
    """The outlook along the slider; None where it would be slow or says nothing.

    Kept with the project until something public changes: it does not depend on the chosen budget.
    """
    if len(project.released_names) > CURVE_COLUMNS:
        return None
    facts = (project.population, project.schema, project.roles, tree.structure, tree.split)
    key = (*facts, tuple(options))
    if project.curve is None or project.curve[0] != key:
        project.curve = (key, _curve(project, tree, options))
    return project.curve[1]


def _curve(project: Project, tree: TreePlan, options: Sequence[str]) -> Curve | None:
    points = [outlook(project, tree, as_rho(text)) for text in options]
    noise = [point.two_way_sigma for point in points if point.two_way_sigma is not None]
    persons = [point.two_way_persons for point in points if point.two_way_persons is not None]
    if len(noise) < len(points):
        return None
    return Curve(
        tuple(float(as_rho(text)) for text in options),
        tuple(noise),
        tuple(persons) if len(persons) == len(points) else None,
    )
