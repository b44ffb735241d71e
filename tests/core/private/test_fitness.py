"""How a table fits its declarations: coarse words for one's own screen, never a count."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SchemaError
from core.private.fitness import ignored, share_words, table_fit, written_as
from core.private.reading import read_table
from core.schema import Column, Kind, Schema
from tests.core.schema_strategies import QUICK

DAY = Column("x", Kind.DATE, lower="2020-01-01", upper="2024-12-31")
FEE = Column("x", Kind.REAL, lower=0, upper=100)
SEX = Column("x", Kind.CATEGORICAL, categories=("woman", "man", "another"), other_label="another")


def table(cells):
    return read_table("\n".join(["x", *(f'"{cell}"' for cell in cells)]).encode(), decimal=".")


def fit(cells, column):
    (found,) = table_fit(table(cells), Schema((column,)))
    return found


class TestWords:
    @given(st.integers(0, 10**6), st.integers(1, 10**6))
    @QUICK
    def test_a_band_holds_its_share(self, part, whole):
        part = min(part, whole)
        words = share_words(part, whole)
        numbers = [int(text) / 100 for text in re.findall(r"\d+", words)]
        if words in ("none", "all"):
            assert part == (0 if words == "none" else whole)
        elif "below" in words:
            assert 0 < part / whole <= numbers[0]
        elif "above" in words:
            assert numbers[0] <= part / whole < 1
        else:
            assert numbers[0] <= part / whole <= numbers[1]

    def test_an_empty_column(self):
        found = fit(["", " "], FEE)
        assert found.words == "fit: none; missing: all"
        assert found.hint == "every cell is missing"
        assert not found.hardly


class TestColumns:
    def test_a_wrong_date_form_is_seen_and_the_right_one_named(self):
        found = fit(["16.10.2022", "01.02.2023"] * 20, DAY)
        assert found.hardly
        assert found.words == "fit: none; cannot be read as dates of the declared form: all"
        assert "%d.%m.%Y" in found.hint
        assert "date_format" in found.hint

    def test_a_wrong_unit_is_seen(self):
        cents = fit([str(100 * i) for i in range(50, 99)], FEE)
        assert cents.hardly
        assert "beyond the bounds: all" in cents.words
        assert "unit" in cents.hint
        metres = fit([f"1.{i}" for i in range(50, 99)], FEE)
        assert not metres.hardly
        assert "one bin" in metres.hint

    def test_a_decimal_comma_is_seen(self):
        found = fit([f"{i},5" for i in range(40)], FEE)
        assert found.hardly
        assert "decimal under [reading]" in found.hint

    def test_shares_are_coarse_and_add_missing(self):
        found = fit([*(str(i) for i in range(80)), *[""] * 17, *["x"] * 3], FEE)
        assert found.words == (
            "fit: most (75 to 95 %); cannot be read as numbers: a few (1 to 5 %); "
            "missing: some (5 to 25 %)"
        )
        assert not found.hint
        assert not re.search(r"\b(80|17|3)\b", found.words)

    def test_a_category_that_takes_the_others_fits_itself(self):
        assert fit(["woman", "man", "another"] * 5, SEX).words == "fit: all"
        found = fit(["woman", "man", "other"] * 5, SEX)
        assert "not among the categories: about half" in found.words

    def test_labels_in_other_letters_or_codes(self):
        assert "capital letters" in fit(["WOMAN", "Man"] * 9, SEX).hint
        assert "codes" in fit(["1", "2"] * 9, SEX).hint

    def test_booleans_fit_by_their_meaning(self):
        column = Column("x", Kind.BOOLEAN, categories=("no", "yes"), other_label="no")
        assert fit(["0", "1", "yes"], column).words == "fit: all"

    def test_a_column_that_is_declared_empty(self):
        column = Column("x", Kind.CATEGORICAL, other_label="(missing)")
        assert fit(["", ""], column).hint == "every cell is missing"

    def test_a_missing_column_is_refused_with_a_way_out(self):
        with pytest.raises(SchemaError, match="did you mean 'x'"):
            table_fit(table(["1"]), Schema((Column("X", Kind.REAL, lower=0, upper=1),)))

    def test_names_that_are_not_used(self):
        raw = read_table(b"a,b,c\n1,2,3\n")
        columns = (Column("a", Kind.TEXT), Column("b", Kind.INTEGER, lower=0, upper=9))
        assert ignored(raw, Schema(columns)) == ("a", "c")


class TestWritten:
    def test_a_date_form_is_taken_from_the_file(self):
        column, notes = written_as(table(["16.10.2022", "01.02.2023", "?"] * 9), DAY)
        assert column.date_format == "%d.%m.%Y"
        assert "%d.%m.%Y" in notes[0]
        assert not column.data_dependent

    @pytest.mark.parametrize("cells", [["2022-10-16"] * 9, ["autumn"] * 9, ["", ""]])
    def test_no_form_without_a_reason(self, cells):
        assert written_as(table(cells), DAY) == (DAY, [])

    def test_a_declared_form_stays(self):
        column = Column(
            "x", Kind.DATE, lower="2020-01-01", upper="2024-12-31", date_format="%Y/%m/%d"
        )
        assert written_as(table(["16.10.2022"] * 9), column) == (column, [])

    def test_an_ambiguous_form_is_mentioned(self):
        _, notes = written_as(table(["01/02/2022", "03/04/2022"]), DAY)
        assert "swapped" in notes[1]

    def test_decimals_are_those_of_nearly_all(self):
        cells = [f"{i % 90}.25" for i in range(500)]
        assert written_as(table(cells), FEE)[0].decimals == 2
        assert written_as(table([*cells, "1.2345"]), FEE)[0].decimals == 2  # not one row's
        assert written_as(table(["1", "2"] * 9), FEE)[0].decimals == 0

    def test_binary_noise_is_no_number_of_decimals(self):
        numbers = np.random.default_rng(0).random(50)
        assert written_as(table(map(repr, numbers.tolist())), FEE)[0].decimals is None

    def test_a_bin_without_any_such_number_keeps_full_precision(self):
        column = Column("x", Kind.REAL, lower=0, upper=1, bins=10)
        assert written_as(table(["0", "1"] * 9), column) == (column, [])
