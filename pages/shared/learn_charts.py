"""Charts of the lessons: gaps, information, edges and agreement.  Made-up people only."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from core.lessons import Gap, Lesson, Settling
from pages.shared.charts import figure, upright
from pages.shared.network import elide
from pages.shared.palette import ink

#: Pixels a row of a chart takes, and those of its axes and legend.
ROW = 26
FRAME = 96
#: Most edges in the chart of frequencies; the table has them all.
EDGES = 18
#: Letters of a column's name in an edge's label.
LETTERS = 16


def gap_chart(lesson: Lesson, theme: str, *, short: bool = False) -> go.Figure:
    """Every group beside the people who are alike, in the three worlds: the line is the gap."""
    colours = ink(theme)
    rows: list[tuple[str, Gap]] = []
    ticks: list[str] = []
    for group in [one.group for one in lesson.biased.gaps.groups]:
        for world in lesson.shown:
            found = world.gaps.of(group)
            if found is not None:
                rows.append((f"{group}, {world.title}", found))
                ticks.append(html.escape(f"{elide(group, 9 if short else 20)}, {world.title}"))
    labels = [html.escape(label) for label, _ in rows]
    about = lesson.biased.gaps
    reference = html.escape(f"{about.column}: {about.reference}")
    lines_x: list[float | None] = []
    lines_y: list[str | None] = []
    for label, one in zip(labels, (gap for _, gap in rows), strict=True):
        if one.alike is not None:
            lines_x += [one.alike, one.rate, None]
            lines_y += [label, label, None]
    known = [(label, one) for label, (_, one) in zip(labels, rows, strict=True)]
    alike = [(label, one.alike) for label, one in known if one.alike is not None]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "x": lines_x,
            "y": lines_y,
            "mode": "lines",
            "line": {"color": colours.line, "width": 4},
            "hoverinfo": "skip",
            "showlegend": False,
        },
        {
            "type": "scatter",
            "x": [rate for _, rate in alike],
            "y": [label for label, _ in alike],
            "mode": "markers",
            "name": f"{reference}, alike",
            "marker": {
                "symbol": "circle-open",
                "size": 13,
                "color": colours.text,
                "line": {"width": 2.5},
            },
            "hovertemplate": f"%{{y}}<br>{reference}, alike: %{{x:.1%}}<extra></extra>",
        },
        {
            "type": "scatter",
            "x": [one.rate for _, one in known],
            "y": [label for label, _ in known],
            "mode": "markers",
            "name": "the group itself (± 2 standard errors)",
            "marker": {"symbol": "diamond", "size": 11, "color": colours.accent},
            "error_x": {
                "type": "data",
                "array": [2 * (one.standard_error or 0.0) for _, one in known],
                "color": colours.accent,
                "thickness": 1.5,
            },
            "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
        },
    ]
    words = f"share with {about.outcome} = {about.best}"
    return figure(
        traces,
        theme,
        FRAME + ROW * len(labels),
        x={"title": html.escape(words), "tickformat": ".0%", "rangemode": "tozero"},
        y=_named(labels, ticks),
    )


def _named(labels: Sequence[str], ticks: Sequence[str]) -> dict[str, Any]:
    """A category axis from the top down; two long labels may share a shortened name."""
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(labels),
        "tickvals": list(labels),
        "ticktext": list(ticks),
        "autorange": "reversed",
    }


def information_chart(lesson: Lesson, theme: str) -> go.Figure:
    """Bits of every world's rows, with what chance alone reaches."""
    colours = ink(theme)
    labels = [f"{world.title} world" for world in lesson.shown]
    tests = [world.rows for world in lesson.shown]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "y": labels,
            "x": [test.bits for test in tests],
            "name": "in the rows",
            "marker": {"color": colours.accent},
            "hovertemplate": "%{y}: %{x:.4f} bits<extra></extra>",
        },
        {
            "type": "scatter",
            "y": labels,
            "x": [test.floor for test in tests],
            "error_x": {
                "type": "data",
                "array": [2 * test.floor_deviation for test in tests],
                "color": colours.text,
            },
            "mode": "markers",
            "name": "chance alone (± 2 deviations)",
            "marker": {
                "symbol": "line-ns-open",
                "size": 18,
                "color": colours.text,
                "line": {"width": 2.5},
            },
            "hovertemplate": "%{y}, shuffled: %{x:.4f} bits<extra></extra>",
        },
    ]
    return figure(
        traces,
        theme,
        FRAME + 3 * 38,
        x={"title": "bits", "rangemode": "tozero"},
        y={"type": "category", "autorange": "reversed"},
        bargap=0.45,
    )


def edge_label(edge: Sequence[str], letters: int | None = None) -> str:
    """An edge in words, long names shortened if there is a limit."""
    return " — ".join(
        html.escape(name if letters is None else elide(name, letters)) for name in edge
    )


def edge_chart(found: Settling, theme: str, *, short: bool = False) -> go.Figure:
    """How often each edge was chosen; hatched where the rule forbids the pair."""
    colours = ink(theme)
    letters = 9 if short else LETTERS
    shown = found.edges[:EDGES]
    traces = []
    for ideal, name, colour in (
        (True, "also without noise", colours.accent),
        (False, "only with noise", colours.line),
    ):
        part = [one for one in shown if one.ideal is ideal]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": [edge_label(one.edge) for one in part],
                "x": [one.share for one in part],
                "name": name,
                "marker": {
                    "color": colour,
                    "pattern": {
                        "shape": ["/" if one.forbidden else "" for one in part],
                        "fgcolor": colours.paper,
                        "size": 6,
                    },
                },
                "customdata": [" (forbidden pair)" if one.forbidden else "" for one in part],
                "hovertemplate": "%{y}%{customdata}: %{x:.0%}<extra></extra>",
            }
        )
    return figure(
        traces,
        theme,
        FRAME + ROW * len(shown),
        x={"title": f"share of {found.draws} draws", "tickformat": ".0%", "range": [0, 1.02]},
        y=_named(
            [edge_label(one.edge) for one in shown],
            [edge_label(one.edge, letters) for one in shown],
        ),
        barmode="overlay",
        bargap=0.3,
    )


def agreement_chart(curve: Sequence[Settling], chosen: float, theme: str) -> go.Figure:
    """Part of the tree without noise that is found, from hardly any budget to plenty."""
    colours = ink(theme)
    xs = [float(one.rho) for one in curve]
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    traces = [
        {**band, "y": [min(one.agreement) for one in curve], "showlegend": False},
        {
            **band,
            "y": [max(one.agreement) for one in curve],
            "fill": "tonexty",
            "fillcolor": colours.wall,
            "opacity": 0.5,
            "name": "worst to best draw",
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": xs,
            "y": [one.expected for one in curve],
            "line": {"color": colours.accent, "width": 3},
            "marker": {"size": 8},
            "name": "mean of the draws",
            "hovertemplate": "ρ = %{x:.3g}: %{y:.0%} of the edges<extra></extra>",
        },
    ]
    return figure(
        traces,
        theme,
        320,
        x={"type": "log", "title": "ρ of the release", "dtick": 1, "exponentformat": "power"},
        y={"title": "edges as without noise", "tickformat": ".0%", "range": [0, 1.03]},
        shapes=[upright(chosen, colours.text)],
    )
