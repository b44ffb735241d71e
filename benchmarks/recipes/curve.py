"""Our seconds and memory from 10 to 100 columns, as one JSON line.

``python -m benchmarks.recipes.curve ROWS RHO COLUMNS...``: tables drawn from random trees with ten
cells a column.
"""

from __future__ import annotations

import json
import resource
import sys
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.recipes import ours

CELLS = 10


def table(rows: int, columns: int) -> pd.DataFrame:
    """Each column copies a random earlier one in 60 % of its rows, shifted; else it is uneven."""
    generator = np.random.default_rng(columns)
    shares = generator.dirichlet(np.ones(CELLS), columns)
    codes = []
    for index in range(columns):
        column = generator.choice(CELLS, rows, p=shares[index])
        if index:
            copied = generator.random(rows) < 0.6
            parent = codes[generator.integers(0, index)]
            column = np.where(copied, (parent + index) % CELLS, column)
        codes.append(column)
    return pd.DataFrame({f"c{index:03d}": column for index, column in enumerate(codes)})


def main(rows: str, rho: str, *columns: str) -> None:
    ours.run(table(1000, 3), dict.fromkeys(["c000", "c001", "c002"], CELLS), float(rho), 0)
    points = []
    for count in map(int, columns):
        frame = table(int(rows), count)
        start = perf_counter()
        _, stages = ours.run(frame, dict.fromkeys(frame.columns, CELLS), float(rho), 0)
        seconds = perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        points.append({"columns": count, "seconds": seconds, "stages": stages, "peak_mb": peak})
    sys.stdout.write(json.dumps(points) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
