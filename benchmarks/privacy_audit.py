"""Statistical audit of every privacy claim: what thousands of releases give away.

``python -m benchmarks privacy-audit [--quick] [--runs N] [--jobs N] [--only TEXT] [--write]``.
Every primitive of a grant and every whole release is played on a pair of tables that differ by one
row, chosen to be as bad as possible, with the real noise.  An attacker who knows both tables learns
on one sample how to tell them apart; a fresh one counts how often that works.  The claim must
survive, faults that are planted on purpose must not.

What such a test can show: that a claim is false, whatever the reason; and, by the share of the
claim that the attack reaches, that it is strong enough to notice.  What it cannot show: that a
claim is true.  It tries one pair of tables and three statistics, sees no effect below its sampling
error, and does not look at time, memory or messages.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter

from threadpoolctl import threadpool_limits

from benchmarks.privacy_audit_report import Caught, Finding, promises, report
from benchmarks.report import FOLDER, ROOT, ProgressBar, bar_table
from tests.privacy.audit_faults import DEEP_FAULTS, PLAIN_FAULTS
from tests.privacy.audited import SCENES
from tests.privacy.auditing import Outcomes, judge

REPORT = FOLDER / "privacy-audit.md"
FAULTS = (*PLAIN_FAULTS, *DEEP_FAULTS)
#: Fresh runs on either side; half as many to learn from.
RUNS, QUICK_RUNS = 1000, 240
#: Runs of one piece of work.
BLOCK = 250
#: Seeds of fresh runs start here.
FRESH = 1000


@dataclass(frozen=True)
class Piece:
    """So many runs on one side: of a scene by its key, or of a planted fault by its number."""

    scene: str | int
    side: int
    runs: int
    seed: int


def play(piece: Piece) -> Outcomes:
    """What these runs show; the real noise, or seeded noise where a fault is planted."""
    with threadpool_limits(1):
        if isinstance(piece.scene, str):
            return SCENES[piece.scene].play(piece.side, piece.runs, piece.seed, real=True)
        with FAULTS[piece.scene].planted() as scene:
            return scene.play(piece.side, piece.runs, piece.seed, real=False)


def pieces(scene: str | int, runs: int) -> Iterator[tuple[int, list[Piece]]]:
    """For learning and afresh, on the first table and the second: (sample, its pieces)."""
    for sample, count in enumerate((runs // 2, runs)):
        for side in (0, 1):
            starts = range(0, count, BLOCK)
            yield (
                sample,
                [
                    Piece(scene, side, min(BLOCK, count - start), FRESH * sample + number)
                    for number, start in enumerate(starts)
                ],
            )


class Work:
    """All runs of one scene, waiting in a pool."""

    def __init__(self, scene: str | int, runs: int, pool: Executor, bar: ProgressBar) -> None:
        self.samples: list[list[Future[Outcomes]]] = []
        for _, parts in pieces(scene, runs):
            self.samples.append([pool.submit(play, piece) for piece in parts])
            for future, piece in zip(self.samples[-1], parts, strict=True):
                future.add_done_callback(lambda _, count=piece.runs: bar.advance(count))

    def verdict(self, *, gaussian: bool):
        """Wait for the runs, and judge."""
        found = [Outcomes.joined([part.result() for part in sample]) for sample in self.samples]
        self.samples.clear()
        return judge((found[0], found[1]), (found[2], found[3]), gaussian=gaussian)


def main(argv: list[str]) -> int:
    """Audit, print, and write the document if asked to; 1 when a promise is not kept."""
    options = _options(argv)
    start = perf_counter()
    keys = [key for key in SCENES if options.only in key]
    faults = [
        place
        for place, fault in enumerate(FAULTS)
        if options.only in f"{fault.name} / {fault.scene().title}"
    ]
    runs = {key: options.runs * SCENES[key].effort for key in keys}
    runs |= {place: round(options.runs * FAULTS[place].effort) for place in faults}
    bar = ProgressBar("privacy audit", sum(2 * (count // 2 + count) for count in runs.values()))
    with ProcessPoolExecutor(options.jobs, get_context("forkserver")) as pool:
        work = {scene: Work(scene, count, pool, bar) for scene, count in runs.items()}
        findings = [_finding(key, work.pop(key)) for key in keys]
        caught = [_caught(place, work.pop(place)) for place in faults]
    text = report(findings, caught, options.runs, perf_counter() - start)
    bars = promises(findings, caught)
    if options.write:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(text, encoding="utf-8")
        print(f"wrote {REPORT.relative_to(ROOT)}")
    else:
        print(text)
    print("\n".join(bar_table(bars)))
    if options.quick:
        print("a quick run is too short for attacks to get far")
        return 0
    return 0 if all(met for *_, met in bars) else 1


def _finding(key: str, work: Work) -> Finding:
    scene = SCENES[key]
    verdict = work.verdict(gaussian=scene.gaussian)
    return Finding(scene.group, scene.title, scene.relation.value, scene.whole, verdict)


def _caught(place: int, work: Work) -> Caught:
    fault = FAULTS[place]
    scene = fault.scene()
    verdict = work.verdict(gaussian=scene.gaussian)
    return Caught(fault.name, scene.title, scene.relation.value, verdict)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks privacy-audit", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs: a look, not a result")
    parser.add_argument("--runs", type=int, help=f"fresh runs on either side ({RUNS})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", default="", metavar="TEXT", help="releases and faults named so")
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.relative_to(ROOT)}")
    options = parser.parse_args(argv)
    options.runs = options.runs or (QUICK_RUNS if options.quick else RUNS)
    if options.runs < 100 or options.jobs < 1:
        parser.error("--runs must be at least 100 and --jobs at least 1")
    if options.write and (options.quick or options.only):
        parser.error("a part is no result; leave out --write, or --quick and --only")
    return options
