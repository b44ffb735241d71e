"""The same release fitted by ``exact`` and by mbi: losses and the duality gap, as one JSON line.

``python -m benchmarks.recipes.exact_gap TABLE.csv DOMAIN.json RHO``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

import pandas as pd

from benchmarks.recipes.ours import released
from core.privci.reconstruct import estimation_problem, fit_problem


def main(table: str, domain: str, rho: str) -> None:
    sizes = json.loads(Path(domain).read_text())
    problem = estimation_problem(released(pd.read_csv(table), sizes, float(rho), {}))
    result: dict[str, object] = {"cells": problem.node_values.size + problem.edge_values.size}
    for engine in ("exact", "entropic", "mbi"):
        start = perf_counter()
        found = fit_problem(problem, engine=engine)
        result[engine] = {
            "seconds": perf_counter() - start,
            "loss": found.loss,
            "bound": found.bound,
            "gap": found.gap,
            "iterations": found.iterations,
        }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
