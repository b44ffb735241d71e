"""The log of releases: append-only, chained, and joined with what the ledger says."""

from __future__ import annotations

import csv
import io
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import text

from core import __main__ as command_line
from core.errors import LedgerError
from core.private.ledger import Charge, Ledger, Population
from core.release_log import (
    HEADER,
    Act,
    ReleaseLog,
    csv_text,
    set_cap,
    who_released_what,
)
from core.releases import Relation, Unit

POSTGRES = os.environ.get("JUSTITIA_TEST_POSTGRES")


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A ledger of each kind with one population; the PostgreSQL one in a schema of its own."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    if request.param == "sqlite":
        made = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    elif POSTGRES is None:
        pytest.skip("no PostgreSQL server; tests/postgres.sh starts one")
    else:
        made = Ledger(own_database(POSTGRES, f"log_{os.getpid()}_{abs(hash(tmp_path))}"))
    made.create_population(Population("people", Relation.ADD_REMOVE, Unit(), Fraction(2)))
    yield made
    made.close()


def own_database(url: str, name: str) -> str:
    """A fresh database on a PostgreSQL server."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{url.rpartition('/')[0]}/{name}"


def alter(ledger: Ledger, statement: str) -> None:
    with ledger.database.writing() as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE justitia_log SET actor = 'somebody else' WHERE number = 1",
        "DELETE FROM justitia_log WHERE number = 2",
        "DELETE FROM justitia_log",
    ],
)
def test_the_database_refuses_to_change_the_log(ledger: Ledger, statement: str) -> None:
    log = ReleaseLog(ledger)
    for actor in ("anna", "ben", "carla"):
        log.add(actor, Act.ASKED, population="people")
    with pytest.raises(LedgerError):
        alter(ledger, statement)
    assert [entry.actor for entry in log.entries()] == ["anna", "ben", "carla"]
    assert log.check() == 3


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("UPDATE justitia_log SET actor = 'somebody else' WHERE number = 2", 2),
        ("UPDATE justitia_log SET detail = '' WHERE number = 1", 1),
        ("DELETE FROM justitia_log WHERE number = 2", 2),
        ("DELETE FROM justitia_log WHERE number = 1", 1),
        ("UPDATE justitia_log SET number = 9 WHERE number = 3", 3),
    ],
)
def test_whoever_disarms_the_database_breaks_the_chain(
    ledger: Ledger, statement: str, place: int
) -> None:
    log = ReleaseLog(ledger)
    for actor in ("anna", "ben", "carla"):
        log.add(actor, Act.ASKED, population="people", detail="tree")
    if ledger.database.is_sqlite:
        for verb in ("update", "delete"):
            alter(ledger, f"DROP TRIGGER justitia_log_no_{verb}")
    else:
        alter(ledger, "ALTER TABLE justitia_log DISABLE TRIGGER ALL")
    alter(ledger, statement)
    with pytest.raises(LedgerError, match=f"at entry {place}:"):
        log.check()


def test_many_write_at_once_and_the_chain_has_one_end(ledger: Ledger) -> None:
    def write(number: int) -> None:
        ReleaseLog(ledger).add(f"person {number}", Act.SIGNED, population="people")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    log = ReleaseLog(ledger)
    assert log.check() == 40
    assert {entry.actor for entry in log.entries()} == {f"person {n}" for n in range(40)}


def test_who_released_what_joins_log_and_ledger(ledger: Ledger) -> None:
    log = ReleaseLog(ledger)
    log.add("anna", Act.ASKED, population="people", request_id="r1", detail="tree")
    ledger.charge("people", [Charge("r1", "tree", Fraction(1, 2))])
    ledger.finish("r1", b"blob", "tree", Fraction(1, 2))
    log.add("anna", Act.ASKED, population="people", request_id="refused", detail="tree")
    ledger.charge("people", [Charge("r2", "posterior", Fraction(1, 4))])  # past the log
    log.add("ben", Act.SIGNED, population="people", request_id="r1", detail="bundle 77")
    lines = [dict(zip(HEADER, line, strict=True)) for line in who_released_what(ledger)]
    seen = [(line["who"], line["act"], line["request"], line["state"]) for line in lines]
    assert seen == [
        ("anna", "asked for a release", "r1", "done"),
        ("anna", "asked for a release", "refused", "nothing was charged"),
        ("local", "asked for a release", "r2", "charged"),
        ("ben", "signed a bundle", "r1", "done"),
    ]
    assert lines[0]["release SHA-256"] == ledger.spend("r1").release_sha256
    assert list(who_released_what(ledger, owner="somebody else")) == []


def test_a_changed_cap_says_who_and_why(ledger: Ledger) -> None:
    set_cap(ledger, "carla", "people", Fraction(3), owner="local", reason="agreed")
    (entry,) = ReleaseLog(ledger).entries()
    assert (entry.actor, entry.act) == ("carla", Act.CAP)
    assert entry.detail == "from rho = 2 to 3: agreed"
    with pytest.raises(LedgerError):
        set_cap(ledger, "carla", "nobody", Fraction(3), owner="local", reason="agreed")
    assert len(ReleaseLog(ledger).entries()) == 1


def test_a_cap_that_stands_is_not_logged_again(ledger: Ledger) -> None:
    for _ in range(2):
        set_cap(ledger, "carla", "people", Fraction(3), owner="local", reason="agreed")
    assert [entry.act for entry in ReleaseLog(ledger).entries()] == [Act.CAP]


def test_names_cannot_become_formulas_or_lines(ledger: Ledger) -> None:
    ReleaseLog(ledger).add("=HYPERLINK(1)", Act.SIGNED, detail="@evil\nand\x00more")
    (line,) = csv.DictReader(io.StringIO(csv_text(list(who_released_what(ledger)))))
    assert line["who"] == "'=HYPERLINK(1)"
    assert line["detail"] == "'@evil and more"
    with pytest.raises(LedgerError):
        ReleaseLog(ledger).add("two\nlines", Act.SIGNED)


def test_an_older_ledger_gets_its_log_when_it_is_first_needed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    Ledger(url).close()
    first, second = Ledger(url), Ledger(url)
    ReleaseLog(first).add("anna", Act.SIGNED)
    assert [entry.actor for entry in ReleaseLog(second).entries()] == ["anna"]


def test_the_command_line_logs_its_account(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOGNAME", "steward")
    demo, out = tmp_path / "demo", tmp_path / "out"
    assert command_line.main(["demo", "--out", str(demo), "--rows", "500"]) == 0
    run = ["run", str(demo / "plan.toml"), "--data", str(demo / "demo.csv"), "--quiet"]
    assert command_line.main([*run, "--out", str(out)]) == 0
    assert command_line.main([*run, "--out", str(out)]) == 0  # a replay is no new request
    simulated = [*run, "--out", str(tmp_path / "simulated"), "--simulate", "1"]
    assert command_line.main(simulated) == 0
    capsys.readouterr()
    assert command_line.main(["log"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["who"] for line in lines] == ["steward (command line)"]
    assert [line["state"] for line in lines] == ["done"]
    assert command_line.main(["log", "--check"]) == 0
    assert "1 entries, each following from the one before" in capsys.readouterr().out
    file = tmp_path / "log.csv"
    assert command_line.main(["log", "--out", str(file)]) == 0
    assert "steward" in file.read_text(encoding="utf-8")
