"""Which inadmissible columns give the protected ones away, given what is admissible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audit.fairness_findings import group_columns
from core.audit.figures import Figure
from core.audit.information import shuffled_within
from core.audit.resampling import share_interval, standard_error
from core.audit.worlds import World
from core.roles import Constraint, Role, Roles, quoted

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Shuffles behind a column's noise floor; mean and spread need no more.
SHUFFLES = 30
#: How many standard deviations of the shuffles count as clearly above the floor.  A convention.
CLEAR = 3.0
#: A column that tells less than this part of what is unknown about S is not worth a sentence.
#: A convention, as is the next one: ranking two people right 6 times in 10.
MATTERS = 0.05
RANKS = 0.60


@dataclass(frozen=True, repr=False)
class ProxySuggestion:
    """How much of the protected columns one inadmissible column carries.

    Attributes
    ----------
    column
        The I column.
    share
        I(column; S | A) / H(S | A): the part of what A leaves unknown about S that the column
        tells, 0 to 1; its baseline is what chance alone gives.
    ranking
        Chance that, of two rows with equal A, one of a protected group and one not, the column
        ranks the right one first; 0.5 is a guess, and its baseline is what chance alone gives.
    side
        Where it stands in the released tree without the admissible columns: ``outcome``,
        ``protected``, or an empty text.
    clear
        Whether it carries enough of S, clearly above its floor.
    suggested
        True for the strongest of the clear ones.
    why
        One plain sentence.
    """

    column: str
    share: Figure
    ranking: Figure
    side: str
    clear: bool
    suggested: bool
    why: str

    @property
    def excess(self) -> float:
        """Share above its floor; 0 where there is none."""
        if self.share.value is None or self.share.baseline is None:
            return 0.0
        return self.share.value - self.share.baseline


def proxy_suggestions(
    world: World,
    rule: Constraint,
    roles: Roles,
    *,
    sides: Mapping[str, str] | None = None,
    minimum: int = 10,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[ProxySuggestion, ...]:
    """Every inadmissible column of a rule by how much of S it carries, the strongest first.

    Parameters
    ----------
    world
        Rows to look at.
    rule, roles
        The rule; columns of role I that the rule does not name are candidates.  Declared proxies
        do not count as S here: the question is about the columns that are protected themselves.
    sides
        Where columns stand in the released tree: ``outcome`` or ``protected``.
    minimum
        Fewer rows than this in strata with two protected groups say nothing.
    level, seed
        Of the interval, and of the shuffles behind the floor.

    Notes
    -----
    Costs nothing; as private as the world.  The floor is the mean over shuffles of S within the
    cells of A, where nothing but chance is left.
    """
    names = [
        column.name
        for column in world.schema.columns
        if roles.role(column.name) is Role.INADMISSIBLE and column.name not in rule.columns
    ]
    if not names or not rule.protected:
        return ()
    frame = _Frame.of(world, rule, seed)
    if frame.telling < minimum:
        reason = (
            f"fewer than {minimum} rows share their admissible values with a row of another "
            "protected group"
        )
        return tuple(_unknown(world, name, rule, reason) for name in names)
    found = [
        _Carried.of(frame, name, world.codes[name].astype(np.int64), world.size(name), level)
        for name in names
    ]
    order = sorted(range(len(names)), key=lambda index: (-found[index].excess, names[index]))
    strongest = next((index for index in order if found[index].clear), None)
    sides = sides or {}
    return tuple(
        _suggestion(
            world, rule, found[index], side=sides.get(names[index], ""), best=index == strongest
        )
        for index in order
    )


# -- details ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Frame:
    """Strata and groups of every row, and the groups shuffled within strata."""

    order: IntArray
    stratum: IntArray
    group: IntArray
    groups: int
    shuffled: tuple[IntArray, ...]
    telling: int
    #: Sums of n log2 n over strata and over strata by group.
    sums: tuple[float, float]

    @classmethod
    def of(cls, world: World, rule: Constraint, seed: int) -> _Frame:
        generator = np.random.default_rng(seed)
        stratum = world.joint(sorted(rule.admissible))
        group = world.joint(group_columns(rule))
        order = np.argsort(stratum, kind="stable")
        stratum, group = stratum[order], group[order]
        groups = int(group.max()) + 1 if world.rows else 1
        shuffled = tuple(shuffled_within(group, stratum, generator) for _ in range(SHUFFLES))
        both = np.unique(stratum * groups + group, return_counts=True)
        several = np.bincount(both[0] // groups) > 1
        telling = int(np.bincount(stratum)[several].sum()) if world.rows else 0
        sums = (_information(np.bincount(stratum)), _information(both[1]))
        return cls(order, stratum, group, groups, shuffled, telling, sums)

    @property
    def unknown(self) -> float:
        """Rows times H(S | A) in bits."""
        return self.sums[0] - self.sums[1]


@dataclass(frozen=True, eq=False, repr=False)
class _Carried:
    """What one column tells about S, and what chance alone would."""

    name: str
    share: float
    share_floor: float
    interval: tuple[float, float]
    ranking: float
    ranking_floor: float
    clear: bool

    @property
    def excess(self) -> float:
        return self.share - self.share_floor

    @classmethod
    def of(cls, frame: _Frame, name: str, codes: IntArray, size: int, level: float) -> _Carried:
        pairs, pair = np.unique(frame.stratum * size + codes[frame.order], return_inverse=True)
        stratum = pairs // size
        totals = np.bincount(pair)
        base = frame.unknown - _information(totals)

        def measured(group: IntArray) -> tuple[float, float, FloatArray]:
            cells = pair * frame.groups + group
            table = np.bincount(cells, minlength=len(pairs) * frame.groups).astype(np.float64)
            table = table.reshape(len(pairs), frame.groups)
            share = (base + _information(table)) / frame.unknown
            return max(0.0, share), _ranked(table, stratum), table

        share, ranking, table = measured(frame.group)
        chance = np.array([measured(group)[:2] for group in frame.shuffled])
        floor, spread = chance.mean(axis=0), chance.std(axis=0, ddof=1)
        above = share - floor[0] > CLEAR * spread[0] + 1e-9
        enough = share - floor[0] >= MATTERS or ranking - floor[1] >= RANKS - 0.5
        influence = _influence(table, totals, frame, pair, share)
        interval = share_interval(share, standard_error([influence]), level)
        return cls(
            name, share, float(floor[0]), interval, ranking, float(floor[1]), bool(above and enough)
        )


def _information(counts: FloatArray | IntArray) -> float:
    """Sum of n log2 n."""
    positive = counts[counts > 0].astype(np.float64)
    return float(positive @ np.log2(positive))


def _ranked(table: FloatArray, stratum: IntArray) -> float:
    """Chance of ranking two rows of a stratum right, one of a group and one of none of it.

    Within a stratum cells are sorted by the group's share, which is the best order there is
    (Neyman and Pearson); pairs of rows count equally, over strata and groups.
    """
    totals = table.sum(axis=1)
    right = pairs = 0.0
    for group in range(table.shape[1]):
        ups = table[:, group]
        order = np.lexsort((ups / totals, stratum))
        ups, downs, inside = ups[order], (totals - ups)[order], stratum[order]
        starts = np.flatnonzero(np.concatenate(([True], inside[1:] != inside[:-1])))
        lengths = np.diff(np.concatenate((starts, [len(inside)])))
        below = np.cumsum(downs) - downs
        below -= np.repeat(below[starts], lengths)
        right += float(ups @ (below + downs / 2))
        pairs += float(np.add.reduceat(ups, starts) @ np.add.reduceat(downs, starts))
    return right / pairs if pairs else 0.5


def _influence(
    table: FloatArray, totals: IntArray, frame: _Frame, pair: IntArray, share: float
) -> FloatArray:
    """How much every row moves the share: of the ratio of two means of logarithms."""
    strata = np.bincount(frame.stratum)[frame.stratum]
    joint = np.bincount(frame.stratum * frame.groups + frame.group)
    by_group = joint[frame.stratum * frame.groups + frame.group]
    both = table[pair, frame.group]
    told = np.log2(both / totals[pair]) - np.log2(by_group / strata)
    unknown = -np.log2(by_group / strata)
    influence: FloatArray = (told - share * unknown) / (frame.unknown / len(pair))
    return influence


SHARE = "What the column tells of the protected ones"
RANKING = "Ranking protected groups by the column"
SHARE_UNIT, RANKING_UNIT = "share of bits", "AUC"
CHANCE = "shuffled within equal admissible values"


def _keys(rule: Constraint, name: str) -> tuple[str, str]:
    return (f"proxies.{rule.name}.{name}.share", f"proxies.{rule.name}.{name}.ranking")


def _unknown(world: World, name: str, rule: Constraint, reason: str) -> ProxySuggestion:
    one, other = _keys(rule, name)
    return ProxySuggestion(
        name,
        Figure(one, f"{SHARE}: {name}", None, SHARE_UNIT, world.private, reason=reason),
        Figure(other, f"{RANKING}: {name}", None, RANKING_UNIT, world.private, reason=reason),
        side="",
        clear=False,
        suggested=False,
        why=f"Nothing can be said: {reason}.",
    )


def _suggestion(
    world: World, rule: Constraint, found: _Carried, *, side: str, best: bool
) -> ProxySuggestion:
    one, other = _keys(rule, found.name)
    binned = "in declared bins" if world.schema[found.name].axis else ""
    low, high = found.interval
    share = Figure(
        one,
        f"{SHARE}: {found.name}",
        found.share,
        SHARE_UNIT,
        world.private,
        low=low,
        high=high,
        baseline=found.share_floor,
        baseline_words=CHANCE,
        reason=binned,
    )
    ranking = Figure(
        other,
        f"{RANKING}: {found.name}",
        found.ranking,
        RANKING_UNIT,
        world.private,
        baseline=found.ranking_floor,
        baseline_words=CHANCE,
        reason=binned,
    )
    words = _why(rule, found, side, best)
    return ProxySuggestion(found.name, share, ranking, side, found.clear, best, words)


def _why(rule: Constraint, found: _Carried, side: str, best: bool) -> str:
    protected = quoted(group_columns(rule))
    given = f" given {quoted(rule.admissible)}" if rule.admissible else ""
    if not found.clear:
        return f"{found.name!r} tells next to nothing about {protected} beyond chance."
    words = (
        f"{found.name!r} tells {100 * max(found.excess, 0):.0f} % of what is unknown about "
        f"{protected}{given}, beyond chance"
    )
    where = {
        "outcome": "; it stands on the outcome's side of the tree, so a model may use it",
        "protected": "; it stands on the protected side of this tree, which the rule shields",
    }.get(side, "")
    advice = "; consider declaring it a proxy" if best else ""
    return f"{words}{where}{advice}."
