from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from core.errors import StatisticError
from core.pumba.laws import (
    interval_log_mass,
    lattice_log_likelihood,
    normal_laplace_cdf,
    normal_laplace_quantile,
    truncated,
    truncated_gaussian,
    truncated_laplace,
)
from core.pumba.likelihoods import (
    CensoredLikelihood,
    DensityLikelihood,
    LatticeLikelihood,
    likelihood,
)
from core.statistics import Family, NoiseLaw, NoisyStatistic

LAPLACE, GAUSSIAN = Family.LAPLACE, Family.GAUSSIAN
INTERVALS = [
    (0.0, -1.0, 3.0),
    (0.0, -np.inf, np.inf),
    (0.0, 5.0, np.inf),
    (0.0, -np.inf, -60.0),
    (0.0, -60.0, -55.0),
    (0.0, 30.0, 30.01),
    (10.0, -1e6, 9.0),
    (0.0, 0.0, 0.5),
]


def reference(family, low, high, at):
    """Distribution function of the truncated standard law, from scipy, in the lower tail."""
    law = {LAPLACE: stats.laplace, GAUSSIAN: stats.norm}[family]
    if low > 0 or low + high > 0:  # mirror: the lower tail is where digits are
        return 1.0 - reference(family, -high, -low, -at)
    first, last, here = (law.logcdf(x) for x in (low, high, at))
    return (np.exp(here - last) - np.exp(first - last)) / -np.expm1(first - last)


