"""Three worlds of one lesson: without the bias, with it, and as it was released.  NOT PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from core import demo
from core.audit.information import InformationTest, conditional_information, rule_information
from core.audit.worlds import World
from core.errors import PlanError
from core.lessons.gaps import Gaps, gaps_of
from core.lessons.people import Edge, Stage, people
from core.lessons.trees import judged, open_ways, releases, strongest
from core.moments import FloatArray
from core.privci.certificate import SeparationProof, conditional_mutual_information
from core.privci.reconstruct import Fit, fit
from core.privci.sample import expand, member_shares, sample
from core.releases import TreeRelease
from core.roles import Constraint

#: Shuffles behind a floor: its mean is known to a few per cent of its deviation.
PERMUTATIONS = 60
SHUFFLE_SEED = 1


@dataclass(frozen=True, eq=False)
class Shown:
    """One world of a lesson.

    Attributes
    ----------
    title
        ``true``, ``biased`` or ``released``.
    columns
        Its columns, in the table's order.
    edges
        Its tree: the strongest links without noise, or those that were released.
    proof
        Whether every path to the outcome passes an admissible column.
    gaps
        Outcomes of groups beside people who are alike: of everybody made up, or of the fitted
        model, which has no people and no chance.
    rows
        Conditional information of its rows (synthetic ones where released), with the floor that
        chance alone reaches.
    model_bits
        The same of the fitted model itself; None where the world is not a model.
    """

    title: str
    columns: tuple[str, ...]
    edges: tuple[Edge, ...]
    proof: SeparationProof
    gaps: Gaps
    rows: InformationTest
    model_bits: float | None = None


@dataclass(frozen=True)
class Way:
    """How far one column could carry the protected one to the outcome.

    Attributes
    ----------
    tells
        Part of the uncertainty about the protected column that this one takes away, among the
        made-up people: I(column; protected) / H(protected).
    linked_bits
        I(outcome; column | admissible) in the fitted model.
    open
        Whether the released tree connects it with the outcome around the admissible columns.
    proxy
        Whether the student declared it a proxy.
    """

    column: str
    tells: float
    linked_bits: float
    open: bool
    proxy: bool


@dataclass(frozen=True, eq=False)
class Lesson:
    """Three worlds side by side, and the release that the third one comes from.

    Attributes
    ----------
    stage
        Demo world, proxies and whether the protected column is hidden.
    rho, structure, seed
        How the biased world was released.
    true, biased, released
        The three worlds.
    ways
        Every column that may be declared a proxy.
    release, fit
        The simulated release and its model.
    """

    stage: Stage
    rho: Fraction
    structure: str
    seed: int
    true: Shown
    biased: Shown
    released: Shown
    ways: tuple[Way, ...]
    release: TreeRelease
    fit: Fit

    @property
    def headline(self) -> str:
        """The group with the widest gap in the biased world, whose gap every world is asked for."""
        widest = self.biased.gaps.widest
        assert widest is not None  # every demo has two groups that are not tiny
        return widest.group

    @property
    def shown(self) -> tuple[Shown, Shown, Shown]:
        """The worlds in the order of the story."""
        return self.true, self.biased, self.released


def lesson(stage: Stage, *, rho: Fraction, structure: str = "privci", seed: int = 0) -> Lesson:
    """The three worlds of a stage; the same arguments give the same figures.

    Parameters
    ----------
    rho
        Of the simulated release; a throw-away ledger is charged.
    structure
        ``privci`` keeps the rule, ``mst`` does not; ``privci-exact`` and ``prefair`` do too.
    seed
        Of the noise and of the synthetic rows, 0 or more.

    Raises
    ------
    PlanError
        An unknown structure, or a number out of range.
    """
    if rho <= 0 or seed < 0:
        raise PlanError("lesson: rho is above 0, and the seed of the noise is 0 or more")
    return _lesson(stage, rho, structure, seed)


@lru_cache(maxsize=64)
def _lesson(stage: Stage, rho: Fraction, structure: str, seed: int) -> Lesson:
    (release,) = releases(stage, rho, structure, (seed,))
    fitted = fit(release)
    return Lesson(
        stage,
        rho,
        structure,
        seed,
        made_up(stage, biased=False),
        made_up(stage, biased=True),
        _released(stage, release, fitted, seed),
        _ways(stage, release, fitted),
        release,
        fitted,
    )


@lru_cache(maxsize=64)
def made_up(stage: Stage, *, biased: bool) -> Shown:
    """The true or the biased world, from its made-up people and without any noise."""
    edges = strongest(stage, biased=biased)
    world = people(stage.name, biased)
    counted = world.table((stage.outcome, stage.watched, *stage.admissible))
    return Shown(
        "biased" if biased else "true",
        stage.columns,
        edges,
        judged(stage, edges),
        _gaps(stage, counted / world.rows, world.rows),
        rule_information(world, _watched(stage), permutations=PERMUTATIONS, seed=SHUFFLE_SEED),
    )


def _released(stage: Stage, release: TreeRelease, fitted: Fit, seed: int) -> Shown:
    joint = declared_joint(release, fitted, (stage.outcome, stage.watched, *stage.admissible))
    return Shown(
        "released",
        release.schema.names,
        release.edges,
        judged(stage, release.edges),
        _gaps(stage, joint, None),
        rule_information(
            synthetic_people(release, fitted, people(stage.name, True).rows, seed),
            _watched(stage),
            permutations=PERMUTATIONS,
            seed=SHUFFLE_SEED,
        ),
        _bits(joint),
    )


def synthetic_people(release: TreeRelease, fitted: Fit, rows: int, seed: int) -> World:
    """Synthetic rows of a release, coded."""
    generator = np.random.default_rng(seed)
    codes = expand(sample(fitted.model, rows, generator), release, generator)
    return World("released world", release.schema, codes, rows, private=False)


def declared_joint(release: TreeRelease, fitted: Fit, names: tuple[str, ...]) -> FloatArray:
    """Probabilities of declared cells in the fitted model, one axis a name.

    Merged cells are opened as :func:`core.privci.sample.expand` does, one column at a time.
    """
    joint = fitted.model.project(names)
    one_way = {marginal.clique[0]: marginal for marginal in release.one_way}
    for axis, name in enumerate(names):
        if name not in release.recoding.maps:
            continue
        marginal = one_way[name]
        members = release.recoding.members(name, marginal.values.size)
        opened = np.zeros((len(members), marginal.values.size))
        for cell, inside in enumerate(members):
            opened[cell, list(inside)] = member_shares(marginal, inside) if len(inside) > 1 else 1.0
        joint = np.moveaxis(np.tensordot(joint, opened, axes=(axis, 0)), -1, axis)
    return joint


def _watched(stage: Stage) -> Constraint:
    """The rule that information is measured by: one column against the outcome."""
    return Constraint(
        frozenset({stage.watched}), frozenset({stage.outcome}), frozenset(stage.admissible)
    )


def _bits(joint: FloatArray) -> float:
    """I(outcome; group | admissible) of a table with axes (outcome, group, admissible ...)."""
    return conditional_mutual_information(joint.reshape(*joint.shape[:2], -1))


def _gaps(stage: Stage, joint: FloatArray, rows: int | None) -> Gaps:
    schema = demo.schema(stage.name)
    column, outcome = schema[stage.watched], schema[stage.outcome]
    cells = joint.reshape(*joint.shape[:2], -1)
    best = outcome.declared_size - 1
    table = np.stack([cells[best], cells.sum(axis=0) - cells[best]])
    return gaps_of(
        np.maximum(table, 0.0),
        column=column.name,
        outcome=outcome.name,
        labels=column.cells,
        best=outcome.categories[best],
        reference=_reference(stage),
        people=rows,
    )


def _reference(stage: Stage) -> int:
    """The group that the equations leave alone; of a proxy the largest group."""
    column = demo.schema(stage.name)[stage.watched]
    if not stage.hidden:
        untouched = [g for g, logit in stage.truth.direct_log_odds.items() if not logit]
        return column.cells.index(untouched[0])
    return int(people(stage.name, True).table((column.name,)).argmax())


def _ways(stage: Stage, release: TreeRelease, fitted: Fit) -> tuple[Way, ...]:
    ways = open_ways(stage, release.edges)
    found = []
    for name in stage.candidates:
        joint = declared_joint(release, fitted, (stage.outcome, name, *stage.admissible))
        tells = _tells(stage.name, name)
        found.append(Way(name, tells, _bits(joint), name in ways, name in stage.proxies))
    return tuple(found)


@lru_cache(maxsize=64)
def _tells(name: str, column: str) -> float:
    world = people(name, True)
    protected = world.codes[demo.truth(name).direct[0]]
    alone = np.zeros(world.rows, dtype=np.int64)
    whole = conditional_information(protected, protected, alone)
    return conditional_information(world.codes[column], protected, alone) / whole
