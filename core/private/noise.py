"""The only place that adds noise to a real table: OpenDP's exact samplers.

The private value is always the *argument* of OpenDP's measurement.  Drawing noise around zero and
adding it to the value in floating point would show, through the grid of the sum, which value was
hidden (Mironov 2012; Haney et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.private.scales import ceil_root, gaussian_sigma, nudge, selection_scale

IntArray = NDArray[np.int64]

__all__ = [
    "GaussianDraw",
    "Noise",
    "OpenDPNoise",
    "SelectionDraw",
    "gaussian_sigma",
    "selection_scale",
]


@dataclass(frozen=True, eq=False)
class GaussianDraw:
    """A noisy integer array.

    Attributes
    ----------
    values
        Noisy counts, in the shape that was asked about.
    sigma
        Scale of the discrete Gaussian, in units of the values.
    rho
        What the noise's own map says that the draw cost: exactly the float that it returned.
    """

    values: IntArray
    sigma: float
    rho: Fraction


@dataclass(frozen=True)
class SelectionDraw:
    """The index that a noisy maximum chose.

    Attributes
    ----------
    index
        Position among the candidates.
    scale
        Scale of the Gumbel noise, in grid units.
    rho
        What the noise's own map says that the draw cost.
    """

    index: int
    scale: float
    rho: Fraction


class Noise(Protocol):
    """How a grant perturbs answers; ``simulated`` noise protects nobody."""

    @property
    def name(self) -> str:
        """Library, version and distributions, for the statement."""
        ...

    @property
    def simulated(self) -> bool:
        """True when the noise is seeded."""
        ...

    def gaussian(
        self, values: IntArray, *, sensitivity_squared: Fraction, rho: Fraction
    ) -> GaussianDraw:
        """Discrete Gaussian noise on every value; see :meth:`OpenDPNoise.gaussian`."""
        ...

    def select(self, scores: IntArray, *, sensitivity: int, rho: Fraction) -> SelectionDraw:
        """Exponential mechanism; see :meth:`OpenDPNoise.select`."""
        ...


class OpenDPNoise:
    """Noise from OpenDP's exact samplers and the operating system's random source.

    Each draw costs at most the budget that it was given, and at least 99.9 % of it.
    """

    @property
    def name(self) -> str:
        """OpenDP's version and both distributions."""
        from importlib.metadata import version

        return f"OpenDP {version('opendp')} discrete Gaussian / noisy max"

    @property
    def simulated(self) -> bool:
        """Never: there is no seed."""
        return False

    def gaussian(
        self, values: IntArray, *, sensitivity_squared: Fraction, rho: Fraction
    ) -> GaussianDraw:
        """Discrete Gaussian noise on every value (Canonne, Kamath and Steinke 2020).

        Private: ``values``, which go into the measurement itself and nowhere else.  Public: their
        shape, the sensitivity, the budget, sigma, the cost, and the noisy values returned.  Noise
        that would leave int64 stops at its ends.

        Parameters
        ----------
        values
            Exact int64 integers of any shape; an empty array gives an empty answer and costs as
            much, so that the price depends on the question alone.
        sensitivity_squared
            Squared L2 distance of the values of neighbouring tables.
        rho
            Budget of the whole array.

        Raises
        ------
        BudgetError
            When sensitivity or budget is not positive, or the noise would leave exact integers.
        TypeError
            When the values are not int64.
        """
        exact = _checked(values)
        start, reach = gaussian_sigma(sensitivity_squared, rho), ceil_root(sensitivity_squared)
        measure, sigma, debited = _fitted(_gaussian_measurement, start, reach, rho)
        noisy = measure(exact.ravel()) if exact.size else []
        return GaussianDraw(np.asarray(noisy, dtype=np.int64).reshape(exact.shape), sigma, debited)

    def select(self, scores: IntArray, *, sensitivity: int, rho: Fraction) -> SelectionDraw:
        """Index of the largest noisy score: the exponential mechanism, by Gumbel noise.

        Candidate i is chosen with probability proportional to
        ``exp(eps * scores[i] / (2 * sensitivity))`` with ``eps = sqrt(8 * rho)``.  Scores may grow
        and shrink together or not (``monotonic=False``).

        Private: ``scores``, which go into the measurement itself and nowhere else.  Public: how
        many candidates there are, the sensitivity, the budget, the scale, and the index returned.

        Parameters
        ----------
        scores
            One int64 score a candidate, in grid units.
        sensitivity
            Largest change of one score between neighbouring tables, in grid units.
        rho
            Budget of the selection.

        Raises
        ------
        BudgetError
            When sensitivity or budget is not positive, or the noise would leave exact integers.
        TypeError
            When the scores are not a one-dimensional int64 array with at least one candidate.
        """
        exact = _checked(scores)
        if exact.ndim != 1 or not exact.size:
            raise TypeError("a selection needs one score a candidate, and at least one candidate")
        start = selection_scale(sensitivity, rho)
        slack = block_slack(exact.size, int(sensitivity), start)
        if slack is None:
            measure, scale, debited = _fitted(_selection_measurement, start, int(sensitivity), rho)
            return SelectionDraw(int(measure(exact)), scale, debited)
        reach = int(sensitivity) + slack
        measure, scale, debited = _fitted(
            _selection_measurement, selection_scale(reach, rho), reach, rho
        )
        return SelectionDraw(_select_by_blocks(measure, exact, scale), scale, debited)


