"""The first stage of a bounded mean: draws of its sums, given what was released."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from core.errors import StatisticError
from core.pumba.laws import lattice_log_likelihood, normal_laplace_cdf, truncated
from core.pumba.likelihoods import likelihood
from core.pumba.means import BoundedMean, draw_many_sums, draw_sums, mean_posterior
from core.pumba.sums import Grid, Support, bracket
from core.statistics import Family, NoiseLaw, NoisyStatistic
from tests.core.pumba.mean_problems import GAUSSIAN, LAPLACE, PROBLEMS, reject, release


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
