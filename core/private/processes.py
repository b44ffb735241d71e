"""Which process made a charge, and whether it still runs.

A process is known by host name, number and start time, because numbers are used again.  Programs
that share one ledger from several machines or containers need different host names.
"""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LINUX = Path("/proc/self/stat").exists()


@dataclass(frozen=True)
class Process:
    """One process on one host; ``start`` is empty where the system does not tell."""

    host: str
    pid: int
    start: str

    @classmethod
    def current(cls) -> Process:
        """The process that calls."""
        return cls(socket.gethostname(), os.getpid(), _own_start(os.getpid()))

    @property
    def is_known_dead(self) -> bool:
        """True only when this host can tell that the process has ended.

        Another host's process, and any process where the system tells no start times, may live.
        """
        if self.host != socket.gethostname() or not self.start:
            return False
        start = _start_of(self.pid)
        return start != self.start if start else not _is_hidden(self.pid)


@cache
def _own_start(pid: int) -> str:
    return _start_of(pid) or ""  # kept by number: a fork asks again


def _start_of(pid: int) -> str | None:
    """A text that no other process of that number ever shares; None when there is none.

    ``ended`` for a process that has ended and was not yet collected by its parent.
    """
    if _LINUX:
        return _linux_start(pid)
    if os.name == "posix":
        return _posix_start(pid)
    return None


def _is_hidden(pid: int) -> bool:
    """Whether a process exists that this user may not look at (Linux's ``hidepid``)."""
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _linux_start(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold anything; field 3 is the state, field 22 the start.
    fields = stat.rpartition(")")[2].split()
    return "ended" if fields[0] in ("Z", "X") else f"{_boot()}:{fields[19]}"


def _boot() -> str:
    """Id of this start of the machine: start times count from it.  Some sandboxes have none."""
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text(encoding="ascii").strip() if file.exists() else ""


def _posix_start(pid: int) -> str | None:
    told = subprocess.run(  # noqa: S603 - fixed program, a number as argument
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C", "TZ": "UTC"},
    )
    return told.stdout.strip() or None
