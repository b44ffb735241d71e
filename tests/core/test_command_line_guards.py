"""What the command line refuses, guards and keeps when something goes wrong."""

import os
import subprocess
import sys

import pytest

from core.__main__ import main
from core.private.ledger import SpendState
from tests.core.command_line import (
    ROOT,
    run,
    spends,
)

pytestmark = pytest.mark.usefixtures("home")


def test_nothing_that_the_run_reads_or_that_is_not_ours_is_overwritten(demo, tmp_path, capsys):
    plan, data = demo / "plan.toml", demo / "demo.csv"
    before = plan.read_bytes()
    assert run(demo, demo) == 2  # plan.toml in that folder is what the run reads
    assert "choose another folder" in capsys.readouterr().err
    assert plan.read_bytes() == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "synthetic.csv").write_text("mine")
    assert run(demo, other) == 2
    assert (other / "synthetic.csv").read_text() == "mine"
    (tmp_path / "blocked" / "statement.md").mkdir(parents=True)
    assert run(demo, tmp_path / "blocked") == 2
    assert not spends()
    assert data.exists()


def test_a_refused_run_leaves_no_empty_folder(demo, tmp_path):
    plan = demo / "plan.toml"
    plan.write_text(plan.read_text().replace("[tree]", '[reading]\nencoding = "klingon"\n\n[tree]'))
    assert run(demo, tmp_path / "deep" / "out") == 2
    assert not (tmp_path / "deep" / "out").exists()


def test_a_lost_ledger_is_not_taken_for_a_fresh_one(demo, tmp_path, home, capsys):
    assert run(demo, tmp_path / "one") == 0
    ledger = home / "justitia.sqlite"
    kept = ledger.read_bytes()
    for name in ("justitia.sqlite", "justitia.sqlite-wal", "justitia.sqlite-shm"):
        (home / name).unlink(missing_ok=True)
    assert run(demo, tmp_path / "two") == 2
    assert "gone or empty" in capsys.readouterr().err
    ledger.write_bytes(b"")
    assert run(demo, tmp_path / "two") == 2
    ledger.write_bytes(kept)
    assert run(demo, tmp_path / "two") == 0
    assert len(spends()) == 1


def test_a_lost_secret_is_not_replaced_in_silence(demo, tmp_path, home, capsys):
    assert run(demo, tmp_path / "one") == 0
    (home / "justitia.sqlite.secret").unlink()
    assert run(demo, tmp_path / "two") == 2
    assert "--new-secret" in capsys.readouterr().err
    assert len(spends()) == 1
    assert main(["ledger", "--new-secret"]) == 0
    assert run(demo, tmp_path / "two") == 0
    assert len(spends()) == 2  # said so: an old plan spends again


def test_the_cap_is_the_ledgers_and_is_changed_on_purpose(demo, tmp_path, capsys):
    assert run(demo, tmp_path / "one") == 0
    assert "is new" in capsys.readouterr().err
    plan = demo / "plan.toml"
    plan.write_text(plan.read_text().replace('cap = "2"', 'cap = "5"'))
    assert run(demo, tmp_path / "two", "--new-release") == 0
    assert "has spent rho 0.5 of its cap 2, which is the ledger's" in capsys.readouterr().err
    assert main(["ledger", "--set-cap", "5"]) == 2
    assert main(["ledger", "--population", "demo hiring", "--set-cap", "0.1"]) == 2
    assert main(["ledger", "--population", "demo hiring", "--set-cap", "5"]) == 0
    assert "of 5" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["run"],
        ["run", "p.toml", "--data", "d.csv", "--out", ""],
        ["run", "p.toml", "--data", "d.csv", "--out", "o", "--simulate", "-1"],
        ["run", "p.toml", "--data", "d.csv", "--out", "o", "--simulate", "x"],
    ],
)
def test_bad_arguments_are_one_line(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("justitia: ")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_keeps_what_was_paid_for(demo, tmp_path, name):
    script = (
        "import os, signal, sys, core.privci.select as select\n"
        "from core.__main__ import main\n"
        "measured = select._Run.measure_one_way\n"
        "def interrupted(self):\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "    measured(self)\n"
        "select._Run.measure_one_way = interrupted\n"
        "sys.exit(main(['run', *sys.argv[1:]]))\n"
    )
    arguments = [str(demo / "plan.toml"), "--data", str(demo / "demo.csv"), "--out"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments, str(tmp_path / "out")],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "kept as a partial release" in done.stderr
    assert "Traceback" not in done.stderr
    (spend,) = spends()
    assert spend.state is SpendState.PARTIAL
    assert run(demo, tmp_path / "out") == 0
    assert "Partial release" in (tmp_path / "out" / "statement.md").read_text()


def test_an_interrupt_before_the_charge_costs_nothing(demo, tmp_path, monkeypatch, capsys):
    import core.__main__ as command_line

    def asked(self):
        self.asked = True

    monkeypatch.setattr(command_line._Interrupt, "__init__", asked)
    assert run(demo, tmp_path / "out") == 2
    assert "nothing was spent" in capsys.readouterr().err
    assert not spends()


def test_a_column_that_was_declared_in_another_form_is_named(demo, tmp_path, capsys):
    plan = demo / "plan.toml"
    text = plan.read_text()
    for name in ("capital", "north", "south", "east", "west"):
        assert f'"{name}"' in text
        text = text.replace(f'"{name}"', f'"{name.upper()}"')
    plan.write_text(text)
    assert run(demo, tmp_path / "out") == 0
    assert "nearly every value of 'region'" in capsys.readouterr().err
