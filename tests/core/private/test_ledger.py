import itertools
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from core.errors import BudgetError, BudgetExceeded, LedgerError, SchemaError
from core.private import processes
from core.private.ledger import Charge, Ledger, Population, SpendState
from core.private.ledger_tables import charge_rows, find_population, spend_rows
from core.private.processes import Process
from core.releases import Relation, Unit, digest

ROOT = Path(__file__).parents[3]
POSTGRES = "JUSTITIA_TEST_POSTGRES"
TENTH = Fraction(1, 10)


def people(name="people", cap=Fraction(1), **terms):
    return Population(name, Relation.ADD_REMOVE, Unit(), cap, **terms)


def charge(identity, rho=TENTH, what="tree"):
    return Charge(identity, what, rho)


@pytest.fixture(params=["memory", "file", "postgres"])
def url(request, tmp_path):
    """The same behaviour everywhere; PostgreSQL when a server is offered."""
    if request.param == "memory":
        return "sqlite://"
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def postgres_url():
    """An empty PostgreSQL database, one for each process that runs tests."""
    if POSTGRES not in os.environ:
        pytest.skip(f"no server: set {POSTGRES} to the URL that tests/postgres.sh start prints")
    import psycopg

    server = os.environ[POSTGRES].replace("postgresql+psycopg://", "postgresql://")
    name = f"justitia_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{server.rpartition('/')[0]}/{name}"


@pytest.fixture
def ledger(url):
    opened = Ledger(url)
    yield opened
    opened.close()


@pytest.fixture
def shared(tmp_path, request):
    """URLs that several processes can open at once."""
    return f"sqlite:///{tmp_path / 'shared.sqlite'}"


def snapshot(ledger):
    return [(p, ledger.spends(p.name, owner=p.owner)) for p in ledger.populations()]


# -- populations ---------------------------------------------------------------------------


def test_a_population_is_stored_with_all_its_terms(ledger):
    terms = Population(
        "patients 2024",
        Relation.ADD_REMOVE,
        Unit(3, "person"),
        Fraction(1, 3),
        delta=1e-7,
        owner="anna",
        simulated=True,
        expected_rows=500,
    )
    assert ledger.create_population(terms) == terms
    assert ledger.population("patients 2024", "anna") == terms
    assert ledger.populations() == [terms]
    assert ledger.create_population(terms) == terms
    assert len(ledger.populations()) == 1


def test_name_and_owner_together_are_the_identity(ledger):
    mine, yours = people(owner="anna"), people(owner="ben", cap=Fraction(2))
    ledger.create_population(mine)
    ledger.create_population(yours)
    ledger.charge("people", [charge("a", Fraction(1))], owner="anna")
    assert ledger.remaining("people", owner="anna") == 0
    assert ledger.remaining("people", owner="ben") == 2
    assert ledger.spends("people", owner="ben") == []
    assert ledger.populations("ben") == [yours]
    for name, owner in (("people", "local"), ("nobody", "anna")):
        with pytest.raises(LedgerError, match="no population"):
            ledger.population(name, owner)


