"""Least squares for many moment matrices at once, and the way back to the columns' units.

Arrays have the draws last, so that each step of an elimination runs over all draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.pumba.draws import FloatArray
from core.pumba.gram_variable import GramVariable

#: Smallest share of a pivot that is told from rounding.
TINY = 1e-14


@dataclass(frozen=True, eq=False)
class Units:
    """Linear maps between the coordinates of the sums, columns scaled to [-1, 1], and results.

    The constant comes first, the outcome last.

    Attributes
    ----------
    scaling
        (q, q): the scaled moment matrix is ``scaling @ A @ scaling.T``.
    coefficients, origin
        (q - 1, q - 1) and (q - 1,): results' coefficients are ``coefficients @ scaled + origin``.
    residual
        Factor of the residual standard deviation.
    """

    scaling: FloatArray
    coefficients: FloatArray
    origin: FloatArray
    residual: float

    @classmethod
    def of(cls, variables: Sequence[GramVariable]) -> Units:
        """Units of predictors and outcome, the outcome last."""
        half = np.array([(v.upper - v.lower) / 2 for v in variables])
        middle = np.array([v.lower for v in variables]) + half
        unit = np.array([v.unit for v in variables])
        size = len(variables) + 1
        scaling = np.eye(size)
        scaling[1:, 1:] = np.diag(1 / half)
        scaling[1:, 0] = -middle / half
        centre = np.array([v.origin for v in variables]) + unit * middle
        width = unit * half
        # y = centre_y + width_y * (b_0 + sum of b_j (x_j - centre_j) / width_j)
        coefficients = np.diag(np.concatenate(([width[-1]], width[-1] / width[:-1])))
        coefficients[0, 1:] = -width[-1] * centre[:-1] / width[:-1]
        origin = np.zeros(size - 1)
        origin[0] = centre[-1]
        return cls(scaling, coefficients, origin, float(width[-1]))


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Fits for R moment matrices, in scaled columns; p + 1 coefficients with the constant first.

    Attributes
    ----------
    coefficients
        (p + 1, R).
    lower, pivots
        X'X = L D L': the strict lower triangle of L (p + 1, p + 1, R), and D (p + 1, R).
    residual
        (R,): residual sums of squares.
    spread
        (p + 1, R): pivots over the diagonal of X'X, 1 - R² of each predictor on those before it.
    """

    coefficients: FloatArray
    lower: FloatArray
    pivots: FloatArray
    residual: FloatArray
    spread: FloatArray

    def backward(self, right: FloatArray) -> FloatArray:
        """Solve L' b = right, for ``right`` of shape (p + 1, R)."""
        solution = right.copy()
        for i in range(len(solution) - 1, 0, -1):
            solution[:i] -= self.lower[i, :i] * solution[i]
        return solution

    def spreads(self, standard: FloatArray) -> FloatArray:
        """Draws with covariance (X'X)⁻¹ from standard normals (p + 1, R)."""
        return self.backward(standard / np.sqrt(self.pivots))

    def inverse(self) -> FloatArray:
        """(X'X)⁻¹ of every matrix, (R, p + 1, p + 1)."""
        size, number = self.pivots.shape
        factor = np.empty((size, size, number))
        for i in range(size):
            unit = np.zeros((size, number))
            unit[i] = 1.0
            factor[:, i] = self.spreads(unit)
        draws_first = np.moveaxis(factor, 2, 0)
        result: FloatArray = draws_first @ np.swapaxes(draws_first, 1, 2)
        return result


def scaled_moments(values: FloatArray, chosen: Sequence[int], scaling: FloatArray) -> FloatArray:
    """Moment matrices (q, q, R) of scaled columns from (R, d, d), rows ``chosen`` of them."""
    size = len(chosen)
    if list(chosen) == list(range(values.shape[1])):
        part = values.reshape(len(values), -1)
    else:
        part = values[:, chosen][:, :, chosen].reshape(len(values), -1)
    return (np.kron(scaling, scaling) @ part.T).reshape(size, size, -1)


def least_squares(moments: FloatArray) -> LeastSquares:
    """Regress the last column on the others, for positive definite matrices (q, q, R).

    Pivots that rounding made 0 or negative count as the smallest positive one it can tell.
    """
    work = moments.copy()
    size = len(work)
    diagonal = np.array([work[j, j] for j in range(size)])
    floor = TINY * np.maximum(diagonal, moments[0, 0])
    lower = np.zeros_like(work)
    pivots = np.empty_like(diagonal)
    for j in range(size):
        pivots[j] = np.maximum(work[j, j], floor[j])
        for i in range(j + 1, size):
            lower[i, j] = work[i, j] / pivots[j]
            work[i, j + 1 : i + 1] -= lower[i, j] * work[j + 1 : i + 1, j]
    fit = LeastSquares(
        coefficients=lower[-1, :-1],
        lower=lower[:-1, :-1],
        pivots=pivots[:-1],
        residual=pivots[-1],
        spread=pivots[:-1] / diagonal[:-1],
    )
    solution = fit.backward(lower[-1, :-1])
    return LeastSquares(solution, fit.lower, fit.pivots, fit.residual, fit.spread)
