"""Rates of an event by group, within strata, and the gaps between them.

Demographic parity, true and false positive rates and gaps within admissible cells are all rates of
an event among some rows; only the rows and the strata differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.audit.resampling import Interval, percentiles
from core.audit.worlds import World

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Rate:
    """Share of a group's rows that have the event."""

    group: str
    rows: int
    rate: float


@dataclass(frozen=True, repr=False)
class Gap:
    """The two groups whose rates are furthest apart.

    Attributes
    ----------
    one, other
        Both rates, in the order of the groups' codes.
    low, high
        Interval of ``signed``.
    chance
        Mean size of the widest gap when the event is dealt to the same groups at random.
    note
        What was left out, or an empty text.
    """

    one: Rate
    other: Rate
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    note: str = ""

    @property
    def signed(self) -> float:
        """Rate of the other group less that of the one group."""
        return self.other.rate - self.one.rate

    @property
    def size(self) -> float:
        """Absolute difference."""
        return abs(self.signed)

    @property
    def interval(self) -> Interval:
        """Interval of the absolute difference: the signed one, folded at 0."""
        if self.low is None or self.high is None:
            return None, None
        ends = abs(self.low), abs(self.high)
        return (0.0 if self.low <= 0 <= self.high else min(ends)), max(ends)

    @property
    def words(self) -> str:
        """Both groups, the sign and both rates.

        >>> Gap(Rate("A", 20, 0.8), Rate("B", 20, 0.5)).words
        "'B' 0.300 below 'A' (0.500 and 0.800)"
        """
        if self.size == 0:
            return f"'{self.other.group}' level with '{self.one.group}' (both {self.one.rate:.3f})"
        side = "above" if self.signed > 0 else "below"
        return (
            f"'{self.other.group}' {self.size:.3f} {side} '{self.one.group}' "
            f"({self.other.rate:.3f} and {self.one.rate:.3f})"
        )


@dataclass(frozen=True, repr=False)
class Unknown:
    """No gap, and why."""

    reason: str


Measured = Gap | Unknown


@dataclass(frozen=True, repr=False)
class StratumGap:
    """Rates of the groups in one stratum.

    Attributes
    ----------
    labels
        The stratum's cells, one label a column.
    rows
        Rows of the groups that are shown.
    rates
        One a group with enough rows, in the order of the groups' codes.
    gap
        The two that are furthest apart.
    """

    labels: tuple[str, ...]
    rows: int
    rates: tuple[Rate, ...]
    gap: Gap


@dataclass(frozen=True, eq=False, repr=False)
class WithinGaps:
    """Gaps within strata.

    Attributes
    ----------
    columns
        The columns that make the strata, in the order of the labels.
    strata
        Strata with at least two groups of enough rows, most rows first.
    mean
        Mean of the absolute gaps, weighted by rows; None where no stratum can be compared.
    low, high
        Its bootstrap interval.
    chance
        Mean of the same figure when the event is dealt at random within each stratum.
    covered
        Share of all rows that the comparison rests on.
    note
        What was left out, or why there is nothing.
    """

    columns: tuple[str, ...]
    strata: tuple[StratumGap, ...]
    mean: float | None
    low: float | None
    high: float | None
    chance: float | None
    covered: float
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class Labelled:
    """Combinations of some columns: one number a row, one tuple of labels a number.

    Attributes
    ----------
    codes
        (rows,) numbers from 0 over the combinations that occur.
    labels
        Cell labels of each combination.
    """

    codes: IntArray
    labels: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, world: World, names: Sequence[str]) -> Labelled:
        """Number the combinations of these columns; no columns make one combination."""
        codes = world.joint(names)
        numbers, first = np.unique(codes, return_index=True)
        cells = [(world.codes[name][first], world.schema[name].cells) for name in names]
        labels = tuple(
            tuple(names_of[int(column[place])] for column, names_of in cells)
            for place in range(len(numbers))
        )
        return cls(codes, labels)

    def take(self, rows: BoolArray) -> Labelled:
        """The same combinations, for these rows only."""
        return Labelled(self.codes[rows], self.labels)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """One text a combination."""
        return tuple(", ".join(parts) for parts in self.labels)


