import itertools
import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from core.errors import BudgetError
from core.private.zcdp import (
    advantage,
    as_rho,
    epsilon,
    format_rho,
    guessing_bound,
    rho_for_epsilon,
    split,
)

PROPERTY = settings(deadline=None, derandomize=True)
DELTAS = (1e-3, 1e-6, 1e-9, 1e-12)


# -- exact budgets -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e-12", Fraction(1, 10**12)),
        (1e-12, Fraction(1, 10**12)),
        (1, Fraction(1)),
        (np.int64(2), Fraction(2)),
        ("1000000", Fraction(10**6)),
        (1e9, Fraction(10**9)),
    ],
)
def test_a_budget_is_the_decimal_that_was_written(value, expected):
    exact = as_rho(value)
    assert exact == expected
    assert type(exact) is Fraction


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "zero"),
        ("0", "zero"),
        ("-0.0", "zero"),
        ("0e99", "zero"),
        (-1, "negative"),
        ("-1", "negative"),
        (Fraction(-1, 3), "negative"),
        ("NaN", "NaN"),
        (float("nan"), "NaN"),
        (Decimal("sNaN"), "NaN"),
        ("inf", "infinite"),
        (float("-inf"), "infinite"),
        (Decimal("Infinity"), "infinite"),
        ("", "empty"),
        ("  ", "empty"),
        (True, "truth value"),
        (np.True_, "truth value"),
        (None, "NoneType"),
        ([1], "list"),
        (1j, "complex"),
        ("12o", "not a number"),
        ("0,1", "decimal point"),
        ("1/0", "zero"),
        ("1/2/3", "not a number"),
        ("0.1/2", "not a number"),
        ("1e-13", "too small"),
        ("1e10", "too large"),
        ("1e999999999", "too large"),
        ("1e-999999999", "too small"),
        ("9" * 101, "characters"),
        ("1_000", "plain digits"),
        ("1_0/3", "plain digits"),
        ("\u0661", "plain digits"),
        ("\uff11", "plain digits"),
        ("1/\u0663", "plain digits"),
    ],
)
def test_what_is_not_a_budget_is_refused_in_words(value, words):
    with pytest.raises(BudgetError, match=words):
        as_rho(value)


@pytest.mark.parametrize("value", [0, "-1", "x", "nan", "1e10", True, None, "1_0", "1/0"])
def test_what_is_refused_is_called_by_its_name(value):
    with pytest.raises(BudgetError, match=r"^cap (is|divides)") as caught:
        as_rho(value, "cap")
    assert "rho" not in str(caught.value)


def test_parts_that_floats_get_wrong_sum_exactly():
    assert sum([as_rho(0.1)] * 3) == as_rho(0.3)
    assert sum(split(Fraction(1), [Fraction(1)] * 11)) == 1
    for order in itertools.permutations(("0.7", "0.2", "0.1")):
        assert sum(map(as_rho, order)) == 1


@PROPERTY
@given(
    st.fractions(min_value=Fraction(1, 10**12), max_value=10**9),
    st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1000), min_size=1, max_size=20),
)
def test_a_split_is_exact_positive_and_in_proportion(rho, weights):
    parts = split(rho, weights)
    assert sum(parts) == rho
    assert all(part > 0 for part in parts)
    assert all(
        part * weights[0] == parts[0] * weight for part, weight in zip(parts, weights, strict=True)
    )


@pytest.mark.parametrize("weights", [[], [Fraction(0)], [Fraction(1), Fraction(-1)], [1, 0]])
def test_a_split_needs_positive_weights(weights):
    with pytest.raises(BudgetError, match="above 0"):
        split(Fraction(1), weights)


@PROPERTY
@given(st.fractions(min_value=0, max_value=10**9, max_denominator=10**12))
def test_a_shown_amount_is_exact_or_says_that_it_is_not(rho):
    text = format_rho(rho)
    shown = Fraction(Decimal(text.removeprefix("about ")))
    if text.startswith("about "):
        assert shown == pytest.approx(float(rho), rel=1e-5)
    else:
        assert shown == rho
    assert "E" not in text


# -- the converter -------------------------------------------------------------------------


def test_known_answers_of_the_conversion():
    assert epsilon(Fraction(1, 50), 1e-9) == pytest.approx(1.1632873, abs=5e-8)
    assert float(rho_for_epsilon(1.0, 1e-9)) == pytest.approx(0.0149730577, abs=5e-11)
    published = {0.1: 0.000177, 0.5: 0.003953, 1: 0.014973, 5: 0.311693, 10: 1.090786}
    for wanted, rho in published.items():
        assert float(rho_for_epsilon(wanted, 1e-9)) == pytest.approx(rho, abs=6e-7)


