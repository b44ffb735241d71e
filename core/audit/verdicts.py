"""What verdicts are made of: thresholds with their reasons, and the choice of what reads worst."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.audit.figures import Figure, Topic
from core.audit.scorecard import Score, Verdict

if TYPE_CHECKING:
    from core.audit.audits import RuleAudit

#: Shares of rows that would have to change until two tables agree.  A convention: 5 in 100 rarely
#: change a reading of a table, 15 in 100 do; a single table may be off by up to 15 and 30.
NEAR, FAR = 0.05, 0.15
#: Times the distance that the noise alone gives.  A fit follows the noise, so it lies below 1 when
#: all is well; up to twice is what a pooled cell or few rows can do.
CLOSE_TO_NOISE, BEYOND_NOISE = 1.25, 2.0
#: Gaps between groups beyond chance.  A convention: a gap of 0.10 is the usual limit of fairness
#: toolkits (AIF360 calls ±0.10 fair), and half of it is worth a look.
SMALL_GAP, LARGE_GAP = 0.05, 0.10
#: Evidence against independence counts from here on: 1 in 100 by chance.
SIGNIFICANT = 0.01
#: Part of a model's edge over a guess that training on synthetic rows keeps.  A convention.
KEPT, HALF_KEPT = 0.9, 0.6
#: An area under the curve below this has no edge worth dividing by.
EDGE = 0.52
#: Calibration error beyond chance and beyond a model of the real table.  A convention: 2 points
#: are not noticed, 5 points move decisions near a threshold.
WELL_CALIBRATED, MISCALIBRATED = 0.02, 0.05

SEVERITY = {Verdict.POOR: 3, Verdict.WATCH: 2, Verdict.UNKNOWN: 1, Verdict.GOOD: 0}
CONVENTION = "by convention"


def worst(scores: Iterable[Score]) -> list[Score]:
    """The one that reads worst, the larger number among equals; nothing of nothing."""
    listed = list(scores)
    if not listed:
        return []
    return [max(listed, key=lambda one: (SEVERITY[one.verdict], one.figure.value or 0.0))]


def worst_of(
    rules: Sequence[RuleAudit], scores: Callable[[RuleAudit], Sequence[Score]]
) -> list[Score]:
    """The worst over rules; several rules are told apart by name."""
    found = []
    for rule in rules:
        for score in scores(rule):
            title = score.figure.title
            if len(rules) > 1:
                title = f"{title} (rule {rule.rule.name})"
            found.append(replace(score, figure=replace(score.figure, title=title)))
    return worst(found)


def judged(value: float, good: float, poor: float) -> Verdict:
    """Up to ``good``, up to ``poor``, beyond."""
    return Verdict.GOOD if value <= good else Verdict.WATCH if value <= poor else Verdict.POOR


def unknown(figure: Figure, topic: Topic) -> Score:
    """A score that says why there is no number."""
    return Score(figure, topic, Verdict.UNKNOWN, f"No number: {figure.reason}.")


def figure_of(figures: Iterable[Figure], end: str, where: str = "") -> Figure:
    """The figure whose key ends so, with the world in its title."""
    found = next(figure for figure in figures if figure.key.endswith(end))
    return replace(found, title=f"{found.title}, {where}") if where else found


def percent(share: float, decimals: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.1234), percent(0.05, 0)
    ('12.3 %', '5 %')
    """
    return f"{100 * share:.{decimals}f} %"


def points(share: float) -> str:
    """A gap in percentage points."""
    return f"{100 * share:.1f} percentage points"


def shown(figure: Figure) -> str:
    """A gap figure's value in words."""
    return "none" if figure.value is None else points(figure.value)
