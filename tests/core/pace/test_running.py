import numpy as np
import pytest

from core.blas import one_blas_thread
from core.errors import EstimationError
from core.pace.local_update import (
    add_square_to_inverse,
    add_to_inverse,
    block_change,
    one_column_change,
    two_columns,
)
from core.pace.maxent import complete
from core.pace.measurements import Measurements
from core.pace.running import SMALL_COMPONENT, RunningCompletion
from tests.core.pace.oracles import noisy_graph


def _run(measured, **settings):
    d = measured.size
    squares = Measurements(d, measured.pairs[:d], measured.values[:d], measured.precisions[:d])
    running = RunningCompletion(squares, **settings)
    with one_blas_thread():
        for place in range(d, len(measured)):
            running.add(measured.pairs[place], measured.values[place], measured.precisions[place])
    return running


@pytest.mark.parametrize(("d", "edges"), [(1, 0), (6, 15), (30, 80)])
def test_small_components_are_exact_all_the_time(d, edges):
    measured, _ = noisy_graph(d, edges, noise=0.1, seed=d)
    running = _run(measured)
    np.testing.assert_allclose(running.covariance, complete(measured).covariance, atol=1e-5)


@pytest.mark.parametrize("noise", [1e-5, 0.05, 1.0])
@pytest.mark.parametrize("clip", [False, True])
def test_large_components_are_close_all_the_time_and_exact_at_the_end(noise, clip):
    d = 2 * SMALL_COMPONENT
    measured, _ = noisy_graph(d, 3 * d, noise=noise, seed=1)
    running = _run(measured, clip=clip)
    cold = complete(measured, clip=clip)
    assert max(len(component) for component in cold.components) > SMALL_COMPONENT
    scale = np.sqrt(cold.covariance.diagonal())
    gap = np.abs(running.covariance - cold.covariance) / np.outer(scale, scale)
    # Between full solves: the more the noise, the further every new entry moves the whole.
    assert np.sqrt((gap**2).mean()) < (0.05 if noise < 1 else 0.6)
    end = running.completed()
    np.testing.assert_allclose(end.covariance, cold.covariance, atol=1e-7 * scale.max() ** 2)
    assert end.decrement_squared < 1e-10
    assert np.all(end.precision[~cold.measurements.mask] == 0)


def test_an_entry_and_its_squares_are_pooled_in_one_update():
    measured, _ = noisy_graph(60, 120, noise=0.1, seed=2)
    running = _run(measured)
    generator = np.random.default_rng(3)
    extra = []
    for _ in range(20):
        a, b = np.sort(generator.permutation(60)[:2])
        pairs = np.array([[a, a], [b, b], [a, b]])
        values = np.array([0.5, 0.5, 0.1]) + 0.1 * generator.normal(size=3)
        extra.append(Measurements(60, pairs, values, np.full(3, 100.0)))
        running.add(pairs, values, np.full(3, 100.0))
    everything = measured.joined(*extra)
    pooled = running.measurements.pooled()
    np.testing.assert_allclose(pooled.values, everything.pooled().values, rtol=1e-12)
    np.testing.assert_allclose(pooled.precisions, everything.pooled().precisions, rtol=1e-12)
    np.testing.assert_allclose(
        running.completed().covariance, complete(everything).covariance, atol=1e-8
    )
    first = everything.pooled()
    a, b = first.pairs[1]
    assert running.pooled(b, a) == pytest.approx((first.values[1], first.precisions[1]))
    unmeasured = np.argwhere(~first.mask)[0]
    assert running.pooled(*unmeasured) is None


def test_squares_alone_can_be_pooled_again():
    measured, _ = noisy_graph(50, 150, noise=0.1, seed=4)
    running = _run(measured)
    again = Measurements.diagonal(np.full(50, 0.4), 400.0)
    for (a, b), value, precision in zip(again.pairs, again.values, again.precisions, strict=True):
        running.add((a, b), value, precision)
    np.testing.assert_allclose(
        running.completed().covariance, complete(measured.joined(again)).covariance, atol=1e-8
    )


def test_the_covariance_is_a_view_that_cannot_be_written():
    running = RunningCompletion(Measurements.diagonal([0.5, 0.5], 100.0))
    view = running.covariance
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 2.0
    running.add((0, 1), 0.2, 100.0)
    assert running.covariance[0, 1] > 0.1
    with pytest.raises(EstimationError, match="outside the matrix"):
        running.add((0, 2), 0.2, 100.0)


# -- the local update ----------------------------------------------------------------------


def test_a_block_update_minimises_over_its_block():
    measured, _ = noisy_graph(8, 16, noise=0.2, seed=5)
    pooled = measured.pooled()
    W, K = (np.array(m) for m in (complete(pooled).covariance, complete(pooled).precision))
    a, b = pooled.pairs[np.flatnonzero(pooled.pairs[:, 0] != pooled.pairs[:, 1])[0]]
    values, ridge = (0.7, 0.3, 0.5), (0.02, 0.01, 0.03)
    change = block_change((W[a, a], W[a, b], W[b, b]), (K[a, a], K[a, b], K[b, b]), values, ridge)
    moved = K.copy()
    moved[[a, a, b, b], [a, b, a, b]] += np.array(change)[[0, 1, 1, 2]]
    assert add_to_inverse(W, a, b, change)
    np.testing.assert_allclose(W, np.linalg.inv(moved), atol=1e-12)
    # Stationary: W_i = y_i + 2 c_i tau_i K_i on the block.
    for (i, j), value, tau, factor in zip(
        [(a, a), (a, b), (b, b)], values, ridge, (1, 2, 1), strict=True
    ):
        assert W[i, j] == pytest.approx(value + factor * tau * moved[i, j], abs=1e-9)


def test_a_square_update_minimises_over_its_square():
    generator = np.random.default_rng(6)
    X = generator.normal(size=(20, 5))
    W = X.T @ X / 20
    K = np.linalg.inv(W)
    for value, ridge in [(0.4, 1e-3), (-0.5, 0.1), (3.0, 1e-9)]:
        grown = one_column_change(W[2, 2], K[2, 2], value, ridge)
        assert add_square_to_inverse(W, 2, grown)
        K[2, 2] += grown
        np.testing.assert_allclose(W, np.linalg.inv(K), rtol=1e-8)
        assert W[2, 2] == pytest.approx(value + ridge * K[2, 2], rel=1e-6)


def test_two_columns_agree_with_the_full_solver():
    for seed in range(20):
        generator = np.random.default_rng(seed)
        values = tuple(generator.normal(size=3) * (1, 5, 1))
        ridge = tuple(10 ** generator.uniform(-3, 1, size=3))
        found = two_columns(values, ridge, (1.0, 0.0, 1.0))
        measured = Measurements(2, [[0, 0], [0, 1], [1, 1]], values, 0.05 / np.array(ridge))
        expected = complete(measured, mu=0.05).precision
        np.testing.assert_allclose(found, expected[[0, 0, 1], [0, 1, 1]], rtol=1e-6)


def test_updates_that_cannot_be_computed_change_nothing():
    W = np.array([[1.0, 0.5], [0.5, 1.0]])
    before = W.copy()
    assert not add_to_inverse(W, 0, 1, (-10.0, 0.0, 0.0))
    assert not add_square_to_inverse(W, 0, -1.0)
    assert np.array_equal(W, before)
    assert two_columns((1.0, 0.0, 1.0), (0.1, 0.1, 0.1), (1.0, 2.0, 1.0)) is None
    assert block_change((1.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1, 0, 1), (0.1, 0.1, 0.1)) is None