def test_the_conversion_agrees_with_the_formula_on_a_grid_of_orders():
    orders = 1 + np.geomspace(1e-5, 1e8, 400_000)
    for rho in (1e-8, 1e-4, 0.02, 0.5, 30.0, 1e4):
        for delta in DELTAS:
            values = rho * orders + np.log1p(-1 / orders) - np.log(orders * delta) / (orders - 1)
            assert epsilon(rho, delta) == pytest.approx(max(values.min(), 0), rel=1e-7, abs=1e-12)
            assert epsilon(rho, delta) <= max(values.min(), 0) * (1 + 1e-12) + 1e-15


def test_the_conversion_equals_opendps_profile():
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="f64")
    for sigma in (0.5, 1.0, 5.0, 40.0, 700.0):
        measurement = opendp.m.make_gaussian(*space, scale=sigma)
        profile = opendp.c.make_zCDP_to_approxDP(measurement).map(1.0)
        for delta in (1e-6, 1e-9):
            ours = epsilon(Fraction(measurement.map(1.0)), delta)
            assert ours == pytest.approx(profile.epsilon(delta), rel=1e-9)


def test_the_conversion_covers_a_single_gaussian_without_waste():
    """The exact curve of one Gaussian lies below, and the zCDP conversion is within 10 %."""
    for sigma in (1.0, 5.0, 20.0):
        rho = 1 / (2 * sigma**2)
        converted = epsilon(rho, 1e-9)
        assert _gaussian_delta(converted, sigma) <= 1e-9
        assert _gaussian_delta(converted * 0.9, sigma) > 1e-9
    assert _gaussian_delta(1.1040403, 5.0) == pytest.approx(1e-9, rel=1e-5)


def _gaussian_delta(eps, sigma):
    """Balle and Wang 2018, Theorem 8."""
    shift = 1 / (2 * sigma)
    return ndtr(shift - eps * sigma) - math.exp(eps) * ndtr(-shift - eps * sigma)


@PROPERTY
@given(st.floats(-12, 9), st.floats(1e-4, 1), st.sampled_from([1e-300, 1e-12, 1e-9, 1e-3, 0.5]))
def test_epsilon_is_finite_and_grows_with_rho(exponent, step, delta):
    low, high = 10**exponent, 10 ** min(exponent + step, 9.0)
    assert 0 <= epsilon(low, delta) <= epsilon(high, delta) < math.inf
    assert epsilon(low, delta) >= epsilon(low, min(delta * 2, 0.99))


def test_epsilon_of_nothing_is_nothing():
    assert epsilon(Fraction(0), 1e-9) == 0


@PROPERTY
@given(st.floats(-3, 3), st.sampled_from(DELTAS))
def test_the_inverse_never_promises_too_much_and_wastes_nothing(exponent, delta):
    wanted = 10**exponent
    rho = rho_for_epsilon(wanted, delta)
    assert epsilon(rho, delta) <= wanted
    assert epsilon(rho * Fraction(1000000001, 1000000000), delta) > wanted


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 2, float("nan"), float("inf"), True])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(BudgetError, match="delta"):
        epsilon(Fraction(1), delta)
    with pytest.raises(BudgetError, match="delta"):
        rho_for_epsilon(1.0, delta)


@pytest.mark.parametrize("wanted", [0, -1.0, float("nan"), float("inf"), True, 1e-12, 1e30])
def test_an_unreachable_epsilon_is_refused(wanted):
    with pytest.raises(BudgetError, match="epsilon"):
        rho_for_epsilon(wanted, 1e-9)


@pytest.mark.parametrize("rho", [-0.1, float("nan"), float("inf"), Fraction(10) ** 400])
def test_a_spent_amount_must_be_finite(rho):
    for function in (lambda: epsilon(rho, 1e-9), lambda: advantage(rho)):
        with pytest.raises(BudgetError, match="finite"):
            function()
    with pytest.raises(BudgetError, match="finite"):
        guessing_bound(rho, 0.01)


# -- what rho means ------------------------------------------------------------------------

