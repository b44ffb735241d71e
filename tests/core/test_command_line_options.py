"""Forecasts without data, further forms of the synthetic table, and drafts that keep settings."""

from __future__ import annotations

import io
import json
import zipfile

import pandas as pd
import pytest

from core.__main__ import main
from core.bundle import verify
from core.errors import BundleError
from core.plan import read_plan
from core.releases import digest
from core.schema import Column, Kind
from tests.core.field_cases import draft, plan, release, run, save, spends, write, yes_no

COLUMNS = [
    Column("town", Kind.CATEGORICAL, categories=("Ulm", "Jena", "=1+1")),
    Column("age", Kind.INTEGER, lower=0, upper=99, bins=4),
    yes_no("hired"),
]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Each test has a ledger and a secret of its own."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))


@pytest.fixture
def data(tmp_path):
    rows = [
        f"{('Ulm', 'Jena', '=1+1')[i % 3]},{i % 100},{('no', 'yes')[i % 2]}" for i in range(300)
    ]
    return write(tmp_path / "staff.csv", "town,age,hired\n" + "\n".join(rows) + "\n")


# -- forecasts --------------------------------------------------------------------------------


def test_a_forecast_reads_no_data_and_costs_nothing(tmp_path, capsys):
    path = save(plan(COLUMNS, expected_rows=300), tmp_path / "plan.toml")
    assert main(["forecast", str(path)]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert all(line.startswith("forecast: ") for line in told.out.splitlines())
    assert "Clear" in told.out
    assert not spends()
    unknown = save(plan(COLUMNS), tmp_path / "unknown.toml")
    assert main(["forecast", str(unknown)]) == 0
    assert "expected number of rows" in capsys.readouterr().out


def test_a_forecast_of_nothing_declared_is_refused(tmp_path, data, capsys):
    draft(data, tmp_path / "plan.toml")
    capsys.readouterr()
    assert main(["forecast", str(tmp_path / "plan.toml")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "no column is left to model" in line


def test_a_refused_charge_forecasts_nothing(tmp_path, data, capsys):
    path = save(plan(COLUMNS, expected_rows=300), tmp_path / "plan.toml")
    release(path, data, tmp_path / "out")
    assert "forecast: " in capsys.readouterr().err
    assert run(path, data, tmp_path / "more", "--new-release") == 3
    assert "forecast" not in capsys.readouterr().err


def test_the_flag_follows_the_noisy_total_not_the_guess(tmp_path, data, capsys):
    for guess in (1, 10**6):  # guesses that are far off
        path = save(plan(COLUMNS, expected_rows=guess), tmp_path / "plan.toml")
        out = release(path, data, tmp_path / "out", seed=1)
        told = capsys.readouterr().err
        assert ("Mostly noise" in told) == (guess == 1)
        assert "flag: mostly noise" not in told
        assert "mostly noise" not in out.text("statement.md")


# -- forms of the synthetic table -------------------------------------------------------------


def test_only_the_forms_that_were_asked_for_are_written_and_they_hold_the_same_rows(tmp_path, data):
    path = save(plan(COLUMNS), tmp_path / "plan.toml")
    plain = release(path, data, tmp_path / "plain")
    assert {p.name for p in plain.folder.glob("synthetic*")} == {"synthetic.csv"}
    forms = ("csv", "parquet", "spreadsheet")
    out = release(save(plan(COLUMNS, files=forms), path), data, tmp_path / "out")
    assert len(spends()) == 1  # forms are free
    assert out.path("synthetic.csv").read_bytes() == plain.path("synthetic.csv").read_bytes()
    frame = pd.read_parquet(out.path("synthetic.parquet"))
    towns = [town if isinstance(town, str) else "" for town in frame["town"]]
    assert towns == out.synthetic["town"].to_list()
    assert "'=1+1" in {row[0] for row in out.rows("synthetic-for-excel.csv")}
    assert verify(out.path("bundle.zip")).checks
    stamped = release(path, data, tmp_path / "simulated", seed=1)
    assert stamped.path("synthetic.parquet").name.startswith("SIMULATED_NOT_PRIVATE_")
    assert verify(stamped.path("bundle.zip")).simulated


def test_an_excel_sheet_does_not_lend_its_types_to_the_download(tmp_path, data):
    # They are read off the cells: one more row could change them.
    path = save(plan(COLUMNS, files=("csv", "parquet")), tmp_path / "plan.toml")
    frame = pd.read_csv(data)
    kinds = []
    for name, ages in (("whole", frame["age"]), ("half", frame["age"] + 0.5)):
        frame.assign(age=ages).to_excel(tmp_path / f"{name}.xlsx", index=False)
        out = release(path, tmp_path / f"{name}.xlsx", tmp_path / name, seed=1)
        kinds.append(pd.read_parquet(out.path("synthetic.parquet")).dtypes.astype(str).to_dict())
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("change", ["lacks", "holds, and its plan does not ask for,"])
def test_a_bundle_holds_what_its_plan_asks_for(tmp_path, data, change):
    forms = ("csv", "parquet") if change == "lacks" else ("csv",)
    path = save(plan(COLUMNS, files=forms), tmp_path / "plan.toml")
    out = release(path, data, tmp_path / "out")
    with zipfile.ZipFile(out.path("bundle.zip")) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(content["manifest.json"])
    name = "synthetic.parquet"
    if change == "lacks":
        del content[name], manifest["files"][name]
    else:
        content[name] = b"PAR1"
        manifest["files"][name] = {"sha256": digest(b"PAR1")}
    content["manifest.json"] = json.dumps(manifest).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, blob in content.items():
            archive.writestr(key, blob)
    with pytest.raises(BundleError, match=f"the bundle {change} {name}"):
        verify(buffer.getvalue())


# -- drafts -----------------------------------------------------------------------------------


def test_a_draft_keeps_how_the_file_was_read(tmp_path, data):
    frame = pd.read_csv(data)
    book = tmp_path / "staff.xlsx"
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"other": [1]}).to_excel(writer, sheet_name="first", index=False)
        frame.to_excel(writer, sheet_name="staff", index=False)
    path = tmp_path / "plan.toml"
    draft(book, path, "--suggest", "--sheet", "staff")
    assert read_plan(path).reading.sheet == "staff"
    out = release(path, book, tmp_path / "out", seed=1)
    assert out.rows()[0] == ["town", "age", "hired"]


def test_accepted_names_change_nothing_where_names_are_fine(tmp_path, data):
    one = draft(data, tmp_path / "one.toml")
    assert draft(data, tmp_path / "two.toml", "--accept-names") == one
