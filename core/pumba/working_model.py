"""How far a released sum moves an answer, in a public working model that knows no data.

Numbers z = (x - midpoint)/half-width spread over [-1, 1] with mean square 1/3 and a mean off the
middle (mean square 1/12); categories are equally frequent; predictors explain half the variance.
For each answer the model gives the expected squared derivative by every sum, and the sampling
variance that remains: by the delta method, noise of variance s² on a sum adds s² times the former.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.moments import MomentFrame, Monomial
from core.pumba.specification import AnalysisKind, AnalysisSpec

FloatArray = NDArray[np.float64]

#: Moments of a scaled number.
SQUARE, FOURTH, EIGHTH = 1 / 3, 1 / 5, 1 / 9
MEAN_SQUARED = 1 / 12
VARIANCE = SQUARE - MEAN_SQUARED
#: Share of the outcome's variance that predictors explain, and squared correlation.
EXPLAINED = 0.5
CORRELATION_SQUARED = 0.25
#: What an answer that only serves others' intervals counts beside the answers asked for.
SECONDARY = 0.25


@dataclass(frozen=True, eq=False)
class Target:
    """An answer under the working model.

    Attributes
    ----------
    name
        As shown.
    slopes
        Expected squared derivative by each sum (scaled units), by monomial.
    sampling
        Sampling variance, in the answer's scaled unit.
    unit
        User units in one scaled unit of the answer.
    weight
        In the choice of a split.
    shown
        Whether it is an answer of its own; helpers of intervals are not.
    """

    name: str
    slopes: dict[Monomial, float]
    sampling: float
    unit: float
    weight: float = 1.0
    shown: bool = True


def targets(spec: AnalysisSpec, frame: MomentFrame, rows: float) -> tuple[Target, ...]:
    """Answers of a question on sums, for an expected number of rows."""
    if spec.kind is AnalysisKind.REGRESSION:
        return _regression(spec, frame, rows)
    if spec.kind is AnalysisKind.CORRELATION:
        return _correlation(frame, rows)
    assert spec.outcome is not None
    groups: Sequence[Monomial] = [(name,) for name, _ in frame.indicators] or [()]
    size = max(rows / len(groups), 1.0)
    unit = frame.half_width(spec.outcome)
    found = list(_mean(spec, groups[0], size, unit))
    if len(groups) > 1:
        first, second = (_mean(spec, group, size, unit)[0] for group in groups[:2])
        difference = {**first.slopes, **second.slopes}
        found.insert(1, Target("difference of two groups", difference, 2 * first.sampling, unit))
    return tuple(found)


def _mean(spec: AnalysisSpec, group: Monomial, n: float, unit: float) -> tuple[Target, ...]:
    x = spec.outcome
    assert x is not None
    count, first, square = group, _sorted(group, x), _sorted(group, x, x)
    each = " of each group" if group else ""
    mean = {first: 1 / n**2, count: MEAN_SQUARED / n**2}
    scale = 1 / (VARIANCE * n**2)
    spread = {
        square: scale / 4,
        first: scale * MEAN_SQUARED,
        count: scale * (MEAN_SQUARED - VARIANCE) ** 2 / 4,
    }
    sampling = (FOURTH - VARIANCE**2) / (4 * VARIANCE * n)
    found = [
        Target(f"mean{each}", mean, VARIANCE / n, unit),
        Target(f"standard deviation{each}", spread, sampling, unit, SECONDARY),
    ]
    if spec.moments == 4:
        fourth = {_sorted(group, x, x, x, x): 1 / (FOURTH * n) ** 2}
        vary = (EIGHTH / FOURTH**2 - 1) / n
        found.append(Target("fourth moment", fourth, vary, 1.0, SECONDARY, shown=False))
    return tuple(found)


def _sorted(group: Monomial, *names: str) -> Monomial:
    return tuple(sorted((*group, *names)))


def _moment_matrix(frame: MomentFrame, names: Sequence[str]) -> FloatArray:
    """Expected second moments of (1, features), for one row."""
    cells = frame.cells
    sizes: dict[str, int] = {}
    for cell in cells.values():
        sizes[cell.column] = sizes.get(cell.column, 1) + 1  # one more: the reference category
    means = np.array(
        [1.0, *(1 / sizes[cells[n].column] if n in cells else MEAN_SQUARED**0.5 for n in names)]
    )
    matrix: FloatArray = np.outer(means, means)
    for place, name in enumerate(names, start=1):
        if name not in cells:
            matrix[place, place] = SQUARE
            continue
        for other, second in enumerate(names, start=1):
            if second in cells and cells[second].column == cells[name].column:
                matrix[place, other] = means[place] if other == place else 0.0
    return matrix


def _regression(spec: AnalysisSpec, frame: MomentFrame, n: float) -> tuple[Target, ...]:
    y = spec.outcome
    assert y is not None
    names = [name for name in frame.features if name != y]
    matrix = _moment_matrix(frame, names)
    inverse = np.linalg.inv(matrix)
    means = matrix[0]
    spreads = matrix.diagonal()[1:] - means[1:] ** 2
    residual = (1 - EXPLAINED) * VARIANCE
    squared = np.array([MEAN_SQUARED, *(EXPLAINED * VARIANCE / (len(names) * spreads))])
    unit = frame.half_width(y)
    found = []
    for place, name in enumerate(names, start=1):
        width = 1.0 if name in frame.cells else frame.half_width(name)
        slopes = _coefficient_slopes(frame, names, y, inverse[place] ** 2, squared)
        slopes = {key: value / n**2 for key, value in slopes.items()}
        variance = residual * inverse[place, place] / n
        found.append(Target(f"slope of {name}", slopes, float(variance), unit / width))
    spread = _residual_slopes(frame, names, y, squared, residual)
    spread = {key: value / (4 * residual * n**2) for key, value in spread.items()}
    found.append(Target("residual sd", spread, residual / (2 * n), unit, SECONDARY))
    if spec.robust:
        found.append(_meat(names[0], y, n, float(squared[1]), residual))
    return tuple(found)


def _coefficient_slopes(
    frame: MomentFrame, names: Sequence[str], y: str, row: FloatArray, squared: FloatArray
) -> dict[Monomial, float]:
    """From dβ = M(dA_xy - dA_xx β): ``row`` holds the squares of one row of M = A⁻¹."""
    cells = frame.cells
    labels: list[Monomial] = [(), *((name,) for name in names)]
    slopes: dict[Monomial, float] = {}
    for i, first in enumerate(labels):
        slopes[_sorted(first, y)] = float(row[i])
        for k in range(i, len(labels)):
            key = _sorted(first, *labels[k])
            both = row[i] * squared[k] + (row[k] * squared[i] if k != i else 0.0)
            if i == k and first and first[0] in cells:
                key = first  # the square of an indicator is its sum
            slopes[key] = slopes.get(key, 0.0) + float(both)
    return slopes


def _residual_slopes(
    frame: MomentFrame, names: Sequence[str], y: str, squared: FloatArray, residual: float
) -> dict[Monomial, float]:
    """Of the residual variance: from d(rss) = dA_yy - 2β'dA_xy + β'dA_xx β."""
    cells = frame.cells
    labels: list[Monomial] = [(), *((name,) for name in names)]
    slopes: dict[Monomial, float] = {(y, y): 1.0}
    for i, first in enumerate(labels):
        slopes[_sorted(first, y)] = 4 * float(squared[i])
        for k in range(i, len(labels)):
            key = _sorted(first, *labels[k])
            if i == k and first and first[0] in cells:
                key = first
            both = squared[i] * squared[k] * (1 if i == k else 4)
            slopes[key] = slopes.get(key, 0.0) + float(both)
    slopes[()] += residual**2
    return slopes


def _meat(x: str, y: str, n: float, slope: float, residual: float) -> Target:
    """Relative size of Σ (x - x̄)² (y - a - bx)², the inner part of a sandwich variance."""
    off = MEAN_SQUARED
    slopes = {
        _sorted((), x, x, y, y): 1.0,
        _sorted((), x, x, x, y): 4 * slope,
        _sorted((), x, x, x, x): slope**2,
        _sorted((), x, y, y): 4 * off,
        _sorted((), x, x, y): (16 * slope + 4) * off,
        _sorted((), x, x, x): (4 * slope**2 + 4 * slope) * off,
    }
    size = (n * VARIANCE * residual) ** 2
    relative = {key: value / size for key, value in slopes.items()}
    vary = (3 * FOURTH / VARIANCE**2 - 1) / n  # normal residuals: E e⁴ = 3 (E e²)²
    return Target("robust variance", relative, vary, 1.0, SECONDARY, shown=False)


def _correlation(frame: MomentFrame, n: float) -> tuple[Target, ...]:
    """One pair stands for all: the model treats columns alike."""
    x, y = frame.columns[:2]
    unit = 1 / (VARIANCE * n) ** 2
    first = MEAN_SQUARED * (1 + CORRELATION_SQUARED) * unit
    square = CORRELATION_SQUARED / 4 * unit
    slopes: dict[Monomial, float] = {
        _sorted((), x, y): unit,
        (x,): first,
        (y,): first,
        (x, x): square,
        (y, y): square,
        (): MEAN_SQUARED**2 * (1 + CORRELATION_SQUARED) * unit,
    }
    return (Target("correlation of a pair", slopes, (1 - CORRELATION_SQUARED) ** 2 / n, 1.0),)
