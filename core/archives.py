"""ZIP archives from strangers: what they unpack to is bounded before anything is unpacked."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from core.errors import ReadingError

#: What opening or reading a damaged, encrypted or lying archive raises.
DAMAGE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, RuntimeError, ValueError, LookupError, TypeError, MemoryError),
)
#: More members than this are a trick; each costs memory before it is looked at.
MOST_MEMBERS = 10_000
#: A member may unpack to this many times its size; smaller ones are harmless however packed.
MOST_RATIO = 150
HARMLESS = 20_000_000
_MEMBER = b"PK\x01\x02"
_PIECE = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def open_archive(
    source: bytes | Path, name: str, unpacked: int, *, dense: Iterable[str] = ()
) -> Iterator[zipfile.ZipFile]:
    """An archive whose members together unpack to at most ``unpacked`` bytes.

    Declared sizes can be trusted from here on: reading stops at them, and fails if they lie.

    Parameters
    ----------
    source
        The content, or the file.
    name
        For messages.
    dense
        Members that may be packed as well as they like, because they are read piece by piece.

    Raises
    ------
    ReadingError
        No archive, too many members, members that overlap or are packed by an unusual method, or
        more than may be unpacked.
    """
    with ExitStack() as stack:
        try:
            stream: BinaryIO = (
                io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
            )
            stack.enter_context(stream)
            archive = stack.enter_context(_checked(stream, name, unpacked, frozenset(dense)))
        except DAMAGE as error:
            raise ReadingError(f"{name}: it cannot be opened as a zip file") from error
        yield archive


def _checked(stream: BinaryIO, name: str, unpacked: int, dense: frozenset[str]) -> zipfile.ZipFile:
    size, members = _measured(stream)
    if members > MOST_MEMBERS:
        raise ReadingError(f"{name}: it holds more than {MOST_MEMBERS:,} files")
    archive = zipfile.ZipFile(stream)
    entries = archive.infolist()
    if sum(entry.file_size for entry in entries) > unpacked:
        raise ReadingError(f"{name}: unpacked, it is larger than {unpacked:,} bytes")
    if sum(entry.compress_size for entry in entries) > size:
        raise ReadingError(f"{name}: its files overlap, which no honest zip file's do")
    for entry in entries:
        if entry.compress_type not in _METHODS:
            raise ReadingError(f"{name}: its files are packed by a method that is not read here")
        packed = max(entry.compress_size, 1)
        is_bomb = entry.file_size > HARMLESS and entry.file_size > MOST_RATIO * packed
        if is_bomb and entry.filename not in dense:
            raise ReadingError(
                f"{name}: a file in it unpacks to more than {MOST_RATIO} times its size"
            )
    return archive


def _measured(stream: BinaryIO) -> tuple[int, int]:
    """Size, and an upper bound on the number of members, without building a list of them."""
    size = members = 0
    tail = b""
    while piece := stream.read(_PIECE):
        members += (tail + piece).count(_MEMBER)
        size += len(piece)
        tail = piece[-len(_MEMBER) + 1 :]
    stream.seek(0)
    return size, members
