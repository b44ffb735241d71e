"""Backups of ledgers in use, restores of older ones, and what the documents tell to do."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from core.__main__ import main
from core.errors import BudgetExceeded, LedgerError
from core.private.backup import back_up, restore
from core.private.fingerprint import secret
from core.private.ledger import Ledger, SpendState
from core.store import Store
from tests.accounting.books import SPENT, TENTH, alter, charge, content, filled, people
from tests.accounting.small import plan_text, write_table

GUIDE = Path(__file__).parents[2] / "docs" / "backup.md"


def ledger_command(*arguments):
    return main(["ledger", *map(str, arguments)])


# -- copies --------------------------------------------------------------------------------


def test_a_backup_is_a_ledger_with_its_secret_for_its_owner_only(home, tmp_path, capsys):
    ledger = filled(None)
    key = secret(ledger)
    Store(ledger).save_project("mine", {"a": 1})
    copy = tmp_path / "copy.sqlite"
    assert ledger_command("--backup", copy) == 0
    told = capsys.readouterr().out
    assert str(copy) in told
    assert "chain intact: 12 rows" in told
    assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.sqlite", "copy.sqlite.secret"]
    if os.name == "posix":
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("copy*")}
        assert modes == {0o600}
    held = Ledger(f"sqlite:///{copy}")
    assert held.spends("people") == ledger.spends("people")
    assert held.release_blob("done") == b"the release"
    assert [entry.name for entry in Store(held).projects()] == ["mine"]
    assert secret(held) == key
    assert content(held)[0] == content(ledger)[0]


def test_a_backup_never_replaces_a_file(home, tmp_path, capsys):
    filled(None)
    for name in ("copy.sqlite", "copy.sqlite.secret"):
        (tmp_path / name).write_text("mine")
        assert ledger_command("--backup", tmp_path / "copy.sqlite") == 2
        assert "exists already" in capsys.readouterr().err
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    assert ledger_command("--backup", tmp_path / "missing" / "copy.sqlite") == 2


def test_a_backup_while_others_write_is_one_consistent_moment(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    ledger = Ledger(url)
    ledger.create_population(people(cap=Fraction(1000)))
    done = threading.Event()
    failures = []

    def write(worker):
        mine = Ledger(url)
        number = 0
        try:
            while not done.is_set():
                number += 1
                identity = f"{worker} {number}"
                mine.charge("people", [charge(identity)])
                mine.finish(identity, bytes(20_000), "K", TENTH)
        except Exception as error:  # told to the test, which fails
            failures.append(error)

    writers = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    for writer in writers:
        writer.start()
    copies = []
    try:
        for number in range(6):
            done.wait(0.05)
            least = len(ledger.spends("people"))
            _, report = back_up(ledger, tmp_path / f"copy{number}.sqlite")
            most = len(ledger.spends("people"))
            assert report.intact, report.words
            copies.append((least, most))
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert failures == []
    assert copies[-1][1] > copies[0][0] > 0 or copies[-1][1] > 3
    for number, (least, most) in enumerate(copies):
        held = Ledger(f"sqlite:///{tmp_path / f'copy{number}.sqlite'}")
        assert least <= len(held.spends("people")) <= most
        assert held.verify().intact
        held.close()
    assert ledger.verify().intact


# -- the way back --------------------------------------------------------------------------


def _lost(home):
    for path in home.glob("justitia.sqlite*"):
        if not path.name.endswith(".witness"):
            path.unlink()


def _damaged(home):
    (home / "justitia.sqlite").write_bytes(b"SQLite format 3\x00" + b"\x00\xff" * 4000)


def _half_of_it(home):
    path = home / "justitia.sqlite"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _another_file(home):
    (home / "justitia.sqlite").write_bytes(b"name,wage\nanna,1000\n" * 100)


def _rewritten(home):
    ledger = Ledger()
    alter(ledger, "UPDATE justitia_event SET body = replace(body, '1/3', '1/9')")
    ledger.close()


def _nothing(home):
    """Somebody restores for no reason."""


@pytest.mark.parametrize(
    "accident", [_lost, _damaged, _half_of_it, _another_file, _rewritten, _nothing]
)
def test_what_was_charged_after_the_backup_comes_back(home, tmp_path, capsys, accident):
    ledger = filled(None)
    key, copy = secret(ledger), tmp_path / "copy.sqlite"
    assert ledger_command("--backup", copy) == 0
    ledger.create_population(people("new", cap=Fraction(1, 2)))
    ledger.charge("new", [charge("later"), charge("failed later", Fraction(1, 4))])
    ledger.finish("later", b"a later release", "TreeRelease", TENTH)
    ledger.fail("failed later", "no")
    ledger.fail("open", "no")
    ledger.set_cap("people", Fraction(9, 7))
    ledger.charge("people", [charge("running", Fraction(1, 100))])
    before = {name: ledger.spends(name) for name in ("people", "new")}
    ledger.close()
    accident(home)
    capsys.readouterr()

    assert ledger_command("--restore", copy) == 0, capsys.readouterr().err
    told = capsys.readouterr().out
    assert "7 rows came back" in told or "8 rows came back" in told
    assert "3 charges, rho = 0.36" in told
    assert "release of later" in told
    restored = Ledger()
    assert restored.verify().intact
    assert restored.population("people").cap == Fraction(9, 7)
    assert restored.spends("people") == before["people"]
    later, failed = restored.spends("new")
    assert failed == before["new"][1]
    assert (later.state, later.rho, later.debited) == (SpendState.NO_RESULT, TENTH, TENTH)
    assert "lost" in later.message
    assert restored.release_blob("done") == b"the release"
    assert secret(restored) == key
    assert restored.remaining("new") == Fraction(3, 20)
    with pytest.raises(BudgetExceeded):
        restored.charge("new", [charge("too much", Fraction(4, 20))])
    restored.fail("running", "no")  # its process lives: it may still settle it
    assert restored.verify().intact
    if accident is not _lost:  # nothing is deleted
        assert len(list(home.glob("justitia.sqlite.before-*"))) >= 1
    assert not list(home.glob("*.restoring*"))


def test_an_older_copy_put_back_by_hand_charges_nothing_until_it_is_mended(home, tmp_path, capsys):
    plan, table = tmp_path / "plan.toml", write_table(tmp_path / "table.csv")
    plan.write_text(plan_text(Fraction(1, 4), {}), encoding="utf-8")
    run = ["run", str(plan), "--data", str(table), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(run) == 0
    kept = (home / "justitia.sqlite").read_bytes()
    assert main([*run, "--new-release"]) == 0
    bundle = tmp_path / "out" / "bundle.zip"
    assert ledger_command("--verify", bundle) == 0
    (home / "justitia.sqlite").write_bytes(kept)
    capsys.readouterr()

    plan.write_text(plan_text(Fraction(1, 8), {}), encoding="utf-8")
    for command in (run, ["ledger", "--verify"], ["ledger", "--verify", str(bundle)]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert "older copy" in error
        assert "--mend" in error
        assert len(error.strip().splitlines()) == 1
    assert ledger_command() == 0  # it can be looked at
    seen = capsys.readouterr()
    assert "older copy" in seen.err
    assert "spent rho = 0.25 of 1" in seen.out
    # Without the witness, only the bundle that left the house knows.
    witness = home / "justitia.sqlite.witness"
    hidden = witness.rename(tmp_path / "hidden")
    assert ledger_command("--verify") == 0
    assert ledger_command("--verify", bundle) == 2
    assert "bundle.zip" in capsys.readouterr().err
    hidden.replace(witness)

    assert ledger_command("--mend") == 0
    assert "2 rows came back" in capsys.readouterr().out
    assert Ledger().spent("people") == Fraction(1, 2)
    assert ledger_command("--verify", bundle) == 0
    assert main(run) == 0
    assert Ledger().spent("people") == Fraction(5, 8)


def test_a_ledger_exchanged_under_a_running_program_is_noticed_at_its_next_charge(tmp_path):
    file = tmp_path / "ledger.sqlite"
    running = filled(f"sqlite:///{file}")
    back_up(running, tmp_path / "copy.sqlite")
    running.charge("people", [charge("later")])
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    shutil.copyfile(tmp_path / "copy.sqlite", file)
    with pytest.raises(LedgerError, match="older copy"):
        running.charge("people", [charge("more")])
    assert running.spend("more") is None
    assert running.mend().charges == 1
    running.charge("people", [charge("more")])
    assert running.spent("people") == SPENT + 2 * TENTH


def test_backups_that_cannot_be_used_change_nothing(home, tmp_path, capsys):
    ledger = filled(None)
    copy, foreign = tmp_path / "copy.sqlite", tmp_path / "foreign.sqlite"
    back_up(ledger, copy)
    back_up(filled(f"sqlite:///{tmp_path / 'other.sqlite'}"), foreign)
    broken = tmp_path / "broken.sqlite"
    shutil.copyfile(copy, broken)
    with sqlite3.connect(broken) as raw:
        raw.execute("DELETE FROM justitia_event WHERE sequence = 5")
    raw.close()
    torn = tmp_path / "torn.sqlite"
    torn.write_bytes(copy.read_bytes()[:20_000])
    text = tmp_path / "text.sqlite"
    text.write_text("hello")
    before = content(ledger)
    for file, words in (
        (broken, "row 5"),
        (foreign, "another ledger"),
        (torn, "cannot be copied"),
        (text, "cannot be copied"),
        (tmp_path / "missing.sqlite", "no such file"),
    ):
        assert ledger_command("--restore", file) == 2
        assert words in capsys.readouterr().err
        assert content(ledger) == before
    assert [path.name for path in home.iterdir() if "before" in path.name] == []
    assert not list(home.glob("*.restoring*"))


def test_a_restore_gives_way_to_a_program_that_charges_meanwhile(home, tmp_path, monkeypatch):
    from core.private import backup

    ledger = filled(None)
    back_up(ledger, tmp_path / "copy.sqlite")
    ledger.charge("people", [charge("later")])
    whole = backup._prepare

    def slow(*arguments):
        prepared = whole(*arguments)
        ledger.charge("people", [charge("meanwhile", Fraction(1, 100))])
        return prepared

    monkeypatch.setattr(backup, "_prepare", slow)
    with pytest.raises(LedgerError, match="stop the programs"):
        restore(None, tmp_path / "copy.sqlite")
    assert ledger.spent("people") == SPENT + TENTH + Fraction(1, 100)
    assert ledger.verify().intact


def test_a_rotated_secret_goes_back_with_its_backup(home, tmp_path):
    ledger = filled(None)
    old = secret(ledger)
    back_up(ledger, tmp_path / "copy.sqlite")
    assert ledger_command("--new-secret") == 0
    new = secret(ledger)
    found = restore(None, tmp_path / "copy.sqlite")
    assert found.has_secret
    assert secret(ledger) == old
    (aside,) = home.glob("justitia.sqlite.secret.before-*")
    assert bytes.fromhex(aside.read_text()) == new


def test_a_backup_from_before_the_chain_does_not_pass_for_the_ledger(
    home, tmp_path, monkeypatch, capsys
):
    from tests.accounting.test_older_ledgers import make_unchained

    old = tmp_path / "old.sqlite"
    make_unchained("sqlite", old)
    filled(None)
    assert ledger_command("--restore", old) == 2
    assert "another ledger" in capsys.readouterr().err
    # On a machine that saw nothing newer it is restored, and gets its chain.
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "elsewhere"))
    assert ledger_command("--restore", old) == 0
    assert Ledger().spent("people") == Fraction(1, 3) + Fraction(1, 7)


def test_looking_for_a_ledger_does_not_make_one(home, capsys):
    for wish in ("--verify", "--mend"):
        assert ledger_command(wish) == 2
        assert "there is no ledger" in capsys.readouterr().err
    assert not (home / "justitia.sqlite").exists()


def test_the_environment_names_the_ledger_on_the_command_line_too(
    home, tmp_path, monkeypatch, capsys
):
    filled(f"sqlite:///{tmp_path / 'named.sqlite'}").close()
    monkeypatch.setenv("JUSTITIA_LEDGER", f"sqlite:///{tmp_path / 'named.sqlite'}")
    assert ledger_command("--verify") == 0
    assert "12 rows" in capsys.readouterr().out
    assert not (home / "justitia.sqlite").exists()


# -- what the documents say ----------------------------------------------------------------


def _documented(start):
    """The first block of commands after a line of the guide that starts like this."""
    after = GUIDE.read_text(encoding="utf-8").split(f"\n{start}", 1)[1]
    return re.search(r"```sh\n(.*?)```", after, re.DOTALL).group(1)


def _shell(script, **environment):
    """Run commands as an administrator would; ``python`` is this one."""
    import sys

    folder = Path(environment["folder"])
    python = folder / "bin" / "python"
    if not python.exists():
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    return subprocess.run(
        ["sh", "-euc", script],
        cwd=GUIDE.parents[1],
        env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(os.name != "posix", reason="the documented commands are for a POSIX shell")
def test_the_documented_commands_back_up_and_restore_a_file(home, tmp_path):
    ledger = filled(None)
    secret(ledger)
    nightly = _documented("One machine (the programs").replace("backup/", f"{tmp_path}/backup/")
    (tmp_path / "backup").mkdir()
    made = _shell(nightly, folder=str(tmp_path))
    assert made.returncode == 0, made.stderr
    (copy,) = (tmp_path / "backup").glob("*.sqlite")
    ledger.charge("people", [charge("later")])
    _lost(home)
    back = _shell(_documented("**Restore**, one"), folder=str(tmp_path), BACKUP=str(copy)[:-7])
    assert back.returncode == 0, back.stderr
    assert Ledger().spent("people") == SPENT + TENTH


@pytest.mark.skipif(
    shutil.which("pg_dump") is None, reason="pg_dump is not installed: no copy of a server's ledger"
)
@pytest.mark.parametrize("into", ["the same database", "a new database"])
def test_the_documented_commands_back_up_and_restore_a_server(postgres_url, tmp_path, into):
    import psycopg

    home, backup = Path(os.environ["JUSTITIA_HOME"]), str(tmp_path / "nightly")
    ledger = filled(postgres_url)
    secret(ledger)
    settings = {"folder": str(tmp_path), "BACKUP": backup, "JUSTITIA_LEDGER": postgres_url}
    made = _shell(_documented("PostgreSQL (`JUSTITIA_LEDGER`"), **settings)
    assert made.returncode == 0, made.stderr
    ledger.charge("people", [charge("later")])
    ledger.finish("later", b"a later release", "K", TENTH)
    head = ledger.verify().head
    ledger.close()
    (home / "justitia.secret").unlink()
    if into == "a new database":
        name = f"{postgres_url.rpartition('/')[2]}_restored"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}"')
        settings["JUSTITIA_LEDGER"] = f"{postgres_url.rpartition('/')[0]}/{name}"
    restoring = _documented("**Restore**, PostgreSQL")
    *first, mending = restoring.strip().splitlines()
    back = _shell("\n".join(first), **settings)
    assert back.returncode == 0, back.stderr
    url = settings["JUSTITIA_LEDGER"]
    held = Ledger(url)
    assert held.spent("people") == SPENT
    with pytest.raises(LedgerError, match="older copy"):
        held.charge("people", [charge("more")])
    mended = _shell(mending, **settings)
    assert mended.returncode == 0, mended.stderr
    assert held.has_event(head)
    assert held.spent("people") == SPENT + TENTH
    assert held.spend("later").state is SpendState.NO_RESULT
    held.charge("people", [charge("more")])  # numbers of rows go on after the restored ones
    assert Ledger(url).verify().intact
