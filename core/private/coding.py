"""Rows to cells: every value lands in a cell of its column, and none raises in mid-run.

Each row is coded by itself, from its own values and public declarations alone: no value of
another row can change its code.  How many values were clipped, missing or "other" is
confidential and is not told to anybody.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.column import Column, require_columns
from core.errors import SchemaError
from core.private.raw import RawTable
from core.private.table import CodedTable
from core.private.values import axis_values, distinct, label_codes, row_texts
from core.releases import Unit
from core.schema import LABELLED_KINDS, OutOfDomain, Schema

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def encode(
    raw: RawTable, schema: Schema, *, unit: Unit | None = None, key: bytes = b""
) -> CodedTable:
    """Code a raw table by its public declarations.

    Labels are compared exactly, then stripped.  Numbers are read with the decimal sign of the
    reading report; the other sign is a thousands separator if it groups three digits.  Infinite
    numbers are clipped like all others.  A text that is no number (no date) is out of domain:
    under ``clip``, where it has no nearest bound, it counts as missing; under ``other`` it goes
    to the other-cell.  A number between two integers lies in the cell that covers it.  Booleans
    see :attr:`core.column.Column.truth_codes`.  Timestamps count as the day they show in their
    own zone.

    Parameters
    ----------
    raw
        Rows as read.
    schema
        Declarations; identifiers and free text are left out.  Columns of the file that are not
        declared are ignored, see :func:`undeclared`.
    unit
        The unit of protection.  With a person column, a person's rows beyond ``unit.rows`` are
        dropped: those kept come first in a keyed-hash order of their content, whatever the order
        of the file.  Rows without a person's id are dropped: any of them could be anybody's, so
        that no bound would hold for them.
    key
        Secret of that order.

    Raises
    ------
    SchemaError
        If a declared column or the person column is not in the file, or none can be modelled.
    """
    unit = Unit() if unit is None else unit
    modelled = modelled_in_file(raw, schema)
    frame = raw.frame
    if unit.person_column is not None:
        require_in_file(raw, [unit.person_column])
        frame = frame[_kept(frame, schema, unit, key)]
    codes: dict[str, NDArray[Any]] = {}
    numbers: dict[str, FloatArray] = {}
    for column in modelled:
        cells, values = coded_column(frame[column.name], column, raw.report.decimal)
        codes[column.name] = cells
        if values is not None:
            numbers[column.name] = values
    return CodedTable(Schema(modelled), codes, numbers, len(frame), unit)


def undeclared(raw: RawTable, schema: Schema) -> tuple[str, ...]:
    """Names of the file's columns that the schema does not declare and encoding ignores."""
    return tuple(name for name in raw.names if name not in schema)


class Named(Protocol):
    """A table with a name for messages, and names of columns."""

    @property
    def name(self) -> str:
        """Of the file."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        ...


def modelled_in_file(raw: Named, schema: Schema) -> tuple[Column, ...]:
    """The declared columns that are coded, all of which the file has.

    Raises
    ------
    SchemaError
        If one is not in the file, or none can be modelled.
    """
    modelled = schema.modelled
    if not modelled:
        raise SchemaError("no column can be modelled; declare at least one that is not excluded")
    require_in_file(raw, [column.name for column in modelled])
    return modelled


def require_in_file(raw: Named, names: list[str]) -> None:
    """Refuse a column that the file lacks.

    Raises
    ------
    SchemaError
        Naming the column and, where one is close, the name that may have been meant.
    """
    try:
        require_columns(names, raw.names)
    except SchemaError as error:
        raise SchemaError(
            f"{raw.name}: {error}; rename the column in the file, under [reading.rename] in the "
            "plan, or in the schema, or take it off the schema"
        ) from error


def _compact(codes: IntArray, size: int) -> NDArray[Any]:
    return codes.astype(np.uint8 if size <= 256 else np.uint16)


def landing_code(column: Column) -> int:
    """The cell of a missing value: that for missing ones, or that of the declared constant."""
    landing = column.missing_code if column.missing_code is not None else column.constant_code
    return cast(int, landing)


def coded_column(
    series: pd.Series[Any], column: Column, decimal: str
) -> tuple[NDArray[Any], FloatArray | None]:
    """Codes of one column, and its clipped numbers where it has an axis; each cell by itself."""
    missing_code = landing_code(column)
    if column.kind in LABELLED_KINDS:
        positions, values = distinct(series)
        table = np.array([*label_codes(values, column), -1], dtype=np.int64)
        codes = table[positions]  # a null is at position -1, the last entry
        return _compact(np.where(codes < 0, missing_code, codes), column.size), None
    values_, unreadable = axis_values(series, column, decimal)
    low, high = column.bounds
    missing = np.isnan(values_) & ~unreadable
    clipped = np.clip(values_, low, high)
    codes = np.searchsorted(column.axis[1:-1], clipped, side="right").astype(np.int64)
    if column.out_of_domain is OutOfDomain.CLIP:
        missing |= unreadable
    else:
        other = unreadable | (values_ < low) | (values_ > high)
        codes[other] = cast(int, column.other_code)
        clipped[other] = np.nan
    codes[missing] = missing_code
    clipped[missing] = (
        np.nan
        if column.missing_constant is None
        else column.to_axis(column.missing_constant, "missing_constant")
    )
    return _compact(codes, column.size), clipped


# -- the unit of protection ----------------------------------------------------------------


def _kept(frame: pd.DataFrame, schema: Schema, unit: Unit, key: bytes) -> BoolArray:
    """Which rows stay: of every person with an id the first ``unit.rows`` in a keyed order."""
    name = cast(str, unit.person_column)
    declared = schema[name].missing_markers if name in schema else ()
    markers = {"", *(marker.strip() for marker in declared)}
    identities = [text.strip() for text in row_texts(frame[name])]
    person, _ = pd.factorize(np.array(identities, dtype=object))
    kept = np.array([text not in markers for text in identities], dtype=np.bool_)
    counts = np.bincount(person) if len(person) else np.zeros(0, dtype=np.int64)
    crowded = np.flatnonzero(kept & (counts > unit.rows)[person])
    if not len(crowded):
        return kept
    digests = _digests(frame.iloc[crowded], key)
    order = sorted(range(len(crowded)), key=lambda row: (person[crowded[row]], digests[row]))
    ranked = crowded[order]
    people = person[ranked]
    starts = np.flatnonzero(np.r_[True, people[1:] != people[:-1]])
    rank = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    kept[ranked[rank >= unit.rows]] = False
    return kept


def _digests(frame: pd.DataFrame, key: bytes) -> list[bytes]:
    """A keyed hash of each row's content and its number among equal rows.

    Columns enter by name, so that neither row order nor column order matters.
    """
    short = key if len(key) <= hashlib.blake2b.MAX_KEY_SIZE else hashlib.blake2b(key).digest()
    base = hashlib.blake2b(key=short, digest_size=16, person=b"person rows")
    columns = [row_texts(frame[name]) for name in sorted(frame.columns)]
    seen: dict[bytes, int] = {}
    digests = []
    for cells in zip(*columns, strict=True):
        content = "".join(f"{len(cell)}:{cell}" for cell in cells).encode(errors="surrogatepass")
        seen[content] = seen.get(content, -1) + 1
        digest = base.copy()
        digest.update(content + b"#%d" % seen[content])
        digests.append(digest.digest())
    return digests
