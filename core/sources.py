"""Tables that lie where the server can reach them: folders and connections an administrator offers.

The TOML file that ``JUSTITIA_SOURCES`` names says what is offered, and to whom; without it nothing
is.  It holds no credential: a connection is one that ``JUSTITIA_CONNECTIONS`` knows by that name
(:mod:`core.private.ibis_connection`), and what is remembered about a table is a name and a path.
Only headers, footers and the engine's schema are read here, never a row.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import tomllib
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlencode

from core.errors import PlanError, ReadingError
from core.kind_hints import kind_for
from core.plan import POINT, ReadingPlan
from core.private import streaming_files
from core.private.fingerprint import secret
from core.private.ibis_connection import DatabaseTable, connections, open_database
from core.private.ledger import Ledger
from core.private.streaming import StreamedTable, open_table
from core.releases import Unit
from core.schema import Kind

SOURCES = "JUSTITIA_SOURCES"
FOLDER, CONNECTION = "folder", "connection"
#: Endings of files that are offered as tables.
ENDINGS = tuple(streaming_files.ENDINGS)
#: So many tables of a folder are listed, after a look at so many entries, so many levels down.
LISTED, LOOKED_AT, LEVELS = 300, 5_000, 4
#: A folder with more table files than this is listed as one table only.
APART = 20
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_LONGEST = 1_000

#: A table that was opened: public facts, and a way to its rows.
Opened = StreamedTable | DatabaseTable


@dataclass(frozen=True)
class Folder:
    """A folder below which tables may be used; its path is shown to nobody."""

    name: str
    path: Path = field(repr=False)


@dataclass(frozen=True)
class Connection:
    """A database that may be used, and which of its tables (None: all it lets us read)."""

    name: str
    tables: tuple[str, ...] | None


@dataclass(frozen=True)
class Offer:
    """What the administrator offers to one person."""

    folders: Mapping[str, Folder] = field(default_factory=dict)
    connections: Mapping[str, Connection] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.folders or self.connections)


@dataclass(frozen=True)
class ServerTable:
    """What a project remembers of a table on the server: names, never a row or a credential.

    Attributes
    ----------
    kind
        ``folder`` or ``connection``.
    name
        Which folder or connection.
    table
        Path below the folder, or the table's name in the database (``schema.table``).
    version
        In a database: the text by which its keeper tells this state of the rows from others.
    seen
        Keyed digest of columns and, for files, their stamps when the table was chosen.
    """

    kind: str
    name: str
    table: str
    version: str = ""
    seen: str = ""

    @property
    def label(self) -> str:
        """The table in words, for the person who chose it."""
        if self.kind == FOLDER:
            return self.name if self.table == "." else f"{self.table} in {self.name}"
        return f"{self.table} in {self.name}, version {self.version}"

    def to_dict(self) -> dict[str, str]:
        """Plain texts."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ServerTable:
        """Inverse of :meth:`to_dict`.

        Raises
        ------
        ValueError
            It is no such document.
        """
        found = cls(**plain)
        texts = all(isinstance(value, str) for value in found.to_dict().values())
        if not texts or found.kind not in (FOLDER, CONNECTION):
            raise ValueError("no table on a server")
        return found


@dataclass(frozen=True)
class Listing:
    """Tables below a folder, and whether there may be more than are listed."""

    tables: tuple[str, ...]
    more: bool


# -- what is offered ---------------------------------------------------------------------------


def offered(who: Collection[str], environ: Mapping[str, str] | None = None) -> Offer:
    """What the administrator offers to a person.

    Parameters
    ----------
    who
        Names of the person (id on this server, verified address); nobody is offered anything
        without one.
    environ
        The environment, unless given.

    Raises
    ------
    ReadingError
        The settings are wrong; the message quotes nothing of them.
    """
    environ = os.environ if environ is None else environ
    named = environ.get(SOURCES, "").strip()
    if not named or not who:
        return Offer()
    try:
        plain = tomllib.loads(Path(named).read_text("utf-8"))
    except (OSError, ValueError):
        raise _wrong() from None
    if not plain.keys() <= {"folders", "connections"}:
        raise _wrong()
    mine = {name.casefold() for name in who}
    places = _entries(plain, "folders", {"path", "owners"})
    paths = {name: _folder_path(entry) for name, entry in places.items()}
    folders = {
        name: Folder(name, paths[name]) for name, entry in places.items() if _is_for(entry, mine)
    }
    known = connections(environ)
    databases = {
        name: Connection(name, known[name][1])
        for name, entry in _entries(plain, "connections", {"owners"}).items()
        if _is_for(entry, mine) and name in known
    }
    return Offer(folders, databases)


