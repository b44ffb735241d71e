"""CSV to text columns: every cell exactly as written, nothing coerced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from core.delimited import (
    DELIMITERS,
    binary_kind,
    find_delimiter,
    find_encoding,
    records,
    text_lines,
)
from core.errors import ReadingError
from core.private.raw import Limits, RawTable, ReadingReport, settle_names
from core.spreadsheet import GUARDED, unguarded

#: Cells split into columns at a time; bounds the memory of the text form.
CHUNK_CELLS = 1 << 20
_COMMA_NUMBER = r"\A\s*[+-]?(\d+,\d*|,\d+|\d{1,3}(\.\d{3})+,\d+)\s*\z"
_COMMA_GROUPS = r"\A\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*\z"
_DOT_NUMBER = r"\A\s*[+-]?(\d+\.\d*|\.\d+)\s*\z"
_DOT_GROUPS = r"\A\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*\z"


@dataclass(frozen=True)
class CsvOptions:
    """What the person declared about a CSV file; None means: find out, and say so."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    formula_guard: bool | None = None


def read_csv(
    data: bytes,
    name: str,
    options: CsvOptions,
    rename: Mapping[str, str] | Sequence[str] | None,
    limits: Limits,
) -> RawTable:
    """Read delimited text.

    Raises
    ------
    ReadingError
        Naming file, line or column, and remedy; never a cell's value.
    """
    kind = binary_kind(data)
    if kind is not None:
        raise ReadingError(f"{name}: this is {kind}, not a CSV file; export the table as CSV")
    encoding = find_encoding(data, name, options.encoding)
    delimiter, guessed = settled_delimiter(data, encoding.codec, name, options.delimiter)
    stream = records(text_lines(data, encoding.codec, name), delimiter, name)
    header = next((record for _, record in stream if record), None)
    if header is None:
        raise ReadingError(f"{name}: the file is empty; choose a file with a header and rows")
    marked = data.startswith(b"\xef\xbb\xbf")
    guard = marked if options.formula_guard is None else options.formula_guard
    names = settle_names(
        [unguarded(text) for text in header] if guard else header, rename, name, limits
    )
    table = _table(stream, names, name, limits)
    notes = [f"{encoding.words}; columns separated by {_words(delimiter)}"]
    if guard:
        table, found = without_guards(table)
        if found:
            notes.append(
                "apostrophes before = + - @ were read as a spreadsheet's formula guard and taken "
                "off; declare formula_guard = false to keep them"
            )
    decimal, decimal_guessed = options.decimal, False
    if decimal is None:
        decimal, decimal_guessed, note = _decimal(table, delimiter)
        notes += [note] if note else []
    elif decimal not in (".", ","):
        raise ReadingError(f"{name}: decimal must be a point or a comma")
    report = ReadingReport(
        "csv",
        delimiter=delimiter,
        encoding=encoding.codec,
        decimal=decimal,
        guessed=tuple(
            what
            for what, is_guess in (
                ("delimiter", guessed),
                ("encoding", encoding.guessed),
                ("decimal", decimal_guessed),
            )
            if is_guess
        ),
        notes=tuple(notes),
    )
    frame: pd.DataFrame = table.to_pandas()
    frame.columns = pd.Index(names, dtype=object)
    return RawTable(frame, name, report)


def _words(delimiter: str) -> str:
    return DELIMITERS.get(delimiter, repr(delimiter))


def settled_delimiter(data: bytes, codec: str, name: str, declared: str | None) -> tuple[str, bool]:
    """The declared delimiter, or what the first rows speak for, and whether that is a guess."""
    if declared is None:
        return find_delimiter(data, codec, name)
    by_word = {word: sign for sign, word in DELIMITERS.items()}
    delimiter = by_word.get(declared, declared)
    if len(delimiter) != 1 or delimiter in '"\r\n\0' or delimiter.isalnum():
        raise ReadingError(
            f"{name}: a delimiter is one character such as comma, semicolon, tab or pipe"
        )
    return delimiter, False


