"""Codebooks: public declarations of columns as CSV or JSON, read and written.

A CSV codebook has one row a column and a header with ``name``, ``kind`` and whichever other
settings of :class:`core.column.Column` are needed.  An empty cell means the default.  Lists
(``categories``, ``edges``, ``missing_markers``) are separated by ``|``, and blanks around it do
not count; a ``|``, a backslash, and a blank at either end of an entry have a backslash before
them, and so have ``;`` and ``,`` in a cell of a single entry.  A JSON codebook is a list of such
columns, or an object with that list as ``columns``.  ``docs/codebook.md`` shows all of it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from core.column import Column
from core.delimited import binary_kind, find_delimiter, find_encoding, records, text_lines
from core.errors import ReadingError, SchemaError
from core.notes import close_matches
from core.plain_data import json_value
from core.schema import Schema

#: A codebook is public text written by people; more than this is something else.
MAXIMUM_BYTES = 20_000_000
MAXIMUM_DEPTH = 8

_LISTS = ("categories", "edges", "missing_markers")
_WHOLE = ("bins", "decimals")
_SETTINGS = tuple(item.name for item in fields(Column))
#: Other words that people use for settings.
_MEANT = {
    "column": "name",
    "variable": "name",
    "field": "name",
    "type": "kind",
    "values": "categories",
    "labels": "categories",
    "levels": "categories",
    "min": "lower",
    "minimum": "lower",
    "max": "upper",
    "maximum": "upper",
    "format": "date_format",
}
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def read_codebook(path_or_bytes: str | Path | bytes, *, name: str | None = None) -> Schema:
    """A schema from a codebook; CSV or JSON is told by the content.

    Raises
    ------
    ReadingError
        If the file cannot be read as text, CSV or JSON.
    SchemaError
        If a declaration is wrong, naming file, line and column.
    """
    if isinstance(path_or_bytes, bytes):
        data, label = path_or_bytes, name or "the codebook"
    else:
        path = Path(path_or_bytes)
        label = name or path.name
        data = _content(path, label)
    if len(data) > MAXIMUM_BYTES:
        raise ReadingError(f"{label}: a codebook has at most {MAXIMUM_BYTES:,} bytes")
    kind = binary_kind(data)
    if kind is not None:
        raise ReadingError(f"{label}: this is {kind}, not a codebook in CSV or JSON")
    codec = find_encoding(data, label).codec
    text = "".join(text_lines(data, codec, label))
    if not text.strip():
        raise ReadingError(f"{label}: the codebook is empty; declare at least one column")
    if text.lstrip()[0] in "[{":
        return _from_json(text, label)
    return _from_csv(data, codec, label)


def _content(path: Path, name: str) -> bytes:
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise ReadingError(f"{name}: a codebook has at most {MAXIMUM_BYTES:,} bytes")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ReadingError(
            f"{name}: the codebook cannot be opened; check path and rights"
        ) from error


def _schema(columns: Sequence[Column], name: str) -> Schema:
    try:
        return Schema(tuple(columns))
    except SchemaError as error:
        raise SchemaError(f"{name}: {error}") from error


# -- JSON ----------------------------------------------------------------------------------


def _from_json(text: str, name: str) -> Schema:
    plain = json_value(text, name, depth=MAXIMUM_DEPTH)
    if isinstance(plain, dict):
        unknown = sorted(set(plain) - {"columns"})
        if unknown or "columns" not in plain:
            raise SchemaError(f"{name}: a codebook in JSON has one entry, a list called columns")
        plain = plain["columns"]
    if not isinstance(plain, list):
        raise SchemaError(f"{name}: columns must be a list")
    columns = []
    for position, item in enumerate(plain, 1):
        try:
            columns.append(Column.from_dict(item))
        except SchemaError as error:
            raise SchemaError(f"{name}, entry {position}: {error}") from error
    return _schema(columns, name)


# -- CSV -----------------------------------------------------------------------------------


def _from_csv(data: bytes, codec: str, name: str) -> Schema:
    delimiter, _ = find_delimiter(data, codec, name)
    stream = records(text_lines(data, codec, name), delimiter, name)
    header: list[str] = []
    columns = []
    for line, record in stream:
        if not any(cell.strip() for cell in record):
            continue
        if not header:
            header = _header([cell.strip().lower() for cell in record], name)
            continue
        if len(record) != len(header):
            raise ReadingError(
                f"{name}: line {line} has {len(record)} fields where the header has {len(header)}"
            )
        row = dict(zip(header, record, strict=True))
        try:
            columns.append(Column(**_settings(row)))
        except SchemaError as error:
            raise SchemaError(f"{name}, line {line}: {error}") from error
    return _schema(columns, name)


def _header(names: list[str], file: str) -> list[str]:
    unknown = [name for name in names if name not in _SETTINGS]
    if unknown:
        close = close_matches(unknown[0], _SETTINGS)
        meant = _MEANT.get(unknown[0]) or (close[0] if close else None)
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise SchemaError(
            f"{file}: the header names the unknown setting {unknown[0]!r}{hint}; known: "
            f"{', '.join(_SETTINGS)} (see docs/codebook.md)"
        )
    repeated = [name for name in _SETTINGS if names.count(name) > 1]
    if repeated:
        raise SchemaError(f"{file}: the header names {repeated[0]!r} twice; keep one")
    for needed in ("name", "kind"):
        if needed not in names:
            raise SchemaError(
                f"{file}: the header needs a column called {needed}; the first line of a codebook "
                "names the settings, for example name,kind,categories,lower,upper"
            )
    return names


def _settings(row: Mapping[str, str]) -> dict[str, Any]:
    """One row's cells as settings; empty cells are left to their defaults."""
    plain: dict[str, Any] = {"name": row["name"], "kind": row["kind"].strip().lower()}
    for setting, cell in row.items():
        if setting in plain or not cell.strip():
            continue
        if setting in _LISTS:
            plain[setting] = _listed(cell, setting, row["name"])
        elif setting in _WHOLE:
            plain[setting] = _whole(cell, setting, row["name"])
        elif setting == "data_dependent":
            plain[setting] = _truth(cell, row["name"])
        elif setting in ("missing", "out_of_domain", "unit"):
            plain[setting] = cell.strip().lower()
        else:
            plain[setting] = cell
    return plain


