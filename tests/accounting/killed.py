"""A run of a plan that ends itself by SIGKILL at a chosen point; started by ``test_kill``."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

import core.measuring
import core.private.ledger as ledger_module
import core.private.noise  # a run loads it in any case: children are forked with it
import core.runner
from core.__main__ import main
from core.private.chain import Book
from core.private.grant import Grant
from core.private.ledger import Ledger
from core.private.vault import Vault
from core.private.witness import Witness

Patch = Callable[[], None]


def die(*_arguments: Any, **_settings: Any) -> None:
    """As kill -9 from outside: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def _before(owner: Any, name: str) -> Patch:
    """Dies when a function is called."""
    return lambda: setattr(owner, name, die)


def _after(owner: Any, name: str, when: Callable[..., bool] = lambda *_: True) -> Patch:
    """Dies when a function has done its work."""
    whole = getattr(owner, name)

    def deadly(*arguments: Any, **named: Any) -> Any:
        result = whole(*arguments, **named)
        if when(*arguments):
            die()
        return result

    return lambda: setattr(owner, name, deadly)


def _when_noting(kind: str, *, torn: bool = False) -> Patch:
    """Dies after a commit, before or while the witness is told of events of that kind."""
    whole = Witness.note

    def deadly(self: Witness, events: Any) -> None:
        if not any(event.content["kind"] == kind for event in events):
            whole(self, events)
            return
        if torn:
            size = self.path.stat().st_size
            whole(self, events)
            os.truncate(self.path, (size + self.path.stat().st_size) // 2)
        die()

    return lambda: setattr(Witness, "note", deadly)


def _has(kind: str) -> Callable[..., bool]:
    return lambda _book, *contents: any(content["kind"] == kind for content in contents)


#: Where a run dies, in its order.
POINTS: dict[str, Patch] = {
    "before the charge": _before(Ledger, "charge"),
    "in the charge's transaction, before its event": _before(Book, "append"),
    "in the charge's transaction, after its event": _after(Book, "append", _has("charged")),
    "after the charge, before the witness": _when_noting("charged"),
    "after the charge, within a line of the witness": _when_noting("charged", torn=True),
    "after the charge, before access": _after(Vault, "grants"),
    "after access": _after(Grant, "counts"),
    "before the store": _before(Vault, "complete"),
    "in the store's transaction, before the state": _before(ledger_module, "settle"),
    "in the store's transaction, after the state": _after(ledger_module, "settle"),
    "after the store, before the witness": _when_noting("settled"),
    "between the parts": _after(core.measuring._Work, "one"),
    "after the last part": _after(core.runner, "releases_of"),
    "before the files": _before(core.runner, "write_files"),
    "after everything": _after(core.runner, "write_files"),
}


def run_and_die(point: str, home: str, arguments: list[str]) -> None:
    """Run a plan by the command line until that point."""
    os.environ["JUSTITIA_HOME"] = home
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    POINTS[point]()
    with contextlib.suppress(SystemExit):
        main(["run", *arguments])
    os._exit(99)  # it should not have come so far