@pytest.mark.parametrize(
    "other",
    [
        {"relation": Relation.REPLACE_ONE},
        {"unit": Unit(2, "id")},
        {"unit": Unit(1, "id")},
        {"simulated": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_terms_are_fixed_at_creation(ledger, other):
    ledger.create_population(people())
    with pytest.raises(LedgerError, match="fixed"):
        ledger.create_population(replace(people(), **other))
    assert ledger.populations() == [people()]


def test_only_set_cap_changes_a_cap(ledger):
    ledger.create_population(people())
    again = ledger.create_population(people(cap=Fraction(5), delta=1e-6, expected_rows=70))
    assert (again.cap, again.delta, again.expected_rows) == (1, 1e-6, 70)
    assert ledger.create_population(people()).expected_rows == 70
    ledger.charge("people", [charge("a", Fraction(1, 3))])
    assert ledger.set_cap("people", Fraction(1, 3)).cap == Fraction(1, 3)
    assert ledger.remaining("people") == 0
    with pytest.raises(LedgerError, match="cannot be lower"):
        ledger.set_cap("people", Fraction(33, 100))
    assert ledger.set_cap("people", Fraction(2)) == ledger.population("people")
    assert ledger.remaining("people") == Fraction(5, 3)
    for wrong in (0, -1, float("nan"), "", True):
        with pytest.raises(BudgetError):
            ledger.set_cap("people", wrong)
    with pytest.raises(LedgerError, match="no population"):
        ledger.set_cap("nobody", Fraction(1))


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        ({"name": ""}, LedgerError),
        ({"name": "  "}, LedgerError),
        ({"name": "a\x00b"}, LedgerError),
        ({"name": "a\nb"}, LedgerError),
        ({"name": "\ud800"}, LedgerError),
        ({"name": "x" * 201}, LedgerError),
        ({"name": 7}, LedgerError),
        ({"owner": ""}, LedgerError),
        ({"relation": "swap"}, LedgerError),
        ({"cap": Fraction(0)}, BudgetError),
        ({"cap": float("inf")}, BudgetError),
        ({"delta": 0.0}, BudgetError),
        ({"delta": float("nan")}, BudgetError),
        ({"delta": 1.0}, BudgetError),
        ({"unit": Unit(0)}, LedgerError),
        ({"expected_rows": 0}, LedgerError),
        ({"expected_rows": 2**31}, LedgerError),
        ({"expected_rows": True}, LedgerError),
        ({"relation": "replace_one", "unit": Unit(2, "id")}, SchemaError),
    ],
)
def test_impossible_populations_are_refused(terms, error):
    with pytest.raises(error):
        replace(people(), **terms)


@pytest.mark.parametrize("rho", [0, -1, "", "NaN", float("inf"), True, None])
def test_a_charge_is_a_positive_finite_amount(rho):
    with pytest.raises(BudgetError):
        Charge("id", "tree", rho)


@pytest.mark.parametrize("identity", ["", " ", "x" * 201, "a\x00", None])
def test_a_charge_has_a_usable_id(identity):
    with pytest.raises(LedgerError, match="request id"):
        Charge(identity, "tree", TENTH)


def test_names_come_back_letter_for_letter(ledger):
    names = ["Ünïcode ρ 人", "o'clock; DROP TABLE", 'quote"', "a\\b", "%s {x} :y", " padded "]
    for name in names:
        ledger.create_population(people(name))
        ledger.charge(name, [charge(f"id {name}", what=name)])
    assert sorted(p.name for p in ledger.populations()) == sorted(names)
    for name in names:
        (spend,) = ledger.spends(name)
        assert (spend.population, spend.request_id, spend.what) == (name, f"id {name}", name)


# -- exact sums ----------------------------------------------------------------------------


PLANS = [
    ("0.3", ["0.1"] * 3),
    ("1", [Fraction(1, 11)] * 11),
    *(("1", list(order)) for order in itertools.permutations(["0.7", "0.2", "0.1"])),
]


@pytest.mark.parametrize(("cap", "parts"), PLANS, ids=str)
def test_planned_parts_fit_exactly_and_nothing_more_does(tmp_path, cap, parts):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    ledger = Ledger(url)
    ledger.create_population(people(cap=cap))
    for number, part in enumerate(parts):
        ledger = Ledger(url)  # a restart changes nothing
        ((_, fresh),) = ledger.charge("people", [charge(f"r{number}", part)])
        assert fresh
    for opened in (ledger, Ledger(url)):
        assert opened.remaining("people") == 0
        before = snapshot(opened)
        with pytest.raises(BudgetExceeded, match="rho = 0 left"):
            opened.charge("people", [charge("one more", "1e-12")])
        assert snapshot(opened) == before
    assert Ledger(url).spent("people") == Fraction(cap)


def test_several_charges_are_charged_together_or_not_at_all(ledger):
    ledger.create_population(people(cap="0.3"))
    planned = [charge(f"r{number}") for number in range(3)]
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.charge("people", [*planned, charge("r3", "1e-12")])
    assert "0.300000000001" in str(refusal.value)
    assert "not touched" in str(refusal.value)
    assert ledger.spends("people") == []
    booked = ledger.charge("people", planned)
    assert [fresh for _, fresh in booked] == [True] * 3
    assert [spend.request_id for spend, _ in booked] == ["r0", "r1", "r2"]
    assert ledger.remaining("people") == 0


def test_an_id_is_charged_once(ledger):
    ledger.create_population(people(cap="0.3"))
    ((first, fresh),) = ledger.charge("people", [charge("a")])
    assert fresh
    ((again, fresh),) = ledger.charge("people", [charge("a")])
    assert not fresh
    assert again == first
    mixed = ledger.charge("people", [charge("b"), charge("a"), charge("c")])
    assert [(spend.request_id, fresh) for spend, fresh in mixed] == [
        ("b", True),
        ("a", False),
        ("c", True),
    ]
    assert ledger.remaining("people") == 0
    # Full as it is, what was paid for can still be asked about.
    assert [fresh for _, fresh in ledger.charge("people", [charge("a"), charge("c")])] == [
        False,
        False,
    ]
    assert ledger.charge("people", []) == ()


def test_a_clash_of_ids_is_refused(ledger):
    for population in (people(), people("others")):
        ledger.create_population(population)
    ledger.charge("people", [charge("a")])
    before = snapshot(ledger)
    for population, wrong in (
        ("people", charge("a", Fraction(1, 9))),
        ("people", charge("a", what="covariance")),
        ("others", charge("a")),
    ):
        with pytest.raises(LedgerError, match="charged before"):
            ledger.charge(population, [charge("b"), wrong])
    with pytest.raises(LedgerError, match="twice"):
        ledger.charge("people", [charge("b"), charge("b")])
    with pytest.raises(LedgerError, match="no population"):
        ledger.charge("nobody", [charge("b")])
    assert snapshot(ledger) == before


def test_a_spend_tells_when_and_what(ledger):
    ledger.create_population(people())
    ((spend, _),) = ledger.charge("people", [charge("a", Fraction(1, 3))])
    assert spend.rho == Fraction(1, 3)
    assert spend.state is SpendState.CHARGED
    assert (spend.debited, spend.finished_at, spend.release_kind) == (None, None, None)
    assert abs(datetime.now(UTC) - spend.created_at) < timedelta(minutes=1)
    assert ledger.spend("a") == spend
    assert ledger.spend("b") is None
    assert ledger.release_blob("a") is None
    with pytest.raises(FrozenInstanceError):
        spend.rho = Fraction(0)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.fractions(min_value=Fraction(1, 10), max_value=3, max_denominator=30),
    st.lists(
        st.one_of(
            st.tuples(
                st.just("charge"),
                st.lists(
                    st.tuples(
                        st.integers(0, 9),
                        st.fractions(min_value=Fraction(1, 50), max_value=1, max_denominator=50),
                    ),
                    min_size=1,
                    max_size=3,
                ),
            ),
            st.tuples(st.sampled_from(["finish", "partial", "fail"]), st.integers(0, 9)),
            st.tuples(st.just("cap"), st.fractions(min_value=Fraction(1, 10), max_value=3)),
        ),
        max_size=15,
    ),
)
def test_no_sequence_of_requests_passes_the_cap(cap, actions):
    """Against a model: a dictionary of charges and a set of open ones."""
    ledger = Ledger("sqlite://")
    ledger.create_population(people(cap=cap))
    paid, waiting = {}, set()
    for action, detail in actions:
        if action == "charge":
            wanted = {f"r{number}": rho for number, rho in detail}
            fresh = {key: rho for key, rho in wanted.items() if key not in paid}
            clash = any(paid.get(key, rho) != rho for key, rho in wanted.items())
            fits = sum(paid.values()) + sum(fresh.values()) <= cap
            try:
                ledger.charge("people", [charge(key, rho) for key, rho in wanted.items()])
                assert not clash
                assert fits
                paid |= fresh
                waiting |= set(fresh)
            except BudgetExceeded:
                assert not clash
                assert not fits
            except LedgerError:
                assert clash
        elif action == "cap":
            try:
                ledger.set_cap("people", detail)
                cap = detail
                assert sum(paid.values()) <= cap
            except LedgerError:
                assert detail < sum(paid.values())
        else:
            key = f"r{detail}"
            try:
                if action == "fail":
                    ledger.fail(key, "no")
                else:
                    state = SpendState.DONE if action == "finish" else SpendState.PARTIAL
                    ledger.finish(key, b"x", "K", paid.get(key, TENTH), state)
                assert key in waiting
                waiting.discard(key)
            except LedgerError:
                assert key not in waiting
        assert ledger.spent("people") == sum(paid.values()) <= cap
        assert ledger.remaining("people") == cap - sum(paid.values())
        still = {s.request_id for s in ledger.spends("people") if s.state is SpendState.CHARGED}
        assert still == waiting
    ledger.close()


