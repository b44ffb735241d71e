"""The support of noisy moments: which sums of products a table of bounded rows can have.

A vector of sums θ (the number of rows first) is admissible if its moment matrix, linear in θ, is
positive definite and if the sum over the rows of every product of distances to the bounds, such
as (x - l)(u - y), is at least 0.  For two columns this is the exact convex hull of the moments of
rows in the box (Anstreicher and Burer, 2010); for more it contains it.

The noise is independent in the coordinates θ in which the columns were summed.  The support is
described in columns centred and scaled to [-1, 1], whose sums φ are linear in θ: there the matrix
is well conditioned whatever the bounds, and single sums move single entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from core.pumba.draws import FloatArray
from core.pumba.gram_variable import GramVariable
from core.pumba.polynomials import ONE, Monomial, Polynomial, Ring, coefficients

BoolArray = NDArray[np.bool_]

#: A pivot of the scaled moment matrix below this share of the rows counts as singular: rounding
#: decides its sign.
SINGULAR = 1e-12


@dataclass(frozen=True, eq=False)
class Cone:
    """Vectors x (c,) whose matrix is positive definite and whose rows are at least 0.

    Attributes
    ----------
    directions
        (c, d, d): the matrix is the sum of x_c times these.
    rows
        (m, c).
    """

    directions: FloatArray
    rows: FloatArray

    def matrices(self, points: FloatArray) -> FloatArray:
        """Matrices (d, d, R) of points (c, R)."""
        number, size, _ = self.directions.shape
        flat = self.directions.reshape(number, -1).T @ points
        return flat.reshape(size, size, -1)

    def contains(self, points: FloatArray) -> BoolArray:
        """Which points (c, R) lie in the interior; their first coordinate is the row count."""
        inside: BoolArray = (self.rows @ points).min(axis=0) >= 0
        if inside.any():
            candidates = points if inside.all() else points[:, inside]
            inside[inside] = positive_definite(self.matrices(candidates), SINGULAR * candidates[0])
        return inside


@dataclass(frozen=True, eq=False)
class MomentSupport:
    """The support in both kinds of coordinates; c sums, d basis functions.

    Attributes
    ----------
    ring
        Arithmetic in the columns as they were summed.
    coordinates
        Monomials whose sums are θ (single columns with their offsets), and φ for scaled columns;
        the first is (), the row count.
    basis
        Monomials behind the rows of the moment matrix; the first is ().
    raw, scaled
        The support in θ and in φ.
    to_raw, to_scaled
        (c, c): θ = ``to_raw @ φ`` and back.
    scaling
        (d, d): the scaled moment matrix is ``scaling @ A @ scaling.T``.
    moments
        (d, d, c): the moment matrix A in the coordinates of the sums is ``moments @ θ``.
    uniform
        (c,): φ of one row with independent uniform columns, an interior point.
    low, high
        (c,): bounds of θ for one row.
    """

    ring: Ring
    coordinates: tuple[Monomial, ...]
    basis: tuple[Monomial, ...]
    raw: Cone
    scaled: Cone
    to_raw: FloatArray
    to_scaled: FloatArray
    scaling: FloatArray
    moments: FloatArray
    uniform: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def degree(self) -> int:
        """Highest degree of the sums."""
        return len(self.coordinates[-1])

    @property
    def dimension(self) -> int:
        """Size d of the moment matrix."""
        return len(self.basis)


def positive_definite(matrices: FloatArray, tolerance: FloatArray) -> BoolArray:
    """Whether all pivots exceed the tolerance, for symmetric matrices (d, d, R); overwrites them.

    Elimination runs over all R matrices at once; pivots that fail count as infinite, so that the
    arithmetic stays finite.
    """
    size = len(matrices)
    good: BoolArray = np.ones(matrices.shape[2], dtype=bool)
    for j in range(size):
        pivot = matrices[j, j]
        positive = pivot > tolerance
        good &= positive
        if j + 1 == size:
            break
        pivot = np.where(positive, pivot, np.inf)
        for i in range(j + 1, size):
            matrices[i, j + 1 : i + 1] -= (matrices[i, j] / pivot) * matrices[j + 1 : i + 1, j]
    return good


@lru_cache(maxsize=64)
def moment_support(variables: tuple[GramVariable, ...], degree: int = 2) -> MomentSupport:
    """Support of the sums of all monomials up to ``degree``, 2 or 4."""
    ring = Ring(variables)
    scaled_ring = Ring([replace(one, lower=-1.0, upper=1.0) for one in variables])
    halves = [(one.upper - one.lower) / 2 for one in variables]
    middles = [one.lower + half for one, half in zip(variables, halves, strict=True)]
    ends = list(enumerate(zip(middles, halves, strict=True)))
    as_scaled: list[Polynomial] = [{(i,): 1 / h, (): -m / h} for i, (m, h) in ends]
    as_raw: list[Polynomial] = [{(i,): h, (): m} for i, (m, h) in ends]
    sums, basis = ring.monomials(degree), ring.monomials(degree // 2)
    to_scaled = coefficients([ring.substituted(one, as_scaled) for one in sums], sums)
    to_raw = coefficients([scaled_ring.substituted(one, as_raw) for one in sums], sums)
    offsets = np.zeros(len(sums))
    for index, variable in enumerate(variables):
        offsets[sums.index((index,))] = variable.offset
    # Released sums are those of the columns plus so many times the row count.
    to_scaled -= np.outer(to_scaled @ offsets, np.eye(len(sums))[0])
    to_raw += np.outer(offsets, to_raw[0])
    moments = _matrix(ring, basis, sums)
    moments[:, :, 0] -= moments @ offsets
    scaled = Cone(
        _matrix(scaled_ring, basis, sums).transpose(2, 0, 1).copy(),
        coefficients(_distinct(_inequalities(scaled_ring, degree)), sums),
    )
    raw = Cone(np.tensordot(to_scaled.T, scaled.directions, axes=1), scaled.rows @ to_scaled)
    bounds = np.array([ring.interval(monomial) for monomial in sums]) + offsets[:, None]
    support = MomentSupport(
        ring=ring,
        coordinates=sums,
        basis=basis,
        raw=raw,
        scaled=scaled,
        to_raw=to_raw,
        to_scaled=to_scaled,
        scaling=coefficients([ring.substituted(one, as_scaled) for one in basis], basis),
        moments=moments,
        uniform=np.array([_uniform_mean(scaled_ring, monomial) for monomial in sums]),
        low=bounds[:, 0],
        high=bounds[:, 1],
    )
    for cone in (raw, scaled):
        cone.directions.setflags(write=False)
        cone.rows.setflags(write=False)
    for array in (to_raw, to_scaled, support.scaling, support.moments, support.uniform):
        array.setflags(write=False)
    return support


def _matrix(ring: Ring, basis: tuple[Monomial, ...], sums: tuple[Monomial, ...]) -> FloatArray:
    """Moment matrix (d, d, c) as a linear function of the sums."""
    lines = [[ring.reduced(tuple(sorted(a + b))) for b in basis] for a in basis]
    return np.array([coefficients(line, sums) for line in lines])


def _uniform_mean(ring: Ring, monomial: Monomial) -> float:
    """Mean of a free monomial for independent uniform columns on [-1, 1].

    Indicators that exclude one another, and the state in which none is on, are equally probable.
    """
    mean = 1.0
    for index in set(monomial):
        power = monomial.count(index)
        if ring.variables[index].indicator:
            mean *= 2.0 / (1 + len(ring.group(index))) - 1.0
        else:
            mean *= 0.0 if power % 2 else 1.0 / (power + 1)
    return mean


def _inequalities(ring: Ring, degree: int) -> list[Polynomial]:
    """Polynomials that are at least 0 on [-1, 1]: products of distances to the bounds."""
    ends: list[tuple[Polynomial, Polynomial]] = [
        ({(index,): 1.0, (): 1.0}, {(index,): -1.0, (): 1.0})
        for index in range(len(ring.variables))
    ]
    factors = [factor for pair in ends for factor in pair]
    if degree > 2:
        # Factors of one column add to 2, so products of fewer factors are sums of these.
        return [ring.product(*chosen) for chosen in combinations_with_replacement(factors, degree)]
    found = [*factors, *(ring.product(*pair) for pair in ends)]
    for first, second in combinations(ends, 2):
        found += [ring.product(a, b) for a, b in product(first, second)]
    return found + _group_inequalities(ring, ends)


def _group_inequalities(ring: Ring, ends: list[tuple[Polynomial, Polynomial]]) -> list[Polynomial]:
    """At most one of exclusive indicators is on: alone, and times the other columns' distances."""
    found: list[Polynomial] = []
    groups = {ring.group(index) for index in range(len(ends))}
    for group in sorted(one for one in groups if len(one) > 1):
        none = dict(ONE)
        for index in group:
            none[()] -= 0.5
            none[(index,)] = -0.5
        found.append(none)
        for index, pair in enumerate(ends):
            if index not in group:
                found += [ring.product(none, factor) for factor in pair]
    return found


def _distinct(polynomials: list[Polynomial]) -> list[Polynomial]:
    """Without repeats and without those that the ties make 0."""
    seen = {tuple(sorted(one.items())): one for one in polynomials if one}
    return list(seen.values())
