"""How every document is written: canonical JSON, and CSV with twelve digits."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.statement import SIMULATED


def json_bytes(plain: Mapping[str, Any], simulated: bool) -> bytes:
    """Canonical JSON; simulated output carries its stamp first."""
    stamped = {"warning": SIMULATED, **plain} if simulated else dict(plain)
    return (json.dumps(stamped, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def csv_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """CSV with Windows line ends; None is an empty cell."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        # Twelve digits: what lies beyond is the arithmetic's, not the noise's.
        writer.writerow([f"{x:.12g}" if isinstance(x, float) else x for x in row])
    return buffer.getvalue().encode()
