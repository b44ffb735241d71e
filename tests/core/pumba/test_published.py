"""The format of published statistics: what it means."""

import math
import re

import numpy as np
import pytest

from core.errors import StatisticError
from core.pumba.analyses import (
    CorrelationAnalysis,
    DifferenceAnalysis,
    MeanAnalysis,
    RegressionAnalysis,
    TableAnalysis,
)
from core.pumba.published import published_from_rows
from core.pumba.scales import scale_of
from core.statistics import Family, NoiseLaw
from tests.core.pumba.published_texts import GRAM, MEAN, TABLE, TWO_WAY, only, read, refusal

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