@pytest.mark.parametrize("family", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize(("centre", "low", "high"), INTERVALS)
def test_truncated_draws_follow_the_cut_law(family, centre, low, high):
    # 0 to 60 scales out: quantiles at known shares, then shares of those quantiles by scipy.
    scale = 2.0
    shares = np.linspace(0.001, 0.999, 201)
    quantile = truncated_laplace if family is LAPLACE else truncated_gaussian
    points = quantile(scale, centre, low, high, shares)
    back = reference(
        family, (low - centre) / scale, (high - centre) / scale, (points - centre) / scale
    )
    # Mirrored intervals count their quantiles from the other end.
    assert min(np.abs(back - shares).max(), np.abs(1 - back - shares).max()) < 1e-9
    drawn = truncated(
        NoiseLaw(family, scale), centre, low, high, np.random.default_rng(1), size=20_000
    )
    assert drawn.min() >= low
    assert drawn.max() <= high
    test = stats.kstest(
        (drawn - centre) / scale,
        lambda x: reference(family, (low - centre) / scale, (high - centre) / scale, x),
    )
    assert test.pvalue > 1e-4


@pytest.mark.parametrize("distance", [1e3, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("sign", [-1, 1])
def test_far_tails_are_exponential(distance, sign):
    # So far out a truncated law is the edge plus an exponential with the log density's slope.
    generator = np.random.default_rng(2)
    for family, rate in ((LAPLACE, 1.0), (GAUSSIAN, distance)):
        low, high = (distance, np.inf) if sign > 0 else (-np.inf, -distance)
        drawn = truncated(NoiseLaw(family, 1.0), 0.0, low, high, generator, size=20_000)
        excess = (sign * drawn - distance) * rate
        assert np.all(np.isfinite(drawn))
        if distance <= 1e6:  # beyond, the draws' own digits are the limit
            assert stats.kstest(excess + generator.uniform(0, 1e-9, 20_000), "expon").pvalue > 1e-4
        narrow = truncated(
            NoiseLaw(family, 1.0), 0.0, sign * distance, sign * distance, generator, size=3
        )
        assert np.all(narrow == sign * distance)


finite = st.floats(-1e12, 1e12)


@settings(deadline=None, max_examples=200)
@given(finite, finite, finite, st.floats(1e-6, 1e6), st.sampled_from([LAPLACE, GAUSSIAN]))
def test_draws_and_masses_are_never_nan(centre, one, two, scale, family):
    low, high = sorted((one, two))
    law = NoiseLaw(family, scale)
    drawn = truncated(law, centre, low, high, np.random.default_rng(0), size=50)
    assert np.all((drawn >= low) & (drawn <= high))
    mass = interval_log_mass(law, centre, low, high)
    assert not np.isnan(mass)
    assert mass <= 1e-12


def test_arguments_broadcast_and_empty_intervals_are_refused():
    generator = np.random.default_rng(3)
    law = NoiseLaw(GAUSSIAN, 1.0)
    low = np.array([[-1.0], [2.0]])
    assert truncated(law, 0.0, low, low + 1.0, generator).shape == (2, 1)
    assert truncated(law, np.zeros(5), low, low + 1.0, generator).shape == (2, 5)
    for bad in ((0.0, 1.0, 0.0), (0.0, np.nan, 1.0), (np.nan, 0.0, 1.0)):
        with pytest.raises(StatisticError, match="low <= high"):
            truncated(law, *bad, generator)
        with pytest.raises(StatisticError, match="low <= high"):
            interval_log_mass(law, *bad)


@pytest.mark.parametrize("family", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 2.0), (4.0, 4.1), (-6.0, -5.5), (1.0, 1.0 + 1e-7), (-3.0, 9.0)]
)
def test_interval_masses_agree_with_quadrature(family, low, high):
    density = {LAPLACE: stats.laplace, GAUSSIAN: stats.norm}[family](scale=1.5).pdf
    exact = integrate.quad(density, low, high, epsabs=0, epsrel=1e-12, points=[0.0])[0]
    mass = interval_log_mass(NoiseLaw(family, 1.5), 0.0, low, high)
    assert mass == pytest.approx(np.log(exact), abs=1e-8)


@pytest.mark.parametrize("unit", [0.3, 1.0, 2.7, 5.0, 40.0])
@pytest.mark.parametrize("family", [Family.DISCRETE_LAPLACE, Family.DISCRETE_GAUSSIAN])
@pytest.mark.parametrize("step", [1.0, 0.25])
def test_discrete_likelihoods_are_probabilities(unit, family, step):
    law = NoiseLaw(family, unit * step, step)
    reach = int(60 * unit) + 5
    noise = step * np.arange(-reach, reach + 1)
    mass = np.exp(
        -(np.abs(noise / law.scale) ** (1 if law.family.laplace else 2))
        / (1 if law.family.laplace else 2)
    )
    mass /= mass.sum()
    value = 7 * step
    likelihoods = np.exp(lattice_log_likelihood(NoisyStatistic(value, law), value - noise))
    assert np.abs(likelihoods - mass).max() < 1e-13
    # Cut off at the value: the likelihood is the noise's distribution function.
    for clamped, tail in (
        ((value, None), np.cumsum(mass[::-1])[::-1]),
        ((None, value), np.cumsum(mass)),
    ):
        censored = NoisyStatistic(value, law, clamped)
        # The true value is value - z; at the lower end P(noise <= z) counts.
        logs = lattice_log_likelihood(censored, value + noise)
        assert np.abs(np.exp(logs) - tail).max() < 1e-12


def test_deep_tails_of_the_discrete_gaussian_keep_their_ratio():
    law = NoiseLaw(Family.DISCRETE_GAUSSIAN, 5.0)
    logs = lattice_log_likelihood(NoisyStatistic(0.0, law, (0.0, None)), np.array([500.0, 501.0]))
    # P(Z <= -500) / P(Z <= -501), summed by hand relative to the largest term.
    steps = np.arange(200.0)
    sums = [
        (-(k**2) + np.log(np.exp((k**2 - (k + steps) ** 2) / 50).sum()) * 50) / 50
        for k in (500.0, 501.0)
    ]
    assert logs[0] - logs[1] == pytest.approx(sums[0] - sums[1], rel=1e-10)


def test_censoring_at_the_edge_loses_nothing_for_laplace_and_much_for_gaussian():
    counts = np.arange(0.0, 200.0)

    def law(statistic):
        logs = lattice_log_likelihood(statistic, counts)
        return np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()

    for family in (Family.LAPLACE, Family.DISCRETE_LAPLACE):
        noise = NoiseLaw(family, 3.0)
        plain, clamped = (
            law(NoisyStatistic(0.0, noise, end)) for end in ((None, None), (0.0, None))
        )
        lower = law(NoisyStatistic(-7.0, noise))
        assert 0.5 * np.abs(plain - clamped).sum() < 1e-15
        assert 0.5 * np.abs(lower - clamped).sum() < 1e-14
    noise = NoiseLaw(Family.DISCRETE_GAUSSIAN, 5.0)
    means = {
        end: float(counts @ law(NoisyStatistic(0.0, noise, end)))
        for end in ((None, None), (0.0, None))
    }
    assert round(means[0.0, None], 2) == 2.87
    assert round(means[None, None], 2) == 3.68
    assert round(float(counts @ law(NoisyStatistic(-7.0, noise))), 2) == 1.88


def test_a_laplace_clamp_inside_the_support_is_censored():
    noise = NoiseLaw(Family.LAPLACE, 2.0)
    clamped = NoisyStatistic(10.0, noise, (10.0, None))
    points = np.array([0.0, 10.0, 30.0])
    exact = stats.laplace(scale=2.0).logcdf(10.0 - points)
    assert lattice_log_likelihood(clamped, points) == pytest.approx(exact, abs=1e-12)
    # Released inside the clamp: the density, as if there were no clamp.
    inside = NoisyStatistic(11.0, noise, (10.0, None))
    exact = stats.laplace(scale=2.0).logpdf(11.0 - points)
    assert lattice_log_likelihood(inside, points) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("sigma", "b"), [(1.0, 1.0), (0.05, 2.0), (3.0, 0.1), (30.0, 0.5)])
