from __future__ import annotations

import copy
import gc
import json
import logging
import pickle
import subprocess
import sys
import threading
import weakref
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.errors import (
    BudgetError,
    BudgetExceeded,
    LedgerError,
    ReadingError,
    SchemaError,
    SimulationError,
)
from core.private.ledger import Charge, Ledger, Population, SpendState
from core.private.noise import OpenDPNoise
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.private.vault import Vault
from core.releases import Relation, Unit
from core.schema import Column, Kind, Schema
from core.simulation import SeededNoise
from tests.core.private.tables import categorical, random_coded

HALF = Fraction(1, 2)
ROWS = 61


def population(**changes):
    terms = {
        "name": "patients",
        "relation": Relation.ADD_REMOVE,
        "unit": Unit(),
        "cap": Fraction(1),
        "simulated": True,
    }
    return Population(**{**terms, **changes})


def open_vault(terms=None, table=None, noise=None, *, url="sqlite://", **settings):
    terms = terms or population()
    ledger = Ledger(url)
    ledger.create_population(terms)
    table = table or random_coded({"a": 3, "b": 4}, ROWS, 1)
    vault = Vault(InMemorySource(table), terms, ledger, noise or SeededNoise(0), **settings)
    return vault, ledger


def with_unit(unit):
    return replace(random_coded({"a": 3}, 5, 1), unit=unit)


# -- charging ------------------------------------------------------------------------------


def test_the_ledger_is_charged_before_there_is_a_grant(monkeypatch):
    vault, ledger = open_vault()
    grant = vault.grant(HALF, "tree", "r1")
    assert (grant.rho, grant.debited, grant.request_id) == (HALF, 0, "r1")
    assert ledger.remaining("patients") == HALF
    assert ledger.spend("r1").state is SpendState.CHARGED


def test_a_refused_charge_touches_nothing(monkeypatch):
    vault, ledger = open_vault()
    for method in ("counts", "each_count", "row_count", "moments"):
        monkeypatch.setattr(InMemorySource, method, lambda *_, **__: pytest.fail("touched"))
    with pytest.raises(BudgetExceeded):
        vault.grant(Fraction(11, 10), "tree", "r1")
    with pytest.raises(BudgetExceeded):
        vault.grants([Charge("r2", "tree", HALF), Charge("r3", "means", Fraction(51, 100))])
    assert ledger.spends("patients") == []


def test_charges_together_are_atomic_and_replays_are_none():
    vault, ledger = open_vault()
    first = vault.grants([Charge("r1", "tree", HALF)])
    both = vault.grants([Charge("r1", "tree", HALF), Charge("r2", "means", Fraction(1, 4))])
    assert first[0] is not None
    assert both[0] is None
    assert (both[1].request_id, both[1].rho) == ("r2", Fraction(1, 4))
    assert ledger.remaining("patients") == Fraction(1, 4)


def test_a_reused_id_for_something_else_is_refused():
    vault, ledger = open_vault()
    vault.grant(HALF, "tree", "r1")
    with pytest.raises(LedgerError):
        vault.grant(Fraction(1, 4), "tree", "r1")
    assert ledger.remaining("patients") == HALF


@pytest.mark.parametrize("noise", ["seeded", "opendp"])
def test_two_threads_with_one_request_id_get_one_grant(tmp_path, noise):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    terms = population()
    Ledger(url).create_population(terms)
    table = random_coded({"a": 3}, ROWS, 1)
    made = SeededNoise(0) if noise == "seeded" else OpenDPNoise()
    for round_ in range(5):
        vaults = [Vault(InMemorySource(table), terms, Ledger(url), made) for _ in range(2)]
        gate, grants = threading.Barrier(2), []

        def ask(vault, gate=gate, grants=grants, name=f"r{round_}"):
            gate.wait()
            grants.append(vault.grant(Fraction(1, 10), "tree", name))

        threads = [threading.Thread(target=ask, args=(vault,)) for vault in vaults]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(grants) == 2
        assert sum(grant is not None for grant in grants) == 1
    assert Ledger(url).spent("patients") == HALF


