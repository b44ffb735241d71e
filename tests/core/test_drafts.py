"""Drafts and their check: nothing is overwritten, examples are true, misfits are seen in time."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from core.__main__ import main
from core.draft_text import EXAMPLES, draft_text
from core.plan import ReadingPlan, parse_plan, read_plan
from core.schema import Column, Kind, Schema
from core.starting import PRIVATE, demo_plan
from tests.core.field_cases import csv_text, draft, plan, release, save, spends, write, yes_no

STAFF = [
    ["Personalnummer", "born", "wage", "sex"],
    *(
        [30_001 + 13 * i, f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1960 + i % 40}", f"{i % 90}.5", s]
        for i, s in enumerate("mf" * 60)
    ),
]
BOOK = """\
Name;Kind;Categories;Lower;Upper
born;date;;1950-01-01;2009-12-31
wage;real;;0;100
sex;categorical;m|f;;
Personalnummer;identifier;;;
"""


@pytest.fixture
def staff(tmp_path):
    return write(tmp_path / "staff.csv", csv_text(STAFF))


@pytest.fixture
def book(tmp_path):
    return write(tmp_path / "book.csv", BOOK)


# -- what is never overwritten ----------------------------------------------------------------


def test_an_existing_file_is_replaced_only_on_request(tmp_path, staff, capsys):
    path = write(tmp_path / "plan.toml", "mine")
    arguments = ["draft", "--data", str(staff), "--out", str(path)]
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--force" in line
    assert path.read_text() == "mine"
    assert main([*arguments, "--force"]) == 0
    assert read_plan(path).schema.names == tuple(STAFF[0])


def disguised(original: Path, way: str) -> Path:
    """Another path to the same file."""
    target = original.with_name("target")
    if way == "symbolic link":
        target.symlink_to(original)
    elif way == "hard link":
        target.hardlink_to(original)
    elif way == "detour":
        return original.parent / ".." / original.parent.name / original.name
    else:
        return original
    return target


@pytest.mark.parametrize("source", ["staff.csv", "book.csv"])
@pytest.mark.parametrize("way", ["itself", "detour", "symbolic link", "hard link"])
def test_the_sources_are_never_overwritten(staff, book, capsys, source, way):
    original = staff.with_name(source)
    before = original.read_bytes()
    arguments = ["draft", "--data", str(staff), "--codebook", str(book)]
    assert main([*arguments, "--out", str(disguised(original, way)), "--force"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "same file" in line
    assert original.read_bytes() == before


def test_a_folder_is_no_plan(tmp_path, staff, capsys):
    assert main(["draft", "--data", str(staff), "--out", str(tmp_path), "--force"]) == 2
    assert "is a folder" in capsys.readouterr().err


# -- what a draft says ------------------------------------------------------------------------


def test_the_commented_examples_are_declarations_of_every_kind():
    plain = tomllib.loads(EXAMPLES)
    schema = Schema.from_dict(plain)
    assert {column.kind for column in schema.columns} == set(Kind)
    text = draft_text(demo_plan("hiring"))
    for line in EXAMPLES.splitlines():
        assert f"# {line}".rstrip() in text.splitlines()


@pytest.mark.parametrize("name", ["hiring", "lending", "admissions"])
def test_a_commented_plan_is_the_plan(name):
    made = demo_plan(name)
    assert parse_plan(draft_text(made)) == made


def test_a_commented_plan_keeps_every_section():
    columns = [yes_no("a"), Column("b", Kind.INTEGER, lower=0, upper=9, out_of_domain="other")]
    made = plan(columns, reading=ReadingPlan(decimal=",", rename={"c": "a"}))
    text = draft_text(made)
    assert parse_plan(text) == made
    assert "expected_rows" in text
    assert "unit_person_column" in text
    assert "may be deleted" not in text


def test_a_placeholder_can_be_given_another_kind(tmp_path, staff):
    path = tmp_path / "plan.toml"
    draft(staff, path)
    text = path.read_text()
    head, tail = text.rsplit('name = "sex"\nkind = "text"\n', 1)
    write(path, f'{head}name = "sex"\nkind = "categorical"\ncategories = ["m", "f"]\n{tail}')
    assert read_plan(path).schema["sex"].kind is Kind.CATEGORICAL


def test_a_suggested_draft_says_when_the_flag_may_go(tmp_path, staff, capsys):
    path = tmp_path / "plan.toml"
    drafted = draft(staff, path, "--suggest")
    assert 'A line "data_dependent = true"' in path.read_text()
    assert drafted.schema["Personalnummer"].kind is Kind.IDENTIFIER
    assert "column 'Personalnummer': left out: " in capsys.readouterr().err


def test_notes_of_one_kind_share_a_line(tmp_path, capsys):
    names = [f"c{i}" for i in range(40)]
    data = write(tmp_path / "wide.csv", csv_text([names, *[range(i, i + 40) for i in range(30)]]))
    draft(data, tmp_path / "plan.toml")
    told = capsys.readouterr().err.splitlines()
    assert len(told) < 6
    assert any("'c0', 'c1'" in line and "not declared yet" in line for line in told)


# -- codebooks --------------------------------------------------------------------------------


def test_a_codebook_gets_the_forms_of_the_file(tmp_path, staff, book, capsys):
    path = tmp_path / "plan.toml"
    drafted = draft(staff, path, "--codebook", str(book)).schema
    told = capsys.readouterr().err
    assert drafted["born"].date_format == "%d.%m.%Y"
    assert drafted["wage"].decimals == 1
    assert not any(column.data_dependent for column in drafted.columns)
    assert "column 'born': dates are written as %d.%m.%Y" in told
    assert "hardly" not in told
    days = release(path, staff, tmp_path / "out", seed=1).synthetic["born"]
    assert days[days != ""].str.fullmatch(r"\d\d\.\d\d\.\d{4}").all()


def test_a_codebook_that_hardly_fits_is_told(tmp_path, staff, book, capsys):
    write(book, BOOK.replace("wage;real;;0;100", "wage;real;;1000;2000"))
    draft(staff, tmp_path / "plan.toml", "--codebook", str(book))
    assert "column 'wage': hardly any value fits its declaration" in capsys.readouterr().err


def test_a_codebook_for_another_file_offers_the_name(tmp_path, staff, book, capsys):
    write(book, BOOK.replace("sex;", "SEX;"))
    arguments = ["draft", "--data", str(staff), "--codebook", str(book)]
    assert main([*arguments, "--out", str(tmp_path / "plan.toml")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "did you mean 'sex'?" in line


def test_a_repeating_identifier_is_told(tmp_path, staff, book, capsys):
    write(staff, csv_text([*STAFF, *STAFF[1:]]))
    draft(staff, tmp_path / "plan.toml", "--codebook", str(book))
    assert "column 'Personalnummer': an identifier whose values repeat" in capsys.readouterr().err


# -- check ------------------------------------------------------------------------------------


def check(path, data, capsys):
    assert main(["check", str(path), "--data", str(data)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_misfit_is_seen_before_a_charge(tmp_path, staff, capsys):
    columns = [
        Column("born", Kind.DATE, lower="1950-01-01", upper="2009-12-31", unit="year"),
        Column("wage", Kind.REAL, lower=0, upper=100),
        yes_no("sex", ("m", "f")),
    ]
    path = save(plan(columns), tmp_path / "plan.toml")
    first, *lines, other, verdict = check(path, staff, capsys)
    assert first == PRIVATE == "private workspace: not for publication"
    by_name = {line.split(" ")[0]: line for line in lines}
    assert by_name["born"].startswith("born (date): HARDLY ANY VALUE FITS.")
    assert "%d.%m.%Y" in by_name["born"]
    assert by_name["wage"] == "wage (real): fit: all"
    assert by_name["sex"] == "sex (boolean): fit: all"
    assert other == "not released: Personalnummer"
    assert verdict == "look at: born"
    assert not spends()


def test_what_a_draft_suggests_fits(tmp_path, staff, capsys):
    path = tmp_path / "plan.toml"
    draft(staff, path, "--suggest")
    capsys.readouterr()
    assert check(path, staff, capsys)[-1] == "every released column fits its declaration"


def test_a_plan_without_declarations_is_told(tmp_path, staff, capsys):
    path = tmp_path / "plan.toml"
    draft(staff, path)
    capsys.readouterr()
    assert "no column is declared yet" in check(path, staff, capsys)[-1]


def test_a_check_of_another_file_is_refused(tmp_path, staff, capsys):
    path = save(plan([yes_no("Sex", ("m", "f"))]), tmp_path / "plan.toml")
    assert main(["check", str(path), "--data", str(staff)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "did you mean 'sex'?" in line


def test_refused_names_say_how_to_rename(tmp_path, capsys):
    data = write(tmp_path / "twice.csv", "a,a\n1,2\n")
    assert main(["draft", "--data", str(data), "--out", str(tmp_path / "plan.toml")]) == 2
    told = capsys.readouterr().err
    assert "--accept-names" in told
    assert "[reading.rename]" in told


def test_whole_reals_are_written_without_a_point(tmp_path):
    data = write(tmp_path / "n.csv", csv_text([["x"], *[[i % 50] for i in range(200)]]))
    column = Column("x", Kind.REAL, lower=0, upper=50, bins=5, decimals=0)
    path = save(plan([column]), tmp_path / "plan.toml")
    cells = release(path, data, tmp_path / "out", seed=3).synthetic["x"]
    assert cells[cells != ""].str.fullmatch(r"\d+").all()
    assert len(cells) > 100
