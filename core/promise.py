"""What a price promises, in numbers and sentences: public arithmetic about rho alone."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from core.private.zcdp import epsilon, guessing_bound
from core.releases import Relation

#: The guess that documents explain: right once in a hundred without the person's row.
BASELINE = 0.01
#: Where that guess may be right more often than wrong, nothing worth the name is promised: an
#: attacker who knew next to nothing may then hold the claim "more likely than not", by which
#: courts decide civil cases.  Reached near rho = 1.8; the bound is the best that any attack can do.
MOST_GUESSES = 0.5
NO_PROTECTION = "no meaningful protection"


def exact(rho: Fraction) -> str:
    """A fraction as people read it: the decimal if it is short and exact, else both forms.

    >>> exact(Fraction(1, 2)), exact(Fraction(1, 3))
    ('0.5', '1/3 (about 0.333333)')
    """
    if 0 < rho < Fraction(1, 10**12):
        return "less than 1e-12"
    decimal = f"{float(rho):.6g}"
    if Fraction(decimal) == rho:
        return decimal
    if rho.denominator > 10**6:
        return f"about {decimal}"
    return f"{rho} (about {decimal})"


def short(rho: Fraction) -> str:
    """A fraction to three digits, for shares and debits; never for the promise itself.

    >>> short(Fraction(1, 30)), short(Fraction(0)), short(Fraction(1, 10**15))
    ('0.0333', '0', 'less than 1e-12')
    """
    if 0 < rho < Fraction(1, 10**12):
        return "less than 1e-12"
    return f"{float(rho):.3g}"


def guessing_sentence(
    rho: Fraction, baseline: float = BASELINE, relation: Relation = Relation.ADD_REMOVE
) -> str:
    """What rho means for somebody who guesses about one protected unit, in one sentence."""
    bound = guessing_bound(rho, baseline)
    made = (
        "made without that person's row"
        if relation is Relation.ADD_REMOVE
        else "made with another row in place of that person's"
    )
    return (
        f"Someone who would guess right about a person {_times(baseline)} in 100 from a release "
        f"{made} guesses right at most {_times(bound)} in 100, on average, with it."
    )


def _times(probability: float) -> str:
    """Times in a hundred, rounded up to a hundredth: the sentence says 'at most'."""
    times = math.ceil(probability * 10_000 - 1e-9) / 100
    return "1 time" if times == 1 else f"{times:g} times"


@lru_cache(maxsize=256)
def protects(rho: Fraction) -> bool:
    """Whether a guess that is right once in a hundred stays more often wrong than right.

    >>> protects(Fraction(1, 2)), protects(Fraction(500))
    (True, False)
    """
    return guessing_bound(rho, BASELINE) <= MOST_GUESSES


def price_sentences(
    rho: Fraction, delta: float, relation: Relation = Relation.ADD_REMOVE
) -> tuple[str, ...]:
    """A price as rho, as epsilon at delta, and as what it means for a guess."""
    return (
        f"The price is rho = {exact(rho)}: epsilon = {epsilon(rho, delta):.4g} at "
        f"delta = {delta:g}.",
        guessing_sentence(rho, relation=relation),
    )
