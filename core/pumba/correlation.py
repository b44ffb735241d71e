"""Correlations from draws of a Gram matrix (stage 2 of PUMBA)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from core.errors import EstimationError
from core.pumba.draws import FloatArray, ParameterDraws, StatisticDraws
from core.pumba.gram import NoisyGram
from core.pumba.gram_laws import gram_target
from core.pumba.gram_support import SINGULAR, positive_definite
from core.pumba.least_squares import TINY, Units, scaled_moments
from core.pumba.regression import Estimand, check_sampling

#: Correlations closer to ±1 than this count as this close, so that Fisher's z is finite.
CLOSEST = 1e-12


def correlation_posterior(
    problem: NoisyGram,
    grams: StatisticDraws,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    generator: np.random.Generator,
    estimand: Estimand = "population",
    sampling: float = 1.0,
) -> ParameterDraws:
    """Posterior of Pearson correlations; costs no privacy.

    Given the sums, Fisher's z is drawn from N(atanh r, 1 / (n - 3)), which assumes normal columns.

    Parameters
    ----------
    problem, grams
        The releases, and stage 1's draws of the true moments.
    pairs
        Pairs of column names; None: all, in the order of the columns.
    generator
        Of stage 2.
    estimand
        ``population``, or ``sample``: the correlation of the rows themselves.
    sampling
        Factor on the sampling variance.

    Returns
    -------
    ParameterDraws
        Named ``cor(a, b)``; all draws lie strictly within (-1, 1).

    Raises
    ------
    EstimationError
        Unknown columns, a column with itself, or a negative factor.
    """
    wanted = list(combinations(problem.names, 2)) if pairs is None else [*pairs]
    _check_pairs(problem, wanted)
    check_sampling(estimand, sampling)
    chosen = list(range(len(problem.variables) + 1))
    scaling = Units.of(problem.variables).scaling
    moments = scaled_moments(grams.values, chosen, scaling)
    places = [tuple(problem.names.index(name) for name in pair) for pair in wanted]
    count = moments[0, 0]
    correlations = _correlations(moments, places)
    factor = 0.0 if estimand == "sample" else sampling
    spread = np.sqrt(factor / np.maximum(count - 3.0, 1.0))[:, None]
    centre = np.arctanh(correlations)
    values, repeats = (
        np.tanh(centre + spread * generator.standard_normal(centre.shape)) for _ in range(2)
    )
    target = gram_target(problem)
    released = scaled_moments((target.support.moments @ target.centres)[None], chosen, scaling)
    return ParameterDraws(
        names=tuple(f"cor({first}, {second})" for first, second in wanted),
        values=np.clip(values, CLOSEST - 1, 1 - CLOSEST),
        repeats=np.clip(repeats, CLOSEST - 1, 1 - CLOSEST),
        naive=_naive(released, places, factor),
        diagnostics=grams.diagnostics,
        notes=target.notes,
    )


def _check_pairs(problem: NoisyGram, pairs: Sequence[tuple[str, str]]) -> None:
    if not pairs:
        raise EstimationError("a correlation needs two columns")
    for first, second in pairs:
        for name in (first, second):
            if name not in problem.names:
                raise EstimationError(
                    f"column {name!r} has no released sums; the columns are "
                    + ", ".join(problem.names)
                )
        if first == second:
            raise EstimationError(f"column {first!r} is paired with itself; name two columns")


def _correlations(moments: FloatArray, places: Sequence[tuple[int, ...]]) -> FloatArray:
    """Correlations (R, pairs) from scaled moments (d, d, R)."""
    count = moments[0, 0]
    sums = moments[0, 1:]
    spread = np.array([moments[i + 1, i + 1] - sums[i] ** 2 / count for i in range(len(sums))])
    spread = np.sqrt(np.maximum(spread, TINY * count))
    columns = [
        (moments[i + 1, j + 1] - sums[i] * sums[j] / count) / (spread[i] * spread[j])
        for i, j in places
    ]
    result: FloatArray = np.clip(np.stack(columns, axis=1), CLOSEST - 1, 1 - CLOSEST)
    return result


def _naive(released: FloatArray, places: Sequence[tuple[int, ...]], sampling: float) -> FloatArray:
    """Correlation and standard error of the released sums taken as exact; NaN if undefined."""
    result = np.full((len(places), 2), np.nan)
    count = float(released[0, 0, 0])
    if count <= 3:
        return result
    for row, (i, j) in enumerate(places):
        chosen = [0, i + 1, j + 1]
        part = released[np.ix_(chosen, chosen)]
        if positive_definite(part.copy(), np.full(1, SINGULAR * count))[0]:
            value = float(_correlations(part, [(0, 1)])[0, 0])
            result[row] = value, np.sqrt(sampling / (count - 3)) * (1 - value**2)
    return result
