# ruff: noqa: T201 - a command prints
"""The long loop: ``python -m tests.hostile.fuzz --minutes 10``; every input is known by its seed.

Each door is knocked at from a child process with a limit on its memory, so that a crash of a
library below, or a hang, is found and named like every other fault.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from random import Random
from types import FrameType
from typing import Any

from tests.hostile.targets import DOORS, Door, knock

#: Seconds for one input, and bytes of address space for the child: far above what any needs.
PATIENCE = 60
MEMORY = 8_000_000_000


class Hung(BaseException):
    """An input took longer than any should; no handler of the product may swallow it."""


def _hang(signum: int, frame: FrameType | None) -> None:
    raise Hung


def tried(door: Door, seed: int) -> str:
    """One input: the outcome in a word; ``Misbehaved`` and ``Hung`` pass."""
    data = door.damage(Random(f"{door.name} {seed}"))
    previous = signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        error = knock(door, data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return "read" if error is None else type(error).__name__


def _child(name: str, first: int, seconds: float, answer: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    door = next(door for door in DOORS if door.name == name)
    counts: Counter[str] = Counter()
    slowest, seed = (0.0, first), first
    door.damage(Random(0))  # imports and seeds take their time once
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer.send(("trying", seed))
        start = time.process_time()
        try:
            counts[tried(door, seed)] += 1
        except BaseException as error:
            answer.send(("fault", seed, "".join(traceback.format_exception(error))[-3000:]))
            counts["FAULT"] += 1
        slowest = max(slowest, (time.process_time() - start, seed))
        seed += 1
    answer.send(("done", counts, slowest))


def explore(door: Door, first: int, seconds: float) -> tuple[Counter[str], list[str], str]:
    """Knock at one door for some time, going on after crashes; counts, faults, and the slowest."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    until, seed, slow = time.monotonic() + seconds, first, ""
    while time.monotonic() < until:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("spawn").Process(
            target=_child, args=(door.name, seed, until - time.monotonic(), theirs)
        )
        child.start()
        theirs.close()
        begun = seed
        try:
            while True:
                kind, *rest = ours.recv()
                if kind == "trying":
                    seed = rest[0]
                elif kind == "fault":
                    faults.append(f"{door.name}, seed {rest[0]}:\n{rest[1]}")
                else:
                    counts += rest[0]
                    slow = f"{rest[1][0]:.2f} s for seed {rest[1][1]}"
                    break
        except EOFError:
            counts["tried before a crash"] += seed - begun
            child.join()
            faults.append(f"{door.name}, seed {seed}: the process ended with {child.exitcode}")
            counts["CRASH"] += 1
            seed += 1
        child.join()
    return counts, faults, slow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the loop; 1 when something misbehaved."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all doors together")
    parser.add_argument("--seed", type=int, default=1_000_000, help="number of the first input")
    parser.add_argument("--door", action="append", choices=[door.name for door in DOORS])
    options = parser.parse_args(arguments)
    doors = [door for door in DOORS if not options.door or door.name in options.door]
    total, bad = 0, 0
    for door in doors:
        counts, faults, slow = explore(door, options.seed, 60 * options.minutes / len(doors))
        total += sum(counts.values())
        bad += len(faults)
        shown = ", ".join(f"{count} {word}" for word, count in counts.most_common())
        print(f"{door.name}: {shown}; slowest {slow}", flush=True)
        for fault in faults[:20]:
            print(fault, file=sys.stderr, flush=True)
    print(f"{total:,} inputs at {len(doors)} doors, {bad} misbehaved")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
