"""Curves of posteriors, ready to draw: a smooth density of draws, and the naive normal."""

from __future__ import annotations

import numpy as np

from core.pumba.draws import FloatArray
from core.pumba.summaries import ParameterSummary

#: Bins of the histogram that is smoothed; far more than a screen shows.
_BINS = 1024
#: A naive curve further away than this many widths of the posterior would hide the latter.
_REACH = 3.0


def density(values: FloatArray, points: int = 240) -> tuple[FloatArray, FloatArray]:
    """A smooth density of draws on an even grid, by a binned Gaussian kernel.

    A third wider than Silverman's rule: it is for looking at, and 4,000 draws leave ripples.

    Parameters
    ----------
    values
        (R,) draws.
    points
        Size of the grid.

    Returns
    -------
    tuple
        Grid and density, (points,) each; a parameter that does not vary has one spike.
    """
    low, high = np.quantile(values, [0.001, 0.999])
    spread = min(float(values.std()), float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34)
    spread = spread or float(values.std())
    if not spread > 0:
        grid = np.linspace(low - 1.0, high + 1.0, points | 1)
        return grid, (grid == grid[len(grid) // 2]).astype(np.float64)
    width = 1.2 * spread * len(values) ** -0.2
    ends = (float(low) - 3 * width, float(high) + 3 * width)
    counts, edges = np.histogram(values, bins=_BINS, range=ends)
    step = edges[1] - edges[0]
    reach = min(int(np.ceil(4 * width / step)), _BINS // 2 - 1)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same") / (len(values) * step)
    grid = np.linspace(*ends, points)
    return grid, np.interp(grid, (edges[:-1] + edges[1:]) / 2, smooth)


def naive_curve(
    summary: ParameterSummary, level: float, points: int = 240
) -> tuple[FloatArray, FloatArray] | None:
    """The normal density that treats the release as exact; None where it is undefined or far off.

    Far off: more than three widths of the private interval away, where drawing it would only
    squeeze the posterior into a line.
    """
    from scipy.special import ndtri

    if summary.naive is None or summary.naive_low is None or summary.naive_high is None:
        return None
    error = (summary.naive_high - summary.naive_low) / (2 * float(ndtri(0.5 + level / 2)))
    width = summary.eti_high - summary.eti_low
    centre = (summary.eti_high + summary.eti_low) / 2
    if not error > 0 or abs(summary.naive - centre) > _REACH * width:
        return None
    grid = summary.naive + error * np.linspace(-4, 4, points)
    curve = np.exp(-0.5 * ((grid - summary.naive) / error) ** 2) / (error * np.sqrt(2 * np.pi))
    return grid, curve
