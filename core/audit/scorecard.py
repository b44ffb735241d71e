"""The scorecard: about a dozen numbers, each with a verdict and a plain why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.audit.figures import Figure, Topic


class Verdict(StrEnum):
    """How a number reads."""

    GOOD = "good"
    WATCH = "watch"
    POOR = "poor"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Score:
    """A figure, how it reads, and why in one sentence.

    Attributes
    ----------
    figure
        The number.
    topic
        Fidelity, fairness or utility.
    verdict
        Good, watch, poor; unknown where there is no number or nothing to compare it with.
    why
        One plain sentence, with what it was compared to.
    """

    figure: Figure
    topic: Topic
    verdict: Verdict
    why: str

    def __repr__(self) -> str:
        """Without sentence and verdict where real rows entered."""
        words = "" if self.figure.private else f", {self.verdict.value}: {self.why}"
        return f"Score({self.figure!r}{words})"

    @property
    def publishable(self) -> bool:
        """True when no real row entered."""
        return self.figure.publishable

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            **self.figure.to_dict(),
            "topic": self.topic.value,
            "verdict": self.verdict.value,
            "why": self.why,
        }


@dataclass(frozen=True)
class Scorecard:
    """Scores in the order in which they are read."""

    scores: tuple[Score, ...]

    @property
    def publishable(self) -> tuple[Score, ...]:
        """Scores in which no real row entered."""
        return tuple(score for score in self.scores if score.publishable)

    @property
    def private(self) -> tuple[Score, ...]:
        """Scores for the steward's own screen."""
        return tuple(score for score in self.scores if not score.publishable)

    def about(self, topic: Topic) -> tuple[Score, ...]:
        """Scores of one topic."""
        return tuple(score for score in self.scores if score.topic is topic)