#: Fewer candidates than this are drawn at once.
BLOCKED_FROM = 256
#: Largest share of the sensitivity that drawing by blocks may cost.
LARGEST_SLACK = Fraction(1, 4096)


def block_slack(candidates: int, sensitivity: int, scale: float) -> int | None:
    """How far drawing by blocks may move a score between neighbours, or None to draw at once.

    Twice the error of a block's value (see :func:`_select_by_blocks`), in grid units: half a unit
    from rounding, and what float64 arithmetic can be off for blocks of this width.  Decided from
    public facts alone.
    """
    if candidates < BLOCKED_FROM:
        return None
    # A hundredth more, because the slack itself will raise the scale.
    floats = 1.01 * scale * (2 * _block_width(candidates) + 16) * 2.0**-52
    slack = 2 + math.ceil(2 * floats)
    return slack if slack <= sensitivity * LARGEST_SLACK else None


def _block_width(candidates: int) -> int:
    return math.isqrt(candidates - 1) + 1


def _select_by_blocks(measure: Any, scores: IntArray, scale: float) -> int:
    """The exponential mechanism over many candidates as two draws over few.

    Blocks are runs of consecutive candidates.  A block's value is ``scale`` times the logarithm of
    the sum of ``exp(score / scale)`` over its members, rounded; a block is drawn by its value, then
    a member of it by its score.  Together, candidate i is chosen with probability proportional to
    ``exp((score_i + error of its block's value) / scale)``: one exponential mechanism, on scores
    that are off by no more than that error.  It therefore costs what one draw costs whose scores
    move by the sensitivity plus twice the error, and that is what is debited (decision 0009).

    OpenDP's sampler tries about as many candidates as it takes to meet one near the maximum, so
    that two draws over a few hundred are many times cheaper than one over tens of thousands.
    """
    width = _block_width(scores.size)
    starts = np.arange(0, scores.size, width)
    highest = np.maximum.reduceat(scores, starts)
    below = (scores - np.repeat(highest, np.diff(np.append(starts, scores.size)))) / scale
    total = np.add.reduceat(np.exp(below), starts)
    values = highest + np.rint(scale * np.log(total)).astype(np.int64)
    first = int(starts[int(measure(values))])
    return first + int(measure(scores[first : first + width]))


def _checked(values: IntArray) -> IntArray:
    if not isinstance(values, np.ndarray) or values.dtype != np.int64:
        raise TypeError("noise is added to int64 arrays only; count or scale to a grid first")
    return values


@lru_cache(maxsize=64)  # many rounds have the same budget; a measurement keeps no state
def _fitted(
    make: Callable[[float], Any], start: float, distance: float, rho: Fraction
) -> tuple[Any, float, Fraction]:
    """A measurement whose own map, rounded up as OpenDP does, stays within the budget."""
    made: dict[float, Any] = {}

    def cost(scale: float) -> Fraction:
        made[scale] = make(scale)
        return Fraction(made[scale].map(distance))

    scale, debited = nudge(start, cost, rho)
    return made[scale], scale, debited


@cache
def _opendp() -> Any:
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    return opendp


def _gaussian_measurement(sigma: float) -> Any:
    opendp = _opendp()
    return opendp.m.make_gaussian(
        opendp.vector_domain(opendp.atom_domain(T="i64")),
        opendp.l2_distance(T="f64"),
        scale=sigma,
    )


def _selection_measurement(scale: float) -> Any:
    opendp = _opendp()
    return opendp.m.make_noisy_max(
        opendp.vector_domain(opendp.atom_domain(T="i64")),
        opendp.linf_distance(T="i64", monotonic=False),
        opendp.zero_concentrated_divergence(),
        scale=scale,
    )
