"""Coding whole tables: persons, odd moments, reported failures of others, speed."""

import math
import random
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding import decode
from core.errors import SchemaError
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.private.reading import read_table
from core.private.suggestions import suggest_schema
from core.releases import Unit
from core.schema import Column, Kind, Schema
from tests.core.private.coded import excel, labels, parquet, raw, texts
from tests.core.schema_strategies import QUICK


class TestPersons:
    schema = Schema((Column("visit", Kind.CATEGORICAL, categories=tuple("abcdefgh")),))

    def table(self, rows):
        frame = pd.DataFrame(rows, columns=["person", "visit"], dtype="str")
        return RawTable(frame, "visits", ReadingReport("csv"))

    def kept(self, rows, unit=None, key=b"secret"):
        unit = unit or Unit(2, "person")
        table = encode(self.table(rows), self.schema, unit=unit, key=key)
        assert table.unit == unit
        return sorted("abcdefgh"[code] for code in table.codes["visit"])

    rows = tuple((person, visit) for person in ("ann", "bob") for visit in "abcdefgh")

    def test_at_most_k_rows_a_person(self):
        for k in (1, 2, 7, 8, 9):
            assert len(self.kept(self.rows, Unit(k, "person"))) == 2 * min(k, 8)

    def test_the_order_of_the_file_changes_nothing(self):
        shuffled = list(self.rows)
        random.Random(1).shuffle(shuffled)
        assert self.kept(self.rows) == self.kept(shuffled)

    def test_the_order_of_the_columns_changes_nothing(self):
        table = self.table(self.rows)
        turned = RawTable(table.frame[["visit", "person"]], "visits", table.report)
        unit = Unit(2, "person")
        one, two = (encode(t, self.schema, unit=unit, key=b"k") for t in (table, turned))
        assert one.codes["visit"].tolist() == two.codes["visit"].tolist()

    def test_a_person_s_rows_do_not_depend_on_others(self):
        ann = [row for row in self.rows if row[0] == "ann"]
        bob = [row for row in self.rows if row[0] == "bob"]
        assert self.kept(self.rows) == sorted(self.kept(ann) + self.kept(bob))

    def test_the_key_decides(self):
        kept = {tuple(self.kept(self.rows, key=bytes([number]))) for number in range(20)}
        assert len(kept) > 10
        assert self.kept(self.rows, key=b"x" * 100) == self.kept(self.rows, key=b"x" * 100)

    def test_every_row_has_its_chance(self):
        ann = [("ann", visit) for visit in "abcdefgh"]
        counts = dict.fromkeys("abcdefgh", 0)
        for number in range(800):
            for visit in self.kept(ann, Unit(1, "person"), key=number.to_bytes(2, "big")):
                counts[visit] += 1
        assert sum(counts.values()) == 800
        assert all(60 < count < 145 for count in counts.values())  # 100 +- 4.5 sd

    def test_equal_rows_are_counted_one_by_one(self):
        assert len(self.kept([("ann", "a")] * 5)) == 2
        assert self.kept([("ann", "a")] * 2 + [("bob", "a")] * 2) == ["a"] * 4

    def test_equal_rows_are_drawn_one_by_one(self):
        rows = [("ann", visit) for visit in "aabc"]
        both = sum(
            self.kept(rows, key=number.to_bytes(2, "big")) == ["a", "a"] for number in range(600)
        )
        assert 60 < both < 140  # a sixth of the pairs, 100 +- 4.4 sd; a third if drawn as a block

    def test_rows_without_an_id_are_left_out(self):
        rows = [("", "a"), ("  ", "b"), ("", "c"), ("ann", "d")]
        assert self.kept(rows) == ["d"]
        schema = Schema(
            (*self.schema.columns, Column("person", Kind.IDENTIFIER, missing_markers=("?",)))
        )
        table = self.table([("?", "a"), ("", "b"), ("?", "c")])
        assert encode(table, schema, unit=Unit(1, "person"), key=b"k").rows == 0

    def test_ids_are_compared_after_stripping_and_across_types(self):
        assert len(self.kept([("7", "a"), (" 7", "b"), ("7 ", "c")])) == 2
        frame = pd.DataFrame({"person": [7, 7.0, "7", None], "visit": list("abcd")})
        table = RawTable(frame, "visits", ReadingReport("excel"))
        assert encode(table, self.schema, unit=Unit(1, "person"), key=b"k").rows == 1

    def test_the_column_must_be_there(self):
        with pytest.raises(
            SchemaError, match="no column is called 'persons'; did you mean 'person'"
        ):
            self.kept(self.rows, Unit(2, "persons"))

    def test_without_an_id_nothing_is_dropped(self):
        assert len(self.kept(self.rows, Unit(2))) == 16


