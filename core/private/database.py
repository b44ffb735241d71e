"""One database behind ledger and store: how it is opened, and short transactions.

SQLite (a file, or in memory) by default, PostgreSQL by URL.  No connection outlives its
transaction, so that threads, forked workers and several servers can share one ledger.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from core.errors import LedgerError
from core.private.ledger_tables import (
    TABLES_VERSION,
    UNCHAINED_VERSION,
    event_rows,
    metadata,
    version_rows,
)

#: How long a transaction waits for another one before it gives up.
BUSY_SECONDS = 30.0
#: Key of PostgreSQL's advisory lock around the creation of tables.
_CREATION_LOCK = 0x4A757374


class Clash(LedgerError):
    """Somebody else wrote the same unique row at the same moment."""


class Database:
    """An open ledger database: engine, transactions, and errors in plain words.

    Parameters
    ----------
    url
        ``sqlite:///FILE``, ``sqlite://`` (in memory), ``postgresql://...``; None for what
        ``JUSTITIA_LEDGER`` names, or ``justitia.sqlite`` in the folder ``JUSTITIA_HOME`` (default
        ``~/.justitia``).
    busy_seconds
        How long a transaction waits for another one.

    Raises
    ------
    LedgerError
        The database cannot be opened; one message for every cause.
    """

    def __init__(self, url: str | URL | None = None, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._busy_seconds = busy_seconds
        url = declared(url)
        self._url = _parse_url(url)
        self.path = _file_of(self._url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        in_memory = self.is_sqlite and self.path is None
        # The one connection of an in-memory database serves one transaction at a time.
        self._turn: AbstractContextManager[Any] = threading.RLock() if in_memory else nullcontext()
        if self.path is not None:
            _prepare_file(self.path, make_folder=url is None)
        self._engine = self._make_engine(in_memory)
        self._set_up()

    @property
    def words(self) -> str:
        """The URL without its password."""
        return self._url.render_as_string(hide_password=True)

    @property
    def place(self) -> str:
        """Where the database lives, without any user or password."""
        if self.is_sqlite:
            return str(self._url.database)
        url = self._url
        return f"{url.host or 'localhost'}:{url.port or 5432}/{url.database or ''}"

    def _make_engine(self, in_memory: bool) -> Engine:
        if not self.is_sqlite:
            return self._make_server_engine()
        engine = create_engine(
            self._url,
            poolclass=StaticPool if in_memory else NullPool,
            hide_parameters=True,
            connect_args={"timeout": self._busy_seconds, "check_same_thread": False},
        )
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _make_server_engine(self) -> Engine:
        try:
            return create_engine(
                self._url,
                poolclass=NullPool,
                hide_parameters=True,
                # Under a stricter default isolation, a transaction that waited for the
                # population's lock would not see what the other one spent.
                isolation_level="READ COMMITTED",
                connect_args={"connect_timeout": max(int(self._busy_seconds), 2)},
            )
        except ImportError as error:
            raise LedgerError(
                "a PostgreSQL ledger needs the driver psycopg: pip install 'psycopg[binary]'"
            ) from error

    # -- transactions ----------------------------------------------------------------------

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """A transaction that only reads; of one moment, if its queries have to fit together."""
        with self._transaction(writes=False, snapshot=snapshot) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock from its start (SQLite) or waits briefly.

        Raises
        ------
        Clash
            A unique row was written by somebody else at the same moment.
        LedgerError
            The database refused; nothing was changed.
        """
        with self._transaction(writes=True) as connection:
            if not self.is_sqlite:
                wait = int(self._busy_seconds * 1000)
                connection.execute(text(f"SET LOCAL lock_timeout = {wait}"))
            yield connection

    @contextmanager
    def _transaction(self, writes: bool, snapshot: bool = False) -> Iterator[Connection]:
        options: dict[str, Any] = {"justitia_writes": writes}
        if snapshot and not self.is_sqlite:  # a transaction of SQLite is a snapshot in any case
            options["isolation_level"] = "REPEATABLE READ"
        try:
            with (
                self._turn,
                self._engine.connect() as plain,
                plain.execution_options(**options) as connection,
                connection.begin(),
            ):
                yield connection
        except IntegrityError as error:
            raise Clash(
                f"the ledger {self.words} was changed by somebody else at the same moment; "
                "try again"
            ) from error
        except SQLAlchemyError as error:
            raise LedgerError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        """One line that names the ledger, the driver's reason and the way out; no values."""
        lines = str(getattr(error, "orig", error) or "").strip().splitlines()
        reason = lines[0] if lines else ""
        if not self.is_sqlite and " failed: " in reason:
            reason = reason.rpartition(" failed: ")[2]  # the driver repeats host and port
        known = {
            "locked": "another program keeps it locked; close that program, or try again",
            "not a database": "the file is not a ledger; name another file, or restore a backup",
            "malformed": "the file is damaged; restore a backup",
            "readonly": "it may not be written; check the permissions of the file and its folder",
            "unable to open": "it cannot be opened; check that the folder exists and is yours",
            "full": "the disk is full; free some space",
        }
        for sign, way_out in known.items():
            if self.is_sqlite and sign in reason:
                return f"the ledger {self.words} refused: {way_out}"
        what = reason if reason else type(error).__name__
        return f"the ledger {self.words} refused: {what}; check the URL and the database server"

    # -- opening ---------------------------------------------------------------------------

    def _set_up(self) -> None:
        """Make the tables unless they are there; safe when several processes do so at once."""
        if self.path is not None:
            self._keep_a_write_ahead_log()
        with self.reading() as connection:
            found = _version(connection)
        if found in (None, UNCHAINED_VERSION):
            with self.writing() as connection:
                if not self.is_sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
                found = self._make_or_move(connection)
        if found != TABLES_VERSION:
            raise LedgerError(
                f"the ledger {self.words} was written by another version of Justitia (tables "
                f"{found}, here {TABLES_VERSION}); use that version"
            )

    def _make_or_move(self, connection: Connection) -> int | None:
        """Make the tables, or give an older ledger its chain; the version they have now."""
        from core.private.chain import Book
        from core.private.history import opened
        from core.private.mending import adopt

        found = _version(connection)
        if found is None:
            self._refuse_lost_ledger()
            metadata.create_all(connection)
            connection.execute(insert(version_rows).values(version=TABLES_VERSION))
            Book(connection).append(opened())
        elif found == UNCHAINED_VERSION:
            event_rows.create(connection)
            adopt(connection)
            connection.execute(update(version_rows).values(version=TABLES_VERSION))
        else:
            return found
        return TABLES_VERSION

    def _refuse_lost_ledger(self) -> None:
        """An empty database that was seen before was a ledger: do not forget its spends."""
        from core.private.witness import lost_at, witness_path

        if self.path is not None:
            kept = [
                file for file in (secret_path(self.path), witness_path(self.path)) if file.exists()
            ]
        elif not self.is_sqlite:
            kept = lost_at(self.place)
        else:
            kept = []
        if kept:
            names = " and ".join(file.name for file in kept)
            raise LedgerError(
                f"the ledger {self.words} is gone or empty, but {names} is still there; restore "
                "its backup (python -m core ledger --restore FILE): without it, what was spent "
                f"would count as unspent (to start over on purpose, remove {names} too)"
            )

    def _keep_a_write_ahead_log(self) -> None:
        """Switch a file to WAL, once: readers and the writer then do not stop each other.

        SQLite does not wait for its lock here, so that the wait is ours.
        """
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                with self._engine.connect() as connection:
                    raw = connection.connection.dbapi_connection
                    assert raw is not None
                    raw.execute("PRAGMA journal_mode = WAL")
                return
            except (SQLAlchemyError, sqlite3.Error) as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise LedgerError(self._explain(error)) from error
                time.sleep(0.02)

    def close(self) -> None:
        """Close what is open; an in-memory ledger is gone then."""
        self._engine.dispose()


