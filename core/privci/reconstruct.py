"""From a tree release to a fitted model: one problem, three engines.

Free post-processing: everything here reads a frozen release and public declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from core.errors import EstimationError
from core.privci.compress import compressed_one_ways
from core.privci.engine_entropic import MAXIMUM_STEPS, solve_entropic
from core.privci.engine_exact import ROUND_ITERATIONS, solve_exact
from core.privci.problem import Measurement, Problem
from core.privci.tree_model import TreeModel
from core.protocols import Progress
from core.releases import TreeRelease

ENGINES = ("auto", "exact", "entropic", "mbi")
#: ``auto`` takes ``exact`` from so many rows a cell on, in deviations of the noise.  Chosen by
#: ``python -m benchmarks engines``: docs/engines.md has the table.
EXACT_SIGNAL = 25.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model and how good it provably is.

    Attributes
    ----------
    model
        The fitted forest, on compressed cells.
    engine
        ``exact``, ``entropic`` or ``mbi``.
    loss
        Half the weighted squared distance from the noisy tables.  Low loss is not low error.
    bound
        No model on this forest has a loss below it (``exact`` only).
    gap
        ``(loss - bound) / max(loss, 1)``, at most 1e-6 (``exact`` only).
    iterations
        Steps of the engine.
    """

    model: TreeModel
    engine: str
    loss: float
    bound: float | None
    gap: float | None
    iterations: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form of everything but the model."""
        return {
            "engine": self.engine,
            "loss": self.loss,
            "bound": self.bound,
            "gap": self.gap,
            "iterations": self.iterations,
            "total": self.model.total,
        }


def estimation_problem(release: TreeRelease) -> Problem:
    """Least squares on the release's noisy tables; edges without a table are left out.

    One-ways are taken on compressed cells, where a merged cell has its own, larger deviation.
    The total is the public row count, or the noisy one, and at least 1.

    Raises
    ------
    EstimationError
        When the release holds no one-way tables.
    """
    if not release.one_way:
        raise EstimationError("this release was cancelled before its first measurement")
    marginals = {
        item.clique[0]: item
        for item in compressed_one_ways(release.one_way, release.recoding, release.schema)
    }
    columns = tuple(sorted(marginals))
    place = {name: index for index, name in enumerate(columns)}
    one_way = tuple(Measurement(marginals[n].values, marginals[n].deviations) for n in columns)
    edges: list[tuple[int, int]] = []
    two_way: list[Measurement] = []
    for table in sorted(release.two_way, key=lambda item: item.clique):
        i, j = (place[name] for name in table.clique)
        values = table.values.astype(float)
        edges.append((min(i, j), max(i, j)))
        values = values if i < j else values.T
        two_way.append(Measurement.uniform(values, table.sigma))
    return Problem(columns, one_way, tuple(edges), tuple(two_way), max(1.0, release.total))


def signal(problem: Problem) -> float:
    """Rows an edge's cell holds on average, in deviations of its noise (public facts only)."""
    cells = [item.values.size for item in problem.two_way or problem.one_way]
    deviations = [float(item.deviations.min()) for item in problem.two_way or problem.one_way]
    average = sum(cells) / len(cells)
    return problem.total / (average * sum(deviations) / len(deviations))


def choose_engine(problem: Problem) -> str:
    """What ``auto`` means: ``entropic`` at low signal, ``exact`` where noise is small."""
    return "exact" if signal(problem) >= EXACT_SIGNAL else "entropic"


def fit(release: TreeRelease, *, engine: str = "auto", progress: Progress | None = None) -> Fit:
    """Fit the maximum-entropy forest to a release.

    Parameters
    ----------
    release
        Noisy tables; a partial release is fitted as far as it goes.
    engine
        ``auto`` (see :func:`choose_engine`), ``exact``, ``entropic`` or ``mbi``.
    progress
        Called as ``("fit", steps, most steps, loss or gap)``; may raise ``Cancelled``.

    Raises
    ------
    EstimationError
        Unknown engine, or nothing to fit.

    Notes
    -----
    Costs no budget.  Source: McKenna, Sheldon and Miklau (2019), Graphical-model based estimation
    and inference for differential privacy.
    """
    return fit_problem(estimation_problem(release), engine=engine, progress=progress)


def fit_problem(problem: Problem, *, engine: str = "auto", progress: Progress | None = None) -> Fit:
    """As :func:`fit`, from a problem that is already laid out."""
    if engine not in ENGINES:
        raise EstimationError(f"unknown engine {engine!r}; choose one of {', '.join(ENGINES)}")
    chosen = choose_engine(problem) if engine == "auto" else engine
    if chosen == "exact":
        exact = solve_exact(problem, step=_reporter(progress, ROUND_ITERATIONS))
        return Fit(
            problem.model(exact.node, exact.edge),
            chosen,
            exact.loss,
            exact.bound,
            exact.gap,
            exact.iterations,
        )
    if chosen == "entropic":
        stopped = solve_entropic(problem, step=_reporter(progress, MAXIMUM_STEPS))
        model = problem.model(stopped.node, stopped.edge)
        return Fit(model, chosen, stopped.loss, None, None, stopped.iterations)
    from core.privci.engine_mbi import ITERATIONS, solve_mbi

    model = solve_mbi(problem, step=_reporter(progress, ITERATIONS))
    return Fit(model, chosen, problem.loss_of(model), None, None, ITERATIONS)


def _reporter(progress: Progress | None, most: int) -> Callable[[int, float], None] | None:
    if progress is None:
        return None

    def report(steps: int, value: float) -> None:
        progress("fit", min(steps, most), most, value)

    return report
