"""Exact contingency tables of many cliques at once: packed super-columns and ``bincount``.

Columns are grouped into *super-columns* whose cell numbers multiply to at most ``PACKED_CELLS``.
One ``bincount`` a pair of super-columns then answers every pair of columns between the two, and
the wanted tables are summed out.  A super-pair's histogram stays in the second-level cache, which
is why packing beats one ``bincount`` a pair.  Rows are read in chunks, so that memory beside the
table is a few chunks and the histograms at work, whatever the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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

    Yields
    ------
    tuple[int, ndarray]
        ``int64`` tables with ``shape = tuple(sizes[name] for name in clique)``.
    """
    lookups = {name: _lookup(table) for name, table in (maps or {}).items()}
    rows = len(next(iter(codes.values()))) if codes else 0
    for group in _groups(_blocks(sizes, cliques)):
        totals = [np.zeros(block.cells, dtype=np.int64) for block in group]
        # Chunks grow with the histograms, so that allocating them stays the smaller cost.
        step = max(CHUNK_ROWS, *(block.cells for block in group))
        for start in range(0, rows, step):
            chunk = _Chunk(codes, sizes, lookups, slice(start, min(start + step, rows)))
            for block, total in zip(group, totals, strict=True):
                np.add(total, np.bincount(chunk.index(block), minlength=block.cells), out=total)
        for block, total in zip(group, totals, strict=True):
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


def _groups(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Cut the blocks into runs whose histograms fit ``GROUP_CELLS`` together."""
    group: list[_Block] = []
    cells = 0
    for block in sorted(blocks, key=lambda block: block.cells):
        if group and cells + block.cells > GROUP_CELLS:
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
        rows: slice,
    ) -> None:
        self._codes, self._sizes, self._lookups, self._rows = codes, sizes, lookups, rows
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
        codes: Codes = self._codes[name][self._rows]
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
