"""Rows to cells: every value lands, by its own merits alone; persons are bounded."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SchemaError
from core.private.coding import encode, undeclared
from core.private.values import parsed_number
from core.schema import Column, Kind, Schema
from tests.core.private.coded import codes, labels, numbers, raw, texts, typed
from tests.core.schema_strategies import DIRT, QUICK, columns, schemas


class TestLabels:
    column = Column("x", Kind.CATEGORICAL, categories=("a", " a", "b", "None", "nan", "3"))

    def test_exact_then_stripped_then_other(self):
        series = texts("a", " a", "a  ", "b", " b", "B", "None", "nan", "", "  ")
        assert labels(self.column, series) == [
            "a",
            " a",
            "a",
            "b",
            "b",
            "(other)",
            "None",
            "nan",
            "(missing)",
            "(missing)",
        ]

    def test_markers_are_compared_after_stripping(self):
        column = Column("x", Kind.CATEGORICAL, categories=("a",), missing_markers=("?", "n/a"))
        assert labels(column, texts(" ? ", "n/a", "N/A", "")) == [
            "(missing)",
            "(missing)",
            "(other)",
            "(missing)",
        ]

    def test_a_marker_may_be_the_category_of_the_missing(self):
        column = Column(
            "x", Kind.CATEGORICAL, categories=("a", "?"), missing_label="?", missing_markers=("?",)
        )
        assert labels(column, texts("?", "", "b")) == ["?", "?", "(other)"]

    def test_other_and_missing_may_share_a_cell_or_name_a_category(self):
        column = Column(
            "x", Kind.CATEGORICAL, categories=("a",), other_label="?", missing_label="?"
        )
        assert labels(column, texts("a", "b", "")) == ["a", "?", "?"]
        column = Column("x", Kind.CATEGORICAL, categories=("a", "rest"), other_label="rest")
        assert labels(column, texts("b", "rest")) == ["rest", "rest"]

    def test_a_constant_takes_the_missing(self):
        column = Column(
            "x", Kind.CATEGORICAL, categories=("a", "b"), missing="constant", missing_constant="b"
        )
        assert labels(column, typed(None, "a", "", math.nan, pd.NA)) == ["b", "a", "b", "b", "b"]

    def test_typed_cells_find_their_label(self):
        assert labels(self.column, typed(3, 3.0, Decimal("3.00"), np.int8(3), "3", None)) == [
            "3",
            "3",
            "3",
            "3",
            "3",
            "(missing)",
        ]
        column = Column("x", Kind.CATEGORICAL, categories=("1.5", "2024-01-31", "true"))
        assert labels(column, typed(1.5, date(2024, 1, 31), datetime(2024, 1, 31), True)) == [
            "1.5",
            "2024-01-31",
            "2024-01-31",
            "true",
        ]

    def test_equal_values_of_different_types_are_kept_apart(self):
        column = Column("x", Kind.CATEGORICAL, categories=("1", "True"))
        for cells in ([1, True], [True, 1]):
            assert labels(column, typed(*cells)) == [str(cell) for cell in cells]

    def test_dictionaries(self):
        column = Column("x", Kind.ORDINAL, categories=("low", "mid", "high"))
        series = pd.Series(pd.Categorical(["high", "low", None, "odd"]))
        assert labels(column, series) == ["high", "low", "(missing)", "(other)"]

    @pytest.mark.parametrize(
        ("categories", "true", "false"),
        [
            (("no", "yes"), "yes", "no"),
            (("Yes", "No"), "Yes", "No"),
            (("denied", "granted"), "granted", "denied"),
        ],
    )
    def test_booleans_know_their_words(self, categories, true, false):
        column = Column("x", Kind.BOOLEAN, categories=categories)
        assert set(labels(column, typed(True, 1, "TRUE", " t", "on", "1", 1.0))) == {true}
        assert set(labels(column, typed(False, 0, "false", "F", "off", "0"))) == {false}
        assert labels(column, pd.Series([True, None, False], dtype="boolean")) == [
            true,
            "(missing)",
            false,
        ]
        assert labels(column, texts("perhaps")) == ["(other)"]


class TestNumbers:
    column = Column("x", Kind.REAL, lower=-2, upper=2, bins=4)

    def test_cells_are_half_open(self):
        assert codes(self.column, texts("-2", "-1", "-0.5", "0", "1", "1.999", "2")) == [
            0,
            1,
            1,
            2,
            3,
            3,
            3,
        ]

    def test_out_of_bounds_is_clipped_also_in_the_numbers(self):
        series = texts("-5", "5", "inf", "-Infinity", "1e400", "-0.0", "nan", "", "x")
        assert codes(self.column, series) == [0, 3, 3, 0, 3, 2, 4, 4, 4]
        found = numbers(self.column, series)
        assert found[:6] == [-2, 2, 2, -2, 2, 0]
        assert all(map(math.isnan, found[6:]))

    def test_out_of_bounds_may_go_to_the_other_cell(self):
        column = Column("x", Kind.REAL, lower=-2, upper=2, bins=4, out_of_domain="other")
        series = texts("-5", "inf", "x", "nan", "", "2")
        assert labels(column, series) == [
            "(other)",
            "(other)",
            "(other)",
            "(missing)",
            "(missing)",
            "[1, 2]",
        ]
        found = numbers(column, series)
        assert all(map(math.isnan, found[:5]))
        assert found[5] == 2

    def test_a_constant_takes_the_missing_and_the_unreadable(self):
        column = Column(
            "x", Kind.REAL, lower=-2, upper=2, bins=4, missing="constant", missing_constant=1.5
        )
        assert codes(column, texts("", "x", "nan", "-2")) == [3, 3, 3, 0]
        assert numbers(column, texts("", "x", "nan", "-2")) == [1.5, 1.5, 1.5, -2]

    def test_integers(self):
        column = Column("x", Kind.INTEGER, lower=0, upper=99, bins=10)
        assert codes(column, texts("34.0", " 34 ", "+34", "3.4e1", "39.5", "99.5", "034")) == [
            3,
            3,
            3,
            3,
            3,
            9,
            3,
        ]
        assert numbers(column, texts("39.5", "99.5")) == [39.5, 99]

    @pytest.mark.parametrize(
        ("text", "decimal", "value"),
        [
            ("1.5", ".", 1.5),
            ("1,5", ",", 1.5),
            ("1,234.5", ".", 1234.5),
            ("1.234,5", ",", 1234.5),
            ("1.234", ",", 1234),
            ("1,234", ".", 1234),
            (",5", ",", 0.5),
            ("5.", ".", 5),
            ("-1e-3", ".", -0.001),
            ("1,5", ".", None),
            ("1.5", ",", None),
            ("12,34,567", ".", None),
            ("0,123", ".", None),
            ("1_000", ".", None),
            ("0x10", ".", None),
            ("١٢", ".", None),
            ("1 000", ".", None),
            ("--1", ".", None),
            ("True", ".", None),
            ("", ".", None),
        ],
    )
    def test_texts(self, text, decimal, value):
        assert parsed_number(text, decimal) == value

    @QUICK
    @given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-3, max_value=3))
    def test_agrees_with_decimals(self, value):
        inside = min(max(float(value), -2), 2)
        found = codes(self.column, texts(str(value)))
        assert found == [min(math.floor(inside) + 2, 3)]
        assert numbers(self.column, texts(str(value))) == [inside]

    def test_typed_columns_and_mixed_ones_agree(self):
        values = [1, -1, None, 5]
        forms = [
            pd.Series(values, dtype="Int64"),
            pd.Series(values, dtype="Int8"),
            pd.Series(values, dtype="float64"),
            typed(*values),
            typed(1.0, Decimal("-1.00"), math.nan, "5"),
            texts("1", "-1", "", "5"),
        ]
        assert {tuple(codes(self.column, form)) for form in forms} == {(3, 1, 4, 3)}

    def test_numeric_markers_are_found_in_typed_columns(self):
        column = Column("x", Kind.INTEGER, lower=0, upper=9, missing_markers=("999", "?"))
        forms = [
            texts("999", "3", "?"),
            pd.Series([999, 3, None], dtype="Int64"),
            pd.Series([999.0, 3, math.nan]),
            typed(999, 3, "?"),
            typed(Decimal("999.0"), 3.0, None),
        ]
        assert {tuple(labels(column, form)) for form in forms} == {("(missing)", "3", "(missing)")}

    def test_huge_and_odd_objects(self):
        column = Column("x", Kind.INTEGER, lower=0, upper=9)
        series = typed(10**400, -(10**400), Decimal("1e999"), True, date(2024, 1, 1), 2**60)
        assert codes(column, series) == [9, 0, 9, 1, 10, 9]


class TestDates:
    column = Column("x", Kind.DATE, lower="2024-01-15", upper="2024-12-31")

    def test_iso_texts_and_timestamps(self):
        series = texts(
            "2024-01-15",
            "2024-02-29",
            "2024-03-01 23:59",
            "2024-03-31T23:30:00+02:00",
            "1999-01-01",
            "2030-01-01",
            "2024-02-30",
            "20240229",
            "29.02.2024",
            "",
        )
        assert codes(self.column, series) == [0, 1, 2, 2, 0, 11, 12, 12, 12, 12]

    def test_declared_form(self):
        column = Column(
            "x",
            Kind.DATE,
            lower="2020-01-01",
            upper="2024-12-31",
            unit="year",
            date_format="%Y%m%d",
        )
        for series in (
            texts("20240131", "20231215", "20241301"),
            typed(20240131, 20231215.0, 20241301),
            pd.Series([20240131, 20231215, 20241301], dtype="Int64"),
            typed(Decimal(20240131), date(2023, 12, 15), "day"),
        ):
            assert codes(column, series) == [4, 3, 5]

    def test_numbers_are_no_dates_without_a_form(self):
        assert set(codes(self.column, typed(45322, 20240131, 1.7e9, True))) == {12}
        assert set(codes(self.column, pd.Series([45322, 20240131], dtype="Int64"))) == {12}

    def test_timestamps_count_as_the_day_of_their_own_zone(self):
        moment = datetime(2024, 1, 31, 23, 30, tzinfo=UTC)
        series = pd.Series([moment, None]).dt.tz_convert("Europe/Berlin")
        assert codes(self.column, series) == [1, 12]
        assert codes(self.column, series.astype(object)) == [1, 12]
        assert numbers(self.column, series)[0] == date(2024, 2, 1).toordinal()

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_before_1970(self, unit):
        column = Column("x", Kind.DATE, lower="1960-01-01", upper="1980-12-31")
        series = pd.Series([datetime(1969, 12, 31, 23), datetime(1965, 5, 5)]).astype(
            f"datetime64[{unit}]"
        )
        assert numbers(column, series) == [
            date(1969, 12, 31).toordinal(),
            date(1965, 5, 5).toordinal(),
        ]

    def test_other(self):
        column = Column(
            "x", Kind.DATE, lower="2024-01-15", upper="2024-12-31", out_of_domain="other"
        )
        assert labels(column, texts("2024-01-14", "never", ""))[:2] == ["(other)", "(other)"]
        assert codes(column, texts(""))[0] == column.missing_code


class TestEveryValueLands:
    @QUICK
    @given(schemas(), st.data())
    def test_any_schema_any_dirt(self, schema, data):
        rows = data.draw(st.integers(0, 6))
        cells = {
            column.name: pd.Series(
                data.draw(st.lists(DIRT, min_size=rows, max_size=rows)), dtype="str"
            )
            for column in schema.columns
        }
        table = encode(raw(cells, data.draw(st.sampled_from(".,"))), schema)
        assert table.rows == rows
        for column in schema.columns:
            found = table.codes[column.name]
            assert found.dtype.kind == "u"
            assert found.shape == (rows,)
            assert (found < column.size).all()
            if column.kind in (Kind.INTEGER, Kind.REAL, Kind.DATE):
                values = table.numbers[column.name]
                low, high = column.bounds
                assert ((values >= low) & (values <= high) | np.isnan(values)).all()
                cells_of = [column.cell_of(value) for value in values[~np.isnan(values)]]
                assert found[~np.isnan(values)].tolist() == cells_of
            else:
                assert column.name not in table.numbers

    @QUICK
    @given(
        columns(kinds=(Kind.CATEGORICAL, Kind.BOOLEAN, Kind.INTEGER, Kind.REAL, Kind.DATE)),
        st.lists(
            st.one_of(
                DIRT,
                st.none(),
                st.booleans(),
                st.integers(),
                st.floats(),
                st.decimals(allow_nan=False) | st.just(Decimal("NaN")),
                st.dates(),
                st.datetimes(),
            ),
            max_size=8,
        ),
    )
    def test_a_code_depends_on_its_own_value_only(self, column, cells):
        together = codes(column, typed(*cells))
        assert together == [codes(column, typed(cell))[0] for cell in cells]
        assert together[::-1] == codes(column, typed(*cells[::-1]))

    def test_counts_of_clipped_values_are_nowhere(self):
        column = Column("x", Kind.INTEGER, lower=0, upper=1)
        table = encode(raw({"x": texts("7", "8", "9")}), Schema((column,)))
        assert repr(table) == "CodedTable(1 columns, rows confidential)"
        assert set(vars(table)) == {"schema", "codes", "numbers", "rows", "unit"}

    def test_codes_are_compact(self):
        few = Column("x", Kind.INTEGER, lower=0, upper=254, bins=255)
        many = Column("x", Kind.INTEGER, lower=0, upper=999, bins=256)
        for column, kind in ((few, np.uint8), (many, np.uint16)):
            table = encode(raw({"x": texts("1")}), Schema((column,)))
            assert table.codes["x"].dtype == kind


class TestFit:
    schema = Schema((Column("age", Kind.INTEGER, lower=0, upper=99), Column("id", Kind.IDENTIFIER)))

    def test_columns_that_are_not_declared_are_left_out(self):
        table = raw({"odd": texts("1"), "age": texts("2")})
        assert undeclared(table, self.schema) == ("odd",)
        coded = encode(table, self.schema)
        assert coded.schema.names == ("age",)

    def test_declared_columns_must_be_there(self):
        with pytest.raises(
            SchemaError, match="people: no column is called 'age'; did you mean 'aged'"
        ):
            encode(raw({"aged": texts("1")}), self.schema)

    def test_something_must_be_modelled(self):
        with pytest.raises(SchemaError, match="no column can be modelled"):
            encode(raw({"id": texts("1")}), Schema((Column("id", Kind.IDENTIFIER),)))

    def test_no_rows(self):
        assert encode(raw({"age": texts()}), self.schema).rows == 0
