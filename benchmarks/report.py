"""What the reports of all benchmarks share: tables, promises, the machine, stored JSON, peers."""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: Where reports and their pictures go.
FOLDER = ROOT / "docs" / "benchmarks"
#: Where figures are kept between runs; not part of the project.
STORE = ROOT / "out"


class Bar(NamedTuple):
    """What was promised, what was measured, and whether that is enough."""

    promise: str
    found: str
    met: bool


# -- words -----------------------------------------------------------------------------------


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table, and an empty line behind it."""
    return [
        f"| {' | '.join(head)} |",
        "| --- " * len(head) + "|",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
        "",
    ]


def bar_table(bars: Iterable[tuple[str, str, bool]]) -> list[str]:
    """Promise, found, met."""
    rows = [(promise, found, "yes" if met else "**NO**") for promise, found, met in bars]
    return markdown(("promise", "found", "met"), rows)


def machine(*packages: str) -> str:
    """Cores, Python and the versions of packages, without a full stop."""
    versions = "".join(f", {name} {version(name)}" for name in packages)
    cores = f"{os.cpu_count()} cores ({platform.machine()})"
    return f"{cores}, Python {platform.python_version()}{versions}"


def short(value: float, digits: int = 3) -> str:
    """So many significant digits without an exponent; empty for NaN, 0 below 5e-7."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return f"{value:g}"
    if abs(value) < 5e-7:
        return "0"
    places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{min(places, 6)}f}".replace("-", "−")


# -- peers -----------------------------------------------------------------------------------


def peer_option(parser: argparse.ArgumentParser, known: Iterable[str]) -> None:
    """Add ``--peer NAME=PYTHON`` (repeatable); options.peer is a list of (name, interpreter)."""
    names = tuple(known)

    def pair(text: str) -> tuple[str, str]:
        name, found, python = text.partition("=")
        if not found or not python:
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=PYTHON")
        if name not in names:
            raise argparse.ArgumentTypeError(f"unknown peer {name!r}; known: {', '.join(names)}")
        return name, python

    parser.add_argument(
        "--peer",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help=f"also run a peer ({', '.join(names)}) under an interpreter that has it installed",
    )


# -- long runs -------------------------------------------------------------------------------


class ProgressBar:
    """A bar on standard error that says how much is done and how long the rest will take."""

    def __init__(self, words: str, total: int) -> None:
        self._words, self._total, self._done = words, total, 0
        self._start = self._shown = perf_counter()

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        now = perf_counter()
        every = 0.2 if sys.stderr.isatty() else 20.0
        if now - self._shown >= every or self._done >= self._total:
            self._shown = now
            self._show(now - self._start)

    def _show(self, seconds: float) -> None:
        share = self._done / self._total
        filled = round(30 * share)
        left = seconds / share - seconds
        line = (
            f"{self._words} [{'#' * filled}{'.' * (30 - filled)}] {self._done}/{self._total}, "
            f"{seconds:.0f} s, {left:.0f} s to go"
        )
        end = "\n" if self._done >= self._total or not sys.stderr.isatty() else ""
        print(f"\r{line:<100}" if sys.stderr.isatty() else line, file=sys.stderr, end=end or "")
        sys.stderr.flush()


def write_json(path: Path, value: Any) -> None:
    """Write a whole file or none: a run that is stopped leaves nothing half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value, indent=1), encoding="utf-8")
    draft.replace(path)


def read_json(path: Path) -> Any | None:
    """What :func:`write_json` wrote, or None."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def code_digest(sources: Iterable[str], unrelated: Iterable[str] = ()) -> str:
    """Changes with the code of these files and folders, and not with its comments and layout."""
    digest, left_out = hashlib.sha256(), set(unrelated)
    for source in sources:
        path = ROOT / source
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            if file.name not in left_out:
                tree = _without_docstrings(ast.parse(file.read_text(encoding="utf-8")))
                digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part
                for part in body
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
    return tree
