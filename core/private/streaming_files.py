"""Which files a path, a glob or a folder stands for, and whether one changed since."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from core.delimited import binary_kind
from core.errors import ReadingError, SourceError

PARQUET, CSV = "parquet", "csv"
#: Endings of files that are read in batches.
ENDINGS = {".parquet": PARQUET, ".pq": PARQUET, ".csv": CSV, ".tsv": CSV, ".tab": CSV}
#: More files than this are a wrong pattern.
MOST_FILES = 100_000
_HEAD = 1 << 16


@dataclass(frozen=True)
class Stamp:
    """What tells that a file is the one that was looked at: size, time and (Parquet) footer."""

    size: int
    modified: int
    footer: str = ""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows as one Arrow array a column, and the share of the file that was read so far."""

    rows: int
    arrays: Mapping[str, Any]
    share: float


def is_pattern(path: str | Path) -> bool:
    """Whether a path is a glob rather than the name of a file or folder that is there."""
    return glob.has_magic(str(path)) and not Path(path).exists()


def files_of(path: str | Path) -> tuple[Path, ...]:
    """The data files of a file, folder or glob, in order of their names.

    In a folder, names that start with ``_`` or ``.`` are left out, as Spark's own files do.

    Raises
    ------
    ReadingError
        There are none, or a folder holds something else besides: nothing is left out silently.
    """
    if is_pattern(path):
        files = _matching(Path(path))
    elif Path(path).is_dir():
        files = _in_folder(Path(path))
    else:
        files = [Path(path)]
    if not files:
        raise ReadingError(f"{Path(path).name}: there is no Parquet or CSV file; check the path")
    if len(files) > MOST_FILES:
        raise ReadingError(f"{Path(path).name}: more than {MOST_FILES:,} files; check the pattern")
    named = next((file for file in files if len(files) > 1 and "=" in file.parent.name), None)
    if named is not None:
        raise ReadingError(
            f"{Path(path).name}: folders named after a value ({named.parent.name.split('=')[0]}=…) "
            "hold a column that the files lack; write the table without partitions"
        )
    return tuple(files)


def _matching(pattern: Path) -> list[Path]:
    fixed = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    root, rest = Path(*pattern.parts[:fixed]), Path(*pattern.parts[fixed:])
    try:
        return sorted(file for file in root.glob(str(rest)) if file.is_file())
    except (OSError, ValueError):
        raise ReadingError(f"{pattern.name}: the pattern cannot be followed; check it") from None


def _in_folder(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        raise ReadingError(f"{folder.name}: the folder cannot be read; check its rights") from None
    files = [entry for entry in entries if not entry.name.startswith(("_", "."))]
    for entry in files:
        if entry.is_dir():
            raise ReadingError(
                f"{folder.name}: the folder holds a folder; give a glob such as "
                f"'{folder.name}/*/*.parquet' that says which files are meant"
            )
        if entry.suffix.lower() not in ENDINGS:
            raise ReadingError(
                f"{folder.name}: {entry.name} is no Parquet or CSV file by its name; take it out "
                f"of the folder, or give a glob such as '{folder.name}/*.parquet'"
            )
    return files


def format_of(files: Sequence[Path]) -> str:
    """``parquet`` or ``csv``, the same for all files, by their first bytes.

    Raises
    ------
    ReadingError
        The files are of both kinds or of another, or one is not what its name says.
    """
    formats: dict[str, str] = {}
    for file in files:
        start = head(file, 64)
        kind = PARQUET if start.startswith(b"PAR1") else CSV
        promised = ENDINGS.get(file.suffix.lower(), kind)
        other = None if kind == PARQUET else binary_kind(start)
        if other is not None or promised != kind or not start:
            what = "an empty file" if not start else other or f"no {promised} file"
            raise ReadingError(
                f"{file.name}: this is {what}; tables that are read in batches are Parquet or "
                "plain CSV files"
            )
        formats.setdefault(kind, file.name)
    if len(formats) > 1:
        raise ReadingError(
            f"{formats[PARQUET]} is a Parquet file and {formats[CSV]} is not; give files of one "
            "format"
        )
    return next(iter(formats))


def opened(file: Path) -> BinaryIO:
    """A file for reading.

    Raises
    ------
    ReadingError
        It is not there or cannot be opened.
    """
    try:
        return file.open("rb")
    except FileNotFoundError:
        raise ReadingError(f"{file.name}: there is no such file; check the path") from None
    except (OSError, ValueError):
        raise ReadingError(
            f"{file.name}: the file cannot be opened; check path and rights"
        ) from None


def head(file: Path, size: int = _HEAD + 1) -> bytes:
    """First bytes of a file."""
    with opened(file) as stream:
        return stream.read(size)


def footer_bytes(stream: BinaryIO) -> int:
    """Length of a Parquet file's footer, as its last bytes say."""
    size = stream.seek(0, os.SEEK_END)
    if size < 12:
        return 0
    stream.seek(-8, os.SEEK_END)
    return min(int.from_bytes(stream.read(4), "little"), size)


def stamp_of(file: Path, kind: str) -> Stamp:
    """The stamp of a file as it is now."""
    with opened(file) as stream:
        facts = os.fstat(stream.fileno())
        footer = ""
        if kind == PARQUET:
            stream.seek(-min(footer_bytes(stream) + 8, facts.st_size), os.SEEK_END)
            footer = hashlib.sha256(stream.read()).hexdigest()
    return Stamp(facts.st_size, facts.st_mtime_ns, footer)


def check_stamp(file: Path, kind: str, stamp: Stamp) -> None:
    """Refuse a file that is not the one that was looked at.

    Raises
    ------
    SourceError
        Naming the file.
    """
    try:
        now = stamp_of(file, kind)
    except (ReadingError, OSError):
        raise SourceError(
            f"{file.name}: the file cannot be read any more; restore it and attach the table anew"
        ) from None
    if now != stamp:
        raise SourceError(
            f"{file.name}: the file was changed since the table was attached; attach it anew"
        )
