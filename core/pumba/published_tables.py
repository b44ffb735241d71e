"""Published counts as noisy tables: one- and two-way, with margins, and histograms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from core.errors import StatisticError
from core.pumba.analyses import Facts, TableAnalysis
from core.pumba.published_rows import (
    IMPOSSIBLE,
    PublishedRow,
    only,
    refuse_repetition,
    total_of,
    weighted,
)
from core.pumba.tables import NoisyTable, TableQuery
from core.statistics import NoisyStatistic

Axes = tuple[tuple[str, tuple[str, ...]], ...]

_DERIVED = (
    "equals the sum of the other rows, noise included, so it was computed from them (or they were "
    "made consistent with it) and carries no noise of its own; leave it out, or enter the noisy "
    "measurements from before the adjustment"
)


def build_table(rows: Sequence[PublishedRow], label: str) -> TableAnalysis:
    """A one- or two-way table: all cells, and any margins and total beside them."""
    only(rows, "table", ("n", "count"))
    counts = [row for row in rows if row.statistic == "count"]
    if not counts:
        raise StatisticError(f"{label}: a table needs its counts, one row a category")
    for row in counts:
        row.require("column", "category")
        row.leave_empty("power", "power_2", "lower", "upper", "role")
        if (row.column_2 is None) != (row.category_2 is None):
            missing = "column_2" if row.column_2 is None else "category_2"
            raise row.fault(missing, "a second column and its category come together")
    names = _axis_names(counts)
    places = [_place(row, names) for row in counts]
    axes = tuple(
        (name, tuple(dict.fromkeys(place[name] for place in places if name in place)))
        for name in names
    )
    total = total_of(rows, label)
    cells, queries, repeated = _cells(counts, places, axes, label)
    for name, labels in axes:
        if len(labels) < 2:
            raise StatisticError(
                f"{label}: column {name!r} has one category only; a table needs the counts of all "
                "its categories, at least two"
            )
    _check_consistency(cells, queries, total, axes, label)
    if isinstance(total, int):
        _check_total(counts, cells, total, label)
    table = NoisyTable(axes, tuple(cells), total, tuple(query for _, query in queries), None)
    facts = Facts(repeated=tuple(repeated), weighted=weighted(rows))
    return TableAnalysis(rows[0].analysis, table, facts=facts)


def _axis_names(counts: Sequence[PublishedRow]) -> tuple[str, ...]:
    """One or two columns, in the order of the first row that names them all."""
    first = next((row for row in counts if row.column_2 is not None), counts[0])
    names = tuple(name for name in (first.column, first.column_2) if name is not None)
    if len(set(names)) != len(names):
        raise first.fault("column_2", "must be another column than the first one")
    for row in counts:
        for field in ("column", "column_2"):
            name = getattr(row, field)
            if name is not None and name not in names:
                raise row.fault(
                    field, f"{name!r} is not among this table's columns: {', '.join(names)}"
                )
    return names


def _place(row: PublishedRow, names: tuple[str, ...]) -> dict[str, str]:
    """Category by column; a margin names one column only."""
    place = {str(row.column): str(row.category)}
    if row.column_2 is not None:
        if row.column_2 == row.column:
            raise row.fault("column_2", "must be another column than the first one")
        place[row.column_2] = str(row.category_2)
    return {name: place[name] for name in names if name in place}


def _cells(
    counts: Sequence[PublishedRow],
    places: Sequence[dict[str, str]],
    axes: Axes,
    label: str,
) -> tuple[list[NoisyStatistic], list[tuple[PublishedRow, TableQuery]], list[str]]:
    """Cells in C order; margins and further releases of a cell as queries of the table."""
    cells: dict[tuple[str, ...], NoisyStatistic] = {}
    queries: list[tuple[PublishedRow, TableQuery]] = []
    repeated: list[str] = []
    seen: dict[tuple[tuple[tuple[str, str], ...], str | None], PublishedRow] = {}
    described: set[tuple[tuple[str, str], ...]] = set()
    for row, place in zip(counts, places, strict=True):
        named = tuple(place.items())
        refuse_repetition(row, seen.get((named, row.release)))
        seen[named, row.release] = row
        words = ", ".join(f"{name} = {category}" for name, category in named)
        if named in described:
            repeated.append(f"the count of {words}")
        key = tuple(place.values())
        if len(place) == len(axes) and key not in cells:
            cells[key] = row.noisy
        else:
            queries.append((row, TableQuery(_weights(place, axes), row.noisy)))
        described.add(named)
    wanted = list(itertools.product(*(labels for _, labels in axes)))
    for key in wanted:
        if key not in cells:
            words = ", ".join(
                f"{name} = {category}" for (name, _), category in zip(axes, key, strict=True)
            )
            raise StatisticError(f"{label}: the count of {words} is missing; add its row")
    return [cells[key] for key in wanted], queries, list(dict.fromkeys(repeated))


def _weights(place: Mapping[str, str], axes: Axes) -> tuple[float, ...]:
    """1 for each cell (C order) that a margin or cell covers."""
    masks = [
        np.array([place.get(name, category) == category for category in labels], dtype=float)
        for name, labels in axes
    ]
    weights = masks[0] if len(masks) == 1 else np.outer(masks[0], masks[1]).ravel()
    return tuple(float(weight) for weight in weights)


def _check_consistency(
    cells: Sequence[NoisyStatistic],
    queries: Sequence[tuple[PublishedRow, TableQuery]],
    total: int | NoisyStatistic | None,
    axes: Axes,
    label: str,
) -> None:
    """Refuse margins and totals that are the sums of the cells, noise included.

    Noise of their own makes that impossible for continuous families, and for several values of a
    discrete one as good as impossible.
    """
    values = np.array([cell.value for cell in cells])
    margins = [
        (row, query) for row, query in queries if sum(weight > 0 for weight in query.weights) > 1
    ]
    equal = [
        (row, query.statistic)
        for row, query in margins
        if _same(float(np.dot(query.weights, values)), query.statistic.value)
    ]
    for row, statistic in equal:
        if not statistic.law.family.discrete or (len(equal) == len(margins) and len(equal) >= 3):
            raise row.fault("value", _DERIVED)
    continuous = isinstance(total, NoisyStatistic) and not total.law.family.discrete
    if continuous and _same(float(values.sum()), total.value):  # type: ignore[union-attr]
        raise StatisticError(f"{label}: n {_DERIVED}")
    noisy = not all(cell.law.family.discrete for cell in cells)
    if isinstance(total, int) and noisy and _same(float(values.sum()), float(total)):
        raise StatisticError(
            f"{label}: the counts add up to the exact n, so they were adjusted to it; enter the "
            "noisy measurements from before the adjustment"
        )


def _check_total(
    counts: Sequence[PublishedRow], cells: Sequence[NoisyStatistic], total: int, label: str
) -> None:
    """Refuse counts that no table of so many rows can have, by far."""
    for row in counts:
        row.check_range(0.0, float(total), f"n = {total:,}")
    spread = math.sqrt(sum(cell.law.sd**2 for cell in cells))
    added = math.fsum(cell.value for cell in cells)
    if abs(added - total) > IMPOSSIBLE * spread:
        raise StatisticError(
            f"{label}: the counts add up to {added:,.10g}, which noise of the stated scales cannot "
            f"have made of n = {total:,}; check scales, or add the missing categories"
        )


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-9)


def build_histogram(rows: Sequence[PublishedRow], label: str) -> TableAnalysis:
    """Counts of neighbouring bins of one numeric column."""
    only(rows, "histogram", ("n", "count"))
    counts = [row for row in rows if row.statistic == "count"]
    for row in counts:
        row.require("column", "lower", "upper")
        row.leave_empty("category", "column_2", "category_2", "power", "power_2", "role")
        if row.column != counts[0].column:
            raise row.fault("column", "a histogram has one column")
    if len(counts) < 2:
        raise StatisticError(f"{label}: a histogram needs the counts of at least two bins")
    ordered = sorted(counts, key=lambda row: row.lower or 0.0)
    for before, row in itertools.pairwise(ordered):
        if before.lower == row.lower:
            refuse_repetition(row, before)
        if before.upper != row.lower:
            raise row.fault(
                "lower",
                f"bins must follow one another; the bin before ends at {before.upper:g}",
            )
    edges = (*(float(row.lower or 0.0) for row in ordered), float(ordered[-1].upper or 0.0))
    labels = tuple(f"{low:,.10g} to {high:,.10g}" for low, high in itertools.pairwise(edges))
    total = total_of(rows, label)
    cells = [row.noisy for row in ordered]
    axes = ((str(counts[0].column), labels),)
    _check_consistency(cells, (), total, axes, label)
    if isinstance(total, int):
        _check_total(counts, cells, total, label)
    table = NoisyTable(axes, tuple(cells), total, (), None)
    facts = Facts(clipped=((str(counts[0].column), edges[0], edges[-1]),), weighted=weighted(rows))
    return TableAnalysis(rows[0].analysis, table, edges=edges, facts=facts)
