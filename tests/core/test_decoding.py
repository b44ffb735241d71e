"""Cells back to values, and tables to files."""

import io
import itertools
from datetime import date
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from core.arrow_types import arrow_type
from core.decoding import csv_bytes, decode, parquet_bytes
from core.errors import SchemaError
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.private.reading import read_table
from core.schema import Column, Kind, Schema

from .schema_strategies import QUICK, schemas


def rng(seed=0):
    return np.random.default_rng(seed)


def one(column, codes, seed=0):
    return decode({column.name: np.array(codes)}, Schema((column,)), rng(seed))[column.name]


def every_cell(schema, copies=3):
    """Codes from the last cell down, so that missing and other are always among them."""
    rows = copies * min(max(column.size for column in schema.modelled), 300)
    return {c.name: np.resize(np.arange(c.size)[::-1], rows) for c in schema.modelled}


def certain(column, codes):
    """Rows whose cell must come back: all but those of an other-cell, whose values are unknown."""
    if column.other_code is None or column.other_code < column.declared_size:
        return codes >= 0
    return (codes != column.other_code) | (column.other_code == column.missing_code)


class TestValues:
    def test_labels_come_back_letter_for_letter(self):
        labels = ("klein", " Łódź ", "東京", 'a,"b"', "=1+1", "x\ny")
        column = Column("x", Kind.CATEGORICAL, categories=labels)
        values = one(column, [5, 1, 0, 6, 7, 2, 3, 4])
        assert values[:3].tolist() == ["x\ny", " Łódź ", "klein"]
        assert values[3] == "(other)"
        assert pd.isna(values[4])
        assert values.cat.categories.tolist() == [*labels, "(other)"]
        assert not values.cat.ordered

    def test_ordinals_stay_ordered(self):
        column = Column("x", Kind.ORDINAL, categories=("low", "high"), other_label="low")
        values = one(column, [1, 0, 2])
        assert values.cat.ordered
        assert values.cat.categories.tolist() == ["low", "high"]
        assert values.max() == "high"

    def test_a_missing_cell_that_is_a_category_keeps_its_label(self):
        column = Column("x", Kind.CATEGORICAL, categories=("a", "unknown"), missing_label="unknown")
        assert one(column, [1]).tolist() == ["unknown"]

    def test_an_empty_column_stays_empty(self):
        column = Column("x", Kind.CATEGORICAL, other_label="(missing)")
        assert one(column, [0, 0]).isna().all()

    def test_integers_are_uniform_within_their_cell_and_stay_integers(self):
        column = Column("x", Kind.INTEGER, lower=18, upper=97, bins=4)
        values = one(column, [1] * 20_000)
        assert values.dtype == "Int64"
        counts = values.value_counts().reindex(range(38, 58), fill_value=0)
        assert counts.sum() == 20_000
        assert chisquare(counts).pvalue > 1e-4

    def test_missing_and_other_are_empty_and_the_type_stays_numeric(self):
        column = Column("x", Kind.INTEGER, lower=0, upper=1, out_of_domain="other")
        values = one(column, [0, 1, 2, 3])
        assert values.dtype == "Int64"
        assert values.isna().tolist() == [False, False, True, True]
        column = Column("x", Kind.REAL, lower=0, upper=1, bins=2)
        values = one(column, [0, 2])
        assert values.dtype == "float64"
        assert values.isna().tolist() == [False, True]

    def test_reals_without_decimals_have_no_point(self):
        column = Column("x", Kind.REAL, lower=0, upper=40, bins=2, decimals=0)
        codes = {"x": np.array([0, 1, 2, 1])}
        frame = decode(codes, Schema((column,)), np.random.default_rng(0))
        assert frame["x"].dtype == "Int64"
        assert frame["x"].isna().tolist() == [False, False, True, False]
        assert 0 <= frame["x"][0] < 20 <= frame["x"][1] <= 40
        assert b"." not in csv_bytes(frame)

    def test_reals_are_uniform_and_keep_their_decimals(self):
        column = Column("x", Kind.REAL, lower=0.05, upper=0.95, bins=3, decimals=1)
        values = one(column, [1] * 6000 + [2] * 6000)
        assert set(values) == {0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
        assert chisquare(values[:6000].value_counts()).pvalue > 1e-4
        plain = one(Column("x", Kind.REAL, lower=-1, upper=3, bins=1), [0] * 10_000)
        assert abs(plain.mean() - 1) < 0.05
        assert plain.nunique() > 9_000

    def test_dates_are_calendar_days_in_their_form(self):
        column = Column(
            "x", Kind.DATE, lower="2024-01-15", upper="2024-12-31", date_format="%d.%m.%Y"
        )
        values = one(column, [0] * 200 + [1] * 2000 + [12])
        assert set(values[:200]) == {f"{day}.01.2024" for day in range(15, 32)}
        assert len(set(values[200:2200])) == 29
        assert pd.isna(values[2200])
        assert values.dtype == "str"

    def test_column_order_of_the_schema_changes_no_value(self):
        columns = [
            Column("b", Kind.INTEGER, lower=0, upper=999, bins=1),
            Column("a", Kind.REAL, lower=0, upper=1, bins=1),
        ]
        codes = {"a": np.zeros(50, dtype=np.uint8), "b": np.zeros(50, dtype=np.uint8)}
        one_way = decode(codes, Schema(tuple(columns)), rng(3))
        other_way = decode(codes, Schema(tuple(columns[::-1])), rng(3))
        assert one_way.columns.tolist() == ["b", "a"]
        pd.testing.assert_frame_equal(one_way[["a", "b"]], other_way)

    def test_the_same_generator_gives_the_same_bytes(self):
        schema = Schema((Column("a", Kind.REAL, lower=0, upper=1),))
        codes = {"a": np.arange(17)}
        first, second = (decode(codes, schema, rng(5)) for _ in range(2))
        assert csv_bytes(first) == csv_bytes(second)
        assert parquet_bytes(first) == parquet_bytes(second)

    def test_no_rows(self):
        columns = [
            Column("c", Kind.CATEGORICAL, categories=("a",)),
            Column("i", Kind.INTEGER, lower=0, upper=1),
            Column("r", Kind.REAL, lower=0, upper=1, decimals=2),
            Column("d", Kind.DATE, lower="2024-01-01", upper="2024-02-01"),
        ]
        schema = Schema(tuple(columns))
        frame = decode({c.name: np.zeros(0, dtype=np.uint8) for c in columns}, schema, rng())
        assert len(frame) == 0
        assert [str(kind) for kind in frame.dtypes] == ["category", "Int64", "float64", "str"]

    @pytest.mark.parametrize(
        ("codes", "words"),
        [
            ({"x": np.array([4])}, "outside the domain"),
            ({"x": np.array([-1])}, "outside the domain"),
            ({"x": np.array([0.0])}, "vector of integers"),
            ({"x": np.array([[0]])}, "vector of integers"),
            ({}, "same columns"),
            ({"x": np.array([0]), "y": np.array([0])}, "'y': codes and schema"),
        ],
    )
    def test_codes_that_do_not_fit(self, codes, words):
        schema = Schema((Column("x", Kind.CATEGORICAL, categories=("a", "b")),))
        with pytest.raises(SchemaError, match=words):
            decode(codes, schema, rng())


class TestThereAndBack:
    @QUICK
    @given(schemas(), st.integers(0, 99))
    def test_frames_lead_back_to_their_codes(self, schema, seed):
        codes = every_cell(schema)
        frame = decode(codes, schema, rng(seed))
        table = encode(RawTable(frame, "synthetic", ReadingReport("csv")), schema)
        for column in schema.modelled:
            keep = certain(column, codes[column.name])
            assert np.array_equal(table.codes[column.name][keep], codes[column.name][keep])

    @QUICK
    @given(schemas(), st.integers(0, 99), st.booleans())
    def test_csv_files_lead_back_to_their_codes(self, schema, seed, spreadsheet):
        codes = every_cell(schema)
        data = csv_bytes(decode(codes, schema, rng(seed)), spreadsheet=spreadsheet)
        raw = read_table(
            data, formula_guard=spreadsheet, delimiter=",", decimal=".", encoding="utf-8"
        )
        assert raw.names == schema.names
        table = encode(raw, schema)
        for column in schema.modelled:
            keep = certain(column, codes[column.name])
            assert np.array_equal(table.codes[column.name][keep], codes[column.name][keep])

    @QUICK
    @given(schemas(), st.integers(0, 99))
    def test_parquet_files_lead_back_to_their_codes(self, schema, seed):
        codes = every_cell(schema)
        raw = read_table(parquet_bytes(decode(codes, schema, rng(seed)), schema))
        table = encode(raw, schema)
        for column in schema.modelled:
            keep = certain(column, codes[column.name])
            assert np.array_equal(table.codes[column.name][keep], codes[column.name][keep])


F18 = (
    "klein",
    "mittel",
    "groß",
    "Łódź",
    "Zoë",
    "東京",
    "a,b",
    'say "hi"',
    "line\nbreak",
    "-5",
    "=1+1",
    "'=x",
)


class TestSpreadsheets:  # F-18
    schema = Schema(
        (
            Column("größe", Kind.ORDINAL, categories=F18[:3], other_label="klein"),
            Column("stadt", Kind.CATEGORICAL, categories=F18[3:6]),
            Column("=kommentar", Kind.CATEGORICAL, categories=F18[6:]),
            Column("zahl", Kind.INTEGER, lower=-9, upper=-1),
        )
    )

    def frame(self):
        codes = {
            column.name: np.resize(np.arange(column.declared_size), 100)
            for column in self.schema.columns
        }
        return decode(codes, self.schema, rng()), codes

    @pytest.mark.parametrize("spreadsheet", [False, True])
    def test_both_variants_upload_back(self, tmp_path, spreadsheet):
        frame, codes = self.frame()
        path = tmp_path / "download.csv"
        path.write_bytes(csv_bytes(frame, spreadsheet=spreadsheet))
        data = path.read_bytes()
        assert data.startswith(b"\xef\xbb\xbf") == spreadsheet
        raw = read_table(path)
        assert raw.names == ("größe", "stadt", "=kommentar", "zahl")
        for column in self.schema.columns:
            assert raw.frame[column.name].tolist() == frame[column.name].astype(str).tolist()
        table = encode(raw, self.schema)
        assert all(np.array_equal(table.codes[name], codes[name]) for name in codes)
        assert raw.report.encoding == ("utf-8-sig" if spreadsheet else "utf-8")

    def test_the_guard_is_on_texts_and_names_of_the_spreadsheet_variant_only(self):
        frame, _ = self.frame()
        plain, guarded = csv_bytes(frame).decode(), csv_bytes(frame, spreadsheet=True).decode()
        assert "'=kommentar" in guarded.splitlines()[0]
        assert "'=1+1" in guarded
        assert "'-5," in guarded  # the category
        assert "''=x" in guarded  # a label with an apostrophe of its own
        assert "'-5" not in plain
        assert "'=1+1" not in plain
        assert not any(f"'{number}\r" in guarded for number in range(-9, 0))  # numbers stay

    def test_the_frame_itself_is_left_alone(self):
        frame, _ = self.frame()
        before = frame.copy(deep=True)
        csv_bytes(frame, spreadsheet=True)
        pd.testing.assert_frame_equal(frame, before)

    def test_same_labels_in_parquet(self):
        frame, _ = self.frame()
        table = pq.read_table(io.BytesIO(parquet_bytes(frame, self.schema)))
        assert table.column_names == list(self.schema.names)
        assert set(table.column("=kommentar").to_pylist()) == set(F18[6:])


class TestStoredTypes:  # F-04
    storage = MappingProxyType(
        {
            "seen": "timestamp[us, tz=Europe/Berlin]",
            "grade": "dictionary<values=string, indices=int8, ordered=1>",
            "fee": "decimal128(8, 2)",
            "flag": "bool",
            "k": "int64",
            "note": "null",
            "n": "int16",
            "day": "date32[day]",
        }
    )
    schema = Schema(
        (
            Column("seen", Kind.DATE, lower="2024-03-01", upper="2024-10-31"),
            Column("grade", Kind.ORDINAL, categories=tuple("ABCDE")),
            Column("fee", Kind.REAL, lower=0, upper=999, decimals=2),
            Column("flag", Kind.BOOLEAN, categories=("no", "yes")),
            Column("k", Kind.CATEGORICAL, categories=tuple("0123")),
            Column("note", Kind.CATEGORICAL, other_label="(missing)"),
            Column("n", Kind.INTEGER, lower=0, upper=100),
            Column("day", Kind.DATE, lower="2024-01-01", upper="2024-12-31", date_format="%Y%m%d"),
        )
    )

    def table(self, tmp_path):
        frame = decode(every_cell(self.schema), self.schema, rng())
        (tmp_path / "x.parquet").write_bytes(parquet_bytes(frame, self.schema, self.storage))
        return frame, pq.read_table(tmp_path / "x.parquet")

    def test_types_are_those_of_the_input(self, tmp_path):
        _, table = self.table(tmp_path)
        assert {field.name: str(field.type) for field in table.schema} == self.storage

    def test_values_are_those_of_the_frame(self, tmp_path):
        frame, table = self.table(tmp_path)
        fees = table.column("fee").to_pylist()
        for fee, value in zip(fees, frame["fee"], strict=True):
            assert (fee is None and np.isnan(value)) or fee == Decimal(f"{value:.2f}")
        flags = {"no": False, "yes": True, "(other)": None}
        expected = [None if pd.isna(label) else flags[label] for label in frame["flag"]]
        assert table.column("flag").to_pylist() == expected
        assert set(table.column("k").to_pylist()) == {0, 1, 2, 3, None}
        assert table.column("grade").combine_chunks().dictionary.to_pylist() == [
            *"ABCDE",
            "(other)",
        ]
        days = [None if pd.isna(text) else date.fromisoformat(text) for text in frame["day"]]
        assert table.column("day").to_pylist() == days
        for moment, text in zip(table.column("seen").to_pylist(), frame["seen"], strict=True):
            assert (moment is None and pd.isna(text)) or (
                moment.isoformat().startswith(f"{text}T00:00:00+0")
                and str(moment.tzinfo) == "Europe/Berlin"
            )
        assert table.column("note").null_count == len(frame)

    @pytest.mark.parametrize(
        ("column", "name"),
        [
            (Column("x", Kind.INTEGER, lower=0, upper=1000), "int8"),
            (Column("x", Kind.CATEGORICAL, categories=("a", "b")), "int64"),
            (Column("x", Kind.REAL, lower=0, upper=10**9, decimals=1), "decimal128(4, 2)"),
            (Column("x", Kind.INTEGER, lower=0, upper=9), "null"),
            (Column("x", Kind.INTEGER, lower=0, upper=9), "no such type"),
        ],
    )
    def test_values_that_do_not_fit_keep_their_own_type(self, column, name):
        schema = Schema((column,))
        frame = decode({"x": np.arange(column.declared_size)}, schema, rng())
        table = pq.read_table(io.BytesIO(parquet_bytes(frame, schema, {"x": name})))
        assert table.column("x").null_count == 0
        values = table.column("x").to_pylist()
        assert [str(value) for value in values] == [str(value) for value in frame["x"]]

    def test_midnights_that_do_not_exist_or_come_twice(self):
        # Clocks in Santiago skip midnight in spring, those in Havana repeat it in autumn.
        for zone, day in (("America/Santiago", "2024-09-08"), ("America/Havana", "2024-11-03")):
            schema = Schema((Column("x", Kind.DATE, lower=day, upper=day),))
            frame = decode({"x": np.zeros(2, dtype=np.int64)}, schema, rng())
            data = parquet_bytes(frame, schema, {"x": f"timestamp[ms, tz={zone}]"})
            table = pq.read_table(io.BytesIO(data))
            assert [str(m.date()) for m in table.column("x").to_pylist()] == [day, day]
            assert str(table.schema.field("x").type) == f"timestamp[ms, tz={zone}]"

    @pytest.mark.parametrize(
        "kind",
        [
            pa.bool_(),
            pa.int8(),
            pa.uint64(),
            pa.float32(),
            pa.float64(),
            pa.string(),
            pa.large_string(),
            pa.date32(),
            pa.date64(),
            pa.null(),
            pa.decimal128(10, -2),
            pa.decimal256(60, 4),
            *(
                pa.timestamp(u, tz)
                for u, tz in itertools.product(["s", "ns"], [None, "UTC", "+02:00"])
            ),
            pa.dictionary(pa.int8(), pa.large_string(), ordered=True),
        ],
        ids=str,
    )
    def test_names_of_types_lead_back_to_the_types(self, kind):
        assert arrow_type(str(kind)) == kind
