"""Exact integer moments as Ibis expressions: the sums of :mod:`core.private.moments` in SQL.

Rows become whole numbers on the grid inside the engine, by the same operations in the same order
as in memory; products and sums of these are 64-bit whole numbers, below 2**53 in all.  A stage a
subquery, so that no expression grows with the number of times that it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add, and_, mul, or_
from typing import Any

from core.moments import SUMMAND_BITS, Indicator, MomentFrame, MomentRequest, Scale
from core.private.ibis_values import Expression, clipped_number, code_of, exact, staged, whole
from core.private.moments import norm_grid
from core.schema import Schema

#: An Ibis table; the package has no useful types.
Table = Any


def moment_sums(table: Table, schema: Schema, request: MomentRequest) -> tuple[Table, list[Any]]:
    """Rows, and one expression over them a monomial, whose sums are the exact moments."""
    if not request.frame.plain:
        return _feature_sums(table, schema, request)
    rows = grid_rows(_numbers(table, schema, request.frame), request.frame, request.grid)
    place = request.frame.places
    products = [
        reduce(mul, (rows[f"u{place[name]}"] for name in names)) for names in request.monomials
    ]
    return rows, products


def gram_sums(table: Table, schema: Schema, frame: MomentFrame) -> tuple[Table, list[Any]]:
    """Rows, and one product of columns an entry of the upper triangle, row by row."""
    rows = grid_rows(_numbers(table, schema, frame), frame, 1 << (SUMMAND_BITS // 2))
    size = len(frame.columns)
    return rows, [rows[f"u{j}"] * rows[f"u{k}"] for j in range(size) for k in range(j, size)]


def excess_sums(
    table: Table, schema: Schema, frame: MomentFrame, radii: Sequence[int]
) -> tuple[Table, list[Any]]:
    """Rows, and the excess of the squared norm over each squared radius."""
    size = len(frame.columns)
    grid = norm_grid(size)
    rows = grid_rows(_numbers(table, schema, frame), frame, grid)
    rows = staged(rows.select(norm=_norm(rows, "u", size)))
    largest = size * grid * grid
    return rows, [
        (rows.norm > whole(min(radius, largest))).ifelse(
            rows.norm - whole(min(radius, largest)), whole(0)
        )
        for radius in radii
    ]


def _numbers(table: Table, schema: Schema, frame: MomentFrame, **also: Expression) -> Table:
    """Clipped numbers ``n0``, ``n1``, … of the frame's columns; null where there is none."""
    numbers = {
        f"n{index}": clipped_number(table[name], schema[name])
        for index, name in enumerate(frame.columns)
    }
    return staged(table.select(**numbers, **also))


def grid_rows(numbers: Table, frame: MomentFrame, grid: int) -> Table:
    """Rows as whole numbers ``u0``, ``u1``, … within ``[-grid, grid]``.

    Parameters
    ----------
    numbers
        Columns ``n0``, ``n1``, … in the frame's order.
    """
    size = len(frame.columns)
    rows = _centred(numbers, frame)
    lacking = reduce(or_, (rows[f"d{j}"].isnull() for j in range(size)))
    units = {}
    for index, (_, scale) in enumerate(frame.scales):
        cut = _scaled(rows[f"d{index}"], scale, whole(grid), exact(float(grid)))
        units[f"u{index}"] = lacking.ifelse(whole(0), cut) if frame.whole_rows else cut
    rows = staged(rows.select(**units))
    if frame.clip_squared is None:
        return rows
    bound = int(frame.clip_squared * grid * grid)
    return rows if bound >= size * grid * grid else _clipped(rows, size, bound)


def _centred(numbers: Table, frame: MomentFrame, *also: str) -> Table:
    """The numbers less their centres, ``d0``, ``d1``, …, and other columns as they are."""
    centred = {
        f"d{index}": numbers[f"n{index}"] - exact(scale.centre)
        for index, (_, scale) in enumerate(frame.scales)
    }
    return staged(numbers.select(*also, **centred))


