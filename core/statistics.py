"""Noisy statistics, ours or somebody else's: a value, the law of its noise, and its clamp.

This is what PUMBA consumes.  Nothing here knows where a value came from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from core.errors import StatisticError


class Family(StrEnum):
    """The law of additive noise, centred at zero."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    DISCRETE_LAPLACE = "discrete_laplace"
    DISCRETE_GAUSSIAN = "discrete_gaussian"

    @property
    def discrete(self) -> bool:
        """Whether the noise is integral."""
        return self in {Family.DISCRETE_LAPLACE, Family.DISCRETE_GAUSSIAN}

    @property
    def laplace(self) -> bool:
        """Whether the tails fall like exp(-abs(z)/b)."""
        return self in {Family.LAPLACE, Family.DISCRETE_LAPLACE}


@dataclass(frozen=True)
class NoiseLaw:
    """A family and its scale: Laplace's b, or the Gaussian's sigma, in units of the statistic.

    ``lattice`` is the step of a discrete family: noise and true value are multiples of it (1 for
    counts; a moment on a grid has a finer one).

    >>> round(NoiseLaw(Family.LAPLACE, 2.0).sd, 3)
    2.828
    """

    family: Family
    scale: float
    lattice: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no scale."""
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise StatisticError("a noise scale must be a finite number above 0")
        if not (math.isfinite(self.lattice) and self.lattice > 0):
            raise StatisticError("the step of discrete noise must be a finite number above 0")

    @property
    def sd(self) -> float:
        """Standard deviation of the noise."""
        if self.family is Family.LAPLACE:
            return self.scale * math.sqrt(2.0)
        if self.family is Family.DISCRETE_LAPLACE:
            step = self.lattice / self.scale
            # sinh keeps its digits for both tiny and large steps; beyond 700 it would overflow.
            half = min(step / 2, 350.0)
            return self.lattice / (math.sqrt(2.0) * math.sinh(half))
        # The discrete Gaussian's variance is at most sigma squared, and equal to it beyond 1 step.
        return self.scale


@dataclass(frozen=True)
class NoisyStatistic:
    """A released value: the true statistic plus noise of a known law.

    Attributes
    ----------
    value
        As released.
    law
        Family and scale of its noise, which is independent of all other statistics' noise.
    clamped
        Ends at which the release was cut off after the noise was added (None: not cut there).
    """

    value: float
    law: NoiseLaw
    clamped: tuple[float | None, float | None] = (None, None)

    def __post_init__(self) -> None:
        """Refuse values that are no numbers, and a clamp that the value contradicts."""
        if not math.isfinite(self.value):
            raise StatisticError("a released value must be a finite number")
        low, high = self.clamped
        if any(end is not None and not math.isfinite(end) for end in self.clamped):
            raise StatisticError("a clamp's ends must be finite numbers, or left out")
        if low is not None and high is not None and low >= high:
            raise StatisticError("a clamp's lower end must lie below its upper end")
        if (low is not None and self.value < low) or (high is not None and self.value > high):
            raise StatisticError("a released value lies outside the clamp that was declared for it")
