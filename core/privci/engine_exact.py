"""Engine ``exact``: the least-squares optimum on a forest, with a proof that it is one.

On a forest the local-consistency polytope is the marginal polytope, so Private-PGM's problem
(McKenna, Sheldon and Miklau 2019) is a convex quadratic program.  Its Lagrange dual is
unconstrained, concave and once differentiable; L-BFGS climbs it.  Any dual point bounds the
optimum from below, and the repaired primal point bounds it from above: their gap is the
certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.privci.problem import Problem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Promised relative gap, ``(loss - bound) / max(loss, 1)``.
GAP = 1e-6
#: Solving goes on below the promise, but not for longer than so many steps.
TARGET = 1e-7
TARGET_STEPS = 500
CHECK_EVERY = 20
ROUNDS = 10
ROUND_ITERATIONS = 20_000


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """Consistent counts, their loss, the dual bound below it, and the gap between both."""

    node: FloatArray
    edge: FloatArray
    loss: float
    bound: float
    gap: float
    iterations: int


class _Dual:
    """The dual function; multipliers are one a (branch, end, cell), then one a component.

    ``multiplier`` prices "the branch's margin equals the column's table"; the last ones price
    "the root sums to the total".  Values are taken relative to a consistent reference point, at
    which every price is multiplied by zero: nothing large cancels, whatever the total.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        starts, row_slot, column_slot, slot_cell = 0, [], [], []
        for parent, child, _ in problem.branches:
            rows, columns = problem.sizes[parent], problem.sizes[child]
            row_slot.append(np.repeat(np.arange(starts, starts + rows), columns))
            column_slot.append(np.tile(np.arange(starts + rows, starts + rows + columns), rows))
            for node in (parent, child):
                cells = problem.node_slices[node]
                slot_cell.append(np.arange(cells.start, cells.stop))
            starts += rows + columns
        empty = np.empty(0, dtype=np.int64)
        self.row_slot: IntArray = np.concatenate([*row_slot, empty])
        self.column_slot: IntArray = np.concatenate([*column_slot, empty])
        self.slot_cell: IntArray = np.concatenate([*slot_cell, empty])
        self.slots = starts
        self.root_cells = [
            np.arange(problem.node_slices[root].start, problem.node_slices[root].stop)
            for root in problem.roots
        ]
        self.scale = self._scale()

    def _scale(self) -> FloatArray:
        """Jacobi preconditioner: one over the root of the curvature with every cell active."""
        per_edge = 1.0 / self.problem.edge_weights
        per_node = 1.0 / self.problem.node_weights
        curvature = per_node[self.slot_cell]
        curvature += _sums(self.row_slot, per_edge, self.slots)
        curvature += _sums(self.column_slot, per_edge, self.slots)
        roots = [per_node[cells].sum() for cells in self.root_cells]
        return np.concatenate([curvature, roots]) ** -0.5

    def prices(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Linear price of each node cell and each edge cell."""
        multiplier = scaled * self.scale
        links = multiplier[: self.slots]
        node = _sums(self.slot_cell, links, self.problem.node_values.size)
        for cells, price in zip(self.root_cells, multiplier[self.slots :], strict=True):
            node[cells] -= price
        return node, -(links[self.row_slot] + links[self.column_slot])

    def inner(self, node_price: FloatArray, edge_price: FloatArray) -> tuple[FloatArray, ...]:
        """Unclipped minimisers of the Lagrangian, cell by cell."""
        problem = self.problem
        return (
            problem.node_values - node_price / problem.node_weights,
            problem.edge_values - edge_price / problem.edge_weights,
        )

    def negative(
        self, scaled: FloatArray, reference: tuple[FloatArray, FloatArray]
    ) -> tuple[float, FloatArray]:
        """Minus the dual value and its gradient, for a minimiser."""
        problem = self.problem
        prices = self.prices(scaled)
        value, moves = 0.0, []
        for price, free, measured, weight, base in zip(
            prices,
            self.inner(*prices),
            (problem.node_values, problem.edge_values),
            (problem.node_weights, problem.edge_weights),
            reference,
            strict=True,
        ):
            active = price * (measured - base) - 0.5 * price**2 / weight
            clipped = 0.5 * weight * measured**2 - price * base
            value += float(np.where(free > 0, active, clipped).sum())
            moves.append(np.maximum(free, 0.0) - base)
        node, edge = moves
        slope = node[self.slot_cell]
        slope -= _sums(self.row_slot, edge, self.slots)
        slope -= _sums(self.column_slot, edge, self.slots)
        roots = [-node[cells].sum() for cells in self.root_cells]
        return -value, -np.concatenate([slope, roots]) * self.scale

    def repair(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A consistent point near the Lagrangian's minimiser: top-down conditionals."""
        problem = self.problem
        free_node, free_edge = self.inner(*self.prices(scaled))
        node, edge = np.maximum(free_node, 0.0), np.maximum(free_edge, 0.0)
        for root in self.root_cells:
            node[root] = _shares(node[root][None, :], free_node[root][None, :]) * problem.total
        conditional = np.empty(edge.size)
        for (parent, child, _), cells in zip(problem.branches, problem.branch_slices, strict=True):
            shape = (problem.sizes[parent], problem.sizes[child])
            table = _shares(edge[cells].reshape(shape), free_edge[cells].reshape(shape))
            conditional[cells] = table.ravel()
        return problem.descend(node, conditional)

    def gap(self, scaled: FloatArray, point: tuple[FloatArray, FloatArray]) -> float:
        """Loss at a consistent point minus the dual value: a sum of terms that are never < 0."""
        problem = self.problem
        gap = 0.0
        for free, weight, count in zip(
            self.inner(*self.prices(scaled)),
            (problem.node_weights, problem.edge_weights),
            point,
            strict=True,
        ):
            apart = 0.5 * (count - np.maximum(free, 0.0)) ** 2 - np.minimum(free, 0.0) * count
            gap += float(weight @ apart)
        return gap


def _sums(places: IntArray, values: FloatArray, length: int) -> FloatArray:
    """Values added up by place (``bincount`` alone turns an empty input into integers)."""
    return np.bincount(places, values, length).astype(np.float64, copy=False)


def _shares(table: FloatArray, free: FloatArray) -> FloatArray:
    """Rows scaled to one; a row without mass puts it where the unclipped minimiser is largest."""
    mass = table.sum(axis=1, keepdims=True)
    best = np.zeros(table.shape)
    best[np.arange(len(best)), free.argmax(axis=1)] = 1.0
    shares: FloatArray = np.divide(table, mass, out=best, where=mass > 0)
    return shares


def solve_exact(
    problem: Problem, *, step: Callable[[int, float], None] | None = None
) -> ExactSolution:
    """Solve the problem to a relative primal-dual gap of at most ``GAP``.

    Parameters
    ----------
    problem
        Measurements on a forest.
    step
        Called with (iterations, relative gap so far) now and then; may raise ``Cancelled``.

    Raises
    ------
    EstimationError
        When the gap cannot be closed (never seen; the engine ``entropic`` is the way out).

    Notes
    -----
    Free post-processing.  Dual and primal as derived in the module's docstring; L-BFGS of
    Byrd, Lu, Nocedal and Zhu (1995) from SciPy.
    """
    from scipy import optimize

    minimize: Any = optimize.minimize  # its stubs know no callback that stops

    dual = _Dual(problem)
    scaled = np.zeros(dual.slots + len(problem.roots))
    best = _assess(dual, scaled, 0)
    done = 0

    def check(point: FloatArray) -> None:
        nonlocal best, done
        done += 1
        if done % CHECK_EVERY:
            return
        found = _assess(dual, point, done)
        best = found if found.gap < best.gap else best
        if step is not None:
            step(done, best.gap)
        if best.gap <= _goal(done):
            raise StopIteration

    for _ in range(ROUNDS):
        if best.gap <= _goal(done):
            break
        reference = (best.node, best.edge)
        result = minimize(
            dual.negative,
            scaled,
            args=(reference,),
            jac=True,
            method="L-BFGS-B",
            callback=check,
            options={"maxiter": ROUND_ITERATIONS, "maxcor": 20, "ftol": 0.0, "gtol": 0.0},
        )
        stuck = bool(np.array_equal(result.x, scaled))
        scaled = np.asarray(result.x)
        found = _assess(dual, scaled, done)
        best = found if found.gap < best.gap else best
        if stuck:
            break
    if best.gap > GAP:
        raise EstimationError(
            f"the exact engine stopped at a relative gap of {best.gap:.1e}; use engine entropic"
        )
    return best


def _goal(steps: int) -> float:
    return TARGET if steps < TARGET_STEPS else GAP


def _assess(dual: _Dual, scaled: FloatArray, iterations: int) -> ExactSolution:
    node, edge = dual.repair(scaled)
    loss = dual.problem.loss(node, edge)
    gap = dual.gap(scaled, (node, edge))
    return ExactSolution(node, edge, loss, loss - gap, gap / max(loss, 1.0), iterations)
