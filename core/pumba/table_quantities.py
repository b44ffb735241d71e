"""Quantities of one- and two-way tables, as functions of proportions, and their posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import xlogy

from core.errors import StatisticError
from core.pumba.draws import FloatArray, ParameterDraws, StatisticDraws
from core.pumba.noisy_table import NoisyTable

Estimand = Literal["population", "sample"]
#: Log proportions (..., cells) to the values (..., k) of one quantity's parameters.
Evaluate = Callable[[FloatArray], FloatArray]

QUANTITIES = (
    "proportions",
    "conditionals",
    "risk_difference",
    "risk_ratio",
    "odds_ratio",
    "log_odds_ratio",
    "cramers_v",
    "entropy",
    "quantiles",
)
LEVELS = ((0.25, "lower quartile"), (0.5, "median"), (0.75, "upper quartile"))


@dataclass(frozen=True, eq=False)
class Quantity:
    """Named parameters, and how they follow from proportions (..., cells)."""

    names: tuple[str, ...]
    evaluate: Evaluate


def available(table: NoisyTable, *, edges: Sequence[float] | None = None) -> tuple[str, ...]:
    """The quantities that the table's shape has."""
    names = ["proportions"]
    if len(table.shape) == 2 and min(table.shape) > 1:
        names += ["conditionals", "risk_difference", "risk_ratio", "odds_ratio"]
        names += ["log_odds_ratio", "cramers_v"]
    names.append("entropy")
    if edges is not None and len(table.shape) == 1:
        names.append("quantiles")
    return tuple(names)


def table_posterior(
    table: NoisyTable,
    counts: StatisticDraws,
    quantities: Sequence[str] | None,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    estimand: Estimand = "population",
    sampling: float = 1.0,
    edges: Sequence[float] | None = None,
) -> ParameterDraws:
    """Stage 2: draws of quantities of the table; free post-processing.

    The first column's categories are the groups, the second's the outcome: conditionals are
    p(outcome | group); differences and ratios compare each group with the first, for each outcome
    (where there are only two, for the last).  Entropies are in nats.

    Parameters
    ----------
    table, counts
        The releases and their stage 1.
    quantities
        Names of :data:`QUANTITIES`; None for all that the table's shape has.
    alpha
        Dirichlet parameter of each cell; 1 is exact where the total is known.
    estimand
        ``population``: proportions from Dirichlet(counts / sampling + alpha); ``sample``: those of
        the very rows.
    sampling
        Design effect times finite population correction, on the sampling variance.
    edges
        Bin edges of a one-way table of a numeric column, for ``quantiles``.

    Raises
    ------
    StatisticError
        If a quantity or setting does not fit the table, or nothing that was asked for is defined.
    """
    wanted = available(table, edges=edges) if quantities is None else tuple(quantities)
    _check_settings(table, alpha, estimand, sampling)
    _check_quantities(table, wanted, edges)
    parts = [_quantity(name, table, edges) for name in wanted]
    names = tuple(name for part in parts for name in part.names)

    def evaluate(proportions: FloatArray) -> FloatArray:
        # Where a sample quantity does not exist the result is no finite number; see below.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.concatenate([part.evaluate(proportions) for part in parts], axis=-1)

    if estimand == "sample" or sampling == 0:
        values = repeats = evaluate(_shares(counts.values, table))
    else:
        shapes = counts.values / sampling + alpha
        values, repeats = (evaluate(_dirichlet(shapes, generator)) for _ in range(2))
    naive = _naive(table, evaluate, len(names), 0.0 if estimand == "sample" else sampling)
    defined = np.all(np.isfinite(values) & np.isfinite(repeats), axis=0)
    notes = _notes(names, values, defined)
    if not np.any(defined):
        raise StatisticError("; ".join(notes))
    return ParameterDraws(
        tuple(name for name, keep in zip(names, defined, strict=True) if keep),
        values[:, defined],
        repeats[:, defined],
        naive[defined],
        counts.diagnostics,
        notes,
    )


def histogram_quantiles(
    proportions: FloatArray, edges: FloatArray, levels: FloatArray
) -> FloatArray:
    """Quantiles (..., levels) of values spread evenly within bins (..., cells)."""
    cumulative = np.cumsum(proportions, axis=-1)
    cumulative = cumulative / cumulative[..., -1:]
    below = cumulative[..., None, :] < levels[:, None]
    cell = np.minimum(below.sum(axis=-1), proportions.shape[-1] - 1)
    after = np.take_along_axis(cumulative, cell, axis=-1)
    mass = np.take_along_axis(np.diff(cumulative, axis=-1, prepend=0.0), cell, axis=-1)
    share = np.where(mass > 0, (levels - after + mass) / np.where(mass > 0, mass, 1.0), 0.0)
    quantiles: FloatArray = edges[cell] + np.clip(share, 0.0, 1.0) * np.diff(edges)[cell]
    return quantiles


