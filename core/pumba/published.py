"""Statistics that somebody published with noise: read from CSV or JSON, made into problems.

``docs/published-statistics.md`` describes the format with an example of every kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.delimited import binary_kind, find_delimiter, find_encoding, records, text_lines
from core.errors import ReadingError, StatisticError
from core.plain_data import json_value
from core.pumba.analyses import Analysis
from core.pumba.published_analyses import build_analysis
from core.pumba.published_rows import PublishedRow, field_name, read_row

#: Published statistics are a page or a table; more than this is something else.
MAXIMUM_BYTES = 20_000_000
MAXIMUM_ROWS = 100_000
_NEEDED = ("analysis", "kind", "statistic", "value", "family")


@dataclass(frozen=True, eq=False)
class Published:
    """The analyses of a file, in order of appearance, and the rows they were made from."""

    name: str
    analyses: tuple[Analysis, ...]
    rows: tuple[PublishedRow, ...]


def read_published(source: str | Path | bytes, *, name: str | None = None) -> Published:
    """The analyses of a CSV or JSON file, told apart by its content.

    Raises
    ------
    ReadingError
        The file is no text, CSV or JSON.
    StatisticError
        A statistic cannot be used; the message names line and field.
    """
    if isinstance(source, bytes):
        data, label = source, name or "the published statistics"
    else:
        path = Path(source)
        label = name or path.name
        data = _content(path, label)
    if len(data) > MAXIMUM_BYTES:
        raise ReadingError(f"{label}: published statistics have at most {MAXIMUM_BYTES:,} bytes")
    kind = binary_kind(data)
    if kind is not None:
        raise ReadingError(f"{label}: this is {kind}, not statistics in CSV or JSON")
    codec = find_encoding(data, label).codec
    text = "".join(text_lines(data, codec, label))
    if not text.strip():
        raise ReadingError(f"{label}: the file is empty; enter at least one statistic")
    if text.lstrip()[0] in "[{":
        return published_from_rows(_json_rows(text, label), name=label, unit="entry")
    return _built(_csv_rows(data, codec, label), label)


def published_from_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    name: str = "the published statistics",
    unit: str = "row",
) -> Published:
    """The same from mappings, such as the records of a data frame; blanks and NaN are empty.

    Raises
    ------
    StatisticError
        A statistic cannot be used; the message names row and field.
    """
    found: list[PublishedRow] = []
    for number, plain in enumerate(rows, 1):
        where = f"{name}, {unit} {number}"
        if not isinstance(plain, Mapping):
            raise StatisticError(f"{where}: each statistic is an object with named fields")
        named: dict[str, Any] = {}
        for header, cell in plain.items():
            field = field_name(str(header), where)
            if field in named:
                raise StatisticError(f"{where}, {field}: this field is given twice; keep one")
            named[field] = cell
        found.append(read_row(named, where, found[-1] if found else None))
    return _built(found, name)


def _built(rows: list[PublishedRow], name: str) -> Published:
    if not rows:
        raise StatisticError(f"{name}: there is no statistic; enter at least one row")
    if len(rows) > MAXIMUM_ROWS:
        raise StatisticError(f"{name}: at most {MAXIMUM_ROWS:,} statistics can be used at once")
    groups: dict[str, list[PublishedRow]] = {}
    for row in rows:
        groups.setdefault(row.analysis, []).append(row)
    analyses = tuple(build_analysis(group, name) for group in groups.values())
    return Published(name, analyses, tuple(rows))


def _content(path: Path, name: str) -> bytes:
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise ReadingError(f"{name}: published statistics have at most {MAXIMUM_BYTES:,} bytes")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ReadingError(f"{name}: the file cannot be opened; check path and rights") from error


def _csv_rows(data: bytes, codec: str, name: str) -> list[PublishedRow]:
    delimiter, _ = find_delimiter(data, codec, name)
    header: list[str] = []
    rows: list[PublishedRow] = []
    for line, record in records(text_lines(data, codec, name), delimiter, name):
        if not any(cell.strip() for cell in record):
            continue
        if not header:
            header = _header(record, name)
            continue
        where = f"{name}, line {line}"
        if len(record) != len(header):
            raise StatisticError(
                f"{where}: {len(record)} fields where the header has {len(header)}"
            )
        plain = dict(zip(header, record, strict=True))
        rows.append(read_row(plain, where, rows[-1] if rows else None))
    return rows


def _header(record: list[str], name: str) -> list[str]:
    fields = [field_name(cell, f"{name}, header") for cell in record]
    for field in fields:
        if fields.count(field) > 1:
            raise StatisticError(f"{name}, header: the field {field!r} is named twice; keep one")
    for needed in _NEEDED:
        if needed not in fields:
            raise StatisticError(
                f"{name}, header: the field {needed!r} is missing; the first line names the "
                "fields, for example analysis,kind,statistic,column,category,value,family,scale"
            )
    return fields


def _json_rows(text: str, name: str) -> list[Any]:
    plain = json_value(text, name)
    if isinstance(plain, dict):
        if set(plain) != {"statistics"}:
            raise StatisticError(f"{name}: an object has one entry, a list called statistics")
        plain = plain["statistics"]
    if not isinstance(plain, list):
        raise StatisticError(f"{name}: statistics must be a list of objects")
    return plain
