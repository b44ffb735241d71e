"""The estimation problem behind a tree release, laid out for vectorised solvers.

All cells of all columns stand in one vector, all cells of all edges in another; edges are
directed from root to leaf, so that a table's rows belong to the parent.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.privci.tree_model import TreeModel, Visit, root_to_leaf

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy table (counts) and the standard deviation of each of its cells."""

    values: FloatArray
    deviations: FloatArray

    def __post_init__(self) -> None:
        """Refuse what no least squares can use."""
        if self.values.shape != self.deviations.shape or not self.values.size:
            raise EstimationError("a measurement needs one deviation a cell")
        if not (np.isfinite(self.values).all() and np.isfinite(self.deviations).all()):
            raise EstimationError("measurements are finite numbers")
        if float(self.deviations.min()) <= 0:
            raise EstimationError("a measurement's deviations are above 0")

    @classmethod
    def uniform(cls, values: FloatArray, sigma: float) -> Measurement:
        """A table whose cells all have the same deviation."""
        return cls(values, np.full(values.shape, sigma))


@dataclass(frozen=True, eq=False)
class Problem:
    """Weighted least squares over the marginal polytope of a forest, scaled to ``total`` rows.

    Attributes
    ----------
    columns
        Names, sorted.
    one_way
        One measurement a column.
    edges
        Index pairs ``(i, j)``, ``i < j``.
    two_way
        One measurement an edge, axes ``(i, j)``.
    total
        Rows that every table sums to, at least 1.
    """

    columns: tuple[str, ...]
    one_way: tuple[Measurement, ...]
    edges: tuple[tuple[int, int], ...]
    two_way: tuple[Measurement, ...]
    total: float

    # -- layout ----------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column."""
        return tuple(item.values.size for item in self.one_way)

    @cached_property
    def visits(self) -> tuple[Visit, ...]:
        """Nodes in root-to-leaf order."""
        return root_to_leaf(len(self.columns), self.edges)

    @cached_property
    def branches(self) -> tuple[tuple[int, int, int], ...]:
        """(parent, child, edge) of every edge in root-to-leaf order."""
        return tuple(
            (visit.parent, visit.node, visit.edge)
            for visit in self.visits
            if visit.parent is not None and visit.edge is not None
        )

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """First node of each component."""
        return tuple(visit.node for visit in self.visits if visit.parent is None)

    @cached_property
    def node_slices(self) -> tuple[slice, ...]:
        """Where each column's cells stand in a node vector."""
        return _slices(self.sizes)

    @cached_property
    def branch_slices(self) -> tuple[slice, ...]:
        """Where each branch's cells (row-major, parent x child) stand in an edge vector."""
        return _slices([self.sizes[p] * self.sizes[c] for p, c, _ in self.branches])

    @cached_property
    def row_cell(self) -> IntArray:
        """For each edge cell, its parent's cell in the node vector."""
        parts = [
            np.repeat(np.arange(self.node_slices[p].start, self.node_slices[p].stop), self.sizes[c])
            for p, c, _ in self.branches
        ]
        return np.concatenate([*parts, np.empty(0, dtype=np.int64)])

    @cached_property
    def node_values(self) -> FloatArray:
        """All one-way measurements."""
        return np.concatenate([item.values for item in self.one_way])

    @cached_property
    def node_weights(self) -> FloatArray:
        """1 / variance of each node cell."""
        return np.concatenate([item.deviations**-2.0 for item in self.one_way])

    @cached_property
    def edge_values(self) -> FloatArray:
        """All two-way measurements in branch layout."""
        return self._branch_vector([item.values for item in self.two_way])

    @cached_property
    def edge_weights(self) -> FloatArray:
        """1 / variance of each edge cell in branch layout."""
        return self._branch_vector([item.deviations**-2.0 for item in self.two_way])

    def _branch_vector(self, tables: Sequence[FloatArray]) -> FloatArray:
        parts = [
            (tables[edge] if self.edges[edge][0] == parent else tables[edge].T).ravel()
            for parent, _, edge in self.branches
        ]
        return np.concatenate([*parts, np.empty(0)])

    # -- values ----------------------------------------------------------------------------

    def loss(self, node: FloatArray, edge: FloatArray) -> float:
        """Half the weighted sum of squares at node and edge counts, in squared deviations."""
        node_part = self.node_weights @ (node - self.node_values) ** 2
        edge_part = self.edge_weights @ (edge - self.edge_values) ** 2
        return 0.5 * float(node_part + edge_part)

    def loss_of(self, model: TreeModel) -> float:
        """:meth:`loss` of a model with these columns and edges."""
        edge = self._branch_vector([table * model.total for table in model.edge])
        return self.loss(np.concatenate(model.node) * model.total, edge)

    def descend(self, roots: FloatArray, conditional: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Consistent node and edge counts from root counts and P(child | parent), top down.

        Parameters
        ----------
        roots
            A node vector of which only the roots' cells are read.
        conditional
            An edge vector whose rows sum to one.
        """
        node = np.empty(self.node_values.size)
        for root in self.roots:
            node[self.node_slices[root]] = roots[self.node_slices[root]]
        for (parent, child, _), cells in zip(self.branches, self.branch_slices, strict=True):
            table = conditional[cells].reshape(self.sizes[parent], self.sizes[child])
            node[self.node_slices[child]] = node[self.node_slices[parent]] @ table
        return node, conditional * node[self.row_cell]

    def model(self, node: FloatArray, edge: FloatArray) -> TreeModel:
        """The maximum-entropy model with these consistent counts."""
        tables: dict[int, FloatArray] = {}
        for (parent, child, index), cells in zip(self.branches, self.branch_slices, strict=True):
            table = edge[cells].reshape(self.sizes[parent], self.sizes[child])
            table = table if parent < child else table.T
            tables[index] = table / table.sum()
        return TreeModel(
            self.columns,
            self.sizes,
            self.edges,
            tuple(node[cells] / node[cells].sum() for cells in self.node_slices),
            tuple(np.ascontiguousarray(tables[index]) for index in range(len(self.edges))),
            self.total,
        )


def _slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    ends = np.cumsum([0, *sizes])
    return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))
