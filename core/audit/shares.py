"""One column or one pair seen from every world at once, ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.artefacts import compressed_labels
from core.audit.against_release import released_shares
from core.audit.audits import PrivateAudit, ReleasedAudit
from core.audit.worlds import World
from core.errors import ReleaseError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ColumnShares:
    """Shares of one column's cells.

    Attributes
    ----------
    name, cells
        The column and its declared cells.
    released
        (cells,) noisy counts over the released row count; noise may take them below 0 or above 1.
    sigma
        Standard deviation of the noise in a released share.
    synthetic
        (cells,) shares of the synthetic rows.
    real
        (cells,) shares of the real rows, where they were looked at.
    """

    name: str
    cells: tuple[str, ...]
    released: FloatArray | None
    sigma: float
    synthetic: FloatArray
    real: FloatArray | None


@dataclass(frozen=True, eq=False, repr=False)
class PairShares:
    """Shares of one pair's cells in the synthetic rows, and in what they are compared with.

    Attributes
    ----------
    names
        The pair.
    rows, columns
        Cells of the first and of the second column.
    synthetic, other
        (rows, columns) shares.
    against
        Name of the other world.
    """

    names: tuple[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    synthetic: FloatArray
    other: FloatArray
    against: str

    @property
    def difference(self) -> FloatArray:
        """(rows, columns) synthetic less other."""
        found: FloatArray = self.synthetic - self.other
        return found


def column_shares(
    audit: ReleasedAudit, name: str, beside: PrivateAudit | None = None
) -> ColumnShares:
    """Shares of a column as released, in the synthetic rows and, if looked at, in the real ones.

    Raises
    ------
    SchemaError
        There is no such column.
    """
    release = audit.release
    column = release.schema[name]
    total = release.total
    measured = next(table for table in release.one_way if table.clique == (name,))
    return ColumnShares(
        name,
        column.cells,
        measured.values / total if total > 0 else None,
        measured.sigma / total if total > 0 else 0.0,
        _shares(audit.synthetic, (name,)),
        None if beside is None else _shares(beside.real, (name,)),
    )


def measured_pair(audit: ReleasedAudit, edge: tuple[str, str]) -> PairShares:
    """A released pair on its compressed cells: noisy shares against the synthetic rows.

    Raises
    ------
    ReleaseError
        The pair was not measured, or noise hides the row count.
    """
    release = audit.release
    pair = next((table for table in release.two_way if set(table.clique) == set(edge)), None)
    if pair is None or not release.total > 0:
        raise ReleaseError("this pair has no released table to compare with; choose another one")
    first, second = pair.clique
    shares = released_shares(audit.synthetic, pair.clique, release, recode=True)
    return PairShares(
        (first, second),
        compressed_labels(release, first),
        compressed_labels(release, second),
        shares.reshape(pair.values.shape),
        pair.values / release.total,
        "the released table",
    )


def real_pair(beside: PrivateAudit, first: str, second: str) -> PairShares:
    """Any pair on its declared cells: the real rows against the synthetic ones."""
    schema = beside.real.schema
    return PairShares(
        (first, second),
        schema[first].cells,
        schema[second].cells,
        _shares(beside.released.synthetic, (first, second)),
        _shares(beside.real, (first, second)),
        "the real table",
    )


def pair_matrix(beside: PrivateAudit) -> tuple[tuple[str, ...], FloatArray]:
    """Names, and total variation of every pair looked at; NaN for pairs left out of a sample."""
    pairs = next(found for found in beside.fidelity.marginals if found.ways == 2)
    names = beside.real.schema.names
    place = {name: index for index, name in enumerate(names)}
    matrix = np.full((len(names), len(names)), np.nan)
    for (first, second), value in zip(pairs.names, pairs.tv, strict=True):
        matrix[place[first], place[second]] = matrix[place[second], place[first]] = value
    return names, matrix


def _shares(world: World, names: tuple[str, ...]) -> FloatArray:
    table = world.table(names)
    shares: FloatArray = table / max(int(table.sum()), 1)
    return shares
