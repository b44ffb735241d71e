"""Damped Newton on the dual of the maximum-entropy completion, for one component.

g is self-concordant, so the Newton decrement alone tells how far the minimum is (Boyd and
Vandenberghe, *Convex Optimization*, section 9.6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from core.pace.conjugate import conjugate_gradients
from core.pace.dual import Problem

FloatArray = NDArray[np.float64]

#: Systems of up to this many unknowns are factorised at once, larger ones solved by conjugate
#: gradients: measured, these win from here on, except on nearly singular matrices.
DIRECT_UNKNOWNS = 150
#: Where conjugate gradients crawl, systems of up to this many unknowns are factorised after all.
LARGEST_DIRECT = 4000
#: Products with the Hessian after which they crawl, and after which they are given up.
PATIENCE = 200
MAXIMUM_PRODUCTS = 3000
#: Newton decrement² below which the full step descends for certain (self-concordance).
FULL_STEP = 0.25
#: Lengths tried to find the best step.
MAXIMUM_TRIALS = 60
MAXIMUM_STEPS = 60
#: Largest share of the way to the boundary of the positive definite matrices.
BOUNDARY = 0.99


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the steps ended.

    Attributes
    ----------
    precision, covariance
        K and its inverse.
    decrement_squared
        λ² before the last step; the last step makes it about λ⁴.
    steps
        Newton steps taken.
    converged
        Whether λ² fell below the tolerance.
    """

    precision: FloatArray
    covariance: FloatArray
    decrement_squared: float
    steps: int
    converged: bool


@dataclass(frozen=True, eq=False)
class _Point:
    entries: FloatArray
    precision: FloatArray
    covariance: FloatArray
    log_determinant: float


def inverse(matrix: FloatArray) -> tuple[FloatArray, float] | None:
    """Inverse and log-determinant of a positive definite matrix, or None where it is none."""
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        return None
    log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
    inverted, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed or not np.isfinite(log_determinant):
        return None
    lower = np.tril(inverted, -1)
    full = np.ascontiguousarray(lower + lower.T)
    full.flat[:: len(full) + 1] = inverted.diagonal()
    return full, log_determinant


def minimise(
    problem: Problem,
    start: FloatArray,
    *,
    tolerance: float,
    direct_unknowns: int = DIRECT_UNKNOWNS,
) -> Solution:
    """Damped Newton from ``start``, a K that vanishes off the entries.

    Not ``converged`` where the start is not positive definite, or where double precision or the
    limit on steps ends it early.

    Parameters
    ----------
    tolerance
        On λ²; one more full step is taken after it is met.
    direct_unknowns
        Systems up to this size are solved by Cholesky, larger ones by conjugate gradients.
    """
    point = _point(problem, start[problem.rows, problem.columns])
    decrement = float("inf")
    if point is None:
        return Solution(start, start, decrement, 0, False)
    steps = 0
    while steps < MAXIMUM_STEPS:
        gradient = problem.gradient(point.entries, point.covariance)
        direction = newton_direction(
            problem, point.covariance, gradient, decrement, direct_unknowns
        )
        if direction is None:
            break
        decrement = float(-gradient @ direction)
        following = _step(problem, point, direction, decrement)
        if following is None:
            break
        point, steps = following, steps + 1
        if decrement <= tolerance:
            return Solution(point.precision, point.covariance, decrement, steps, True)
    return Solution(point.precision, point.covariance, decrement, steps, False)


def newton_direction(
    problem: Problem,
    covariance: FloatArray,
    gradient: FloatArray,
    decrement: float,
    direct_unknowns: int = DIRECT_UNKNOWNS,
) -> FloatArray | None:
    """-H⁻¹ gradient; None where H is numerically singular.

    ``decrement`` is λ² of the step before, which says how accurate conjugate gradients must be.
    """
    unknowns = len(gradient)
    if unknowns > direct_unknowns:
        iterated = conjugate_gradients(
            problem,
            covariance,
            -gradient,
            accuracy=float(np.clip(np.sqrt(decrement), 1e-4, 0.03)),
            limit=PATIENCE if unknowns <= LARGEST_DIRECT else MAXIMUM_PRODUCTS,
        )
        if iterated is not None or unknowns > LARGEST_DIRECT:
            return iterated
    factor, failed = lapack.dpotrf(problem.hessian(covariance), lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    solved, _ = lapack.dpotrs(factor, -gradient, lower=1)
    return np.asarray(solved, dtype=np.float64).reshape(-1)


def _point(problem: Problem, entries: FloatArray) -> _Point | None:
    precision = problem.matrix(entries)
    found = inverse(precision)
    return None if found is None else _Point(entries, precision, *found)


def _step(
    problem: Problem, point: _Point, direction: FloatArray, decrement: float
) -> _Point | None:
    """A full step close to the minimum, else the best one along the direction."""
    if not np.isfinite(decrement):
        return None
    length = 1.0
    if decrement >= FULL_STEP:
        best = _best_length(problem, point, direction)
        length = 1 / (1 + decrement**0.5) if best is None else best
    return _point(problem, point.entries + length * direction)


def _best_length(problem: Problem, point: _Point, direction: FloatArray) -> float | None:
    """Minimise g along a direction within the positive definite matrices.

    -log|K + t V| = -log|K| - Σ log(1 + t σ) with σ the eigenvalues of W V.  None where W is
    singular up to rounding.
    """
    factor, failed = lapack.dpotrf(point.covariance, lower=1, clean=1)
    if failed:
        return None
    eigenvalues = np.linalg.eigvalsh(factor.T @ problem.matrix(direction) @ factor)
    doubled = problem.doubled
    slope = float(
        (doubled * direction) @ (problem.values + doubled * problem.ridge * point.entries)
    )
    curvature = float(doubled**2 * problem.ridge @ direction**2)
    furthest = float("inf") if eigenvalues[0] >= 0 else -1.0 / float(eigenvalues[0])
    low, high = 0.0, furthest
    length = min(1.0, 0.5 * high)
    for _ in range(MAXIMUM_TRIALS):
        ratios = eigenvalues / (1.0 + length * eigenvalues)
        first = slope + curvature * length - float(ratios.sum())
        second = curvature + float(ratios @ ratios)
        low, high = (length, high) if first < 0 else (low, length)
        trial = length - first / second
        if not low < trial < high:
            trial = 2 * length if np.isinf(high) else (low + high) / 2
        if abs(trial - length) <= 0.01 * length:
            break
        length = trial
    return min(length, BOUNDARY * furthest)
