"""Where exact answers come from: the protocol, and its in-memory implementation.

A source answers counts and moments, which are small whatever the number of rows.  Its answers are
confidential: only ``grant.py`` (which adds noise) and ``vault.py`` (which logs) may hold one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from core.errors import ReadingError, SchemaError
from core.moments import IntArray, MomentFrame, MomentRequest
from core.private.counting import Clique, count_cliques
from core.private.features import feature_moments
from core.private.moments import MAXIMUM_ROWS, exact_moments, gram, norm_excess
from core.private.table import CodedTable
from core.releases import Recoding, Unit
from core.schema import Schema


class Source(Protocol):
    """Exact, confidential answers about one table."""

    @property
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""
        ...

    @property
    def unit(self) -> Unit:
        """The bound on rows a person that was enforced when the table was coded."""
        ...

    @property
    def numeric(self) -> frozenset[str]:
        """Columns that moments can be taken of."""
        ...

    def each_count(
        self, cliques: Sequence[Clique], recoding: Recoding | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Exact tables one by one, ``(index in cliques, table)``, so that none need be kept."""
        ...

    def counts(self, cliques: Sequence[Clique], recoding: Recoding | None = None) -> list[IntArray]:
        """Exact ``int64`` tables of all cliques, in order."""
        ...

    def row_count(self) -> int:
        """Number of rows."""
        ...

    def moments(self, request: MomentRequest) -> IntArray:
        """Exact sums on the request's grid, one a monomial."""
        ...

    def gram(self, frame: MomentFrame) -> IntArray:
        """All exact second moments of a frame."""
        ...

    def norm_profile(self, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
        """Exact excess of the squared row norms over each squared radius."""
        ...


class InMemorySource:
    """Answers from a coded table in memory.

    Parameters
    ----------
    table
        The coded rows; confidential, so the source must stay inside ``core.private``.

    Raises
    ------
    ReadingError
        For more rows than exact arithmetic carries (2**29).
    """

    def __init__(self, table: CodedTable) -> None:
        if table.rows >= MAXIMUM_ROWS:
            raise ReadingError("the table has 2**29 rows or more; use a database source")
        self.table = table

    def __repr__(self) -> str:
        """Only public facts."""
        return f"InMemorySource({len(self.schema.columns)} columns, rows confidential)"

    @property
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""
        return self.table.schema

    @property
    def unit(self) -> Unit:
        """The bound on rows a person that was enforced when the table was coded."""
        return self.table.unit

    @property
    def numeric(self) -> frozenset[str]:
        """Columns that moments can be taken of."""
        return frozenset(self.table.numbers)

    def each_count(
        self, cliques: Sequence[Clique], recoding: Recoding | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Exact tables one by one, in no promised order."""
        names = sorted({name for clique in cliques for name in clique})
        maps = _maps(recoding, names)
        sizes = table_sizes(self.schema, names, recoding)
        codes = {name: self.table.codes[name] for name in names}
        yield from count_cliques(codes, sizes, cliques, maps=maps)

    def counts(self, cliques: Sequence[Clique], recoding: Recoding | None = None) -> list[IntArray]:
        """Exact ``int64`` tables of all cliques, in order, after the recoding."""
        tables: dict[int, IntArray] = dict(self.each_count(cliques, recoding))
        return [tables[index] for index in range(len(cliques))]

    def row_count(self) -> int:
        """Number of rows."""
        return self.table.rows

    def moments(self, request: MomentRequest) -> IntArray:
        """Exact sums on the request's grid, one a monomial."""
        if request.frame.plain:
            return exact_moments(self.table.numbers, request)
        return feature_moments(self.table, request)

    def gram(self, frame: MomentFrame) -> IntArray:
        """All exact second moments of a frame."""
        return gram(self.table.numbers, frame)

    def norm_profile(self, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
        """Exact excess of the squared row norms over each squared radius."""
        return norm_excess(self.table.numbers, frame, radii)


def table_sizes(
    schema: Schema, names: Sequence[str], recoding: Recoding | None = None
) -> dict[str, int]:
    """Cells of each column after a recoding; refuses a map that does not fit its column."""
    sizes = {}
    for name in names:
        declared = schema[name].size
        maps = {} if recoding is None else recoding.maps
        if name in maps and (maps[name].shape != (declared,) or maps[name].min() < 0):
            raise SchemaError(f"column {name!r}: the recoding needs one new cell a declared cell")
        sizes[name] = declared if recoding is None else recoding.size(name, declared)
    return sizes


def _maps(recoding: Recoding | None, names: Sequence[str]) -> Mapping[str, IntArray]:
    if recoding is None:
        return {}
    return {name: recoding.maps[name] for name in names if name in recoding.maps}
