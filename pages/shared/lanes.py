"""Where each column stands in the tree picture: two sides, a wall with gates, and the open floor.

The left lane is the protected side, the right lane the outcome's side, the middle lane the
admissible columns: gates in a wall.  A column that no path ties to a side yet stands under the
gate it hangs on, or on the open floor below.  Positions follow from the final tree, so that a
column moves only when it joins a side, never because another one did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.roles import Constraint, Role, Roles

Edge = tuple[str, str]
Point = tuple[float, float]

#: Half the width of the wall, the side lanes' first column, and one step of depth, in units of x.
WALL = 0.38
ROOT = 0.58
DEPTH = 0.12
#: Where a path to a gate leaves its own row.
BEND = 0.5
#: Columns of the open floor, and those for long names.
FLOOR = (-1.3, -0.35, 0.6)
FLOOR_LONG = (-1.3, 0.1)
LONG = 13


class Lane(StrEnum):
    """Part of the picture in which a column stands."""

    PROTECTED = "protected side"
    GATE = "gate"
    NICHE = "under a gate"
    OUTCOME = "outcome side"
    OPEN = "on neither side"


@dataclass(frozen=True)
class Spot:
    """Place of one column."""

    name: str
    lane: Lane
    x: float
    y: float


@dataclass(frozen=True)
class Link:
    """One edge as a path of points; ``illegal`` when it jumps the wall."""

    edge: Edge
    path: tuple[Point, ...]
    illegal: bool = False


@dataclass(frozen=True)
class Layout:
    """Everything needed to draw one step.

    ``gates`` gives top, sill and bottom of every opening in the wall (between sill and bottom hang
    the columns of that gate), ``wall`` top and bottom of the wall, ``floor`` the upper edge of the
    open floor (None: nobody stands there).
    """

    spots: tuple[Spot, ...]
    links: tuple[Link, ...]
    gates: tuple[tuple[float, float, float], ...]
    wall: tuple[float, float]
    floor: float | None
    bottom: float

    def spot(self, name: str) -> Spot:
        """Place of a column by name."""
        return next(spot for spot in self.spots if spot.name == name)


class _Forest:
    """Union-find over names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def root(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, one: str, other: str) -> None:
        self._parent[self.root(other)] = self.root(one)


def rule_of(roles: Roles, constraint: Constraint | None = None) -> Constraint:
    """The rule whose sides are drawn: the given one, else the role table's, complete or not."""
    if constraint is not None:
        return constraint
    return Constraint(
        roles.having(Role.PROTECTED) | roles.proxies,
        roles.having(Role.OUTCOME),
        roles.having(Role.ADMISSIBLE),
    )


def sides(names: Sequence[str], rule: Constraint, edges: Sequence[Edge]) -> dict[str, Lane]:
    """Lane of every column after ``edges``.

    Where a component holds both sides (only an unconstrained tree can), a column goes to the side
    it is nearer to.
    """
    outside = [name for name in names if name not in rule.admissible]
    forest = _Forest(outside)
    inner = [edge for edge in edges if not set(edge) & rule.admissible]
    for one, other in inner:
        forest.join(one, other)
    held: dict[str, set[Lane]] = {}
    for name in outside:
        sets = held.setdefault(forest.root(name), set())
        if name in rule.protected:
            sets.add(Lane.PROTECTED)
        if name in rule.outcome:
            sets.add(Lane.OUTCOME)
    touching = {
        forest.root(name)
        for edge in edges
        if len(set(edge) & rule.admissible) == 1
        for name in edge
        if name not in rule.admissible
    }
    lanes = {name: Lane.GATE for name in names if name in rule.admissible}
    for name in outside:
        root = forest.root(name)
        if name in rule.protected:
            lanes[name] = Lane.PROTECTED
        elif name in rule.outcome:
            lanes[name] = Lane.OUTCOME
        elif len(held[root]) == 2:
            lanes[name] = _nearer(name, rule, inner)
        elif held[root]:
            lanes[name] = next(iter(held[root]))
        else:
            lanes[name] = Lane.NICHE if root in touching else Lane.OPEN
    return lanes


def _nearer(name: str, rule: Constraint, edges: Sequence[Edge]) -> Lane:
    reached, border = {name}, [name]
    while border:
        if any(item in rule.protected for item in border):
            return Lane.PROTECTED
        if any(item in rule.outcome for item in border):
            return Lane.OUTCOME
        border = sorted(
            {
                other
                for edge in edges
                for one, other in (edge, edge[::-1])
                if one in border and other not in reached
            }
        )
        reached.update(border)
    return Lane.OPEN


