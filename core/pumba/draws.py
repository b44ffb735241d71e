"""What the two stages of PUMBA hand on: draws of the true statistics, and of the parameters.

Stage 1 draws the confidential statistic T given the release s; stage 2 draws the parameter given
each T, twice and independently.  The covariance of the two is the variance that comes from the
privacy noise, Var E[θ | T]; what remains is sampling variance, E Var[θ | T].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.errors import StatisticError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Diagnostics:
    """How stage 1 was sampled.

    Attributes
    ----------
    method
        ``exact`` (independent draws of the exact law), ``rejection`` (likewise) or ``gibbs``.
    acceptance
        Share of proposals inside the support; NaN where nothing was proposed.
    chains, sweeps
        Parallel chains, and sweeps of each (``gibbs`` only, else 0).
    r_hat
        Largest split R-hat over the statistics; 1.0 for independent draws.
    effective
        Smallest effective sample size over the statistics; the number of draws if independent.
    outside_support
        The released value cannot be the statistics of any table.
    """

    method: str
    acceptance: float = float("nan")
    chains: int = 0
    sweeps: int = 0
    r_hat: float = 1.0
    effective: float = float("nan")
    outside_support: bool = False


@dataclass(frozen=True, eq=False)
class StatisticDraws:
    """Stage 1: ``values`` has one draw of the true statistics a row (any trailing shape)."""

    values: FloatArray
    diagnostics: Diagnostics
    counts: FloatArray | None = None  #: number of rows behind each draw, where it is unknown


@dataclass(frozen=True, eq=False)
class ParameterDraws:
    """Stage 2: draws of named parameters.

    Attributes
    ----------
    names
        Parameters, one a column of the arrays below.
    values
        (R, k): draws for the estimand that was asked for.
    repeats
        (R, k): a second draw given the same T, independent of the first; equal to ``values``
        where the estimand is the sample itself.
    naive
        For each parameter the naive estimate and its standard error, which treat the released
        value as if it had no noise; NaN where they are undefined.  Shape (k, 2).
    diagnostics
        Of stage 1.
    notes
        Sentences on how the draws must be read (name of an approximation, a bound that was used).
    """

    names: tuple[str, ...]
    values: FloatArray
    repeats: FloatArray
    naive: FloatArray
    diagnostics: Diagnostics
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Refuse shapes that do not belong together, and draws that are no numbers."""
        size = len(self.names)
        if self.values.ndim != 2 or self.values.shape[1] != size:
            raise StatisticError("parameter draws need one column a name")
        if self.repeats.shape != self.values.shape or self.naive.shape != (size, 2):
            raise StatisticError("repeats and naive estimates must fit the parameter draws")
        if not (np.all(np.isfinite(self.values)) and np.all(np.isfinite(self.repeats))):
            raise StatisticError("a posterior draw is no finite number; check bounds and scales")
