"""Preconditioned conjugate gradients for systems with the Hessian of the completion's dual.

One product with the Hessian is two products of d×d matrices, where a factorisation takes the cube
of the number of measured entries.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from core.pace.dual import Problem

FloatArray = NDArray[np.float64]
Preconditioner = Callable[[FloatArray], FloatArray]

#: Share of all entries from which on the Hessian is treated as that of the complete graph.
DENSE_SHARE = 0.75


def conjugate_gradients(
    problem: Problem,
    covariance: FloatArray,
    right: FloatArray,
    *,
    accuracy: float,
    limit: int,
) -> FloatArray | None:
    """H⁻¹ ``right``, or None if ``limit`` products do not suffice.

    Parameters
    ----------
    accuracy
        Relative, in the norm of the preconditioner.
    """
    precondition = preconditioner(problem, covariance)
    solution = np.zeros_like(right)
    residual = right.copy()
    preconditioned = precondition(residual)
    direction = preconditioned.copy()
    energy = first = float(residual @ preconditioned)
    for _ in range(limit):
        if energy <= accuracy**2 * first:
            return solution
        moved = problem.hessian_product(covariance, direction)
        curvature = float(direction @ moved)
        if not curvature > 0:
            return None
        length = energy / curvature
        solution += length * direction
        residual -= length * moved
        preconditioned = precondition(residual)
        following = float(residual @ preconditioned)
        direction *= following / energy
        direction += preconditioned
        energy = following
    return solution if energy <= accuracy**2 * first else None


def preconditioner(problem: Problem, covariance: FloatArray) -> Preconditioner:
    """The inverse Hessian of the complete graph with one ridge, or the inverse diagonal."""
    rows, columns, doubled = problem.rows, problem.columns, problem.doubled
    if len(rows) < DENSE_SHARE * problem.size * (problem.size + 1) / 2:
        variances = covariance.diagonal()
        diagonal = variances[rows] * variances[columns] + covariance[rows, columns] ** 2
        scale = 1.0 / (doubled**2 * (0.5 * diagonal + problem.ridge))
        return lambda residual: scale * residual
    values, vectors = np.linalg.eigh(covariance)
    ridge = float(np.exp(np.mean(np.log(doubled * problem.ridge))))
    damping = 1.0 / (np.outer(values, values) + ridge)

    def dense(residual: FloatArray) -> FloatArray:
        rotated = vectors.T @ problem.matrix(residual / doubled) @ vectors
        rotated *= damping
        moved: FloatArray = (vectors @ rotated @ vectors.T)[rows, columns]
        return moved

    return dense
