import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from core.errors import BudgetError
from core.private.noise import OpenDPNoise
from core.private.scales import (
    ceil_root,
    gaussian_rho,
    gaussian_sigma,
    nudge,
    selection_rho,
    selection_scale,
)

PROPERTY = settings(deadline=None, derandomize=True)
NOISE = OpenDPNoise()
RHOS = st.floats(-12, 9).map(lambda exponent: Fraction(10**exponent))
SQUARES = st.floats(0, 12).map(lambda exponent: Fraction(10**exponent))
ODD_RHOS = [Fraction(1, 3), Fraction(1, 7 * 10**9), Fraction(10**9), Fraction(1, 10**12)]


def uses_up(cost, rho):
    return rho * Fraction(999, 1000) <= cost <= rho


def zeros(size):
    return np.zeros(size, dtype=np.int64)


# -- scales --------------------------------------------------------------------------------


@PROPERTY
@given(RHOS, SQUARES)
def test_a_sigma_costs_its_budget_and_no_more(rho, square):
    sigma = gaussian_sigma(square, rho)
    assert uses_up(gaussian_rho(square, sigma), rho)
    assert square / (2 * Fraction(sigma) ** 2) <= gaussian_rho(square, sigma)


@PROPERTY
@given(RHOS, st.integers(1, 10**6))
def test_a_selection_scale_costs_its_budget_and_no_more(rho, sensitivity):
    scale = selection_scale(sensitivity, rho)
    cost = selection_rho(sensitivity, scale)
    assert uses_up(cost, rho)
    eps = 2 * sensitivity / scale
    assert float(cost) == pytest.approx(eps**2 / 8, rel=1e-12)


def test_known_scales():
    """d one-ways at rho/3 each: sigma = sqrt(3 d / (2 rho)); eps of an edge = sqrt(8 rho)."""
    for d, rho in ((14, Fraction(15, 1000)), (3, Fraction(1))):
        assert gaussian_sigma(Fraction(d), rho / 3) == pytest.approx(
            math.sqrt(3 * d / (2 * float(rho))), rel=1e-12
        )
        step = rho / 3 / 13
        eps = math.sqrt(8 * float(step))
        assert selection_scale(1, step) == pytest.approx(2 / eps, rel=1e-12)


@PROPERTY
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**12))
def test_the_rounded_root_is_the_smallest_float_above(square):
    root = ceil_root(square)
    assert Fraction(root) ** 2 >= square
    assert Fraction(math.nextafter(root, 0)) ** 2 < square


def test_a_whole_square_has_its_exact_root():
    assert [ceil_root(Fraction(n * n)) for n in (1, 3, 10**6)] == [1.0, 3.0, 1e6]


@pytest.mark.parametrize(
    ("square", "rho", "words"),
    [
        (Fraction(0), Fraction(1), "sensitivity"),
        (Fraction(-1), Fraction(1), "sensitivity"),
        (Fraction(1), Fraction(0), "budget"),
        (Fraction(1), Fraction(-1), "budget"),
        (Fraction(10**12), Fraction(1, 10**30), "exact integers"),
        (Fraction(10**400), Fraction(1), "exact integers"),
    ],
)
def test_impossible_draws_are_refused_before_the_values_are_read(square, rho, words):
    with pytest.raises(BudgetError, match=words):
        gaussian_sigma(square, rho)
    with pytest.raises(BudgetError, match=words):
        NOISE.gaussian(zeros(2), sensitivity_squared=square, rho=rho)


def test_nudging_stops_at_the_first_scale_that_fits():
    tried = []

    def cost(scale):
        tried.append(scale)
        return Fraction(1, 2) if scale >= 1 + 1e-14 else Fraction(1)

    scale, price = nudge(1.0, cost, Fraction(1, 2))
    assert price == Fraction(1, 2)
    assert scale == tried[-1]
    assert 1 + 1e-14 <= scale <= 1 + 1e-13


def test_a_scale_that_wastes_the_budget_is_refused():
    with pytest.raises(BudgetError, match=r"99\.9"):
        nudge(1.0, lambda scale: Fraction(9, 10), Fraction(1))


# -- cost of the draws, by OpenDP's own map ------------------------------------------------


@settings(PROPERTY, max_examples=60)
@given(RHOS, SQUARES)
def test_a_gaussian_draw_is_debited_within_its_budget(rho, square):
    draw = NOISE.gaussian(zeros((2, 3)), sensitivity_squared=square, rho=rho)
    assert draw.values.shape == (2, 3)
    assert draw.values.dtype == np.int64
    assert uses_up(draw.rho, rho)
    exact = square / (2 * Fraction(draw.sigma) ** 2)
    assert exact <= draw.rho <= exact * (1 + Fraction(1, 10**12))


@settings(PROPERTY, max_examples=60)
@given(RHOS, st.integers(1, 10**6))
def test_a_selection_is_debited_within_its_budget(rho, sensitivity):
    draw = NOISE.select(zeros(3), sensitivity=sensitivity, rho=rho)
    assert 0 <= draw.index < 3
    assert uses_up(draw.rho, rho)
    exact = Fraction(sensitivity) ** 2 / (2 * Fraction(draw.scale) ** 2)
    assert exact <= draw.rho <= exact * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("rho", ODD_RHOS)
@pytest.mark.parametrize("square", [Fraction(1), Fraction(2), Fraction(14), Fraction(10**12)])
def test_ends_of_the_range_and_thirds(rho, square):
    draw = NOISE.gaussian(zeros(1), sensitivity_squared=square, rho=rho)
    assert uses_up(draw.rho, rho)
    assert uses_up(NOISE.select(zeros(2), sensitivity=1024, rho=rho).rho, rho)


