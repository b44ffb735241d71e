"""How every document is written: canonical JSON, and CSV with twelve digits."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.spreadsheet import guarded_label
from core.statement import SIMULATED


def json_bytes(plain: Mapping[str, Any], simulated: bool) -> bytes:
    """Canonical JSON; simulated output carries its stamp first."""
    stamped = {"warning": SIMULATED, **plain} if simulated else dict(plain)
    return (json.dumps(stamped, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def csv_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """A table for people and spreadsheets: Windows line ends, None an empty cell.

    Texts that a spreadsheet would run get an apostrophe, see :mod:`core.spreadsheet`; programs find
    them letter for letter in the JSON, NPZ and Parquet files of the same content.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in header])
    for row in rows:
        writer.writerow([_cell(cell) for cell in row])
    return buffer.getvalue().encode()


def _cell(cell: object) -> object:
    if isinstance(cell, str):
        return guarded_label(cell)
    # Twelve digits: what lies beyond is the arithmetic's, not the noise's.
    return f"{cell:.12g}" if isinstance(cell, float) else cell
