"""Planted faults: the record/replay checks must fail on each, and pass once it is taken out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from core.errors import BudgetExceeded
from core.moments import MomentFrame, MomentRequest
from core.private import grant as grant_module
from core.private import moments, sensitivity
from core.private.grant import Grant
from core.privci import select
from core.releases import SCORE_GRID, Relation, Unit
from core.simulation import SeededNoise
from tests.privacy import raw_rows, scripts
from tests.privacy.replay import Violation, check_neighbours, neighbour_plan, neighbouring_rows
from tests.privacy.test_replay_release import people_rows, tree

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def exact_source(grant):
    """The rows behind a grant: what no algorithm may touch."""
    return grant._Grant__slot.get()


# -- what the faults are planted into ------------------------------------------------------


def mild_row(generator):
    """As in the other replay tests, without infinities, which overflow when nothing clips."""
    row = scripts.draw_row(generator)
    return {
        name: (code, None if number is None else float(np.clip(number, -500.0, 500.0)))
        for name, (code, number) in row.items()
    }


def pairs(draw_row, make_table, count=60, relation=ADD, unit_rows=1):
    generator = np.random.default_rng(1)
    for _, rows, kind in neighbour_plan(count, relation):
        yield tuple(
            make_table(side)
            for side in neighbouring_rows(
                generator, draw_row, rows=rows, kind=kind, unit_rows=unit_rows
            )
        )


def people_pairs(unit):
    generator = np.random.default_rng(2)
    for _ in range(20):
        rows, ids = people_rows(generator, 3, "p")
        more, more_ids = people_rows(generator, 1, "q")
        yield (
            raw_rows.coded(rows, people=ids, unit=unit),
            raw_rows.coded(rows + more, people=ids + more_ids, unit=unit),
        )


@dataclass
class Scene:
    """A release, its neighbour pairs and its terms."""

    run: object
    pairs: object
    relation: Relation = ADD
    unit: Unit = field(default_factory=Unit)
    kind: type = Grant
    noise: object = None

    def check(self):
        """Raise at the first pair that refutes the release."""
        for index, (table, neighbour) in enumerate(self.pairs):
            check_neighbours(
                self.run,
                table,
                neighbour,
                seed=index,
                relation=self.relation,
                unit=self.unit,
                kind=self.kind,
                noise=None if self.noise is None else self.noise(index),
            )


def primitives(relation=ADD, unit_rows=1, count=60):
    return Scene(
        scripts.every_primitive,
        pairs(mild_row, scripts.table_of, count, relation, unit_rows),
        relation,
        Unit(unit_rows),
    )


def release(relation=ADD, structure="mst", count=60):
    return Scene(
        tree(structure),
        pairs(raw_rows.draw_row, raw_rows.coded, count, relation),
        relation,
    )


# -- the faults: each takes a scene and spoils it ------------------------------------------


class HalfSigma(SeededNoise):
    def gaussian(self, values, *, sensitivity_squared, rho):
        honest = super().gaussian(values, sensitivity_squared=sensitivity_squared, rho=rho)
        return replace(honest, sigma=honest.sigma / 2)


class DoubledEpsilon(SeededNoise):
    def select(self, scores, *, sensitivity, rho):
        honest = super().select(scores, sensitivity=sensitivity, rho=rho)
        return replace(honest, scale=honest.scale / 2)


def half_sigma(scene, _):
    scene.noise = HalfSigma


def doubled_epsilon(scene, _):
    scene.noise = DoubledEpsilon


def forgotten_split_over_tables(_, patch):
    honest = sensitivity.histograms
    patch.setattr(sensitivity, "histograms", lambda tables, *rest: honest(1, *rest))


class Bottomless(Grant):
    """Its purse never empties: every stage may spend the whole grant."""

    @property
    def remaining(self):
        return self.rho


def forgotten_split_over_stages(scene, patch):
    scene.kind = Bottomless
    honest = select._Run.__init__

    def spend_all(self, grant, *rest, **settings):
        honest(self, grant, *rest, **settings)
        self.rho = (grant.rho, grant.rho)

    def spend_all_again(self):
        self.rho = (Fraction(0), Fraction(0))
        two_way(self)

    two_way = select._Run.measure_two_way
    patch.setattr(select._Run, "__init__", spend_all)
    patch.setattr(select._Run, "measure_two_way", spend_all_again)


def exact_total(_, patch):
    honest = select._Run.reference
    patch.setattr(
        select._Run,
        "reference",
        lambda self: replace(honest(self), total=float(exact_source(self.grant).row_count())),
    )


def exact_total_published(scene, _):
    honest = scene.run
    scene.run = lambda grant: (honest(grant), exact_source(grant).row_count())


def unclipped_values(_, patch):
    patch.setattr(
        moments, "to_grid", lambda scaled, grid: np.trunc(np.nan_to_num(scaled, nan=0.0) * grid)
    )


def unclipped_rows(_, patch):
    patch.setattr(moments, "clip_rows", lambda *_: None)


def clipped_before_centring(scene, patch):
    """Values clipped to their bounds, then a released mean subtracted, then nothing."""

    def shift_only(numbers, frame, grid):
        box = MomentFrame.from_bounds(scripts.SCHEMA, frame.columns)
        for units in honest(numbers, MomentFrame(box.scales), grid):
            shift = [
                (then.centre - now.centre) / now.half_width
                for (_, then), (_, now) in zip(box.scales, frame.scales, strict=True)
            ]
            yield np.trunc(units + np.array(shift) * grid)

    honest = moments.grid_rows
    patch.setattr(moments, "grid_rows", shift_only)
    scene.run = second_moments_about_a_released_mean


def second_moments_about_a_released_mean(grant):
    frame = MomentFrame.from_bounds(scripts.SCHEMA, ("pay",), centres={"pay": 200.0})
    return grant.moments(MomentRequest(frame, (("pay", "pay"),)), grant.rho)


class RecomputedReference(Grant):
    """Scores against the table's own margins instead of the frozen reference."""

    def _scores_of(self, source, reference):
        names = sorted(reference.shares)
        wanted = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        scores = {}
        for pair, table in zip(wanted, source.counts(wanted, reference.recoding), strict=True):
            own = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
            grid = np.rint(own * SCORE_GRID).astype(np.int64)
            scores[pair] = int(np.abs(SCORE_GRID * table - grid).sum())
        return scores


