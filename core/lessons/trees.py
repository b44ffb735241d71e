"""Trees of a lesson: simulated releases, the tree without noise, and how often each edge comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from core import demo
from core.errors import PlanError
from core.lessons.people import Edge, Remembered, Stage, scores
from core.private.ledger import Charge, Ledger, Population
from core.private.vault import Vault
from core.privci.certificate import SeparationProof, components
from core.privci.constraint import ConstraintFilter
from core.privci.select import modelled_schema, release_tree
from core.privci.structures import STRUCTURES, exact_forest, greedy_forest
from core.releases import ForbiddenPair, Relation, TreeRelease, Unit
from core.simulation import SeededNoise

#: Draws of the noise at once: shares in steps of 5 points, and a second for the whole curve.
DRAWS = 20
MOST_DRAWS = 1000
#: What the slider offers, from nothing but noise to hardly any.
RHOS = tuple(
    Fraction(text)
    for text in ("0.000001", "0.00001", "0.00003", "0.0001", "0.0003", "0.001", "0.01", "0.1", "1")
)


class _Redrawn(SeededNoise):
    """Seeded noise that can start again from another seed, so that one vault serves many draws."""

    def restart(self, seed: int) -> None:
        """From here on as if made with this seed."""
        super().__init__(seed)


def releases(
    stage: Stage, rho: Fraction, structure: str, seeds: Sequence[int]
) -> Iterator[TreeRelease]:
    """Simulated releases of the biased world, one a seed; a throw-away ledger is charged.

    Same stage, rho, structure and seed, same release, as :func:`core.simulation.simulated_vault`
    would give.
    """
    _known(structure)
    ledger = Ledger("sqlite://")
    population = Population(
        name="simulation",
        relation=Relation.ADD_REMOVE,
        unit=Unit(),
        cap=rho * len(seeds),
        simulated=True,
    )
    ledger.create_population(population)
    noise = _Redrawn(0)
    vault = Vault(Remembered(stage.name), population, ledger, noise)
    charges = [Charge(f"lesson-{seed}", "tree", rho) for seed in seeds]
    try:
        for seed, grant in zip(seeds, vault.grants(charges), strict=True):
            assert grant is not None  # the ledger is new
            noise.restart(seed)
            yield release_tree(grant, vault.schema, stage.declared, structure=structure)
            grant.close()
    finally:
        vault.close()
        ledger.close()


def _known(structure: str) -> None:
    if structure not in STRUCTURES:
        raise PlanError(f"structure {structure!r} is unknown; choose {', '.join(STRUCTURES)}")


def ideal(stage: Stage, structure: str) -> tuple[Edge, ...]:
    """The tree that the structure takes from exact counts: the limit of no noise at all."""
    _known(structure)
    names = modelled_schema(demo.schema(stage.name), stage.declared).names
    exact = {
        pair: score for pair, score in scores(stage.name, True).items() if set(pair) <= set(names)
    }
    rules = stage.declared.constraints
    if structure == "privci-exact":
        return exact_forest(exact, names, rules).edges
    return greedy_forest(exact, names, rules, structure=structure).edges


def strongest(stage: Stage, *, biased: bool) -> tuple[Edge, ...]:
    """The tree of strongest links among all columns of a world, without noise and without rule."""
    return greedy_forest(scores(stage.name, biased), stage.columns, (), structure="mst").edges


def judged(stage: Stage, edges: Sequence[Edge]) -> SeparationProof:
    """Whether every path of a tree from the protected side to the outcome passes a gate."""
    names = {name for edge in edges for name in edge} | stage.judge.columns
    return SeparationProof(stage.judge, components(names, edges, stage.judge))


def open_ways(stage: Stage, edges: Sequence[Edge]) -> frozenset[str]:
    """Columns that a tree connects with the outcome around the admissible ones."""
    for part in judged(stage, edges).components:
        if stage.outcome in part.columns:
            return frozenset(part.columns) - {stage.outcome}
    return frozenset()


def forbidden_pairs(stage: Stage) -> tuple[ForbiddenPair, ...]:
    """Pairs that the rule forbids before any edge is chosen, with the reason in words."""
    return ConstraintFilter(stage.columns, [stage.judge]).forbidden()


def way_around(stage: Stage, edges: Sequence[Edge]) -> tuple[str, ...]:
    """A shortest path from the protected side to the outcome around the gates, if there is one."""
    parents: dict[str, str | None] = dict.fromkeys(sorted(stage.judge.protected))
    queue = list(parents)
    around = _neighbours(edges)
    for name in queue:  # grows while it is read
        if name == stage.outcome:
            path = [name]
            while (before := parents[path[-1]]) is not None:
                path.append(before)
            return tuple(reversed(path))
        for other in around.get(name, ()):
            if other not in parents and other not in stage.admissible:
                parents[other] = name
                queue.append(other)
    return ()


def outline(stage: Stage, edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """The tree between the columns that the rule names; all others are drawn together with them.

    A column that the rule does not name counts as the nearest named one that it is joined with
    around the gates; without one it is left out.  An edge of the outline therefore stands for a
    path that may run through columns that are left out.
    """
    named = {*stage.judge.protected, stage.outcome}
    stands = {name: name for name in sorted({*named, *stage.admissible})}
    queue = sorted(named)
    around = _neighbours(edges)
    for name in queue:  # grows while it is read
        for other in around.get(name, ()):
            if other not in stands:
                stands[other] = stands[name]
                queue.append(other)
    drawn: dict[Edge, None] = {}
    for one, other in edges:
        if one in stands and other in stands and stands[one] != stands[other]:
            first, second = sorted((stands[one], stands[other]))
            drawn[first, second] = None
    return tuple(drawn)


def _neighbours(edges: Sequence[Edge]) -> dict[str, list[str]]:
    around: dict[str, list[str]] = {}
    for one, other in edges:
        around.setdefault(one, []).append(other)
        around.setdefault(other, []).append(one)
    return {name: sorted(others) for name, others in around.items()}


@dataclass(frozen=True)
class EdgeShare:
    """How often one edge was chosen.

    Attributes
    ----------
    share
        Part of the draws that have it.
    ideal
        Whether the tree without noise has it.
    forbidden
        Whether the rule forbids this very pair from the start.
    """

    edge: Edge
    share: float
    ideal: bool
    forbidden: bool


@dataclass(frozen=True)
class Settling:
    """Many draws of the noise at one rho.

    Attributes
    ----------
    rho, structure, draws
        What was drawn, and how often (seeds 0, 1, 2, ...).
    ideal
        Edges of the tree without noise.
    edges
        Every edge that came up or belongs to the tree without noise, most frequent first.
    agreement
        For each draw the part of the tree without noise that it found.
    quality
        For each draw its exact total score over that of the tree without noise.
    broken
        Part of the draws in which a path avoids every gate.
    ways
        For each column the part of the draws that connect it with the outcome around the gates.
    """

    rho: Fraction
    structure: str
    draws: int
    ideal: tuple[Edge, ...]
    edges: tuple[EdgeShare, ...]
    agreement: tuple[float, ...]
    quality: tuple[float, ...]
    broken: float
    ways: Mapping[str, float]

    @property
    def expected(self) -> float:
        """Mean agreement."""
        return sum(self.agreement) / len(self.agreement)

    @property
    def expected_quality(self) -> float:
        """Mean quality."""
        return sum(self.quality) / len(self.quality)


def settling(
    stage: Stage, rho: Fraction, structure: str = "privci", draws: int = DRAWS
) -> Settling:
    """Draw the noise again and again, and count edges.

    Parameters
    ----------
    draws
        How often; seeds 0 to ``draws - 1``.

    Raises
    ------
    PlanError
        An unknown structure, a rho that is not above 0, or draws out of range.
    """
    if not 1 <= draws <= MOST_DRAWS or rho <= 0:
        raise PlanError(f"lesson: rho is above 0, and draws lie between 1 and {MOST_DRAWS:,}")
    return _settling(stage, rho, structure, draws)


@lru_cache(maxsize=256)
def _settling(stage: Stage, rho: Fraction, structure: str, draws: int) -> Settling:
    best = ideal(stage, structure)
    exact = scores(stage.name, True)
    counted: Counter[Edge] = Counter()
    ways: Counter[str] = Counter()
    agreement, quality, broken = [], [], 0
    whole = sum(exact[edge] for edge in best)
    for release in releases(stage, rho, structure, range(draws)):
        counted.update(release.edges)
        ways.update(open_ways(stage, release.edges))
        broken += not judged(stage, release.edges).holds
        agreement.append(len(set(release.edges) & set(best)) / len(best))
        quality.append(sum(exact[edge] for edge in release.edges) / whole)
    forbidden = {pair.pair for pair in forbidden_pairs(stage)}
    edges = sorted({*counted, *best}, key=lambda edge: (-counted[edge], edge))
    return Settling(
        rho,
        structure,
        draws,
        best,
        tuple(
            EdgeShare(edge, counted[edge] / draws, edge in best, edge in forbidden)
            for edge in edges
        ),
        tuple(agreement),
        tuple(quality),
        broken / draws,
        {name: ways[name] / draws for name in stage.columns if name != stage.outcome},
    )


def curve(stage: Stage, structure: str = "privci", draws: int = DRAWS) -> tuple[Settling, ...]:
    """:func:`settling` at every rho of the slider."""
    return tuple(settling(stage, rho, structure, draws) for rho in RHOS)