def _whole(cell: str, setting: str, name: str) -> int:
    if not re.fullmatch(r"\s*\d{1,9}\s*", cell, flags=re.ASCII):
        raise SchemaError(f"column {name!r}: {setting} must be a whole number")
    return int(cell)


def _truth(cell: str, name: str) -> bool:
    word = cell.strip().lower()
    if word not in _TRUE + _FALSE:
        raise SchemaError(f"column {name!r}: data_dependent must be true or false")
    return word in _TRUE


def _listed(cell: str, setting: str, name: str) -> list[str]:
    """Entries of a list cell; one that looks like a list by another sign is refused."""
    entries = _split(cell)
    if len(entries) == 1 and _by_another_sign(re.sub(r"\\.", "", cell, flags=re.DOTALL)):
        raise SchemaError(
            f"column {name!r}: separate the entries of {setting} by |, for example a|b|c; if it is "
            "one entry, put a backslash before each ; and , in it"
        )
    return entries


def _by_another_sign(text: str) -> bool:
    return ";" in text or text.count(",") > 1


def _split(cell: str) -> list[str]:
    r"""Entries of a list cell.

    >>> _split(r"a | b\|c|\ d\\")
    ['a', 'b|c', ' d\\']
    """
    entries: list[list[tuple[str, bool]]] = [[]]
    signs = iter(cell)
    for sign in signs:
        if sign == "\\":
            entries[-1].append((next(signs, ""), True))
        elif sign == "|":
            entries.append([])
        else:
            entries[-1].append((sign, False))
    return [_trimmed(entry) for entry in entries]


def _trimmed(entry: list[tuple[str, bool]]) -> str:
    """An entry's text without unescaped blanks at its ends."""
    solid = [index for index, (sign, escaped) in enumerate(entry) if escaped or not sign.isspace()]
    if not solid:
        return ""
    return "".join(sign for sign, _ in entry[solid[0] : solid[-1] + 1])


def _joined(entries: Sequence[Any]) -> str:
    special = "\\|;," if len(entries) == 1 else "\\|"
    return "|".join(_escaped(str(entry), special) for entry in entries)


def _escaped(text: str, special: str) -> str:
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    return "".join(
        f"\\{sign}" if sign in special or not first <= index < last else sign
        for index, sign in enumerate(text)
    )


# -- writing -------------------------------------------------------------------------------


def codebook_bytes(schema: Schema, form: str) -> bytes:
    """A schema as codebook, ``form`` being ``csv`` or ``json``; reading it gives it back.

    Raises
    ------
    SchemaError
        If the form is neither.
    """
    if form == "json":
        return (json.dumps(schema.to_dict(), ensure_ascii=False, indent=2) + "\n").encode()
    if form != "csv":
        raise SchemaError("a codebook is written as csv or json")
    rows = [column.to_dict() for column in schema.columns]
    used = [name for name in _SETTINGS if any(name in row for row in rows)]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(used)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in used])
    return buffer.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return _joined(value) if isinstance(value, list) else str(value)


def write_codebook(schema: Schema, path: str | Path, form: str | None = None) -> None:
    """Write :func:`codebook_bytes` to a file; the form is its ending unless given."""
    target = Path(path)
    target.write_bytes(codebook_bytes(schema, form or target.suffix.lower().lstrip(".")))
