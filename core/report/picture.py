"""The tree as a static picture: protected side, wall of admissible columns, outcome side."""

from __future__ import annotations

from core.privci.certificate import components
from core.releases import TreeRelease
from core.report.words import text
from core.roles import Constraint

WIDTH, ROW, TOP = 960, 34, 46
#: Horizontal places of the three lanes, and of columns that belong to neither side.
LANES = {"protected": 150, "wall": 480, "outcome": 810, "neutral": 480}
SHAPES = {
    "S": ("◆", "--s", "protected"),
    "O": ("★", "--o", "outcome"),
    "A": ("■", "--a", "admissible"),
    "I": ("●", "--i", "inadmissible"),
}
LONGEST_NAME = 22


def tree_picture(release: TreeRelease) -> str:
    """An inline SVG of the released edges, seen by the first rule; nothing without a rule."""
    rules = [rule for rule in release.roles.constraints if rule.is_active]
    if not rules:
        return ""
    rule = rules[0]
    places, bottom, height = _places(release, rule)
    wall = (
        f'<rect x="{LANES["wall"] - 4}" y="{TOP - 14}" width="8" height="{bottom - TOP + 14}" '
        'fill="var(--wall)"/>'
    )
    lines = "".join(_line(places, rule, edge) for edge in release.edges)
    spots = "".join(_spot(name, *places[name][:2], rule) for name in release.schema.names)
    heads = "".join(
        f'<text x="{LANES[lane]}" y="20" text-anchor="middle">{words}</text>'
        for lane, words in (
            ("protected", "protected side"),
            ("wall", "admissible: the wall"),
            ("outcome", "outcome side"),
        )
    )
    said = f"{len(release.edges)} edges; {rule.words}"
    legend = ", ".join(f"{mark} {words}" for mark, _, words in SHAPES.values())
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{text(said)}">'
        f"{wall}{lines}{spots}{heads}</svg>"
        f'<p class="soft">{text(legend)}. Edges that jump the wall are dashed.</p>'
    )


def _places(
    release: TreeRelease, rule: Constraint
) -> tuple[dict[str, tuple[float, float, str]], int, int]:
    """Place and side of every column, where the wall ends, and the height of the picture."""
    lanes: dict[str, list[str]] = {"protected": [], "wall": [], "outcome": [], "neutral": []}
    lanes["wall"] = [name for name in release.schema.names if name in rule.admissible]
    for part in components(release.schema.names, release.edges, rule):
        for name in part.columns:
            lanes[_side(name, part.protected, part.outcome, rule)].append(name)
    rows = {lane: len(names) for lane, names in lanes.items()}
    main = max(rows["protected"], rows["wall"], rows["outcome"], 1)
    places = {}
    for lane in ("protected", "wall", "outcome"):
        step = main / max(rows[lane], 1)
        for index, name in enumerate(lanes[lane]):
            places[name] = (float(LANES[lane]), TOP + ROW * (index + 0.5) * step, lane)
    below = TOP + ROW * (main + 1)
    for index, name in enumerate(lanes["neutral"]):
        lane = ("protected", "neutral", "outcome")[index % 3]
        places[name] = (float(LANES[lane]), below + ROW * (index // 3), "neutral")
    return places, TOP + ROW * main, int(below + ROW * (-(-rows["neutral"] // 3)))


def _side(name: str, protected: tuple[str, ...], outcome: tuple[str, ...], rule: Constraint) -> str:
    """Lane of a column; where both sides are joined, only S and O themselves have one."""
    if protected and outcome:
        if name in rule.protected:
            return "protected"
        return "outcome" if name in rule.outcome else "neutral"
    return "protected" if protected else "outcome" if outcome else "neutral"


def _line(
    places: dict[str, tuple[float, float, str]], rule: Constraint, edge: tuple[str, str]
) -> str:
    (x1, y1, one), (x2, y2, other) = places[edge[0]], places[edge[1]]
    jumps = not rule.admissible.intersection(edge) and {one, other} != {one}
    dash = ' stroke-dasharray="6 5"' if jumps else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--soft)" '
        f'stroke-width="1.5"{dash}/>'
        if x1 != x2
        else f'<path d="M{x1:.1f} {y1:.1f} Q{x1 - 60:.1f} {(y1 + y2) / 2:.1f} {x2:.1f} {y2:.1f}" '
        f'fill="none" stroke="var(--soft)" stroke-width="1.5"{dash}/>'
    )


def _spot(name: str, x: float, y: float, rule: Constraint) -> str:
    letter = (
        "S"
        if name in rule.protected
        else "O"
        if name in rule.outcome
        else "A"
        if name in rule.admissible
        else "I"
    )
    mark, colour, words = SHAPES[letter]
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return (
        f"<g><title>{text(name)}: {words}</title>"
        f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" style="fill:var({colour})" '
        f'font-weight="700">{mark}</text>'
        f'<text x="{x + 14:.1f}" y="{y + 4:.1f}">{text(short)}</text></g>'
    )
