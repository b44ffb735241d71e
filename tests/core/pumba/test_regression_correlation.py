"""Correlations: Fisher's z, bounds, and columns that do not vary."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.errors import EstimationError
from core.pumba.correlation import correlation_posterior
from core.pumba.draws import ParameterDraws
from core.pumba.gram import GramVariable, NoisyGram, draw_grams
from tests.core.pumba.grams import gaussian, laplace, line, noisy_gram

FloatArray = NDArray[np.float64]


def correlate(problem: NoisyGram, draws: int, seed: int, **settings: object) -> ParameterDraws:
    grams = draw_grams(problem, draws, np.random.default_rng(seed))
    generator = np.random.default_rng(seed + 1)
    return correlation_posterior(problem, grams, generator=generator, **settings)  # type: ignore[arg-type]


def test_without_noise_the_posterior_is_fishers() -> None:
    generator = np.random.default_rng(1)
    x = generator.uniform(10, 20, 200)
    columns = {"x": x, "y": generator.uniform(10, 20, 200), "z": 0.5 * x + 7}
    variables = tuple(GramVariable(name, 0.0, 30.0, unit=2.0) for name in columns)
    columns["z"] = columns["z"] + generator.normal(0, 1, 200)
    problem = noisy_gram(columns, laplace(1e-6), 1, variables=variables)
    expected = np.corrcoef(list(columns.values()))[[0, 0, 1], [1, 2, 2]]
    found = correlate(problem, 30_000, 2)
    assert found.names == ("cor(x, y)", "cor(x, z)", "cor(y, z)")
    np.testing.assert_allclose(found.naive[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(found.naive[:, 1], (1 - expected**2) / np.sqrt(197), rtol=1e-4)
    z = np.arctanh(found.values)
    np.testing.assert_allclose(z.mean(axis=0), np.arctanh(expected), atol=0.003)
    np.testing.assert_allclose(z.std(axis=0), 1 / np.sqrt(197), rtol=0.03)
    sample = correlate(problem, 200, 2, estimand="sample", pairs=[("z", "x")])
    assert sample.names == ("cor(z, x)",)
    np.testing.assert_allclose(sample.values, expected[1], atol=1e-5)
    np.testing.assert_array_equal(sample.values, sample.repeats)


def test_identical_columns_stay_within_bounds() -> None:
    x = line(80, 1)["x"]
    found = correlate(noisy_gram({"a": x, "b": x.copy()}, laplace(1e-4), 1), 1000, 1)
    assert np.abs(found.values).max() < 1
    assert np.median(found.values) > 0.999


@pytest.mark.parametrize("rho", [0.001, 0.1, 10.0])
def test_a_constant_column_is_never_significant(rho: float) -> None:
    """Five columns, 50 rows: two nearly equal, one constant; Gaussian noise on 20 sums."""
    generator = np.random.default_rng(0)
    first = generator.uniform(0, 10, 50)
    raw = {
        "a": first,
        "b": np.clip(first + generator.normal(0, 0.05, 50), 0, 10),
        "constant": np.full(50, 4.0),
        "c": generator.uniform(0, 10, 50),
        "d": np.clip(generator.normal(5, 2, 50), 0, 10),
    }
    columns = {name: (column - 5) / 5 for name, column in raw.items()}
    variables = tuple(GramVariable(name, -1.0, 1.0, origin=5.0, unit=5.0) for name in columns)
    law = gaussian(float(np.sqrt(20 / (2 * rho))))
    for seed in range(4):
        problem = noisy_gram(columns, law, seed, variables=variables)
        found = correlate(problem, 500, seed)
        assert np.abs(found.values).max() < 1
        low, high = np.quantile(found.values, [0.025, 0.975], axis=0)
        touched = ["constant" in name for name in found.names]
        assert np.all(low[touched] < 0)
        assert np.all(high[touched] > 0)
        if rho == 0.001:
            assert np.all(high - low > 1.2)


def test_refusals() -> None:
    problem = noisy_gram(line(50, 1), laplace(1.0), 1)
    for settings, message in (
        ({"pairs": [("x", "z")]}, "'z' has no released sums"),
        ({"pairs": [("x", "x")]}, "paired with itself"),
        ({"pairs": []}, "needs two columns"),
        ({"sampling": -0.5}, "at least 0"),
        ({"estimand": "none"}, "is unknown"),
    ):
        with pytest.raises(EstimationError, match=message):
            correlate(problem, 50, 1, **settings)
