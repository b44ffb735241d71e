"""``pace_auto``: measure everything roughly, then spend the rest where it helps most.

The first measurement is a whole triangle of rows clipped to a privately chosen norm.  Released
numbers alone then decide among three routes: a second triangle, adaptive rounds from the graph
that already stands out, or the squares alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from core.moments import FloatArray
from core.pace.baselines import CLIP_SHARE, clipped_triangle, matrix_of, triangle_weight
from core.pace.measurements import Measurements
from core.pace.paid import PaidRun
from core.pace.rounds import Kept, Rounds, run_rounds
from core.pace.running import RunningCompletion
from core.pace.shrinkage import positive_variances
from core.private import sensitivity

#: Share of the moments' budget for the first triangle, its clip included.
FIRST_SHARE = Fraction(2, 5)
#: Share of a round's budget for its selection.
SELECTION_SHARE = Fraction(2, 5)
#: The first round's noise against the mean variance.
FIRST_SIGMA = 0.1
#: An entry joins the graph if it is further off than this many standard deviations.
EDGE_FROM = 1.5
#: With more entries than this in plain sight, rounds would take longer than they help.
MOST_VISIBLE = 600
#: Rounds at least this small a part of the budget, a column.
MOST_ROUNDS_A_COLUMN = 16


@dataclass(frozen=True)
class Outlook:
    """What each route would probably lead to, from released numbers; squared errors over pairs.

    Attributes
    ----------
    energy
        Sum of squared correlations that the noise does not explain: the error of leaving all out.
    second
        After a second triangle, shrunk.
    rounds
        After rounds on as many entries as is best.
    visible
        Entries that stand out from the noise.
    best_sigma
        Noise of one entry for all that is left, against the mean variance.
    """

    energy: float
    second: float
    rounds: float
    visible: int
    best_sigma: float

    @property
    def route(self) -> str:
        """``diagonal``, ``second triangle`` or ``rounds``."""
        if self.energy <= 0 and not self.visible and 4 * self.best_sigma > 1:
            return "diagonal"
        if self.second <= self.rounds or self.visible > MOST_VISIBLE:
            return "second triangle"
        return "rounds"

    def figures(self) -> list[tuple[str, float]]:
        """Names and numbers for the release."""
        return [
            ("energy", self.energy),
            ("error after a second triangle", self.second),
            ("error after rounds", self.rounds),
            ("visible entries", float(self.visible)),
            ("noise of one entry", self.best_sigma),
        ]


def pace_auto(run: PaidRun) -> None:
    """First triangle, decision, and the route that it led to."""
    total = run.grant.remaining
    clip_rho = total * CLIP_SHARE
    first = clipped_triangle(run, clip_rho, total * FIRST_SHARE - clip_rho)
    run.report("triangle", 1, 1)
    outlook = outlook_of(run, first, total)
    run.route, run.forecasts = outlook.route, outlook.figures()
    if run.route == "diagonal":
        run.diagonal(run.grant.remaining)
        run.report("diagonal", 1, 1)
    elif run.route == "second triangle":
        clip = run.clip.squared if run.clip is not None else Fraction(run.size)
        run.triangle(
            run.grant.remaining,
            weight=triangle_weight(run, clip),
            clip_squared=clip,
            stage="second triangle",
        )
        run.report("second triangle", 1, 1)
    else:
        rounds(run, first)


def outlook_of(run: PaidRun, first: Measurements, total: Fraction) -> Outlook:
    """Forecast the routes from the first triangle."""
    matrix, sigmas = matrix_of(first)
    variances = positive_variances(matrix.diagonal().copy(), sigmas.diagonal().copy())
    upper = np.triu_indices(run.size, 1)
    scale = 1.0 / np.sqrt(variances)
    unit = np.outer(scale, scale)[upper]
    values, noise = matrix[upper] * unit, sigmas[upper] * unit
    left = run.grant.remaining
    spent = float((total - left) / total)
    energy = max(float(np.sum(values**2 - noise**2)), 0.0)
    signals = denoised_energies(values**2, noise**2, energy)
    second = float(np.minimum(signals, spent * noise**2).sum())
    reach = sensitivity.entry_score(run.relation, run.unit_rows)
    entry = reach / math.sqrt(2 * (1 - SELECTION_SHARE) * left) / run.rows
    mean = float(variances.mean())
    found = np.cumsum(np.sort(signals)[::-1])
    counts = np.arange(1, len(found) + 1)
    rounds_error = float(np.min(energy - found + (counts * entry / mean) ** 2, initial=energy))
    visible = int(np.sum(np.abs(values) > visibility(len(values)) * noise))
    return Outlook(energy, second, max(rounds_error, 0.0), visible, entry / mean)


def denoised_energies(energies: FloatArray, variances: FloatArray, total: float) -> FloatArray:
    """Squared correlations less a common multiple of their noise, so that they sum to ``total``.

    What is left of an entry of pure noise would otherwise pass for something to be found.
    """
    if total <= 0:
        return np.zeros_like(energies)

    def left(multiple: float) -> FloatArray:
        rest: FloatArray = np.maximum(energies - multiple * variances, 0.0)
        return rest

    low, high = 0.0, 1.0
    while left(high).sum() > total:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle).sum() > total else (low, middle)
    return left(high)


def visibility(entries: int) -> float:
    """Standard deviations that none of so many entries of pure noise is likely to reach."""
    return math.sqrt(2 * math.log(max(entries, 2)))


def visible_edges(first: Measurements) -> np.ndarray:
    """Which measurements of the first triangle are products that stand out, as a mask."""
    pooled = first.pooled()
    products = pooled.pairs[:, 0] != pooled.pairs[:, 1]
    limit = visibility(int(products.sum()))
    mask: np.ndarray = products & (np.abs(pooled.values) * np.sqrt(pooled.precisions) > limit)
    return mask


def rounds(run: PaidRun, first: Measurements) -> None:
    """Adaptive rounds from the graph of what stood out in the first triangle."""
    pooled = first.pooled()
    squares = pooled.pairs[:, 0] == pooled.pairs[:, 1]
    known = squares | visible_edges(first)
    start = Measurements(
        run.size, pooled.pairs[known], pooled.values[known], pooled.precisions[known]
    )
    kept = Kept(
        ((int(a), int(b)), value, precision)
        for (a, b), value, precision in zip(
            pooled.pairs[~known].tolist(),
            pooled.values[~known].tolist(),
            pooled.precisions[~known].tolist(),
            strict=True,
        )
    )
    running = RunningCompletion(start, clip=True)
    mean = float(running.covariance.diagonal().mean())
    run_rounds(
        run,
        running,
        Rounds(
            first=first_budget(run, mean),
            most=MOST_ROUNDS_A_COLUMN * run.size,
            selection_share=SELECTION_SHARE,
            edge_from=EDGE_FROM,
            squares_ride=run.relation.value == "replace_one",
        ),
        kept,
    )


def first_budget(run: PaidRun, mean: float) -> Fraction:
    """Budget at which one entry's noise is a tenth of the mean variance."""
    sums = FIRST_SIGMA * mean * run.rows
    reach = sensitivity.entry_score(run.relation, run.unit_rows)
    wanted = Fraction(reach**2 / (2 * sums**2)) / (1 - SELECTION_SHARE)
    left = run.grant.remaining
    return min(max(wanted, left / (MOST_ROUNDS_A_COLUMN * run.size)), left)