def _quantity(name: str, table: NoisyTable, edges: Sequence[float] | None) -> Quantity:
    """One quantity of this table."""
    if name == "proportions":
        return Quantity(_cell_names(table), lambda p: p)
    if name == "entropy":
        return Quantity(("entropy (nats)",), _entropy)
    if name == "quantiles":
        assert edges is not None
        ends, levels = np.asarray(edges, dtype=np.float64), np.array([at for at, _ in LEVELS])
        names = tuple(f"{label} of {table.axes[0][0]}" for _, label in LEVELS)
        return Quantity(names, lambda p: histogram_quantiles(p, ends, levels))
    return _two_way(name, table)


def _two_way(name: str, table: NoisyTable) -> Quantity:
    (group, groups), (outcome, outcomes) = table.axes
    shape = table.shape
    if name == "cramers_v":
        return Quantity(("Cramér's V",), lambda p: _cramers_v(_square(p, shape)))
    if name == "conditionals":
        names = tuple(f"p({outcome}={b} | {group}={a})" for a in groups for b in outcomes)
        return Quantity(names, lambda p: _flat(_conditionals(_square(p, shape))))
    # Of two outcomes the last one says it all.
    first = 1 if len(outcomes) == 2 else 0
    label = {
        "risk_difference": "risk difference",
        "risk_ratio": "risk ratio",
        "odds_ratio": "odds ratio",
        "log_odds_ratio": "log odds ratio",
    }[name]
    names = tuple(
        f"{label} of {outcome}={b}, {group}={a} against {groups[0]}"
        for a in groups[1:]
        for b in outcomes[first:]
    )

    def evaluate(proportions: FloatArray) -> FloatArray:
        cells = _square(proportions, shape)
        return _flat(_COMPARISONS[name](cells)[..., first:])

    return Quantity(names, evaluate)


