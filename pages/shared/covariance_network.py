"""The network of partial correlations: columns that still go together once all others are known."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from pages.shared.charts import figure
from pages.shared.heat import NEGATIVE, buttons
from pages.shared.network import elide
from pages.shared.palette import ink

#: Up to so many columns have their names written; of more, only the best connected ones.
NAMED = 80
WIDTHS = (1.5, 7.0)
HEIGHT = 520
#: Width over height on a desk and on a telephone, and air between connected parts.
WIDE, NARROW = 1.9, 0.7
AIR = 1.2
#: Parts of up to so many columns are laid out by stress, larger ones by springs (in time).
STRESSED = 30
Spot = tuple[float, float]


@dataclass(frozen=True)
class Link:
    """A partial correlation with its two intervals."""

    first: str
    second: str
    value: float
    privacy: tuple[float, float]
    whole: tuple[float, float]


def draw(
    links: Sequence[Link],
    theme: str,
    *,
    letters: int,
    found: str | None = None,
    aspect: float = WIDE,
) -> go.Figure:
    """The network of the given links; thick is strong, dashed is negative.

    ``found`` is a column to point out; ``aspect`` is the picture's width over its height.
    """
    names = sorted({name for link in links for name in (link.first, link.second)})
    spots = lay_out(names, links, aspect)
    degrees = dict.fromkeys(names, 0.0)
    for link in links:
        degrees[link.first] += abs(link.value)
        degrees[link.second] += abs(link.value)
    traces = [_line(link, spots, _strongest(links), theme) for link in links]
    traces.append(_handles(links, spots))
    written = set(sorted(names, key=lambda name: -degrees[name])[:NAMED]) | {found}
    titles = [elide(name, letters) if name in written else "" for name in names]
    sides = [_side(name, links, spots) for name in names]
    traces.append(_columns(names, titles, spots, sides, (found, theme)))
    xs, ys = zip(*spots.values(), strict=True)
    return figure(
        traces,
        theme,
        HEIGHT,
        x={"visible": False, "range": _range(xs, 0.2)},
        y={"visible": False, "range": _range(ys, 0.1)},
        showlegend=False,
        hovermode="closest",
        dragmode="pan",
        modebar=buttons(theme),
    )


def _range(values: Sequence[float], share: float) -> list[float]:
    low, high = min(values), max(values)
    edge = share * max(high - low, 1.0)
    return [low - edge, high + edge]


def _strongest(links: Sequence[Link]) -> float:
    return max((abs(link.value) for link in links), default=1.0) or 1.0


def _line(link: Link, spots: Mapping[str, Spot], strongest: float, theme: str) -> dict[str, Any]:
    thin, thick = WIDTHS
    negative = link.value < 0
    (x0, y0), (x1, y1) = spots[link.first], spots[link.second]
    return {
        "type": "scatter",
        "x": [x0, x1],
        "y": [y0, y1],
        "mode": "lines",
        "line": {
            "width": thin + (thick - thin) * abs(link.value) / strongest,
            "dash": "7px,4px" if negative else "solid",
            "color": NEGATIVE["dark" if theme == "dark" else "light"]
            if negative
            else ink(theme).accent,
        },
        "opacity": 0.85,
        "hoverinfo": "skip",
    }


def _handles(links: Sequence[Link], spots: Mapping[str, Spot]) -> dict[str, Any]:
    """Invisible points on the middles of the lines, so that a line can be hovered."""
    middles = [
        tuple((a + b) / 2 for a, b in zip(spots[link.first], spots[link.second], strict=True))
        for link in links
    ]
    return {
        "type": "scatter",
        "x": [x for x, _ in middles],
        "y": [y for _, y in middles],
        "mode": "markers",
        "marker": {"size": 14, "color": "rgba(0,0,0,0)"},
        "hovertemplate": [
            f"<b>{html.escape(link.first)} — {html.escape(link.second)}</b><br>"
            f"partial correlation {link.value:.3f}<br>"
            f"{link.privacy[0]:.3f} to {link.privacy[1]:.3f} (privacy noise only)<br>"
            f"{link.whole[0]:.3f} to {link.whole[1]:.3f} (with sampling)<extra></extra>"
            for link in links
        ],
    }


def _columns(
    names: Sequence[str],
    titles: Sequence[str],
    spots: Mapping[str, Spot],
    sides: Sequence[str],
    look: tuple[str | None, str],
) -> dict[str, Any]:
    found, theme = look
    colours = ink(theme)
    return {
        "type": "scatter",
        "x": [spots[name][0] for name in names],
        "y": [spots[name][1] for name in names],
        "mode": "markers+text",
        "marker": {
            "size": [22 if name == found else 13 for name in names],
            "symbol": ["diamond" if name == found else "circle" for name in names],
            "color": colours.text,
            "line": {"color": colours.paper, "width": 2},
            "opacity": 1,
        },
        "text": [html.escape(title) for title in titles],
        "textposition": list(sides),
        "textfont": {"size": 13, "color": colours.text},
        "hovertemplate": [f"<b>{html.escape(name)}</b><extra></extra>" for name in names],
        "cliponaxis": False,
    }


def _ends(link: Link) -> tuple[str, str]:
    return link.first, link.second


def _side(name: str, links: Sequence[Link], spots: Mapping[str, Spot]) -> str:
    """The side of a column that its lines leave free."""
    x, y = spots[name]
    across = upward = 0.0
    joined = [link for link in links if name in {link.first, link.second}]
    if len(joined) == 1 and all(abs(spots[end][1] - y) < 1e-9 for end in _ends(joined[0])):
        return "top center" if name == min(_ends(joined[0])) else "bottom center"
    for link in joined:
        other = spots[link.second if link.first == name else link.first]
        length = math.hypot(other[0] - x, other[1] - y) or 1.0
        across, upward = across + (other[0] - x) / length, upward + (other[1] - y) / length
    if abs(across) > 2 * abs(upward):
        return "middle left" if across > 0 else "middle right"
    return "bottom center" if upward > 0 else "top center"


# -- positions -------------------------------------------------------------------------------


def lay_out(names: Sequence[str], links: Sequence[Link], aspect: float = WIDE) -> dict[str, Spot]:
    """Fixed positions: each connected part by stress (Kamada & Kawai 1989) or springs.

    Parts stand in rows, the largest first; ``aspect`` is the picture's width over its height.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((link.first, link.second) for link in links)
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    boxes = [_box(len(part)) for part in parts]
    area = sum(width * height for width, height in boxes)
    row = max([math.sqrt(aspect * area), *(width for width, _ in boxes)])
    spots: dict[str, Spot] = {}
    left = top = tallest = 0.0
    for part, (width, height) in zip(parts, boxes, strict=True):
        if left and left + width > row:
            left, top, tallest = 0.0, top - tallest, 0.0
        for name, (x, y) in _part(graph.subgraph(sorted(part))).items():
            spots[name] = (
                left + width / 2 + x * (width - AIR) / 2,
                top - height / 2 + y * (height - AIR) / 2,
            )
        left, tallest = left + width, max(tallest, height)
    return spots


def _box(columns: int) -> Spot:
    """Width and height that a connected part needs, names included."""
    if columns <= 2:
        return 2.4, 1.5
    return AIR + 2.2 * math.sqrt(columns), AIR + 1.4 * math.sqrt(columns)


def _part(graph: Any) -> Mapping[str, Spot]:
    """Positions within a square from -1 to 1."""
    import networkx as nx

    if len(graph) == 1:
        return dict.fromkeys(graph, (0.0, 0.0))
    if len(graph) == 2:
        one, other = sorted(graph)
        return {one: (-1.0, 0.0), other: (1.0, 0.0)}
    start = nx.circular_layout(sorted(graph))
    if len(graph) <= STRESSED:
        found = nx.kamada_kawai_layout(graph, pos=start)
    else:
        found = nx.spring_layout(graph, pos=start, seed=1, iterations=150)
    return {name: (float(x), float(y)) for name, (x, y) in found.items()}
