"""Field cases about files: names, missing markers, dates and types as they are read.

Each case is a failure that users of neighbouring tools reported; its number is in the test's name.
"""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.__main__ import main
from core.bundle import verify
from core.plan import ReadingPlan
from core.schema import Column, Kind
from tests.core.field_cases import (
    csv_text,
    draft,
    files_in,
    plan,
    release,
    run,
    save,
    spends,
    write,
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Each test has a ledger and a secret of its own."""
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path / "home"))


# -- F-01: names ------------------------------------------------------------------------------

PEOPLE = [["age", "age", "", "city"], [34, 35, "x", "Ulm"], [51, 50, "y", "Jena"]]


@pytest.mark.parametrize(("sign", "word"), [("\t", "tab"), (",", "comma")])
def test_f01_repeated_and_missing_names_are_one_message_with_an_offer(tmp_path, capsys, sign, word):
    data = write(tmp_path / "people.csv", csv_text(PEOPLE, sign))
    path = tmp_path / "plan.toml"
    assert main(["draft", "--data", str(data), "--out", str(path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "'age' appears twice" in line
    assert "column 3 without a name" in line
    assert "age, age_2, column_3, city" in line
    assert not path.exists()
    names = draft(data, path, "--accept-names").schema.names
    assert names == ("age", "age_2", "column_3", "city")
    assert f"separated by {word}" in capsys.readouterr().err
    assert draft(data, tmp_path / "again.toml", "--accept-names").schema.names == names


def test_f01_offered_names_can_be_edited_and_stay(tmp_path):
    data = write(tmp_path / "people.csv", csv_text(PEOPLE, "\t"))
    columns = [
        Column("age", Kind.INTEGER, lower=0, upper=99, bins=2),
        Column("age at visit", Kind.INTEGER, lower=0, upper=99, bins=2),
        Column("mark", Kind.CATEGORICAL, categories=("x", "y")),
        Column("city", Kind.CATEGORICAL, categories=("Ulm", "Jena")),
    ]
    edited = ReadingPlan(rename={"age_2": "age at visit", "column_3": "mark"})
    path = save(plan(columns, reading=edited), tmp_path / "plan.toml")
    one = release(path, data, tmp_path / "one")
    assert one.rows()[0] == ["age", "age at visit", "mark", "city"]
    two = release(path, data, tmp_path / "two")
    assert two.rows()[0] == one.rows()[0]
    assert len(spends()) == 1  # recognised as the same table under the same names
    exact = plan(columns, "1000000", reading=edited)
    counts = release(save(exact, path), data, tmp_path / "out", seed=0).one_way
    assert counts["mark"]["x"] == counts["mark"]["y"] == 1  # the third column, not another one


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("workbook", "an Excel workbook"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "a picture (PNG)"),
        (b"\xff\xd8\xff\xe0" + bytes(200), "a picture (JPEG)"),
        (b"age\tcity\n", "no row below it"),
        (b"", "empty"),
    ],
)
def test_f01_renamed_and_empty_files_cost_nothing_and_keep_earlier_work(
    tmp_path, capsys, content, words
):
    columns = [Column("city", Kind.CATEGORICAL, categories=("Ulm", "Jena"))]
    path = save(plan(columns), tmp_path / "plan.toml")
    good = write(tmp_path / "good.csv", "city\n" + "Ulm\nJena\n" * 20)
    release(path, good, tmp_path / "out")
    before = files_in(tmp_path / "out")
    if content == "workbook":
        buffer = io.BytesIO()
        pd.DataFrame({"city": ["Ulm"]}).to_excel(buffer, index=False)
        content = buffer.getvalue()
    capsys.readouterr()
    assert run(path, write(tmp_path / "people.csv", content), tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("justitia: people.csv: ")
    assert words in line
    assert len(spends()) == 1
    assert files_in(tmp_path / "out") == before


# -- F-02: missing markers --------------------------------------------------------------------

THYROID = [
    ["41", "1.3", "F", "no"],
    ["23", "?", "M", "no"],
    ["46", "0.98", "?", "no"],
    ["70", "0.16", "F", "yes"],
    ["?", "0.72", "F", "no"],
    ["18", "?", "M", "no"],
]
HEADER = ["age", "tsh", "sex", "sick"]


def thyroid(marker: str) -> str:
    rows = [[marker if cell == "?" else cell for cell in row] for row in THYROID]
    return csv_text([HEADER, *rows * 50])


# The shares scatter by about 0.5 points (two-way sigma 2.1 on 300 rows), so that a correct program
# misses 3 points with a probability near 1e-9: real noise will do.
@pytest.mark.parametrize("marker", ["?", "-", "n/a"])
def test_f02_markers_are_proposed_as_missing_and_come_back_as_missing(tmp_path, capsys, marker):
    data = write(tmp_path / "thyroid.csv", thyroid(marker))
    path = tmp_path / "plan.toml"
    drafted = draft(data, path, "--suggest")
    told = capsys.readouterr().err
    kinds = {column.name: column.kind for column in drafted.schema.columns}
    assert kinds["age"] is Kind.INTEGER
    assert kinds["tsh"] is Kind.REAL
    for name in ("age", "tsh", "sex"):
        assert marker in drafted.schema[name].missing_markers
    assert f"columns 'age', 'tsh', 'sex': {marker!r} is read as missing; take it off" in told
    write(path, path.read_text().replace('rho = "1/10"', 'rho = "1"'))
    out = release(path, data, tmp_path / "out")
    table = out.synthetic
    for name, share in (("age", 1 / 6), ("tsh", 1 / 3), ("sex", 1 / 6)):
        assert (table[name] == "").mean() == pytest.approx(share, abs=0.03)
    for name, bounds in (("age", (18, 70)), ("tsh", (0.16, 1.3))):
        numbers = pd.to_numeric(table[name][table[name] != ""], errors="raise")
        assert numbers.between(*bounds).all()
    assert set(table["sex"]) <= {"F", "M", "", "(other)"}
    assert marker not in set(table.to_numpy().ravel())


def test_f02_999_is_only_suggested(tmp_path, capsys):
    data = write(tmp_path / "thyroid.csv", thyroid("999"))
    drafted = draft(data, tmp_path / "plan.toml", "--suggest")
    told = capsys.readouterr().err
    for name in ("age", "tsh"):
        assert "999" not in drafted.schema[name].missing_markers
        assert drafted.schema[name].upper == 999
    assert "columns 'age', 'tsh': 999 lies far from all other values and may mean missing" in told
    assert "999" in drafted.schema["sex"].categories  # a label among labels: not ours to decide


def test_f02_a_category_called_none_stays_a_category(tmp_path, capsys):
    rows = [["None" if cell == "?" else cell for cell in row] for row in THYROID]
    data = write(tmp_path / "thyroid.csv", csv_text([HEADER, *rows * 50]))
    drafted = draft(data, tmp_path / "plan.toml", "--suggest")
    assert "column 'sex': 'None' is kept as a category" in capsys.readouterr().err
    assert drafted.schema["sex"].categories == ("F", "M", "None")
    assert drafted.schema["age"].kind is Kind.INTEGER  # among numbers it can be nothing else
    path = save(plan([drafted.schema[name] for name in HEADER]), tmp_path / "declared.toml")
    table = release(path, data, tmp_path / "out", seed=1).synthetic
    assert (table["sex"] == "None").mean() == pytest.approx(1 / 6, abs=0.03)
    assert (table["sex"] == "").mean() < 0.03


# -- F-03: dates as numbers -------------------------------------------------------------------

DAYS = [20240131, 20231215, 20220705, 20211111, 20200229]


def days_file(tmp_path):
    rows = [[day, 10 * index] for index, day in enumerate(DAYS)] * 40
    return write(tmp_path / "days.csv", csv_text([["day", "amount"], *rows]))


def test_f03_run_together_dates_are_offered_and_stay_days(tmp_path, capsys):
    data = days_file(tmp_path)
    path = tmp_path / "plan.toml"
    column = draft(data, path, "--suggest").schema["day"]
    assert (column.kind, column.date_format) == (Kind.DATE, "%Y%m%d")
    assert (column.lower, column.upper) == ("2020-02-29", "2024-01-31")
    told = capsys.readouterr().err
    assert "column 'day': whole numbers read as dates" in told
    assert "if kept as numbers instead, synthetic days may be impossible" in told
    written = release(path, data, tmp_path / "out").synthetic["day"]
    days = [datetime.strptime(text, "%Y%m%d").date() for text in written if text]
    assert len(days) > 100
    assert all(len(text) in (0, 8) for text in written)
    assert min(days) >= date(2020, 2, 29)
    assert max(days) <= date(2024, 1, 31)


def test_f03_kept_as_numbers_they_stay_within_their_bounds(tmp_path):
    columns = [
        Column("day", Kind.INTEGER, lower=20200101, upper=20241231, bins=5),
        Column("amount", Kind.INTEGER, lower=0, upper=40, bins=5),
    ]
    path = save(plan(columns), tmp_path / "plan.toml")
    written = release(path, days_file(tmp_path), tmp_path / "out").synthetic["day"]
    numbers = written[written != ""].astype(int)
    assert numbers.between(20200101, 20241231).all()
    assert len(numbers) > 150


@pytest.fixture
def mixed_workbook(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["day", "amount"])
    for index in range(200):
        sheet.append([datetime(2013, 1, 1) + timedelta(days=3 * index), index % 4])
    sheet.append([41640, 3])
    book.save(tmp_path / "days.xlsx")
    return tmp_path / "days.xlsx"


def test_f03_a_mixed_excel_column_is_named_and_can_be_read_as_day_numbers(
    mixed_workbook, tmp_path, capsys
):
    path = tmp_path / "plan.toml"
    assert main(["draft", "--data", str(mixed_workbook), "--out", str(path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "column 'day'" in line
    assert "day_numbers" in line
    assert "41640" not in line
    columns = [
        Column("day", Kind.DATE, lower="2013-01-01", upper="2014-12-31"),
        Column("amount", Kind.INTEGER, lower=0, upper=3),
    ]
    exact = plan(columns, "1000000", reading=ReadingPlan(day_numbers=("day",)))
    out = release(save(exact, path), mixed_workbook, tmp_path / "out", seed=0)
    january = sum(
        date(2014, 1, 1) <= date(2013, 1, 1) + timedelta(days=3 * i) < date(2014, 2, 1)
        for i in range(200)
    )
    assert out.one_way["day"]["2014-01-01 to 2014-01-31"] == january + 1
    assert set(out.synthetic["day"].str[:4]) == {"2013", "2014"}
    drafted = draft(mixed_workbook, path, "--suggest", "--day-numbers", "day")
    assert drafted.reading.day_numbers == ("day",)
    assert drafted.schema["day"].kind is Kind.DATE
    assert drafted.schema["day"].lower == "2013-01-01"


# -- F-04: types of Parquet -------------------------------------------------------------------

ROWS = 10_000


def typed_table(note_type: pa.DataType) -> pa.Table:
    generator = np.random.default_rng(4)
    start = datetime(2023, 1, 1, tzinfo=UTC)
    hours = generator.integers(0, 24 * 365, ROWS)
    flags = generator.integers(0, 3, ROWS)
    return pa.table(
        {
            "seen": pa.array([start + timedelta(hours=int(h)) for h in hours]).cast(
                pa.timestamp("us", tz="Europe/Berlin")
            ),
            "grade": pa.DictionaryArray.from_arrays(
                pa.array(generator.integers(0, 4, ROWS), pa.int8()),
                pa.array(list("ABCDE")),
                ordered=True,
            ),
            "fee": pa.array(
                [Decimal(int(cents)) / 100 for cents in generator.integers(0, 50_000, ROWS)],
                pa.decimal128(8, 2),
            ),
            "flag": pa.array([None if f == 2 else bool(f) for f in flags], pa.bool_()),
            "k": pa.DictionaryArray.from_arrays(
                pa.array(np.tile([0, 1, 2, 3], ROWS // 4), pa.int8()),
                pa.array([0, 1, 2, 3], pa.int64()),
            ),
            "note": pa.nulls(ROWS, note_type),
        }
    )


# Counts scatter by about 3 persons (six columns at rho = 1), against a tolerance of 100.
@pytest.mark.parametrize("note_type", [pa.null(), pa.string()], ids=str)
def test_f04_parquet_types_are_read_and_written_again(tmp_path, note_type):
    table = typed_table(note_type)
    data = tmp_path / "typed.parquet"
    pq.write_table(table, data)
    path = tmp_path / "plan.toml"
    drafted = draft(data, path, "--suggest")
    assert drafted.schema["grade"].categories == tuple("ABCDE")
    assert drafted.schema["grade"].kind is Kind.ORDINAL
    text = path.read_text().replace('rho = "1/10"', 'rho = "1"')
    write(path, text.replace("[synthetic]\n", '[synthetic]\nfiles = ["csv", "parquet"]\n'))
    out = release(path, data, tmp_path / "out")
    made = pq.read_table(out.path("synthetic.parquet"))
    assert made.schema.names == table.schema.names
    assert made.schema.types == pq.read_table(data).schema.types
    shares = made["k"].to_pandas().value_counts(normalize=True)
    assert sorted(shares.index) == [0, 1, 2, 3]
    assert shares.to_numpy() == pytest.approx(0.25, abs=0.01)
    grades = made["grade"].to_pandas()
    assert list(grades.cat.categories) == [*"ABCDE", "(other)"]
    assert grades.cat.ordered
    assert (grades == "E").mean() < 0.01
    assert made["note"].null_count == made.num_rows
    moments = made["seen"].to_pandas().dropna()
    assert str(moments.dt.tz) == "Europe/Berlin"
    assert moments.dt.year.isin([2022, 2023, 2024]).all()
    assert made["flag"].null_count / made.num_rows == pytest.approx(1 / 3, abs=0.02)
    # The CSV says the same: two decimals, an empty note.
    plain = out.synthetic
    assert plain["note"].eq("").all()
    fees = plain["fee"][plain["fee"] != ""]  # noise may give the missing-cell a few rows
    assert fees.map(float).between(0, 500).all()
    assert fees.str.fullmatch(r"\d+(\.\d{1,2})?").all()
    assert verify(out.path("bundle.zip")).checks


def test_f04_types_that_cannot_be_read_are_refused_by_name_before_any_charge(tmp_path, capsys):
    data = tmp_path / "typed.parquet"
    pq.write_table(
        pa.table({"k": [1, 2], "tags": [["a"], ["b"]], "wait": [timedelta(1)] * 2}), data
    )
    path = save(plan([Column("k", Kind.INTEGER, lower=0, upper=3)]), tmp_path / "plan.toml")
    assert run(path, data, tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "'tags' (list<" in line
    assert "'wait' (duration[us])" in line
    assert not spends()
