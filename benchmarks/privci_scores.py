"""Expected true score of the selected tree over many draws of the noise, and who selects best.

Only the first two thirds of the budget matter for it, so a release is cancelled after selection.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.privci_cells import Figures, rho_of, seeds_of, table_of
from benchmarks.privci_metrics import coded
from benchmarks.privci_store import Store
from benchmarks.privci_trees import pair_scores
from core.errors import Cancelled
from core.privci.select import release_tree
from core.simulation import simulated_vault

METHODS = ("prefair", "privci", "privci-exact")
#: Budgets that the claim is about.
LEAST_EPSILON = 1.0
BLOCK = 50

#: Scores of the trees by (table, epsilon, method).
Scores = dict[tuple[str, str, str], np.ndarray]
Jobs = dict[str, tuple[Any, tuple[Any, ...]]]


def budgets(epsilons: Iterable[str]) -> list[str]:
    """Those that the claim is about."""
    return [epsilon for epsilon in epsilons if LEAST_EPSILON <= float(epsilon) < math.inf]


def jobs(tables: Iterable[str], epsilons: Iterable[str], draws: int, data: Path | None) -> Jobs:
    """Blocks of releases by name."""
    design = itertools.product(tables, budgets(epsilons), METHODS, range(0, draws, BLOCK))
    return {
        _name(table, epsilon, method, start): (
            run_block,
            (table, epsilon, method, range(start, min(start + BLOCK, draws)), data),
        )
        for table, epsilon, method, start in design
    }


def run_block(
    table: str, epsilon: str, method: str, draws: Sequence[int], data: Path | None
) -> Figures:
    """True scores of the trees that a method selects."""
    begin = process_time()
    used = table_of(table, data)
    rows, true = coded(used), pair_scores(used)
    found = []
    first = _name(table, epsilon, method, min(draws))
    vault = simulated_vault(rows, seed=seeds_of(first)[0])  # its noise goes on from draw to draw
    for draw in draws:
        grant = vault.grant(rho_of(epsilon), "tree", _name(table, epsilon, method, draw))
        if grant is None:
            raise RuntimeError("a fresh ledger has already seen this request")
        release = release_tree(
            grant, used.schema, used.roles, structure=method, progress=_stop_after_selection
        )
        found.append(math.fsum(true[pair] for pair in release.edges))
    return {"scores": found, "seconds": process_time() - begin}


def stored(store: Store, wanted: Mapping[str, tuple[Any, tuple[Any, ...]]]) -> Scores:
    """Scores of the blocks that are stored."""
    parts: dict[tuple[str, str, str], list[float]] = {}
    for name, (_, arguments) in wanted.items():
        figures = store.get(name)
        if figures is not None:
            table, epsilon, method, *_ = arguments
            parts.setdefault((table, epsilon, method), []).extend(figures["scores"])
    return {key: np.array(values) for key, values in parts.items()}


def _name(table: str, epsilon: str, method: str, draw: int) -> str:
    return f"{table}/scores-{method}-eps{epsilon}-draw{draw}"


def _stop_after_selection(stage: str, done: int, total: int, _: object) -> None:
    if stage == "selection" and done == total:
        raise Cancelled
