"""What a reader must know before believing a posterior, as values: code, severity, words, advice.

The codes P1 to P12 are those of the list in ``docs/published-statistics.md``.  Thresholds are
ours unless a function says otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from core.pumba.draws import Diagnostics, FloatArray
from core.pumba.summaries import ParameterSummary
from core.statistics import Family, NoisyStatistic

#: Noise ratio τ of an area-level covariate from which imputation distorts slopes visibly.
ATTENUATION = 0.1
#: Share of all rows that truncation at 0 may add to the cells of a table.
SPARSE = 0.05
MOSTLY_NOISE, NEARLY_ALL_NOISE = 0.5, 0.9
THIN, VERY_THIN = 100, 30
#: R-hat and effective draws that the Gibbs sampler should reach.
WORST_R_HAT, FEWEST_EFFECTIVE = 1.01, 400
#: Monte Carlo error of an interval's ends, as a share of its width.
MONTE_CARLO = 0.05
_LISTED = 3
#: Beyond this many scales the noise is negligible.
_REACH = 30.0


class Severity(StrEnum):
    """How much a warning should change the reading of a posterior."""

    NOTE = "note"
    CAUTION = "caution"
    SERIOUS = "serious"


@dataclass(frozen=True)
class PosteriorWarning:
    """One warning: its code, severity, a sentence in plain words, and what to do."""

    code: str
    severity: Severity
    sentence: str
    advice: str


def attenuated_covariates(ratios: Iterable[tuple[str, float]]) -> list[PosteriorWarning]:
    """P1: area-level covariates whose noise is not small beside the spread between areas."""
    found = [(name, ratio) for name, ratio in ratios if ratio >= ATTENUATION]
    if not found:
        return []
    worst = max(ratio for _, ratio in found)
    return [
        PosteriorWarning(
            "P1",
            Severity.SERIOUS,
            f"The noise on {_listing([name for name, _ in found])} is up to {worst:.2g} times the "
            f"spread between areas: slopes shrink by about {_percent(1 - 1 / (1 + worst**2))}, and "
            "imputing each area's value doubles that.",
            "Use the corrected-Gram estimator, which takes the known noise variance out of the "
            "sums, or larger areas.",
        )
    ]


def truncation_excess(cells: Sequence[NoisyStatistic]) -> FloatArray:
    """E[T | release, T = 0, 1, 2, ...] - release of each cell, one at a time.

    What knowing that a count is not negative adds to it, by summation over the whole numbers (in
    blocks of a twentieth of the noise's scale where that is above 1).

    >>> from core.statistics import NoiseLaw
    >>> excess = truncation_excess([NoisyStatistic(-3.0, NoiseLaw(Family.LAPLACE, 2.0))])
    >>> round(float(excess[0]), 3)  # 3 + q/(1-q) with q = exp(-1/2)
    4.541
    """
    values = np.array([cell.value for cell in cells])
    excess = np.zeros(len(cells))
    laws = [(cell.law.family.laplace, cell.law.scale) for cell in cells]
    for laplace, scale in set(laws):
        here = np.array([law == (laplace, scale) for law in laws])
        # Further above 0 truncation does nothing; further below, digits would be lost.
        here &= values < _REACH * scale
        released = np.maximum(values[here], -1e6 * scale)
        block = max(1.0, math.ceil(scale / 20.0))
        counts = np.arange(0.0, 2 * _REACH * scale + 1.0, block) + (block - 1.0) / 2.0
        distance = (counts - released[:, None]) / scale
        log_weights = -np.abs(distance) if laplace else -0.5 * distance**2
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        excess[here] = weights @ counts / weights.sum(axis=1) - values[here]
    return excess


def sparse_table(cells: Sequence[NoisyStatistic], total: float) -> list[PosteriorWarning]:
    """P2: many cells that are empty or nearly so, to which truncation at 0 adds rows."""
    added = float(truncation_excess(cells).sum())
    if not cells or added <= SPARSE * max(total, 1.0):
        return []
    return [
        PosteriorWarning(
            "P2",
            Severity.SERIOUS if added > 4 * SPARSE * max(total, 1.0) else Severity.CAUTION,
            f"The table is sparse for its noise: knowing only that counts are not negative adds "
            f"about {added:,.0f} rows to {total:,.0f}, spread over cells that may be empty.",
            "Merge small categories, or enter the known total and the margins.",
        )
    ]


def outside_support(diagnostics: Diagnostics, *, counts: bool = False) -> list[PosteriorWarning]:
    """P3: no data could have the released statistics; of single counts that is nothing unusual."""
    if not diagnostics.outside_support:
        return []
    if counts:
        return [
            PosteriorWarning(
                "P3",
                Severity.NOTE,
                "Some released counts are below 0 or above what is possible, as noisy counts of "
                "small cells are.",
                "Leave them as they are: setting them to 0 would bias everything else.",
            )
        ]
    return [
        PosteriorWarning(
            "P3",
            Severity.SERIOUS,
            "No data could have exactly the released numbers (for example, a sum of squares below "
            "what the sum implies): the noise is large here, and the posterior leans on what is "
            "possible at all.",
            "Read the interval as honest but uninformative; a larger budget or fewer statistics "
            "would help. Do not repair the released numbers by hand.",
        )
    ]


def noise_share(summaries: Sequence[ParameterSummary]) -> list[PosteriorWarning]:
    """P3: parameters whose uncertainty is mostly, or nearly all, privacy noise."""
    found = []
    for words, low, high, severity in (
        ("nearly all privacy noise", NEARLY_ALL_NOISE, math.inf, Severity.SERIOUS),
        ("mostly privacy noise", MOSTLY_NOISE, NEARLY_ALL_NOISE, Severity.CAUTION),
    ):
        names = [
            one.name
            for one in summaries
            if one.privacy_share is not None and low < one.privacy_share <= high
        ]
        if names:
            found.append(
                PosteriorWarning(
                    "P3",
                    severity,
                    f"The uncertainty about {_listing(names)} is {words}.",
                    "More rows would hardly narrow the interval; a larger share of the budget "
                    "would.",
                )
            )
    return found


def thin(rows: float, what: str) -> list[PosteriorWarning]:
    """P3: few rows behind the thinnest part of an analysis."""
    if rows >= THIN:
        return []
    return [
        PosteriorWarning(
            "P3",
            Severity.SERIOUS if rows < VERY_THIN else Severity.CAUTION,
            f"Only about {max(rows, 0.0):,.0f} rows stand behind {what}.",
            "Formulas for large samples are rough here; merge groups, or read the interval as a "
            "rough one.",
        )
    ]


def near_boundary(reasons: Sequence[str]) -> list[PosteriorWarning]:
    """P4: where the approximation is mildly too confident."""
    if not reasons:
        return []
    return [
        PosteriorWarning(
            "P4",
            Severity.CAUTION,
            f"Close to the edge of what is possible: {'; '.join(reasons)}. Intervals may be a "
            "little too narrow there and lean inwards.",
            "Do not rely on the exact level of the interval.",
        )
    ]


def clipped(columns: Sequence[tuple[str, float, float]]) -> list[PosteriorWarning]:
    """P6: name the population of clipped values, always."""
    if not columns:
        return []
    named = _listing([f"{name}: {low:,.10g} to {high:,.10g}" for name, low, high in columns])
    return [
        PosteriorWarning(
            "P6",
            Severity.NOTE,
            f"The result is about the clipped population: values outside the bounds count as the "
            f"bound ({named}).",
            "If many values lie outside, the true mean or slope may be outside the interval; "
            "choose wider bounds before looking at the data.",
        )
    ]


def sample_estimand() -> list[PosteriorWarning]:
    """P7: the rows themselves were asked about."""
    return [
        PosteriorWarning(
            "P7",
            Severity.NOTE,
            "The result is about the rows that were measured, not about a wider population: only "
            "the privacy noise is uncertain.",
            "Choose the population as estimand to generalise beyond these rows.",
        )
    ]


def selected(names: Sequence[str]) -> list[PosteriorWarning]:
    """P8: statistics that were measured because an earlier noisy look made them stand out."""
    if not names:
        return []
    return [
        PosteriorWarning(
            "P8",
            Severity.CAUTION,
            f"{_capital(_listing(names))}: chosen for release because an earlier noisy look made "
            "it stand out, so the relation tends to look stronger than it is.",
            "Treat the interval as exploratory, and confirm it on a question fixed beforehand.",
        )
    ]


def repeated(names: Sequence[str]) -> list[PosteriorWarning]:
    """P8: two releases of one statistic were multiplied."""
    if not names:
        return []
    return [
        PosteriorWarning(
            "P8",
            Severity.CAUTION,
            f"Several releases of {_listing(names)} were combined as independent measurements.",
            "Keep only one if they are the same release, or if one was computed from the other.",
        )
    ]


def noise_scales(statistics: Sequence[NoisyStatistic]) -> list[PosteriorWarning]:
    """P9: the standard deviations that the given scales imply, so that a wrong one is seen."""
    if not statistics:
        return []
    laws = Counter(
        (one.law.family, one.law.scale, one.law.sd, one.law.lattice) for one in statistics
    )
    words = [
        f"{_law_words(family)} {scale:.6g} (standard deviation {sd:.4g}) on {_times(number)}"
        for (family, scale, sd, _), number in laws.most_common()
    ]
    return [
        PosteriorWarning(
            "P9",
            Severity.NOTE,
            f"Noise as stated: {_listing(words)}.",
            "Check it with the publisher: b and standard deviation differ by the root of 2, and "
            "budgets are quoted for a column or for the whole release.",
        )
    ]


def derived(names: Sequence[str]) -> list[PosteriorWarning]:
    """P10: a statistic that equals a sum of others, noise included."""
    if not names:
        return []
    return [
        PosteriorWarning(
            "P10",
            Severity.SERIOUS,
            f"{_capital(_listing(names))} equals the sum of the other released values, noise "
            "included: it looks computed from them, so its noise is not independent.",
            "Leave it out unless it was measured with noise of its own.",
        )
    ]


def monte_carlo(
    values: FloatArray, names: Sequence[str], level: float, diagnostics: Diagnostics
) -> list[PosteriorWarning]:
    """P11: an interval whose ends come from too few draws, or a sampler that did not settle.

    The error of an end is half the spread of the order statistics one binomial standard error
    around it.
    """
    found = []
    effective = float(values.shape[0])
    if "gibbs" in diagnostics.method:
        if math.isfinite(diagnostics.effective):
            effective = min(effective, diagnostics.effective)
        if diagnostics.r_hat > WORST_R_HAT or effective < FEWEST_EFFECTIVE:
            found.append(
                PosteriorWarning(
                    "P11",
                    Severity.SERIOUS,
                    f"The Gibbs sampler has not settled (R-hat {diagnostics.r_hat:.3f}, "
                    f"{effective:,.0f} effective draws).",
                    "Ask for more draws.",
                )
            )
    tail = (1.0 - level) / 2.0
    spread = math.sqrt(tail * (1.0 - tail) / max(effective, 1.0))
    around = np.clip([tail - spread, tail, tail + spread], 0.0, 1.0)
    low = np.quantile(values, around, axis=0)
    high = np.quantile(values, 1.0 - around, axis=0)
    width = high[1] - low[1]
    errors = np.maximum(low[2] - low[0], high[0] - high[2]) / 2.0
    rough = [
        name
        for name, error, wide in zip(names, errors, width, strict=True)
        if error > MONTE_CARLO * wide
    ]
    if rough:
        found.append(
            PosteriorWarning(
                "P11",
                Severity.CAUTION,
                f"With {effective:,.0f} draws the ends of the interval of {_listing(rough)} are "
                f"only known to more than {_percent(MONTE_CARLO)} of its width.",
                "Ask for more draws; they cost no privacy.",
            )
        )
    return found


def design(
    design_effect: float, population_size: int | None, weighted: bool
) -> list[PosteriorWarning]:
    """P12: rows that are no simple random sample, and what was done about it."""
    if weighted and design_effect == 1.0:
        return [
            PosteriorWarning(
                "P12",
                Severity.SERIOUS,
                "The sums are weighted, but sampling variance was computed as for equal weights.",
                "Give the design effect that the survey's documentation states.",
            )
        ]
    parts = []
    if design_effect != 1.0:
        parts.append(f"multiplied by the design effect {design_effect:g}")
    if population_size is not None:
        parts.append(f"reduced for a finite population of {population_size:,} rows")
    if not parts:
        return []
    return [
        PosteriorWarning(
            "P12",
            Severity.NOTE,
            f"Sampling variance was {' and '.join(parts)}.",
            "Both numbers are yours: check them with the survey's documentation.",
        )
    ]


def _law_words(family: Family) -> str:
    name = family.value.replace("_", " ").replace("laplace", "Laplace").replace("gauss", "Gauss")
    return f"{name} {'b' if family.laplace else 'sigma'} ="


def _times(number: int) -> str:
    return "1 value" if number == 1 else f"{number:,} values"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _listing(names: Sequence[str]) -> str:
    """Up to three names, and how many more."""
    if len(names) > _LISTED + 1:
        return f"{', '.join(names[:_LISTED])} and {len(names) - _LISTED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
