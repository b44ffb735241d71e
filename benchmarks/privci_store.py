"""Figures of the PrivCI benchmark on disk, one JSON file a cell, and the processes that fill it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.privci_cells import Figures, part, table_of
from benchmarks.privci_metrics import Fold, measure
from benchmarks.report import ProgressBar, code_digest, read_json, write_json
from benchmarks.tables import DEMOS

#: What a cell depends on; a change here makes every stored cell stale.
SOURCES = (
    *("benchmarks/privci_cells.py", "benchmarks/privci_metrics.py", "benchmarks/privci_trees.py"),
    *("benchmarks/privci_scores.py", "benchmarks/tables.py"),
    *("core/simulation.py", "core/private/scales.py", "core/privci"),
)
#: Read by pages only.
UNRELATED = ("certificate.py",)
#: Rows of a demo that are measured to tell whether measuring has changed: training and test.
PROBE = (600, 400)


def fingerprint() -> str:
    """Changes with the code that releases, and with what the audit's functions answer.

    The audit's code may change as long as its figures of a small table stay as they are.
    """
    table = table_of(DEMOS[0], None)
    train, test = np.arange(PROBE[0]), np.arange(PROBE[0], sum(PROBE))
    training = part(table, train)
    figures = measure(Fold.of(training, part(table, test), {}), training.codes)
    digits = {name: None if value is None else f"{value:.9g}" for name, value in figures.items()}
    answers = hashlib.sha256(json.dumps(digits, sort_keys=True).encode()).hexdigest()
    return f"{code_digest(SOURCES, UNRELATED)}-{answers[:8]}"


class Store:
    """Figures by cell, in a folder of JSON files that carry the code they came from."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.code = folder, fingerprint()

    def path(self, name: str) -> Path:
        """File of a cell."""
        return self.folder / f"{name}.json"

    def get(self, name: str) -> Figures | None:
        """Figures of a cell, unless it is missing or other code made it."""
        found = read_json(self.path(name))
        if found is None or found["code"] != self.code:
            return None
        figures: Figures = found["figures"]
        return figures

    def read(self, name: str) -> Figures:
        """Figures of a cell that must be there."""
        figures = self.get(name)
        if figures is None:
            raise KeyError(f"cell {name} is not stored")
        return figures

    def put(self, name: str, figures: Mapping[str, Any]) -> None:
        """Store a cell."""
        write_json(self.path(name), {"code": self.code, "figures": dict(figures)})


def run_all(
    words: str,
    jobs: Mapping[str, tuple[Callable[..., Figures], tuple[Any, ...]]],
    store: Store,
    processes: int,
    *,
    resume: bool,
) -> float:
    """Run the jobs that are not stored, and return the seconds it took.

    Parameters
    ----------
    jobs
        Importable function and its arguments by name; the figures are stored under the name.
    resume
        Keep what is stored; otherwise everything is measured anew.
    """
    start = perf_counter()
    waiting = [name for name in jobs if not (resume and store.get(name) is not None)]
    if not waiting:
        return 0.0
    bar = ProgressBar(words, len(waiting))
    if processes == 1:
        for name in waiting:
            store.put(name, _alone(*jobs[name]))
            bar.advance()
        return perf_counter() - start
    with ProcessPoolExecutor(processes, get_context("forkserver")) as pool:
        futures = {pool.submit(_alone, *jobs[name]): name for name in waiting}
        try:
            for future in as_completed(futures):
                store.put(futures[future], future.result())
                bar.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what is stored stays
            raise
    return perf_counter() - start


def _alone(work: Callable[..., Figures], arguments: tuple[Any, ...]) -> Figures:
    with threadpool_limits(1):
        return work(*arguments)
