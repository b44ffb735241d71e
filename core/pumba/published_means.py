"""Published sums as bounded means and differences of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import StatisticError
from core.pumba.analyses import DifferenceAnalysis, Facts, MeanAnalysis
from core.pumba.means import BoundedMean
from core.pumba.published_rows import (
    PublishedRow,
    bounds_of,
    only,
    refuse_repetition,
    total_of,
    weighted,
)

_OF_A_MEAN = ("n", "sum", "sum_squares", "sum_fourth")


def build_mean(rows: Sequence[PublishedRow], label: str) -> MeanAnalysis:
    """A bounded mean from n, sum and, where published, the sums of squares and fourth powers."""
    for row in rows:
        row.leave_empty("category")
    mean = _bounded_mean(rows, rows, label)
    facts = Facts(clipped=((mean.name, mean.lower, mean.upper),), weighted=weighted(rows))
    return MeanAnalysis(rows[0].analysis, mean, facts)


def build_difference(rows: Sequence[PublishedRow], label: str) -> DifferenceAnalysis:
    """Two groups, told apart by the field category."""
    for row in rows:
        row.require("category")
    groups: dict[str, list[PublishedRow]] = {}
    for row in rows:
        groups.setdefault(str(row.category), []).append(row)
    if len(groups) != 2:
        raise StatisticError(
            f"{label}: a difference has two groups, told apart by the field category; found "
            f"{len(groups)}"
        )
    first, second = (
        _bounded_mean(part, rows, f"{label}, category {category!r}", category)
        for category, part in groups.items()
    )
    for statistic, present in (
        ("sum_squares", [one.squares is not None for one in (first, second)]),
        ("sum_fourth", [one.quartics is not None for one in (first, second)]),
    ):
        if any(present) and not all(present):
            without = list(groups)[present.index(False)]
            raise StatisticError(
                f"{label}: {statistic} of category {without!r} is missing; add its row, or leave "
                "it out for both groups"
            )
    column = next(str(row.column) for row in rows if row.column is not None)
    facts = Facts(clipped=((column, first.lower, first.upper),), weighted=weighted(rows))
    return DifferenceAnalysis(rows[0].analysis, first, second, facts)


def _bounded_mean(
    rows: Sequence[PublishedRow],
    bounding: Sequence[PublishedRow],
    label: str,
    group: str | None = None,
) -> BoundedMean:
    only(rows, "mean", _OF_A_MEAN)
    found: dict[str, PublishedRow] = {}
    for row in rows:
        if row.statistic != "n":
            row.require("column")
        row.leave_empty("column_2", "category_2", "power", "power_2", "role")
        refuse_repetition(row, found.get(row.statistic))
        found[row.statistic] = row
    for needed in ("n", "sum"):
        if needed not in found:
            raise StatisticError(f"{label}: {needed} is missing; add its row")
    columns = {row.column for row in bounding if row.column is not None and row.statistic != "n"}
    if len(columns) != 1:
        raise found["sum"].fault("column", f"one column is summed, not {len(columns)}")
    name = str(found["sum"].column)
    lower, upper = bounds_of(name, bounding, label)
    count = total_of(rows, label)
    if count is None:  # n was found above
        raise StatisticError(f"{label}: n is missing; add its row")
    if isinstance(count, int):
        _check_power_sums(found, lower, upper, count)
    squares, quartics = found.get("sum_squares"), found.get("sum_fourth")
    if quartics is not None and squares is None:
        raise quartics.fault("statistic", "sum_fourth is of use only beside sum_squares")
    return BoundedMean(
        name=name if group is None else f"{name} ({group})",
        lower=lower,
        upper=upper,
        count=count,
        total=found["sum"].noisy,
        squares=None if squares is None else squares.noisy,
        quartics=None if quartics is None else quartics.noisy,
    )


def _check_power_sums(
    found: Mapping[str, PublishedRow], lower: float, upper: float, count: int
) -> None:
    for statistic, power in (("sum", 1), ("sum_squares", 2), ("sum_fourth", 4)):
        row = found.get(statistic)
        if row is None:
            continue
        ends = (lower**power, upper**power)
        least = 0.0 if power > 1 and lower < 0 < upper else min(ends)
        row.check_range(
            count * least, count * max(ends), f"n = {count:,} rows from {lower:g} to {upper:g}"
        )
