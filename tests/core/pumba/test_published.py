"""The format of published statistics: what it means, and what it refuses in one clear sentence."""

import math
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import JustitiaError, ReadingError, StatisticError
from core.pumba.analyses import (
    CorrelationAnalysis,
    DifferenceAnalysis,
    MeanAnalysis,
    RegressionAnalysis,
    TableAnalysis,
)
from core.pumba.published import published_from_rows, read_published
from core.pumba.published_rows import FIELDS
from core.pumba.scales import scale_of
from core.statistics import Family, NoiseLaw

TABLE = """analysis,kind,statistic,column,category,value,family,scale
t,table,count,sex,woman,60,laplace,2
t,table,count,sex,man,38,laplace,2
"""
TWO_WAY = """analysis,kind,statistic,column,category,column_2,category_2,value,family,scale,release
t,table,count,sex,w,hired,yes,10,discrete_gaussian,3,
t,table,count,sex,w,hired,no,20,discrete_gaussian,3,
t,table,count,hired,yes,sex,m,30,discrete_gaussian,3,
t,table,count,sex,m,hired,no,40,discrete_gaussian,3,
"""
MEAN = """analysis,kind,statistic,column,lower,upper,value,family,scale
m,mean,n,,,,200,exact,
m,mean,sum,x,0,1,101.5,laplace,2
m,mean,sum_squares,x,,,61,laplace,5
"""
GRAM = """analysis,kind,statistic,column,column_2,value,family,scale,lower,upper,role
r,regression,n,,,100,exact,,,,
,,sum,x,,50,gaussian,1,0,1,
,,sum_squares,x,,35,gaussian,1,,,
,,sum,y,,60,gaussian,1,0,1,outcome
,,sum_squares,y,,40,gaussian,1,,,
,,sum_product,y,x,33,gaussian,1,,,
"""


def read(text):
    return read_published(text.encode(), name="stats.csv")


def only(text):
    (analysis,) = read(text).analyses
    return analysis


def refusal(text):
    with pytest.raises(JustitiaError) as caught:
        read(text)
    words = str(caught.value)
    assert caught.value.exit_code == 2
    assert words.startswith("stats.csv")
    assert "\n" not in words
    return words


# -- what it means -------------------------------------------------------------------------------


def test_a_one_way_table():
    analysis = only(TABLE)
    assert isinstance(analysis, TableAnalysis)
    assert analysis.table.axes == (("sex", ("woman", "man")),)
    assert [cell.value for cell in analysis.table.cells] == [60.0, 38.0]
    assert {cell.law for cell in analysis.table.cells} == {NoiseLaw(Family.LAPLACE, 2.0)}
    assert analysis.table.total is None


def test_a_two_way_table_puts_cells_in_order_whatever_the_order_of_columns():
    analysis = only(TWO_WAY)
    assert analysis.table.axes == (("sex", ("w", "m")), ("hired", ("yes", "no")))
    assert [cell.value for cell in analysis.table.cells] == [10.0, 20.0, 30.0, 40.0]


def test_margins_and_totals_are_releases_of_their_own():
    analysis = only(
        TWO_WAY
        + "t,table,count,sex,w,,,33,discrete_gaussian,3,\n"
        + "t,table,count,hired,no,,,55,discrete_gaussian,4,\n"
        + "t,table,n,,,,,104,discrete_gaussian,5,\n"
    )
    weights = [query.weights for query in analysis.table.queries]
    assert weights == [(1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0)]
    assert analysis.table.queries[1].statistic.law.scale == 4.0
    assert analysis.table.total.value == 104.0
    assert analysis.facts.repeated == ()


def test_a_second_release_of_a_cell_is_welcome_under_another_name():
    analysis = only(TWO_WAY + "t,table,count,sex,m,hired,no,44,discrete_gaussian,2,may\n")
    (query,) = analysis.table.queries
    assert query.weights == (0.0, 0.0, 0.0, 1.0)
    assert analysis.facts.repeated == ("the count of sex = m, hired = no",)


def test_an_exact_total():
    assert only(TABLE + "t,table,n,,,100,exact,\n").table.total == 100


def test_a_mean():
    analysis = only(MEAN)
    assert isinstance(analysis, MeanAnalysis)
    mean = analysis.mean
    assert (mean.name, mean.lower, mean.upper, mean.count) == ("x", 0.0, 1.0, 200)
    assert (mean.total.value, mean.squares.value, mean.quartics) == (101.5, 61.0, None)
    assert analysis.facts.clipped == (("x", 0.0, 1.0),)