def lay_out(
    names: Sequence[str],
    roles: Roles,
    edges: Sequence[Edge],
    *,
    settled: Sequence[Edge] | None = None,
    constraint: Constraint | None = None,
) -> Layout:
    """Positions after ``edges``, the first ones of ``settled`` (the whole tree, in a replay).

    In a replay the floor keeps every place, so that nothing else moves when a column leaves it.
    """
    rule = rule_of(roles, constraint)
    replay = settled is not None
    edges = tuple(edges)
    settled = edges if settled is None else tuple(settled)
    final = sides(names, rule, settled)
    now = sides(names, rule, edges)
    for name in names:
        if {now[name], final[name]} <= {Lane.PROTECTED, Lane.OUTCOME}:
            now[name] = final[name]
    left = _side_rows(names, rule, settled, final, Lane.PROTECTED)
    right = _side_rows(names, rule, settled, final, Lane.OUTCOME)
    hanging = _hanging(names, rule, settled)
    wall, gates, wall_height = _wall_rows(names, rule, hanging)
    height = max(len(left), len(right), wall_height, 1.0)
    places: dict[str, Point] = {}
    for rows, sign in ((left, -1.0), (right, 1.0)):
        offset = (height - len(rows)) / 2
        for row, (name, depth) in enumerate(rows):
            places[name] = (sign * (ROOT + DEPTH * min(depth, 4)), -(row + 0.5 + offset))
    shift = (height - wall_height) / 2
    niche = {name: (x, y - shift) for name, (x, y) in wall.items()}
    openings = tuple((top - shift, sill - shift, low - shift) for top, sill, low in gates)
    waiting = [name for name, lane in sides(names, rule, ()).items() if lane is Lane.OPEN]
    if not replay or edges == settled:
        waiting = [name for name in waiting if now[name] is Lane.OPEN]
    ground = _floor_places(sorted(waiting, key=names.index), settled, -(height + 1.3))
    floor = -(height + 0.9) if waiting else None
    spots = tuple(
        Spot(
            name,
            now[name],
            *(
                ground[name]
                if now[name] is Lane.OPEN
                else niche[name]
                if now[name] in {Lane.GATE, Lane.NICHE}
                else places[name]
            ),
        )
        for name in names
    )
    bottom = min([-(height + 0.3), *(y - 0.7 for _, y in ground.values())])
    return Layout(spots, _links(spots, edges), openings, (0.0, -height), floor, bottom)


def _side_rows(
    names: Sequence[str],
    rule: Constraint,
    edges: Sequence[Edge],
    lanes: dict[str, Lane],
    lane: Lane,
) -> list[tuple[str, int]]:
    """Names of one side with their depth, in rows from top to bottom (an indented tree)."""
    members = [name for name in names if lanes[name] is lane]
    near = {name: [] for name in members}
    gated = set()
    for one, other in edges:
        if one in near and other in near:
            near[one].append(other)
            near[other].append(one)
        for name, across in ((one, other), (other, one)):
            if name in near and across in rule.admissible:
                gated.add(name)
    rows: list[tuple[str, int]] = []
    placed: set[str] = set()
    ends = rule.protected | rule.outcome
    order = sorted(members, key=lambda n: (n not in gated, n not in ends, names.index(n)))
    for root in order:
        if root in placed:
            continue
        stack = [(root, 0)]
        while stack:
            name, depth = stack.pop()
            if name in placed:
                continue
            placed.add(name)
            rows.append((name, depth))
            children = sorted((n for n in near[name] if n not in placed), key=names.index)
            stack += [(child, depth + 1) for child in reversed(children)]
    return rows


def _hanging(
    names: Sequence[str], rule: Constraint, edges: Sequence[Edge]
) -> dict[str, list[tuple[str, int]]]:
    """For every gate the columns that ever hang on it alone, in rows with their depth."""
    gates: dict[str, list[tuple[str, int]]] = {n: [] for n in names if n in rule.admissible}
    placed: set[str] = set()
    for step in range(1, len(edges) + 1):
        lanes = sides(names, rule, edges[:step])
        for name in names:
            if lanes[name] is Lane.NICHE and name not in placed:
                gate, depth = _gate_of(name, edges[:step], gates.keys())
                gates[gate].append((name, depth))
                placed.add(name)
    return gates


def _gate_of(name: str, edges: Sequence[Edge], gates: Iterable[str]) -> tuple[str, int]:
    """The nearest gate and how many columns stand between."""
    reached, border, depth = {name}, [name], -1
    while True:
        found = sorted(set(border) & set(gates))
        if found:
            return found[0], depth
        depth += 1
        around = {b if a in border else a for a, b in edges if (a in border) != (b in border)}
        border = sorted(around - reached)
        reached |= around


