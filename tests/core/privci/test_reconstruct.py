from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from core.errors import Cancelled, EstimationError
from core.privci.engine_entropic import _independence, _Propagation, solve_entropic
from core.privci.engine_exact import GAP, solve_exact
from core.privci.problem import Measurement, Problem
from core.privci.reconstruct import (
    EXACT_SIGNAL,
    choose_engine,
    estimation_problem,
    fit,
    fit_problem,
    signal,
)
from core.privci.tree_model import TreeModel
from tests.core.privci.models import (
    brute_joint,
    noisy_problem,
    random_edges,
    random_model,
    release_of,
)


def random_problem(seed, *, columns=(1, 9), cells=9, rows=(0, 9), sigma=(-1, 4)):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(*columns))
    sizes = [int(size) for size in generator.integers(1, cells, count)]
    total = float(10 ** generator.uniform(*rows))
    model = random_model(generator, sizes, random_edges(generator, count), total)
    return noisy_problem(generator, model, float(10 ** generator.uniform(*sigma))), model


def mean_distance(one: TreeModel, other: TreeModel) -> float:
    pairs = zip(one.edge, other.edge, strict=True)
    return float(np.mean([0.5 * np.abs(a - b).sum() for a, b in pairs]))


# -- exact -----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_exact_closes_the_gap_and_is_consistent(seed):
    problem, _ = random_problem(seed)
    found = solve_exact(problem)
    assert 0 <= found.gap <= GAP
    assert found.bound <= found.loss == pytest.approx(problem.loss(found.node, found.edge))
    model = problem.model(found.node, found.edge)  # validates signs, sums and consistency
    assert problem.loss_of(model) == pytest.approx(found.loss, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("sizes", "total", "sigma"),
    [
        ([100] * 8, 50_000.0, 40.0),
        ([10] * 60, 1e5, 40.0),
        ([20, 3, 7, 30] * 3, 1e12, 10.0),
        ([20, 3, 7, 30] * 3, 1.0, 1000.0),
        ([20, 3, 7, 30] * 3, 1e5, 1e-3),
        ([1, 1, 1], 10.0, 3.0),
        ([1], 1.0, 1e6),
    ],
)
def test_exact_holds_its_promise_at_the_extremes(sizes, total, sigma):
    generator = np.random.default_rng(5)
    model = random_model(generator, sizes, random_edges(generator, len(sizes), 0.95), total)
    found = solve_exact(noisy_problem(generator, model, sigma))
    assert found.gap <= GAP


@pytest.mark.parametrize("seed", range(25))
def test_exact_equals_least_squares_over_the_full_joint(seed):
    """Oracle: non-negative least squares on every cell of the joint table."""
    problem, model = random_problem(seed, columns=(1, 4), cells=4, rows=(1, 3), sigma=(0, 2))
    shape = model.sizes
    rows, targets = [], []
    for axes, item in [
        *(((i,), item) for i, item in enumerate(problem.one_way)),
        *zip(problem.edges, problem.two_way, strict=True),
    ]:
        for cell in np.ndindex(item.values.shape):
            mask = np.zeros(shape)
            index = [slice(None)] * len(shape)
            for axis, place in zip(axes, cell, strict=True):
                index[axis] = place
            mask[tuple(index)] = 1
            rows.append(mask.ravel() / item.deviations[cell])
            targets.append(item.values[cell] / item.deviations[cell])
    firm = 1e5 / min(item.deviations.min() for item in problem.one_way)
    matrix = np.array([*rows, np.full(int(np.prod(shape)), firm)])
    target = np.array([*targets, firm * problem.total])
    joint, _ = nnls(matrix, target, maxiter=10_000)
    oracle = 0.5 * float(((matrix[:-1] @ joint - target[:-1]) ** 2).sum())
    assert solve_exact(problem).loss == pytest.approx(oracle, rel=2e-5, abs=2e-5)


def test_no_model_beats_the_bound():
    generator = np.random.default_rng(2)
    problem, model = random_problem(11, columns=(5, 6), rows=(3, 4), sigma=(1, 2))
    found = solve_exact(problem)
    for _ in range(200):
        other = random_model(generator, model.sizes, model.edges, problem.total)
        assert problem.loss_of(other) >= found.bound
    assert problem.loss_of(dataclasses.replace(model, total=problem.total)) >= found.bound


def test_exact_returns_noise_free_tables_unchanged():
    generator = np.random.default_rng(3)
    model = random_model(generator, [3, 4, 5], [(0, 1), (1, 2)], 5000.0)
    problem = noisy_problem(generator, model, 1e-6)
    found = problem.model(*dataclasses.astuple(solve_exact(problem))[:2])
    assert mean_distance(found, model) < 1e-7


