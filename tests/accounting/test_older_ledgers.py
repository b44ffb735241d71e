"""Ledgers older than the chain: they get one, and lose nothing."""

import hashlib
import sqlite3
from fractions import Fraction

import pytest

from core.errors import BudgetExceeded
from core.private.ledger import Ledger, SpendState
from tests.accounting.books import SPENT, alter, charge, content, filled

#: The tables of the first version, as its program made them.
UNCHAINED = """
CREATE TABLE justitia_version (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE justitia_population (
    id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL, owner VARCHAR(200) NOT NULL,
    relation VARCHAR(20) NOT NULL, unit_rows INTEGER NOT NULL, unit_person_column TEXT,
    cap TEXT NOT NULL, delta FLOAT NOT NULL, simulated BOOLEAN NOT NULL, expected_rows INTEGER,
    UNIQUE (name, owner));
CREATE TABLE justitia_spend (
    id INTEGER NOT NULL PRIMARY KEY, request_id VARCHAR(200) NOT NULL UNIQUE,
    population_id INTEGER NOT NULL REFERENCES justitia_population (id), what TEXT NOT NULL,
    rho TEXT NOT NULL, debited TEXT, state VARCHAR(20) NOT NULL, created_at VARCHAR(40) NOT NULL,
    finished_at VARCHAR(40), release_kind TEXT, release_sha256 VARCHAR(64), message TEXT NOT NULL,
    host TEXT NOT NULL, pid INTEGER NOT NULL, process_start TEXT NOT NULL);
CREATE TABLE justitia_release (
    spend_id INTEGER NOT NULL PRIMARY KEY REFERENCES justitia_spend (id), blob {blob} NOT NULL);
CREATE TABLE justitia_table (
    population_id INTEGER NOT NULL REFERENCES justitia_population (id),
    fingerprint VARCHAR(64) NOT NULL, table_id VARCHAR(32) NOT NULL,
    PRIMARY KEY (population_id, fingerprint));
CREATE TABLE justitia_project (
    id VARCHAR(32) NOT NULL PRIMARY KEY, owner VARCHAR(200) NOT NULL, name VARCHAR(200) NOT NULL,
    updated_at VARCHAR(40) NOT NULL, document TEXT NOT NULL);
INSERT INTO justitia_version VALUES (1);
INSERT INTO justitia_population VALUES
    (3, 'people', 'local', 'add_remove', 2, 'person', '3/2', 1e-7, {no}, 500),
    (8, 'people', 'anna', 'replace_one', 1, NULL, '1/3', 1e-9, {yes}, NULL);
INSERT INTO justitia_spend VALUES
    (5, 'a', 3, 'tree', '1/3', '1/4', 'done', '2026-01-02T03:04:05.678901+00:00',
     '2026-01-02T03:05:00+00:00', 'TreeRelease', '{sha}', '', 'old host', 77, 'then'),
    (6, 'b', 3, 'tree', '1/7', NULL, 'spent, no result', '2026-01-03T00:00:00+00:00',
     '2026-01-03T00:00:01+00:00', NULL, NULL, 'power cut', 'old host', 78, 'then'),
    (9, 'c', 8, 'tree', '1/3', NULL, 'charged', '2026-01-04T00:00:00+00:00',
     NULL, NULL, NULL, '', 'old host', 79, 'then');
INSERT INTO justitia_release VALUES (5, {hex}'6f6c64');
INSERT INTO justitia_table VALUES (3, '{mark}', 'feedface');
INSERT INTO justitia_project VALUES ('p1', 'local', 'mine', '2026-01-01T00:00:00+00:00', '{{}}');
"""


