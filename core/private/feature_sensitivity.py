"""Sensitivity of sums of products of features: numbers in [-1, 1] and indicators of cells.

A row lies in one cell of each coded column.  So of all sums that differ only in *which* cells they
name, a row enters at most one, and they cost together what one of them costs.  All values are
squared L2 sensitivities; ``rows`` is k, as in :mod:`core.private.sensitivity`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from core.errors import BudgetError
from core.moments import SUMMAND_BITS, Indicator, MomentRequest, Monomial
from core.private import sensitivity
from core.provenance import Relation
from core.schema import Schema

#: With more coded columns than this, each family of sums is bounded on its own.
AGREEMENT_COLUMNS = 6
#: Two rows' products are cut to the grid by less than one unit each: by how much, relative to a
#: whole, the difference of two summands can exceed that of the uncut products.
CUT = Fraction(2, 1 << SUMMAND_BITS)


@dataclass(frozen=True)
class Family:
    """Sums with the same numbers and the same coded columns, in different cells.

    Attributes
    ----------
    numbers
        The numeric factors, with repeats, sorted.
    columns
        Coded columns that the indicators are of.
    members
        How many sums there are.
    """

    numbers: Monomial
    columns: frozenset[str]
    members: int


def families(monomials: Iterable[Monomial], cells: Mapping[str, Indicator]) -> tuple[Family, ...]:
    """Group sums by their numbers and their coded columns.

    >>> cells = {"job=a": Indicator("job", 0), "job=b": Indicator("job", 1)}
    >>> [(f.numbers, f.members) for f in families([("job=a", "x"), ("job=b", "x"), ("x",)], cells)]
    [(('x',), 2), (('x',), 1)]
    """
    counts: Counter[tuple[Monomial, frozenset[str]]] = Counter()
    for names in monomials:
        numbers = tuple(sorted(name for name in names if name not in cells))
        counts[numbers, frozenset(cells[name].column for name in names if name in cells)] += 1
    return tuple(Family(*key, members) for key, members in counts.items())


def moments_sensitivity(
    request: MomentRequest, schema: Schema, relation: Relation, rows: int = 1
) -> Fraction:
    """Joint sensitivity of a request's sums, each factor within [-1, 1], from public facts.

    0 for the number of complete cases where it is public.
    """
    frame = request.frame
    if not frame.plain:
        return feature_sums(request, relation, rows, may_miss=frame.may_miss(schema))
    return sensitivity.moment_vector(
        request.monomials,
        relation,
        rows,
        weight_squared=request.diagonal_weight**2,
        clip_squared=frame.clip_squared,
    )


def feature_sums(
    request: MomentRequest, relation: Relation, rows: int = 1, *, may_miss: bool
) -> Fraction:
    """Joint sensitivity of all sums of a request of a frame with indicators or complete cases.

    ``add_remove``: the number of families (exact where one row can lie in a named cell of each).
    ``replace_one``: the largest, over which coded columns the two rows agree in, of what
    :func:`_replaced` adds up (bound; exact for one family).  The count of complete cases alone is
    1 under both relations, or 0 under ``replace_one`` where no row may be missing.

    Parameters
    ----------
    request
        What is asked.
    rows
        Rows a unit.
    may_miss
        Whether the *declarations* allow a row that is no complete case.
    """
    found = families(request.monomials, request.frame.cells)
    added = Fraction(len(found))
    if relation is Relation.ADD_REMOVE:
        return added * rows**2
    changed = _replaced(found)
    # A complete case replaced by a row that is none takes all its contributions away.
    if may_miss:
        changed = max(changed, added)
    elif rows > 1 and any(not family.numbers and not family.columns for family in found):
        raise BudgetError("the row count is private when a unit may have several rows")
    return changed * rows**2


def _replaced(found: Sequence[Family]) -> Fraction:
    """Largest change when one complete case is replaced by another.

    Where the rows differ in a coded column of a family, each enters at most one of its sums, and
    not the same: at most 2 (1 where the family has one member).  Where they agree in all of them,
    both enter the same sum or none: the change is that of the numbers alone.
    """
    columns = sorted(frozenset[str]().union(*(family.columns for family in found)))
    if len(columns) > AGREEMENT_COLUMNS:
        return sum(
            (
                max(
                    _differing(family) if family.columns else Fraction(0),
                    _numbers([family.numbers]),
                )
                for family in found
            ),
            Fraction(0),
        )
    agreements = itertools.chain.from_iterable(
        itertools.combinations(columns, size) for size in range(len(columns) + 1)
    )
    return max(
        sum((_differing(family) for family in found if not family.columns <= same), Fraction(0))
        + _numbers([family.numbers for family in found if family.columns <= same])
        for same in map(frozenset, agreements)
    )


def _differing(family: Family) -> Fraction:
    return Fraction(min(family.members, 2))


def _numbers(products: Sequence[Monomial]) -> Fraction:
    """Change of sums of products of numbers that both rows enter; repeats count each.

    The smaller of two bounds: each product on its own (4; 1 where all powers are even; 0 for the
    empty product, which does not change), or all of degree 2 and less together by the rows of the
    sensitivity table, where a product of one number is an edge to a node that is always 1.
    """
    products = [names for names in products if names]
    alone = _alone(products)
    layers: dict[int, list[Monomial]] = {}
    seen: Counter[Monomial] = Counter()
    for names in products:
        if len(names) == 1:
            layers.setdefault(0, []).append((f"\0{seen[names]}", *names))
        elif len(names) == 2:
            layers.setdefault(seen[names], []).append(names)
        seen[names] += 1
    together = _alone([names for names in products if len(names) > 2])
    for layer in layers.values():
        exact = sensitivity.moment_vector(layer, Relation.REPLACE_ONE)
        # (√v + c√m)² ≤ v + c(v + m) + c²m for m sums that the grid cuts by c.
        together += exact + CUT * (exact + len(layer)) + CUT**2 * len(layer)
    return min(alone, together)


def _alone(products: Sequence[Monomial]) -> Fraction:
    return sensitivity.higher_sums(products, Relation.REPLACE_ONE) if products else Fraction(0)