def test_normal_laplace_law_is_a_convolution(sigma, b):
    for z in (-4.0, -0.3, 0.0, 1.0, 6.0):
        # P(normal <= z - laplace), one side of the kink at a time.
        exact = sum(
            integrate.quad(
                lambda x, z=z: stats.norm.cdf((z - x) / sigma) * np.exp(-abs(x) / b) / (2 * b),
                *side,
                epsabs=1e-13,
                limit=400,
                points=points,
            )[0]
            for side, points in (
                ((-60 * b, 0), [max(-59 * b, min(-1e-9, z))]),
                ((0, 60 * b), [min(59 * b, max(1e-9, z))]),
            )
        )
        assert normal_laplace_cdf(z, sigma, b) == pytest.approx(exact, abs=1e-8)
    shares = np.array([1e-6, 0.025, 0.5, 0.975])
    back = normal_laplace_cdf(normal_laplace_quantile(shares, sigma, b), sigma, b)
    assert back == pytest.approx(shares, rel=1e-9)
    with pytest.raises(StatisticError, match="between 0 and 1"):
        normal_laplace_quantile(1.0, sigma, b)


ALL = [
    NoisyStatistic(3.0, NoiseLaw(LAPLACE, 2.0)),
    NoisyStatistic(3.0, NoiseLaw(GAUSSIAN, 2.0)),
    NoisyStatistic(3.0, NoiseLaw(Family.DISCRETE_GAUSSIAN, 2.0, 0.01)),
    NoisyStatistic(3.0, NoiseLaw(LAPLACE, 2.0), (3.0, None)),
    NoisyStatistic(3.0, NoiseLaw(GAUSSIAN, 2.0), (3.0, None)),
    NoisyStatistic(3.0, NoiseLaw(GAUSSIAN, 2.0), (None, 3.0)),
    NoisyStatistic(3.0, NoiseLaw(LAPLACE, 2.0), (None, 3.0)),
]


@pytest.mark.parametrize("statistic", ALL)
@pytest.mark.parametrize(("low", "high"), [(-5.0, 12.0), (7.0, 9.0), (-80.0, -20.0), (45.0, 90.0)])
def test_smooth_likelihoods_integrate_and_draw_alike(statistic, low, high):
    curve = likelihood(statistic, -100.0, 100.0)
    expected = CensoredLikelihood if statistic.value in statistic.clamped else DensityLikelihood
    assert type(curve) is expected
    grid = np.linspace(low, high, 200_001)
    logs = curve.log(grid)
    cumulative = integrate.cumulative_simpson(np.exp(logs - logs.max()), x=grid, initial=0.0)
    mass = curve.log_mass(np.array(low), np.array(high))
    assert mass == pytest.approx(np.log(cumulative[-1]) + logs.max(), abs=1e-6)
    shares = np.linspace(0.01, 0.99, 99)
    drawn = curve.draw(np.full(99, low), np.full(99, high), shares)
    back = np.interp(drawn, grid, cumulative / cumulative[-1])
    assert min(np.abs(back - shares).max(), np.abs(1 - back - shares).max()) < 1e-5


@pytest.mark.parametrize("family", [Family.DISCRETE_LAPLACE, Family.DISCRETE_GAUSSIAN])
@pytest.mark.parametrize("clamped", [(None, None), (2.5, None)])
def test_coarse_lattices_are_summed(family, clamped):
    statistic = NoisyStatistic(2.5, NoiseLaw(family, 1.0, 0.5), clamped)
    curve = likelihood(statistic, -20.0, 60.0)
    assert isinstance(curve, LatticeLikelihood)
    generator = np.random.default_rng(4)
    for low, high in ((-3.2, 4.0), (2.5, 2.5), (20.0, 31.0), (-19.9, -10.0)):
        points = np.arange(np.ceil(2 * low), np.floor(2 * high) + 1) / 2
        logs = lattice_log_likelihood(statistic, points)
        mass = curve.log_mass(np.array(low), np.array(high))
        assert mass == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)
        uniform = 1.0 - generator.random(20_000)
        drawn = curve.draw(np.full(20_000, low), np.full(20_000, high), uniform)
        assert set(drawn) <= set(points)
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        observed = np.array([(drawn == point).mean() for point in points])
        spread = np.sqrt(shares * (1 - shares) / 20_000)
        assert np.all(np.abs(observed - shares) < 5.5 * spread + 1e-9)
    assert curve.log_mass(np.array(1.1), np.array(1.2)) == -np.inf
