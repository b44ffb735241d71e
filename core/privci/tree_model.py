"""The fitted model: a Markov random field on a forest, as plain NumPy tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError

FloatArray = NDArray[np.float64]

#: Joint tables larger than this are refused by :meth:`TreeModel.project`.
TABLE_CAP = 2_000_000
#: Node and edge tables of one model agree with each other to this probability.
CONSISTENCY = 1e-7


class Visit(NamedTuple):
    """One node in root-to-leaf order; roots have parent and edge ``None``."""

    node: int
    parent: int | None
    edge: int | None


def root_to_leaf(count: int, edges: Sequence[tuple[int, int]]) -> tuple[Visit, ...]:
    """Breadth-first order of a forest; each component starts at its first node.

    Parameters
    ----------
    count
        Number of nodes, ``0 .. count-1``.
    edges
        Pairs of nodes.

    Raises
    ------
    EstimationError
        When the edges hold a cycle.

    >>> [visit.node for visit in root_to_leaf(4, [(0, 3), (1, 3)])]
    [0, 3, 1, 2]
    """
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for index, (one, other) in enumerate(edges):
        neighbours[one].append((other, index))
        neighbours[other].append((one, index))
    order: list[Visit] = []
    seen = [False] * count
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = True
        queue = [Visit(root, None, None)]
        for visit in queue:  # grows while it is read
            for node, edge in sorted(neighbours[visit.node]):
                if edge == visit.edge:
                    continue
                if seen[node]:
                    raise EstimationError("the edges hold a cycle; this model needs a forest")
                seen[node] = True
                queue.append(Visit(node, visit.node, edge))
        order.extend(queue)
    return tuple(order)


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Distribution on a forest: product of edge tables over product of shared node tables.

    Attributes
    ----------
    columns
        Column names, sorted.
    sizes
        Cells of each column (compressed cells, where a release was compressed).
    edges
        Index pairs ``(i, j)`` with ``i < j``.
    node
        Probabilities of each column, shape ``(sizes[i],)``.
    edge
        Probabilities of each edge, shape ``(sizes[i], sizes[j])``; margins equal ``node``.
    total
        Row count that the model stands for.

    Raises
    ------
    EstimationError
        When a table has a wrong shape, a negative or non-finite entry, or disagrees with another.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    node: tuple[FloatArray, ...]
    edge: tuple[FloatArray, ...]
    total: float

    def __post_init__(self) -> None:
        """Check shapes, signs and consistency once."""
        if list(self.columns) != sorted(set(self.columns)):
            raise EstimationError("a model's columns are distinct and sorted by name")
        if not (len(self.columns) == len(self.sizes) == len(self.node)):
            raise EstimationError("a model needs one size and one table a column")
        if len(self.edges) != len(self.edge):
            raise EstimationError("a model needs one table an edge")
        if not (math.isfinite(self.total) and self.total > 0):
            raise EstimationError("a model's total is a positive number")
        self.visits  # noqa: B018 - refuses cycles
        for name, size, table in zip(self.columns, self.sizes, self.node, strict=True):
            _check(table, (size,), f"column {name!r}")
        for (i, j), table in zip(self.edges, self.edge, strict=True):
            label = f"edge {self.columns[i]!r} - {self.columns[j]!r}"
            if i >= j:
                raise EstimationError(f"{label}: the lower index comes first")
            _check(table, (self.sizes[i], self.sizes[j]), label)
            apart = max(
                float(np.abs(table.sum(axis=1) - self.node[i]).max()),
                float(np.abs(table.sum(axis=0) - self.node[j]).max()),
            )
            if apart > CONSISTENCY:
                raise EstimationError(f"{label}: its margins disagree with the columns' tables")

    @cached_property
    def visits(self) -> tuple[Visit, ...]:
        """Nodes in root-to-leaf order."""
        return root_to_leaf(len(self.columns), self.edges)

    @property
    def edge_names(self) -> tuple[tuple[str, str], ...]:
        """The edges as pairs of column names, names sorted."""
        return tuple((self.columns[i], self.columns[j]) for i, j in self.edges)

    def conditional(self, visit: Visit) -> FloatArray:
        """P(node | parent), shape ``(parent cells, node cells)``; uniform for impossible parents.

        A root's table has one row: its own probabilities.
        """
        if visit.parent is None or visit.edge is None:
            return self.node[visit.node][None, :]
        table = self.edge[visit.edge]
        if self.edges[visit.edge][0] != visit.parent:
            table = table.T
        mass = table.sum(axis=1, keepdims=True)
        uniform = np.full(table.shape, 1.0 / table.shape[1])
        shares: FloatArray = np.divide(table, mass, out=uniform, where=mass > 0)
        return shares

    def project(self, names: Sequence[str], *, cap: int = TABLE_CAP) -> FloatArray:
        """Marginal probabilities of any columns, by elimination on the smallest spanning subtree.

        Parameters
        ----------
        names
            Distinct column names, one an axis of the result.
        cap
            Largest intermediate table, in cells.

        Raises
        ------
        EstimationError
            When a table would pass the cap, or a name is unknown or repeated.
        """
        unknown = sorted(set(names) - set(self.columns))
        if unknown:
            raise EstimationError(f"the model has no column {unknown[0]!r}")
        if len(set(names)) != len(names):
            raise EstimationError("project each column once")
        wanted = {self.columns.index(name) for name in names}
        axes, table = self._eliminate(wanted, cap)
        table = table.reshape([self.sizes[node] for node in axes])
        order = [axes.index(self.columns.index(name)) for name in names]
        return np.ascontiguousarray(table.transpose(order))

    def _eliminate(self, wanted: set[int], cap: int) -> tuple[list[int], FloatArray]:
        """Joint table of the wanted nodes, flattened, with the order of its axes."""
        # given[v]: P(wanted nodes below v | v), shape (cells of v, joint cells below)
        given: dict[int, tuple[list[int], FloatArray]] = {}
        axes: list[int] = []
        joint = np.ones(1)
        for visit in reversed(self.visits):
            below, table = given.pop(visit.node, ([], np.ones((self.sizes[visit.node], 1))))
            if not below and visit.node not in wanted:
                continue  # a subtree that holds nothing wanted sums to one
            _within(cap, self.sizes[visit.node] * table.shape[1])
            conditional = self.conditional(visit)
            if visit.node in wanted:
                _within(cap, conditional.size * table.shape[1])
                message = (conditional[:, :, None] * table[None, :, :]).reshape(
                    conditional.shape[0], -1
                )
                below = [visit.node, *below]
            else:
                message = conditional @ table
            if visit.parent is None:
                _within(cap, joint.size * message.size)
                axes, joint = axes + below, np.multiply.outer(joint, message[0]).ravel()
                continue
            others, product = given.get(visit.parent, ([], np.ones((len(message), 1))))
            _within(cap, product.shape[1] * message.size)
            given[visit.parent] = (
                others + below,
                (product[:, :, None] * message[:, None, :]).reshape(len(message), -1),
            )
        return axes, joint


def _check(table: FloatArray, shape: tuple[int, ...], label: str) -> None:
    if table.shape != shape:
        raise EstimationError(f"{label}: a table has shape {table.shape}, not {shape}")
    if not np.isfinite(table).all() or float(table.min()) < 0:
        raise EstimationError(f"{label}: probabilities are finite and not negative")
    if abs(float(table.sum()) - 1.0) > CONSISTENCY:
        raise EstimationError(f"{label}: probabilities sum to one")


def _within(cap: int, cells: int) -> None:
    if cells > cap:
        raise EstimationError(f"a joint table of {cells} cells passes the cap of {cap}")
