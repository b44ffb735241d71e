"""What an audit looks at: coded rows of one world, and whether figures of it may be published.

Synthetic rows are free for everybody.  Real rows come through a logged
:class:`~core.private.vault.NotPrivate` handle only; whatever is computed from them is private, and
every :class:`~core.audit.figures.Figure` carries that mark on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from core.errors import ReadingError
from core.private.vault import NotPrivate
from core.privci.sample import Synthetic
from core.schema import Schema

IntArray = NDArray[np.int64]
Codes = NDArray[Any]

#: Largest table that is counted densely.
DENSE_CELLS = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """Coded rows.

    Attributes
    ----------
    name
        What it is, in plain words: "synthetic rows", "real table".
    schema
        Declarations of the columns, in file order.
    codes
        Cell code of every row by column, ``0 <= code < schema[name].size``.
    rows
        Number of rows.
    private
        True when it holds real rows: nothing computed from it may be published.
    """

    name: str
    schema: Schema
    codes: Mapping[str, Codes]
    rows: int
    private: bool

    def __post_init__(self) -> None:
        """One code a row and column."""
        for name in self.schema.names:
            if self.codes[name].shape != (self.rows,):
                raise ReadingError(f"column {name!r}: one code a row is needed")

    def __repr__(self) -> str:
        """Only public facts."""
        held = "rows confidential" if self.private else f"{self.rows:,} rows"
        return f"World({self.name!r}, {len(self.schema.columns)} columns, {held})"

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        """Real rows are not copied around, and nothing here is worth pickling."""
        raise TypeError("an audited world can be neither copied nor pickled")

    def size(self, name: str) -> int:
        """Cells of a column."""
        return self.schema[name].size

    def table(self, names: Sequence[str]) -> IntArray:
        """Exact ``int64`` contingency table, one axis a name.

        Raises
        ------
        ReadingError
            For a table of more than ten million cells; use :meth:`joint`.
        """
        sizes = tuple(self.size(name) for name in names)
        cells = int(np.prod(sizes, dtype=object))
        if cells > DENSE_CELLS:
            raise ReadingError("the joint table of these columns is too large to count densely")
        flat = np.zeros(self.rows, dtype=np.int64)
        for name, size in zip(names, sizes, strict=True):
            flat = flat * size + self.codes[name]
        counted: IntArray = np.bincount(flat, minlength=cells).astype(np.int64).reshape(sizes)
        return counted

    def joint(self, names: Sequence[str]) -> IntArray:
        """One number a row that says which combination of these columns it has.

        Numbers run from 0 over the combinations that occur, in the order of their codes; no names
        give zeros.
        """
        combined = np.zeros(self.rows, dtype=np.int64)
        for name in names:
            _, combined = np.unique(
                combined * self.size(name) + self.codes[name], return_inverse=True
            )
        return np.asarray(combined, dtype=np.int64)

    def take(self, rows: NDArray[Any]) -> World:
        """The world of these rows: indices (with repeats for a bootstrap) or a mask."""
        codes = {name: self.codes[name][rows] for name in self.schema.names}
        count = len(next(iter(codes.values()))) if codes else 0
        return World(self.name, self.schema, codes, count, self.private)


def synthetic_world(synthetic: Synthetic, schema: Schema, name: str = "synthetic rows") -> World:
    """The world of synthetic rows; figures of it are free and may be published."""
    return World(name, schema, dict(synthetic.codes), synthetic.rows, private=False)


def real_world(handle: NotPrivate, schema: Schema, name: str = "real table") -> World:
    """The world of the real rows, for the steward's own screen; nothing of it may be published.

    Parameters
    ----------
    handle
        Raw access, already logged with its reason.
    schema
        The released columns; others are left out.
    """
    codes = handle.codes()
    rows = len(next(iter(codes.values()))) if codes else 0
    kept = {
        column.name: codes[column.name].astype(np.min_scalar_type(max(column.size - 1, 0)))
        for column in schema.columns
    }
    return World(name, schema, kept, rows, private=True)
