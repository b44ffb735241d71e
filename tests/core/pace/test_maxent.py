import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.blas import one_blas_thread
from core.errors import EstimationError
from core.pace import newton
from core.pace.conditioning import conditioned
from core.pace.conjugate import conjugate_gradients
from core.pace.dual import Problem
from core.pace.maxent import complete
from core.pace.measurements import Measurements
from tests.core.pace.oracles import (
    barrier_by_cvxpy,
    chordal_precision,
    forest_completion,
    kkt_residual,
    noisy_graph,
)


def sound(completion):
    """Every promise that holds whatever was measured."""
    W, K = completion.covariance, completion.precision
    assert np.array_equal(W, W.T)
    assert np.array_equal(K, K.T)
    assert np.all(np.isfinite(W))
    assert np.all(np.isfinite(K))
    assert np.all(K[~completion.measurements.mask] == 0)
    assert np.all(np.abs(completion.correlation) <= 1)
    assert completion.decrement_squared < 1e-10
    scale = np.sqrt(W.diagonal())
    assert np.linalg.eigvalsh(W / np.outer(scale, scale)).min() > -1e-13
    return True


# -- against other solvers and closed forms ------------------------------------------------


@pytest.mark.parametrize("mu", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize(("d", "edges"), [(6, 8), (8, 14), (12, 30)])
def test_the_barrier_problem_agrees_with_cvxpy(d, edges, mu):
    measured, _ = noisy_graph(d, edges, noise=0.1, seed=d)
    expected = barrier_by_cvxpy(measured, mu)
    found = complete(measured, mu=mu)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-5)


