"""A table on disk whose rows pass through in batches: a file, a folder or a glob.

For tables larger than memory.  Only public facts are held: names, types, sizes, and the stamp of
every file, by which a file that changes between two passes is noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core.errors import ReadingError, SourceError
from core.private.coding import modelled_in_file
from core.private.csv_reading import CsvOptions
from core.private.fingerprint import Fingerprint
from core.private.moments import MAXIMUM_ROWS
from core.private.raw import Limits, ReadingReport
from core.private.source import Watched
from core.private.streaming_columns import ColumnCoder, Spread
from core.private.streaming_csv import CsvPart
from core.private.streaming_files import (
    ENDINGS,
    PARQUET,
    Batch,
    Stamp,
    check_stamp,
    files_of,
    format_of,
    is_pattern,
)
from core.private.streaming_parquet import ParquetPart, parquet_size
from core.private.table import CodedTable
from core.protocols import Progress
from core.schema import Schema


class Part(Protocol):
    """One file of a table."""

    path: Path
    kind: str
    stamp: Stamp
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: int | None
    size: int

    def batches(self, names: Collection[str]) -> Iterator[Batch]:
        """Rows of the named columns, batch by batch."""
        ...


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """A table as it lies on disk; confidential, like :class:`core.private.raw.RawTable`.

    Attributes
    ----------
    name
        Of the file, folder or glob, for messages.
    parts
        The files, all with the same columns and types.
    report
        How they are understood.
    """

    name: str
    parts: tuple[Part, ...]
    report: ReadingReport

    def __repr__(self) -> str:
        """Only public facts."""
        return f"StreamedTable({self.name!r}, {len(self.parts)} files, rows confidential)"

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return self.parts[0].names

    @property
    def storage(self) -> dict[str, str]:
        """Arrow type name of each column of Parquet files."""
        parquet = self.report.format == PARQUET
        return dict(zip(self.names, self.parts[0].types, strict=True)) if parquet else {}


@dataclass(frozen=True)
class Survey:
    """What one look at all rows found: how many there are, and the table's fingerprint."""

    rows: int
    mark: str


def needs_batches(path: str | Path, limits: Limits | None = None) -> bool:
    """Whether a table is too large to be read whole, or lies in several files.

    A file that cannot be read is not: the reader of whole files says what is wrong with it.
    """
    limits = Limits() if limits is None else limits
    place = Path(path)
    if is_pattern(path) or place.is_dir():
        return True
    if not place.is_file():
        return False
    if place.stat().st_size > limits.bytes:
        return True
    size = parquet_size(place) if ENDINGS.get(place.suffix.lower()) == PARQUET else None
    if size is None:
        return False
    rows, columns, unpacked = size
    return rows > limits.rows or max(unpacked, 9 * rows * columns) > limits.unpacked_bytes


def open_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    formula_guard: bool | None = None,
    rename: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> StreamedTable:
    """Look at headers and footers of all files; no row is read.

    Parameters
    ----------
    path
        A Parquet or CSV file, a folder of such files, or a glob.
    delimiter, encoding, decimal, formula_guard, rename
        As for :func:`core.private.reading.read_table`; nothing is found out from rows.
    limits
        Of these, the bounds on columns and the length of their names apply.

    Raises
    ------
    ReadingError
        A file cannot be read, or the files do not have the same columns and types.
    """
    limits = Limits() if limits is None else limits
    label = Path(path).name or str(path)
    if decimal not in (".", ","):
        raise ReadingError(f"{label}: decimal must be a point or a comma")
    files = files_of(path)
    note = f"read in batches from {len(files):,} file{'s' if len(files) > 1 else ''}"
    parts: tuple[Part, ...]
    if format_of(files) == PARQUET:
        parts = tuple(ParquetPart(file, rename, limits) for file in files)
        report = ReadingReport("parquet", notes=(note,))
    else:
        options = CsvOptions(delimiter, encoding, decimal, formula_guard)
        texts = tuple(CsvPart(file, options, rename, limits) for file in files)
        parts, report = texts, _report_of(texts, decimal, note)
    _check_alike(parts)
    if sum(part.rows or 0 for part in parts) >= MAXIMUM_ROWS:
        raise ReadingError(f"{label}: there are 2**29 rows or more; split the table")
    return StreamedTable(label, parts, report)


