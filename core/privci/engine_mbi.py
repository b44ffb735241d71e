"""Engine ``mbi``: the reference library behind Private-PGM, and the bridge to and from it.

The only module that imports ``mbi`` (2.x), and only inside functions: the import takes about a
second, and its first fit compiles for several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.privci.problem import Measurement, Problem
from core.privci.tree_model import TreeModel

FloatArray = NDArray[np.float64]

#: The published recipe's number of mirror-descent steps.
ITERATIONS = 10_000
#: Logarithm that stands for an impossible cell; the library has no use for minus infinity.
IMPOSSIBLE = -700.0


def import_mbi() -> Any:
    """The library in double precision, without JAX's persistent compilation cache.

    Both settings are the library's own advice, given as warnings when it is imported.
    """
    import jax

    settings: Any = jax.config

    settings.update("jax_enable_x64", True)
    settings.update("jax_enable_compilation_cache", False)
    import mbi

    return mbi


def solve_mbi(
    problem: Problem,
    *,
    iterations: int = ITERATIONS,
    step: Callable[[int, float], None] | None = None,
) -> TreeModel:
    """Fit by the library's mirror descent with line search.

    Parameters
    ----------
    problem
        Measurements on a forest.
    iterations
        Steps; the library runs them in blocks of 50.
    step
        Called with (steps, NaN) after every block; may raise ``Cancelled``.
    """
    mbi = import_mbi()
    domain = mbi.Domain(problem.columns, problem.sizes)
    measurements = [
        _measurement(mbi, item, (name,))
        for name, item in zip(problem.columns, problem.one_way, strict=True)
    ]
    measurements += [
        _measurement(mbi, item, (problem.columns[i], problem.columns[j]))
        for (i, j), item in zip(problem.edges, problem.two_way, strict=True)
    ]
    done = 0

    def callback(_: Any) -> None:
        nonlocal done
        done += 50
        if step is not None:
            step(done, math.nan)

    fitted = mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=problem.total, iters=iterations, callback_fn=callback
    )
    return from_mbi(fitted, problem.edges)


def _measurement(mbi: Any, item: Measurement, clique: tuple[str, ...]) -> Any:
    weights = 1.0 / item.deviations.ravel()
    return mbi.LinearMeasurement(
        item.values.ravel() * weights, clique, 1.0, query=mbi.WeightedQuery(weights)
    )


def from_mbi(fitted: Any, edges: tuple[tuple[int, int], ...] | None = None) -> TreeModel:
    """A tree model from an ``mbi.MarkovRandomField``.

    Parameters
    ----------
    fitted
        The library's model.
    edges
        Index pairs of the sorted column names; by default the model's cliques of two columns.

    Raises
    ------
    EstimationError
        When the cliques are no forest.
    """
    columns = tuple(sorted(fitted.domain.attributes))
    place = {name: index for index, name in enumerate(columns)}
    if edges is None:
        cliques = {tuple(sorted(clique)) for clique in fitted.cliques}
        if any(len(clique) > 2 for clique in cliques):
            raise EstimationError("a clique of three or more columns does not fit a forest")
        edges = tuple(sorted((place[c[0]], place[c[1]]) for c in cliques if len(c) == 2))
    tables = []
    for i, j in edges:
        table = _table(fitted, (columns[i], columns[j]))
        tables.append(table / table.sum())
    nodes: list[FloatArray] = []
    for index, name in enumerate(columns):
        # read a column from an edge that holds it: the same numbers to the last digit
        beside = [
            table.sum(axis=1 - edge.index(index))
            for edge, table in zip(edges, tables, strict=True)
            if index in edge
        ]
        node = beside[0] if beside else _table(fitted, (name,))
        nodes.append(node / node.sum())
    sizes = tuple(int(fitted.domain[name]) for name in columns)
    return TreeModel(columns, sizes, edges, tuple(nodes), tuple(tables), float(fitted.total))


def _table(fitted: Any, clique: tuple[str, ...]) -> FloatArray:
    return np.asarray(fitted.project(clique).datavector(flatten=False), dtype=np.float64)


def to_mbi(model: TreeModel) -> Any:
    """The same distribution as an ``mbi.MarkovRandomField``.

    Edge potentials are log(edge / (node x node)), column potentials log(node).
    """
    mbi = import_mbi()
    domain = mbi.Domain(model.columns, model.sizes)
    logs = [_logarithm(table) for table in model.node]
    potentials: dict[tuple[str, ...], Any] = {}
    marginals: dict[tuple[str, ...], Any] = {}
    for name, table, log in zip(model.columns, model.node, logs, strict=True):
        potentials[(name,)] = mbi.Factor(domain.project((name,)), log)
        marginals[(name,)] = mbi.Factor(domain.project((name,)), table * model.total)
    for (i, j), clique, table in zip(model.edges, model.edge_names, model.edge, strict=True):
        log = np.where(table > 0, _logarithm(table) - logs[i][:, None] - logs[j], IMPOSSIBLE)
        potentials[clique] = mbi.Factor(domain.project(clique), log)
        marginals[clique] = mbi.Factor(domain.project(clique), table * model.total)
    cliques = tuple(potentials)
    return mbi.MarkovRandomField(
        potentials=mbi.CliqueVector(domain, cliques, potentials),
        marginals=mbi.CliqueVector(domain, cliques, marginals),
        total=model.total,
    )


def _logarithm(table: FloatArray) -> FloatArray:
    result = np.full(table.shape, IMPOSSIBLE)
    np.log(table, out=result, where=table > 0)
    floored: FloatArray = np.maximum(result, IMPOSSIBLE)
    return floored
