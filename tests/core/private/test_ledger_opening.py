"""Opening a ledger: where it lives, and what cannot be opened."""

import os
import sqlite3
import stat
from fractions import Fraction

import pytest

from core.errors import LedgerError
from core.private.ledger import Ledger, SpendState
from tests.core.private.ledgers import TENTH, charge, people

# -- opening -------------------------------------------------------------------------------


def test_the_default_ledger_lives_in_a_private_folder(tmp_path, monkeypatch):
    home = tmp_path / "deep" / "home"
    monkeypatch.setenv("JUSTITIA_HOME", str(home))
    ledger = Ledger(None)
    ledger.create_population(people())
    assert Ledger(None).populations() == [people()]
    assert ledger.database.path == home / "justitia.sqlite"
    if os.name == "posix":
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE(ledger.database.path.stat().st_mode) == 0o600


def test_the_default_folder_is_in_the_users_home(tmp_path, monkeypatch):
    monkeypatch.delenv("JUSTITIA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger(None).database.path == tmp_path / ".justitia" / "justitia.sqlite"


def test_a_file_ledger_keeps_a_write_ahead_log_and_survives_a_change_of_folder(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("sqlite:///relative.sqlite")
    monkeypatch.chdir("/")
    ledger.create_population(people())
    with sqlite3.connect(tmp_path / "relative.sqlite") as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "URL"),
        ("no url at all", "URL"),
        ("ledger.sqlite", "URL"),
        ("mysql://user:secret@host/db", "mysql"),
        ("sqlite+aiosqlite:///x", "aiosqlite"),
        ("postgresql://host:port/db", "URL"),
        ("sqlite:///file:x?mode=memory&uri=true", "plain path"),
        ("sqlite:///{folder}/missing/ledger.sqlite", "folder exists"),
        ("sqlite:///{folder}", "opened or created"),
        ("postgresql://user:secret@127.0.0.1:9/db", "refused"),
    ],
)
def test_what_cannot_be_opened_is_one_clear_error(tmp_path, url, words):
    with pytest.raises(LedgerError, match=words) as refusal:
        Ledger(url.format(folder=tmp_path), busy_seconds=2)
    assert "secret" not in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    file = tmp_path / "ledger.sqlite"
    content = b"name,wage\nanna,1000\n" * 100
    file.write_bytes(content)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(f"sqlite:///{file}")
    assert file.read_bytes() == content


def test_a_ledger_of_another_version_is_refused(tmp_path):
    file = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{file}")
    with sqlite3.connect(file) as raw:
        raw.execute("UPDATE justitia_version SET version = 99")
    raw.close()
    with pytest.raises(LedgerError, match="99"):
        Ledger(f"sqlite:///{file}")


def test_a_locked_ledger_is_waited_for_and_then_reported(tmp_path):
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{file}", busy_seconds=0.1)
    ledger.create_population(people())
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        ledger.charge("people", [charge("a")])
    assert ledger.remaining("people") == 1  # readers are not stopped
    raw.execute("ROLLBACK")
    raw.close()
    ledger.charge("people", [charge("a")])
    assert ledger.remaining("people") == Fraction(9, 10)


def test_a_ledger_locked_while_it_is_made_is_reported(tmp_path):
    file = tmp_path / "ledger.sqlite"
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match="locked"):
        Ledger(f"sqlite:///{file}", busy_seconds=0.1)
    raw.execute("ROLLBACK")
    raw.close()
    Ledger(f"sqlite:///{file}", busy_seconds=0.1)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_ledger_that_may_not_be_written(tmp_path):
    file = tmp_path / "ledger.sqlite"
    Ledger(f"sqlite:///{file}")
    file.chmod(0o400)
    with pytest.raises(LedgerError, match="written"):
        Ledger(f"sqlite:///{file}")


def test_a_postgres_url_of_the_usual_form_is_rewritten_and_hides_its_password(postgres_url):
    assert postgres_url.startswith("postgresql://")
    ledger = Ledger(postgres_url)
    assert ledger.database.words.startswith("postgresql+psycopg://")
    password = ledger.database._url.password
    assert password
    assert password not in ledger.database.words
    wrong = postgres_url.replace(password, "wrong" * 5)
    with pytest.raises(LedgerError, match="password authentication failed") as refusal:
        Ledger(wrong)
    assert "wrongwrong" not in str(refusal.value)


def test_errors_show_no_parameters(tmp_path):
    """A failing statement must not print what was to be stored."""
    file = tmp_path / "ledger.sqlite"
    ledger = Ledger(f"sqlite:///{file}")
    ledger.create_population(people())
    ledger.charge("people", [charge("a")])
    with sqlite3.connect(file) as raw:
        raw.execute("DROP TABLE justitia_release")
    raw.close()
    with pytest.raises(LedgerError) as refusal:
        ledger.finish("a", b"SENSITIVE", "SENSITIVE", TENTH)
    assert "SENSITIVE" not in f"{refusal.value} {refusal.value.__cause__}"
    assert ledger.spend("a").state is SpendState.CHARGED
