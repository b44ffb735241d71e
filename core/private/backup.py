"""Copies of a ledger file and of its secret, while programs write; and the way back.

Restoring never makes a ledger forget: what was charged after the copy was made comes back from the
witness file (:mod:`core.private.witness`), which therefore is not restored.  Ledgers on a server
are copied by the server's own tools; ``docs/backup.md`` has both procedures.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL

from core.errors import LedgerError
from core.private.chain import Broken, Event
from core.private.database import Database, ledger_file, make_private_folder, secret_path
from core.private.ledger import Ledger
from core.private.mending import Mended, mend
from core.private.verification import ChainReport, verify
from core.private.witness import Witness, witness_path

_SIDE_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Restored:
    """What a restore did.

    Attributes
    ----------
    file, kept
        The ledger, and where everything that was there before is kept.
    mended
        What the backup lacked and came back.
    report
        The verification of the restored ledger.
    has_secret
        Whether the ledger has the secret by which tables are recognised.
    """

    file: Path
    kept: tuple[Path, ...]
    mended: Mended
    report: ChainReport
    has_secret: bool


def existing(url: str | None) -> Ledger:
    """Open a ledger that is there; LedgerError when there is none, instead of an empty new one."""
    file = ledger_file(url)
    if file is not None and not file.exists():
        raise LedgerError(
            f"there is no ledger {file}; name it with --ledger or JUSTITIA_LEDGER, or restore its "
            "backup: python -m core ledger --restore FILE"
        )
    return Ledger(url)


def back_up(ledger: Ledger, file: Path) -> tuple[tuple[Path, ...], ChainReport]:
    """Copy a ledger file to ``file`` and its secret to ``file.secret``, both for the owner only.

    One consistent moment is copied; programs go on reading and writing meanwhile.

    Returns
    -------
    tuple
        The files, and the verification of the copy.

    Raises
    ------
    LedgerError
        The ledger is not a file, the copy exists already, or it cannot be written.
    """
    source, secret = ledger.database.path, ledger.secret_file
    if source is None:
        raise LedgerError(
            "a ledger on a server is copied with pg_dump, and its secret with cp: docs/backup.md "
            "has the commands"
        )
    target = secret_path(file)
    for path in (file, target):
        if path.exists():
            raise LedgerError(f"{path.name} exists already; name a file that does not")
    _copy(source, file)
    with closing(Database(_url(file))) as copy:
        report = verify(copy, None)
    _one_file(file)
    if secret is None or not secret.exists():
        return (file,), report
    _copy_secret(secret, target)
    return (file, target), report


def restore(url: str | None, file: Path) -> Restored:
    """Put a backup in the place of a ledger file; what was there before is kept beside it.

    The programs that use the ledger should be stopped.

    Raises
    ------
    LedgerError
        The backup is damaged or another ledger's, or the ledger is in use; nothing was changed.
    """
    target = ledger_file(url)
    if target is None:
        raise LedgerError(
            "a ledger on a server is restored with pg_restore, then python -m core ledger --mend "
            "puts back what the copy lacks: docs/backup.md has the commands"
        )
    if not file.is_file():
        raise LedgerError(f"{file}: no such file")
    make_private_folder(target.parent)
    fresh = target.with_name(target.name + ".restoring")
    _remove(fresh)
    try:
        mended, mark = _prepare(file, fresh, target)
        kept = _put_in_place(fresh, target, mark)
    finally:
        _remove(fresh)
    kept += _restore_secret(secret_path(file), secret_path(target))
    with closing(Ledger(url)) as ledger:
        if ledger.trouble is not None:
            raise LedgerError(ledger.trouble)
        report = ledger.verify()
    return Restored(target, kept, mended, report, secret_path(target).exists())


def _prepare(file: Path, fresh: Path, target: Path) -> tuple[Mended, Event | None]:
    """Make the restored ledger under another name; also the latest row that was seen by then."""
    _copy(file, fresh)
    witness = Witness(witness_path(target), str(target))
    with closing(Database(_url(fresh))) as database:
        mark = witness.mark()
        try:
            mended = mend(database, witness)
        except Broken as broken:
            raise LedgerError(f"the backup {file.name} cannot be used: {broken}") from broken
    _one_file(fresh)
    return mended, mark


def _put_in_place(fresh: Path, target: Path, mark: Event | None) -> tuple[Path, ...]:
    if Witness(witness_path(target), str(target)).mark() != mark:
        raise LedgerError(
            "the ledger was charged while its backup was being restored; stop the programs that "
            "use it, then restore again"
        )
    kept: tuple[Path, ...] = ()
    aside = _aside(target)
    for ending in ("", *_SIDE_FILES):
        old = target.with_name(target.name + ending)
        if old.exists():
            old.replace(aside.with_name(aside.name + ending))
            kept += (aside.with_name(aside.name + ending),)
    fresh.replace(target)
    return kept


def _restore_secret(backup: Path, target: Path) -> tuple[Path, ...]:
    """The tables in a backup are recognised by the secret of its time."""
    if not backup.exists():
        return ()
    kept: tuple[Path, ...] = ()
    if target.exists():
        if target.read_bytes() == backup.read_bytes():
            return ()
        kept = (_aside(target),)
        target.replace(kept[0])
    _copy_secret(backup, target)
    return kept


def _aside(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return path.with_name(f"{path.name}.before-{stamp}")


def _copy(source: Path, target: Path) -> None:
    """Copy one consistent moment of a database by SQLite's online backup."""
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            (found,) = old.execute("PRAGMA integrity_check").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError("it is damaged")
            old.backup(new)
    except (sqlite3.Error, OSError) as error:
        _remove(target)
        reason = getattr(error, "strerror", None) or str(error)
        raise LedgerError(f"{source.name} cannot be copied to {target}: {reason}") from error


def _copy_secret(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("xb") as new:
        if os.name == "posix":
            os.fchmod(new.fileno(), 0o600)
        shutil.copyfileobj(old, new)


def _one_file(path: Path) -> None:
    """Fold the write-ahead log into the file, so that it can be moved alone."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def _remove(path: Path) -> None:
    for ending in ("", *_SIDE_FILES):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _url(path: Path) -> URL:
    return URL.create("sqlite", database=str(path.absolute()))
