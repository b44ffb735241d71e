"""Pictures of the PrivCI benchmark: a metric a picture, a table a panel, a method a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.plots import Picture, curves
from benchmarks.privci_cells import METHODS
from benchmarks.privci_results import METRICS, NOTHING, Results

#: Metric and what its picture shows a level at.
SHOWN: tuple[tuple[str, float | None], ...] = (
    ("score", None),
    ("kl", None),
    ("tv", None),
    ("excess", 0.0),
    ("auc", 0.5),
    ("gap", 0.0),
)


def draw(results: Results, folder: Path) -> dict[str, Picture]:
    """One picture a metric, into the folder."""
    budgets = [float(epsilon) for epsilon in results.finite]
    found = {}
    for metric, level in SHOWN:
        panels = {
            table: {
                method: (
                    budgets,
                    [results.median(table, method, eps, metric) for eps in results.finite],
                )
                for method in METHODS
            }
            for table in results.tables
        }
        panels = {
            table: lines
            for table, lines in panels.items()
            if any(np.nanmax(np.abs([0.0, *values])) > NOTHING for _, values in lines.values())
        }
        heading = METRICS[metric]
        found[metric] = curves(
            folder / f"privci-{metric}.svg",
            panels,
            across="ε",
            up=heading,
            alt=f"{heading} by ε, four structures, one panel a table",
            level=level,
            wrap=4,
        )
    return found
