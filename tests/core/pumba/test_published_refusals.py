"""The format of published statistics: what it refuses, in one clear sentence."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import JustitiaError, ReadingError, StatisticError
from core.pumba.published import published_from_rows, read_published
from core.pumba.published_rows import FIELDS
from tests.core.pumba.published_texts import GRAM, MEAN, TABLE, TWO_WAY, only, refusal


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("laplace,2\nt,table,count,sex,man", "poisson,2\nt,table,count,sex,man", "line 2, family"),
        ("60,laplace,2", "60,laplac,2", "did you mean 'laplace'"),
        ("60,laplace,2", "60,laplace,-2", "line 2, scale: must be above 0"),
        ("60,laplace,2", "60,laplace,0", "line 2, scale: must be above 0"),
        ("60,laplace,2", "60,laplace,", "line 2, scale: give exactly one of scale"),
        ("60,laplace,2", "60,laplace,nan", "line 2, scale: a finite number"),
        ("60,laplace,2", "60,laplace,two", "line 2, scale: 'two' is no number"),
        ("60,laplace,2", "nan,laplace,2", "line 2, value: a finite number"),
        ("60,laplace,2", "inf,laplace,2", "line 2, value: a finite number"),
        ("60,laplace,2", ",laplace,2", "line 2, value: a released value is needed"),
        ("60,laplace,2", '"1,060",laplace,2', "line 2, value: '1,060' is no number"),
        ("60,laplace,2", "60.5,discrete_laplace,2", "line 2, value: discrete noise gives whole"),
        ("60,laplace,2", "60,exact,", "line 2, family: only n may be exact"),
        ("60,laplace,2", "-600,laplace,2", "line 2, value: lies 212 noise standard deviations"),
        ("count,sex,woman,60", "mean,sex,woman,60", "noisy sum divided by a noisy count"),
        ("count,sex,woman,60", "proportion,sex,woman,60", "enter the counts themselves"),
        ("count,sex,woman,60", "median,sex,woman,60", "noisy choice"),
        ("count,sex,woman,60", "total_income,sex,woman,60", "line 2, statistic: 'total_income'"),
        ("count,sex,woman,60", "sum,sex,woman,60", "line 2, statistic: a table uses n, count"),
        ("count,sex,woman", "count,,woman", "line 2, column: count needs this field"),
        (
            "count,sex,man",
            "count,sex,woman",
            "line 3, statistic: this statistic was entered before",
        ),
        ("count,sex,man", "count,age,man", "line 3, column: 'age' is not among"),
        ("t,table,count,sex,man", "t,mean,count,sex,man", "line 3, kind: 't' is a table above"),
        ("t,table,count,sex,woman", ",table,count,sex,woman", "line 2, analysis: this field"),
        ("t,table,count,sex,woman", "t,,count,sex,woman", "line 2, kind: this field is needed"),
        ("t,table,count,sex,woman", "t,tabel,count,sex,woman", "did you mean 'table'"),
        ("sex,woman", 'sex,"wo\nman"', "line 2, category: holds a line break"),
        ("laplace,2\nt", "laplace\nt", "line 2: 7 fields where the header has 8"),
        ("value,family", "value,familly", "header: the field 'familly' is unknown; did you mean"),
        ("value,family", "value,value", "header: the field 'value' is named twice"),
        ("category,value", "category,release", "header: the field 'value' is missing"),
        ("t,table,count,sex,man,38,laplace,2\n", "", "'sex' has one category only"),
    ],
)
def test_bad_tables_are_refused_naming_line_and_field(old, new, words):
    assert old in TABLE
    assert words in refusal(TABLE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("t,table,n,,,0,exact,", "line 4, value: an exact n is a whole number of at least 1"),
        ("t,table,n,,,99.5,exact,", "line 4, value: an exact n is a whole number of at least 1"),
        ("t,table,n,,,100,exact,2", "line 4, scale: n has no such field"),
        ("t,table,n,,,98,laplace,2", "n equals the sum of the other rows"),
        ("t,table,n,,,98,exact,", "the counts add up to the exact n, so they were adjusted"),
        ("t,table,n,,,40,exact,", "line 2, value"),
        ("t,table,n,,,150,exact,", "check scales, or add the missing categories"),
        ("t,table,n,,,100,exact,\nt,table,n,,,100,exact,", "line 5, statistic: n was given before"),
        ("t,table,count,sex,man,40,laplace,2", "give them different names in the field release"),
        ("t,table,count,sex,man,38,laplace,2", "remove one of the rows"),
    ],
)
def test_bad_totals_and_repetitions(line, words):
    text = TABLE.replace("60,laplace,2", "60,laplace,.2").replace("38,laplace,2", "38,laplace,.2")
    assert words in refusal(text + line + "\n")


@pytest.mark.parametrize("treatment", ["rounded", "thresholded", "adjusted", "clamped", "smoothed"])
def test_processed_values_are_refused_with_the_reason(treatment):
    text = TABLE.replace("scale\n", "scale,processing\n").replace(",2\n", f",2,{treatment}\n")
    words = refusal(text)
    assert "line 2, processing: " in words
    assert "enter" in words or "say where" in words or "use none" in words


def test_margins_that_are_sums_of_their_cells_are_refused():
    text = TWO_WAY.replace("discrete_gaussian", "gaussian")
    assert "line 6, value: equals the sum" in refusal(
        text + "t,table,count,sex,w,,,30,gaussian,3,\n"
    )
    adjusted = "".join(
        f"t,table,count,{margin},discrete_gaussian,3,\n"
        for margin in ("sex,w,,,30", "sex,m,,,70", "hired,yes,,,40")
    )
    assert "line 6, value: equals the sum" in refusal(TWO_WAY + adjusted)
    assert only(TWO_WAY + adjusted.replace(",40,", ",41,")).table.queries


def test_a_missing_cell_is_named():
    text = TWO_WAY.replace("t,table,count,sex,m,hired,no,40,discrete_gaussian,3,\n", "")
    assert "the count of sex = m, hired = no is missing" in refusal(text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("m,mean,n,,,,200,exact,\n", "", "analysis 'm': n is missing"),
        ("m,mean,sum,x,0,1,101.5,laplace,2\n", "", "analysis 'm': sum is missing"),
        (",0,1,", ",,,", "'x' needs lower and upper"),
        (",0,1,", ",0,,", "line 3, upper: bounds come in pairs"),
        (",0,1,", ",1,0,", "line 3, upper: must lie above lower"),
        (",0,1,", ",1,1,", "line 3, upper: must lie above lower"),
        (",,,61", ",0,2,61", "line 4, lower: 'x' has other bounds in stats.csv, line 3"),
        ("101.5,", "1015,", "line 3, value: lies 288 noise standard deviations outside"),
        ("sum_squares,x,,,61", "sum_squares,x,,,-900", "line 4, value: lies"),
        ("sum_squares", "sum_fourth", "sum_fourth is of use only beside sum_squares"),
        ("sum_squares,x", "sum_squares,z", "line 3, column: one column is summed, not 2"),
        ("sum_squares,x", "sum,x", "line 4, statistic: this statistic was entered before"),
    ],
)
def test_bad_means(old, new, words):
    assert old in MEAN
    assert words in refusal(MEAN.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",outcome", ",", "exactly one column with role outcome, not 0"),
        (",outcome", ",result", "line 5, role: 'result' is unknown"),
        (",,sum_product,y,x,33,gaussian,1,,,\n", "", "sum_product of 'x' and 'y' is missing"),
        (",,sum_squares,x,,35,gaussian,1,,,\n", "", "sum_squares of 'x' is missing"),
        ("sum_product,y,x", "sum_product,y,y", "line 7, column_2: must be another column"),
        ("sum_product,y,x", "sum_product,y,", "line 7, column_2: sum_product needs this field"),
        ("sum_product,y,x,33", "sum_product,y,x,330", "line 7, value: lies 230 noise"),
        ("r,regression,n,,,100,exact,,,,\n", "r,regression,sum,x,,50,gaussian,1,0,1,\n", "entered"),
        (",0,1,outcome", ",,,outcome", "'y' needs lower and upper"),
    ],
)
def test_bad_regressions(old, new, words):
    assert old in GRAM
    assert words in refusal(GRAM.replace(old, new, 1))


def test_bins_must_follow_one_another():
    text = (
        "analysis,kind,statistic,column,lower,upper,value,family,scale\n"
        "h,histogram,count,age,0,18,20,laplace,3\n"
        "h,histogram,count,age,20,40,30,laplace,3\n"
    )
    assert "line 3, lower: bins must follow one another; the bin before ends at 18" in refusal(text)
    assert "at least two bins" in refusal(text.rsplit("h,", 1)[0])
    assert "entered before" in refusal(text.replace("20,40", "0,18"))


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"PK\x03\x04rest", "a ZIP archive"),
        (b"[{]", "line 1 is not valid JSON"),
        (b'{"rows": []}', "a list called statistics"),
        (b'{"statistics": 3}', "must be a list"),
        (b"[]", "no statistic"),
        (b'[{"analysis": ["t"]}]', "entry 1, analysis: a text is needed"),
        (b"[3]", "entry 1: each statistic is an object"),
        (b'[{"analysis": "t", "analysis": "u"}]', "given twice"),
        (b'[{"analysis": "t", "value": NaN}]', "NaN is not a number"),
        (b'[{"analysis": "t", "kind": "table", "statistic": "n", "value": true}]', "entry 1"),
        (b"analysis,kind,statistic,value,family\n", "no statistic"),
        (b"value\n3\n", "'analysis' is missing"),
    ],
)
def test_files_that_are_none(blob, words):
    with pytest.raises((ReadingError, StatisticError), match=re.escape(words)) as caught:
        read_published(blob, name="stats.csv")
    assert str(caught.value).startswith("stats.csv")


def test_a_missing_file(tmp_path):
    with pytest.raises(ReadingError, match=r"none\.csv: the file cannot be opened"):
        read_published(tmp_path / "none.csv")


CELLS = st.one_of(
    st.none(),
    st.text(max_size=6),
    st.floats(),
    st.integers(-5, 5),
    st.booleans(),
    st.sampled_from(
        ["t", "table", "mean", "regression", "n", "count", "sum", "x", "laplace", "exact", "1", "0"]
    ),
)


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), CELLS, max_size=12), max_size=4))
def test_whatever_is_entered_is_read_or_refused(rows):
    with suppress(JustitiaError):
        published_from_rows(rows)
