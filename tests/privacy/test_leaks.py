"""Planted values that must leave no trace in files, database, logs, messages and reprs."""

from __future__ import annotations

import io
import json
import logging
import os
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import core.measuring
import core.runner
from core.__main__ import main
from core.attachment import attach, read_for
from core.bundle import bundle_bytes, verify
from core.errors import BundleError, JustitiaError, LedgerError, SchemaError
from core.parts import request_id
from core.plan import Plan, PopulationPlan, ReadingPlan, TreePlan, parse_plan
from core.private.coding import encode
from core.private.ledger import Ledger, SpendState
from core.private.raw import RawTable, ReadingReport
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.privci.select import release_tree
from core.releases import PairReference, Relation, Unit
from core.roles import Role, Roles
from core.schema import Column, Kind, OutOfDomain, Schema
from tests.privacy.replay import Recorder, Replayer, Violation, check_neighbours, make_grant

ROOT = Path(__file__).parents[2]
ROWS = 400
#: Numbers of one outlying row; no bound, count or setting equals them.
OUTLIERS = (98765432, 87654321.625)

SCHEMA = Schema(
    (
        Column("person", Kind.IDENTIFIER),
        Column("sex", Kind.CATEGORICAL, categories=("f", "m")),
        Column("job", Kind.CATEGORICAL, categories=("clerk", "cook")),
        Column("age", Kind.INTEGER, lower=18, upper=97, bins=4),
        Column("pay", Kind.REAL, lower=0, upper=90, bins=3, out_of_domain=OutOfDomain.OTHER),
        Column("seen", Kind.DATE, lower="2020-01-01", upper="2020-12-31", unit="quarter"),
        Column("hired", Kind.BOOLEAN, categories=("no", "yes")),
        Column("illness", Kind.CATEGORICAL, categories=("cold", "flu")),
        Column("wealth", Kind.REAL, lower=0, upper=1000),
        Column("note", Kind.TEXT),
    )
)
ROLES = Roles(
    {
        "sex": Role.PROTECTED,
        "job": Role.ADMISSIBLE,
        "age": Role.INADMISSIBLE,
        "pay": Role.INADMISSIBLE,
        "seen": Role.INADMISSIBLE,
        "hired": Role.OUTCOME,
        "illness": Role.IGNORE,
        "wealth": Role.IGNORE,
    }
)
PEOPLE = Unit(2, "person")


def plan(*, unit=PEOPLE, schema=SCHEMA, roles=ROLES, rho="1/2", reading=None, **terms):
    return Plan(
        population=PopulationPlan("people", unit=unit, cap=Fraction(1000), **terms),
        schema=schema,
        roles=roles,
        tree=TreePlan(Fraction(rho)),
        reading=ReadingPlan(delimiter=",", encoding="utf-8", decimal=".")
        if reading is None
        else reading,
    )


def frame():
    """Ordinary people, and one with three rows of canaries in every column of the file."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "person": [f"P{number}" for number in range(ROWS)],
            "sex": generator.choice(["f", "m"], ROWS),
            "job": generator.choice(["clerk", "cook"], ROWS),
            "age": generator.integers(18, 80, ROWS).astype(str),
            "pay": generator.integers(0, 90, ROWS).astype(str),
            "seen": generator.choice(["2020-02-03", "2020-11-30"], ROWS),
            "hired": generator.choice(["no", "yes"], ROWS),
            "illness": generator.choice(["cold", "flu"], ROWS),
            "wealth": generator.integers(0, 900, ROWS).astype(str),
            "note": "nothing",
            "undeclared": "0",
        }
    )
    canary = {
        "person": "canary-id",
        "sex": "canary-sex",
        "job": "canary-job",
        "age": str(OUTLIERS[0]),
        "pay": str(OUTLIERS[1]),
        "seen": "1877-03-07",
        "hired": "canary-hired",
        "illness": "canary-illness",
        "wealth": str(OUTLIERS[1]),
        "note": "canary-note",
        "undeclared": "canary-undeclared",
    }
    return pd.concat([table, pd.DataFrame([canary] * 3)], ignore_index=True)


NEEDLES = (
    b"canary",
    b"98765432",
    b"87654321",
    b"1877-03-07",
    b"P399",
    *(struct.pack(form, number) for form in ("<q", "<d") for number in map(int, OUTLIERS)),
    struct.pack("<d", OUTLIERS[1]),
)


def needles_in(blob):
    """Which planted values a blob holds, archives opened."""
    found = {needle for needle in NEEDLES if needle in blob}
    found |= {needle for needle in NEEDLES if needle.decode("latin-1").encode("utf-16-le") in blob}
    if blob.startswith(b"PK") and zipfile.is_zipfile(io.BytesIO(blob)):
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            for name in archive.namelist():
                found |= needles_in(archive.read(name)) | needles_in(name.encode())
    return found


def traces(folder):
    """Planted values in names and contents of all files below a folder."""
    found = {}
    for path in folder.rglob("*"):
        here = needles_in(str(path.relative_to(folder)).encode())
        here |= needles_in(path.read_bytes()) if path.is_file() else set()
        if here:
            found[path.name] = here
    return found


def write(folder, form):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"table.{form}"
    table = frame()
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "parquet":
        for name in ("age", "pay", "wealth"):
            table[name] = table[name].astype(float)
        table.to_parquet(path)
    else:
        table.to_excel(path, index=False)
    return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


# -- a whole run -----------------------------------------------------------------------------


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


def chain(error):
    """An exception and what a printed traceback would show below it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def spends():
    ledger = Ledger()
    return [spend for terms in ledger.populations() for spend in ledger.spends(terms.name)]


