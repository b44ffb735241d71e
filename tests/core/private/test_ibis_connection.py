"""Addresses of tables in databases: what is understood, what is refused, and what is never said."""

import logging
from dataclasses import replace

import duckdb
import pytest

from core.__main__ import main
from core.attachment import attach, open_for
from core.errors import ReadingError, ReleaseError
from core.measuring import identities_for, measure
from core.plan import parse_plan
from core.private import ibis_source
from core.private.accounts import SpendState
from core.private.ibis_connection import CONNECTIONS, location_of, open_database
from core.private.ledger import Ledger
from core.releases import Unit

SECRET = "hunter2"
PLAN = """
version = 1
[population]
name = "people"
relation = "add_remove"
cap = "1"
delta = 1e-9
expected_rows = 1000
[tree]
rho = "1/10"
structure = "mst"
[[columns]]
name = "city"
kind = "categorical"
categories = ["Oslo", "Rome"]
[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 9
[[posterior]]
name = "age"
kind = "mean"
outcome = "age"
rho = "1/10"
"""


@pytest.fixture
def database(tmp_path):
    file = tmp_path / "people.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT CASE WHEN range % 3 = 0 THEN 'Oslo' ELSE 'Rome' END "
            "AS city, CAST(range % 10 AS BIGINT) AS age FROM range(1000)"
        )
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.few AS SELECT * FROM people LIMIT 7")
    return file


def address(database, table="people", version="1", more=""):
    return f"duckdb://{database}?table={table}&version={version}{more}"


# -- addresses --------------------------------------------------------------------------------


def test_credentials_reach_the_driver_and_nothing_public():
    found = location_of(
        f"postgres://ann:{SECRET}@db.example.org:5432/clinic?sslpassword={SECRET}"
        "&table=people&schema=public&version=2024-07"
    )
    assert found.connection == "postgres://db.example.org:5432/clinic"
    assert (found.schema, found.table, found.version) == ("public", "people", "2024-07")
    assert found.url == f"postgres://ann:{SECRET}@db.example.org:5432/clinic?sslpassword={SECRET}"
    assert SECRET not in repr(found)
    assert SECRET not in found.name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"postgres://ann:{SECRET}@h/db?version=1", r"names no table"),
        (f"postgres://ann:{SECRET}@h/db?table=t", r"names no version"),
        (f"postgres://ann:{SECRET}@h/db?table=t&version= ", r"names no version"),
        (f"postgres://ann:{SECRET}@h/db?table", r"no URL"),
        (f"postgres://ann:{SECRET}@h:port/db?table=t&version=1", r"no URL"),
        # Passwords with signs of their own: part of them must not pass for a host or a path.
        (f"postgres://ann:1#{SECRET}@h/db?table=t&version=1", r"percent-encoded|no table"),
        (f"postgres://ann:1/{SECRET}@h/db?table=t&version=1", r"percent-encoded"),
        (f"postgres://ann:1?{SECRET}@h/db?table=t&version=1", r"percent-encoded|no table"),
        (f"connection:clinic?table=t&version=1&password={SECRET}", r"no settings but"),
        (f"connection:{SECRET}?table=t&version=1", r"no connection of this name; there are: none"),
        (f"duckdb:///nowhere/{SECRET}.duckdb?table=t&version=1", r"no database file"),
        (f"nosuchengine://ann:{SECRET}@h/db?table=t&version=1", r"no connection to the database"),
        (f"mysql://ann:{SECRET}@h/db?table=t&version=1", r"driver for mysql is missing"),
    ],
)
def test_what_is_wrong_is_said_without_quoting_the_address(text, words, caplog, capfd, monkeypatch):
    monkeypatch.delenv(CONNECTIONS, raising=False)
    with caplog.at_level(logging.DEBUG), pytest.raises(ReadingError, match=words) as caught:
        open_database(text)
    printed = capfd.readouterr()
    for said in (str(caught.value), caplog.text, printed.out, printed.err):
        assert SECRET not in said