@dataclass(frozen=True, eq=False, repr=False)
class RateTable:
    """Counts of an event by stratum and group; groups with few rows are left out.

    Attributes
    ----------
    stratum, group
        (cells,) codes, sorted by stratum, then group; each stratum has at least two cells.
    rows, events
        (cells,) rows, and those that have the event.
    starts
        (strata,) first cell of each stratum.
    small
        Combinations of stratum and group left out for their few rows.
    alone
        Strata left out because fewer than two groups remained.
    """

    stratum: IntArray
    group: IntArray
    rows: IntArray
    events: IntArray
    starts: IntArray
    small: int
    alone: int

    @classmethod
    def of(cls, event: BoolArray, group: IntArray, stratum: IntArray, *, minimum: int) -> RateTable:
        """Count an event.

        Parameters
        ----------
        event, group, stratum
            (rows,) each.
        minimum
            Combinations of stratum and group with fewer rows are left out.
        """
        groups = int(group.max(initial=0)) + 1
        cells, place, rows = np.unique(
            stratum * groups + group, return_inverse=True, return_counts=True
        )
        events = np.bincount(place[event], minlength=len(cells))
        strata, members = cells // groups, cells % groups
        enough = rows >= minimum
        held = np.bincount(strata[enough], minlength=int(strata.max(initial=0)) + 1)
        kept = enough & (held[strata] > 1)
        _, starts = np.unique(strata[kept], return_index=True)
        return cls(
            stratum=strata[kept],
            group=members[kept],
            rows=rows[kept].astype(np.int64),
            events=events[kept].astype(np.int64),
            starts=starts.astype(np.int64),
            small=int(np.count_nonzero(~enough)),
            alone=len(np.unique(strata)) - len(starts),
        )

    def rate(self, at: int, groups: tuple[str, ...]) -> Rate:
        """The rate of one cell, with its group's words."""
        rows = int(self.rows[at])
        return Rate(groups[int(self.group[at])], rows, int(self.events[at]) / rows)

    @property
    def stratum_rows(self) -> IntArray:
        """(strata,) rows of the kept groups."""
        found: IntArray = np.add.reduceat(self.rows, self.starts)
        return found

    def gaps(self, events: NDArray[np.int64] | None = None) -> FloatArray:
        """(..., strata) highest less lowest rate, of these events (..., cells) or its own."""
        rates = (self.events if events is None else events) / self.rows
        found: FloatArray = np.maximum.reduceat(rates, self.starts, axis=-1) - np.minimum.reduceat(
            rates, self.starts, axis=-1
        )
        return found

    def mean_gap(self, events: NDArray[np.int64] | None = None) -> FloatArray:
        """Mean of the gaps, weighted by the strata's rows."""
        weights = self.stratum_rows
        found: FloatArray = np.asarray(self.gaps(events) @ weights / weights.sum())
        return found

    def redrawn(self, draws: int, generator: np.random.Generator) -> IntArray:
        """(draws, cells) events of redrawn rows, group sizes kept (stratified bootstrap)."""
        shape = (draws, len(self.rows))
        return generator.binomial(self.rows, self.events / self.rows, size=shape).astype(np.int64)

    def chance(self, draws: int, generator: np.random.Generator) -> float:
        """Mean gap when each stratum's events are dealt to its rows at random."""
        dealt = np.empty((draws, len(self.rows)), dtype=np.int64)
        cells = np.diff(np.append(self.starts, len(self.rows)))
        rest = self.stratum_rows
        left = np.tile(np.add.reduceat(self.events, self.starts), (draws, 1))
        for place in range(int(cells.max())):  # the next group of every stratum that has one
            strata = np.flatnonzero(cells > place)
            at = self.starts[strata] + place
            rest[strata] -= self.rows[at]
            taken = generator.hypergeometric(self.rows[at], rest[strata], left[:, strata])
            dealt[:, at] = taken
            left[:, strata] -= taken
        return float(self.mean_gap(dealt).mean())


@dataclass(frozen=True, eq=False)
class Manner:
    """How gaps are measured.

    Attributes
    ----------
    minimum
        Groups with fewer rows are left out.
    draws, level, generator
        Of bootstrap intervals.
    """

    minimum: int
    draws: int
    level: float
    generator: np.random.Generator


