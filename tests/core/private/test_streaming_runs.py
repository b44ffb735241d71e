"""Whole runs on tables that pass through in batches: the releases of a table in memory."""

from dataclasses import replace
from fractions import Fraction

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from core import demo
from core.__main__ import main
from core.attachment import attach, attach_source, open_for
from core.errors import Cancelled, LedgerError, PlanError, ReadingError, ReleaseError
from core.measuring import identities_for, measure
from core.plan_parts import CovariancePlan, PosteriorPlan
from core.private import streaming_parquet
from core.private.batches import BatchedSource
from core.private.fingerprint import declared_mark, secret
from core.private.ledger import Ledger, SpendState
from core.private.streaming import StreamedBatches, StreamedTable, open_table, survey
from core.pumba.specification import AnalysisKind, AnalysisSpec
from core.releases import Unit
from core.runner import run
from core.starting import demo_plan

ROWS = 3000


@pytest.fixture(scope="module")
def plan():
    whole = demo_plan("hiring", ROWS)
    spec = AnalysisSpec(AnalysisKind.MEAN, "mean age", outcome="age")
    numbers = ("age", "experience_years", "interview_score")
    return replace(
        whole,
        posteriors=(PosteriorPlan(spec, Fraction(1, 10)),),
        covariance=CovariancePlan(numbers, Fraction(1, 10)),
    )


@pytest.fixture
def places(tmp_path, plan):
    """The demo as one CSV file, as a folder of Parquet files and as a folder of CSV files."""
    whole = tmp_path / "demo.csv"
    whole.write_bytes(demo.csv_bytes("hiring", rows=ROWS, seed=0))
    (tmp_path / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    texts = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(plan.schema.names, pyarrow.string()), strings_can_be_null=False
    )
    table = pyarrow.csv.read_csv(whole, convert_options=texts)
    for name in ("parquet", "csv"):
        (tmp_path / name).mkdir()
        for piece in range(3):
            part = table.slice(piece * 1100, 1100)
            path = tmp_path / name / f"part-{piece}.{name}"
            if name == "parquet":
                pq.write_table(part, path, row_group_size=400)
            else:
                pyarrow.csv.write_csv(part, path)
    return {name: tmp_path / name for name in ("demo.csv", "parquet", "csv")} | {
        "glob": tmp_path / "parquet" / "*.parquet"
    }


def files_of(result):
    return {name: path.read_bytes() for name, path in result.paths.items()}


def test_privci_pumba_and_pace_release_the_same_from_every_source(tmp_path, places):
    found = {
        name: files_of(run(tmp_path / "plan.toml", path, tmp_path / f"{name} out", simulate=5))
        for name, path in places.items()
    }
    for name in ("synthetic.csv", "tree.json", "posterior.csv", "covariance.csv", "bundle.zip"):
        assert name in found["demo.csv"]
    assert all(files == found["demo.csv"] for files in found.values())


def test_each_algorithm_alone_releases_the_same(tmp_path, places, plan):
    for parts in (
        {"posteriors": (), "covariance": None},
        {"tree": None, "covariance": None},
        {"tree": None, "posteriors": ()},
    ):
        (tmp_path / "plan.toml").write_text(replace(plan, **parts).to_toml(), encoding="utf-8")
        one, other = (
            files_of(run(tmp_path / "plan.toml", places[name], tmp_path / f"{name} 2", simulate=9))
            for name in ("demo.csv", "parquet")
        )
        assert one == other


def test_a_table_is_known_however_it_is_read(plan, places):
    ledger = Ledger("sqlite://")
    ids = set()
    for path in places.values():
        attached = attach(plan, open_for(plan, path), ledger)
        ids.add(attached.table_id)
        assert "BatchedSource" not in repr(attached)
    assert len(ids) == 1
    twin = replace(plan, population=replace(plan.population, name="others"))
    attached = attach(twin, open_for(twin, places["parquet"]), ledger)
    assert any("attached before" in note for note in attached.notes)


def test_the_command_line_replays_a_folder_for_free(tmp_path, places, capsys):
    line = [
        "run",
        str(tmp_path / "plan.toml"),
        "--ledger",
        f"sqlite:///{tmp_path / 'books.sqlite'}",
    ]
    for place, said in (
        ("glob", "spent rho = 7/10"),
        ("parquet", "replayed"),
        ("demo.csv", "replayed"),
    ):
        out = ["--data", str(places[place]), "--out", str(tmp_path / "out")]
        assert main([*line, *out]) == 0
        assert said in capsys.readouterr().out


def test_writing_into_the_folder_of_the_data_is_refused(tmp_path, places):
    for place in ("csv", "glob"):
        out = tmp_path / ("csv" if place == "csv" else "parquet")
        with pytest.raises(PlanError, match="read from there"):
            run(tmp_path / "plan.toml", places[place], out, simulate=1)


