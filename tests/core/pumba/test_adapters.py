"""What other software prints, in the forms that it prints; OpenDP's were recorded from 0.16."""

import math
from collections import namedtuple
from enum import Enum

import pytest

from core.errors import StatisticError
from core.pumba.adapters import from_census, from_opendp, from_pipeline_dp, from_tumult
from core.pumba.published import published_from_rows
from core.statistics import Family, NoiseLaw

# -- OpenDP --------------------------------------------------------------------------------------

GROUPED_SUMMARY = [
    {"column": "len", "aggregate": "Frame Length", "distribution": "Integer Laplace", "scale": 8.0},
    {
        "column": "income",
        "aggregate": "Sum",
        "distribution": "Float Laplace",
        "scale": 400.00000142108547,
    },
]
GROUPED = [
    {"sex": "b", "len": 502, "income": 12778.26051871974},
    {"sex": "a", "len": 501, "income": 12077.74215924488},
]


def test_opendp_groups():
    found = from_opendp(GROUPED_SUMMARY, GROUPED, group_by=["sex"])
    assert [(one.statistic, one.column, one.group) for one in found] == [
        ("count", None, (("sex", "b"),)),
        ("count", None, (("sex", "a"),)),
        ("sum", "income", (("sex", "b"),)),
        ("sum", "income", (("sex", "a"),)),
    ]
    assert [one.noisy.value for one in found] == [502, 501, 12778.26051871974, 12077.74215924488]
    assert found[0].noisy.law == NoiseLaw(Family.DISCRETE_LAPLACE, 8.0)
    assert found[2].noisy.law == NoiseLaw(Family.LAPLACE, 400.00000142108547)


def test_opendp_cuts_counts_off_at_zero_unless_signed():
    assert from_opendp(GROUPED_SUMMARY, GROUPED)[0].noisy.clamped == (0.0, None)
    assert from_opendp(GROUPED_SUMMARY, GROUPED, signed=True)[0].noisy.clamped == (None, None)
    assert from_opendp(GROUPED_SUMMARY, GROUPED)[2].noisy.clamped == (None, None)


def test_opendp_gaussian_with_accuracy():
    summary = [
        {
            "column": "len",
            "aggregate": "Frame Length",
            "distribution": "Integer Gaussian",
            "scale": 2.8284271247461903,
            "accuracy": 7.0,
        }
    ]
    (one,) = from_opendp(summary, [{"len": 1005}])
    assert one.statistic == "n"
    assert one.noisy.law == NoiseLaw(Family.DISCRETE_GAUSSIAN, 2.8284271247461903)


def test_opendp_means_are_refused_though_summarize_lists_their_parts():
    summary = [
        {"column": "k", "aggregate": "Sum", "distribution": "Integer Laplace", "scale": 48.0},
        {"column": "k", "aggregate": "Length", "distribution": "Integer Laplace", "scale": 8.0},
    ]
    with pytest.raises(StatisticError, match="column 'k': a noisy mean is a noisy sum divided"):
        from_opendp(summary, [{"k": 3.1427104722792607}])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"aggregate": "0.5-Quantile", "distribution": "ExponentialMin"}, "no additive noise"),
        ({"threshold": 33}, "only published because it was large"),
        ({"distribution": "Integer Cauchy"}, "'Integer Cauchy' is unknown"),
        ({"distribution": None}, "has no noise: .* family exact"),
        ({"scale": float("nan")}, "finite number"),
        ({"scale": 0.0}, "noise scale"),
        ({"scale": None}, "'scale' is missing"),
        ({"column": "rows"}, "'rows' is missing; there are: sex, len, income"),
    ],
)
def test_opendp_refusals(change, words):
    with pytest.raises(StatisticError, match=words):
        from_opendp([GROUPED_SUMMARY[0] | change], GROUPED, group_by=["sex"])


def test_an_empty_threshold_is_none():
    entry = GROUPED_SUMMARY[0] | {"threshold": None}
    assert len(from_opendp([entry], GROUPED, group_by=["sex"])) == 2


def test_opendp_counts_become_a_table():
    found = from_opendp(GROUPED_SUMMARY[:1], GROUPED, group_by=["sex"])
    (analysis,) = published_from_rows([one.row("sexes", "table") for one in found]).analyses
    assert analysis.table.axes == (("sex", ("b", "a")),)
    assert analysis.table.cells == tuple(one.noisy for one in found)


def test_opendp_sums_become_a_difference():
    found = from_opendp(GROUPED_SUMMARY, GROUPED, group_by=["sex"], signed=True)
    rows = [one.row("gap", "difference") for one in found]
    for row in rows:
        if row["statistic"] == "count":
            row["statistic"] = "n"
        else:
            row["lower"], row["upper"] = 0, 50
    (analysis,) = published_from_rows(rows).analyses
    assert analysis.first.total == found[2].noisy
    assert analysis.first.count == found[0].noisy


# -- Tumult --------------------------------------------------------------------------------------


class Mechanism(Enum):
    """The members of Tumult's own enumeration."""

    LAPLACE = 1
    GEOMETRIC = 2
    DISCRETE_GAUSSIAN = 3
    EXPONENTIAL = 4
    GAUSSIAN = 5


