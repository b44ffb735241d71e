"""What the parts of the PUMBA benchmark share: data sets in seeded blocks, and coverage.

A part turns settings into figures (plain numbers, stored as JSON) and figures into Markdown, so
that a report can be put together again without running anything.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.report import Bar

FloatArray = NDArray[np.float64]

#: All data sets, noise and draws follow from this number and the name of a design.
SEED = 2604
#: Probability of the intervals.
LEVEL = 0.95

#: Endpoints by method, one data set a row; NaN where the method has no interval.
Intervals = Mapping[str, FloatArray]


@dataclass(frozen=True)
class Settings:
    """How much to run: all of it or a quick look, in which processes, and the tables' place."""

    quick: bool
    pool: Executor | None
    data: Path | None

    def sets(self, full: int, quick: int) -> int:
        """Number of data sets of a design."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Part:
    """One section of the report.

    Attributes
    ----------
    title
        Heading of its section.
    run
        From settings to figures.
    lines
        From figures to Markdown.
    bars
        From figures to promises.
    draw
        From figures and a directory to pictures; returns their file names with a description.
    """

    title: str
    run: Callable[[Settings], dict[str, Any]]
    lines: Callable[[dict[str, Any]], list[str]]
    bars: Callable[[dict[str, Any]], list[Bar]]
    draw: Callable[[dict[str, Any], Path], list[tuple[str, str]]]


# -- data sets in blocks ---------------------------------------------------------------------


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread: processes share the cores, and timings mean one core."""
    with threadpool_limits(1):
        yield


def seed_of(*names: str) -> np.random.SeedSequence:
    """The preset seed of a design: other designs and their order do not change it."""
    return np.random.SeedSequence([SEED, *(zlib.crc32(name.encode()) for name in names)])


def replicate(
    block: Callable[[int, np.random.Generator], dict[str, FloatArray]],
    sets: int,
    seed: np.random.SeedSequence,
    pool: Executor | None,
    *,
    size: int = 100,
) -> dict[str, FloatArray]:
    """Run ``block(sets, generator)`` until there are enough data sets; rows in a fixed order.

    Blocks have seeds of their own, so the result does not depend on the number of processes.
    ``block`` must be importable (a function of a module, or a ``partial`` of one).
    """
    sizes = [min(size, sets - start) for start in range(0, sets, size)]
    jobs = list(zip(sizes, seed.spawn(len(sizes)), strict=True))
    work = partial(_work, block)
    found = list(map(work, jobs) if pool is None else pool.map(work, jobs))
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def _work(
    block: Callable[[int, np.random.Generator], dict[str, FloatArray]],
    job: tuple[int, np.random.SeedSequence],
) -> dict[str, FloatArray]:
    size, seed = job
    with one_thread():
        return block(size, np.random.default_rng(seed))


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """A pool of that many processes; none for one."""
    if workers == 1:
        yield None
    else:
        with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
            yield pool


# -- coverage --------------------------------------------------------------------------------


def equal_tails(draws: FloatArray) -> FloatArray:
    """The central 95 % interval of draws along the first axis; endpoints come first."""
    tail = (1 - LEVEL) / 2
    ends: FloatArray = np.quantile(draws, (tail, 1 - tail), axis=0)
    return ends


def score(intervals: FloatArray, truth: float | FloatArray) -> dict[str, float]:
    """Coverage with its standard error, mean width of the intervals there are, and their share.

    A data set without an interval is a miss.
    """
    low, high = intervals[..., 0], intervals[..., 1]
    defined = np.isfinite(low) & np.isfinite(high)
    hit = defined & (low <= truth) & (truth <= high)
    share = float(hit.mean())
    return {
        "coverage": share,
        "error": math.sqrt(max(share * (1 - share), 0.0) / hit.size),
        "width": float((high - low)[defined].mean()) if defined.any() else math.nan,
        "undefined": float(1 - defined.mean()),
        "sets": hit.size,
    }


def rejected(intervals: FloatArray, value: float = 0.0) -> float:
    """Share of data sets whose interval excludes the value; without an interval: not excluded."""
    return float(((intervals[..., 0] > value) | (intervals[..., 1] < value)).mean())


# -- words -----------------------------------------------------------------------------------


def share(value: float) -> str:
    """Three decimals, as tables of coverage are printed."""
    return "" if math.isnan(value) else f"{value:.3f}"
