"""Square matrices as heat maps that stay readable from two columns to hundreds."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from pages.shared.charts import figure
from pages.shared.network import elide
from pages.shared.palette import ink

#: Up to so many columns have their names written at the axes; of more, hovering tells.
NAMED = 24
#: Letters of a written name, and the fewest on a telephone.
LETTERS, FEW_LETTERS = 14, 7
#: Ends of the colour scale: negative ones; positive ones wear the accent.
NEGATIVE = {"light": "#B4480B", "dark": "#F0A05C"}
#: More dots than this hide what they mark.
MOST_DOTS = 1_500
#: Buttons for zooming a picture of many columns.
ZOOM = {
    "displaylogo": False,
    "displayModeBar": True,
    "scrollZoom": False,
    "modeBarButtons": [["zoomIn2d", "zoomOut2d", "resetScale2d"]],
}


@dataclass(frozen=True, eq=False)
class Square:
    """What to draw.

    Attributes
    ----------
    names
        Of rows and columns, in the order of the picture.
    colours
        (d, d): what the colours show; NaN stays blank.
    numbers
        (d, d): what hovering shows.
    bound
        The colours run from minus to plus this.
    title
        Name of the numbers, for hovering.
    scale
        Name of the colours.
    marked
        (d, d): entries that get a dot above the diagonal.
    newest
        An entry to point out, by positions.
    positive
        True when no number is negative: the colours then run from 0.
    """

    names: Sequence[str]
    colours: NDArray[np.float64]
    numbers: NDArray[np.float64]
    bound: float
    title: str
    scale: str
    marked: NDArray[np.bool_]
    newest: tuple[int, int] | None = None
    positive: bool = False


def dotted(marked: NDArray[np.bool_]) -> bool:
    """Whether dots would tell something: not if there are none, or if they were everywhere."""
    upper = np.triu(marked, 1)
    count, size = int(upper.sum()), len(marked)
    return 0 < count <= MOST_DOTS and count < size * (size - 1) // 2


def draw(square: Square, theme: str, *, height: int, letters: int = LETTERS) -> go.Figure:
    """The picture; every text from outside is escaped."""
    size = len(square.names)
    colours = ink(theme)
    names = [html.escape(name) for name in square.names]
    traces = [_cells(square, names, theme)]
    if dotted(square.marked):
        traces.append(_dots(square, colours.text, height))
    if square.newest is not None:
        traces.append(_outline(square.newest, colours.text, height / size))
    named = size <= NAMED
    ticks = [html.escape(elide(name, letters)) for name in square.names] if named else names
    axis = {
        "tickmode": "array",
        "tickvals": list(range(size)),
        "ticktext": ticks,
        "showticklabels": named,
        "ticks": "",
        "showgrid": False,
        "zeroline": False,
        "range": [-0.5, size - 0.5],
        "constrain": "domain",
    }
    return figure(
        traces,
        theme,
        height,
        x={**axis, "side": "top", "tickangle": -45 if named else 0},
        y={**axis, "range": [size - 0.5, -0.5], "scaleanchor": "x"},
        showlegend=False,
        plot_bgcolor=colours.wall,
        dragmode="zoom",
        hovermode="closest",
        modebar=buttons(theme),
    )


def buttons(theme: str) -> dict[str, str]:
    """How the zoom buttons look."""
    colours = ink(theme)
    return {
        "bgcolor": "rgba(0,0,0,0)",
        "color": colours.soft,
        "activecolor": colours.text,
        "orientation": "v",
    }


def _cells(square: Square, names: list[str], theme: str) -> dict[str, Any]:
    colours = ink(theme)
    same = square.numbers is square.colours
    ends = [[0, colours.paper], [1, colours.accent]]
    if not square.positive:
        ends = [
            [0, NEGATIVE["dark" if theme == "dark" else "light"]],
            [0.5, colours.paper],
            ends[1],
        ]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": square.colours.astype(np.float32),
        "zmin": 0 if square.positive else -square.bound,
        "zmax": square.bound,
        "colorscale": ends,
        "hoverongaps": False,
        "colorbar": {
            "title": {"text": square.scale, "side": "right"},
            "thickness": 10,
            "outlinewidth": 0,
            "len": 0.7,
        },
        "xgap": 1 if len(names) <= NAMED else 0,
        "ygap": 1 if len(names) <= NAMED else 0,
    }
    number = "%{z:.3f}" if same else "%{customdata:.4~g}"
    where = "%{y} — %{x}"
    if len(names) <= NAMED:  # names at the axes are cut short: hovering tells them in full
        where = "%{text}"
        trace["text"] = [[f"{row} — {column}" for column in names] for row in names]
    if not same:
        trace["customdata"] = square.numbers.astype(np.float32)
    trace["hovertemplate"] = f"<b>{where}</b><br>{square.title} {number}<extra></extra>"
    return trace


def _dots(square: Square, colour: str, height: int) -> dict[str, Any]:
    rows, columns = np.nonzero(np.triu(square.marked, 1))
    cell = height / len(square.names)
    return {
        "type": "scatter",
        "x": columns,
        "y": rows,
        "mode": "markers",
        "marker": {"symbol": "circle", "size": min(max(cell * 0.2, 3.5), 7), "color": colour},
        "hoverinfo": "skip",
    }


def _outline(newest: tuple[int, int], colour: str, cell: float) -> dict[str, Any]:
    a, b = newest
    return {
        "type": "scatter",
        "x": [a, b],
        "y": [b, a],
        "mode": "markers",
        "marker": {
            "symbol": "square-open",
            "size": min(max(cell * 0.8, 12), 40),
            "color": colour,
            "line": {"width": 2.5},
        },
        "hoverinfo": "skip",
    }
