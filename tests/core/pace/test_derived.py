import json
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from core.errors import EstimationError
from core.pace.derived import correlations, partial_correlations
from core.pace.maxent import complete
from core.pace.measurements import Measurements
from core.pace.regression import regression
from core.pace.sensitivities import MAXIMUM_ENTRIES, GraphSpread
from tests.core.pace.estimates import completed, names, whole
from tests.core.pace.oracles import noisy_graph


def partial_of(K):
    root = np.sqrt(K.diagonal())
    return -K / np.outer(root, root)


def correlation_of(W):
    root = np.sqrt(W.diagonal())
    return W / np.outer(root, root)


def slopes_of(W, target, chosen):
    return np.linalg.solve(W[np.ix_(chosen, chosen)], W[chosen, target])


def numeric_errors(measured, quantity, fit, rows, W):
    """Privacy and total standard errors by finite differences of the whole estimator."""
    pooled = measured.pooled()
    jacobian = []
    for place in range(len(pooled)):
        step = 1e-4
        ends = []
        for sign in (1, -1):
            values = pooled.values.copy()
            values[place] += sign * step
            moved = Measurements(pooled.size, pooled.pairs, values, pooled.precisions)
            ends.append(quantity(fit(moved)))
        jacobian.append((ends[0] - ends[1]) / (2 * step))
    J = np.array(jacobian).T
    a, b = pooled.pairs.T
    isserlis = W[np.ix_(a, a)] * W[np.ix_(b, b)] + W[np.ix_(a, b)] * W[np.ix_(b, a)]
    privacy = (J**2) @ (1 / pooled.precisions)
    sampling = np.einsum("qi,ij,qj->q", J, isserlis, J) / rows
    return np.sqrt(privacy), np.sqrt(privacy + sampling)


def assert_errors(values, expected):
    found = np.array([(value.privacy_error, value.total_error) for value in values]).T
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-9)


# -- against finite differences ------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_errors_on_a_graph_are_those_of_the_whole_estimator(noise):
    # Two components, one of them with a missing pair.
    measured, _ = noisy_graph(7, 21, noise=noise, seed=1)
    inside = (measured.pairs < 4).all(axis=1) | (measured.pairs >= 4).all(axis=1)
    inside &= ~np.all(measured.pairs == (0, 2), axis=1)
    measured = Measurements(
        7, measured.pairs[inside], measured.values[inside], measured.precisions[inside]
    )
    found = completed(measured, rows=500)
    W = found.scaled
    edges = np.argwhere(np.triu(found.graph, 1))

    def fit(moved):
        return complete(moved, tolerance=1e-14)

    def partials(done):
        return partial_of(done.precision)[tuple(edges.T)]

    table = partial_correlations(found)
    assert [value.columns for value in table.values] == [
        (names(7)[a], names(7)[b]) for a, b in edges
    ]
    np.testing.assert_allclose(
        [value.value for value in table.values], partial_of(found.scaled_precision)[tuple(edges.T)]
    )
    assert_errors(table.values, numeric_errors(measured, partials, fit, 500, W))

    def plain(done):
        return correlation_of(done.covariance)[tuple(edges.T)]

    assert_errors(correlations(found).values, numeric_errors(measured, plain, fit, 500, W))

    for chosen in ([1, 2, 3], [2, 3], [0, 4, 3]):
        predictors = [names(7)[index] for index in chosen]
        target = 1 if 1 not in chosen else 0

        def slopes(done, target=target, chosen=chosen):
            return slopes_of(done.covariance, target, chosen)

        line = regression(found, names(7)[target], predictors)
        np.testing.assert_allclose(
            [value.value for value in line.coefficients.values],
            slopes_of(W, target, chosen),
            atol=1e-12,
        )
        assert all(
            value.value == value.total_error == 0
            for value, column in zip(line.coefficients.values, chosen, strict=True)
            if column == 4
        )
        assert_errors(line.coefficients.values, numeric_errors(measured, slopes, fit, 500, W))


def test_errors_of_whole_matrices_are_those_of_the_inverse():
    d = 5
    measured, _ = noisy_graph(d, 10, noise=0.03, seed=2)
    precisions = np.random.default_rng(0).uniform(500, 2000, size=len(measured))
    measured = Measurements(d, measured.pairs, measured.values, precisions)

    def fit(moved):
        matrix = np.zeros((d, d))
        a, b = moved.pairs.T
        matrix[a, b] = matrix[b, a] = moved.values
        return matrix

    W = fit(measured)
    found = whole(W, measured, rows=700)
    upper = np.triu_indices(d, 1)

    def partials(matrix):
        return partial_of(np.linalg.inv(matrix))[upper]

    def plain(matrix):
        return correlation_of(matrix)[upper]

    assert_errors(
        partial_correlations(found).values, numeric_errors(measured, partials, fit, 700, W)
    )
    assert_errors(correlations(found).values, numeric_errors(measured, plain, fit, 700, W))

    def slopes(matrix):
        return slopes_of(matrix, 1, [0, 2, 4])

    line = regression(found, "c001", ["c000", "c002", "c004"])
    assert_errors(line.coefficients.values, numeric_errors(measured, slopes, fit, 700, W))


