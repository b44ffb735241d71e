"""Areal regression: formulas against direct ones, coverage on simulated areas, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.errors import EstimationError, StatisticError
from core.pumba.areal import (
    ArealData,
    ArealVariable,
    areal_posterior,
    attenuation,
    corrected_fit,
    imputed_draws,
    naive_fit,
)


def areas(number: int, ratio: float, seed: int, *, outcome_noise: float = 0.0) -> ArealData:
    """Slope 1 on a covariate with spread 1 and noise ``ratio``; residuals of sd 1/2."""
    generator = np.random.default_rng(seed)
    true = generator.gamma(2.0, 1 / np.sqrt(2.0), number)
    outcome = true + generator.normal(0, 0.5, number)
    return ArealData(
        ArealVariable("y", outcome + generator.normal(0, 1, number) * outcome_noise, outcome_noise),
        (ArealVariable("x", true + generator.normal(0, ratio, number), ratio),),
    )


def test_without_noise_all_fits_are_least_squares() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(80, 3))
    y = x @ [1.0, -2.0, 0.5] + 3 + generator.normal(size=80)
    columns = tuple(ArealVariable(name, x[:, i]) for i, name in enumerate("abc"))
    data = ArealData(ArealVariable("y", y), columns)
    design = np.column_stack([np.ones(80), x])
    expected = np.linalg.lstsq(design, y)[0]
    residual = y - design @ expected
    bread = np.linalg.inv(design.T @ design)
    meat = (design * residual[:, None] ** 2).T @ design
    hc1 = np.sqrt(np.diag(bread @ meat @ bread) * 80 / 76)
    for fit in (naive_fit(data), corrected_fit(data)):
        np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-10)
        np.testing.assert_allclose(fit.standard_errors, hc1, rtol=1e-10)
        np.testing.assert_allclose(fit.noise_covariance, 0, atol=1e-12)


def test_corrected_sums_with_shared_noise_match_the_written_out_formula() -> None:
    generator = np.random.default_rng(2)
    number = 60
    root = generator.normal(size=(number, 3, 3)) * 0.2
    covariance = root @ np.swapaxes(root, 1, 2)
    values = generator.normal(size=(number, 3)) * 2
    sds = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    columns = [ArealVariable(name, values[:, i], sds[:, i]) for i, name in enumerate("aby")]
    data = ArealData(columns[2], tuple(columns[:2]), covariance)
    squares, products = np.zeros((3, 3)), np.zeros(3)
    for row in range(number):
        w = np.array([1.0, *values[row, :2]])
        squares += np.outer(w, w)
        squares[1:, 1:] -= covariance[row, :2, :2]
        products += w * values[row, 2]
        products[1:] -= covariance[row, :2, 2]
    np.testing.assert_allclose(corrected_fit(data).coefficients, np.linalg.solve(squares, products))


@pytest.mark.parametrize(("ratio", "tolerance"), [(0.05, 0.01), (0.1, 0.01), (0.3, 0.02)])
def test_attenuation_is_estimated_and_serious_from_a_tenth_on(
    ratio: float, tolerance: float
) -> None:
    (found,) = attenuation(areas(20_000, ratio, 3))
    assert found.ratio == pytest.approx(ratio, abs=tolerance)
    assert found.partial == found.ratio
    assert found.serious == (ratio >= 0.1)
    assert attenuation(areas(3000, 0.3, 4))[0].serious
    assert not attenuation(areas(3000, 0.05, 4))[0].serious


def test_attenuation_counts_what_other_covariates_leave() -> None:
    generator = np.random.default_rng(5)
    shared = generator.normal(size=20_000)
    true = np.column_stack([shared, shared + generator.normal(0, 0.2, 20_000)])
    noisy = true + generator.normal(0, 0.08, true.shape)
    data = ArealData(
        ArealVariable("y", shared),
        tuple(ArealVariable(name, noisy[:, i], 0.08) for i, name in enumerate("ab")),
    )
    first, second = attenuation(data)
    assert first.ratio < 0.1 < first.partial
    # What b leaves of a: var(a) - cov²/var(b) = 1 - 1/1.04.
    assert first.partial == pytest.approx(0.08 / np.sqrt(1 - 1 / 1.04), rel=0.05)
    assert second.partial == pytest.approx(0.08 / 0.2, rel=0.05)
    assert first.serious


def _coverage(number: int, ratio: float, sets: int) -> dict[str, NDArray[np.float64]]:
    """Estimates and coverage of the true slope 1: columns estimate, covered."""
    found: dict[str, list[tuple[float, bool]]] = {"naive": [], "imputed": [], "corrected": []}
    for seed in range(sets):
        data = areas(number, ratio, 1000 + seed, outcome_noise=0.1)
        draws = imputed_draws(data, 60, np.random.default_rng(seed))[:, 1]
        naive, corrected = naive_fit(data), corrected_fit(data)
        centre, spread = draws.mean(), draws.std(ddof=1)
        found["imputed"].append((centre, abs(centre - 1) <= 1.96 * spread))
        for name, fit in (("naive", naive), ("corrected", corrected)):
            low, high = fit.intervals()[1]
            found[name].append((fit.coefficients[1], low <= 1 <= high))
    return {name: np.array(values, dtype=float) for name, values in found.items()}


@pytest.mark.parametrize(("number", "ratio"), [(500, 0.05), (500, 0.3), (3000, 0.1), (3000, 0.3)])
def test_corrected_covers_where_imputation_attenuates(number: int, ratio: float) -> None:
    sets = 60
    found = _coverage(number, ratio, sets)
    means = {name: values[:, 0].mean() for name, values in found.items()}
    covers = {name: values[:, 1].mean() for name, values in found.items()}
    slack = 6 * 0.7 / np.sqrt(number * sets)
    assert means["naive"] == pytest.approx(1 / (1 + ratio**2), abs=slack)
    assert means["imputed"] == pytest.approx(1 / (1 + 2 * ratio**2), abs=slack)
    assert means["corrected"] == pytest.approx(1, abs=slack)
    assert covers["corrected"] > 0.83  # binomial(60, .95) is below this once in 4000 times
    if ratio == 0.3:
        assert covers["imputed"] < 0.2


def test_bootstrap_agrees_with_the_sandwich() -> None:
    data = areas(2000, 0.3, 6, outcome_noise=0.2)
    sandwich = corrected_fit(data)
    bootstrap = corrected_fit(
        data, method="bootstrap", draws=3000, generator=np.random.default_rng(7)
    )
    np.testing.assert_allclose(bootstrap.standard_errors, sandwich.standard_errors, rtol=0.1)
    np.testing.assert_allclose(bootstrap.intervals(), sandwich.intervals(), atol=0.01)


def test_noise_part_of_the_variance_is_what_new_noise_moves() -> None:
    """Fixed areas, noise redrawn: the spread of the estimates against the estimated part."""
    generator = np.random.default_rng(8)
    number = 1500
    true = generator.normal(size=number)
    outcome = true + generator.normal(0, 0.5, number)
    estimates, parts = [], []
    for _ in range(400):
        data = ArealData(
            ArealVariable("y", outcome + generator.normal(0, 0.3, number), 0.3),
            (ArealVariable("x", true + generator.normal(0, 0.3, number), 0.3),),
        )
        fit = corrected_fit(data)
        estimates.append(fit.coefficients[1])
        parts.append(fit.noise_covariance[1, 1])
    assert np.mean(parts) == pytest.approx(np.var(estimates), rel=0.25)


def test_draws_carry_the_split_of_the_variance() -> None:
    data = areas(800, 0.3, 9, outcome_noise=0.2)
    fit = corrected_fit(data)
    found = areal_posterior(data, 40_000, np.random.default_rng(10))
    assert found.names == ("intercept", "x")
    np.testing.assert_allclose(found.values.mean(axis=0), fit.coefficients, atol=0.002)
    np.testing.assert_allclose(found.values.std(axis=0), fit.standard_errors, rtol=0.03)
    shared = np.cov(found.values[:, 1], found.repeats[:, 1])[0, 1]
    assert shared == pytest.approx(fit.noise_covariance[1, 1], rel=0.15)
    np.testing.assert_allclose(found.naive[:, 0], naive_fit(data).coefficients)
    assert "x" in found.notes[1]


def test_refusals() -> None:
    generator = np.random.default_rng(11)
    x = ArealVariable("x", generator.normal(size=50), 3.0)
    y = ArealVariable("y", generator.normal(size=50))
    assert attenuation(ArealData(y, (x,)))[0].ratio == np.inf
    with pytest.raises(EstimationError, match="'x' is at least as large"):
        corrected_fit(ArealData(y, (x,)))
    with pytest.raises(EstimationError, match="different columns"):
        ArealData(y, (y,))
    with pytest.raises(EstimationError, match="at least one covariate"):
        ArealData(y, ())
    with pytest.raises(StatisticError, match="same areas"):
        ArealData(y, (ArealVariable("x", [1.0, 2.0]),))
    with pytest.raises(StatisticError, match="noise sd"):
        ArealVariable("x", [1.0, 2.0], -1.0)
    with pytest.raises(StatisticError, match="without a value"):
        ArealVariable("x", [1.0, np.nan])
    with pytest.raises(StatisticError, match="disagree"):
        ArealData(y, (x,), np.zeros((50, 2, 2)))
    good = ArealData(y, (ArealVariable("x", x.values, 0.1),))
    with pytest.raises(EstimationError, match="needs a generator"):
        corrected_fit(good, method="bootstrap")
    with pytest.raises(EstimationError, match="strictly between"):
        corrected_fit(good).intervals(1.0)
    with pytest.raises(EstimationError, match="2 areas"):
        ArealData(ArealVariable("y", [1.0, 2.0]), (ArealVariable("x", [1.0, 3.0]),))