def broken(error):
    def each_count(self, cliques, recoding=None):
        raise error

    return each_count


def failing_run(tmp_path, monkeypatch, error):
    monkeypatch.setattr(InMemorySource, "each_count", broken(error))
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    arguments = ["run", str(tmp_path / "plan.toml"), "--data", str(data)]
    return main([*arguments, "--out", str(tmp_path / "out"), "--quiet"])


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


# -- spending --------------------------------------------------------------------------------


FORKED = """
import os
from fractions import Fraction
from core.errors import BudgetExceeded
from tests.privacy.test_leaks import PEOPLE, RawTable, Recorder, ReadingReport
from tests.privacy.test_leaks import encode, frame, make_grant, plan
raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
grant = make_grant(
    encode(raw, plan().released, unit=PEOPLE, key=b"k"), Recorder(), rho=Fraction(1)
)
child = os.fork()
if child == 0:
    try:
        grant.counts([("sex",)], Fraction(1))
    except BudgetExceeded:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert grant.debited == 0
grant.counts([("sex",)], Fraction(1))
try:
    grant.counts([("sex",)], Fraction(1))
except BudgetExceeded:
    print("refused")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_cannot_spend_a_grant_again():
    # A process of its own: forking one in which other tests started threads may hang.
    done = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused"


def test_a_reference_beyond_the_integers_is_refused_before_it_costs_anything():
    raw = RawTable(frame(), "table.csv", ReadingReport("csv"))
    grant = make_grant(encode(raw, plan().released, unit=PEOPLE, key=b"k"), Recorder())
    for high in (1e300, 2.0**20, -1e300):
        shares = {"sex": np.full(4, high), "job": np.full(4, 0.25)}
        with pytest.raises(SchemaError):
            grant.score_pairs([("job", "sex")], PairReference(1.0, shares), Fraction(1, 2))
        with pytest.raises(SchemaError):
            grant.select_pair([("job", "sex")], PairReference(1.0, shares), Fraction(1, 2))
    assert grant.debited == 0


PAID = {
    "rho": lambda p: replace(p, tree=replace(p.tree, rho=Fraction(1, 3))),
    "structure": lambda p: replace(p, tree=replace(p.tree, structure="mst")),
    "split": lambda p: replace(p, tree=TreePlan(p.tree.rho, split=(Fraction(1, 2),) * 2 + (1,))),
    "population": lambda p: replace(p, population=replace(p.population, name="others")),
    "relation": lambda p: replace(
        p, population=replace(p.population, unit=Unit(), relation=Relation.REPLACE_ONE)
    ),
    "unit": lambda p: replace(p, population=replace(p.population, unit=Unit(3, "person"))),
    "roles": lambda p: replace(p, roles=replace(p.roles, proxies=frozenset({"age"}))),
    "ignored": lambda p: replace(p, roles=Roles({**ROLES.by_column, "pay": Role.IGNORE})),
    "schema": lambda p: replace(
        p, schema=Schema((*SCHEMA.columns[:3], replace(SCHEMA["age"], bins=5), *SCHEMA.columns[4:]))
    ),
}


@pytest.mark.parametrize("setting", sorted(PAID))
def test_every_setting_that_changes_a_release_changes_its_id(setting):
    assert request_id(plan(), "t") != request_id(PAID[setting](plan()), "t")


def test_the_table_and_the_attempt_change_the_id_and_free_settings_do_not():
    known = {request_id(plan(), "t"), request_id(plan(), "u"), request_id(plan(), "t", 2)}
    assert len(known) == 3
    free = replace(plan(), synthetic=replace(plan().synthetic, seed=5, rows=3))
    assert request_id(free, "t") == request_id(plan(), "t")


# -- findings of an audit, mended ------------------------------------------------------------

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


def people(rows):
    return read_table(("person,sex,job\n" + "\n".join(rows) + "\n").encode(), name="people.csv")


SMALL = SCHEMA.select(("person", "sex", "job"))
SMALL_ROLES = Roles({"sex": Role.PROTECTED, "job": Role.OUTCOME})


def small_tree(grant):
    return release_tree(grant, SMALL.select(("sex", "job")), SMALL_ROLES)


def test_the_row_count_of_persons_is_not_public_when_ids_can_be_missing():
    unit = Unit(1, "person")
    rows = ["a,f,cook", "b,m,clerk", ",f,cook"]
    other = ["a,f,cook", ",m,clerk", ",f,cook"]
    try:
        plan(unit=unit, schema=SMALL, roles=SMALL_ROLES, relation=Relation.REPLACE_ONE)
        pair = [encode(people(lines), SMALL, unit=unit, key=b"k") for lines in (rows, other)]
        check_neighbours(small_tree, *pair, unit=unit, relation=Relation.REPLACE_ONE)
    except Violation:
        raise
    except JustitiaError:
        return  # the pair of relation and unit is refused, or the count is not given out


def test_declared_missing_markers_of_the_id_column_are_heeded():
    schema = Schema(
        (replace(SMALL["person"], missing_markers=("", "NA")), SMALL["sex"], SMALL["job"])
    )
    settings = plan(unit=PEOPLE, schema=schema, roles=SMALL_ROLES)
    mine, yours = ["NA,f,cook"] * 2, ["NA,m,clerk"] * 2
    counts = []
    for lines in ([*mine, "a,f,cook"], [*mine, *yours, *yours, "a,f,cook"]):
        vault = attach(settings, people(lines), Ledger("sqlite://")).vault
        counts.append(vault.not_private("test").counts([("job", "sex")])[0])
    # Nobody without an id is counted, so that nobody without an id can push somebody else out.
    assert (counts[0] == counts[1]).all()
    assert counts[0].sum() == 1


def test_the_decimal_sign_enters_the_request_id():
    point, comma = (plan(reading=ReadingPlan(decimal=sign)) for sign in ".,")
    assert request_id(point, "t") != request_id(comma, "t")


@pytest.mark.parametrize("error", [SchemaError("no"), LedgerError("no")], ids=["schema", "ledger"])
def test_any_failure_after_the_charge_exits_with_4(error, home, tmp_path, monkeypatch):
    assert failing_run(tmp_path, monkeypatch, error) == 4


def test_a_release_that_cannot_be_stored_is_spent_without_a_result(home, tmp_path, monkeypatch):
    def finish(self, *arguments):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Ledger, "finish", finish)
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    arguments = ["run", str(tmp_path / "plan.toml"), "--data", str(data)]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--quiet"]) == 4
    (spend,) = spends()
    assert spend.state is SpendState.NO_RESULT


def test_no_traceback_of_a_failed_measurement_holds_a_value(home, tmp_path, monkeypatch):
    monkeypatch.setattr(InMemorySource, "each_count", broken(ValueError("canary-id")))
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    with pytest.raises(JustitiaError) as caught:
        core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out")
    assert not needles_in("".join(map(repr, chain(caught.value))).encode())


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


def test_a_replay_refuses_the_release_of_another_charge(home, tmp_path):
    import sqlite3

    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    for more in (False, True):
        core.runner.run(tmp_path / "plan.toml", data, tmp_path / "out", new_release=more)
    with sqlite3.connect(home / "justitia.sqlite") as database:
        (first, digest, blob), (second, _, _) = database.execute(
            "select id, release_sha256, blob from justitia_spend"
            " join justitia_release on spend_id = id order by id"
        ).fetchall()
        assert first < second
        database.execute("update justitia_release set blob = ?", (blob,))
        database.execute("update justitia_spend set release_sha256 = ?", (digest,))
    database.close()
    for attempt in (1, 2):  # the second holds the first one's release now
        ledger = Ledger()
        identity = request_id(plan(), ledger_table(home), attempt)
        try:
            release = core.measuring.stored_release(ledger, ledger.spend(identity))
        except JustitiaError:
            return
        assert release.provenance.request_id == identity


def ledger_table(home):
    import sqlite3

    with sqlite3.connect(home / "justitia.sqlite") as database:
        ((table,),) = database.execute("select table_id from justitia_table").fetchall()
    database.close()
    return table


def altered_json(name, **changes):
    def change(files):
        plain = json.loads(files[name])
        plain.update(changes)
        files[name] = (json.dumps(plain, ensure_ascii=False, indent=2) + "\n").encode()

    return change


def swapped(name, old, new):
    def change(files):
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return change


def swapped_rows(files):
    """Two answers exchanged: every value stays in its domain, and every count of it the same."""
    header, *rows = files["synthetic.csv"].decode().split("\r\n")[:-1]
    first = next(i for i, row in enumerate(rows) if row.endswith(",no"))
    second = next(i for i, row in enumerate(rows) if row.endswith(",yes"))
    rows[first] = rows[first].removesuffix("no") + "yes"
    rows[second] = rows[second].removesuffix("yes") + "no"
    files["synthetic.csv"] = ("\r\n".join([header, *rows]) + "\r\n").encode()


def rewritten_plan(**changes):
    """The plan with declarations of what was not released."""

    def change(files):
        known = parse_plan(files["plan.toml"].decode())
        columns = [
            replace(column, **changes.get(column.name, {})) for column in known.schema.columns
        ]
        files["plan.toml"] = replace(known, schema=Schema(tuple(columns))).to_toml().encode()

    return change


LIES = {
    "plan comment": lambda files: files.update(
        {"plan.toml": b"# approved by the ethics board\n" + files["plan.toml"]}
    ),
    "plan spacing": swapped("plan.toml", b"unit_rows = 2", b"unit_rows  =  2"),
    "plan default": swapped("plan.toml", b"[synthetic]\n", b"[synthetic]\nfiles = ['csv']\n"),
    "plan declares what is not released": rewritten_plan(
        wealth={"kind": "real", "lower": 0, "upper": OUTLIERS[1], "reason": ""}
    ),
    "ledger beyond its cap": altered_json(
        "ledger.json", cap_rho="1/4", spent_rho="1/2", remaining_rho="-1/4"
    ),
    "synthetic values within their domains": swapped_rows,
    "certificate edges": altered_json("certificate.json", edges=[]),
    "certificate words": altered_json("certificate.json", words=["all is well"]),
    "certificate structure": altered_json("certificate.json", structure="privci-exact"),
    "ledger spent": altered_json("ledger.json", spent_rho="1/1000"),
    "ledger spent less, and more left": altered_json(
        "ledger.json", cap_rho="1", spent_rho="1/1000", remaining_rho="999/1000"
    ),
    "ledger cap": altered_json("ledger.json", cap_rho="1/1000"),
    "ledger population": altered_json("ledger.json", population="others"),
    "ledger relation": altered_json("ledger.json", relation="replace_one"),
    "ledger rubbish": altered_json("ledger.json", spends=5),
    "ledger hash": lambda files: files.update(
        {
            "ledger.json": files["ledger.json"].replace(
                b'"release_sha256": "', b'"release_sha256": "0'
            )
        }
    ),
    "plan population": swapped("plan.toml", b'name = "people"', b'name = "others"'),
    "plan unit": swapped("plan.toml", b"unit_rows = 2", b"unit_rows = 1"),
    "plan split": swapped("plan.toml", b'    "1/3",\n    "1/3",\n', b'    "1/2",\n    "1/6",\n'),
    "synthetic rows": lambda files: files.update(
        {"synthetic.csv": frame()[list(plan().released.names)].to_csv(index=False).encode()}
    ),
}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    data = write(folder / "data", "csv")
    (folder / "plan.toml").write_text(plan().to_toml())
    ledger = f"sqlite:///{folder / 'ledger.sqlite'}"
    done = core.runner.run(folder / "plan.toml", data, folder / "out", ledger_url=ledger)
    return dict(done.derived.files)


@pytest.mark.parametrize("lie", sorted(LIES))
def test_no_document_of_a_bundle_can_contradict_its_release(lie, published):
    files = dict(published)
    LIES[lie](files)
    assert files != published
    with pytest.raises(BundleError):
        verify(bundle_bytes(files, False))