def test_regression_on_all_others_is_read_off_the_precision():
    measured, _ = noisy_graph(6, 9, noise=0.05, seed=3)
    found = completed(measured)
    K = found.scaled_precision
    line = regression(found, "c002")
    assert [value.columns[0] for value in line.coefficients.values] == [
        name for name in names(6) if name != "c002"
    ]
    expected = np.delete(-K[2] / K[2, 2], 2)
    np.testing.assert_allclose(
        [value.value for value in line.coefficients.values], expected, atol=1e-10
    )
    assert line.residual_deviation == pytest.approx(K[2, 2] ** -0.5)
    assert line.explained == pytest.approx(1 - 1 / (K[2, 2] * found.scaled[2, 2]))


def test_raw_units_scale_slopes_and_intercept():
    measured, _ = noisy_graph(4, 6, noise=0.02, seed=4)
    half, means = np.array([10.0, 0.5, 200.0, 1.0]), np.array([40.0, 2.0, -300.0, 0.0])
    errors = np.array([0.1, 0.01, 2.0, 0.05])
    plain = regression(completed(measured), "c000")
    raw = regression(completed(measured, half_widths=half, means=means, errors=errors), "c000")
    for place, (before, after) in enumerate(
        zip(plain.coefficients.values, raw.coefficients.values, strict=True), start=1
    ):
        unit = half[0] / half[place]
        assert after.value == pytest.approx(before.value * unit)
        assert after.privacy_error == pytest.approx(before.privacy_error * unit)
        assert after.total == pytest.approx(tuple(np.array(before.total) * unit))
    slopes = np.array([value.value for value in raw.coefficients.values])
    assert raw.intercept.value == pytest.approx(40.0 - slopes @ means[1:])
    assert raw.residual_deviation == pytest.approx(10 * plain.residual_deviation)
    assert raw.explained == pytest.approx(plain.explained)


def test_the_intercept_carries_the_slopes_joint_errors():
    measured, _ = noisy_graph(4, 6, noise=0.02, seed=5)
    means = np.array([1.0, 50.0, -30.0, 20.0])
    found = completed(measured, rows=400, means=means)

    def intercept(done):
        return np.array([means[0] - slopes_of(done.covariance, 0, [1, 2, 3]) @ means[1:]])

    privacy, total = numeric_errors(
        measured, intercept, lambda moved: complete(moved, tolerance=1e-14), 400, found.scaled
    )
    line = regression(found, "c000")
    assert line.intercept.privacy_error == pytest.approx(privacy[0], rel=1e-4)
    residual = line.residual_deviation**2 / 400
    assert line.intercept.total_error**2 == pytest.approx(total[0] ** 2 + residual, rel=1e-4)


# -- coverage ------------------------------------------------------------------------------


def test_privacy_intervals_cover_the_noiseless_fit_and_total_intervals_the_population():
    d, rows, sigma, runs = 6, 600, 0.01, 250
    K = np.eye(d) * 1.6
    for a, b in pairwise(range(d)):
        K[a, b] = K[b, a] = -0.6
    population = np.linalg.inv(K) / 10
    truth = partial_of(np.linalg.inv(population))
    chain = np.array([(j, j) for j in range(d)] + list(pairwise(range(d))))
    factor = np.linalg.cholesky(population)
    generator = np.random.default_rng(6)
    inside = {"privacy": 0, "total": 0, "slope privacy": 0, "slope total": 0}
    for _ in range(runs):
        X = generator.normal(size=(rows, d)) @ factor.T
        S = X.T @ X / rows
        exact = S[chain[:, 0], chain[:, 1]]
        precisions = np.full(len(chain), sigma**-2)
        noisy = Measurements(
            d, chain, exact + sigma * generator.normal(size=len(chain)), precisions
        )
        found = completed(noisy, rows=rows)
        noiseless = complete(Measurements(d, chain, exact, np.full(len(chain), 1e9)))
        target = partial_of(noiseless.precision)
        for value, (a, b) in zip(partial_correlations(found).values, chain[d:], strict=True):
            inside["privacy"] += value.privacy[0] <= target[a, b] <= value.privacy[1]
            inside["total"] += value.total[0] <= truth[a, b] <= value.total[1]
        line = regression(found, "c001", ["c000", "c002"])
        fitted = slopes_of(noiseless.covariance, 1, [0, 2])
        wanted = slopes_of(population, 1, [0, 2])
        for value, exactly, really in zip(line.coefficients.values, fitted, wanted, strict=True):
            inside["slope privacy"] += value.privacy[0] <= exactly <= value.privacy[1]
            inside["slope total"] += value.total[0] <= really <= value.total[1]
    shares = {
        "privacy": inside["privacy"] / (runs * (d - 1)),
        "total": inside["total"] / (runs * (d - 1)),
        "slope privacy": inside["slope privacy"] / (runs * 2),
        "slope total": inside["slope total"] / (runs * 2),
    }
    assert all(0.92 < share < 0.985 for share in shares.values()), shares


