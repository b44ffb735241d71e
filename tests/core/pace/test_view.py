"""A covariance release as people look at it."""

from __future__ import annotations

import csv
import io
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.errors import EstimationError
from core.pace.estimate import estimate, replay
from core.pace.regression import regression
from core.pace.select import release_covariance
from core.pace.view import (
    FILLED,
    FOLLOWED,
    KEPT,
    Replays,
    cluster_order,
    entry_states,
    file_order,
    matrices,
    noise_error,
    npz_bytes,
    parquet_bytes,
    regression_csv,
    round_view,
    selected_entries,
    standard_units,
    strongest,
)
from core.private.accounts import Charge
from core.simulation import simulated_vault
from tests.core.private.tables import numeric

ROWS = 4_000


def table(size=7, rows=ROWS):
    generator = np.random.default_rng(5)
    common = generator.normal(size=rows)
    return numeric(
        {
            f"{letter}": np.clip(0.3 * ((i % 3 == 0) * common + generator.normal(size=rows)), -1, 1)
            for i, letter in enumerate("gbadcfe"[:size])
        }
    )


def released(method="pace", rho=Fraction(1, 10), seed=1, rows=ROWS, size=7):
    rows_ = table(size, rows)
    vault = simulated_vault(rows_, seed=seed)
    (grant,) = vault.grants([Charge("one", "covariance", rho)])
    return release_covariance(
        grant, rows_.schema, rows_.schema.names, method=method, expected_rows=rows
    )


def test_replays_agree_with_cold_ones_in_any_order():
    release = released()
    replays = Replays(release)
    steps = len(release.rounds)
    assert steps > 4
    for step in (steps, 0, steps - 1, 2, 2, 3):
        cold = replay(release, step)
        np.testing.assert_allclose(replays.at(step).scaled, cold.scaled, atol=1e-7)
        assert np.array_equal(replays.at(step).graph, cold.graph)
    assert np.array_equal(replays.last.scaled, estimate(release).scaled)
    assert replays.at(2) is replays.at(2)
    with pytest.raises(EstimationError, match="rounds"):
        replays.at(steps + 1)


def test_a_round_in_units_of_correlations():
    release = released()
    replays = Replays(release)
    index = next(i for i, step in enumerate(release.rounds) if step.chosen[0] != step.chosen[1])
    step, fitted = release.rounds[index], replays.at(index + 1)
    view = round_view(step, fitted)
    a, b = (fitted.columns.index(name) for name in step.chosen)
    unit = np.sqrt(fitted.scaled[a, a] * fitted.scaled[b, b])
    assert view.measured * unit == pytest.approx(step.measured)
    assert view.expected * unit == pytest.approx(step.expected)
    assert view.distance == pytest.approx(abs(step.measured - step.expected) / step.sigma)
    assert (view.pair, view.joined, view.variance) == (step.chosen, step.edge, False)


def test_states_of_entries_by_method():
    loop = estimate(released("pace"))
    states = entry_states(loop)
    assert np.array_equal(states == FOLLOWED, loop.graph)
    assert set(np.unique(states)) <= {FILLED, FOLLOWED}
    assert np.all(entry_states(estimate(released("ssp_tight"))) == FOLLOWED)
    variances = entry_states(estimate(released("diagonal")))
    assert np.array_equal(variances == FOLLOWED, np.eye(7, dtype=bool))


def test_entries_of_the_first_look_that_stayed_out_are_kept_only():
    release = released("pace_auto", rho=Fraction(1, 2000), size=7)
    assert release.route == "rounds"
    fitted = estimate(release)
    states = entry_states(fitted)
    assert np.array_equal(states == FOLLOWED, fitted.graph)
    assert np.array_equal(states == KEPT, fitted.measured & ~fitted.graph)
    assert (states == KEPT).any()


def test_orders_of_columns():
    release = released()
    order = file_order(release)
    assert [release.columns[i] for i in order] == list("gbadcfe")
    blocks = np.eye(6)
    for group in ([0, 2, 4], [1, 5]):
        blocks[np.ix_(group, group)] = 0.8
    np.fill_diagonal(blocks, 1.0)
    found = cluster_order(-blocks + 2 * np.eye(6)).tolist()  # the sign does not matter
    assert sorted(found) == list(range(6))
    places = sorted(found.index(i) for i in (0, 2, 4))
    assert places[2] - places[0] == 2, "a group stands side by side"
    assert found.index(3) == 5, "what belongs to nothing comes last"
    assert abs(found.index(1) - found.index(5)) == 1
    assert cluster_order(np.eye(1)).tolist() == [0]
    assert cluster_order(np.eye(2)).tolist() == [0, 1]
    assert strongest(blocks, 3).tolist() == [0, 1, 2]
    assert strongest(blocks, 5).tolist() == [0, 1, 2, 4, 5]


def test_the_noise_alone_explains_the_distance_of_plain_noise():
    rows = table()
    truth = None
    squared = []
    for seed in range(30):
        release = released("ssp_tight", rho=Fraction(1, 50), seed=seed)
        fitted = estimate(release)
        centres = np.array([scale.centre for _, scale in release.scales])
        values = np.column_stack([rows.numbers[name] for name in release.columns])
        centred = np.clip((values - centres) / release.half_widths, -1, 1)
        truth = centred.T @ centred / ROWS
        distance = np.linalg.norm(fitted.scaled - truth) / np.linalg.norm(truth)
        squared.append((distance / noise_error(fitted)) ** 2)
    assert np.mean(squared) == pytest.approx(1.0, abs=0.15)


def test_files_hold_every_matrix():
    fitted = estimate(released())
    with np.load(io.BytesIO(npz_bytes(fitted)), allow_pickle=False) as loaded:
        assert tuple(loaded["columns"]) == fitted.columns
        for name, matrix in matrices(fitted).items():
            assert np.array_equal(loaded[name], matrix)
        assert np.array_equal(loaded["state"], entry_states(fitted))
    long = pq.read_table(io.BytesIO(parquet_bytes(fitted))).to_pylist()
    assert len(long) == 7 * 8 // 2
    place = {name: i for i, name in enumerate(fitted.columns)}
    for row in long:
        a, b = place[row["column_1"]], place[row["column_2"]]
        assert row["correlation"] == fitted.correlation[a, b]
        assert row["standard_error"] == fitted.standard_errors[a, b]
        assert (row["state"].startswith("measured")) == bool(fitted.measured[a, b])


def test_entries_that_a_noisy_look_at_the_rows_chose_are_marked():
    for method, rho in (("pace_auto", Fraction(1, 2000)), ("pace", Fraction(1))):
        release = released(method, rho=rho)
        fitted = estimate(release)
        marked = selected_entries(release, fitted)
        assert np.array_equal(marked, fitted.graph & ~np.eye(7, dtype=bool))
        assert marked.any()
    other = released("ssp_tight")
    assert not selected_entries(other, estimate(other)).any()


def test_slopes_in_standard_deviations_and_as_a_file():
    fitted = estimate(released("ssp_tight"))
    a, b = (fitted.columns.index(name) for name in "ab")
    found = regression(fitted, "a", ["b"])
    (unit,) = standard_units(fitted, found)
    assert unit * found.coefficients.values[0].value == pytest.approx(fitted.correlation[a, b])
    intercept, slope = csv.DictReader(io.StringIO(regression_csv(found).decode()))
    assert (intercept["term"], slope["term"], slope["outcome"]) == ("intercept", "b", "a")
    assert float(slope["estimate"]) == pytest.approx(found.coefficients.values[0].value)
    assert float(slope["total_low"]) < float(slope["privacy_low"]) < float(slope["estimate"])