# -- states --------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [SpendState.DONE, SpendState.PARTIAL])
def test_a_release_and_its_state_are_stored_together(ledger, state):
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    blob = bytes(range(256)) * 50
    spend = ledger.finish("a", blob, "TreeRelease", Fraction(999, 10000), state)
    assert spend == ledger.spend("a")
    assert (spend.state, spend.debited) == (state, Fraction(999, 10000))
    assert (spend.release_kind, spend.release_sha256) == ("TreeRelease", digest(blob))
    assert spend.created_at <= spend.finished_at
    assert ledger.release_blob("a") == blob
    assert ledger.spent("people") == TENTH  # what was not debited stays spent


@pytest.mark.parametrize("end", ["done", "partial", "failed"])
def test_a_finished_charge_never_changes(ledger, end):
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    if end == "failed":
        ledger.fail("a", "the estimator stopped")
    else:
        ledger.finish("a", b"one", "K", TENTH, SpendState(end))
    before = snapshot(ledger), ledger.release_blob("a")
    for state in (SpendState.DONE, SpendState.PARTIAL):
        with pytest.raises(LedgerError, match="finished"):
            ledger.finish("a", b"two", "K", TENTH, state)
    with pytest.raises(LedgerError, match="finished"):
        ledger.fail("a", "again")
    assert (snapshot(ledger), ledger.release_blob("a")) == before