class TestBeyondTheCalendar:
    """One moment that no calendar shows must not stop a table: it is out of domain, no more."""

    kinds = st.sampled_from(
        [pa.timestamp(u, tz) for u in ("s", "ms", "us", "ns") for tz in (None, "Europe/Berlin")]
        + [pa.date32(), pa.date64()]
    )
    moments = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**62), 2**62))

    @QUICK
    @given(kinds, st.lists(moments, min_size=1, max_size=4))
    def test_any_moment(self, kind, values):
        day = 24 * 60 * 60 * 1000
        if kind == pa.date32():
            values = [value and value % 2**32 - 2**31 for value in values]
        if kind == pa.date64():
            values = [value and value // day * day for value in values]
        if kind in (pa.timestamp("s"), pa.timestamp("s", "Europe/Berlin")):
            values = [value and value // 1000 for value in values]  # Parquet keeps milliseconds
        data = parquet(
            {"t": pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)}
        )
        table = read_table(data)
        for other in ("clip", "other"):
            column = Column(
                "t", Kind.DATE, lower="1999-01-01", upper="2001-12-31", out_of_domain=other
            )
            label = Column("t", Kind.CATEGORICAL, categories=("a",))
            number = Column("t", Kind.INTEGER, lower=0, upper=1)
            for declared in (column, label, number):
                coded = encode(table, Schema((declared,)))
                missing = coded.codes["t"] == declared.missing_code
                empty = [value is None for value in values]
                assert declared is number or missing.tolist() == empty
        persons = encode(table, Schema((column,)), unit=Unit(9, "t"), key=b"k")
        assert persons.rows == sum(value is not None for value in values)
        suggested = suggest_schema(table).schema
        assert encode(table, suggested).rows == len(values)


class TestFieldCases:
    def test_f02_markers_and_a_category_called_none(self):
        lines = "41,1.3,F,no\n23,?,M,no\n46,0.98,?,no\n70,0.16,F,yes\n?,0.72,F,no\n18,?,M,no\n"
        schema = Schema(
            (
                Column("age", Kind.INTEGER, lower=0, upper=120, missing_markers=("", "?")),
                Column("tsh", Kind.REAL, lower=0, upper=10, decimals=2, missing_markers=("", "?")),
                Column("sex", Kind.CATEGORICAL, categories=("F", "M"), missing_markers=("", "?")),
                Column("sick", Kind.BOOLEAN, categories=("no", "yes")),
            )
        )
        for marker in ("?", "-", "n/a", "999"):
            text = "age,tsh,sex,sick\n" + lines.replace("?", marker) * 50
            declared = Schema(
                tuple(replace(column, missing_markers=("", marker)) for column in schema.columns)
            )
            table = encode(read_table(text.encode()), declared)
            missing = {
                column.name: float(np.mean(table.codes[column.name] == column.missing_code))
                for column in declared.columns
            }
            assert missing == {"age": 1 / 6, "tsh": 1 / 3, "sex": 1 / 6, "sick": 0}
            back = decode(table.codes, declared, np.random.default_rng(0))
            assert [str(kind) for kind in back.dtypes[:2]] == ["Int64", "float64"]
            assert back["age"].isna().mean() == pytest.approx(1 / 6)
            assert not (back.astype(str) == marker).any().any()
        column = Column("sex", Kind.CATEGORICAL, categories=("None", "F"))
        assert labels(column, texts("None", "F", "")) == ["None", "F", "(missing)"]

    def test_f03_whole_number_dates_come_back_in_their_form(self):
        days = ["20240131", "20231215", "20220705", "20211111", "20200229"] * 40
        column = Column(
            "day", Kind.DATE, lower="2020-01-01", upper="2024-12-31", date_format="%Y%m%d"
        )
        schema = Schema((column,))
        for table in (
            read_table("\n".join(["day", *days]).encode()),
            read_table(parquet({"day": [int(day) for day in days]})),
            read_table(excel([["day"], *([int(day)] for day in days)])),
        ):
            coded = encode(table, schema)
            assert coded.numbers["day"][:5].tolist() == [
                datetime.strptime(day, "%Y%m%d").toordinal() for day in days[:5]
            ]
            back = decode(coded.codes, schema, np.random.default_rng(0))["day"]
            read = [datetime.strptime(text, "%Y%m%d").date() for text in back]
            assert all(date(2020, 1, 1) <= day <= date(2024, 12, 31) for day in read)
            assert [text[:6] for text in back] == [day[:6] for day in days]

    def test_f04_parquet_types_there_and_back(self):
        rows = 1000
        seen = [datetime(2024, 5, 1 + i % 30, 22, 30, tzinfo=UTC) for i in range(rows)]
        grade = pa.DictionaryArray.from_arrays(
            pa.array([i % 4 for i in range(rows)], pa.int8()), pa.array(list("ABCDE")), ordered=True
        )
        data = parquet(
            {
                "seen": pa.array(seen, pa.timestamp("us", tz="Europe/Berlin")),
                "grade": grade,
                "fee": pa.array([Decimal(i) / 100 for i in range(rows)], pa.decimal128(8, 2)),
                "flag": [None if i % 5 == 0 else i % 2 == 0 for i in range(rows)],
                "k": pa.array([i % 4 for i in range(rows)]).dictionary_encode(),
                "note": pa.nulls(rows),
            }
        )
        schema = Schema(
            (
                Column("seen", Kind.DATE, lower="2024-05-01", upper="2024-06-30", unit="day"),
                Column("grade", Kind.ORDINAL, categories=tuple("ABCDE")),
                Column("fee", Kind.REAL, lower=0, upper=10, decimals=2),
                Column("flag", Kind.BOOLEAN, categories=("false", "true")),
                Column("k", Kind.CATEGORICAL, categories=tuple("0123")),
                Column("note", Kind.CATEGORICAL, other_label="(missing)"),
            )
        )
        coded = encode(read_table(data), schema)
        berlin = [1 + i % 30 for i in range(rows)]  # 22:30 UTC is half past midnight, a day later
        assert coded.codes["seen"].tolist() == berlin
        assert np.bincount(coded.codes["k"], minlength=6).tolist() == [250] * 4 + [0, 0]
        assert np.bincount(coded.codes["grade"], minlength=7).tolist() == [250] * 4 + [0, 0, 0]
        assert np.bincount(coded.codes["flag"], minlength=4).tolist() == [400, 400, 0, 200]
        assert coded.numbers["fee"][:3].tolist() == [0, 0.01, 0.02]
        assert set(coded.codes["note"]) == {0}

    @pytest.mark.parametrize("odd", ["-7.5", "inf", "-inf", "1e400", "NaN", "", "-0.0"])
    def test_f05_one_odd_row_changes_its_own_cell_only(self, odd):
        steps = [f"{-1200.25 + i * 2000.25 / 99:.6f},b{i % 3}" for i in range(100)]
        schema = Schema(
            (
                Column("balance", Kind.REAL, lower=-2000, upper=2000),
                Column("branch", Kind.CATEGORICAL, categories=("b0", "b1", "b2")),
            )
        )
        without = read_table("\n".join(["balance,branch", *steps]).encode())
        with_it = read_table("\n".join(["balance,branch", *steps, f"{odd},b1"]).encode())
        assert without.report == with_it.report
        one, two = encode(without, schema), encode(with_it, schema)
        assert np.array_equal(two.codes["balance"][:-1], one.codes["balance"])
        expected = {"inf": 2000, "1e400": 2000, "-inf": -2000, "-7.5": -7.5, "-0.0": 0}
        last = two.numbers["balance"][-1]
        assert last == expected[odd] if odd in expected else math.isnan(last)

    def test_f09_missing_wages_stay_missing(self):
        wages = [str(1000 + 8 * i) for i in range(500)]
        lines = ["no,"] * 3000 + ["yes,"] * 1500 + [f"yes,{wage}" for wage in wages]
        column = Column("wage", Kind.INTEGER, lower=0, upper=6000, bins=10)
        schema = Schema((Column("job", Kind.BOOLEAN, categories=("no", "yes")), column))
        coded = encode(read_table("\n".join(["job,wage", *lines]).encode()), schema)
        frame = decode(coded.codes, schema, np.random.default_rng(0))
        assert frame["wage"].isna().mean() == 0.9
        assert frame.loc[frame["job"] == "no", "wage"].isna().all()
        assert frame.loc[frame["job"] == "yes", "wage"].isna().mean() == 0.75
        assert frame["wage"].dtype == "Int64"

    def test_f11_missing_is_a_group_and_nan_is_another(self):
        groups = ["r", "r", "r", "r", "s", "s", None, "nan"]
        label = [1, 0, 1, 0, 1, 0, 1, 1]
        schema = Schema(
            (
                Column("group", Kind.CATEGORICAL, categories=("r", "s", "nan")),
                Column("label", Kind.BOOLEAN, categories=("0", "1")),
            )
        )
        text = "\n".join(
            ["group,label", *(f"{g or ''},{x}" for g, x in zip(groups, label, strict=True))]
        )
        rows = [["group", "label"], *([g, x] for g, x in zip(groups, label, strict=True))]
        tables = [
            read_table(text.encode()),
            read_table(excel(rows)),
            read_table(parquet({"group": groups, "label": label})),
        ]
        coded = [encode(table, schema) for table in tables]
        for table in coded:
            counts = np.bincount(table.codes["group"], minlength=5)
            assert dict(zip(schema["group"].cells, counts.tolist(), strict=True)) == {
                "r": 4,
                "s": 2,
                "nan": 1,
                "(other)": 0,
                "(missing)": 1,
            }
            assert counts.sum() == 8
            assert table.codes["label"].tolist() == label


def test_fifty_thousand_rows_take_well_under_a_second():
    generator = np.random.default_rng(0)
    rows = 50_000
    cells = {f"c{i}": pd.Series(generator.integers(0, 12, rows).astype(str)) for i in range(9)}
    cells |= {
        f"r{i}": pd.Series([f"{x:.4f}" for x in generator.normal(size=rows)]) for i in range(4)
    }
    cells |= {
        f"d{i}": pd.Series(
            (np.datetime64("2000-01-01") + generator.integers(0, 9000, rows)).astype(str)
        )
        for i in range(2)
    }
    schema = Schema(
        tuple(
            Column(name, Kind.CATEGORICAL, categories=tuple(map(str, range(12))))
            if name.startswith("c")
            else Column(name, Kind.REAL, lower=-3, upper=3)
            if name.startswith("r")
            else Column(name, Kind.DATE, lower="2000-01-01", upper="2024-12-31", unit="year")
            for name in cells
        )
    )
    table = raw({name: series.astype("str") for name, series in cells.items()})
    start = time.process_time()
    assert encode(table, schema).rows == rows
    assert time.process_time() - start < 1


@pytest.mark.parametrize("kind", [float, object])
def test_which_zero_comes_first_changes_no_label(kind):
    column = Column("x", Kind.CATEGORICAL, categories=("-0.0", "0.0"), other_label="0.0")
    for cells in ([0.0, -0.0], [-0.0, 0.0]):
        raw = RawTable(
            pd.DataFrame({"x": pd.Series(cells, dtype=kind)}), "t", ReadingReport("parquet")
        )
        assert encode(raw, Schema((column,))).codes["x"].tolist() == [1, 1]
