"""Continuous synthetic rows from an estimated mean and covariance, within the declared bounds.

Free post-processing, and not the synthetic table of PrivCI: no fairness rule is enforced here.

Rows are drawn from a Gaussian copula with the estimated correlations.  Every column follows a
normal law truncated to its declared bounds, so that nothing piles up at a bound; its location and
scale are moved until mean and variance are those of the estimate, as far as a truncated normal can
have them (no wider than about uniform on the bounds).  Rank correlations are those of the Gaussian;
Pearson correlations come out a little closer to 0 where bounds cut much away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.axis import day_text, decimal_grid
from core.column import Column
from core.errors import EstimationError
from core.kinds import Kind
from core.pace.estimate import Estimate
from core.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

#: What every such table is called.
GAUSSIAN_LABEL = (
    "Gaussian sample from the estimated covariance: continuous columns only, no fairness rule "
    "enforced; not the synthetic table of PrivCI."
)
#: Largest scale of a truncated normal, in widths of its interval: nearly uniform.
WIDEST = 3.0
#: How far outside the interval its location may lie, in scales.
FURTHEST = 3.0
ADJUSTMENTS = 200


@dataclass(frozen=True, eq=False)
class GaussianSample:
    """Synthetic rows and how their columns had to differ from the estimate.

    Attributes
    ----------
    frame
        Columns in file order: ``float64``, ``Int64`` for whole numbers, text for dates.
    seed
        The same estimate, schema, number of rows and seed give the same table.
    means, deviations
        Of the law that each column was drawn from, before rounding; raw units (dates: day
        ordinals), in the order of the estimate's columns.
    squeezed
        Columns whose estimated standard deviation does not fit between their bounds.
    label
        What this table is and is not.
    """

    frame: pd.DataFrame
    seed: int
    means: FloatArray
    deviations: FloatArray
    squeezed: tuple[str, ...]
    label: str = GAUSSIAN_LABEL


def gaussian_sample(
    found: Estimate, schema: Schema, *, rows: int | None = None, seed: int = 0
) -> GaussianSample:
    """Draw synthetic rows from an estimate.

    Integers and dates are rounded to whole ones, reals to their declared decimals; missing values
    are not imitated.

    Parameters
    ----------
    found
        Mean and covariance.
    schema
        Declarations of (at least) its columns.
    rows
        Whole number of at least 0; by default the estimate's own row count.
    seed
        Of the sampling.  It protects nobody: the estimate is private already.

    Raises
    ------
    EstimationError
        For a negative or broken number of rows.
    SchemaError
        For a column that the schema does not hold.
    """
    import pandas as pd
    from scipy.special import ndtr

    rows = max(1, round(found.rows)) if rows is None else rows
    if rows < 0 or int(rows) != rows:
        raise EstimationError("the number of synthetic rows is a whole number of at least 0")
    declared = [schema[name] for name in found.columns]
    low, high = np.array([column.bounds for column in declared]).T
    wanted = np.sqrt(found.covariance.diagonal())
    location, scale = matched_truncation(found.means, wanted, low, high)
    means, deviations = truncated_moments(location, scale, low, high)

    generator = np.random.default_rng(seed)
    scores = generator.standard_normal((int(rows), len(declared))) @ _root(found.correlation)
    values = _truncated(ndtr(scores), location, scale, low, high)
    finished = {
        column.name: _finished(values[:, place], column) for place, column in enumerate(declared)
    }
    order = [name for name in schema.names if name in finished]
    return GaussianSample(
        pd.DataFrame({name: finished[name] for name in order}),
        seed,
        means,
        deviations,
        tuple(
            name
            for name, is_, should in zip(found.columns, deviations, wanted, strict=True)
            if is_ < 0.99 * should
        ),
    )


def matched_truncation(
    means: FloatArray, deviations: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Location and scale of normals whose truncation to [low, high] has these moments.

    Where no truncated normal has them, the widest comes as close as it can.  An interval of width
    0 keeps its one value.
    """
    width = np.where(high > low, high - low, 1.0)
    target = np.clip(means, low, high)
    location, scale = target.copy(), np.clip(deviations, 1e-9 * width, WIDEST * width)
    for _ in range(ADJUSTMENTS):
        mean, deviation = truncated_moments(location, scale, low, high)
        ratio = np.clip(deviations / np.maximum(deviation, 1e-12 * width), 0.5, 2.0)
        scale = np.clip(scale * ratio, 1e-9 * width, WIDEST * width)
        # The wider the normal, the less its mean answers to its location.
        answer = np.clip((deviation / scale) ** 2, 0.05, 1.0)
        location = np.clip(
            location + 0.5 * (target - mean) / answer,
            low - FURTHEST * scale,
            high + FURTHEST * scale,
        )
    return location, scale


def truncated_moments(
    location: FloatArray, scale: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of normals truncated to [low, high]."""
    from scipy.special import ndtr

    below, above = (low - location) / scale, (high - location) / scale
    # Mirrored where the interval lies in the upper tail, so that its mass keeps its digits.
    flip = below + above > 0
    first, last = np.where(flip, -above, below), np.where(flip, -below, above)
    mass = np.maximum(ndtr(last) - ndtr(first), 1e-300)
    density_first = np.exp(-0.5 * first**2) / np.sqrt(2 * np.pi)
    density_last = np.exp(-0.5 * last**2) / np.sqrt(2 * np.pi)
    shift = (density_first - density_last) / mass
    inner = 1 + (first * density_first - last * density_last) / mass - shift**2
    mean = np.clip(location + np.where(flip, -1.0, 1.0) * shift * scale, low, high)
    return mean, scale * np.sqrt(np.maximum(inner, 0.0))


def _truncated(
    uniform: FloatArray, location: FloatArray, scale: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Quantiles of the truncated normals."""
    from scipy.special import ndtr, ndtri

    first, last = ndtr((low - location) / scale), ndtr((high - location) / scale)
    drawn: FloatArray = location + scale * ndtri(first + uniform * (last - first))
    return np.clip(drawn, low, high)


def _root(correlation: FloatArray) -> FloatArray:
    """Symmetric square root, which rounding can neither flip nor reorder."""
    values, vectors = np.linalg.eigh(correlation)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def _finished(values: FloatArray, column: Column) -> Any:
    """Values of the column's own kind and grid, within its bounds."""
    import pandas as pd

    low, high = column.bounds
    if column.kind is Kind.REAL:
        grid = None if column.decimals is None else decimal_grid((low, high), column.decimals)
        if grid is None or column.decimals is None:
            return values
        first, last = (int(end[0]) for end in grid)
        if first > last:  # no multiple lies between the bounds
            return values
        steps = np.clip(np.rint(values * 10.0**column.decimals), first, last)
        if column.decimals == 0:
            return pd.array(steps.astype(np.int64), dtype="Int64")
        return steps / 10.0**column.decimals
    whole = np.clip(np.rint(values), np.ceil(low), np.floor(high)).astype(np.int64)
    if column.kind is Kind.INTEGER:
        return pd.array(whole, dtype="Int64")
    days, inverse = np.unique(whole, return_inverse=True)
    texts = np.array([day_text(int(day), column.date_format) for day in days], dtype=object)
    return pd.array(texts[inverse] if len(whole) else texts, dtype="str")