# -- noise, constants, labels --------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.001, 0.1, 10.0])
def test_a_constant_column_correlates_with_nothing(rho):
    generator = np.random.default_rng(7)
    X = generator.uniform(-1, 1, size=(50, 5))
    X[:, 1] = X[:, 0] + 0.01 * generator.normal(size=50)
    X[:, 2] = 0.0
    S = X.T @ X / 50
    sigma = 5 / (50 * np.sqrt(2 * rho))
    for seed in range(50):
        noise = sigma * np.random.default_rng(seed).normal(size=(5, 5))
        noisy = Measurements.triangle(S + np.triu(noise) + np.triu(noise, 1).T, sigma**-2)
        found = completed(noisy, rows=50)
        # A one-shot method: eigenvalues raised above 0.
        eigenvalues, vectors = np.linalg.eigh(S + np.triu(noise) + np.triu(noise, 1).T)
        projected = (vectors * np.maximum(eigenvalues, 1e-6)) @ vectors.T
        for either in (found, whole((projected + projected.T) / 2, noisy, rows=50)):
            for table in (correlations(either), partial_correlations(either)):
                assert len(table.values) == 10
                for value in table.values:
                    assert -1 <= value.total[0] <= value.value <= value.total[1] <= 1
                    assert -1 <= value.privacy[0] <= value.privacy[1] <= 1
                    if "c002" in value.columns:
                        assert not value.significant
                if either is found:
                    assert "c002" in table.undetermined
                    assert any("may be 0" in note for note in table.notes)
                if rho == 0.001:
                    assert all(value.total[1] - value.total[0] > 1.9 for value in table.values)
                json.dumps(asdict(table), allow_nan=False)
            line = regression(either, "c000")
            assert not line.coefficients.values[1].significant
            json.dumps(asdict(line), allow_nan=False)


def test_what_is_there_is_found():
    measured, _ = noisy_graph(5, 0, noise=0.001, seed=8)
    S = np.full((5, 5), 0.2) + 0.2 * np.eye(5)
    exact = Measurements.triangle(S, 1e6)
    for found in (completed(exact, rows=10_000), whole(S, exact, rows=10_000)):
        for table in (correlations(found), partial_correlations(found)):
            assert all(value.significant for value in table.values)
            assert not table.undetermined
    # Squares alone: nothing to report, and slopes of 0.
    alone = completed(measured)
    assert correlations(alone).values == ()
    line = regression(alone, "c000")
    assert all(value.value == value.privacy_error == 0 for value in line.coefficients.values)
    assert line.explained == 0


def test_selected_entries_are_labelled():
    measured, _ = noisy_graph(4, 6, noise=0.05, seed=9)
    found = completed(measured)
    selected = np.zeros((4, 4), dtype=bool)
    selected[0, 1] = True
    table = partial_correlations(found, selected=selected)
    assert [value.columns for value in table.values if value.selected] == [("c000", "c001")]
    assert any("marked as selected" in note for note in table.notes)
    line = regression(found, "c001", selected=selected)
    assert [value.columns for value in line.coefficients.values if value.selected] == [("c000",)]
    with pytest.raises(EstimationError, match="shape of the matrix"):
        correlations(found, selected=selected[:2])


def test_levels_nest_and_bad_requests_are_refused():
    measured, _ = noisy_graph(4, 6, noise=0.05, seed=10)
    found = completed(measured)
    for wide, narrow in zip(
        correlations(found, level=0.99).values, correlations(found, level=0.5).values, strict=True
    ):
        assert wide.privacy[0] < narrow.privacy[0] < narrow.privacy[1] < wide.privacy[1]
        assert narrow.total[0] <= narrow.privacy[0]
    with pytest.raises(EstimationError, match="level"):
        correlations(found, level=1.0)
    with pytest.raises(EstimationError, match="not in this covariance"):
        regression(found, "nobody")
    with pytest.raises(EstimationError, match="distinct predictors"):
        regression(found, "c000", ["c000", "c001"])
    with pytest.raises(EstimationError, match="at least one predictor"):
        regression(found, "c000", [])
    size = int(np.sqrt(2 * MAXIMUM_ENTRIES)) + 1
    dense = complete(Measurements.triangle(np.eye(size), 100.0))
    with pytest.raises(EstimationError, match="at most"):
        GraphSpread(dense, np.arange(size), 100)
