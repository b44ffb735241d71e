"""From a question to the cheapest statistics that answer it: planned from public facts alone.

The split of the budget minimises the expected posterior variance of the answers in the public
working model of :mod:`core.pumba.working_model`; nothing here has seen a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from core.errors import BudgetError
from core.moments import MomentFrame, MomentRequest, Monomial
from core.private import sensitivity
from core.private.feature_sensitivity import moments_sensitivity
from core.private.scales import gaussian_sigma
from core.provenance import Relation, Unit
from core.pumba.layouts import DRAW_WORDS, Layout, layouts
from core.pumba.specification import AnalysisKind, AnalysisSpec
from core.pumba.working_model import FloatArray, Target, targets
from core.schema import Schema

__all__ = [
    "AnalysisKind",
    "AnalysisSpec",
    "PlannedDraw",
    "Prediction",
    "StatisticsRequest",
    "plan_request",
]

#: Rows assumed where the steward gives no public guess.
ASSUMED_ROWS = 1000
#: Shares are multiples of this, and no draw gets less than ten of it.
SHARE_STEP = Fraction(1, 1000)
LEAST_STEPS = 10
#: Standard deviations on either side of a 95 % interval.
REACH = 1.96

Split = Mapping[str, Fraction | float | str] | Sequence[Fraction | float | str]


@dataclass(frozen=True)
class PlannedDraw:
    """One draw: what it asks and what it will cost.

    Attributes
    ----------
    name
        ``table``, ``count``, ``sums``, ``products``, ``cubes``, ``quartics`` or ``joint``.
    share
        Its part of the whole budget.
    rho
        The same as a budget.
    sensitivity
        L2 sensitivity of all its statistics together (numbers scaled to [-1, 1]; counts in rows).
    sigma
        Standard deviation of each statistic's noise, in the same units.
    statistics
        (label, standard deviation) of each statistic in the columns' own units, about the middle
        of their bounds.  A table has one entry, for every cell.
    request
        The sums; None for a table.
    clique
        The table's columns; None for sums.
    """

    name: str
    share: Fraction
    rho: Fraction
    sensitivity: float
    sigma: float
    statistics: tuple[tuple[str, float], ...]
    request: MomentRequest | None = None
    clique: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Prediction:
    """Expected half-width of a 95 % interval: from the noise alone, and with sampling added."""

    name: str
    noise_half_width: float
    half_width: float


@dataclass(frozen=True)
class StatisticsRequest:
    """What will be measured, how the price is split, and what that is expected to buy.

    Attributes
    ----------
    schema
        Declarations of the columns in use.
    expected_rows
        The public guess that was used; ``assumed`` says that nobody gave one.
    count_known
        Whether the number of complete rows needs no draw: public, or released before.
    draws
        In the order in which they are made.
    predictions
        One an answer, from the working model.
    """

    spec: AnalysisSpec
    schema: Schema
    relation: Relation
    unit: Unit
    rho: Fraction
    expected_rows: int
    assumed: bool
    count_known: bool
    draws: tuple[PlannedDraw, ...]
    predictions: tuple[Prediction, ...]

    @property
    def split(self) -> dict[str, Fraction]:
        """Share of each draw."""
        return {draw.name: draw.share for draw in self.draws}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The plan in words."""
        lines = [_draw_words(draw) for draw in self.draws]
        if self.count_known and not self.spec.counts:
            lines.insert(0, "The number of complete rows is known already and costs nothing.")
        rows = f"{self.expected_rows:,} rows" + (" (nobody said how many)" if self.assumed else "")
        lines += [
            f"With {rows}, the 95 % interval for the {found.name} is expected to reach "
            f"±{found.half_width:.3g}, of which ±{found.noise_half_width:.3g} by the noise alone."
            for found in self.predictions
        ]
        return tuple(lines)


