"""Structural causal models that draw a demo table, and the truth about it.

A world is a list of structural equations (Pearl 2009, ch. 1.4): every column is a function of its
parents and of noise of its own.  The noise of each column has its own generator, so the world
without the direct effect differs from the biased one in nothing but the outcome: same people,
same luck.  The edges of :class:`DemoTruth` are read off the equations, which see their declared
parents only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.errors import PlanError
from core.roles import Role, Roles
from core.schema import LABELLED_KINDS, Column, Kind, Missing, Schema

Array = NDArray[Any]
Given = Mapping[str, Array]
Draw = Callable[[np.random.Generator, int, Given], Array]


@dataclass(frozen=True)
class Equation:
    """One structural equation: ``column := draw(noise, rows, parents)``.

    Labelled columns are drawn as category codes, dates as day ordinals, the rest as numbers.
    """

    column: str
    parents: tuple[str, ...]
    words: str
    draw: Draw


@dataclass(frozen=True)
class Outcome:
    """The decision: a score of its parents plus logistic noise, cut into ordered levels.

    Attributes
    ----------
    score
        Log-odds from the legitimate parents alone.
    cutpoints
        Where the latent score passes into the next level.
    direct
        Log-odds that the biased world adds, one a category of the protected column.
    """

    column: str
    parents: tuple[str, ...]
    words: str
    score: Callable[[Given], Array]
    cutpoints: tuple[float, ...]
    protected: str
    direct: tuple[float, ...]


@dataclass(frozen=True)
class Holes:
    """A declared rule for missing values: shares by the category of ``parent``, or one share."""

    column: str
    words: str
    shares: tuple[float, ...]
    parent: str | None = None


@dataclass(frozen=True)
class DemoTruth:
    """What is true in a demo world, for teaching; public, because nobody's data are in it.

    Attributes
    ----------
    equations
        (column, structural equation in words), causes first.
    edges
        (cause, effect) pairs of the biased world's graph, the direct edge included.
    latent
        Causes that are drawn but never shown in the table.
    direct
        The biased edge (protected, outcome).
    direct_log_odds
        What it adds to the outcome's log-odds, by category of the protected column.
    legitimate
        Every other directed path from the protected column to the outcome.
    proxies
        Columns that reveal the protected one, with no edge of their own to the outcome.
    admissible
        Columns through which the protected one may matter.
    missing
        (column, rule in words) of every column with missing values.
    """

    name: str
    story: str
    equations: tuple[tuple[str, str], ...]
    edges: tuple[tuple[str, str], ...]
    latent: tuple[str, ...]
    direct: tuple[str, str]
    direct_log_odds: Mapping[str, float]
    legitimate: tuple[tuple[str, ...], ...]
    proxies: tuple[str, ...]
    admissible: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class World:
    """One demo: declarations, roles, equations in causal order, and the outcome."""

    name: str
    story: str
    schema: Schema
    roles: Roles
    equations: tuple[Equation, ...]
    outcome: Outcome
    holes: tuple[Holes, ...]
    identifier: str

    def simulate(self, rows: int, seed: int, *, biased: bool) -> pd.DataFrame:
        """Draw the table in schema order; the same seed gives the same people in both worlds."""
        for what, value in (("rows", rows), ("seed", seed)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise PlanError(f"demo {self.name!r}: {what} must be a whole number of at least 0")
        drawn: dict[str, Array] = {}
        for equation in self.equations:
            given = {parent: drawn[parent] for parent in equation.parents}
            noise = self._generator(seed, equation.column)
            drawn[equation.column] = equation.draw(noise, rows, given)
        drawn[self.outcome.column] = self._decide(drawn, rows, seed, biased)
        gone = {hole.column: self._missing(hole, drawn, rows, seed) for hole in self.holes}
        none = np.zeros(rows, dtype=bool)
        return pd.DataFrame(
            {
                column.name: self._identifiers(rows)
                if column.kind is Kind.IDENTIFIER
                else _present(column, drawn[column.name], gone.get(column.name, none))
                for column in self.schema.columns
            }
        )

    def truth(self) -> DemoTruth:
        """The facts behind the table, read off the equations."""
        outcome = self.outcome
        direct = (outcome.protected, outcome.column)
        edges = [(p, e.column) for e in self.equations for p in e.parents]
        edges += [(h.parent, h.column) for h in self.holes if h.parent is not None]
        edges += [(parent, outcome.column) for parent in outcome.parents]
        shown = set(self.schema.names)
        latent = tuple(e.column for e in self.equations if e.column not in shown)
        constraint = self.roles.constraints[0]
        labels = self.schema[outcome.protected].categories
        words = [(e.column, e.words) for e in self.equations]
        return DemoTruth(
            name=self.name,
            story=self.story,
            equations=(*words, (outcome.column, outcome.words)),
            edges=(*dict.fromkeys(edges), direct),
            latent=latent,
            direct=direct,
            direct_log_odds=dict(zip(labels, outcome.direct, strict=True)),
            legitimate=tuple(_paths(edges, *direct)),
            proxies=tuple(sorted(self.roles.proxies)),
            admissible=tuple(sorted(constraint.admissible)),
            missing=tuple((hole.column, hole.words) for hole in self.holes),
        )

    def _generator(self, seed: int, column: str) -> np.random.Generator:
        return np.random.default_rng((seed, zlib.crc32(f"{self.name}/{column}".encode())))

    def _decide(self, drawn: Given, rows: int, seed: int, biased: bool) -> Array:
        outcome = self.outcome
        score = outcome.score({parent: drawn[parent] for parent in outcome.parents})
        if biased:
            score = score + np.asarray(outcome.direct)[drawn[outcome.protected]]
        luck = self._generator(seed, outcome.column).logistic(size=rows)
        return np.searchsorted(np.asarray(outcome.cutpoints), score + luck)

    def _missing(self, hole: Holes, drawn: Given, rows: int, seed: int) -> Array:
        luck = self._generator(seed, f"{hole.column} missing").random(rows)
        shares = np.asarray(hole.shares)
        return luck < (shares[0] if hole.parent is None else shares[drawn[hole.parent]])

    def _identifiers(self, rows: int) -> pd.Series[str]:
        labels = [f"{self.identifier}-{number:06d}" for number in range(1, rows + 1)]
        return pd.Series(labels, dtype="str")


def _present(column: Column, values: Array, gone: Array) -> pd.Series[Any]:
    """A drawn column as a person would see it in a file."""
    if column.kind in LABELLED_KINDS:
        labels = np.asarray(column.categories, dtype=object)[values]
        labels[gone] = None
        return pd.Series(labels, dtype="str")
    if column.kind is Kind.DATE:
        epoch = np.datetime64("1970-01-01", "D")
        days = epoch + (values.astype(np.int64) - 719_163)  # ordinal of 1970-01-01
        return pd.Series(np.where(gone, np.datetime64("NaT"), days).astype("datetime64[s]"))
    if column.kind is Kind.INTEGER:
        whole = pd.Series(values.astype(np.int64))
        return whole.astype("Int64").mask(gone) if gone.any() else whole
    numbers = np.round(values.astype(np.float64), column.decimals or 0)
    return pd.Series(np.where(gone, np.nan, numbers))


def _paths(edges: list[tuple[str, str]], start: str, end: str) -> list[tuple[str, ...]]:
    """All directed paths of an acyclic graph from ``start`` to ``end``, in edge order."""
    if start == end:
        return [(end,)]
    children = dict.fromkeys(child for parent, child in edges if parent == start)
    return [(start, *rest) for child in children for rest in _paths(edges, child, end)]


# -- building blocks of structural equations --------------------------------------------------


def complete(name: str, kind: Kind, fallback: float | str, **settings: Any) -> Column:
    """A column that lacks no value: whatever else a file might hold counts as ``fallback``."""
    if kind in LABELLED_KINDS:
        settings["other_label"] = fallback
    return Column(name, kind, missing=Missing.CONSTANT, missing_constant=fallback, **settings)


def roles_of(
    schema: Schema,
    *,
    protected: set[str],
    outcome: set[str],
    admissible: set[str],
    proxies: set[str],
) -> Roles:
    """Roles of a demo table: identifiers are ignored, and what is not named is inadmissible."""
    named = {
        **dict.fromkeys(protected, Role.PROTECTED),
        **dict.fromkeys(outcome, Role.OUTCOME),
        **dict.fromkeys(admissible, Role.ADMISSIBLE),
    }
    rest = {
        column.name: Role.INADMISSIBLE if column.is_modelled else Role.IGNORE
        for column in schema.columns
    }
    return Roles({**rest, **named}, proxies=frozenset(proxies))


def at(values: list[float], codes: Array) -> Array:
    """The value of each row's category."""
    found: Array = np.asarray(values, dtype=np.float64)[codes]
    return found


def choose(noise: np.random.Generator, rows: int, shares: Array | list[float]) -> Array:
    """Category codes with the given shares: one list for all rows, or one row of shares each.

    Shares need not sum to one; rows of a table are normalised.
    """
    cumulative = np.cumsum(np.asarray(shares, dtype=np.float64), axis=-1)
    luck = noise.random(rows)
    if cumulative.ndim == 1:
        return np.searchsorted(cumulative / cumulative[-1], luck, side="right")
    table: Array = luck[:, None] * cumulative[:, -1:] >= cumulative
    codes: Array = table.sum(axis=1)
    return codes


def rank(noise: np.random.Generator, score: Array, cutpoints: tuple[float, ...]) -> Array:
    """Ordered levels: logistic noise on a score, cut at the given points."""
    return np.searchsorted(np.asarray(cutpoints), score + noise.logistic(size=score.shape))


def cell(column: Column, values: Array) -> Array:
    """The declared cell of each number, so that a rule can work by the public brackets."""
    return np.searchsorted(np.asarray(column.axis[1:-1]), values, side="right")
