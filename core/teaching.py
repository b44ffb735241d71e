"""Teaching on demo data: redraw people and noise, and see which intervals hold.  NOT PRIVATE.

Everybody here is made up, and the noise is seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from core import demo
from core.attachment import read_as
from core.errors import PlanError
from core.moments import IntArray
from core.plan_sections import ReadingPlan
from core.private.coding import encode
from core.private.table import CodedTable
from core.protocols import Progress
from core.pumba.measure import release_statistics
from core.pumba.questions import posteriors_of
from core.pumba.settings import Settings
from core.pumba.specification import AnalysisKind, AnalysisSpec
from core.releases import Relation, Unit
from core.simulation import simulated_vault

#: Made-up people from whom every repetition draws its own table.
WORLD_ROWS = 50_000
WORLD_SEED = 2026
MOST_REPETITIONS = 1000


@dataclass(frozen=True)
class Interval:
    """One repetition: the naive and the private 95 % interval of the mean.

    ``naive`` is None where the released sums allow none (a negative variance).
    """

    private: tuple[float, float]
    naive: tuple[float, float] | None


@dataclass(frozen=True)
class Coverage:
    """How often intervals hold the true mean of the made-up world.

    Attributes
    ----------
    truth
        Mean of the column over all made-up people.
    intervals
        One a repetition.
    """

    column: str
    rows: int
    rho: Fraction
    truth: float
    intervals: tuple[Interval, ...]

    @property
    def private(self) -> float:
        """Share of private intervals that hold the truth."""
        return self._share([one.private for one in self.intervals])

    @property
    def naive(self) -> float:
        """Share of naive intervals that hold the truth; one that is undefined does not."""
        return self._share([one.naive for one in self.intervals])

    def _share(self, intervals: Sequence[tuple[float, float] | None]) -> float:
        held = [one is not None and one[0] <= self.truth <= one[1] for one in intervals]
        return sum(held) / len(held)


def coverage(
    name: str,
    column: str,
    *,
    rows: int,
    rho: Fraction,
    repetitions: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
) -> Coverage:
    """Draw a table of made-up people and its noise anew, again and again.

    Parameters
    ----------
    name, column
        A demo world and one of its numeric columns.
    rows
        Size of each table.
    rho
        What each release of the mean costs (nothing is charged).
    repetitions
        How many tables are drawn.

    Raises
    ------
    PlanError
        The world has no such numeric column, or a number is out of range.
    """
    if not 2 <= rows <= WORLD_ROWS or not 1 <= repetitions <= MOST_REPETITIONS:
        raise PlanError(
            f"teaching: rows lie between 2 and {WORLD_ROWS:,}, repetitions between 1 and "
            f"{MOST_REPETITIONS:,}"
        )
    world = _world(name)
    if column not in world.numbers:
        raise PlanError(f"teaching: {column!r} is no numeric column of the demo {name!r}")
    spec = AnalysisSpec(AnalysisKind.MEAN, "mean", outcome=column)
    generator = np.random.default_rng([seed, rows])
    settings = Settings(draws=1000, seed=seed)
    found = []
    for index in range(repetitions):
        if progress is not None:
            progress("redrawing", index, repetitions, None)
        people = generator.integers(0, world.rows, rows)
        # With the number of rows public, as in the textbook; it is faster, and shows the same.
        vault = simulated_vault(
            _some(world, people),
            seed=seed * MOST_REPETITIONS + index,
            relation=Relation.REPLACE_ONE,
        )
        grant = vault.grant(rho, "teaching", f"teaching-{index}")
        assert grant is not None
        release = release_statistics(grant, vault.schema, spec, expected_rows=rows)
        vault.close()
        (answer,) = posteriors_of(release, settings)
        mean = answer.summary[0]
        naive = (
            None
            if mean.naive_low is None or mean.naive_high is None
            else (mean.naive_low, mean.naive_high)
        )
        found.append(Interval((mean.eti_low, mean.eti_high), naive))
    truth = float(np.nanmean(world.numbers[column]))
    return Coverage(column, rows, rho, truth, tuple(found))


@lru_cache(maxsize=3)
def _world(name: str) -> CodedTable:
    """All made-up people of a demo, coded; public."""
    raw = read_as(ReadingPlan(decimal="."), demo.csv_bytes(name, rows=WORLD_ROWS, seed=WORLD_SEED))
    return encode(raw, demo.schema(name), unit=Unit(), key=b"made-up people")


def _some(world: CodedTable, people: IntArray) -> CodedTable:
    return CodedTable(
        world.schema,
        {name: codes[people] for name, codes in world.codes.items()},
        {name: values[people] for name, values in world.numbers.items()},
        len(people),
        world.unit,
    )


def numeric_columns(name: str) -> tuple[str, ...]:
    """Numeric columns of a demo world in which no value is missing."""
    return tuple(
        column.name
        for column in demo.schema(name).modelled
        if column.axis and column.size == column.declared_size
    )
