"""A source whose rows pass through in coded batches and are not kept.

Coding is row by row, so that the answers are those of a table in memory, number for number.  What
is kept is small: exact tables that were counted already, up to a bound of cells, because the
steps of one release ask for the same ones again.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import numpy as np

from core.errors import ReadingError, SourceError
from core.moments import IntArray, MomentFrame, MomentRequest
from core.private.counting import CHUNK_ROWS, Clique, tallies
from core.private.moments import MAXIMUM_ROWS, gram, norm_excess
from core.private.source import Counting, Primitive, moments_of, recoding_maps, table_sizes
from core.private.table import CodedTable
from core.releases import Recoding, Unit
from core.schema import LABELLED_KINDS, Schema

#: Histogram cells that one pass over the rows fills (int64, so 256 MiB).
PASS_CELLS = 1 << 25
#: Cells of exact tables that are kept for the next question (64 MiB).
KEPT_CELLS = 1 << 23


class Batches(Protocol):
    """Coded rows that can be read again and again, some at a time."""

    @property
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows, the same at every reading; confidential under add/remove."""
        ...

    def read(self, names: Collection[str], numbers: Collection[str]) -> Iterator[CodedTable]:
        """All rows in batches: codes of the columns ``names``, numbers of the columns ``numbers``.

        Raises
        ------
        SourceError
            The rows cannot be read, or are not those that were there before.
        """
        ...


