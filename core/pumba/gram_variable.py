"""A column behind noisy sums of products."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.errors import StatisticError


@dataclass(frozen=True)
class GramVariable:
    """A column behind noisy sums, in the coordinates in which it was summed.

    Attributes
    ----------
    name
        As used in results.
    lower, upper
        Bounds to which every value was clipped, fixed before the data were looked at.
    indicator
        The column takes the values ``lower`` and ``upper`` only, so its square is a linear
        function of it and needs no release.
    exclusive
        Name of the categorical column whose indicators exclude one another: of those that share
        this name at most one takes its upper value in a row, so products need no release.
    origin, unit
        Results are in the units of ``origin + unit * x``.
    offset
        The released sum of the column alone is of ``x + offset``, its products are of ``x``: for
        sums that were taken about different centres, each with noise of its own.
    """

    name: str
    lower: float
    upper: float
    indicator: bool = False
    exclusive: str | None = None
    origin: float = 0.0
    unit: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Refuse bounds that hold no interval, and groups of what is no indicator."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise StatisticError(f"column {self.name!r}: both bounds must be finite numbers")
        if self.lower >= self.upper:
            raise StatisticError(
                f"column {self.name!r}: the lower bound must lie below the upper one; a column "
                "with one possible value is a constant and needs no statistics"
            )
        if self.exclusive is not None and not self.indicator:
            raise StatisticError(
                f"column {self.name!r}: only indicators can exclude one another; declare it an "
                "indicator or leave the group out"
            )
        if not (math.isfinite(self.origin) and math.isfinite(self.unit) and self.unit > 0):
            raise StatisticError(
                f"column {self.name!r}: origin and unit must be finite, and the unit above 0"
            )
        if not math.isfinite(self.offset) or (self.indicator and self.offset):
            raise StatisticError(
                f"column {self.name!r}: an offset must be finite, and 0 for an indicator"
            )