def make_unchained(url, file):
    words = {"sha": hashlib.sha256(b"old").hexdigest(), "mark": "f" * 64}
    if not url.startswith("sqlite"):
        import psycopg

        script = UNCHAINED.format(
            blob="BYTEA", no="false", yes="true", hex="'\\x6f6c64'::bytea --", **words
        )
        script = script.replace("--'6f6c64')", ")").replace("-- ", "")
        script = script.replace("INTEGER NOT NULL PRIMARY KEY, name", "SERIAL PRIMARY KEY, name")
        script = script.replace(
            "INTEGER NOT NULL PRIMARY KEY, request", "SERIAL PRIMARY KEY, request"
        )
        with psycopg.connect(url) as connection:
            connection.execute(script)
        return
    with sqlite3.connect(file) as connection:
        connection.executescript(UNCHAINED.format(blob="BLOB", no=0, yes=1, hex="x", **words))
    connection.close()


def test_an_older_ledger_gets_its_chain_and_loses_nothing(url, file):
    make_unchained(url, file)
    ledger = Ledger(url)
    people, hers = ledger.population("people"), ledger.population("people", "anna")
    assert (people.cap, people.unit.rows, people.expected_rows) == (Fraction(3, 2), 2, 500)
    assert (hers.cap, hers.simulated, people.delta) == (Fraction(1, 3), True, 1e-7)
    a, b = ledger.spends("people")
    assert (a.rho, a.debited, a.state) == (Fraction(1, 3), Fraction(1, 4), SpendState.DONE)
    assert a.created_at.isoformat() == "2026-01-02T03:04:05.678901+00:00"
    assert (b.rho, b.state, b.message) == (Fraction(1, 7), SpendState.NO_RESULT, "power cut")
    assert ledger.spend("c").state is SpendState.CHARGED  # another host's may live
    assert ledger.remaining("people") == Fraction(3, 2) - Fraction(1, 3) - Fraction(1, 7)
    assert ledger.remaining("people", owner="anna") == 0
    assert ledger.release_blob("a") == b"old"
    assert ledger.seen_in("f" * 64) == ("people",)
    report = ledger.verify()
    assert report.intact, report.words
    assert report.rows == 1 + 2 + 3 + 2
    before = content(ledger)
    assert content(Ledger(url)) == before  # once
    ledger.charge("people", [charge("d", Fraction(1, 100))])
    ledger.fail("c", "no")
    assert ledger.verify().intact
    alter(ledger, "UPDATE justitia_spend SET rho = '1/1000' WHERE request_id = 'a'")
    assert not ledger.verify().intact


def test_a_broken_migration_leaves_the_older_ledger_as_it_was(file, monkeypatch):
    from core.private import mending

    file.parent.mkdir()
    make_unchained("sqlite", file)

    def power_cut(*_arguments):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(mending, "_adopt_missing", power_cut)
        with pytest.raises(RuntimeError, match="power cut"):
            Ledger(f"sqlite:///{file}")
    with sqlite3.connect(file) as raw:
        assert raw.execute("SELECT version FROM justitia_version").fetchall() == [(1,)]
        tables = raw.execute("SELECT name FROM sqlite_master WHERE name = 'justitia_event'")
        assert tables.fetchall() == []
    raw.close()
    assert Ledger(f"sqlite:///{file}").verify().intact


def test_charges_of_an_older_program_that_still_ran_are_taken_into_the_chain(url):
    ledger = filled(url)
    alter(
        ledger,
        "INSERT INTO justitia_spend (request_id, population_id, what, rho, state, created_at, "
        "message, host, pid, process_start) SELECT 'late', id, 'tree', '9/1', 'charged', "
        "'2026-01-01T00:00:00+00:00', '', 'old host', 1, '' FROM justitia_population "
        "WHERE name = 'people'",
    )
    report = ledger.verify()
    assert not report.intact
    assert "late" in report.words
    assert ledger.mend().adopted == 1
    assert ledger.verify().intact
    assert ledger.spent("people") == SPENT + 9
    assert ledger.remaining("people") == 0
    assert ledger.charge("people", [charge("done")])[0][1] is False  # a replay is still free
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", [charge("new")])
