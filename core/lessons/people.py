"""Made-up people of the demo worlds, and everything exact that a lesson shows.  NOT PRIVATE.

Nobody is in them, so rows, exact counts and exact scores may be shown and kept for everybody.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from core import demo
from core.attachment import read_as
from core.audit.worlds import World
from core.errors import RolesError
from core.moments import IntArray
from core.plan_sections import ReadingPlan
from core.private.coding import encode
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.releases import Recoding, Unit
from core.roles import Constraint, Role, Roles

Edge = tuple[str, str]

#: Made-up people in a lesson: the demo's own table, as in its documentation.
ROWS = demo.DEFAULT_ROWS
PEOPLE_SEED = demo.DEFAULT_SEED


@dataclass(frozen=True)
class Stage:
    """Which columns a lesson is about, and what the student declared.

    Attributes
    ----------
    name
        The demo world.
    proxies
        Columns that the student declared proxies, sorted.
    hidden
        True when the protected column is left out of the release.
    """

    name: str
    proxies: tuple[str, ...]
    hidden: bool = False

    @classmethod
    def of(cls, name: str, proxies: Sequence[str] | None = None, hidden: bool = False) -> Stage:
        """A stage; without ``proxies`` those that the demo declares itself.

        Raises
        ------
        PlanError
            No demo has that name.
        RolesError
            A proxy is not an inadmissible column of the demo.
        """
        roles = demo.roles(name)
        chosen = roles.proxies if proxies is None else frozenset(proxies)
        free = roles.having(Role.INADMISSIBLE)
        for wrong in sorted(chosen - free):
            raise RolesError(
                f"column {wrong!r} cannot be a proxy in the demo {name!r}; choose among "
                f"{', '.join(sorted(free))}"
            )
        return cls(name, tuple(sorted(chosen)), hidden)

    @cached_property
    def truth(self) -> demo.DemoTruth:
        """The facts behind the demo world."""
        return demo.truth(self.name)

    @cached_property
    def protected(self) -> str:
        """The demo's protected column."""
        return self.truth.direct[0]

    @cached_property
    def outcome(self) -> str:
        """The demo's outcome column."""
        return self.truth.direct[1]

    @cached_property
    def admissible(self) -> tuple[str, ...]:
        """The demo's admissible columns."""
        return self.truth.admissible

    @cached_property
    def proxy(self) -> str:
        """The column that gives the protected one away in the demo's equations."""
        return self.truth.proxies[0]

    @cached_property
    def watched(self) -> str:
        """Whose groups are compared: the protected column, or its proxy where that is hidden."""
        return self.proxy if self.hidden else self.protected

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns that can be modelled, in the table's order."""
        return tuple(column.name for column in demo.schema(self.name).modelled)

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Columns that may be declared proxies, in the table's order."""
        free = demo.roles(self.name).having(Role.INADMISSIBLE)
        return tuple(name for name in self.columns if name in free)

    @cached_property
    def declared(self) -> Roles:
        """Roles of the release: as the student set them."""
        by_column = dict(demo.roles(self.name).by_column)
        if self.hidden:
            by_column[self.protected] = Role.IGNORE
        return Roles(by_column, proxies=frozenset(self.proxies))

    @cached_property
    def judge(self) -> Constraint:
        """The rule that a lesson judges every tree by, whatever the release had to keep.

        On its protected side stand the declared proxies and the watched column.
        """
        protected = {self.watched, *self.proxies} | (set() if self.hidden else {self.protected})
        return Constraint(
            frozenset(protected),
            frozenset({self.outcome}),
            frozenset(self.admissible),
            proxies=frozenset(protected - {self.protected}),
        )


@lru_cache(maxsize=3)
def _coded(name: str) -> CodedTable:
    """Everybody in the biased world of a demo, coded as a steward's file would be."""
    raw = read_as(ReadingPlan(decimal="."), demo.csv_bytes(name, ROWS, PEOPLE_SEED))
    return encode(raw, demo.schema(name), unit=Unit(), key=b"made-up people")


@lru_cache(maxsize=6)
def people(name: str, biased: bool) -> World:
    """The made-up people of a demo; both worlds hold the same people with the same luck."""
    coded = _coded(name)
    if biased:
        return World("biased world", coded.schema, coded.codes, ROWS, private=False)
    outcome = demo.truth(name).direct[1]
    fair = demo.table(name, ROWS, PEOPLE_SEED, biased=False)[outcome]
    decided = pd.Index(coded.schema[outcome].categories).get_indexer(pd.Index(fair))
    codes = {**coded.codes, outcome: decided.astype(np.uint8)}
    return World("true world", coded.schema, codes, ROWS, private=False)


@lru_cache(maxsize=6)
def pair_tables(name: str, biased: bool) -> Mapping[tuple[str, ...], IntArray]:
    """Exact tables of every column and of every pair, names sorted."""
    world = people(name, biased)
    names = sorted(world.schema.names)
    cliques = [*((one,) for one in names), *itertools.combinations(names, 2)]
    return {clique: world.table(clique) for clique in cliques}


@lru_cache(maxsize=6)
def scores(name: str, biased: bool) -> Mapping[Edge, float]:
    """Noise-free score of every pair, the sum of ``|M - N p p'|``, as a share of the rows."""
    found = {}
    for clique, table in pair_tables(name, biased).items():
        if len(clique) == 2:
            alone = np.outer(table.sum(axis=1), table.sum(axis=0)) / ROWS
            found[clique[0], clique[1]] = float(np.abs(table - alone).sum()) / ROWS
    return found


class Remembered(InMemorySource):
    """A source that has counted every pair already, so that many releases are drawn quickly."""

    def __init__(self, name: str) -> None:
        super().__init__(_coded(name))
        self._exact = pair_tables(name, True)

    def each_count(
        self, cliques: Sequence[tuple[str, ...]], recoding: Recoding | None = None
    ) -> Iterator[tuple[int, IntArray]]:
        """Exact tables one by one, after the recoding."""
        maps = {} if recoding is None else recoding.maps
        for index, clique in enumerate(cliques):
            ordered = tuple(sorted(clique))
            table = self._exact[ordered]
            for axis, name in enumerate(ordered):
                if name in maps:
                    table = _pooled(table, maps[name], axis)
            yield index, table if ordered == tuple(clique) else table.T


def _pooled(table: IntArray, codes: IntArray, axis: int) -> IntArray:
    """Cells of one axis added up into their new cells."""
    moved = np.moveaxis(table, axis, 0)
    pooled = np.zeros((int(codes.max()) + 1, *moved.shape[1:]), dtype=np.int64)
    np.add.at(pooled, codes, moved)
    return np.moveaxis(pooled, 0, axis)
