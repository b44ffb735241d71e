"""CSV, Parquet or Excel to a raw table; bad input ends in one sentence and costs nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.delimited import binary_kind
from core.errors import ReadingError
from core.private.csv_reading import CsvOptions, read_csv
from core.private.excel_reading import is_workbook, read_excel
from core.private.parquet_reading import read_parquet
from core.private.raw import HeaderError, Limits, RawTable, ReadingReport, proposed_names

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "HeaderError",
    "Limits",
    "RawTable",
    "ReadingReport",
    "preview",
    "proposed_names",
    "read_table",
]

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
_WORDS = {"csv": "CSV file", "parquet": "Parquet file", "excel": "Excel workbook"}


def read_table(
    path_or_bytes: str | Path | bytes,
    *,
    name: str | None = None,
    sheet: str | int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    rename: Mapping[str, str] | Sequence[str] | None = None,
    day_numbers: Collection[str] = (),
    formula_guard: bool | None = None,
    limits: Limits | None = None,
) -> RawTable:
    """Read a table; nothing is coerced, guessed settings are stated in the report.

    Parameters
    ----------
    path_or_bytes
        A path, or a file's content.
    name
        File name for messages; its ending says what the file should be.  Without an ending that
        is known, the content decides.
    sheet
        Excel: a sheet's name or position from 1; the first by default.
    delimiter, encoding, decimal
        CSV: declare what would otherwise be found out.  Finding out looks at the file, so a
        declared setting is one less thing that depends on the data.
    rename
        All names in order, or a map from name to name; see :func:`core.private.raw.settle_names`.
    day_numbers
        Excel: date columns whose plain numbers are day numbers.
    formula_guard
        CSV: take the apostrophe off that guards cells against being read as formulas.  By
        default only in files with a UTF-8 byte-order mark, which our "for spreadsheets"
        downloads have.
    limits
        What is refused before parsing.

    Raises
    ------
    ReadingError
        Naming file, line or column, and remedy; never a cell's value.
    HeaderError
        If column names are repeated or empty; it carries a proposal.
    """
    limits = Limits() if limits is None else limits
    if isinstance(path_or_bytes, bytes):
        data, label = path_or_bytes, name or "the uploaded table"
        _refuse_bytes(len(data), label, limits)
    else:
        path = Path(path_or_bytes)
        label = name or path.name
        data = _content(path, label, limits)
    kind = _format(data, label)
    if kind == "parquet":
        return read_parquet(data, label, rename, limits)
    if kind == "excel":
        return read_excel(
            data, label, sheet=sheet, day_numbers=day_numbers, rename=rename, limits=limits
        )
    options = CsvOptions(delimiter, encoding, decimal, formula_guard)
    return read_csv(data, label, options, rename, limits)


def _refuse_bytes(size: int, name: str, limits: Limits) -> None:
    if size > limits.bytes:
        raise ReadingError(
            f"{name}: the file is larger than {limits.bytes:,} bytes; keep fewer rows or columns"
        )


def _content(path: Path, name: str, limits: Limits) -> bytes:
    try:
        _refuse_bytes(path.stat().st_size, name, limits)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ReadingError(f"{name}: there is no such file; check the path") from error
    except IsADirectoryError as error:
        raise ReadingError(f"{name}: this is a folder; choose a file in it") from error
    except (OSError, ValueError) as error:
        raise ReadingError(f"{name}: the file cannot be opened; check path and rights") from error


def _format(data: bytes, name: str) -> str:
    """What the file is; a file that is not what its ending says is refused in one sentence."""
    promised = _ENDINGS.get(Path(name).suffix.lower())
    if not data.strip():
        raise ReadingError(f"{name}: the file is empty; choose a file with a header and rows")
    if is_workbook(data):
        found = "excel"
    elif data.startswith(b"PAR1"):
        found = "parquet"
    else:
        found = "csv" if binary_kind(data) is None else "binary"
    if found == "binary" or (promised not in (None, found)):
        is_what = binary_kind(data) or "plain text"
        if found in ("excel", "parquet"):
            is_what = "a Parquet file" if found == "parquet" else "an Excel workbook"
        wanted = f"no {_WORDS[promised]}" if promised else "no table"
        raise ReadingError(
            f"{name}: this is {is_what}, {wanted}; choose a CSV, Parquet or Excel (.xlsx) file "
            "with the ending that fits"
        )
    return found


def preview(raw: RawTable, rows: int = 20) -> pd.DataFrame:
    """The first rows as a copy, for the steward's own marked private workspace only."""
    return raw.frame.head(max(rows, 0)).copy()
