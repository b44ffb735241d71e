"""Charts of posteriors: densities, intervals side by side, shares of variance, coverage."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from core.pumba.posterior import Posterior
from core.pumba.summaries import ParameterSummary
from core.pumba.view import density, naive_curve
from core.roles import Role
from core.teaching import Coverage, Interval
from pages.shared.charts import figure
from pages.shared.palette import LOOKS, Ink, ink

#: Most parameters in one picture of intervals.
MOST = 40


def naive_colour(theme: str) -> str:
    """The colour of everything naive, the same in every picture."""
    return LOOKS[Role.PROTECTED].colour(theme)


def density_figure(found: Posterior, index: int, theme: str) -> go.Figure:
    """The posterior of one parameter with its interval, and the naive normal beside it."""
    colours = ink(theme)
    summary = found.summary[index]
    grid, curve = density(found.parameters.values[:, index])
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "x": grid.tolist(),
            "y": curve.tolist(),
            "mode": "lines",
            "name": "with the privacy noise",
            "fill": "tozeroy",
            "line": {"color": colours.accent, "width": 3},
            "hovertemplate": "%{x:.4g}<extra>private</extra>",
        }
    ]
    naive = naive_curve(summary, found.settings.level)
    if naive is not None:
        traces.append(
            {
                "type": "scatter",
                "x": naive[0].tolist(),
                "y": naive[1].tolist(),
                "mode": "lines",
                "name": "naive: noise ignored",
                "line": {"color": naive_colour(theme), "width": 2, "dash": "dash"},
                "hovertemplate": "%{x:.4g}<extra>naive</extra>",
            }
        )
    return figure(
        traces,
        theme,
        320,
        x={"title": html.escape(summary.name)},
        y={"visible": False, "rangemode": "tozero"},
        shapes=_ends(summary, colours),
    )


def _ends(summary: ParameterSummary, colours: Ink) -> list[dict[str, Any]]:
    return [
        {
            "type": "line",
            "x0": end,
            "x1": end,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"color": colours.accent, "width": 1.5, "dash": "dot"},
        }
        for end in (summary.eti_low, summary.eti_high)
    ]


def interval_figure(found: Posterior, theme: str) -> go.Figure:
    """Private and naive intervals of all parameters, one line each."""
    colours = ink(theme)
    rows = found.summary[:MOST]
    names = [html.escape(row.name if len(row.name) <= 34 else f"{row.name[:33]}…") for row in rows]
    traces = [
        _bars(
            "with the privacy noise",
            [(row.median, row.eti_low, row.eti_high) for row in rows],
            [float(index) for index in range(len(rows))],
            colours.accent,
            "circle",
        )
    ]
    naive = [
        (row.naive, row.naive_low, row.naive_high, index + 0.28)
        for index, row in enumerate(rows)
        if row.naive is not None and row.naive_low is not None and row.naive_high is not None
    ]
    if naive:
        traces.append(
            _bars(
                "naive: noise ignored",
                [(middle, low, high) for middle, low, high, _ in naive],
                [at for *_, at in naive],
                naive_colour(theme),
                "diamond",
            )
        )
    axis = {
        "tickvals": list(range(len(rows))),
        "ticktext": names,
        "autorange": "reversed",
        "showgrid": False,
        "zeroline": False,
    }
    return figure(traces, theme, 90 + 44 * len(rows), x={}, y=axis)


def _bars(
    name: str,
    intervals: Sequence[tuple[float, float, float]],
    places: Sequence[float],
    colour: str,
    symbol: str,
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [middle for middle, _, _ in intervals],
        "y": list(places),
        "mode": "markers",
        "name": name,
        "marker": {"color": colour, "size": 10, "symbol": symbol},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [high - middle for middle, _, high in intervals],
            "arrayminus": [middle - low for middle, low, _ in intervals],
            "color": colour,
            "thickness": 2.5,
            "width": 5,
        },
        "customdata": [[low, high] for _, low, high in intervals],
        "hovertemplate": "%{x:.4g} (%{customdata[0]:.4g} to %{customdata[1]:.4g})"
        f"<extra>{name}</extra>",
    }


def shares_figure(summary: ParameterSummary, theme: str) -> go.Figure:
    """Where the uncertainty comes from, as one bar."""
    colours = ink(theme)
    parts = (
        ("privacy noise", summary.privacy_share or 0.0, colours.accent),
        ("sampling", summary.sampling_share or 0.0, colours.line),
    )
    traces = [
        {
            "type": "bar",
            "x": [share],
            "y": [""],
            "orientation": "h",
            "marker": {"color": colour},
            "hovertemplate": f"{name}: {share:.0%}<extra></extra>",
        }
        for name, share, colour in parts
    ]
    hidden = {"visible": False}
    return figure(
        traces, theme, 44, x=hidden, y=hidden, barmode="stack", bargap=0, showlegend=False
    )


def coverage_figure(found: Coverage, theme: str) -> go.Figure:
    """Every repetition's two intervals across the truth; those that miss stand out."""
    colours = ink(theme)
    lanes: list[dict[str, Any]] = []
    for offset, name, colour in (
        (0, "with the privacy noise", colours.accent),
        (1, "naive: noise ignored", naive_colour(theme)),
    ):
        for held in (True, False):
            xs, ys = _segments(found, offset, held)
            lanes.append(
                {
                    "type": "scatter",
                    "x": xs,
                    "y": ys,
                    "mode": "lines",
                    "name": name if held else f"{name}, misses",
                    "line": {"color": colour, "width": 1 if held else 3},
                    "opacity": 0.55 if held else 1.0,
                    "xaxis": "x" if offset == 0 else "x2",
                    "hoverinfo": "skip",
                }
            )
    truth = {
        "type": "line",
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "x0": found.truth,
        "x1": found.truth,
        "line": {"color": colours.text, "width": 1.5, "dash": "dot"},
    }
    left, right = {"domain": [0.0, 0.48]}, {"domain": [0.52, 1.0], "matches": "x"}
    return figure(
        lanes,
        theme,
        460,
        x={**left, "title": html.escape(found.column)},
        y={"visible": False, "autorange": "reversed"},
        xaxis2={
            "gridcolor": colours.wall,
            "anchor": "y",
            "title": html.escape(found.column),
            **right,
        },
        shapes=[{**truth, "xref": "x"}, {**truth, "xref": "x2"}],
        showlegend=False,
    )


def _segments(
    found: Coverage, offset: int, held: bool
) -> tuple[list[float | None], list[float | None]]:
    """Line segments of one kind of interval, those that hold the truth or those that miss it."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for index, one in enumerate(found.intervals):
        ends = _interval(one, offset)
        if ends is not None and (ends[0] <= found.truth <= ends[1]) == held:
            xs += [ends[0], ends[1], None]
            ys += [float(index), float(index), None]
    return xs, ys


def _interval(one: Interval, offset: int) -> tuple[float, float] | None:
    return one.private if offset == 0 else one.naive
