"""What a budget buys, before anything is charged, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from statistics import median

from core.private import sensitivity
from core.private.scales import gaussian_sigma, selection_scale
from core.privci.compress import THRESHOLD
from core.privci.select import THIRDS, modelled_schema, normalised_split
from core.privci.structures import growth, rounds
from core.promise import NO_PROTECTION, protects
from core.releases import Relation, TreeRelease, Unit
from core.roles import Roles
from core.schema import Schema

#: Noise of a pair cell against its persons from which the result counts as mostly noise.
MOSTLY_NOISE = 0.5
#: The same ratio from which only large groups can be trusted.
COARSE = 0.15


class Verdict(StrEnum):
    """How the noise compares with the persons in a typical cell of a pair table."""

    CLEAR = "clear"
    COARSE = "coarse"
    MOSTLY_NOISE = "mostly noise"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Forecast:
    """What a budget buys.

    Attributes
    ----------
    columns, rounds
        Modelled columns, and the most edges that the tree can have.
    one_way_sigma, two_way_sigma
        Noise of a cell, in persons; None without edges.
    selection_epsilon
        Epsilon of one selection round; None without rounds and for ``privci-exact``.
    selection_noise
        Noise on a pair's score, in persons: scale of the Gumbel noise of a round, or sigma for
        ``privci-exact``; None without rounds.
    expected_rows
        The steward's public guess; None leaves the rest of the fields None and the verdict open.
    one_way_persons, two_way_persons
        Expected persons in a cell of a typical (median) table, after the pooling that noise this
        large brings about.
    visible_dependence
        Score, as a share of the rows, that a pair needs to stand out from the noise on all
        candidates; 0 is independence, two equal coins score 1.
    verdict
        ``mostly noise`` when ``two_way_sigma`` is at least half of ``two_way_persons``, or when
        even two equal coins would not stand out.
    sentences, suggestions
        The same in words, and what would help.
    flags
        ``no meaningful protection`` where the price is so high that it promises next to nothing:
        a verdict of ``clear`` is no praise then.
    """

    columns: int
    rounds: int
    one_way_sigma: float
    selection_epsilon: float | None
    selection_noise: float | None
    two_way_sigma: float | None
    expected_rows: int | None
    one_way_persons: float | None
    two_way_persons: float | None
    visible_dependence: float | None
    verdict: Verdict
    sentences: tuple[str, ...]
    suggestions: tuple[str, ...]
    flags: tuple[str, ...] = ()


#: What a forecast says first where a price protects nobody.
NO_PROTECTION_WORDS = (
    f"{NO_PROTECTION.capitalize()}: at this price somebody who would guess right about a person "
    "1 time in 100 may be right more often than wrong. Lower rho."
)


def forecast(
    schema: Schema,
    roles: Roles,
    rho: Fraction,
    *,
    structure: str = "privci",
    split: Sequence[Fraction | float | str] = THIRDS,
    relation: Relation = Relation.ADD_REMOVE,
    unit: Unit | None = None,
    expected_rows: int | None = None,
) -> Forecast:
    """Noise, selection power and a verdict for one tree release; reads no data and costs nothing.

    Parameters
    ----------
    schema, roles, structure, split
        As for :func:`core.privci.select.release_tree`.
    rho
        The budget of the whole release.
    relation, unit
        Terms of the population's ledger.
    expected_rows
        Public guess at the number of rows, typed by the steward.

    Raises
    ------
    BudgetError, PlanError, RolesError
        As the release itself would.
    """
    shares = normalised_split(split)
    columns = modelled_schema(schema, roles)
    constraints = roles.constraints
    names = columns.names
    unit = unit or Unit()
    edges = rounds(structure, names, constraints)
    candidates = len(growth(structure, names, constraints).candidates())
    jointly = structure == "privci-exact"

    def sigma(tables: int, share: Fraction) -> float:
        squared = sensitivity.histograms(tables, relation, unit.rows)
        return gaussian_sigma(squared, rho * share)

    noise = epsilon = None
    if edges and jointly:
        squared = sensitivity.pair_score_vector(candidates, relation, unit.rows)
        noise = gaussian_sigma(squared, rho * shares[1])
    elif edges:
        bound = sensitivity.pair_score(relation, unit.rows)
        noise = selection_scale(bound, rho * shares[1] / edges)
        epsilon = 2 * bound / noise
    one_way = sigma(len(names), shares[0])
    two_way = sigma(edges, shares[2]) if edges else None
    noun = "persons" if unit.rows == 1 else "rows"
    facts = _Signal(columns, one_way, two_way, expected_rows, noun)
    visible = None
    if noise is not None and expected_rows is not None:
        # Largest of m noise terms: Gumbel, or Gaussian for the joint vector.
        spread = math.sqrt(2 * math.log(candidates)) if jointly else math.log(candidates)
        visible = noise * spread / expected_rows
    verdict = facts.verdict(visible)
    warned = not protects(rho)
    return Forecast(
        columns=len(names),
        rounds=edges,
        one_way_sigma=one_way,
        selection_epsilon=epsilon,
        selection_noise=noise,
        two_way_sigma=two_way,
        expected_rows=expected_rows,
        one_way_persons=facts.one_way_persons,
        two_way_persons=facts.two_way_persons,
        visible_dependence=visible,
        verdict=verdict,
        sentences=(*((NO_PROTECTION_WORDS,) if warned else ()), *facts.sentences(verdict, visible)),
        suggestions=facts.suggestions(verdict, visible, rho),
        flags=(NO_PROTECTION,) if warned else (),
    )


def forecast_of(release: TreeRelease) -> Forecast:
    """The forecast with the released row count in place of a guess: marks a finished result."""
    where = release.provenance
    return forecast(
        release.schema,
        release.roles,
        where.rho,
        structure=release.structure,
        split=release.split,
        relation=where.relation,
        unit=where.unit,
        expected_rows=max(1, round(release.total)),
    )


class _Signal:
    """Persons a cell against the noise a cell."""

    def __init__(
        self,
        schema: Schema,
        one_way: float,
        two_way: float | None,
        rows: int | None,
        noun: str,
    ) -> None:
        self.one_way, self.two_way, self.rows, self.noun = one_way, two_way, rows, noun
        self.names = schema.names
        sizes = [column.size for column in schema.columns]
        self.declared = median(sizes)
        self.one_way_persons: float | None = None
        self.two_way_persons: float | None = None
        if rows is None:
            return
        # At most this many cells can reach the threshold, and the pooled one stays beside them.
        kept = max(2, int(rows / (THRESHOLD * one_way)) + 1)
        sizes = [min(size, kept) for size in sizes]
        self.one_way_persons = rows / median(sizes)
        if two_way is not None:
            self.two_way_persons = rows / median(a * b for a, b in combinations(sizes, 2))

    @property
    def ratio(self) -> float | None:
        """Noise over persons in a typical cell: of pair tables, or one-way where there are none."""
        sigma, persons = (
            (self.one_way, self.one_way_persons)
            if self.two_way is None
            else (self.two_way, self.two_way_persons)
        )
        return None if persons is None else sigma / persons

    def verdict(self, visible: float | None) -> Verdict:
        """The verdict's rule."""
        if self.ratio is None:
            return Verdict.UNKNOWN
        if self.ratio >= MOSTLY_NOISE or (visible is not None and visible >= 1):
            return Verdict.MOSTLY_NOISE
        return Verdict.COARSE if self.ratio >= COARSE else Verdict.CLEAR

    def sentences(self, verdict: Verdict, visible: float | None) -> tuple[str, ...]:
        """The forecast in plain words."""
        lines = [f"Every count of a single column is off by about ±{self.one_way:.3g} {self.noun}."]
        if self.two_way is not None:
            lines.append(
                f"Every cell of a chosen pair is off by about ±{self.two_way:.3g} {self.noun}."
            )
        if self.rows is None:
            lines.append(
                "Say the expected number of rows, a public guess ([population] expected_rows in a "
                "plan), to see how that compares."
            )
            return tuple(lines)
        persons = self.one_way_persons if self.two_way is None else self.two_way_persons
        lines.append(f"A typical cell then holds about {persons:.3g} of {self.rows:,} {self.noun}.")
        if visible is not None:
            lines.append(
                "No dependence can be told from noise; the tree will be close to arbitrary."
                if visible >= 1
                else f"A dependence stands out from a score of about {visible:.2g} a row "
                "(0 is independence, 1 is two equal coins)."
            )
        lines.append(
            {
                Verdict.CLEAR: "Clear: typical cells stand well above the noise.",
                Verdict.COARSE: "Coarse: large groups can be trusted, small ones cannot.",
                Verdict.MOSTLY_NOISE: "Mostly noise: what comes out will look close to random.",
            }[verdict]
        )
        return tuple(lines)

    def suggestions(
        self, verdict: Verdict, visible: float | None, rho: Fraction
    ) -> tuple[str, ...]:
        """What would lift the verdict by one step; empty when it is clear or open."""
        if verdict in (Verdict.CLEAR, Verdict.UNKNOWN):
            return ()
        assert self.ratio is not None
        assert self.rows is not None
        aim = MOSTLY_NOISE if verdict is Verdict.MOSTLY_NOISE else COARSE
        # The ratio grows with the root of the number of tables and falls with the root of rho.
        gain = min(aim / self.ratio, 1 / max(visible or 0.0, 1.0)) ** 2
        columns = math.floor(len(self.names) * gain)
        lines = []
        if columns >= 2:
            lines.append(
                f"Use fewer columns: about {columns} instead of {len(self.names)}; "
                "set the role of the others to ignore."
            )
        sigma = self.one_way if self.two_way is None else self.two_way
        cells = self.rows * aim / sigma
        cells = cells if self.two_way is None else math.sqrt(max(cells, 0.0))
        if 2 <= cells < self.declared:
            lines.append(
                f"Pool: declare at most about {math.floor(cells)} categories or bins a column."
            )
        needed = float(rho) / gain
        lines.append(
            f"More rows, or a budget of about rho = {needed:.2g}, would lift it too."
            if protects(Fraction(min(needed, 1e9)))
            else "More rows would lift it too; the budget that it would take protects nobody."
        )
        return tuple(lines)
