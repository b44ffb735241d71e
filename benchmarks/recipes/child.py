"""Runs one recipe in a process of its own and prints what it cost, as one JSON line.

``python -m benchmarks.recipes.child MODULE TABLE.csv DOMAIN.json RHO RUNS``: needs only NumPy,
pandas and what the recipe itself imports, so that peers can run under another interpreter.
"""

from __future__ import annotations

from time import perf_counter, process_time

BEFORE_IMPORTS = perf_counter()

import importlib  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from collections.abc import Mapping  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402


def main(module: str, table: str, domain: str, rho: str, runs: str) -> None:
    recipe = importlib.import_module(module)
    imports = perf_counter() - BEFORE_IMPORTS
    import pandas as pd

    frame = pd.read_csv(table)
    sizes = json.loads(Path(domain).read_text())
    result: dict[str, Any] = {"label": recipe.LABEL, "imports": imports, "runs": []}
    for seed in range(int(runs)):
        start, start_cpu = perf_counter(), process_time()
        synthetic, stages = recipe.run(frame, sizes, float(rho), seed)
        seconds, cpu = perf_counter() - start, process_time() - start_cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        result["runs"].append(
            {
                "seconds": seconds,
                "cpu": cpu,
                "stages": stages,
                "peak_mb": peak,
                "tv": distance(frame, synthetic, sizes),
                "rows": len(synthetic),
            }
        )
    sys.stdout.write(json.dumps(result) + "\n")


def distance(frame: Any, synthetic: Any, sizes: Mapping[str, int]) -> float:
    """Total variation between all two-way tables, averaged over the pairs."""
    import numpy as np

    real = {name: frame[name].to_numpy(dtype=np.int64) for name in sizes}
    made = {name: synthetic[name].to_numpy(dtype=np.int64) for name in sizes}
    apart = []
    for one, other in itertools.combinations(sizes, 2):
        cells = sizes[one] * sizes[other]
        tables = [
            np.bincount(codes[one] * sizes[other] + codes[other], minlength=cells)
            for codes in (real, made)
        ]
        shares = [table / table.sum() for table in tables]
        apart.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return float(np.mean(apart))


if __name__ == "__main__":
    main(*sys.argv[1:])
