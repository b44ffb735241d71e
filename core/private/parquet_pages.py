"""What the pages of a Parquet file unpack to, read from their own headers.

The footer says how large each column is, and may lie; readers allocate what each page's header
says.  Footer and headers are Thrift's compact protocol (``parquet.thrift``: ``FileMetaData`` and
``PageHeader``).  They are read here in Python, because the library's own accessors of a column's
metadata end the process where its statistics contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any

#: A file's bytes, or the file mapped into memory.
Buffer = bytes | mmap
#: A footer is held in memory many times its size, and takes a second a megabyte to look over.
MOST_FOOTER = 16_000_000
#: No writer makes so many pages of what may be read here.
_MOST_PAGES = 1_000_000
_DEEPEST = 16
#: Field numbers of ``FileMetaData``, ``RowGroup``, ``ColumnChunk`` and ``ColumnMetaData``,
_ROW_GROUPS, _COLUMNS, _META, _VALUES, _CHUNK, _DATA, _DICTIONARY = 4, 1, 3, 5, 7, 9, 11
#: and of ``PageHeader``.
_UNCOMPRESSED, _COMPRESSED = 2, 3


@dataclass(frozen=True)
class Pages:
    """Bytes that pages unpack to: all of a file together, and the largest of each column."""

    total: int
    largest: tuple[int, ...]


def unpacked_pages(data: Buffer) -> Pages:
    """What a file's pages unpack to; of a file mapped into memory only headers are read.

    Raises
    ------
    ValueError
        Footer or a header cannot be read, or there are far too many pages.
    """
    size = int.from_bytes(data[-8:-4], "little")
    if not 0 < size <= min(MOST_FOOTER, len(data) - 12):
        raise ValueError("the footer has another length")
    footer = _Reader(data, len(data) - 8 - size).struct(0)
    total = pages = 0
    largest: dict[int, int] = {}
    for group in _structs(footer, _ROW_GROUPS):
        for number, chunk in enumerate(_structs(group, _COLUMNS)):
            for unpacked in _of_chunk(data, chunk):
                total += unpacked
                largest[number] = max(largest.get(number, 0), unpacked)
                pages += 1
                if pages > _MOST_PAGES:
                    raise ValueError("too many pages")
    return Pages(total, tuple(largest.values()))


def _of_chunk(data: Buffer, chunk: dict[int, Any]) -> Iterator[int]:
    """Unpacked size of each page of a column in a row group."""
    column = chunk.get(_META)
    if not isinstance(column, dict):
        raise ValueError("a column without metadata")
    if not column.get(_VALUES):
        return  # some writers leave no page of an empty column
    place, first = int(column[_DATA]), int(column.get(_DICTIONARY, 0))
    place = first if 0 < first < place else place
    end = min(place + int(column[_CHUNK]), len(data))
    while 0 <= place < end:
        place, unpacked = _page(data, place)
        yield unpacked


def _structs(plain: dict[int, Any], field: int) -> list[dict[int, Any]]:
    found = plain.get(field, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError("no list of structs")
    return found


def _page(data: Buffer, place: int) -> tuple[int, int]:
    """Where the next page starts, and what this one unpacks to."""
    reader = _Reader(data, place)
    fields = reader.struct(0)
    packed, unpacked = fields.get(_COMPRESSED), fields.get(_UNCOMPRESSED)
    if not isinstance(packed, int) or not isinstance(unpacked, int) or min(packed, unpacked) < 0:
        raise ValueError("a page without a size")
    return reader.place + packed, unpacked


class _Reader:
    """A reader of Thrift structs that keeps whole numbers, structs and lists, and skips the rest.

    Raises
    ------
    ValueError
        The bytes end early, or are nested deeper than anything of Parquet's.
    """

    def __init__(self, data: Buffer, place: int) -> None:
        self._data = data
        self.place = place

    def struct(self, depth: int) -> dict[int, Any]:
        """Fields by their number."""
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._number()
            if kind not in (1, 2):  # truth values stand in the field's head
                found[field] = self._value(kind, depth + 1)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind in (4, 5, 6):
            return self._number()
        if kind in (1, 2, 3, 7):
            return self._skip(8 if kind == 7 else 1)
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            if size > len(self._data):
                raise ValueError("more items than bytes")
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == 12:
            return self.struct(depth)
        raise ValueError("an unknown type")

    def _byte(self) -> int:
        if not 0 <= self.place < len(self._data):
            raise ValueError("cut off")
        self.place += 1
        return self._data[self.place - 1]

    def _skip(self, length: int) -> None:
        self.place += length
        if self.place > len(self._data):
            raise ValueError("cut off")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number without end")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
