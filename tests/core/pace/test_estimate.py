"""From releases to matrices: exact in the limit, valid at any noise, the same every time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from core.errors import Cancelled, EstimationError
from core.pace.estimate import (
    clipped_spectrum,
    completion_errors,
    estimate,
    replay,
    replays,
    scaled_measurements,
)
from core.pace.maxent import complete
from core.pace.measurements import Measurements
from core.pace.release import METHODS
from core.pace.shrinkage import (
    nearest_correlation,
    positive_variances,
    shrunk_matrix,
    soft_threshold,
    stein_shrinkage,
)
from tests.core.pace.tables import ADD, BOTH, REPLACE, correlated, released

GRID = 1 / 4096  # of one factor, towards zero


def moments(values):
    return values.T @ values / len(values)


# -- without noise -------------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "diagonal"])
def test_every_method_recovers_the_moments_as_rho_grows(method, relation):
    """PACE's rounds reach all 15 entries of five columns: 4d is more than d(d + 1)/2."""
    values = correlated(400, 5, 0)
    found = estimate(released(values, "1000000000", method=method, relation=relation))
    np.testing.assert_allclose(found.scaled, moments(values), atol=2 * GRID)
    assert found.measured.all()
    np.testing.assert_allclose(found.precision @ found.covariance, np.eye(5), atol=1e-8)


def test_the_diagonal_knows_nothing_else():
    values = correlated(400, 5, 0)
    found = estimate(released(values, "1000000000", method="diagonal"))
    np.testing.assert_allclose(found.scaled, np.diag(np.diag(moments(values))), atol=2 * GRID)


