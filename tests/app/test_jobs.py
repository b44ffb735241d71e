"""Jobs: never twice under one id, cancelled at the next step, errors without values."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from core.errors import BudgetExceeded
from pages.shared.jobs import REMEMBERED, RESULTS, Desk, JobState
from tests.app.conftest import Held, Synchronous


def test_the_same_id_runs_once() -> None:
    held, ran = Held(), []
    desk = Desk(held)
    first = desk.submit("r1", "work", lambda progress: ran.append(1))
    second = desk.submit("r1", "work", lambda progress: ran.append(2))
    assert first is second
    held.release()
    assert ran == [1]
    assert desk.submit("r1", "work", lambda progress: ran.append(3)) is first
    held.release()
    assert ran == [1]


def test_a_failed_job_may_be_tried_again() -> None:
    desk, outcomes = Desk(Synchronous()), [BudgetExceeded("too much"), None]

    def work(progress):
        error = outcomes.pop(0)
        if error:
            raise error
        return "done"

    assert desk.submit("r1", "work", work).state is JobState.FAILED
    assert desk.find("r1").message == "too much"
    assert desk.submit("r1", "work", work).result == "done"


def test_cancel_stops_at_the_next_step() -> None:
    desk, steps = Desk(Synchronous()), []

    def work(progress):
        for step in range(10):
            if step == 3:
                desk.find("r1").cancel()
            progress("step", step, 10, step)
            steps.append(step)

    job = desk.submit("r1", "work", work)
    assert job.state is JobState.CANCELLED
    assert steps == [0, 1, 2]
    assert [detail for _, detail in job.events] == [0, 1, 2, 3]


def test_cancel_in_the_queue_never_starts() -> None:
    held, ran = Held(), []
    desk = Desk(held)
    job = desk.submit("r1", "work", lambda progress: ran.append(1))
    job.cancel()
    held.release()
    assert job.state is JobState.CANCELLED
    assert "Nothing was spent" in job.message
    assert not ran


def test_cancel_in_the_queue_drops_the_work_at_once_and_makes_room_for_a_second_try() -> None:
    class Rows:
        """Can be watched."""

    held, ran, rows = Held(), [], Rows()
    desk, gone = Desk(held), weakref.ref(rows)
    job = desk.submit("r1", "work", lambda progress, rows=rows: ran.append(1))
    del rows
    job.cancel()
    assert job.state is JobState.CANCELLED
    gc.collect()
    assert gone() is None
    again = desk.submit("r1", "work", lambda progress: ran.append(2))
    assert again is not job
    held.release()
    assert ran == [2]
    assert again.state is JobState.DONE


def test_whatever_ends_a_job_nobody_watches_it_for_ever() -> None:
    def work(progress):
        raise SystemExit(4711)

    held = Held()
    job = Desk(held).submit("r1", "work", work)
    with pytest.raises(SystemExit):
        held.release()
    assert job.state is JobState.FAILED
    assert "4711" not in job.message


def test_the_queue_tells_its_places() -> None:
    desk = Desk(Held())
    for name in ("a", "b", "c"):
        desk.submit(name, "work", lambda progress: None)
    assert [desk.ahead(name) for name in ("a", "b", "c")] == [0, 1, 2]


def test_an_unexpected_error_tells_its_kind_and_no_value() -> None:
    def work(progress):
        raise ValueError("secret cell 4711")

    job = Desk(Synchronous()).submit("r1", "work", work)
    assert job.state is JobState.FAILED
    assert "ValueError" in job.message
    assert "4711" not in job.message


def test_finished_jobs_are_forgotten_in_the_end_and_active_ones_never() -> None:
    held = Held()
    desk = Desk(held)
    waiting = desk.submit("waiting", "work", lambda progress: None)
    held.waiting.clear()
    for number in range(3 * REMEMBERED):
        desk.submit(f"r{number}", "work", lambda progress: None)
        held.release()
    assert desk.find("waiting") is waiting
    assert desk.find("r0") is None
    desk.forget("waiting")
    assert desk.find("waiting") is waiting


def test_only_the_latest_results_are_kept_and_a_forgotten_one_is_made_again() -> None:
    desk = Desk(Synchronous())
    for number in range(2 * RESULTS):
        desk.submit(f"free {number}", "work", lambda progress: "a large table")
        desk.submit(f"paid {number}", "work", lambda progress: None)
    desk.submit("last", "work", lambda progress: None)
    kept = [n for n in range(2 * RESULTS) if desk.find(f"free {n}") is not None]
    assert kept == list(range(RESULTS, 2 * RESULTS))
    assert desk.find("free 0") is None
    assert desk.submit("free 0", "work", lambda progress: "made again").result == "made again"


def test_a_second_try_queues_up_at_the_end() -> None:
    held = Held()
    desk = Desk(held)
    job = desk.submit("first", "work", lambda progress: None)
    job.cancel()
    held.release()
    for name in ("second", "third", "first"):
        desk.submit(name, "work", lambda progress: None)
    assert [desk.ahead(name) for name in ("second", "third", "first")] == [0, 1, 2]


def test_threads_that_submit_one_id_share_one_job() -> None:
    desk, ran, start = Desk(), [], threading.Barrier(8)

    def submit() -> None:
        start.wait()
        desk.submit("r1", "work", lambda progress: ran.append(1))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = threading.Event()
    desk.submit("last", "work", lambda progress: done.set())
    assert done.wait(10)
    assert ran == [1]