def plan_request(
    spec: AnalysisSpec,
    schema: Schema,
    relation: Relation,
    unit: Unit,
    rho: Fraction,
    *,
    expected_rows: int | None = None,
    split: Split | None = None,
) -> StatisticsRequest:
    """The cheapest sufficient statistics of a question; reads no data and costs nothing.

    Parameters
    ----------
    spec, schema
        The question, and the declarations that it is checked against.
    relation, unit
        Terms of the ledger.
    rho
        Budget of the whole question.
    expected_rows
        Public guess at the number of rows.
    split
        Shares by draw name, or in the draws' order; scaled to sum to one.  Chosen by the working
        model unless given.

    Raises
    ------
    SchemaError, PlanError
        The question does not fit the declarations.
    BudgetError
        The budget is not positive, asks for impossible noise, or the split does not fit.
    """
    used = spec.check(schema)
    if not isinstance(rho, Fraction) or rho <= 0:
        raise BudgetError(f"analysis {spec.name!r}: rho must be a fraction above 0")
    rows = ASSUMED_ROWS if expected_rows is None else max(int(expected_rows), 1)
    price = _Price(used, relation, unit, rho)
    known = False
    if spec.counts:
        if split is not None:
            _given_shares(split, ("table",), spec)
        draws, predictions = _table_plan(spec, price, rows)
    else:
        frame = spec.frame(used)
        known = spec.by is None and (spec.rows == "tree" or price.counts_are_public(frame))
        choices = layouts(spec, frame, relation, count_known=known)
        answers = targets(spec, frame, float(rows))
        draws, predictions = _sums_plan(spec, choices, answers, price, split)
    return StatisticsRequest(
        spec, used, relation, unit, rho, rows, expected_rows is None, known, draws, predictions
    )


@dataclass(frozen=True)
class _Price:
    """What noise costs: declarations, terms and budget."""

    schema: Schema
    relation: Relation
    unit: Unit
    rho: Fraction

    def squared(self, request: MomentRequest) -> Fraction:
        """Squared sensitivity of a draw."""
        return moments_sensitivity(request, self.schema, self.relation, self.unit.rows)

    def counts_are_public(self, frame: MomentFrame) -> bool:
        """Whether the number of complete rows costs nothing: all rows, under ``replace_one``."""
        public = self.relation is Relation.REPLACE_ONE and self.unit.rows == 1
        return public and not frame.may_miss(self.schema)


# -- tables --------------------------------------------------------------------------------


def _table_plan(
    spec: AnalysisSpec, price: _Price, rows: int
) -> tuple[tuple[PlannedDraw, ...], tuple[Prediction, ...]]:
    squared = sensitivity.histograms(1, price.relation, price.unit.rows)
    sigma = gaussian_sigma(squared, price.rho)
    draw = PlannedDraw(
        "table",
        Fraction(1),
        price.rho,
        math.sqrt(squared),
        sigma,
        (("each cell", sigma),),
        clique=spec.clique,
    )
    sizes = [price.schema[name].size for name in spec.clique]
    groups = sizes[0] if spec.by is not None else 1
    size, cells = max(rows / groups, 1.0), math.prod(sizes) / groups
    share = 1 / cells
    # A share is a cell over a sum of cells, each with its own noise.
    noise = sigma**2 / size**2 * ((1 - share) ** 2 + (cells - 1) * share**2)
    name = "share of a cell" if spec.by is None else "share of a cell in its group"
    found = _prediction(name, noise, share * (1 - share) / size, 1.0)
    return (draw,), (found,)


# -- sums ----------------------------------------------------------------------------------


def _sums_plan(
    spec: AnalysisSpec,
    choices: Sequence[Layout],
    answers: Sequence[Target],
    price: _Price,
    split: Split | None,
) -> tuple[tuple[PlannedDraw, ...], tuple[Prediction, ...]]:
    if split is not None:
        choices = [_named_layout(choices, split, spec)]
    best = None
    for layout in choices:
        costs = _costs(layout, answers, price)
        shares = (
            _given_shares(split, layout.names, spec)
            if split is not None
            else _rounded(_optimal(costs, answers))
        )
        loss = _loss(costs, answers, np.array([float(share) for share in shares]))
        if best is None or loss < best[0]:
            best = (loss, layout, shares, costs)
    assert best is not None
    _, layout, shares, costs = best
    draws = tuple(
        _planned(name, request, share, price)
        for (name, request), share in zip(layout.draws, shares, strict=True)
    )
    noise = (costs / np.array([float(share) for share in shares])).sum(axis=1)
    return draws, tuple(
        _prediction(answer.name, float(variance), answer.sampling, answer.unit)
        for answer, variance in zip(answers, noise, strict=True)
        if answer.shown
    )


def _planned(name: str, request: MomentRequest, share: Fraction, price: _Price) -> PlannedDraw:
    squared, rho = price.squared(request), price.rho * share
    sigma = gaussian_sigma(squared * request.whole**2, rho) / request.whole
    statistics = tuple(
        (statistic_label(names), sigma * _user_unit(names, request.frame))
        for names in request.monomials
    )
    return PlannedDraw(name, share, rho, math.sqrt(squared), sigma, statistics, request=request)


