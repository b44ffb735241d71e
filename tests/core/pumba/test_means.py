from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from core.errors import StatisticError
from core.pumba.draws import Diagnostics, StatisticDraws
from core.pumba.laws import lattice_log_likelihood, normal_laplace_cdf, truncated
from core.pumba.likelihoods import likelihood
from core.pumba.mean_moments import central_fourth
from core.pumba.means import (
    BoundedMean,
    difference,
    draw_many_sums,
    draw_sums,
    mean_posterior,
)
from core.pumba.priors import NormalPrior
from core.pumba.sums import Grid, Support, bracket
from core.statistics import Family, NoiseLaw, NoisyStatistic

LAPLACE, GAUSSIAN = Family.LAPLACE, Family.GAUSSIAN


def release(value, scale, family=LAPLACE, lattice=1.0, clamped=(None, None)):
    return NoisyStatistic(float(value), NoiseLaw(family, scale, lattice), clamped)


def proposals(statistic, size, rng):
    """True values by adding the noise to the release."""
    family, scale, step = statistic.law.family, statistic.law.scale, statistic.law.lattice
    if family is Family.LAPLACE:
        noise = rng.laplace(0, scale, size)
    elif family is Family.GAUSSIAN:
        noise = rng.normal(0, scale, size)
    elif family is Family.DISCRETE_GAUSSIAN and scale > 100 * step:
        noise = step * np.rint(rng.normal(0, scale, size) / step)
    else:
        reach = int(12 * scale / step) + 60
        points = np.arange(-reach, reach + 1) * step
        power = 1 if family is Family.DISCRETE_LAPLACE else 2
        mass = np.exp(-(np.abs(points / scale) ** power) / power)
        noise = rng.choice(points, size, p=mass / mass.sum())
    return statistic.value + noise


def reject(problem, draws, rng):
    """Stage 1 by plain rejection, against the support written out again."""
    kept, size = [], 400_000
    low, high = problem.lower, problem.upper
    while sum(map(len, kept)) < draws:
        n = problem.count
        if isinstance(n, NoisyStatistic):
            n = np.rint(proposals(n, size, rng))
        else:
            n = np.full(size, float(n))
        sums = [proposals(one, size, rng) for one in problem.releases]
        safe = np.maximum(n, 1)
        inside = (n >= 1) & (n * low <= sums[0]) & (sums[0] <= n * high)
        if len(sums) > 1:
            inside &= sums[1] >= sums[0] ** 2 / safe
            inside &= sums[1] <= (low + high) * sums[0] - n * low * high
        if len(sums) > 2:
            inside &= sums[2] >= sums[1] ** 2 / safe
            inside &= sums[2] <= max(low**2, high**2) * sums[1]
        kept.append(np.column_stack([n, *sums])[inside])
    return np.concatenate(kept)[:draws]


