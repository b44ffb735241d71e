"""PrivCI's experiments: four structures, five budgets, five folds, and the papers' claims.

``python -m benchmarks privci [--data DIR] [--datasets NAME …] [--eps E …] [--jobs 2] [--resume]
[--write]``.  Without ``--data`` the embedded demo tables are used.  Every cell is stored as it is
found (``--store``, by default ``out/privci``), so that a run that was stopped goes on with
``--resume``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from benchmarks import privci_peers, privci_scores
from benchmarks.privci_cells import (
    FOLDS,
    METHODS,
    NOISE_FREE,
    Cell,
    Figures,
    grid,
    run_cell,
    table_of,
)
from benchmarks.privci_report import Run, Trees, bars, page
from benchmarks.privci_results import Results
from benchmarks.privci_store import Store, run_all
from benchmarks.privci_trees import forests, violates
from benchmarks.report import FOLDER, STORE, peer_option
from benchmarks.tables import DEMOS, TABLES, data_argument

REPORT = FOLDER / "privci.md"
#: The papers' five tables, and the variants in which trees differ most.
NAMES = ("adult", "compas", "compas-prefair", "dutch", "dutch-alt", "law", "german")
EPSILONS = ("0.1", "0.5", "1", "5", "10", NOISE_FREE)


def main(argv: list[str]) -> int:
    """Run what is asked for and print or write the page; 1 when a promise is not kept."""
    options = _options(argv)
    store = Store(options.store)
    cells = list(grid(options.datasets, METHODS, options.eps, options.folds, options.seeds))
    run_all(
        "cells",
        {cell.name: (run_cell, (cell, options.data)) for cell in cells},
        store,
        options.jobs,
        resume=options.resume,
    )
    blocks = privci_scores.jobs(options.datasets, options.eps, options.draws, options.data)
    run_all("expected scores", blocks, store, options.jobs, resume=options.resume)
    peers = _run_peers(options, store)
    found = _stored(store, cells)
    results = Results(found, options.datasets, options.eps, options.folds)
    pictures = {}
    if options.write:
        from benchmarks.privci_plots import draw

        FOLDER.mkdir(parents=True, exist_ok=True)
        pictures = draw(results, FOLDER)
    seconds = sum(figures["seconds"] for figures in found.values())
    seconds += sum(store.read(name)["seconds"] for name in blocks)
    run = Run(
        results,
        _trees(options.datasets, options.data),
        privci_scores.stored(store, blocks),
        peers,
        pictures,
        options.seeds,
        seconds / 60 / 2,
    )
    text = page(run)
    if options.write:
        REPORT.write_text(text, encoding="utf-8")
        print(f"wrote {REPORT}")
    else:
        print(text)
    return 0 if all(bar.met for bar in bars(run)) else 1


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks privci", description=__doc__)
    data_argument(parser, required=False)
    known = (*TABLES, *DEMOS)
    parser.add_argument("--datasets", nargs="+", choices=known, metavar="NAME", help="tables")
    parser.add_argument("--eps", nargs="+", default=list(EPSILONS), metavar="E", help="budgets")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the five folds")
    parser.add_argument("--seeds", type=int, default=1, help="noise seeds a cell")
    parser.add_argument("--draws", type=int, default=200, help="noise draws an expected score")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--resume", action="store_true", help="keep cells that are stored")
    parser.add_argument("--store", type=Path, default=STORE / "privci", help="for figures")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/privci.md")
    peer_option(parser, privci_peers.PEERS)
    options = parser.parse_args(argv)
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    options.datasets = options.datasets or list(NAMES if options.data else DEMOS)
    files = [name for name in options.datasets if name not in DEMOS]
    if files and options.data is None:
        parser.error(f"table {files[0]} needs --data")
    for text in options.eps:
        if not _is_budget(text):
            parser.error(f"--eps {text}: a positive number, or {NOISE_FREE}")
    if not 1 <= options.folds <= FOLDS:
        parser.error(f"--folds lies between 1 and {FOLDS}")
    if min(options.seeds, options.jobs) < 1 or options.draws < 2:
        parser.error("--seeds and --jobs must be at least 1, --draws at least 2")
    return options


def _is_budget(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def _run_peers(options: argparse.Namespace, store: Store) -> dict[Cell, Figures]:
    """Run the peers asked for, and report what is stored of all of them, in whole sets of folds."""
    interpreters = dict(options.peer)
    found: dict[Cell, Figures] = {}
    tables = [name for name in privci_peers.TABLES if name in options.datasets]
    epsilons = [epsilon for epsilon in privci_peers.EPSILONS if epsilon in options.eps]
    for peer in privci_peers.PEERS:
        cells = privci_peers.cells(peer, tables, epsilons, options.folds)
        if peer in interpreters:
            privci_peers.run_peer(
                peer, interpreters[peer], cells, options.data, store, resume=options.resume
            )
        known = {cell: figures for cell in cells if (figures := store.get(cell.name)) is not None}
        for cell, figures in known.items():
            places = [(one.table, one.epsilon) for one in known]
            if places.count((cell.table, cell.epsilon)) == min(privci_peers.FOLDS, options.folds):
                found[cell] = figures
    return found


def _stored(store: Store, cells: list[Cell]) -> Mapping[Cell, Figures]:
    return {cell: store.read(cell.name) for cell in cells}


def _trees(names: list[str], data: Path | None) -> Trees:
    found = {}
    for name in names:
        table = table_of(name, data)
        found[name] = tuple(
            (forest.score, violates(forest, table.roles.constraints)) for forest in forests(table)
        )
    return found
