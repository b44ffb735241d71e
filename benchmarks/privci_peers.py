"""Peers on the same codes, folds and budgets, under interpreters of their own, same measurements.

Every peer gets a training fold as integer codes with the declared sizes, and returns codes.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.privci_cells import Cell, Figures, fold_of, rho_of
from benchmarks.privci_metrics import Fold, measure
from benchmarks.privci_store import Store
from benchmarks.report import ROOT, ProgressBar

#: Recipe of each peer; all but the first need an environment (requirements-peers.txt).
PEERS: Mapping[str, str] = {
    "mst-on-mbi": "benchmarks.recipes.mst_on_mbi",
    "smartnoise": "benchmarks.recipes.smartnoise_mst",
    "smartnoise-sampled": "benchmarks.recipes.smartnoise_sampled",
    "dpmm": "benchmarks.recipes.dpmm_mst",
}
TABLES = ("compas", "adult")
EPSILONS = ("1", "10")
FOLDS = 2


def cells(peer: str, tables: Iterable[str], epsilons: Iterable[str], folds: int) -> list[Cell]:
    """The small grid that peers run on."""
    return [
        Cell(table, fold, epsilon, 0, peer)
        for table in tables
        for epsilon in epsilons
        for fold in range(min(FOLDS, folds))
    ]


def run_peer(
    peer: str, python: str, wanted: Iterable[Cell], data: Path | None, store: Store, *, resume: bool
) -> None:
    """Run what is not stored yet.

    Raises
    ------
    SystemExit
        The peer failed; what it finished before is stored.
    """
    waiting = [cell for cell in wanted if not (resume and store.get(cell.name) is not None)]
    if not waiting:
        return
    bar = ProgressBar(peer, len(waiting))
    with TemporaryDirectory() as folder:
        jobs = [_job(Path(folder), cell, fold_of(cell.table, data, cell.fold)) for cell in waiting]
        listed = Path(folder) / "jobs.json"
        listed.write_text(json.dumps(jobs), encoding="utf-8")
        with subprocess.Popen(
            [python, "-m", "benchmarks.recipes.synthetic", PEERS[peer], str(listed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            by_file = {job["out"]: cell for job, cell in zip(jobs, waiting, strict=True)}
            for line in child.stdout:
                if line.startswith('{"out"'):
                    done = json.loads(line)
                    cell = by_file[done["out"]]
                    store.put(cell.name, _figures(cell, done, data))
                    bar.advance()
    if child.returncode:
        raise SystemExit(f"peer {peer} failed with exit code {child.returncode}")


def _job(folder: Path, cell: Cell, fold: Fold) -> dict[str, Any]:
    table = folder / f"{cell.table}-{cell.fold}.csv"
    if not table.exists():
        pd.DataFrame(dict(fold.train.codes)).to_csv(table, index=False)
    return {
        "table": str(table),
        "domain": {name: fold.train.size(name) for name in fold.train.schema.names},
        "rho": float(rho_of(cell.epsilon)),
        "seed": cell.seeds[0],
        "out": str(folder / f"{cell.name.replace('/', '-')}.out.csv"),
    }


def _figures(cell: Cell, done: Mapping[str, Any], data: Path | None) -> Figures:
    made = pd.read_csv(done["out"])
    fold = fold_of(cell.table, data, cell.fold)
    codes = {name: made[name].to_numpy().astype(np.int64) for name in fold.train.schema.names}
    for name, column in codes.items():
        if column.min() < 0 or column.max() >= fold.train.size(name):
            raise ValueError(f"{done['label']} made codes outside the domain of {name!r}")
    return {
        **asdict(cell),
        **measure(fold, codes),
        "label": done["label"],
        "release_seconds": done["seconds"],
    }
