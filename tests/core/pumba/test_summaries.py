"""The summary against closed forms and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from core.errors import EstimationError
from core.pumba.draws import Diagnostics, ParameterDraws
from core.pumba.summaries import highest_density, privacy_share, summarize

R = 200_000


def draws(values, repeats=None, naive=(np.nan, np.nan), diagnostics=None):
    values = np.asarray(values, dtype=float).reshape(-1, 1)
    repeats = values if repeats is None else np.asarray(repeats, dtype=float).reshape(-1, 1)
    return ParameterDraws(
        ("theta",),
        values,
        repeats,
        np.array([naive], dtype=float),
        diagnostics or Diagnostics("exact"),
    )


def two_stages(between, within, size=R, seed=7):
    """T ~ N(1, between²), two draws of theta given T with sd ``within``."""
    generator = np.random.default_rng(seed)
    truth = 1.0 + between * generator.standard_normal(size)
    return draws(
        truth + within * generator.standard_normal(size),
        truth + within * generator.standard_normal(size),
    )


def test_moments_and_equal_tailed_interval_of_a_normal():
    (one,) = summarize(two_stages(3.0, 4.0), level=0.9)
    law = stats.norm(1.0, 5.0)
    assert one.mean == pytest.approx(1.0, abs=0.06)
    assert one.median == pytest.approx(1.0, abs=0.08)
    assert one.sd == pytest.approx(5.0, abs=0.05)
    assert one.eti_low == pytest.approx(law.ppf(0.05), abs=0.13)
    assert one.eti_high == pytest.approx(law.ppf(0.95), abs=0.13)
    assert one.probability_positive == pytest.approx(law.sf(0.0), abs=0.006)
    assert one.r_hat is None
    assert one.effective is None


@pytest.mark.parametrize(("between", "within"), [(3.0, 4.0), (4.0, 1.0), (1.0, 10.0)])
def test_the_privacy_share_is_the_variance_between_statistics(between, within):
    (one,) = summarize(two_stages(between, within))
    expected = between**2 / (between**2 + within**2)
    assert one.privacy_share == pytest.approx(expected, abs=0.012)
    assert one.privacy_share + one.sampling_share == 1.0


def test_for_the_sample_everything_is_privacy_noise():
    (one,) = summarize(draws(np.random.default_rng(1).normal(size=500)))
    assert one.privacy_share == pytest.approx(1.0, abs=1e-12)
    assert one.sampling_share == pytest.approx(0.0, abs=1e-12)


def test_without_noise_the_share_is_near_zero_and_never_below():
    shares = [summarize(two_stages(0.0, 1.0, 400, seed))[0].privacy_share for seed in range(20)]
    assert min(shares) == 0.0
    assert max(shares) < 0.25


@pytest.mark.parametrize("constant", [0.0, 3.25, 0.1, -1e9])
def test_a_constant_parameter_has_no_shares(constant):
    (one,) = summarize(draws(np.full(1000, constant)))
    assert one.privacy_share is None
    assert one.sampling_share is None
    assert one.sd == pytest.approx(0.0, abs=1e-6 * max(1.0, abs(constant)) * 1e-6)
    assert one.eti_low == one.eti_high == constant


def test_a_tiny_but_real_variance_is_no_constant():
    generator = np.random.default_rng(3)
    assert privacy_share(1.0 + 1e-9 * generator.normal(size=500), np.ones(500)) is not None


def test_the_shortest_interval_of_an_exponential_starts_at_zero():
    values = np.random.default_rng(11).exponential(2.0, R)
    (one,) = summarize(draws(values), level=0.8)
    assert one.hdi_low == pytest.approx(0.0, abs=0.01)
    assert one.hdi_high == pytest.approx(stats.expon(scale=2.0).ppf(0.8), abs=0.06)
    assert one.hdi_high - one.hdi_low < one.eti_high - one.eti_low


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    st.floats(0.01, 0.99),
)
def test_the_shortest_interval_is_the_shortest_of_all(values, level):
    column = np.array(values).reshape(-1, 1)
    low, high = (float(end[0]) for end in highest_density(column, level))
    ordered = sorted(values)
    inside = np.array(values)
    assert np.count_nonzero((inside >= low) & (inside <= high)) >= level * len(values) - 1e-6
    shorter = [
        second - first
        for i, first in enumerate(ordered)
        for j, second in enumerate(ordered[i:], i)
        if (j - i + 1) >= level * len(values) - 1e-9
    ]
    assert high - low == pytest.approx(min(shorter), rel=1e-12, abs=1e-12)


def test_the_naive_interval_is_normal_at_the_same_level():
    (one,) = summarize(draws(np.arange(10.0), naive=(2.0, 0.5)), level=0.9)
    low, high = stats.norm(2.0, 0.5).interval(0.9)
    assert (one.naive, one.naive_low, one.naive_high) == pytest.approx((2.0, low, high))


def test_an_undefined_naive_interval_is_none():
    (one,) = summarize(draws(np.arange(10.0), naive=(2.0, np.nan)))
    assert (one.naive, one.naive_low, one.naive_high) == (2.0, None, None)


def test_the_region_of_practical_equivalence():
    values = np.arange(100.0)
    (one,) = summarize(draws(values), rope=(10.0, 19.0))
    assert one.rope_probability == 0.1
    (same,) = summarize(draws(values), rope={"theta": (10.0, 19.0)})
    assert same.rope_probability == 0.1
    assert summarize(draws(values))[0].rope_probability is None


def test_convergence_is_told_for_chains_only():
    gibbs = Diagnostics("gibbs", chains=500, sweeps=40, r_hat=1.003, effective=1234.0)
    (one,) = summarize(draws(np.arange(10.0), diagnostics=gibbs))
    assert (one.r_hat, one.effective) == (1.003, 1234.0)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 95, float("nan")])
def test_a_level_is_a_probability(level):
    with pytest.raises(EstimationError, match="level of an interval"):
        summarize(draws(np.arange(10.0)), level=level)


@pytest.mark.parametrize(
    ("rope", "words"),
    [
        ((1.0, 1.0), "lower end below"),
        ((2.0, 1.0), "lower end below"),
        ((0.0, float("inf")), "lower end below"),
        ({"slope": (0.0, 1.0)}, "no parameter; known: theta"),
    ],
)
def test_a_region_must_be_one(rope, words):
    with pytest.raises(EstimationError, match=words):
        summarize(draws(np.arange(10.0)), rope=rope)
