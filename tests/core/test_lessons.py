"""Lessons: figures against the structural model, brute force, networkx and repeated simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from core import demo, lessons
from core.demo import _WORLDS
from core.errors import PlanError, RolesError
from core.lessons.gaps import gaps_of
from core.lessons.people import PEOPLE_SEED, ROWS, people
from core.lessons.trees import MOST_DRAWS, releases
from core.lessons.worlds import declared_joint, made_up, synthetic_people
from core.schema import LABELLED_KINDS
from tests.core.lesson_stages import NAMES, PLENTY, SURE, stage

# -- gaps against the structural model --------------------------------------------------------


def drawn(name: str) -> dict[str, np.ndarray]:
    """Columns of the demo as its equations see them: codes of labels, numbers of the rest."""
    frame, schema = demo.table(name, ROWS, PEOPLE_SEED), demo.schema(name)
    found = {}
    for column in schema.modelled:
        if column.kind in LABELLED_KINDS:
            found[column.name] = pd.Index(column.categories).get_indexer(frame[column.name])
        elif not frame[column.name].isna().any() and column.kind.value != "date":
            found[column.name] = frame[column.name].to_numpy(dtype=float)
    return found


def structural_gaps(name: str) -> dict[str, float]:
    """What the direct effect does to each group's chance of the best outcome, by the equations.

    For every person of the group: the chance with the group's effect less the chance without any,
    which is what people of the untouched group with the same fair reasons have.
    """
    outcome = _WORLDS[name].outcome
    columns = drawn(name)
    score = outcome.score({parent: columns[parent] for parent in outcome.parents})
    group = columns[outcome.protected]

    def best(logits: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(outcome.cutpoints[-1] - logits))

    labels = demo.schema(name)[outcome.protected].categories
    return {
        label: float(np.mean(best(score[group == k] + outcome.direct[k]) - best(score[group == k])))
        for k, label in enumerate(labels)
    }


@pytest.mark.parametrize("name", NAMES)
def test_gaps_of_both_made_up_worlds_are_those_of_the_equations(name):
    truth = structural_gaps(name)
    true, biased = (made_up(stage(name), biased=flag).gaps for flag in (False, True))
    assert truth[true.reference] == 0
    checked = 0
    for label, effect in truth.items():
        if label == true.reference:
            continue
        fair, unfair = true.of(label), biased.of(label)
        assert abs(fair.gap) < SURE * fair.standard_error, label
        assert abs(unfair.gap - effect) < SURE * unfair.standard_error, label
        checked += 1
    assert checked == len(truth) - 1
    widest = biased.of(lessons.worlds(name).headline)
    assert abs(widest.gap) > 30 * widest.standard_error


def test_the_gap_of_a_whole_group_is_the_share_whose_outcome_was_changed():
    changed = demo.changed_outcomes("hiring", ROWS, PEOPLE_SEED)["woman"]
    woman = made_up(stage("hiring"), biased=True).gaps.of("woman")
    assert -woman.gap == pytest.approx(changed, abs=0.02)
    assert woman.compared == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_standard_errors_are_those_of_redrawn_outcomes(name):
    """The bootstrap oracle: people redrawn within group and admissible cell."""
    about, world = stage(name), people(name, True)
    counts = world.table((about.outcome, about.protected, *about.admissible)).astype(float)
    cells = counts.reshape(*counts.shape[:2], -1)
    best = demo.schema(name)[about.outcome].declared_size - 1
    mass = cells.sum(axis=0)
    rate = np.divide(cells[best], mass, out=np.zeros_like(mass), where=mass > 0)
    generator = np.random.default_rng(5)
    labels = demo.schema(name)[about.protected].cells
    found = made_up(about, biased=True).gaps
    reference, group = labels.index(found.reference), labels.index(lessons.worlds(name).headline)
    names = {"column": "g", "outcome": "o", "labels": labels, "best": "b"}
    drawn_gaps = []
    for _ in range(400):
        again = generator.binomial(mass.astype(int), rate)
        joint = np.stack([again, mass - again]) / ROWS
        redrawn = gaps_of(joint, **names, reference=reference, people=ROWS)
        drawn_gaps.append(redrawn.of(labels[group]).gap)
    claimed = found.of(labels[group]).standard_error
    assert np.std(drawn_gaps) == pytest.approx(claimed, rel=0.25)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=60
    )
)
def test_gaps_are_those_of_a_loop_over_people(rows):
    joint = np.zeros((2, 3, 4))
    for bad, group, cell in rows:
        joint[bad, group, cell] += 1 / len(rows)
    found = gaps_of(
        joint, column="g", outcome="o", labels="xyz", best="b", reference=0, people=len(rows)
    )
    assert {one.group for one in found.groups} == {"xyz"[g] for _, g, _ in rows if g}

    def rate(group: int, cell: int) -> float | None:
        mine = [1 - bad for bad, g, c in rows if (g, c) == (group, cell)]
        return sum(mine) / len(mine) if mine else None

    for one in found.groups:
        number = "xyz".index(one.group)
        mine = [(1 - bad, c) for bad, g, c in rows if g == number]
        assert one.share == pytest.approx(len(mine) / len(rows))
        assert one.rate == pytest.approx(sum(good for good, _ in mine) / len(mine))
        pairs = [(good, rate(0, c)) for good, c in mine if rate(0, c) is not None]
        assert one.compared == pytest.approx(len(pairs) / len(mine))
        if pairs:
            assert one.gap == pytest.approx(
                sum(good - other for good, other in pairs) / len(pairs), abs=1e-12
            )
        else:
            assert one.gap is one.alike is one.standard_error is None


# -- information ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_only_the_biased_world_has_information_above_chance(name):
    true, biased, released = lessons.worlds(name, PLENTY).shown
    assert abs(true.rows.excess) < SURE * true.rows.floor_deviation
    assert biased.rows.excess > 20 * biased.rows.floor_deviation
    assert released.model_bits < 1e-12
    assert abs(released.rows.excess) < SURE * released.rows.floor_deviation


def brute_force_bits(found: lessons.Lesson) -> float:
    """I(O; S | A) of a fitted tree by enumerating every cell of the columns between them."""
    model, about = found.fit.model, found.stage
    wanted = {about.outcome, about.watched, *about.admissible}
    tree = nx.Graph(model.edge_names)
    tree.add_nodes_from(model.columns)
    between = set(wanted)
    for one, other in itertools.combinations(sorted(wanted), 2):
        if nx.has_path(tree, one, other):
            between |= set(nx.shortest_path(tree, one, other))
    names = sorted(between)
    place = {column: index for index, column in enumerate(model.columns)}
    inner = [
        (pair, table)
        for pair, table in zip(model.edge_names, model.edge, strict=True)
        if set(pair) <= between
    ]
    shape = [model.sizes[place[name]] for name in names]
    assert math.prod(shape) <= 3_000_000
    cells = np.indices(shape).reshape(len(names), -1)
    at = dict(zip(names, cells, strict=True))
    chances = np.ones(cells.shape[1])
    for (one, other), table in inner:
        chances *= table[at[one], at[other]]
    for name in names:
        alone = model.node[place[name]][at[name]]
        power = sum(name in pair for pair, _ in inner) - 1
        chances = np.where(alone > 0, chances / np.where(alone > 0, alone, 1.0) ** power, 0.0)
    wanted_order = (about.outcome, about.watched, *about.admissible)
    kept = zip(*(at[name].tolist() for name in wanted_order), strict=True)
    joint: Counter[tuple[int, ...]] = Counter()
    for cell, chance in zip(kept, chances.tolist(), strict=True):
        joint[cell] += chance
    assert sum(joint.values()) == pytest.approx(1.0)
    first, second, third = Counter(), Counter(), Counter()
    for (outcome, group, *rest), chance in joint.items():
        first[outcome, *rest] += chance
        second[group, *rest] += chance
        third[tuple(rest)] += chance
    return sum(
        chance * math.log2(chance * third[tuple(rest)] / (first[o, *rest] * second[g, *rest]))
        for (o, g, *rest), chance in joint.items()
        if chance > 0
    )


@pytest.mark.parametrize("name", NAMES)
def test_without_the_rule_the_model_carries_what_enumeration_says(name):
    dropped = lessons.worlds(name, PLENTY, "mst", seed=3)
    bits = brute_force_bits(dropped)
    assert bits > 0.01
    assert dropped.released.model_bits == pytest.approx(bits, abs=1e-9)
    kept = lessons.worlds(name, PLENTY, seed=3)
    assert brute_force_bits(kept) == pytest.approx(0.0, abs=1e-9)
    assert not dropped.released.proof.holds
    assert kept.released.proof.holds


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rho", [lessons.RHOS[0], lessons.RHOS[3], PLENTY])
def test_a_model_opens_merged_cells_as_its_rows_do(name, rho):
    found = lessons.worlds(name, rho, "mst", seed=1)
    if rho == lessons.RHOS[0]:
        assert found.release.recoding.maps
    about = found.stage
    names = (about.outcome, about.watched, *about.admissible)
    joint = declared_joint(found.release, found.fit, names)
    assert joint.sum() == pytest.approx(1.0)
    rows = synthetic_people(found.release, found.fit, 200_000, 7)
    assert np.abs(rows.table(names) / rows.rows - joint).sum() / 2 < 0.02


@pytest.mark.parametrize("name", NAMES)
def test_what_a_column_gives_away_is_mutual_information_over_entropy(name):
    world = people(name, True)
    about = stage(name)
    protected = world.codes[about.protected]
    entropy = mutual_info_score(protected, protected)
    for way in lessons.worlds(name).ways:
        expected = mutual_info_score(world.codes[way.column], protected) / entropy
        assert way.tells == pytest.approx(expected, abs=1e-9)
    strongest = max(lessons.worlds(name).ways, key=lambda way: way.tells)
    assert strongest.column == about.proxy


# -- proxies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_hidden_column_comes_back_through_its_proxy_until_that_is_declared(name, seed):
    proxy = stage(name).proxy
    blind = lessons.worlds(name, "0.1", seed=seed, proxies=(), hidden=True)
    closed = lessons.worlds(name, "0.1", seed=seed, proxies=(proxy,), hidden=True)
    assert stage(name).protected not in blind.released.columns
    before, after = (
        next(way for way in found.ways if way.column == proxy) for found in (blind, closed)
    )
    assert before.open
    assert before.linked_bits > 0.01
    assert not before.proxy
    assert not after.open
    assert after.linked_bits < 1e-12
    assert after.proxy
    assert not blind.released.proof.holds
    assert closed.released.proof.holds
    wide = blind.biased.gaps.of(blind.headline).gap
    assert abs(wide) > 0.1
    assert blind.released.gaps.of(blind.headline).gap == pytest.approx(wide, abs=0.06)
    assert closed.released.gaps.of(blind.headline).gap == pytest.approx(0.0, abs=1e-12)


def test_a_declared_proxy_is_closed_in_every_draw():
    open_one, closed = (
        lessons.settling(stage("hiring", proxies=chosen, hidden=True), lessons.RHOS[4])
        for chosen in ((), ("career_gap_months",))
    )
    assert open_one.ways["career_gap_months"] > 0.8
    assert closed.ways["career_gap_months"] == 0
    assert closed.broken == 0


# -- promises and refusals --------------------------------------------------------------------


def test_the_same_settings_give_the_same_lesson_and_another_seed_another_noise():
    (one,) = releases(stage("hiring"), PLENTY, "privci", (4,))
    (same,) = releases(stage("hiring"), PLENTY, "privci", (4,))
    (other,) = releases(stage("hiring"), PLENTY, "privci", (5,))
    assert one.to_bytes() == same.to_bytes()
    assert not np.array_equal(one.one_way[0].values, other.one_way[0].values)
    assert lessons.worlds("hiring", PLENTY, seed=4) is lessons.worlds("hiring", PLENTY, seed=4)


def test_a_lesson_touches_no_ledger_of_the_house(tmp_path, monkeypatch):
    file = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("JUSTITIA_LEDGER", f"sqlite:///{file}")
    monkeypatch.setenv("JUSTITIA_HOME", str(tmp_path))
    lessons.worlds("admissions", "0.02", seed=77)
    lessons.settling(stage("admissions"), Fraction(1, 77), draws=2)
    assert list(tmp_path.iterdir()) == []


def test_the_smallest_budget_still_gives_a_lesson():
    for name in NAMES:
        for seed in range(4):
            found = lessons.worlds(name, lessons.RHOS[0], seed=seed)
            assert found.released.proof.holds
            assert found.released.model_bits < 1e-12
            assert len(found.release.edges) == len(lessons.ideal(found.stage, "privci"))


def test_wrong_settings_are_refused_by_name():
    with pytest.raises(PlanError, match="no demo is called 'prison'"):
        lessons.worlds("prison")
    with pytest.raises(PlanError, match="structure 'star' is unknown"):
        lessons.worlds("hiring", structure="star")
    with pytest.raises(PlanError, match="rho is above 0"):
        lessons.lesson(stage("hiring"), rho=Fraction(0))
    with pytest.raises(PlanError, match="seed of the noise is 0 or more"):
        lessons.worlds("hiring", seed=-1)
    with pytest.raises(RolesError, match="'gender' cannot be a proxy"):
        lessons.worlds("hiring", proxies=("gender",))
    with pytest.raises(PlanError, match="draws lie between"):
        lessons.settling(stage("hiring"), PLENTY, draws=MOST_DRAWS + 1)