# -- entropic --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_propagation_equals_the_brute_force_joint(seed):
    generator = np.random.default_rng(seed)
    problem, model = random_problem(seed, columns=(1, 6), cells=4)
    start = _independence(problem)
    propagate = _Propagation(problem, start)
    potentials = generator.normal(size=(2, propagate.log_start.size + problem.edge_values.size)) * 3
    counts = propagate(potentials)
    grid = np.indices(model.sizes)
    for row, result in zip(potentials, counts, strict=True):
        log = np.zeros(model.sizes)
        for i, cells in enumerate(problem.node_slices):
            log = log + (np.log(start) + row[: start.size])[cells][grid[i]]
        for (parent, child, _), cells in zip(problem.branches, problem.branch_slices, strict=True):
            table = row[start.size :][cells].reshape(model.sizes[parent], model.sizes[child])
            log = log + table[grid[parent], grid[child]]
        joint = np.exp(log - log.max())
        joint *= problem.total / joint.sum()
        for i, cells in enumerate(problem.node_slices):
            rest = tuple(k for k in range(len(model.sizes)) if k != i)
            np.testing.assert_allclose(result[cells], joint.sum(axis=rest), rtol=1e-8)
        for (parent, child, _), cells in zip(problem.branches, problem.branch_slices, strict=True):
            rest = tuple(k for k in range(len(model.sizes)) if k not in (parent, child))
            table = joint.sum(axis=rest)
            table = table if parent < child else table.T
            np.testing.assert_allclose(result[start.size :][cells], table.ravel(), rtol=1e-8)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_entropic_gives_a_valid_model_above_the_bound(seed):
    problem, _ = random_problem(seed, rows=(0, 6))
    found = solve_entropic(problem)
    problem.model(found.node, found.edge)
    exact = solve_exact(problem)
    assert found.loss >= exact.bound - 1e-9 * max(1.0, exact.loss)
    assert found.loss == pytest.approx(problem.loss(found.node, found.edge))


def test_entropic_is_nearer_to_the_truth_where_noise_is_large():
    better = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        model = random_model(generator, [12] * 8, random_edges(generator, 8, 1.0), 20_000.0)
        problem = noisy_problem(generator, model, 60.0)
        errors = [
            mean_distance(fit_problem(problem, engine=engine).model, model)
            for engine in ("entropic", "exact")
        ]
        better.append(errors[0] / errors[1])
    assert max(better) < 1  # in every one of them


def test_estimated_risk_is_near_the_true_one():
    """Stein's estimate against the squared error that only a test can know."""
    estimated, true = [], []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        model = random_model(generator, [10] * 6, random_edges(generator, 6, 1.0), 10_000.0)
        problem = noisy_problem(generator, model, 30.0)
        found = solve_entropic(problem)
        truth = problem.model(found.node, found.edge)
        truth = dataclasses.replace(truth, node=model.node, edge=model.edge)
        node = np.concatenate(truth.node) * problem.total
        edge = problem._branch_vector([table * problem.total for table in truth.edge])
        error = problem.node_weights @ (found.node - node) ** 2
        true.append(error + problem.edge_weights @ (found.edge - edge) ** 2)
        estimated.append(found.risk)
    assert np.mean(estimated) == pytest.approx(np.mean(true), rel=0.15)


def test_engines_agree_where_noise_is_small():
    problem, _ = random_problem(4, columns=(5, 6), rows=(6, 6.1), sigma=(0, 0.1))
    models = [fit_problem(problem, engine=engine).model for engine in ("exact", "entropic")]
    assert mean_distance(*models) < 1e-4


def test_fits_do_not_depend_on_chance_or_on_the_order_of_edges():
    generator = np.random.default_rng(0)
    tables = {
        ("a", "b"): generator.integers(0, 90, (3, 4)),
        ("b", "c"): generator.integers(0, 90, (4, 2)),
        ("a", "d"): generator.integers(0, 90, (3, 3)),
    }
    one_way = {"d": [200, 150, 160], "b": [99, 140, 120, 150], "a": [160, 170, 180], "c": [255] * 2}
    for engine in ("exact", "entropic"):
        one = fit(release_of(one_way, tuple(tables), tables, sigma=9.0), engine=engine)
        turned = dict(reversed(one_way.items()))
        other = fit(release_of(turned, tuple(tables)[::-1], tables, sigma=9.0), engine=engine)
        assert one.loss == other.loss
        for first, second in zip(one.model.edge, other.model.edge, strict=True):
            np.testing.assert_array_equal(first, second)


# -- from release to problem -----------------------------------------------------------------


def test_merged_cells_carry_their_own_deviation():
    release = release_of(
        {"a": [50, 3, -2, 1], "b": [30, 22]},
        (("a", "b"),),
        {("a", "b"): [[30, 20], [1, 2]]},
        sigma=5.0,
        maps={"a": [0, 1, 1, 1]},
    )
    problem = estimation_problem(release)
    np.testing.assert_allclose(problem.one_way[0].values, [50, 2])
    np.testing.assert_allclose(problem.one_way[0].deviations, [5, 5 * np.sqrt(3)])
    assert problem.edges == ((0, 1),)
    assert problem.total == pytest.approx(release.total)


