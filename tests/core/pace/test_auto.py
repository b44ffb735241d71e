"""The automatic method: its forecasts, its routes, and that released numbers alone decide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from core.pace import auto
from core.pace.auto import Outlook, denoised_energies, visibility, visible_edges
from core.pace.estimate import estimate, scaled_measurements
from core.pace.measurements import Measurements
from tests.core.pace.tables import ADD, BOTH, REPLACE, correlated, released


def outlook(**changes):
    usual = {"energy": 1.0, "second": 0.5, "rounds": 0.7, "visible": 5, "best_sigma": 0.01}
    return Outlook(**{**usual, **changes})


def test_routes():
    assert outlook().route == "second triangle"
    assert outlook(rounds=0.4).route == "rounds"
    assert outlook(rounds=0.4, visible=auto.MOST_VISIBLE + 1).route == "second triangle"
    nothing = {"energy": 0.0, "second": 0.0, "rounds": 0.0, "visible": 0}
    assert outlook(**nothing, best_sigma=1.0).route == "diagonal"
    assert outlook(**nothing, best_sigma=0.1).route == "second triangle"


def truth(values):
    return values.T @ values / len(values)


def error(release, values):
    exact = truth(values)
    return np.linalg.norm(estimate(release).scaled - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("relation", BOTH)
def test_dense_and_cheap_is_measured_twice(relation):
    values = correlated(4000, 8, 1)
    release = released(values, "1", relation=relation)
    assert release.route == "second triangle"
    assert [draw.stage for draw in release.draws] == ["triangle", "second triangle"]
    assert release.draws[0].clip_squared == release.draws[1].clip_squared
    first = released(values, "2/5", relation=relation)
    assert error(release, values) < error(first, values)


@pytest.mark.parametrize("relation", BOTH)
def test_corners_with_few_edges_go_by_rounds(relation):
    values = np.sign(correlated(3000, 50, 5))
    release = released(values, "1/30", relation=relation, seed=2)
    assert release.route == "rounds"
    tight = released(values, "1/30", relation=relation, seed=2, method="ssp_tight")
    assert error(release, values) < 0.7 * error(tight, values)


def test_nothing_to_learn_goes_to_the_diagonal():
    generator = np.random.default_rng(3)
    routes = set()
    for seed in range(12):
        values = 0.2 * generator.normal(size=(40, 6))
        release = released(values, "1/10000", seed=seed)
        routes.add(release.route)
        if release.route == "diagonal":
            assert [draw.stage for draw in release.draws] == ["triangle", "diagonal"]
            assert np.count_nonzero(estimate(release).covariance) == 6
    assert "diagonal" in routes


def test_the_forecasts_are_in_the_release():
    release = released(correlated(2000, 10, 4), "1/10")
    figures = dict(release.forecasts)
    assert set(figures) == {
        "energy",
        "error after a second triangle",
        "error after rounds",
        "visible entries",
        "noise of one entry",
    }
    assert all(np.isfinite(value) and value >= 0 for value in figures.values())
    assert 0 < figures["error after a second triangle"] < figures["energy"]


def test_the_energy_is_unbiased():
    """Sum of squared correlations, over 40 releases of one table."""
    values = correlated(3000, 8, 5)
    exact = np.corrcoef(values.T)[np.triu_indices(8, 1)]
    found = [dict(released(values, "1/20", seed=seed).forecasts)["energy"] for seed in range(40)]
    standard_error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(np.sum(exact**2), abs=6 * standard_error + 0.15)


def test_shares_of_the_budget():
    release = released(correlated(500, 5, 6), "1", relation=REPLACE)
    first = release.clip.rho + release.draws[0].rho
    assert Fraction(399, 1000) <= first <= auto.FIRST_SHARE
    assert Fraction(49, 1000) <= release.clip.rho <= Fraction(1, 20)


def test_the_first_round_has_a_tenth_of_the_variance_as_noise():
    release = released(np.sign(correlated(30_000, 50, 5)), "1/300", relation=ADD, seed=1)
    assert release.route == "rounds"
    rounds = [draw for draw in release.draws if draw.stage == "round"]
    # Or more budget than that, where the rounds would otherwise be too many.
    assert release.sigmas[rounds[0].start] / release.rows.value <= 0.1 * 1.001
    spent = [float(step.selection_rho / draw.rho) for step, draw in
             zip(release.rounds, rounds, strict=True)]  # fmt: skip
    assert spent == pytest.approx([2 / 3] * len(spent), rel=2e-3)


def test_denoised_energies_sum_to_the_total():
    generator = np.random.default_rng(7)
    variances = generator.uniform(0.5, 2.0, 300)
    energies = variances * generator.normal(size=300) ** 2
    energies[:5] += 50
    total = float(np.sum(energies - variances))
    left = denoised_energies(energies, variances, total)
    assert left.sum() == pytest.approx(total, rel=1e-6)
    assert np.all(left[:5] > 20)
    assert np.count_nonzero(left) < 100
    assert denoised_energies(energies, variances, 0.0).sum() == 0
    assert denoised_energies(energies, variances, -3.0).sum() == 0


def test_few_entries_of_noise_reach_the_visibility():
    generator = np.random.default_rng(8)
    entries = 4950
    reached = np.abs(generator.normal(size=(200, entries))) > visibility(entries)
    assert reached.sum(axis=1).mean() < 1
    assert visibility(1) > 1


def test_visible_edges_are_products_that_stand_out():
    first = Measurements(3, [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]], [9, 9, 9, 0.1, 9], [1.0] * 5)
    assert visible_edges(first).tolist() == [False, True, False, False, False]


def test_rejected_entries_are_kept_for_pooling():
    release = released(np.sign(correlated(3000, 50, 5)), "1/30", seed=1)
    rejected = [step for step in release.rounds if not step.edge]
    assert rejected
    pooled = scaled_measurements(release)
    place = release.columns.index
    index = {(int(a), int(b)): i for i, (a, b) in enumerate(pooled.pairs)}
    for step in rejected:
        entry = pooled.precisions[index[place(step.chosen[0]), place(step.chosen[1])]]
        assert entry > step.sigma**-2