def test_a_difference_needs_two_groups():
    rows = [
        {"statistic": "n", "category": group, "value": 50, "family": "exact"}
        | {"analysis": "d", "kind": "difference"}
        for group in ("a", "b")
    ]
    rows += [
        {"statistic": "sum", "column": "x", "category": group, "value": value, "family": "laplace"}
        | {"scale": 2, "lower": 0, "upper": 1, "analysis": "d", "kind": "difference"}
        for group, value in (("a", 20.0), ("b", 30.0))
    ]
    (analysis,) = published_from_rows(rows).analyses
    assert isinstance(analysis, DifferenceAnalysis)
    assert (analysis.first.name, analysis.second.name) == ("x (a)", "x (b)")
    assert analysis.second.total.value == 30.0
    one_sided = {"statistic": "sum_squares", "column": "x", "category": "b", "value": 20.0}
    with pytest.raises(StatisticError, match="sum_squares of category 'a' is missing"):
        published_from_rows([*rows, rows[2] | one_sided])
    with pytest.raises(StatisticError, match="two groups, told apart by the field category"):
        published_from_rows([row for row in rows if row["category"] == "a"])


def test_a_regression_and_a_correlation():
    analysis = only(GRAM)
    assert isinstance(analysis, RegressionAnalysis)
    assert (analysis.outcome, analysis.predictors) == ("y", ("x",))
    assert analysis.gram.names == ("x", "y")
    assert set(analysis.gram.products) == {("x", "x"), ("x", "y"), ("y", "y")}
    same = only(GRAM.replace("regression", "correlation").replace("outcome", ""))
    assert isinstance(same, CorrelationAnalysis)


def test_categories_enter_a_regression_as_indicators():
    header = "analysis,kind,statistic,column,category,column_2,category_2,value,family,scale,"
    text = (
        header
        + """lower,upper,role
r,regression,n,,,,,100,exact,,,,
,,sum,y,,,,60,gaussian,1,0,1,outcome
,,sum_squares,y,,,,40,gaussian,1,,,
,,count,region,north,,,30,discrete_laplace,1,,,
,,count,region,south,,,40,discrete_laplace,1,,,
,,count,boss,yes,,,10,discrete_laplace,1,,,
,,sum_product,y,,region,north,18,gaussian,1,,,
,,sum_product,y,,region,south,25,gaussian,1,,,
,,sum_product,y,,boss,yes,7,gaussian,1,,,
,,count,region,north,boss,yes,3,discrete_laplace,1,,,
,,count,region,south,boss,yes,5,discrete_laplace,1,,,
"""
    )
    gram = only(text).gram
    assert gram.names == ("y", "region=north", "region=south", "boss=yes")
    assert [one.exclusive for one in gram.variables] == [None, "region", "region", None]
    assert [one.indicator for one in gram.variables] == [False, True, True, True]
    assert ("region=north", "region=south") not in gram.products
    assert gram.products["region=north", "boss=yes"].value == 3.0
    assert "0 in every table" in refusal(
        text + ",,sum_product,region,north,region,south,0,gaussian,1,,,\n"
    )
    assert "indicator itself" in refusal(text + ",,sum_squares,boss,yes,,,9,gaussian,1,,,\n")
    assert "sum_product of 'region=south' and 'boss=yes' is missing" in refusal(
        text.rsplit(",,count", 1)[0]
    )


def moments(left_out=None):
    rows = [
        f",,moment,x,y,{a},{b},20,gaussian,1,,,"
        for a, b in ((3, 0), (2, 1), (1, 2), (0, 3), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4))
        if (a, b) != left_out
    ]
    head, *body = GRAM.splitlines()
    head = head.replace("column_2,", "column_2,power,power_2,")
    body = [re.sub(r"^((?:[^,]*,){5})", r"\1,,", line) for line in body]
    return "\n".join([head, *body, *rows]) + "\n"


def test_sums_of_degree_three_and_four():
    fourth = only(moments()).gram.fourth
    assert len(fourth) == 9
    assert ("x", "x", "y") in fourth
    assert "x × x × y × y is missing" in refusal(moments((2, 2)))


def test_two_gaussian_releases_of_one_sum_are_pooled():
    base = {"analysis": "r", "kind": "correlation", "family": "gaussian", "scale": 1}
    rows = [
        base | {"statistic": "n", "value": 100, "family": "exact", "scale": None},
        base | {"statistic": "sum", "column": "x", "value": 50, "lower": 0, "upper": 1},
        base | {"statistic": "sum", "column": "x", "value": 52, "release": "second"},
        base | {"statistic": "sum_squares", "column": "x", "value": 35},
        base | {"statistic": "sum", "column": "y", "value": 60, "lower": 0, "upper": 1},
        base | {"statistic": "sum_squares", "column": "y", "value": 40},
        base | {"statistic": "sum_product", "column": "x", "column_2": "y", "value": 33},
    ]
    (analysis,) = published_from_rows(rows).analyses
    assert [one.value for one in analysis.gram.sums["x"]] == [50.0, 52.0]
    assert analysis.facts.repeated == ("the sum of x",)
    rows[2] |= {"family": "laplace"}
    with pytest.raises(StatisticError, match="row 3, release: several releases"):
        published_from_rows(rows)


