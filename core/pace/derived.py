"""What follows from a covariance estimate, with errors: correlations and partial correlations.

Two intervals each.  *Privacy noise only*: how far the value may be from the one that the same
method gives without noise.  *Privacy and sampling*: also from that of the population that the
rows are a sample of, taken as Gaussian.  Neither knows of entries that were never measured: the
matrix takes the partial correlations there for 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.pace.estimate import Estimate
from core.pace.sensitivities import GraphSpread, WholeSpread

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Interval = tuple[float, float]

#: A variance that is not this many standard deviations of its noise above 0 may be 0.
VISIBLE_VARIANCE = 4.0
#: Correlations are kept this far from ±1 on Fisher's scale.
SMALLEST_GAP = 1e-12

SELECTED_NOTE = (
    "Values marked as selected were measured or kept because a noisy look at the same rows made "
    "them stand out; their intervals do not account for that, so they lie too far from 0 more "
    "often than stated."
)
UNDETERMINED_NOTE = (
    "The variance of a column marked as undetermined may be 0 as far as the noise tells: its "
    "correlations may be anything, and none of them is called significant."
)
WHOLE_NOTE = (
    "Errors are those of the noisy matrix before shrinkage and projection, which bring the matrix "
    "closer to the truth."
)
MODEL_NOTE = (
    "Intervals hold given the pairs that were measured; where too few were, what the matrix takes "
    "for 0 adds an error that no interval shows."
)


@dataclass(frozen=True)
class Derived:
    """One number with its errors.

    Attributes
    ----------
    columns
        The column or pair of columns that it is about.
    value
        Point estimate.
    privacy_error, total_error
        Standard errors to first order: privacy noise only, and privacy with sampling.
    privacy, total
        The two intervals.
    determined
        Whether the noise leaves the columns' variances visibly above 0.
    selected
        Whether a noisy look at the same rows decided that it is here.
    """

    columns: tuple[str, ...]
    value: float
    privacy_error: float
    total_error: float
    privacy: Interval
    total: Interval
    determined: bool = True
    selected: bool = False

    @property
    def significant(self) -> bool:
        """Whether the interval for privacy and sampling leaves out 0."""
        return self.determined and (self.total[0] > 0 or self.total[1] < 0)


@dataclass(frozen=True)
class DerivedTable:
    """Derived numbers of one kind.

    Attributes
    ----------
    kind
        ``correlation``, ``partial correlation`` or ``regression``.
    level
        Of the intervals.
    values
        In the order of the columns.
    undetermined
        Columns whose variance may be 0.
    notes
        How the numbers must be read.
    """

    kind: str
    level: float
    values: tuple[Derived, ...]
    undetermined: tuple[str, ...]
    notes: tuple[str, ...]


def correlations(
    found: Estimate, *, level: float = 0.95, selected: BoolArray | None = None
) -> DerivedTable:
    """Correlations of all pairs that were measured and that the matrix follows.

    Parameters
    ----------
    level
        Of the intervals, above 0 and below 1; they are symmetric on Fisher's z scale.
    selected
        (d, d): entries to mark, those of :func:`core.pace.view.selected_entries`.

    Raises
    ------
    EstimationError
        For a level outside (0, 1), or measurements that determine the matrix too badly.
    """
    pairs = _pairs(found)
    values = found.correlation[pairs[:, 0], pairs[:, 1]]
    variances = _by_component(found, pairs, partial=False)
    return _bounded(found, pairs, values, variances, level=level, selected=selected)


def partial_correlations(
    found: Estimate, *, level: float = 0.95, selected: BoolArray | None = None
) -> DerivedTable:
    """Partial correlations -K_jk/sqrt(K_jj K_kk) of the same pairs; all others are 0 in W.

    Parameters and errors are those of :func:`correlations`.
    """
    pairs = _pairs(found)
    values = found.partial_correlation[pairs[:, 0], pairs[:, 1]]
    variances = _by_component(found, pairs, partial=True)
    return _bounded(
        found, pairs, values, variances, level=level, selected=selected, kind="partial correlation"
    )


# -- which pairs and columns ---------------------------------------------------------------


def _pairs(found: Estimate) -> IntArray:
    """Products that were measured and that the matrix follows, in the order of the columns."""
    return np.argwhere(np.triu(found.measured & found.graph, 1)).astype(np.int64)


def visible(found: Estimate) -> BoolArray:
    """(d,): columns whose variance stands out of its noise."""
    squares = found.scaled.diagonal().copy()
    if found.completion is not None:
        pooled = found.completion.measurements
        own = pooled.pairs[:, 0] == pooled.pairs[:, 1]
        squares[pooled.pairs[own, 0]] = pooled.values[own]
    return np.asarray(squares > VISIBLE_VARIANCE * found.entry_sigmas.diagonal(), dtype=np.bool_)


def marked_entries(found: Estimate, selected: BoolArray | None) -> BoolArray:
    """(d, d), symmetric: entries that a noisy look selected."""
    if selected is None:
        return np.zeros(found.scaled.shape, dtype=np.bool_)
    if selected.shape != found.scaled.shape:
        raise EstimationError("marks of selected entries need the shape of the matrix")
    return selected | selected.T


# -- variances -----------------------------------------------------------------------------


def _spreads(found: Estimate) -> list[GraphSpread] | WholeSpread:
    if found.completion is None:
        return WholeSpread(found.scaled, found.entry_sigmas, found.rows)
    return [
        GraphSpread(found.completion, np.array(nodes, dtype=np.int64), found.rows)
        for nodes in found.completion.components
        if len(nodes) > 1
    ]


def _by_component(found: Estimate, pairs: IntArray, *, partial: bool) -> FloatArray:
    """Privacy and sampling variances of (partial) correlations, (2, q)."""
    variances = np.zeros((2, len(pairs)))
    spreads = _spreads(found)
    for spread in spreads if isinstance(spreads, list) else [spreads]:
        inside = np.flatnonzero(np.isin(pairs[:, 0], spread.nodes))
        local = np.searchsorted(spread.nodes, pairs[inside])
        if len(inside):
            variances[:, inside] = (
                spread.partial(local, found.scaled_precision)
                if partial
                else spread.correlations(local)
            )
    return variances


# -- intervals -----------------------------------------------------------------------------


def normal_quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to either side."""
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise EstimationError("the level of intervals must lie above 0 and below 1")
    return float(ndtri(0.5 + level / 2))


