"""Runs one recipe on many tables in a process of its own; the synthetic codes go into CSV files.

``python -m benchmarks.recipes.synthetic MODULE JOBS.json``: a list of {table, domain, rho, seed,
out}.  Needs only NumPy, pandas and what the recipe itself imports, so that peers can run under
another interpreter.  Prints one JSON line a job as soon as it is done.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from time import perf_counter


def main(module: str, jobs: str) -> None:
    import pandas as pd

    recipe = importlib.import_module(module)
    for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
        frame = pd.read_csv(job["table"])
        start = perf_counter()
        synthetic, _ = recipe.run(frame, job["domain"], job["rho"], job["seed"])
        seconds = perf_counter() - start
        synthetic[list(frame.columns)].to_csv(job["out"], index=False)
        done = {"out": job["out"], "label": recipe.LABEL, "seconds": seconds}
        sys.stdout.write(json.dumps(done) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
