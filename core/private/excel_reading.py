"""Excel workbooks to typed columns: one sheet, its first row the header."""

from __future__ import annotations

import io
import math
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import pandas as pd

from core.archives import open_archive
from core.errors import ReadingError
from core.private.raw import Limits, RawTable, ReadingReport, settle_names
from core.private.workbook_xml import refuse_tricks

_BOOK = "xl/workbook.xml"
#: Excel's own limit of rows; more in a sheet's XML is a trick.
_MOST_ROWS = 1_048_576
#: Cells that are kept in memory, empty ones between others included.
_MOST_CELLS = 30_000_000
#: Everything in a workbook but its sheets is held in memory at once.
_MOST_ASIDE = 300_000_000


def is_workbook(data: bytes) -> bool:
    """Whether the bytes are a ZIP archive that holds an Excel workbook."""
    if not data.startswith(b"PK"):
        return False
    try:
        with open_archive(data, "the workbook", sys.maxsize) as archive:
            return _BOOK in archive.namelist()
    except ReadingError:
        # Too strange to open, and named for what it claims to be: reading it says why not.
        return _BOOK.encode() in data


def read_excel(
    data: bytes,
    name: str,
    *,
    sheet: str | int | None,
    day_numbers: Collection[str],
    rename: Mapping[str, str] | Sequence[str] | None,
    limits: Limits,
) -> RawTable:
    """Read one sheet of an ``.xlsx`` workbook.

    Parameters
    ----------
    sheet
        Its name or its position from 1; None takes the first and says so.
    day_numbers
        Date columns whose plain numbers are to be read as Excel's day numbers.

    Raises
    ------
    ReadingError
        Naming file, column and remedy; never a cell's value.
    """
    _refuse_size(data, name, limits)
    with warnings.catch_warnings():
        # The library warns about drawings, validations and styles, which hold no cells.
        warnings.simplefilter("ignore")
        try:
            title, titles, epoch, rows = _sheet(data, name, sheet, limits)
        except ReadingError:
            raise
        except Exception:  # whatever a damaged workbook provokes; its words may quote cells
            raise ReadingError(
                f"{name}: the workbook is damaged or protected; save it again as .xlsx without a "
                "password, or export the sheet as CSV"
            ) from None
    if not rows:
        raise ReadingError(f"{name}: sheet {title!r} is empty; choose another sheet")
    width = max(len(row) for row in rows)
    header = ["" if cell is None else str(cell) for cell in _padded(rows[0], width)]
    names = settle_names(header, rename, name, limits)
    unknown = sorted(set(day_numbers) - set(names))
    if unknown:
        raise ReadingError(f"{name}: day_numbers names {unknown[0]!r}, which is not a column")
    body = [row for row in rows[1:] if row]
    notes = [f"read from sheet {title!r}" + (f" of {len(titles)}" if len(titles) > 1 else "")]
    if len(body) < len(rows) - 1:
        notes.append("empty rows were skipped")
    if not body:
        raise ReadingError(f"{name}: there is a header but no row below it; choose a full sheet")
    columns = zip(*(_padded(row, width) for row in body), strict=True)
    frame = pd.DataFrame(
        {
            column: _typed(column, values, column in day_numbers, epoch, name)
            for column, values in zip(names, columns, strict=True)
        }
    )
    storage = {column: _arrow_name(frame[column].dtype) for column in names}
    report = ReadingReport("excel", sheet=title, sheets=titles, notes=tuple(notes))
    return RawTable(frame, name, report, storage)


def _refuse_size(data: bytes, name: str, limits: Limits) -> None:
    try:
        with open_archive(data, name, limits.unpacked_bytes) as archive:
            aside = [
                item.file_size
                for item in archive.infolist()
                if not item.filename.startswith("xl/worksheets/")
            ]
            if sum(aside) > _MOST_ASIDE:
                raise ReadingError(
                    f"{name}: its texts and styles, unpacked, exceed {_MOST_ASIDE:,} bytes"
                )
            refuse_tricks(archive, name)
    except ReadingError as error:
        raise ReadingError(f"{error}; save it again as .xlsx, or export the sheet as CSV") from None


