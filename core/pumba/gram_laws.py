"""Which noise law each free sum of a Gram matrix carries, from its releases.

Ties are resolved here: the released square of an indicator is a release of its sum, the product
of exclusive indicators tells nothing.  Several releases of one sum multiply.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.errors import StatisticError
from core.pumba.draws import FloatArray
from core.pumba.gram import NoisyGram
from core.pumba.gram_support import BoolArray, MomentSupport, moment_support
from core.pumba.likelihoods import Likelihood, likelihood
from core.pumba.polynomials import Monomial
from core.pumba.pooled import PooledLikelihood
from core.statistics import Family, NoiseLaw, NoisyStatistic


@dataclass(frozen=True, eq=False)
class Coordinate:
    """The law of one sum given its releases.

    Attributes
    ----------
    releases
        With continuous noise.
    likelihood
        Of the true value.
    centre
        Released value (precision-weighted mean of several).
    scale
        Of the noise.
    family
        Laplace or Gaussian where ``centre`` and ``scale`` say all, None for other likelihoods.
    """

    releases: tuple[NoisyStatistic, ...]
    likelihood: Likelihood
    centre: float
    scale: float
    family: Family | None


@dataclass(frozen=True, eq=False)
class GramTarget:
    """What stage 1 draws from: independent laws on the coordinates, within the support.

    Attributes
    ----------
    support
        Coordinates θ and their admissible set; coordinate 0 is the number of rows.
    count
        The number of rows where it is known, else None.
    laws
        One a coordinate; None for the known number of rows.
    notes
        What was done to the releases.
    """

    support: MomentSupport
    count: int | None
    laws: tuple[Coordinate | None, ...]
    notes: tuple[str, ...]

    @cached_property
    def centres(self) -> FloatArray:
        """(c,): released values, the known number of rows in place 0."""
        known = float(self.count or 0)
        return np.array([known if law is None else law.centre for law in self.laws])

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Coordinates that are drawn."""
        return tuple(index for index, law in enumerate(self.laws) if law is not None)

    @property
    def outside(self) -> bool:
        """Whether no table has the released values as its sums."""
        return not bool(self.contains(self.centres[:, None])[0])

    def contains(self, theta: FloatArray) -> BoolArray:
        """Which columns of θ (c, R) are sums of at least one row within the support."""
        inside = self.support.raw.contains(theta)
        if self.count is None:
            inside &= theta[0] >= 1.0
        return inside

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of each coordinate; infinite where the count is unknown."""
        if self.count is None:
            low = np.where(self.support.low >= 0, 0.0, -np.inf)
            high = np.where(self.support.high <= 0, 0.0, np.inf)
            low[0] = 1.0
            return low, high
        return self.count * self.support.low, self.count * self.support.high


def gram_target(problem: NoisyGram) -> GramTarget:
    """Resolve ties, pool repeated releases, and refuse entries without a release.

    Raises
    ------
    StatisticError
        An entry of the moment matrix has no release, or one of several was cut off by a clamp.
    """
    degree = 4 if problem.fourth else 2
    support = moment_support(problem.variables, degree)
    names = _coordinate_names(problem, support)
    collected: list[list[NoisyStatistic]] = [[] for _ in support.coordinates]
    count = problem.count if not isinstance(problem.count, NoisyStatistic) else None
    if isinstance(problem.count, NoisyStatistic):
        collected[0].append(problem.count)
    for monomial, statistic in _released(problem):
        place = _single_coordinate(problem, support, monomial, count is not None)
        if place is None:
            continue
        index, factor, offset = place
        shift = offset * (count or 0)
        collected[index].append(_shifted(statistic, factor, shift))
    missing = [names[i] for i, found in enumerate(collected) if not found and (i or count is None)]
    if missing:
        raise StatisticError(
            f"{missing[0]} was not released, and the posterior needs it"
            + (f" (so do {len(missing) - 1} other sums)" if len(missing) > 1 else "")
            + "; add its release, or leave its column out"
        )
    laws: list[Coordinate | None] = []
    notes: list[str] = []
    for index, found in enumerate(collected):
        if not found:
            laws.append(None)
            continue
        laws.append(_coordinate(found, names[index]))
        if any(one.law.family.discrete and one.law.lattice > one.law.scale for one in found):
            notes.append(
                f"{names[index]}: its discrete noise is narrower than its own step and was "
                "treated as continuous."
            )
    return GramTarget(support, count, tuple(laws), tuple(notes))


def _coordinate(found: list[NoisyStatistic], name: str) -> Coordinate:
    """Likelihood of one sum; discrete noise counts as continuous noise of the same scale."""
    smooth = [NoisyStatistic(one.value, _continuous(one.law), one.clamped) for one in found]
    cut = [one.value in one.clamped for one in smooth]
    if len(smooth) == 1:
        (one,) = smooth
        return Coordinate(
            releases=(one,),
            likelihood=likelihood(one, -math.inf, math.inf),
            centre=one.value,
            scale=one.law.scale,
            family=None if cut[0] else one.law.family,
        )
    if any(cut):
        raise StatisticError(
            f"{name} was released several times, once cut off at its clamp; leave the release "
            "that was cut off out"
        )
    weights = np.array([one.law.sd**-2.0 for one in smooth])
    values = np.array([one.value for one in smooth])
    centre, scale = float(weights @ values / weights.sum()), float(weights.sum() ** -0.5)
    if any(one.law.family.laplace for one in smooth):
        return Coordinate(tuple(smooth), PooledLikelihood(smooth), centre, scale, None)
    pooled = NoisyStatistic(centre, NoiseLaw(Family.GAUSSIAN, scale))
    return Coordinate(
        (pooled,), likelihood(pooled, -math.inf, math.inf), centre, scale, Family.GAUSSIAN
    )


def _continuous(law: NoiseLaw) -> NoiseLaw:
    return NoiseLaw(Family.LAPLACE if law.family.laplace else Family.GAUSSIAN, law.scale)


def _released(problem: NoisyGram) -> Iterator[tuple[Monomial, NoisyStatistic]]:
    position = {name: index for index, name in enumerate(problem.names)}
    groups: list[tuple[tuple[str, ...], NoisyStatistic | tuple[NoisyStatistic, ...]]] = [
        *(((name,), found) for name, found in problem.sums.items()),
        *problem.products.items(),
        *problem.fourth.items(),
    ]
    for names, found in groups:
        monomial = tuple(position[name] for name in names)
        for statistic in found if isinstance(found, tuple) else (found,):
            yield monomial, statistic


def _single_coordinate(
    problem: NoisyGram, support: MomentSupport, monomial: Monomial, known_count: bool
) -> tuple[int, float, float] | None:
    """(coordinate, factor, multiple of the count) that a released sum stands for; None if known."""
    polynomial = dict(support.ring.reduced(monomial))
    offset = polynomial.pop((), 0.0)
    index = {coordinate: place for place, coordinate in enumerate(support.coordinates)}
    if not polynomial:
        return None if known_count or offset == 0 else (0, offset, 0.0)
    if len(polynomial) == 1 and (known_count or offset == 0):
        ((coordinate, factor),) = polynomial.items()
        return index[coordinate], factor, offset
    names = " and ".join(problem.names[i] for i in monomial)
    raise StatisticError(
        f"the product of {names} mixes several sums, because of how the indicator is coded; "
        "leave this product out, or code indicators as 0 and 1"
    )


def _shifted(statistic: NoisyStatistic, factor: float, shift: float) -> NoisyStatistic:
    """Release of θ from one of ``factor * θ + shift``."""
    if factor == 1 and shift == 0:
        return statistic
    law = statistic.law
    size = abs(factor)
    low, high = (None if end is None else (end - shift) / factor for end in statistic.clamped)
    return NoisyStatistic(
        (statistic.value - shift) / factor,
        NoiseLaw(law.family, law.scale / size, law.lattice / size),
        (low, high) if factor > 0 else (high, low),
    )


def _coordinate_names(problem: NoisyGram, support: MomentSupport) -> list[str]:
    """What each coordinate is called in messages."""
    names: list[str] = []
    for monomial in support.coordinates:
        parts = [repr(problem.names[index]) for index in monomial]
        if not parts:
            names.append("the number of rows")
        elif len(parts) == 1:
            names.append(f"the sum of {parts[0]}")
        elif len(parts) == 2 and parts[0] == parts[1]:
            names.append(f"the sum of squares of {parts[0]}")
        else:
            names.append(f"the sum of products {' × '.join(parts)}")
    return names