class KeptCounts(Counting):
    """Counts that are asked for again: small exact tables are kept, the others counted anew.

    Parameters
    ----------
    schema
        Declarations of the modelled columns.
    unit
        The unit of protection; no unit can have a person column, because a person's rows would
        have to be brought together.

    Raises
    ------
    ReadingError
        For a person column.
    """

    def __init__(self, schema: Schema, unit: Unit | None) -> None:
        self._schema = schema
        self._unit = Unit() if unit is None else unit
        refuse_persons(self._unit)
        self._kept: dict[Clique, IntArray] = {}

    @property
    def schema(self) -> Schema:
        """Declarations of the modelled columns."""
        return self._schema

    @property
    def unit(self) -> Unit:
        """The unit of protection, never one with a person column."""
        return self._unit

    @property
    def numeric(self) -> frozenset[str]:
        """Columns that moments can be taken of."""
        return frozenset(c.name for c in self.schema.columns if c.kind not in LABELLED_KINDS)

    def each_count(
        self, cliques: Sequence[Clique], recoding: Recoding | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Exact tables one by one, in no promised order.

        Tables whose declared cells are few are counted once, and recoded from then on.
        """
        names = sorted({name for clique in cliques for name in clique})
        sizes = table_sizes(self.schema, names, recoding)
        declared = table_sizes(self.schema, names)
        sorted_cliques = [tuple(sorted(clique)) for clique in cliques]
        wanted = dict.fromkeys(sorted_cliques)
        if sum(_cells(clique, declared) for clique in wanted) > KEPT_CELLS:
            yield from self._counted(cliques, sizes, recoding)
            return
        self._keep(list(wanted), declared)
        maps = {} if recoding is None else recoding.maps
        for index, (clique, order) in enumerate(zip(cliques, sorted_cliques, strict=True)):
            table = self._kept[order]
            for axis, name in enumerate(order):
                if name in maps:
                    table = _pooled(table, maps[name], sizes[name], axis)
            places = [order.index(name) for name in clique]
            yield index, np.ascontiguousarray(table.transpose(places))

    def _keep(self, cliques: list[Clique], declared: dict[str, int]) -> None:
        """Count what is not kept yet; room is made by forgetting everything else."""
        lacking = [clique for clique in cliques if clique not in self._kept]
        if not lacking:
            return
        size = sum(table.size for table in self._kept.values())
        if size + sum(_cells(clique, declared) for clique in lacking) > KEPT_CELLS:
            self._kept = {clique: self._kept[clique] for clique in cliques if clique in self._kept}
        for index, table in self._counted(lacking, declared, None):
            self._kept[lacking[index]] = table

    @abstractmethod
    def _counted(
        self, cliques: Sequence[Clique], sizes: dict[str, int], recoding: Recoding | None
    ) -> Iterator[tuple[int, IntArray]]:
        """Tables counted anew."""


class BatchedSource(KeptCounts):
    """Answers from batches, with memory for a few batches and the histograms at work.

    Parameters
    ----------
    batches
        The rows; confidential.
    unit
        The unit of protection; no unit can have a person column.

    Raises
    ------
    ReadingError
        For a person column, and for more rows than exact arithmetic carries (2**29).
    """

    def __init__(self, batches: Batches, unit: Unit | None = None) -> None:
        super().__init__(batches.schema, unit)
        if batches.rows >= MAXIMUM_ROWS:
            raise ReadingError("the table has 2**29 rows or more, which cannot be summed exactly")
        self._batches = batches

    @property
    def serves(self) -> frozenset[Primitive]:
        """Everything but rows."""
        return frozenset({Primitive.COUNTS, Primitive.MOMENTS})

    def row_count(self) -> int:
        """Number of rows."""
        return self._batches.rows

    # -- counts ----------------------------------------------------------------------------

    def _counted(
        self, cliques: Sequence[Clique], sizes: dict[str, int], recoding: Recoding | None
    ) -> Iterator[tuple[int, IntArray]]:
        """Tables from one pass over the rows, or from several where they are too large for one."""
        maps = recoding_maps(recoding, sorted(sizes))
        for tally in tallies(sizes, cliques, maps=maps, cells=PASS_CELLS):
            for batch in self._passing(tally.names, ()):
                for start in range(0, batch.rows, CHUNK_ROWS):
                    rows = slice(start, start + CHUNK_ROWS)
                    tally.add({name: codes[rows] for name, codes in batch.codes.items()})
            yield from tally.tables()

    # -- moments ---------------------------------------------------------------------------

    def moments(self, request: MomentRequest) -> IntArray:
        """Exact sums on the request's grid, one a monomial."""
        frame = request.frame
        numbers = frame.columns
        names = {*numbers, *(cell.column for _, cell in frame.indicators)}
        zero = np.zeros(len(request.monomials), dtype=np.int64)
        return self._summed(names, numbers, zero, lambda part: moments_of(part, request))

    def gram(self, frame: MomentFrame) -> IntArray:
        """All exact second moments of a frame."""
        size = len(frame.columns)
        zero = np.zeros((size, size), dtype=np.int64)
        return self._summed(
            frame.columns, frame.columns, zero, lambda part: gram(part.numbers, frame)
        )

    def norm_profile(self, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
        """Exact excess of the squared row norms over each squared radius."""
        zero = np.zeros(len(radii), dtype=np.int64)
        return self._summed(
            frame.columns, frame.columns, zero, lambda part: norm_excess(part.numbers, frame, radii)
        )

    def _summed(
        self,
        names: Collection[str],
        numbers: Collection[str],
        total: IntArray,
        answer: Callable[[CodedTable], IntArray],
    ) -> IntArray:
        """Sums over all batches: below 2**53, as there are fewer than 2**29 rows."""
        for batch in self._passing(names, numbers):
            total = total + answer(batch)
        return total

    def _passing(self, names: Collection[str], numbers: Collection[str]) -> Iterator[CodedTable]:
        """All batches once, with a word between them; refuses more or fewer rows than before."""
        rows = 0
        for batch in self._batches.read(names, numbers):
            rows += batch.rows
            if rows <= self._batches.rows:
                yield batch
            if rows < self._batches.rows:  # what was read to its end is worth keeping
                self.tell(rows, self._batches.rows)
        if rows != self._batches.rows:
            raise SourceError("the source has other rows than when it was attached; attach it anew")


def refuse_persons(unit: Unit) -> None:
    """Refuse a unit whose rows would have to be brought together.

    Raises
    ------
    ReadingError
        Naming the person column.
    """
    if unit.person_column is not None:
        raise ReadingError(
            f"the rows of a person (column {unit.person_column!r}) must be seen together, which a "
            "table that is read in batches does not allow; use a file that fits into memory, or "
            "one row a person"
        )


def _cells(clique: Clique, sizes: dict[str, int]) -> int:
    return math.prod(sizes[name] for name in clique)


def _pooled(table: IntArray, codes: IntArray, size: int, axis: int) -> IntArray:
    """Cells of one axis added up into their new cells."""
    moved = np.moveaxis(table, axis, 0)
    pooled = np.zeros((size, *moved.shape[1:]), dtype=np.int64)
    np.add.at(pooled, codes, moved)
    return np.moveaxis(pooled, 0, axis)
