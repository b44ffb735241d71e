"""Connected components of a graph of measured entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Component:
    """Columns that measured entries connect.

    Attributes
    ----------
    nodes
        Their indices, ascending.
    entries
        Indices of the entries among them, ascending.
    """

    nodes: IntArray
    entries: IntArray


def connected_components(size: int, pairs: IntArray) -> tuple[Component, ...]:
    """Components of the graph on ``size`` nodes whose edges are ``pairs``, by smallest node.

    >>> [component.nodes.tolist() for component in connected_components(3, np.array([[0, 2]]))]
    [[0, 2], [1]]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components as label_components

    ones = np.ones(len(pairs), dtype=np.int8)
    graph = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(size, size)).tocsr()
    count, labels = label_components(graph, directed=False)
    nodes = np.split(
        np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=count))[:-1]
    )
    owner = labels[pairs[:, 0]]
    entries = np.split(
        np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=count))[:-1]
    )
    found = [Component(members, inside) for members, inside in zip(nodes, entries, strict=True)]
    return tuple(sorted(found, key=lambda component: int(component.nodes[0])))