def _bounded(
    found: Estimate,
    pairs: IntArray,
    values: FloatArray,
    variances: FloatArray,
    *,
    level: float,
    selected: BoolArray | None,
    kind: str = "correlation",
) -> DerivedTable:
    """A table of numbers in [-1, 1], with intervals on Fisher's scale."""
    quantile = normal_quantile(level)
    seen, marked = visible(found), marked_entries(found, selected)
    errors = np.sqrt(np.cumsum(variances, axis=0))
    inside = np.clip(values, -1 + SMALLEST_GAP, 1 - SMALLEST_GAP)
    reach = quantile * errors / (1 - inside**2)
    low, high = np.tanh(np.arctanh(inside) - reach), np.tanh(np.arctanh(inside) + reach)
    determined = seen[pairs[:, 0]] & seen[pairs[:, 1]]
    low, high = np.where(determined, low, -1.0), np.where(determined, high, 1.0)
    rows = tuple(
        Derived(
            (found.columns[a], found.columns[b]),
            float(values[place]),
            float(errors[0, place]),
            float(errors[1, place]),
            (float(low[0, place]), float(high[0, place])),
            (float(low[1, place]), float(high[1, place])),
            determined=bool(determined[place]),
            selected=bool(marked[a, b]),
        )
        for place, (a, b) in enumerate(pairs)
    )
    return derived_table(kind, found, level, rows, range(len(found.columns)))


def derived_table(
    kind: str,
    found: Estimate,
    level: float,
    values: tuple[Derived, ...],
    columns: Sequence[int],
) -> DerivedTable:
    """Values with the notes that they need; ``columns`` are those that they are about."""
    seen = visible(found)
    undetermined = tuple(sorted(found.columns[column] for column in columns if not seen[column]))
    whole = found.completion is None and bool(found.measured.all())
    notes = [WHOLE_NOTE if whole else MODEL_NOTE]
    if undetermined:
        notes.append(UNDETERMINED_NOTE)
    if any(value.selected for value in values):
        notes.append(SELECTED_NOTE)
    return DerivedTable(kind, level, values, undetermined, tuple(notes))
