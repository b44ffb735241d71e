"""Rows of the declaration editor: what a steward types about a column, and the column it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import SchemaError
from core.schema import DATE_UNITS, EXCLUDED_KINDS, LABELLED_KINDS, Column, Kind, Missing

Row = Mapping[str, Any]

FIELDS = ("kind", "categories", "lower", "upper", "bins", "missing")
UNDECIDED = ""
KIND_WORDS = {
    UNDECIDED: "choose…",
    Kind.CATEGORICAL: "category",
    Kind.ORDINAL: "ordered",
    Kind.BOOLEAN: "two values",
    Kind.INTEGER: "whole number",
    Kind.REAL: "number",
    Kind.DATE: "date",
    Kind.IDENTIFIER: "identifier",
    Kind.TEXT: "free text",
}
OWN_CELL = "own cell"
#: Settings of a column that the editor's fields replace.
_REPLACED = (
    "name",
    "kind",
    "categories",
    "lower",
    "upper",
    "bins",
    "edges",
    "unit",
    "missing",
    "missing_constant",
)


def blank(name: str) -> dict[str, Any]:
    """A column that nobody has declared yet."""
    return {
        "name": name,
        **dict.fromkeys(FIELDS, ""),
        "missing": OWN_CELL,
        "flagged": False,
        "more": {},
    }


def row_of(column: Column) -> dict[str, Any]:
    """A declared column as the editor shows it."""
    row = blank(column.name)
    row["kind"] = column.kind.value
    row["categories"] = " | ".join(_escape(label) for label in column.categories)
    row["lower"], row["upper"] = _text(column.lower), _text(column.upper)
    if column.edges:
        row["bins"] = " | ".join(_text(edge) for edge in column.edges)
    elif column.kind is Kind.DATE:
        row["bins"] = column.unit
    elif column.bins is not None:
        row["bins"] = str(column.bins)
    if column.missing is Missing.CONSTANT:
        row["missing"] = _text(column.missing_constant)
    row["flagged"] = column.data_dependent
    plain = column.to_dict()
    row["more"] = {key: value for key, value in plain.items() if key not in _REPLACED}
    return row


def column_of(row: Row) -> Column:
    """The column that a row means.

    Raises
    ------
    SchemaError
        Something cannot be accepted; the message names the column and the field.
    """
    name, kind = row["name"], row["kind"]
    if not kind:
        raise SchemaError(f"column {name!r}: choose what it holds")
    plain: dict[str, Any] = {"name": name, "kind": kind}
    more = dict(row["more"])
    more.pop("data_dependent", None)
    if Kind(kind) in EXCLUDED_KINDS:
        return Column.from_dict({**plain, "reason": more.get("reason", "left out by the steward")})
    plain.update(more)
    plain.pop("reason", None)
    if Kind(kind) in LABELLED_KINDS:
        plain["categories"] = split_labels(row["categories"])
        plain.pop("out_of_domain", None)
    else:
        plain.update(_axis(row, Kind(kind)))
    missing = str(row["missing"]).strip()
    if missing and missing != OWN_CELL:
        plain.update({"missing": Missing.CONSTANT.value, "missing_constant": missing})
    if row["flagged"]:
        plain["data_dependent"] = True
    return Column.from_dict(_fitting(plain, Kind(kind)))


def _axis(row: Row, kind: Kind) -> dict[str, Any]:
    """Bounds and bins of a number or date column."""
    name, bins = row["name"], str(row["bins"]).strip()
    bounds = {side: str(row[side]).strip() for side in ("lower", "upper")}
    if kind is Kind.DATE:
        given = {side: text for side, text in bounds.items() if text}
        if "|" in bins:
            return {**given, "edges": split_labels(bins)}
        if bins and bins not in DATE_UNITS:
            raise SchemaError(
                f"column {name!r}: bins must be one of {', '.join(DATE_UNITS)}, or dates between |"
            )
        return {**bounds, **({"unit": bins} if bins else {})}
    numbers: dict[str, Any] = {
        side: _number(name, side, text) for side, text in bounds.items() if text
    }
    if "|" in bins:
        numbers["edges"] = [_number(name, "bins", edge) for edge in split_labels(bins)]
    elif bins:
        if not bins.isdecimal():
            raise SchemaError(
                f"column {name!r}: bins must be a whole number, or edges such as 0 | 10 | 50"
            )
        numbers["bins"] = int(bins)
    elif len(numbers) < 2:
        side = "lower" if "lower" not in numbers else "upper"
        raise SchemaError(f"column {name!r}: declare {side}")
    return numbers


def _number(name: str, field: str, text: str) -> float:
    try:
        return float(text.replace("−", "-"))
    except ValueError as error:
        raise SchemaError(f"column {name!r}: {field} must be a number") from error


def _fitting(plain: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Settings that belong to the kind; a change of kind leaves the others behind."""
    foreign = {"decimals": kind is not Kind.REAL, "date_format": kind is not Kind.DATE}
    if kind not in LABELLED_KINDS:
        foreign["other_label"] = plain.get("out_of_domain") != "other"
    return {key: value for key, value in plain.items() if not foreign.get(key, False)}


def split_labels(text: str) -> list[str]:
    r"""Labels between bars; ``\|`` is a bar inside a label.

    >>> split_labels("low | middle | a\\|b")
    ['low', 'middle', 'a|b']
    """
    labels, label, escaped = [], "", False
    for letter in str(text):
        if escaped:
            label += letter if letter in "|\\" else f"\\{letter}"
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == "|":
            labels.append(label.strip())
            label = ""
        else:
            label += letter
    labels.append((label + "\\" * escaped).strip())
    return labels if labels != [""] else []


def _escape(label: str) -> str:
    return label.replace("\\", "\\\\").replace("|", "\\|")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def problem(row: Row) -> str | None:
    """What is wrong with a row, in words, or None."""
    try:
        column_of(row)
    except (SchemaError, ValueError, TypeError) as error:
        return str(error)
    return None


def keep_rows(draft: Sequence[Row], names: Sequence[str]) -> tuple[Row, ...]:
    """Rows for the columns of another table: known names keep what was typed."""
    known = {row["name"]: row for row in draft}
    return tuple(known.get(name) or blank(name) for name in names)
