"""Many people at once on the real server: how long, how much memory, and whether any of it stays.

Writes ``docs/benchmarks/load.md``.  Clients speak Streamlit's websocket protocol on the same
machine, so that they take part of the processor time that the server would have.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from core.bundle import verify
from core.private.ledger import Ledger, SpendState
from tests.load.journey import at_once, whole_journey
from tests.load.memory import TOLERATED, Waves, megabytes, watched
from tests.load.running import ROOT, Running, serving

PAGE = ROOT / "docs" / "benchmarks" / "load.md"
OPTIONS = ("--server.disconnectedSessionTTL=1",)
#: A fault on purpose: the desk of jobs never forgets a finished one.
LEAK = """
import sys, threading, time

def plant():
    while not hasattr(sys.modules.get("pages.shared.jobs"), "use_executor"):  # loaded to its end
        time.sleep(0.05)
    sys.modules["pages.shared.jobs"].Desk._prune = lambda self: None

threading.Thread(target=plant, daemon=True).start()
"""


@dataclass(frozen=True)
class Crowd:
    """People who did the whole demo at the same time."""

    people: int
    seconds: float
    slowest: float
    typical: float
    processor: float
    memory: int


def crowd(server: Running, people: int) -> Crowd:
    """So many at once; every bundle is verified."""
    begun, cpu = monotonic(), sum(server.process.cpu_times()[:2])
    finished = at_once(people, server.address)
    seconds = monotonic() - begun
    for one in finished:
        verify(one.bundle)
    times = [one.seconds for one in finished]
    spent = sum(server.process.cpu_times()[:2]) - cpu
    return Crowd(people, seconds, max(times), median(times), spent, server.own_bytes)


def waves(people: int, count: int, warm_up: int, **environment: str) -> Waves:
    """A fresh server, a crowd that fills its caches, and then wave after wave."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), options=OPTIONS, **environment) as server,
    ):
        at_once(warm_up, server.address, watch=False)
        return watched(server, lambda: at_once(people, server.address, watch=False), count)


def ledger_is_right(server: Running, people: int) -> bool:
    """One population and one finished charge for each."""
    ledger = Ledger(server.ledger)
    populations = ledger.populations()
    spends = [spend for found in populations for spend in ledger.spends(found.name)]
    ledger.close()
    return (
        len(populations) == people
        and [spend.state for spend in spends] == [SpendState.DONE] * people
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="load", description=__doc__)
    parser.add_argument("--crowds", type=int, nargs="*", default=[1, 5, 10, 20, 40])
    parser.add_argument("--people", type=int, default=4, help="people in a wave")
    parser.add_argument("--waves", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=12)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/load.md")
    arguments = parser.parse_args(argv)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), options=OPTIONS) as server,
    ):
        whole_journey(server.address)  # what is loaded once
        idle = server.own_bytes
        crowds = [crowd(server, people) for people in arguments.crowds]
        right = ledger_is_right(server, 1 + sum(arguments.crowds))
    sound = waves(arguments.people, arguments.waves, arguments.warm_up)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sitecustomize.py").write_text(LEAK, encoding="utf-8")
        leaking = waves(arguments.people, arguments.waves, arguments.warm_up, PYTHONPATH=folder)
    text = page(idle, crowds, right, (sound, leaking), arguments)
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")
    print(text)
    return 0 if right and not sound.grows and leaking.grows else 1


def page(
    idle: int,
    crowds: list[Crowd],
    right: bool,
    growth: tuple[Waves, Waves],
    arguments: argparse.Namespace,
) -> str:
    """The table as a document; ``growth`` of the server, and of one with a planted leak."""
    sound, leaking = growth
    lines = [
        "# Load",
        "",
        f"`python -m benchmarks load --write`, on {os.cpu_count()} cores that server and clients",
        "share. Each person does the whole demo (20,000 rows): declare, roles, budget, release and",
        "watch the tree, fit, sign, download, in a session of their own; each bundle is verified.",
        "",
        "| people at once | all finished after | typical | slowest | server's processor time | "
        "memory after |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {one.people} | {one.seconds:.0f} s | {one.typical:.0f} s | {one.slowest:.0f} s "
            f"| {one.processor / one.people:.1f} s a person | {one.memory / 1e6:.0f} MB |"
            for one in crowds
        ),
        "",
        f"The first visitor leaves {idle / 1e6:.0f} MB. Watching the tree grow takes about six",
        "seconds of each journey by design. Nobody failed; the ledger "
        + ("holds one finished charge for each." if right else "**is wrong**."),
        "",
        "## Growth",
        "",
        f"{arguments.waves} waves of {arguments.people} people each, after {arguments.warm_up}",
        "people had filled every cache; the process's own memory after each wave, in MB.",
        "",
        row("the server", sound),
        "",
        row("the same with a planted leak (finished jobs are never forgotten)", leaking),
        "",
        f"Growth means: more than {TOLERATED:.0%} of what a wave needs stays behind each time,",
        "beyond two standard errors of the regression.",
        "",
    ]
    return "\n".join(lines)


def row(what: str, found: Waves) -> str:
    """One server's waves in a sentence."""
    verdict = "grows" if found.grows else "does not grow"
    return (
        f"* **{what}**: {megabytes(found.after)}. Slope {found.slope / 1e6:.2f} ± "
        f"{found.error / 1e6:.2f} MB a wave, which needs {found.footprint / 1e6:.0f} MB while it "
        f"runs: {verdict}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
