"""Coverage and speed of PUMBA against what else there is, by part.

``python -m benchmarks pumba --data DIR [--quick] [--part NAME …] [--resume] [--write]``.  Seeds
are preset.  Figures of each part are stored as they are found (``--store``, by default
``out/pumba``); a part that is not run is reported from there, so a long run can be taken in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.pumba_harness import Part, Settings, one_thread, processes
from benchmarks.report import FOLDER, ROOT, STORE, Bar, bar_table, machine

REPORT = FOLDER / "pumba.md"
#: Parts in the order of the report, and the module of each.
PARTS = {
    "means": "benchmarks.pumba_means",
    "regression": "benchmarks.pumba_regression",
    "multiple": "benchmarks.pumba_multiple",
    "sandwich": "benchmarks.pumba_sandwich",
    "tables": "benchmarks.pumba_tables",
    "areal": "benchmarks.pumba_areal",
    "speed": "benchmarks.pumba_speed",
}
NEEDS_DATA = {"areal"}


def main(argv: list[str]) -> int:
    """Run the parts asked for and report all that are stored; 1 when a full run misses a bar."""
    options = _options(argv)
    store: Path = options.store / ("quick" if options.quick else "full")
    store.mkdir(parents=True, exist_ok=True)
    wanted = options.part or [name for name in PARTS if options.data or name not in NEEDS_DATA]
    if options.resume:
        wanted = [name for name in wanted if not (store / f"{name}.json").is_file()]
    with one_thread(), processes(options.workers) as pool:
        settings = Settings(options.quick, pool, options.data)
        for name in wanted:
            _run(name, settings, store / f"{name}.json")
    found = {name: _stored(store / f"{name}.json") for name in PARTS}
    found = {name: figures for name, figures in found.items() if figures is not None}
    parts = {name: _part(name) for name in found}
    bars = [bar for name, part in parts.items() for bar in part.bars(found[name]["figures"])]
    if options.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(_report(parts, found, bars, FOLDER), encoding="utf-8")
        print(f"wrote {REPORT.relative_to(ROOT)}")
    print("\n".join(["## Promises", "", *bar_table(bars)]))
    missing = [name for name in PARTS if name not in found]
    if missing:
        print(f"not run yet: {', '.join(missing)}")
    if options.quick:
        print("a quick run has too few data sets to judge coverage by")
        return 0
    return 0 if all(bar.met for bar in bars) else 1


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pumba", description=__doc__)
    parser.add_argument("--data", type=Path, help="directory of county.csv, for the part areal")
    parser.add_argument("--quick", action="store_true", help="few data sets: a look, not a result")
    parser.add_argument("--part", action="append", choices=list(PARTS), help="only this (repeat)")
    parser.add_argument("--resume", action="store_true", help="leave out parts that are stored")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--store", type=Path, default=STORE / "pumba", help="for figures")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/pumba.md")
    options = parser.parse_args(argv)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    if options.write and options.quick:
        parser.error("a quick run is no result; leave out --write or --quick")
    if options.data is not None and not (options.data / "county.csv").is_file():
        parser.error(f"{options.data} holds no county.csv")
    if options.data is None and NEEDS_DATA & set(options.part or ()):
        parser.error("the part areal needs --data")
    return options


def _part(name: str) -> Part:
    part: Part = import_module(PARTS[name]).PART
    return part


def _run(name: str, settings: Settings, path: Path) -> None:
    part = _part(name)
    print(f"{part.title} …", file=sys.stderr, flush=True)
    start = perf_counter()
    figures = part.run(settings)
    seconds = perf_counter() - start
    path.write_text(json.dumps({"seconds": seconds, "figures": figures}, indent=1), "utf-8")
    print("\n".join([f"## {part.title} ({seconds:.0f} s)", "", *part.lines(figures)]))
    print("\n".join(bar_table(part.bars(figures))), flush=True)


def _stored(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _report(
    parts: dict[str, Part], found: dict[str, dict[str, Any]], bars: list[Bar], folder: Path
) -> str:
    minutes = sum(one["seconds"] for one in found.values()) / 60
    text = [
        "# PUMBA: coverage and speed",
        "",
        "Generated by `python -m benchmarks pumba --data DIR --write`; seeds are preset. "
        f"{machine('numpy', 'scipy', 'numba')}; {minutes:.0f} minutes in all.",
        "",
        *bar_table(bars),
    ]
    for name, part in parts.items():
        figures = found[name]["figures"]
        text += [f"## {part.title}", ""]
        for file, alt in part.draw(figures, folder):
            text += [f"![{alt}]({file})", ""]
        text += part.lines(figures)
    return "\n".join(text).rstrip() + "\n"
