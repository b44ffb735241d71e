"""Exact answers about a table that stays in its engine: DuckDB, Spark or a warehouse, by Ibis.

The engine codes, counts and sums; what comes back are histograms of a bounded number of cells and
sums of whole numbers.  No row leaves it, no text of ours is its SQL (every query is an Ibis
expression), and nothing that it says when it fails is passed on, because it may quote a value.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from core.errors import JustitiaError, ReadingError, SourceError
from core.moments import IntArray, MomentFrame, MomentRequest
from core.private.batches import KeptCounts
from core.private.counting import Clique, count_blocks
from core.private.ibis_moments import excess_sums, gram_sums, moment_sums
from core.private.ibis_probe import served_by
from core.private.ibis_values import code_of, refuse_column, whole
from core.private.moments import MAXIMUM_ROWS
from core.private.source import Primitive, recoding_maps
from core.releases import Recoding, Unit
from core.schema import Schema

#: Sums that one query asks for.
MOST_SUMS = 300


class IbisSource(KeptCounts):
    """Answers from queries.

    Parameters
    ----------
    table
        An Ibis table; confidential.
    schema
        Declarations of the modelled columns, all of which the table has.
    unit
        The unit of protection; no unit can have a person column.
    name
        Of the table, for messages.

    Raises
    ------
    SchemaError
        For a column whose type the engine cannot code exactly as it would be coded in memory.
    ReadingError
        For a person column, an engine that does not answer or compares texts in a way of its own,
        and for no rows, or more than exact arithmetic carries (2**29).
    """

    def __init__(
        self, table: Any, schema: Schema, unit: Unit | None = None, *, name: str = "the table"
    ) -> None:
        super().__init__(schema, unit)
        self._name = name
        self._table = table.select(*schema.names)
        kinds = self._table.schema()
        for column in schema.columns:
            refuse_column(column, kinds[column.name])
        try:
            self._rows = int(answer(self._table.aggregate(rows=self._table.count()))["rows"][0])
            self._check_rows(self._rows)
            self._serves = frozenset({Primitive.COUNTS})
            if served_by(self._table, schema, answer):
                self._serves |= {Primitive.MOMENTS}
        except JustitiaError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise ReadingError(
                f"{name}: the database did not answer ({kind}); nothing was spent"
            ) from None

    def _check_rows(self, rows: int) -> None:
        if not rows:
            raise ReadingError(f"{self._name}: there are columns but no row; choose a full table")
        if rows >= MAXIMUM_ROWS:
            raise ReadingError(
                f"{self._name}: there are 2**29 rows or more, which cannot be summed exactly"
            )

    @property
    def serves(self) -> frozenset[Primitive]:
        """Counts; moments too where the engine's arithmetic is that of this machine."""
        return self._serves

    def row_count(self) -> int:
        """Number of rows."""
        return self._rows

    # -- counts ----------------------------------------------------------------------------

    def _counted(
        self, cliques: Sequence[Clique], sizes: dict[str, int], recoding: Recoding | None
    ) -> Iterator[tuple[int, IntArray]]:
        """Tables from one query a block of columns."""
        maps = recoding_maps(recoding, sorted(sizes))
        yield from count_blocks(
            sizes, cliques, lambda names: self._histogram(names, sizes, maps), self.tell
        )

    def _histogram(self, names: Clique, sizes: dict[str, int], maps: Any) -> IntArray:
        """Counts of all cells of some columns together; at most one row of answer a cell."""
        codes = {
            f"c{index}": code_of(self._table[name], self.schema[name], maps.get(name))
            for index, name in enumerate(names)
        }
        rows = self._table.select(**codes)
        cell = whole(0)
        for index, name in enumerate(names):
            cell = cell * whole(sizes[name]) + rows[f"c{index}"]
        cells = rows.select(cell=cell)
        total = np.zeros(math.prod(sizes[name] for name in names), dtype=np.int64)
        found = self._ask(cells.group_by("cell").aggregate(rows=cells.count()))
        total[found["cell"]] = found["rows"]
        self._check_same(int(total.sum()))
        return total

    # -- moments ---------------------------------------------------------------------------

    def moments(self, request: MomentRequest) -> IntArray:
        """Exact sums on the request's grid, one a monomial."""
        return self._sums(*moment_sums(self._table, self.schema, request))

    def gram(self, frame: MomentFrame) -> IntArray:
        """All exact second moments of a frame."""
        size = len(frame.columns)
        upper = self._sums(*gram_sums(self._table, self.schema, frame))
        total = np.zeros((size, size), dtype=np.int64)
        total[np.triu_indices(size)] = upper
        return np.triu(total, 1).T + total

    def norm_profile(self, frame: MomentFrame, radii: Sequence[int]) -> IntArray:
        """Exact excess of the squared row norms over each squared radius."""
        return self._sums(*excess_sums(self._table, self.schema, frame, radii))

    def _sums(self, rows: Any, summands: Sequence[Any]) -> IntArray:
        """Sums over all rows; each is below 2**53, as there are fewer than 2**29 rows."""
        found: list[int] = []
        for start in range(0, len(summands), MOST_SUMS):
            self.tell(start, len(summands))
            some = summands[start : start + MOST_SUMS]
            named = {f"s{index}": summand.sum() for index, summand in enumerate(some)}
            sums = self._ask(rows.aggregate(rows=rows.count(), **named))
            self._check_same(int(sums["rows"][0]))
            found += [int(sums[name][0]) for name in named]
        return np.array(found, dtype=np.int64)

    # -- asking ----------------------------------------------------------------------------

    def _ask(self, question: Any) -> dict[str, IntArray]:
        """The answer to a query; what the engine says when it fails stays unsaid."""
        try:
            return answer(question)
        except Exception as error:
            kind = type(error).__name__
            raise SourceError(
                f"{self._name}: the database stopped answering ({kind}); see to it and attach the "
                "table anew"
            ) from None

    def _check_same(self, rows: int) -> None:
        if rows != self._rows:
            raise SourceError(
                f"{self._name}: the table has other rows than when it was attached; attach it "
                "anew, under a new version"
            )


def answer(question: Any) -> dict[str, IntArray]:
    """Columns of whole numbers of a small table, as the engine hands them over."""
    import ibis
    import pyarrow as pa

    # Stages stay stages: merged, they would repeat each other's expressions over and over.
    ibis.options.sql.fuse_selects = False
    names = question.columns
    parts: dict[str, list[IntArray]] = {name: [] for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries think of each other
        for batch in question.to_pyarrow_batches(chunk_size=1 << 20):
            for name in names:
                column = batch.column(batch.schema.get_field_index(name)).cast(pa.int64())
                parts[name].append(column.to_numpy(zero_copy_only=False).astype(np.int64))
    empty = np.zeros(0, dtype=np.int64)
    return {name: np.concatenate([empty, *found]) for name, found in parts.items()}
