"""Synthetic rows from a fitted model: rounded, root to leaves, then cells opened again.

Random here means *which* row gets which cell; how many rows a cell gets is rounded, not drawn, so
that the synthetic table repeats the model's tables nearly exactly.  Free post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EstimationError
from core.privci.reconstruct import Fit
from core.privci.reconstruct import fit as fit_release
from core.privci.tree_model import TreeModel
from core.releases import NoisyMarginal, TreeRelease

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Codes = NDArray[Any]

#: Fractions of a row nearer than this to a whole number count as whole.
WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A synthetic table and how it came about.

    Attributes
    ----------
    frame
        Values in the order of the schema.
    codes
        Declared cell of every value, by column.
    fit
        The model that was sampled.
    seed
        Seed of the sampling; the same release, fit, rows and seed give the same table.
    rows
        Number of rows.
    """

    frame: pd.DataFrame
    codes: Mapping[str, Codes]
    fit: Fit
    seed: int
    rows: int


def synthesize(
    release: TreeRelease,
    fit: Fit | None = None,
    rows: int | None = None,
    engine: str = "auto",
    seed: int = 0,
) -> Synthetic:
    """Synthetic rows from a release.

    Parameters
    ----------
    release
        What was measured.
    fit
        A fit of this release; fitted with ``engine`` if not given.
    rows
        Rows to make, 0 and up; by default the (noisy or public) row count, at least 1.
    seed
        Seed of the sampling.  Costs nothing and protects nobody: the model is private already.

    Raises
    ------
    EstimationError
        When nothing can be fitted, or ``rows`` is negative.
    """
    from core.decoding import decode

    fit = fit_release(release, engine=engine) if fit is None else fit
    rows = max(1, round(fit.model.total)) if rows is None else rows
    generator = np.random.default_rng(seed)
    codes = expand(sample(fit.model, rows, generator), release, generator)
    codes = {name: codes[name] for name in release.schema.names}
    return Synthetic(decode(codes, release.schema, generator), codes, fit, seed, rows)


def sample(model: TreeModel, rows: int, generator: np.random.Generator) -> dict[str, Codes]:
    """Rows whose one- and two-way tables follow the model's, rounded.

    Every column's and every edge's count is within one row of ``rows`` times its probability
    (as far as whole numbers allow).  A child's cells are dealt to its parent's rows in random
    order, independently of all other columns, as the model says.

    Parameters
    ----------
    rows
        0 and up.

    Returns
    -------
    dict
        Compressed cell codes by column, in sorted order; the smallest unsigned type that fits.
    """
    if rows < 0 or int(rows) != rows:
        raise EstimationError("the number of synthetic rows is a whole number of at least 0")
    columns: list[Codes] = [np.empty(0, dtype=np.uint8)] * len(model.columns)
    for visit in model.visits:
        probabilities = model.node[visit.node]
        kind = np.min_scalar_type(max(probabilities.size - 1, 0))
        if visit.parent is None:
            counts = round_systematically(probabilities * rows, generator)
            values = np.repeat(np.arange(probabilities.size, dtype=kind), counts)
            columns[visit.node] = generator.permutation(values)
            continue
        parent = columns[visit.parent]
        held = np.bincount(parent, minlength=model.sizes[visit.parent])
        conditional = model.conditional(visit)
        due = model.node[visit.parent] * rows
        # a parent's count is the model's, rounded; where it is further off, its own count counts
        due = np.where(np.abs(held - due) < 1, due, held)
        counts = round_table(due[:, None] * conditional, held, probabilities * rows, generator)
        # rows grouped by the parent's cell, in random order within a group
        order = generator.permutation(rows)
        order = order[np.argsort(parent[order], kind="stable")]
        values = np.tile(np.arange(probabilities.size, dtype=kind), len(held))
        column = np.empty(rows, dtype=kind)
        column[order] = np.repeat(values, counts.ravel())
        columns[visit.node] = column
    return dict(zip(model.columns, columns, strict=True))


def round_systematically(expected: FloatArray, generator: np.random.Generator) -> IntArray:
    """Whole numbers within one of the expected ones, unbiased, with the same (whole) sum.

    One uniform offset serves all cells (systematic sampling, Madow 1949).
    """
    total = round(float(expected.sum()))
    ends = np.floor(np.cumsum(expected) + generator.random()).astype(np.int64)
    ends[-1] = total
    ends = np.clip(ends, 0, total)
    ends[1:] -= ends[:-1].copy()
    return ends


