"""Gram problems: what is refused, ties, several releases of one sum, clamped releases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import ks_2samp, kstest

from core.errors import StatisticError
from core.pumba.gram import GramVariable, NoisyGram, draw_grams
from core.pumba.gram_laws import gram_target
from core.pumba.pooled import PooledLikelihood, ProductLaw
from core.statistics import Family, NoiseLaw, NoisyStatistic
from tests.core.pumba.grams import gaussian, laplace, line, noisy_gram

FloatArray = NDArray[np.float64]


def simple() -> NoisyGram:
    return noisy_gram(line(100, 1), laplace(2.0), 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": 1.0, "upper": 1.0}, "'x': the lower bound must lie below"),
        ({"lower": 2.0, "upper": 1.0}, "'x': the lower bound must lie below"),
        ({"upper": math.inf}, "'x': both bounds must be finite"),
        ({"lower": math.nan}, "'x': both bounds must be finite"),
        ({"exclusive": "k"}, "only indicators"),
        ({"unit": 0.0}, "origin and unit"),
        ({"origin": math.nan}, "origin and unit"),
    ],
)
def test_impossible_columns_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(StatisticError, match=message):
        GramVariable(**{"name": "x", "lower": 0.0, "upper": 1.0, **arguments})  # type: ignore[arg-type]


def test_problems_that_do_not_fit_together_are_refused() -> None:
    good = simple()
    one = good.sums["x"]
    with pytest.raises(StatisticError, match="at least one column"):
        NoisyGram((), 10, {}, {})
    with pytest.raises(StatisticError, match="declared twice"):
        NoisyGram(good.variables[:1] * 2, 10, {}, {})
    with pytest.raises(StatisticError, match="rows must be at least 1"):
        replace(good, count=0)
    with pytest.raises(StatisticError, match="'z' belongs to no declared column"):
        replace(good, sums={**good.sums, "z": one})
    with pytest.raises(StatisticError, match="'x × z' is none of the declared"):
        replace(good, products={("x", "z"): one})
    with pytest.raises(StatisticError, match="under two orders"):
        replace(good, products={("x", "y"): one, ("y", "x"): one})
    with pytest.raises(StatisticError, match="degree 3 or 4"):
        replace(good, fourth={("x", "x"): one})
    three = noisy_gram({name: np.full(5, 0.5) for name in "abc"}, laplace(1.0), 1)
    with pytest.raises(StatisticError, match="one predictor and one outcome only"):
        replace(three, fourth={("a", "a", "a"): one})


@pytest.mark.parametrize("missing", [("x", "y"), ("y", "y")])
def test_a_missing_entry_is_named(missing: tuple[str, str]) -> None:
    problem = simple()
    products = {pair: one for pair, one in problem.products.items() if pair != missing}
    expected = "products 'x' × 'y'" if missing == ("x", "y") else "squares of 'y'"
    with pytest.raises(StatisticError, match=f"the sum of {expected} was not released"):
        draw_grams(replace(problem, products=products), 10, np.random.default_rng(1))


def test_the_number_of_what_is_missing_is_told() -> None:
    problem = replace(simple(), sums={}, products={})
    with pytest.raises(StatisticError, match="so do 4 other sums"):
        gram_target(problem)


def test_products_may_be_named_in_either_order() -> None:
    problem = simple()
    turned = {(b, a): one for (a, b), one in problem.products.items()}
    assert replace(problem, products=turned).products == problem.products


def test_an_indicators_square_is_a_second_release_of_its_sum() -> None:
    law = gaussian(3.0)
    indicator = GramVariable("b", 0.0, 1.0, indicator=True)
    sums = {"b": NoisyStatistic(10.0, law)}
    problem = NoisyGram((indicator,), 50, sums, {("b", "b"): NoisyStatistic(16.0, law)})
    (found,) = [one for one in gram_target(problem).laws if one is not None]
    assert found.centre == pytest.approx(13.0)
    assert found.scale == pytest.approx(3.0 / math.sqrt(2.0))


def test_an_indicator_coded_with_signs_has_a_known_square() -> None:
    law = gaussian(3.0)
    signed = GramVariable("b", -1.0, 1.0, indicator=True)
    sums = {"b": NoisyStatistic(10.0, law)}
    square = {("b", "b"): NoisyStatistic(47.0, law)}
    known = gram_target(NoisyGram((signed,), 50, sums, square))
    assert [one.centre for one in known.laws if one is not None] == [10.0]
    # Of an unknown number of rows it is a release.
    unknown = gram_target(NoisyGram((signed,), NoisyStatistic(53.0, law), sums, square))
    assert [one.centre for one in unknown.laws if one is not None] == [50.0, 10.0]


def test_a_square_that_mixes_sums_is_refused() -> None:
    law = gaussian(3.0)
    odd = GramVariable("b", 1.0, 3.0, indicator=True)
    sums, square = {"b": NoisyStatistic(100.0, law)}, {("b", "b"): NoisyStatistic(200.0, law)}
    with pytest.raises(StatisticError, match="mixes several sums"):
        gram_target(NoisyGram((odd,), NoisyStatistic(50.0, law), sums, square))
    # With a known number of rows x² = 4 x - 3 makes it a release of the sum.
    (found,) = [
        one for one in gram_target(NoisyGram((odd,), 50, {}, square)).laws if one is not None
    ]
    assert found.centre == pytest.approx((200 + 3 * 50) / 4)
    assert found.scale == pytest.approx(0.75)


RELEASES = (
    NoisyStatistic(1.0, laplace(0.7)),
    NoisyStatistic(2.5, laplace(1.5)),
    NoisyStatistic(-0.5, laplace(0.9)),
)
WITH_GAUSSIAN = (*RELEASES, NoisyStatistic(2.0, gaussian(1.2)), NoisyStatistic(0.0, gaussian(2.0)))


def product_density(releases: tuple[NoisyStatistic, ...], x: float) -> float:
    total = 0.0
    for one in releases:
        distance = abs(x - one.value) / one.law.scale
        total -= distance if one.law.family.laplace else distance**2 / 2
    return math.exp(total)


@pytest.mark.parametrize("releases", [RELEASES, WITH_GAUSSIAN, RELEASES[:2], WITH_GAUSSIAN[3:]])
@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (0.5, 2.2), (3.0, 9.0)])
def test_products_of_laws_match_quadrature(
    releases: tuple[NoisyStatistic, ...], low: float, high: float
) -> None:
    law = PooledLikelihood(releases)
    first, last = max(low, -30.0), min(high, 30.0)
    breaks = sorted(one.value for one in releases if first < one.value < last)

    def integral(end: float) -> float:
        points = [one for one in breaks if one < end]
        return quad(lambda x: product_density(releases, x), first, end, points=points or None)[0]

    whole = integral(last)
    draws = law.draw(np.array(low), np.array(high), 1 - np.random.default_rng(1).random(2000))
    assert first <= draws.min() <= draws.max() <= last
    grid = np.linspace(max(first, -8.0), min(last, 10.0), 400)
    table = np.array([integral(float(end)) for end in grid]) / whole
    assert kstest(draws, lambda x: np.interp(x, grid, table, 0.0, 1.0)).pvalue > 1e-3
    masses = law.log_mass(
        np.array([low, low]), np.array([high, min(1.7, high) if low < 1.7 else 4])
    )
    part = integral(min(1.7, last) if low < 1.7 else 4.0)
    assert masses[1] - masses[0] == pytest.approx(math.log(part / whole), abs=1e-6)


def test_products_of_laws_stay_finite_far_out_and_in_narrow_slices() -> None:
    law = ProductLaw(np.array([[0.0], [1.0]]), np.array([1.0, 1.0]), np.array([0.0]), 0.0)
    uniform = np.array([2.0**-53, 0.5, 1.0])
    for low, high in ((1e6, 1e6 + 1), (-1e9, -1e9 + 1e-3), (0.3, 0.3), (-math.inf, -1e8)):
        drawn = law.draw(np.full(3, low), np.full(3, high), uniform)
        assert np.all(np.isfinite(drawn))
        assert np.all((low <= drawn) & (drawn <= high))
    # Between two equal Laplace releases the product is flat.
    flat = law.draw(np.zeros(999), np.ones(999), np.linspace(0.001, 0.999, 999))
    np.testing.assert_allclose(flat, np.linspace(0.001, 0.999, 999), atol=1e-9)


@pytest.mark.parametrize("second", [laplace(4.0), gaussian(4.0)])
def test_two_releases_of_one_sum_multiply(second: NoiseLaw) -> None:
    problem = simple()
    again = NoisyStatistic(40.0, second)
    both = replace(problem, sums={**problem.sums, "x": (problem.sums["x"], again)})  # type: ignore[dict-item]
    found = draw_grams(both, 3000, np.random.default_rng(2), method="rejection").values
    chains = draw_grams(both, 2000, np.random.default_rng(3), method="gibbs").values
    # Importance resampling of the posterior given the first release only.
    plain = draw_grams(problem, 60_000, np.random.default_rng(4)).values
    distance = np.abs(plain[:, 0, 1] - 40.0) / second.scale
    weights = np.exp(-distance if second.family.laplace else -0.5 * distance**2)
    kept = np.random.default_rng(5).random(len(plain)) < weights / weights.max()
    for i, j in ((0, 1), (1, 1), (1, 2)):
        assert ks_2samp(found[:, i, j], plain[kept, i, j]).pvalue > 1e-3
        assert ks_2samp(chains[:, i, j], plain[kept, i, j]).pvalue > 1e-3


def test_a_cut_off_release_counts_as_its_probability() -> None:
    """A square cut off at 0: P(noise <= -T) instead of the density, by weighting."""
    law = gaussian(6.0)
    data = {name: 0.1 * column for name, column in line(60, 3).items()}
    problem = noisy_gram(data, gaussian(6.0), 3)
    cut = NoisyStatistic(0.0, law, clamped=(0.0, None))
    clamped = replace(problem, products={**problem.products, ("x", "x"): cut})
    wide = NoiseLaw(Family.GAUSSIAN, 1e4)
    flat = replace(problem, products={**problem.products, ("x", "x"): NoisyStatistic(0.0, wide)})
    found = draw_grams(clamped, 3000, np.random.default_rng(1), method="rejection").values
    chains = draw_grams(clamped, 2000, np.random.default_rng(2), method="gibbs").values
    plain = draw_grams(flat, 40_000, np.random.default_rng(3), method="rejection").values
    from scipy.special import ndtr

    weights = ndtr(-plain[:, 1, 1] / 6.0)
    kept = np.random.default_rng(4).random(len(plain)) < weights / weights.max()
    for i, j in ((0, 1), (1, 1), (1, 2)):
        assert ks_2samp(found[:, i, j], plain[kept, i, j]).pvalue > 1e-3
        assert ks_2samp(chains[:, i, j], plain[kept, i, j]).pvalue > 1e-3


def test_a_cut_off_release_is_not_pooled() -> None:
    problem = simple()
    cut = NoisyStatistic(0.0, gaussian(2.0), clamped=(0.0, None))
    both = replace(problem, sums={**problem.sums, "x": (problem.sums["x"], cut)})  # type: ignore[dict-item]
    with pytest.raises(StatisticError, match="once cut off at its clamp"):
        gram_target(both)


def test_coarse_discrete_noise_is_told() -> None:
    problem = simple()
    coarse = NoisyStatistic(50.0, NoiseLaw(Family.DISCRETE_GAUSSIAN, 0.5))
    fine = NoisyStatistic(50.0, NoiseLaw(Family.DISCRETE_GAUSSIAN, 0.5, 1 / 1024))
    notes = gram_target(replace(problem, sums={**problem.sums, "x": coarse})).notes
    assert len(notes) == 1
    assert "the sum of 'x'" in notes[0]
    assert not gram_target(replace(problem, sums={**problem.sums, "x": fine})).notes
