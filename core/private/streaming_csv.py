"""One CSV file of a table that passes through in batches; split by the reader of whole files."""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TextIO

from core.delimited import find_encoding, records, text_lines
from core.errors import ReadingError
from core.private.csv_reading import (
    CHUNK_CELLS,
    CsvOptions,
    full_rows,
    settled_delimiter,
    text_batch,
    without_guards,
)
from core.private.raw import Limits, settle_names
from core.private.streaming_files import CSV, Batch, head, opened, stamp_of
from core.spreadsheet import unguarded

_MARK = b"\xef\xbb\xbf"


class CsvPart:
    """Public facts of one file: names, delimiter, encoding, stamp; rows only as they pass.

    An encoding that is not declared is UTF-8 or what a byte-order mark says; nothing is guessed.

    Raises
    ------
    ReadingError
        The file is no delimited text with a header.
    """

    def __init__(
        self,
        path: Path,
        options: CsvOptions,
        rename: Mapping[str, str] | None,
        limits: Limits,
    ) -> None:
        self.path, self.kind = path, CSV
        self.stamp = stamp_of(path, CSV)
        self.size = self.stamp.size
        self.rows: int | None = None
        start = head(path)
        found = find_encoding(start[:4], path.name, options.encoding)
        self.codec = "utf-8" if found.guessed else found.codec  # the mark decides, or nothing does
        self.delimiter, self.guessed = settled_delimiter(
            start, self.codec, path.name, options.delimiter
        )
        marked = start.startswith(_MARK)
        self.guarded = marked if options.formula_guard is None else options.formula_guard
        with opened(path) as raw, self._text(raw) as stream:
            header, _ = self._records(stream)
        if self.guarded:
            header = [unguarded(text) for text in header]
        self.names = settle_names(header, rename, path.name, limits)
        self.types = ("text",) * len(self.names)

    def batches(self, names: Collection[str]) -> Iterator[Batch]:
        """Rows of the named columns as text, batch by batch.

        Raises
        ------
        ReadingError
            Naming a line that is no row of the table.
        """
        import pyarrow as pa

        places = {name: place for place, name in enumerate(self.names) if name in names}
        with opened(self.path) as raw, self._text(raw) as stream:
            _, found = self._records(stream)
            rows = full_rows(found, len(self.names), self.path.name)
            size = max(CHUNK_CELLS // len(self.names), 1)
            for some in _batched(rows, size):
                table = pa.Table.from_batches([text_batch(pa, some)])
                if self.guarded:
                    table, _ = without_guards(table)
                arrays = {
                    name: table.column(place).combine_chunks() for name, place in places.items()
                }
                yield Batch(len(some), arrays, raw.tell() / max(self.size, 1))

    def _text(self, raw: BinaryIO) -> io.TextIOWrapper:
        return io.TextIOWrapper(raw, encoding=self.codec, newline="")

    def _records(self, stream: TextIO) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
        """The header, and the records below it."""
        name = self.path.name
        found = records(text_lines(stream, self.codec, name), self.delimiter, name)
        header = next((record for _, record in found if record), None)
        if header is None:
            raise ReadingError(f"{name}: the file is empty; choose a file with a header and rows")
        return header, found


def _batched(rows: Iterator[list[str]], size: int) -> Iterator[list[list[str]]]:
    while some := list(itertools.islice(rows, size)):
        yield some
