"""Arithmetic of zero-concentrated differential privacy: rho in, plain words out.

A release is rho-zCDP when the Renyi divergence of order alpha between its outputs on any two
neighbouring tables is at most ``alpha * rho``, for every alpha > 1 (Bun and Steinke 2016,
Definition 1.1).  rho adds up over releases; it is kept as an exact ``Fraction``, so that three
tenths are three tenths in every order.  Nothing here reads data or draws noise.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from core.errors import BudgetError

FloatArray = NDArray[np.float64]

#: Budgets outside this range are typing errors: the noise would be absurd or absent.
SMALLEST_RHO = Fraction(1, 10**12)
LARGEST_RHO = Fraction(10**9)

_WAY_OUT = "write a positive number such as 0.1"


# -- exact budgets -------------------------------------------------------------------------


def as_rho(value: str | int | float | Decimal | Fraction, name: str = "rho") -> Fraction:
    """A budget as an exact fraction; floats mean the decimal that they print as.

    ``name`` is what messages call it: ``rho``, ``cap``, ``a share``.

    Raises
    ------
    BudgetError
        For zero, negative, NaN, infinite, empty and non-numeric values, truth values, texts with
        anything but plain ASCII digits, and numbers outside ``SMALLEST_RHO`` to ``LARGEST_RHO``.

    Examples
    --------
    >>> as_rho(0.1) + as_rho("0.2") == as_rho("3/10")
    True
    """
    try:
        exact = _parse(value)
        if exact <= 0:
            sign = "zero" if exact == 0 else "negative"
            raise BudgetError(f"is {sign}: it must be above 0; {_WAY_OUT}")
        if not SMALLEST_RHO <= exact <= LARGEST_RHO:
            raise _out_of_range(small=exact < SMALLEST_RHO)
    except BudgetError as error:
        raise BudgetError(f"{name} {error}") from error.__cause__
    return exact


def _out_of_range(*, small: bool) -> BudgetError:
    return BudgetError(
        f"is too {'small' if small else 'large'}: it must be at least 1e-12 and at most 1e9; "
        f"{_WAY_OUT}"
    )


def _parse(value: object) -> Fraction:
    if isinstance(value, bool | np.bool_):
        raise BudgetError(f"is a truth value, not a number; {_WAY_OUT}")
    if isinstance(value, Fraction):
        return value
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, float):
        return _from_decimal(Decimal(float.__repr__(value)))
    if isinstance(value, Decimal):
        return _from_decimal(value)
    raise BudgetError(f"is a {type(value).__name__}, not a number; {_WAY_OUT}")


def _parse_text(text: str) -> Fraction:
    text = text.strip()
    if not text:
        raise BudgetError(f"is empty; {_WAY_OUT}")
    if len(text) > 100:
        raise BudgetError(f"is a text of {len(text)} characters; {_WAY_OUT}")
    if "_" in text or not text.isascii():
        # Python reads them; a person who checks the plan may read another number.
        raise BudgetError(f"is not a number in plain digits: {text!r}; {_WAY_OUT}")
    numerator, slash, denominator = text.partition("/")
    try:
        if not slash:
            return _from_decimal(Decimal(text))
        return Fraction(int(numerator), int(denominator))
    except (InvalidOperation, ValueError) as error:
        hint = "use a decimal point" if "," in text else _WAY_OUT
        raise BudgetError(f"is not a number: {text!r}; {hint}") from error
    except ZeroDivisionError as error:
        raise BudgetError(f"divides by zero: {text!r}; {_WAY_OUT}") from error


def _from_decimal(value: Decimal) -> Fraction:
    if value.is_nan():
        raise BudgetError(f"is not a number (NaN); {_WAY_OUT}")
    if value.is_infinite():
        raise BudgetError(f"is infinite: no protection would be left; {_WAY_OUT}")
    if value and abs(value.adjusted()) > 30:  # before 10**exponent is ever computed
        raise _out_of_range(small=value.adjusted() < 0)
    return Fraction(value)


def format_rho(rho: Fraction) -> str:
    """An amount of rho for people: the exact decimal where it is short, else six digits.

    >>> format_rho(Fraction(3, 10)), format_rho(Fraction(0)), format_rho(Fraction(1, 3))
    ('0.3', '0', 'about 0.333333')
    """
    short = Decimal(rho.numerator) / Decimal(rho.denominator)
    text = f"{short.normalize():g}" if abs(short.adjusted()) > 12 else f"{short.normalize():f}"
    if Fraction(short) == rho and len(text) <= 14:
        return text
    return f"about {float(rho):.6g}"


def split(rho: Fraction, weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Parts of ``rho`` in proportion to positive weights; they sum to ``rho`` exactly.

    Raises
    ------
    BudgetError
        Without weights, or when one of them is not positive: a part with no budget would have
        infinite noise.

    Examples
    --------
    >>> sum(split(Fraction(1), [Fraction(1)] * 11))
    Fraction(1, 1)
    """
    exact = tuple(Fraction(weight) for weight in weights)
    if not exact or any(weight <= 0 for weight in exact):
        raise BudgetError("a budget can only be split into parts that are all above 0")
    total = sum(exact)
    return tuple(rho * weight / total for weight in exact)