#: rho, then per cent at baseline 0.1 %, 1 %, 10 %, and the advantage.
STEWARDS_TABLE = [
    (0.005, 0.14, 1.35, 12.3, 5.0),
    (0.015, 0.19, 1.67, 14.2, 8.7),
    (0.05, 0.31, 2.5, 18.5, 15.8),
    (0.1, 0.48, 3.5, 23, 22),
    (0.5, 2.5, 12.5, 48, 48),
    (1, 7.0, 26, 69, 65),
    (2, 22.5, 55, 92, 83),
]


@pytest.mark.parametrize("row", STEWARDS_TABLE, ids=lambda row: f"rho {row[0]}")
def test_the_table_that_a_steward_sees(row):
    rho, *shown = row
    exact = [100 * guessing_bound(rho, base) for base in (0.001, 0.01, 0.1)]
    exact.append(100 * advantage(rho))
    for value, printed in zip(exact, shown, strict=True):
        digits = len(str(printed).partition(".")[2])
        # The table came from a coarser grid of orders, which can only lie a little above.
        assert -0.6 * 10**-digits <= value - printed <= 0.5 * 10**-digits


def test_precision_when_an_attacker_answers_rarely():
    for rate, shown in ((1e-3, 0.046), (1e-6, 0.088)):
        hits = guessing_bound(0.1, rate)
        assert 0.01 * hits / (0.01 * hits + 0.99 * rate) == pytest.approx(shown, abs=5e-4)


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.005, 0.015, 0.1, 0.5, 2.0, 20.0])
def test_the_bound_is_never_below_what_a_gaussian_already_does(rho):
    rates = np.concatenate([np.geomspace(1e-9, 0.5, 12), 1 - np.geomspace(1e-6, 0.4, 6)])
    for rate in rates:
        reached = ndtr(ndtri(rate) + math.sqrt(2 * rho))
        assert guessing_bound(rho, float(rate)) >= reached * (1 - 1e-12)
    assert advantage(rho) >= 2 * ndtr(math.sqrt(2 * rho) / 2) - 1 - 1e-15


@pytest.mark.parametrize("rho", [0.005, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("rate", [1e-6, 0.001, 0.01, 0.3, 0.9])
def test_the_bound_equals_a_dense_search_over_orders(rho, rate):
    """Oracle: the largest p that passes every order of a fine grid, by plain bisection."""
    orders = 1 + np.geomspace(1e-7, 1e6, 20_000)

    def possible(hit):
        for q, p in ((rate, hit), (hit, rate)):
            with np.errstate(all="ignore"):
                moment = np.logaddexp(
                    orders * np.log(p) + (1 - orders) * np.log(q),
                    orders * np.log1p(-p) + (1 - orders) * np.log1p(-q),
                )
            if np.any(moment > orders * (orders - 1) * rho * (1 + 1e-9)):
                return False
        return True

    low, high = rate, 1 - 1e-13
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if possible(middle) else (low, middle)
    assert guessing_bound(rho, rate) == pytest.approx(low, rel=1e-5)


def test_the_advantage_is_the_largest_gap_over_all_baselines():
    for rho in (0.01, 0.1, 1.0):
        gaps = [guessing_bound(rho, rate) - rate for rate in np.linspace(0.05, 0.6, 25)]
        assert advantage(rho) >= max(gaps) - 1e-9
        symmetric = (1 - advantage(rho)) / 2
        assert guessing_bound(rho, symmetric) - symmetric == pytest.approx(advantage(rho), rel=1e-6)


@settings(PROPERTY, max_examples=40)
@given(st.floats(-12, 8.9), st.floats(1e-9, 1 - 1e-9))
def test_the_bound_is_a_probability_that_grows(exponent, rate):
    rho = 10**exponent
    bound = guessing_bound(rho, rate)
    assert rate <= bound <= 1
    assert bound <= guessing_bound(rho * 1.01, rate)
    assert bound <= guessing_bound(rho, rate + (1 - rate) * 0.01) * (1 + 1e-12)


def test_edges_of_the_bound():
    assert guessing_bound(Fraction(0), 0.3) == 0.3
    assert guessing_bound(0.1, 0) == 0
    assert guessing_bound(0.1, 1) == 1
    assert advantage(0) == 0
    for wrong in (-0.1, 1.1, float("nan"), True):
        with pytest.raises(BudgetError, match="probability"):
            guessing_bound(0.1, wrong)


def test_nothing_heavy_is_imported():
    script = (
        "import sys, core.private.zcdp, core.private.noise, core.private.ledger, core.store\n"
        "heavy = {'opendp', 'scipy.stats', 'jax', 'mbi', 'sklearn'} & set(sys.modules)\n"
        "sys.exit(f'{heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
