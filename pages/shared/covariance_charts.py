"""Charts of the covariance page: predicted errors, intervals, and the network of columns."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from core.pace.preview import CovariancePreview
from pages.shared.charts import figure, upright
from pages.shared.network import elide
from pages.shared.palette import ink


def errors(
    budgets: Sequence[float], found: Sequence[CovariancePreview], chosen: float, theme: str
) -> go.Figure:
    """Predicted relative error against the budget, with the matrix without correlations."""
    colours = ink(theme)
    lines = (
        ("adaptive loop", [one.pace_error for one in found], colours.accent, "solid", 3),
        ("plain noise", [one.plain_error for one in found], colours.text, "dash", 2),
        (
            "no correlations",
            [one.no_correlations_error for one in found],
            colours.line,
            "dot",
            2.5,
        ),
    )
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "x": list(budgets),
            "y": values,
            "mode": "lines",
            "name": name,
            "line": {"color": colour, "width": width, "dash": dash},
            "hovertemplate": f"ρ = %{{x:.4g}}: %{{y:.2g}}<extra>{name}</extra>",
        }
        for name, values, colour, dash, width in lines
    ]
    return figure(
        traces,
        theme,
        280,
        x={"type": "log", "title": "ρ of this release", "dtick": 1},
        y={"type": "log", "title": "relative error", "dtick": 1},
        shapes=[upright(chosen, colours.line)],
    )


def compared(points: Sequence[tuple[str, float]], theme: str) -> go.Figure:
    """Errors as points on one scale, each under its name; the first one in the accent."""
    colours = ink(theme)
    values = [value for _, value in points]
    count = len(points)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": values,
        "y": list(range(count)),
        "cliponaxis": False,
        "marker": {
            "size": 13,
            "color": [colours.accent] + [colours.soft] * (count - 1),
            "symbol": ["diamond"] + ["circle"] * (count - 1),
        },
        "hovertemplate": [
            f"{html.escape(name)}: {value:.3g}<extra></extra>" for name, value in points
        ],
    }
    names = [
        {
            "xref": "paper",
            "x": 0,
            "xanchor": "left",
            "y": index,
            "yshift": 17,
            "showarrow": False,
            "text": f"{html.escape(name)}: <b>{value:.2g}</b>",
        }
        for index, (name, value) in enumerate(points)
    ]
    lowest, highest = (math.log10(max(edge, 1e-9)) for edge in (min(values), max(values)))
    return figure(
        [trace],
        theme,
        56 * count + 50,
        x={
            "type": "log",
            "title": "relative error, smaller is better",
            "dtick": 1,
            "range": [math.floor(lowest) - 0.1, math.ceil(highest) + 0.1],
        },
        y={
            "range": [count - 0.6, -0.8],
            "showticklabels": False,
            "tickvals": list(range(count)),
            "zeroline": False,
        },
        annotations=names,
        showlegend=False,
    )


@dataclass(frozen=True)
class Row:
    """A number with its two intervals: privacy noise only, and privacy with sampling."""

    name: str
    value: float
    privacy: tuple[float, float]
    whole: tuple[float, float]


def intervals(rows: Sequence[Row], theme: str, *, letters: int) -> go.Figure:
    """Numbers with both intervals, one line each."""
    colours = ink(theme)
    places = list(range(len(rows)))
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [end for row in rows for end in (*getattr(row, which), None)],
            "y": [place for index in places for place in (index, index, None)],
            "line": {"width": width, "color": colours.accent},
            "hoverinfo": "skip",
        }
        for which, width in (("whole", 2), ("privacy", 7))
    ]
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": [row.value for row in rows],
        "y": places,
        "marker": {
            "size": 11,
            "color": colours.paper,
            "line": {"width": 2.5, "color": colours.text},
        },
        "hovertemplate": [
            f"<b>{html.escape(row.name)}</b>: {row.value:.3f}<br>"
            f"{row.privacy[0]:.3f} to {row.privacy[1]:.3f} (privacy noise only)<br>"
            f"{row.whole[0]:.3f} to {row.whole[1]:.3f} (privacy + sampling)<extra></extra>"
            for row in rows
        ],
    }
    return figure(
        [*lines, points],
        theme,
        34 * len(rows) + 60,
        x={"zeroline": True, "zerolinewidth": 2, "nticks": 7, "range": _around(rows)},
        y={
            "zeroline": False,
            "range": [len(rows) - 0.4, -0.6],
            "tickvals": places,
            "ticktext": [html.escape(elide(row.name, letters)) for row in rows],
            "showgrid": False,
        },
        showlegend=False,
    )


def _around(rows: Sequence[Row]) -> list[float]:
    """A range that holds 0 and every interval, with air at both ends."""
    ends = [0.0, *(end for row in rows for end in (*row.whole, *row.privacy))]
    air = 0.05 * ((max(ends) - min(ends)) or 1.0)
    return [min(ends) - air, max(ends) + air]
