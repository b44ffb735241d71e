"""The chain of the ledger's events: append-only rows, each hashed together with the one before.

``hash(k) = SHA-256(k, hash(k - 1), body(k))``, as in a hash chain of time-stamps (Haber and
Stornetta 1991).  A changed, removed or moved row breaks the chain there.  Somebody who recomputes
everything after a change makes a chain that holds again, but not the one whose head others have
seen: the witness file beside the secret (:mod:`core.private.witness`), and every bundle.

A body carries 128 random bits, so that a published hash tells nothing about the moments and
purposes that it covers.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, insert, select, text

from core.errors import LedgerError
from core.private.ledger_tables import event_rows

if TYPE_CHECKING:
    from core.private.witness import Witness

#: What the first row continues.
START = "0" * 64
#: Key of PostgreSQL's advisory lock around the end of the chain.
_CHAIN_LOCK = 0x4A757375


class Broken(LedgerError):
    """The chain or the accounts are not what happened; ``row`` says where it shows first."""

    def __init__(self, words: str, row: int | None = None) -> None:
        super().__init__(words)
        self.row = row


@dataclass(frozen=True)
class Event:
    """One row of the chain.

    Attributes
    ----------
    sequence
        1, 2, 3, ... without a gap.
    body
        JSON exactly as it was hashed.
    hash
        SHA-256 in hex over sequence, the previous hash and the body.
    """

    sequence: int
    body: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, read; LedgerError when it is no JSON object."""
        try:
            found = json.loads(self.body)
        except ValueError as error:
            raise LedgerError("its content cannot be read") from error
        if not isinstance(found, dict):
            raise LedgerError("its content cannot be read")
        return found


def chained(sequence: int, previous: str, body: str) -> str:
    """The hash of a row.

    >>> chained(1, START, "{}")[:16]
    'e926929dc99bcdf0'
    """
    return hashlib.sha256(f"{sequence}\n{previous}\n{body}".encode()).hexdigest()


def following(last: Event | None, content: Mapping[str, Any]) -> Event:
    """The row that continues the chain after ``last`` with this content, salted."""
    salted = {**content, "salt": secrets.token_hex(16)}
    body = json.dumps(salted, sort_keys=True, separators=(",", ":"), allow_nan=False)
    sequence = 1 if last is None else last.sequence + 1
    return Event(sequence, body, chained(sequence, START if last is None else last.hash, body))


def read_events(connection: Connection, after: int = 0) -> list[Event]:
    """All rows of the chain after a sequence number, in order."""
    query = select(event_rows).where(event_rows.c.sequence > after).order_by(event_rows.c.sequence)
    return [Event(row.sequence, row.body, row.hash) for row in connection.execute(query)]


def read_event(connection: Connection, sequence: int) -> Event | None:
    """One row of the chain, or None."""
    query = select(event_rows).where(event_rows.c.sequence == sequence)
    row = connection.execute(query).one_or_none()
    return None if row is None else Event(row.sequence, row.body, row.hash)


def last_event(connection: Connection) -> Event | None:
    """The end of the chain, or None when it is empty."""
    query = select(event_rows).order_by(event_rows.c.sequence.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else Event(row.sequence, row.body, row.hash)


def insert_events(connection: Connection, events: Sequence[Event]) -> None:
    """Write rows of the chain as they are."""
    if events:
        connection.execute(
            insert(event_rows),
            [
                {
                    "sequence": event.sequence,
                    "subject": subject_of(event.content),
                    "body": event.body,
                    "hash": event.hash,
                }
                for event in events
            ],
        )


def subject_of(content: Mapping[str, Any]) -> str | None:
    """The request that an event is about, by which it is found again."""
    subject = content.get("request_id")
    return None if subject is None else str(subject)


class Book:
    """Appends to the chain inside one write transaction.

    Writers take the end of the chain one after the other.  It is taken last: whoever holds a
    population's or a charge's lock may wait for it, and whoever holds it waits for nobody.

    Parameters
    ----------
    connection
        A connection inside a write transaction.
    witness
        What this machine saw of the chain; None for ledgers in memory.
    """

    def __init__(self, connection: Connection, witness: Witness | None = None) -> None:
        self.connection = connection
        #: What the witness has to be told once the transaction is committed.
        self.events: list[Event] = []
        self._witness = witness
        self._taken = False
        self._last: Event | None = None

    def append(self, *contents: Mapping[str, Any]) -> None:
        """Add rows to the end of the chain.

        Raises
        ------
        LedgerError
            The chain is not the one that this machine saw before; nothing was changed.
        """
        if not self._taken:
            self._take()
        added: list[Event] = []
        for content in contents:
            self._last = following(self._last, content)
            added.append(self._last)
        insert_events(self.connection, added)
        self.events += added

    def _take(self) -> None:
        """Wait for the end of the chain, and compare it with what was seen."""
        lock_chain(self.connection)
        self._last = last_event(self.connection)
        if self._witness is not None:
            self._witness.prepare()
            self.events += self._witness.unseen(self.connection)
        self._taken = True


def lock_chain(connection: Connection) -> None:
    """Keep others from appending until the transaction ends."""
    if connection.dialect.name == "postgresql":  # SQLite has its one write lock already
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_CHAIN_LOCK})"))