@pytest.mark.parametrize(
    ("mechanism", "parameter", "law"),
    [
        (Mechanism.LAPLACE, 2.5, NoiseLaw(Family.LAPLACE, 2.5)),
        (Mechanism.GEOMETRIC, 2.5, NoiseLaw(Family.DISCRETE_LAPLACE, 2.5)),
        (Mechanism.DISCRETE_GAUSSIAN, 9.0, NoiseLaw(Family.DISCRETE_GAUSSIAN, 3.0)),
        (Mechanism.GAUSSIAN, 2.25, NoiseLaw(Family.GAUSSIAN, 1.5)),
        ("<_NoiseMechanism.GAUSSIAN: 5>", 2.25, NoiseLaw(Family.GAUSSIAN, 1.5)),
    ],
)
def test_tumult_gives_variances_of_gaussians_and_scales_of_the_others(mechanism, parameter, law):
    info = [{"noise_mechanism": mechanism, "noise_parameter": parameter}]
    found = from_tumult(info, [{"city": "Ulm", "n": 7}], "n", group_by=["city"])
    assert found[0].noisy.law == law
    assert found[0].group == (("city", "Ulm"),)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ([{"noise_mechanism": Mechanism.GEOMETRIC, "noise_parameter": 1}] * 2, "2 noisy numbers"),
        ([], "0 noisy numbers"),
        ([{"noise_mechanism": Mechanism.EXPONENTIAL, "noise_parameter": 1}], "noisy choice"),
        ([{"noise_mechanism": "CAUCHY", "noise_parameter": 1}], "'CAUCHY' is unknown"),
        ([{"noise_mechanism": Mechanism.GAUSSIAN, "noise_parameter": 0}], "variance of the noise"),
    ],
)
def test_tumult_refusals(info, words):
    with pytest.raises(StatisticError, match=words):
        from_tumult(info, [{"n": 7}], "n")


def test_tumult_sums_need_their_column():
    info = [{"noise_mechanism": Mechanism.LAPLACE, "noise_parameter": 3}]
    (one,) = from_tumult(info, [{"total": 7.5}], "total", statistic="sum", column="pay")
    assert (one.statistic, one.column) == ("sum", "pay")
    with pytest.raises(StatisticError, match="together with the summed column"):
        from_tumult(info, [{"total": 7.5}], "total", statistic="sum")
    with pytest.raises(StatisticError, match="together with the summed column"):
        from_tumult(info, [{"total": 7.5}], "total", statistic="average")


# -- PipelineDP ----------------------------------------------------------------------------------

Count = namedtuple("MetricsTuple", ["count", "count_noise_stddev"])


def test_pipeline_dp_named_tuples():
    rows = [("Mon", Count(1.2345, 4.5678)), ("Tue", Count(40.0, 4.5678))]
    found = from_pipeline_dp(rows, "count", "laplace", partition="day")
    assert found[0].noisy.law.sd == pytest.approx(4.5678)
    assert found[0].noisy.law.family is Family.LAPLACE
    assert [one.group for one in found] == [(("day", "Mon"),), (("day", "Tue"),)]


def test_pipeline_dp_sums_and_compound_keys():
    metrics = {"sum": 12.0, "sum_noise_stddev": 3.0}
    (one,) = from_pipeline_dp(
        [(("Mon", 9), metrics)], "sum", Family.GAUSSIAN, partition=["day", "hour"], column="spent"
    )
    assert one.group == (("day", "Mon"), ("hour", "9"))
    assert one.noisy.law == NoiseLaw(Family.GAUSSIAN, 3.0)
    with pytest.raises(StatisticError, match="sums one grouping column"):
        one.row("a", "difference")


@pytest.mark.parametrize(
    ("metric", "family", "row", "words"),
    [
        ("mean", "laplace", {}, "noisy sum divided"),
        ("vector_sum", "laplace", {}, "no standard deviation"),
        ("count", "cauchy", {}, "'cauchy' is unknown"),
        ("count", "laplace", {"count": 3.0}, "'count_noise_stddev' is missing"),
        ("count", "laplace", {"count": 3.0, "count_noise_stddev": 0.0}, "above 0"),
        ("sum", "laplace", {}, "needs the summed column"),
    ],
)
def test_pipeline_dp_refusals(metric, family, row, words):
    with pytest.raises(StatisticError, match=words):
        from_pipeline_dp([("Mon", row)], metric, family, partition="day")


# -- Census --------------------------------------------------------------------------------------


def test_census_counts_keep_their_signs():
    rows = [
        {"votingage": "under 18", "hispanic": "yes", "value": -4, "variance": 20.25},
        {"votingage": "18 and over", "hispanic": "yes", "value": 31, "variance": 20.25},
        {"votingage": "under 18", "hispanic": "no", "value": 12, "variance": 20.25},
        {"votingage": "18 and over", "hispanic": "no", "value": 90, "variance": 20.25},
    ]
    found = from_census(rows, group_by=["votingage", "hispanic"])
    assert [one.noisy.value for one in found] == [-4, 31, 12, 90]
    assert {one.noisy.law for one in found} == {NoiseLaw(Family.DISCRETE_GAUSSIAN, 4.5)}
    (analysis,) = published_from_rows([one.row("block", "table") for one in found]).analyses
    assert [cell.value for cell in analysis.table.cells] == [-4, 12, 31, 90]


def test_census_small_variances_are_those_of_the_discrete_law():
    (one,) = from_census([{"value": 3, "variance": 0.25}], group_by=[])
    sigma = one.noisy.law.scale
    weights = [math.exp(-(k**2) / (2 * sigma**2)) for k in range(-30, 31)]
    variance = sum(w * k**2 for w, k in zip(weights, range(-30, 31), strict=True)) / sum(weights)
    assert variance == pytest.approx(0.25, rel=1e-6)
    assert one.statistic == "n"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"value": 3.5, "variance": 4}, "not whole"),
        ({"value": 3, "variance": -4}, "above 0"),
        ({"value": 3}, "'variance' is missing"),
        ({"value": "many", "variance": 4}, "must hold a number"),
    ],
)
def test_census_refusals(row, words):
    with pytest.raises(StatisticError, match=words):
        from_census([row], group_by=[])
