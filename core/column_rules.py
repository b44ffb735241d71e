"""What makes a column's declaration valid, and the one form in which its settings are kept.

Called once, when a :class:`core.column.Column` is made.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from core.axis import (
    DATE_DIRECTIVES,
    DATE_UNITS,
    day_text,
    decimal_grid,
    names_every_day,
    text_day,
    unknown_directive,
)
from core.errors import SchemaError
from core.kinds import (
    LABELLED_KINDS,
    MAXIMUM_CELLS,
    MAXIMUM_DECIMALS,
    NUMERIC_KINDS,
    Kind,
    Missing,
    OutOfDomain,
)

if TYPE_CHECKING:
    from core.column import Column

# -- one form ------------------------------------------------------------------------------


def normalised(column: Column) -> dict[str, Any]:
    """Settings in the one form that compares, hashes and serialises alike.

    Raises
    ------
    SchemaError
        If a setting is of the wrong type.
    """
    if not isinstance(column.name, str) or not column.name:
        raise SchemaError("a column needs a name; give every column one")
    plain: dict[str, Any] = {}
    for name, enum in (("kind", Kind), ("missing", Missing), ("out_of_domain", OutOfDomain)):
        value = getattr(column, name)
        if value is None and name == "out_of_domain":
            value = OutOfDomain.OTHER if plain["kind"] in LABELLED_KINDS else OutOfDomain.CLIP
        try:
            plain[name] = enum(value)
        except ValueError as error:
            allowed = ", ".join(member.value for member in enum)
            raise column.error(f"{name} must be one of {allowed}") from error
    for name in ("categories", "edges", "missing_markers"):
        value = getattr(column, name)
        if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
            raise column.error(f"{name} must be a list")
        plain[name] = tuple(value)
    _check_texts(column, plain)
    # Blank texts are always missing, so no markers and the blank marker say the same.
    markers = dict.fromkeys(marker.strip() for marker in plain["missing_markers"])
    plain["missing_markers"] = tuple(markers) or ("",)
    plain["date_format"] = column.date_format or None
    kind = plain["kind"]
    for name, limits in (("bins", (1, MAXIMUM_CELLS)), ("decimals", (0, MAXIMUM_DECIMALS))):
        plain[name] = _whole(column, name, *limits)
    for name in ("lower", "upper", "missing_constant"):
        plain[name] = _value(column, kind, name, getattr(column, name))
    plain["edges"] = tuple(_value(column, kind, "edges", edge) for edge in plain["edges"])
    if not isinstance(column.data_dependent, bool):
        raise column.error("data_dependent must be true or false")
    if column.unit not in DATE_UNITS:
        raise column.error(f"unit must be one of {', '.join(DATE_UNITS)}")
    return plain


def _check_texts(column: Column, plain: Mapping[str, Any]) -> None:
    for name in ("name", "unit", "missing_label", "other_label", "reason"):
        _check_text(column, name, getattr(column, name))
    for name in ("missing_label", "other_label"):
        if not getattr(column, name).strip():
            raise column.error(f"{name} must not be blank")
    for name in ("categories", "missing_markers"):
        for text in plain[name]:
            _check_text(column, f"every entry of {name}", text)
    if column.date_format is not None:
        _check_text(column, "date_format", column.date_format)


def _check_text(column: Column, what: str, text: object) -> None:
    if not isinstance(text, str):
        raise column.error(f"{what} must be a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise column.error(f"{what} holds half a character (a lone surrogate)") from error
    if "\0" in text:
        raise column.error(f"{what} must not hold a NUL character")


def _whole(column: Column, what: str, least: int, most: int) -> int | None:
    value: Any = getattr(column, what)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise column.error(f"{what} must be a whole number between {least} and {most}")
    return value


def _value(column: Column, kind: Kind, what: str, value: Any) -> float | str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal | Fraction):
        value = float(value)
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        value = value.isoformat()
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise column.error(f"{what} must be a number or a text")
    if isinstance(value, float) and not math.isfinite(value):
        raise column.error(f"{what} must be finite")
    if isinstance(value, str):
        _check_text(column, what, value)
    if kind in NUMERIC_KINDS:
        number = to_axis(column, kind, value, what)
        return int(number) if kind is Kind.INTEGER else number + 0.0  # no minus zero
    if kind is Kind.DATE:
        return day_text(int(to_axis(column, kind, value, what)), None)
    return str(value)


def to_axis(column: Column, kind: Kind, value: float | str | None, what: str) -> float:
    """A declared bound, edge or constant as a number (dates: proleptic day ordinal).

    Raises
    ------
    SchemaError
        If it is absent, not of the column's kind, infinite, or beyond 2**53.
    """
    if value is None:
        raise column.error(f"declare {what}")
    if kind is Kind.DATE:
        try:
            return float(date.fromisoformat(str(value)).toordinal())
        except ValueError as error:
            raise column.error(f"{what} must be an ISO date such as 2024-01-31") from error
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError) as error:
        raise column.error(f"{what} must be a number") from error
    if not math.isfinite(number):
        raise column.error(f"{what} must be finite")
    if kind is Kind.INTEGER and number != math.floor(number):
        raise column.error(f"{what} must be a whole number")
    if abs(number) > 2.0**53:
        raise column.error(f"{what} is beyond exact arithmetic (2**53)")
    return number


# -- validity ------------------------------------------------------------------------------


def validate(column: Column) -> None:
    """Refuse contradictions within a normalised declaration.

    Raises
    ------
    SchemaError
        Naming the column, the setting and the way out.
    """
    if not column.is_modelled:
        return
    if (column.missing is Missing.CONSTANT) != (column.missing_constant is not None):
        raise column.error("missing = constant and missing_constant go together; set both or none")
    if column.kind in LABELLED_KINDS:
        _validate_labels(column)
        _validate_texts_apart(column)
    else:
        _validate_axis(column)
        _validate_decimals(column)
        _validate_date_format(column)
        _validate_markers_outside(column)
    _validate_cells(column)


def _validate_labels(column: Column) -> None:
    may_be_empty = (
        column.kind is Kind.CATEGORICAL
        and column.missing is Missing.CATEGORY
        and column.other_label == column.missing_label
    )
    if not column.categories and not may_be_empty:
        raise column.error("declare its categories")
    if len(set(column.categories)) != len(column.categories):
        raise column.error("a category is listed twice; keep one")
    if column.kind is Kind.BOOLEAN and len(column.categories) != 2:
        raise column.error("a boolean has exactly two categories")
    if column.out_of_domain is OutOfDomain.CLIP:
        raise column.error(
            "labels cannot be clipped; use out_of_domain = other and let other_label name a "
            "category"
        )
    for name in ("lower", "upper", "bins", "decimals", "date_format", "edges"):
        if getattr(column, name) not in (None, ()):
            raise column.error(f"{name} has no meaning for a {column.kind.value} column; drop it")


def _validate_texts_apart(column: Column) -> None:
    """No text may be a category and a missing marker, unless both lead to the same cell."""
    landing = column.missing_code if column.missing_code is not None else column.constant_code
    markers = {marker.strip() for marker in column.missing_markers}
    for code, label in enumerate(column.categories):
        if not label.strip():
            raise column.error("a category is blank, and blank means missing; name it")
        if label.strip() in markers and code != landing:
            raise column.error(
                f"category {label!r} is a missing marker as well; take it off missing_markers, or "
                "let missing_label name it"
            )


def _validate_axis(column: Column) -> None:
    if column.categories:
        raise column.error(
            f"categories have no meaning for a {column.kind.value} column; drop them, or declare "
            "it categorical or ordinal"
        )
    if column.bins is not None and (column.edges or column.kind is Kind.DATE):
        raise column.error("declare bins or edges (dates: unit or edges), not both; drop bins")
    if any(b <= a for a, b in itertools.pairwise(column.axis)):
        raise column.error("edges must grow; lower must be below upper; or declare fewer bins")


def _validate_decimals(column: Column) -> None:
    if column.decimals is None:
        return
    if column.kind is not Kind.REAL:
        raise column.error(f"decimals have no meaning for a {column.kind.value} column; drop them")
    grid = decimal_grid(column.axis, column.decimals)
    if grid is not None and bool((grid[0] > grid[1]).any()):
        raise column.error(
            f"some bins hold no number with {column.decimals} decimals; declare fewer bins, other "
            "edges, or more decimals"
        )


def _validate_date_format(column: Column) -> None:
    form = column.date_format
    if form is None:
        return
    if column.kind is not Kind.DATE:
        raise column.error(f"date_format has no meaning for a {column.kind.value} column; drop it")
    unknown = unknown_directive(form)
    if unknown is not None:
        known = ", ".join(f"%{letter}" for letter in DATE_DIRECTIVES)
        raise column.error(f"date_format knows {known}; {unknown!r} is none of them")
    low, high = column.bounds
    cells = list(enumerate(itertools.pairwise(column.axis)))
    if names_every_day(form):
        cells = [cells[0], cells[-1]]  # what holds at both ends holds between them
    for cell, (start, end) in cells:
        for day in (int(start), int(end) - 1):
            read = text_day(day_text(day, form), form)
            if read is not None and column.out_of_domain is OutOfDomain.CLIP:
                read = int(min(max(read, low), high))
            if read is None or not low <= read <= high or column.cell_of(read) != cell:
                raise column.error(
                    "date_format does not lead back to the same bin; write years as %Y, and use "
                    "bins no finer than what the form tells"
                )


def _validate_markers_outside(column: Column) -> None:
    """No missing marker may be a value within the bounds: it could be drawn as one."""
    low, high = column.bounds
    for marker in column.missing_markers:
        try:
            if column.kind is not Kind.DATE:
                value: float | None = float(marker)
            elif column.date_format is None:
                value = date.fromisoformat(marker).toordinal()
            else:
                value = text_day(marker, column.date_format)
        except ValueError:
            continue
        if value is not None and low <= value <= high:
            raise column.error(
                f"the missing marker {marker!r} is a value between lower and upper; choose bounds "
                "that leave it out"
            )


def _validate_cells(column: Column) -> None:
    column.constant_code  # noqa: B018 - the property validates the constant
    if column.size > MAXIMUM_CELLS:
        raise column.error(
            f"{column.size} cells are more than {MAXIMUM_CELLS}; declare fewer bins, a wider "
            "unit, or exclude the column"
        )
    if len(set(column.cells)) != len(column.cells):
        raise column.error(
            "two cells carry the same label; rename other_label or missing_label, or declare "
            "wider bins"
        )
