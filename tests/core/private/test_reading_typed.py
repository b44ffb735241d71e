"""Parquet and Excel: files that carry types."""

import io
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa

from core.private.reading import Limits, read_table
from tests.core.private.files import excel, parquet, refused


class TestParquet:  # F-04
    def test_types_are_kept_and_remembered(self):
        seen = [datetime(2024, 7, 1, 23, 30, tzinfo=UTC), None]
        table = pa.table(
            {
                "seen": pa.array(seen, pa.timestamp("us", tz="Europe/Berlin")),
                "grade": pa.DictionaryArray.from_arrays(
                    pa.array([0, 3], pa.int8()), pa.array(list("ABCDE")), ordered=True
                ),
                "fee": pa.array([Decimal("1.50"), None], pa.decimal128(8, 2)),
                "flag": pa.array([True, None]),
                "n": pa.array([2**60 + 1, None]),
                "k": pa.array([3, 0]).dictionary_encode(),
                "note": pa.nulls(2),
                "day": pa.array([date(1, 2, 3), None]),
                "text": ["None", None],
            }
        )
        raw = read_table(parquet(table), name="x.parquet")
        frame = raw.frame
        assert frame["seen"][0].isoformat() == "2024-07-02T01:30:00+02:00"
        assert frame["grade"].cat.categories.tolist() == list("ABCDE")
        assert frame["grade"].cat.ordered
        assert frame["fee"][0] == Decimal("1.50")
        assert frame["flag"].tolist() == [True, pd.NA]
        assert frame["n"][0] == 2**60 + 1
        assert frame["note"].isna().all()
        assert frame["day"][0].date() == date(1, 2, 3)
        assert frame["text"][0] == "None"
        assert frame.isna().iloc[1].tolist() == [
            True,
            False,
            True,
            True,
            True,
            False,
            True,
            True,
            True,
        ]
        assert raw.storage["seen"] == "timestamp[us, tz=Europe/Berlin]"
        assert raw.storage["fee"] == "decimal128(8, 2)"
        assert raw.storage["grade"].endswith("ordered=1>")

    def test_unsuitable_types_are_all_named_at_once(self):
        table = pa.table({"a": [[1]], "b": [{"x": 1}], "c": [b"secret"], "d": [1]})
        error = refused(parquet(table), r"columns 'a' \(list<", name="x.parquet")
        assert "'b' (struct<" in str(error)
        assert "'c' (binary)" in str(error)
        assert "'d'" not in str(error)
        assert "secret" not in str(error)

    def test_bombs_are_refused_by_their_metadata(self):
        table = pa.table({"a": pa.array([1.5]).take(pa.array([0] * 300_000))})
        small = parquet(table)
        assert len(small) < 10_000
        refused(
            small,
            "larger than 1,000,000 bytes",
            name="x.parquet",
            limits=Limits(unpacked_bytes=10**6),
        )
        refused(small, "more than 1000 rows", name="x.parquet", limits=Limits(rows=1000))

    def test_a_long_text_repeated_is_refused_before_it_is_unpacked(self):
        column = pa.array(["x" * 10_000]).take(pa.array([0] * 20_000))
        data = parquet(pa.table({"a": column}))
        assert len(data) < 100_000
        refused(data, "texts are larger", name="x.parquet", limits=Limits(unpacked_bytes=10**7))

    def test_empty_and_damaged(self):
        refused(parquet(pa.table({"a": pa.array([], pa.int64())})), "no row", name="x.parquet")
        good = parquet(pa.table({"a": ["secret"] * 50}))
        for cut in (6, len(good) // 2, len(good) - 3):
            error = refused(good[:cut], "damaged", name="x.parquet")
            assert "secret" not in str(error)

    def test_memory_of_pandas_changes_nothing(self):
        frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index([5, 6], name="person"))
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        assert set(read_table(buffer.getvalue()).names) == {"x", "person"}


class TestExcel:
    def test_cells_keep_their_types(self):
        raw = read_table(
            excel(
                [
                    ["n", "r", "t", "b", "d", "m", "e"],
                    [1, 1.5, "007", True, datetime(2024, 1, 31), 1, None],
                    [2, 2, "None", False, date(2024, 2, 29), "x", None],
                    [None, None, None, None, None, None, None],
                    [None, 3, None, None, None, 2.5, None],
                ]
            ),
            name="x.xlsx",
        )
        frame = raw.frame
        assert [str(kind) for kind in frame.dtypes] == [
            "Int64",
            "float64",
            "str",
            "boolean",
            "datetime64[us]",
            "object",
            "object",
        ]
        assert frame["m"].tolist() == [1, "x", 2.5]
        assert frame["d"].dt.date.tolist()[:2] == [date(2024, 1, 31), date(2024, 2, 29)]
        assert len(frame) == 3
        assert "empty rows were skipped" in raw.report.notes
        assert raw.storage["n"] == "int64"

    def test_sheets(self):
        data = excel([["a"], [1]], second=[["b"], [2]])
        raw = read_table(data)
        assert raw.names == ("a",)
        assert raw.report.sheets == ("first", "second")
        assert raw.report.notes == ("read from sheet 'first' of 2",)
        assert read_table(data, sheet="second").names == ("b",)
        assert read_table(data, sheet=2).names == ("b",)
        refused(
            data, "no sheet 'third'; the sheets are 'first', 'second'", name="x.xlsx", sheet="third"
        )
        refused(data, "no sheet 0", name="x.xlsx", sheet=0)

    def test_empty_sheets(self):
        refused(excel([]), "sheet 'first' is empty", name="x.xlsx")
        refused(excel([["a", "b"]]), "a header but no row", name="x.xlsx")

    def test_dates_mixed_with_numbers(self):  # F-03
        data = excel([["day", "x"], [datetime(2015, 5, 5), 1], [41640, 2], [None, 3]])
        error = refused(
            data, "column 'day' mixes dates and plain numbers.*day_numbers", name="x.xlsx"
        )
        assert "41640" not in str(error)
        raw = read_table(data, day_numbers=["day"])
        assert raw.frame["day"].dt.date.tolist()[:2] == [date(2015, 5, 5), date(2014, 1, 1)]
        refused(data, "day_numbers names 'tag'", name="x.xlsx", day_numbers=["tag"])

    def test_a_day_number_out_of_the_calendar(self):
        data = excel([["day"], [datetime(2015, 5, 5)], [-1e9]])
        error = refused(
            data, "column 'day' holds a number that is no day", name="x.xlsx", day_numbers=["day"]
        )
        assert "1000000000" not in str(error)

    def test_bombs(self):
        data = excel([["a"], *[["x" * 500]] * 400])
        refused(
            data,
            "it is larger than 10,000 bytes",
            name="x.xlsx",
            limits=Limits(unpacked_bytes=10_000),
        )
        refused(data, "larger than 10 rows", name="x.xlsx", limits=Limits(rows=10))

    def test_damaged_workbooks(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("xl/workbook.xml", "<secret")
        error = refused(buffer.getvalue(), "the workbook is damaged", name="x.xlsx")
        assert "secret" not in str(error)
        refused(excel([["a"], [1]])[:-30], "cannot be opened as a zip file", name="x.xlsx")
