"""Crashes, races and locks: what happens to charges when processes end or meet."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import insert

from core.errors import BudgetExceeded, LedgerError
from core.private import processes
from core.private.ledger import Ledger, SpendState
from core.private.ledger_tables import charge_rows, find_population, spend_rows
from core.private.processes import Process
from tests.core.private.ledgers import ROOT, TENTH, charge, people

# -- crashes -------------------------------------------------------------------------------

CHILD = """
import os, signal, sys
from fractions import Fraction
from core.private.ledger import Charge, Ledger
ledger = Ledger(sys.argv[1])
ledger.charge("people", [Charge("crashed", "tree", Fraction(1, 10))])
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
print("charged", flush=True)
sys.stdin.readline()
ledger.finish("crashed", b"late", "K", Fraction(1, 10))
"""


def child(url, mode, **streams):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, url, mode], cwd=ROOT, text=True, **streams
    )


@pytest.mark.skipif(os.name != "posix", reason="kill -9 needs POSIX")
@pytest.mark.parametrize("collected", [True, False])
def test_a_killed_process_leaves_spent_no_result(shared, collected):
    ledger = Ledger(shared)
    ledger.create_population(people(cap="0.15"))
    process = child(shared, "kill")
    if collected:
        assert process.wait() == -signal.SIGKILL
    else:  # killed, and still listed as a process because nobody asked for its exit code
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ledger.spend("crashed").state is SpendState.CHARGED
    reopened = Ledger(shared)
    spend = reopened.spend("crashed")
    process.wait()
    assert spend.state is SpendState.NO_RESULT
    assert "ended before" in spend.message
    assert spend.finished_at is not None
    assert ledger.remaining("people") == Fraction(1, 20)  # never refunded
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", [charge("again")])
    with pytest.raises(LedgerError, match="finished"):
        ledger.finish("crashed", b"", "K", TENTH)
    assert ledger.recover() == ()


def test_a_living_process_is_left_alone(shared):
    ledger = Ledger(shared)
    ledger.create_population(people())
    process = child(shared, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "charged\n"
    ledger.charge("people", [charge("mine")])
    assert Ledger(shared).recover() == ()
    states = {spend.request_id: spend.state for spend in ledger.spends("people")}
    assert states == {"crashed": SpendState.CHARGED, "mine": SpendState.CHARGED}
    process.communicate("\n")
    assert process.returncode == 0
    assert ledger.spend("crashed").state is SpendState.DONE


@pytest.mark.parametrize(
    ("column", "value", "settled"),
    [
        ("host", "another machine", False),
        ("process_start", "", False),
        ("process_start", "a process that had this number before", True),
        ("pid", 2**22 + 1, True),
        ("state", "done", False),
    ],
)
def test_whose_charges_are_settled(tmp_path, column, value, settled):
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{file}")
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    with sqlite3.connect(file) as raw:
        raw.execute(f"UPDATE justitia_spend SET {column} = ?", (value,))
    raw.close()
    assert [spend.request_id for spend in ledger.recover()] == (["a"] if settled else [])
    assert (ledger.spend("a").state is SpendState.NO_RESULT) is settled


def test_a_process_that_may_not_be_looked_at_counts_as_living(monkeypatch):
    monkeypatch.setattr(processes, "_start_of", lambda pid: None)
    me = Process(processes.socket.gethostname(), os.getpid(), "then")
    assert not me.is_known_dead  # it answers a signal, though nothing is told about it
    assert replace(me, pid=2**22 + 1).is_known_dead

    def denied(pid, number):
        raise PermissionError

    monkeypatch.setattr(processes.os, "kill", denied)
    assert not replace(me, pid=1).is_known_dead


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="this system has no /bin/ps")
def test_start_times_without_proc():
    mine = processes._posix_start(os.getpid())
    assert mine
    assert mine == processes._posix_start(os.getpid())
    assert processes._posix_start(2**22 + 1) is None


# -- several at once -----------------------------------------------------------------------


def _waits_for_a_charge_in_progress(url):
    """While one transaction spends the last of the budget, another one waits, then refuses."""
    ledger, other = Ledger(url), Ledger(url)
    ledger.create_population(people())
    outcome = []

    def ask():
        try:
            outcome.append(other.charge("people", [charge("second")]))
        except BudgetExceeded as refusal:
            outcome.append(refusal)

    with ledger.database.writing() as connection:
        row = find_population(connection, "people", "local", lock=True)
        connection.execute(insert(spend_rows), charge_rows(row.id, [charge("first", Fraction(1))]))
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
    thread.join(30)
    assert isinstance(outcome[0], BudgetExceeded)
    assert ledger.spent("people") == 1


def test_a_charge_waits_for_the_one_in_progress(shared):
    _waits_for_a_charge_in_progress(shared)


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_a_charge_waits_for_the_one_in_progress_on_postgres(postgres_url, isolation):
    """Whatever isolation the server sets by default."""
    quoted = isolation.replace(" ", "%5C%20")
    _waits_for_a_charge_in_progress(
        f"{postgres_url}?options=-c%20default_transaction_isolation%3D{quoted}"
    )


@pytest.mark.parametrize("where", ["shared", "postgres_url"])
def test_two_processes_open_a_new_ledger_at_once(request, where):
    url = request.getfixturevalue(where)
    script = (
        "import sys, psycopg\n"
        "from core.private.ledger import Ledger, Population\n"
        "from core.releases import Relation, Unit\n"
        "from fractions import Fraction\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "ledger = Ledger(sys.argv[1])\n"
        "ledger.create_population(Population('p', Relation.ADD_REMOVE, Unit(), Fraction(1)))\n"
        "print(ledger.table_id('p', 'f' * 64))\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, url],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    assert [process.stdout.readline() for process in running] == ["ready\n"] * 4
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 4, told
    (identity,) = {out.strip() for out, _ in told}
    # The one that was first wrote it down; the others found it, and so does whoever comes later.
    later = Ledger(url)
    assert later.seen_in("f" * 64) == ("p",)
    assert later.table_id("p", "f" * 64) == identity
    later.close()


def test_threads_share_one_ledger(ledger):
    ledger.create_population(people())
    outcomes = []

    def work(worker):
        for number in range(10):
            try:
                ledger.charge("people", [charge(f"{worker}-{number}", Fraction(1, 20))])
                outcomes.append(True)
            except BudgetExceeded:
                outcomes.append(False)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(outcomes), sum(outcomes)) == (40, 20)
    assert ledger.remaining("people") == 0


def test_two_threads_with_one_id_pay_once(ledger):
    ledger.create_population(people())
    fresh, barrier = [], threading.Barrier(4)

    def work():
        barrier.wait()
        fresh.append(ledger.charge("people", [charge("same")])[0][1])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fresh) == [False, False, False, True]
    assert ledger.spent("people") == TENTH