def _wrong() -> ReadingError:
    return ReadingError(
        f"the file that {SOURCES} names cannot be used; whoever runs this server has to mend it: "
        "tables [folders.NAME] with path = '/…' and [connections.NAME], each with owners = ['…'] "
        "if it is not for everybody"
    )


def _entries(plain: Mapping[str, Any], kind: str, keys: set[str]) -> dict[str, Any]:
    entries = plain.get(kind, {})
    if not isinstance(entries, dict):
        raise _wrong()
    for name, entry in entries.items():
        if not _NAME.fullmatch(name) or not isinstance(entry, dict) or not entry.keys() <= keys:
            raise _wrong()
    return entries


def _is_for(entry: Mapping[str, Any], mine: set[str]) -> bool:
    owners = entry.get("owners")
    if owners is None:
        return True
    if not isinstance(owners, list) or not all(isinstance(owner, str) for owner in owners):
        raise _wrong()
    return bool(mine & {owner.strip().casefold() for owner in owners})


def _folder_path(entry: Mapping[str, Any]) -> Path:
    path = entry.get("path")
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise _wrong()
    return Path(path)


# -- folders -----------------------------------------------------------------------------------


def listing(folder: Folder) -> Listing:
    """Table files below a folder, and folders that hold nothing else; a bounded look.

    Hidden entries and symbolic links are left out.

    Raises
    ------
    ReadingError
        The folder itself cannot be read.
    """
    root = _root(folder)
    found: list[str] = []
    waiting, looked, more = deque([(root, 0)]), 0, False
    while waiting:
        place, level = waiting.popleft()
        try:
            entries, count = _entries_of(place, LOOKED_AT - looked)
        except OSError:
            if place == root:
                raise _unreadable(folder) from None
            continue  # a folder that may not be read is not offered
        looked += count
        found += _tables_among(entries, PurePosixPath(place.relative_to(root)))
        below = sorted(place / name for name, is_folder in entries if is_folder)
        if level < LEVELS:
            waiting.extend((path, level + 1) for path in below)
        else:
            more = more or bool(below)
        if looked > LOOKED_AT:
            more = True
            break
    found.sort()
    return Listing(tuple(found[:LISTED]), more or len(found) > LISTED)


def _entries_of(place: Path, most: int) -> tuple[list[tuple[str, bool]], int]:
    """Names in a folder, and whether each is a folder; also how many were seen, one past ``most``.

    Hidden entries and symbolic links are seen and left out.
    """
    with os.scandir(place) as scan:
        seen = list(islice(scan, most + 1))
    plain = [
        (entry.name, entry.is_dir(follow_symlinks=False))
        for entry in seen[:most]
        if not entry.name.startswith((".", "_")) and not entry.is_symlink()
    ]
    return plain, len(seen)


def _tables_among(entries: list[tuple[str, bool]], place: PurePosixPath) -> list[str]:
    """What one folder adds to the list: itself, where it is a table, and its files."""
    files = [name for name, is_folder in entries if not is_folder]
    tables = [name for name in files if name.lower().endswith(ENDINGS)]
    whole = len(tables) > 1 and len(tables) == len(entries)
    found = [str(place)] if whole else []
    if not whole or len(tables) <= APART:
        found += [str(place / name) for name in tables]
    return found


def _root(folder: Folder) -> Path:
    try:
        return folder.path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise _unreadable(folder) from None


def _unreadable(folder: Folder) -> ReadingError:
    return ReadingError(
        f"the folder {folder.name!r} cannot be read; whoever runs this server has to look after it"
    )


