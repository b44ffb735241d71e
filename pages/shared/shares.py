"""Shares of a budget that always sum to one: move one, the unlocked others make room."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

#: No share may fall below this: a part without budget would have infinite noise.
LEAST = Fraction(1, 100)


def move(
    shares: Sequence[Fraction], locked: Sequence[bool], index: int, wanted: Fraction
) -> tuple[Fraction, ...]:
    """Set one share as near to ``wanted`` as the locked ones allow; the others keep their ratio.

    >>> third = Fraction(1, 3)
    >>> move([third, third, third], [False, True, False], 0, Fraction(1, 2))
    (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    """
    free = [i for i in range(len(shares)) if i != index and not locked[i]]
    if locked[index] or not free:
        return tuple(shares)
    held = sum((shares[i] for i in range(len(shares)) if i != index and locked[i]), Fraction(0))
    room = 1 - held
    target = min(max(wanted, LEAST), room - LEAST * len(free))
    rest = room - target
    before = sum((shares[i] for i in free), Fraction(0))
    moved = list(shares)
    moved[index] = target
    for i in free:
        moved[i] = rest * shares[i] / before
    return tuple(moved)
