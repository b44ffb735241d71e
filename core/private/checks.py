"""What a grant refuses before anything is paid: questions that do not fit the declarations.

Checks read the schema, the recoding and the reference, which are public; never a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from core.errors import SchemaError
from core.kinds import MAXIMUM_TABLE_CELLS
from core.moments import IntArray, MomentFrame
from core.private.source import Source, table_sizes
from core.releases import PairReference, Recoding

Pair = tuple[str, str]


def check_cliques(
    source: Source, cliques: Sequence[tuple[str, ...]], recoding: Recoding | None
) -> None:
    """Refuse empty, repeated, unknown or huge tables."""
    if not cliques or not all(cliques):
        raise SchemaError("counts need at least one column a table; use row_count for the total")
    for clique in cliques:
        if len(set(clique)) != len(clique):
            raise SchemaError("a table names a column twice; name each once")
    sizes = table_sizes(source.schema, sorted({n for c in cliques for n in c}), recoding)
    _check_cells(sizes, cliques)


def _check_cells(sizes: Mapping[str, int], cliques: Sequence[tuple[str, ...]]) -> None:
    most = max((len(clique) for clique in cliques), default=0)
    if max(sizes.values(), default=1) ** most <= MAXIMUM_TABLE_CELLS:
        return  # no table of this order can be too large: hundreds of rounds ask this
    for clique in cliques:
        cells = 1
        for name in clique:
            cells *= sizes[name]
        if cells > MAXIMUM_TABLE_CELLS:
            raise SchemaError(
                f"the table of {' × '.join(clique)} has {cells} cells, more than "
                f"{MAXIMUM_TABLE_CELLS}; declare fewer cells in one of these columns"
            )


def check_pairs(
    source: Source, candidates: Sequence[Pair], reference: PairReference
) -> tuple[Pair, ...]:
    """Sorted-name pairs that the reference covers, and a reference that fits the source."""
    names = sorted(reference.shares)
    sizes = table_sizes(source.schema, names, reference.recoding)
    for name in names:
        shares = reference.shares[name]
        if shares.shape != (sizes[name],) or not np.all(np.isfinite(shares)):
            raise SchemaError(f"column {name!r}: the reference needs one finite share a cell")
        # Beyond this the scores could leave int64, where sums and absolute values wrap around.
        if np.abs(shares).sum() > 2.0:
            raise SchemaError(f"column {name!r}: the shares of a reference sum to about 1")
    if not np.isfinite(reference.total) or abs(reference.total) >= 2.0**40:
        raise SchemaError("the reference needs a finite total")
    pairs = tuple(candidates)
    if not pairs:
        raise SchemaError("a selection needs at least one candidate pair")
    for a, b in pairs:
        if not (a < b and a in sizes and b in sizes):
            raise SchemaError(f"({a!r}, {b!r}) is no sorted pair of the reference's columns")
    _check_cells(sizes, pairs)
    return pairs


def check_numeric(source: Source, frame: MomentFrame, *, plain: bool = True) -> None:
    """Refuse moments of columns without numbers, and of cells that no column has.

    ``plain`` refuses indicators and complete cases as well.
    """
    if plain and not frame.plain:
        raise SchemaError("this question takes numbers of all rows; leave out indicators")
    numeric = source.numeric
    for name in frame.columns:
        if name not in numeric:
            raise SchemaError(f"column {name!r}: moments need an integer, real or date column")
    for _, cell in frame.indicators:
        if cell.code >= source.schema[cell.column].size:
            raise SchemaError(f"column {cell.column!r}: an indicator names a cell it has not")


def check_entries(
    candidates: Sequence[Pair] | None, frame: MomentFrame
) -> tuple[IntArray, IntArray]:
    """Row and column of each candidate among the frame's columns; None is the whole triangle."""
    if candidates is None:
        return _triangle(len(frame.columns))
    place = frame.places
    pairs = tuple((a, b) for a, b in candidates)
    if not pairs or not {name for pair in pairs for name in pair} <= set(place):
        raise SchemaError("a selection needs candidates among the columns of its reference")
    places = np.array([[place[a], place[b]] for a, b in pairs], dtype=np.int64)
    return places[:, 0], places[:, 1]


@lru_cache(maxsize=8)
def _triangle(size: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of the upper triangle; hundreds of rounds ask for the same one."""
    rows, columns = np.triu_indices(size)
    rows.setflags(write=False)
    columns.setflags(write=False)
    return rows, columns
