"""Planted values that must leave no trace in files, database, logs, messages and reprs."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import core.measuring
import core.runner
from core.__main__ import main
from core.attachment import attach, read_for
from core.errors import JustitiaError
from core.plan import ReadingPlan
from core.private.coding import encode
from core.private.ledger import Ledger, SpendState
from core.private.raw import RawTable, ReadingReport
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.privci.select import release_tree
from core.releases import Unit
from core.roles import Role, Roles
from core.schema import Column, Kind, Schema
from tests.privacy.canaries import (
    OUTLIERS,
    PEOPLE,
    ROLES,
    ROOT,
    ROWS,
    SCHEMA,
    broken,
    chain,
    failing_run,
    frame,
    needles_in,
    plan,
    spends,
    traces,
    write,
)
from tests.privacy.replay import Recorder, Replayer, make_grant


def test_the_search_finds_what_is_planted(tmp_path):
    write(tmp_path, "csv")
    (tmp_path / "numbers.npz").write_bytes(b"")
    np.savez_compressed(tmp_path / "numbers.npz", a=np.array(OUTLIERS), b=[int(OUTLIERS[0])])
    found = traces(tmp_path)
    assert {b"canary", b"98765432", b"1877-03-07", b"P399"} <= found["table.csv"]
    assert len(found["numbers.npz"]) >= 2


@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_a_run_leaves_no_trace_of_a_row(form, tmp_path):
    """Another process, so that everything on its standard error is seen."""
    data = write(tmp_path / "data", form)
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    out, home = tmp_path / "out", tmp_path / "home"
    simulated = ["--simulate", "1", "--allow-real-data", "--population", "others"]
    for more in ([], simulated) if form == "csv" else ([],):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "core", "run", str(tmp_path / "plan.toml")),
                *("--data", str(data), "--out", str(out), *more),
            ],
            cwd=ROOT,
            env={**os.environ, "JUSTITIA_HOME": str(home), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not needles_in(done.stdout)
        assert not needles_in(done.stderr)
        assert b"Warning" not in done.stderr
    assert (out / "bundle.zip").exists()
    assert list(home.glob("*.sqlite"))
    assert not traces(out)
    assert not traces(home)


def test_no_log_record_holds_a_row(home, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "sqlalchemy.engine")  # before the engine is made
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out")
    assert "INSERT INTO justitia_release" in caplog.text
    assert not needles_in(caplog.text.encode())


def test_no_representation_holds_a_row(home):
    raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
    settings = plan()
    attached = attach(settings, raw, Ledger("sqlite://"))
    vault = attached.vault
    grant = vault.grant(Fraction(1, 2), "tree", "id")
    table = encode(raw, settings.released, unit=PEOPLE, key=b"k")
    things = (raw, attached, vault, grant, table, InMemorySource(table), vault.not_private("test"))
    for thing in things:
        for words in (repr(thing), str(thing), f"{thing}"):
            assert not needles_in(words.encode()), type(thing)
            assert str(ROWS) not in words, type(thing)
            assert str(ROWS + 2) not in words, type(thing)


def test_progress_and_release_are_the_same_on_a_neighbour():
    """What a watcher is told follows from the noisy answers alone."""

    def told(table, noise):
        events = []
        release_tree(
            make_grant(table, noise, rho=Fraction(1)),
            plan().released,
            ROLES,
            progress=lambda *event: events.append(event[:3]),
        )
        return events

    raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
    less = RawTable(frame().iloc[: ROWS - 1], "table.csv", ReadingReport("csv"))
    tables = [encode(one, plan().released, unit=PEOPLE, key=b"k") for one in (raw, less)]
    recorder = Recorder(seed=3)
    first = told(tables[0], recorder)
    assert first == told(tables[1], Replayer(recorder.draws))


# -- messages --------------------------------------------------------------------------------


def excel(rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


BAD_FILES = {
    "ragged.csv": b"person,sex\ncanary-id,f,canary-more\n",
    "quote.csv": b'person,sex\n"canary-id,f\n',
    "after.csv": b'person,sex\n"canary"id,f\n',
    "nul.csv": b"person,sex\ncanary\0id,f\n",
    "bytes.csv": b"person,sex\ncanary-\xff\xfe\x81,f\n",
    "absent.csv": b"person,sex\ncanary-id,f\n",
    "long.csv": b"person,sex\n" + b"canary" * 40_000 + b",f\n",
    "torn.parquet": b"PAR1canary-idPAR1",
    "text.parquet": b"person,sex\ncanary-id,f\n",
    "torn.xlsx": b"PK\x03\x04canary-id",
    "mixed.xlsx": excel([["person", "seen"], ["canary-id", pd.Timestamp(2020, 1, 1)], ["x", 5]]),
}


@pytest.mark.parametrize("name", sorted(BAD_FILES))
def test_no_complaint_about_a_file_quotes_a_cell(name, home, tmp_path, capsys):
    (tmp_path / name).write_bytes(BAD_FILES[name])
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    arguments = ["run", str(tmp_path / "plan.toml"), "--data", str(tmp_path / name)]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert len(told.err.strip().splitlines()) == 1
    assert not needles_in((told.err + told.out).encode())
    assert not traces(tmp_path / "out")
    assert not list(home.glob("*.sqlite")) or not Ledger().populations() or not spends()


@pytest.mark.parametrize("name", sorted(BAD_FILES))
def test_no_cause_of_a_complaint_holds_a_cell(name):
    with pytest.raises(JustitiaError) as caught:
        attach(plan(), read_for(plan(), BAD_FILES[name], name), Ledger("sqlite://"))
    assert not needles_in("".join(map(repr, chain(caught.value))).encode())


@pytest.mark.parametrize(
    "error",
    [ValueError("canary-id"), MemoryError("canary-id"), OverflowError("98765432")],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_in_mid_run_is_spent_and_quotes_nothing(
    error, home, tmp_path, monkeypatch, capsys
):
    assert failing_run(tmp_path, monkeypatch, error) == 4
    assert not needles_in("".join(capsys.readouterr()).encode())
    assert not traces(home)
    (spend,) = spends()
    assert spend.state is SpendState.NO_RESULT
    assert spend.rho == Fraction(1, 2)


def test_a_parquet_timestamp_beyond_the_calendar_is_a_value_like_any_other():
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    far = pa.array([86_400_000 * 10**9, 0, None], pa.timestamp("ms"))
    pq.write_table(pa.table({"when": far, "x": ["a", "b", "c"]}), buffer)
    raw = read_table(buffer.getvalue(), name="far.parquet")
    schema = Schema((Column("when", Kind.CATEGORICAL, categories=("1970-01-01",)),))
    assert encode(raw, schema).codes["when"].tolist() == [1, 0, 2]
    encode(raw, Schema((Column("x", Kind.CATEGORICAL, categories=("a",)),)), unit=Unit(1, "when"))


def test_no_traceback_of_a_failed_measurement_holds_a_value(home, tmp_path, monkeypatch):
    monkeypatch.setattr(InMemorySource, "each_count", broken(ValueError("canary-id")))
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    with pytest.raises(JustitiaError) as caught:
        core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out")
    assert not needles_in("".join(map(repr, chain(caught.value))).encode())


# -- what is published ----------------------------------------------------------------------


GUESSES = {
    "decimal": (b'pay,sex,note\n"1,500",f,x\n' + b'"1,500",f,x\n' * 20, b'7,f,"3,14"\n'),
    "encoding": (b"pay,sex,note\n" + "7,fé,x\n".encode() * 20, b"7,f,\xe9\n"),
}


@pytest.mark.parametrize("guess", sorted(GUESSES))
def test_no_row_decides_how_the_other_rows_are_read(guess):
    schema = Schema(
        (
            Column("pay", Kind.REAL, lower=0, upper=9000, bins=9),
            Column("sex", Kind.CATEGORICAL, categories=("fé", "f")),
        )
    )
    roles = Roles({"pay": Role.OUTCOME, "sex": Role.PROTECTED})
    settings = plan(unit=Unit(), schema=schema, roles=roles, reading=ReadingPlan())
    base, row = GUESSES[guess]
    counts = []
    for content in (base, base + row):
        try:
            vault = attach(settings, read_for(settings, content), Ledger("sqlite://")).vault
        except JustitiaError:
            return  # refused until the setting is declared
        counts.append(vault.not_private("test").counts([("pay", "sex")])[0])
    assert np.abs(counts[0] - counts[1]).sum() <= 1


def test_suggestions_for_ignored_columns_stay_out_of_the_bundle(home, tmp_path):
    data = write(tmp_path / "data", "csv")
    seen = replace(SCHEMA["illness"], categories=("cold", "canary-illness"), data_dependent=True)
    rich = replace(SCHEMA["wealth"], upper=OUTLIERS[1], data_dependent=True)
    columns = [{"illness": seen, "wealth": rich}.get(c.name, c) for c in SCHEMA.columns]
    (tmp_path / "plan.toml").write_text(plan(schema=Schema(tuple(columns))).to_toml())
    done = core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out")
    flags = done.derived.release.provenance.flags
    assert not traces(tmp_path / "out") or "data-dependent domain" in flags


def test_no_published_file_says_how_long_measuring_took(home, tmp_path):
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out")
    (spend,) = json.loads((tmp_path / "out/ledger.json").read_text())["spends"]
    assert not (spend.get("finished_at") and spend.get("charged_at"))


def test_the_types_of_the_synthetic_parquet_do_not_depend_on_a_row(home, tmp_path):
    import pyarrow.parquet as pq

    settings = plan(unit=Unit())
    settings = replace(settings, synthetic=replace(settings.synthetic, files=("csv", "parquet")))
    (tmp_path / "plan.toml").write_text(settings.to_toml())
    whole = frame().iloc[:ROWS].astype({"age": int})
    less = pd.concat([whole, whole.iloc[:1].assign(age=np.nan)])
    types = []
    for name, table in (("whole", whole), ("less", less)):
        table.to_parquet(tmp_path / f"{name}.parquet", index=False)
        core.runner.run(tmp_path / "plan.toml", tmp_path / f"{name}.parquet", tmp_path / name)
        stored = pq.read_schema(tmp_path / name / "synthetic.parquet")
        types.append([str(field.type) for field in stored])
    assert types[0] == types[1]
