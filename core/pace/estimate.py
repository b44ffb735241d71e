"""From a covariance release to matrices: free, deterministic, always positive definite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.moments import FloatArray
from core.pace.auto import visible_edges
from core.pace.baselines import matrix_of
from core.pace.maxent import Completion, complete
from core.pace.measurements import Measurements
from core.pace.release import CovarianceRelease
from core.pace.shrinkage import (
    EIGENVALUE_FLOOR,
    positive_variances,
    shrunk_matrix,
    to_correlation,
)

BoolArray = NDArray[np.bool_]

#: Median noise of an entry, as a correlation, from which a matrix counts as mostly noise.
MOSTLY_NOISE = 0.5
#: A completion of more entries than this takes longer than it helps.
MOST_TARGET_ENTRIES = 1600
#: Standard errors that are computed at once.
CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Estimate:
    """A covariance matrix and what follows from it; every matrix in the order of ``columns``.

    Attributes
    ----------
    columns
        Names, sorted.
    scaled
        W: second moments about the centres in units of the half-widths, positive definite.
    scaled_precision
        K = W⁻¹; exactly 0 off the graph where the matrix is a completion.
    half_widths
        Raw units in one scaled unit.
    means, mean_errors
        Centres in raw units, and their standard deviations (privacy noise only).
    rows
        What sums were divided by.
    measured
        Which entries have a noisy measurement of their own.
    graph
        Which entries the precision matrix was allowed to have.
    scaled_errors
        Privacy noise (standard deviation) of each measured entry, scaled; NaN-free: entries
        without a measurement have the error of the completion, see ``privacy_errors``.
    completion
        The maximum-entropy completion behind it, for methods that complete.
    partial
        The release was cancelled before it was finished.
    """

    columns: tuple[str, ...]
    scaled: FloatArray
    scaled_precision: FloatArray
    half_widths: FloatArray
    means: FloatArray
    mean_errors: FloatArray
    rows: float
    measured: BoolArray
    graph: BoolArray
    entry_sigmas: FloatArray
    completion: Completion | None = None
    partial: bool = False

    @cached_property
    def covariance(self) -> FloatArray:
        """In raw units."""
        matrix: FloatArray = self.scaled * np.outer(self.half_widths, self.half_widths)
        return matrix

    @cached_property
    def correlation(self) -> FloatArray:
        """Unit diagonal, within [-1, 1], symmetric, never NaN."""
        return to_correlation(self.scaled, self.scaled.diagonal())

    @cached_property
    def precision(self) -> FloatArray:
        """Inverse of the covariance, in one over raw units."""
        matrix: FloatArray = self.scaled_precision / np.outer(self.half_widths, self.half_widths)
        return matrix

    @cached_property
    def partial_correlation(self) -> FloatArray:
        """-K_jk / sqrt(K_jj K_kk), unit diagonal."""
        matrix = -to_correlation(self.scaled_precision, self.scaled_precision.diagonal())
        np.fill_diagonal(matrix, 1.0)
        return matrix

    @cached_property
    def standard_errors(self) -> FloatArray:
        """Privacy noise of each entry of ``covariance``, raw units; sampling error is not in it.

        Entries that the matrix follows: of their pooled measurement.  Others, also if they were
        measured and only kept: of the completion, to first order in the noise of the measurements
        that it follows from.
        """
        errors = self.entry_sigmas.copy()
        if self.completion is not None and not self.graph.all():
            errors = np.where(self.graph, errors, completion_errors(self.completion, self.rows))
        matrix: FloatArray = errors * np.outer(self.half_widths, self.half_widths)
        return matrix

    @cached_property
    def noise_level(self) -> float:
        """Median noise of a measured product, in units of a correlation; 0 for one column."""
        products = self.measured & ~np.eye(len(self.columns), dtype=np.bool_)
        if not products.any():
            return 0.0 if len(self.columns) == 1 else float("inf")
        deviations = np.sqrt(self.scaled.diagonal())
        ratios = self.entry_sigmas / np.outer(deviations, deviations)
        return float(np.median(ratios[products]))

    @property
    def mostly_noise(self) -> bool:
        """Whether a typical measured correlation is lost in the noise."""
        return self.noise_level > MOSTLY_NOISE


def estimate(release: CovarianceRelease) -> Estimate:
    """The method's matrix of everything that was measured.

    The same release gives the same bytes; the order of its measurements does not matter.

    Raises
    ------
    EstimationError
        A cancel left no measurement of every column's square.
    """
    return _estimate(release, len(release.draws), len(release.rounds))


def replay(release: CovarianceRelease, upto: int, *, start: Completion | None = None) -> Estimate:
    """The matrix as it stood after ``upto`` rounds of the log; 0 is before the first.

    ``start``, the completion of another round, makes it faster and agrees to the tolerance, but
    not bit by bit.

    Raises
    ------
    EstimationError
        The release has fewer rounds.
    """
    if not 0 <= upto <= len(release.rounds):
        raise EstimationError(
            f"the release has {len(release.rounds)} rounds; choose a number from 0 to that"
        )
    adaptive = len(release.rounds)
    draws = release.rounds[upto].draw if upto < adaptive else len(release.draws)
    return _estimate(release, draws, upto, start)


def replays(release: CovarianceRelease) -> Iterator[Estimate]:
    """The matrix after 0, 1, … rounds."""
    for upto in range(len(release.rounds) + 1):
        yield replay(release, upto)


def scaled_measurements(release: CovarianceRelease, draws: int | None = None) -> Measurements:
    """The first ``draws`` answers (all unless given), pooled, in the unit box and over the rows."""
    stop = len(release.draws) if draws is None else draws
    end = release.draws[stop - 1].stop if stop else 0
    rows = release.rows.value
    return Measurements(
        release.size,
        release.pairs[:end],
        release.sums[:end] / rows,
        (rows / release.sigmas[:end]) ** 2,
    ).pooled()


def _estimate(
    release: CovarianceRelease, draws: int, rounds: int, start: Completion | None = None
) -> Estimate:
    pooled = scaled_measurements(release, draws)
    squares = pooled.pairs[:, 0] == pooled.pairs[:, 1]
    if int(squares.sum()) < release.size:
        raise EstimationError(
            "the release was cancelled before the columns' squares were measured; nothing can be "
            "estimated from it"
        )
    completion = None
    if release.method == "pace" or (release.method == "pace_auto" and _by_rounds(release)):
        completion = complete(_graph_of(release, pooled, rounds), start=start, clip=True)
        scaled, precision = completion.covariance, completion.precision
        graph = completion.measurements.mask
    else:
        scaled = _whole_matrix(release, pooled)
        precision = _inverse(scaled)
        graph = np.abs(precision) > 0
    sigmas = np.zeros((release.size, release.size))
    rows, columns = pooled.pairs[:, 0], pooled.pairs[:, 1]
    sigmas[rows, columns] = sigmas[columns, rows] = pooled.precisions**-0.5
    return Estimate(
        columns=release.columns,
        scaled=scaled,
        scaled_precision=precision,
        half_widths=release.half_widths,
        means=release.means.values,
        mean_errors=release.means.sigmas,
        rows=release.rows.value,
        measured=pooled.mask,
        graph=graph,
        entry_sigmas=sigmas,
        completion=completion,
        partial=release.partial,
    )


def _by_rounds(release: CovarianceRelease) -> bool:
    return release.route == "rounds"


def _graph_of(release: CovarianceRelease, pooled: Measurements, rounds: int) -> Measurements:
    """The measurements that the completion is asked to follow: squares and accepted entries."""
    keep = pooled.pairs[:, 0] == pooled.pairs[:, 1]
    place = {name: index for index, name in enumerate(release.columns)}
    edges = np.zeros((release.size, release.size), dtype=np.bool_)
    for step in release.rounds[:rounds]:
        a, b = place[step.chosen[0]], place[step.chosen[1]]
        edges[a, b] |= step.edge
    if release.draws[0].stage == "triangle":
        first = scaled_measurements(release, 1)
        seen = first.pairs[visible_edges(first)]
        edges[seen[:, 0], seen[:, 1]] = True
    keep |= edges[pooled.pairs[:, 0], pooled.pairs[:, 1]]
    return Measurements(
        release.size, pooled.pairs[keep], pooled.values[keep], pooled.precisions[keep]
    )


def _whole_matrix(release: CovarianceRelease, pooled: Measurements) -> FloatArray:
    """W of the one-shot methods."""
    matrix, sigmas = matrix_of(pooled)
    one_by_one = release.method == "diagonal" or release.route == "diagonal"
    if one_by_one or not np.all(np.isfinite(sigmas)):
        return np.diag(positive_variances(matrix.diagonal().copy(), sigmas.diagonal().copy()))
    if release.method == "ssp_clip_sure":
        return shrunk_matrix(matrix, sigmas)
    if release.method == "pace_auto":
        return shrunk_matrix(matrix, sigmas, target=_target(pooled))
    return clipped_spectrum(matrix, float(release.size))


def _target(pooled: Measurements) -> FloatArray | None:
    """Completion of the entries in plain sight, to shrink the others to; None if too many are."""
    keep = (pooled.pairs[:, 0] == pooled.pairs[:, 1]) | visible_edges(pooled)
    if int(keep.sum()) > MOST_TARGET_ENTRIES:
        return None
    seen = Measurements(
        pooled.size, pooled.pairs[keep], pooled.values[keep], pooled.precisions[keep]
    )
    return complete(seen, clip=True).covariance


def clipped_spectrum(matrix: FloatArray, largest: float) -> FloatArray:
    """The nearest matrix with eigenvalues from 0 (or hardly more) to ``largest``."""
    eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    least = EIGENVALUE_FLOOR * max(min(float(eigenvalues[-1]), largest), EIGENVALUE_FLOOR)
    fitted = (vectors * np.clip(eigenvalues, least, largest)) @ vectors.T
    result: FloatArray = (fitted + fitted.T) / 2
    return result


def _inverse(matrix: FloatArray) -> FloatArray:
    """Inverse by way of the correlation matrix, which is well scaled."""
    deviations = np.sqrt(matrix.diagonal())
    inverse = np.linalg.inv(to_correlation(matrix, matrix.diagonal()))
    result: FloatArray = (inverse + inverse.T) / 2 / np.outer(deviations, deviations)
    return result


def completion_errors(completion: Completion, rows: float) -> FloatArray:
    """First-order standard deviations of all entries of W from the noise of the measurements."""
    from core.pace.sensitivities import GraphSpread

    variances = np.zeros_like(completion.covariance)
    for members in completion.components:
        spread = GraphSpread(completion, np.array(members), rows)
        unit = np.eye(len(members))
        pairs = np.column_stack(np.triu_indices(len(members)))
        for part in np.array_split(pairs, len(pairs) // CHUNK + 1):
            found, _ = spread.bilinear(unit[part[:, 0]], unit[part[:, 1]])
            a, b = spread.nodes[part[:, 0]], spread.nodes[part[:, 1]]
            variances[a, b] = variances[b, a] = found
    errors: FloatArray = np.sqrt(variances)
    return errors
