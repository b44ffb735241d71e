"""One Parquet file of a table that passes through in batches."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import ReadingError
from core.private.parquet_pages import MOST_FOOTER, Pages, unpacked_pages
from core.private.parquet_reading import damaged, is_text, refuse_types, within_calendar
from core.private.raw import Limits, settle_names
from core.private.streaming_files import PARQUET, Batch, footer_bytes, opened, stamp_of

#: Rows of one batch, and bytes that a batch should have unpacked.
BATCH_ROWS = 1 << 18
BATCH_BYTES = 1 << 26
#: What one page of each column may unpack to, together: a reader holds them at the same time.
PAGE_BYTES = 1 << 29
#: Bytes read at a time, so that a row group need not be held whole.
_BUFFER = 1 << 20


def parquet_size(path: Path) -> tuple[int, int, int] | None:
    """Rows, columns and unpacked bytes as the footer says; None where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with opened(path) as stream:
            if footer_bytes(stream) > MOST_FOOTER:
                return None
        facts = pq.read_metadata(path)
    except (ReadingError, pa.ArrowException, OSError, ValueError, KeyError):
        return None
    return int(facts.num_rows), int(facts.num_columns), _unpacked(facts)


def _unpacked(facts: Any) -> int:
    """Bytes of all row groups before compression."""
    return sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))


class ParquetPart:
    """Public facts of one file: names, types, number of rows, stamp; rows only as they pass.

    Raises
    ------
    ReadingError
        The file is no readable Parquet file, has columns that no declaration fits, or pages that
        do not fit into memory, whatever its footer says.
    """

    def __init__(self, path: Path, rename: Mapping[str, str] | None, limits: Limits) -> None:
        import pyarrow as pa

        self.path, self.kind = path, PARQUET
        self.stamp = stamp_of(path, PARQUET)
        with opened(path) as stream:
            if footer_bytes(stream) > MOST_FOOTER:
                raise damaged(path.name)
        file = self._open(())
        schema = file.schema_arrow
        found = [str(field.name) for field in schema]
        self.names = settle_names(found, rename, path.name, limits)
        if len(set(found)) < len(found):
            raise ReadingError(
                f"{path.name}: column names are repeated, which a file that is read in batches "
                "cannot have; rename them in the file"
            )
        refuse_types(schema, self.names, path.name)
        self.types = tuple(str(field.type) for field in schema)
        self._found = dict(zip(self.names, found, strict=True))
        self._texts = [str(field.name) for field in schema if is_text(pa, field.type)]
        self.rows: int | None = int(file.metadata.num_rows)
        file.close()
        pages = _pages_of(path)
        if sum(pages.largest) > PAGE_BYTES:
            raise ReadingError(
                f"{path.name}: one page of each column unpacks to more than {PAGE_BYTES:,} bytes, "
                "which have to be in memory at once; write the file again with smaller pages"
            )
        self.size = pages.total

    def batches(self, names: Collection[str]) -> Iterator[Batch]:
        """Rows of the named columns, batch by batch.

        Raises
        ------
        ReadingError
            A page cannot be read.
        """
        import pyarrow as pa

        wanted = [name for name in self.names if name in names]
        texts = [name for name in self._texts if name in {self._found[n] for n in wanted}]
        wide = self.size / max(self.rows or 1, 1)
        step = max(min(BATCH_ROWS, int(BATCH_BYTES / max(wide, 1))), 1)
        file = self._open(texts)
        done = 0
        try:
            found = [self._found[name] for name in wanted]
            for batch in file.iter_batches(batch_size=step, columns=found):
                table = pa.Table.from_batches([batch]).select(found).rename_columns(wanted)
                # Indices beyond a dictionary and texts that are no UTF-8 would fail later.
                table.validate(full=True)
                table = within_calendar(table)
                arrays = {name: _whole(pa, table.column(name)) for name in wanted}
                done += table.num_rows
                yield Batch(table.num_rows, arrays, done / max(self.rows or 1, 1))
        except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError):
            raise damaged(self.path.name) from None
        finally:
            file.close()

    def _open(self, texts: Collection[str]) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(
                self.path, read_dictionary=list(texts), buffer_size=_BUFFER, pre_buffer=False
            )
        except (pa.ArrowException, OSError, ValueError, KeyError):
            raise damaged(self.path.name) from None


def _pages_of(path: Path) -> Pages:
    """Sizes of the pages, from their own headers: the footer may say that they are small."""
    try:
        with (
            opened(path) as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        ):
            return unpacked_pages(mapped)
    except (OSError, ValueError, KeyError, TypeError):
        raise damaged(path.name) from None


def _whole(pa: Any, column: Any) -> Any:
    """One array of a batch's column."""
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else whole.chunk(0)
