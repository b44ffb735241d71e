"""What PUMBA is measured against must be right itself: each comparator against an oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks import pumba_means, pumba_multiple, pumba_regression
from benchmarks.pumba_augmentation import (
    PRIOR_RATE,
    PRIOR_ROWS,
    PRIOR_SHAPE,
    chain,
    interpreted_chain,
)
from benchmarks.pumba_comparators import (
    LineReleases,
    MeanReleases,
    bootstrap_mean,
    effective_size,
    hybrid_bootstrap,
    naive_mean,
    normal_laplace_cdf,
    normal_laplace_quantile,
    oracle,
    plug_in,
    slope_by_ols,
    wald_difference,
    woolf,
)
from benchmarks.pumba_harness import rejected, replicate, score, seed_of
from core.pumba import laws


def line(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    x = generator.random(count)
    return x, 0.2 + 0.5 * x + generator.uniform(-0.2, 0.2, count)


def sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([x.sum(), (x * x).sum(), y.sum(), (x * y).sum(), (y * y).sum()])


# -- the noisy mean --------------------------------------------------------------------------


@pytest.mark.parametrize(("sd", "scale"), [(1.0, 1.0), (0.02, 1.0), (5.0, 0.3)])
def test_normal_laplace_law_is_the_convolution(sd, scale):
    for z in (-3.0, -0.4, 0.0, 0.7, 4.0):
        expected, _ = integrate.quad(
            lambda u, z=z: stats.laplace.pdf(u, scale=scale) * stats.norm.cdf(z - u, scale=sd),
            -60 * scale,
            60 * scale,
            points=(0.0, z),
            limit=400,
        )
        found = normal_laplace_cdf(np.array(z), np.array(sd), scale)
        assert found == pytest.approx(expected, abs=1e-8)
        assert found == pytest.approx(float(laws.normal_laplace_cdf(z, sd, scale)), abs=1e-10)


def test_normal_laplace_quantile_inverts_the_law_for_many_spreads_at_once():
    sd = np.array([0.0, 1e-4, 0.3, 2.0, 50.0, np.nan])
    found = normal_laplace_quantile(0.975, sd, 0.5)
    assert found[0] == pytest.approx(-0.5 * np.log(0.05), rel=1e-6)
    assert normal_laplace_cdf(found[1:5], sd[1:5], 0.5) == pytest.approx(np.full(4, 0.975))
    assert np.isnan(found[5])


def test_oracle_covers_at_its_level_and_plug_in_has_no_interval_for_a_negative_variance():
    generator = np.random.default_rng(11)
    count, scale, sets = 50, 1.5, 40_000
    rows = generator.normal(0.5, 0.2, (sets, count))
    releases = MeanReleases(
        rows.sum(axis=1) + generator.laplace(0, scale, sets),
        (rows**2).sum(axis=1) + generator.laplace(0, 4.0, sets),
        count,
        scale,
    )
    assert score(oracle(releases, 0.04), 0.5)["coverage"] == pytest.approx(0.95, abs=0.0055)
    missing = releases.variances <= 0
    assert 0.05 < missing.mean() < 0.95
    assert np.array_equal(np.isnan(plug_in(releases, floor=False)[:, 0]), missing)
    floored = plug_in(releases, floor=True)
    half = -scale / count * np.log(0.05)
    assert (floored[missing, 1] - floored[missing, 0]) / 2 == pytest.approx(half, rel=1e-5)
    assert (naive_mean(releases)[missing].std(axis=1) == 0).all()
    # With a normal model the percentiles estimate the floored plug-in's interval.
    some = MeanReleases(releases.totals[:50], releases.squares[:50], count, scale)
    drawn = bootstrap_mean(some, 40_000, generator)
    assert drawn == pytest.approx(floored[:50], abs=0.12 * half)


# -- the noisy regression --------------------------------------------------------------------


def test_least_squares_interval_is_the_textbook_one():
    x, y = line(np.random.default_rng(3), 40)
    fit = stats.linregress(x, y)
    half = stats.t.ppf(0.975, 38) * fit.stderr
    (found,) = slope_by_ols(LineReleases(sums(x, y)[None], 40))
    assert found == pytest.approx([fit.slope - half, fit.slope + half])


@pytest.mark.parametrize("broken", [1, 4])
def test_least_squares_has_no_interval_without_spread_or_residuals(broken):
    x, y = line(np.random.default_rng(3), 40)
    noisy = sums(x, y)
    noisy[broken] -= 30.0
    assert np.isnan(slope_by_ols(LineReleases(noisy[None], 40))).all()


def test_hybrid_bootstrap_becomes_least_squares_without_noise():
    generator = np.random.default_rng(4)
    x, y = line(generator, 500)
    found = hybrid_bootstrap(sums(x, y), 500, 1e-9, 200_000, generator)
    (expected,) = slope_by_ols(LineReleases(sums(x, y)[None], 500))
    assert found == pytest.approx(expected, abs=0.02 * (expected[1] - expected[0]))


def test_hybrid_bootstrap_is_as_wide_as_the_estimator_spreads():
    generator = np.random.default_rng(5)
    count, scale, slopes, widths = 4000, 3.0, [], []
    for _ in range(400):
        truth = sums(*line(generator, count))
        noisy = truth + generator.laplace(0, scale, 5)
        moments = np.array([[count, noisy[0]], [noisy[0], noisy[1]]])
        slopes.append(np.linalg.solve(moments, noisy[[2, 3]])[1])
        low, high = hybrid_bootstrap(noisy, count, scale, 400, generator)
        widths.append(high - low)
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(slopes), rel=0.15)


def test_table_intervals_are_the_textbook_ones():
    cells = np.array([20.0, 30.0, 15.0, 35.0])
    odds = stats.contingency.odds_ratio(cells.reshape(2, 2).astype(int), kind="sample").statistic
    error = np.sqrt((1 / cells).sum())
    assert woolf(cells) == pytest.approx(np.log(odds) + np.array([-1.959964, 1.959964]) * error)
    error = np.sqrt(0.6 * 0.4 / 50 + 0.7 * 0.3 / 50)
    assert wald_difference(cells) == pytest.approx(0.1 + np.array([-1.959964, 1.959964]) * error)
    assert np.isnan(woolf(np.array([20.0, 0.0, 15.0, 35.0]))).all()
    assert np.isnan(wald_difference(np.array([20.0, -21.0, 15.0, 35.0]))).all()


# -- data augmentation -----------------------------------------------------------------------


def test_compiled_and_interpreted_augmentation_are_the_same_chain():
    x, y = line(np.random.default_rng(6), 30)
    arguments = (sums(x, y), 2.0, np.stack([x, y]), 40)
    compiled, rate = chain(*arguments, np.random.default_rng(7))
    interpreted, same = interpreted_chain(*arguments, np.random.default_rng(7))
    assert compiled == pytest.approx(interpreted)
    assert rate == same
    assert 0 < rate < 1


def features(slopes: np.ndarray) -> np.ndarray:
    return np.stack([np.tanh(slopes), slopes > 0, np.abs(slopes) > 1])


def weighted_prior(noisy: np.ndarray, scale: float, count: int) -> np.ndarray:
    """Posterior means of the features by weighting draws of prior and rows by the noise density."""
    generator, size = np.random.default_rng(8), 1_000_000
    weights, values = [], []
    for _ in range(4):
        spread, deviation = np.sqrt(PRIOR_RATE / generator.gamma(PRIOR_SHAPE, size=(2, size)))
        mean = 0.5 + spread / np.sqrt(PRIOR_ROWS) * generator.standard_normal(size)
        intercept, slope = deviation / np.sqrt(PRIOR_ROWS) * generator.standard_normal((2, size))
        x = mean + spread * generator.standard_normal((count, size))
        y = intercept + slope * x + deviation * generator.standard_normal((count, size))
        u, v = np.clip(x, 0, 1), np.clip(y, 0, 1)
        totals = np.stack([z.sum(axis=0) for z in (u, u * u, v, u * v, v * v)])
        weights.append(np.exp(-np.abs(totals - noisy[:, None]).sum(axis=0) / scale))
        values.append(features(slope))
    weight = np.concatenate(weights)
    assert weight.sum() ** 2 / (weight**2).sum() > 4000
    return (np.concatenate(values, axis=1) * weight).sum(axis=1) / weight.sum()


def test_augmentation_finds_the_posterior_that_weighted_draws_of_the_prior_find():
    x, y = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.4, 0.8])
    noisy, scale = sums(x, y) + np.array([0.1, -0.1, 0.05, 0.1, -0.1]), 0.3
    slopes, _ = chain(noisy, scale, np.stack([x, y]), 3_000_000, np.random.default_rng(7))
    found = features(slopes)
    assert (found.reshape(3, 50, -1).mean(axis=2).std(axis=1) < 0.006 * np.sqrt(50)).all()
    assert found.mean(axis=1) == pytest.approx(weighted_prior(noisy, scale, 3), abs=0.025)


# -- counting --------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregressive_chain(memory):
    generator = np.random.default_rng(9)
    size = 200_000
    noise = generator.standard_normal(size)
    values = np.empty(size)
    values[0] = noise[0] / np.sqrt(1 - memory**2)
    for i in range(1, size):
        values[i] = memory * values[i - 1] + noise[i]
    expected = size * (1 - memory) / (1 + memory)
    assert effective_size(values) == pytest.approx(expected, rel=0.1)


def test_a_missing_interval_is_a_miss_and_has_no_width():
    found = score(np.array([[0.0, 2.0], [np.nan, np.nan], [1.5, 2.5], [0.5, 1.5]]), 1.0)
    assert found["coverage"] == 0.5
    assert found["undefined"] == 0.25
    assert found["width"] == pytest.approx(4 / 3)


def test_rejections_need_an_interval():
    intervals = np.array([[0.1, 2.0], [np.nan, np.nan], [-1.5, 2.5], [-2.5, -1.5]])
    assert rejected(intervals) == 0.5


@pytest.mark.parametrize("design", pumba_means.designs(), ids=lambda design: design.key)
def test_true_moments_of_the_mean_designs(design):
    rows = design.sample(np.random.default_rng(12), (1, 2_000_000))
    assert rows.min() >= 0
    assert rows.max() <= 1
    assert design.mean == pytest.approx(rows.mean(), abs=0.001)
    assert design.variance == pytest.approx(rows.var(), rel=0.005)
    assert sum(1 / scale for scale in design.scales) == pytest.approx(design.epsilon)


@pytest.mark.parametrize("design", pumba_regression.DESIGNS, ids=lambda design: design.key)
def test_true_slopes_of_the_regression_designs(design):
    x, y = design.sample(np.random.default_rng(13), (1, 2_000_000))
    assert np.polyfit(x[0], y[0], 1)[0] == pytest.approx(design.slope, abs=0.004)
    if design.x != "normal":  # nothing is clipped
        assert np.mean((y == 0) | (y == 1)) == 0


@pytest.mark.parametrize("design", pumba_multiple.DESIGNS, ids=lambda design: design.key)
def test_true_slopes_of_the_multiple_designs(design):
    rows = design.sample(np.random.default_rng(14), 500_000)
    assert rows.min() >= 0
    assert rows.max() <= 1
    assert (rows[:, -1] == 0).any() == design.clipped
    slopes = pumba_multiple.slopes_of(rows) * (design.high - design.low)
    assert slopes == pytest.approx(design.slopes, abs=0.005 if design.clipped else 0.002)
    assert not np.allclose(slopes, design.slopes, atol=0.001) or not design.clipped


def test_blocks_have_seeds_of_their_own():
    def one(sets: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
        return {"u": generator.random(sets)}

    first = replicate(one, 25, seed_of("a", "b"), None, size=10)["u"]
    again = replicate(one, 25, seed_of("a", "b"), None, size=10)["u"]
    other = replicate(one, 25, seed_of("a", "c"), None, size=10)["u"]
    assert first.shape == (25,)
    assert np.array_equal(first, again)
    assert np.unique(np.concatenate([first, other])).size == 50
