"""The real server as a process of its own, with what a load test wants to know about it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Running:
    """A running server.

    Attributes
    ----------
    address
        ``http://127.0.0.1:PORT``.
    process
        Its only process.
    ledger
        URL of its ledger.
    log
        What it printed.
    """

    address: str
    process: psutil.Process
    ledger: str
    log: Path

    @property
    def own_bytes(self) -> int:
        """Memory that only this process uses, which is what would be given back if it ended."""
        return int(self.process.memory_full_info().uss)


def free_port() -> int:
    """A port that nobody listens on; drawn by the system, so that two workers do not meet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    folder: Path,
    *,
    options: Sequence[str] = (),
    checkout: Path = ROOT,
    python: Sequence[str] = (sys.executable,),
    port: int | None = None,
    expected: Sequence[str] = (),
    **environment: str,
) -> Iterator[Running]:
    """The application on a port of its own, with a ledger of its own, and no error in its log.

    Parameters
    ----------
    folder
        For ledger, secret and log.
    options
        Further options of ``streamlit run``.
    checkout, python
        Where the application lies, and the command that runs it.
    port
        A free one unless given.
    expected
        Kinds of errors that may be in the log.
    environment
        Variables on top of this process's own.
    """
    port = port or free_port()
    ledger = environment.get("JUSTITIA_LEDGER", f"sqlite:///{folder / 'ledger.sqlite'}")
    settings = {
        **os.environ,
        "JUSTITIA_LEDGER": ledger,
        "JUSTITIA_HOME": str(folder),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **environment,
    }
    command = [*python, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--server.headless=true", *options],
            cwd=checkout,
            env=settings,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_healthy(f"{address}/_stcore/health", process)
        yield Running(address, _server_of(process), ledger, log)
        stumbled = [error for error in errors_in(log) if not error.endswith(tuple(expected))]
        assert not stumbled, f"the server's log holds errors: {stumbled[:3]}"
    finally:
        process.terminate()
        process.wait(20)


def errors_in(log: Path) -> list[str]:
    """The errors that a server's log tells of, each with its kind as the last word."""
    told = log.read_text(encoding="utf-8", errors="replace")
    caught = re.findall(r"^.* failed: \w+$", told, re.MULTILINE)
    return caught + re.findall(r"^Traceback .*\n((?: .*\n)*\S*)", told, re.MULTILINE)


def _server_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    """The Python process, where a wrapper such as ``setpriv`` started it without ``exec``."""
    started = psutil.Process(process.pid)
    children = started.children(recursive=True)
    return children[-1] if children and "python" not in started.name() else started


def wait_until_healthy(url: str, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    """Wait for the health endpoint; RuntimeError when the process ends or never answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError("the server ended before it was healthy; see its log")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not become healthy in time; see its log")
