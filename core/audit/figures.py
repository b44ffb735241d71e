"""A figure of an audit: a value, its interval, and whether it may leave the steward's screen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.errors import EstimationError


class Topic(StrEnum):
    """What a figure is about."""

    FIDELITY = "fidelity"
    FAIRNESS = "fairness"
    UTILITY = "utility"


@dataclass(frozen=True)
class Figure:
    """One number of an audit, or the reason why there is none.

    Attributes
    ----------
    key
        Stable identifier, such as ``fidelity.one_way.tv``.
    title
        What it measures, in a few plain words.
    value
        The number, or None (then ``reason`` says why).
    unit
        ``share``, ``bits``, ``nats``, ``AUC`` …, as it is shown behind the number.
    private
        True when real rows entered: it must not leave the steward's screen.
    low, high
        Interval by the bootstrap, where there is one.
    level
        Coverage of the interval.
    baseline, baseline_words
        What to compare with: a noise floor, the real table's own figure; and what it is.
    reason
        Why there is no value, or a caveat: binned, suppressed, a sample of pairs.
    """

    key: str
    title: str
    value: float | None
    unit: str
    private: bool
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    baseline: float | None = None
    baseline_words: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        """Numbers are finite, and a missing one has a reason.

        Messages name the key: a title may say which table or group real rows made the worst.
        """
        for number in (self.value, self.low, self.high, self.baseline):
            if number is not None and not math.isfinite(number):
                raise EstimationError(f"{self.key}: a figure must be a finite number")
        if self.value is None and not self.reason:
            raise EstimationError(f"{self.key}: a figure without a value needs a reason")

    def __repr__(self) -> str:
        """Without the numbers where real rows entered: messages and logs show representations."""
        if self.private:
            return f"Figure({self.key!r}, private)"
        return f"Figure({self.key!r}, {self.value!r} {self.unit})"

    @property
    def publishable(self) -> bool:
        """True when no real row entered."""
        return not self.private

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        found: Mapping[str, Any] = {
            "key": self.key,
            "title": self.title,
            "value": self.value,
            "unit": self.unit,
            "publishable": self.publishable,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "baseline": self.baseline,
            "baseline_words": self.baseline_words,
            "reason": self.reason,
        }
        return dict(found)
