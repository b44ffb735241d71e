"""Eight processes with two hundred requests each, on one ledger: exact, without deadlock."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from fractions import Fraction

import pytest

from core.errors import BudgetExceeded
from core.private.ledger import Ledger, SpendState
from tests.accounting.books import charge, people

pytestmark = pytest.mark.slow
WORKERS, REQUESTS = 8, 200
PRICE = Fraction(1, 100)
#: Less than is asked for: 1,460 different requests, 600 of which fit.
CAPS = {"people": Fraction(4), "others": Fraction(2)}
PATIENCE = 240


def _work(url, home, worker, start, results):
    """Ask for 200 charges, every tenth under an id that all workers share; settle some."""
    os.environ["JUSTITIA_HOME"] = home
    ledger = Ledger(url)
    start.wait()
    accepted, refused = [], 0
    for number in range(REQUESTS):
        name = ("people", "others")[number % 3 == 0]
        shared = number % 10 == 0
        identity = f"shared {number}" if shared else f"{worker} {number}"
        try:
            ((spend, fresh),) = ledger.charge(name, [charge(identity, PRICE)])
        except BudgetExceeded:
            refused += 1
            continue
        assert spend.rho == PRICE
        if fresh:
            accepted.append((name, identity))
            if number % 4 == 1:
                ledger.finish(identity, identity.encode(), "K", PRICE)
            elif number % 8 == 2:
                ledger.fail(identity, "no")
        if number % 50 == 49:
            ledger.recover()
    results.put((worker, accepted, refused))


def _race(url, home):
    """Run all workers while somebody verifies again and again; what each was granted."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["core.private.ledger", "tests.accounting.books", "psycopg"])
    ledger = Ledger(url)
    for name, cap in CAPS.items():
        ledger.create_population(people(name, cap))
    start, results = context.Barrier(WORKERS), context.Queue()
    running = [
        context.Process(target=_work, args=(url, str(home), worker, start, results))
        for worker in range(WORKERS)
    ]
    for process in running:
        process.start()
    told, deadline, verified = [], time.monotonic() + PATIENCE, 0
    while len(told) < WORKERS:
        assert time.monotonic() < deadline, "some process did not end"
        report = ledger.verify()
        assert report.intact, report.words
        verified += 1
        while not results.empty():
            told.append(results.get())
        if any(process.exitcode not in (None, 0) for process in running):
            raise AssertionError("a process failed")
        time.sleep(0.2)
    for process in running:
        process.join(30)
        assert process.exitcode == 0
    assert verified > 1
    return ledger, told


def _check(ledger, told):
    granted = [pair for _, accepted, _ in told for pair in accepted]
    assert len(set(granted)) == len(granted)  # each id was fresh for one worker only
    for name, cap in CAPS.items():
        mine = {identity for payer, identity in granted if payer == name}
        listed = ledger.spends(name)
        assert {spend.request_id for spend in listed} == mine
        assert len(listed) == len(mine)
        assert ledger.spent(name) == PRICE * len(mine) == cap
        assert ledger.remaining(name) == 0
    assert all(len(accepted) + refused <= REQUESTS for _, accepted, refused in told)
    asked_alone = sum(refused + len(accepted) for _, accepted, refused in told)
    assert asked_alone >= WORKERS * (REQUESTS - REQUESTS // 10)
    states = Counter(spend.state for name in CAPS for spend in ledger.spends(name))
    assert states[SpendState.DONE] > 50
    assert states[SpendState.NO_RESULT] > 25
    for spend in (spend for name in CAPS for spend in ledger.spends(name)):
        blob = ledger.release_blob(spend.request_id)
        expected = spend.request_id.encode() if spend.state is SpendState.DONE else None
        assert blob == expected
    report = ledger.verify()
    assert report.intact, report.words
    settled = states[SpendState.DONE] + states[SpendState.NO_RESULT]
    # Those that nobody settled belong to processes that ended: opening the ledger settles them.
    assert report.rows == 1 + len(CAPS) + len(granted) + settled
    assert len(ledger.witness.seen()) == report.rows


def test_eight_processes_never_overspend(tmp_path):
    ledger, told = _race(f"sqlite:///{tmp_path / 'ledger.sqlite'}", tmp_path)
    _check(ledger, told)


def test_eight_processes_never_overspend_on_a_server(postgres_url):
    import psycopg

    ledger, told = _race(postgres_url, os.environ["JUSTITIA_HOME"])
    _check(ledger, told)
    with psycopg.connect(postgres_url) as connection:
        query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert connection.execute(query).fetchone() == (0,)
