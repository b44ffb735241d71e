"""Polynomials in the columns of a table, modulo what indicators imply.

An indicator with values l and u satisfies x² = (l + u) x - l u; two that exclude one another
satisfy (x - l)(y - l') = 0.  Every polynomial has one form in the monomials that remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np

from core.pumba.draws import FloatArray
from core.pumba.gram_variable import GramVariable

Monomial = tuple[int, ...]  #: positions of the factors, sorted; () is the constant
Polynomial = Mapping[Monomial, float]

ONE: Polynomial = {(): 1.0}
#: Share of its terms' size below which a coefficient is rounding.
ROUNDING = 1e-13


class Ring:
    """Arithmetic for given columns."""

    def __init__(self, variables: Sequence[GramVariable]) -> None:
        self.variables = tuple(variables)

    def monomials(self, degree: int) -> tuple[Monomial, ...]:
        """Monomials of at most this degree that indicators leave free, the constant first."""
        places = range(len(self.variables))
        return tuple(
            monomial
            for power in range(degree + 1)
            for monomial in combinations_with_replacement(places, power)
            if self.reduced(monomial) == {monomial: 1.0}
        )

    def product(self, *factors: Polynomial) -> Polynomial:
        """Product in reduced form; coefficients that cancel are left out."""
        result = ONE
        for factor in factors:
            result = self._times(result, factor)
        return result

    def substituted(self, monomial: Monomial, columns: Sequence[Polynomial]) -> Polynomial:
        """The monomial with each column replaced by a polynomial of this ring."""
        return self.product(*(columns[index] for index in monomial))

    def reduced(self, monomial: Monomial) -> Polynomial:
        """A monomial in terms of the free ones."""
        for position, index in enumerate(monomial):
            for other in monomial[position + 1 :]:
                terms = self._relation(index, other)
                if terms is not None:
                    rest = list(monomial)
                    rest.remove(index)
                    rest.remove(other)
                    return self._times(terms, {tuple(rest): 1.0})
        return {monomial: 1.0}

    def group(self, index: int) -> tuple[int, ...]:
        """Indicators that exclude this one, itself included."""
        name = self.variables[index].exclusive
        if name is None:
            return (index,)
        return tuple(i for i, one in enumerate(self.variables) if one.exclusive == name)

    def interval(self, monomial: Monomial) -> tuple[float, float]:
        """Least and largest value of a monomial on the box."""
        low = high = 1.0
        for index in sorted(set(monomial)):
            power = monomial.count(index)
            variable = self.variables[index]
            ends = [variable.lower**power, variable.upper**power]
            if power % 2 == 0 and variable.lower < 0 < variable.upper and not variable.indicator:
                ends.append(0.0)
            corners = [a * b for a in (low, high) for b in (min(ends), max(ends))]
            low, high = min(corners), max(corners)
        return low, high

    def _relation(self, first: int, second: int) -> Polynomial | None:
        """What the product of two columns equals, if indicators tie it."""
        one, other = self.variables[first], self.variables[second]
        if not one.indicator:
            return None
        if first == second:
            return {(first,): one.lower + one.upper, (): -one.lower * one.upper}
        if one.exclusive is not None and one.exclusive == other.exclusive:
            return {(second,): one.lower, (first,): other.lower, (): -one.lower * other.lower}
        return None

    def _times(self, first: Polynomial, second: Polynomial) -> Polynomial:
        total: dict[Monomial, float] = {}
        size: dict[Monomial, float] = {}
        for a, left in first.items():
            for b, right in second.items():
                joined = tuple(sorted(a + b))
                free = self.reduced(joined) if a and b else {joined: 1.0}
                for monomial, factor in free.items():
                    term = left * right * factor
                    total[monomial] = total.get(monomial, 0.0) + term
                    size[monomial] = size.get(monomial, 0.0) + abs(term)
        return {m: value for m, value in total.items() if abs(value) > ROUNDING * size[m]}


def coefficients(polynomials: Sequence[Polynomial], monomials: Sequence[Monomial]) -> FloatArray:
    """Polynomials as rows over the monomials."""
    place = {monomial: index for index, monomial in enumerate(monomials)}
    rows = np.zeros((len(polynomials), len(monomials)))
    for row, polynomial in zip(rows, polynomials, strict=True):
        for monomial, factor in polynomial.items():
            row[place[monomial]] = factor
    return rows
