"""The tree picture in plotly: two lanes, a wall with gates between them, edges as they came.

Only public roles and released quantities are drawn.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from core.releases import ForbiddenPair, SelectionStep
from core.roles import Constraint, Role, Roles
from core.visible import visible
from pages.shared.lanes import WALL, Edge, Lane, Layout, Link, Spot, lay_out, rule_of
from pages.shared.palette import FONT, LOOKS, ink

#: Height of one row in pixels, and the most letters of a name that are written out.
ROW = 34
LETTERS = 16
EDGE_WIDTHS = (1.8, 6.5)
#: What the dashes of a link mean, below the picture: on the link it would cover the columns there.
JUMPS = "– – –  jumps the wall: the rule forbids it"


class _Sketch:
    """Parts of a figure, put together once: plotly checks whole figures far faster than parts."""

    def __init__(self) -> None:
        self.traces: list[dict[str, Any]] = []
        self.shapes: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []

    def add_scatter(self, **trace: Any) -> None:
        self.traces.append({"type": "scatter", **trace})

    def add_shape(self, **shape: Any) -> None:
        self.shapes.append(shape)

    def add_annotation(self, **annotation: Any) -> None:
        self.annotations.append(annotation)


def elide(name: str, letters: int = LETTERS) -> str:
    """A long name, shortened; the whole name is on hover.

    >>> elide("a_very_long_name_of_a_column", 12)
    'a_very_long…'
    """
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def draw(
    names: Sequence[str],
    roles: Roles,
    edges: Sequence[Edge] = (),
    *,
    settled: Sequence[Edge] | None = None,
    forbidden: Sequence[ForbiddenPair] = (),
    strengths: Mapping[Edge, float] | None = None,
    constraint: Constraint | None = None,
    found: str | None = None,
    theme: str = "light",
    letters: int = LETTERS,
    narrow: bool = False,
) -> go.Figure:
    """The picture after ``edges``, the first ones of ``settled``.

    Parameters
    ----------
    names
        Modelled columns in schema order.
    forbidden
        Pairs drawn dashed: those that the rule forbids between the two sides.
    strengths
        Released (noisy) strength of each edge, for its width; without it all are equal.
    constraint
        Which rule the sides belong to; the role table's if not given.
    found
        A column to point out.
    letters
        How much of a name is written out; of each line of it, where the picture is narrow.
    narrow
        For a picture a third of a page wide: short headings, names on two lines, no edge stands
        out as the newest one, none has a step, and the page itself says which jump the wall.
    """
    layout = lay_out(names, roles, edges, settled=settled, constraint=constraint)
    figure = _Sketch()
    _draw_wall(figure, layout, theme)
    _draw_forbidden(figure, layout, forbidden, theme)
    for index, link in enumerate(layout.links):
        newest = index == len(layout.links) - 1 and not narrow
        colour = ink(theme).accent if newest else ink(theme).line
        colour = ink(theme).text if narrow and link.illegal else colour
        width = _width(link.edge, strengths) + (1 if newest else 0)
        title = _title(link, None if narrow else index + 1, strengths)
        _draw_link(figure, link, title, colour, width)
    marking = _Marking(found, theme, letters, narrow)
    _draw_columns(figure, layout, roles, rule_of(roles, constraint), marking)
    return _dress(figure, layout, theme, narrow)


def _draw_wall(figure: _Sketch, layout: Layout, theme: str) -> None:
    colours = ink(theme)
    top, bottom = layout.wall
    stops = [top, *(edge for gate in layout.gates for edge in (gate[0], gate[2])), bottom]
    blocks = [(-WALL, WALL, *pair) for pair in zip(stops[::2], stops[1::2], strict=True)]
    for _, sill, low in layout.gates:
        blocks += [(x - 0.02, x + 0.02, sill, low) for x in (-WALL + 0.02, WALL - 0.02)]
    for x0, x1, upper, lower in blocks:
        if upper - lower > 0.02:
            figure.add_shape(
                type="rect", x0=x0, x1=x1, y0=lower, y1=upper,
                fillcolor=colours.wall, line={"width": 0}, layer="below",
            )  # fmt: skip
    if layout.floor is not None:
        figure.add_shape(
            type="line", x0=-1.5, x1=1.5, y0=layout.floor, y1=layout.floor,
            line={"color": colours.wall, "width": 1.5}, layer="below",
        )  # fmt: skip


def _draw_forbidden(
    figure: _Sketch, layout: Layout, forbidden: Sequence[ForbiddenPair], theme: str
) -> None:
    places = {spot.name: spot for spot in layout.spots}
    across = [
        pair.pair
        for pair in forbidden
        if {places[name].lane for name in pair.pair if name in places}
        == {Lane.PROTECTED, Lane.OUTCOME}
    ]
    if not across:
        return
    xs: list[float | None] = []
    ys: list[float | None] = []
    for one, other in across:
        xs += [places[one].x, places[other].x, None]
        ys += [places[one].y, places[other].y, None]
    colours = ink(theme)
    figure.add_scatter(
        x=xs, y=ys, mode="lines", hoverinfo="skip",
        line={"color": colours.line, "width": 1.6, "dash": "dash"},
        opacity=1 if len(across) <= 12 else 0.4,
    )  # fmt: skip
    one, other = places[across[0][0]], places[across[0][1]]
    word = "1 pair" if len(across) == 1 else f"{len(across)} pairs"
    figure.add_annotation(
        x=0, y=(one.y + other.y) / 2, text=f"forbidden: {word}", showarrow=False,
        font={"size": 12, "color": colours.text}, bgcolor=colours.paper, borderpad=3,
    )  # fmt: skip


def _draw_link(figure: _Sketch, link: Link, title: str, colour: str, width: float) -> None:
    figure.add_scatter(
        x=[x for x, _ in link.path],
        y=[y for _, y in link.path],
        mode="lines",
        line={"color": colour, "width": width, "dash": "dash" if link.illegal else "solid"},
        hovertemplate=f"{title}<extra></extra>",
    )


def _width(edge: Edge, strengths: Mapping[Edge, float] | None) -> float:
    thin, thick = EDGE_WIDTHS
    if not strengths:
        return thin + 0.7
    strongest = max(strengths.values()) or 1.0
    return thin + (thick - thin) * max(strengths.get(edge, 0.0), 0.0) / strongest


def _title(link: Link, step: int | None, strengths: Mapping[Edge, float] | None) -> str:
    one, other = (html.escape(name) for name in link.edge)
    words = f"<b>{one} — {other}</b>" + ("" if step is None else f"<br>step {step}")
    if strengths and link.edge in strengths:
        words += f"<br>noisy strength {strengths[link.edge]:.3f}"
    return f"{words}<br>not allowed by the rule" if link.illegal else words


@dataclass(frozen=True)
class _Marking:
    found: str | None
    theme: str
    letters: int
    narrow: bool


def _draw_columns(
    figure: _Sketch,
    layout: Layout,
    roles: Roles,
    rule: Constraint,
    marking: _Marking,
) -> None:
    theme, colours = marking.theme, ink(marking.theme)
    for role in (Role.PROTECTED, Role.OUTCOME, Role.ADMISSIBLE, Role.INADMISSIBLE):
        spots = [spot for spot in layout.spots if shown_role(spot.name, roles, rule) is role]
        if not spots:
            continue
        look = LOOKS[role]
        figure.add_scatter(
            x=[spot.x for spot in spots],
            y=[spot.y for spot in spots],
            mode="markers+text",
            marker={
                "symbol": [
                    "diamond-open" if spot.name in roles.proxies else look.symbol for spot in spots
                ],
                "size": [26 if spot.name == marking.found else 17 for spot in spots],
                "color": look.colour(theme),
                "line": {"color": look.colour(theme), "width": 2},
                "opacity": 1,
            },
            text=[_label(spot, roles, role, marking) for spot in spots],
            textposition=[_text_side(spot) for spot in spots],
            textfont={"size": 12 if marking.narrow else 13, "color": colours.text},
            hovertemplate=[
                f"<b>{html.escape(spot.name)}</b><br>{_role_words(spot.name, roles, role)}"
                f"<br>{spot.lane.value}<extra></extra>"
                for spot in spots
            ],
            cliponaxis=False,
        )


def shown_role(name: str, roles: Roles, rule: Constraint) -> Role:
    """Role of a column in one rule (a further rule may name other columns than the table)."""
    if name in rule.protected and name not in roles.proxies:
        return Role.PROTECTED
    if name in rule.outcome:
        return Role.OUTCOME
    if name in rule.admissible:
        return Role.ADMISSIBLE
    return Role.INADMISSIBLE


def _role_words(name: str, roles: Roles, role: Role) -> str:
    return "proxy, treated as protected" if name in roles.proxies else LOOKS[role].words


def _label(spot: Spot, roles: Roles, role: Role, marking: _Marking) -> str:
    letter = "P" if spot.name in roles.proxies else role.value
    lines = two_lines(spot.name, marking.letters) if marking.narrow else (spot.name,)
    name = "<br>".join(html.escape(elide(line, marking.letters)) for line in lines)
    if spot.lane is Lane.PROTECTED:
        return f"{name} <b>{letter}</b>  "
    return f"  <b>{letter}</b> {name}" if spot.lane is not Lane.GATE else f"<b>{letter}</b> {name}"


def two_lines(name: str, letters: int) -> tuple[str, ...]:
    """A long name broken at a low line or a space, where its two parts are most alike in length.

    >>> two_lines("career_gap_months", 10), two_lines("gender", 10)
    (('career_gap', 'months'), ('gender',))
    """
    breaks = [index for index, mark in enumerate(name) if mark in "_ "]
    if len(name) <= letters or not breaks:
        return (name,)
    middle = min(breaks, key=lambda index: (max(index, len(name) - index - 1), -index))
    return name[:middle], name[middle + 1 :]


def _text_side(spot: Spot) -> str:
    if spot.lane is Lane.GATE:
        return "top center"
    return "middle left" if spot.lane is Lane.PROTECTED else "middle right"


def _dress(figure: _Sketch, layout: Layout, theme: str, narrow: bool) -> go.Figure:
    colours = ink(theme)
    heads = (
        (-1.5, "left", "Protected" if narrow else "Protected side"),
        (0, "center", "Wall" if narrow else "Wall with gates"),
        (1.5, "right", "Outcome" if narrow else "Outcome side"),
    )
    for x, anchor, words in heads:
        figure.add_annotation(
            x=x, y=0.75, text=f"<b>{words}</b>", showarrow=False, xanchor=anchor,
            font={"size": 13, "color": colours.soft},
        )  # fmt: skip
    if layout.floor is not None:
        figure.add_annotation(
            x=-1.5, y=layout.floor, text="<b>On neither side yet</b>", showarrow=False,
            xanchor="left", font={"size": 13, "color": colours.soft}, bgcolor=colours.paper,
        )  # fmt: skip
    bottom = layout.bottom
    if not narrow and any(link.illegal for link in layout.links):
        bottom -= 0.8
        figure.add_annotation(
            x=0, y=bottom + 0.5, text=JUMPS, showarrow=False,
            font={"size": 12, "color": colours.text},
        )  # fmt: skip
    dress = {
        "shapes": figure.shapes,
        "annotations": figure.annotations,
        "height": int(ROW * (1.2 - bottom) + 20),
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
        "showlegend": False,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "dragmode": "pan",
        "hoverlabel": {"align": "left"},
        "font": {"family": FONT},
        "xaxis": {"visible": False, "range": [-1.75, 1.75] if narrow else [-1.52, 1.52]},
        "yaxis": {"visible": False, "range": [bottom, 1.2]},
    }
    return go.Figure(figure.traces, dress)


def describe(
    names: Sequence[str], roles: Roles, edges: Sequence[Edge], forbidden: int | None = None
) -> str:
    """One plain sentence about the picture, for those who do not see it."""
    parts = [
        f"{len(roles.having(role) & set(names))} {LOOKS[role].words}"
        for role in (Role.PROTECTED, Role.OUTCOME, Role.ADMISSIBLE)
    ]
    joined = f"{len(edges)} edges joined" if edges else "no edge joined yet"
    words = f"Tree picture of {len(names)} columns ({', '.join(parts)}): {joined}"
    return words + (f"; {forbidden} pairs forbidden." if forbidden is not None else ".")


def sentence(step: SelectionStep) -> str:
    """What one step did, in one sentence of Markdown."""
    one, other = step.chosen
    words = f"**{plain(one)} — {plain(other)}** joined"
    if not step.forbidden:
        return f"{words}; nothing new became forbidden."
    count = len(step.forbidden)
    pairs = "1 pair" if count == 1 else f"{count} pairs"
    return f"{words}; {pairs} became forbidden: {plain(step.forbidden[0].reason)}"


def plain(text: str) -> str:
    """A user's text made harmless inside Markdown, and unable to turn or hide anything."""
    line = visible(text)
    for mark in "\\`*_[]<>#|$:~":
        line = line.replace(mark, f"\\{mark}")
    return line


def label(text: str) -> str:
    """A user's text inside a widget's label: harmless, and read aloud without backslashes.

    Underscores within words mean nothing in Markdown; around a word they slant it, no more.
    """
    return plain(text).replace("\\_", "_")
