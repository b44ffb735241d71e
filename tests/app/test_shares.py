"""Shares always sum to one, locked ones never move, and every part keeps some budget."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pages.shared.shares import LEAST, move

PARTS = st.lists(st.integers(5, 60), min_size=3, max_size=3).map(
    lambda parts: tuple(Fraction(part, sum(parts)) for part in parts)
)


@given(
    PARTS,
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.integers(0, 2),
    st.integers(-20, 140),
)
def test_move_keeps_the_sum_and_the_locked_shares(shares, locked, index, percent) -> None:
    wanted = Fraction(percent, 100)
    moved = move(shares, locked, index, wanted)
    assert sum(moved) == 1
    assert all(share > 0 for share in moved)
    for i in range(3):
        if locked[i]:
            assert moved[i] == shares[i]
    free = [i for i in range(3) if i != index and not locked[i]]
    if not locked[index] and free:
        room = 1 - sum(shares[i] for i in range(3) if i != index and locked[i])
        assert moved[index] == min(max(wanted, LEAST), room - LEAST * len(free))


def test_the_unlocked_keep_their_ratio() -> None:
    moved = move((Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)), [False] * 3, 0, Fraction(1, 4))
    assert moved[1] / moved[2] == 2


def test_nothing_moves_when_all_others_are_locked() -> None:
    shares = (Fraction(1, 3),) * 3
    assert move(shares, [False, True, True], 0, Fraction(1, 2)) == shares