@pytest.mark.parametrize("engine", ["auto", "exact", "entropic"])
def test_hopeless_totals_and_forests_and_single_cells_are_fitted(engine):
    release = release_of(
        {"a": [-5, -9], "b": [-20], "c": [-1, 2, -30], "d": [4, -9]},
        (("a", "c"), ("b", "d")),
        {("a", "c"): [[-3, 2, 9], [0, 0, -4]], ("b", "d"): [[-7, 1]]},
        sigma=20.0,
    )
    found = fit(release, engine=engine)
    assert found.model.total == 1
    assert found.model.edges == ((0, 2), (1, 3))


def test_public_rows_are_the_total():
    release = release_of({"a": [51, 40]}, public_rows=100)
    assert estimation_problem(release).total == 100


def test_partial_releases_are_fitted_as_far_as_they_go():
    edges = (("a", "b"), ("b", "c"))
    release = release_of(
        {"a": [5, 6], "b": [7, 4], "c": [5, 6]}, edges, {edges[0]: [[3, 2], [4, 2]]}, partial=True
    )
    assert fit(release).model.edges == ((0, 1),)
    empty = dataclasses.replace(release, one_way=(), two_way=())
    with pytest.raises(EstimationError, match="before its first measurement"):
        fit(empty)


def test_auto_goes_by_the_signal_in_a_cell():
    generator = np.random.default_rng(0)
    model = random_model(generator, [4, 5], [(0, 1)], 10_000.0)
    threshold = 10_000.0 / 20 / EXACT_SIGNAL
    for sigma, engine in ((threshold * 1.01, "entropic"), (threshold * 0.99, "exact")):
        problem = noisy_problem(generator, model, sigma)
        assert choose_engine(problem) == engine
        assert fit_problem(problem).engine == engine
        assert signal(problem) == pytest.approx(500 / sigma)


def test_unknown_engines_and_useless_measurements_are_refused():
    with pytest.raises(EstimationError, match="choose one of"):
        fit(release_of({"a": [1, 2]}), engine="magic")
    for values, deviations in (
        ([1.0], [0.0]),
        ([np.nan], [1.0]),
        ([1.0, 2.0], [1.0]),
        ([], []),
        ([1.0], [np.inf]),
    ):
        with pytest.raises(EstimationError):
            Measurement(np.array(values), np.array(deviations))


@pytest.mark.parametrize("engine", ["exact", "entropic"])
def test_progress_may_cancel(engine):
    seen = []

    def progress(stage, done, total, detail):
        seen.append((stage, done, total))
        raise Cancelled("enough")

    generator = np.random.default_rng(0)
    model = random_model(generator, [20] * 10, random_edges(generator, 10, 1.0), 1e5)
    with pytest.raises(Cancelled):
        fit_problem(noisy_problem(generator, model, 50.0), engine=engine, progress=progress)
    assert len(seen) == 1
    assert seen[0][0] == "fit"
    assert 0 < seen[0][1] <= seen[0][2]


# -- the reference library as oracle ---------------------------------------------------------


@pytest.mark.slow
def test_the_reference_library_finds_no_lower_loss():
    problem, _ = random_problem(9, columns=(6, 7), rows=(4, 4.1), sigma=(1, 1.1))
    exact = fit_problem(problem, engine="exact")
    reference = fit_problem(problem, engine="mbi")
    assert exact.loss <= reference.loss * (1 + 1e-6)
    assert reference.loss == pytest.approx(exact.loss, rel=0.02)
    assert mean_distance(exact.model, reference.model) < 0.01


@pytest.mark.slow
def test_models_survive_the_way_to_the_library_and_back():
    from core.privci.engine_mbi import from_mbi, to_mbi

    generator = np.random.default_rng(1)
    model = random_model(generator, [2, 3, 2, 4], [(0, 1), (1, 2)], 500.0)
    there = to_mbi(model)
    back = from_mbi(there)
    assert back.edges == model.edges
    assert mean_distance(back, model) < 1e-9
    joint = brute_joint(model)
    far = np.asarray(there.project(("c000", "c002")).datavector(flatten=False))
    np.testing.assert_allclose(far / far.sum(), joint.sum(axis=(1, 3)), atol=1e-9)
    assert there.synthetic_data(rows=50).records == 50


def test_a_problem_without_edges_is_one_projection_a_column():
    generator = np.random.default_rng(0)
    model = random_model(generator, [5, 1, 3], [], 100.0)
    problem = noisy_problem(generator, model, 40.0)
    found = solve_exact(problem)
    for cells, item in zip(problem.node_slices, problem.one_way, strict=True):
        weights = item.deviations**-2.0
        slope = weights * (found.node[cells] - item.values)
        inside = found.node[cells] > 0
        # Karush-Kuhn-Tucker: one price on the kept cells, no lower one on the cells at zero
        assert np.ptp(slope[inside]) < 1e-3 * max(1.0, np.abs(slope).max())
        assert (slope[~inside] >= slope[inside].min() - 1e-3).all()
    assert isinstance(problem, Problem)
