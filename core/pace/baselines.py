"""Other ways to spend a budget on a covariance matrix, for comparison and for plain needs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from core.pace.measurements import Measurements
from core.pace.paid import PaidRun
from core.private import sensitivity
from core.provenance import Relation

#: Share of the moments' budget for choosing a row clip.
CLIP_SHARE = Fraction(1, 20)
#: The same in AdaptiveCov: trace and clip take an eighth each.
ADAPTIVE_SHARE = Fraction(1, 4)
#: Diagonal weights are multiples of one over this.
WEIGHT_STEPS = 16


def ssp(run: PaidRun) -> None:
    """Sufficient-statistics perturbation as the paper has it: equal noise on every entry.

    Its noise is that of a Frobenius sensitivity of the whole matrix (d, or sqrt(2) d under
    ``replace_one``); the triangle alone is less sensitive, and what that saves is forfeited.  Use
    ``ssp_tight`` to keep it.
    """
    rho = run.grant.remaining * sensitivity.triangle(run.size, run.relation) / frobenius(run)
    run.triangle(rho)
    run.report("triangle", 1, 1)


def frobenius(run: PaidRun) -> int:
    """Squared Frobenius sensitivity of the whole matrix of one row a unit: d², or 2d²."""
    return run.size**2 * (1 if run.relation is Relation.ADD_REMOVE else 2)


def ssp_tight(run: PaidRun) -> None:
    """All entries at once, at the triangle's own sensitivity; free precision for the squares."""
    run.triangle(run.grant.remaining, weight=free_weight(run.size, run.relation))
    run.report("triangle", 1, 1)


def diagonal(run: PaidRun) -> None:
    """The squares alone: every correlation is taken to be 0."""
    run.diagonal(run.grant.remaining)
    run.report("diagonal", 1, 1)


def ssp_clip_sure(run: PaidRun) -> None:
    """All entries at once, of rows clipped to a privately chosen norm; shrunk afterwards."""
    total = run.grant.remaining
    clipped_triangle(run, total * CLIP_SHARE, total * (1 - CLIP_SHARE))
    run.report("triangle", 1, 1)


def adaptive_cov(run: PaidRun) -> None:
    """AdaptiveCov's Gaussian branch (Dong, Liang and Yi 2022), with the clip chosen at once.

    Their sparse-vector search for the clip, and the noisy trace that bounds it, are replaced by
    the exponential mechanism on the same trade-off of bias and noise, at the same price.
    """
    total = run.grant.remaining
    budget = total * (1 - ADAPTIVE_SHARE)
    candidates = clip_candidates(run.size, Fraction(1, 4))
    noise = [triangle_noise(run, clip, Fraction(1), budget) for clip in candidates]
    clip = run.choose_clip(candidates, noise, total * ADAPTIVE_SHARE)
    run.triangle(run.grant.remaining, clip_squared=clip)
    run.report("triangle", 1, 1)


# -- the clipped triangle --------------------------------------------------------------------


def clipped_triangle(run: PaidRun, clip_rho: Fraction, rho: Fraction) -> Measurements:
    """Choose a row clip, then measure the whole triangle under it."""
    candidates = clip_candidates(run.size)
    noise = [triangle_noise(run, clip, triangle_weight(run, clip), rho) for clip in candidates]
    before = run.grant.remaining
    clip = run.choose_clip(candidates, noise, clip_rho)
    left = rho + clip_rho - (before - run.grant.remaining)
    return run.triangle(left, weight=triangle_weight(run, clip), clip_squared=clip)


def clip_candidates(columns: int, step: Fraction | None = None) -> tuple[Fraction, ...]:
    """Squared clips from d (nothing is clipped) down to 1, by a factor of sqrt(2) unless given.

    >>> [float(clip) for clip in clip_candidates(4, Fraction(1, 2))]
    [4.0, 2.0, 1.0]
    """
    factor = 2**-0.5 if step is None else float(step)
    found, power = [], 0
    while (clip := Fraction(round(columns * factor**power * 1024), 1024)) >= 1:
        found.append(clip)
        power += 1
    return tuple(found)


def free_weight(columns: int, relation: Relation) -> Fraction:
    """Largest weight of the squares that costs the triangle nothing.

    Under ``replace_one`` a precision of (d + 1)/2 rides along; under ``add_remove`` none does.
    """
    if relation is Relation.ADD_REMOVE:
        return Fraction(1)
    return rounded_weight((columns + 1) / 2)


def triangle_weight(run: PaidRun, clip_squared: Fraction) -> Fraction:
    """Weight of the squares in a clipped triangle: C²/8 times the products' precision.

    That raises the noise of the products by an eighth at most; the squares carry the scale of
    every correlation.
    """
    if clip_squared >= run.size and run.relation is Relation.REPLACE_ONE:
        return free_weight(run.size, run.relation)
    return rounded_weight(max(1.0, float(clip_squared) / 8))


def rounded_weight(precision: float) -> Fraction:
    """The largest weight of few digits whose square is at most ``precision``."""
    steps = math.floor(math.sqrt(precision) * WEIGHT_STEPS)
    return Fraction(min(max(steps, WEIGHT_STEPS), 512), WEIGHT_STEPS)


def triangle_noise(run: PaidRun, clip_squared: Fraction, weight: Fraction, rho: Fraction) -> float:
    """Expected Frobenius norm of the noise on the sums, both triangles counted."""
    squared = triangle_sensitivity(run.size, run.relation, clip_squared, weight)
    sigma = math.sqrt(squared * run.unit_rows**2 / (2 * rho))
    return sigma * math.sqrt(run.size * (run.size - 1) + run.size / float(weight) ** 2)


def triangle_sensitivity(
    columns: int, relation: Relation, clip_squared: Fraction, weight: Fraction
) -> Fraction:
    """Squared L2 sensitivity of the weighted triangle of one row a unit."""
    box = sensitivity.triangle(columns, relation, 1, weight**2)
    if clip_squared >= columns:
        return box
    return min(box, sensitivity.clipped_triangle(clip_squared, relation, 1, weight**2))


def matrix_of(measurements: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Pooled values and standard deviations as full matrices; all entries must be measured."""
    pooled = measurements.pooled()
    size = pooled.size
    values, sigmas = np.zeros((size, size)), np.full((size, size), np.inf)
    rows, columns = pooled.pairs[:, 0], pooled.pairs[:, 1]
    for a, b in ((rows, columns), (columns, rows)):
        values[a, b] = pooled.values
        sigmas[a, b] = pooled.precisions**-0.5
    return values, sigmas