def test_persons_are_refused_before_anything_is_read(plan, places):
    persons = replace(plan.population, unit=Unit(2, "age"))
    with pytest.raises(ReadingError, match="'age'"):
        open_for(replace(plan, population=persons), places["parquet"])


# -- after the charge -------------------------------------------------------------------------


@pytest.fixture
def attached(plan, places, monkeypatch):
    monkeypatch.setattr(streaming_parquet, "BATCH_ROWS", 300)
    return attach(plan, open_for(plan, places["parquet"]), Ledger("sqlite://"))


def test_a_file_that_changes_after_the_charge_leaves_spent_and_no_result(plan, places, attached):
    changed = places["parquet"] / "part-1.parquet"
    whole = pq.read_table(changed)
    pq.write_table(whole.slice(1), changed)
    identities = identities_for(plan, attached)
    with pytest.raises(ReleaseError, match=r"part-1\.parquet: the file was changed") as caught:
        measure(attached, plan, identities)
    spends = list(attached.ledger.spends(plan.population.name))
    assert {spend.state for spend in spends} == {SpendState.NO_RESULT}
    assert any("part-1.parquet" in spend.message for spend in spends)
    values = {str(value) for column in whole.columns for value in column.unique().to_pylist()}
    words = set(str(caught.value).split()) | {w for s in spends for w in s.message.split()}
    assert not words & {value for value in values if len(value) > 3}


def test_a_cancel_between_batches_keeps_what_was_paid(plan, attached):
    heard = []

    def progress(stage, done, total, detail):
        heard.append(stage)
        if heard.count("rows") == 20:  # in the second pass, after the one-way tables
            raise Cancelled("cancelled")

    only = replace(plan, posteriors=(), covariance=None)
    (one,) = measure(attached, only, identities_for(only, attached), progress)
    assert one.release.partial
    assert one.release.one_way
    assert not one.release.two_way
    (spend,) = attached.ledger.spends(plan.population.name)
    assert spend.state is SpendState.PARTIAL


def test_a_cancel_of_the_first_look_costs_nothing(tmp_path, places):
    def progress(stage, done, total, detail):
        raise Cancelled("cancelled")

    url = f"sqlite:///{tmp_path / 'books.sqlite'}"
    with pytest.raises(PlanError, match="nothing was spent"):
        run(
            tmp_path / "plan.toml",
            places["parquet"],
            tmp_path / "out",
            ledger_url=url,
            progress=progress,
        )
    assert Ledger(url).populations() == []


def test_nothing_is_charged_for_a_folder_with_a_damaged_file(tmp_path, places):
    file = places["parquet"] / "part-2.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:200] + b"\xff" * 400 + whole[600:])
    url = f"sqlite:///{tmp_path / 'books.sqlite'}"
    with pytest.raises(ReadingError, match=r"part-2\.parquet"):
        run(tmp_path / "plan.toml", places["parquet"], tmp_path / "out", ledger_url=url)
    assert Ledger(url).populations() == []
    assert not (tmp_path / "out").exists()


# -- the seam ---------------------------------------------------------------------------------


def test_any_source_can_be_attached_under_a_declared_name(plan, places):
    ledger = Ledger("sqlite://")
    table = open_table(places["parquet"])
    rows = survey(table, secret(ledger)).rows
    source = BatchedSource(StreamedBatches(table, plan.encoded, rows), plan.population.unit)
    mark = declared_mark(secret(ledger), "warehouse", "applicants", "2026")
    note = "recognised by its declared name and version, not by its rows"
    found = attach_source(plan, source, mark, ledger, notes=(note,))
    assert note in found.notes
    again = attach_source(plan, source, mark, ledger)
    other = attach_source(plan, source, declared_mark(secret(ledger), "2027"), ledger)
    assert found.table_id == again.table_id != other.table_id
    persons = replace(plan.population, name="persons", unit=Unit(2, "age"))
    with pytest.raises(Exception, match="cut to the rows a person"):
        attach_source(replace(plan, population=persons), source, mark, ledger)
    clash = replace(plan.population, unit=Unit(3))
    with pytest.raises(LedgerError, match="another unit of protection"):
        attach_source(replace(plan, population=clash), source, mark, ledger)


def test_a_simulated_stream_must_be_the_demo(plan, places, tmp_path):
    assert isinstance(open_for(plan, places["csv"]), StreamedTable)
    assert not isinstance(open_for(plan, places["demo.csv"]), StreamedTable)
    (places["csv"] / "part-0.csv").unlink()
    with pytest.raises(Exception, match="not the embedded demo"):
        run(tmp_path / "plan.toml", places["csv"], tmp_path / "out", simulate=1)
