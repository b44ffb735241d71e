"""How far symmetric matrices can move along a direction and stay positive definite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.pumba.draws import FloatArray

IntArray = NDArray[np.intp]


class Slice(Protocol):
    """Admissible steps of K matrices along one direction, given their inverses."""

    @property
    def low(self) -> FloatArray:
        """Lower ends (K,)."""
        ...

    @property
    def high(self) -> FloatArray:
        """Upper ends (K,)."""
        ...

    def take(self, inverse: FloatArray, step: FloatArray, limit: FloatArray) -> FloatArray:
        """Write the inverses after the steps (K,) into ``inverse`` (d, d, K); return the steps.

        Steps after which an inverse has a diagonal entry above ``limit`` (K,) are not taken.
        """
        ...


class Direction(Protocol):
    """A symmetric direction E."""

    def at(self, inverse: FloatArray) -> Slice:
        """Slice of the matrices whose inverses (d, d, K) are given."""
        ...


def direction(matrix: FloatArray) -> Direction:
    """The cheapest form of a symmetric direction E (d, d).

    Directions with at most one positive and one negative eigenvalue are u v' + v u', for which
    the interval and the update of the inverse are closed forms in O(d²).
    """
    values, vectors = np.linalg.eigh(matrix)
    largest = float(np.abs(values).max())
    positive = np.flatnonzero(values > 1e-12 * largest)
    negative = np.flatnonzero(values < -1e-12 * largest)
    if positive.size > 1 or negative.size > 1:
        return _GeneralDirection(matrix)
    zero = np.zeros(len(matrix))
    up = np.sqrt(values[positive[0]] / 2) * vectors[:, positive[0]] if positive.size else zero
    down = np.sqrt(-values[negative[0]] / 2) * vectors[:, negative[0]] if negative.size else zero
    return _PairDirection(_sparse(up + down), _sparse(up - down))


def _sparse(vector: FloatArray) -> tuple[IntArray, FloatArray]:
    """Places and values of the entries that are not rounding."""
    places = np.flatnonzero(np.abs(vector) > 1e-12 * np.abs(vector).max())
    return places, vector[places]


@dataclass(frozen=True, eq=False)
class _PairDirection:
    """E = u v' + v u'."""

    first: tuple[IntArray, FloatArray]
    second: tuple[IntArray, FloatArray]

    def at(self, inverse: FloatArray) -> _PairSlice:
        """P E has the eigenvalues b ± sqrt(a c), with a = u'Pu, b = u'Pv, c = v'Pv, and 0."""
        left = _times(inverse, self.first)
        right = _times(inverse, self.second)
        a = _inner(self.first, left)
        b = _inner(self.first, right)
        c = _inner(self.second, right)
        root = np.sqrt(np.maximum(a * c, b * b))
        with np.errstate(divide="ignore"):
            return _PairSlice(left, right, a, b, c, -1.0 / (root + b), 1.0 / (root - b))


@dataclass(frozen=True, eq=False)
class _PairSlice:
    left: FloatArray
    right: FloatArray
    a: FloatArray
    b: FloatArray
    c: FloatArray
    low: FloatArray
    high: FloatArray

    def take(self, inverse: FloatArray, step: FloatArray, limit: FloatArray) -> FloatArray:
        """Woodbury's identity for two rank-one terms."""
        shifted = 1.0 + step * self.b
        # det(A + t E) / det(A) from its zeros: exact where the difference of squares cancels.
        ratio = (1.0 - step / self.low) * (1.0 - step / self.high)
        # t² c Pu - t (1 + t b) Pv multiplies (Pu)', and symmetrically for (Pv)'.
        cross = -step * shifted / ratio
        first = (step**2 * self.c / ratio) * self.left + cross * self.right
        second = cross * self.left + (step**2 * self.a / ratio) * self.right
        every = np.arange(len(inverse))
        diagonal = inverse[every, every] + first * self.left + second * self.right
        taken = _within(diagonal, limit)
        if not taken.all():
            first, second = first * taken, second * taken
        inverse += first[:, None] * self.left[None]
        inverse += second[:, None] * self.right[None]
        return step * taken


def _within(diagonal: FloatArray, limit: FloatArray) -> NDArray[np.bool_]:
    """Which chains' diagonals (d, K) are positive and at most their limits (K,)."""
    within: NDArray[np.bool_] = np.all((diagonal > 0) & (diagonal <= limit), axis=0)
    return within


def _times(inverse: FloatArray, vector: tuple[IntArray, FloatArray]) -> FloatArray:
    """P u for all chains, (d, K)."""
    places, values = vector
    result: FloatArray = inverse[places[0]] * values[0]
    for place, value in zip(places[1:], values[1:], strict=True):
        result += inverse[place] * value
    return result


def _inner(vector: tuple[IntArray, FloatArray], product: FloatArray) -> FloatArray:
    places, values = vector
    result: FloatArray = values @ product[places]
    return result


def _root(matrices: FloatArray) -> FloatArray:
    """L with L L' = P for (K, d, d); a P that rounding left barely indefinite loses that part.

    What the slice then allows too much is refused when the step is taken.
    """
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((matrices + np.swapaxes(matrices, 1, 2)) / 2)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


@dataclass(frozen=True, eq=False)
class _GeneralDirection:
    """E of any rank."""

    matrix: FloatArray

    def at(self, inverse: FloatArray) -> _GeneralSlice:
        """Extreme eigenvalues of P E, as those of L'E L with P = L L'."""
        factor = _root(np.moveaxis(inverse, 2, 0))
        values = np.linalg.eigvalsh(np.swapaxes(factor, 1, 2) @ self.matrix @ factor)
        with np.errstate(divide="ignore"):
            low = -1.0 / np.maximum(values[:, -1], 0.0)
            high = 1.0 / np.maximum(-values[:, 0], 0.0)
        return _GeneralSlice(self.matrix, low, high)


@dataclass(frozen=True, eq=False)
class _GeneralSlice:
    matrix: FloatArray
    low: FloatArray
    high: FloatArray

    def take(self, inverse: FloatArray, step: FloatArray, limit: FloatArray) -> FloatArray:
        """(A + t E)⁻¹ = (I + t P E)⁻¹ P."""
        before = np.moveaxis(inverse, 2, 0)
        moved = np.eye(len(self.matrix)) + step[:, None, None] * (before @ self.matrix)
        solved = np.linalg.solve(moved, before)
        after: FloatArray = np.moveaxis((solved + np.swapaxes(solved, 1, 2)) / 2, 0, 2)
        every = np.arange(len(inverse))
        taken = _within(after[every, every], limit)
        np.copyto(inverse, after, where=taken)
        return step * taken