def path_below(folder: Folder, relative: str) -> Path:
    """The real path of a table below a folder; every link is followed before it is judged.

    Raises
    ------
    ReadingError
        There is no table of that name below the folder: one sentence for what is not there, what
        is no table, and what lies elsewhere, so that nothing is told about other places.
    """
    root = _root(folder)
    refusal = ReadingError(
        f"there is no such table below {folder.name!r}; choose a Parquet or CSV file, or a folder "
        "that holds nothing else"
    )
    pure = PurePosixPath(relative)
    if not relative or len(relative) > _LONGEST or "\0" in relative or pure.is_absolute():
        raise refusal
    if any(part.startswith((".", "_")) for part in pure.parts):
        raise refusal
    try:
        place = (root / pure).resolve(strict=True)
        if not place.is_relative_to(root):
            raise refusal
        if place.is_dir():
            inside = [file.resolve(strict=True) for file in streaming_files.files_of(place)]
        else:
            inside = [place]
    except (OSError, RuntimeError):
        raise refusal from None
    for file in inside:
        regular = file.is_file() and file.name.lower().endswith(ENDINGS)
        if not regular or not file.is_relative_to(root):
            raise refusal
    return place


# -- opening -----------------------------------------------------------------------------------


def choose(
    wanted: ServerTable, reading: ReadingPlan, offer: Offer, ledger: Ledger
) -> tuple[ServerTable, Opened]:
    """Look at the columns of a table that is offered, and remember what it looks like now.

    Returns
    -------
    tuple
        The table to remember, and what was opened; no row was read.

    Raises
    ------
    ReadingError
        It is not offered, not there, or not readable.
    """
    table = _opened(wanted, reading, offer)
    return replace(wanted, seen=_seen(table, secret(ledger))), table


def open_again(known: ServerTable, reading: ReadingPlan, offer: Offer, ledger: Ledger) -> Opened:
    """Open a table that was chosen before, as it was then.

    Raises
    ------
    ReadingError
        It is gone, no longer offered, or no longer what was chosen.
    """
    table = _opened(known, reading, offer)
    if not hmac.compare_digest(_seen(table, secret(ledger)), known.seen):
        what = "its columns are" if known.kind == CONNECTION else "the files are"
        raise ReadingError(
            f"{known.label}: {what} no longer what they were when the table was chosen; choose it "
            "again on Data if that is right"
        )
    return table


def _opened(wanted: ServerTable, reading: ReadingPlan, offer: Offer) -> Opened:
    if wanted.kind == FOLDER:
        folder = offer.folders.get(wanted.name)
        if folder is None:
            raise _not_offered(wanted)
        return open_table(
            path_below(folder, wanted.table),
            delimiter=reading.delimiter,
            encoding=reading.encoding,
            decimal=reading.decimal or POINT,
            formula_guard=reading.formula_guard,
        )
    if wanted.name not in offer.connections:
        raise _not_offered(wanted)
    schema, _, name = wanted.table.rpartition(".")
    asked = {"table": name, "version": wanted.version, **({"schema": schema} if schema else {})}
    return open_database(f"connection:{wanted.name}?{urlencode(asked)}")


def _not_offered(wanted: ServerTable) -> ReadingError:
    return ReadingError(
        f"the {wanted.kind} {wanted.name!r} is not offered to you; ask whoever runs this server, "
        "or choose another table"
    )


def _types(table: Opened) -> dict[str, str]:
    if isinstance(table, StreamedTable):
        return dict(zip(table.names, table.parts[0].types, strict=True))
    return {str(name): str(kind) for name, kind in table.table.schema().items()}


def _seen(table: Opened, key: bytes) -> str:
    """What tells that a table is the one that was chosen, without telling anything else."""
    facts: list[Any] = [list(_types(table).items())]
    if isinstance(table, StreamedTable):
        stamps = ((part.path.name, part.stamp) for part in table.parts)
        facts += [[name, s.size, s.modified, s.footer] for name, s in stamps]
    text = json.dumps(["chosen table", facts])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


# -- what may be said about it -------------------------------------------------------------------


def check_unit(unit: Unit) -> None:
    """Refuse a unit of protection that needs the rows of a person together.

    Raises
    ------
    PlanError
        Naming the person column.
    """
    if unit.person_column is not None:
        raise PlanError(
            f"who is protected: the rows of a person (column {unit.person_column!r}) must be seen "
            "together, which a table that stays where it is does not allow; upload a file that "
            "fits into memory, or use a table with one row a person"
        )


def kinds_of(table: Opened) -> dict[str, Kind]:
    """Kinds of the columns whose names and types tell one."""
    found = {name: kind_for(name, stored) for name, stored in _types(table).items()}
    return {name: kind for name, kind in found.items() if kind is not None}