def _scaled(
    centred: Expression, scale: Scale, most: Expression, factor: Expression | None
) -> Expression:
    """``centred / half_width`` within [-1, 1], times a factor and cut; missing becomes 0.

    Beyond the half-width nothing is divided, so that no engine can complain of an overflow.
    """
    import ibis

    inside = centred / exact(scale.half_width)
    return ibis.cases(
        (centred.isnull(), most - most),
        (centred >= exact(scale.half_width), most),
        (centred <= exact(-scale.half_width), -most),
        else_=inside if factor is None else cut(inside * factor),
    )


def cut(number: Expression) -> Expression:
    """A floating-point number cut to a whole one, towards zero."""
    return (number < exact(0.0)).ifelse(number.ceil().cast("int64"), number.floor().cast("int64"))


def _norm(rows: Table, letter: str, size: int) -> Expression:
    return reduce(add, (rows[f"{letter}{j}"] * rows[f"{letter}{j}"] for j in range(size)))


def _clipped(rows: Table, size: int, bound: int) -> Table:
    """Rows shrunk as :func:`core.private.moments.clip_rows` does, on the same whole numbers."""
    import ibis

    units = {f"u{j}": rows[f"u{j}"] for j in range(size)}
    rows = staged(rows.select(norm=_norm(rows, "u", size), **units))
    over = rows.norm > whole(bound)
    norm = over.ifelse(rows.norm, whole(bound + 1)).cast("float64")  # never 0
    shrink = (exact(float(bound)) / norm).sqrt()
    rows = staged(rows.select("norm", *units, shrink=shrink))
    over = rows.norm > whole(bound)
    shrunk = {
        f"r{j}": over.ifelse(cut(rows[f"u{j}"].cast("float64") * rows.shrink), rows[f"u{j}"])
        for j in range(size)
    }
    rows = staged(rows.select(**shrunk))
    rows = staged(rows.select(*shrunk, norm=_norm(rows, "r", size)))
    outside = rows.norm > whole(bound)
    kept = {}
    for j in range(size):
        unit = rows[f"r{j}"]
        sign = ibis.cases((unit > whole(0), whole(1)), (unit < whole(0), whole(-1)), else_=whole(0))
        kept[f"u{j}"] = outside.ifelse(unit - sign, unit)
    return staged(rows.select(**kept))


# -- features ---------------------------------------------------------------------------------


def _feature_sums(
    table: Table, schema: Schema, request: MomentRequest
) -> tuple[Table, list[Expression]]:
    """As :func:`core.private.features.feature_moments`: floating-point products, then cut."""
    frame = request.frame
    coded = sorted({cell.column for _, cell in frame.indicators})
    codes = {f"c{j}": code_of(table[name], schema[name]) for j, name in enumerate(coded)}
    rows = _centred(_numbers(table, schema, frame, **codes), frame, *codes)
    conditions = list(_counted(rows, schema, frame, coded))
    counted = reduce(and_, conditions) if conditions else None
    features = {
        f"v{j}": _scaled(rows[f"d{j}"], scale, exact(1.0), None)
        for j, (_, scale) in enumerate(frame.scales)
    }
    flag = whole(1) if counted is None else counted.ifelse(whole(1), whole(0))
    rows = staged(rows.select(*codes, **features, counted=flag))
    places = {name: rows[f"c{j}"] for j, name in enumerate(coded)}
    return rows, [_product(rows, places, request, names) for names in request.monomials]


def _counted(
    rows: Table, schema: Schema, frame: MomentFrame, coded: Sequence[str]
) -> Iterator[Expression]:
    """What must hold of a row that counts; nothing where the declarations let no row be missing."""
    if not frame.may_miss(schema):
        return
    for index in range(len(frame.columns)):
        yield rows[f"d{index}"].notnull()
    for index, name in enumerate(coded):
        for code in frame.absent_codes(schema[name]):
            yield rows[f"c{index}"] != whole(code)


def _product(
    rows: Table,
    codes: dict[str, Expression],
    request: MomentRequest,
    names: Sequence[str],
) -> Expression:
    cells: dict[str, Indicator] = request.frame.cells
    place = request.frame.places
    within = [rows.counted == whole(1)]
    within += [
        codes[cells[name].column] == whole(cells[name].code) for name in names if name in cells
    ]
    factors = [rows[f"v{place[name]}"] for name in names if name not in cells]
    unit = whole(request.whole)
    value = cut(reduce(mul, factors) * exact(float(request.whole))) if factors else unit
    return reduce(and_, within).ifelse(value, whole(0))
