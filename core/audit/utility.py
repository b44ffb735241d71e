"""How well a model predicts an outcome: AUC, accuracy and calibration, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.audit.figures import Figure
from core.audit.learning import (
    ENCODINGS,
    Predictions,
    Predictor,
    cross_fit,
    deal,
    train,
)
from core.audit.resampling import NO_INTERVAL, Interval, percentiles
from core.audit.worlds import World

__all__ = [
    "ENCODINGS",
    "Predictions",
    "Predictor",
    "Utility",
    "assess",
    "cross_fit",
    "deal",
    "evaluate",
    "train",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Bins of the calibration error, equally wide.
BINS = 10
#: A class (or all others) of fewer test rows says nothing about ranking.
LEAST_OF_CLASS = 10
#: Bootstrap weights that are held at once.
BLOCK = 4_000_000
#: Levels of scores that bootstrap draws tell apart.
LEVELS = 1024
#: Title and unit of each figure.
KINDS = {
    "auc": ("Ranking the outcome", "AUC"),
    "accuracy": ("Predicting the outcome", "share right"),
    "calibration": ("Stated probabilities against shares", "mean distance"),
    "brier": ("Squared error of probabilities", "Brier score"),
}


@dataclass(frozen=True)
class Utility:
    """Figures of one model on one world.

    Attributes
    ----------
    auc
        Area under the ROC curve: the chance that a row of the class is ranked above another row.
        With more than two classes the unweighted mean over classes of one against the rest.
    accuracy
        Share of rows whose most probable cell is right; its baseline is the guess of the most
        frequent training cell.
    calibration
        Expected calibration error: mean distance between stated probability and share, over
        classes and ten equally wide bins; its baseline is what chance alone shows on as many rows.
    brier
        Half the squared distance between stated probabilities and what happened, so that two
        classes give the usual Brier score; its baseline are the training shares.
    """

    auc: Figure
    accuracy: Figure
    calibration: Figure
    brier: Figure

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All four."""
        return (self.auc, self.accuracy, self.calibration, self.brier)


def evaluate(
    predictor: Predictor,
    world: World,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
    key: str = "utility",
) -> Utility:
    """Figures of a trained model on the rows of a world that it did not see.

    Parameters
    ----------
    draws, level, seed
        Of the bootstrap intervals: test rows are drawn again, the model stays.
    key
        Prefix of the figures' keys.
    """
    predicted = predictor.predict(world)
    return assess(predicted, world, predictor.outcome, draws=draws, level=level, seed=seed, key=key)


def assess(
    predicted: Predictions,
    world: World,
    outcome: str,
    *,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
    key: str = "utility",
) -> Utility:
    """The same from predictions that are there already, as of :func:`cross_fit`."""
    truth = world.codes[outcome].astype(np.int64)
    private = predicted.private or world.private
    made = _Maker(private, key, level, _caveat(world, outcome, predicted.notes))
    if not world.rows:
        return made.nothing("there are no rows to test on")
    measures = _Measures(predicted, truth)
    auc, why = measures.ranked()
    found = _intervals(measures, world.rows, draws, level, np.random.default_rng(seed))
    guess = int(predicted.constant.argmax())
    constant = np.tile(predicted.constant, (world.rows, 1))
    return Utility(
        made.figure("auc", auc, found[0], baseline=0.5, words="a guess", why=why),
        made.figure(
            "accuracy",
            float(measures.right.mean()),
            found[1],
            baseline=float((truth == guess).mean()),
            words="always the most frequent training cell",
        ),
        made.figure(
            "calibration",
            measures.calibrated(),
            found[2],
            baseline=measures.calibration_floor(),
            words="chance alone on as many rows",
        ),
        made.figure(
            "brier",
            float(measures.squared.mean()),
            found[3],
            baseline=float(_brier(constant, truth).mean()),
            words="the training shares for every row",
        ),
    )


