"""No path to the data spends more than was declared: plans, command line, runner, vault.

The model keeps, in plain fractions, what was declared and paid for; it predicts for every run
whether it is refused, replayed or charged, and how much.  Only what became of a cancelled part is
read from the ledger.
"""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.__main__ import main
from core.attachment import attach, read_for
from core.errors import BudgetExceeded, Cancelled, JustitiaError, LedgerError
from core.plan import parse_plan
from core.private.ledger import Ledger, SpendState
from core.runner import run as run_plan
from tests.accounting.books import content
from tests.accounting.small import plan_text, write_table

NAMES = ("people", "others")
#: Few different parts, so that they meet again: paid for, cancelled, lost.
TREES = st.sampled_from((None, Fraction(3, 10)))
MEANS = st.sampled_from(({}, {"one": Fraction(1, 20)}, {"two": Fraction(1, 7)})).map(dict)
CAP = Fraction(1, 2)


class Paths(RuleBasedStateMachine):
    """Every way in, to one table of two populations."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.environment = pytest.MonkeyPatch()
        self.environment.setenv("JUSTITIA_HOME", self.folder.name)
        self.environment.delenv("JUSTITIA_LEDGER", raising=False)
        self.here = Path(self.folder.name)
        self.table = write_table(self.here / "table.csv")
        self.ledger = Ledger()
        self.caps = dict.fromkeys(NAMES, CAP)
        self.spent = dict.fromkeys(NAMES, Fraction(0))
        #: For each part of a population its price, and whether its latest attempt has no result.
        self.paid: dict[tuple[str, str, Fraction], bool] = {}
        for name in NAMES:  # attaching creates the population and recognises the table
            self.attached(name).vault.close()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.ledger.close()
            self.folder.cleanup()
            self.environment.undo()

    def attached(self, name: str):
        plan = parse_plan(plan_text(CAP, {}, name=name, cap=CAP))
        return attach(plan, read_for(plan, self.table), self.ledger)

    def declare(self, name, tree, means) -> list[tuple[str, str, Fraction]]:
        """Write the plan; its parts in the order of their charges."""
        # The plan claims a large cap each time: the ledger's counts.
        text = plan_text(tree, means, name=name, cap=Fraction(100))
        (self.here / "plan.toml").write_text(text, encoding="utf-8")
        parts = [] if tree is None else [(name, "tree", tree)]
        return parts + [(name, title, rho) for title, rho in means.items()]

    def due(self, parts, again: bool) -> list[tuple[str, str, Fraction]]:
        """The parts that a run has to pay for."""
        lost = [part for part in parts if self.paid.get(part)]
        renewed = set(lost or parts) if again else set()
        return [part for part in parts if part in renewed or part not in self.paid]

    # -- plans -----------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), tree=TREES, means=MEANS, again=st.booleans())
    def run(self, name: str, tree: Fraction | None, means: dict, again: bool) -> None:
        """The command line: refused, replayed, or charged exactly once."""
        parts = self.declare(name, tree, means)
        fresh = self.due(parts, again)
        price = sum((rho for _, _, rho in fresh), Fraction(0))
        stuck = any(self.paid.get(part) and part not in fresh for part in parts)
        before = content(self.ledger)
        where = ("--data", str(self.table), "--out", str(self.here / "out"))
        wish = ["--new-release"] if again else []
        code = main(["run", str(self.here / "plan.toml"), *where, "--quiet", *wish])
        if not parts:
            expected = 2
        elif stuck:
            expected = 4
        else:
            expected = 3 if price > self.caps[name] - self.spent[name] else 0
        event(f"exit {code}, {len(fresh)} due, {'again' if again else 'once'}")
        assert code == expected
        if code != 0 or not fresh:
            assert content(self.ledger) == before
        if code == 0:
            self.spent[name] += price
            self.paid |= dict.fromkeys(fresh, False)

    @rule(name=st.sampled_from(NAMES), tree=TREES, means=MEANS, after=st.integers(0, 12))
    def cancel(self, name: str, tree: Fraction | None, means: dict, after: int) -> None:
        """Somebody presses cancel: what was charged stays charged, whatever was measured."""
        parts = self.declare(name, tree, means)
        fresh = self.due(parts, again=False)
        price = sum((rho for _, _, rho in fresh), Fraction(0))
        calls = iter(range(after))

        def impatient(*_told: object) -> None:
            if next(calls, None) is None:
                raise Cancelled("enough")

        before = content(self.ledger)
        try:
            run_plan(self.here / "plan.toml", self.table, self.here / "out", progress=impatient)
            event("cancelled too late")
        except BudgetExceeded:
            event("cancel: refused")
            assert price > self.caps[name] - self.spent[name]
        except Cancelled:
            event("cancelled")
        except JustitiaError:
            assert not parts or any(self.paid.get(part) for part in parts)
        if self.ledger.spent(name) == self.spent[name]:
            assert content(self.ledger) == before
            return
        self.spent[name] += price
        listed = self.ledger.spends(name)[-len(fresh) :]
        assert [spend.rho for spend in listed] == [rho for _, _, rho in fresh]
        for part, spend in zip(fresh, listed, strict=True):
            assert spend.state is not SpendState.CHARGED
            self.paid[part] = spend.state is SpendState.NO_RESULT

    @rule(name=st.sampled_from(NAMES), tree=TREES, means=MEANS, command=st.integers(0, 3))
    def look(self, name: str, tree: Fraction | None, means: dict, command: int) -> None:
        """Whatever is free changes nothing."""
        self.declare(name, tree, means)
        plan, data = str(self.here / "plan.toml"), ["--data", str(self.table)]
        out = ["--out", str(self.here / "simulated")]
        before = content(self.ledger)
        main(
            (
                ["check", plan, *data],
                ["forecast", plan],
                ["run", plan, *data, *out, "--simulate", "7", "--allow-real-data", "--quiet"],
                ["ledger", "--verify"],
            )[command]
        )
        assert content(self.ledger) == before

    @rule(name=st.sampled_from(NAMES), cap=st.fractions(Fraction(1, 5), 2, max_denominator=20))
    def set_cap(self, name: str, cap: Fraction) -> None:
        code = main(["ledger", "--population", name, "--set-cap", str(cap)])
        assert code == (2 if cap < self.spent[name] else 0)
        if code == 0:
            self.caps[name] = cap

    # -- the vault -------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        rho=st.fractions(Fraction(1, 100), Fraction(1, 2), max_denominator=100),
        end=st.sampled_from(("complete", "fail", "overdraw")),
    )
    def ask_the_vault(self, name: str, rho: Fraction, end: str) -> None:
        """A grant debits at most what was charged for it, and only until it is closed."""
        attached = self.attached(name)
        identity = f"direct {len(self.ledger.spends(name))} of {name}"
        before = content(self.ledger)
        if rho > self.caps[name] - self.spent[name]:
            with pytest.raises(BudgetExceeded):
                attached.vault.grant(rho, "direct", identity)
            assert content(self.ledger) == before
            return
        grant = attached.vault.grant(rho, "direct", identity)
        self.spent[name] += rho
        assert grant is not None
        assert attached.vault.grant(rho, "direct", identity) is None
        grant.counts([("sex",)], rho / 2)
        if end == "overdraw":
            with pytest.raises(JustitiaError):
                grant.counts([("age",)], rho)
        assert 0 < grant.debited <= rho / 2
        if end == "complete":
            attached.vault.complete(grant, b"noisy", "Direct")
            assert self.ledger.spend(identity).debited == grant.debited
        else:
            attached.vault.fail(grant, "enough")
        with pytest.raises(JustitiaError):
            grant.counts([("sex",)], rho / 4)
        with pytest.raises(LedgerError):
            attached.vault.complete(grant, b"more", "Direct")
        attached.vault.close()

    # -- what always holds -----------------------------------------------------------------

    @invariant()
    def the_ledger_says_what_was_declared(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for name in NAMES:
            assert self.ledger.spent(name) == self.spent[name] <= self.caps[name]
            assert self.ledger.remaining(name) == self.caps[name] - self.spent[name]
        report = self.ledger.verify()
        assert report.intact, report.words


Paths.TestCase.settings = settings(
    deadline=None, derandomize=True, max_examples=6, stateful_step_count=12
)
TestPaths = pytest.mark.slow(Paths.TestCase)


@pytest.mark.usefixtures("home")
def test_a_plan_that_cannot_be_completed_charges_nothing_more(tmp_path, capsys):
    """The tree was lost, and an analysis was added: the analysis is not paid for in vain."""
    plan, table = tmp_path / "plan.toml", write_table(tmp_path / "table.csv")
    arguments = [str(plan), "--data", str(table), "--out", str(tmp_path / "out"), "--quiet"]
    plan.write_text(plan_text(Fraction(3, 10), {}), encoding="utf-8")

    def at_once(*_told: object) -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        run_plan(plan, table, tmp_path / "out", progress=at_once)
    plan.write_text(plan_text(Fraction(3, 10), {"one": Fraction(1, 20)}), encoding="utf-8")
    ledger = Ledger()
    before = content(ledger)
    assert main(["run", *arguments]) == 4
    assert "--new-release" in capsys.readouterr().err
    assert content(ledger) == before
    assert main(["run", *arguments, "--new-release"]) == 0
    assert ledger.spent("people") == 2 * Fraction(3, 10) + Fraction(1, 20)