def group_rates(event: BoolArray, groups: Labelled, minimum: int) -> tuple[Rate, ...]:
    """Rate of an event in every group with at least ``minimum`` rows, in the order of codes."""
    rows = np.bincount(groups.codes, minlength=len(groups.labels)).tolist()
    events = np.bincount(groups.codes[event], minlength=len(groups.labels)).tolist()
    return tuple(
        Rate(label, held, had / held)
        for label, held, had in zip(groups.words, rows, events, strict=True)
        if held >= minimum
    )


def group_gap(event: BoolArray, groups: Labelled, manner: Manner) -> Measured:
    """The widest gap between two groups' rates of an event.

    Parameters
    ----------
    event
        (rows,) which rows have it.
    groups
        Their groups.
    manner
        Smallest group, and the bootstrap of the signed gap.
    """
    if len(event) == 0:
        return Unknown("there are no such rows")
    table = RateTable.of(event, groups.codes, np.zeros_like(groups.codes), minimum=manner.minimum)
    if not len(table.starts):
        return Unknown(f"fewer than two groups have at least {manner.minimum} rows")
    note = _left_out(table.small, "group", manner.minimum)
    rates = tuple(table.rate(at, groups.words) for at in range(len(table.rows)))
    pair = _furthest(rates)
    drawn = table.redrawn(manner.draws, manner.generator) / table.rows
    low, high = percentiles(drawn[:, pair[1]] - drawn[:, pair[0]], level=manner.level)
    one, other = (rates[at] for at in pair)
    return Gap(one, other, low, high, table.chance(manner.draws, manner.generator), note)


def within_gaps(
    event: BoolArray,
    groups: Labelled,
    strata: Labelled,
    columns: tuple[str, ...],
    manner: Manner,
) -> WithinGaps:
    """Gaps between groups within each stratum.

    Parameters
    ----------
    event, groups
        As in :func:`group_gap`.
    strata, columns
        Their strata, and the columns that make them.
    manner
        Groups of a stratum with fewer rows are left out, and so are strata with fewer than two
        groups left.
    """
    table = RateTable.of(event, groups.codes, strata.codes, minimum=manner.minimum)
    if not len(table.starts):
        note = f"no stratum has two groups of at least {manner.minimum} rows"
        return WithinGaps(columns, (), None, None, None, None, 0.0, note)
    mean = float(table.mean_gap())
    low, high = percentiles(
        table.mean_gap(table.redrawn(manner.draws, manner.generator)),
        level=manner.level,
        centre=mean,
    )
    covered = int(table.rows.sum()) / len(event)
    note = f"{len(table.starts):,} strata with {covered:.0%} of the rows compared"
    if table.alone:
        note += (
            f", {table.alone:,} left out: fewer than two groups of at least {manner.minimum} rows"
        )
    return WithinGaps(
        columns=columns,
        strata=_strata(table, groups.words, strata.labels),
        mean=mean,
        low=None if low is None else max(0.0, low),
        high=None if high is None else min(1.0, high),
        chance=table.chance(manner.draws, manner.generator),
        covered=covered,
        note=note,
    )


def _strata(
    table: RateTable, groups: tuple[str, ...], labels: tuple[tuple[str, ...], ...]
) -> tuple[StratumGap, ...]:
    """One entry a stratum, most rows first."""
    found = []
    ends = np.append(table.starts[1:], len(table.rows))
    for start, end in zip(table.starts.tolist(), ends.tolist(), strict=True):
        rates = tuple(table.rate(at, groups) for at in range(start, end))
        one, other = (rates[at] for at in _furthest(rates))
        found.append(
            StratumGap(
                labels[int(table.stratum[start])],
                int(table.rows[start:end].sum()),
                rates,
                Gap(one, other),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.rows, one.labels)))


def _furthest(rates: Sequence[Rate]) -> tuple[int, int]:
    """Places of the lowest and the highest rate, in order; the first two where all are level."""
    values = [rate.rate for rate in rates]
    first, last = sorted((values.index(min(values)), values.index(max(values))))
    return (first, last) if first != last else (0, 1)


def _left_out(count: int, what: str, minimum: int) -> str:
    """What was suppressed, in words."""
    if not count:
        return ""
    return f"{count:,} {what}{'s' if count > 1 else ''} of fewer than {minimum} rows left out"
