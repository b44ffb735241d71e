"""Pictures of the PUMBA benchmark that no other one needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from benchmarks.plots import LOOKS, Picture, picture


def _nominal(axes: Axes) -> None:
    axes.axhline(0.95, color="#444444", linewidth=0.8, linestyle="--")


def coverage_and_width(designs: Sequence[Mapping[str, Any]], path: Path) -> Picture:
    """A panel a design: coverage of each method against its width relative to the oracle's."""
    names = {
        "oracle": "oracle",
        "pumba": "PUMBA",
        "plug_in": "plug-in (miss)",
        "plug_in_floored": "plug-in (floored)",
        "bootstrap": "bootstrap",
        "naive": "naive",
    }
    shown = designs[:3]
    with picture(path, len(shown), width=3.2 * len(shown), height=3.3) as row:
        for axes, design in zip(row, shown, strict=True):
            base = design["methods"]["oracle"]["width"]
            for (key, name), (colour, marker) in zip(names.items(), LOOKS, strict=True):
                found = design["methods"][key]
                axes.plot(
                    found["width"] / base, found["coverage"], marker, color=colour, label=name
                )
            _nominal(axes)
            axes.set_title(design["label"], fontsize=9)
            axes.set_xlabel("mean width / oracle's")
        row[0].set_ylabel("coverage of the mean")
        handles, labels = row[0].get_legend_handles_labels()
        row[0].figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return path.name, "Coverage against relative width of each method, one panel a design"