def test_raw_units_and_private_means():
    """Bounds of ±1 about 0 and means of 0.25: moments are about the released mean."""
    generator = np.random.default_rng(1)
    values = np.clip(0.25 + 0.2 * generator.normal(size=(3000, 3)), -0.9, 0.9)
    found = estimate(released(values, "1000000", means="private"))
    np.testing.assert_allclose(found.means, values.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(found.covariance, np.cov(values.T, bias=True), atol=1e-3)
    assert np.all(found.mean_errors > 0)


def test_public_half_widths_scale_and_clip():
    values = correlated(500, 2, 2)
    plain = estimate(released(values, "1000000"))
    narrow = estimate(released(values, "1000000", half_widths={"x00": 0.25}))
    assert narrow.half_widths.tolist() == [0.25, 1.0]
    clipped = values.copy()
    clipped[:, 0] = np.clip(clipped[:, 0], -0.25, 0.25)
    np.testing.assert_allclose(narrow.covariance, moments(clipped), atol=1e-3)
    assert narrow.covariance[0, 0] < 0.8 * plain.covariance[0, 0]


def test_values_beyond_the_bounds_count_as_the_bounds():
    """A value of 10⁹ or of infinity moves the matrix as the bound does; a blank row is left out."""
    values = np.column_stack([np.linspace(-1, 1, 100), np.linspace(-1, 1, 100)])
    seen = {}
    for name, last in {"bound": 1.0, "large": 1e9, "infinite": np.inf, "blank": np.nan}.items():
        table = values.copy()
        table[-1, 0] = last
        seen[name] = estimate(released(table, "1000000", method="ssp_tight")).covariance
    np.testing.assert_allclose(seen["large"], seen["bound"], atol=1e-3)
    np.testing.assert_allclose(seen["infinite"], seen["bound"], atol=1e-3)
    np.testing.assert_allclose(seen["blank"], moments(values[:-1]), atol=1e-3)


@pytest.mark.parametrize("relation", BOTH)
def test_blanks_bend_no_correlation(relation):
    """Blanks in columns whose mean lies far from the middle of the bounds leave no trace."""
    generator = np.random.default_rng(4)
    values = 0.05 * generator.normal(size=(4000, 3)) - 0.8
    values[:, 2] = values[:, 0] + 0.02 * generator.normal(size=4000)
    blank = generator.random((4000, 3)) < [0.3, 0.3, 0.0]
    values[blank] = np.nan
    whole = values[~blank.any(axis=1)]
    found = estimate(
        released(values, "1000", method="ssp_tight", means="private", relation=relation)
    )
    truth = np.corrcoef(whole.T)
    np.testing.assert_allclose(found.correlation, truth, atol=0.03)
    assert abs(found.rows - len(whole)) < 10


# -- with any noise ------------------------------------------------------------------------


def check_valid(found):
    size = len(found.columns)
    for matrix in (found.covariance, found.correlation, found.precision, found.standard_errors):
        assert matrix.shape == (size, size)
        assert np.all(np.isfinite(matrix))
    np.testing.assert_array_equal(found.correlation, found.correlation.T)
    np.testing.assert_allclose(found.covariance, found.covariance.T, rtol=1e-12)
    assert np.all(found.covariance.diagonal() > 0)
    assert np.all(np.abs(found.correlation) <= 1)
    assert np.all(found.correlation.diagonal() == 1)
    assert np.all(np.abs(found.partial_correlation) <= 1)
    assert np.linalg.eigvalsh(found.correlation)[0] > -1e-12
    assert np.all(found.standard_errors >= 0)


def awkward(rows=50):
    """Five columns: two nearly equal, one constant, one a copy, one rare."""
    generator = np.random.default_rng(3)
    first = generator.uniform(-1, 1, rows)
    rare = np.where(np.arange(rows) == 7, 1.0, 0.0)
    return np.column_stack(
        [first, first + 1e-6 * generator.normal(size=rows), np.full(rows, 0.5), first, rare]
    )


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rho", ["1/1000000", "1/1000", "1/10", "10", "1000000000"])
def test_matrices_are_valid_at_any_noise(rho, method, relation):
    for seed in range(4):
        for means in ("private", None):
            found = estimate(
                released(awkward(), rho, method=method, relation=relation, seed=seed, means=means)
            )
            check_valid(found)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rho", ["1/1000000", "1", "1000000000"])
def test_one_column(rho, method):
    check_valid(estimate(released(correlated(60, 1, 4), rho, method=method)))


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_table(method):
    check_valid(estimate(released(np.empty((0, 3)), "1/10", method=method)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 40),
    columns=st.integers(1, 6),
    exponent=st.integers(-6, 9),
    how=st.tuples(st.sampled_from(METHODS), st.sampled_from(BOTH)),
)
def test_matrices_are_valid_for_any_table(seed, rows, columns, exponent, how):
    method, relation = how
    generator = np.random.default_rng(seed)
    values = generator.choice([-1.0, 0.0, 1.0, np.nan, 0.3], size=(rows, columns))
    rho = str(Fraction(10) ** exponent)
    check_valid(estimate(released(values, rho, method=method, relation=relation, seed=seed)))


def test_mostly_noise_is_said():
    values = correlated(50, 5, 5)
    assert estimate(released(values, "1/1000", method="ssp_tight")).mostly_noise
    assert not estimate(released(correlated(5000, 5, 5), "1", method="ssp_tight")).mostly_noise


# -- determinism, order, replay ------------------------------------------------------------


def shuffled(release, seed):
    """The same measurements in another order, each draw of one entry."""
    order = np.random.default_rng(seed).permutation(len(release.sums))
    fixed = [release.draws[0]]
    start = fixed[0].stop
    order = np.concatenate([np.arange(start), start + np.argsort(order[start:])])
    draws = fixed + [
        replace(draw, start=start + index, stop=start + index + 1)
        for index, draw in enumerate(release.draws[1:])
    ]
    return replace(
        release,
        draws=tuple(draws),
        pairs=release.pairs[order],
        sums=release.sums[order],
        sigmas=release.sigmas[order],
    )


def test_the_order_of_measurements_is_irrelevant():
    release = released(correlated(2000, 8, 6), "1/5", method="pace")
    first = estimate(release)
    for seed in range(3):
        again = estimate(shuffled(release, seed))
        np.testing.assert_array_equal(first.covariance, again.covariance)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_release_gives_the_same_bytes(method):
    release = released(correlated(300, 5, 7), "1/5", method=method)
    once, twice = estimate(release), estimate(release)
    assert once.covariance.tobytes() == twice.covariance.tobytes()
    assert once.standard_errors.tobytes() == twice.standard_errors.tobytes()


def test_replay_ends_where_the_estimate_is():
    release = released(correlated(1500, 7, 8), "1/5", method="pace")
    every = list(replays(release))
    assert len(every) == len(release.rounds) + 1
    last = estimate(release)
    np.testing.assert_array_equal(every[-1].covariance, last.covariance)
    assert every[0].measured.sum() == 7
    for step, (before, after) in zip(release.rounds, itertools.pairwise(every), strict=True):
        a, b = (release.columns.index(name) for name in step.chosen)
        assert after.measured[a, b]
        # What the log expected is what the matrix before the round says, up to the loop's own
        # approximation of it.
        assert step.expected == pytest.approx(before.scaled[a, b], abs=0.02)
    for upto in (-1, len(release.rounds) + 1):
        with pytest.raises(EstimationError, match="rounds"):
            replay(release, upto)


def test_rounds_of_the_automatic_method_replay_too():
    release = released(np.sign(correlated(3000, 50, 5)), "1/30", seed=1)
    assert release.route == "rounds"
    assert any(not step.edge for step in release.rounds)
    first, last = replay(release, 0), estimate(release)
    assert last.graph.sum() > first.graph.sum()
    edges = {step.chosen for step in release.rounds if step.edge}
    place = release.columns.index
    assert all(last.graph[place(a), place(b)] for a, b in edges)
    kept = {step.chosen for step in release.rounds} - edges
    assert not any(
        last.graph[place(a), place(b)] and not first.graph[place(a), place(b)] for a, b in kept
    )
    truth = moments(np.sign(correlated(3000, 50, 5)))
    worse = np.linalg.norm(first.scaled - truth)
    assert np.linalg.norm(last.scaled - truth) < 0.8 * worse


def test_precision_is_zero_off_the_graph():
    found = estimate(released(correlated(3000, 12, 9), "1/20", method="pace", relation=REPLACE))
    assert not found.graph.all()
    assert np.all(found.precision[~found.graph] == 0)
    assert np.all(found.graph == found.measured)


def test_a_cancel_before_the_squares_leaves_nothing_to_estimate():
    def progress(stage, done, *rest):
        if (stage, done) == ("means", 1):
            raise Cancelled("enough")

    release = released(correlated(30, 3, 0), "1", progress=progress)
    with pytest.raises(EstimationError, match="cancelled"):
        estimate(release)


# -- standard errors -----------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
def test_standard_errors_are_the_spread_over_releases(relation):
    """Same graph, 300 draws of its noise: the spread of every entry, also of the unmeasured."""
    generator = np.random.default_rng(10)
    pairs = np.array([[0, 0], [1, 1], [2, 2], [3, 3], [0, 1], [1, 2], [2, 3]])
    truth = moments(correlated(1000, 4, 10))
    precisions = np.full(len(pairs), 4e6 if relation is ADD else 1e6)
    exact = Measurements(4, pairs, truth[pairs[:, 0], pairs[:, 1]], precisions)
    expected = completion_errors(complete(exact), 1000.0)
    draws = []
    for _ in range(300):
        noise = generator.normal(size=len(pairs)) / np.sqrt(precisions)
        draws.append(complete(Measurements(4, pairs, exact.values + noise, precisions)).covariance)
    spread = np.std(draws, axis=0)
    np.testing.assert_allclose(spread, expected, rtol=0.25)
    assert expected[0, 3] > 0


def test_measured_entries_have_the_error_of_their_pooled_measurement():
    release = released(correlated(800, 6, 11), "1/3", method="pace")
    found = estimate(release)
    pooled = scaled_measurements(release)
    a, b = pooled.pairs[-1]
    assert found.standard_errors[a, b] == pytest.approx(pooled.precisions[-1] ** -0.5)


# -- shrinkage and projection --------------------------------------------------------------


@pytest.mark.parametrize("value", [-3.0, -0.4, 0.0, 0.2, 0.9, 1.3, 4.0])
@pytest.mark.parametrize("sigma", [0.05, 0.3, 2.0, 50.0])
def test_positive_variances_against_quadrature(value, sigma):
    found = float(positive_variances(np.array([value]), np.array([sigma]))[0])
    peak = min(max(value, 0.0), 1.0)

    def density(x):
        return np.exp(norm.logpdf(x, value, sigma) - norm.logpdf(peak, value, sigma))

    points = sorted({0.0, peak, 1.0, *np.clip([peak - 5 * sigma, peak + 5 * sigma], 0, 1)})
    options = {"points": points, "limit": 400}
    mass = quad(density, 0, 1, **options)[0]
    mean = quad(lambda x: x * density(x), 0, 1, **options)[0] / mass
    assert found == pytest.approx(mean, rel=2e-3, abs=1e-9)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(value=st.floats(-1e6, 1e6), exponent=st.floats(-12, 8))
def test_positive_variances_are_always_inside(value, exponent):
    found = positive_variances(np.array([value]), np.array([10.0**exponent]))
    assert 0 < found[0] <= 1


def test_the_stein_threshold_has_the_least_risk():
    """Against a fine search, and its risk estimate against the true loss on average."""
    generator = np.random.default_rng(12)
    truth = np.where(generator.random(400) < 0.1, 3.0, 0.0)
    sigmas = generator.uniform(0.5, 1.5, 400)
    gaps = []
    for _ in range(60):
        values = truth + sigmas * generator.normal(size=400)
        chosen = stein_shrinkage(values, sigmas)

        def risk(threshold, values=values):
            scores = np.abs(values) / sigmas
            parts = 1 - 2 * (scores <= threshold) + np.minimum(scores, threshold) ** 2
            return float(np.sum(sigmas**2 * parts))

        grid = [risk(threshold) for threshold in np.linspace(0, 6, 601)]
        assert chosen.risk <= min(grid) + 1e-9
        assert chosen.risk == pytest.approx(max(risk(chosen.threshold), 0.0))
        loss = np.sum((soft_threshold(values, chosen.threshold * sigmas) - truth) ** 2)
        gaps.append(loss - chosen.risk)
    assert np.mean(gaps) < 0.1 * np.sum(sigmas**2)
    assert 0.3 * np.sum(sigmas**2) > chosen.risk


def test_nothing_is_shrunk_where_nothing_is_noise():
    values = np.full(50, 0.3)
    assert stein_shrinkage(values, np.full(50, 1e-6)).threshold == 0.0
    assert stein_shrinkage(np.empty(0), np.empty(0)).risk == 0.0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 9), noise=st.floats(0, 3))
