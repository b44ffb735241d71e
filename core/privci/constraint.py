"""Which pairs may still be joined: separation kept by union-find (arXiv 2603.12112, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import RolesError
from core.releases import ForbiddenPair
from core.roles import Constraint

Pair = tuple[str, str]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]


@dataclass(eq=False)
class _Sides:
    """One constraint's union-find on V without A: quick-find labels, flags carried by members.

    ``component`` is -1 on admissible columns, which never connect the two sides.
    """

    constraint: Constraint
    component: IndexArray
    has_protected: BoolArray
    has_outcome: BoolArray

    @classmethod
    def of(cls, constraint: Constraint, names: Sequence[str]) -> _Sides:
        """Every column outside A on its own."""
        component = np.array(
            [-1 if name in constraint.admissible else i for i, name in enumerate(names)],
            dtype=np.intp,
        )
        return cls(
            constraint,
            component,
            np.array([name in constraint.protected for name in names], dtype=np.bool_),
            np.array([name in constraint.outcome for name in names], dtype=np.bool_),
        )

    def clashes(self) -> BoolArray:
        """Matrix of pairs whose union would hold both an S and an O."""
        one_way = np.outer(self.has_protected, self.has_outcome)
        # Admissible columns carry neither flag, so their rows and columns are False.
        return one_way | one_way.T

    def join(self, one: int, other: int) -> None:
        """Merge two components, unless the edge ends in A."""
        if self.component[one] < 0 or self.component[other] < 0:
            return
        merged = (self.component == self.component[one]) | (self.component == self.component[other])
        self.component[merged] = self.component[one]
        self.has_protected[merged] = bool(self.has_protected[merged].any())
        self.has_outcome[merged] = bool(self.has_outcome[merged].any())


class ConstraintFilter:
    """Cycles and constraints of a growing forest.

    One union-find on all columns finds cycles; per constraint one on the columns outside A_k
    carries whether a component holds an S or an O.  A pair violates k when neither end is in A_k
    and its union would hold both.  Components only grow, so a forbidden pair stays forbidden.

    Parameters
    ----------
    columns
        Names of the modelled columns, in any order; they are processed in sorted order.
    constraints
        The list (S_k, O_k, A_k).
    outcomes_touch_admissible_only
        PreFair's rule on top: a pair with an outcome needs an admissible column of the same
        constraint at its other end.

    Raises
    ------
    RolesError
        A constraint names a column that is not among ``columns``.

    Examples
    --------
    >>> rule = Constraint(frozenset({"s"}), frozenset({"o"}), frozenset({"a"}))
    >>> rows = ConstraintFilter(["o", "x", "s", "a"], [rule])
    >>> rows.allowed("x", "o"), rows.allowed("s", "o")
    (True, False)
    >>> [pair.pair for pair in rows.join("s", "x")]
    [('o', 'x')]
    >>> rows.why("x", "o").reason
    "'x' stands on the protected side through 's' — 'x', and 'o' is an outcome"
    """

    def __init__(
        self,
        columns: Sequence[str],
        constraints: Sequence[Constraint],
        *,
        outcomes_touch_admissible_only: bool = False,
    ) -> None:
        self.names: tuple[str, ...] = tuple(sorted(columns))
        self._index = {name: i for i, name in enumerate(self.names)}
        if len(self._index) != len(self.names):
            raise RolesError("a column is listed twice; give every column a name of its own")
        for constraint in constraints:
            unknown = sorted(constraint.columns - set(self.names))
            if unknown:
                raise RolesError(
                    f"constraint {constraint.name!r} names {unknown[0]!r}, which is not modelled; "
                    "take it off the constraint or add the column"
                )
        self.constraints = tuple(constraints)
        size = len(self.names)
        self._component: IndexArray = np.arange(size)
        self._neighbours: list[list[int]] = [[] for _ in range(size)]
        self._sides = [_Sides.of(constraint, self.names) for constraint in constraints]
        self._outcome_rules = (
            [self._outcome_rule(constraint) for constraint in constraints]
            if outcomes_touch_admissible_only
            else []
        )
        self._upper = np.triu(np.ones((size, size), dtype=np.bool_), 1)
        self._forbidden = self._forbidden_now()

    # -- questions -------------------------------------------------------------------------

    def allowed(self, one: str, other: str) -> bool:
        """Whether the pair joins two components and keeps every constraint."""
        u, v = self._index[one], self._index[other]
        return bool(self._component[u] != self._component[v] and not self._forbidden[u, v])

    def candidates(self) -> tuple[Pair, ...]:
        """All allowed pairs, names sorted within and between pairs."""
        apart = self._component[:, None] != self._component[None, :]
        return tuple(self._pairs(self._upper & apart & ~self._forbidden))

    def count(self) -> int:
        """Number of candidates."""
        apart = self._component[:, None] != self._component[None, :]
        return int(np.count_nonzero(self._upper & apart & ~self._forbidden))

    def why(self, one: str, other: str) -> ForbiddenPair | None:
        """Why a constraint forbids the pair, or None (a cycle alone is no reason)."""
        u, v = sorted((self._index[one], self._index[other]))
        if not self._forbidden[u, v]:
            return None
        return self._explain(u, v, {})

    def forbidden(self) -> tuple[ForbiddenPair, ...]:
        """Every pair that a constraint forbids now, cycles left out."""
        apart = self._component[:, None] != self._component[None, :]
        return self._explain_all(self._upper & self._forbidden & apart)

    @property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """Connected components, each sorted, sorted by first name."""
        members: dict[int, list[str]] = {}
        for name, label in zip(self.names, self._component.tolist(), strict=True):
            members.setdefault(label, []).append(name)
        return tuple(tuple(group) for group in members.values())

    def is_separated(self) -> bool:
        """Whether no component outside A_k holds both an S_k and an O_k, for every k."""
        return not any(
            bool((sides.has_protected & sides.has_outcome).any()) for sides in self._sides
        )

    # -- growth ----------------------------------------------------------------------------

    def join(self, one: str, other: str) -> tuple[ForbiddenPair, ...]:
        """Join an allowed pair; return the pairs that a constraint forbids from now on.

        Pairs that would close a cycle anyway are not listed.

        Raises
        ------
        ValueError
            The pair is not allowed: a fault of the caller, never of the input.
        """
        if not self.allowed(one, other):
            raise ValueError(f"{one!r} and {other!r} must not be joined")
        u, v = self._index[one], self._index[other]
        self._component[self._component == self._component[v]] = self._component[u]
        self._neighbours[u].append(v)
        self._neighbours[v].append(u)
        for sides in self._sides:
            sides.join(u, v)
        before, self._forbidden = self._forbidden, self._forbidden_now()
        apart = self._component[:, None] != self._component[None, :]
        return self._explain_all(self._upper & self._forbidden & ~before & apart)

    # -- inner workings --------------------------------------------------------------------

    def _outcome_rule(self, constraint: Constraint) -> BoolArray:
        outcome = np.array([name in constraint.outcome for name in self.names], dtype=np.bool_)
        admissible = np.array(
            [name in constraint.admissible for name in self.names], dtype=np.bool_
        )
        if not constraint.is_active:
            outcome[:] = False
        one_way = np.outer(outcome, ~admissible)
        return one_way | one_way.T

    def _forbidden_now(self) -> BoolArray:
        size = len(self.names)
        forbidden = np.zeros((size, size), dtype=np.bool_)
        for sides in self._sides:
            forbidden |= sides.clashes()
        for rule in self._outcome_rules:
            forbidden |= rule
        np.fill_diagonal(forbidden, False)
        return forbidden

    def _pairs(self, mask: BoolArray) -> Iterator[Pair]:
        rows, columns = np.nonzero(mask)
        names = self.names
        return zip((names[u] for u in rows), (names[v] for v in columns), strict=True)

    def _explain_all(self, mask: BoolArray) -> tuple[ForbiddenPair, ...]:
        chains: dict[tuple[int, bool], dict[int, int | None]] = {}
        rows, columns = np.nonzero(mask)
        return tuple(
            self._explain(u, v, chains)
            for u, v in zip(rows.tolist(), columns.tolist(), strict=True)
        )

    def _explain(
        self, u: int, v: int, chains: dict[tuple[int, bool], dict[int, int | None]]
    ) -> ForbiddenPair:
        pair = (self.names[u], self.names[v])
        for k, sides in enumerate(self._sides):
            for s, o in ((u, v), (v, u)):
                if sides.has_protected[s] and sides.has_outcome[o]:
                    reason = (
                        f"{self._stand(k, s, True, chains)}, and {self._stand(k, o, False, chains)}"
                    )
                    return ForbiddenPair(pair, sides.constraint.name, reason)
        for rule, constraint in zip(self._outcome_rules, self.constraints, strict=True):
            if rule[u, v]:
                outcome, other = (u, v) if self.names[u] in constraint.outcome else (v, u)
                reason = (
                    f"{self.names[outcome]!r} is an outcome, and PreFair links outcomes to "
                    f"admissible columns only, which {self.names[other]!r} is not"
                )
                return ForbiddenPair(pair, constraint.name, reason)
        raise AssertionError("only a forbidden pair has a reason")

    def _stand(
        self,
        k: int,
        node: int,
        protected: bool,
        chains: dict[tuple[int, bool], dict[int, int | None]],
    ) -> str:
        """On which side a column stands, and through which columns."""
        constraint = self._sides[k].constraint
        name = self.names[node]
        if protected and name in constraint.protected:
            proxy = name in constraint.proxies
            return f"{name!r} is {'a declared proxy' if proxy else 'protected'}"
        if not protected and name in constraint.outcome:
            return f"{name!r} is an outcome"
        if (k, protected) not in chains:
            chains[k, protected] = self._towards(k, protected)
        towards = chains[k, protected]
        path = [node]
        while (step := towards[path[-1]]) is not None:
            path.append(step)
        side = "protected" if protected else "outcome"
        chain = " — ".join(repr(self.names[i]) for i in reversed(path))
        return f"{name!r} stands on the {side} side through {chain}"

    def _towards(self, k: int, protected: bool) -> dict[int, int | None]:
        """Next column on the shortest way to an S (or O) outside A_k, breadth first."""
        sides = self._sides[k]
        wanted = sides.constraint.protected if protected else sides.constraint.outcome
        queue = [i for i, name in enumerate(self.names) if name in wanted]
        towards: dict[int, int | None] = dict.fromkeys(queue)
        for node in queue:
            for neighbour in sorted(self._neighbours[node]):
                if neighbour not in towards and sides.component[neighbour] >= 0:
                    towards[neighbour] = node
                    queue.append(neighbour)
        return towards
