from __future__ import annotations

import copy
import pickle
import threading
from fractions import Fraction

import pytest

from core.errors import BudgetError, BudgetExceeded
from core.private.noise import OpenDPNoise
from core.protocols import MarginalGrant
from core.releases import Unit
from core.simulation import SeededNoise
from tests.core.private.grants import (
    NAMES,
    ONE,
    SilentNoise,
    make,
    prepared,
    reference_of,
)

# -- the purse -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_draw_beyond_the_rest_is_refused_before_access(name):
    grant, source, _, call = prepared(name)
    call(grant, Fraction(3, 4))
    touched = source.accesses
    with pytest.raises(BudgetExceeded, match="remains"):
        call(grant, Fraction(1, 4) + Fraction(1, 10**30))
    assert source.accesses == touched
    assert grant.remaining == Fraction(1, 4)
    call(grant, Fraction(1, 4))
    assert grant.remaining == 0
    assert grant.debited == grant.rho == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_closed_grant_refuses_before_access(name):
    grant, source, _, call = prepared(name)
    grant.close()
    assert grant.closed
    with pytest.raises(BudgetExceeded, match="closed"):
        call(grant, ONE)
    assert source.accesses == 0
    assert grant.debited == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_forgotten_table_refuses_and_costs_nothing(name):
    grant, source, slot, call = prepared(name)
    slot.forget()
    with pytest.raises(BudgetError, match="forgotten"):
        call(grant, ONE)
    assert (source.accesses, grant.debited) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), 0.5, "1", None, 1])
def test_only_positive_fractions_are_budgets(name, rho):
    grant, source, _, call = prepared(name)
    with pytest.raises(BudgetError, match="fraction above 0"):
        call(grant, rho)
    assert (source.accesses, grant.debited) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_impossible_noise_is_refused_before_it_costs_anything(name):
    grant, source, _, call = prepared(name)
    with pytest.raises(BudgetError, match="noise"):
        call(grant, Fraction(1, 10**45))
    assert (source.accesses, grant.debited) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_debit_is_reserved_before_access(name, monkeypatch):
    grant, source, _, call = prepared(name)
    seen = []

    def spy(*_, **__):
        seen.append(grant.debited)
        raise RuntimeError("the disk burns")

    for method in ("each_count", "counts", "row_count", "moments", "gram", "norm_profile"):
        monkeypatch.setattr(source, method, spy)
    with pytest.raises(RuntimeError):
        call(grant, Fraction(1, 2))
    assert seen == [Fraction(1, 2)]
    assert grant.debited == Fraction(1, 2)  # a crash after access stays spent


@pytest.mark.parametrize("name", NAMES)
def test_the_booked_debit_is_what_the_draw_says(name):
    grant, _, _, call = prepared(name, noise=SilentNoise(Fraction(999, 1000)))
    call(grant, Fraction(1, 2))
    assert grant.debited == Fraction(999, 2000)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_cost_more_than_asked_is_withheld(name):
    grant, _, _, call = prepared(name, noise=SilentNoise(Fraction(1001, 1000)))
    with pytest.raises(BudgetError, match="withheld"):
        call(grant, Fraction(1, 2))
    assert grant.debited == Fraction(1, 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("noise", ["opendp", "seeded"])
def test_debits_stay_within_a_thousandth_of_the_request(name, noise):
    grant, _, _, call = prepared(name, noise=OpenDPNoise() if noise == "opendp" else SeededNoise(1))
    for part in (Fraction(1, 3), Fraction(1, 7), Fraction(11, 21)):
        before = grant.debited
        call(grant, part)
        assert part * Fraction(999, 1000) <= grant.debited - before <= part
    assert isinstance(grant.debited, Fraction)
    assert Fraction(999, 1000) <= grant.debited <= 1


def test_real_and_seeded_noise_debit_alike():
    for name in NAMES:
        real, _, _, call = prepared(name, noise=OpenDPNoise())
        seeded, *_ = prepared(name, noise=SeededNoise(1))
        call(real, Fraction(1, 3))
        call(seeded, Fraction(1, 3))
        assert float(real.debited) == pytest.approx(float(seeded.debited), rel=1e-9)


def test_threads_cannot_overspend_together():
    grant, *_ = make(noise=SeededNoise(0))
    outcomes, gate = [], threading.Barrier(8)

    def draw():
        gate.wait()
        try:
            grant.counts([("a",)], Fraction(1, 4))
            outcomes.append("drawn")
        except BudgetExceeded:
            outcomes.append("refused")

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("drawn") == 4
    assert outcomes.count("refused") == 4
    assert grant.debited <= 1


# -- what it says and what it does not -----------------------------------------------------


def test_a_grant_shows_no_data_and_cannot_be_taken_away():
    grant, source, _ = make()
    grant.select_pair([("a", "b")], reference_of(), Fraction(1, 2))
    text = repr(grant)
    assert text == "Grant('test', rho=1, remaining=1/2)"
    assert str(source.table.rows) not in text
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="stays in the process"):
            take(grant)
    public = [name for name in dir(grant) if not name.startswith("_")]
    assert set(public) == {
        "clip_norm", "close", "closed", "counts", "debited", "moments", "provenance", "relation",
        "remaining", "request_id", "rho", "row_count", "score_pairs", "select_entry",
        "select_pair", "unit",
    }  # fmt: skip


def test_provenance_carries_terms_debits_and_flags():
    grant, source, _ = make(flags=("unit unverified",), unit=Unit(3))
    grant.counts([("a",)], Fraction(1, 4))
    where = grant.provenance(flags=("data-dependent domain", "unit unverified"))
    assert (where.what, where.request_id, where.population) == ("test", "id-1", "people")
    assert (where.rho, where.debited, where.forfeited) == (1, Fraction(1, 4), Fraction(3, 4))
    assert where.schema_digest == source.schema.digest
    assert where.flags == ("unit unverified", "data-dependent domain")
    assert where.simulated
    assert where.unit == Unit(3)


def test_a_grant_is_the_protocol_that_algorithms_see():
    grant: MarginalGrant = make()[0]
    for name in ("rho", "remaining", "counts", "row_count", "select_pair", "score_pairs"):
        assert hasattr(grant, name)
