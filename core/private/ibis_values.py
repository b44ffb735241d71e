"""Values of an engine's typed columns to cells and clipped numbers, as Ibis expressions.

The expressions say in SQL what :mod:`core.private.coding` says in Python, and lead to the very
same codes and floating-point numbers.  Which value lands in which cell is asked of the coder in
Python for the finite list of public values that matter; the engine only compares.  Floating-point
constants are written as ratios of whole numbers, because engines read decimal constants each in
its own way; what is done with them is IEEE arithmetic, one rounding an operation, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache, reduce
from itertools import product
from operator import or_
from typing import Any, cast

from core.column import Column
from core.kinds import FALSE_WORDS, LABELLED_KINDS, TRUE_WORDS, Kind, OutOfDomain
from core.private.coding import landing_code
from core.private.moments import MAXIMUM_ROWS
from core.private.values import label_codes, numeric_markers, parsed_number

#: More cells than this in one column would make every query unreasonably long.
MOST_CELLS = 1000
#: Whole numbers up to ``10**15`` and their tenths, hundredths … are read alike everywhere.
MOST_DIGITS = 15
#: What :meth:`str.strip` takes off, as characters of a regular expression's class.
BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_EDGES = f"^[{BLANKS}]+|[{BLANKS}]+$"
_EPOCH = date(1970, 1, 1).toordinal()
#: Days to which the reader of files moves those that Python cannot show in every zone.
_FIRST_DAY, _LAST_DAY = date(1, 1, 3), date(9999, 12, 29)
_WHOLE_BITS = 62

#: An Ibis expression; the package has no useful types.
Expression = Any


# -- constants ------------------------------------------------------------------------------


def whole(value: int) -> Expression:
    """A 64-bit whole number."""
    import ibis

    return ibis.literal(int(value), type="int64")


def exact(value: float) -> Expression:
    """A finite floating-point number, every bit of it, without a decimal point.

    A significand of at most 53 bits times or divided by powers of two: each step is exact.
    """
    significand, exponent = math.frexp(value)
    units, exponent = int(significand * 2.0**53), exponent - 53
    while units and units % 2 == 0:
        units, exponent = units // 2, exponent + 1
    number = whole(units).cast("float64")
    while units and exponent:
        step = max(min(exponent, _WHOLE_BITS), -_WHOLE_BITS)
        factor = whole(1 << abs(step)).cast("float64")
        number = number * factor if step > 0 else number / factor
        exponent -= step
    return number


def staged(rows: Any) -> Any:
    """Rows of a subquery that the engine carries out as one.

    PostgreSQL would put a subquery's expressions into every place that uses them, five stages deep;
    a limit that no table reaches keeps it from that.
    """
    return rows.limit(MAXIMUM_ROWS) if rows.get_backend().name == "postgres" else rows


# -- which columns can be served --------------------------------------------------------------


def refuse_column(column: Column, kind: Any) -> None:
    """Refuse a column whose type in the engine cannot be coded exactly as in memory.

    Parameters
    ----------
    column
        The declaration.
    kind
        Ibis data type.

    Raises
    ------
    SchemaError
        Naming the column, its type and the way out.
    """
    if column.size > MOST_CELLS:
        raise column.error(
            f"{column.size} cells are more than {MOST_CELLS}, the most that a database is asked "
            "for; declare fewer"
        )
    if column.kind in LABELLED_KINDS:
        fits = kind.is_string() or kind.is_integer() or kind.is_boolean() or kind.is_floating()
        wanted = "text, whole numbers, floating-point numbers or booleans"
    elif column.kind is Kind.DATE:
        fits = kind.is_date() or (kind.is_timestamp() and kind.timezone is None)
        wanted = "dates, or timestamps without a time zone"
    else:
        tenths = kind.is_decimal() and kind.precision is not None and kind.scale is not None
        fits = (
            kind.is_integer()
            or kind.is_boolean()
            or kind.is_floating()
            or (tenths and 0 <= kind.scale <= kind.precision <= MOST_DIGITS)
        )
        wanted = f"numbers (decimals of at most {MOST_DIGITS} digits) or booleans"
    if not fits:
        raise column.error(
            f"its type in the database is {kind}, and a {column.kind.value} column is read there "
            f"from {wanted} only, because engines convert others each in its own way; convert it "
            "in a view"
        )


# -- cells ------------------------------------------------------------------------------------


def code_of(value: Expression, column: Column, new: Sequence[int] | None = None) -> Expression:
    """Cell of each value, as :func:`core.private.coding.coded_column` gives it.

    Parameters
    ----------
    value
        Expression over one column, of a type that :func:`refuse_column` lets pass.
    new
        New code of every declared code, after a recoding.
    """

    def cell(code: int) -> Expression:
        return whole(code if new is None else int(new[code]))

    missing = cell(landing_code(column))
    if column.kind in LABELLED_KINDS:
        other = cell(cast(int, column.other_code))
        return _label_cell(value, column, cell, other, missing)
    number = axis_number(value, column)
    inner = [exact(edge) for edge in column.axis[1:-1]]
    binned = _bin(number, inner, [cell(code) for code in range(len(inner) + 1)])
    outside = []
    if column.out_of_domain is not OutOfDomain.CLIP:
        low, high = column.bounds
        other = cell(cast(int, column.other_code))
        outside = [((number < exact(low)) | (number > exact(high)), other)]
    import ibis

    return ibis.cases((number.isnull(), missing), *outside, else_=binned)


def _bin(number: Expression, edges: Sequence[Expression], cells: Sequence[Expression]) -> Any:
    """How many edges a number has reached, as a balanced tree of comparisons."""
    if not edges:
        return cells[0]
    import ibis

    middle = len(edges) // 2
    return ibis.ifelse(
        number < edges[middle],
        _bin(number, edges[:middle], cells[: middle + 1]),
        _bin(number, edges[middle + 1 :], cells[middle + 1 :]),
    )


def _label_cell(
    value: Expression, column: Column, cell: Any, other: Expression, missing: Expression
) -> Expression:
    import ibis

    kind = value.type()
    if kind.is_boolean():
        false, true = (
            missing if code < 0 else cell(code) for code in label_codes([False, True], column)
        )
        return ibis.cases((value.isnull(), missing), (value, true), else_=false)
    if kind.is_string():
        candidates = label_texts(column)
        plain = [text for text in candidates if text == text.strip()]
        codes = _cells(candidates, column, cell, missing)
        inner = _looked_up(_stripped(value), plain, _cells(plain, column, cell, missing), other)
        found = _looked_up(value, candidates, codes, inner)
        return ibis.cases((value.isnull(), missing), else_=found)
    values = label_numbers(column, kind)
    codes = _cells(values, column, cell, missing)
    absent = value.isnull()
    if kind.is_floating():
        value = value.cast("float64")
        absent = absent | value.isnan()
    written = [whole(int(number)) if kind.is_integer() else _number(number) for number in values]
    return ibis.cases((absent, missing), else_=_looked_up(value, written, codes, other))


def _number(value: float) -> Expression:
    import ibis

    return exact(value) if math.isfinite(value) else ibis.literal(value, type="float64")


def _cells(values: Sequence[Any], column: Column, cell: Any, missing: Expression) -> list[Any]:
    return [missing if code < 0 else cell(code) for code in label_codes(values, column)]


def _looked_up(
    value: Expression, keys: Sequence[Any], codes: Sequence[Expression], other: Expression
) -> Expression:
    return value.cases(*zip(keys, codes, strict=True), else_=other) if keys else other


def _stripped(value: Expression) -> Expression:
    return value.re_replace(_EDGES, "")


def label_texts(column: Column) -> list[str]:
    """Every text that does not land in the other-cell, but for blanks around it."""
    texts = dict.fromkeys(column.categories)
    texts |= dict.fromkeys(label.strip() for label in column.categories)
    texts |= dict.fromkeys(["", *(marker.strip() for marker in column.missing_markers)])
    if column.kind is Kind.BOOLEAN:
        texts |= dict.fromkeys(truth_texts())
    return list(texts)


@cache
def truth_texts() -> tuple[str, ...]:
    """Every text that casefolds to a word for true or false.

    >>> "Yes" in truth_texts(), "ye\u017f" in truth_texts(), "\ufb00" in truth_texts()
    (True, True, False)
    """
    writings: dict[str, list[str]] = {}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000 and (folded := chr(code).casefold()).isascii():
            writings.setdefault(folded, []).append(chr(code))
    found: dict[str, None] = {}
    for word in sorted(TRUE_WORDS | FALSE_WORDS):
        for parts in _cut(word, frozenset(writings)):
            found |= dict.fromkeys(map("".join, product(*(writings[part] for part in parts))))
    return tuple(found)


def _cut(word: str, parts: frozenset[str]) -> Iterable[tuple[str, ...]]:
    """Every way of cutting a word into these parts."""
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        if word[:end] in parts:
            yield from ((word[:end], *rest) for rest in _cut(word[end:], parts))


def label_numbers(column: Column, kind: Any) -> list[float]:
    """Every number of a type that does not land in the other-cell."""
    found: dict[float, None] = {}
    for text in label_texts(column):
        number = parsed_number(text.strip())
        if number is None or math.isnan(number):
            continue
        if not kind.is_integer():
            found[number + 0.0] = None
            continue
        try:
            units = int(text.strip().partition(".")[0])
        except ValueError:
            continue
        if kind.bounds.lower <= units <= min(kind.bounds.upper, 2**63 - 1):
            found[units] = None
    return list(found)


# -- numbers ----------------------------------------------------------------------------------


def axis_number(value: Expression, column: Column) -> Expression:
    """Unclipped number (day ordinal) of each value; null where it is missing."""
    kind = value.type()
    if column.kind is Kind.DATE:
        return _ordinal(value, kind).cast("float64")
    if kind.is_boolean():
        value = value.cast("int64")
    number = value.cast("float64")
    missing = [number == _number(marker) for marker in numeric_markers(column)]
    if kind.is_floating():
        missing.insert(0, number.isnan())
    return reduce(or_, missing).ifelse(_nothing(), number) if missing else number


def _nothing() -> Expression:
    import ibis

    return ibis.null("float64")


def _ordinal(value: Expression, kind: Any) -> Expression:
    """Day ordinal, within the days that the reader of files can show."""
    import ibis

    day = value.date() if kind.is_timestamp() else value
    first, last = ibis.literal(_FIRST_DAY), ibis.literal(_LAST_DAY)
    day = ibis.cases((day < first, first), (day > last, last), else_=day)
    return day.epoch_days().cast("int64") + whole(_EPOCH)


def clipped_number(value: Expression, column: Column) -> Expression:
    """The number that moments are taken of; null where the coded table holds none."""
    import ibis

    low, high = column.bounds
    number = axis_number(value, column)
    constant = (
        _nothing()
        if column.missing_constant is None
        else exact(column.to_axis(column.missing_constant, "missing_constant"))
    )
    clip = column.out_of_domain is OutOfDomain.CLIP
    return ibis.cases(
        (number.isnull(), constant),
        (number < exact(low), exact(low) if clip else _nothing()),
        (number > exact(high), exact(high) if clip else _nothing()),
        else_=number,
    )
