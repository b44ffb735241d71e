"""The command line on hostile files: exit 2, one line, nothing written, nothing spent."""

from __future__ import annotations

import logging

import pytest

from core.__main__ import main
from core.bundle import verify
from core.private.ledger import Ledger
from tests.core.command_line import spends
from tests.hostile import payloads, seeds
from tests.hostile.test_plain_data import CODEBOOKS, JSONS, PLANS, STATISTICS
from tests.hostile.test_tables import REFUSED


@pytest.fixture
def run(home, capsys, caplog):
    """A command that has to end in one line."""
    caplog.set_level(logging.DEBUG)

    def run(*arguments):
        before = {path for path in home.rglob("*") if path.is_file()}
        assert main([str(argument) for argument in arguments]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == 1
        assert told.err.startswith("justitia: ")
        assert "unexpected" not in told.err
        assert "Traceback" not in told.err + caplog.text
        for canary in seeds.CANARIES:
            assert canary not in told.err + caplog.text
        made = {path for path in home.rglob("*") if path.is_file()} - before
        assert {path for path in made if not path.name.startswith("justitia.")} == set()
        assert not list(home.glob("home/*.sqlite")) or spends() == []
        return told.err

    return run


@pytest.fixture(scope="module")
def plan_text():
    from tests.privacy.canaries import plan

    return plan().to_toml()


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_a_hostile_table_costs_nothing(case, run, home, plan_text):
    name, make, words = REFUSED[case]
    (home / "plan.toml").write_text(plan_text)
    (home / name).write_bytes(make())
    # The plan declares UTF-8 and the comma; most tables fail before or because of that.
    told = run("run", home / "plan.toml", "--data", home / name, "--out", home / "out")
    assert name in told
    assert not (home / "out").exists()
    run("check", home / "plan.toml", "--data", home / name)
    assert words in run("draft", "--data", home / name, "--suggest", "--out", home / "new.toml")


@pytest.mark.parametrize("case", sorted(PLANS))
def test_a_hostile_plan_costs_nothing(case, run, home):
    data, words = PLANS[case]
    (home / "plan.toml").write_bytes(data)
    (home / "t.csv").write_bytes(seeds.csv_files()[0])
    assert words in run("forecast", home / "plan.toml")
    told = run("run", home / "plan.toml", "--data", home / "t.csv", "--out", home / "out")
    assert words in told


@pytest.mark.parametrize("case", sorted({**JSONS, **CODEBOOKS, **STATISTICS}))
def test_hostile_codebooks_and_statistics_write_nothing(case, run, home):
    data, words = {**JSONS, **CODEBOOKS, **STATISTICS}[case]
    (home / "file").write_bytes(data)
    (home / "t.csv").write_bytes(b"x\n1\n")
    if case not in STATISTICS:
        told = run(
            *("draft", "--data", home / "t.csv", "--codebook", home / "file"),
            *("--out", home / "new.toml"),
        )
        assert words in told
    if case not in CODEBOOKS:
        assert words in run("infer", home / "file", "--out", home / "out")


def test_a_run_in_which_every_name_is_a_payload(home, capsys):
    (home / "plan.toml").write_text(payloads.plan().to_toml(), encoding="utf-8")
    (home / "t.csv").write_bytes(payloads.table())
    arguments = ["run", home / "plan.toml", "--data", home / "t.csv", "--out", home / "out"]
    assert main([str(argument) for argument in arguments]) == 0
    told = capsys.readouterr()
    assert main(["ledger"]) == 0
    listed = capsys.readouterr()
    for text in (told.out, told.err, listed.out):
        assert not any(mark in text for mark in "\x1b\u202e\x07\r")
    assert verify(home / "out/bundle.zip").checks
    (population,) = Ledger().populations()
    assert population.name == payloads.POPULATION


def test_a_terminal_is_not_steered_by_a_name(home, capsys):
    names = ["a\x1b[2Jb", "\u202eevil", "c\x07"]
    (home / "t.csv").write_text(",".join(names) + "\n1,2,3\n" * 30, encoding="utf-8")
    arguments = ["draft", "--data", str(home / "t.csv"), "--suggest", "--out", str(home / "p.toml")]
    assert main(arguments) == 0
    told = capsys.readouterr()
    (home / "q.toml").write_text('[population]\nname = "a"\n"x\\u001b[2J" = 1\n', encoding="utf-8")
    assert main(["forecast", str(home / "q.toml")]) == 2
    for text in (told.out, told.err, capsys.readouterr().err):
        assert text.strip()
        assert not any(mark in text for mark in "\x1b\u202e\x07")


def test_memory_that_is_not_there_is_one_line(home, capsys, monkeypatch):
    import core.private.reading

    def full(*arguments: object) -> None:
        raise MemoryError("canary")

    monkeypatch.setattr(core.private.reading, "read_csv", full)
    (home / "t.csv").write_bytes(b"a\n1\n")
    arguments = ["draft", "--data", str(home / "t.csv"), "--out", str(home / "p.toml")]
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert "canary" not in told
