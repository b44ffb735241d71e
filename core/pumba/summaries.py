"""One summary of posterior draws, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from core.errors import EstimationError
from core.pumba.draws import FloatArray, ParameterDraws

#: Region of practical equivalence: one for all parameters, or one a parameter's name.
Rope = tuple[float, float] | Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class ParameterSummary:
    """What the draws say about one parameter, in its own units.

    Attributes
    ----------
    name
        The parameter.
    mean, median, sd
        Of the posterior.
    eti_low, eti_high
        Ends of the equal-tailed interval.
    hdi_low, hdi_high
        Ends of the shortest interval of the same probability.
    probability_positive
        Posterior probability that the parameter is above 0.
    rope_probability
        Posterior probability of the region of practical equivalence; None without a region.
    privacy_share, sampling_share
        Shares of the posterior variance that come from the privacy noise, Var E[θ | T], and from
        sampling, E Var[θ | T]; they add to 1.  None where the variance is 0.
    naive, naive_low, naive_high
        Estimate and interval that treat the released values as if they had no noise; None where
        they are undefined (a negative variance, for example).
    r_hat, effective
        Split R-hat and effective draws of stage 1; None where the draws are independent.
    """

    name: str
    mean: float
    median: float
    sd: float
    eti_low: float
    eti_high: float
    hdi_low: float
    hdi_high: float
    probability_positive: float
    rope_probability: float | None
    privacy_share: float | None
    sampling_share: float | None
    naive: float | None
    naive_low: float | None
    naive_high: float | None
    r_hat: float | None
    effective: float | None


def summarize(
    draws: ParameterDraws, *, level: float = 0.95, rope: Rope | None = None
) -> tuple[ParameterSummary, ...]:
    """Summaries of all parameters, in the order of the draws.

    Parameters
    ----------
    draws
        Of stage 2; for the sample as estimand its repeats equal its values, so all variance
        counts as privacy noise.
    level
        Probability of both intervals.
    rope
        Region of practical equivalence, in the parameters' units; a mapping may name only some.

    Raises
    ------
    EstimationError
        For a level outside (0, 1), or a region that is none or of an unknown parameter.
    """
    check_level(level)
    regions = _regions(rope, draws.names)
    lows, highs = highest_density(draws.values, level)
    tail = (1.0 - level) / 2.0
    ends = np.quantile(draws.values, [tail, 0.5, 1.0 - tail], axis=0)
    gibbs = "gibbs" in draws.diagnostics.method
    found = []
    for index, name in enumerate(draws.names):
        values = draws.values[:, index]
        share = privacy_share(values, draws.repeats[:, index])
        naive, error = (float(number) for number in draws.naive[index])
        reach = float(ndtri(1.0 - tail)) * error
        region = regions.get(name)
        found.append(
            ParameterSummary(
                name=name,
                mean=float(values.mean()),
                median=float(ends[1, index]),
                sd=float(values.std(ddof=1)) if values.size > 1 else 0.0,
                eti_low=float(ends[0, index]),
                eti_high=float(ends[2, index]),
                hdi_low=float(lows[index]),
                hdi_high=float(highs[index]),
                probability_positive=float((values > 0).mean()),
                rope_probability=None
                if region is None
                else float(((values >= region[0]) & (values <= region[1])).mean()),
                privacy_share=share,
                sampling_share=None if share is None else 1.0 - share,
                naive=_defined(naive),
                naive_low=_defined(naive - reach),
                naive_high=_defined(naive + reach),
                r_hat=draws.diagnostics.r_hat if gibbs else None,
                effective=draws.diagnostics.effective if gibbs else None,
            )
        )
    return tuple(found)


def highest_density(values: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Ends of the shortest interval holding at least ``level`` of the draws of each column.

    >>> low, high = highest_density(np.array([[0.0], [1.0], [2.0], [10.0]]), 0.5)
    >>> float(low[0]), float(high[0])
    (0.0, 1.0)
    """
    ordered = np.sort(values, axis=0)
    size = ordered.shape[0]
    inside = min(max(math.ceil(level * size - 1e-9), 1), size)
    widths = ordered[inside - 1 :] - ordered[: size - inside + 1]
    first = widths.argmin(axis=0)
    columns = np.arange(ordered.shape[1])
    return ordered[first, columns], ordered[first + inside - 1, columns]


def privacy_share(values: FloatArray, repeats: FloatArray) -> float | None:
    """Share of the variance that two independent draws given the same statistics have in common.

    Their covariance is Var E[θ | T], the variance that comes from not knowing T; it is divided by
    the pooled variance and clipped to [0, 1].  None for a parameter that does not vary.
    """
    if values.size < 2:
        return None
    total = (values.var() + repeats.var()) / 2.0
    # A parameter that is the same in all draws has the variance of its last digit.
    if not total > (4e-16 * np.abs(values).max()) ** 2:
        return None
    common = float(((values - values.mean()) * (repeats - repeats.mean())).mean())
    return min(max(common / float(total), 0.0), 1.0)


def check_level(level: float) -> None:
    """Refuse what is no probability of an interval."""
    if not 0.0 < level < 1.0:
        raise EstimationError("the level of an interval must lie between 0 and 1, for example 0.95")


def _regions(rope: Rope | None, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    if rope is None:
        return {}
    if isinstance(rope, Mapping):
        unknown = sorted(set(rope) - set(names))
        if unknown:
            raise EstimationError(
                f"the region of practical equivalence names {unknown[0]!r}, which is no parameter; "
                f"known: {', '.join(names)}"
            )
        regions = {name: (float(low), float(high)) for name, (low, high) in rope.items()}
    else:
        low, high = rope
        regions = dict.fromkeys(names, (float(low), float(high)))
    for name, (low, high) in regions.items():
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise EstimationError(
                f"the region of practical equivalence of {name!r} needs a lower end below its "
                "upper end"
            )
    return regions


def _defined(number: float) -> float | None:
    return number if math.isfinite(number) else None
