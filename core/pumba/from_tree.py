"""What the marginals of a tree release say by themselves: tables for posteriors, at no cost.

A tree release holds noisy one-way tables on declared cells and noisy two-way tables of its chosen
pairs.  Both are counts plus noise of a known law, which is all that a posterior needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.pumba.noisy_table import NoisyTable, TableQuery
from core.pumba.release import noisy_cells
from core.releases import NoisyMarginal, TreeRelease, estimated_total
from core.statistics import Family, NoiseLaw, NoisyStatistic

#: What must be said of a pair that the release chose.
SELECTION = (
    "This pair was chosen because the same rows looked dependent in it: measures of its "
    "association lean away from independence, even though its noise is its own."
)
#: What must be said where margins are used beside cells that no pooling touched.
UNPOOLED = (
    "The one-way counts used here also decided that no cell of this pair is pooled; frequent cells "
    "lean a little upwards for it."
)


@dataclass(frozen=True, eq=False)
class TreeTable:
    """A table that a tree release measured.

    Attributes
    ----------
    columns
        One column, or a chosen pair.
    table
        The noisy counts, with the margins where they were asked for.
    caveats
        Sentences that belong to every result.
    """

    columns: tuple[str, ...]
    table: NoisyTable
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TreeTables:
    """All tables that posteriors may be drawn from, and why other pairs have none."""

    tables: tuple[TreeTable, ...]
    refusals: tuple[tuple[tuple[str, str], str], ...]

    def table(self, *columns: str) -> TreeTable | None:
        """The table of these columns in any order, or None."""
        for found in self.tables:
            if set(found.columns) == set(columns):
                return found
        return None


def tree_tables(release: TreeRelease, *, margins: bool = True) -> TreeTables:
    """Every one-way table, and the two-way tables of chosen pairs without pooled cells.

    Parameters
    ----------
    release
        Noisy marginals with their pooling.
    margins
        Let the one-way tables of a pair's columns inform its cells: they are releases of its
        margins, with noise of their own.

    Notes
    -----
    The number of rows is taken as known where it is public (``replace_one``) and not otherwise.
    """
    one_way = {marginal.clique[0]: marginal for marginal in release.one_way}
    tables = [
        TreeTable((name,), _table(release, marginal))
        for name, marginal in one_way.items()
        if marginal.values.size > 1
    ]
    measured = {marginal.clique: marginal for marginal in release.two_way}
    refusals = []
    for pair in release.edges:
        reason = _refusal(release, pair, measured)
        if reason is not None:
            refusals.append((pair, reason))
            continue
        marginal = measured[pair]
        known = tuple(one_way[name] for name in pair) if margins else ()
        caveats = (SELECTION, UNPOOLED) if margins else (SELECTION,)
        tables.append(TreeTable(pair, _table(release, marginal, known), caveats))
    return TreeTables(tuple(tables), tuple(refusals))


def row_count_of(release: TreeRelease) -> int | NoisyStatistic:
    """The number of rows that a tree release tells: public, or from all its one-way tables.

    Each one-way table sums to the same number plus noise of variance cells · σ²; the precisions
    add up.  The mean of that many discrete Gaussians counts as a Gaussian.
    """
    if release.public_rows is not None:
        return release.public_rows
    precision = sum(
        1.0 / (marginal.values.size * marginal.sigma**2) for marginal in release.one_way
    )
    law = NoiseLaw(Family.GAUSSIAN, 1.0 / math.sqrt(precision))
    return NoisyStatistic(estimated_total(release.one_way), law)


def _refusal(
    release: TreeRelease,
    pair: tuple[str, str],
    measured: dict[tuple[str, ...], NoisyMarginal],
) -> str | None:
    """Why a chosen pair has no table of declared cells, or None."""
    if pair not in measured:
        return "The release was cancelled before this pair was measured."
    maps = release.recoding.maps
    pooled = [n for n in pair if n in maps and maps[n].tolist() != list(range(len(maps[n])))]
    if pooled:
        columns = " and ".join(f"“{name}”" for name in pooled)
        return (
            f"Rare cells of {columns} were pooled before this pair was measured, by noisy counts: "
            "its cells are not the declared ones."
        )
    if release.schema[pair[0]].size * release.schema[pair[1]].size < 2:
        return "The table of this pair has one cell only."
    return None


def _table(
    release: TreeRelease, marginal: NoisyMarginal, margins: tuple[NoisyMarginal, ...] = ()
) -> NoisyTable:
    shape = marginal.values.shape
    queries = []
    for axis, margin in enumerate(margins):
        for cell, statistic in enumerate(noisy_cells(margin)):
            weights = np.zeros(shape)
            weights[(slice(None),) * axis + (cell,)] = 1.0
            queries.append(TableQuery(tuple(weights.ravel().tolist()), statistic))
    return NoisyTable(
        axes=tuple((name, release.schema[name].cells) for name in marginal.clique),
        cells=noisy_cells(marginal),
        total=release.public_rows,
        queries=tuple(queries),
    )
