"""Exact minimisation over one measured entry and its two squares, everything else held fixed.

That changes K in one 2×2 block B, so W changes by a matrix of rank 2 (Woodbury).  With the rest
fixed, -log|K| depends on K_B through log|K_B - R|, where K_B - R is the inverse of W_B: what is
left is a completion of two columns whose values have moved by 2cτR.  It is one step of iterative
proportional scaling, with a ridge.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

FloatArray = NDArray[np.float64]
#: A symmetric 2×2 matrix: first square, product, second square.
Block = tuple[float, float, float]

MAXIMUM_STEPS = 200
#: On λ² of a block; the step that meets it is still taken.
BLOCK_TOLERANCE = 1e-12


def one_column(value: float, ridge: float) -> float:
    """W of one column on its own, (y + sqrt(y² + 4τ))/2, without cancellation.

    >>> one_column(3.0, 4.0), one_column(-3.0, 4.0)
    (4.0, 1.0)
    """
    root = math.hypot(value, 2 * math.sqrt(ridge))
    return (value + root) / 2 if value >= 0 else 2 * ridge / (root - value)


def two_columns(values: Block, ridge: Block, start: Block) -> Block | None:
    """K of two columns on their own by damped Newton in three unknowns; None if that fails.

    Parameters
    ----------
    values, ridge
        y and τ of the first square, the product and the second square, in any units.
    start
        A positive definite K.
    """
    (ya, yb, yc), (ta, tb, tc), (ka, kb, kc) = values, ridge, start
    for _ in range(MAXIMUM_STEPS):
        determinant = ka * kc - kb * kb
        if not (determinant > 0 and ka > 0):
            return None
        wa, wb, wc = kc / determinant, -kb / determinant, ka / determinant
        ga, gb, gc = ya - wa + ta * ka, 2 * (yb - wb + 2 * tb * kb), yc - wc + tc * kc
        # Cholesky factor of the Hessian, written out.
        laa = math.sqrt(wa * wa + ta)
        lba, lca = 2 * wa * wb / laa, wb * wb / laa
        rest = 2 * (wa * wc + wb * wb) + 4 * tb - lba * lba
        if not rest > 0:
            return None
        lbb = math.sqrt(rest)
        lcb = (2 * wb * wc - lca * lba) / lbb
        rest = wc * wc + tc - lca * lca - lcb * lcb
        if not rest > 0:
            return None
        lcc = math.sqrt(rest)
        ua = -ga / laa
        ub = (-gb - lba * ua) / lbb
        uc = (-gc - lca * ua - lcb * ub) / lcc
        sc = uc / lcc
        sb = (ub - lcb * sc) / lbb
        sa = (ua - lba * sb - lca * sc) / laa
        decrement = ua * ua + ub * ub + uc * uc
        # Self-concordance: this length stays positive definite and descends without a search.
        length = 1.0 if decrement < 1 / 16 else 1 / (1 + math.sqrt(decrement))
        ka, kb, kc = ka + length * sa, kb + length * sb, kc + length * sc
        if decrement <= BLOCK_TOLERANCE:
            return ka, kb, kc
    return None


def one_column_change(covariance: float, precision: float, value: float, ridge: float) -> float:
    """How much K_jj must grow, everything else fixed, given W_jj and K_jj."""
    own = 1 / covariance
    rest = precision - own
    return 1 / one_column(value + ridge * rest, ridge) - own


def block_change(covariance: Block, precision: Block, values: Block, ridge: Block) -> Block | None:
    """How much a 2×2 block of K must grow, everything else fixed; None if that fails.

    Parameters
    ----------
    covariance, precision
        The blocks of W and K as they are.
    values, ridge
        y and τ of the block's entries.
    """
    a, b = math.sqrt(covariance[0]), math.sqrt(covariance[2])
    units = (a * a, a * b, b * b)
    correlation = covariance[1] / units[1]
    determinant = (1 - correlation) * (1 + correlation)
    if not determinant > 0:
        return None
    own = (1 / determinant, -correlation / determinant, 1 / determinant)
    doubled = (1.0, 2.0, 1.0)
    scaled = tuple(t / unit**2 for t, unit in zip(ridge, units, strict=True))
    moved = tuple(
        y / unit + c * t * (k * unit - m)
        for y, unit, c, t, k, m in zip(values, units, doubled, scaled, precision, own, strict=True)
    )
    best = two_columns(cast(Block, moved), cast(Block, scaled), own)
    if best is None:
        return None
    change = tuple((m - o) / unit for m, o, unit in zip(best, own, units, strict=True))
    return cast(Block, change)


def add_to_inverse(covariance: FloatArray, first: int, second: int, change: Block) -> bool:
    """Update W in place after K grew by ``change`` at two rows and columns.

    Returns False, with W as it was, where the changed K is numerically singular.

    Parameters
    ----------
    covariance
        C-contiguous and symmetric.
    """
    waa, wab, wbb = covariance[first, first], covariance[first, second], covariance[second, second]
    da, db, dc = change
    # G = D (I + W_B D)⁻¹ is symmetric, W⁺ = W - W_:B G W_B:
    paa, pab = 1 + waa * da + wab * db, waa * db + wab * dc
    pba, pbb = wab * da + wbb * db, 1 + wab * db + wbb * dc
    determinant = paa * pbb - pab * pba
    if not (determinant > 0 and math.isfinite(determinant)):
        return False
    gaa, gab = (da * pbb - db * pba) / determinant, (db * paa - da * pab) / determinant
    gbb = (dc * paa - db * pab) / determinant
    columns = covariance[:, (first, second)]
    weighted = columns @ np.array([[gaa, gab], [gab, gbb]])
    blas.dgemm(-1.0, weighted, columns, beta=1.0, c=covariance.T, trans_b=True, overwrite_c=True)
    return True


def add_square_to_inverse(covariance: FloatArray, index: int, change: float) -> bool:
    """Update W in place after K_jj grew by ``change``; False, and untouched, where it cannot."""
    pivot = 1 + change * covariance[index, index]
    if not (pivot > 0 and math.isfinite(pivot)):
        return False
    column = covariance[:, index].copy()
    blas.dger(-change / pivot, column, column, a=covariance.T, overwrite_a=True)
    return True
