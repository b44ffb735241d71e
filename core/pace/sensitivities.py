"""How noise moves the entries of W and K: first-order standard errors of what follows from them.

A quantity is given by its gradient.  Two sources of error are kept apart: the privacy noise of
the measurements, and the sampling error of Gaussian rows (Isserlis: Cov(S_ab, S_cd) =
(W_ac W_bd + W_ad W_bc)/n), which a census does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from core.blas import one_blas_thread
from core.errors import EstimationError
from core.pace.dual import Problem
from core.pace.maxent import Completion

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: More measured entries than this in one component are too many to factorise their Hessian.
MAXIMUM_ENTRIES = 6000
#: Quantities whose gradients are held at once.
CHUNK = 1024


class Spread(Protocol):
    """Variances of linear functions of W's columns ``nodes``: ``left[i]' dW right[i]``."""

    @property
    def nodes(self) -> IntArray:
        """Columns of the matrix that the vectors below are about."""
        ...

    def bilinear(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Privacy and sampling variances, (q,) each, of (q, nodes) pairs of vectors."""
        ...


class GraphSpread:
    """Variances where W is the completion of measured entries, for one component.

    From the stationarity of the dual, dK = -H⁻¹ diag(2c) dy on the measured entries.  The rows'
    own sampling error enters through the same dy: diag(2c) Cov(S) diag(2c) = 2 (H - D)/n with the
    ridge D = diag((2c)² τ).

    Parameters
    ----------
    completion
        W, K, the measurements and their ridges.
    nodes
        One component, ascending.
    rows
        Number n of rows behind the moments.

    Raises
    ------
    EstimationError
        For a component with more than ``MAXIMUM_ENTRIES`` measured entries.
    """

    def __init__(self, completion: Completion, nodes: IntArray, rows: float) -> None:
        pairs = completion.measurements.pairs
        inside = np.flatnonzero(np.isin(pairs[:, 0], nodes))
        if len(inside) > MAXIMUM_ENTRIES:
            raise EstimationError(
                f"standard errors need at most {MAXIMUM_ENTRIES} measured entries among connected "
                "columns; ask for fewer columns"
            )
        self.nodes = nodes
        self._sample = rows
        # In units of the fitted variances, as the completion is solved.
        block = completion.covariance[np.ix_(nodes, nodes)]
        self._scale = np.sqrt(block.diagonal())
        self._covariance = block / np.outer(self._scale, self._scale)
        local = np.searchsorted(nodes, pairs[inside])
        units = self._scale[local[:, 0]] * self._scale[local[:, 1]]
        self._problem = Problem(
            len(nodes),
            local[:, 0],
            local[:, 1],
            completion.measurements.values[inside] / units,
            completion.ridge[inside] / units**2,
        )
        self._noise = 1.0 / (completion.measurements.precisions[inside] * units**2)
        with one_blas_thread():
            hessian = self._problem.hessian(self._covariance)
            self._factor, failed = lapack.dpotrf(hessian, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise EstimationError(
                "the measured entries determine the matrix too badly for standard errors; "
                "spend more budget or take fewer columns"
            )

    def variances(self, gradients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Privacy and sampling variances of quantities with these gradients in K, (q, m)."""
        doubled, ridge = self._problem.doubled, self._problem.ridge
        with one_blas_thread():
            solved = lapack.dpotrs(self._factor, gradients.T, lower=1)[0].T
        weighted = (solved * doubled) ** 2
        privacy = weighted @ self._noise
        inner = np.einsum("qi,qi->q", solved, gradients) - weighted @ ridge
        return privacy, np.maximum(2.0 / self._sample * inner, 0.0)

    def bilinear(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As in :class:`Spread`: dW = -W dK W."""
        first = (left * self._scale) @ self._covariance
        second = (right * self._scale) @ self._covariance
        return self.variances(self._in_precision(first, second))

    def partial(self, pairs: IntArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances of the partial correlations of pairs of positions in ``nodes``.

        ``precision`` is K, of the whole matrix.
        """
        diagonal = precision.diagonal()[self.nodes]
        root = np.sqrt(diagonal) * self._scale  # of K's diagonal in scaled units
        block = precision[np.ix_(self.nodes, self.nodes)] * np.outer(self._scale, self._scale)
        vectors = np.diag(1.0 / root)
        # dr = -p' dK q - r/2 (p' dK p + q' dK q), p and q unit vectors over the roots.
        return self._ratios(vectors, -block / np.outer(root, root), 0.5, pairs)

    def correlations(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Variances of the correlations of pairs of positions in ``nodes``."""
        # The same with rows of W and the other sign: dW = -W dK W.
        return self._ratios(self._covariance, self._covariance, -0.5, pairs)

    def _ratios(
        self, vectors: FloatArray, values: FloatArray, share: float, pairs: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Variances of -p' dK q - share * value (p' dK p + q' dK q), p and q among vectors."""
        variances = np.empty((2, len(pairs)))
        for part in _chunks(len(pairs)):
            a, b = pairs[part, 0], pairs[part, 1]
            half = share * values[a, b][:, None]
            gradients = self._in_precision(vectors[a], vectors[b])
            gradients += half * self._in_precision(vectors[a], vectors[a])
            gradients += half * self._in_precision(vectors[b], vectors[b])
            variances[:, part] = self.variances(gradients)
        return variances[0], variances[1]

    def _in_precision(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Gradients of -left' dK right in the measured entries of K."""
        rows, columns = self._problem.rows, self._problem.columns
        product = left[:, rows] * right[:, columns] + left[:, columns] * right[:, rows]
        product *= -0.5 * self._problem.doubled
        return product


class WholeSpread:
    """Variances where every entry was measured and W follows all of them: dW = dY.

    Shrinkage and projection are not in it; they make errors smaller.

    Parameters
    ----------
    covariance
        W.
    sigmas
        Standard deviation of each entry's noise, (d, d).
    rows
        Number n of rows behind the moments.
    """

    def __init__(self, covariance: FloatArray, sigmas: FloatArray, rows: float) -> None:
        self.nodes = np.arange(len(covariance))
        self._sample = rows
        self._scale = np.sqrt(covariance.diagonal())
        unit = np.outer(self._scale, self._scale)
        self._covariance = covariance / unit
        self._noise = (sigmas / unit) ** 2
        # Σ over a <= b of v (x_a y_b + x_b y_a)², and x_a y_a on the diagonal, as 1/2 of a sum
        # over all a, b: there the diagonal would count 2 (x_a y_a)².
        self._noise.flat[:: len(covariance) + 1] /= 2

    def bilinear(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As in :class:`Spread`."""
        x, y, W, V = left * self._scale, right * self._scale, self._covariance, self._noise
        with one_blas_thread():
            crossed = x * y
            privacy = _form(x**2, V, y**2) + _form(crossed, V, crossed)
            inner = _form(x, W, x) * _form(y, W, y) + _form(x, W, y) ** 2
        return privacy, inner / self._sample

    def partial(self, pairs: IntArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances of partial correlations; ``precision`` is K."""
        V = self._noise
        root = np.sqrt(precision.diagonal())
        r = -precision[pairs[:, 0], pairs[:, 1]] / (root[pairs[:, 0]] * root[pairs[:, 1]])
        # dr = p' dY q + r/2 (p' dY p + q' dY q), with p and q rows of K over the roots.
        vectors = precision / root[:, None] * self._scale
        squares = vectors**2
        privacy = np.empty(len(pairs))
        with one_blas_thread():
            around = squares @ V
            both = around @ squares.T
            for part in _chunks(len(pairs)):
                a, b, s = pairs[part, 0], pairs[part, 1], r[part]
                crossed = vectors[a] * vectors[b]
                mixed = _form(crossed, V, crossed)
                lean = np.einsum("qi,qi->q", crossed, around[a] + around[b])
                own = 0.5 * (both[a, a] + both[b, b])
                privacy[part] = both[a, b] + mixed + s**2 * (own + mixed) + 2 * s * lean
        return np.maximum(privacy, 0.0), (1 - r**2) ** 2 / self._sample

    def correlations(self, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Variances of correlations."""
        a, b = pairs[:, 0], pairs[:, 1]
        W, V = self._covariance, self._noise
        r = W[a, b]
        privacy = V[a, b] + r**2 / 2 * (V[a, a] + V[b, b])
        return privacy, (1 - r**2) ** 2 / self._sample


def _chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, CHUNK):
        yield slice(start, start + CHUNK)


def _form(left: FloatArray, matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Row by row left' matrix right."""
    result: FloatArray = np.einsum("qi,qi->q", left @ matrix, right)
    return result