# -- the one converter ---------------------------------------------------------------------


def epsilon(rho: Fraction | float, delta: float) -> float:
    """Smallest epsilon for which rho-zCDP is known to imply (epsilon, delta)-DP.

    ``min over alpha > 1 of alpha*rho + log(1 - 1/alpha) - log(alpha * delta)/(alpha - 1)``
    (Canonne, Kamath and Steinke 2020, Proposition 12 and Corollary 13).  Its derivative in
    ``t = alpha - 1`` vanishes where ``rho*t**2 + log(1 + t) = log(1/delta)``; the left side grows
    with t, so the minimum is the one root.  ``rho = 0`` gives 0.

    Raises
    ------
    BudgetError
        When ``rho`` is negative or not finite, or ``delta`` does not lie between 0 and 1.

    Examples
    --------
    >>> round(epsilon(0.02, 1e-9), 7)
    1.1632873
    """
    return _implied_epsilon(_finite_rho(rho), -math.log(_checked_delta(delta)))


def _implied_epsilon(rho: float, budget: float) -> float:
    """:func:`epsilon` with ``budget = log(1/delta)``."""
    if rho == 0:
        return 0.0
    t = _stationary_order(rho, budget)
    return max(rho * (1 + t) - math.log1p(1 / t) + (budget - math.log1p(t)) / t, 0.0)


def _stationary_order(rho: float, budget: float) -> float:
    """Root t of ``rho*t**2 + log(1 + t) = budget``, by Newton steps kept inside a bracket."""
    low, high = 0.0, min(math.sqrt(budget / rho), math.expm1(min(budget, 709.0)))
    t = high
    for _ in range(200):
        excess = rho * t * t + math.log1p(t) - budget
        low, high = (low, t) if excess > 0 else (t, high)
        following = t - excess / (2 * rho * t + 1 / (1 + t))
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) <= 1e-15 * t:
            break
        t = following
    return t


def rho_for_epsilon(epsilon: float, delta: float) -> Fraction:
    """Largest rho whose :func:`epsilon` does not pass ``epsilon``, rounded down to 12 digits.

    Raises
    ------
    BudgetError
        When ``epsilon`` is not a positive finite number, ``delta`` does not lie between 0 and 1,
        or the answer lies outside ``SMALLEST_RHO`` to ``LARGEST_RHO``.

    Examples
    --------
    >>> float(rho_for_epsilon(1.0, 1e-9))
    0.0149730576735
    """
    if isinstance(epsilon, bool) or not math.isfinite(epsilon) or epsilon <= 0:
        raise BudgetError("epsilon must be a positive finite number, such as 1")
    budget = -math.log(_checked_delta(delta))
    low, high = float(SMALLEST_RHO), float(LARGEST_RHO)
    if not _implied_epsilon(low, budget) <= epsilon <= _implied_epsilon(high, budget):
        raise BudgetError("this epsilon needs a rho outside 1e-12 to 1e9; choose another one")
    for _ in range(80):
        middle = math.sqrt(low * high)
        fits = _implied_epsilon(middle, budget) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return Fraction(Context(prec=12, rounding=ROUND_FLOOR).create_decimal(low))


def _finite_rho(rho: Fraction | float) -> float:
    try:
        value = float(rho)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value >= 0):
        raise BudgetError("rho must be a finite number that is not negative")
    return value


def _checked_delta(delta: float) -> float:
    if isinstance(delta, bool) or not 0 < delta < 1:
        raise BudgetError("delta must lie between 0 and 1, such as 1e-9")
    return float(delta)


# -- what rho means ------------------------------------------------------------------------


