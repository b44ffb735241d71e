"""Analyses from raw rows to the stored release, on hundreds of neighbour pairs; planted faults."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from core.moments import Indicator, MomentFrame, MomentRequest, NoisyMoments
from core.private import feature_sensitivity, features
from core.private import grant as grant_module
from core.private.grant import Grant
from core.private.noise import OpenDPNoise
from core.pumba import measure
from core.pumba.measure import release_statistics
from core.pumba.release import StatisticsRelease
from core.pumba.requests import AnalysisSpec
from core.releases import Relation, Unit
from tests.privacy.raw_rows import SCHEMA, coded, draw_row
from tests.privacy.replay import Violation, check_neighbours, neighbour_plan, neighbouring_rows
from tests.privacy.test_faults import exact_source

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
RHOS = (Fraction(1, 1000), Fraction(1, 2), Fraction(10))

#: ``since`` and ``hired`` can miss nothing by declaration; all others can.
SPECS = (
    AnalysisSpec("mean", "age", outcome="age"),
    AnalysisSpec("mean", "day", outcome="since", moments=4),
    AnalysisSpec("mean", "pay by job", outcome="pay", by="job", moments=4),
    AnalysisSpec("proportion", "hired", outcome="hired", by="sex"),
    AnalysisSpec("table", "job", variables=("job", "age")),
    AnalysisSpec("difference", "gap", outcome="age", by="hired"),
    AnalysisSpec("difference", "days", outcome="since", by="hired"),
    AnalysisSpec("regression", "wages", outcome="pay", predictors=("age", "job", "sex")),
    AnalysisSpec("regression", "robust", outcome="pay", predictors=("since",), robust=True),
    AnalysisSpec("regression", "days on hired", outcome="since", predictors=("hired",)),
    AnalysisSpec("correlation", "three", variables=("age", "pay", "since")),
)


def statistics(spec, **settings):
    def run(grant):
        release = release_statistics(grant, SCHEMA, spec, **settings)
        assert isinstance(release, StatisticsRelease)
        assert not release.partial
        return release

    return run


def spent(run):
    def checked(grant):
        release = run(grant)
        assert grant.rho * Fraction(999, 1000) <= grant.debited <= grant.rho
        return release

    return checked


def worst_ratio(run, pairs, relation, seed=0, unit_rows=1, **settings):
    generator = np.random.default_rng(seed)
    worst = Fraction(0)
    for index, rows, kind in neighbour_plan(pairs, relation):
        base, other = neighbouring_rows(
            generator, draw_row, rows=rows, kind=kind, unit_rows=unit_rows
        )
        ratios = check_neighbours(
            run,
            coded(base),
            coded(other),
            seed=index,
            relation=relation,
            unit=Unit(unit_rows),
            rho=RHOS[index % 3],
            **settings,
        )
        worst = max(worst, *ratios)
    return float(worst)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_analyses_of_neighbours_differ_by_what_was_declared(spec, relation):
    worst = worst_ratio(spent(statistics(spec)), 24, relation, seed=SPECS.index(spec))
    # The test has power: bounds are attained or nearly so.
    assert worst > (0.99 if relation is ADD else 0.5)


@pytest.mark.parametrize("spec", SPECS[2:8:2], ids=lambda spec: spec.name)
def test_units_of_several_rows(spec):
    assert worst_ratio(statistics(spec), 24, ADD, unit_rows=3) > 0.9


def test_given_splits_and_the_real_noise():
    for spec, split in (
        (SPECS[0], {"count": 1, "sums": "0.3", "products": 0.2}),
        (SPECS[7], (1, 2, 4)),
    ):
        worst_ratio(statistics(spec, split=split), 6, ADD, noise=OpenDPNoise())
    worst_ratio(statistics(SPECS[5]), 6, REPLACE, noise=OpenDPNoise())


# -- random frames, straight at the grant --------------------------------------------------

NUMBERS = ("age", "pay", "since")
CODED = ("sex", "job", "hired", "age")


def random_request(generator):
    """Numbers and cells of random columns, and random sums of their products."""
    numbers = generator.choice(NUMBERS, generator.integers(0, 4), replace=False)
    indicators = [
        (f"{name} {code}", Indicator(str(name), int(code)))
        for name in generator.choice(CODED, generator.integers(0, 4), replace=False)
        for code in generator.choice(
            SCHEMA[name].size, generator.integers(1, SCHEMA[name].size + 1), replace=False
        )
    ]
    if not len(numbers) and not indicators:
        numbers = np.array(["age"])
    scales = MomentFrame.from_bounds(SCHEMA, NUMBERS).scales
    frame = MomentFrame(
        tuple(scale for scale in scales if scale[0] in numbers),
        indicators=tuple(indicators),
        complete=True,
    )
    cells = frame.cells
    every = [
        names
        for degree in range(4)
        for names in itertools.combinations_with_replacement(frame.features, degree)
        if len({cells[name].column for name in names if name in cells})
        == sum(name in cells for name in names)
    ]
    picked = generator.choice(len(every), min(len(every), generator.integers(1, 9)), replace=False)
    return MomentRequest(frame, tuple(every[index] for index in picked), mixed=True)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_random_sums_of_features(relation):
    generator = np.random.default_rng(11)
    worst = Fraction(0)
    for index, rows, kind in neighbour_plan(160, relation):
        request = random_request(generator)
        base, other = neighbouring_rows(generator, draw_row, rows=rows, kind=kind)
        ratios = check_neighbours(
            lambda grant, request=request: grant.moments(request, grant.rho),
            coded(base),
            coded(other),
            seed=index,
            relation=relation,
        )
        worst = max([worst, *ratios])
    assert worst == 1


# -- planted faults ------------------------------------------------------------------------


def halved_sensitivity(patch):
    honest = feature_sensitivity.moments_sensitivity
    patch.setattr(grant_module, "moments_sensitivity", lambda *asked: honest(*asked) / 4)
    return {}


def groups_forgotten_under_replacement(patch):
    """Counts of cells taken as if a replaced row changed one of them only."""
    patch.setattr(feature_sensitivity, "_differing", lambda family: Fraction(1))
    return {}


def presence_forgotten(patch):
    """A complete row is replaced by a complete row only."""
    honest = feature_sensitivity.feature_sums
    patch.setattr(
        feature_sensitivity,
        "feature_sums",
        lambda request, relation, rows, may_miss: max(
            honest(request, relation, rows, may_miss=False), Fraction(1, 100)
        ),
    )
    return {}


class CountsCompleteRowsForFree(Grant):
    """Takes the number of complete rows for public because no row of *this table* misses any."""

    def moments(self, request, rho):
        source = exact_source(self)
        complete = source.moments(MomentRequest(request.frame, ((),)))
        if request.monomials == ((),) and complete[0] == source.row_count():
            return NoisyMoments(request, complete, 0.0, Fraction(0))
        return super().moments(request, rho)


def count_free_by_the_data(_):
    return {"kind": CountsCompleteRowsForFree}


def exact_rows_published(patch):
    honest = measure._public_rows
    patch.setattr(
        measure,
        "_public_rows",
        lambda grant, request: honest(grant, request) or exact_source(grant).row_count(),
    )
    return {}


def numbers_not_clipped(patch):
    honest = features.feature_rows

    def unclipped(table, frame):
        for numbers, within in honest(table, frame):
            yield {name: 3 * values for name, values in numbers.items()}, within

    patch.setattr(features, "feature_rows", unclipped)
    return {}


def cells_overlap(patch):
    """Every row lies in every named cell of a column."""
    honest = features.feature_rows

    def overlapping(table, frame):
        for numbers, within in honest(table, frame):
            yield numbers, dict.fromkeys(within, within[""])

    patch.setattr(features, "feature_rows", overlapping)
    return {}


#: Name: (fault, analysis, relation, what the violation must be about).
FAULTS = {
    "sensitivity halved": (halved_sensitivity, SPECS[0], ADD, "sensitivity"),
    "groups forgotten": (groups_forgotten_under_replacement, SPECS[5], REPLACE, "sensitivity"),
    "presence forgotten": (
        presence_forgotten,
        replace(SPECS[0], name="count"),
        REPLACE,
        "sensitivity",
    ),
    "count free by the data": (count_free_by_the_data, SPECS[0], ADD, "control|release"),
    "exact rows published": (exact_rows_published, SPECS[0], ADD, "release"),
    "numbers not clipped": (numbers_not_clipped, SPECS[7], ADD, "sensitivity"),
    "cells overlap": (cells_overlap, SPECS[2], ADD, "sensitivity"),
}
#: Separate draws, in which no sum can hide behind another.
SEPARATE = {"count": {"split": (1, 1, 1)}}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, monkeypatch):
    plant, spec, relation, words = FAULTS[name]
    run = statistics(spec, **SEPARATE.get(spec.name, {}))
    worst_ratio(run, 24, relation)
    settings = plant(monkeypatch)
    with pytest.raises(Violation, match=words):
        worst_ratio(run, 24, relation, **settings)
