"""All pair tables of many rows: in memory and from Parquet, against pandas and DuckDB.

``python -m benchmarks scale --write``: 10 million rows x 15, 50 and 100 columns in memory and from
Parquet, then 20 to 100 million rows x 15 from a folder of Parquet files.  Every measurement runs
in a process of its own; files are made in a temporary folder and deleted after.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.children import measured
from benchmarks.report import (
    FOLDER,
    STORE,
    Bar,
    bar_table,
    code_digest,
    machine,
    markdown,
    read_json,
    short,
    write_json,
)

REPORT = FOLDER / "scale.md"
WIDTHS = (15, 50, 100)
ROWS = 10_000_000
LADDER = (20_000_000, 40_000_000, 60_000_000, 80_000_000, 100_000_000)
SAMPLE = 5
REPEATS = 2
#: Modules of ``core.private`` whose speed is measured.
MEASURED = ("batches", "counting", "source", "streaming", "streaming_columns", "streaming_parquet")
#: Parquet bytes of a row and column, with room.
CELL_BYTES = 1.2


def main(argv: list[str]) -> int:
    options = _options(argv)
    rows = ROWS // options.smaller
    ladder = tuple(size // options.smaller for size in LADDER)
    place = Path(tempfile.mkdtemp(prefix="justitia-scale-", dir=options.folder))
    kept = _Kept(options.smaller)
    try:
        memory = {
            width: kept(f"memory-{width}", lambda w=width: _task("memory", rows, w, SAMPLE))
            for width in options.widths
        }
        kinds = [(width, "codes") for width in options.widths] + [(WIDTHS[0], "texts")]
        files = {
            kind: kept("parquet-{}-{}".format(*kind), lambda k=kind: _files(place, rows, *k))
            for kind in kinds
        }
        climbed = kept("ladder", lambda: _ladder(place, ladder, options.repeats))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    bars = _bars(memory, files, climbed)
    text = "\n".join(
        [
            *_head(rows),
            *_memory(rows, memory),
            *_parquet(rows, files),
            *_climb(climbed),
            "## Promises",
            "",
            *bar_table(bars),
        ]
    )
    print(text)
    if options.write:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(text)
    # Smaller runs are for trying out: start-up weighs too much in them for a promise.
    return 0 if options.smaller > 1 or all(bar.met for bar in bars) else 1


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the Parquet files are made")
    parser.add_argument("--smaller", type=int, default=1, help="divide all numbers of rows by this")
    parser.add_argument("--widths", type=int, nargs="+", default=list(WIDTHS), help="columns")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of every step of the ladder")
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks/scale.md")
    options = parser.parse_args(argv)
    if WIDTHS[0] not in options.widths:
        parser.error(f"the promises are about {WIDTHS[0]} columns; add that width")
    needed = CELL_BYTES * max(LADDER[-1] * WIDTHS[0], ROWS * max(options.widths)) / options.smaller
    free = shutil.disk_usage(options.folder or tempfile.gettempdir()).free
    if free < 2 * needed:
        parser.error(f"{2 * needed / 1e9:.0f} GB of disk are needed, {free / 1e9:.0f} GB are free")
    return options


class _Kept:
    """Measurements that were made before with the same code, so that a run can be resumed."""

    def __init__(self, smaller: int) -> None:
        digest = code_digest(
            ["benchmarks/scale_tasks.py", *(f"core/private/{name}.py" for name in MEASURED)]
        )
        self._folder = STORE / "scale" / f"{digest}-{smaller}"

    def __call__(self, name: str, measure: Callable[[], Any]) -> Any:
        """The kept measurement of that name, or a new one."""
        path = self._folder / f"{name}.json"
        found = read_json(path)
        if found is None:
            print(f"measuring {name}", file=sys.stderr, flush=True)
            found = measure()
            write_json(path, found)
        return found


def _task(*arguments: object) -> dict[str, Any]:
    """What a task prints, run in a process of its own."""
    found: dict[str, Any] = measured(sys.executable, "benchmarks.scale_tasks", *arguments)
    return found


def _files(place: Path, rows: int, width: int, texts: str) -> dict[str, Any]:
    """Both engines on the same file, in turn; the file is deleted after."""
    folder = place / f"{width}-{texts}"
    folder.mkdir()
    size = _task("write", folder, rows, width, texts)["bytes"]
    path = folder / "*.parquet"
    every = "every" if width == WIDTHS[0] else "sample"
    found = {
        "bytes": size,
        "ours": _task("ours", path, width, texts, SAMPLE, "look"),
        "duckdb": _task("duckdb", path, width, texts, SAMPLE, every),
    }
    shutil.rmtree(folder)
    if found["ours"]["count"]["digest"] != found["duckdb"]["count"]["digest"]:
        raise SystemExit("the two engines do not count the same; nothing was measured")
    return found


def _ladder(place: Path, ladder: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    """The same folder with more and more files in it, each size several times."""
    folder, steps = place / "ladder", []
    folder.mkdir()
    whole = place / "all"
    whole.mkdir()
    _task("write", whole, ladder[-1], WIDTHS[0], "codes")
    files = sorted(whole.iterdir())
    if len(files) < len(ladder):  # too few rows for a file a step
        return []
    for rows in ladder:
        for file in files[: round(len(files) * rows / ladder[-1])]:
            if file.exists():
                file.rename(folder / file.name)
        for _ in range(repeats):
            steps.append(_task("ours", folder, WIDTHS[0], "codes", SAMPLE, "no look"))
    look = _task("ours", folder, WIDTHS[0], "codes", SAMPLE, "look")
    steps[-1]["look"] = look["look"]
    shutil.rmtree(folder)
    return steps


# -- figures ---------------------------------------------------------------------------------


def _ratio(here: dict[str, Any], peer: str) -> float:
    """CPU seconds of a peer in memory, for all pairs, over ours."""
    return float(here[peer]["cpu"]) * here["pairs"] / here["sample"] / float(here["ours"]["cpu"])


def _all_pairs(found: dict[str, Any], what: str = "seconds") -> float:
    """Seconds of all pairs, from those of a sample."""
    return float(found["count"][what]) * found["pairs"] / found["sample"]


def slope(steps: list[dict[str, Any]], what: str) -> float:
    """Slope of log seconds on log rows: 1 where time grows in proportion."""
    across = [math.log(step["rows"]) for step in steps]
    up = [math.log(step["count"][what]) for step in steps]
    mean, level = sum(across) / len(across), sum(up) / len(up)
    covariance = sum((x - mean) * (y - level) for x, y in zip(across, up, strict=True))
    return covariance / sum((x - mean) ** 2 for x in across)


def _bars(
    memory: dict[int, dict[str, Any]],
    files: dict[tuple[int, str], dict[str, Any]],
    steps: list[dict[str, Any]],
) -> list[Bar]:
    here = memory[WIDTHS[0]]
    group = _ratio(here, "pandas")
    one = min(_ratio(here, way) for way in ("chunks", "whole"))
    found = files[WIDTHS[0], "codes"]
    faster = _all_pairs(found["duckdb"]) / found["ours"]["count"]["seconds"]
    peak = found["ours"]["count"]["peak"]
    bars = [
        Bar("in memory: at least 50x pandas group-by", f"{group:.0f}x", group >= 50),
        Bar("in memory: at least 3x one bincount a pair", f"{one:.1f}x", one >= 3),
        Bar(
            "in memory: less than 256 MiB extra",
            f"{here['ours']['extra']:.0f} MiB",
            here["ours"]["extra"] < 256,
        ),
        Bar("Parquet: faster than DuckDB, one query a pair", f"{faster:.1f}x", faster > 1),
        Bar("Parquet: peak below 600 MiB", f"{peak:.0f} MiB", peak < 600),
    ]
    if steps:
        most = max(step["count"]["peak"] for step in steps)
        grown = slope(steps, "cpu")
        rows = steps[-1]["rows"] // 1_000_000
        bars += [
            Bar(f"{rows} million rows: peak below 4 GiB", f"{most:.0f} MiB", most < 4096),
            Bar(
                "CPU time in proportion to rows: slope 0.9 to 1.1",
                f"{grown:.3f}",
                0.9 <= grown <= 1.1,
            ),
        ]
    return bars


# -- words -----------------------------------------------------------------------------------


def _head(rows: int) -> list[str]:
    return [
        "# Counting at scale",
        "",
        "Generated by `python -m benchmarks scale --write`. "
        f"{machine('numpy', 'pandas', 'pyarrow', 'duckdb')}; load average at the end "
        f"{os.getloadavg()[2]:.0f}.",
        "",
        "All two-way tables of columns with 2 to 18 cells, falling in frequency. Every line is a "
        "process of its own; the lines of one table ran one after the other. Ratios hold within a "
        "table only. *Extra* is resident memory beyond the table itself, *peak* that of the whole "
        "process with its imports. What was counted was compared with the peers' tables, cell by "
        "cell.",
        "",
    ]


def _memory(rows: int, found: dict[int, dict[str, Any]]) -> list[str]:
    table = []
    for width, here in found.items():
        digests = {here[way]["digest"] for way in ("ours", "chunks", "whole", "pandas")}
        if len(digests) > 1:
            raise SystemExit("the ways to count do not agree; nothing was measured")
        ours, scale = here["ours"], here["pairs"] / here["sample"]
        table.append(
            (
                width,
                f"{here['pairs']:,}",
                short(ours["seconds"]),
                short(ours["cpu"]),
                short(rows / ours["cpu"] / 1e6),
                f"{ours['extra']:.0f}",
                *(
                    f"{short(here[way]['cpu'] * scale)} ({_ratio(here, way):.1f}x)"
                    for way in ("chunks", "whole", "pandas")
                ),
            )
        )
    head = (
        "columns",
        "pairs",
        "ours, s",
        "CPU, s",
        "million rows a CPU second",
        "extra, MiB",
        "bincount a pair in chunks, CPU s",
        "bincount a pair, whole columns, CPU s",
        "pandas group-by, CPU s",
    )
    return [
        f"## In memory, {rows:,} rows",
        "",
        "One byte a cell, one thread, the quickest of three runs each. The three peers were "
        f"measured on about {SAMPLE} pairs of all and extrapolated. Ratios are of CPU seconds, "
        "which hold on a machine that is busy with other things, too.",
        "",
        *markdown(head, table),
    ]


def _parquet(rows: int, found: dict[tuple[int, str], dict[str, Any]]) -> list[str]:
    table = []
    for (width, texts), here in found.items():
        count, look, peer = here["ours"]["count"], here["ours"]["look"], here["duckdb"]
        seconds = _all_pairs(peer)
        some = "" if peer["sample"] == peer["pairs"] else f" (from {peer['sample']} pairs)"
        table.append(
            (
                f"{width} {'labels' if texts == 'texts' else 'numbers'}",
                f"{here['bytes'] / 1e6:.0f}",
                short(count["seconds"]),
                short(rows / count["seconds"] / 1e6),
                f"{count['peak']:.0f}",
                f"{short(seconds)}{some}",
                f"{seconds / count['seconds']:.1f}x",
                f"{_all_pairs(peer, 'cpu') / count['cpu']:.1f}x",
                f"{peer['count']['peak']:.0f}",
                short(look["seconds"]),
            )
        )
    head = (
        "columns",
        "file, MB",
        "ours, s",
        "million rows/s",
        "peak, MiB",
        "DuckDB, one query a pair, s",
        "ratio",
        "ratio of CPU s",
        "its peak, MiB",
        "first look, s",
    )
    return [
        f"## From Parquet, {rows:,} rows",
        "",
        "*First look*: the pass before anything is charged, in which every row is read and the "
        "table's fingerprint taken; DuckDB has nothing like it.",
        "",
        *markdown(head, table),
    ]


def _climb(steps: list[dict[str, Any]]) -> list[str]:
    if not steps:
        return []
    table = [
        (
            f"{step['rows']:,}",
            short(step["count"]["seconds"]),
            short(step["count"]["cpu"]),
            short(step["rows"] / step["count"]["seconds"] / 1e6),
            f"{step['count']['peak']:.0f}",
        )
        for step in steps
    ]
    look = steps[-1]["look"]
    return [
        f"## A folder of Parquet files, {WIDTHS[0]} columns",
        "",
        *markdown(("rows", "all pairs, s", "CPU, s", "million rows/s", "peak, MiB"), table),
        f"Slope of log time on log rows: {slope(steps, 'seconds'):.3f} (wall), "
        f"{slope(steps, 'cpu'):.3f} (CPU). The first look at {steps[-1]['rows']:,} rows took "
        f"{short(look['seconds'])} s with a peak of {look['peak']:.0f} MiB.",
        "",
    ]
