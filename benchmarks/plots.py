"""Pictures of the benchmarks: SVG that is the same, byte for byte, for the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

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
def picture(
    path: Path, panels: int, *, width: float, height: float, wrap: int | None = None
) -> Iterator[list[Axes]]:
    """Axes in rows of ``wrap`` (one row without), saved without dates, with stable identifiers.

    Width and height are the whole picture's, in inches.
    """
    columns = min(wrap or panels, panels)
    rows = -(-panels // columns)
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(width, height), layout="constrained", squeeze=False
        )
        for spare in axes.flat[panels:]:
            spare.set_visible(False)
        yield list(axes.flat[:panels])
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    # matplotlib leaves blanks at the ends of lines
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")


def curves(
    path: Path,
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    across: str,
    up: str,
    alt: str,
    level: float | None = 0.95,
    log_up: bool = False,
    wrap: int | None = None,
) -> Picture:
    """One panel a title, one line a method, logarithmic x axis; rows of ``wrap`` panels."""
    methods = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    columns = min(wrap or len(panels), len(panels))
    rows = -(-len(panels) // columns)
    size = {"width": 3.6 * columns, "height": 3.3 if rows == 1 else 0.5 + 2.5 * rows}
    with picture(path, len(panels), wrap=wrap, **size) as row:
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
        for first in row[::columns]:
            first.set_ylabel(up)
        found = {}
        for axes in row:
            found.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
        row[0].figure.legend(
            found.values(),
            found.keys(),
            loc="outside lower center",
            ncols=3 if wrap is None else len(found),
            frameon=False,
        )
    return path.name, alt
