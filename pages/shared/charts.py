"""Charts in plotly, from released and public figures only."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from pages.shared.money import Curve
from pages.shared.palette import FONT, ink

CHART = {"displayModeBar": False, "scrollZoom": False}


def _dress(figure: go.Figure, theme: str, height: int) -> go.Figure:
    colours = ink(theme)
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": colours.text, "size": 13, "family": FONT},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "title": None},
        hoverlabel={"align": "left"},
    )
    figure.update_xaxes(gridcolor=colours.wall, zerolinecolor=colours.line, automargin=True)
    figure.update_yaxes(gridcolor=colours.wall, zerolinecolor=colours.line, automargin=True)
    return figure


def budget_bar(spent: float, now: float, rest: float, theme: str) -> go.Figure:
    """One bar: spent, this release, reserve for later (all in rho)."""
    colours = ink(theme)
    figure = go.Figure()
    parts = (
        ("spent before", spent, colours.line),
        ("this release", now, colours.accent),
        ("reserve for later", rest, colours.wall),
    )
    for name, value, colour in parts:
        figure.add_bar(
            x=[value],
            y=[""],
            orientation="h",
            name=f"{name}: {value:.4g}",
            marker={"color": colour},
            hovertemplate=f"{name}: ρ = {value:.4g}<extra></extra>",
        )
    _dress(figure, theme, 44)
    figure.update_layout(barmode="stack", bargap=0, showlegend=False)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure


def error_curve(curve: Curve, chosen: float, theme: str) -> go.Figure:
    """Noise of a pair's cell against the budget, beside the persons in a typical cell."""
    colours = ink(theme)
    figure = go.Figure()
    figure.add_scatter(
        x=list(curve.budgets),
        y=list(curve.noise),
        mode="lines",
        name="noise of a cell (±)",
        line={"color": colours.accent, "width": 3},
        hovertemplate="ρ = %{x:.4g}: ± %{y:.3g}<extra></extra>",
    )
    if curve.persons is not None:
        figure.add_scatter(
            x=list(curve.budgets),
            y=list(curve.persons),
            mode="lines",
            name="persons in a typical cell",
            line={"color": colours.soft, "width": 2, "dash": "dash"},
            hovertemplate="ρ = %{x:.4g}: %{y:.3g} persons<extra></extra>",
        )
    figure.add_vline(x=chosen, line={"color": colours.line, "width": 1.5, "dash": "dot"})
    _dress(figure, theme, 260)
    figure.update_xaxes(type="log", title="ρ of this release", dtick=1)
    figure.update_yaxes(type="log", title="persons", dtick=1)
    return figure


def marginal(
    cells: Sequence[str],
    measured: Sequence[float],
    sigma: float,
    fitted: Sequence[float] | None,
    theme: str,
) -> go.Figure:
    """Noisy counts of one column with their noise, beside the fitted model's."""
    colours = ink(theme)
    labels = [html.escape(cell if len(cell) <= 28 else f"{cell[:27]}…") for cell in cells]
    figure = go.Figure()
    figure.add_bar(
        x=labels,
        y=list(measured),
        name="measured (noisy), ± 2 σ",
        marker={"color": colours.line},
        error_y={"type": "constant", "value": 2 * sigma, "color": colours.soft, "thickness": 1.5},
        hovertemplate="%{x}: %{y:.0f}<extra>measured</extra>",
    )
    if fitted is not None:
        figure.add_scatter(
            x=labels,
            y=list(fitted),
            name="fitted model",
            mode="markers",
            marker={"color": colours.accent, "size": 11, "symbol": "diamond"},
            hovertemplate="%{x}: %{y:.0f}<extra>fitted</extra>",
        )
    _dress(figure, theme, 320)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(title="rows")
    return figure


def pair(
    table: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    names: tuple[str, str],
    theme: str,
) -> go.Figure:
    """One pair's table as a heat map of rows."""
    colours = ink(theme)
    figure = go.Figure(
        go.Heatmap(
            z=[list(row) for row in table],
            x=[html.escape(label) for label in columns],
            y=[html.escape(label) for label in rows],
            colorscale=[[0, colours.paper], [1, colours.accent]],
            hovertemplate="%{y} and %{x}: %{z:.0f}<extra></extra>",
            colorbar={"title": "rows", "thickness": 12},
        )
    )
    _dress(figure, theme, 360)
    figure.update_xaxes(type="category", title=html.escape(names[1]))
    figure.update_yaxes(type="category", title=html.escape(names[0]), autorange="reversed")
    return figure
