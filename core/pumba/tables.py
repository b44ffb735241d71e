"""Tables of counts from noisy cells, margins and totals: stage 1, and where to find the rest.

Nothing is rescaled, clipped or projected: counts are whole, at least 0, at most the cap, and add
up to the total where that is exact; on that lattice the noise's own law is drawn from.
"""

from __future__ import annotations

import numpy as np

from core.errors import StatisticError
from core.protocols import Progress
from core.pumba.draws import Diagnostics, StatisticDraws
from core.pumba.noisy_table import NoisyTable, TableQuery
from core.pumba.table_exact import Law, affordable, draw_exact, marginal_laws, total_law
from core.pumba.table_gibbs import draw_gibbs
from core.pumba.table_quantities import QUANTITIES, available, table_posterior
from core.pumba.table_windows import Tilted, split_releases, tilted

__all__ = [
    "QUANTITIES",
    "NoisyTable",
    "TableQuery",
    "available",
    "count_laws",
    "draw_counts",
    "table_posterior",
]


def draw_counts(
    table: NoisyTable,
    draws: int,
    generator: np.random.Generator,
    progress: Progress | None = None,
) -> StatisticDraws:
    """Stage 1: draws (draws, cells) of the true counts; free post-processing.

    Independent draws of the exact law where releases are of single cells and of the total only,
    else parallel Gibbs chains on the lattice.

    Parameters
    ----------
    table
        The releases.
    progress
        Called while chains run; may raise ``Cancelled``.
    """
    found = _exact(table)
    if found is None:
        return draw_gibbs(table, draws, generator, progress)
    values = draw_exact(found, draws, generator)
    diagnostics = Diagnostics(
        "exact", effective=float(draws), outside_support=table.outside_support
    )
    return StatisticDraws(values, diagnostics)


def count_laws(table: NoisyTable) -> tuple[tuple[Law, ...], Law]:
    """Exact laws of each cell's count, and of the number of rows, given all releases.

    Raises
    ------
    StatisticError
        If margins were released as well, so that the laws have no closed form.
    """
    found = _exact(table)
    if found is None:
        raise StatisticError(
            "the exact law of a count is known for releases of cells and of the total only; draw "
            "the counts instead"
        )
    return tuple(marginal_laws(found)), total_law(found)


def _exact(table: NoisyTable) -> Tilted | None:
    split = split_releases(table)
    if split.others:
        return None
    found = tilted(table, split)
    return found if found is not None and affordable(found) else None