def area_under_curve(scores: FloatArray, positive: NDArray[np.bool_]) -> float:
    """Chance that a positive row scores above another one, ties counted by half.

    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True]))
    0.875
    """
    _, level = np.unique(scores, return_inverse=True)
    ups = np.bincount(level[positive], minlength=int(level.max()) + 1)
    downs = np.bincount(level) - ups
    return float(ups @ (np.cumsum(downs) - downs / 2) / (ups.sum() * downs.sum()))


# -- details ---------------------------------------------------------------------------------


def _caveat(world: World, outcome: str, notes: tuple[str, ...]) -> str:
    column = world.schema[outcome]
    binned = (f"{outcome!r} is predicted in its declared bins",) * bool(column.axis)
    return "; ".join((*notes, *binned))


@dataclass(frozen=True, eq=False, repr=False)
class _Maker:
    """Writes figures with the same mark, level and caveats."""

    private: bool
    key: str
    level: float
    caveat: str

    def figure(
        self,
        name: str,
        value: float | None,
        interval: Interval = NO_INTERVAL,
        *,
        baseline: float | None = None,
        words: str = "",
        why: str = "",
    ) -> Figure:
        """One of the four."""
        title, unit = KINDS[name]
        low, high = interval if value is not None else NO_INTERVAL
        return Figure(
            f"{self.key}.{name}",
            title,
            value,
            unit,
            self.private,
            low=low,
            high=high,
            level=self.level,
            baseline=baseline,
            baseline_words=words if baseline is not None else "",
            reason="; ".join(part for part in (why, self.caveat) if part),
        )

    def nothing(self, why: str) -> Utility:
        """Four figures without a value."""
        return Utility(*(self.figure(name, None, why=why) for name in KINDS))


class _Measures:
    """What the figures of one set of predictions are made of."""

    def __init__(self, predicted: Predictions, truth: IntArray) -> None:
        self._probabilities = predicted.probabilities
        self._truth = truth
        self.right = (predicted.decisions == truth).astype(np.float64)
        self.squared = _brier(predicted.probabilities, truth)
        counts = np.bincount(truth, minlength=predicted.probabilities.shape[1])
        occurring = np.flatnonzero(counts)
        enough = (counts >= LEAST_OF_CLASS) & (len(truth) - counts >= LEAST_OF_CLASS)
        self._ranked = np.flatnonzero(enough)
        self._left_out = len(occurring) - len(self._ranked)
        self._occurring = len(occurring)
        if len(occurring) == 2 and np.allclose(predicted.probabilities[:, occurring].sum(1), 1.0):
            # one against the other says it all: the second class's curve is the first's
            self._ranked = self._ranked[1:]
        self._calibrated = np.flatnonzero((predicted.constant > 0) | (counts > 0))

    def ranked(self) -> tuple[float | None, str]:
        """The area, averaged over classes, and what to say about it."""
        if not len(self._ranked):
            why = (
                "all test rows have the same outcome"
                if self._occurring < 2
                else f"no class, or not its counterpart, has {LEAST_OF_CLASS} test rows"
            )
            return None, why
        areas = [
            area_under_curve(self._probabilities[:, cell], self._truth == cell)
            for cell in self._ranked
        ]
        parts = []
        if self._occurring > 2:
            parts.append(f"mean over {len(areas)} classes, each against the rest")
        if self._left_out:
            parts.append(f"{self._left_out} classes of fewer than {LEAST_OF_CLASS} rows left out")
        return float(np.mean(areas)), "; ".join(parts)

    def areas(self, weights: FloatArray) -> FloatArray:
        """Mean area over classes, one a column of weights of shape (rows, draws)."""
        each = np.stack(
            [
                _weighted_areas(self._probabilities[:, cell], self._truth == cell, weights)
                for cell in self._ranked
            ]
        )
        known = ~np.isnan(each)
        count = known.sum(axis=0)
        found: FloatArray = np.full(weights.shape[1], np.nan)
        np.divide(np.where(known, each, 0.0).sum(axis=0), count, out=found, where=count > 0)
        return found

    def calibrated(self) -> float:
        """Expected calibration error of these rows."""
        return float(self.calibration(np.ones((len(self._truth), 1)))[0])

    def calibration(self, weights: FloatArray) -> FloatArray:
        """Expected calibration error, one a column of weights (classwise; Kull et al. 2019)."""
        found: FloatArray = np.zeros(weights.shape[1])
        for cell in self._calibrated:
            stated = self._probabilities[:, cell]
            apart = stated - (self._truth == cell)
            found += np.abs(_grouped(_bins(stated), apart, BINS) @ weights).sum(axis=0)
        return np.asarray(found / weights.sum(axis=0) / len(self._calibrated))

    def calibration_floor(self) -> float:
        """The same figure expected of a perfectly calibrated model on as many rows.

        Within a bin the sum of (stated - happened) has mean 0 and variance Σ p(1 - p); its mean
        absolute value is that of a normal, √(2/π) standard deviations.
        """
        total = 0.0
        for cell in self._calibrated:
            stated = self._probabilities[:, cell]
            spread = np.bincount(_bins(stated), weights=stated * (1 - stated), minlength=BINS)
            total += float(np.sqrt(2 * np.maximum(spread, 0.0) / np.pi).sum())
        return total / len(self._calibrated) / len(self._truth)