def statistic_label(names: Monomial) -> str:
    """A sum in words.

    >>> statistic_label(()), statistic_label(("age", "job=cook"))
    ('rows', 'sum of age × job=cook')
    """
    return "sum of " + " × ".join(names) if names else "rows"


def _user_unit(names: Monomial, frame: MomentFrame) -> float:
    """Product of half-widths: user units in one scaled unit of a sum."""
    cells = frame.cells
    return math.prod(frame.half_width(name) for name in names if name not in cells)


def _costs(layout: Layout, answers: Sequence[Target], price: _Price) -> FloatArray:
    """(answers, draws): noise variance of an answer when a draw has the whole budget."""
    costs = np.zeros((len(answers), len(layout.draws)))
    for place, (_, request) in enumerate(layout.draws):
        variance = float(price.squared(request) / (2 * price.rho))
        for row, answer in enumerate(answers):
            costs[row, place] = variance * sum(
                answer.slopes.get(names, 0.0) for names in request.monomials
            )
    return costs


def _loss(costs: FloatArray, answers: Sequence[Target], shares: FloatArray) -> float:
    """Weighted sum of the logarithms of the answers' expected variances."""
    total = (costs / shares).sum(axis=1) + [answer.sampling for answer in answers]
    return float(np.log(total) @ [answer.weight for answer in answers])


def _optimal(costs: FloatArray, answers: Sequence[Target]) -> FloatArray:
    """Shares that minimise :func:`_loss`.

    The logarithm lies below its tangents, so that minimising the tangent's sum of c/share, whose
    minimum is at shares proportional to the roots of c, never increases the loss.
    """
    weights = np.array([answer.weight for answer in answers])
    sampling = np.array([answer.sampling for answer in answers])
    shares = np.full(costs.shape[1], 1 / costs.shape[1])
    for _ in range(500):
        total = (costs / shares).sum(axis=1) + sampling
        roots = np.sqrt((weights / total) @ costs) + 1e-12
        before, shares = shares, roots / roots.sum()
        if np.abs(shares - before).max() < 1e-7:
            break
    return shares


def _rounded(shares: FloatArray) -> tuple[Fraction, ...]:
    """Whole steps of a thousandth that sum to one, ten at least; the largest takes the rest."""
    steps = [max(round(float(share) / float(SHARE_STEP)), LEAST_STEPS) for share in shares]
    steps[int(np.argmax(steps))] += round(1 / SHARE_STEP) - sum(steps)
    return tuple(step * SHARE_STEP for step in steps)


def _named_layout(choices: Sequence[Layout], split: Split, spec: AnalysisSpec) -> Layout:
    for layout in choices:
        if isinstance(split, Mapping):
            if set(split) == set(layout.names):
                return layout
        elif len(split) == len(layout.names):
            return layout
    known = " or ".join(", ".join(layout.names) for layout in choices)
    raise BudgetError(f"analysis {spec.name!r}: a split gives one share to each of {known}")


def _given_shares(split: Split, names: Sequence[str], spec: AnalysisSpec) -> tuple[Fraction, ...]:
    words = f"analysis {spec.name!r}: a split gives one positive number to each of "
    words += ", ".join(names)
    try:
        given = [split[name] for name in names] if isinstance(split, Mapping) else list(split)
        # A float means the decimal that it prints as: 0.1 is one tenth.
        parts = [Fraction(str(part)) for part in given]
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise BudgetError(words) from error
    if len(parts) != len(names) or len(split) != len(names) or any(part <= 0 for part in parts):
        raise BudgetError(words)
    total = sum(parts, Fraction(0))
    return tuple(part / total for part in parts)


# -- words ---------------------------------------------------------------------------------


def _prediction(name: str, noise: float, sampling: float, unit: float) -> Prediction:
    return Prediction(
        name, REACH * unit * math.sqrt(noise), REACH * unit * math.sqrt(noise + sampling)
    )


def _draw_words(draw: PlannedDraw) -> str:
    noises = [sigma for _, sigma in draw.statistics]
    low, high = min(noises), max(noises)
    reach = f"±{low:.3g}" if high <= low * (1 + 1e-9) else f"±{low:.3g} to ±{high:.3g}"
    return (
        f"Measured: {DRAW_WORDS[draw.name]} ({len(draw.statistics)}), "
        f"{float(draw.share):.3g} of the budget, noise of standard deviation {reach}."
        if draw.clique is None
        else f"Measured: every cell of the table, noise of standard deviation {reach} rows."
    )