def round_table(
    expected: FloatArray,
    row_totals: IntArray,
    column_targets: FloatArray,
    generator: np.random.Generator,
) -> IntArray:
    """A whole-number table: rows sum exactly, cells are within one, columns follow their targets.

    Row by row, the spare units go to the cells with the largest fraction plus what their column
    is still owed (error diffusion with a random phase, so that no cell is favoured for long).
    Where that leaves a column a whole unit off, a unit of one of its rows changes columns.

    Parameters
    ----------
    expected
        Shape (rows, columns), not negative; rows sum to within one of ``row_totals``.
    column_targets
        What the columns should sum to.
    """
    whole = np.floor(expected + WHOLE)
    fraction = np.maximum(expected - whole, 0.0)
    spare = row_totals - whole.sum(axis=1).astype(np.int64)
    owed = column_targets - expected.sum(axis=0) + generator.random(expected.shape[1]) - 0.5
    # cells that are whole already come last, impossible cells never
    raised = np.zeros(expected.shape, dtype=np.bool_)
    handicap = np.where(fraction > WHOLE, 0.0, np.where(expected > 0, -1e6, -np.inf))
    for row, units in enumerate(spare.tolist()):
        owed += fraction[row]
        if units > 0:
            chosen = np.argpartition(-(owed + handicap[row]), units - 1)[:units]
            raised[row, chosen] = True
            owed[chosen] -= 1
        elif units < 0:  # only where a sum lies within rounding error of a whole number
            whole[row, np.argpartition(-whole[row], -units - 1)[:-units]] -= 1
    _balance(whole, raised, fraction > WHOLE, column_targets)
    return (whole + raised).astype(np.int64)


def _balance(
    whole: FloatArray, raised: BoolArray, broken: BoolArray, column_targets: FloatArray
) -> None:
    """Move raised units between columns of a row until no column is a whole unit off.

    Only broken cells (with a fraction) are lowered or raised, so that cells stay within one.
    """
    for _ in range(2 * len(column_targets)):
        apart = whole.sum(axis=0) + raised.sum(axis=0) - column_targets
        if np.abs(apart).max() < 1:
            return
        order = np.argsort(apart)
        if apart[order[-1]] >= 1:
            moves = [(int(order[-1]), int(other)) for other in order]
        else:
            moves = [(int(other), int(order[0])) for other in order[::-1]]
        for source, target in moves:
            rows = np.flatnonzero(
                raised[:, source] & broken[:, source] & broken[:, target] & ~raised[:, target]
            )
            if len(rows) and apart[source] > apart[target]:
                raised[rows[0], [source, target]] = False, True
                break
        else:
            return


def expand(
    codes: Mapping[str, Codes], release: TreeRelease, generator: np.random.Generator
) -> dict[str, Codes]:
    """Declared cells from compressed ones: every merged cell is opened again.

    Rows in a merged cell are spread over its members by :func:`member_shares`; nothing else in
    the row is looked at, so independences of the model stay as they are.

    Returns
    -------
    dict
        Declared cell codes by column, in sorted order.
    """
    one_way = {marginal.clique[0]: marginal for marginal in release.one_way}
    opened: dict[str, Codes] = {}
    for name in sorted(codes):
        column = codes[name]
        if name not in release.recoding.maps:
            opened[name] = column
            continue
        marginal = one_way[name]
        members = release.recoding.members(name, marginal.values.size)
        first = np.array([cell[0] for cell in members])
        kind = np.min_scalar_type(marginal.values.size - 1)
        declared = first.astype(kind)[column]
        for cell, inside in enumerate(members):
            if len(inside) > 1:
                rows = generator.permutation(np.flatnonzero(column == cell))
                shares = member_shares(marginal, inside)
                counts = round_systematically(shares * len(rows), generator)
                declared[rows] = np.repeat(np.array(inside, dtype=kind), counts)
        opened[name] = declared
    return opened


def member_shares(marginal: NoisyMarginal, inside: tuple[int, ...]) -> FloatArray:
    """Shares of a merged cell's members, from their noisy counts as far as these can be trusted.

    The counts are shrunk to their mean by the share of their variance that the noise explains
    (James and Stein 1961), clipped at zero and scaled to one.  Counts that vary no more than the
    noise does say nothing, and the shares are uniform.  The mean is not taken below its own
    noise, so that a merged cell of next to nothing is not given to a few members by chance.

    >>> from fractions import Fraction
    >>> table = NoisyMarginal(("a",), np.array([9, 900, 100, 20]), 1.0, Fraction(1))
    >>> member_shares(table, (2, 3)).round(2)
    array([0.83, 0.17])
    """
    values = marginal.values[list(inside)].astype(np.float64)
    mean, size = float(values.mean()), len(values)
    spread = float(((values - mean) ** 2).sum()) / (size - 1)
    trust = max(0.0, 1.0 - marginal.sigma**2 / spread) if spread > 0 else 0.0
    centre = max(mean, marginal.sigma / size**0.5)
    shrunk = np.maximum(centre + trust * (values - mean), 0.0)
    shares: FloatArray = shrunk / shrunk.sum()
    return shares
