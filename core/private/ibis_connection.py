"""Tables in a database: where they are, and a connection that tells nobody its secrets.

An address is a URL with the table and its version, ``duckdb:///data/people.duckdb?table=people&
version=2024-07``, or the name that an administrator gave to a connection,
``connection:clinic?table=people&version=2024-07``.  Named connections stand in the TOML file that
``JUSTITIA_CONNECTIONS`` names, one table each with ``url`` and, if only some tables are meant,
``tables``.  Users, passwords and other settings of a URL reach the driver and nothing else: no
message, note, ledger or bundle.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from core.errors import ReadingError
from core.private.coding import modelled_in_file
from core.private.fingerprint import declared_mark
from core.private.ibis_source import IbisSource
from core.private.raw import ReadingReport
from core.releases import Unit
from core.schema import Schema

CONNECTIONS = "JUSTITIA_CONNECTIONS"
_NAMED = "connection"
_OURS = ("table", "schema", "version")
_LONGEST = 500


@dataclass(frozen=True)
class Location:
    """A table in a database.

    Attributes
    ----------
    connection
        Public words for the connection: its name, or the URL without user, password and settings.
    table, schema
        Names as the database knows them; the schema (``catalog.schema``) may be left out.
    version
        What tells this state of the rows from others, by the steward's word.
    url
        For the driver; it may hold a password and is never shown.
    """

    connection: str
    table: str
    version: str
    schema: str = ""
    url: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The table, for messages."""
        return f"table {f'{self.schema}.{self.table}' if self.schema else self.table!s}"

    @property
    def file(self) -> Path | None:
        """The file of an embedded database, or None."""
        parts = urlsplit(self.url)
        if parts.scheme.lower() not in ("duckdb", "sqlite"):
            return None
        return Path(unquote(f"{parts.netloc}{parts.path}"))


