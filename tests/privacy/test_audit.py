"""Correct code under audit: no claim is refuted, and the attacks get as far as claims let them.

Most runs use seeded noise of the real noise's law, so that results repeat; some use OpenDP's own.
``python -m benchmarks privacy-audit`` audits every release, with the real noise and more runs.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from core.pace.release import METHODS
from core.private.grant import Grant
from core.private.noise import OpenDPNoise
from core.privci.structures import STRUCTURES
from core.pumba.requests import AnalysisKind
from core.releases import Relation
from tests.privacy.audit_scenes import audit
from tests.privacy.audited import ANALYSES, PRIMITIVES, SCENES, TREES
from tests.privacy.replay import Recorder, Replayer, realised

#: Least part of ``sqrt(2 rho)`` that must be seen of Gaussian noise alone.
POWER = 0.6


def check(key, *, learn, runs, real=False):
    scene = SCENES[key]
    verdict = audit(scene, learn=learn * scene.effort, runs=runs * scene.effort, real=real)
    assert verdict.passes, verdict
    if scene.gaussian:
        assert verdict.share >= POWER, verdict
    return verdict


#: Left to the benchmark: variants of others.
LATER = {"counts of pairs", "moments: degree 3 and 4", "clip_norm"}


@pytest.mark.parametrize(
    "key",
    [
        key
        for key, scene in SCENES.items()
        if scene.group == PRIMITIVES and scene.title not in LATER
    ],
)
def test_primitives_keep_their_claims(key):
    # Power is asked of Gaussian noise alone; doubled epsilons are planted elsewhere.
    runs = 600 if SCENES[key].gaussian else 200
    check(key, learn=runs // 2, runs=runs)


@pytest.mark.parametrize(
    "key",
    [
        "privci-exact / add_remove",
        "mean / replace_one",
        "regression / add_remove",
        "rows and means / add_remove",
        "ssp_tight / add_remove",
    ],
)
def test_releases_of_gaussian_noise_keep_their_claims(key):
    check(key, learn=200, runs=500)


@pytest.mark.parametrize("key", ["mst / replace_one", "pace_auto / add_remove"])
def test_releases_with_selection_keep_their_claims(key):
    verdict = check(key, learn=80, runs=160)
    assert verdict.mu > 0.3  # there is something to be seen


def test_a_request_that_is_repeated_costs_and_shows_as_much_as_one():
    verdict = audit(SCENES["one request, three times / add_remove"], learn=50, runs=100)
    assert verdict.passes
    assert verdict.claimed == 2
    assert verdict.mu > 0


def test_the_real_noise_keeps_its_claims():
    """1,500 runs: the bound on mu lies six standard errors above what is asked of it."""
    check("counts / add_remove", learn=500, runs=1500, real=True)


# -- the scenes are what they say ----------------------------------------------------------


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE_ONE])
def test_every_primitive_and_every_release_is_audited(relation):
    titles = {scene.title for scene in SCENES.values() if scene.relation is relation}
    noisy = {
        name
        for name, method in vars(Grant).items()
        if inspect.isfunction(method)
        and not name.startswith("_")
        and "rho" in inspect.signature(method).parameters
    }
    assert {"counts", "moments", "select_pair"} < noisy
    if relation is Relation.REPLACE_ONE:
        noisy.remove("row_count")  # public: nothing is drawn
    assert noisy <= {title.replace(":", " ").replace(",", " ").split()[0] for title in titles}
    assert {*STRUCTURES, *METHODS} <= titles
    asked = {
        scene.run.keywords["spec"].kind for scene in SCENES.values() if scene.group == ANALYSES
    }
    assert asked == set(AnalysisKind)


@pytest.mark.parametrize("key", SCENES)
def test_tables_of_a_scene_are_neighbours(key):
    scene = SCENES[key]
    pairs = [scene.tables] if hasattr(scene, "tables") else scene.versions
    for first, second in pairs:
        rows = [
            list(zip(*table.codes.values(), *table.numbers.values(), strict=True))
            for table in (first, second)
        ]
        counts = [{row: side.count(row) for row in side} for side in rows]
        lost = sum(max(n - counts[1].get(row, 0), 0) for row, n in counts[0].items())
        found = sum(max(n - counts[0].get(row, 0), 0) for row, n in counts[1].items())
        allowed = getattr(scene, "unit", first.unit).rows
        if scene.relation is Relation.ADD_REMOVE:
            assert (lost, found) in {(0, allowed), (0, 0)}
        else:
            assert (lost, found) in {(1, 1), (0, 0)}


@pytest.mark.parametrize("key", [key for key, scene in SCENES.items() if hasattr(scene, "run")])
def test_a_scene_says_truly_what_is_fixed_and_what_is_gaussian(key):
    scene = SCENES[key]
    recorders = [Recorder(seed=seed) for seed in (1, 2)]
    for recorder in recorders:
        scene.run(scene._grant(0, recorder))
    kinds = {draw.kind for recorder in recorders for draw in recorder.draws}
    assert (kinds == {"gaussian"}) == scene.gaussian
    if scene.fixed:
        for first, second in zip(*(recorder.draws for recorder in recorders), strict=True):
            assert np.array_equal(first.argument, second.argument)


@pytest.mark.parametrize(
    "key",
    [key for key, scene in SCENES.items() if scene.group == PRIMITIVES and scene.gaussian],
)
def test_a_canary_changes_an_answer_by_nearly_all_that_was_declared(key):
    scene = SCENES[key]
    recorder = Recorder()
    scene.run(scene._grant(0, recorder))
    replayer = Replayer(recorder.draws)
    scene.run(scene._grant(1, replayer))
    (first,), (second,) = recorder.draws, replayer.draws
    assert 0.7 <= realised(first, second) / first.sensitivity <= 1


def test_seeded_noise_is_played_for_speed_and_real_noise_for_truth():
    scene = SCENES["counts / add_remove"]
    same = [scene.play(0, 3, 1, real=False).numbers for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(same[0], scene.play(0, 3, 2, real=False).numbers)
    assert not np.array_equal(*(scene.play(0, 3, 1, real=True).numbers for _ in range(2)))
    assert not OpenDPNoise().simulated
    assert any(scene.group == TREES and not scene.fixed for scene in SCENES.values())