def _sheet(
    data: bytes, name: str, wanted: str | int | None, limits: Limits
) -> tuple[str, tuple[str, ...], datetime, list[list[Any]]]:
    """Title, all titles, day zero, and rows without trailing empty cells and rows."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    try:
        sheets = book.worksheets
        titles = tuple(str(sheet.title) for sheet in sheets)
        chosen = sheets[_position(titles, wanted, name)]
        chosen.reset_dimensions()
        rows: list[list[Any]] = []
        most, held = min(limits.rows, _MOST_ROWS), 0
        for number, cells in enumerate(chosen.iter_rows(values_only=True)):
            row = _trimmed(cells)
            held += len(row)
            if number > _MOST_ROWS or len(rows) > most or len(row) > limits.columns:
                raise ReadingError(
                    f"{name}: the sheet is larger than {most} rows or {limits.columns} columns; "
                    "keep what you need"
                )
            if held > _MOST_CELLS:
                raise ReadingError(
                    f"{name}: the sheet has more than {_MOST_CELLS:,} cells; export it as CSV"
                )
            if row or rows:
                rows.append(row)
        while rows and not rows[-1]:
            rows.pop()
        return str(chosen.title), titles, book.epoch, rows
    finally:
        book.close()


def _position(titles: tuple[str, ...], wanted: str | int | None, name: str) -> int:
    if not titles:
        raise ReadingError(f"{name}: the workbook has no sheet with cells")
    if wanted is None:
        return 0
    if wanted in titles:
        return titles.index(str(wanted))
    if isinstance(wanted, int) and 1 <= wanted <= len(titles):
        return wanted - 1
    raise ReadingError(
        f"{name}: there is no sheet {wanted!r}; the sheets are {', '.join(map(repr, titles))}"
    )


def _trimmed(cells: Sequence[Any]) -> list[Any]:
    row = list(cells)
    while row and (row[-1] is None or row[-1] == ""):
        row.pop()
    return row


def _padded(row: list[Any], width: int) -> Iterator[Any]:
    yield from row
    yield from (None for _ in range(width - len(row)))


def _typed(
    column: str, values: tuple[Any, ...], as_days: bool, epoch: datetime, file: str
) -> pd.Series[Any]:
    """One column in the narrowest type that holds it; mixed cells keep their own types."""
    cells = [_plain(value) for value in values]
    kinds = {type(cell) for cell in cells if cell is not None}
    numbers = {int, float}
    if datetime in kinds and kinds & numbers:
        if not as_days:
            raise ReadingError(
                f"{file}: column {column!r} mixes dates and plain numbers; mend it in the "
                "workbook, or have its numbers read as Excel's day numbers (day_numbers)"
            )
        cells = [
            _from_day_number(cell, epoch, column, file) if type(cell) in numbers else cell
            for cell in cells
        ]
        kinds -= numbers
    if kinds == {bool}:
        return pd.Series(cells, dtype="boolean")
    if kinds == {int} and all(cell is None or abs(cell) < 2**63 for cell in cells):
        return pd.Series(cells, dtype="Int64")
    if kinds and kinds <= numbers:
        return pd.Series([math.nan if cell is None else _float(cell) for cell in cells])
    if kinds == {datetime}:
        return pd.Series(cells, dtype="datetime64[us]")
    if kinds == {str}:
        return pd.Series(cells, dtype="str")
    return pd.Series(cells, dtype=object)


def _plain(value: Any) -> Any:
    """A cell as one of None, bool, int, float, str, datetime."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, time):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)  # durations


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _from_day_number(value: float, epoch: datetime, column: str, file: str) -> datetime:
    from openpyxl.utils.datetime import from_excel

    try:
        moment = from_excel(value, epoch)
    except (ValueError, OverflowError, TypeError):
        moment = None
    if not isinstance(moment, datetime):
        raise ReadingError(
            f"{file}: column {column!r} holds a number that is no day number; mend it"
        )
    return moment


def _arrow_name(kind: Any) -> str:
    """Arrow's name for a column's type."""
    names = {"boolean": "bool", "Int64": "int64", "float64": "double"}
    if str(kind).startswith("datetime64"):
        return "timestamp[us]"
    return names.get(str(kind), "large_string")
