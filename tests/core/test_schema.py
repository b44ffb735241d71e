"""Declarations: cells, rules, refusals, one canonical form."""

import itertools
import json
import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.axis import decimal_grid, next_period
from core.errors import SchemaError
from core.schema import DEFAULT_BINS, MAXIMUM_CELLS, Column, Kind, Missing, OutOfDomain, Schema

from .schema_strategies import QUICK, columns, schemas


def categorical(*labels, **settings):
    return Column("x", Kind.CATEGORICAL, categories=labels, **settings)


def integer(low, high, **settings):
    return Column("x", Kind.INTEGER, lower=low, upper=high, **settings)


def real(low, high, **settings):
    return Column("x", Kind.REAL, lower=low, upper=high, **settings)


def dates(low, high, **settings):
    return Column("x", Kind.DATE, lower=low, upper=high, **settings)


class TestCells:
    def test_declared_cells_come_first_then_other_then_missing(self):
        column = categorical("b", "a")
        assert column.cells == ("b", "a", "(other)", "(missing)")
        assert (column.other_code, column.missing_code, column.size) == (2, 3, 4)

    def test_labels_that_name_a_category_make_no_cell(self):
        column = categorical("a", "rest", other_label="rest", missing_label="a")
        assert column.cells == ("a", "rest")
        assert (column.other_code, column.missing_code) == (1, 0)

    def test_one_label_for_both_makes_one_cell(self):
        column = categorical("a", other_label="unknown", missing_label="unknown")
        assert column.cells == ("a", "unknown")
        assert column.other_code == column.missing_code == 1
        number = integer(0, 1, out_of_domain="other", other_label="?", missing_label="?")
        assert number.cells == ("0", "1", "?")

    def test_a_constant_makes_no_missing_cell(self):
        column = categorical("a", "b", missing="constant", missing_constant="b")
        assert column.cells == ("a", "b", "(other)")
        assert column.missing_code is None
        assert column.constant_code == 1

    def test_an_empty_column_is_one_missing_cell(self):
        column = categorical(other_label="(missing)")
        assert column.cells == ("(missing)",)
        assert column.other_code == column.missing_code == 0

    def test_numbers_are_clipped_unless_told_otherwise(self):
        assert integer(0, 3).out_of_domain is OutOfDomain.CLIP
        assert integer(0, 3).cells == ("0", "1", "2", "3", "(missing)")
        other = integer(0, 3, out_of_domain="other", bins=2)
        assert other.cells == ("0 to 1", "2 to 3", "(other)", "(missing)")

    def test_few_integers_have_a_cell_each_many_are_binned(self):
        assert integer(1, 32).declared_size == 32
        assert integer(1, 33).declared_size == DEFAULT_BINS
        assert integer(5, 5).cells == ("5", "(missing)")

    def test_real_cells_are_half_open_but_for_the_last(self):
        assert real(0, 1, bins=2).cells[:2] == ("[0, 0.5)", "[0.5, 1]")

    def test_close_real_edges_keep_different_labels(self):
        column = real(1e6, 1e6 + 1e-5, bins=4)
        assert len(set(column.cells)) == 5

    def test_edges_stand_in_for_bounds(self):
        column = Column("x", Kind.INTEGER, edges=(0, 10, 20))
        assert column.bounds == (0, 20)
        assert column.cells[:2] == ("0 to 9", "10 to 20")
        assert Column("x", Kind.REAL, edges=(0, 10), upper=10).bounds == (0, 10)

    def test_date_edges(self):
        column = Column("x", Kind.DATE, edges=("2024-01-01", "2024-02-01", "2024-03-01"))
        assert column.cells[:2] == ("2024-01-01 to 2024-01-31", "2024-02-01 to 2024-03-01")

    @pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
    def test_periods_agree_with_the_calendar(self, unit):
        def period(day):
            quarter = (day.year, (day.month - 1) // 3)
            return {
                "day": day,
                "week": day.isocalendar()[:2],
                "month": (day.year, day.month),
                "quarter": quarter,
                "year": day.year,
            }[unit]

        column = dates("2023-11-15", "2025-03-02", unit=unit)
        day = date(2023, 11, 15)
        seen = {}
        while day <= date(2025, 3, 2):
            seen.setdefault(column.cell_of(day.toordinal()), set()).add(period(day))
            day += timedelta(days=1)
        assert all(len(periods) == 1 for periods in seen.values())
        assert sorted(seen) == list(range(column.declared_size))

    @pytest.mark.parametrize("unit", ["day", "week", "month", "quarter", "year"])
    def test_the_last_day_of_the_calendar_is_no_obstacle(self, unit):
        column = dates("9999-12-25", "9999-12-31", unit=unit)
        assert column.axis[-1] == date.max.toordinal() + 1
        assert next_period(date.max.toordinal(), unit) > date.max.toordinal()

    @QUICK
    @given(columns(kinds=(Kind.INTEGER, Kind.REAL, Kind.DATE)))
    def test_axis_grows_and_spans_the_bounds(self, column):
        axis = np.array(column.axis)
        assert (np.diff(axis) > 0).all()
        assert axis[0] == column.bounds[0]
        assert axis[-1] == column.bounds[1] + (column.kind is not Kind.REAL)
        assert column.cell_of(column.bounds[0]) == 0
        assert column.cell_of(column.bounds[1]) == column.declared_size - 1

    @QUICK
    @given(columns())
    def test_sizes_and_codes_fit_together(self, column):
        if not column.is_modelled:
            return
        codes = [column.other_code, column.missing_code, column.constant_code]
        assert all(code is None or 0 <= code < column.size for code in codes)
        assert len(column.cells) == column.size == len(set(column.cells))
        assert (column.missing is Missing.CATEGORY) == (column.missing_code is not None)


class TestDecimalGrid:
    @QUICK
    @given(
        st.lists(st.decimals(-1000, 1000, places=4), min_size=2, max_size=5, unique=True),
        st.integers(0, 6),
    )
    def test_agrees_with_exact_fractions(self, edges, decimals):
        axis = tuple(sorted(float(edge) for edge in edges))
        first, last = decimal_grid(axis, decimals)
        scale = 10**decimals

        def value(multiple):  # as it is written and read back
            return float(Decimal(multiple) / scale)

        for cell, (low, high) in enumerate(itertools.pairwise(axis)):
            closed = cell == len(axis) - 2
            inside = (
                [
                    multiple
                    for multiple in range(
                        math.floor(Fraction(low) * scale) - 1, math.ceil(Fraction(high) * scale) + 2
                    )
                    if low <= value(multiple)
                    and (value(multiple) < high or (closed and value(multiple) == high))
                ]
                if (high - low) * scale < 1000
                else None
            )
            if inside is None:
                assert low <= value(int(first[cell]))
                assert value(int(last[cell])) <= high
                assert value(int(first[cell]) - 1) < low
            elif inside:
                assert (first[cell], last[cell]) == (inside[0], inside[-1])
            else:
                assert first[cell] > last[cell]

    def test_a_grid_finer_than_floats_is_none(self):
        assert decimal_grid((0.0, 1e10), 15) is None


class TestForm:
    def test_equal_declarations_are_equal_and_hash_alike(self):
        forms = [
            integer(18, 90),
            integer(18.0, 90.0),
            integer("18", "90"),
            integer(np.int64(18), np.float64(90)),
            integer(Decimal(18), Fraction(90)),
        ]
        assert len(set(forms)) == 1
        assert len({Schema((form,)).digest for form in forms}) == 1

    def test_dates_may_be_dates(self):
        assert dates(date(2024, 1, 1), datetime(2024, 5, 1, 12)) == dates("2024-01-01", "20240501")

    def test_minus_zero_is_zero(self):
        assert math.copysign(1, real(-0.0, 1).lower) == 1

    def test_no_markers_and_the_blank_marker_say_the_same(self):
        assert categorical("a", missing_markers=()) == categorical("a")
        assert categorical("a", missing_markers=(" ? ", "?")).missing_markers == ("?",)

    @QUICK
    @given(schemas(tuple(Kind)))
    def test_plain_form_round_trips_through_json(self, schema):
        plain = json.loads(json.dumps(schema.to_dict()))
        again = Schema.from_dict(plain)
        assert again == schema
        assert again.digest == schema.digest

    def test_digest_depends_on_every_setting(self):
        base = integer(0, 9)
        others = [integer(0, 8), integer(0, 9, bins=2), integer(0, 9, missing_markers=("?",))]
        assert len({Schema((column,)).digest for column in (base, *others)}) == 4

    @pytest.mark.parametrize(
        ("labels", "codes"),
        [
            (("no", "yes"), (0, 1)),
            (("Yes", "No"), (1, 0)),
            (("1", "0"), (1, 0)),
            (("a", "b"), (0, 1)),
        ],
    )
    def test_truth_by_meaning_else_by_order(self, labels, codes):
        assert Column("x", Kind.BOOLEAN, categories=labels).truth_codes == codes


REFUSED = [
    ({"kind": "number"}, "kind must be one of"),
    ({"kind": ["integer"]}, "kind must be one of"),
    ({"kind": "text", "missing": "drop"}, "missing must be one of"),
    ({"kind": "categorical"}, "declare its categories"),
    ({"kind": "ordinal", "other_label": "(missing)"}, "declare its categories"),
    ({"kind": "categorical", "categories": "abc"}, "categories must be a list"),
    ({"kind": "categorical", "categories": 5}, "categories must be a list"),
    ({"kind": "categorical", "categories": [1, 2]}, "must be a text"),
    ({"kind": "categorical", "categories": ["a", "a"]}, "listed twice"),
    ({"kind": "categorical", "categories": ["a", " "]}, "blank"),
    ({"kind": "categorical", "categories": ["a", "?"], "missing_markers": ["?"]}, "marker as well"),
    ({"kind": "categorical", "categories": ["a\0"]}, "NUL"),
    ({"kind": "categorical", "categories": ["\ud800"]}, "lone surrogate"),
    ({"kind": "categorical", "categories": ["a"], "lower": 0}, "lower has no meaning"),
    ({"kind": "categorical", "categories": ["a"], "out_of_domain": "clip"}, "cannot be clipped"),
    ({"kind": "categorical", "categories": ["a"], "missing_label": " "}, "must not be blank"),
    ({"kind": "categorical", "categories": ["a"], "missing": "constant"}, "go together"),
    (
        {
            "kind": "categorical",
            "categories": ["a"],
            "missing": "constant",
            "missing_constant": "b",
        },
        "one of its categories",
    ),
    ({"kind": "categorical", "categories": ["a"], "missing_constant": "a"}, "go together"),
    ({"kind": "boolean", "categories": ["a"]}, "exactly two"),
    ({"kind": "integer"}, "declare lower"),
    ({"kind": "integer", "lower": 0}, "declare upper"),
    ({"kind": "integer", "lower": 3, "upper": 2}, "lower must be below upper"),
    ({"kind": "integer", "lower": 0.5, "upper": 2}, "whole number"),
    ({"kind": "integer", "lower": True, "upper": 2}, "number or a text"),
    ({"kind": "integer", "lower": [0], "upper": 2}, "number or a text"),
    ({"kind": "integer", "lower": "12o", "upper": 20}, "must be a number"),
    ({"kind": "integer", "lower": 0, "upper": 10**400}, "must be finite"),
    ({"kind": "integer", "lower": 0, "upper": 2**60}, "exact arithmetic"),
    (
        {"kind": "integer", "lower": 0, "upper": 9, "categories": ["a"]},
        "categories have no meaning",
    ),
    ({"kind": "integer", "lower": 0, "upper": 9, "bins": 0}, "bins must be"),
    ({"kind": "integer", "lower": 0, "upper": 9, "bins": 2.5}, "bins must be"),
    ({"kind": "integer", "lower": 0, "upper": 9, "bins": "many"}, "bins must be"),
    ({"kind": "integer", "lower": 0, "upper": 9, "bins": True}, "bins must be"),
    ({"kind": "integer", "lower": 0, "upper": 9, "bins": math.nan}, "bins must be"),
    ({"kind": "integer", "lower": 0, "upper": 9, "bins": 2, "edges": [0, 9]}, "not both"),
    ({"kind": "integer", "lower": 0, "upper": 9, "decimals": 2}, "decimals have no meaning"),
    (
        {"kind": "integer", "lower": 0, "upper": 9, "date_format": "%Y"},
        "date_format has no meaning",
    ),
    ({"kind": "integer", "lower": 0, "upper": 9, "edges": [1, 9]}, "start at lower"),
    ({"kind": "integer", "lower": 0, "upper": 9, "edges": [0, 5, 5, 9]}, "must grow"),
    ({"kind": "integer", "edges": [4]}, "start at lower and end at upper"),
    (
        {"kind": "integer", "lower": 0, "upper": 9, "out_of_domain": "other", "other_label": "5"},
        "same label",
    ),
    (
        {"kind": "integer", "lower": 0, "upper": 9, "missing": "constant", "missing_constant": 10},
        "between",
    ),
    ({"kind": "real", "lower": 0, "upper": 0}, "lower must be below upper"),
    ({"kind": "real", "lower": 0, "upper": math.inf}, "finite"),
    ({"kind": "real", "lower": math.nan, "upper": 1}, "finite"),
    ({"kind": "real", "lower": 1, "upper": math.nextafter(1, 2), "bins": 5}, "must grow"),
    ({"kind": "real", "lower": 0, "upper": 1, "decimals": 16}, "decimals must be"),
    ({"kind": "real", "lower": 0, "upper": 10, "decimals": 0}, "hold no number with 0 decimals"),
    ({"kind": "date", "lower": "2024-02-30", "upper": "2024-03-01"}, "ISO date"),
    ({"kind": "date", "lower": 20240101, "upper": "2024-13-01"}, "ISO date"),
    (
        {"kind": "date", "lower": "2024-01-01", "upper": "2024-03-01", "unit": "fortnight"},
        "unit must",
    ),
    ({"kind": "date", "lower": "2024-01-01", "upper": "2024-03-01", "bins": 3}, "drop bins"),
    ({"kind": "date", "lower": "1900-01-01", "upper": "2024-03-01", "unit": "day"}, "wider unit"),
    ({"kind": "date", "lower": "2024-01-01", "upper": "2024-03-01", "date_format": "%Q"}, "'%Q'"),
    (
        {"kind": "date", "lower": "2024-01-01", "upper": "2024-03-01", "date_format": "day"},
        "same bin",
    ),
    (
        {"kind": "date", "lower": "1950-01-01", "upper": "1950-03-01", "date_format": "%d.%m.%y"},
        "%Y",
    ),
    (
        {
            "kind": "date",
            "lower": "2024-01-01",
            "upper": "2024-03-01",
            "unit": "day",
            "date_format": "%m.%Y",
        },
        "same bin",
    ),
    (
        {"kind": "integer", "lower": 0, "upper": 999, "missing_markers": ["999"]},
        "marker '999' is a value",
    ),
    (
        {"kind": "real", "lower": -9, "upper": 9, "missing_markers": ["?", "-1.0"]},
        "marker '-1.0' is a value",
    ),
    (
        {
            "kind": "date",
            "lower": "1900-01-01",
            "upper": "2024-01-01",
            "missing_markers": ["1900-01-01"],
        },
        "is a value between",
    ),
    ({"kind": "text", "data_dependent": "yes"}, "true or false"),
    ({"kind": "text", "reason": 5}, "must be a text"),
]


class TestRefusals:
    @pytest.mark.parametrize(("declared", "words"), REFUSED)
    def test_bad_declarations_name_column_and_way_out(self, declared, words):
        with pytest.raises(SchemaError) as caught:
            Column.from_dict({"name": "my column", **declared})
        assert words in str(caught.value)
        assert "my column" in str(caught.value)

    @pytest.mark.parametrize("name", ["", None, 5])
    def test_a_column_needs_a_name(self, name):
        with pytest.raises(SchemaError, match="needs a name"):
            Column(name, Kind.TEXT)

    def test_settings_are_known_or_refused(self):
        with pytest.raises(SchemaError, match="unknown setting 'typ'"):
            Column.from_dict({"name": "x", "kind": "text", "typ": 1})
        with pytest.raises(SchemaError, match="name and kind are required"):
            Column.from_dict({"name": "x"})
        with pytest.raises(SchemaError, match="table of settings"):
            Column.from_dict(["x"])

    def test_too_many_cells(self):
        labels = tuple(str(i) for i in range(MAXIMUM_CELLS))
        with pytest.raises(SchemaError, match="cells are more than"):
            categorical(*labels)

    def test_an_ignored_shape_is_kept_while_a_column_is_excluded(self):
        column = Column("x", Kind.TEXT, categories=("a",), lower=0, upper=5)
        assert not column.is_modelled
        assert column.size == 0 or column.cells == ("a",)

    @QUICK
    @given(
        st.dictionaries(
            st.sampled_from([*Column.__dataclass_fields__, "odd"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                lambda inner: st.lists(inner, max_size=3),
                max_leaves=4,
            ),
        ),
        st.sampled_from([kind.value for kind in Kind]),
    )
    def test_any_settings_make_a_column_or_a_schema_error(self, plain, kind):
        try:
            column = Column.from_dict({"name": "x", "kind": kind, **plain})
        except SchemaError:
            return
        assert Column.from_dict(json.loads(json.dumps(column.to_dict()))) == column


class TestSchema:
    def test_names_and_lookup(self):
        schema = Schema((integer(0, 1), Column("id", Kind.IDENTIFIER)))
        assert schema.names == ("x", "id")
        assert [column.name for column in schema.modelled] == ["x"]
        assert "id" in schema
        assert schema["id"].kind is Kind.IDENTIFIER
        with pytest.raises(SchemaError, match="no column is called 'ix'"):
            schema["ix"]

    def test_a_near_miss_is_offered(self):
        schema = Schema((Column("education", Kind.TEXT),))
        with pytest.raises(SchemaError, match="did you mean 'education'"):
            schema.select(["educaton"])

    def test_select_keeps_schema_order(self):
        schema = Schema(tuple(Column(name, Kind.TEXT) for name in "abc"))
        assert schema.select(["c", "a"]).names == ("a", "c")

    def test_empty_repeated_and_foreign_are_refused(self):
        with pytest.raises(SchemaError, match="at least one"):
            Schema(())
        with pytest.raises(SchemaError, match="declared twice"):
            Schema((integer(0, 1), integer(0, 1)))
        with pytest.raises(SchemaError, match="made of columns"):
            Schema(({"name": "x"},))
        with pytest.raises(SchemaError, match="unknown setting"):
            Schema.from_dict({"colums": []})
        with pytest.raises(SchemaError, match="list called columns"):
            Schema.from_dict({"columns": {"a": 1}})

    def test_data_dependent_names_modelled_columns_only(self):
        schema = Schema(
            (integer(0, 1, data_dependent=True), Column("t", Kind.TEXT, data_dependent=True))
        )
        assert schema.data_dependent == ("x",)
