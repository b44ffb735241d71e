"""Noisy second moments, one an entry of the matrix: what the completion starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import EstimationError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy entries of a symmetric matrix of second moments, in units of the scaled box.

    Attributes
    ----------
    size
        Number d of columns.
    pairs
        (m, 2): row and column of each entry, the smaller index first (swapped where needed).  The
        same entry may occur several times.
    values
        (m,): noisy entries of X'X/n.
    precisions
        (m,): one over the variance of each one's noise.

    Raises
    ------
    EstimationError
        For shapes that do not belong together, indices outside the matrix, or numbers that are
        not finite (precisions: above 0).
    """

    size: int
    pairs: IntArray
    values: FloatArray
    precisions: FloatArray

    def __post_init__(self) -> None:
        """Copy, order the indices of each pair, and refuse what is no measurement."""
        pairs = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        values = np.array(self.values, dtype=np.float64).reshape(-1)
        precisions = np.array(self.precisions, dtype=np.float64).reshape(-1)
        if self.size < 1:
            raise EstimationError("a matrix needs at least one column")
        if not len(pairs) == len(values) == len(precisions):
            raise EstimationError("each measured entry needs one pair, one value and one precision")
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < self.size):
            raise EstimationError("a measured entry lies outside the matrix")
        if not np.all(np.isfinite(values)):
            raise EstimationError("a measured entry is no finite number")
        if not (np.all(np.isfinite(precisions)) and np.all(precisions > 0)):
            raise EstimationError("the precision of a measured entry must be finite and above 0")
        for name, array in (("pairs", np.sort(pairs)), ("values", values)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        precisions.setflags(write=False)
        object.__setattr__(self, "precisions", precisions)

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def diagonal(cls, values: ArrayLike, precisions: ArrayLike) -> Measurements:
        """All squares of ``len(values)`` columns; one precision, or one each."""
        entries = np.array(values, dtype=np.float64).reshape(-1)
        index = np.arange(len(entries))
        return cls(
            len(entries),
            np.column_stack([index, index]),
            entries,
            np.broadcast_to(np.asarray(precisions, dtype=np.float64), entries.shape),
        )

    @classmethod
    def triangle(cls, matrix: ArrayLike, precisions: ArrayLike) -> Measurements:
        """All entries of a symmetric matrix; precisions as a matrix or one number."""
        entries = np.array(matrix, dtype=np.float64)
        if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
            raise EstimationError("the triangle of measurements must come from a square matrix")
        weights = np.broadcast_to(np.asarray(precisions, dtype=np.float64), entries.shape)
        rows, columns = np.triu_indices(len(entries))
        return cls(
            len(entries),
            np.column_stack([rows, columns]),
            entries[rows, columns],
            weights[rows, columns],
        )

    def joined(self, *others: Measurements) -> Measurements:
        """These measurements and those of the same columns in ``others``."""
        parts = (self, *others)
        if len({part.size for part in parts}) != 1:
            raise EstimationError("measurements of matrices of different sizes cannot be joined")
        return Measurements(
            self.size,
            np.concatenate([part.pairs for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.precisions for part in parts]),
        )

    def pooled(self) -> Measurements:
        """One measurement an entry, repeats weighted by precision; sorted by row and column.

        The result is the same, bit by bit, in whatever order the measurements are given.
        """
        order = np.lexsort((self.precisions, self.values, self.pairs[:, 1], self.pairs[:, 0]))
        pairs = self.pairs[order]
        starts = np.flatnonzero(np.r_[True, np.any(pairs[1:] != pairs[:-1], axis=1)][: len(pairs)])
        if len(starts) == len(pairs):
            return Measurements(self.size, pairs, self.values[order], self.precisions[order])
        weights = self.precisions[order]
        sums = np.add.reduceat(weights, starts)
        first = self.values[order][starts]
        # Relative to the first of its kind: equal repeats stay exactly what they are.
        lengths = np.diff(np.r_[starts, len(pairs)])
        deviations = self.values[order] - np.repeat(first, lengths)
        shares = weights / np.repeat(sums, lengths)
        values = first + np.add.reduceat(shares * deviations, starts)
        return Measurements(self.size, pairs[starts], values, sums)

    def clipped(self) -> Measurements:
        """Values cut to what the unit box allows: squares to [0, 1], products to [-1, 1].

        Pool first: the noise of a clipped value is no longer centred.
        """
        diagonal = self.pairs[:, 0] == self.pairs[:, 1]
        values = np.clip(self.values, np.where(diagonal, 0.0, -1.0), 1.0)
        return Measurements(self.size, self.pairs, values, self.precisions)

    @property
    def mask(self) -> BoolArray:
        """(d, d): which entries were measured."""
        mask = np.zeros((self.size, self.size), dtype=np.bool_)
        mask[self.pairs[:, 0], self.pairs[:, 1]] = True
        mask[self.pairs[:, 1], self.pairs[:, 0]] = True
        return mask
