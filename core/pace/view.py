"""A covariance release as people look at it: rounds, orders of columns, long tables; free."""

from __future__ import annotations

import io
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.documents import csv_table
from core.moments import FloatArray, IntArray
from core.pace.estimate import Estimate, estimate, replay
from core.pace.regression import Regression
from core.pace.release import CovarianceRelease, Pair, Round

BoolArray = NDArray[np.bool_]

#: What stands behind an entry of the matrix.
FILLED, KEPT, FOLLOWED = 0, 1, 2
STATE_WORDS = (
    "filled in by the completion",
    "measured, and kept for pooling only",
    "measured, and the matrix follows it",
)
#: Matrices of past rounds that are remembered.
REMEMBERED = 12


class Replays:
    """The matrix after each round; rounds near one that was looked at before come fast.

    One release, one object; nothing in it is private.
    """

    def __init__(self, release: CovarianceRelease) -> None:
        self.release = release
        self._known: OrderedDict[int, Estimate] = OrderedDict()
        self._last: Estimate | None = None

    @property
    def last(self) -> Estimate:
        """The matrix of everything, exactly as in the files.

        Raises
        ------
        EstimationError
            A cancel left too little to estimate anything.
        """
        if self._last is None:
            self._last = estimate(self.release)
        return self._last

    def at(self, step: int) -> Estimate:
        """The matrix after ``step`` rounds.

        Raises
        ------
        EstimationError
            There are fewer rounds, or too little was measured.
        """
        if step == len(self.release.rounds):
            return self.last
        if step not in self._known:
            known = {**self._known, len(self.release.rounds): self.last}
            nearest = known[min(known, key=lambda other: abs(other - step))]
            self._known[step] = replay(self.release, step, start=nearest.completion)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(step)
        return self._known[step]


@dataclass(frozen=True)
class RoundView:
    """One round in units that people know.

    Attributes
    ----------
    pair
        The entry; twice the same name for a variance.
    expected, measured, error
        Before and after, with one standard deviation of the noise: as correlations, or for a
        variance as parts of the present variance.
    joined
        Whether the matrix follows the measurement from now on.
    distance
        Standard deviations of the noise between the two.
    """

    pair: Pair
    expected: float
    measured: float
    error: float
    joined: bool

    @property
    def distance(self) -> float:
        """Standard deviations of the measurement's noise between expectation and measurement."""
        return abs(self.measured - self.expected) / self.error

    @property
    def variance(self) -> bool:
        """Whether the entry is a column with itself."""
        return self.pair[0] == self.pair[1]


def round_view(step: Round, fitted: Estimate) -> RoundView:
    """A round of the log in units of a matrix, usually the one after it."""
    place = {name: number for number, name in enumerate(fitted.columns)}
    variances = fitted.scaled.diagonal()
    unit = float(np.sqrt(variances[place[step.chosen[0]]] * variances[place[step.chosen[1]]]))
    return RoundView(
        step.chosen, step.expected / unit, step.measured / unit, step.sigma / unit, step.edge
    )


def entry_states(fitted: Estimate) -> NDArray[np.int8]:
    """``FILLED``, ``KEPT`` or ``FOLLOWED`` for every entry of the matrix."""
    states = np.where(fitted.measured, KEPT, FILLED)
    followed = fitted.measured if fitted.completion is None else fitted.graph
    return np.where(followed & fitted.measured, FOLLOWED, states).astype(np.int8)


def selected_entries(release: CovarianceRelease, fitted: Estimate) -> BoolArray:
    """Which entries the matrix follows because a noisy look at the same rows made them stand out.

    ``pace_auto`` lets an entry in by the value that it then uses.  Rounds of any method measure an
    entry because the rows differed from the matrix there: its noise is its own, but how far the
    rows' own chance took it from the population's value was part of what was looked at.
    """
    chosen = release.route == "rounds" or bool(release.rounds)
    products = ~np.eye(release.size, dtype=np.bool_)
    return np.asarray(fitted.graph & products & chosen, dtype=np.bool_)


