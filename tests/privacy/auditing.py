"""Statistical audit of a zCDP claim: what thousands of runs on two neighbouring tables give away.

An attacker who knows both tables watches a release and guesses which of them it was made from.  A
first sample teaches the attacker how to guess; a second, fresh one counts how often the guess is
right.  Clopper-Pearson intervals turn these counts into a bound on the true rates that is wrong
with probability 1e-6 at most, and a pair of rates outside the region that rho permits refutes the
claim.

What it can show: that a claim is *false*, whatever the reason, the random sampler included, and
that an attack of known strength gets as far as the claim lets it.  What it cannot show: that a
claim is true.  It looks at one pair of tables, through the statistics named here, and sees no
effect smaller than its sampling error; time, memory and messages are outside of it.  The proofs,
the record/replay tests on random neighbours and the tests of the noise's law carry the rest.

Sources: the trade-off view of privacy, Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015;
Clopper-Pearson bounds and a held-out sample, Nasr et al. 2023; Gaussian audits, Dong, Roth and Su
2022 (Gaussian differential privacy) and Annamalai, Ganev and De Cristofaro 2024.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from scipy import stats

from core.private.zcdp import guessing_bound

#: Probability that an audit refutes a true claim: at most this, and far less in practice.
ALARM = 1e-6
#: The same for bounds that an attack is chosen by: it keeps rare events from looking good by luck.
CAUTION = 1e-4
#: Thresholds that are tried on the first sample.
THRESHOLDS = 40


# -- what was seen -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What an attacker sees of many runs on one table.

    Attributes
    ----------
    likelihood
        (runs,): logarithm of the likelihood ratio of the second table against the first, at the
        claimed noise: by Neyman and Pearson the sharpest statistic where the noise is as claimed.
        Of all answers that were drawn, which the claim covers whether a release shows them or not.
    numbers
        (runs, k): numbers in the release, in a fixed order.
    events
        (runs,): everything else in it, as one label a run.
    claimed
        The largest cost that a run declared.
    lattice
        What whole-numbered noise adds to the Gaussian bound, see :func:`lattice_excess`.
    """

    likelihood: np.ndarray
    numbers: np.ndarray
    events: np.ndarray
    claimed: Fraction
    lattice: float = 1.0

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, rows: slice) -> Outcomes:
        return Outcomes(
            self.likelihood[rows],
            self.numbers[rows],
            self.events[rows],
            self.claimed,
            self.lattice,
        )

    @classmethod
    def joined(cls, parts: Sequence[Outcomes]) -> Outcomes:
        """All runs of several blocks."""
        return cls(
            np.concatenate([part.likelihood for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.events for part in parts]),
            max(part.claimed for part in parts),
            max(part.lattice for part in parts),
        )


#: Runs on the first table and on the second.
Sides = tuple[Outcomes, Outcomes]


# -- ways of looking at it -----------------------------------------------------------------

View = Callable[[Outcomes], np.ndarray]


def known_direction(outcomes: Outcomes) -> np.ndarray:
    """The likelihood ratio at the claimed noise."""
    return outcomes.likelihood


def finest_bit(outcomes: Outcomes) -> np.ndarray:
    """How fine the grid is on which the numbers of a run lie: minus log2 of the last set bit.

    Whole numbers have none below 1.  A float sum ``x + noise`` lies on the grid of its larger part,
    so that numbers on a grid finer than 2**-53 are possible for x = 0 and impossible for x = 1.
    """
    significands, exponents = np.frexp(outcomes.numbers)
    whole = np.abs(np.ldexp(significands, 53)).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    bits = exponents - 53 + np.log2(lowest)
    return -np.where(whole == 0, np.inf, bits).min(axis=1, initial=2000.0)


