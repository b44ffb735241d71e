"""Published sums, squares and products as one noisy Gram matrix."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from core.errors import StatisticError
from core.pumba.analyses import Facts
from core.pumba.gram import GramVariable, NoisyGram
from core.pumba.published_rows import (
    PublishedRow,
    bounds_of,
    refuse_repetition,
    total_of,
    weighted,
)
from core.statistics import Family

Monomial = tuple[str, ...]


def build_gram(rows: Sequence[PublishedRow], label: str) -> tuple[NoisyGram, Facts]:
    """The Gram matrix of all columns that the rows name, in order of appearance.

    Raises
    ------
    StatisticError
        Naming line and field, or the statistic that is missing.
    """
    variables = _variables(rows, label)
    names = {variable.name: index for index, variable in enumerate(variables)}
    count = total_of(rows, label)
    released: dict[Monomial, list[PublishedRow]] = {}
    for row in rows:
        if row.statistic == "n":
            continue
        monomial = tuple(sorted(_monomial(row), key=names.__getitem__))
        _refuse_redundant(row, monomial, {one.name: one for one in variables})
        for before in released.get(monomial, []):
            _refuse_second(row, before)
        released.setdefault(monomial, []).append(row)
    if count is None:
        raise StatisticError(f"{label}: n is missing; add its row")
    _require(variables, released, label)
    if isinstance(count, int):
        _check_ranges(variables, released, count)
    pooled = {
        key: found[0].noisy if len(found) == 1 else tuple(row.noisy for row in found)
        for key, found in released.items()
    }
    gram = NoisyGram(
        variables=variables,
        count=count,
        sums={key[0]: value for key, value in pooled.items() if len(key) == 1},
        products={(key[0], key[1]): value for key, value in pooled.items() if len(key) == 2},
        fourth={key: value for key, value in pooled.items() if len(key) > 2},
    )
    facts = Facts(
        clipped=tuple((one.name, one.lower, one.upper) for one in variables if not one.indicator),
        repeated=tuple(
            f"the sum of {' × '.join(key)}" for key, found in released.items() if len(found) > 1
        ),
        weighted=weighted(rows),
    )
    return gram, facts


def _variables(rows: Sequence[PublishedRow], label: str) -> tuple[GramVariable, ...]:
    """Columns with bounds, and indicators: a category of a column, named column=category."""
    seen: dict[str, tuple[str, bool]] = {}
    for row in rows:
        for column, name in ((row.column, row.variable()), (row.column_2, row.variable_2())):
            if column is not None and name is not None:
                seen.setdefault(name, (column, name != column))
    if len(seen) < 2:
        raise StatisticError(f"{label}: at least two columns are needed")
    whole = {column for column, indicator in seen.values() if not indicator}
    parts = [column for column, indicator in seen.values() if indicator]
    for column in parts:
        if column in whole:
            raise StatisticError(
                f"{label}: column {column!r} is used as a number and by its categories; keep one"
            )
    variables = []
    for name, (column, indicator) in seen.items():
        if indicator:
            group = column if parts.count(column) > 1 else None
            variables.append(GramVariable(name, 0.0, 1.0, indicator=True, exclusive=group))
        else:
            variables.append(GramVariable(name, *bounds_of(name, rows, label)))
    return tuple(variables)


def _monomial(row: PublishedRow) -> Monomial:
    """The names whose product was summed, with repeats."""
    first, second = row.variable(), row.variable_2()
    row.require("column")
    if row.category is None and row.statistic == "count":
        raise row.fault("category", "a count belongs to a category of its column; use sum")
    if row.statistic != "moment":
        row.leave_empty("power", "power_2")
    if row.statistic in ("sum", "sum_squares", "sum_fourth"):
        row.leave_empty("column_2", "category_2")
        return (str(first),) * {"sum": 1, "sum_squares": 2, "sum_fourth": 4}[row.statistic]
    if row.statistic == "count":
        if second is not None and second == row.column_2:
            raise row.fault("category_2", "a count of two columns needs both categories")
        return (str(first),) if second is None else (str(first), second)
    row.require("column_2")
    if first == second:
        raise row.fault("column_2", "must be another column; a column's own is sum_squares")
    if row.statistic == "sum_product":
        return (str(first), str(second))
    row.require("power", "power_2")
    monomial = (str(first),) * (row.power or 0) + (str(second),) * (row.power_2 or 0)
    if len(monomial) not in (3, 4):
        raise row.fault("power", "powers of a moment add up to 3 or 4; lower ones have names")
    return monomial


def _refuse_redundant(
    row: PublishedRow, monomial: Monomial, variables: Mapping[str, GramVariable]
) -> None:
    """Sums that an indicator fixes already."""
    if len(monomial) != 2:
        return
    one, other = (variables[name] for name in monomial)
    if one is other and one.indicator:
        raise row.fault(
            "statistic",
            f"the square of the indicator {one.name!r} is the indicator itself; its count is "
            "enough, so remove this row",
        )
    if one is not other and one.exclusive is not None and one.exclusive == other.exclusive:
        raise row.fault(
            "column_2",
            f"{one.name!r} and {other.name!r} exclude one another, so this sum is 0 in every "
            "table; remove this row",
        )


def _refuse_second(row: PublishedRow, before: PublishedRow) -> None:
    """A second release is welcome only under another name, and only with Gaussian noise."""
    if row.release == before.release:
        refuse_repetition(row, before)
    if any(one.noisy.law.family is not Family.GAUSSIAN for one in (row, before)):
        raise row.fault(
            "release",
            "several releases of one sum are combined for the Gaussian family only; keep the one "
            "with the least noise",
        )


def _require(
    variables: Sequence[GramVariable],
    released: Mapping[Monomial, Sequence[PublishedRow]],
    label: str,
) -> None:
    """Refuse a matrix with holes, naming the first missing row."""
    for variable in variables:
        name = variable.name
        if (name,) not in released:
            what = "count" if variable.indicator else "sum"
            raise StatisticError(f"{label}: the {what} of {name!r} is missing; add its row")
        if not variable.indicator and (name, name) not in released:
            raise StatisticError(f"{label}: sum_squares of {name!r} is missing; add its row")
    for one, other in itertools.combinations(variables, 2):
        apart = one.exclusive is not None and one.exclusive == other.exclusive
        if not apart and (one.name, other.name) not in released:
            raise StatisticError(
                f"{label}: sum_product of {one.name!r} and {other.name!r} is missing; add its row"
            )
    higher = {key for key in released if len(key) > 2}
    if not higher:
        return
    names = [variable.name for variable in variables]
    if len(names) != 2:
        raise released[min(higher)][0].fault(
            "statistic", "sums of degree 3 and 4 are used for one outcome and one predictor only"
        )
    for degree in (3, 4):
        for key in itertools.combinations_with_replacement(names, degree):
            if key not in higher:
                raise StatisticError(
                    f"{label}: the moment {' × '.join(key)} is missing; with one sum of degree 3 "
                    "or 4 all of them are needed"
                )


def _check_ranges(
    variables: Sequence[GramVariable],
    released: Mapping[Monomial, Sequence[PublishedRow]],
    count: int,
) -> None:
    """Refuse sums that no rows within the bounds can have, by far."""
    ends = {variable.name: (variable.lower, variable.upper) for variable in variables}
    for key, rows in released.items():
        low, high = 1.0, 1.0
        for name in dict.fromkeys(key):
            power = key.count(name)
            corners = [end**power for end in ends[name]]
            least = 0.0 if power % 2 == 0 and ends[name][0] < 0 < ends[name][1] else min(corners)
            products = [a * b for a in (low, high) for b in (least, max(corners))]
            low, high = min(products), max(products)
        for row in rows:
            row.check_range(count * low, count * high, f"n = {count:,} rows within the bounds")
