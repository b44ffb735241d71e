"""Problems about counts: a table, its noisy cells, and whatever else was released about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.errors import StatisticError
from core.statistics import NoisyStatistic


@dataclass(frozen=True)
class TableQuery:
    """One more release about a table: a weighted sum of its cells, with noise of its own.

    ``weights`` has one whole number a cell, in the order of the table's cells.
    """

    weights: tuple[float, ...]
    statistic: NoisyStatistic

    def __post_init__(self) -> None:
        """Refuse weights that no count has."""
        if any(weight != round(weight) for weight in self.weights):
            raise StatisticError("the weights of a query of a table must be whole numbers")
        if not any(self.weights):
            raise StatisticError("a query of a table needs a weight other than 0")


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Counts released with noise.

    Attributes
    ----------
    axes
        (column, labels) of each axis.
    cells
        Releases of the cells in C order (the last axis runs fastest).
    total
        Number of rows where it is exact, its noisy release, or None.
    queries
        Further releases about the same cells (margins, a second release of a cell), each entered
        once and with noise independent of all others.
    cap
        Largest possible count of one cell, where one is known without looking at the data.
    """

    axes: tuple[tuple[str, tuple[str, ...]], ...]
    cells: tuple[NoisyStatistic, ...]
    total: int | NoisyStatistic | None = None
    queries: tuple[TableQuery, ...] = ()
    cap: int | None = None

    def __post_init__(self) -> None:
        """Refuse shapes and totals that cannot be."""
        if not self.axes:
            raise StatisticError("a table needs at least one column")
        for name, labels in self.axes:
            if len(labels) < 1 or len(set(labels)) != len(labels):
                raise StatisticError(f"the labels of {name!r} must be given, and differ")
        if len({name for name, _ in self.axes}) != len(self.axes):
            raise StatisticError("the columns of a table must differ")
        size = math.prod(self.shape)
        what = self.label
        if len(self.cells) != size or size < 2:
            raise StatisticError(f"{what} needs one release for each of its cells")
        if any(len(query.weights) != size for query in self.queries):
            raise StatisticError(f"a query of {what} needs one weight a cell")
        if self.cap is not None and self.cap < 1:
            raise StatisticError(f"the largest count of a cell of {what} must be at least 1")
        if isinstance(self.total, int):
            if self.total < 1:
                raise StatisticError(f"the number of rows behind {what} must be at least 1")
            if self.cap is not None and self.cap * size < self.total:
                raise StatisticError(f"the cells of {what} cannot add up to the number of rows")
        for factor in self.factors:
            _check_lattice(factor.statistic, what)

    @property
    def label(self) -> str:
        """What messages call it."""
        return "the table of " + " by ".join(repr(name) for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of labels of each axis."""
        return tuple(len(labels) for _, labels in self.axes)

    @property
    def factors(self) -> tuple[TableQuery, ...]:
        """All releases as weighted sums of the cells: cells, queries, then a noisy total."""
        size = len(self.cells)
        unit = np.eye(size)
        cells = tuple(
            TableQuery(tuple(row), cell)
            for row, cell in zip(unit.tolist(), self.cells, strict=True)
        )
        total: tuple[TableQuery, ...] = ()
        if isinstance(self.total, NoisyStatistic):
            total = (TableQuery((1.0,) * size, self.total),)
        return (*cells, *self.queries, *total)

    @property
    def outside_support(self) -> bool:
        """Whether a cell was released below 0, or above what the cap or the total allow."""
        top = self.cap
        if isinstance(self.total, int):
            top = self.total if top is None else min(top, self.total)
        return any(cell.value < 0 or (top is not None and cell.value > top) for cell in self.cells)


def _check_lattice(statistic: NoisyStatistic, what: str) -> None:
    """Counts are whole, so whole noise makes the released values whole as well."""
    law = statistic.law
    if not law.family.discrete:
        return
    steps = 1.0 / law.lattice
    if abs(steps - round(steps)) > 1e-9:
        raise StatisticError(f"the noise's step on counts in {what} must be 1, or 1 over a number")
    ratio = statistic.value / law.lattice
    if abs(ratio - round(ratio)) > 1e-6:
        raise StatisticError(
            f"a release on {what} is no multiple of the step of its discrete noise; give the "
            "continuous family if the value was rounded or scaled"
        )
