"""Maximum-entropy completion of noisy second moments.

Of all positive definite W, ``complete`` finds the one that minimises

    1/2 Σ_i λ_i (W_i - y_i)² - μ log|W|      over the measured entries i, all squares among them.

Its inverse K vanishes wherever nothing was measured (a Gaussian graphical model), for every μ; as
μ falls to 0, W reproduces y wherever y has a positive definite completion (Dempster 1972,
*Covariance Selection*), and the least-squares fit otherwise.  Reading W costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.blas import one_blas_thread
from core.errors import EstimationError
from core.pace import newton
from core.pace.components import connected_components
from core.pace.conditioning import conditioned
from core.pace.dual import Problem
from core.pace.local_update import one_column
from core.pace.measurements import Measurements

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: Weight of the entropy, in nats.
BARRIER = 0.05
#: On the squared Newton decrement.
TOLERANCE = 1e-10
#: Largest and smallest ratio of μ at two stages of the path from a cold start.
PATH_FACTOR = 20.0
SMALLEST_FACTOR = 1.1
#: Newton steps on the path after which it ends early.
MAXIMUM_PATH = 500
#: Ridges, in units of fitted variances, from which Newton starts cold without a path: where no
#: value exceeds 1, and for each square of the excess where one does.
EASY_RIDGE = 1e-3
CLASH_RIDGE = 0.3
#: On λ² of a stage that is only passed through.
PATH_TOLERANCE = 1e-2
#: At the last stage, with wider ridges after each.
MAXIMUM_ATTEMPTS = 12


@dataclass(frozen=True, eq=False)
class Completion:
    """The maximum-entropy matrix of noisy measurements.

    Attributes
    ----------
    covariance, precision
        W and K = W⁻¹, (d, d); K is exactly 0 off the measured entries.
    measurements
        Pooled (and clipped, where that was asked for): the y and λ that were fitted.
    ridge
        (m,): τ of each measurement, μ/λ or more where that could not be computed with.
    barrier
        μ.
    decrement_squared
        Largest λ² of a component before its last step, which brings it to about λ⁴.
    iterations
        Newton steps, summed over components.
    components
        Column indices that measured entries connect, by smallest index.
    """

    covariance: FloatArray
    precision: FloatArray
    measurements: Measurements
    ridge: FloatArray
    barrier: float
    decrement_squared: float
    iterations: int
    components: tuple[tuple[int, ...], ...]

    @property
    def relaxation(self) -> float:
        """Largest factor by which a measurement's variance was raised to keep K computable."""
        factor = float(np.max(self.ridge * self.measurements.precisions)) / self.barrier
        return factor if factor > 1 + 1e-9 else 1.0

    @cached_property
    def correlation(self) -> FloatArray:
        """W with unit diagonal; symmetric, within [-1, 1], never NaN."""
        scale = 1.0 / np.sqrt(self.covariance.diagonal())
        matrix: FloatArray = np.clip(self.covariance * np.outer(scale, scale), -1.0, 1.0)
        np.fill_diagonal(matrix, 1.0)
        return matrix


