"""Importing a project, whatever its document claims, never shrinks a ledger."""

from __future__ import annotations

import copy
from fractions import Fraction

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from core.__main__ import main
from core.errors import JustitiaError
from core.private.ledger import Ledger
from core.store import Store
from pages.shared import house
from pages.shared.project import Project, Run
from pages.shared.saved import from_plain, to_plain
from tests.accounting.books import SPENT, content, filled
from tests.accounting.small import plan_text, write_table

#: What a forged document puts in place of something.
RUBBISH = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(("done", "partial", "failed", "open", "0", "-1", "1/1000000")),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A ledger with charges of every kind, and a document of a project that made some of them."""
    path = tmp_path_factory.mktemp("projects") / "ledger.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUSTITIA_LEDGER", f"sqlite:///{path}")
        ledger = filled(f"sqlite:///{path}")
        runs = tuple(Run(key, "plan", "table", "id", "tree", 1) for key in ("done", "open"))
        yield ledger, to_plain(Project("p", "local", name="mine", runs=runs))
        house.close(f"sqlite:///{path}")
        ledger.close()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(data=st.data())
def test_a_forged_document_changes_no_byte_of_the_accounts(kept, data):
    ledger, document = kept
    forged = copy.deepcopy(document)
    for key in data.draw(st.sets(st.sampled_from(sorted(document)), max_size=3)):
        forged[key] = data.draw(RUBBISH)
    for key in data.draw(st.sets(st.sampled_from(("spent", "cap", "ledger", "spends", "rho")))):
        forged[key] = data.draw(RUBBISH)
    if data.draw(st.booleans()):
        numbers = st.integers(-9, 9)
        ids = st.sampled_from(("done", "partial", "failed", "open", "hers", "nobody"))
        parts = st.tuples(ids, st.just("p"), st.just("t"), st.just("i"), st.just("tree"), numbers)
        forged["runs"] = [list(run) for run in data.draw(st.lists(parts, max_size=4))]
    before = content(ledger)
    store = Store(ledger)
    entry = store.save_project("forged", forged)
    held = store.open_project(entry.project_id).document
    try:
        project = from_plain(held, entry.project_id, "local")
        house.save_project(project)
    except (JustitiaError, ValueError, TypeError, KeyError, AttributeError):
        event("refused")  # nothing was opened; the pages say so
    else:
        event("opened and saved again")
    store.delete_project(entry.project_id)
    assert content(ledger) == before
    assert ledger.spent("people") == SPENT


@pytest.mark.usefixtures("home")
def test_a_project_that_denies_its_runs_replays_them(tmp_path):
    """Without its runs, or with fewer attempts, a project finds what was paid for all the same."""
    plan, table = tmp_path / "plan.toml", write_table(tmp_path / "table.csv")
    plan.write_text(plan_text(Fraction(3, 10), {}), encoding="utf-8")
    arguments = ["run", str(plan), "--data", str(table), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 0
    assert main([*arguments, "--new-release"]) == 0
    ledger = Ledger()
    store = Store(ledger)
    entry = store.save_project("mine", {"version": 1, "runs": [], "attempt": 0})
    store.delete_project(entry.project_id)
    before = content(ledger)
    assert main(arguments) == 0
    assert content(ledger) == before
    assert ledger.spent("people") == Fraction(6, 10)
