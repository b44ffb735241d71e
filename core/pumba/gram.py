"""Noisy sums and sums of products of bounded columns, and posterior draws of the true ones.

With z = (1, x_1, ..., x_k) a row of the table, the statistics are the entries of A = sum of z z'
over the rows, each released with noise of its own.  Regressions and correlations are functions of
A.  Its support is not a box: A is positive semi-definite, and bounds on the columns bound its
entries jointly; stage 1 draws from the noise laws restricted to that support and never moves a
draw to the nearest admissible matrix, which would put mass on the boundary.

Source: PUMBA (arXiv 2604.24817), Theorem 1, for Gram statistics; the support's linear part is the
reformulation-linearisation of the box (Sherali and Adams; McCormick).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from core.errors import EstimationError, StatisticError
from core.protocols import Progress
from core.pumba.draws import StatisticDraws
from core.pumba.gram_variable import GramVariable
from core.statistics import NoisyStatistic

#: One release of an entry, or several independent ones, whose laws multiply.
Released = NoisyStatistic | tuple[NoisyStatistic, ...]
Method = Literal["auto", "rejection", "gibbs"]

__all__ = ["GramVariable", "Method", "NoisyGram", "Released", "draw_grams"]


@dataclass(frozen=True, eq=False)
class NoisyGram:
    """Released sums of columns and of their products, with independent noise on each.

    Attributes
    ----------
    variables
        Columns, outcome included, in the order of the matrix (a constant comes before them).
    count
        Number of rows: known, or released with noise.
    sums
        One release a column name.
    products
        One release a pair of names, squares ``(x, x)`` included.  Squares of indicators and
        products of exclusive ones follow from the sums and may be left out.
    fourth
        Sums of monomials of degree 3 and 4 (names with repeats, such as ``("x", "x", "y")``);
        all of them or none, and only for two columns.
    """

    variables: tuple[GramVariable, ...]
    count: int | NoisyStatistic
    sums: Mapping[str, Released]
    products: Mapping[tuple[str, str], Released]
    fourth: Mapping[tuple[str, ...], Released] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort names within products; refuse repeats, unknown columns and no rows."""
        names = self.names
        if not names:
            raise StatisticError("a Gram matrix needs at least one column")
        if len(set(names)) != len(names):
            raise StatisticError("a column is declared twice; keep one declaration a column")
        if not isinstance(self.count, NoisyStatistic) and self.count < 1:
            raise StatisticError("the number of rows must be at least 1")
        for name in self.sums:
            if name not in names:
                raise StatisticError(f"the sum of {name!r} belongs to no declared column")
        object.__setattr__(self, "products", self._sorted(self.products.items(), {2}))
        object.__setattr__(self, "fourth", self._sorted(self.fourth.items(), {3, 4}))
        if self.fourth and len(names) != 2:
            raise StatisticError(
                "sums of degree 3 and 4 are used for one predictor and one outcome only; leave "
                "them out, or leave out the other columns"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of the matrix."""
        return tuple(variable.name for variable in self.variables)

    def _sorted(
        self, released: Iterable[tuple[tuple[str, ...], Released]], degrees: set[int]
    ) -> dict[tuple[str, ...], Released]:
        position = {name: index for index, name in enumerate(self.names)}
        result: dict[tuple[str, ...], Released] = {}
        for key, statistic in released:
            unknown = [name for name in key if name not in position]
            if unknown or len(key) not in degrees:
                raise StatisticError(
                    f"the sum of {' × '.join(key)!r} is none of the declared columns' products "
                    f"of degree {' or '.join(map(str, sorted(degrees)))}"
                )
            ordered = tuple(sorted(key, key=position.__getitem__))
            if ordered in result:
                raise StatisticError(
                    f"the product of {' and '.join(ordered)} is given under two orders; give its "
                    "releases together, as one entry"
                )
            result[ordered] = statistic
        return result


def draw_grams(
    problem: NoisyGram,
    draws: int,
    generator: np.random.Generator,
    *,
    method: Method = "auto",
    progress: Progress | None = None,
) -> StatisticDraws:
    """Draws of the true moment matrix given its noisy entries (stage 1); costs no privacy.

    Parameters
    ----------
    problem
        The releases.
    draws
        Number of draws R.
    method
        ``rejection`` draws independently; ``gibbs`` runs parallel chains; ``auto`` takes
        rejection unless it accepts fewer than 1 % of the proposals and would take long.

    Returns
    -------
    StatisticDraws
        ``values`` (R, d, d): moment matrices with the constant first, in the coordinates of the
        sums.  Where sums of degree 3 and 4 were given, the basis (1, x, y) is followed by the
        products of degree 2, so that the Gram matrix is the leading 3 × 3 block.

    Raises
    ------
    StatisticError
        An entry that the support needs was not released.
    EstimationError
        Rejection was insisted on and hardly ever accepts.
    """
    from core.pumba.gram_gibbs import gibbs
    from core.pumba.gram_laws import gram_target
    from core.pumba.gram_rejection import rejection

    if draws < 1:
        raise EstimationError("the number of draws must be at least 1")
    target = gram_target(problem)
    found = None
    if method != "gibbs":
        found = rejection(target, draws, generator, insist=method == "rejection", progress=progress)
    if found is None:
        found = gibbs(target, draws, generator, progress=progress)
    theta, diagnostics = found
    size = target.support.dimension
    raw = target.support.moments.reshape(size * size, -1)
    values = (theta.T @ raw.T).reshape(draws, size, size)
    counts = theta[0].copy() if target.count is None else None
    return StatisticDraws(values, diagnostics, counts)
