"""Pictures of an audit: shares of a column, a pair's differences, groups within strata."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.audit.gaps import StratumGap
from core.audit.shares import ColumnShares, PairShares
from pages.shared.charts import figure
from pages.shared.heat import NEGATIVE
from pages.shared.network import elide
from pages.shared.palette import ink

#: Marks of groups, told apart without colour.
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "hexagon", "pentagon")
COLOURS = {
    "light": ("#3D4FB8", "#B4480B", "#12493A", "#8A4F9E", "#5B6172", "#A07000"),
    "dark": ("#8C9BFF", "#F0A05C", "#5CEBAA", "#D6A5E8", "#A5AABA", "#E8C35A"),
}
ROW = 26
LETTERS, FEW_LETTERS = 26, 12


def column(shares: ColumnShares, theme: str) -> go.Figure:
    """Released shares with their noise, the synthetic ones, and the real ones if there."""
    colours = ink(theme)
    cells = [html.escape(elide(cell, LETTERS)) for cell in shares.cells]
    traces: list[dict[str, Any]] = []
    if shares.released is not None:
        traces.append(
            {
                "type": "bar",
                "x": cells,
                "y": 100 * shares.released,
                "name": "released (noisy), ± 2 σ",
                "marker": {"color": colours.line},
                "error_y": {
                    "type": "constant",
                    "value": 200 * shares.sigma,
                    "color": colours.soft,
                    "thickness": 1.5,
                },
                "hovertemplate": "%{x}: %{y:.2f} %<extra>released</extra>",
            }
        )
    points = [("synthetic rows", shares.synthetic, colours.accent, "diamond")]
    if shares.real is not None:
        points.append(("real table (private)", shares.real, NEGATIVE[_kind(theme)], "x"))
    for name, values, colour, symbol in points:
        traces.append(
            {
                "type": "scatter",
                "x": cells,
                "y": 100 * values,
                "name": name,
                "mode": "markers",
                "marker": {"color": colour, "size": 11, "symbol": symbol},
                "hovertemplate": f"%{{x}}: %{{y:.2f}} %<extra>{name}</extra>",
            }
        )
    return figure(
        traces,
        theme,
        340,
        x={"type": "category", "showgrid": False},
        y={"title": "share of rows, %", "rangemode": "tozero"},
    )


def ranked(
    names: Sequence[str],
    values: Sequence[float],
    chance: Sequence[float],
    words: str,
    theme: str,
    *,
    letters: int = LETTERS,
) -> go.Figure:
    """Distances as bars, the largest on top, with what noise or chance alone gives as a tick."""
    colours = ink(theme)
    labels = [html.escape(elide(name, letters)) for name in names]
    places = list(range(len(names)))[::-1]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "y": places,
            "x": 100 * np.asarray(values),
            "name": "distance",
            "marker": {"color": colours.accent},
            "customdata": [html.escape(name) for name in names],
            "hovertemplate": "%{customdata}: %{x:.2f} %<extra></extra>",
        },
        {
            "type": "scatter",
            "y": places,
            "x": 100 * np.asarray(chance),
            "mode": "markers",
            "name": words,
            "marker": {
                "symbol": "line-ns-open",
                "size": 16,
                "color": colours.text,
                "line": {"width": 2.5},
            },
            "hovertemplate": f"%{{x:.2f}} %<extra>{words}</extra>",
        },
    ]
    return figure(
        traces,
        theme,
        90 + ROW * len(names),
        x={"title": "total variation, % of rows", "rangemode": "tozero"},
        y={
            "tickmode": "array",
            "tickvals": places,
            "ticktext": labels,
            "showgrid": False,
            "zeroline": False,
            "range": [-0.6, len(names) - 0.4],
        },
        bargap=0.35,
    )


def pair(shares: PairShares, theme: str) -> go.Figure:
    """Synthetic less compared shares, in percentage points of all rows."""
    colours = ink(theme)
    points = 100 * shares.difference
    bound = max(float(np.abs(points).max()), 1e-9)
    heat = {
        "type": "heatmap",
        "z": points,
        "x": [html.escape(elide(cell, LETTERS)) for cell in shares.columns],
        "y": [html.escape(elide(cell, LETTERS)) for cell in shares.rows],
        "zmin": -bound,
        "zmax": bound,
        "colorscale": [
            [0, NEGATIVE[_kind(theme)]],
            [0.5, colours.paper],
            [1, colours.accent],
        ],
        "xgap": 1,
        "ygap": 1,
        "customdata": np.dstack([100 * shares.synthetic, 100 * shares.other]),
        "hovertemplate": "%{y} and %{x}<br>synthetic %{customdata[0]:.2f} %<br>compared "
        "%{customdata[1]:.2f} %<extra></extra>",
        "colorbar": {
            "title": {"text": "percentage points", "side": "right"},
            "thickness": 10,
            "outlinewidth": 0,
        },
    }
    first, second = (html.escape(elide(name, LETTERS)) for name in shares.names)
    return figure(
        [heat],
        theme,
        min(max(160 + 24 * len(shares.rows), 280), 620),
        x={"type": "category", "title": second, "showgrid": False},
        y={"type": "category", "title": first, "autorange": "reversed", "showgrid": False},
        plot_bgcolor=colours.wall,
    )


def strata(
    found: Sequence[StratumGap], theme: str, *, most: int = 12, letters: int = LETTERS
) -> go.Figure:
    """Each group's share within the admissible cells with the most rows: one line a cell."""
    colours = ink(theme)
    shown = list(found[:most])
    places = list(range(len(shown)))[::-1]
    names = [", ".join(one.labels) or "all rows" for one in shown]
    groups = list(dict.fromkeys(rate.group for one in shown for rate in one.rates))
    traces: list[dict[str, Any]] = []
    for place, one in zip(places, shown, strict=True):
        values = [100 * rate.rate for rate in one.rates]
        traces.append(
            {
                "type": "scatter",
                "x": [min(values), max(values)],
                "y": [place, place],
                "mode": "lines",
                "line": {"color": colours.line, "width": 3},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    palette = COLOURS[_kind(theme)]
    for index, group in enumerate(groups):
        points = [
            (100 * rate.rate, place, name)
            for place, one, name in zip(places, shown, names, strict=True)
            for rate in one.rates
            if rate.group == group
        ]
        traces.append(
            {
                "type": "scatter",
                "x": [point[0] for point in points],
                "y": [point[1] for point in points],
                "customdata": [html.escape(point[2]) for point in points],
                "mode": "markers",
                "name": html.escape(elide(group, letters)),
                "marker": {
                    "size": 10,
                    "symbol": SYMBOLS[index % len(SYMBOLS)],
                    "color": palette[index % len(palette)],
                },
                "hovertemplate": "%{customdata}: %{x:.1f} %<extra>"
                f"{html.escape(group)}</extra>",
            }
        )
    return figure(
        traces,
        theme,
        120 + ROW * len(shown),
        x={"title": "share with the outcome, %", "range": [-3, 103]},
        y={
            "tickmode": "array",
            "tickvals": places,
            "ticktext": [html.escape(elide(name, letters)) for name in names],
            "showgrid": False,
            "zeroline": False,
            "range": [-0.6, len(shown) - 0.4],
        },
    )


def _kind(theme: str) -> str:
    return "dark" if theme == "dark" else "light"
