"""Stored figures of the PrivCI grid as medians, pairs and claims."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.privci_cells import NOISE_FREE, REAL, Cell, Figures
from benchmarks.privci_scores import Scores
from benchmarks.privci_statistics import Paired, Unpaired, compare, holm, means_apart

#: Heading of each metric.
METRICS: Mapping[str, str] = {
    "score": "tree score",
    "kl": "KL",
    "tv": "TV",
    "excess": "CMI − floor, bits",
    "cmi": "CMI, bits",
    "auc": "AUC",
    "auc_boosting": "AUC, boosting",
    "auc_blind": "AUC without S",
    "odds": "equalized odds",
    "parity": "demographic parity",
    "gap": "gap within A",
}
#: Compared in every metric, first minus second.
COMPARISONS = (
    ("privci", "prefair"),
    ("privci", "mst"),
    ("privci-exact", "privci"),
    ("privci-exact", "prefair"),
)
LEVEL = 0.05
#: "Far below" the unconstrained tree: at most this share of its excess information.
FAR_BELOW = 0.1


#: Information below it is rounding.
NOTHING = 1e-9
#: Table, metric, first and second method.
Test = tuple[str, str, str, str]


@dataclass(frozen=True)
class Claim:
    """What was claimed about one metric; ``kind`` is at-least, at-most, like or far-below."""

    words: str
    metric: str
    first: str
    second: str
    kind: str

    def on(self, table: str) -> Test:
        """Its test on a table."""
        return table, self.metric, self.first, self.second


CLAIMS = (
    Claim("total score at least PreFair's", "score", "privci", "prefair", "at-least"),
    Claim("KL at most PreFair's", "kl", "privci", "prefair", "at-most"),
    Claim("TV at most PreFair's", "tv", "privci", "prefair", "at-most"),
    Claim("AUC at least PreFair's", "auc", "privci", "prefair", "at-least"),
    Claim("CMI like PreFair's", "excess", "privci", "prefair", "like"),
    Claim("CMI far below MST's", "excess", "privci", "mst", "far-below"),
)


@dataclass(frozen=True)
class Verdict:
    """A claim on one table: the test, its adjusted p-value, and what follows."""

    claim: Claim
    table: str
    paired: Paired | None
    adjusted: float
    words: str
    short: str


class Results:
    """Figures by cell, averaged over noise seeds."""

    def __init__(
        self,
        figures: Mapping[Cell, Figures],
        tables: Sequence[str],
        epsilons: Sequence[str],
        folds: int,
    ) -> None:
        self.tables, self.epsilons, self.folds = tuple(tables), tuple(epsilons), folds
        self.figures = figures
        self._by_place: dict[tuple[str, str, str, int], list[Figures]] = {}
        for cell, found in figures.items():
            place = (cell.table, cell.method, cell.epsilon, cell.fold)
            self._by_place.setdefault(place, []).append(found)

    @property
    def finite(self) -> tuple[str, ...]:
        """Budgets but the noise-free one."""
        return tuple(epsilon for epsilon in self.epsilons if epsilon != NOISE_FREE)

    def value(self, table: str, method: str, epsilon: str, fold: int, metric: str) -> float:
        """Mean over the noise seeds; NaN where a figure is missing."""
        place = (table, method, NOISE_FREE if method == REAL else epsilon, fold)
        values = [found.get(metric) for found in self._by_place.get(place, ())]
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known and len(known) == len(values) else math.nan

    def median(
        self, table: str, method: str, epsilon: str, metric: str, folds: int | None = None
    ) -> float:
        """Median over the folds that have the figure."""
        values = [
            self.value(table, method, epsilon, fold, metric) for fold in range(folds or self.folds)
        ]
        known = [value for value in values if math.isfinite(value)]
        return float(np.median(known)) if known else math.nan

    def pairs(self, table: str, method: str, metric: str) -> NDArray[np.float64]:
        """One value a fold and budget, in a fixed order."""
        design = itertools.product(range(self.folds), self.finite)
        return np.array(
            [self.value(table, method, epsilon, fold, metric) for fold, epsilon in design]
        )

    # -- tests -------------------------------------------------------------------------------

    @cached_property
    def tests(self) -> Mapping[Test, Paired]:
        """Every comparison by (table, metric, first, second)."""
        design = itertools.product(self.tables, METRICS, COMPARISONS)
        found = {}
        for table, metric, (first, second) in design:
            paired = compare(self.pairs(table, first, metric), self.pairs(table, second, metric))
            if paired is not None:
                found[table, metric, first, second] = paired
        return found

    @cached_property
    def adjusted(self) -> Mapping[Test, float]:
        """Holm's p-values of all comparisons, one family."""
        return holm({key: paired.p_value for key, paired in self.tests.items()})

    @cached_property
    def claimed(self) -> Mapping[Test, float]:
        """Holm's p-values of the claims, a family of their own: they were made beforehand."""
        keys = [claim.on(table) for claim in CLAIMS for table in self.tables]
        return holm({key: self.tests[key].p_value for key in keys if key in self.tests})

    def verdict(self, claim: Claim, table: str) -> Verdict:
        """Whether the claim holds on a table."""
        key = claim.on(table)
        if key not in self.tests:
            return Verdict(claim, table, None, 1.0, "not measured", "–")
        paired, adjusted = self.tests[key], self.claimed[key]
        breaks = self.breaks(table, "mst")
        words, short = judged(claim.kind, paired, adjusted, unconstrained_breaks=breaks)
        return Verdict(claim, table, paired, adjusted, words, short)

    def breaks(self, table: str, method: str) -> bool:
        """Whether the method's forest breaks the rule where the budget is largest."""
        epsilon = max(self.epsilons, key=float)
        return any(
            found["violates"]
            for cell, found in self.figures.items()
            if (cell.table, cell.method, cell.epsilon) == (table, method, epsilon)
        )

    def broken(self, methods: Iterable[str]) -> tuple[int, int]:
        """Forests that break their rule, and forests in all."""
        wanted = set(methods)
        flags = [found["violates"] for cell, found in self.figures.items() if cell.method in wanted]
        return sum(flags), len(flags)


