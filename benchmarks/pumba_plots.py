"""Pictures of the PUMBA benchmark: SVG that is the same, byte for byte, for the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

#: Colours that people with the common colour deficiencies tell apart (Okabe and Ito), and markers.
LOOKS = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
)
#: Text stays text, so that pictures are small and can be read out.
STYLE = {
    "svg.hashsalt": "pumba",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
Picture = tuple[str, str]


@contextmanager
def _picture(path: Path, columns: int, *, width: float, height: float) -> Iterator[list[Axes]]:
    """A row of axes, saved without dates and with stable identifiers."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, columns, figsize=(width, height), layout="constrained", squeeze=False
        )
        yield list(axes[0])
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    # matplotlib leaves blanks at the ends of lines
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")


def _nominal(axes: Axes) -> None:
    axes.axhline(0.95, color="#444444", linewidth=0.8, linestyle="--")


def curves(
    path: Path,
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    across: str,
    up: str,
    alt: str,
    level: float | None = 0.95,
    log_up: bool = False,
) -> Picture:
    """One panel a title with one line a method, on a logarithmic x axis."""
    methods = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    with _picture(path, len(panels), width=3.6 * len(panels), height=3.3) as row:
        for axes, (title, lines) in zip(row, panels.items(), strict=True):
            for name, (xs, ys) in lines.items():
                colour, marker = LOOKS[methods.index(name) % len(LOOKS)]
                axes.plot(xs, ys, color=colour, marker=marker, markersize=4, label=name)
            if level is not None:
                axes.axhline(level, color="#444444", linewidth=0.8, linestyle="--")
            axes.set_xscale("log")
            if log_up:
                axes.set_yscale("log")
            axes.set_title(title, fontsize=9)
            axes.set_xlabel(across)
        row[0].set_ylabel(up)
        found = {}
        for axes in row:
            found.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
        row[0].figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=3, frameon=False
        )
    return path.name, alt


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
    with _picture(path, len(shown), width=3.2 * len(shown), height=3.3) as row:
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
