"""Suggestions from values: flagged to the end, and nothing decided that only a person can know."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding import decode
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.private.reading import read_table
from core.private.suggestions import suggest_schema
from core.schema import Kind
from tests.core.schema_strategies import DIRT, LABELS, QUICK


def csv(*lines):
    return read_table("\n".join(lines).encode())


def column_of(cells, name="x"):
    found = suggest_schema(csv(name, *cells))
    return found.schema[name], " ".join(found.notes)


THYROID = ["41,1.3,F,no", "23,?,M,no", "46,0.98,?,no", "70,0.16,F,yes", "?,0.72,F,no", "18,?,M,no"]


class TestMarkers:  # F-02
    @pytest.mark.parametrize("marker", ["?", "-", "n/a"])
    def test_a_marker_leaves_numbers_numeric_and_is_proposed(self, marker):
        lines = [line.replace("?", marker) for line in THYROID * 50]
        found = suggest_schema(csv("age,tsh,sex,sick", *lines))
        kinds = {column.name: column.kind for column in found.schema.columns}
        assert kinds == {
            "age": Kind.INTEGER,
            "tsh": Kind.REAL,
            "sex": Kind.CATEGORICAL,
            "sick": Kind.BOOLEAN,
        }
        assert found.schema["age"].bounds == (18, 70)
        assert found.schema["tsh"].decimals == 2
        assert found.schema["sex"].categories == ("F", "M")
        for name in ("age", "tsh", "sex"):
            assert found.schema[name].missing_markers == ("", marker)
            assert any(repr(name) in note and repr(marker) in note for note in found.notes)

    def test_999_is_mentioned_and_never_assumed(self):
        lines = [line.replace("?", "999") for line in THYROID * 50]
        found = suggest_schema(csv("age,tsh,sex,sick", *lines))
        assert found.schema["age"].upper == 999
        assert found.schema["age"].missing_markers == ("",)
        assert any("999 lies far from all other values" in note for note in found.notes)
        assert found.schema["sex"].categories == ("999", "F", "M")

    def test_an_ordinary_99_is_not_mentioned(self):
        _, notes = column_of([str(i) for i in range(60, 100)] * 2)
        assert "may mean missing" not in notes

    def test_a_category_called_none_stays_one(self):
        column, notes = column_of(["None", "F", "M"] * 20)
        assert column.categories == ("F", "M", "None")
        assert column.missing_markers == ("",)
        assert "'None' is kept as a category" in notes

    def test_none_among_numbers_is_missing(self):
        column, _ = column_of(["None", "1", "5"] * 20)
        assert column.kind is Kind.INTEGER
        assert column.missing_markers == ("", "None")


class TestKinds:
    def test_everything_is_flagged(self):
        found = suggest_schema(csv("a,b,c", *(f"{i},x{i},text" for i in range(30))))
        assert all(column.data_dependent for column in found.schema.columns)

    def test_identifiers_and_free_text_are_excluded_with_a_reason(self):
        lines = [f"p{i},{i},word {i % 101} {'long ' * 9},{i % 3}" for i in range(300)]
        found = suggest_schema(csv("name,person_id,remark,group", *lines)).schema
        assert found["name"].kind is Kind.IDENTIFIER
        assert found["person_id"].kind is Kind.IDENTIFIER
        assert found["remark"].kind is Kind.TEXT
        assert found["group"].kind is Kind.INTEGER
        assert all(found[name].reason for name in ("name", "person_id", "remark"))

    def test_numbers_that_all_differ_are_numbers(self):
        assert column_of([str(i * i) for i in range(100)])[0].kind is Kind.INTEGER
        assert column_of([str(20_000 + 250 * i) for i in range(100)])[0].kind is Kind.INTEGER
        assert column_of([f"{i}.5" for i in range(100)])[0].kind is Kind.REAL

    def test_leading_zeros_are_kept(self):
        column, _ = column_of(["01067", "99084", "01067"] * 10)
        assert column.kind is Kind.CATEGORICAL
        assert column.categories == ("01067", "99084")

    def test_truth(self):
        assert column_of(["Yes", "No", "Yes"])[0].categories == ("No", "Yes")
        assert column_of(["1", "0", ""])[0].kind is Kind.BOOLEAN
        assert column_of(["M", "F"])[0].kind is Kind.CATEGORICAL

    def test_few_rows_of_different_texts_are_categories(self):
        assert column_of(["Ulm", "Jena"])[0].categories == ("Jena", "Ulm")

    def test_an_empty_column_stays_empty(self):
        found = suggest_schema(csv("a,b", *["1,"] * 30))
        assert found.schema["b"].cells == ("(missing)",)
        coded = encode(csv("a,b", *["1,"] * 30), found.schema)
        assert decode(coded.codes, coded.schema, np.random.default_rng(0))["b"].isna().all()

    def test_a_constant_real(self):
        column, notes = column_of(["0.5"] * 10)
        assert column.categories == ("0.5",)
        assert "one value only" in notes

    def test_a_decimal_comma(self):
        found = suggest_schema(csv("a;b", "1,25;x", "3,5;y", "7;x"))
        assert found.schema["a"].kind is Kind.REAL
        assert (found.schema["a"].bounds, found.schema["a"].decimals) == ((1.25, 7), 2)

    def test_repr_shows_no_value(self):
        assert repr(suggest_schema(csv("a", "secret"))) == "Suggestion(1 columns, 1 notes)"


class TestDates:  # F-03
    days = ("20240131", "20231215", "20220705", "20211111", "20200229") * 40

    def test_whole_numbers_that_are_days_are_offered_as_dates(self):
        parquet = io.BytesIO()
        pq.write_table(pa.table({"day": [int(day) for day in self.days]}), parquet)
        for raw in (csv("day", *self.days), read_table(parquet.getvalue())):
            found = suggest_schema(raw)
            column = found.schema["day"]
            assert column.kind is Kind.DATE
            assert column.date_format == "%Y%m%d"
            assert (column.lower, column.upper) == ("2020-02-29", "2024-01-31")
            assert any("if kept as numbers" in note for note in found.notes)
            coded = encode(raw, found.schema)
            assert coded.numbers["day"][0] == date(2024, 1, 31).toordinal()

    def test_ordinary_numbers_are_not(self):
        assert column_of(["20240131", "20241331"] * 20)[0].kind is Kind.INTEGER
        assert column_of(["12", "31"] * 20)[0].kind is Kind.INTEGER
        assert column_of(["1.5", "12.75"] * 20)[0].kind is Kind.REAL

    @pytest.mark.parametrize(
        ("cells", "form", "lower"),
        [
            (["2024-01-31", "2020-02-29"], None, "2020-02-29"),
            (["2024-01-31 10:00", "2020-02-29 09:30"], None, "2020-02-29"),
            (["31.01.2024", "29.02.2020"], "%d.%m.%Y", "2020-02-29"),
            (["01/31/2024", "02/29/2020"], "%m/%d/%Y", "2020-02-29"),
            (["31/01/2024", "29/02/2020"], "%d/%m/%Y", "2020-02-29"),
            (["2024/01/31", "?"], "%Y/%m/%d", "2024-01-31"),
        ],
    )
    def test_forms(self, cells, form, lower):
        column, _ = column_of(cells * 15)
        assert column.kind is Kind.DATE
        assert (column.date_format, column.lower) == (form, lower)

    def test_ambiguous_days_are_mentioned(self):
        _, notes = column_of(["01/02/2024", "03/04/2024"] * 15)
        assert "day and month could be swapped" in notes


class TestBounds:  # F-05
    @pytest.mark.parametrize("odd", ["-7.5", "inf", "-inf", "1e400", "NaN", "", "-0.0"])
    def test_infinite_ends_are_refused_and_all_variants_run(self, odd):
        steps = [f"{-1200.25 + i * 2000.25 / 99:.6f},b{i % 3}" for i in range(100)]
        raw = csv("balance,branch", *steps, f"{odd},b1")
        found = suggest_schema(raw)
        column = found.schema["balance"]
        assert column.kind is Kind.REAL
        assert column.bounds == (-1200.25, 800)
        assert column.data_dependent
        assert any("infinite values are no bounds" in note for note in found.notes) == (
            odd in ("inf", "-inf", "1e400")
        )
        assert encode(raw, found.schema).rows == 101

    def test_only_infinite(self):
        assert column_of(["inf", "-inf"])[0].kind is Kind.CATEGORICAL


class TestTyped:  # F-04
    def test_parquet(self):
        rows = 40
        grade = pa.DictionaryArray.from_arrays(
            pa.array([i % 4 for i in range(rows)], pa.int8()), pa.array(list("ABCDE")), ordered=True
        )
        seen = [datetime(2024, 1 + i % 12, 1, tzinfo=UTC) for i in range(rows)]
        buffer = io.BytesIO()
        pq.write_table(
            pa.table(
                {
                    "seen": pa.array(seen, pa.timestamp("us", tz="Europe/Berlin")),
                    "grade": grade,
                    "fee": pa.array([Decimal(i) / 100 for i in range(rows)], pa.decimal128(8, 2)),
                    "flag": [None if i % 5 == 0 else i % 2 == 0 for i in range(rows)],
                    "k": [i % 4 for i in range(rows)],
                    "note": pa.nulls(rows),
                }
            ),
            buffer,
        )
        raw = read_table(buffer.getvalue())
        schema = suggest_schema(raw).schema
        assert {column.name: column.kind for column in schema.columns} == {
            "seen": Kind.DATE,
            "grade": Kind.ORDINAL,
            "fee": Kind.REAL,
            "flag": Kind.BOOLEAN,
            "k": Kind.INTEGER,
            "note": Kind.CATEGORICAL,
        }
        assert schema["grade"].categories == tuple("ABCDE")
        assert schema["fee"].decimals == 2
        assert schema["k"].declared_size == 4
        assert encode(raw, schema).rows == rows

    def test_a_dictionary_of_many_texts_is_free_text(self):
        frame = pd.DataFrame({"x": pd.Categorical([f"t{i}" for i in range(200)])})
        raw = RawTable(frame, "x", ReadingReport("parquet"))
        assert suggest_schema(raw).schema["x"].kind is Kind.TEXT


class TestAnyTable:
    @QUICK
    @given(st.lists(DIRT, min_size=1, max_size=40), st.sampled_from(".,"))
    def test_whatever_is_suggested_codes_and_decodes(self, cells, decimal):
        frame = pd.DataFrame({"x": pd.Series(cells, dtype="str")})
        raw = RawTable(frame, "x", ReadingReport("csv", decimal=decimal))
        schema = suggest_schema(raw).schema
        if schema.modelled:
            coded = encode(raw, schema)
            assert len(decode(coded.codes, coded.schema, np.random.default_rng(0))) == len(cells)

    @QUICK
    @given(st.lists(LABELS, min_size=1, max_size=30))
    def test_suggested_categories_leave_nothing_out(self, cells):
        frame = pd.DataFrame({"x": pd.Series(cells, dtype="str")})
        raw = RawTable(frame, "x", ReadingReport("csv"))
        column = suggest_schema(raw).schema["x"]
        if column.kind is Kind.CATEGORICAL:
            coded = encode(raw, suggest_schema(raw).schema)
            decoded = decode(coded.codes, coded.schema, np.random.default_rng(0))["x"]
            for cell, back in zip(cells, decoded, strict=True):
                assert cell.strip() == back or cell.strip() in column.missing_markers


class TestGermanFiles:
    @pytest.mark.parametrize("marker", ["k.A.", "k. A.", "keine Angabe", "N.A.", "."])
    def test_markers_in_other_words(self, marker):
        numbers, notes = column_of([*map(str, range(1, 60)), "7", marker, marker])
        assert (numbers.kind, numbers.upper) == (Kind.INTEGER, 59)
        assert numbers.missing_markers == ("", marker)
        assert repr(marker) in notes
        labels, _ = column_of([*["rot", "blau", "grün"] * 9, marker])
        assert labels.categories == ("blau", "grün", "rot")
        assert labels.missing_markers == ("", marker)

    def test_unknown_is_only_mentioned(self):
        column, notes = column_of(["rot", "blau", "Unbekannt"] * 9)
        assert "Unbekannt" in column.categories
        assert "'Unbekannt' is kept as a category" in notes

    def test_a_few_odd_words_among_numbers_are_markers(self):
        column, notes = column_of([*(str(i % 30) for i in range(90)), "verweigert", "entfällt"])
        assert column.kind is Kind.INTEGER
        assert column.missing_markers == ("", "entfällt", "verweigert")
        assert "'entfällt', 'verweigert' are read as missing" in notes

    def test_a_few_odd_words_among_dates_are_markers(self):
        days = [f"{1 + i % 28:02d}.10.{1990 + i % 30}" for i in range(90)]
        column, _ = column_of([*days, "unbekannt"])
        assert (column.kind, column.date_format) == (Kind.DATE, "%d.%m.%Y")
        assert column.missing_markers == ("", "unbekannt")

    @pytest.mark.parametrize(
        "odd",
        [
            ["5+"],  # a value, not a word
            ["A"] * 40,  # too many to be a mark of absence
            ["a", "b", "c", "d", "e", "f"],  # too many kinds
        ],
    )
    def test_what_may_be_a_value_is_no_marker(self, odd):
        column, _ = column_of([*(str(i % 6) for i in range(60)), *odd])
        assert column.kind is Kind.CATEGORICAL
        assert column.missing_markers == ("",)

    def test_a_column_that_is_almost_a_number_says_so(self):
        _, notes = column_of([*(str(i % 6) for i in range(60)), "5+"])
        assert "most cells are numbers, but some are not" in notes


class TestIdentifiers:
    def test_a_number_for_each_row_is_left_out(self):
        staff = [str(31_407 + 7 * i + i % 3) for i in range(50)]
        for cells, name in (
            (staff, "x"),
            (staff, "Personalnummer"),
            ([str(i * i) for i in range(50)], "Personalnummer"),
            ([str(i) for i in range(1, 50)], "lfd"),
        ):
            column, notes = column_of(cells, name)
            assert column.kind is Kind.IDENTIFIER
            assert "left out: a" in notes
            assert column.reason in notes

    def test_an_identifier_that_repeats_may_be_a_person(self):
        column, notes = column_of([str(1000 + 3 * (i % 150)) for i in range(400)], "patient_id")
        assert column.kind is Kind.IDENTIFIER
        assert "unit_person_column" in notes
        column, notes = column_of([f"P{i}" for i in range(400)], "patient_id")
        assert column.kind is Kind.IDENTIFIER
        assert "unit_person_column" not in notes


class TestTwoValues:
    @pytest.mark.parametrize("cells", [["0", "1", "1"], ["f", "m", "m"], ["1", "2", "2"]])
    def test_nothing_is_made_that_does_not_occur(self, cells):
        raw = csv("x", *cells * 10)
        schema = suggest_schema(raw).schema
        assert schema["x"].cells == tuple(sorted(set(cells)))
        coded = encode(raw, schema)
        back = decode(coded.codes, schema, np.random.default_rng(0))["x"]
        assert back.astype(str).tolist() == cells * 10
        # What did not occur counts as the more frequent value.
        assert encode(csv("x", "", cells[1]), schema).codes["x"].tolist() == [1, 1]

    def test_with_a_missing_value_the_cells_stay(self):
        assert column_of(["0", "1", ""] * 9)[0].cells == ("0", "1", "(other)", "(missing)")
        assert column_of(["f", "m", "?"] * 9)[0].cells == ("f", "m", "(other)", "(missing)")


class TestSkewed:
    def synthetic(self, raw):
        schema = suggest_schema(raw).schema
        coded = encode(raw, schema)
        return schema["x"], decode(coded.codes, schema, np.random.default_rng(0))["x"].astype(float)

    @pytest.mark.parametrize("form", ["%.0f", "%.2f"])
    @pytest.mark.parametrize("zeros", [0.0, 0.4, 0.9])
    def test_means_and_medians_are_plausible(self, form, zeros):
        generator = np.random.default_rng(5)
        values = np.exp(generator.normal(6, 1.8, 6000)) * (generator.random(6000) >= zeros)
        raw = csv("x", *(form % value for value in values))
        column, back = self.synthetic(raw)
        assert column.data_dependent
        assert 5 < column.declared_size <= 30
        assert back.mean() == pytest.approx(values.mean(), rel=0.12)
        assert back.median() == pytest.approx(np.median(values), rel=0.1, abs=0.6)
        assert (back < 0.5).mean() == pytest.approx((values < 0.5).mean(), abs=0.02)
        assert "skewed" in " ".join(suggest_schema(raw).notes)

    def test_losses_have_long_tails_too(self):
        values = -np.exp(np.random.default_rng(6).normal(4, 2, 5000)).round(2)
        _, back = self.synthetic(csv("x", *map(str, values)))
        assert back.mean() == pytest.approx(values.mean(), rel=0.12)
        assert back.median() == pytest.approx(np.median(values), rel=0.1)

    def test_even_values_keep_equal_bins(self):
        column, notes = column_of([str(i * 7 % 1000) for i in range(3000)])
        assert column.edges == ()
        assert "skewed" not in notes


def test_columns_that_share_a_note_share_its_line():
    lines = [f"{i % 50},{i % 40},{'ab'[i % 2]}" for i in range(200)]
    notes = suggest_schema(csv("age,size,group", *lines)).notes
    assert any(note.startswith("columns 'age', 'size': bounds are") for note in notes)
    assert len(notes) == len({note.partition(": ")[2] for note in notes})