def judged(
    kind: str, paired: Paired, adjusted: float, *, unconstrained_breaks: bool
) -> tuple[str, str]:
    """A verdict in words and in one word."""
    if kind == "like":
        if max(abs(paired.first), abs(paired.second), abs(paired.difference)) < NOTHING:
            return "says nothing: hardly two rows share a stratum", "–"
        # without adjustment: adjusting would make "no difference" easier to claim
        if paired.p_value >= LEVEL:
            return "holds: no difference found", "holds"
        side = "lower" if paired.effect < 0 else "higher"
        return f"**does not hold**: {side}, unadjusted p = {paired.p_value:.2g}", f"**{side}**"
    if kind == "far-below":
        if not unconstrained_breaks:
            return "says nothing: the unconstrained tree keeps the rule", "–"
        if paired.p_value >= LEVEL:
            return "**does not hold**: no difference found", "**no**"
        if paired.effect > 0:
            return "**does not hold**: higher", "**no**"
        if adjusted >= LEVEL:
            return "in doubt: lower, but not after correction", "lower?"
        if paired.first <= FAR_BELOW * paired.second:
            return "holds", "holds"
        return "lower, but not by nine tenths", "lower"
    better = (paired.effect > 0) == (kind == "at-least")
    if adjusted < LEVEL:
        return ("holds: better", "better") if better else ("**does not hold**: worse", "**worse**")
    if paired.p_value < LEVEL:
        # correcting makes it harder to see that a claim fails, so that is said
        if better:
            return "holds: better, but not after correction", "better?"
        return "in doubt: worse, but not after correction", "worse?"
    return "holds: no difference found", "tie"


def expected(scores: Scores) -> dict[tuple[str, str, str], tuple[Unpaired, float]]:
    """Exact minus the other method by (table, epsilon, other), with Holm's p-value."""
    found = {
        (table, epsilon, other): means_apart(
            scores[table, epsilon, "privci-exact"], scores[table, epsilon, other]
        )
        for table, epsilon, other in scores
        if other != "privci-exact" and (table, epsilon, "privci-exact") in scores
    }
    adjusted = holm({key: item.p_value for key, item in found.items()})
    return {key: (item, adjusted[key]) for key, item in found.items()}


def expected_words(item: Unpaired, adjusted: float) -> str:
    """Whether exact is at least as good."""
    if adjusted >= LEVEL:
        return "holds: no difference found"
    return "holds: better" if item.difference > 0 else "**does not hold**: worse"
