"""Cells of the PrivCI benchmark: one table, method, budget, fold and noise seed, a JSON file each.

Noise is seeded: the tables are public, and a cell must come out the same every time.  The seed of a
cell follows from its name, so that cells are independent and their order changes nothing.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.privci_metrics import Codes, Fold, measure
from benchmarks.privci_trees import pair_scores, violates
from benchmarks.tables import DEMOS, ResearchTable, demo_table, load
from core.private.zcdp import rho_for_epsilon
from core.privci.reconstruct import fit
from core.privci.sample import expand, sample
from core.privci.select import release_tree
from core.privci.structures import STRUCTURES, Forest
from core.simulation import simulated_vault

#: All folds and all noise follow from this number and the names of the cells.
SEED = 2603
FOLDS = 5
DELTA = 1e-9
METHODS = tuple(STRUCTURES)
#: The training fold itself, as if it had been published: what a method can hope for.
REAL = "real"
#: Budget so large that noise plays no part.
NOISE_FREE = "inf"
NOISE_FREE_RHO = Fraction(10**5)
Figures = dict[str, Any]


@dataclass(frozen=True, order=True)
class Cell:
    """One synthetic table to make and to measure; ``epsilon`` is a text, ``inf`` is noise-free."""

    table: str
    fold: int
    epsilon: str
    seed: int
    method: str

    @property
    def name(self) -> str:
        """Names its file and its noise."""
        return f"{self.table}/{self.method}-eps{self.epsilon}-fold{self.fold}-seed{self.seed}"

    @property
    def seeds(self) -> tuple[int, int]:
        """Of the noise and of the sampling: preset, and different for every cell."""
        return seeds_of(self.name)


def seeds_of(name: str) -> tuple[int, int]:
    """Two seeds that follow from a name."""
    sequence = np.random.SeedSequence([SEED, zlib.crc32(name.encode())])
    one, other = sequence.generate_state(2).tolist()
    return one, other


def rho_of(epsilon: str) -> Fraction:
    """Budget of an epsilon at the benchmark's delta."""
    if epsilon == NOISE_FREE:
        return NOISE_FREE_RHO
    return rho_for_epsilon(float(epsilon), DELTA)


def grid(
    tables: Iterable[str],
    methods: Iterable[str],
    epsilons: Iterable[str],
    folds: int,
    seeds: int,
) -> Iterator[Cell]:
    """Every cell, and the real training folds."""
    for table, fold in itertools.product(tables, range(folds)):
        yield Cell(table, fold, NOISE_FREE, 0, REAL)
        for epsilon, method in itertools.product(epsilons, methods):
            for seed in range(1 if epsilon == NOISE_FREE else seeds):
                yield Cell(table, fold, epsilon, seed, method)


# -- the work --------------------------------------------------------------------------------


def run_cell(cell: Cell, data: Path | None) -> Figures:
    """Release, fit, sample and measure; or measure the training fold itself.  Seconds are CPU's."""
    start = process_time()
    fold = fold_of(cell.table, data, cell.fold)
    if cell.method == REAL:
        figures = measure(fold, fold.train.codes)
        return {**asdict(cell), **figures, "seconds": process_time() - start}
    made, edges, engine = synthesise(fold, cell)
    seconds = process_time() - start
    scores = fold.scores
    forest = Forest(edges, math.fsum(scores[pair] for pair in edges), "")
    return {
        **asdict(cell),
        **measure(fold, made),
        "score": forest.score,
        "violates": violates(forest, fold.roles.constraints),
        "edges": [list(pair) for pair in edges],
        "engine": engine,
        "release_seconds": seconds,
        "seconds": process_time() - start,
    }


def synthesise(fold: Fold, cell: Cell) -> tuple[Codes, tuple[tuple[str, str], ...], str]:
    """Synthetic codes of a training fold, the forest and the engine."""
    noise, sampling = cell.seeds
    vault = simulated_vault(fold.coded, seed=noise)
    grant = vault.grant(rho_of(cell.epsilon), "tree", cell.name)
    if grant is None:
        raise RuntimeError("a fresh ledger has already seen this request")
    release = release_tree(grant, fold.train.schema, fold.roles, structure=cell.method)
    fitted = fit(release)
    generator = np.random.default_rng(sampling)
    rows = max(1, round(fitted.model.total))
    made = expand(sample(fitted.model, rows, generator), release, generator)
    return made, release.edges, fitted.engine


@lru_cache(maxsize=2)
def table_of(name: str, data: Path | None) -> ResearchTable:
    """A research table, or an embedded demo."""
    if name in DEMOS:
        return demo_table(name)
    if data is None:
        raise ValueError(f"table {name} needs --data")
    return load(name, data)


@lru_cache(maxsize=4)
def fold_of(name: str, data: Path | None, fold: int) -> Fold:
    """A table cut into a training and a test fold."""
    table = table_of(name, data)
    train, test = _cut(table, fold)
    return Fold.of(part(table, train), part(table, test), pair_scores(part(table, train)))


def part(table: ResearchTable, rows: np.ndarray) -> ResearchTable:
    """Some rows of a table."""
    return replace(table, codes={name: codes[rows] for name, codes in table.codes.items()})


def _cut(table: ResearchTable, fold: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import StratifiedKFold

    outcome = _only(table.roles.constraints[0].outcome)
    cuts = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    found: Sequence[tuple[np.ndarray, np.ndarray]] = list(
        cuts.split(np.zeros(table.rows), table.codes[outcome])
    )
    return found[fold]


def _only(names: Iterable[str]) -> str:
    (name,) = names
    return name