def complete(
    measurements: Measurements,
    *,
    mu: float = BARRIER,
    start: Completion | None = None,
    tolerance: float = TOLERANCE,
    clip: bool = False,
) -> Completion:
    """Maximum-entropy completion of all measurements.

    Parameters
    ----------
    measurements
        In any order; repeats are pooled by inverse variance first.
    mu
        Weight μ > 0 of the entropy, in nats.
    start
        Where to start from, for example the completion before one entry was added.  The result
        agrees with that of a cold start to the tolerance, but not bit by bit.
    tolerance
        On the squared Newton decrement of each component.
    clip
        Cut pooled values to what the unit box allows first.

    Raises
    ------
    EstimationError
        When a column's square was not measured, or for a μ or tolerance that is no positive
        number.

    Notes
    -----
    Source: PACE-GGM (arXiv 2605.24295); the barrier and its dual are ours.

    >>> noisy = Measurements(2, [[0, 0], [1, 1], [0, 1]], [1.0, 1.0, 0.5], [1e9, 1e9, 1e9])
    >>> complete(noisy).covariance.round(6).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    for name, value in (("mu", mu), ("tolerance", tolerance)):
        if not (np.isfinite(value) and value > 0):
            raise EstimationError(f"the completion's {name} must be a finite number above 0")
    pooled = measurements.pooled()
    if clip:
        pooled = pooled.clipped()
    _refuse_missing_squares(pooled)
    if start is not None and start.precision.shape != (pooled.size, pooled.size):
        raise EstimationError("a completion can only start from one of as many columns")
    warm = None if start is None else start.precision
    return _complete(pooled, mu=mu, warm=warm, tolerance=tolerance)


def _complete(
    pooled: Measurements, *, mu: float, warm: FloatArray | None, tolerance: float
) -> Completion:
    """Component by component; columns on their own all at once."""
    covariance, precision = np.zeros((2, pooled.size, pooled.size))
    ridge = np.empty(len(pooled))
    worst, steps = 0.0, 0
    components = connected_components(pooled.size, pooled.pairs)
    alone = [component for component in components if len(component.nodes) == 1]
    if alone:
        nodes = np.concatenate([component.nodes for component in alone])
        entries = np.concatenate([component.entries for component in alone])
        fitted, ridge[entries] = fit_isolated(
            pooled.values[entries], pooled.precisions[entries], mu
        )
        covariance[nodes, nodes], precision[nodes, nodes] = fitted, 1 / fitted
    with one_blas_thread():
        for component in components:
            nodes, entries = component.nodes, component.entries
            if len(nodes) == 1:
                continue
            place = np.ix_(nodes, nodes)
            fit = fit_component(
                np.searchsorted(nodes, pooled.pairs[entries]),
                pooled.values[entries],
                pooled.precisions[entries],
                size=len(nodes),
                mu=mu,
                warm=None if warm is None else warm[place],
                tolerance=tolerance,
            )
            covariance[place], precision[place] = fit.covariance, fit.precision
            ridge[entries] = fit.ridge
            worst, steps = max(worst, fit.decrement_squared), steps + fit.steps
    members = tuple(tuple(component.nodes.tolist()) for component in components)
    return Completion(covariance, precision, pooled, ridge, mu, worst, steps, members)


def _refuse_missing_squares(pooled: Measurements) -> None:
    squares = pooled.pairs[pooled.pairs[:, 0] == pooled.pairs[:, 1], 0]
    missing = np.setdiff1d(np.arange(pooled.size), squares)
    if len(missing):
        raise EstimationError(
            f"the square of column number {int(missing[0]) + 1} was not measured; a completion "
            "needs all squares"
        )


@dataclass(frozen=True, eq=False)
class ComponentFit:
    """W and K of one component, the ridges they belong to, λ² before the last step, and steps."""

    covariance: FloatArray
    precision: FloatArray
    ridge: FloatArray
    decrement_squared: float
    steps: int


def fit_isolated(
    values: FloatArray, precisions: FloatArray, mu: float
) -> tuple[FloatArray, FloatArray]:
    """W of columns of which only the squares were measured, in closed form, and the ridges."""
    count = len(values)
    index = np.arange(count)
    _, values, ridge = conditioned(index, index, values, precisions, size=count, mu=mu)
    fitted = [one_column(y, t) for y, t in zip(values.tolist(), ridge.tolist(), strict=True)]
    return np.array(fitted), ridge


def fit_component(
    pairs: IntArray,
    values: FloatArray,
    precisions: FloatArray,
    *,
    size: int,
    mu: float,
    warm: FloatArray | None = None,
    tolerance: float = TOLERANCE,
) -> ComponentFit:
    """Complete one component, its columns numbered from 0; solved in units of its variances.

    Raises
    ------
    EstimationError
        When no ridge leads to a solution: the measurements contradict one another beyond all
        that their precisions allow for.
    """
    if size == 1:
        alone, ridge = fit_isolated(values, precisions, mu)
        return ComponentFit(alone[:, None], 1 / alone[:, None], ridge, 0.0, 0)
    rows, columns = pairs[:, 0], pairs[:, 1]
    scale, values, ridge = conditioned(rows, columns, values, precisions, size=size, mu=mu)
    outer = np.outer(scale, scale)
    units = outer[rows, columns]
    problem = Problem(size, rows, columns, values / units, ridge / units**2)
    solution, used = solve(problem, None if warm is None else warm * outer, tolerance)
    return ComponentFit(
        solution.covariance * outer,
        solution.precision / outer,
        used * units**2,
        solution.decrement_squared,
        solution.steps,
    )


def solve(
    problem: Problem, warm: FloatArray | None, tolerance: float
) -> tuple[newton.Solution, FloatArray]:
    """Solve from a warm start, else along a path of falling ridges.

    Where double precision ends the path early, the narrowest ridges that were reached are used.
    """
    steps = 0
    if warm is not None:
        solution = newton.minimise(problem, warm, tolerance=tolerance)
        if solution.converged:
            return solution, problem.ridge
        steps += solution.steps
    solution, ridge = _path(problem, tolerance)
    return replace(solution, steps=steps + solution.steps), ridge


def _path(problem: Problem, tolerance: float) -> tuple[newton.Solution, FloatArray]:
    """From independent columns along a falling μ to that of the problem, or close to it."""
    clash = np.maximum(np.abs(problem.values) - 1.0, 0.0)
    easy = float(((EASY_RIDGE + CLASH_RIDGE * clash**2) / problem.ridge).max())
    start, steps, reached = _independent(problem), 0, float("inf")
    factor, multiple = PATH_FACTOR, max(1.0, easy)
    if multiple < 10:
        multiple = 1.0
    while factor > SMALLEST_FACTOR and steps < MAXIMUM_PATH:
        solution = newton.minimise(
            problem.with_ridge(multiple * problem.ridge),
            start,
            tolerance=tolerance if multiple == 1 else PATH_TOLERANCE,
        )
        steps += solution.steps
        if solution.converged and multiple == 1:
            return replace(solution, steps=steps), problem.ridge
        if solution.converged:
            start, reached = solution.precision, multiple
            factor = min(factor**2, PATH_FACTOR)
        elif np.isinf(reached):
            multiple *= PATH_FACTOR**2
            continue
        else:
            factor = factor**0.5
        multiple = max(1.0, reached / factor)
    reached = multiple if np.isinf(reached) else reached
    for _ in range(MAXIMUM_ATTEMPTS):
        solution = newton.minimise(
            problem.with_ridge(reached * problem.ridge), start, tolerance=tolerance
        )
        steps += solution.steps
        if solution.converged:
            return replace(solution, steps=steps), reached * problem.ridge
        reached *= PATH_FACTOR
    raise EstimationError(
        "the measured second moments contradict one another beyond what double precision can "
        "reconcile; check the values and precisions that were declared"
    )


def _independent(problem: Problem) -> FloatArray:
    """K of the columns when all products are left out."""
    start = np.zeros((problem.size, problem.size))
    for place in np.flatnonzero(problem.rows == problem.columns):
        node = problem.rows[place]
        fitted = one_column(float(problem.values[place]), float(problem.ridge[place]))
        start[node, node] = 1 / fitted
    return start
