"""Which engine errs least: ``exact`` against ``entropic`` on the papers' tables at six budgets.

``python -m benchmarks engines --data DIR [--write]``.  Simulated noise, structure ``mst``; the
table behind the engine ``auto`` (docs/engines.md).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.tables import ResearchTable, data_argument, load
from core.private.table import CodedTable
from core.private.zcdp import as_rho
from core.privci.problem import Problem
from core.privci.reconstruct import EXACT_SIGNAL, estimation_problem, fit_problem, signal
from core.privci.sample import expand, sample
from core.privci.select import release_tree
from core.releases import TreeRelease
from core.roles import Roles
from core.simulation import simulated_vault

REPORT = Path(__file__).resolve().parent.parent / "docs" / "engines.md"
START, END = "<!-- table: start -->", "<!-- table: end -->"
NAMES = ("adult-prefair", "adult", "compas-prefair", "dutch", "german", "law")
BUDGETS = ("0.001", "0.015", "0.1", "1", "10", "100")
ENGINES = ("exact", "entropic")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks engines", description=__doc__)
    data_argument(parser)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--write", action="store_true", help="renew the table in docs/engines.md")
    options = parser.parse_args(argv)
    rows = []
    for name in options.tables:
        table = load(name, options.data)
        rows += [row(table, budget, options.seeds) for budget in BUDGETS]
    rows.sort(key=lambda item: float(item[2]))
    lines = [
        "| table | rho | rows a cell / sigma | edge TV exact | entropic | all-pairs TV exact | "
        "entropic | s exact | entropic | auto |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(item)} |" for item in rows),
    ]
    text = "\n".join(lines)
    print(text)
    if options.write:
        before, rest = REPORT.read_text(encoding="utf-8").split(START)
        _, after = rest.split(END)
        REPORT.write_text(f"{before}{START}\n{text}\n{END}{after}", encoding="utf-8")
    return 0


def row(table: ResearchTable, budget: str, seeds: int) -> tuple[str, ...]:
    """One line of the report: averages over the seeds."""
    found: dict[str, list[tuple[float, float, float]]] = {engine: [] for engine in ENGINES}
    signals = []
    for seed in range(seeds):
        release = simulated_release(table, budget, seed)
        problem = estimation_problem(release)
        signals.append(signal(problem))
        for engine in ENGINES:
            found[engine].append(errors(table, release, problem, engine, seed))
    means = {engine: np.mean(values, axis=0) for engine, values in found.items()}
    cells = [f"{means[engine][part]:.4f}" for part in (0, 1) for engine in ENGINES]
    seconds = [f"{means[engine][2]:.3f}" for engine in ENGINES]
    level = float(np.mean(signals))
    auto = "exact" if level >= EXACT_SIGNAL else "entropic"
    return (table.name, budget, f"{level:.1f}", *cells, *seconds, auto)


def simulated_release(table: ResearchTable, budget: str, seed: int) -> TreeRelease:
    codes = {
        name: column.astype(np.min_scalar_type(table.schema[name].size))
        for name, column in table.codes.items()
    }
    vault = simulated_vault(CodedTable(table.schema, codes, {}, table.rows), seed=seed)
    grant = vault.grant(as_rho(budget), "tree", f"{table.name}-{budget}-{seed}")
    if grant is None:
        raise RuntimeError("a fresh ledger has already seen this request")
    return release_tree(grant, table.schema, Roles(), structure="mst")


def errors(
    table: ResearchTable, release: TreeRelease, problem: Problem, engine: str, seed: int
) -> tuple[float, float, float]:
    """Mean TV of the model's edges, mean TV of all synthetic pairs, seconds of the fit."""
    start = perf_counter()
    model = fit_problem(problem, engine=engine).model
    seconds = perf_counter() - start
    merged = {
        name: release.recoding.maps[name][codes] if name in release.recoding.maps else codes
        for name, codes in table.codes.items()
    }
    edges = [
        distance(pairs(merged, names, edge.shape), edge)
        for names, edge in zip(model.edge_names, model.edge, strict=True)
    ]
    generator = np.random.default_rng(seed)
    made = expand(sample(model, max(1, round(model.total)), generator), release, generator)
    everything = []
    for names in itertools.combinations(model.columns, 2):
        shape = (table.schema[names[0]].size, table.schema[names[1]].size)
        everything.append(distance(pairs(table.codes, names, shape), pairs(made, names, shape)))
    return float(np.mean(edges)), float(np.mean(everything)), seconds


def pairs(
    codes: Mapping[str, np.ndarray], names: tuple[str, str], shape: tuple[int, ...]
) -> np.ndarray:
    """Shares of a pair's cells."""
    flat = codes[names[0]].astype(np.int64) * shape[1] + codes[names[1]]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape) / len(flat)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation."""
    return 0.5 * float(np.abs(one - other).sum())
