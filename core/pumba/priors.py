"""Informative normal priors, added to a normal posterior by their precisions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import StatisticError

FloatArray = NDArray[np.float64]
Numbers = float | FloatArray


@dataclass(frozen=True)
class NormalPrior:
    """A normal prior of one parameter, in the units of the result.

    >>> mean, sd = NormalPrior(0.0, 1.0).add(2.0, 1.0)
    >>> float(mean), round(float(sd), 3)
    (1.0, 0.707)
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        """Refuse what is no prior."""
        if not math.isfinite(self.mean):
            raise StatisticError("a prior's mean must be a finite number")
        if not (math.isfinite(self.sd) and self.sd > 0):
            raise StatisticError("a prior's standard deviation must be a finite number above 0")

    def add(self, estimate: Numbers, sd: Numbers) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the posterior, given a normal likelihood's.

        A likelihood without spread (``sd`` 0) wins over any prior.
        """
        variance = np.asarray(sd, dtype=np.float64) ** 2
        weight = variance / (variance + self.sd**2)
        mean = (1.0 - weight) * np.asarray(estimate, dtype=np.float64) + weight * self.mean
        return mean, np.sqrt(weight) * self.sd
