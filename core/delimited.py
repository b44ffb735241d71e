"""Delimited text: its encoding, its delimiter, and its records one by one.

Shared by tables (``core.private.csv_reading``) and codebooks; keeps nothing of what it reads.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from core.errors import ReadingError

#: Delimiters that are looked for, and their names.
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
#: Decoded a piece at a time, so that checking an encoding needs no second copy of the file.
_PIECE = 1 << 20
#: Characters of one line; a table of 500 columns has room for 20,000 a cell.
LONGEST_LINE = 10_000_000
_SAMPLE = 1 << 16
_SIGNATURES = (
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document such as .xls"),
    (b"PAR1", "a Parquet file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"%PDF-", "a PDF document"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"ARROW1", "an Arrow file"),
    (b"\x80\x04\x95", "a Python pickle"),
    (b"\x80\x05\x95", "a Python pickle"),
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def binary_kind(data: bytes) -> str | None:
    r"""What a file that is not text appears to be, in words, by its first bytes.

    >>> binary_kind(b"\x1f\x8b..."), binary_kind(b"age,city")
    ('a gzip archive', None)
    """
    return next((words for magic, words in _SIGNATURES if data.startswith(magic)), None)


@dataclass(frozen=True)
class Encoding:
    """How text is written: the codec, whether it was guessed, and what to tell about it."""

    codec: str
    guessed: bool
    words: str


def find_encoding(data: bytes, name: str, encoding: str | None = None) -> Encoding:
    """The declared encoding, else by byte-order mark, else UTF-8, else a stated fallback.

    Raises
    ------
    ReadingError
        If the declared encoding is unknown.
    """
    mark = next((codec for magic, codec in _MARKS if data.startswith(magic)), None)
    if encoding is not None:
        try:
            known = codecs.lookup(encoding)
            "".encode(encoding)
        except (LookupError, UnicodeError, ValueError) as error:
            raise ReadingError(
                f"{name}: the encoding {encoding!r} is unknown; use for example utf-8 or cp1252"
            ) from error
        codec = "utf-8-sig" if mark == "utf-8-sig" and known.name == "utf-8" else encoding
        return Encoding(codec, False, f"encoding {encoding}, as declared")
    if mark is not None:
        return Encoding(mark, False, f"encoding {mark.upper()}, by its byte-order mark")
    if _decodes(data, "utf-8"):
        return Encoding("utf-8", False, "encoding UTF-8")
    codec = "cp1252" if _decodes(data, "cp1252") else "latin-1"
    return Encoding(
        codec,
        True,
        f"not UTF-8; read as {codec}, a guess: if accents look wrong, declare the encoding",
    )


def _decodes(data: bytes, codec: str) -> bool:
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        for start in range(0, len(data), _PIECE):
            decoder.decode(data[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def text_lines(data: bytes | TextIO, codec: str, name: str) -> Iterator[str]:
    """Lines with their ends; refuses NUL characters and undecodable bytes by line number.

    Raises
    ------
    ReadingError
        Naming the line, never its content.
    """
    number = 0
    try:
        stream = data
        if isinstance(stream, bytes):
            stream = io.TextIOWrapper(io.BytesIO(stream), encoding=codec, newline="")
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and line[-1] not in "\r\n":
                raise ReadingError(
                    f"{name}: line {number} is longer than {LONGEST_LINE:,} characters, so this is "
                    "no table; check how the file was written"
                )
            if "\0" in line:
                raise ReadingError(
                    f"{name}: line {number} holds NUL characters, so this is no plain text; save "
                    "it as CSV in UTF-8, or declare the encoding (for example utf-16-le)"
                )
            yield line
    except (UnicodeError, LookupError):
        raise ReadingError(
            f"{name}: the text after line {number} does not fit the encoding {codec}; declare "
            "another encoding, or save the file as UTF-8"
        ) from None  # the decoder's error holds the file's bytes


def records(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Records of delimited text, each with the number of its first line; blank lines are ``[]``.

    Raises
    ------
    ReadingError
        For an unclosed quotation mark or an oversized cell, naming the line.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    first = 1
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise ReadingError(
                f"{name}: the record that starts in line {first} cannot be split into cells "
                f"({_reason(str(error))}); close every quotation mark, and double those inside a "
                "quoted cell"
            ) from None
        if record is None:
            return
        yield first, record
        first = reader.line_num + 1


def _reason(words: str) -> str:
    """The parser's complaint in our words; its own are never shown, as they could quote cells."""
    if "field larger" in words:
        return "a cell is longer than 131,072 characters"
    if "unexpected end" in words:
        return "the file ends inside a quoted cell"
    return "text follows a closing quotation mark"


def find_delimiter(data: bytes, codec: str, name: str) -> tuple[str, bool]:
    """The delimiter and whether it was a choice between several.

    The header decides (it is public): the one candidate that occurs in it.  Only where several
    occur, the first records do: the candidate that gives most of them the header's length, then
    the one with more columns, then the order of ``DELIMITERS``.  None at all: one column.
    """
    piece = data[:_SAMPLE]
    try:
        sample = piece.decode(codec, errors="ignore").replace("\0", "")
    except (UnicodeError, LookupError):  # told by line number when the whole file is read
        return ",", False
    found: list[tuple[float, int, int, str]] = []
    for rank, delimiter in enumerate(DELIMITERS):
        rows = _sample_rows(sample, delimiter, name, whole=len(data) <= len(piece))
        if rows and len(rows[0]) > 1:
            alike = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
            found.append((alike, len(rows[0]), -rank, delimiter))
    if not found:
        return ",", False
    return max(found)[3], len(found) > 1


def _sample_rows(sample: str, delimiter: str, name: str, *, whole: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for _, record in records(io.StringIO(sample, newline=""), delimiter, name):
            if record:
                rows.append(record)
    except ReadingError:
        # Cut in the middle of a record, or quoted for another delimiter: judge by what was read.
        return rows
    return rows if whole or len(rows) < 2 else rows[:-1]