@pytest.mark.parametrize("d", [6, 8, 12])
def test_infeasible_measurements_tend_to_the_least_squares_fit(d):
    measured, _ = noisy_graph(d, d * (d - 1) // 2, noise=0.4, seed=d)
    whole = np.zeros((d, d))
    whole[tuple(measured.pairs.T)] = measured.values
    whole = np.maximum(whole, whole.T) + np.minimum(whole, whole.T) - np.diag(whole.diagonal())
    assert np.linalg.eigvalsh(whole).min() < -0.1
    expected = barrier_by_cvxpy(measured, 0.0)
    found = complete(measured, mu=1e-7)
    np.testing.assert_allclose(found.covariance, expected, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_forests_multiply_correlations_along_paths(seed, d):
    generator = np.random.default_rng(seed)
    edges = [
        (int(generator.integers(child)), child) for child in range(1, d) if generator.random() < 0.8
    ]
    S = np.diag(generator.uniform(0.05, 1, size=d))
    for a, b in edges:
        S[a, b] = S[b, a] = generator.uniform(-0.9, 0.9) * np.sqrt(S[a, a] * S[b, b])
    pairs = [(j, j) for j in range(d)] + edges
    measured = Measurements(d, pairs, [S[a, b] for a, b in pairs], np.full(len(pairs), 1e9))
    found = complete(measured, mu=1e-5)
    np.testing.assert_allclose(found.covariance, forest_completion(d, edges, S), atol=1e-10)
    assert sound(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_chordal_graphs_have_the_closed_form(seed, d):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(40, d)) @ (np.eye(d) + 0.2 * generator.normal(size=(d, d)))
    S = X.T @ X / len(X)
    S /= np.abs(S).max()
    # Each new column joins part of a clique that is there: the graph stays chordal.
    cliques, elimination = [[0]], [(0, [])]
    for node in range(1, d):
        clique = cliques[generator.integers(len(cliques))]
        count = int(generator.integers(0, min(len(clique), 3) + 1))
        parents = [int(other) for other in generator.permutation(clique)[:count]]
        cliques.append([node, *parents])
        elimination.append((node, parents))
    pairs = [(j, j) for j in range(d)]
    pairs += [(parent, node) for node, parents in elimination for parent in parents]
    measured = Measurements(d, pairs, [S[a, b] for a, b in pairs], np.full(len(pairs), 1e9))
    found = complete(measured, mu=1e-6)
    expected = np.linalg.inv(chordal_precision(d, elimination, S))
    np.testing.assert_allclose(found.covariance, expected, atol=1e-10)


def test_one_column_has_a_closed_form():
    for value, precision in [(0.3, 4.0), (0.0, 1e9), (-0.2, 25.0), (0.9, 1e-6)]:
        found = complete(Measurements.diagonal([value], precision), mu=0.05)
        ridge = 0.05 / precision
        expected = (value + np.sqrt(value**2 + 4 * ridge)) / 2
        assert found.covariance[0, 0] == pytest.approx(expected, rel=1e-9)
        assert found.iterations == 0


def test_gradient_and_hessian_are_those_of_the_dual():
    problem, W = _scaled_problem(5, 6, noise=0.2, seed=1)
    generator = np.random.default_rng(2)
    K = np.linalg.inv(W)
    entries = K[problem.rows, problem.columns]

    def g(values):
        return problem.objective(values, np.linalg.slogdet(problem.matrix(values))[1])

    K = problem.matrix(entries)
    gradient = problem.gradient(entries, np.linalg.inv(K))
    hessian = problem.hessian(np.linalg.inv(K))
    step = 1e-5 * np.eye(len(entries))
    numeric = [(g(entries + h) - g(entries - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)
    numeric = [
        problem.gradient(entries + h, np.linalg.inv(problem.matrix(entries + h)))
        - problem.gradient(entries - h, np.linalg.inv(problem.matrix(entries - h)))
        for h in step
    ]
    np.testing.assert_allclose(hessian, np.array(numeric) / 2e-5, rtol=1e-5, atol=1e-6)
    direction = generator.normal(size=len(entries))
    product = problem.hessian_product(np.linalg.inv(K), direction)
    np.testing.assert_allclose(product, hessian @ direction, rtol=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 10),
    share=st.floats(0, 1),
    noise=st.sampled_from([1e-4, 0.05, 0.3, 3.0]),
    mu=st.sampled_from([1.0, 0.05, 1e-3]),
)
def test_random_graphs_satisfy_the_optimality_conditions(seed, d, share, noise, mu):
    measured, _ = noisy_graph(d, round(share * d * (d - 1) / 2), noise=noise, seed=seed)
    found = complete(measured, mu=mu)
    assert sound(found)
    assert found.relaxation == 1.0
    assert kkt_residual(found) < 1e-7 * max(1.0, noise)
    np.testing.assert_allclose(found.precision @ found.covariance, np.eye(d), atol=1e-8)


# -- conjugate gradients -------------------------------------------------------------------


def _scaled_problem(d, edges, *, noise, seed):
    pooled = noisy_graph(d, edges, noise=noise, seed=seed)[0].pooled()
    rows, columns = pooled.pairs.T
    scale, values, ridge = conditioned(
        rows, columns, pooled.values, pooled.precisions, size=d, mu=0.05
    )
    units = scale[rows] * scale[columns]
    problem = Problem(d, rows, columns, values / units, ridge / units**2)
    W = complete(pooled).covariance / np.outer(scale, scale)
    return problem, W


@pytest.mark.parametrize("edges", [60, 435], ids=["sparse", "complete"])
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_conjugate_gradients_solve_the_newton_system(edges, noise):
    problem, W = _scaled_problem(30, edges, noise=noise, seed=edges)
    right = np.random.default_rng(0).normal(size=len(problem.rows))
    found = conjugate_gradients(problem, W, right, accuracy=1e-12, limit=5000)
    expected = np.linalg.solve(problem.hessian(W), right)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert conjugate_gradients(problem, W, right, accuracy=1e-14, limit=2) is None


@pytest.mark.parametrize("edges", [120, 435])
@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_conjugate_gradients_end_where_cholesky_ends(edges, noise):
    problem, _ = _scaled_problem(30, edges, noise=noise, seed=edges + 1)
    ends = [
        newton.minimise(problem, np.eye(30), tolerance=1e-10, direct_unknowns=limit)
        for limit in (1, 10**6)
    ]
    assert all(end.converged for end in ends)
    np.testing.assert_allclose(ends[0].covariance, ends[1].covariance, atol=1e-8)
    # The decrement that conjugate gradients report is checked by a factorisation.
    entries = ends[0].precision[problem.rows, problem.columns]
    gradient = problem.gradient(entries, ends[0].covariance)
    decrement = gradient @ np.linalg.solve(problem.hessian(ends[0].covariance), gradient)
    assert 0 <= decrement < 1e-10


# -- order, starts, pooling ----------------------------------------------------------------


def test_the_order_of_measurements_does_not_matter():
    measured, _ = noisy_graph(20, 60, noise=0.2, seed=3)
    order = np.random.default_rng(1).permutation(len(measured))
    shuffled = Measurements(
        20, measured.pairs[order][:, ::-1], measured.values[order], measured.precisions[order]
    )
    first, second = complete(measured), complete(shuffled)
    assert np.array_equal(first.covariance, second.covariance)
    assert np.array_equal(first.precision, second.precision)


@pytest.mark.parametrize(("d", "edges"), [(12, 20), (30, 200)])
def test_the_order_of_columns_does_not_matter(d, edges):
    measured, _ = noisy_graph(d, edges, noise=0.2, seed=5)
    place = np.random.default_rng(2).permutation(d)
    moved = Measurements(d, place[measured.pairs], measured.values, measured.precisions)
    first, second = complete(measured), complete(moved)
    np.testing.assert_allclose(
        second.covariance[np.ix_(place, place)], first.covariance, rtol=0, atol=1e-9
    )


def test_units_of_columns_do_not_matter():
    measured, _ = noisy_graph(8, 14, noise=0.05, seed=6)
    unit = 10.0 ** np.arange(-4, 4)
    rows, columns = measured.pairs.T
    factor = unit[rows] * unit[columns]
    scaled = Measurements(
        8, measured.pairs, measured.values * factor, measured.precisions / factor**2
    )
    first, second = complete(measured), complete(scaled)
    np.testing.assert_allclose(second.covariance / np.outer(unit, unit), first.covariance)


def test_a_warm_start_ends_at_the_same_place_sooner():
    measured, _ = noisy_graph(60, 240, noise=0.05, seed=7)
    fewer = Measurements(60, measured.pairs[:-1], measured.values[:-1], measured.precisions[:-1])
    cold = complete(measured)
    warm = complete(measured, start=complete(fewer))
    np.testing.assert_allclose(warm.covariance, cold.covariance, atol=1e-9)
    assert warm.iterations < cold.iterations
    with pytest.raises(EstimationError, match="as many columns"):
        complete(measured, start=complete(Measurements.diagonal([1.0], 1.0)))


def test_components_are_completed_on_their_own():
    measured, _ = noisy_graph(12, 66, noise=0.1, seed=8)
    inside = (measured.pairs < 5).all(axis=1) | (measured.pairs >= 5).all(axis=1)
    parts = Measurements(
        12, measured.pairs[inside], measured.values[inside], measured.precisions[inside]
    )
    found = complete(parts)
    assert found.components == (tuple(range(5)), tuple(range(5, 12)))
    assert np.all(found.covariance[:5, 5:] == 0)
    left = (parts.pairs < 5).all(axis=1)
    alone = complete(Measurements(5, parts.pairs[left], parts.values[left], parts.precisions[left]))
    np.testing.assert_allclose(found.covariance[:5, :5], alone.covariance, atol=1e-12)


# -- hard inputs ---------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("kind", ["plain", "constant and duplicated", "one column"])
def test_every_budget_gives_a_sound_matrix(rho, kind):
    generator = np.random.default_rng(9)
    X = generator.uniform(-1, 1, size=(50, 1 if kind == "one column" else 6))
    if kind == "constant and duplicated":
        X[:, 1], X[:, 2] = X[:, 0], 0.0
    d = X.shape[1]
    S = X.T @ X / 50
    sigma = d / (50 * np.sqrt(2 * rho))
    for seed in range(5):
        noise = sigma * np.random.default_rng(seed).normal(size=(d, d))
        measured = Measurements.triangle(S + np.triu(noise) + np.triu(noise, 1).T, sigma**-2)
        for clip in (False, True):
            found = complete(measured, clip=clip)
            assert sound(found)
        if rho == 1e9:
            np.testing.assert_allclose(found.covariance, S, atol=2e-5)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 10),
    magnitude=st.floats(-3, 3),
    mu=st.sampled_from([1.0, 0.05, 1e-5]),
    clip=st.booleans(),
)
def test_contradictions_of_any_size_give_a_sound_matrix(seed, d, magnitude, mu, clip):
    generator = np.random.default_rng(seed)
    products = np.column_stack(np.triu_indices(d, 1))
    chosen = products[generator.random(len(products)) < 0.6]
    pairs = np.concatenate([np.column_stack([np.arange(d)] * 2), chosen])
    values = generator.normal(size=len(pairs)) * 10**magnitude
    precisions = 10 ** generator.uniform(-6, 16, size=len(pairs))
    assert sound(complete(Measurements(d, pairs, values, precisions), mu=mu, clip=clip))


def test_a_known_diagonal_stays_known_beside_noise():
    generator = np.random.default_rng(11)
    known = Measurements.diagonal(np.full(6, 0.25), 1e12)
    pairs = np.column_stack(np.triu_indices(6, 1))
    noise = Measurements(6, pairs, generator.normal(size=15) * 100, np.full(15, 1e-4))
    found = complete(known.joined(noise))
    np.testing.assert_allclose(found.covariance.diagonal(), 0.25, atol=1e-6)
    assert sound(found)


def test_impossible_requests_are_refused():
    with pytest.raises(EstimationError, match="square of column number 2 was not measured"):
        complete(Measurements(2, [[0, 0], [0, 1]], [1.0, 0.1], [1.0, 1.0]))
    with pytest.raises(EstimationError, match="mu must be"):
        complete(Measurements.diagonal([1.0], 1.0), mu=0.0)
    with pytest.raises(EstimationError, match="tolerance must be"):
        complete(Measurements.diagonal([1.0], 1.0), tolerance=float("nan"))


def test_one_thread_is_shared_and_given_back():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(limits=2, user_api="blas"):  # however many the tests run with
        before = threads()
        with one_blas_thread():
            with one_blas_thread():
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before
