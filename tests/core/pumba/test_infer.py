"""The command infer: from a file of published statistics to files, without touching a ledger."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.__main__ import main
from core.pumba.infer import FREE, infer, sentence
from core.pumba.published import read_published
from core.pumba.settings import Settings
from core.pumba.summaries import ParameterSummary

ROOT = Path(__file__).parents[3]
TABLE = """analysis,kind,statistic,column,category,value,family,scale
hiring,table,count,sex,woman,60,laplace,2
hiring,table,count,sex,man,41,laplace,2
hiring,table,n,,,100,exact,
"""
FILES = {"posterior.csv", "posterior.json", "draws.npz"}


@pytest.fixture
def statistics(tmp_path):
    path = tmp_path / "stats.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


@pytest.fixture
def no_ledger(monkeypatch):
    """Any use of a ledger fails."""

    def refuse(*arguments, **named):
        raise AssertionError("a ledger was opened")

    monkeypatch.setattr("core.private.ledger.Ledger.__init__", refuse)


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_the_command_writes_and_says_that_it_is_free(statistics, tmp_path, capsys, no_ledger):
    out = tmp_path / "out"
    arguments = ["infer", str(statistics), "--out", str(out), "--draws", "1000", "--level", "0.9"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert names_in(out) == FILES
    assert "hiring:" in printed
    assert "90 % interval" in printed
    assert "note P9: Noise as stated" in printed
    assert FREE in printed
    assert str(out / "posterior.csv") in printed
    rows = pd.read_csv(out / "posterior.csv")
    assert set(rows["analysis"]) == {"hiring"}
    assert set(rows["level"]) == {0.9}
    plain = json.loads((out / "posterior.json").read_text("utf-8"))
    assert plain["source"] == "stats.csv"
    assert [warning["code"] for warning in plain["posteriors"][0]["warnings"]] == ["P9"]
    with np.load(io.BytesIO((out / "draws.npz").read_bytes()), allow_pickle=False) as archive:
        assert archive["values_0"].shape[0] == 1000


def test_options_reach_the_settings(statistics, tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--estimand", "sample", "--population-size", "1000", "--design-effect", "1.5"]
    options += ["--seed", "9", "--draws", "500", "--vcov", "t", "--parquet"]
    assert main(["infer", str(statistics), "--out", str(out), *options]) == 0
    assert names_in(out) == {*FILES, "posterior.parquet"}
    settings = json.loads((out / "posterior.json").read_text("utf-8"))["posteriors"][0]["settings"]
    expected = {"estimand": "sample", "population_size": 1000, "design_effect": 1.5, "seed": 9}
    assert expected.items() <= settings.items()
    assert (settings["draws"], settings["vcov"]) == (500, "t")


def test_a_second_run_gives_the_same_files(statistics, tmp_path):
    out = tmp_path / "out"
    first = {path.name: path.read_bytes() for path in infer(statistics, out).paths}
    assert {path.name: path.read_bytes() for path in infer(statistics, out).paths} == first
    assert names_in(out) == FILES


@pytest.mark.parametrize("name", sorted(FILES))
def test_foreign_files_are_not_overwritten(statistics, tmp_path, capsys, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine", encoding="utf-8")
    assert main(["infer", str(statistics), "--out", str(out)]) == 2
    assert "is not from an earlier run of infer" in capsys.readouterr().err
    assert names_in(out) == {name}
    assert (out / name).read_text("utf-8") == "mine"


def test_other_files_in_the_folder_do_not_matter(statistics, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    infer(statistics, out)
    assert names_in(out) == {*FILES, "notes.txt"}


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda out: out.write_text("mine"), "there is a file of this name"),
        (lambda out: (out / "draws.npz").mkdir(parents=True), "draws.npz there is no file"),
    ],
)
def test_targets_that_cannot_be_written(statistics, tmp_path, capsys, prepare, words):
    out = tmp_path / "out"
    prepare(out)
    assert main(["infer", str(statistics), "--out", str(out)]) == 2
    assert words in capsys.readouterr().err


def test_the_source_is_not_overwritten(tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    source = out / "posterior.csv"
    source.write_text(TABLE, encoding="utf-8")
    assert main(["infer", str(source), "--out", str(out)]) == 2
    assert "is what this run reads" in capsys.readouterr().err
    assert source.read_text("utf-8") == TABLE


def test_a_folder_needs_a_name(statistics, capsys):
    assert main(["infer", str(statistics), "--out", "."]) == 2
    assert "not this folder itself" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("laplace,2", "cauchy,2", "stats.csv, line 2, family: 'cauchy' is unknown"),
        ("laplace,2", "laplace,-2", "stats.csv, line 2, scale: must be above 0"),
        (",60,", ",nan,", "stats.csv, line 2, value: a finite number"),
        (",100,exact", ",0,exact", "stats.csv, line 4, value: an exact n"),
        ("sex,man,41", "sex,woman,60", "stats.csv, line 3, statistic: this statistic was entered"),
    ],
)
def test_bad_statistics_write_nothing(tmp_path, capsys, old, new, words):
    path, out = tmp_path / "stats.csv", tmp_path / "out"
    path.write_text(TABLE.replace(old, new, 1), encoding="utf-8")
    assert main(["infer", str(path), "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--level", "95"], "the level of an interval"),
        (["--level", "nan"], "the level of an interval"),
        (["--draws", "3"], "draws must lie between"),
        (["--estimand", "all"], "'all' is unknown"),
        (["--design-effect", "-1"], "design effect"),
        (["--population-size", "20"], "cannot come from a population of 20"),
        (["--vcov", "hac"], "'hac' is unknown"),
    ],
)
def test_bad_settings_write_nothing(statistics, tmp_path, capsys, option, words):
    out = tmp_path / "out"
    assert main(["infer", str(statistics), "--out", str(out), *option]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_a_missing_file(tmp_path, capsys):
    assert main(["infer", str(tmp_path / "none.csv"), "--out", str(tmp_path / "out")]) == 2
    assert "none.csv: the file cannot be opened" in capsys.readouterr().err


SUMMARY = ParameterSummary(
    "mean", 30512.4, 30500.0, 812.0, 28921.1, 32103.7, 28900.0, 32100.0, 1.0, None, 0.234, 0.766,
    30600.0, 30100.0, 31100.0, None, None,
)  # fmt: skip


def test_a_parameter_in_a_line():
    assert sentence(SUMMARY, 0.95) == (
        "mean: 30,512, 95 % interval 28,921 to 32,104; 23 % of the variance is privacy noise; "
        "ignoring the noise: 30,100 to 31,100"
    )


def test_a_line_without_the_undefined():
    from dataclasses import replace

    bare = replace(SUMMARY, sd=0.0, privacy_share=None, naive_low=None)
    assert sentence(bare, 0.5) == (
        "mean: 30,512.400000, 50 % interval 28,921.100000 to 32,103.700000; "
        "ignoring the noise: undefined"
    )


# -- the documented examples ---------------------------------------------------------------------

PAGE = (ROOT / "docs" / "published-statistics.md").read_text("utf-8")
EXAMPLES = re.findall(r"^### ([^\n]+)\n.*?```csv\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("title", "text"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_documented_examples_work(title, text, tmp_path):
    path = tmp_path / "stats.csv"
    path.write_text(text, encoding="utf-8")
    result = infer(path, tmp_path / "out", Settings(draws=1000))
    (one,) = result.posteriors
    assert all(np.isfinite(parameter.mean) for parameter in one.summary)
    assert all(parameter.sd > 0 for parameter in one.summary)
    assert "P9" in [warning.code for warning in one.warnings]


def test_the_page_has_an_example_of_every_kind_and_names_every_field():
    from core.pumba.published_rows import FIELDS, KINDS, STATISTICS

    kinds = {row.kind for _, text in EXAMPLES for row in read_published(text.encode()).rows}
    assert kinds == set(KINDS)
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert set(FIELDS) <= named
    assert set(STATISTICS) <= named
    (plain,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert read_published(plain.encode()).analyses[0].title == "tenure"


def test_the_page_lists_every_warning_and_option():
    from core.__main__ import parser

    assert re.findall(r"^\| (P\d+) \|", PAGE, re.MULTILINE) == [f"P{i}" for i in range(1, 13)]
    help_text = parser()._subparsers._group_actions[0].choices["infer"].format_help()
    options = set(re.findall(r"--[a-z-]+", help_text)) - {"--help", "--out"}
    assert options <= set(re.findall(r"--[a-z-]+", PAGE))
