"""The coded table: confidential rows as small integers.  It never leaves ``core.private``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import SchemaError
from core.releases import Unit
from core.schema import Schema

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Rows as cell codes, with numbers beside them where a column is numeric.

    Attributes
    ----------
    schema
        Declarations of the modelled columns (identifiers and free text are gone).
    codes
        Cell code of every row, one compact unsigned array a column, ``0 <= code < size``.
    numbers
        Clipped, finite values of integer, real and date columns (dates as day ordinals); rows
        missing there hold NaN, unless the column declares a constant.
    rows
        Number of rows (confidential under add/remove).
    unit
        The bound on rows a person that was enforced when the table was coded.
    """

    schema: Schema
    codes: Mapping[str, NDArray[Any]]
    numbers: Mapping[str, FloatArray]
    rows: int
    unit: Unit = field(default_factory=Unit)

    def __post_init__(self) -> None:
        """Check lengths and ranges once, so that counting needs no checks."""
        for column in self.schema.columns:
            codes = self.codes[column.name]
            if codes.shape != (self.rows,):
                raise SchemaError(f"column {column.name!r}: one code a row is needed")
            if self.rows and int(codes.max()) >= column.size:
                raise SchemaError(f"column {column.name!r}: a code lies outside the domain")

    def __repr__(self) -> str:
        """Only public facts."""
        return f"CodedTable({len(self.schema.columns)} columns, rows confidential)"
