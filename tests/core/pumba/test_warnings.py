"""Each warning fires where it should and stays silent where it should not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from core.pumba import warnings as say
from core.pumba.draws import Diagnostics
from core.pumba.summaries import ParameterSummary
from core.pumba.warnings import Severity
from core.statistics import Family, NoiseLaw, NoisyStatistic

SUMMARY = ParameterSummary(
    "slope", 1.0, 1.0, 0.5, 0.0, 2.0, 0.0, 2.0, 0.97, None, 0.2, 0.8, 1.0, 0.1, 1.9, None, None
)


def cell(value, family=Family.LAPLACE, scale=2.0):
    return NoisyStatistic(value, NoiseLaw(family, scale))


def the_only(found, code, severity):
    (one,) = found
    assert (one.code, one.severity) == (code, severity)
    assert one.sentence.endswith(".")
    assert one.advice.endswith(".")
    return one.sentence


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("scale", [2.0, 5.0])
@pytest.mark.parametrize("value", [-40.0, -7.0, -1.0, 0.0, 1.0, 25.0])
def test_the_excess_of_truncation_by_summation(family, scale, value):
    counts = np.arange(0.0, 400.0)
    distance = np.abs(counts - value) / scale
    log_weights = -distance if family.laplace else -0.5 * distance**2
    weights = np.exp(log_weights - log_weights.max())
    (excess,) = say.truncation_excess([cell(value, family, scale)])
    assert excess == pytest.approx(weights @ counts / weights.sum() - value, abs=1e-9)


@pytest.mark.parametrize("family", [Family.LAPLACE, Family.GAUSSIAN])
def test_the_excess_of_wide_noise_is_the_continuous_one(family):
    scale, value = 1000.0, 400.0
    noise = stats.laplace(value, scale) if family.laplace else stats.norm(value, scale)
    mean = integrate.quad(lambda t: t * noise.pdf(t), 0, 40_000, points=[value], limit=200)[0]
    (excess,) = say.truncation_excess([cell(value, family, scale)])
    assert excess == pytest.approx(mean / noise.sf(0.0) - value, rel=0.002)


@pytest.mark.parametrize("family", [Family.LAPLACE, Family.GAUSSIAN])
def test_the_excess_far_outside_is_finite(family):
    values = [cell(-(10.0**power), family) for power in (3, 6, 9, 12)]
    excess = say.truncation_excess(values)
    assert np.all(np.isfinite(excess))
    assert excess == pytest.approx([10.0**power for power in (3, 6, 9, 12)], rel=0.01)


def test_a_sparse_table_of_the_specification():
    """100 cells, 90 of them empty, 1,000 rows, discrete Laplace b = 2: 192 rows too many."""
    generator = np.random.default_rng(5)
    counts = np.r_[np.full(10, 100.0), np.zeros(90)]
    one, other = generator.geometric(1 - np.exp(-0.5), (2, 200, 100))
    excess = [
        say.truncation_excess([cell(v, Family.DISCRETE_LAPLACE) for v in counts + noise]).sum()
        for noise in one - other
    ]
    assert np.mean(excess) == pytest.approx(192, abs=6)
    cells = [cell(v) for v in counts]
    sentence = the_only(say.sparse_table(cells, 1000.0), "P2", Severity.CAUTION)
    assert "1,000" in sentence
    assert say.sparse_table([cell(100.0)] * 10, 1000.0) == []


def test_a_very_sparse_table_is_serious():
    the_only(say.sparse_table([cell(0.0)] * 90, 100.0), "P2", Severity.SERIOUS)


def test_attenuated_covariates_fire_from_a_tenth_on():
    assert say.attenuated_covariates([("poverty", 0.0999)]) == []
    found = say.attenuated_covariates([("poverty", 0.1), ("metro", 0.01), ("rent", 0.5)])
    sentence = the_only(found, "P1", Severity.SERIOUS)
    assert "poverty and rent" in sentence
    assert "metro" not in sentence
    assert "20 %" in sentence  # 1 - 1/(1 + .5²)


def test_outside_support():
    assert say.outside_support(Diagnostics("exact")) == []
    outside = Diagnostics("exact", outside_support=True)
    the_only(say.outside_support(outside), "P3", Severity.SERIOUS)
    assert "below 0" in the_only(say.outside_support(outside, counts=True), "P3", Severity.NOTE)


@pytest.mark.parametrize(
    ("share", "words", "severity"),
    [
        (0.95, "nearly all privacy noise", Severity.SERIOUS),
        (0.9, "mostly privacy noise", Severity.CAUTION),
        (0.51, "mostly privacy noise", Severity.CAUTION),
    ],
)
def test_noise_share(share, words, severity):
    found = say.noise_share([replace(SUMMARY, privacy_share=share), replace(SUMMARY, name="b")])
    assert words in the_only(found, "P3", severity)


@pytest.mark.parametrize("share", [None, 0.0, 0.5])
def test_little_noise_is_not_told(share):
    assert say.noise_share([replace(SUMMARY, privacy_share=share)]) == []


def test_thin():
    assert say.thin(100.0, "all") == []
    assert "region = north" in the_only(say.thin(99.0, "region = north"), "P3", Severity.CAUTION)
    the_only(say.thin(29.0, "all"), "P3", Severity.SERIOUS)


def test_clipping_always_names_the_population():
    assert say.clipped(()) == []
    sentence = the_only(say.clipped([("income", 0.0, 1e5)]), "P6", Severity.NOTE)
    assert "income: 0 to 100,000" in sentence
    assert "clipped population" in sentence


def test_double_use_selection_and_derived_values():
    the_only(say.selected(["tenure × region"]), "P8", Severity.CAUTION)
    the_only(say.repeated(["the count of sex = woman"]), "P8", Severity.CAUTION)
    assert "The total" in the_only(say.derived(["the total"]), "P10", Severity.SERIOUS)
    assert say.selected([]) == say.repeated([]) == say.derived([]) == []


def test_the_stated_noise_is_shown_as_a_standard_deviation():
    found = say.noise_scales([cell(1.0), cell(3.0), cell(4.0, Family.DISCRETE_GAUSSIAN, 3.0)])
    sentence = the_only(found, "P9", Severity.NOTE)
    assert "Laplace b = 2 (standard deviation 2.828) on 2 values" in sentence
    assert "discrete Gaussian sigma = 3 (standard deviation 3) on 1 value" in sentence
    assert say.noise_scales([]) == []


def test_monte_carlo_error_of_few_draws():
    generator = np.random.default_rng(2)
    few, many = generator.normal(size=(100, 1)), generator.normal(size=(4000, 1))
    exact = Diagnostics("exact")
    assert "100 draws" in the_only(
        say.monte_carlo(few, ["mean"], 0.95, exact), "P11", Severity.CAUTION
    )
    assert say.monte_carlo(many, ["mean"], 0.95, exact) == []
    assert say.monte_carlo(np.ones((100, 1)), ["mean"], 0.95, exact) == []


@pytest.mark.parametrize(("r_hat", "effective"), [(1.05, 4000.0), (1.0, 100.0)])
def test_an_unsettled_sampler(r_hat, effective):
    values = np.random.default_rng(2).normal(size=(8000, 1))
    found = say.monte_carlo(
        values, ["mean"], 0.95, Diagnostics("gibbs", r_hat=r_hat, effective=effective)
    )
    assert found[0].severity is Severity.SERIOUS
    settled = Diagnostics("gibbs", r_hat=1.002, effective=5000.0)
    assert say.monte_carlo(values, ["mean"], 0.95, settled) == []


def test_design():
    assert say.design(1.0, None, weighted=False) == []
    the_only(say.design(1.0, None, weighted=True), "P12", Severity.SERIOUS)
    sentence = the_only(say.design(1.5, 10_000, weighted=True), "P12", Severity.NOTE)
    assert "1.5" in sentence
    assert "10,000" in sentence


def test_sample_and_boundary():
    the_only(say.sample_estimand(), "P7", Severity.NOTE)
    assert say.near_boundary([]) == []
    the_only(say.near_boundary(["the mean lies at its bound"]), "P4", Severity.CAUTION)


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "a"), (2, "a and b"), (4, "a, b, c and d"), (6, "a, b, c and 3 more")],
)
def test_long_lists_are_cut(number, words):
    assert words in say.repeated(list("abcdef"[:number]))[0].sentence
