"""Any sequence of acts on a ledger, against a model in plain fractions.

The model is the oracle: what each population may spend, what was charged, and what became of it.
Whatever is done, including restoring older backups, importing projects and losing files that may
be lost, the ledger says the same, and what is refused changes no byte.
"""

from __future__ import annotations

import tempfile
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from core.errors import BudgetExceeded, LedgerError
from core.private.backup import back_up, restore
from core.private.fingerprint import secret
from core.private.ledger import Ledger, SpendState
from core.retention import Policy, enforce
from core.store import Store
from tests.accounting.books import charge, content, people

NAMES = (("people", "local"), ("people", "anna"), ("others", "local"))
AMOUNTS = st.fractions(min_value=Fraction(1, 60), max_value=Fraction(2, 5), max_denominator=60)
STORED = (SpendState.DONE, SpendState.PARTIAL)


class LedgerMachine(RuleBasedStateMachine):
    """A ledger in a file, and what it ought to say."""

    projects = Bundle("projects")
    backups = Bundle("backups")

    @initialize(caps=st.lists(AMOUNTS, min_size=3, max_size=3))
    def begin(self, caps: list[Fraction]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger.sqlite"
        self.ledger = Ledger(f"sqlite:///{self.path}")
        secret(self.ledger)
        self.caps = dict(zip(NAMES, [2 * cap for cap in caps], strict=True))
        self.charged: dict[str, tuple[tuple[str, str], Fraction]] = {}
        self.states: dict[str, SpendState] = {}
        self.stored: dict[str, bytes] = {}
        for (name, owner), cap in self.caps.items():
            self.ledger.create_population(people(name, cap, owner=owner))

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.ledger.close()
            self.folder.cleanup()

    def spent(self, payer: tuple[str, str]) -> Fraction:
        return sum((rho for who, rho in self.charged.values() if who == payer), Fraction(0))

    # -- charging --------------------------------------------------------------------------

    @rule(
        payer=st.sampled_from(NAMES),
        wanted=st.dictionaries(st.sampled_from("abcdefgh"), AMOUNTS, min_size=1, max_size=3),
    )
    def charge(self, payer: tuple[str, str], wanted: dict[str, Fraction]) -> None:
        """All or none, and an id only once."""
        # An id that was charged is mostly asked for at its own price.
        asked = {
            key: self.charged[key][1] if key in self.charged and rho.denominator % 2 else rho
            for key, rho in wanted.items()
        }
        fresh = {key: rho for key, rho in asked.items() if key not in self.charged}
        known = {key: (payer, rho) for key, rho in asked.items() if key in self.charged}
        clash = any(self.charged[key] != what for key, what in known.items())
        fits = self.spent(payer) + sum(fresh.values()) <= self.caps[payer]
        before = content(self.ledger)
        name, owner = payer
        charges = [charge(key, rho) for key, rho in asked.items()]
        if clash or not fits:
            with pytest.raises(LedgerError if clash else BudgetExceeded):
                self.ledger.charge(name, charges, owner=owner)
            assert content(self.ledger) == before
            return
        booked = self.ledger.charge(name, charges, owner=owner)
        assert {spend.request_id for spend, new in booked if new} == set(fresh)
        self.charged |= {key: (payer, rho) for key, rho in fresh.items()}
        self.states |= dict.fromkeys(fresh, SpendState.CHARGED)
        if not fresh:
            assert content(self.ledger) == before

    @rule(key=st.sampled_from("abcdefgh"), state=st.sampled_from((*STORED, None)))
    def settle(self, key: str, state: SpendState | None) -> None:
        """Once, with a release or without."""
        blob = f"release of {key}".encode()
        before = content(self.ledger)
        try:
            if state is None:
                self.ledger.fail(key, "no")
            else:
                debited = self.charged.get(key, ((), Fraction(1)))[1]
                self.ledger.finish(key, blob, "K", debited, state)
        except LedgerError:
            assert self.states.get(key) is not SpendState.CHARGED
            assert content(self.ledger) == before
            return
        assert self.states[key] is SpendState.CHARGED
        self.states[key] = SpendState.NO_RESULT if state is None else state
        if state is not None:
            self.stored[key] = blob

    @rule(payer=st.sampled_from(NAMES), cap=AMOUNTS, factor=st.integers(1, 3))
    def change_cap(self, payer: tuple[str, str], cap: Fraction, factor: int) -> None:
        """Up or down, never below what was spent."""
        before = content(self.ledger)
        try:
            self.ledger.set_cap(payer[0], factor * cap, owner=payer[1])
        except LedgerError:
            assert factor * cap < self.spent(payer)
            assert content(self.ledger) == before
            return
        assert factor * cap >= self.spent(payer)
        self.caps[payer] = factor * cap

    @rule(payer=st.sampled_from(NAMES), cap=AMOUNTS)
    def declare_again(self, payer: tuple[str, str], cap: Fraction) -> None:
        """A plan with another cap does not change the ledger's."""
        known = self.ledger.create_population(people(payer[0], cap, owner=payer[1]))
        assert known.cap == self.caps[payer]

    # -- what may happen to a ledger's surroundings ----------------------------------------

    @rule()
    def restart(self) -> None:
        self.ledger.close()
        self.ledger = Ledger(f"sqlite:///{self.path}")

    @rule(kept=st.integers(0, 400))
    def tear_the_witness(self, kept: int) -> None:
        """A power cut tears its last line, or it was lost; the ledger is whole."""
        path = self.ledger.witness.path
        path.write_bytes(path.read_bytes()[: -kept - 1])
        self.restart()

    @precondition(lambda self: len(list(Path(self.folder.name).glob("backup*.sqlite"))) < 3)
    @rule(target=backups)
    def keep_a_backup(self) -> Path:
        number = len(list(Path(self.folder.name).glob("backup*.sqlite")))
        path = Path(self.folder.name) / f"backup{number}.sqlite"
        _, report = back_up(self.ledger, path)
        assert report.intact
        return path

    @rule(backup=backups, lost=st.sampled_from(("nothing", "the file", "its content")))
    def restore_a_backup(self, backup: Path, lost: str) -> None:
        """Charges come back; releases that the backup lacks are gone and stay paid for."""
        held = Ledger(f"sqlite:///{backup}")
        there = {key for key in self.charged if held.release_blob(key) is not None}
        held.close()
        self.ledger.close()
        if lost == "the file":
            self.path.unlink()
        elif lost == "its content":
            self.path.write_bytes(b"not a ledger any more")
        restore(f"sqlite:///{self.path}", backup)
        self.ledger = Ledger(f"sqlite:///{self.path}")
        for key in set(self.stored) - there:
            del self.stored[key]
            self.states[key] = SpendState.NO_RESULT

    @rule(backup=backups)
    def put_an_older_copy_back_by_hand(self, backup: Path) -> None:
        """Nothing is charged until it is mended, and then it is as if it had been restored."""
        rows = self.ledger.verify().rows
        self.ledger.close()
        self.path.write_bytes(backup.read_bytes())
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self.ledger = Ledger(f"sqlite:///{self.path}")
        report = self.ledger.verify()
        if report.rows < rows:
            assert not report.intact
            assert "older copy" in report.words
            with pytest.raises(LedgerError, match="older copy"):
                self.ledger.charge("people", [charge("z", Fraction(1, 1000))])
        self.ledger.mend()
        for key in [key for key in self.stored if self.ledger.release_blob(key) is None]:
            del self.stored[key]
            self.states[key] = SpendState.NO_RESULT

    @rule()
    def delete_old_results(self) -> None:
        """A retention policy deletes releases and projects, and nothing of what was charged."""
        enforce(self.ledger, Policy(timedelta(0), timedelta(0)), "keeper")
        self.stored.clear()

    # -- projects --------------------------------------------------------------------------

    @rule(
        target=projects,
        runs=st.lists(st.sampled_from("abcdefgh"), max_size=3),
        attempt=st.integers(-1, 9),
    )
    def import_a_project(self, runs: list[str], attempt: int) -> str:
        """A document may claim what it likes about runs and spends."""
        before = content(self.ledger)
        document = {"runs": runs, "attempt": attempt, "spent": "0", "ledger": {"spends": []}}
        entry = Store(self.ledger).save_project("mine", document)
        assert Store(self.ledger).open_project(entry.project_id).document == document
        assert content(self.ledger) == before
        return entry.project_id

    @rule(project=consumes(projects))
    def delete_a_project(self, project: str) -> None:
        before = content(self.ledger)
        store = Store(self.ledger)
        if project in {entry.project_id for entry in store.projects()}:
            store.delete_project(project)
        store.prune_projects("mine", older_than=timedelta(0), keep=0)
        assert content(self.ledger) == before

    # -- what always holds -----------------------------------------------------------------

    @invariant()
    def the_ledger_says_what_the_model_says(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for (name, owner), cap in self.caps.items():
            spent = self.spent((name, owner))
            assert self.ledger.spent(name, owner=owner) == spent <= cap
            assert self.ledger.remaining(name, owner=owner) == cap - spent
            assert self.ledger.population(name, owner).cap == cap
            listed = self.ledger.spends(name, owner=owner)
            mine = {key: rho for key, (who, rho) in self.charged.items() if who == (name, owner)}
            assert {spend.request_id: spend.rho for spend in listed} == mine
            assert {s.request_id: s.state for s in listed} == {
                key: self.states[key] for key in mine
            }
        for key in self.charged:
            assert self.ledger.release_blob(key) == self.stored.get(key)
        report = self.ledger.verify()
        assert report.intact, report.words


LedgerMachine.TestCase.settings = settings(
    deadline=None, derandomize=True, max_examples=14, stateful_step_count=20
)
TestLedger = pytest.mark.slow(LedgerMachine.TestCase)