@dataclass(frozen=True, eq=False)
class DatabaseTable:
    """A table as its database has it; confidential, like :class:`core.private.raw.RawTable`.

    Attributes
    ----------
    location
        Where it is.
    table
        The Ibis table.
    report
        How it is understood.
    """

    location: Location
    table: Any
    report: ReadingReport

    def __repr__(self) -> str:
        """Only public facts."""
        return f"DatabaseTable({self.name!r}, rows confidential)"

    @property
    def name(self) -> str:
        """Of the table, for messages."""
        return self.location.name

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order."""
        return tuple(str(name) for name in self.table.columns)

    def source(self, schema: Schema, unit: Unit) -> IbisSource:
        """Exact answers, for declarations and a unit of protection.

        Raises
        ------
        ReadingError
            The engine does not answer, or persons are the unit.
        SchemaError
            A declared column is not there, or is of a type that cannot be coded exactly.
        """
        modelled = Schema(modelled_in_file(self, schema))
        return IbisSource(self.table, modelled, unit, name=self.name)

    def mark(self, key: bytes) -> str:
        """What the table is recognised by: its declared identity, not its rows."""
        found = self.location
        return declared_mark(key, found.connection, found.schema, found.table, found.version)

    @property
    def notes(self) -> tuple[str, ...]:
        """What its owner should know before anything is charged."""
        found = self.location
        return (
            f"the rows stay in the database: {found.name} of {found.connection} is recognised by "
            f"these names and the version {found.version!r} that you gave, not by its rows; give "
            "another version as soon as the rows change, or an old release may pass for a new one",
            "what needs the rows themselves is not available for a table in a database: the audit "
            "against the original rows",
        )


def location_of(address: str, environ: Mapping[str, str] | None = None) -> Location:
    """An address taken apart; named connections are looked up.

    Raises
    ------
    ReadingError
        The address is incomplete; the message quotes nothing of it.
    """
    try:
        parts = urlsplit(address)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        port = parts.port
    except ValueError:
        raise ReadingError("the database address is no URL; check it letter by letter") from None
    ours = {name: value.strip() for name, value in given if name in _OURS}
    if not ours.get("table"):
        raise ReadingError("the database address names no table; add ?table=NAME")
    if not ours.get("version"):
        raise ReadingError(
            "the database address names no version of the table; add &version=TEXT, such as the "
            "day of its last change: rows that stay in a database are recognised by it alone"
        )
    if any(len(value) > _LONGEST for value in ours.values()):
        raise ReadingError("a part of the database address is too long")
    others = [(name, value) for name, value in given if name not in _OURS]
    # Signs of a password that was not percent-encoded: part of it would pass for something public.
    stray = "@" in parts.path or any("@" in name or "/" in name for name, _ in others)
    if parts.fragment or stray:
        raise ReadingError(
            "the database address cannot be taken apart; write signs such as # / ? @ in a password "
            "percent-encoded"
        )
    if parts.scheme == _NAMED:
        if others or parts.netloc:
            raise ReadingError("a named connection has no settings but table, schema and version")
        return _named(parts.path, ours, os.environ if environ is None else environ)
    place = (parts.hostname or "") + (f":{port}" if port else "") + parts.path
    if parts.scheme == "duckdb":
        place = str(Path(unquote(f"{parts.netloc}{parts.path}")).resolve())
    return Location(
        connection=f"{parts.scheme}://{place}",
        url="?".join(filter(None, (address.partition("?")[0], urlencode(others)))),
        **ours,
    )


def _named(name: str, ours: Mapping[str, str], environ: Mapping[str, str]) -> Location:
    known = connections(environ)
    if name not in known:
        offered = ", ".join(sorted(known)) or "none"
        raise ReadingError(
            f"the administrator has set up no connection of this name; there are: {offered}"
        )
    url, tables = known[name]
    full = f"{ours['schema']}.{ours['table']}" if ours.get("schema") else ours["table"]
    if tables is not None and full not in tables:
        raise ReadingError(
            f"connection {name!r} is not for this table; it is for {', '.join(tables) or 'none'}"
        )
    return Location(connection=name, url=url, **ours)


def connections(environ: Mapping[str, str]) -> dict[str, tuple[str, tuple[str, ...] | None]]:
    """The administrator's connections: URL, and the tables that may be used (None: all).

    Raises
    ------
    ReadingError
        The file is not there or not as it should be.
    """
    named = environ.get(CONNECTIONS, "").strip()
    if not named:
        return {}
    wrong = ReadingError(
        f"the file that {CONNECTIONS} names cannot be used: it holds one table a connection, "
        "[NAME] with url = '...' and, if you like, tables = ['...']"
    )
    try:
        plain = tomllib.loads(Path(named).read_text("utf-8"))
    except (OSError, ValueError):
        raise wrong from None
    found: dict[str, tuple[str, tuple[str, ...] | None]] = {}
    for name, entry in plain.items():
        if not isinstance(entry, dict) or not entry.keys() <= {"url", "tables"}:
            raise wrong
        url, tables = entry.get("url"), entry.get("tables")
        if not isinstance(url, str) or not (tables is None or isinstance(tables, list)):
            raise wrong
        found[name] = (url, None if tables is None else tuple(str(table) for table in tables))
    return found


def open_database(address: str, environ: Mapping[str, str] | None = None) -> DatabaseTable:
    """Connect and look at the table's columns; no row is read.

    Raises
    ------
    ReadingError
        The address, the driver, the connection or the table is wanting.  The message holds
        nothing of what the driver said, but for the kind of its error.
    """
    location = location_of(address, environ)
    connection = _connected(location)
    schema = tuple(location.schema.split(".")) if location.schema else None
    try:
        table = connection.table(location.table, database=schema)
        columns = len(table.columns)
    except Exception as error:
        raise ReadingError(
            f"{location.name}: it is not there, or may not be read ({type(error).__name__}); check "
            "the name, its schema and your rights"
        ) from None
    note = f"{columns} columns, in the database; rows stay there"
    return DatabaseTable(location, table, ReadingReport("database", notes=(note,)))


def _connected(location: Location) -> Any:
    scheme = urlsplit(location.url).scheme.lower()
    file = location.file
    if file is not None and not file.is_file():
        raise ReadingError(f"{location.name}: there is no database file of this name; check it")
    try:
        import ibis
        from ibis.backends.sql import SQLBackend
    except ImportError:
        raise ReadingError(
            "tables in databases need more packages; run: pip install -r requirements-sql.txt"
        ) from None
    try:
        if scheme == "duckdb":
            connection = ibis.duckdb.connect(file, read_only=True)
        else:
            connection = ibis.connect(location.url)
    except ImportError:
        raise ReadingError(
            f"the driver for {scheme} is missing; docs/scale.md says what to install"
        ) from None
    except Exception as error:
        raise ReadingError(
            f"{location.name}: no connection to the database ({type(error).__name__}); check the "
            "address, the password and the network"
        ) from None
    if not isinstance(connection, SQLBackend):
        raise ReadingError(f"{scheme} is no database that counts and sums for itself")
    _silence(connection)
    return connection


def _silence(connection: Any) -> None:
    """Spark prints what it fails at, with values, on the terminal: it shall not."""
    session = getattr(connection, "_session", None)
    context = getattr(session, "sparkContext", None)
    if context is not None:
        context.setLogLevel("OFF")
