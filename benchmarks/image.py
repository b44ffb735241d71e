"""The image without a container engine, from an empty environment (`make image-check`).

Fills a fresh virtual environment with the command of the ``Dockerfile``, lays the files out as the
image does, and works with the application as the image's user: what no test of the checkout's own
environment can show is whether the lock file is enough.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from core.bundle import verify
from tests.deploy.image import DOCKERFILE, container, now, stages, written_by
from tests.load.journey import whole_journey
from tests.load.running import ROOT


def install(into: Path) -> str:
    """Carry out the build stage's RUN with other paths; returns the environment's Python."""
    (command,) = stages(DOCKERFILE.read_text(encoding="utf-8"))[0].all("RUN")
    command = command.replace("/opt/justitia", str(into))
    command = command.replace("requirements.lock", str(ROOT / "requirements.lock"))
    for part in command.split(" && "):
        words = shlex.split(part)
        words[0] = sys.executable if words[0] == "python" else words[0]
        print(" ".join(words), flush=True)
        subprocess.run(words, check=True)
    return str(into / "bin" / "python")


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(prog="image", description=__doc__).parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        python = install(Path(folder) / "venv")
        user = int(stages(DOCKERFILE.read_text("utf-8"))[-1].last("USER").partition(":")[0])
        run = Path(folder) / "run"
        run.mkdir()
        begun = now()
        with container(run, python=python, JUSTITIA_MODE="shared") as (running, store, _):
            finished = whole_journey(running.address)
            verify(finished.bundle)
            places = [folder, "/tmp", "/var/tmp", "/dev/shm"]  # noqa: S108 - looked at only
            written = written_by(user, begun, places)
            outside = [path for path in written if not path.is_relative_to(store)]
        print(f"a whole journey as user {user} in {finished.seconds:.0f} s; the bundle verifies")
        print(f"{len(written)} files written in the store, {len(outside)} elsewhere")
        for path in outside:
            print(f"  {path}")
    return 1 if outside else 0


if __name__ == "__main__":
    raise SystemExit(main())
