"""How fast the maximum-entropy solver is: by size, and against cvxpy with Clarabel in one run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from core.blas import one_blas_thread
from core.pace.maxent import BARRIER, Completion, complete
from core.pace.measurements import Measurements
from core.pace.running import RunningCompletion

#: Columns and measured products of the table.
SIZES = (
    (6, 12), (20, 40), (60, 60), (60, 240), (120, 120), (120, 480),
    (260, 130), (260, 260), (260, 520), (260, 1040),
)  # fmt: skip
#: Where a general conic solver is compared, and how much faster a warm completion must be.
COMPARED = (60, 240)
FASTER = 50.0
NOISE = 0.05
REPEATS = 5


@dataclass(frozen=True)
class SolverTimes:
    """Seconds, on one thread, of one size.

    Attributes
    ----------
    columns, products, largest, unknowns
        Size of the matrix, of the graph, of its largest component, and of the whole problem.
    cold
        A completion from scratch.
    warm
        One more entry, completed exactly from the completion before it.
    update
        One more entry in a running completion, median over the last twenty.
    """

    columns: int
    products: int
    largest: int
    unknowns: int
    cold: float
    warm: float
    update: float


def noisy_graph(columns: int, products: int, seed: int) -> Measurements:
    """Squares and random products of a random correlation matrix, with noise."""
    generator = np.random.default_rng([2605, columns, products, seed])
    mixing = np.eye(columns) + generator.normal(size=(columns, columns)) * 0.5 / np.sqrt(columns)
    rows = generator.normal(size=(4 * columns, columns)) @ mixing
    correlation = np.corrcoef(rows.T)
    upper = np.column_stack(np.triu_indices(columns, 1))
    chosen = upper[generator.permutation(len(upper))[:products]]
    pairs = np.concatenate([np.column_stack([np.arange(columns)] * 2), chosen])
    noise = NOISE * generator.normal(size=len(pairs))
    values = correlation[pairs[:, 0], pairs[:, 1]] + noise
    return Measurements(columns, pairs, values, np.full(len(pairs), NOISE**-2))


def without_last(measurements: Measurements, count: int = 1) -> Measurements:
    """All but the last measurements."""
    keep = slice(0, len(measurements) - count)
    return Measurements(
        measurements.size,
        measurements.pairs[keep],
        measurements.values[keep],
        measurements.precisions[keep],
    )


def seconds(action: Any, repeats: int = REPEATS) -> float:
    """Median time of an action."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return median(times)


def solver_times(columns: int, products: int) -> SolverTimes:
    """Times of one size."""
    measured = noisy_graph(columns, products, 0)
    before = complete(without_last(measured))
    last = min(20, products)
    with one_blas_thread():
        running = RunningCompletion(without_last(measured, last))
        updates = []
        for place in range(len(measured) - last, len(measured)):
            start = perf_counter()
            running.add(measured.pairs[place], measured.values[place], measured.precisions[place])
            updates.append(perf_counter() - start)
        cold = seconds(lambda: complete(measured))
        warm = seconds(lambda: complete(measured, start=before))
    return SolverTimes(
        columns,
        products,
        max(len(part) for part in complete(measured).components),
        len(measured.pooled()),
        cold,
        warm,
        median(updates),
    )


def conic_completion(measurements: Measurements) -> np.ndarray:
    """The same problem by cvxpy and Clarabel with their own settings."""
    import cvxpy

    W = cvxpy.Variable((measurements.size, measurements.size), symmetric=True)
    rows, columns = measurements.pairs.T
    residual = cvxpy.multiply(
        np.sqrt(measurements.precisions / 2), W[rows, columns] - measurements.values
    )
    cost = cvxpy.sum_squares(residual) / BARRIER - cvxpy.log_det(W)
    cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    return np.asarray(W.value)


def against_conic_solver(columns: int = COMPARED[0], products: int = COMPARED[1]) -> dict[str, Any]:
    """Times of one warm completion and of Clarabel on the same problem, and how far they differ."""
    measured = noisy_graph(columns, products, 1)
    before = complete(without_last(measured))
    found: list[Completion] = []
    warm = seconds(lambda: found.append(complete(measured, start=before)), 21)
    start = perf_counter()
    with one_blas_thread():
        conic = conic_completion(measured)
    elapsed = perf_counter() - start
    return {
        "columns": columns,
        "products": products,
        "warm_seconds": warm,
        "conic_seconds": elapsed,
        "ratio": elapsed / warm,
        "largest_difference": float(np.abs(found[-1].covariance - conic).max()),
    }


def figures(*, quick: bool = False) -> dict[str, Any]:
    """All times as plain numbers; ``quick`` leaves out the larger sizes."""
    sizes = SIZES[:4] if quick else SIZES
    complete(noisy_graph(20, 40, 0))  # the first call loads libraries
    return {
        "sizes": [asdict(solver_times(*size)) for size in sizes],
        "conic": against_conic_solver(*((20, 40) if quick else COMPARED)),
    }


def lines(found: dict[str, Any]) -> list[str]:
    """Markdown of the figures."""
    table = [
        "| columns | products | largest component | unknowns | cold, ms | warm, ms | update, ms |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for size in found["sizes"]:
        times = [f"{1000 * size[name]:.2f}" for name in ("cold", "warm", "update")]
        counts = [str(size[name]) for name in ("columns", "products", "largest", "unknowns")]
        table.append("| " + " | ".join(counts + times) + " |")
    conic = found["conic"]
    return [
        *table,
        "",
        f"cvxpy with Clarabel at {conic['columns']} columns and {conic['products']} products: "
        f"{conic['conic_seconds']:.1f} s; one warm completion: "
        f"{1000 * conic['warm_seconds']:.1f} ms, {conic['ratio']:,.0f} times faster (promised: "
        f"{FASTER:.0f}). Largest difference of an entry: {conic['largest_difference']:.1e}.",
    ]


if __name__ == "__main__":
    print("\n".join(lines(figures())))
