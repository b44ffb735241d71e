"""Long work outside the page script: queued, watched, cancelled, and never started twice.

A job is found by its id, so a rerun, a reload, a second tab or a double click joins the work that
is already under way.  Results of paid work live in the store; a job's own result is for free work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any, Protocol

from core.errors import Cancelled, JustitiaError
from core.protocols import Progress

#: Finished jobs that are remembered (their results are artefacts, never rows).
REMEMBERED = 32
#: Of these, how many with what they made: synthetic tables are large, and made again for nothing.
RESULTS = 12
log = logging.getLogger("justitia.jobs")


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Executor(Protocol):
    """What runs jobs: threads in the application, the caller itself in tests."""

    def submit(self, work: Callable[[], None], /) -> Any:
        """Run ``work`` now or later."""
        ...


class Job:
    """One piece of long work; safe to read from any thread.

    The work, which may hold rows, belongs to the job until it starts or is cancelled.
    """

    def __init__(self, identity: str, title: str, work: Callable[[Progress], Any]) -> None:
        self._work: Callable[[Progress], Any] | None = work
        self.identity = identity
        self.title = title
        self.state = JobState.QUEUED
        self.stage = ""
        self.done = 0
        self.total = 0
        self.message = ""
        self.result: Any = None
        self.finished_at: float | None = None
        self._events: list[tuple[str, object]] = []
        self._cancel = threading.Event()
        self._lock = threading.Lock()

    @property
    def active(self) -> bool:
        """Whether it still waits or runs."""
        return self.state in {JobState.QUEUED, JobState.RUNNING}

    @property
    def cancelling(self) -> bool:
        """Whether Cancel was pressed and the work has not stopped yet."""
        return self.active and self._cancel.is_set()

    @property
    def events(self) -> tuple[tuple[str, object], ...]:
        """(stage, detail) of every step reported so far, in order."""
        with self._lock:
            return tuple(self._events)

    def cancel(self) -> None:
        """Ask the work to stop at its next step; work that waits in line is dropped at once."""
        self._cancel.set()
        if self._taken() is not None:
            self._end(JobState.CANCELLED, "Cancelled while it waited. Nothing was spent.")

    def _taken(self) -> Callable[[Progress], Any] | None:
        """The work, for the first who asks."""
        with self._lock:
            work, self._work = self._work, None
            return work

    def progress(self, stage: str, done: int, total: int, detail: object) -> None:
        """Report a step; raises :class:`Cancelled` when the person asked to stop."""
        with self._lock:
            self.stage, self.done, self.total = stage, done, total
            if detail is not None:
                self._events.append((stage, detail))
        if self._cancel.is_set():
            raise Cancelled("Stopped on the way; nothing of it was kept.")

    def run(self) -> None:
        """Do the work, unless it was cancelled while it waited, and record how it ended.

        Raises
        ------
        BaseException
            What is no ``Exception``, such as ``SystemExit``, goes on after it was recorded.
        """
        work = self._taken()
        if work is None:
            return
        self.state = JobState.RUNNING
        try:
            self.result = work(self.progress)
        except Cancelled as error:
            self._end(JobState.CANCELLED, str(error))
        except JustitiaError as error:
            self._end(JobState.FAILED, str(error))
        except BaseException as error:  # whatever it is, nobody may watch this job for ever
            # Only the kind of error: a message could carry a cell's value.
            log.error("job %s failed: %s", self.identity, type(error).__name__)
            self._end(
                JobState.FAILED,
                f"The program stumbled ({type(error).__name__}). The ledger says whether "
                "anything was spent; please report this.",
            )
            if not isinstance(error, Exception):
                raise
        else:
            self._end(JobState.DONE, "")

    def _end(self, state: JobState, message: str) -> None:
        self.message = message
        self.finished_at = time.monotonic()
        self.state = state


class Desk:
    """All jobs of this server process; one worker unless told otherwise."""

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="justitia-job")
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def submit(self, identity: str, title: str, work: Callable[[Progress], Any]) -> Job:
        """Start work under an id, or join the work that has this id already."""
        with self._lock:
            known = self._jobs.get(identity)
            if known is not None and (known.active or known.state is JobState.DONE):
                return known
            job = Job(identity, title, work)
            self._jobs.pop(identity, None)  # a second try queues up again, at the end
            self._jobs[identity] = job
            self._prune()
        self._executor.submit(job.run)
        return job

    def find(self, identity: str) -> Job | None:
        """The job of that id, if this process remembers one."""
        with self._lock:
            return self._jobs.get(identity)

    def ahead(self, identity: str) -> int:
        """How many jobs come before this one in the queue."""
        with self._lock:
            before = list(self._jobs.values())
        count = 0
        for job in before:
            if job.identity == identity:
                return count
            count += job.active
        return 0

    def forget(self, identity: str) -> None:
        """Drop a finished job, with its result."""
        with self._lock:
            job = self._jobs.get(identity)
            if job is not None and not job.active:
                del self._jobs[identity]

    def _prune(self) -> None:
        finished = [job for job in self._jobs.values() if not job.active]
        holding = [job for job in finished if job.result is not None]
        old = (*finished[:-REMEMBERED], *holding[:-RESULTS])
        for job in dict.fromkeys(old):
            del self._jobs[job.identity]


_desk: Desk | None = None
_desk_lock = threading.Lock()


def desk() -> Desk:
    """The process's desk (a plain module value: clearing Streamlit's caches must not lose it)."""
    global _desk  # noqa: PLW0603 - one queue a process
    with _desk_lock:
        if _desk is None:
            _desk = Desk()
        return _desk


def use_executor(executor: Executor | None) -> None:
    """Give the process another executor and an empty desk (tests run jobs synchronously)."""
    global _desk  # noqa: PLW0603
    with _desk_lock:
        _desk = None if executor is None else Desk(executor)