def test_unknown_ids_and_wrong_states_are_refused(ledger):
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    with pytest.raises(LedgerError, match="nothing was charged"):
        ledger.finish("b", b"", "K", TENTH)
    with pytest.raises(LedgerError, match="nothing was charged"):
        ledger.fail("b", "no")
    for state in (SpendState.CHARGED, SpendState.NO_RESULT):
        with pytest.raises(LedgerError, match="done or partial"):
            ledger.finish("a", b"", "K", TENTH, state)
    for debited in (Fraction(-1), TENTH + Fraction(1, 10**12)):
        with pytest.raises(LedgerError, match="was charged"):
            ledger.finish("a", b"", "K", debited)
    assert ledger.spend("a").state is SpendState.CHARGED
    assert ledger.release_blob("a") is None


def test_a_failure_says_why_on_one_line_and_is_never_refunded(ledger):
    ledger.create_population(people(cap=TENTH))
    ledger.charge("people", [charge("a")])
    spend = ledger.fail("a", "line one\nline two\x00" + "x" * 5000)
    assert spend.state is SpendState.NO_RESULT
    assert spend.message.startswith("line one line two x")
    assert len(spend.message) == 1000
    assert spend.finished_at is not None
    assert ledger.remaining("people") == 0


def test_a_changed_release_is_noticed(tmp_path):
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{file}")
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    ledger.finish("a", b"the release", "K", TENTH)
    with sqlite3.connect(file) as raw:
        raw.execute("UPDATE justitia_release SET blob = ?", (b"another release",))
    raw.close()
    with pytest.raises(LedgerError, match="damaged"):
        ledger.release_blob("a")


