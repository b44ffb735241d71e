import itertools
import sqlite3
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError, BudgetExceeded, LedgerError, SchemaError
from core.private.ledger import Charge, Ledger, Population, SpendState
from core.releases import Relation, Unit, digest
from tests.core.private.ledgers import TENTH, charge, people, snapshot

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


# -- tables --------------------------------------------------------------------------------


def test_a_table_is_recognised_within_its_population(ledger):
    for population in (people(), people("others")):
        ledger.create_population(population)
    assert not ledger.knows_tables()
    assert ledger.seen_in("a" * 64) == ()
    identity = ledger.table_id("people", "a" * 64)
    assert ledger.table_id("people", "a" * 64) == identity
    assert ledger.seen_in("a" * 64) == ("people",)
    assert ledger.seen_in("a" * 64, "somebody else") == ()
    other = ledger.table_id("others", "a" * 64)
    assert ledger.seen_in("a" * 64) == ("others", "people")
    assert len({identity, other, ledger.table_id("people", "b" * 64)}) == 3
    assert ledger.knows_tables()
    assert "a" * 8 not in identity
    with pytest.raises(LedgerError, match="no population"):
        ledger.table_id("nobody", "a" * 64)
