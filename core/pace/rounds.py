"""Rounds of select, measure, complete."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from core.pace.paid import PaidRun
from core.pace.release import Round
from core.pace.running import RunningCompletion

#: A round moved the matrix by no more than the noise would: E|N(0, 1)|.
EXPECTED_NOISE = math.sqrt(2 / math.pi)
#: Budgets of later rounds grow by this after a round that found nothing: sigma and 1/eps halve.
ANNEALING = 4

Entry = tuple[int, int]


@dataclass(frozen=True)
class Rounds:
    """How the rounds spend what is left.

    Attributes
    ----------
    first
        Budget of the first round.
    most
        About how many rounds that would make, for progress.
    selection_share
        Share of a round's budget for its selection.
    edge_from
        An entry joins the graph if its pooled value is further from what the matrix expects than
        this many of its standard deviations; 0: always.
    squares_ride
        Measure both squares of an entry along with it (free under ``replace_one``).
    """

    first: Fraction
    most: int
    selection_share: Fraction
    edge_from: float = 0.0
    squares_ride: bool = False


class Kept:
    """Noisy values of entries that are not in the graph, pooled by inverse variance."""

    def __init__(self, measurements: Iterable[tuple[Entry, float, float]] = ()) -> None:
        self._sums: dict[Entry, tuple[float, float]] = {
            entry: (precision, precision * value) for entry, value, precision in measurements
        }

    def pooled(self, entry: Entry, value: float, precision: float) -> tuple[float, float]:
        """Value and precision of an entry with one more measurement, which is kept."""
        total, weighted = self._sums.get(entry, (0.0, 0.0))
        total, weighted = total + precision, weighted + precision * value
        self._sums[entry] = (total, weighted)
        return weighted / total, total

    def drop(self, entry: Entry) -> None:
        """Forget an entry that joined the graph."""
        self._sums.pop(entry, None)


def run_rounds(
    run: PaidRun, running: RunningCompletion, rules: Rounds, kept: Kept | None = None
) -> None:
    """Spend all that is left: choose the entry that is furthest off, measure it, complete."""
    kept = Kept() if kept is None else kept
    budget, last = rules.first, False
    while not last:
        left = run.grant.remaining
        last = left < 2 * budget
        if last:
            budget = left
        moved, sigma = one_round(run, running, rules, kept, budget)
        if moved <= EXPECTED_NOISE * sigma:
            budget *= ANNEALING
        run.report("rounds", len(run.rounds), max(rules.most, len(run.rounds)), run.rounds[-1])


def one_round(
    run: PaidRun, running: RunningCompletion, rules: Rounds, kept: Kept, budget: Fraction
) -> tuple[float, float]:
    """How far the round moved its entry, and the sigma of its measurement, in scaled units."""
    before = run.grant.debited
    a, b = run.select(running.covariance, budget * rules.selection_share)
    selection = run.grant.debited - before
    expected = float(running.covariance[a, b])
    pairs = [(a, b)]
    if rules.squares_ride and a != b:
        pairs += [(a, a), (b, b)]
    # What the selection's own rounding left over goes to the measurement.
    found = run.measure("round", np.array(pairs, dtype=np.int64), budget - selection)
    value, precision = float(found.values[0]), float(found.precisions[0])
    sigma = precision**-0.5
    edge, reason = True, "measured again"
    if running.pooled(a, b) is None:
        value, precision = kept.pooled((a, b), value, precision)
        distance = abs(value - expected) * math.sqrt(precision)
        edge = distance >= rules.edge_from
        reason = f"{distance:.1f} standard deviations from the matrix"
    values, precisions = found.values.copy(), found.precisions.copy()
    values[0], precisions[0] = value, precision
    if edge:
        kept.drop((a, b))
    known = slice(0 if edge else 1, None)
    running.add(found.pairs[known], values[known], precisions[known])
    run.rounds.append(
        Round(
            index=len(run.rounds),
            chosen=(run.names[a], run.names[b]),
            draw=len(run.draws) - 1,
            expected=expected,
            measured=float(found.values[0]),
            sigma=sigma,
            edge=edge,
            reason=reason,
            selection_rho=selection,
        )
    )
    return abs(float(running.covariance[a, b]) - expected), sigma