def test_two_threads_cannot_both_take_the_last_budget(tmp_path):
    vault, ledger = open_vault(url=f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    gate, outcomes = threading.Barrier(4), []

    def ask(name):
        gate.wait()
        try:
            outcomes.append(vault.grant(Fraction(3, 10), "tree", name))
        except BudgetExceeded:
            outcomes.append(None)

    threads = [threading.Thread(target=ask, args=(f"r{index}",)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(grant is not None for grant in outcomes) == 3
    assert ledger.spent("patients") == Fraction(9, 10)


def test_owners_have_ledgers_of_their_own():
    ledger = Ledger("sqlite://")
    table = random_coded({"a": 3}, ROWS, 1)
    vaults = []
    for owner in ("ann", "bob"):
        terms = population(owner=owner)
        ledger.create_population(terms)
        vaults.append(Vault(InMemorySource(table), terms, ledger, SeededNoise(0)))
    assert vaults[0].grant(Fraction(1), "tree", "r1") is not None
    assert vaults[1].grant(Fraction(1), "tree", "r2") is not None


# -- how a charge ends ---------------------------------------------------------------------


@pytest.mark.parametrize("partial", [False, True])
def test_complete_stores_release_state_and_debit_together(partial):
    vault, ledger = open_vault()
    grant = vault.grant(HALF, "tree", "r1")
    grant.counts([("a",)], Fraction(1, 4))
    vault.complete(grant, b"release", "TreeRelease", partial=partial)
    spend = ledger.spend("r1")
    assert spend.state is (SpendState.PARTIAL if partial else SpendState.DONE)
    assert (spend.debited, spend.rho) == (grant.debited, HALF)
    assert 0 < spend.debited <= Fraction(1, 4)
    assert ledger.release_blob("r1") == b"release"
    with pytest.raises(BudgetExceeded, match="closed"):
        grant.counts([("a",)], Fraction(1, 10))
    with pytest.raises(LedgerError):
        vault.complete(grant, b"another", "TreeRelease")
    assert ledger.release_blob("r1") == b"release"


def test_fail_is_spent_without_a_result():
    vault, ledger = open_vault()
    grant = vault.grant(HALF, "tree", "r1")
    vault.fail(grant, "the disk was full")
    spend = ledger.spend("r1")
    assert (spend.state, spend.message) == (SpendState.NO_RESULT, "the disk was full")
    assert grant.closed
    assert ledger.remaining("patients") == HALF
    assert vault.grant(HALF, "tree", "r1") is None


def test_a_grant_that_is_dropped_stays_charged():
    vault, ledger = open_vault()
    grant = vault.grant(HALF, "tree", "r1")
    grant.counts([("a",)], Fraction(1, 4))
    del grant
    gc.collect()
    assert ledger.spend("r1").state is SpendState.CHARGED
    assert ledger.remaining("patients") == HALF


def test_a_process_that_dies_with_a_grant_leaves_it_spent_without_a_result(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    script = f"""
import os
from fractions import Fraction
from tests.core.private.test_vault import open_vault
vault, _ = open_vault(url={url!r})
grant = vault.grant(Fraction(1, 2), "tree", "r1")
grant.counts([("a",)], Fraction(1, 4))
os._exit(9)
"""
    root = Path(__file__).parents[3]
    died = subprocess.run([sys.executable, "-c", script], cwd=root, check=False)
    assert died.returncode == 9
    ledger = Ledger(url)
    assert ledger.spend("r1").state is SpendState.NO_RESULT
    assert ledger.remaining("patients") == HALF


# -- what fits a population ----------------------------------------------------------------


def test_replace_one_refuses_several_rows_a_unit_and_says_why():
    with pytest.raises(SchemaError, match="the row count is private"):
        open_vault(population(relation=Relation.REPLACE_ONE, unit=Unit(3)))


@pytest.mark.parametrize(
    ("declared", "enforced"),
    [
        (Unit(3, "person"), Unit()),
        (Unit(3, "person"), Unit(4, "person")),
        (Unit(3, "person"), Unit(3, "household")),
        (Unit(), Unit(3, "person")),
        (Unit(1, "person"), Unit()),
    ],
)
def test_a_table_that_was_not_cut_to_the_unit_is_refused(declared, enforced):
    with pytest.raises(SchemaError, match="encode it"):
        open_vault(population(unit=declared), with_unit(enforced))


@pytest.mark.parametrize("unit", [Unit(), Unit(3), Unit(1, "person"), Unit(3, "person")])
def test_a_table_that_was_cut_to_the_unit_fits(unit):
    open_vault(population(unit=unit), with_unit(unit))


def test_other_terms_than_the_ledgers_are_refused():
    ledger = Ledger("sqlite://")
    ledger.create_population(population())
    source = InMemorySource(random_coded({"a": 3}, ROWS, 1))
    for other in (
        population(relation=Relation.REPLACE_ONE),
        population(unit=Unit(2)),
        population(simulated=False),
    ):
        with pytest.raises(LedgerError, match="its own terms"):
            Vault(source, other, ledger, OpenDPNoise())
    with pytest.raises(LedgerError):
        Vault(source, population(name="strangers"), ledger, OpenDPNoise())


def test_seeded_noise_needs_a_simulated_population_or_an_explicit_override():
    with pytest.raises(SimulationError, match="real people"):
        open_vault(population(simulated=False))
    vault, _ = open_vault(population(simulated=False), allow_real_data=True)
    where = vault.grant(HALF, "tree", "r1").provenance()
    assert where.simulated
    assert "SIMULATED, NOT PRIVATE" in where.flags


def test_real_noise_is_the_default():
    terms = population(simulated=False)
    ledger = Ledger("sqlite://")
    ledger.create_population(terms)
    vault = Vault(InMemorySource(random_coded({"a": 3}, ROWS, 1)), terms, ledger)
    where = vault.grant(HALF, "tree", "r1").provenance()
    assert where.noise.startswith("OpenDP")
    assert not where.simulated
    assert where.flags == ()


# -- flags ---------------------------------------------------------------------------------


def flags_of(terms, table=None):
    return open_vault(terms, table)[0].grant(HALF, "tree", "r1").provenance().flags


def test_flags_follow_public_facts():
    stamp = "SIMULATED, NOT PRIVATE"
    assert flags_of(population()) == (stamp,)
    assert flags_of(population(unit=Unit(3))) == (stamp, "unit unverified")
    assert flags_of(population(unit=Unit(3, "id")), with_unit(Unit(3, "id"))) == (stamp,)
    suggested = Schema((replace(categorical("a", 2), data_dependent=True),))
    table = CodedTable(suggested, {"a": np.zeros(5, dtype=np.uint8)}, {}, 5)
    assert flags_of(population(), table) == (stamp, "data-dependent domain")


def test_the_delta_warning_reads_the_public_bound_only():
    words = "delta above 1/(10 n)"
    assert words in flags_of(population(delta=1e-3, expected_rows=101))
    assert words not in flags_of(population(delta=1e-3, expected_rows=99))
    assert words not in flags_of(population(delta=1e-3))
    for rows in (1, 10_000):
        terms = population(delta=1e-3, expected_rows=100)
        assert words not in flags_of(terms, random_coded({"a": 3}, rows, 1))


# -- forgetting ----------------------------------------------------------------------------


def test_close_forgets_the_table_everywhere():
    table = random_coded({"a": 3}, ROWS, 1)
    watch = weakref.ref(table)
    vault, ledger = open_vault(table=table)
    grant, raw = vault.grant(HALF, "tree", "r1"), vault.not_private("a test")
    grant.counts([("a",)], Fraction(1, 10))
    vault.close()
    del table
    gc.collect()
    assert watch() is None
    for use in (lambda: grant.counts([("a",)], Fraction(1, 10)), raw.frame, raw.codes):
        with pytest.raises(BudgetError, match="forgotten"):
            use()
    with pytest.raises(BudgetError, match="forgotten"):
        vault.grant(Fraction(1, 4), "tree", "r2")
    with pytest.raises(BudgetError, match="forgotten"):
        vault.not_private("another test")
    assert ledger.spent("patients") == HALF
    vault.complete(grant, b"kept", "TreeRelease")
    assert ledger.release_blob("r1") == b"kept"


# -- raw access ----------------------------------------------------------------------------


def mixed_table():
    schema = Schema(
        (
            Column("age", Kind.INTEGER, lower=0, upper=100, bins=4),
            Column("sex", Kind.BOOLEAN, categories=("f", "m")),
            Column("since", Kind.DATE, lower="2020-01-01", upper="2020-12-31"),
        )
    )
    day = pd.Timestamp("2020-02-29").toordinal()
    return CodedTable(
        schema,
        {
            "age": np.array([1, 4], dtype=np.uint8),
            "sex": np.array([0, 3], dtype=np.uint8),
            "since": np.array([1, 12], dtype=np.uint8),
        },
        {"age": np.array([30.0, np.nan]), "since": np.array([day, np.nan])},
        2,
    )


def test_not_private_shows_rows_and_is_logged(caplog):
    vault, _ = open_vault(table=mixed_table())
    with caplog.at_level(logging.INFO, logger="justitia.not_private"):
        raw = vault.not_private("fairness of\nthe original table")
    assert [record.getMessage() for record in caplog.records] == [
        "population 'patients': raw access: fairness of the original table"
    ]
    frame = raw.frame()
    assert frame["age"].tolist()[0] == 30.0
    assert frame["age"].isna().tolist() == [False, True]
    assert frame["sex"].tolist() == ["f", "(missing)"]
    assert frame["since"][0] == pd.Timestamp("2020-02-29")
    assert pd.isna(frame["since"][1])
    assert raw.codes()["sex"].tolist() == [0, 3]
    assert raw.schema == vault.schema
    np.testing.assert_array_equal(raw.counts([("sex",)])[0], [1, 0, 0, 1])


def test_not_private_gives_copies():
    vault, _ = open_vault(table=mixed_table())
    raw = vault.not_private("a test")
    raw.codes()["age"][:] = 0
    frame = raw.frame()
    frame.loc[:, "age"] = 7.0
    assert raw.codes()["age"].tolist() == [1, 4]
    assert raw.frame()["age"].tolist()[0] == 30.0


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_not_private_needs_a_reason(reason, caplog):
    vault, _ = open_vault()
    with pytest.raises(ReadingError, match="reason"):
        vault.not_private(reason)
    assert caplog.records == []


def test_raw_access_and_vaults_cannot_be_stored():
    vault, _ = open_vault()
    raw = vault.not_private("a test")
    for thing in (raw, vault):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            json.dumps(thing)
        assert str(ROWS) not in repr(thing)
    for take in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            take(raw)
