"""The second stage of a bounded mean: draws of the estimand, given the sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from core.errors import StatisticError
from core.pumba.draws import Diagnostics, StatisticDraws
from core.pumba.mean_moments import central_fourth
from core.pumba.means import (
    BoundedMean,
    difference,
    draw_many_sums,
    draw_sums,
    mean_posterior,
)
from core.pumba.priors import NormalPrior
from core.statistics import Family
from tests.core.pumba.mean_problems import PROBLEMS, release


def sums_of(data, draws=1, *, powers=(1, 2)):
    row = [float((data**power).sum()) for power in powers]
    return StatisticDraws(np.tile(row, (draws, 1)), Diagnostics("exact"))


def exact_problem(data, *, powers=(1, 2), **kind):
    """Releases with hardly any noise."""
    sums = [release((data**power).sum(), 1e-9) for power in powers]
    return BoundedMean("x", -1.0, 1.0, len(data), *sums, **kind)


def test_stage_two_is_the_central_limit_theorem_in_the_units_of_the_column():
    rng = np.random.default_rng(16)
    data = rng.uniform(-1, 0.6, 400)
    problem = exact_problem(data, origin=50.0, unit=20.0)
    result = mean_posterior(problem, sums_of(data, 40_000), rng, sampling=2.0)
    column = 50 + 20 * data
    error = np.sqrt(2 * column.var(ddof=1) / 400)
    for drawn in (result.values, result.repeats):
        assert stats.kstest(drawn[:, 0], stats.norm(column.mean(), error).cdf).pvalue > 1e-4
        logs = np.log(drawn[:, 1] / column.std(ddof=1))
        assert logs.std() == pytest.approx(np.sqrt(2 * 0.5 / 399), rel=0.03)
    assert abs(np.corrcoef(result.values[:, 0], result.repeats[:, 0])[0, 1]) < 0.03
    assert result.naive[0] == pytest.approx([column.mean(), error])
    assert result.naive[1, 0] == pytest.approx(column.std(ddof=1))
    assert "fourth moment of a normal" in result.notes[0]


def test_the_fourth_powers_give_the_error_of_the_standard_deviation():
    rng = np.random.default_rng(17)
    # Two-point data around 0 have hardly any error in their spread.
    data = np.where(rng.random(900) < 0.5, -0.5, 0.5) + rng.normal(0, 0.02, 900)
    powers = (1, 2, 4)
    problem = exact_problem(data, powers=powers)
    result = mean_posterior(problem, sums_of(data, 4000, powers=powers), rng)
    centred = data - data.mean()
    fourth, spread = (centred**4).mean(), data.var(ddof=1)
    error = np.sqrt((fourth - spread**2 * (900 - 3) / 899) / 900) / (2 * np.sqrt(spread))
    assert result.values[:, 1].std() == pytest.approx(error, rel=0.1)
    assert "sum of fourth powers" in result.notes[0]


def test_central_fourth_moment_of_feasible_moments():
    rng = np.random.default_rng(18)
    for _ in range(100):
        data = rng.normal(rng.uniform(-1, 1), rng.uniform(0.1, 1), 30)
        data = np.concatenate([data, 2 * data.mean() - data])  # symmetric: k3 = 0
        mean, spread = data.mean(), data.var()
        fourth = central_fourth(mean, spread, (data**4).mean())
        assert fourth == pytest.approx(((data - mean) ** 4).mean())
        skew = rng.exponential(1.0, 40)
        mean, spread = skew.mean(), skew.var()
        assert central_fourth(mean, spread, (skew**4).mean()) >= spread**2 * (1 - 1e-12)


def test_sample_is_the_rows_themselves():
    rng = np.random.default_rng(19)
    data = rng.uniform(-1, 1, 50)
    problem = exact_problem(data, origin=1.0, unit=2.0)
    result = mean_posterior(problem, sums_of(data, 3), rng, estimand="sample")
    assert result.values == pytest.approx(np.tile([1 + 2 * data.mean(), 2 * data.std()], (3, 1)))
    assert np.array_equal(result.values, result.repeats)
    assert result.naive[:, 1].tolist() == [0.0, 0.0]
    complete = mean_posterior(problem, sums_of(data, 3), rng, sampling=0.0)
    assert complete.values == pytest.approx(
        np.tile([1 + 2 * data.mean(), 2 * data.std(ddof=1)], (3, 1))
    )


def test_without_squares_the_variance_is_the_largest_possible():
    rng = np.random.default_rng(20)
    problem = BoundedMean("x", 0, 10, 100, release(300, 1e-9))
    result = mean_posterior(problem, draw_sums(problem, 40_000, rng), rng)
    assert result.names == ("mean",)
    assert result.values[:, 0].std() == pytest.approx(np.sqrt(7 * 3 / 100), rel=0.03)
    assert "as large as the bounds" in result.notes[0]
    assert result.naive[0] == pytest.approx([3.0, np.sqrt(21 / 100)])


def test_priors_add_by_precision_and_stay_within_bounds():
    rng = np.random.default_rng(21)
    data = rng.uniform(-1, 1, 100)
    problem = exact_problem(data, origin=10.0, unit=5.0)
    sums = sums_of(data, 40_000)
    error = 5 * data.std(ddof=1) / 10
    centre = 10 + 5 * data.mean()
    prior = {"mean": NormalPrior(11.0, error), "sd": NormalPrior(2.0, 0.1)}
    result = mean_posterior(problem, sums, rng, prior=prior)
    assert result.values[:, 0].mean() == pytest.approx((centre + 11) / 2, abs=0.01)
    assert result.values[:, 0].std() == pytest.approx(error / np.sqrt(2), rel=0.03)
    size, spread = 5 * data.std(ddof=1), 1 / np.sqrt(2 * 99)
    weight = spread**2 / (spread**2 + 0.05**2)
    expected = np.exp((1 - weight) * np.log(size) + weight * np.log(2.0))
    assert np.median(result.values[:, 1]) == pytest.approx(expected, rel=0.003)
    far = mean_posterior(problem, sums, rng, prior={"mean": NormalPrior(100.0, 0.01)})
    assert far.values[:, 0].max() <= 15.0
    flat = mean_posterior(
        problem,
        sums,
        np.random.default_rng(1),
        prior={"mean": NormalPrior(0.0, 1e9), "sd": NormalPrior(1.0, 1e9)},
    )
    plain = mean_posterior(problem, sums, np.random.default_rng(1))
    assert flat.values == pytest.approx(plain.values, rel=1e-6)


def test_difference_subtracts_draws_and_keeps_the_worse_diagnostics():
    rng = np.random.default_rng(22)
    first, second = (
        mean_posterior(problem, draw_sums(problem, 4000, rng), rng)
        for problem in (PROBLEMS["usual"], PROBLEMS["too small a square"])
    )
    result = difference(first, second)
    assert result.names == ("difference of means", "difference of sds")
    assert np.array_equal(result.values, first.values - second.values)
    assert np.array_equal(result.repeats, first.repeats - second.repeats)
    assert result.naive[0, 0] == first.naive[0, 0] - second.naive[0, 0]
    assert np.isnan(result.naive[0, 1])  # the second group's plug-in variance is negative
    assert result.diagnostics.outside_support
    assert len(result.notes) == 1
    single = BoundedMean("x", 0, 1, 30, release(31, 2.0))
    other = mean_posterior(single, draw_sums(single, 4000, rng), rng)
    with pytest.raises(StatisticError, match="same parameters"):
        difference(first, other)


def test_hardly_any_spread_under_huge_noise():
    # 40 values from 49.9 to 50.1 in [0, 100]; sums with scales 2,000 and 200,000.
    rng = np.random.default_rng(23)
    data = np.linspace(49.9, 50.1, 40)
    negative = 0
    for _ in range(60):
        first = data.sum() + rng.laplace(0, 2000)
        second = (data**2).sum() + rng.laplace(0, 200_000)
        problem = BoundedMean("x", 0, 100, 40, release(first, 2000.0), release(second, 200_000.0))
        sums = draw_sums(problem, 400, rng)
        result = mean_posterior(problem, sums, rng)
        plug_in = second / 40 - (first / 40) ** 2
        if plug_in <= 0:
            negative += 1
            assert sums.diagnostics.outside_support
            assert np.isnan(result.naive[0, 1])
            assert np.all(np.isnan(result.naive[1]))
        assert np.all((result.values[:, 1] > 0) & (result.values[:, 1] <= 50))
        low, high = np.quantile(result.values, [0.025, 0.975], axis=0)
        assert high[0] - low[0] > 40
        assert high[1] - low[1] > 15
    assert 20 < negative < 55


def test_one_row_and_a_doubtful_count():
    rng = np.random.default_rng(24)
    problem = BoundedMean(
        "x", 0, 1, release(-2, 2.0, Family.DISCRETE_LAPLACE), release(0.4, 0.3), release(0.2, 0.3)
    )
    drawn = draw_sums(problem, 2000, rng)
    assert drawn.counts.min() == 1
    assert drawn.diagnostics.outside_support
    result = mean_posterior(problem, drawn, rng)
    assert np.all(np.isfinite(result.values))
    assert np.all(np.isnan(result.naive))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lower": 1.0}, "below the upper"),
        ({"lower": float("nan")}, "finite"),
        ({"count": 0}, "at least 1"),
        ({"squares": None, "quartics": release(1, 1)}, "needs the sum of squares"),
        ({"unit": 0.0}, "above 0"),
        ({"origin": float("inf")}, "finite"),
    ],
)
def test_bad_problems_are_refused(change, words):
    whole = {
        "name": "pay",
        "lower": 0.0,
        "upper": 1.0,
        "count": 10,
        "total": release(5, 1),
        "squares": release(3, 1),
        **change,
    }
    with pytest.raises(StatisticError, match=words) as caught:
        BoundedMean(**whole)
    assert "'pay'" in str(caught.value)


def test_bad_settings_are_refused():
    rng = np.random.default_rng(0)
    problem = PROBLEMS["usual"]
    sums = draw_sums(problem, 10, rng)
    for change, words in (
        ({"estimand": "truth"}, "estimand"),
        ({"sampling": -1.0}, "sampling"),
        ({"prior": {"median": NormalPrior(0, 1)}}, "'median'"),
        ({"prior": {"sd": NormalPrior(0, 1)}}, "above 0"),
        ({"prior": {"mean": NormalPrior(0, 1)}, "estimand": "sample"}, "not for the sample"),
    ):
        with pytest.raises(StatisticError, match=words):
            mean_posterior(problem, sums, rng, **change)
    for bad in ((float("nan"), 1.0), (0.0, 0.0), (0.0, float("inf"))):
        with pytest.raises(StatisticError, match="prior"):
            NormalPrior(*bad)


def test_coverage_of_the_mean():
    # Beta(2, 2), 200 rows, epsilon 2, nine tenths on the sum; the plug-in misses where it fails.
    rng = np.random.default_rng(25)
    n, sets = 200, 1500
    scales = 1 / 1.8, 1 / 0.2
    data = rng.beta(2, 2, (sets, n))
    totals = data.sum(axis=1) + rng.laplace(0, scales[0], sets)
    squares = (data**2).sum(axis=1) + rng.laplace(0, scales[1], sets)
    problem = BoundedMean("x", 0, 1, n, release(100, scales[0]), release(60, scales[1]))
    hits, widths = 0, []
    for start in range(0, sets, 250):
        part = slice(start, start + 250)
        many = draw_many_sums(problem, totals[part], squares[part], 1000, rng)
        for sums in many:
            result = mean_posterior(problem, StatisticDraws(sums, Diagnostics("exact")), rng)
            low, high = np.quantile(result.values[:, 0], [0.025, 0.975])
            hits += low <= 0.5 <= high
            widths.append(high - low)
    # Standard error .005; ten thousand sets give .956, and a mean width of .0695.
    assert 0.93 < hits / sets < 0.982
    assert np.mean(widths) == pytest.approx(0.0695, rel=0.02)
    variance = np.maximum(squares / n - (totals / n) ** 2, 0)
    plug_in = np.abs(totals / n - 0.5) <= 1.96 * np.sqrt(variance / n + 2 * (scales[0] / n) ** 2)
    assert np.mean(plug_in & (variance > 0)) < 0.93
