"""Which sums a question needs, and into which draws they may be put.

Sums of one degree share a draw and its noise.  Under ``replace_one`` a draw of mixed degree is an
alternative: sums and sums of squares cannot all change most at once, so together they cost less.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.moments import MomentFrame, MomentRequest, Monomial
from core.provenance import Relation
from core.pumba.specification import AnalysisKind, AnalysisSpec

#: Draws that can be put together.
JOINT_PARTS = ("count", "sums", "products")
#: How each draw is called in words.
DRAW_WORDS = {
    "table": "cells of the table",
    "count": "counts of complete rows",
    "sums": "sums",
    "products": "sums of squares and products",
    "cubes": "sums of degree 3",
    "quartics": "sums of degree 4",
    "joint": "counts, sums, squares and products together",
}


@dataclass(frozen=True)
class Layout:
    """Draws in order, each a name and what it asks."""

    draws: tuple[tuple[str, MomentRequest], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the draws."""
        return tuple(name for name, _ in self.draws)


def layouts(
    spec: AnalysisSpec, frame: MomentFrame, relation: Relation, *, count_known: bool
) -> tuple[Layout, ...]:
    """One draw a degree; under ``replace_one`` also all of low degree in one.

    Parameters
    ----------
    count_known
        Whether the number of complete rows is public, or was released before.
    """
    parts = _by_group(spec, frame) if spec.by is not None else _overall(spec, frame)
    if count_known and spec.by is None:
        del parts["count"]
    found = [Layout(tuple((name, MomentRequest(frame, sums)) for name, sums in parts.items()))]
    if relation is Relation.REPLACE_ONE:
        low = [sums for name in JOINT_PARTS for sums in parts.get(name, ())]
        draws = [("joint", MomentRequest(frame, tuple(low), mixed=True))]
        draws += [(name, request) for name, request in found[0].draws if name not in JOINT_PARTS]
        found.append(Layout(tuple(draws)))
    return tuple(found)


def _by_group(spec: AnalysisSpec, frame: MomentFrame) -> dict[str, tuple[Monomial, ...]]:
    assert spec.outcome is not None
    groups = [name for name, _ in frame.indicators]
    powers = {"count": 0, "sums": 1, "products": 2}
    if spec.moments == 4:
        powers["quartics"] = 4
    return {
        name: tuple((group, *(spec.outcome,) * power) for group in groups)
        for name, power in powers.items()
    }


def _overall(spec: AnalysisSpec, frame: MomentFrame) -> dict[str, tuple[Monomial, ...]]:
    cells = frame.cells
    names = frame.features
    products = [
        (a, b)
        for place, a in enumerate(names)
        for b in names[place:]
        if not (a in cells and b in cells and cells[a].column == cells[b].column)
    ]
    parts: dict[str, tuple[Monomial, ...]] = {
        "count": ((),),
        "sums": tuple((name,) for name in names),
        "products": tuple(products),
    }
    if spec.robust:
        parts["cubes"] = _powers(names, 3)
        parts["quartics"] = _powers(names, 4)
    elif spec.kind is AnalysisKind.MEAN and spec.moments == 4:
        parts["quartics"] = _powers(names, 4)
    return parts


def _powers(names: tuple[str, ...], degree: int) -> tuple[Monomial, ...]:
    """All monomials of one degree of one or two numbers."""
    first, last = names[0], names[-1]
    if first == last:
        return ((first,) * degree,)
    return tuple((first,) * (degree - k) + (last,) * k for k in range(degree + 1))
