"""Parquet to typed columns; unsuitable types are refused by column name before anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from core.errors import ReadingError
from core.private.parquet_pages import unpacked_pages
from core.private.raw import Limits, RawTable, ReadingReport, settle_names


def read_parquet(
    data: bytes,
    name: str,
    rename: Mapping[str, str] | Sequence[str] | None,
    limits: Limits,
) -> RawTable:
    """Read a Parquet file after checking its metadata.

    Raises
    ------
    ReadingError
        Naming file, columns and remedy; never a cell's value.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        unpacked = unpacked_pages(data).total
    except (ValueError, KeyError, TypeError):
        raise damaged(name) from None
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        arrow_schema = file.schema_arrow
    except (pa.ArrowException, OSError, ValueError, KeyError):
        raise damaged(name) from None
    names = settle_names([str(field.name) for field in arrow_schema], rename, name, limits)
    refuse_types(arrow_schema, names, name)
    _refuse_size(unpacked, file.metadata, name, limits)
    texts = [field.name for field in arrow_schema if is_text(pa, field.type)]
    try:
        # As dictionaries first: one long text repeated many times stays small.
        file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts)
        table = file.read().rename_columns(list(names))
        # Texts that are no UTF-8 and indices beyond a dictionary would fail later, quoting cells.
        table.validate(full=True)
        table = within_calendar(_plain_texts(table, arrow_schema, name, limits))
        frame = plain_frame(pa, table)
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError):
        raise damaged(name) from None
    if not len(frame):
        raise ReadingError(f"{name}: there are columns but no row; choose a full file")
    storage = {column: str(field.type) for column, field in zip(names, arrow_schema, strict=True)}
    report = ReadingReport("parquet", notes=("read as Parquet, with the types of the file",))
    return RawTable(frame, name, report, storage)


def damaged(name: str) -> ReadingError:
    """What is said of a file that cannot be read."""
    return ReadingError(
        f"{name}: the Parquet file is damaged or uses a feature that cannot be read; write it "
        "again, or export the table as CSV"
    )


def is_text(pa: Any, kind: Any) -> bool:
    """Whether an Arrow type is plain text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_readable(pa: Any, kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
        return bool(is_text(pa, kind) or types.is_integer(kind) or types.is_boolean(kind))
    return bool(
        is_text(pa, kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_null(kind)
    )


def refuse_types(arrow_schema: Any, names: tuple[str, ...], name: str) -> None:
    """Refuse nested, binary and other types that no declaration fits."""
    import pyarrow as pa

    bad = [
        f"{column!r} ({field.type})"
        for column, field in zip(names, arrow_schema, strict=True)
        if not _is_readable(pa, field.type)
    ]
    if bad:
        plural = "s" if len(bad) > 1 else ""
        raise ReadingError(
            f"{name}: column{plural} {', '.join(bad)} cannot be read; drop, or convert to text, "
            "numbers, booleans, dates or timestamps"
        )


def _refuse_size(unpacked: int, metadata: Any, name: str, limits: Limits) -> None:
    if metadata.num_rows > limits.rows:
        raise ReadingError(f"{name}: more than {limits.rows} rows; split the file")
    # A column takes about nine bytes a row in memory, however well it was packed.
    in_memory = 9 * metadata.num_rows * metadata.num_columns
    if max(unpacked, in_memory) > limits.unpacked_bytes:
        raise ReadingError(
            f"{name}: unpacked, the table is larger than {limits.unpacked_bytes:,} bytes; keep "
            "fewer rows or columns"
        )


def _plain_texts(table: Any, arrow_schema: Any, name: str, limits: Limits) -> Any:
    """Text columns undone from their dictionaries, if all of them together are small enough."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = 0
    for index, field in enumerate(arrow_schema):
        column = table.column(index)
        if not is_text(pa, field.type) or not pa.types.is_dictionary(column.type):
            continue
        for chunk in column.chunks:
            lengths = pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
            size += pc.sum(lengths).as_py() or 0
            if size > limits.unpacked_bytes:
                raise ReadingError(
                    f"{name}: unpacked, the texts are larger than {limits.unpacked_bytes:,} bytes; "
                    "drop long text columns"
                )
        plain = column.cast(pa.large_string())
        table = table.set_column(index, pa.field(table.field(index).name, plain.type), plain)
    return table


def within_calendar(table: Any) -> Any:
    """Moments beyond the years 1 to 9999 moved to the nearest day that every zone can show.

    Python has no dates there, and declared bounds lie within, so that such a moment is out of
    domain before and after; read as it is, it would stop the coding of a whole table.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = (datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC))
    for index, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_timestamp(kind) and kind.unit != "ns":
            low, high = (pa.scalar(end, pa.timestamp(kind.unit, "UTC")) for end in ends)
        elif pa.types.is_date(kind):
            low, high = (pa.scalar(end.date(), kind) for end in ends)
        else:
            continue
        plain = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        column = table.column(index).cast(plain)
        column = pc.max_element_wise(column, low.cast(plain), skip_nulls=False)
        column = pc.min_element_wise(column, high.cast(plain), skip_nulls=False)
        table = table.set_column(index, field, column.cast(kind))
    return table


def plain_frame(pa: Any, table: Any) -> pd.DataFrame:
    """Pandas columns that keep integers, booleans and their nulls apart from floats."""
    kinds = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
    }
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=kinds.get, ignore_metadata=True, date_as_object=False
    )
    return frame
