"""Edges for skewed numbers: equal bins from end to end would put nearly all into one of them.

Edges are read off the values, for suggestions only; whoever uses them is flagged for ever.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.kinds import DEFAULT_BINS

FloatArray = NDArray[np.float64]

#: Equal bins are given up where one of them would hold more than this share.
_CROWDED = 0.5
#: A value this frequent gets a cell of its own; the lowest one (often 0) sooner.
_FREQUENT, _FREQUENT_LOWEST = 0.2, 0.1
_LEVELS = (0.01, 0.03, *(level / 10 for level in range(1, 10)), 0.95, 0.98, 0.99)
#: Edges closer than this factor to another add cells and nothing else.
_APART = 1.3
_MOST_DIGITS = 7


def growing_edges(values: FloatArray, step: float) -> tuple[float, ...] | None:
    """Edges that follow the values, or None where equal bins will do.

    Frequent values get a cell of their own; the others rounded quantiles; and beyond the last of
    these 1, 2, 5, 10, 20, 50 and so on, so that within each cell an even spread is not far wrong.

    Parameters
    ----------
    values
        Finite numbers, at least two of them different.
    step
        Distance of two neighbouring numbers as written: 1 for integers, else a power of ten.
    """
    low, high = float(values.min()), float(values.max())
    counts, _ = np.histogram(values, bins=DEFAULT_BINS, range=(low, high))
    if counts.max() <= _CROWDED * len(values):
        return None
    spikes = _frequent(values)
    firm = {low, high}
    for spike in spikes:
        firm |= {spike, _on_grid(spike + step, step)}
    rest = values[~np.isin(values, spikes)]
    edges = {edge for edge in firm if low <= edge <= high}
    if len(rest):
        rounded = _rounded_quantiles(rest, step)
        edges |= {edge for edge in rounded if _is_free(edge, spikes, step, low, high)}
        further = _tail(np.quantile(rest, [0.1, 0.9]), edges, low, high)
        edges |= {
            edge
            for edge in further
            if edge == _on_grid(edge, step) and _is_free(edge, spikes, step, low, high)
        }
    top = _on_grid(high - step, step)
    crowd = values[values >= max(edge for edge in edges if edge < high)]
    if 2 * np.count_nonzero(crowd == high) > len(crowd) and top > max(edges - {high}):
        edges.add(top)  # values that pile up at the end, such as 99999
    return tuple(sorted(edges))


def _frequent(values: FloatArray) -> list[float]:
    different, counts = np.unique(values, return_counts=True)
    shares = counts / len(values)
    frequent = shares >= _FREQUENT
    frequent[0] |= shares[0] >= _FREQUENT_LOWEST
    return [float(value) for value in different[frequent]]


def _on_grid(value: float, step: float) -> float:
    places = max(0, round(-np.log10(step)))
    return float(round(value, places))


def _rounded_quantiles(values: FloatArray, step: float) -> set[float]:
    """Quantiles with as few digits as keep them apart."""
    raw = np.unique(np.quantile(values, _LEVELS))
    found: set[float] = set()
    for digits in range(2, _MOST_DIGITS):
        found = {_on_grid(float(f"{value:.{digits}g}"), step) for value in raw}
        if 4 * len(found) >= 3 * len(raw):
            break
    return found


def _is_free(edge: float, spikes: list[float], step: float, low: float, high: float) -> bool:
    """Whether an edge lies within the bounds and in no cell of a frequent value."""
    inside = low + step <= edge <= high - step
    return inside and all(abs(edge - spike) > 1.5 * step for spike in spikes)


def _tail(ends: FloatArray, edges: set[float], low: float, high: float) -> set[float]:
    """1-2-5 edges beyond both ends, where they are not close to another edge."""
    found: set[float] = set()
    for sign, end, last in ((1.0, float(ends[1]), high), (-1.0, -float(ends[0]), -low)):
        if last <= 0:
            continue
        start = max(end, last * 1e-6)
        first = int(np.floor(np.log10(start)))
        for power in range(first, int(np.ceil(np.log10(last))) + 1):
            for lead in (1.0, 2.0, 5.0):
                edge = lead * 10.0**power
                near = [sign * e for e in (*edges, *found) if sign * e > 0]
                apart = all(max(edge / e, e / edge) >= _APART for e in near)
                if start < edge < last and apart:
                    found.add(sign * edge)
    return found