def _wall_rows(
    names: Sequence[str], rule: Constraint, hanging: dict[str, list[tuple[str, int]]]
) -> tuple[dict[str, Point], list[tuple[float, float, float]], float]:
    """Places in the wall, its openings, and the wall's height, from y = 0 downward."""
    places: dict[str, Point] = {}
    openings: list[tuple[float, float, float]] = []
    y = -0.55
    for gate in [name for name in names if name in rule.admissible]:
        top = y
        y -= 1.15  # the label stands in the upper half of the opening
        places[gate] = (0.0, y)
        sill = y - 0.5
        for name, depth in hanging[gate]:
            y -= 0.9
            places[name] = (-0.2 + 0.06 * min(depth, 3), y)
        y -= 0.5
        openings.append((top, sill, y))
        y -= 0.55
    return places, openings, max(-y, 1.0)


def _floor_places(waiting: Sequence[str], edges: Sequence[Edge], top: float) -> dict[str, Point]:
    """Joined columns below each other, groups side by side."""
    forest = _Forest(waiting)
    for one, other in edges:
        if one in waiting and other in waiting:
            forest.join(one, other)
    groups: dict[str, list[str]] = {}
    for name in waiting:
        groups.setdefault(forest.root(name), []).append(name)
    floor = FLOOR_LONG if any(len(name) > LONG for name in waiting) else FLOOR
    filled = [0] * len(floor)
    places: dict[str, Point] = {}
    for group in sorted(groups.values(), key=len, reverse=True):
        column = filled.index(min(filled))
        for name in _walk(group, edges):
            places[name] = (floor[column], top - 0.5 - 0.95 * filled[column])
            filled[column] += 1
    return places


def _walk(group: Sequence[str], edges: Sequence[Edge]) -> list[str]:
    """A group depth first, so that most of its edges join neighbours."""
    seen: list[str] = []
    stack = [group[0]]
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.append(name)
        around = {b if a == name else a for a, b in edges if name in (a, b)}
        stack += sorted(around & set(group) - set(seen), reverse=True)
    return seen


def _links(spots: Sequence[Spot], edges: Sequence[Edge]) -> tuple[Link, ...]:
    by_name = {spot.name: spot for spot in spots}
    return tuple(_link(edge, by_name[edge[0]], by_name[edge[1]]) for edge in edges)


def _link(edge: Edge, one: Spot, other: Spot) -> Link:
    lanes = {one.lane, other.lane}
    if lanes == {Lane.PROTECTED, Lane.OUTCOME}:
        near = tuple((BEND if spot.x > 0 else -BEND, spot.y) for spot in (one, other))
        return Link(edge, ((one.x, one.y), *near, (other.x, other.y)), illegal=True)
    if lanes == {Lane.GATE}:
        return Link(edge, ((one.x, one.y), (0.27, one.y), (0.27, other.y), (other.x, other.y)))
    if Lane.GATE in lanes and lanes & {Lane.PROTECTED, Lane.OUTCOME}:
        gate, side = (one, other) if one.lane is Lane.GATE else (other, one)
        sign = 1.0 if side.x > 0 else -1.0
        path = (
            (side.x, side.y),
            (sign * BEND, side.y),
            (sign * WALL, gate.y),
            (gate.x, gate.y),
        )
        return Link(edge, path)
    if len(lanes) == 1 and lanes & {Lane.PROTECTED, Lane.OUTCOME, Lane.NICHE}:
        upper, lower = (one, other) if one.y > other.y else (other, one)
        if upper.x == lower.x:
            out = upper.x + (0.05 if upper.x < 0 else -0.05)
            path = ((upper.x, upper.y), (out, upper.y), (out, lower.y), (lower.x, lower.y))
            return Link(edge, path)
        return Link(edge, ((upper.x, upper.y), (upper.x, lower.y), (lower.x, lower.y)))
    if lanes == {Lane.GATE, Lane.NICHE}:
        gate, hung = (one, other) if one.lane is Lane.GATE else (other, one)
        turn = -0.27
        return Link(edge, ((gate.x, gate.y), (turn, gate.y), (turn, hung.y), (hung.x, hung.y)))
    if lanes == {Lane.OPEN} and one.x == other.x and abs(one.y - other.y) > 1:
        out = one.x - 0.06
        return Link(edge, ((one.x, one.y), (out, one.y), (out, other.y), (other.x, other.y)))
    return Link(edge, ((one.x, one.y), (other.x, other.y)))
