"""Charts in plotly, from released and public figures only."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from pages.shared.money import Curve
from pages.shared.palette import FONT, ink

CHART = {"displayModeBar": False, "scrollZoom": False}


def figure(
    traces: Sequence[Mapping[str, Any]],
    theme: str,
    height: int,
    *,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **layout: Any,
) -> go.Figure:
    """One figure from its parts, dressed in the theme's colours."""
    colours = ink(theme)
    axis = {"gridcolor": colours.wall, "zerolinecolor": colours.line, "automargin": True}
    dress = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": colours.text, "size": 13, "family": FONT},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "hoverlabel": {"align": "left"},
        "xaxis": {**axis, **x},
        "yaxis": {**axis, **y},
        **layout,
    }
    return go.Figure(list(traces), dress)


def upright(place: float, colour: str) -> dict[str, Any]:
    """A dotted line through the whole height of a chart, at a place on the x axis."""
    return {
        "type": "line",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": colour, "width": 1.5, "dash": "dot"},
    }


def budget_bar(spent: float, now: float, rest: float, theme: str) -> go.Figure:
    """One bar: spent, this release, reserve for later (all in rho)."""
    colours = ink(theme)
    parts = (
        ("spent before", spent, colours.line),
        ("this release", now, colours.accent),
        ("reserve for later", rest, colours.wall),
    )
    traces = [
        {
            "type": "bar",
            "x": [value],
            "y": [""],
            "orientation": "h",
            "marker": {"color": colour},
            "hovertemplate": f"{name}: ρ = {value:.4g}<extra></extra>",
        }
        for name, value, colour in parts
    ]
    hidden = {"visible": False}
    return figure(
        traces, theme, 44, x=hidden, y=hidden, barmode="stack", bargap=0, showlegend=False
    )


def error_curve(curve: Curve, chosen: float, theme: str) -> go.Figure:
    """Noise of a pair's cell against the budget, beside the persons in a typical cell."""
    colours = ink(theme)
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "x": list(curve.budgets),
            "y": list(curve.noise),
            "mode": "lines",
            "name": "noise of a cell (±)",
            "line": {"color": colours.accent, "width": 3},
            "hovertemplate": "ρ = %{x:.4g}: ± %{y:.3g}<extra></extra>",
        }
    ]
    if curve.persons is not None:
        traces.append(
            {
                "type": "scatter",
                "x": list(curve.budgets),
                "y": list(curve.persons),
                "mode": "lines",
                "name": "persons in a typical cell",
                "line": {"color": colours.soft, "width": 2, "dash": "dash"},
                "hovertemplate": "ρ = %{x:.4g}: %{y:.3g} persons<extra></extra>",
            }
        )
    return figure(
        traces,
        theme,
        260,
        x={"type": "log", "title": "ρ of this release", "dtick": 1},
        y={"type": "log", "title": "persons", "dtick": 1},
        shapes=[upright(chosen, colours.line)],
    )


def marginal(
    cells: Sequence[str],
    measured: Sequence[float],
    sigma: float,
    fitted: Sequence[float],
    theme: str,
) -> go.Figure:
    """Noisy counts of one column with their noise, beside the fitted model's."""
    colours = ink(theme)
    labels = [html.escape(cell if len(cell) <= 28 else f"{cell[:27]}…") for cell in cells]
    traces = [
        {
            "type": "bar",
            "x": labels,
            "y": list(measured),
            "name": "measured (noisy), ± 2 σ",
            "marker": {"color": colours.line},
            "error_y": {
                "type": "constant",
                "value": 2 * sigma,
                "color": colours.soft,
                "thickness": 1.5,
            },
            "hovertemplate": "%{x}: %{y:.0f}<extra>measured</extra>",
        },
        {
            "type": "scatter",
            "x": labels,
            "y": list(fitted),
            "name": "fitted model",
            "mode": "markers",
            "marker": {"color": colours.accent, "size": 11, "symbol": "diamond"},
            "hovertemplate": "%{x}: %{y:.0f}<extra>fitted</extra>",
        },
    ]
    return figure(
        traces,
        theme,
        320,
        x={"type": "category", "showgrid": False},
        y={"title": "rows"},
    )


def pair(
    table: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    names: tuple[str, ...],
    theme: str,
) -> go.Figure:
    """One pair's table as a heat map of rows."""
    colours = ink(theme)
    heat = {
        "type": "heatmap",
        "z": [list(row) for row in table],
        "x": [html.escape(label) for label in columns],
        "y": [html.escape(label) for label in rows],
        "colorscale": [[0, colours.paper], [1, colours.accent]],
        "hovertemplate": "%{y} and %{x}: %{z:.0f}<extra></extra>",
        "colorbar": {"title": "rows", "thickness": 12},
    }
    return figure(
        [heat],
        theme,
        360,
        x={"type": "category", "title": html.escape(names[1])},
        y={"type": "category", "title": html.escape(names[0]), "autorange": "reversed"},
    )