def test_a_histogram_sorts_its_bins():
    analysis = only(
        "analysis,kind,statistic,column,lower,upper,value,family,sd\n"
        "h,histogram,count,age,40,65,50,laplace,3\n"
        "h,histogram,count,age,0,18,20,laplace,3\n"
        "h,histogram,count,age,18,40,30,laplace,3\n"
    )
    assert analysis.edges == (0.0, 18.0, 40.0, 65.0)
    assert [cell.value for cell in analysis.table.cells] == [20.0, 30.0, 50.0]
    assert analysis.table.cells[0].law.scale == pytest.approx(3 / math.sqrt(2))


def test_empty_analysis_and_kind_repeat_the_line_above():
    text = TABLE.replace("\nt,table,count,sex,man", "\n,,count,sex,man")
    assert only(text).title == "t"


def test_words_of_other_software_and_headers_of_other_people():
    text = (
        "Title;Kind;Statistic;Variable;Category;Value;Noise;Sigma\n"
        "t;proportion;count;sex;w;60;Normal;2\n"
        "t;proportion;count;sex;m;38;Integer Gaussian;2\n"
    )
    laws = [cell.law.family for cell in only(text).table.cells]
    assert laws == [Family.GAUSSIAN, Family.DISCRETE_GAUSSIAN]


def test_a_clamp_is_kept():
    text = TABLE.replace("scale\n", "scale,clamped_low\n").replace("laplace,2\n", "gaussian,2,0\n")
    assert only(text.replace(",38,", ",0,")).table.cells[1].clamped == (0.0, None)
    assert "line 3, value: " in refusal(text.replace(",38,", ",-1,"))


def test_json_says_the_same():
    text = """{"statistics": [
      {"analysis": "t", "kind": "table", "statistic": "count", "column": "sex",
       "category": "woman", "value": 60, "family": "laplace", "scale": 2},
      {"analysis": "t", "kind": "table", "statistic": "count", "column": "sex",
       "category": "man", "value": 38, "family": "laplace", "scale": 2}]}"""
    first, second = only(text), only(TABLE)
    assert first.table.axes == second.table.axes
    assert first.table.cells == second.table.cells
    bare = text[text.index("[") : text.rindex("]") + 1]
    assert only(bare).table.cells == second.table.cells


def test_records_of_a_data_frame():
    import pandas as pd

    frame = pd.DataFrame(
        {
            "analysis": ["t"] * 3,
            "kind": "table",
            "statistic": ["count", "count", "n"],
            "column": ["sex", "sex", None],
            "category": [2020.0, 2021.0, float("nan")],
            "value": [60, 38, 100],
            "family": ["laplace", "laplace", "exact"],
            "scale": [2.0, 2.0, float("nan")],
        }
    )
    (analysis,) = published_from_rows(frame.to_dict("records")).analyses
    assert analysis.table.total == 100
    assert analysis.table.axes == (("sex", ("2020", "2021")),)


def test_several_analyses_keep_their_order():
    both = (
        "analysis,kind,statistic,column,category,lower,upper,value,family,scale\n"
        "m,mean,n,,,,,200,exact,\nt,table,count,sex,w,,,60,laplace,2\n"
        "m,mean,sum,x,,0,1,101.5,laplace,2\nt,table,count,sex,m,,,38,laplace,2\n"
    )
    assert [analysis.title for analysis in read(both).analyses] == ["m", "t"]


# -- scales --------------------------------------------------------------------------------------


def discrete_sd(family, scale, step):
    k = np.arange(-4000, 4001) * step
    log = -np.abs(k) / scale if family.laplace else -0.5 * (k / scale) ** 2
    weights = np.exp(log)
    return math.sqrt(weights @ k**2 / weights.sum())


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("step", [1.0, 0.25])
@pytest.mark.parametrize("sd", [0.3, 0.7, 1.0, 2.0, 40.0])
def test_a_scale_has_the_standard_deviation_it_was_made_from(family, step, sd):
    scale = scale_of(family, sd, step)
    if family.discrete:
        assert discrete_sd(family, scale, step) == pytest.approx(sd, rel=1e-4)
    else:
        assert NoiseLaw(family, scale).sd == pytest.approx(sd, rel=1e-12)


# -- what it refuses -----------------------------------------------------------------------------


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
