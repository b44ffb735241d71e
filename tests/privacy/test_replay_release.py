"""The whole way from raw rows to a stored release, on hundreds of neighbour pairs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from core.private.noise import OpenDPNoise
from core.privci.select import release_tree
from core.releases import Relation, TreeRelease, Unit
from tests.privacy.raw_rows import ROLES, SCHEMA, coded, draw_row
from tests.privacy.replay import check_neighbours, neighbour_plan, neighbouring_rows

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
STRUCTURES = ("mst", "privci", "privci-exact", "prefair")


def tree(structure="privci", **settings):
    def run(grant):
        release = release_tree(grant, SCHEMA, ROLES, structure=structure, **settings)
        assert isinstance(release, TreeRelease)
        assert not release.partial
        return release

    return run


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_releases_of_neighbours_differ_by_what_was_declared(structure, relation):
    generator = np.random.default_rng(STRUCTURES.index(structure))
    worst = Fraction(0)
    for index, rows, kind in neighbour_plan(80, relation):
        base, other = neighbouring_rows(generator, draw_row, rows=rows, kind=kind)
        ratios = check_neighbours(
            tree(structure),
            coded(base),
            coded(other),
            seed=index,
            relation=relation,
            rho=(Fraction(1, 1000), Fraction(1, 2), Fraction(10))[index % 3],
        )
        assert len(ratios) >= 3
        worst = max(worst, *ratios)
    assert worst == 1


def people_rows(generator, people, name):
    """Up to seven rows of each person, many of them equal."""
    rows, ids = [], []
    for person in range(people):
        own = [draw_row(generator) for _ in range(generator.integers(1, 8))]
        own = own if generator.random() < 0.6 else [own[0]] * len(own)
        rows += own
        ids += [f"{name}{person}"] * len(own)
    return rows, ids


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_person_with_too_many_rows_counts_as_the_limit(limit):
    generator = np.random.default_rng(limit)
    unit = Unit(limit, "person")
    worst = Fraction(0)
    for index in range(60):
        rows, ids = people_rows(generator, int(generator.integers(0, 5)), "p")
        more, more_ids = people_rows(generator, 1, "q")
        order = generator.permutation(len(rows) + len(more))
        every, every_ids = [*rows, *more], [*ids, *more_ids]
        with_person = coded(
            [every[i] for i in order], people=[every_ids[i] for i in order], unit=unit
        )
        without = coded(rows, people=ids, unit=unit)
        pair = (without, with_person) if index % 2 else (with_person, without)
        ratios = check_neighbours(tree(STRUCTURES[index % 4]), *pair, seed=index, unit=unit)
        worst = max(worst, *ratios)
    assert worst == 1


def test_uneven_splits_and_the_real_noise():
    generator = np.random.default_rng(5)
    for index, rows, kind in neighbour_plan(6, ADD):
        base, other = neighbouring_rows(generator, draw_row, rows=rows, kind=kind)
        check_neighbours(
            tree(split=(Fraction(1, 7), "0.3", 0.2)),
            coded(base),
            coded(other),
            noise=OpenDPNoise(),
            seed=index,
        )
