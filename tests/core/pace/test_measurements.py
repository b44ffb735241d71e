import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import EstimationError
from core.pace.measurements import Measurements


def test_repeats_are_pooled_by_inverse_variance():
    noisy = Measurements(2, [[0, 0], [1, 0], [0, 1], [1, 1]], [1.0, 0.2, 0.5, 1.0], [1, 1, 2, 1])
    pooled = noisy.pooled()
    assert pooled.pairs.tolist() == [[0, 0], [0, 1], [1, 1]]
    np.testing.assert_allclose(pooled.values, [1.0, 0.4, 1.0], rtol=1e-15)
    np.testing.assert_allclose(pooled.precisions, [1.0, 3.0, 1.0], rtol=1e-15)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_pooling_does_not_depend_on_the_order(seed, count):
    generator = np.random.default_rng(seed)
    pairs = generator.integers(0, 3, size=(count, 2))
    values = generator.normal(size=count)
    precisions = generator.uniform(0.1, 10, size=count)
    order = generator.permutation(count)
    first = Measurements(3, pairs, values, precisions).pooled()
    second = Measurements(3, pairs[order][:, ::-1], values[order], precisions[order]).pooled()
    assert np.array_equal(first.pairs, second.pairs)
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.precisions, second.precisions)


def test_pooling_agrees_with_weighted_averages():
    generator = np.random.default_rng(4)
    pairs = generator.integers(0, 4, size=(60, 2))
    values, precisions = generator.normal(size=60), generator.uniform(0.1, 10, size=60)
    pooled = Measurements(4, pairs, values, precisions).pooled()
    for (a, b), value, precision in zip(
        pooled.pairs, pooled.values, pooled.precisions, strict=True
    ):
        same = np.all(np.sort(pairs) == (a, b), axis=1)
        assert value == pytest.approx(np.average(values[same], weights=precisions[same]))
        assert precision == pytest.approx(precisions[same].sum())


def test_clipping_keeps_squares_and_products_in_the_unit_box():
    noisy = Measurements(2, [[0, 0], [1, 1], [0, 1]], [-0.3, 1.4, -1.2], [1, 1, 1])
    assert noisy.clipped().values.tolist() == [0.0, 1.0, -1.0]


def test_the_triangle_and_the_diagonal_of_a_matrix():
    matrix = np.array([[1.0, 0.2], [0.2, 2.0]])
    triangle = Measurements.triangle(matrix, np.array([[5.0, 7.0], [7.0, 6.0]]))
    assert triangle.pairs.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert triangle.values.tolist() == [1.0, 0.2, 2.0]
    assert triangle.precisions.tolist() == [5.0, 7.0, 6.0]
    assert triangle.mask.all()
    diagonal = Measurements.diagonal([1.0, 2.0], 3.0)
    assert diagonal.mask.tolist() == [[True, False], [False, True]]
    assert len(diagonal.joined(triangle)) == 5


@pytest.mark.parametrize(
    ("size", "pairs", "values", "precisions", "words"),
    [
        (0, [], [], [], "at least one column"),
        (2, [[0, 2]], [1.0], [1.0], "outside the matrix"),
        (2, [[-1, 0]], [1.0], [1.0], "outside the matrix"),
        (2, [[0, 1]], [np.nan], [1.0], "no finite number"),
        (2, [[0, 1]], [1.0], [0.0], "above 0"),
        (2, [[0, 1]], [1.0], [np.inf], "finite"),
        (2, [[0, 1]], [1.0, 2.0], [1.0], "one pair, one value and one precision"),
    ],
)
def test_what_is_no_measurement_is_refused(size, pairs, values, precisions, words):
    with pytest.raises(EstimationError, match=words):
        Measurements(size, pairs, values, precisions)


def test_matrices_of_other_shapes_are_refused():
    with pytest.raises(EstimationError, match="square matrix"):
        Measurements.triangle(np.ones((2, 3)), 1.0)
    with pytest.raises(EstimationError, match="different sizes"):
        Measurements.diagonal([1.0], 1.0).joined(Measurements.diagonal([1.0, 1.0], 1.0))