def test_known_costs_of_opendps_maps():
    """Gaussian: D^2 / (2 sigma^2); noisy max: eps^2 / 8 with eps = 2 sensitivity / scale."""
    draw = NOISE.gaussian(zeros(1), sensitivity_squared=Fraction(1), rho=Fraction(1, 50))
    assert draw.sigma == pytest.approx(5, rel=1e-12)
    choice = NOISE.select(zeros(2), sensitivity=1024, rho=Fraction(1, 32))
    eps = 2 * 1024 / choice.scale
    assert float(choice.rho) == pytest.approx(eps**2 / 8, rel=1e-12)
    assert eps == pytest.approx(0.5, rel=1e-12)


def test_the_price_does_not_depend_on_the_values():
    budget = {"sensitivity_squared": Fraction(2), "rho": Fraction(1, 7)}
    tables = [zeros(4), np.array([10**15, -(10**15), 0, 7], dtype=np.int64), zeros(0)]
    draws = [NOISE.gaussian(table, **budget) for table in tables]
    assert len({(draw.sigma, draw.rho) for draw in draws}) == 1


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2), ()])
def test_empty_and_scalar_arrays(shape):
    draw = NOISE.gaussian(
        np.zeros(shape, dtype=np.int64), sensitivity_squared=Fraction(1), rho=Fraction(1)
    )
    assert draw.values.shape == shape
    assert draw.values.dtype == np.int64


def test_values_that_do_not_lie_in_order_in_memory():
    table = (np.arange(6, dtype=np.int64) * 10**6).reshape(2, 3)
    for view in (table.T, table[:, ::-1]):
        draw = NOISE.gaussian(view, sensitivity_squared=Fraction(1), rho=Fraction(1))
        assert np.abs(draw.values - view).max() < 100


def test_only_exact_integers_are_accepted():
    budget = {"sensitivity_squared": Fraction(1), "rho": Fraction(1)}
    for wrong in (np.zeros(2), np.zeros(2, dtype=np.int32), [0, 1]):
        with pytest.raises(TypeError, match="int64"):
            NOISE.gaussian(wrong, **budget)
        with pytest.raises(TypeError, match="int64"):
            NOISE.select(wrong, sensitivity=1, rho=Fraction(1))
    for wrong in (zeros(0), zeros((2, 2))):
        with pytest.raises(TypeError, match="one score"):
            NOISE.select(wrong, sensitivity=1, rho=Fraction(1))
    for sensitivity, rho in ((0, Fraction(1)), (1, Fraction(0))):
        with pytest.raises(BudgetError):
            NOISE.select(zeros(2), sensitivity=sensitivity, rho=rho)


def test_large_counts_stay_exact():
    """2**53 and its successor are one float; as integers they are told apart."""
    scores = np.array([2**53, 2**53 + 1], dtype=np.int64)
    chosen = {NOISE.select(scores, sensitivity=1, rho=Fraction(10**6)).index for _ in range(20)}
    assert chosen == {1}
    draw = NOISE.gaussian(scores, sensitivity_squared=Fraction(1), rho=Fraction(10**6))
    assert draw.values.tolist() == scores.tolist()


def test_who_makes_the_noise():
    assert NOISE.simulated is False
    assert NOISE.name.startswith("OpenDP 0.")
    assert "discrete Gaussian" in NOISE.name


# -- law of the draws ----------------------------------------------------------------------


def chi_square_p(observed, probabilities):
    """P-value after cells of small expectation are pooled at both ends."""
    total = observed.sum()
    expected = total * probabilities
    keep = expected >= 10
    seen = np.append(observed[keep], total - observed[keep].sum())
    hoped = np.append(expected[keep], total - expected[keep].sum())
    if hoped[-1] < 5:
        seen, hoped = seen[:-1], hoped[:-1]
    return chi2.sf(((seen - hoped) ** 2 / hoped).sum(), len(seen) - 1)


def gaussian_pmf(sigma, reach):
    points = np.arange(-reach, reach + 1)
    weights = np.exp(-(points**2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize("rho", [Fraction(2), Fraction(1, 50)])
def test_gaussian_draws_follow_the_discrete_gaussian(rho):
    draws, reach, centre = 20_000, 60, 1234
    table = np.full(draws, centre, dtype=np.int64)
    draw = NOISE.gaussian(table, sensitivity_squared=Fraction(1), rho=rho)
    offsets = draw.values - centre
    assert np.abs(offsets).max() <= reach
    observed = np.bincount(offsets + reach, minlength=2 * reach + 1)
    assert chi_square_p(observed, gaussian_pmf(draw.sigma, reach)) > 1e-6
    # The same test sees a sigma that is 8 % off, so that it can fail.
    assert chi_square_p(observed, gaussian_pmf(draw.sigma * 1.08, reach)) < 1e-6
    neighbours = np.corrcoef(offsets[:-1], offsets[1:])[0, 1]
    assert abs(neighbours) < 6 / math.sqrt(draws)


def test_selections_follow_the_exponential_mechanism():
    draws, sensitivity, rho = 8_000, 1024, Fraction(1, 8)
    scores = np.array([0, 1024, 2048, -512, 1024, 3000], dtype=np.int64)
    counts = np.zeros(len(scores), dtype=np.int64)
    for _ in range(draws):
        counts[NOISE.select(scores, sensitivity=sensitivity, rho=rho).index] += 1

    def softmax(eps):
        weights = np.exp(eps * scores / (2 * sensitivity))
        return weights / weights.sum()

    eps = math.sqrt(8 * float(rho))
    assert chi_square_p(counts, softmax(eps)) > 1e-6
    assert chi_square_p(counts, softmax(1.2 * eps)) < 1e-6
    assert chi_square_p(counts, softmax(eps / 2)) < 1e-6