def recomputed_reference(scene, _):
    scene.kind = RecomputedReference


def missing_root_two(_, patch):
    honest = sensitivity.histograms
    patch.setattr(sensitivity, "histograms", lambda tables, _, *rest: honest(tables, ADD, *rest))


def missing_factor_two(_, patch):
    honest = sensitivity.pair_score
    patch.setattr(sensitivity, "pair_score", lambda _, *rest: honest(ADD, *rest))


def free_diagonal_under_add_remove(_, patch):
    honest = sensitivity.moment_vector
    patch.setattr(
        sensitivity,
        "moment_vector",
        lambda names, relation, rows=1, **rest: honest(
            [n for n in names if len(set(n)) > 1] or names, relation, rows, **rest
        ),
    )


def forgotten_rows_a_unit(_, patch):
    honest = sensitivity.histograms
    patch.setattr(sensitivity, "histograms", lambda tables, relation, _: honest(tables, relation))


class NoiseAddedAfterwards(Grant):
    """``x + draw(0)``: the private value is not the argument."""

    def _gaussian(self, exact, squared, reserved):
        draw = super()._gaussian(np.zeros_like(exact), squared, reserved)
        return replace(draw, values=exact + draw.values)


def noise_added_afterwards(scene, _):
    scene.kind = NoiseAddedAfterwards


def branch_on_the_data(scene, _):
    honest = scene.run
    scene.run = lambda grant: honest(grant) if exact_source(grant).row_count() > 1 else None


def pooling_chosen_from_exact_counts(_, patch):
    honest = select._Run.measure_one_way

    def peek(self):
        honest(self)
        names = [(name,) for name in self.names]
        exact = exact_source(self.grant).counts(names)
        seen = [
            replace(marginal, values=20 * table)
            for marginal, table in zip(self.one_way, exact, strict=True)
        ]
        self.recoding = select.compress(seen, self.schema)

    patch.setattr(select._Run, "measure_one_way", peek)


def persons_not_cut(scene, _):
    scene.pairs = people_pairs(Unit())


UNIT = Unit(2, "person")

#: Name: (scene without the fault, fault, what the violation must be about).
FAULTS = {
    "sigma halved": (primitives, half_sigma, "debit"),
    "epsilon doubled in selection": (primitives, doubled_epsilon, "debit"),
    "split over tables forgotten": (primitives, forgotten_split_over_tables, "sensitivity"),
    "split over stages forgotten": (release, forgotten_split_over_stages, "debit: .*together"),
    "exact n as total": (release, exact_total, "sensitivity|release|control"),
    "exact n published": (release, exact_total_published, "release"),
    "unclipped values": (primitives, unclipped_values, "sensitivity"),
    "unclipped rows": (primitives, unclipped_rows, "sensitivity"),
    "clipped before centring": (primitives, clipped_before_centring, "sensitivity"),
    "reference recomputed from data": (primitives, recomputed_reference, "sensitivity"),
    "missing root two": (lambda: primitives(REPLACE), missing_root_two, "sensitivity"),
    "missing root two in a release": (lambda: release(REPLACE), missing_root_two, "sensitivity"),
    "missing factor two in scores": (
        lambda: primitives(REPLACE),
        missing_factor_two,
        "sensitivity",
    ),
    "diagonal free under add/remove": (primitives, free_diagonal_under_add_remove, "sensitivity"),
    "rows a unit forgotten": (
        lambda: primitives(unit_rows=3),
        forgotten_rows_a_unit,
        "sensitivity",
    ),
    "noise added afterwards": (primitives, noise_added_afterwards, "release|control"),
    "branch on the data": (release, branch_on_the_data, "control"),
    "pooling from exact counts": (release, pooling_chosen_from_exact_counts, "control|release"),
    "persons not cut to the limit": (
        lambda: Scene(tree("mst"), people_pairs(UNIT), unit=UNIT),
        persons_not_cut,
        "sensitivity",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, monkeypatch):
    make, plant, words = FAULTS[name]
    scene = make()
    plant(scene, monkeypatch)
    with pytest.raises(Violation, match=words):
        scene.check()


@pytest.mark.parametrize("name", FAULTS)
def test_the_same_scene_passes_without_the_fault(name):
    FAULTS[name][0]().check()


def test_honest_second_moments_about_a_released_mean_pass():
    Scene(second_moments_about_a_released_mean, pairs(mild_row, scripts.table_of)).check()


def test_a_forgotten_split_over_stages_meets_an_empty_purse(monkeypatch):
    """In the product the grant itself refuses, before the rows are touched again."""
    scene = release()
    forgotten_split_over_stages(scene, monkeypatch)
    scene.kind = Grant
    with pytest.raises(BudgetExceeded):
        scene.check()


def test_faults_are_planted_where_the_grant_looks():
    """The patched names are those that the grant uses, or the controls would prove nothing."""
    assert grant_module.sensitivity is sensitivity
    assert sensitivity.histograms(3, REPLACE) == Fraction(6)
