"""Errors of single covariance releases, cell by cell, kept in a file so that a run can go on.

A cell is one table, relation, kind of means, method, rho and seed.  Every release goes through a
grant with seeded noise; only the exact sums behind it are computed once a table.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.pace_data import Bank, Bench, CachedSource, coded_table, load
from benchmarks.report import code_digest
from core.pace.estimate import estimate
from core.pace.select import release_covariance
from core.releases import Relation

#: What an error depends on: a change here makes every stored cell stale.
SOURCES = ("core/pace", "core/moments.py", "core/private/sensitivity.py", "benchmarks/pace_data.py")
#: Read by pages only.
UNRELATED = (
    "view.py",
    "derived.py",
    "regression.py",
    "sensitivities.py",
    "preview.py",
    "sampler.py",
)


@dataclass(frozen=True, order=True)
class Cell:
    """One release."""

    table: str
    relation: str
    means: str
    method: str
    rho: str
    seed: int


@dataclass(frozen=True)
class Outcome:
    """Its errors against the exact matrix, and what it did."""

    mahalanobis: float
    frobenius: float
    route: str
    rounds: int


class Cells:
    """Outcomes by cell, in a file of JSON lines that is appended to."""

    def __init__(self, path: Path) -> None:
        self.path, self.code = path, code_digest(SOURCES, UNRELATED)
        self.known: dict[Cell, Outcome] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                stored = json.loads(line)
                if stored["code"] == self.code:
                    self.known[Cell(**stored["cell"])] = Outcome(**stored["outcome"])

    def run(self, cells: Iterable[Cell], data: Path | None) -> None:
        """Measure what is not known yet, table by table."""
        waiting = sorted({cell for cell in cells if cell not in self.known})
        workshop: Workshop | None = None
        with self.path.open("a") as file:
            for index, cell in enumerate(waiting):
                place = (cell.table, cell.relation, cell.means)
                if workshop is None or workshop.place != place:
                    print(f"{index}/{len(waiting)} {' '.join(place)}", file=sys.stderr, flush=True)
                    workshop = Workshop(place, data)
                self.known[cell] = workshop.measure(cell)
                stored = {"code": self.code, "cell": asdict(cell)}
                stored["outcome"] = asdict(self.known[cell])
                file.write(json.dumps(stored) + "\n")
                file.flush()

    def median(self, cell: Cell, seeds: int, metric: str) -> float:
        """Median error over the first seeds."""
        every = [Cell(**{**asdict(cell), "seed": seed}) for seed in range(seeds)]
        return float(np.median([getattr(self.known[one], metric) for one in every]))


class Workshop:
    """A table, its exact matrix, and grants on it.

    ``public`` means: the standardised table in its box, centred at its public mean 0.
    ``raw-public`` and ``raw-private``: the raw table within its range, half-widths of three public
    deviations, centred at its public means or at released ones; errors against the matrix about
    the means.
    """

    def __init__(self, place: tuple[str, str, str], data: Path | None) -> None:
        self.place = place
        name, relation, means = place
        bench = load(name, data)
        self.columns = bench.columns
        self.rows = len(bench.scaled)
        self.widths: dict[str, float] | None = None
        if means == "public":
            self.means: object = dict.fromkeys(self.columns, 0.0)
            values, bounds = bench.scaled, np.array([[-1.0, 1.0]] * len(self.columns))
            self.exact = bench.moments
        else:
            values, bounds, self.exact = self._raw(bench)
            self.means = dict(zip(self.columns, bench.raw.mean(axis=0).tolist(), strict=True))
            self.means = "private" if means == "raw-private" else self.means
        table = coded_table(values, bounds, self.columns)
        self.schema = table.schema
        self.bank = Bank(CachedSource(table), Relation(relation))
        eigenvalues, vectors = np.linalg.eigh(self.exact)
        self.root = (vectors / np.sqrt(eigenvalues)) @ vectors.T

    def _raw(self, bench: Bench) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        deviations = bench.raw.std(axis=0)
        self.widths = dict(zip(self.columns, (3 * deviations).tolist(), strict=True))
        bounds = np.column_stack([bench.raw.min(axis=0), bench.raw.max(axis=0)])
        return bench.raw, bounds, bench.moments

    def measure(self, cell: Cell) -> Outcome:
        """One release and its errors."""
        release = release_covariance(
            self.bank.seeded(Fraction(cell.rho), cell.seed),
            self.schema,
            self.columns,
            method=cell.method,
            means=self.means,
            half_widths=self.widths,
            expected_rows=self.rows,
        )
        found = estimate(release).scaled
        return Outcome(
            float(np.linalg.norm(self.root @ found @ self.root - np.eye(len(found)))),
            float(np.linalg.norm(found - self.exact) / np.linalg.norm(self.exact)),
            release.route,
            len(release.rounds),
        )


def geometric_mean(values: Iterable[float]) -> float:
    """Exponential of the mean logarithm."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def grid(
    tables: Iterable[str],
    relations: Iterable[str],
    methods: Iterable[str],
    rhos: Iterable[str],
    *,
    means: str,
    seeds: int,
) -> Iterator[Cell]:
    """Every cell of a design."""
    design = itertools.product(tables, relations, methods, rhos, range(seeds))
    for table, relation, method, rho, seed in design:
        yield Cell(table, relation, means, method, rho, seed)