def test_nothing_is_stored_when_the_state_cannot_be(ledger, monkeypatch):
    import core.private.ledger as module

    ledger.create_population(people())
    ledger.charge("people", [charge("a")])

    def broken(*arguments, **settings):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(module, "settle", broken)
        with pytest.raises(RuntimeError):
            ledger.finish("a", b"release", "K", TENTH)
    assert ledger.release_blob("a") is None
    assert ledger.spend("a").state is SpendState.CHARGED
    ledger.finish("a", b"release", "K", TENTH)
    assert ledger.release_blob("a") == b"release"


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


def _spend_all(url, worker, requests, start, results):
    ledger = Ledger(url)
    start.wait()
    accepted = 0
    for number in range(requests):
        try:
            ledger.charge("people", [charge(f"w{worker}-{number}", Fraction(1, 100))])
            accepted += 1
        except BudgetExceeded:
            continue
    results.put(accepted)


def _race(url, workers=4, requests=50):
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(workers), context.Queue()
    running = [
        context.Process(target=_spend_all, args=(url, worker, requests, start, results))
        for worker in range(workers)
    ]
    for process in running:
        process.start()
    accepted = [results.get(timeout=120) for _ in running]
    for process in running:
        process.join()
        assert process.exitcode == 0
    return accepted


def test_four_processes_never_overspend(shared):
    ledger = Ledger(shared)
    ledger.create_population(people())
    assert sum(_race(shared)) == 100
    assert ledger.remaining("people") == 0
    assert len(ledger.spends("people")) == 100


def test_four_processes_never_overspend_on_postgres(postgres_url):
    ledger = Ledger(postgres_url)
    ledger.create_population(people())
    assert sum(_race(postgres_url, requests=30)) == 100
    assert ledger.remaining("people") == 0


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
        "print(*ledger.table_id('p', 'f' * 64))\n"
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
    identities, seen = zip(*(out.split() for out, _ in told), strict=True)
    assert len(set(identities)) == 1
    assert sorted(seen) == ["False", "True", "True", "True"]


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


# -- tables --------------------------------------------------------------------------------


def test_a_table_is_recognised_within_its_population(ledger):
    for population in (people(), people("others")):
        ledger.create_population(population)
    identity, seen = ledger.table_id("people", "a" * 64)
    assert not seen
    assert ledger.table_id("people", "a" * 64) == (identity, True)
    other, seen = ledger.table_id("others", "a" * 64)
    assert not seen
    assert len({identity, other, ledger.table_id("people", "b" * 64)[0]}) == 3
    assert "a" * 8 not in identity
    with pytest.raises(LedgerError, match="no population"):
        ledger.table_id("nobody", "a" * 64)


# -- opening -------------------------------------------------------------------------------


def test_the_default_ledger_lives_in_a_private_folder(tmp_path, monkeypatch):
    home = tmp_path / "deep" / "home"
    monkeypatch.setenv("JUSTITIA_HOME", str(home))
    ledger = Ledger(None)
    ledger.create_population(people())
    assert Ledger(None).populations() == [people()]
    assert ledger.database.path == home / "justitia.sqlite"
    if os.name == "posix":
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE(ledger.database.path.stat().st_mode) == 0o600