def guessing_bound(rho: Fraction | float, baseline: float) -> float:
    """Largest true-positive rate of any test whose false-positive rate is ``baseline``.

    Equally the largest success of a guess about a protected unit that succeeds with probability
    ``baseline`` on a release made without it.  A pair (q, p) of rates is possible under rho-zCDP
    only if two coins with these biases are within ``alpha * rho`` of each other in the Renyi
    divergence of every order alpha >= 1, in both directions (data processing).  Each order bounds
    p, so that a finite grid of orders can only make the answer larger, never unsound.

    Parameters
    ----------
    rho
        Budget, 0 or more.
    baseline
        False-positive rate or prior guessing probability, from 0 to 1.

    Raises
    ------
    BudgetError
        When ``rho`` is negative or not finite, or ``baseline`` is not a probability.

    Examples
    --------
    >>> round(100 * guessing_bound(0.1, 0.01), 1)
    3.5
    """
    spent = _finite_rho(rho)
    if isinstance(baseline, bool) or not 0 <= baseline <= 1:
        raise BudgetError("a baseline is a probability between 0 and 1, such as 0.01")
    low = float(baseline)
    if spent == 0 or low in (0.0, 1.0):
        return low
    gap = _largest_gap(spent, 1 - low, lambda d: (np.full_like(d, low), low + d, 1 - low - d))
    return min(1.0, low + gap)


def advantage(rho: Fraction | float) -> float:
    """Largest difference of true- and false-positive rate of any test under rho-zCDP.

    The possible pairs of rates form a convex set that is symmetric about p = 1 - q, so the
    largest difference lies on that line.

    Raises
    ------
    BudgetError
        When ``rho`` is negative or not finite.

    Examples
    --------
    >>> round(advantage(0.1), 2)
    0.22
    """
    spent = _finite_rho(rho)
    if spent == 0:
        return 0.0
    return _largest_gap(spent, 1.0, lambda d: ((1 - d) / 2, (1 + d) / 2, (1 - d) / 2))


_Rates = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


def _largest_gap(rho: float, widest: float, rates: _Rates) -> float:
    """Smallest of all orders' bounds on d = p - q; ``rates(d)`` gives q, p and 1 - p."""
    smallest = math.inf
    steps = np.geomspace(1e-6, 1e9, 300)
    for _ in range(3):  # the grid of orders, then twice a finer one around its best point
        bounds = _gaps(rho, widest, rates, np.concatenate(([1.0], 1 + steps)))
        smallest = min(smallest, float(bounds.min()))
        best = max(int(bounds.argmin()) - 1, 0)
        steps = np.geomspace(steps[max(best - 1, 0)], steps[min(best + 1, steps.size - 1)], 50)
    return smallest


def _gaps(rho: float, widest: float, rates: _Rates, orders: FloatArray) -> FloatArray:
    """Per order, the d at which the tighter direction reaches ``order * rho``, from above."""
    low = np.full_like(orders, math.log(1e-300))
    high = np.full_like(orders, math.log(widest))
    for _ in range(64):
        middle = 0.5 * (low + high)
        q, p, miss = rates(np.exp(middle))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            beyond = ~(_divergence(q, p, miss, orders) <= orders * rho)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return np.asarray(np.exp(high), dtype=np.float64)


def _divergence(q: FloatArray, p: FloatArray, miss: FloatArray, orders: FloatArray) -> FloatArray:
    """Renyi divergence of coins p and q, the larger of both directions (``miss`` is 1 - p).

    Written with the logarithm of the likelihood ratio and expm1, so that nothing cancels when p
    is close to q; far from it the sum is taken in logarithms.
    """
    up = np.log1p((p - q) / q)
    down = np.where(miss > 0, np.log1p(-(p - q) / (1 - q)), -np.inf)
    forward = _moment(q, up, down, orders) / (orders - 1)
    backward = _moment(p, -up, -down, orders, rest=miss) / (orders - 1)
    first = orders == 1
    forward = np.where(first, p * up + np.where(miss > 0, miss * down, 0.0), forward)
    backward = np.where(first, -(q * up + (1 - q) * down), backward)
    return np.maximum(forward, backward)


def _moment(
    weight: FloatArray,
    up: FloatArray,
    down: FloatArray,
    orders: FloatArray,
    rest: FloatArray | None = None,
) -> FloatArray:
    """Logarithm of ``weight * exp(order*up) + rest * exp(order*down)``; weight + rest = 1."""
    other = 1 - weight if rest is None else rest
    near = np.log1p(weight * np.expm1(orders * up) + other * np.expm1(orders * down))
    far = np.logaddexp(np.log(weight) + orders * up, np.log(other) + orders * down)
    return np.where(np.maximum(orders * np.abs(up), orders * np.abs(down)) < 1, near, far)
