"""A Dockerfile without a container engine: read, checked, and its commands carried out by hand.

What an engine would do is done with a folder and a user id: the files that COPY names go into a
folder that only root may write, and CMD runs as the USER with the ENV of the image.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.load.running import ROOT, Running, free_port, wait_until_healthy

DOCKERFILE = ROOT / "Dockerfile"
#: May read everything, as root may, and write nothing that its user may not.
READS_ALL = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")


@dataclass(frozen=True)
class Stage:
    """One FROM with what follows it: (instruction, value) in order."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """Values of one instruction, in order."""
        return [value for name, value in self.steps if name == instruction]

    def last(self, instruction: str) -> str:
        """The value that counts; KeyError when there is none."""
        found = self.all(instruction)
        if not found:
            raise KeyError(instruction)
        return found[-1]

    @property
    def environment(self) -> dict[str, str]:
        """Every ENV."""
        pairs = (pair for value in self.all("ENV") for pair in value.split())
        return dict(pair.split("=", 1) for pair in pairs)


def stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found: list[Stage] = []
    for line in joined.splitlines():
        instruction, _, value = line.strip().partition(" ")
        if instruction.upper() == "FROM":
            base, _, name = value.partition(" AS ")
            found.append(Stage(base.strip(), name.strip()))
        else:
            found[-1].steps.append((instruction.upper(), re.sub(r"\s+", " ", value.strip())))
    return found


def copied(stage: Stage) -> list[tuple[str, str]]:
    """(source in the checkout, target) of every COPY that is not from another stage."""
    pairs = []
    for value in stage.all("COPY"):
        if value.startswith("--from"):
            continue
        *sources, target = value.split()
        pairs += [(source, target) for source in sources]
    return pairs


def lay_out(stage: Stage, folder: Path) -> Path:
    """Copy what the image copies, owned by root and writable by nobody; returns the work folder."""
    work = folder / stage.last("WORKDIR").strip("/")
    work.mkdir(parents=True)
    for source, target in copied(stage):
        origin = ROOT / source
        to = work / target if not target.endswith("/") else work / target / origin.name
        to.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(origin, to)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return work


@contextmanager
def container(
    folder: Path, *, python: str = sys.executable, **environment: str
) -> Iterator[tuple[Running, Path, Path]]:
    """The image's last stage as a process: yields it, its store, and its work folder.

    Needs root, to become somebody else.
    """
    stage = stages(DOCKERFILE.read_text(encoding="utf-8"))[-1]
    work = lay_out(stage, folder / "image")
    user, _, group = stage.last("USER").partition(":")
    store = folder / "store"
    store.mkdir(mode=0o700)
    os.chown(store, int(user), int(group))
    settings = {
        name: value.replace(stage.last("VOLUME").strip('["]'), str(store))
        for name, value in stage.environment.items()
    }
    port = free_port()
    settings |= {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(store.parent / "tmp"),
        "STREAMLIT_SERVER_PORT": str(port),
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        **environment,
    }
    (store.parent / "tmp").mkdir()
    (store.parent / "tmp").chmod(0o1777)
    for parent in [store.parent, *store.parent.parents][:-1]:
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    command = [python, *json.loads(stage.last("CMD"))[1:]]
    become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *READS_ALL]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*become, "--no-new-privs", "--", *command],
            cwd=work,
            env=settings,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_healthy(f"{address}/_stcore/health", process)
        ledger = f"sqlite:///{store / 'justitia.sqlite'}"
        running = Running(address, psutil.Process(process.pid), ledger, folder / "server.log")
        yield running, store, work
    finally:
        process.terminate()
        process.wait(20)


def health_command(port: str) -> list[str]:
    """The image's HEALTHCHECK for a server on another port."""
    stage = stages(DOCKERFILE.read_text(encoding="utf-8"))[-1]
    shell = stage.last("HEALTHCHECK").partition("CMD ")[2]
    return [
        part.replace(stage.environment["STREAMLIT_SERVER_PORT"], port) for part in json.loads(shell)
    ]


def written_by(user: int, since: float, places: Sequence[str]) -> list[Path]:
    """Files below these places that belong to a user and were changed since."""
    found = []
    for place in places:
        for folder, _, names in os.walk(place):
            for path in map(Path(folder).joinpath, names):
                try:
                    about = path.lstat()
                except FileNotFoundError:
                    continue
                if about.st_uid == user and about.st_mtime >= since - 1:
                    found.append(path)
    return found


def now() -> float:
    """The clock that files are stamped with."""
    return time.time()