class Learnt:
    """A direction learnt from runs: Fisher's discriminant on the numbers, odds of the events.

    It needs no knowledge of the mechanism, and finds what no mechanism was meant to show: a number
    without noise, or two numbers whose noise is the same.
    """

    #: Ridge on the correlations: what has less variance than this counts as having none.
    RIDGE = 1e-6

    def __init__(self, sides: Sides) -> None:
        stacked = np.concatenate([side.numbers for side in sides])
        self.centre = stacked.mean(axis=0)
        spread = stacked.std(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        first, second = (self._scaled(side.numbers) for side in sides)
        size = stacked.shape[1]
        within = sum(
            (part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) / len(part)
            for part in (first, second)
        )
        self.weights = np.linalg.solve(
            within / 2 + self.RIDGE * np.eye(size), second.mean(axis=0) - first.mean(axis=0)
        )
        counts = [Counter(side.events.tolist()) for side in sides]
        self.odds = {
            event: math.log(
                (counts[1][event] + 0.5) * len(sides[0]) / (counts[0][event] + 0.5) / len(sides[1])
            )
            for event in counts[0] | counts[1]
        }

    def _scaled(self, numbers: np.ndarray) -> np.ndarray:
        return (numbers - self.centre) / self.scale

    def __call__(self, outcomes: Outcomes) -> np.ndarray:
        events = np.array([self.odds.get(event, 0.0) for event in outcomes.events.tolist()])
        return self._scaled(outcomes.numbers) @ self.weights + events


# -- an attack, chosen on one sample -------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """A guess: the second table, if a view of the release exceeds a threshold.

    ``swapped``: the first table then, and the second otherwise.
    """

    name: str
    view: View
    threshold: float
    swapped: bool

    def counts(self, sides: Sides) -> tuple[int, int]:
        """How often it fires where it should not, and where it should."""
        fired = [int(np.sum(self.view(side) > self.threshold)) for side in sides]
        return (fired[1], fired[0]) if self.swapped else (fired[0], fired[1])


def choose_attack(sides: Sides) -> Attack:
    """The attack that looks best on a sample of its own.

    Directions are learnt on one half of it; view and threshold are chosen on the other, by the
    lower bound on mu that they would give there.
    """
    halves = [tuple(side[part::2] for side in sides) for part in (0, 1)]
    views: dict[str, View] = {
        "likelihood ratio": known_direction,
        "learnt direction": Learnt(halves[0]),
        "finest bit": finest_bit,
    }
    best, found = -1.0, None
    for name, view in views.items():
        first, second = (np.sort(view(side)) for side in halves[1])
        cuts = _cuts(np.concatenate([first, second]))
        fired = [len(part) - np.searchsorted(part, cuts, side="right") for part in (first, second)]
        swapped = fired[1] * len(first) < fired[0] * len(second)
        false, true = np.where(swapped, fired[::-1], fired)
        rates = rate_bounds((false, true), (len(first), len(second)), CAUTION)
        bounds = mu_bound(*rates)
        place = int(bounds.argmax())
        if bounds[place] > best:
            best = float(bounds[place])
            found = Attack(name, view, float(cuts[place]), bool(swapped[place]))
    assert found is not None
    return found


def _cuts(values: np.ndarray) -> np.ndarray:
    """Levels to cut at: evenly many values between them, and the middle of the widest gap."""
    levels = np.unique(values)
    gap = int(np.diff(levels).argmax()) if len(levels) > 1 else 0
    middle = (levels[gap] + levels[min(gap + 1, len(levels) - 1)]) / 2
    if len(levels) > THRESHOLDS:
        levels = np.quantile(levels, np.linspace(0, 1, THRESHOLDS), method="lower")
    return np.append(middle, levels)


# -- bounds on its rates, from a fresh sample ----------------------------------------------


def rate_bounds(fired, runs, alarm: float = ALARM):
    """Clopper-Pearson: above the false-positive rate, and below the true-positive rate.

    Together wrong with probability ``alarm`` at most.

    Parameters
    ----------
    fired
        How often the attack fired where it should not, and where it should.
    runs
        Runs on either side.
    """
    (false, true), (without, with_) = fired, runs
    miss, hit = np.asarray(without) - false, np.asarray(true)
    above = np.where(
        miss > 0, stats.beta.isf(alarm / 2, np.asarray(false) + 1.0, np.maximum(miss, 1)), 1.0
    )
    below = np.where(
        hit > 0, stats.beta.ppf(alarm / 2, np.maximum(hit, 1), with_ - np.asarray(true) + 1.0), 0.0
    )
    return above, below


def mu_bound(false_positive, true_positive):
    """Distance of two unit normals that these rates need at least, 0 or more."""
    return np.maximum(stats.norm.isf(false_positive) - stats.norm.isf(true_positive), 0.0)


def rho_bound(false_positive: float, true_positive: float) -> float:
    """The smallest rho under which these rates are possible, in both directions."""
    if true_positive <= false_positive:
        return 0.0
    low, high = 1e-9, 1e3
    for _ in range(30):
        middle = math.sqrt(low * high)
        if possible(middle, false_positive, true_positive):
            high = middle
        else:
            low = middle
    return low


def possible(rho: Fraction | float, false_positive: float, true_positive: float) -> bool:
    """Whether rho-zCDP permits these rates, and those of the opposite guess."""
    return true_positive <= guessing_bound(rho, false_positive) and (
        1 - false_positive <= guessing_bound(rho, 1 - true_positive)
    )


@lru_cache(maxsize=256)
def lattice_excess(sigma: float, cells: int, step: int) -> float:
    """How much farther than ``mu = step * sqrt(cells) / sigma`` a discrete Gaussian lets one see.

    The sharpest tests ask whether the sum of the cells' noise passes a whole number; the largest
    mu of these, from the exact probabilities, over that of the continuous Gaussian.  4.6 % for one
    cell of sigma 1, 1.1 % at sigma 2, nothing that matters beyond.

    >>> [round(lattice_excess(sigma, 1, 1), 4) for sigma in (1.0, 2.0, 10.0)]
    [1.0458, 1.0107, 1.0004]
    """
    if sigma > 100:
        return 1.0
    reach = math.ceil(10 * sigma) + 1
    mass = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma**2))
    total = np.ones(1)
    for _ in range(cells):
        total = np.convolve(total, mass / mass.sum())
    tail = np.cumsum(total[::-1])[::-1]  # P(sum >= k), k from the lowest value up
    shift = step * cells
    kept = (tail[shift:] > 1e-12) & (tail[:-shift] < 1 - 1e-9)
    gaps = stats.norm.isf(tail[shift:][kept]) - stats.norm.isf(tail[:-shift][kept])
    return max(float(gaps.max()) / (step * math.sqrt(cells) / sigma), 1.0)


@dataclass(frozen=True)
class Verdict:
    """What an audit found.

    Attributes
    ----------
    claimed
        Declared cost.
    gaussian
        Whether nothing but Gaussian noise was used, so that the sharper bound holds.
    lattice
        Factor on that bound, see :func:`lattice_excess`.
    runs
        Fresh runs on either side.
    view
        How the attack looked at the release.
    false_positive, true_positive
        Bounds on its rates: not above, not below.
    """

    claimed: Fraction
    gaussian: bool
    lattice: float
    runs: int
    view: str
    false_positive: float
    true_positive: float

    @property
    def mu_claimed(self) -> float:
        """``sqrt(2 rho)``."""
        return math.sqrt(2 * self.claimed)

    @cached_property
    def permitted(self) -> float:
        """Largest true-positive rate under the claim, at that false-positive rate."""
        return guessing_bound(self.claimed, self.false_positive)

    @cached_property
    def rho(self) -> float:
        """Lower bound on rho."""
        return rho_bound(self.false_positive, self.true_positive)

    @property
    def mu(self) -> float:
        """Lower bound on mu."""
        return float(mu_bound(self.false_positive, self.true_positive))

    @property
    def share(self) -> float:
        """The same as a part of ``sqrt(2 rho)``; infinite where nothing was claimed."""
        if self.claimed == 0:
            return math.inf if self.mu > 0 else 0.0
        return self.mu / self.mu_claimed

    @property
    def passes(self) -> bool:
        """Whether the claim survives."""
        within = possible(self.claimed, self.false_positive, self.true_positive)
        return within and (not self.gaussian or self.mu <= self.mu_claimed * self.lattice)


def judge(learn: Sides, fresh: Sides, *, gaussian: bool, alarm: float = ALARM) -> Verdict:
    """Choose an attack on one sample, and hold the claim to what it does on another."""
    attack = choose_attack(learn)
    runs = (len(fresh[0]), len(fresh[1]))
    runs = runs[::-1] if attack.swapped else runs
    above, below = rate_bounds(attack.counts(fresh), runs, alarm)
    return Verdict(
        claimed=max(side.claimed for side in (*learn, *fresh)),
        gaussian=gaussian,
        lattice=max(side.lattice for side in (*learn, *fresh)),
        runs=min(runs),
        view=attack.name,
        false_positive=float(above),
        true_positive=float(below),
    )
