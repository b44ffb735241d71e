"""Distances between the tables of two worlds, beside what chance alone would show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audit.figures import Figure
from core.audit.paired import chance_variation, paired, random_split, require_rows
from core.audit.resampling import share_interval, standard_error
from core.audit.worlds import World

FloatArray = NDArray[np.float64]

#: Added to every share before the logarithm, as in the experiments of the method's paper.
FLOOR = 1e-12
WAYS = {1: "one_way", 2: "two_way", 3: "three_way"}
_TABLES = {1: "columns", 2: "pairs of columns", 3: "triples of columns"}
JUMPS = "no interval: a cell that only the first table has costs about 27 nats times its share"
CHANCE = "two tables of these sizes whose rows were dealt at random from the same rows"


def total_variation(p: FloatArray, q: FloatArray) -> float:
    """Half the sum of absolute differences of two tables of shares: 0 equal, 1 disjoint.

    >>> total_variation(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    0.5
    """
    return 0.5 * float(np.abs(p - q).sum())


def kullback_leibler(p: FloatArray, q: FloatArray, *, floor: float = FLOOR) -> float:
    """Sum of p log(p / q) in nats, with ``floor`` added to every share and nothing rescaled.

    A cell that only ``p`` has costs its share times about 27 nats.

    >>> round(kullback_leibler(np.array([0.5, 0.5]), np.array([0.25, 0.75])), 4)
    0.1438
    """
    raised, other = p + floor, q + floor
    return float((raised * np.log(raised / other)).sum())


@dataclass(frozen=True, repr=False)
class JointDistance:
    """Distance of two worlds over the joint table of several columns.

    Attributes
    ----------
    kl, tv
        Kullback-Leibler divergence of the second world from the first in nats, total variation.
    chance
        Mean total variation when rows are dealt at random to two tables of these sizes.
    deviation
        Standard error of ``tv``.
    columns
        How many columns.
    private
        True when either world is.
    """

    kl: float
    tv: float
    chance: float
    deviation: float
    columns: int
    private: bool

    def figures(self, level: float = 0.95) -> tuple[Figure, ...]:
        """Both distances."""
        low, high = share_interval(self.tv, self.deviation, level)
        words = f"{self.columns} columns at once" if self.columns != 1 else "one column"
        return (
            Figure(
                "fidelity.joint.tv",
                f"Total variation over {words}",
                self.tv,
                "share",
                self.private,
                low=low,
                high=high,
                level=level,
                baseline=self.chance,
                baseline_words=CHANCE,
                reason="tables of many columns hardly ever repeat a row: read it beside chance",
            ),
            Figure(
                "fidelity.joint.kl",
                f"Kullback-Leibler divergence over {words}",
                self.kl,
                "nats",
                self.private,
                reason=JUMPS,
            ),
        )


def joint_distance(
    first: World, second: World, names: Sequence[str] | None = None
) -> JointDistance:
    """Distances over the joint table of several columns (all of the first world's by default).

    Parameters
    ----------
    first, second
        What is compared with what: the divergence is KL(first || second).

    Raises
    ------
    EstimationError
        When a world has no rows.

    Notes
    -----
    Costs nothing; private when either world is.  One ten-to-the-minus-twelfth is added to every
    cell, as in the experiments of PrivCI (2026), section 5; cells that occur in neither world
    then contribute nothing.
    """
    names = first.schema.names if names is None else tuple(names)
    table = paired(first, second, names)
    p, q = table.shares
    half = 0.5 * np.sign(p - q)
    variances = _variance(half, p) / first.rows, _variance(half, q) / second.rows
    return JointDistance(
        kl=kullback_leibler(p, q),
        tv=total_variation(p, q),
        chance=chance_variation(table, random_split(first.rows, second.rows)),
        deviation=math.sqrt(sum(variances)),
        columns=len(names),
        private=first.private or second.private,
    )


@dataclass(frozen=True, eq=False, repr=False)
class MarginalDistances:
    """Distances of two worlds over many small tables.

    Attributes
    ----------
    names
        Columns of each table.
    tv, kl
        (tables,) total variation, and Kullback-Leibler divergence of the second world from the
        first in nats.
    chance
        (tables,) mean total variation when rows are dealt at random to two tables of these sizes.
    deviations
        (tables,) standard errors of ``tv``.
    deviation
        Standard error of the mean of ``tv``.
    ways
        Columns a table: 1, 2 or 3.
    possible
        How many tables there are; where more than were looked at, those were drawn at random.
    private
        True when either world is.
    """

    names: tuple[tuple[str, ...], ...]
    tv: FloatArray
    kl: FloatArray
    chance: FloatArray
    deviations: FloatArray
    deviation: float
    ways: int
    possible: int
    private: bool

    @property
    def sampled(self) -> bool:
        """True when only some of the tables were looked at."""
        return len(self.names) < self.possible

    def worst(self, count: int) -> tuple[int, ...]:
        """Positions of the tables with the largest total variation, largest first."""
        order = np.argsort(-self.tv, kind="stable")[:count]
        return tuple(int(place) for place in order)

    def figures(self, level: float = 0.95) -> tuple[Figure, ...]:
        """Means over the tables, and the worst table."""
        key, tables = f"fidelity.{WAYS[self.ways]}", _TABLES[self.ways]
        if not self.names:
            reason = f"fewer than {self.ways} columns"
            return (
                Figure(
                    f"{key}.tv",
                    f"Total variation, {tables}",
                    None,
                    "share",
                    self.private,
                    reason=reason,
                ),
            )
        caveat = (
            f"a random sample of {len(self.names):,} of {self.possible:,} {tables}"
            if self.sampled
            else ""
        )

        def variation(end: str, words: str, tv: float, deviation: float, chance: float) -> Figure:
            low, high = share_interval(tv, deviation, level)
            return Figure(
                f"{key}.{end}",
                f"Total variation, {words}",
                tv,
                "share",
                self.private,
                low=low,
                high=high,
                level=level,
                baseline=chance,
                baseline_words=CHANCE,
                reason=caveat,
            )

        mean, expected = float(self.tv.mean()), float(self.chance.mean())
        worst = self.worst(1)[0]
        furthest = f"worst of {tables}: " + " × ".join(self.names[worst])
        own = (float(part[worst]) for part in (self.tv, self.deviations, self.chance))
        return (
            variation("tv", f"mean over {tables}", mean, self.deviation, expected),
            variation("tv.worst", furthest, *own),
            Figure(
                f"{key}.kl",
                f"Kullback-Leibler divergence, mean over {tables}",
                float(self.kl.mean()),
                "nats",
                self.private,
                reason="; ".join(part for part in (caveat, JUMPS) if part),
            ),
        )


def marginal_distances(
    first: World, second: World, ways: int, *, limit: int = 2000, seed: int = 0
) -> MarginalDistances:
    """Distances over all tables of one, two or three columns.

    Parameters
    ----------
    first, second
        What is compared with what: the divergences are KL(first || second).
    ways
        Columns a table.
    limit
        More tables than this are sampled without replacement.
    seed
        Of that sample.

    Raises
    ------
    EstimationError
        When a world has no rows.

    Notes
    -----
    Costs nothing; private when either world is.
    """
    require_rows(first, second)
    chosen, possible = combinations(first.schema.names, ways, limit=limit, seed=seed)
    split = random_split(first.rows, second.rows)
    tv, kl, chance, deviations = (np.zeros(len(chosen)) for _ in range(4))
    influences = (np.zeros(first.rows), np.zeros(second.rows))
    for place, names in enumerate(chosen):
        table = paired(first, second, names)
        p, q = table.shares
        tv[place], kl[place] = total_variation(p, q), kullback_leibler(p, q)
        chance[place] = chance_variation(table, split)
        half = 0.5 * np.sign(p - q)  # the derivative by the shares: of p, and of q with less
        deviations[place] = math.sqrt(
            _variance(half, p) / first.rows + _variance(half, q) / second.rows
        )
        influences[0][:] += half[table.first]
        influences[1][:] -= half[table.second]
    return MarginalDistances(
        names=chosen,
        tv=tv,
        kl=kl,
        chance=chance,
        deviations=deviations,
        deviation=standard_error([rows / max(len(chosen), 1) for rows in influences]),
        ways=ways,
        possible=possible,
        private=first.private or second.private,
    )


# -- parts that other comparisons share --------------------------------------------------------


def combinations(
    names: Sequence[str], ways: int, *, limit: int, seed: int
) -> tuple[tuple[tuple[str, ...], ...], int]:
    """All groups of ``ways`` columns, or a random ``limit`` of them; and how many there are."""
    possible = math.comb(len(names), ways)
    if possible <= limit:
        return tuple(itertools.combinations(names, ways)), possible
    generator = np.random.default_rng(seed)
    ranks = np.sort(generator.choice(possible, limit, replace=False))
    found = tuple(
        tuple(names[place] for place in _unrank(int(rank), len(names), ways)) for rank in ranks
    )
    return found, possible


def _unrank(rank: int, count: int, ways: int) -> tuple[int, ...]:
    """The combination at this place of the lexicographic order.

    >>> [_unrank(rank, 4, 2) for rank in range(6)]
    [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    """
    found: list[int] = []
    start = 0
    for left in range(ways - 1, -1, -1):
        while (block := math.comb(count - start - 1, left)) <= rank:
            rank -= block
            start += 1
        found.append(start)
        start += 1
    return tuple(found)


def _variance(values: FloatArray, shares: FloatArray) -> float:
    """Variance of what a row of these shares meets."""
    return max(0.0, float(shares @ values**2) - float(shares @ values) ** 2)
