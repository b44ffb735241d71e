"""Where exact answers come from: the protocol, and its in-memory implementation.

A source answers counts and moments, which are small whatever the number of rows.  Its answers are
confidential: only ``grant.py`` (which adds noise) and ``vault.py`` (which logs) may hold one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from core.errors import ReadingError, SchemaError
from core.moments import IntArray, MomentFrame, MomentRequest
from core.private.counting import Clique, count_cliques
from core.private.features import feature_moments
from core.private.moments import MAXIMUM_ROWS, exact_moments, gram, norm_excess
from core.private.table import CodedTable
from core.protocols import Progress
from core.releases import Recoding, Unit
from core.schema import Schema

#: Rows whose moments are summed between two reports.
SLICE_ROWS = 1 << 20


class Primitive(StrEnum):
    """What a source can be asked for; a plan that needs what a source lacks is not begun."""

    COUNTS = "counts"
    MOMENTS = "moments"
    ROWS = "rows"


class Source(Protocol):
    """Exact, confidential answers about one table."""

    @property
    def serves(self) -> frozenset[Primitive]:
        """What it can be asked for."""
        ...

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

    def watch(self, progress: Progress | None) -> None:
        """Whom to tell while rows are read, as ("rows", percent, 100, None); may raise to stop."""
        ...


class Watched:
    """The part of a source that tells how far it is, in tenths.

    Steps have a fixed number of rows, so that a finer share would give away how many there are.
    """

    _progress: Progress | None = None

    def watch(self, progress: Progress | None) -> None:
        """Whom to tell while rows are read; it may raise ``Cancelled``."""
        self._progress = progress

    def tell(self, done: int, total: int) -> None:
        """Report some rows of all."""
        if self._progress is not None:
            self._progress("rows", 10 * (10 * done // max(total, 1)), 100, None)


class Counting(Watched, ABC):
    """The part of a source that follows from its declarations and from tables one by one."""

    def __repr__(self) -> str:
        """Only public facts."""
        return f"{type(self).__name__}({len(self.schema.columns)} columns, rows confidential)"

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""

    @abstractmethod
    def each_count(
        self, cliques: Sequence[Clique], recoding: Recoding | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Exact tables one by one, in no promised order."""

    def counts(self, cliques: Sequence[Clique], recoding: Recoding | None = None) -> list[IntArray]:
        """Exact ``int64`` tables of all cliques, in order, after the recoding."""
        tables: dict[int, IntArray] = dict(self.each_count(cliques, recoding))
        return [tables[index] for index in range(len(cliques))]


class InMemorySource(Counting):
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

    @property
    def serves(self) -> frozenset[Primitive]:
        """Everything."""
        return frozenset(Primitive)

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
        maps = recoding_maps(recoding, names)
        sizes = table_sizes(self.schema, names, recoding)
        codes = {name: self.table.codes[name] for name in names}
        yield from count_cliques(codes, sizes, cliques, maps=maps, told=self.tell)

    def row_count(self) -> int:
        """Number of rows."""
        return self.table.rows

    def moments(self, request: MomentRequest) -> IntArray:
        """Exact sums on the request's grid, one a monomial."""
        return self._summed(lambda part: moments_of(part, request))

    def gram(self, frame: MomentFrame) -> IntArray:
        """All exact second moments of a frame."""
        return self._summed(lambda part: gram(part.numbers, frame))

    def norm_profile(self, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
        """Exact excess of the squared row norms over each squared radius."""
        return self._summed(lambda part: norm_excess(part.numbers, frame, radii))

    def _summed(self, answer: Callable[[CodedTable], IntArray]) -> IntArray:
        """Exact sums over slices of rows, with a word between them."""
        total = answer(sliced(self.table, slice(0, SLICE_ROWS)))
        for start in range(SLICE_ROWS, self.table.rows, SLICE_ROWS):
            self.tell(start, self.table.rows)
            total = total + answer(sliced(self.table, slice(start, start + SLICE_ROWS)))
        return total


def moments_of(table: CodedTable, request: MomentRequest) -> IntArray:
    """Exact sums on the request's grid over the rows of one table, or of one part of it."""
    if request.frame.plain:
        return exact_moments(table.numbers, request)
    return feature_moments(table, request)


def sliced(table: CodedTable, rows: slice) -> CodedTable:
    """Some rows of a table, without a copy."""
    return CodedTable(
        table.schema,
        {name: codes[rows] for name, codes in table.codes.items()},
        {name: numbers[rows] for name, numbers in table.numbers.items()},
        len(range(*rows.indices(table.rows))),
        table.unit,
    )


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


def recoding_maps(recoding: Recoding | None, names: Sequence[str]) -> Mapping[str, IntArray]:
    """New codes of the named columns that a recoding changes."""
    if recoding is None:
        return {}
    return {name: recoding.maps[name] for name in names if name in recoding.maps}