def file_order(release: CovarianceRelease) -> IntArray:
    """Positions of the columns in the order of the file."""
    place = {name: index for index, name in enumerate(release.columns)}
    return np.array([place[name] for name in release.schema.names], dtype=np.int64)


def cluster_order(correlation: FloatArray) -> IntArray:
    """Positions of the columns with related ones side by side, the stronger half first.

    Average linkage of 1 - |correlation|, leaves in the order in which neighbours differ least
    (Bar-Joseph, Gifford & Jaakkola 2001).
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(correlation) < 3:
        return np.arange(len(correlation), dtype=np.int64)
    distances = 1.0 - np.abs(correlation)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
    order = np.asarray(leaves_list(tree), dtype=np.int64)
    strength = (np.abs(correlation).sum(axis=0) - 1.0)[order]
    half = len(order) // 2
    return order[::-1] if strength[:half].sum() < strength[-half:].sum() else order


def strongest(correlation: FloatArray, count: int) -> IntArray:
    """Positions of the ``count`` columns with the strongest correlation to any other, ascending."""
    reach = np.abs(correlation - np.eye(len(correlation))).max(axis=0)
    return np.sort(np.argsort(-reach, kind="stable")[:count]).astype(np.int64)


def noise_error(fitted: Estimate) -> float:
    """Relative Frobenius error that the privacy noise alone leaves in the matrix, to first order.

    What the matrix leaves out is not in it: the whole error is at least of this size.
    """
    errors = fitted.standard_errors / np.outer(fitted.half_widths, fitted.half_widths)
    return float(np.sqrt((errors**2).sum() / (fitted.scaled**2).sum()))


def standard_units(fitted: Estimate, found: Regression) -> tuple[float, ...]:
    """Factor of each slope that puts it in standard deviations: of outcome per predictor."""
    deviations = np.sqrt(fitted.covariance.diagonal())
    place = {name: index for index, name in enumerate(fitted.columns)}
    whole = deviations[place[found.outcome]]
    return tuple(
        float(deviations[place[slope.columns[0]]] / whole) for slope in found.coefficients.values
    )


# -- files -------------------------------------------------------------------------------------


def matrices(fitted: Estimate) -> dict[str, FloatArray]:
    """Every matrix of an estimate by its name, in the order of ``columns``."""
    return {
        "covariance": fitted.covariance,
        "standard_error": fitted.standard_errors,
        "correlation": fitted.correlation,
        "precision": fitted.precision,
        "partial_correlation": fitted.partial_correlation,
    }


def npz_bytes(fitted: Estimate) -> bytes:
    """All matrices, means and column names as one NPZ without pickles."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        allow_pickle=False,
        columns=np.array(fitted.columns, dtype=np.str_),
        mean=fitted.means,
        mean_standard_error=fitted.mean_errors,
        rows=np.array(fitted.rows),
        state=entry_states(fitted),
        **matrices(fitted),
    )
    return buffer.getvalue()


def parquet_bytes(fitted: Estimate) -> bytes:
    """The upper triangle in long form, one row an entry, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first, second = np.triu_indices(len(fitted.columns))
    names = np.array(fitted.columns, dtype=object)
    states = np.array(STATE_WORDS, dtype=object)[entry_states(fitted)[first, second]]
    columns: dict[str, NDArray[np.generic]] = {
        "column_1": names[first],
        "column_2": names[second],
        **{name: matrix[first, second] for name, matrix in matrices(fitted).items()},
        "state": states,
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def regression_csv(found: Regression) -> bytes:
    """Intercept and slopes with both intervals, one row each."""
    header = (
        *("outcome", "term", "estimate", "privacy_error", "total_error"),
        *("privacy_low", "privacy_high", "total_low", "total_high", "determined", "selected"),
    )
    rows = [
        (
            *(found.outcome, term.columns[0], term.value, term.privacy_error, term.total_error),
            *(*term.privacy, *term.total, term.determined, term.selected),
        )
        for term in (found.intercept, *found.coefficients.values)
    ]
    return csv_table(header, rows)