def test_the_default_folder_is_in_the_users_home(tmp_path, monkeypatch):
    monkeypatch.delenv("JUSTITIA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger(None).database.path == tmp_path / ".justitia" / "justitia.sqlite"


def test_a_file_ledger_keeps_a_write_ahead_log_and_survives_a_change_of_folder(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("sqlite:///relative.sqlite")
    monkeypatch.chdir("/")
    ledger.create_population(people())
    with sqlite3.connect(tmp_path / "relative.sqlite") as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "URL"),
        ("no url at all", "URL"),
        ("ledger.sqlite", "URL"),
        ("mysql://user:secret@host/db", "mysql"),
        ("sqlite+aiosqlite:///x", "aiosqlite"),
        ("postgresql://host:port/db", "URL"),
        ("sqlite:///file:x?mode=memory&uri=true", "plain path"),
        ("sqlite:///{folder}/missing/ledger.sqlite", "folder exists"),
        ("sqlite:///{folder}", "opened or created"),
        ("postgresql://user:secret@127.0.0.1:9/db", "refused"),
    ],
)
def test_what_cannot_be_opened_is_one_clear_error(tmp_path, url, words):
    with pytest.raises(LedgerError, match=words) as refusal:
        Ledger(url.format(folder=tmp_path), busy_seconds=2)
    assert "secret" not in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    file = tmp_path / "ledger.sqlite"
    content = b"name,wage\nanna,1000\n" * 100
    file.write_bytes(content)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(f"sqlite:///{file}")
    assert file.read_bytes() == content


def test_a_ledger_of_another_version_is_refused(tmp_path):
    file = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{file}")
    with sqlite3.connect(file) as raw:
        raw.execute("UPDATE justitia_version SET version = 99")
    raw.close()
    with pytest.raises(LedgerError, match="99"):
        Ledger(f"sqlite:///{file}")


def test_a_locked_ledger_is_waited_for_and_then_reported(tmp_path):
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{file}", busy_seconds=0.1)
    ledger.create_population(people())
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        ledger.charge("people", [charge("a")])
    assert ledger.remaining("people") == 1  # readers are not stopped
    raw.execute("ROLLBACK")
    raw.close()
    ledger.charge("people", [charge("a")])
    assert ledger.remaining("people") == Fraction(9, 10)


def test_a_ledger_locked_while_it_is_made_is_reported(tmp_path):
    file = tmp_path / "ledger.sqlite"
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match="locked"):
        Ledger(f"sqlite:///{file}", busy_seconds=0.1)
    raw.execute("ROLLBACK")
    raw.close()
    Ledger(f"sqlite:///{file}", busy_seconds=0.1)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_ledger_that_may_not_be_written(tmp_path):
    file = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{file}")
    file.chmod(0o400)
    with pytest.raises(LedgerError, match="written"):
        Ledger(f"sqlite:///{file}")


def test_a_postgres_url_of_the_usual_form_is_rewritten_and_hides_its_password(postgres_url):
    assert postgres_url.startswith("postgresql://")
    ledger = Ledger(postgres_url)
    assert ledger.database.words.startswith("postgresql+psycopg://")
    password = ledger.database._url.password
    assert password
    assert password not in ledger.database.words
    wrong = postgres_url.replace(password, "wrong" * 5)
    with pytest.raises(LedgerError, match="password authentication failed") as refusal:
        Ledger(wrong)
    assert "wrongwrong" not in str(refusal.value)


def test_errors_show_no_parameters(tmp_path):
    """A failing statement must not print what was to be stored."""
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{file}")
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    with sqlite3.connect(file) as raw:
        raw.execute("DROP TABLE justitia_release")
    raw.close()
    with pytest.raises(LedgerError) as refusal:
        ledger.finish("a", b"SENSITIVE", "SENSITIVE", TENTH)
    assert "SENSITIVE" not in f"{refusal.value} {refusal.value.__cause__}"
    assert ledger.spend("a").state is SpendState.CHARGED
