"""The dual of the maximum-entropy completion, for one component.

Over symmetric K that vanish off the measured entries (``core.pace.maxent`` states the primal)

    g(K) = -log|K| + tr(K Y) + Σ_j τ_jj/2 K_jj² + Σ_{j<k} 2 τ_jk K_jk²

With c = 1/2 on the diagonal and 1 off it, and W = K⁻¹, gradient and Hessian are

    g_i  = 2c_i (y_i - W_i + 2c_i τ_i K_i)
    H_ij = 2 c_i c_j (W_ac W_bd + W_ad W_bc) + [i=j] (2c_i)² τ_i,    i = (a, b), j = (c, d)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """One component: nodes 0..size-1, measured entries (all diagonal ones among them).

    Attributes
    ----------
    size
        Number of nodes.
    rows, columns
        (m,): the entries, ``rows <= columns``.
    values
        (m,): y.
    ridge
        (m,): τ, above 0.
    """

    size: int
    rows: IntArray
    columns: IntArray
    values: FloatArray
    ridge: FloatArray

    @cached_property
    def doubled(self) -> FloatArray:
        """2c: 1 on the diagonal, 2 off it."""
        return np.where(self.rows == self.columns, 1.0, 2.0)

    def with_ridge(self, ridge: FloatArray) -> Problem:
        """The same measurements with other ridges."""
        return Problem(self.size, self.rows, self.columns, self.values, ridge)

    def matrix(self, entries: FloatArray) -> FloatArray:
        """Symmetric matrix with ``entries`` at the measured places and zeros elsewhere."""
        full = np.zeros((self.size, self.size))
        full[self.rows, self.columns] = entries
        full[self.columns, self.rows] = entries
        return full

    def objective(self, entries: FloatArray, log_determinant: float) -> float:
        """The dual g at the K with these measured entries and log|K|."""
        linear = self.values + 0.5 * self.doubled * self.ridge * entries
        return float(-log_determinant + (self.doubled * entries) @ linear)

    def gradient(self, entries: FloatArray, covariance: FloatArray) -> FloatArray:
        """(m,): first derivatives of g."""
        fitted = covariance[self.rows, self.columns]
        gradient: FloatArray = self.doubled * (
            self.values - fitted + self.doubled * self.ridge * entries
        )
        return gradient

    def hessian(self, covariance: FloatArray) -> FloatArray:
        """(m, m): second derivatives of g where K⁻¹ is ``covariance``."""
        by_row, by_column = covariance[self.rows], covariance[self.columns]
        crossed = by_row.take(self.columns, axis=1)
        hessian: FloatArray = by_row.take(self.rows, axis=1)
        hessian *= by_column.take(self.columns, axis=1)
        crossed *= by_column.take(self.rows, axis=1)
        hessian += crossed
        hessian *= self.doubled[:, None]
        hessian *= 0.5 * self.doubled
        hessian.flat[:: len(self.rows) + 1] += self.doubled**2 * self.ridge
        return hessian

    def hessian_product(self, covariance: FloatArray, direction: FloatArray) -> FloatArray:
        """H v without H: 2c (W V W) at the measured entries, plus the ridge."""
        moved = (covariance @ self.matrix(direction) @ covariance)[self.rows, self.columns]
        product: FloatArray = self.doubled * (moved + self.doubled * self.ridge * direction)
        return product
