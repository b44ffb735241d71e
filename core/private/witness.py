"""What one machine saw of a ledger's chain: a file beside the secret, outside the database.

A database can be rewritten, or an older copy put in its place, and be in perfect order in itself.
Each program that appends to the chain therefore copies the rows to a file of its own, after they
are committed, and compares the chain with that file before it appends again.  From the file the
rows that a restored backup lacks can be put back (:func:`core.private.mending.mend`).

The file is a ledger's journal for this machine's administrator: populations, purposes and moments,
no cell of any table.  Several processes append to it at once; lines may repeat, and the last one
may be torn by a power cut.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from core.errors import LedgerError
from core.private.chain import Broken, Event, last_event, read_event, read_events
from core.private.database import Database, home, make_private_folder

_TAIL_BYTES = 1 << 15


@dataclass(frozen=True)
class Witness:
    """The file of one ledger on this machine.

    Attributes
    ----------
    path
        ``<ledger file>.witness``, or ``justitia-<chain>.witness`` in ``JUSTITIA_HOME`` for a
        ledger on a server.
    place
        Where the ledger lives, in words.
    """

    path: Path
    place: str

    @classmethod
    def of(cls, database: Database) -> Witness | None:
        """The witness of an open ledger; None when it lives in memory."""
        if database.path is not None:
            return cls(witness_path(database.path), database.place)
        if database.is_sqlite:
            return None
        with database.reading() as connection:
            first = read_event(connection, 1)
        name = "none" if first is None else first.hash[:16]
        return cls(home() / f"justitia-{name}.witness", database.place)

    # -- the file --------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make sure that the file can be appended to, before anything is charged.

        Raises
        ------
        LedgerError
            It cannot.
        """
        try:
            os.close(self._open())
        except OSError as error:
            raise self._refusal() from error

    def note(self, events: Sequence[Event]) -> None:
        """Append committed rows; one write, so that several processes may do so at once.

        Raises
        ------
        LedgerError
            The file cannot be written.  Rows that are not noted now are noted the next time.
        """
        if not events:
            return
        lines = "".join(_line(event) for event in events)
        try:
            handle = self._open()
            try:
                if os.write(handle, lines.encode("ascii")) < len(lines):
                    raise OSError("the disk is full")
            finally:
                os.close(handle)
        except OSError as error:
            raise self._refusal() from error

    def seen(self) -> list[Event]:
        """Every row in the file, in the order of the chain, without repetitions."""
        found = {(event.sequence, event.hash): event for event in _events(self._read(whole=True))}
        return [found[key] for key in sorted(found)]

    def _open(self) -> int:
        if not self.path.exists():
            make_private_folder(self.path.parent)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        if os.fstat(handle).st_size == 0:
            os.write(handle, _head(self.place).encode("ascii"))
        else:
            os.lseek(handle, -1, os.SEEK_END)
            if os.read(handle, 1) != b"\n":
                os.write(handle, b"\n")  # ends the line that a power cut tore
        return handle

    def _read(self, *, whole: bool) -> str:
        try:
            with self.path.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(0 if whole else max(size - _TAIL_BYTES, 0))
                return stream.read().decode("ascii", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._refusal() from error

    def _refusal(self) -> LedgerError:
        return LedgerError(
            f"the witness file {self.path} cannot be read or written, and nothing is charged "
            "without it; check its permissions, its folder and the space on the disk"
        )

    # -- comparing -------------------------------------------------------------------------

    def mark(self) -> Event | None:
        """The latest row that this machine saw; None before the first."""
        near = _events(self._read(whole=False)) or _events(self._read(whole=True))
        return max(near, key=lambda event: event.sequence, default=None)

    def unseen(self, connection: Connection) -> list[Event]:
        """Rows of the chain that this machine has not noted yet.

        Raises
        ------
        Broken
            The chain is not the one that this machine saw: an older copy, or a rewritten one.
        """
        mark = self.mark()  # first: whatever it holds was committed before the rows are read
        if mark is None:
            return read_events(connection)
        found = read_event(connection, mark.sequence)
        if found is None:
            last = last_event(connection)
            end = 0 if last is None else last.sequence
            raise Broken(self.older(end, mark.sequence), end + 1)
        if found.hash != mark.hash:
            raise Broken(self.rewritten(mark.sequence), mark.sequence)
        return read_events(connection, after=mark.sequence)

    def older(self, last: int, seen: int) -> str:
        """What an older copy of the ledger means, and the way out."""
        return (
            f"an older copy of the ledger {self.place} was put back: it ends at row {last}, and "
            f"row {seen} was seen on this machine. What was charged in between is missing, so "
            "nothing is charged now; python -m core ledger --mend puts it back from "
            f"{self.path.name}"
        )

    def rewritten(self, row: int) -> str:
        """What a chain that disagrees with this machine's memory means, and the way out."""
        return (
            f"row {row} of the ledger {self.place} is not the row that was seen on this machine: "
            "it was rewritten, or another ledger was put in its place. Nothing is charged now; "
            "restore a backup from before (python -m core ledger --restore FILE), or, to go on "
            f"with this ledger as it is on purpose, move {self.path.name} away"
        )


def witness_path(file: Path) -> Path:
    """Where the witness of a ledger file lives: beside it."""
    return file.with_name(file.name + ".witness")


def lost_at(place: str) -> list[Path]:
    """Witnesses in the home folder of ledgers on a server that lived at this place."""
    found = []
    for path in sorted(home().glob("justitia-*.witness")):
        with path.open(encoding="ascii", errors="replace") as stream:
            if stream.readline() == _head(place):
                found.append(path)
    return found


def _head(place: str) -> str:
    return json.dumps({"justitia witness of": place}) + "\n"


def _line(event: Event) -> str:
    plain = {"row": event.sequence, "hash": event.hash, "body": event.body}
    return json.dumps(plain, separators=(",", ":")) + "\n"


def _events(text: str) -> list[Event]:
    return [event for event in map(_event, text.split("\n")) if event is not None]


def _event(line: str) -> Event | None:
    """The row in a line; None for the head of the file and for a torn line."""
    if not line.startswith('{"row":'):
        return None
    try:
        plain: dict[str, Any] = json.loads(line)
        return Event(int(plain["row"]), str(plain["body"]), str(plain["hash"]))
    except (ValueError, KeyError, TypeError):
        return None
