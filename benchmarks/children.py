"""Measurements in a process of their own, so that no memory or cache is shared with another."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from benchmarks.report import ROOT


def measured(python: str, module: str, *arguments: object) -> Any:
    """The JSON on the last line that a module prints; ends the program where the child failed."""
    done = subprocess.run(
        [python, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        words = " ".join([module, *map(str, arguments[:1])])
        raise SystemExit(f"{words} failed with exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])