def test_projected_correlations_are_correlations(seed, size, noise):
    generator = np.random.default_rng(seed)
    matrix = np.clip(np.eye(size) + noise * generator.normal(size=(size, size)), -1, 1)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    found = nearest_correlation(matrix)
    assert np.linalg.eigvalsh(found)[0] > -1e-12
    np.testing.assert_array_equal(found.diagonal(), np.ones(size))
    if np.linalg.eigvalsh(matrix)[0] > 1e-9:
        np.testing.assert_array_equal(found, matrix)


def test_the_clipped_spectrum_is_the_nearest_matrix():
    """Frobenius projection on [0, d]: no eigenvalue of a random matrix is treated otherwise."""
    generator = np.random.default_rng(13)
    matrix = generator.normal(size=(6, 6))
    matrix = matrix + matrix.T
    found = clipped_spectrum(matrix, 6.0)
    values, vectors = np.linalg.eigh(matrix)
    expected = (vectors * np.clip(values, 0, 6)) @ vectors.T
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_shrinking_to_a_target_ends_at_the_target_where_all_is_noise():
    target = moments(correlated(500, 4, 14))
    sigmas = np.full((4, 4), 100.0)
    generator = np.random.default_rng(15)
    noisy = target + np.triu(5.0 * generator.normal(size=(4, 4)))
    noisy = np.triu(noisy) + np.triu(noisy, 1).T
    np.testing.assert_allclose(shrunk_matrix(noisy, sigmas, target=target), target, atol=1e-9)
    exact = np.full((4, 4), 1e-9)
    np.testing.assert_allclose(shrunk_matrix(target, exact), target, atol=1e-9)
