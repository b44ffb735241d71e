"""Linear regression of a column on others from a covariance estimate, with errors; free."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.pace.derived import (
    Derived,
    DerivedTable,
    derived_table,
    marked_entries,
    normal_quantile,
    visible,
)
from core.pace.estimate import Estimate
from core.pace.sensitivities import GraphSpread, Spread, WholeSpread

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

#: Scaled slopes below this are zeros of the precision matrix that went through an inverse.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Regression:
    """Linear regression of one column on others, raw units.

    Attributes
    ----------
    outcome
        The column that is explained.
    coefficients
        Slopes, in units of the outcome per unit of the predictor.
    intercept
        With the errors of slopes and means (privacy), and of the residuals (sampling).
    residual_deviation
        Standard deviation of what is left, units of the outcome.
    explained
        Share of the variance that is explained, from 0 to 1.
    """

    outcome: str
    coefficients: DerivedTable
    intercept: Derived
    residual_deviation: float
    explained: float


def regression(
    found: Estimate,
    outcome: str,
    predictors: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    selected: BoolArray | None = None,
) -> Regression:
    """Least-squares regression of a column on others, as the matrix has it.

    On all other columns the slopes are -K_tj/K_tt; on a part of them W_SS⁻¹ W_St.  Slopes of
    columns that no measured entry connects with the outcome are 0, without an error.

    Parameters
    ----------
    outcome, predictors
        Column names; all other columns unless given.
    level
        Of the intervals, above 0 and below 1.
    selected
        (d, d): entries to mark, for example those of ``view.selected_entries``.

    Raises
    ------
    EstimationError
        For unknown or repeated columns, an outcome among its predictors, a level outside (0, 1),
        or measurements that determine the matrix too badly.
    """
    target, chosen = _places(found, outcome, predictors)
    quantile = normal_quantile(level)
    W, unit = found.scaled, found.half_widths[target] / found.half_widths
    inverse = _well_scaled_inverse(W[np.ix_(chosen, chosen)])
    scaled = inverse @ W[chosen, target]
    scaled[~_connected(found, target)[chosen] | (np.abs(scaled) < ROUNDING)] = 0.0
    # Last: what the slopes' errors do to the intercept.
    centres = found.means[chosen] / found.half_widths[chosen]
    left = np.vstack([inverse, centres @ inverse])
    errors = np.sqrt(np.cumsum(_variances(found, target, chosen, left, scaled), axis=0))
    residual = max(float(W[target, target] - scaled @ W[chosen, target]), 0.0)
    deviation = math.sqrt(residual) * float(found.half_widths[target])
    slopes = scaled * unit[chosen]
    seen, marked = visible(found), marked_entries(found, selected)
    values = tuple(
        _derived(
            found.columns[column],
            float(slopes[place]),
            errors[:, place] * unit[column],
            quantile,
            determined=bool(seen[column] and seen[target]),
            selected=bool(marked[target, column]),
        )
        for place, column in enumerate(chosen)
    )
    means = float(found.mean_errors[target] ** 2 + slopes**2 @ found.mean_errors[chosen] ** 2)
    lever = (errors[:, -1] * found.half_widths[target]) ** 2
    intercept = _derived(
        "intercept",
        float(found.means[target] - slopes @ found.means[chosen]),
        np.sqrt(lever + means + np.array([0.0, deviation**2 / found.rows])),
        quantile,
        determined=all(value.determined for value in values),
    )
    return Regression(
        outcome,
        derived_table("regression", found, level, values, [*chosen.tolist(), target]),
        intercept,
        deviation,
        float(np.clip(1 - residual / W[target, target], 0.0, 1.0)),
    )


def _places(
    found: Estimate, outcome: str, predictors: Sequence[str] | None
) -> tuple[int, IntArray]:
    place = {name: index for index, name in enumerate(found.columns)}
    if predictors is None:
        predictors = [name for name in found.columns if name != outcome]
    for name in (outcome, *predictors):
        if name not in place:
            raise EstimationError(f"column {name!r} is not in this covariance; choose another")
    if not predictors:
        raise EstimationError("a regression needs at least one predictor; choose some columns")
    if outcome in predictors or len(set(predictors)) != len(predictors):
        raise EstimationError("a regression needs distinct predictors, without the outcome")
    return place[outcome], np.array([place[name] for name in predictors], dtype=np.int64)


def _connected(found: Estimate, target: int) -> BoolArray:
    """(d,): columns that a path of the graph joins to one."""
    mask = np.ones(len(found.columns), dtype=np.bool_)
    if found.completion is not None:
        nodes = next(part for part in found.completion.components if target in part)
        mask[:] = False
        mask[list(nodes)] = True
    return mask


def _variances(
    found: Estimate, target: int, chosen: IntArray, combinations: FloatArray, slopes: FloatArray
) -> FloatArray:
    """Privacy and sampling variances of combinations of W_SS⁻¹ W_St, (2, q), scaled.

    With u a row of ``combinations`` (times W_SS⁻¹ already) and e = (1, -β): d(...) = u' dW e.
    """
    size, count = len(found.columns), len(combinations)
    left = np.zeros((count, size))
    left[:, chosen] = combinations
    right = np.zeros(size)
    right[chosen], right[target] = -slopes, 1.0
    spread: Spread
    if found.completion is None:
        spread = WholeSpread(found.scaled, found.entry_sigmas, found.rows)
    else:
        nodes = np.flatnonzero(_connected(found, target))
        spread = GraphSpread(found.completion, nodes, found.rows)
    inside = spread.nodes
    return np.array(spread.bilinear(left[:, inside], np.tile(right[inside], (count, 1))))


def _well_scaled_inverse(matrix: FloatArray) -> FloatArray:
    """Inverse of a positive definite matrix by way of its correlations."""
    scale = np.sqrt(matrix.diagonal())
    unit = np.outer(scale, scale)
    inverse: FloatArray = np.linalg.inv(matrix / unit) / unit
    return (inverse + inverse.T) / 2


def _derived(
    name: str,
    value: float,
    errors: FloatArray,
    quantile: float,
    *,
    determined: bool,
    selected: bool = False,
) -> Derived:
    privacy, total = float(errors[0]), float(errors[1])
    return Derived(
        (name,),
        value,
        privacy,
        total,
        (value - quantile * privacy, value + quantile * privacy),
        (value - quantile * total, value + quantile * total),
        determined=determined,
        selected=selected,
    )
