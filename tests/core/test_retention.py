"""Retention: results go for good, and no ledger ever shrinks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core import __main__ as command_line
from core.errors import LedgerError, PlanError, ReleaseError
from core.measuring import stored_release
from core.private.ledger import Charge, Ledger, Population, SpendState
from core.release_log import Act, ReleaseLog
from core.releases import Relation, Unit
from core.retention import Policy, days, enforce, expired, policy_from
from core.store import Store

LATER = timedelta(days=400)
YEAR = Policy(timedelta(days=365), timedelta(days=365))


def ledger_with(url: str, spends: list[tuple[Fraction, str]]) -> Ledger:
    """One population; a spend of each amount, in the state it says."""
    ledger = Ledger(url)
    ledger.create_population(Population("people", Relation.ADD_REMOVE, Unit(), Fraction(100)))
    for number, (rho, state) in enumerate(spends):
        identity = f"r{number}"
        ledger.charge("people", [Charge(identity, "tree", rho)])
        if state in {"done", "partial"}:
            ledger.finish(identity, f"blob {number}".encode(), "tree", rho, SpendState(state))
        elif state == "failed":
            ledger.fail(identity, "no result")
    return ledger


amounts = st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=100)
histories = st.lists(
    st.tuples(amounts, st.sampled_from(["done", "partial", "failed", "running"])), max_size=8
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example([(Fraction(1), "done")], LATER.days)
@given(histories, st.integers(min_value=1, max_value=800))
def test_deleting_never_shrinks_a_ledger(history, kept_days: int) -> None:
    ledger = ledger_with("sqlite://", history)
    before, cap = ledger.spends("people"), ledger.population("people").cap
    policy = Policy(releases=timedelta(days=kept_days))
    gone = enforce(ledger, policy, "an administrator", datetime.now(UTC) + LATER)
    assert ledger.spends("people") == before
    assert ledger.spent("people") == sum((rho for rho, _ in history), Fraction(0))
    assert ledger.population("people").cap == cap
    results = {f"r{n}" for n, (_, state) in enumerate(history) if state in {"done", "partial"}}
    assert set(gone.releases) == (results if kept_days <= LATER.days else set())
    for identity in results:
        assert (ledger.release_blob(identity) is None) == (identity in gone.releases)
    # Asking for it again is a replay of a charge, not a free one and not a new one.
    for number, (rho, _) in enumerate(history):
        ((_, fresh),) = ledger.charge("people", [Charge(f"r{number}", "tree", rho)])
        assert not fresh
    ledger.close()


def test_what_is_deleted_is_gone_from_the_files(tmp_path: Path) -> None:
    mark = b"a release that nobody may read any more " * 400
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    ledger.create_population(Population("people", Relation.ADD_REMOVE, Unit(), Fraction(1)))
    ledger.charge("people", [Charge("r", "tree", Fraction(1, 2))])
    ledger.finish("r", mark, "tree", Fraction(1, 2))
    assert any(mark[:200] in file.read_bytes() for file in tmp_path.iterdir())
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as another:  # as on a server
        another.execute("SELECT count(*) FROM justitia_spend").fetchall()
        enforce(ledger, YEAR, "an administrator", datetime.now(UTC) + LATER)
        for file in tmp_path.iterdir():
            assert mark[:200] not in file.read_bytes(), file.name
    ledger.close()
    for file in tmp_path.iterdir():
        assert mark[:200] not in file.read_bytes(), file.name


def test_every_deletion_is_logged_with_its_hash_and_its_policy(tmp_path: Path) -> None:
    ledger = ledger_with("sqlite://", [(Fraction(1), "done")])
    store = Store(ledger)
    project = store.save_project("x", {})
    gone = enforce(ledger, YEAR, "an administrator", datetime.now(UTC) + LATER)
    assert gone.projects == (project.project_id,)
    assert store.projects() == []
    first, second = ReleaseLog(ledger).entries()
    assert (first.act, first.actor, first.request_id) == (
        Act.RESULT_DELETED,
        "an administrator",
        "r0",
    )
    assert ledger.spend("r0").release_sha256 in first.detail
    assert "kept for 365 days" in first.detail
    assert second.act is Act.PROJECT_DELETED
    assert ReleaseLog(ledger).check() == 2


def test_nothing_goes_without_a_policy_or_before_its_time() -> None:
    ledger = ledger_with("sqlite://", [(Fraction(1), "done")])
    Store(ledger).save_project("x", {})
    later = datetime.now(UTC) + LATER
    assert expired(ledger, Policy(), later).releases == ()
    assert enforce(ledger, Policy(), "x", later).projects == ()
    assert enforce(ledger, YEAR, "x", datetime.now(UTC)).releases == ()
    assert ReleaseLog(ledger).entries() == []
    assert expired(ledger, YEAR, later).releases == ("r0",)
    assert ledger.release_blob("r0") is not None, "looking deletes nothing"


def test_a_deleted_result_says_so(tmp_path: Path) -> None:
    ledger = ledger_with("sqlite://", [(Fraction(1), "done")])
    enforce(ledger, YEAR, "x", datetime.now(UTC) + LATER)
    with pytest.raises(ReleaseError, match="retention policy says; --new-release spends again"):
        stored_release(ledger, ledger.spend("r0"))
    with pytest.raises(LedgerError, match="deleted under the retention policy"):
        Store(ledger).release("r0")


def test_a_kept_chain_still_verifies_after_a_deletion(tmp_path: Path) -> None:
    ledger = ledger_with(
        f"sqlite:///{tmp_path / 'ledger.sqlite'}", [(Fraction(1), "done"), (Fraction(1), "done")]
    )
    enforce(ledger, YEAR, "x", datetime.now(UTC) + LATER)
    assert ledger.verify().rows > 0
    ledger.close()
    Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}").charge(
        "people", [Charge("next", "tree", Fraction(1))]
    )


@pytest.mark.parametrize("typed", ["0", "-3", "1.5", "a year", "99999999999", "³"])
def test_a_number_of_days_is_a_number_of_days(typed: str) -> None:
    with pytest.raises(PlanError, match="--keep-releases must be a whole number of days"):
        days(typed, "--keep-releases")


def test_the_environment_declares_the_policy() -> None:
    found = policy_from({"JUSTITIA_KEEP_PROJECTS_DAYS": " 90 ", "JUSTITIA_KEEP_RELEASES_DAYS": ""})
    assert found == Policy(None, timedelta(days=90))


def test_the_command_shows_first_and_deletes_on_demand(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    ledger = ledger_with(url, [(Fraction(1), "done")])
    past = (datetime.now(UTC) - LATER).isoformat()
    with ledger.database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE justitia_spend SET finished_at = '{past}'")
    asked = ["retention", "--ledger", url, "--keep-releases", "365"]
    assert command_line.main(asked) == 0
    assert "would be deleted with --delete: release of request r0" in capsys.readouterr().out
    assert ledger.release_blob("r0") is not None
    assert command_line.main([*asked, "--delete"]) == 0
    assert "deleted: release of request r0" in capsys.readouterr().out
    assert ledger.release_blob("r0") is None
    assert ledger.spent("people") == 1
    assert command_line.main(["retention", "--ledger", url, "--keep-projects", "soon"]) == 2
