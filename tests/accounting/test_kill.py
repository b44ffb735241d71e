"""kill -9 at every stage boundary of a run leaves a true ledger, and the next run does right."""

from __future__ import annotations

import multiprocessing
import os
import signal
from fractions import Fraction

import pytest

from core.__main__ import main
from core.private.ledger import Ledger, SpendState
from tests.accounting.books import content
from tests.accounting.killed import POINTS, run_and_die
from tests.accounting.small import plan_text, write_table

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="kill -9 needs POSIX"),
    pytest.mark.slow,
]
TREE, MEAN = Fraction(3, 10), Fraction(1, 20)
LOST, DONE = SpendState.NO_RESULT, SpendState.DONE
#: What became of (tree, mean); None: nothing was charged.
OUTCOMES = {
    "before the charge": None,
    "in the charge's transaction, before its event": None,
    "in the charge's transaction, after its event": None,
    "after the charge, before the witness": (LOST, LOST),
    "after the charge, within a line of the witness": (LOST, LOST),
    "after the charge, before access": (LOST, LOST),
    "after access": (LOST, LOST),
    "before the store": (LOST, LOST),
    "in the store's transaction, before the state": (LOST, LOST),
    "in the store's transaction, after the state": (LOST, LOST),
    "after the store, before the witness": (DONE, LOST),
    "between the parts": (DONE, LOST),
    "after the last part": (DONE, DONE),
    "before the files": (DONE, DONE),
    "after everything": (DONE, DONE),
}


def test_every_point_is_covered():
    assert list(OUTCOMES) == list(POINTS)


@pytest.fixture(scope="module")
def forks():
    """Children are forked from a server without threads that has everything loaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.accounting.killed"])
    return context


@pytest.mark.parametrize("point", OUTCOMES)
@pytest.mark.usefixtures("home")
def test_a_killed_run_leaves_a_true_ledger(forks, tmp_path, point):
    _killed(forks, tmp_path, point, None)


@pytest.mark.parametrize(
    "point",
    [
        "in the charge's transaction, after its event",
        "after the charge, before the witness",
        "in the store's transaction, after the state",
        "after the store, before the witness",
    ],
)
def test_a_killed_run_leaves_a_true_ledger_on_a_server(forks, tmp_path, postgres_url, point):
    _killed(forks, tmp_path, point, postgres_url)


def _killed(forks, folder, point, url):
    plan, table = folder / "plan.toml", write_table(folder / "table.csv")
    plan.write_text(plan_text(TREE, {"mean": MEAN}), encoding="utf-8")
    where = [] if url is None else ["--ledger", url]
    arguments = [str(plan), "--data", str(table), "--out", str(folder / "out"), "--quiet", *where]
    # The population and its table are known before, so that only the charge can differ.
    ledger = _prepared(plan, table, url)
    before = content(ledger)
    home = os.environ["JUSTITIA_HOME"]
    process = forks.Process(target=run_and_die, args=(point, home, arguments))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL

    outcome = OUTCOMES[point]
    again = Ledger(url)
    report = again.verify()
    assert report.intact, report.words
    spends = again.spends("people")
    if outcome is None:
        assert content(again) == before
        assert main(["run", *arguments]) == 0
    else:
        assert tuple(spend.state for spend in spends) == outcome
        assert again.spent("people") == TREE + MEAN
        stored = {spend.request_id: again.release_blob(spend.request_id) for spend in spends}
        assert [blob is not None for blob in stored.values()] == [s is DONE for s in outcome]
        _runs_again(again, arguments, outcome, stored)
    assert again.verify().intact
    assert (folder / "out" / "bundle.zip").exists()
    ledger.close()


def _prepared(plan, table, url):
    from core.attachment import attach, read_for
    from core.plan import read_plan

    ledger = Ledger(url)
    read = read_plan(plan)
    attach(read, read_for(read, table), ledger).vault.close()
    return ledger


def _runs_again(ledger, arguments, outcome, stored):
    """What is done is replayed byte for byte; what is lost is refused, then paid for on purpose."""
    paid = TREE + MEAN
    if LOST in outcome:
        before = content(ledger)
        assert main(["run", *arguments]) == 4
        assert content(ledger) == before
        assert main(["run", *arguments, "--new-release"]) == 0
        paid += sum(
            (rho for rho, state in zip((TREE, MEAN), outcome, strict=True) if state is LOST),
            Fraction(0),
        )
    else:
        assert main(["run", *arguments]) == 0
    assert ledger.spent("people") == paid
    assert {key: ledger.release_blob(key) for key in stored} == stored
    before = content(ledger)
    assert main(["run", *arguments]) == 0
    assert content(ledger) == before
