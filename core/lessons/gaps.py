"""Outcome gaps between groups of people who are alike in the admissible columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.moments import FloatArray

#: A group with a smaller share of the people is never the headline: its gap is mostly chance.
SMALL = 0.05


@dataclass(frozen=True)
class Gap:
    """One group beside people of the reference group who are alike in the admissible columns.

    Attributes
    ----------
    group
        Label of the group's cell.
    share
        The group's part of all people.
    rate
        Share of the group with the best outcome.
    alike
        The same share among people of the reference group, weighted to the group's admissible
        cells; None where no cell holds people of both.
    gap
        ``rate`` less ``alike`` over the cells that hold people of both; None likewise.
    standard_error
        Of ``gap``, from the number of people in each cell; None for a model, which has no people.
    compared
        Part of the group in cells that hold people of both.
    """

    group: str
    share: float
    rate: float
    alike: float | None
    gap: float | None
    standard_error: float | None
    compared: float


@dataclass(frozen=True)
class Gaps:
    """All groups of one column.

    Attributes
    ----------
    column, outcome, best
        Whose groups, which outcome, and its best level.
    reference
        The group that all others are compared with.
    groups
        The others, in the column's order; groups without people are left out.
    reference_rate
        Share of the reference group with the best outcome; None where nobody is in it.
    """

    column: str
    outcome: str
    best: str
    reference: str
    reference_rate: float | None
    groups: tuple[Gap, ...]

    def of(self, group: str) -> Gap | None:
        """The gap of one group, or None where nobody is in it."""
        return next((one for one in self.groups if one.group == group), None)

    @property
    def widest(self) -> Gap | None:
        """The largest gap of a group that is not tiny."""
        known = [one for one in self.groups if one.gap is not None and one.share >= SMALL]
        return max(known, key=lambda one: abs(one.gap or 0.0), default=None)


def gaps_of(
    joint: FloatArray,
    *,
    column: str,
    outcome: str,
    labels: Sequence[str],
    best: str,
    reference: int,
    people: int | None = None,
) -> Gaps:
    """Gaps between the groups of a column, person by person alike.

    Parameters
    ----------
    joint
        Probabilities of (best outcome or not, group, admissible cell), shape (2, groups, cells);
        the first row is the best outcome.
    labels
        One a group.
    reference
        Index of the group to compare with.
    people
        Number of people behind the table; None for a model.

    Notes
    -----
    For a group g the gap is the sum over cells a of P(a | g) (P(best | g, a) - P(best | r, a)):
    direct standardisation to the group's own cells, the unexplained part of Kitagawa (1955),
    Oaxaca and Blinder (1973).  Cells without people of both groups cannot be compared.
    """
    mass = joint.sum(axis=0)
    total = mass.sum(axis=1)
    rates: FloatArray = np.divide(joint[0], mass, out=np.zeros_like(mass), where=mass > 0)
    found = tuple(
        _gap(labels[group], mass, rates, (group, reference), people)
        for group in range(len(labels))
        if group != reference and total[group] > 0
    )
    people_of = float(total[reference])
    whole = float(joint[0, reference].sum()) / people_of if people_of > 0 else None
    return Gaps(column, outcome, best, labels[reference], whole, found)


def _gap(
    label: str, mass: FloatArray, rates: FloatArray, pair: tuple[int, int], people: int | None
) -> Gap:
    group, reference = pair
    own, other = mass[group], mass[reference]
    share = float(own.sum())
    rate = float(own @ rates[group] / share)
    both = (own > 0) & (other > 0)
    compared = float(own[both].sum() / share)
    if not compared:
        return Gap(label, share, rate, None, None, None, 0.0)
    weights = own[both] / own[both].sum()
    mine, theirs = rates[group, both], rates[reference, both]
    error = None
    if people is not None:
        spread = mine * (1 - mine) / own[both] + theirs * (1 - theirs) / other[both]
        error = float(np.sqrt(weights**2 @ spread / people))
    alike = float(weights @ theirs)
    return Gap(label, share, rate, alike, float(weights @ (mine - theirs)), error, compared)
