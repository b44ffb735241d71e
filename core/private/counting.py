"""Exact contingency tables of many cliques at once: packed super-columns and ``bincount``.

Columns are grouped into *super-columns* whose cell numbers multiply to at most ``PACKED_CELLS``.
One ``bincount`` a pair of super-columns then answers every pair of columns between the two, and
the wanted tables are summed out.  A super-pair's histogram stays in the second-level cache, which
is why packing beats one ``bincount`` a pair.  Rows are read in chunks, so that memory beside the
table is a few chunks and the histograms at work, whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Codes = NDArray[Any]
Clique = tuple[str, ...]

#: Rows handled at once.
CHUNK_ROWS = 65_536
#: Largest product of cell numbers in one super-column (128 squared int64 cells are 128 KiB).
PACKED_CELLS = 128
#: Histogram cells held at once over all super-pairs of a group (int64, so 32 MiB).
GROUP_CELLS = 1 << 22
#: From so many cells a row on, rows are added one by one.
_SPARSE = 4


def pack_columns(sizes: Mapping[str, int], limit: int = PACKED_CELLS) -> tuple[Clique, ...]:
    """Group columns into super-columns, first fit by falling size (ties by name).

    A column with more than ``limit`` cells stays alone.

    >>> pack_columns({"age": 85, "sex": 2, "race": 5, "income": 2})
    (('age',), ('race', 'income', 'sex'))
    """
    groups: list[list[str]] = []
    products: list[int] = []
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        for index, product in enumerate(products):
            if product * sizes[name] <= limit:
                groups[index].append(name)
                products[index] *= sizes[name]
                break
        else:
            groups.append([name])
            products.append(sizes[name])
    return tuple(tuple(group) for group in groups)


@dataclass(frozen=True)
class _Block:
    """One histogram: super-columns (or plain columns) on its axes, cliques read from it."""

    parts: tuple[Clique, ...]
    shape: tuple[int, ...]
    answers: tuple[int, ...]

    @property
    def cells(self) -> int:
        return math.prod(self.shape)


def count_cliques(
    codes: Mapping[str, Codes],
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    *,
    maps: Mapping[str, IntArray] | None = None,
    told: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, IntArray]]:
    """Yield ``(index in cliques, exact table)`` for every clique, in no promised order.

    Parameters
    ----------
    codes
        One array of cell codes a column, all of one length.
    sizes
        Cells of each column *after* ``maps``.
    cliques
        Distinct column names each; the table's axes follow their order.
    maps
        For recoded columns, the new code of every declared code.
    told
        Called between chunks of rows as (done, total); may raise to stop.

    Yields
    ------
    tuple[int, ndarray]
        ``int64`` tables with ``shape = tuple(sizes[name] for name in clique)``.
    """
    rows = len(next(iter(codes.values()))) if codes else 0
    groups = list(_groups(_blocks(sizes, cliques), GROUP_CELLS))
    lookups = {name: _lookup(table) for name, table in (maps or {}).items()}
    for number, group in enumerate(groups):
        tally = Tally(group, sizes, cliques, lookups)
        # Chunks grow with the histograms, so that allocating them stays the smaller cost.
        step = max(CHUNK_ROWS, tally.largest)
        for start in range(0, rows, step):
            if told is not None and start + number:
                told(number * rows + start, len(groups) * rows)
            stop = min(start + step, rows)
            tally.add({name: codes[name][start:stop] for name in tally.names})
        yield from tally.tables()


class Tally:
    """Histograms that grow chunk by chunk, and the tables that are read from them at the end.

    Made by :func:`tallies`; counts are exact up to 2**63 rows.
    """

    def __init__(
        self,
        blocks: Sequence[_Block],
        sizes: Mapping[str, int],
        cliques: Sequence[Clique],
        lookups: Mapping[str, Codes],
    ) -> None:
        self._blocks, self._sizes, self._cliques = blocks, sizes, cliques
        self._lookups = lookups
        self._totals = [np.zeros(block.cells, dtype=np.int64) for block in blocks]
        self.names = frozenset(name for block in blocks for part in block.parts for name in part)
        self.largest = max(block.cells for block in blocks)

    def add(self, codes: Mapping[str, Codes]) -> None:
        """Count some more rows: one array of declared codes a column, all of one length."""
        chunk = _Chunk(codes, self._sizes, self._lookups)
        for block, total in zip(self._blocks, self._totals, strict=True):
            index = chunk.index(block)
            if block.cells > _SPARSE * len(index):  # a fresh histogram would cost more than rows
                np.add.at(total, index, 1)
            else:
                np.add(total, np.bincount(index, minlength=block.cells), out=total)

    def tables(self) -> Iterator[tuple[int, IntArray]]:
        """``(index in cliques, exact table)``; a histogram is dropped once it is read."""
        blocks, totals = list(self._blocks), self._totals
        self._blocks, self._totals = (), []
        while blocks:
            yield from _sum_out(blocks.pop(0), totals.pop(0), self._sizes, self._cliques)


def tallies(
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    *,
    maps: Mapping[str, IntArray] | None = None,
    cells: int,
) -> Iterator[Tally]:
    """One tally after the other that together answer all cliques; for rows that come in batches.

    Parameters
    ----------
    sizes, cliques, maps
        As for :func:`count_cliques`.
    cells
        Most histogram cells of one tally; a larger single table stays whole.
    """
    lookups = {name: _lookup(table) for name, table in (maps or {}).items()}
    for group in _groups(_blocks(sizes, cliques), cells):
        yield Tally(group, sizes, cliques, lookups)


def count_blocks(
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    histogram: Callable[[Clique], IntArray],
    told: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, IntArray]]:
    """As :func:`count_cliques`, for engines that count themselves: one question a histogram.

    Parameters
    ----------
    sizes, cliques
        As for :func:`count_cliques`.
    histogram
        Counts of all cells of these columns together, flat, the last column fastest.
    told
        Called before every question as (done, total); may raise to stop.
    """
    blocks = _blocks(sizes, cliques)
    for number, block in enumerate(blocks):
        if told is not None:
            told(number, len(blocks))
        total = histogram(tuple(name for part in block.parts for name in part))
        yield from _sum_out(block, total, sizes, cliques)


def _blocks(sizes: Mapping[str, int], cliques: Sequence[Clique]) -> list[_Block]:
    """Which histograms answer all cliques; each clique is read from exactly one."""
    small = {name: sizes[name] for clique in cliques if len(clique) <= 2 for name in clique}
    supers = pack_columns(small)
    home = {name: index for index, group in enumerate(supers) for name in group}
    wanted: dict[tuple[int, ...], list[int]] = {}
    direct: list[_Block] = []
    for index, clique in enumerate(cliques):
        if len(clique) > 2:
            shape = tuple(sizes[name] for name in clique)
            direct.append(_Block(tuple((name,) for name in clique), shape, (index,)))
        else:
            key = tuple(sorted({home[name] for name in clique}))
            wanted.setdefault(key, []).append(index)
    for key in [key for key in wanted if len(key) == 1]:
        host = next((other for other in wanted if len(other) == 2 and key[0] in other), None)
        if host is not None:
            wanted[host].extend(wanted.pop(key))
    packed = [
        _Block(
            tuple(supers[part] for part in key),
            tuple(math.prod(sizes[name] for name in supers[part]) for part in key),
            tuple(answers),
        )
        for key, answers in wanted.items()
    ]
    return packed + direct


def _groups(blocks: list[_Block], limit: int) -> Iterator[list[_Block]]:
    """Cut the blocks into runs whose histograms have at most ``limit`` cells together."""
    group: list[_Block] = []
    cells = 0
    for block in sorted(blocks, key=lambda block: block.cells):
        if group and cells + block.cells > limit:
            yield group
            group, cells = [], 0
        group.append(block)
        cells += block.cells
    if group:
        yield group


def _lookup(table: IntArray) -> Codes:
    """The recoding map in the smallest unsigned type, which makes ``take`` cheap."""
    return table.astype(np.min_scalar_type(int(table.max(initial=0))))


def _index_type(cells: int) -> type[np.unsignedinteger[Any]] | type[np.int64]:
    if cells <= 1 << 16:
        return np.uint16
    return np.uint32 if cells <= 1 << 32 else np.int64


class _Chunk:
    """Some rows; super-columns are packed once and shared by all blocks that use them."""

    def __init__(
        self,
        codes: Mapping[str, Codes],
        sizes: Mapping[str, int],
        lookups: Mapping[str, Codes],
    ) -> None:
        self._codes, self._sizes, self._lookups = codes, sizes, lookups
        self._packed: dict[Clique, Codes] = {}

    def index(self, block: _Block) -> Codes:
        """Flat cell number of each row in ``block``."""
        first = self._pack(block.parts[0])
        if len(block.parts) == 1:
            return first
        kind = _index_type(block.cells)
        index: Codes = first.astype(kind)
        for part, size in zip(block.parts[1:], block.shape[1:], strict=True):
            np.multiply(index, kind(size), out=index)
            np.add(index, self._pack(part).astype(kind, copy=False), out=index)
        return index

    def _pack(self, part: Clique) -> Codes:
        """One super-column's codes, last column fastest."""
        if part not in self._packed:
            kind = _index_type(math.prod(self._sizes[name] for name in part))
            total: Codes = self._read(part[0]).astype(kind)
            for name in part[1:]:
                np.multiply(total, kind(self._sizes[name]), out=total)
                np.add(total, self._read(name).astype(kind, copy=False), out=total)
            self._packed[part] = total
        return self._packed[part]

    def _read(self, name: str) -> Codes:
        """One column's (recoded) codes."""
        codes: Codes = self._codes[name]
        return self._lookups[name].take(codes) if name in self._lookups else codes


def _sum_out(
    block: _Block, total: IntArray, sizes: Mapping[str, int], cliques: Sequence[Clique]
) -> Iterator[tuple[int, IntArray]]:
    """Read the block's cliques from its histogram."""
    names = [name for part in block.parts for name in part]
    full = total.reshape([sizes[name] for name in names])
    for answer in block.answers:
        clique = cliques[answer]
        axes = tuple(axis for axis, name in enumerate(names) if name not in clique)
        table = full.sum(axis=axes) if axes else full
        kept = [name for name in names if name in clique]
        order = [kept.index(name) for name in clique]
        yield answer, np.ascontiguousarray(table.transpose(order), dtype=np.int64)