def _bins(stated: FloatArray) -> IntArray:
    return np.minimum((stated * BINS).astype(np.int64), BINS - 1)


def _grouped(groups: IntArray, values: FloatArray, count: int) -> Any:
    """Sparse matrix that sums the values of each group's rows, times weights from the right."""
    from scipy.sparse import csr_array

    rows = np.arange(len(groups))
    return csr_array((values, (groups, rows)), shape=(count, len(groups)))


def _weighted_areas(
    scores: FloatArray, positive: NDArray[np.bool_], weights: FloatArray
) -> FloatArray:
    """One area a column of weights; not a number where a side has none.

    Scores are told apart in at most 1024 levels of equally many rows.
    """
    _, level = np.unique(scores, return_inverse=True)
    most = int(level.max()) + 1
    if most > LEVELS:
        ranks = np.cumsum(np.bincount(level))
        level = (ranks[level] - 1) * LEVELS // len(scores)
        most = LEVELS
    up = positive.astype(np.float64)
    ups = _grouped(level, up, most) @ weights
    downs = _grouped(level, 1 - up, most) @ weights
    below = np.cumsum(downs, axis=0) - downs / 2
    total = ups.sum(axis=0) * downs.sum(axis=0)
    found: FloatArray = np.full(weights.shape[1], np.nan)
    np.divide((ups * below).sum(axis=0), total, out=found, where=total > 0)
    return found


def _brier(probabilities: FloatArray, truth: IntArray) -> FloatArray:
    """Half the squared distance to what happened, a row."""
    happened = probabilities[np.arange(len(truth)), truth]
    squared: FloatArray = ((probabilities**2).sum(axis=1) - 2 * happened + 1) / 2
    return squared


def _intervals(
    measures: _Measures, rows: int, draws: int, level: float, generator: np.random.Generator
) -> list[Interval]:
    """Percentile intervals of AUC, accuracy, calibration and Brier score over test rows."""
    ranked = measures.ranked()[0] is not None
    found: list[list[FloatArray]] = [[], [], [], []]
    step = max(1, BLOCK // rows)
    for start in range(0, draws, step):
        chosen = generator.integers(0, rows, size=(min(step, draws - start), rows))
        weights: FloatArray = np.empty((rows, len(chosen)))
        for draw, drawn in enumerate(chosen):
            weights[:, draw] = np.bincount(drawn, minlength=rows)
        if ranked:
            found[0].append(measures.areas(weights))
        found[1].append(measures.right @ weights / rows)
        found[2].append(measures.calibration(weights))
        found[3].append(measures.squared @ weights / rows)
    # a distance only grows when rows are drawn again, so its draws are moved back to the figure
    centres = (None, None, measures.calibrated(), None)
    return [
        percentiles(np.concatenate(parts), level=level, centre=centre) if parts else NO_INTERVAL
        for parts, centre in zip(found, centres, strict=True)
    ]