def _version(connection: Connection) -> int | None:
    if not inspect(connection).has_table(version_rows.name):
        return None
    return connection.execute(select(version_rows.c.version)).scalar_one_or_none()


def _configure_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite alone
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")  # a charge survives a power cut


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("justitia_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _parse_url(url: str | URL | None) -> URL:
    if url is None:
        return URL.create("sqlite", database=str(home() / "justitia.sqlite"))
    try:
        parsed = make_url(url)
        name = parsed.drivername
    except (ArgumentError, ValueError) as error:
        raise LedgerError(
            "the ledger's URL cannot be read; write sqlite:///FILE or "
            "postgresql://USER:PASSWORD@HOST/DATABASE"
        ) from error
    if name in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if name != "sqlite":
        raise LedgerError(
            f"a ledger lives in SQLite or PostgreSQL, not in {name!r}; write sqlite:///FILE or "
            "postgresql://USER:PASSWORD@HOST/DATABASE"
        )
    if (parsed.database or "").startswith("file:") or parsed.query:
        raise LedgerError("a SQLite ledger takes a plain path and no settings: sqlite:///FILE")
    if parsed.database in (None, "", ":memory:"):
        return parsed.set(database=":memory:")
    return parsed.set(database=str(Path(str(parsed.database)).expanduser().absolute()))


def _file_of(url: URL) -> Path | None:
    in_file = url.get_backend_name() == "sqlite" and url.database != ":memory:"
    return Path(str(url.database)) if in_file else None


def ledger_file(url: str | None) -> Path | None:
    """Which file a ledger's URL means; None for a server or memory."""
    return _file_of(_parse_url(declared(url)))


def declared(url: str | URL | None) -> str | URL | None:
    """The URL, or the one that ``JUSTITIA_LEDGER`` names, or None for the default file."""
    return os.environ.get("JUSTITIA_LEDGER") or None if url is None else url


def secret_path(file: Path) -> Path:
    """Where the fingerprint secret of a ledger file lives: beside it."""
    return file.with_name(file.name + ".secret")


def home() -> Path:
    """Folder of the default ledger: ``JUSTITIA_HOME``, or ``~/.justitia``."""
    named = os.environ.get("JUSTITIA_HOME", "").strip()
    try:
        return Path(named).expanduser().absolute() if named else Path.home() / ".justitia"
    except RuntimeError as error:
        raise LedgerError(
            "this account has no home folder; set JUSTITIA_HOME to a folder for the ledger"
        ) from error


def make_private_folder(folder: Path) -> None:
    """Create a folder that only its owner may enter, unless it is there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"the folder {folder} cannot be created; check its permissions, or set JUSTITIA_HOME "
            "to another one"
        ) from error


def _prepare_file(path: Path, *, make_folder: bool) -> None:
    """Create the file readable by its owner only; SQLite's side files inherit that."""
    if make_folder:
        make_private_folder(path.parent)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise LedgerError(
            f"the ledger file {path} cannot be opened or created; check that its folder exists "
            "and that both may be written"
        ) from error