PROBLEMS = {
    "usual": BoundedMean("x", 0, 1, 200, release(100, 0.556), release(60, 5.0)),
    "gaussian": BoundedMean("x", 0, 1, 200, release(100, 2.0, GAUSSIAN), release(60, 5, GAUSSIAN)),
    "too large a square": BoundedMean("x", 0, 1, 50, release(26, 2.0), release(31, 3.0)),
    "too small a square": BoundedMean("x", -1, 1, 50, release(-20, 3.0), release(2, 4.0)),
    "sum outside": BoundedMean("x", -2, 1, 20, release(24, 4.0), release(9, 5.0, GAUSSIAN)),
    "positive bounds": BoundedMean("x", 2, 5, 30, release(92, 5.0, GAUSSIAN), release(300, 9.0)),
    "no squares": BoundedMean("x", 0, 1, 30, release(31, 2.0)),
    "quartics": BoundedMean("x", -1, 1, 60, release(5, 4.0), release(22, 5.0), release(14, 6.0)),
    "quartics at odds": BoundedMean(
        "x", -1, 1, 40, release(5, 4.0), release(12, 3.0, GAUSSIAN), release(14, 3.0)
    ),
    "noisy count": BoundedMean(
        "x", 0, 1, release(30, 2.0, Family.DISCRETE_LAPLACE), release(22, 2.0), release(17, 3.0)
    ),
    "noisy count, no squares": BoundedMean(
        "x", 1, 3, release(12, 4.0, Family.DISCRETE_GAUSSIAN), release(35, 3.0)
    ),
    "whole numbers": BoundedMean(
        "x",
        0,
        4,
        15,
        release(31, 1.5, Family.DISCRETE_LAPLACE),
        release(82, 4.0, Family.DISCRETE_GAUSSIAN),
    ),
    "whole sum": BoundedMean(
        "x", 0, 1, 12, release(11, 1.0, Family.DISCRETE_GAUSSIAN), release(9, 2.0)
    ),
    "fine steps": BoundedMean(
        "x",
        -1,
        1,
        40,
        release(8, 2.0, Family.DISCRETE_GAUSSIAN, 2.0**-20),
        release(15, 2.0, Family.DISCRETE_GAUSSIAN, 2.0**-20),
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_stage_one_equals_plain_rejection(name):
    problem = PROBLEMS[name]
    rng = np.random.default_rng(11)
    wanted = reject(problem, 30_000, rng)
    drawn = draw_sums(problem, 30_000, rng)
    assert drawn.diagnostics.method == "exact"
    columns = drawn.values
    if isinstance(problem.count, NoisyStatistic):
        columns = np.column_stack([drawn.counts, columns])
    else:
        assert drawn.counts is None
        wanted = wanted[:, 1:]
    assert columns.shape == wanted.shape
    for one, other in zip(columns.T, wanted.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-4
    # And in directions across the columns.
    for weights in ((1.0, -1.0, 0.5), (1.0, 2.0, -3.0)):
        scaled = [
            (part - wanted.mean(axis=0)) / wanted.std(axis=0) @ np.array(weights)[: wanted.shape[1]]
            for part in (columns, wanted)
        ]
        assert stats.ks_2samp(*scaled).pvalue > 1e-4


def test_a_clamped_sum_is_censored():
    # Gaussian noise, cut off at 0: rejection keeps what would have been cut off as well.
    rng = np.random.default_rng(12)
    n = 25
    problem = BoundedMean(
        "x", 0, 1, n, release(0, 4.0, GAUSSIAN, clamped=(0.0, None)), release(2, 3.0)
    )
    drawn = draw_sums(problem, 20_000, rng).values
    # The flat law on the support, weighted by the likelihood.
    size = 2_000_000
    first, second = rng.uniform(0, n, size), rng.uniform(0, n, size)
    inside = (second >= first**2 / n) & (second <= first)
    first, second = first[inside], second[inside]
    weights = np.exp(
        lattice_log_likelihood(problem.total, first)
        + lattice_log_likelihood(problem.squares, second)
    )
    chosen = rng.choice(len(first), 20_000, p=weights / weights.sum())
    assert stats.ks_2samp(drawn[:, 0], first[chosen]).pvalue > 1e-4
    assert stats.ks_2samp(drawn[:, 1], second[chosen]).pvalue > 1e-4


@example((1, (0.0, 1.0), (0.0, 0.0), (0.015625, Family.DISCRETE_GAUSSIAN), False))
@settings(deadline=None, max_examples=25)
@given(
    st.tuples(
        st.integers(1, 500),
        st.tuples(st.floats(-50, 50), st.floats(1e-3, 100)),
        st.tuples(st.floats(-1e7, 1e7), st.floats(-1e7, 1e7)),
        st.tuples(
            st.floats(1e-3, 1e5), st.sampled_from([LAPLACE, GAUSSIAN, Family.DISCRETE_GAUSSIAN])
        ),
        st.booleans(),
    )
)
def test_any_release_gives_possible_sums(problem):
    n, (low, width), (total, squares), (scale, family), noisy = problem
    step = 1e-3
    high = low + width
    count = release(n, 3.0, Family.DISCRETE_LAPLACE) if noisy else n
    problem = BoundedMean(
        "x",
        low,
        high,
        count,
        release(total, scale, family, step),
        release(squares, scale, family, step),
    )
    rng = np.random.default_rng(0)
    try:
        drawn = draw_sums(problem, 300, rng)
    except StatisticError as error:  # a lattice can miss bounds that are hardly apart
        assert family.discrete
        assert scale < 0.03
        assert "no multiple" in str(error)  # noqa: PT017
        return
    rows = n if drawn.counts is None else drawn.counts
    first, second = drawn.values.T
    slack = 1e-9 * np.max(rows) * max(low**2, high**2, 1.0) + 1e-6
    assert np.all((first >= rows * low - slack) & (first <= rows * high + slack))
    assert np.all(second >= first**2 / rows - slack)
    assert np.all(second <= (low + high) * first - rows * low * high + slack)
    result = mean_posterior(problem, drawn, rng)
    assert result.names == ("mean", "sd")
    assert np.all((result.values[:, 0] >= low) & (result.values[:, 0] <= high))
    assert np.all(result.values[:, 1] > 0)
    assert np.all(result.values[:, 1] <= width / 2 * (1 + 1e-12))


def test_a_lattice_far_from_its_release_still_works():
    # The sum of squares says that the sum lies 400 scales from its own release.
    problem = BoundedMean(
        "x",
        0,
        4,
        100,
        release(40, 0.5, Family.DISCRETE_GAUSSIAN),
        release(1600, 0.5, Family.DISCRETE_GAUSSIAN),
    )
    drawn = draw_sums(problem, 500, np.random.default_rng(0)).values
    assert np.all(drawn == np.rint(drawn))
    assert np.all(drawn[:, 1] <= 4 * drawn[:, 0])


def test_known_variance_and_wide_bounds_give_the_normal_laplace_law():
    rng = np.random.default_rng(13)
    n, sigma, b = 200, 0.3, 4.0
    problem = BoundedMean("x", -1e4, 1e4, n, release(70, b))
    total = draw_sums(problem, 40_000, rng).values[:, 0]
    mean = total / n + rng.normal(0, sigma / np.sqrt(n), len(total))
    scaled = (mean - 70 / n) * n
    test = stats.kstest(scaled, lambda z: normal_laplace_cdf(z, sigma * np.sqrt(n), b))
    assert test.pvalue > 1e-3


def test_grid_finds_thin_peaks_and_their_mass():
    # Two rows: a peak 1e-7 wide in an interval of length 1e6, and an edge far from the centre.
    for centre, scale in ((123.456, 1e-7), (-5e3, 2.0)):

        def density(points, centre=centre, scale=scale):
            return -0.5 * ((points - centre) / scale) ** 2

        low, high = bracket(density, np.array([0.0]), np.array([1e6]))
        grid = Grid.build(density, low, high)
        drawn = grid.draw(np.zeros(20_000, dtype=np.int64), np.random.default_rng(0).random(20_000))
        law = truncated(
            NoiseLaw(GAUSSIAN, scale), centre, 0.0, 1e6, np.random.default_rng(1), size=20_000
        )
        assert stats.ks_2samp(drawn, law).pvalue > 1e-4
        exact = likelihood(release(centre, scale, GAUSSIAN), 0, 1e6)
        mass = exact.log_mass(np.array(0.0), np.array(1e6)) - exact.log(np.array(centre))
        assert grid.log_total[0] == pytest.approx(mass, rel=1e-4)


def test_support_slices_are_those_of_the_hull():
    # Any data's sums lie inside, and two-point data reach the ends.
    rng = np.random.default_rng(14)
    for low, high in ((-1.0, 1.0), (-2.0, 0.5), (1.0, 3.0), (-4.0, -1.0)):
        support, n = Support(low, high), np.array(20.0)
        for _ in range(200):
            data = rng.uniform(low, high, 20)
            if rng.random() < 0.5:
                data = rng.choice([low, high, rng.uniform(low, high)], 20)
            first, second, fourth = data.sum(), (data**2).sum(), (data**4).sum()
            ends = support.sums_given(n, np.array(second))
            assert ends[0] - 1e-9 <= first <= ends[1] + 1e-9
            ends = support.quartics_given(n, np.array(second))
            assert ends[0] - 1e-9 <= fourth <= ends[1] + 1e-9
            ends = support.squares(n)
            assert ends[0] - 1e-9 <= second <= ends[1] + 1e-9


def test_many_releases_at_once_equal_one_by_one():
    rng = np.random.default_rng(15)
    problem = PROBLEMS["usual"]
    totals, squares = np.array([100.0, 40.0, 210.0]), np.array([60.0, 5.0, 150.0])
    many = draw_many_sums(problem, totals, squares, 20_000, rng)
    assert many.shape == (3, 20_000, 2)
    for row in range(3):
        single = BoundedMean(
            "x", 0, 1, 200, release(totals[row], 0.556), release(squares[row], 5.0)
        )
        alone = draw_sums(single, 20_000, rng).values
        for column in range(2):
            assert stats.ks_2samp(many[row, :, column], alone[:, column]).pvalue > 1e-4
    with pytest.raises(StatisticError, match="known count"):
        draw_many_sums(PROBLEMS["noisy count"], totals, squares, 10, rng)


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


def test_evidence_of_the_count_is_the_integral_over_the_sums():
    problem = PROBLEMS["noisy count"]
    drawn = draw_sums(problem, 40_000, np.random.default_rng(26)).counts
    counts = np.arange(15, 46)
    logs = []
    for n in counts:

        def height(first, n=n):
            inside = likelihood(problem.squares, 0, 60).log_mass(
                np.array(first**2 / n), np.array(max(first, first**2 / n))
            )
            return np.exp(inside + likelihood(problem.total, 0, 60).log(np.array(first)))

        value = integrate.quad(height, 0, n, points=[22.0] if n > 22 else None, limit=200)[0]
        logs.append(np.log(value) + lattice_log_likelihood(problem.count, float(n)))
    mass = np.exp(np.array(logs) - max(logs))
    mass /= mass.sum()
    observed = np.array([(drawn == n).mean() for n in counts])
    assert np.all(np.abs(observed - mass) < 5.5 * np.sqrt(mass / 40_000) + 1e-3)
