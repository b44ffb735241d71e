"""Scales of the noise for a budget, and the cost of a scale: public numbers only.

Shared by the real noise and the seeded one of simulations, so that both draw at the same scale.
Costs are what OpenDP's maps say, up to the rounding of their last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from core.errors import BudgetError

#: A scale beyond this leaves the integers that a float holds exactly.
LARGEST_SCALE = 2.0**53


def gaussian_rho(sensitivity_squared: Fraction, sigma: float) -> Fraction:
    """Cost ``D2**2 / (2 sigma**2)`` of a Gaussian draw, rounded up to a float (exactly kept).

    Bun and Steinke 2016, Proposition 1.6; Canonne, Kamath and Steinke 2020, Theorem 4 for the
    discrete Gaussian.
    """
    return _round_up(sensitivity_squared / (2 * Fraction(sigma) ** 2))


def selection_rho(sensitivity: int, scale: float) -> Fraction:
    """Cost ``eps**2 / 8`` of a noisy maximum with ``eps = 2 * sensitivity / scale``, rounded up.

    The exponential mechanism's bounded range, Cesar and Rogers 2021.
    """
    return _round_up(Fraction(sensitivity) ** 2 / (2 * Fraction(scale) ** 2))


@lru_cache(maxsize=256)
def gaussian_sigma(sensitivity_squared: Fraction, rho: Fraction) -> float:
    """Sigma of a (discrete) Gaussian that costs at most ``rho``, and at least 99.9 % of it.

    Parameters
    ----------
    sensitivity_squared
        Squared L2 sensitivity, in the squared unit of the values.
    rho
        Budget of the whole vector.

    Raises
    ------
    BudgetError
        When either is not positive, or the noise would leave the exact integers.

    Examples
    --------
    >>> gaussian_sigma(Fraction(1), Fraction(1, 32))
    4.0
    """
    check_draw(sensitivity_squared, rho)
    start = _root(sensitivity_squared / (2 * rho))
    return nudge(start, lambda sigma: gaussian_rho(sensitivity_squared, sigma), rho)[0]


@lru_cache(maxsize=256)
def selection_scale(sensitivity: int, rho: Fraction) -> float:
    """Scale ``2 * sensitivity / eps`` of a noisy maximum that costs at most ``rho = eps**2 / 8``.

    Parameters
    ----------
    sensitivity
        Largest change of one score, in grid units.
    rho
        Budget of the selection.

    Raises
    ------
    BudgetError
        When either is not positive, or the noise would leave the exact integers.

    Examples
    --------
    >>> selection_scale(1, Fraction(1, 32))
    4.0
    """
    check_draw(Fraction(sensitivity), rho)
    start = _root(Fraction(sensitivity) ** 2 / (2 * rho))
    return nudge(start, lambda scale: selection_rho(sensitivity, scale), rho)[0]


def check_draw(sensitivity: Fraction, rho: Fraction) -> None:
    """Refuse a draw whose sensitivity or budget is not positive."""
    if sensitivity <= 0:
        raise BudgetError("the sensitivity of a noisy answer must be above 0")
    if rho <= 0:
        raise BudgetError("the budget of a noisy answer must be above 0")


def nudge(start: float, cost: Callable[[float], Fraction], rho: Fraction) -> tuple[float, Fraction]:
    """First tried scale at or above ``start`` that costs at most ``rho``, and its cost.

    Steps grow from one unit in the last place, so that rounding alone is corrected.

    Raises
    ------
    BudgetError
        The scale leaves the exact integers, or no scale uses 99.9 % of the budget.
    """
    if not 0 < start <= LARGEST_SCALE:
        raise BudgetError(
            "this budget asks for noise beyond the exact integers; give the step more budget, "
            "or lower its sensitivity"
        )
    scale, step = start, 2.0**-52
    while (price := cost(scale)) > rho:
        scale, step = start * (1 + step), 2 * step
    if price < rho * Fraction(999, 1000):
        raise BudgetError("no noise scale uses this budget to 99.9 %; give the step more budget")
    return scale, price


def ceil_root(square: Fraction) -> float:
    """Smallest float whose exact square is at least ``square``."""
    root = math.nextafter(_root(square), 0.0)
    while math.isfinite(root) and Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def _root(square: Fraction) -> float:
    try:
        return math.sqrt(square)
    except OverflowError:
        return math.inf


def _round_up(exact: Fraction) -> Fraction:
    nearest = float(exact)
    return Fraction(nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf))
