"""Pooling of rare cells, chosen from noisy counts only (post-processing; costs nothing).

Compression looks at the noise that it removes: kept cells are biased up, pooled ones down.  Totals
and posteriors therefore come from the uncompressed tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.releases import IntArray, NoisyMarginal, Recoding
from core.schema import Schema

FloatArray = NDArray[np.float64]

#: Cells whose noisy count lies below this many standard deviations are pooled.
THRESHOLD = 3.0


@dataclass(frozen=True, eq=False)
class CompressedMarginal:
    """A one-way table on compressed cells, with the noise that each cell really has.

    Attributes
    ----------
    clique
        The column's name, in a tuple.
    values
        (cells,) noisy counts; the pooled cell holds the sum of its m members.
    deviations
        (cells,) standard deviations in persons: sigma, and sigma times the root of m where pooled.
    """

    clique: tuple[str, ...]
    values: FloatArray
    deviations: FloatArray


def compress(one_way: Sequence[NoisyMarginal], schema: Schema) -> Recoding:
    """Pool the cells of every column whose noisy count is below 3 sigma.

    Kept cells come first, in declared order; the pooled cell is the last one.  A column never falls
    below two cells (the largest noisy count then stays on its own), and a single rare cell stays
    as it is.  The other-cell and the missing-cell are cells like any other here.

    Parameters
    ----------
    one_way
        Noisy one-way tables on declared cells.
    schema
        Declarations of these columns.

    Notes
    -----
    Costs nothing: noisy counts only.  The rule is MST's (McKenna, Miklau, Sheldon 2021, section
    3.3), whose pooled cell we measure with its own standard deviation.
    """
    maps: dict[str, IntArray] = {}
    for marginal in one_way:
        (name,) = marginal.clique
        if marginal.values.shape != (schema[name].size,):
            raise ValueError(f"the one-way table of {name!r} does not fit its declaration")
        codes = _pooled(marginal.values, THRESHOLD * marginal.sigma)
        if codes is not None:
            maps[name] = codes
    return Recoding(maps)


def _pooled(values: IntArray, threshold: float) -> IntArray | None:
    rare = values < threshold
    if rare.all():
        rare[int(values.argmax())] = False
    if np.count_nonzero(rare) < 2:
        return None
    kept = np.flatnonzero(~rare)
    codes = np.full(values.shape, len(kept), dtype=np.int64)
    codes[kept] = np.arange(len(kept))
    return codes


def compressed_one_ways(
    one_way: Sequence[NoisyMarginal], recoding: Recoding, schema: Schema
) -> tuple[CompressedMarginal, ...]:
    """The one-way tables on compressed cells: sums of noisy counts with their deviations.

    Parameters
    ----------
    one_way
        Noisy one-way tables on declared cells (``TreeRelease.one_way``).
    recoding
        Their compression (``TreeRelease.recoding``).
    schema
        Declarations of these columns.
    """
    result = []
    for marginal in one_way:
        (name,) = marginal.clique
        declared = schema[name].size
        codes = recoding.maps[name] if name in recoding.maps else np.arange(declared)
        cells = recoding.size(name, declared)
        values = np.bincount(codes, weights=marginal.values, minlength=cells).astype(np.float64)
        deviations = marginal.sigma * np.sqrt(np.bincount(codes, minlength=cells))
        result.append(CompressedMarginal(marginal.clique, values, deviations.astype(np.float64)))
    return tuple(result)


def project_on_simplex(
    values: FloatArray, total: float, deviations: FloatArray | None = None
) -> FloatArray:
    """Nearest non-negative table with the given total, distances in units of the noise.

    Minimises the sum of ((x - value) / deviation)^2 subject to x >= 0 and sum x = total; equal
    deviations make it the Euclidean projection.  This is what a full model fit on one-way tables
    alone gives, so that selection needs no optimiser.

    Parameters
    ----------
    values
        (cells,) noisy counts.
    total
        Positive total of the result.
    deviations
        (cells,) positive standard deviations; equal ones if left out.

    Examples
    --------
    >>> project_on_simplex(np.array([5.0, 3.0, -4.0]), 6.0).tolist()
    [4.0, 2.0, 0.0]
    """
    if not total > 0 or not math.isfinite(total):
        raise ValueError("the total of a projection must be positive and finite")
    variances = np.ones_like(values) if deviations is None else deviations**2
    # x = max(0, value - shift * variance); cells leave in the order of value / variance.
    order = np.argsort(-values / variances, kind="stable")
    sums = np.cumsum(values[order])
    weights = np.cumsum(variances[order])
    shifts = (sums - total) / weights
    inside = values[order] > shifts * variances[order]
    shift = shifts[int(np.flatnonzero(inside)[-1])]
    projected = np.maximum(values - shift * variances, 0.0)
    scaled: FloatArray = projected * (total / projected.sum())
    return scaled