def _table(
    stream: Iterator[tuple[int, list[str]]], names: tuple[str, ...], name: str, limits: Limits
) -> Any:
    """An Arrow table of text columns named by position."""
    import pyarrow as pa

    batches = []
    rows: list[list[str]] = []
    total, size = 0, max(CHUNK_CELLS // len(names), 1)
    for row in full_rows(stream, len(names), name):
        rows.append(row)
        if len(rows) == size:
            batches.append(text_batch(pa, rows))
            total += len(rows)
            rows = []
        if total + len(rows) > limits.rows:
            raise ReadingError(f"{name}: more than {limits.rows} rows; split the file")
    if rows:
        batches.append(text_batch(pa, rows))
    if not batches:
        raise ReadingError(f"{name}: there is a header but no row below it; choose a full file")
    return pa.Table.from_batches(batches)


def text_batch(pa: Any, rows: list[list[str]]) -> Any:
    """Rows as Arrow text columns named by position."""
    columns = [pa.array(column, pa.large_string()) for column in zip(*rows, strict=True)]
    return pa.record_batch(columns, names=[str(index) for index in range(len(columns))])


def full_rows(
    stream: Iterator[tuple[int, list[str]]], width: int, name: str
) -> Iterator[list[str]]:
    """Rows of the header's width.

    Blank lines are skipped; in a table of one column a blank line between rows is a blank cell,
    and so is a pair of quotation marks, wherever it stands.
    """
    blank = 0
    for line, row in stream:
        if len(row) == width:
            yield from ([""] for _ in range(blank))
            blank = 0
            yield row
        elif not row or (len(row) == 1 and not row[0].strip()):
            blank += width == 1
        else:
            raise ReadingError(
                f"{name}: line {line} has {len(row)} field{'s' if len(row) > 1 else ''} where the "
                f"header has {width}; mend the line, quote cells that contain the delimiter, or "
                "declare another delimiter"
            )


def without_guards(table: Any) -> tuple[Any, bool]:
    """The table without formula guards, which ``core.decoding`` writes "for spreadsheets"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = False
    for index in range(table.num_columns):
        column = table.column(index)
        has_guard = pc.match_substring_regex(column, GUARDED)
        if pc.any(has_guard).as_py():
            found = True
            plain = [unguarded(text) for text in column.filter(has_guard).to_pylist()]
            column = pc.replace_with_mask(
                column.combine_chunks(), has_guard.combine_chunks(), pa.array(plain, column.type)
            )
            table = table.set_column(index, table.field(index), column)
    return table, found


def _decimal(table: Any, delimiter: str) -> tuple[str, bool, str | None]:
    """Decimal sign, whether it was a guess, and a sentence about it.

    A comma where some cell is a number only with a decimal comma and none only with a decimal
    point.  Where commas could only be thousands separators, a semicolon as delimiter speaks for
    the comma.
    """
    import pyarrow.compute as pc

    def any_cell(column: Any, pattern: str, but: str) -> bool:
        if not pc.any(pc.match_substring(column, "," if pattern is _COMMA_NUMBER else ".")).as_py():
            return False
        fits = pc.match_substring_regex(column, pattern)
        apart = pc.invert(pc.match_substring_regex(column, but))
        return bool(pc.any(pc.and_(fits, apart)).as_py())

    comma = any(any_cell(c, _COMMA_NUMBER, _COMMA_GROUPS) for c in table.columns)
    point = any(any_cell(c, _DOT_NUMBER, _DOT_GROUPS) for c in table.columns)
    groups = not comma and any(
        pc.any(pc.match_substring_regex(c, _COMMA_GROUPS)).as_py() for c in table.columns
    )
    if comma and not point:
        return ",", True, "numbers are read with a decimal comma"
    if comma and point:
        return (
            ".",
            True,
            "some numbers have a decimal comma, others a decimal point; read with a point, so the "
            "former count as unreadable: declare decimal, or write all numbers alike",
        )
    if groups and not point and delimiter == ";":
        return ",", True, "numbers such as 1,234 are read with a decimal comma; declare decimal"
    if groups:
        return ".", True, "commas in numbers are read as thousands separators; declare decimal"
    return ".", False, None