def test_named_connections_are_the_administrators(database, tmp_path):
    file = tmp_path / "connections.toml"
    file.write_text(
        f"[clinic]\nurl = 'duckdb://{database}'\ntables = ['people']\n"
        f"[all]\nurl = 'duckdb://{database}'\n"
    )
    environ = {CONNECTIONS: str(file)}
    found = open_database("connection:clinic?table=people&version=1", environ)
    assert found.location.connection == "clinic"
    assert found.names == ("city", "age")
    assert open_database("connection:all?table=few&schema=other&version=1", environ).names
    with pytest.raises(ReadingError, match="not for this table; it is for people"):
        open_database("connection:clinic?table=few&schema=other&version=1", environ)
    with pytest.raises(ReadingError, match="there are: all, clinic"):
        open_database("connection:clinik?table=people&version=1", environ)
    for text in ("[clinic\n", "clinic = 1\n", f"[clinic]\npassword = '{SECRET}'\n", "[c]\nurl=1"):
        file.write_text(text)
        with pytest.raises(ReadingError, match=f"that {CONNECTIONS} names") as caught:
            open_database("connection:clinic?table=people&version=1", environ)
        assert SECRET not in str(caught.value)


def test_tables_that_are_not_there_are_refused(database):
    with pytest.raises(ReadingError, match="table nobody: it is not there"):
        open_database(address(database, "nobody"))
    with pytest.raises(ReadingError, match="it is not there"):
        open_database(address(database, 'people"; DROP TABLE people; --'))


# -- identity ---------------------------------------------------------------------------------


def test_identity_is_declared_and_said(database, tmp_path):
    plan, ledger = parse_plan(PLAN), Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    first = attach(plan, open_for(plan, address(database)), ledger)
    again = attach(plan, open_for(plan, address(database)), ledger)
    newer = attach(plan, open_for(plan, address(database, version="2")), ledger)
    other = attach(plan, open_for(plan, address(database, "few", more="&schema=other")), ledger)
    assert first.table_id == again.table_id
    assert len({first.table_id, newer.table_id, other.table_id}) == 3
    assert any("version '1' that you gave" in note for note in first.notes)
    assert any("audit against the original rows" in note for note in first.notes)
    with pytest.raises(ReadingError, match="tables in memory only"):
        first.vault.not_private("a test").codes()


def test_persons_are_refused_before_anything_is_charged(database):
    plan = parse_plan(PLAN)
    persons = replace(plan.population, unit=Unit(rows=2, person_column="city"))
    with pytest.raises(ReadingError, match="rows of a person"):
        open_for(replace(plan, population=persons), address(database))


def test_a_plan_that_the_engine_cannot_serve_is_refused_before_anything_is_charged(
    database, tmp_path, monkeypatch
):
    monkeypatch.setattr(ibis_source, "served_by", lambda *_: False)
    plan, ledger = parse_plan(PLAN), Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with pytest.raises(ReadingError, match="take the analyses off the plan"):
        attach(plan, open_for(plan, address(database)), ledger)
    assert ledger.populations() == []
    counts = replace(plan, posteriors=())
    assert attach(counts, open_for(counts, address(database)), ledger).table_id


def test_a_connection_that_breaks_after_the_charge_is_spent_without_a_result(
    database, tmp_path, monkeypatch
):
    plan, ledger = parse_plan(PLAN), Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    attached = attach(plan, open_for(plan, address(database)), ledger)

    def broken(question):
        raise RuntimeError(f"cannot read the value {SECRET}")

    monkeypatch.setattr(ibis_source, "answer", broken)
    identities = identities_for(plan, attached)
    with pytest.raises(
        ReleaseError, match=r"stopped answering \(RuntimeError\).*stays spent"
    ) as at:
        measure(attached, plan, identities)
    assert SECRET not in str(at.value)
    spend = ledger.spend(identities[0])
    assert spend.state is SpendState.NO_RESULT
    assert "table people: the database stopped answering" in spend.message
    assert SECRET not in spend.message


# -- the command line ---------------------------------------------------------------------------


def test_a_run_from_a_database_is_replayed(database, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    out, ledger = tmp_path / "out", f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    run = ["run", str(plan), "--data", address(database), "--out", str(out), "--ledger", ledger]
    assert main(run) == 0
    said = capsys.readouterr()
    assert "spent rho = 1/5" in said.out
    assert "version '1' that you gave" in said.err
    assert main(run) == 0
    assert "replayed, nothing spent" in capsys.readouterr().out
    names = b"".join(file.read_bytes() for file in out.rglob("*") if file.is_file())
    assert str(database).encode() not in names


@pytest.mark.parametrize("command", ["check", "draft"])
def test_commands_that_look_at_rows_take_files_only(command, tmp_path, capsys):
    given = f"postgres://ann:{SECRET}@h/db?table=t&version=1"
    middle = ["plan.toml"] if command == "check" else ["--out", str(tmp_path / "plan.toml")]
    with pytest.raises(SystemExit) as left:
        main([command, *middle, "--data", given])
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert "those of a database stay there" in said
    assert SECRET not in said