def _report_of(parts: tuple[CsvPart, ...], decimal: str, note: str) -> ReadingReport:
    first = parts[0]
    for part in parts:
        if (part.delimiter, part.codec) != (first.delimiter, first.codec):
            raise ReadingError(
                f"{part.path.name}: it is delimited or encoded otherwise than {first.path.name}; "
                "write all files alike, or declare both under [reading] in the plan"
            )
    return ReadingReport(
        "csv",
        delimiter=first.delimiter,
        encoding=first.codec,
        decimal=decimal,
        guessed=("delimiter",) if any(part.guessed for part in parts) else (),
        notes=(note,),
    )


def _check_alike(parts: tuple[Part, ...]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.names != first.names:
            raise ReadingError(
                f"{part.path.name} has other columns than {first.path.name} (or in another "
                "order); all files of one table must have the same columns"
            )
        for name, one, other in zip(first.names, first.types, part.types, strict=True):
            if one != other:
                raise ReadingError(
                    f"column {name!r} is {one} in {first.path.name} and {other} in "
                    f"{part.path.name}; all files of one table must have the same types"
                )


class _Reader(Watched):
    """Passes over the rows of a table, and says how far it is."""

    def __init__(self, table: StreamedTable) -> None:
        self._table = table

    def batches(self, names: Collection[str]) -> Iterator[Batch]:
        """Rows batch by batch; every file must be the one that was opened.

        Raises
        ------
        ReadingError
            A file is damaged; a :class:`SourceError` if it changed.
        """
        import pyarrow as pa

        parts = self._table.parts
        total, done = sum(part.size for part in parts), 0
        for part in parts:
            check_stamp(part.path, part.kind, part.stamp)
            try:
                for batch in part.batches(names):
                    yield batch
                    self.tell(done + int(batch.share * part.size), total)
            except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError):
                # Their own words may quote a cell.
                raise ReadingError(f"{part.path.name}: the file cannot be read") from None
            check_stamp(part.path, part.kind, part.stamp)
            done += part.size


def survey(table: StreamedTable, key: bytes, progress: Progress | None = None) -> Survey:
    """Read all rows once, before anything is charged: whether they can be read, count and mark.

    Parameters
    ----------
    key
        The ledger's secret.
    progress
        Told a percentage of the bytes; may raise ``Cancelled``.

    Returns
    -------
    Survey
        The mark is that of :func:`core.private.fingerprint.fingerprint` for the same rows.

    Raises
    ------
    ReadingError
        A file cannot be read or split into rows, or there is no row or far too many.
    """
    reader = _Reader(table)
    reader.watch(progress)
    growing = Fingerprint(list(table.names), key)
    spreads = {name: Spread(table.name) for name in table.names}
    rows = 0
    for batch in reader.batches(table.names):
        apart = [spreads[name].take_apart(batch.arrays[name]) for name in table.names]
        growing.add(apart, batch.rows)
        rows += batch.rows
        if rows >= MAXIMUM_ROWS:
            raise ReadingError(f"{table.name}: there are 2**29 rows or more; split the table")
    if not rows:
        raise ReadingError(f"{table.name}: there are columns but no row; choose a full table")
    return Survey(rows, growing.hexdigest())


class StreamedBatches:
    """Coded batches of a table on disk, as :func:`core.private.coding.encode` would code them.

    Parameters
    ----------
    table
        The files.
    schema
        Declarations; identifiers and free text are left out.
    rows
        Number of rows that the survey found.

    Raises
    ------
    SchemaError
        If a declared column is not in the files, or none can be modelled.
    """

    def __init__(self, table: StreamedTable, schema: Schema, rows: int) -> None:
        modelled = modelled_in_file(table, schema)
        self.schema = Schema(modelled)
        self.rows = rows
        self._reader = _Reader(table)
        self._name, self._decimal = table.name, table.report.decimal

    def read(self, names: Collection[str], numbers: Collection[str]) -> Iterator[CodedTable]:
        """All rows in batches.

        Raises
        ------
        SourceError
            A file cannot be read as it was at the survey.  The message holds no value.
        """
        part = Schema(tuple(c for c in self.schema.columns if c.name in names or c.name in numbers))
        # They remember a batch, so that each reading has its own.
        coders = {c.name: ColumnCoder(c, self._decimal, self._name) for c in part.columns}
        try:
            for batch in self._reader.batches(part.names):
                codes, found = {}, {}
                for name in part.names:
                    wanted = name in numbers
                    codes[name], values = coders[name].code(batch.arrays[name], numbers=wanted)
                    if values is not None:
                        found[name] = values
                yield CodedTable(part, codes, found, batch.rows)
        except SourceError:
            raise
        except ReadingError:
            raise SourceError(
                f"{self._name}: the rows cannot be read as they were when the table was attached; "
                "restore the files and attach them anew"
            ) from None