def _square(proportions: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return proportions.reshape(*proportions.shape[:-1], *shape)


def _flat(values: FloatArray) -> FloatArray:
    return values.reshape(*values.shape[:-2], -1)


def _conditionals(cells: FloatArray) -> FloatArray:
    shares: FloatArray = cells / cells.sum(axis=-1, keepdims=True)
    return shares


def _risk_difference(cells: FloatArray) -> FloatArray:
    risks = _conditionals(cells)
    return risks[..., 1:, :] - risks[..., :1, :]


def _risk_ratio(cells: FloatArray) -> FloatArray:
    risks = _conditionals(cells)
    return risks[..., 1:, :] / risks[..., :1, :]


def _log_odds_ratio(cells: FloatArray) -> FloatArray:
    """From the other cells of a row, not from 1 less the share: no digits are lost near 1."""
    odds = np.log(cells) - np.log(_others(cells))
    differences: FloatArray = odds[..., 1:, :] - odds[..., :1, :]
    return differences


def _odds_ratio(cells: FloatArray) -> FloatArray:
    return np.exp(_log_odds_ratio(cells))


def _others(cells: FloatArray) -> FloatArray:
    """Sum of the other cells of the row."""
    size = cells.shape[-1]
    return cells @ (np.ones((size, size)) - np.eye(size))


_COMPARISONS: dict[str, Evaluate] = {
    "risk_difference": _risk_difference,
    "risk_ratio": _risk_ratio,
    "odds_ratio": _odds_ratio,
    "log_odds_ratio": _log_odds_ratio,
}


def _cramers_v(cells: FloatArray) -> FloatArray:
    """Square root of chi² / (n · (smaller number of labels - 1)); empty margins drop out."""
    rows, columns = cells.sum(axis=-1, keepdims=True), cells.sum(axis=-2, keepdims=True)
    expected = rows * columns
    share = np.where(expected > 0, (cells - expected) ** 2 / expected, 0.0)
    smaller = min(cells.shape[-2:]) - 1
    # An empty row or column leaves fewer labels; with fewer than two there is no association.
    association: FloatArray = np.sqrt(share.sum(axis=(-2, -1)) / smaller)[..., None]
    return association


def _entropy(proportions: FloatArray) -> FloatArray:
    entropy: FloatArray = -xlogy(proportions, proportions).sum(axis=-1, keepdims=True)
    return entropy


def _cell_names(table: NoisyTable) -> tuple[str, ...]:
    names = [""]
    for column, labels in table.axes:
        names = [
            f"{before}, {column}={label}" if before else f"{column}={label}"
            for before in names
            for label in labels
        ]
    return tuple(f"p({name})" for name in names)


def _dirichlet(shapes: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Proportions (..., cells); logs of gamma draws, so that small shapes do not all become 0."""
    small = shapes < 1.0
    logs = np.log(generator.standard_gamma(np.where(small, shapes + 1.0, shapes)))
    if np.any(small):
        # Gamma(a) is Gamma(a + 1) times U^(1/a).
        logs -= np.where(small, generator.standard_exponential(shapes.shape) / shapes, 0.0)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    # The least positive number stands for shares below it, so that odds stay finite.
    weights = np.maximum(weights, np.finfo(np.float64).tiny)
    proportions: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return proportions


def _shares(counts: FloatArray, table: NoisyTable) -> FloatArray:
    """Proportions of the rows themselves."""
    total = counts.sum(axis=-1, keepdims=True)
    if np.any(total == 0):
        raise StatisticError(
            f"some draws of {table.label} have no rows at all, so proportions of the "
            "sample are undefined; ask for the population"
        )
    shares: FloatArray = counts / total
    return shares


def _naive(table: NoisyTable, evaluate: Evaluate, size: int, sampling: float) -> FloatArray:
    """Estimates from the released cells, and delta-method errors as of an exact multinomial.

    With D = d g / d log p the variance is (sum D² / p - (sum D)²) / n.
    """
    naive = np.full((size, 2), np.nan)
    released = np.array([cell.value for cell in table.cells])
    total = float(released.sum())
    if total <= 0:
        return naive
    shares = released / total
    estimate = evaluate(shares)
    step = 1e-6
    moves = shares * (1.0 + step * np.eye(len(shares)))
    back = shares * (1.0 - step * np.eye(len(shares)))
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = (evaluate(moves) - evaluate(back)) / (2.0 * step)
        used = np.abs(slopes) > 1e-9
        terms = np.where(used, slopes**2 / shares[:, None], 0.0)
        variance = sampling * (terms.sum(axis=0) - slopes.sum(axis=0) ** 2) / total
        impossible = np.any(used & (shares[:, None] <= 0), axis=0)
        error = np.where(impossible, np.nan, np.sqrt(np.maximum(variance, 0.0)))
    naive[:, 0] = np.where(np.isfinite(estimate), estimate, np.nan)
    naive[:, 1] = np.where(np.isfinite(estimate), error, np.nan)
    return naive


def _notes(
    names: tuple[str, ...], values: FloatArray, defined: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[str, ...]:
    """One sentence for each quantity that some draws do not have."""
    notes = []
    for column in np.flatnonzero(~defined):
        share = float(np.mean(~np.isfinite(values[:, column])))
        notes.append(
            f"{names[column]} is left out: it is undefined (an empty cell or group) in "
            f"{max(share, 0.001):.1%} of the draws of the sample; ask for the population instead"
        )
    return tuple(notes)


def _check_settings(table: NoisyTable, alpha: float, estimand: str, sampling: float) -> None:
    what = table.label
    if not (math.isfinite(alpha) and alpha > 0):
        raise StatisticError(f"{what}: alpha must be a finite number above 0")
    if estimand not in ("population", "sample"):
        raise StatisticError(f"{what}: the estimand is either 'population' or 'sample'")
    if not (math.isfinite(sampling) and sampling >= 0):
        raise StatisticError(f"{what}: the factor on the sampling variance must be at least 0")


def _check_quantities(
    table: NoisyTable, wanted: tuple[str, ...], edges: Sequence[float] | None
) -> None:
    what = table.label
    if not wanted:
        raise StatisticError(f"{what}: name at least one quantity")
    for name in wanted:
        if name not in QUANTITIES:
            raise StatisticError(
                f"{what}: there is no quantity {name!r}; use one of {', '.join(QUANTITIES)}"
            )
        if name == "quantiles" and edges is None:
            raise StatisticError(f"{what}: quantiles need the edges of the bins")
        if name not in available(table, edges=edges):
            raise StatisticError(f"{what}: {name} needs a table of another shape")
    if edges is not None:
        ends = np.asarray(edges, dtype=np.float64)
        rising = np.all(np.isfinite(ends)) and np.all(np.diff(ends) > 0)
        if len(ends) != len(table.cells) + 1 or not rising:
            raise StatisticError(f"{what}: edges are rising numbers, one more than there are bins")
