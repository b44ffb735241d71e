"""Random forests, problems and releases, and brute-force joints to check them against."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from core.privci.problem import Measurement, Problem
from core.privci.tree_model import TreeModel, root_to_leaf
from core.releases import (
    NoisyMarginal,
    Provenance,
    Recoding,
    Relation,
    SelectionStep,
    TreeRelease,
    Unit,
)
from core.roles import Roles
from core.schema import Column, Kind, Schema


def random_edges(generator, count, share=0.8):
    """A random forest; each node but the first joins an earlier one with this probability."""
    return tuple(
        (int(generator.integers(0, node)), node)
        for node in range(1, count)
        if generator.random() < share
    )


def random_model(generator, sizes, edges, total=1000.0, names=None):
    names = tuple(f"c{i:03d}" for i in range(len(sizes))) if names is None else names
    node, edge = [None] * len(sizes), [None] * len(edges)
    for visit in root_to_leaf(len(sizes), edges):
        size = sizes[visit.node]
        if visit.parent is None:
            node[visit.node] = generator.dirichlet(np.full(size, 0.7))
            continue
        conditional = generator.dirichlet(np.full(size, 0.5), size=sizes[visit.parent])
        table = node[visit.parent][:, None] * conditional
        node[visit.node] = table.sum(axis=0)
        edge[visit.edge] = table if visit.parent < visit.node else table.T
    return TreeModel(names, tuple(sizes), tuple(edges), tuple(node), tuple(edge), total)


def brute_joint(model):
    """The full joint table: product of edges over product of shared nodes, cell by cell."""
    joint = np.ones(model.sizes)
    degree = [sum(i in edge for edge in model.edges) for i in range(len(model.sizes))]
    grid = np.indices(model.sizes)
    for (i, j), table in zip(model.edges, model.edge, strict=True):
        joint = joint * table[grid[i], grid[j]]
    for i, table in enumerate(model.node):
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = table[grid[i]] ** (1.0 - degree[i])
        joint = np.where(joint > 0, joint * np.where(np.isfinite(factor), factor, 0.0), 0.0)
        if degree[i] == 0:
            joint = np.where(table[grid[i]] > 0, joint, 0.0)
    return joint


def noisy_problem(generator, model, sigma):
    one_way, two_way = [], []
    for table in model.node:
        merged = np.where(generator.random(table.shape) < 0.2, 3.0, 1.0)
        noise = generator.normal(size=table.shape) * sigma * merged
        one_way.append(Measurement(table * model.total + noise, sigma * merged))
    for table in model.edge:
        values = table * model.total + generator.normal(size=table.shape) * sigma
        two_way.append(Measurement.uniform(values, sigma))
    return Problem(
        model.columns, tuple(one_way), model.edges, tuple(two_way), max(1.0, model.total)
    )


def release_of(
    one_way, edges=(), two_way=None, *, sigma=1.0, maps=None, roles=None, public_rows=None, **more
):
    """A tree release from plain dictionaries of counts."""
    names = tuple(one_way)
    schema = Schema(
        tuple(
            Column(
                name,
                Kind.CATEGORICAL,
                categories=tuple(f"v{i}" for i in range(len(one_way[name]))),
                missing_label="v0",
                other_label="v0",
            )
            for name in names
        )
    )
    relation = Relation.ADD_REMOVE if public_rows is None else Relation.REPLACE_ONE
    third = Fraction(1, 3)
    return TreeRelease(
        provenance=Provenance(
            "tree",
            "request",
            "people",
            Fraction(1),
            Fraction(1),
            relation,
            Unit(),
            1e-9,
            schema.digest,
            "test",
            True,
        ),
        structure=more.pop("structure", "privci"),
        schema=schema,
        roles=Roles() if roles is None else roles,
        split=(third, third, third),
        forbidden=(),
        steps=tuple(SelectionStep(i, edge, 1, ()) for i, edge in enumerate(edges)),
        one_way=tuple(
            NoisyMarginal((name,), np.asarray(one_way[name], dtype=np.int64), sigma, third)
            for name in sorted(names)
        ),
        recoding=Recoding({k: np.asarray(v, dtype=np.int64) for k, v in (maps or {}).items()}),
        two_way=tuple(
            NoisyMarginal(edge, np.asarray(two_way[edge], dtype=np.int64), sigma, third)
            for edge in edges
            if two_way is not None and edge in two_way
        ),
        public_rows=public_rows,
        **more,
    )
