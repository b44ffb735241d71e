from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, gammaln

from core.errors import Cancelled, StatisticError
from core.pumba.laws import lattice_log_likelihood
from core.pumba.table_blocks import Blocks
from core.pumba.table_gibbs import convergence, draw_gibbs
from core.pumba.tables import NoisyTable, TableQuery, count_laws, draw_counts
from core.statistics import Family, NoiseLaw, NoisyStatistic

FAMILIES = list(Family)
BINARY = (("answer", ("no", "yes")),)
SQUARE = (("group", ("a", "b")), ("outcome", ("no", "yes")))


def release(value, family=Family.DISCRETE_LAPLACE, scale=4.0, clamped=(None, None)):
    return NoisyStatistic(float(value), NoiseLaw(family, scale), clamped)


def line(values, **kind):
    """A one-way table."""
    labels = tuple(str(cell) for cell in range(len(values)))
    return (("bin", labels),), tuple(release(value, **kind) for value in values)


def dense(law, size):
    """A law as probabilities of 0 .. size - 1."""
    full = np.zeros(size)
    full[law.first : law.first + len(law.mass)] = law.mass
    return full


def enumerate_table(table, highest):
    """All tables with cells up to ``highest``, with their probabilities: brute force."""
    size = len(table.cells)
    tables = np.array(list(itertools.product(range(highest + 1), repeat=size)), dtype=float)
    if isinstance(table.total, int):
        tables = tables[tables.sum(axis=1) == table.total]
    if table.cap is not None:
        tables = tables[tables.max(axis=1) <= table.cap]
    logs = np.zeros(len(tables))
    for factor in table.factors:
        logs += lattice_log_likelihood(factor.statistic, tables @ np.array(factor.weights))
    mass = np.exp(logs - logs.max())
    return tables, mass / mass.sum()


def marginals(tables, mass, size):
    return [np.bincount(column.astype(int), mass, size) for column in tables.T]


def assert_law(drawn, mass):
    """Frequencies of independent draws lie within 5.5 standard errors (p < 4e-8 each)."""
    number = len(drawn)
    observed = np.bincount(drawn.astype(int), minlength=len(mass))[: len(mass)] / number
    assert observed.sum() == pytest.approx(1.0)
    error = np.sqrt(mass * (1 - mass) / number) + 2.0 / number
    assert np.all(np.abs(observed - mass) < 5.5 * error)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [20, 100, 2000])
@pytest.mark.parametrize("values", [(0.3, 0.7), (-2.0, 1.1), (1.5, -0.2), (3.0, 5.0)])
def test_binomial_with_uniform_prior_is_exact(family, count, values):
    # p ~ U(0, 1), k ~ Bin(n, p), both counts released: p(k | s) by enumeration.
    released = tuple(release(round(value * count), family) for value in values)
    table = NoisyTable(BINARY, released, count)
    k = np.arange(count + 1.0)
    prior = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    prior += betaln(k + 1, count - k + 1)  # the prior predictive, flat as it happens
    logs = prior + lattice_log_likelihood(released[0], k)
    logs += lattice_log_likelihood(released[1], count - k)
    exact = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    laws, total = count_laws(table)
    assert 0.5 * np.abs(dense(laws[0], count + 1) - exact).sum() < 1e-12
    assert 0.5 * np.abs(dense(laws[1], count + 1) - exact[::-1]).sum() < 1e-12
    assert (total.first, total.mass.tolist()) == (count, [1.0])
    drawn = draw_counts(table, 20_000, np.random.default_rng(1)).values
    assert np.all(drawn.sum(axis=1) == count)
    assert_law(drawn[:, 0], exact)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("total", [None, 12, release(14, scale=1.5)])
@pytest.mark.parametrize("cap", [None, 7])
def test_exact_laws_equal_enumeration(family, total, cap):
    axes, cells = line((-2, 3, 9), family=family, scale=1.5)
    table = NoisyTable(axes, cells, total, cap=cap)
    tables, mass = enumerate_table(table, 70 if cap is None else cap)
    laws, whole = count_laws(table)
    for law, exact in zip(laws, marginals(tables, mass, 120), strict=True):
        assert 0.5 * np.abs(dense(law, 120) - exact).sum() < 1e-11
    sums = np.bincount(tables.sum(axis=1).astype(int), mass, 240)
    assert 0.5 * np.abs(dense(whole, 240) - sums).sum() < 1e-11
    drawn = draw_counts(table, 40_000, np.random.default_rng(2))
    assert drawn.diagnostics.method == "exact"
    assert drawn.diagnostics.outside_support
    for column, exact in zip(drawn.values.T, marginals(tables, mass, 120), strict=True):
        assert_law(column, exact)
    # And jointly.
    code = np.array([400, 20, 1])
    if cap is not None or total == 12:
        assert_law(drawn.values @ code, np.bincount((tables @ code).astype(int), mass, 8000))


def test_two_releases_of_a_cell_and_of_the_total_multiply():
    axes, cells = line((3, 5), scale=2.0)
    extra = (
        TableQuery((1.0, 0.0), release(6, Family.DISCRETE_GAUSSIAN, 1.0)),
        TableQuery((0.0, 2.0), release(9, Family.LAPLACE, 3.0)),
        TableQuery((1.0, 1.0), release(10, Family.GAUSSIAN, 1.0)),
    )
    table = NoisyTable(axes, cells, release(8, scale=1.0), extra)
    tables, mass = enumerate_table(table, 60)
    laws, _ = count_laws(table)
    for law, exact in zip(laws, marginals(tables, mass, 200), strict=True):
        assert 0.5 * np.abs(dense(law, 200) - exact).sum() < 1e-12


def test_clamped_releases_of_cells():
    # Laplace cut off at 0 tells as much as before; Gaussian does not.
    for family, same in ((Family.DISCRETE_LAPLACE, True), (Family.DISCRETE_GAUSSIAN, False)):
        plain = NoisyTable(BINARY, (release(-6, family, 5.0), release(30, family, 5.0)))
        cut = NoisyTable(
            BINARY,
            (release(0, family, 5.0, (0.0, None)), release(30, family, 5.0, (0.0, None))),
        )
        laws = [dense(count_laws(table)[0][0], 400) for table in (plain, cut)]
        distance = 0.5 * np.abs(laws[0] - laws[1]).sum()
        assert bool(distance < 1e-12) == same
    assert np.arange(400) @ laws[1] == pytest.approx(2.87, abs=0.005)


def test_wide_windows_go_through_the_transform():
    # Normal noise far from any bound: given the sum, the cells are jointly normal.
    sigma, count = 3000.0, 400_000
    values = np.array([90_000.0, 120_000.0, 60_000.0, 110_000.0])
    axes, cells = line(values, family=Family.DISCRETE_GAUSSIAN, scale=sigma)
    table = NoisyTable(axes, cells, count)
    laws, _ = count_laws(table)
    for law, value in zip(laws, values, strict=True):
        at = law.first + np.arange(len(law.mass))
        mean = float(at @ law.mass)
        assert mean == pytest.approx(value + (count - values.sum()) / 4, abs=1e-3)
        variance = float((at - mean) ** 2 @ law.mass)
        assert variance == pytest.approx(sigma**2 * 3 / 4, rel=1e-6)
    drawn = draw_counts(table, 4000, np.random.default_rng(3)).values
    correlation = np.corrcoef(drawn.T)[np.triu_indices(4, 1)]
    assert np.abs(correlation + 1 / 3).max() < 0.09


def test_an_impossible_release_of_many_cells_still_gives_tables():
    # Every cell far above what the total allows: the windows must follow the tilt.
    axes, cells = line([500.0] * 30, scale=2.0)
    drawn = draw_counts(NoisyTable(axes, cells, 90), 3000, np.random.default_rng(4)).values
    assert np.all(drawn.sum(axis=1) == 90)
    assert np.abs(drawn.mean(axis=0) - 3.0).max() < 0.5
    # Flat on the simplex, because Laplace noise on one side is a constant given the sum.
    expected = 89 / 30 + 1 / 30  # mean of a uniform composition of 90 into 30 parts
    assert drawn.mean() == pytest.approx(expected)
    assert drawn.var() == pytest.approx(3.0 * (90 + 30) * 29 / (30 * 31), rel=0.05)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-2000, 2000), min_size=2, max_size=5),
    st.sampled_from(FAMILIES),
    st.floats(0.3, 60.0),
    st.one_of(st.none(), st.integers(1, 1500), st.integers(-300, 1500)),
    st.booleans(),
)
def test_any_release_gives_possible_tables(values, family, scale, total, noisy):
    axes, cells = line(values, family=family, scale=scale)
    given_total = total
    if total is not None and (noisy or total < 1):
        given_total = release(total, family, scale)
    table = NoisyTable(axes, cells, given_total)
    laws, whole = count_laws(table)
    drawn = draw_counts(table, 200, np.random.default_rng(0)).values
    assert drawn.min() >= 0
    assert np.all(drawn == np.rint(drawn))
    if isinstance(given_total, int):
        assert np.all(drawn.sum(axis=1) == given_total)
    for law in (*laws, whole):
        assert law.mass.sum() == pytest.approx(1.0, abs=1e-9)


MARGINS = (
    TableQuery((1.0, 1.0, 0.0, 0.0), release(9, scale=1.0)),
    TableQuery((0.0, 1.0, 0.0, 1.0), release(4, Family.GAUSSIAN, 1.5)),
    TableQuery((1.0, 0.0, 0.0, 2.0), release(0, Family.DISCRETE_GAUSSIAN, 2.0, (0.0, None))),
)


@pytest.mark.parametrize("total", [None, 14, release(11, scale=1.0)])
@pytest.mark.parametrize("family", [Family.DISCRETE_LAPLACE, Family.GAUSSIAN])
@pytest.mark.parametrize("cap", [None, 6])
def test_lattice_gibbs_equals_enumeration(total, family, cap):
    cells = tuple(release(value, family, 2.0) for value in (5, 3, -2, 4))
    table = NoisyTable(SQUARE, cells, total, MARGINS, cap)
    tables, mass = enumerate_table(table, 24 if cap is None else cap)
    drawn = draw_counts(table, 12_000, np.random.default_rng(5))
    assert drawn.diagnostics.method == "gibbs"
    assert drawn.diagnostics.r_hat < 1.02
    assert drawn.diagnostics.effective > 4000
    for column, exact in zip(drawn.values.T, marginals(tables, mass, 60), strict=True):
        observed = np.bincount(column.astype(int), minlength=60)[:60] / len(column)
        assert 0.5 * np.abs(observed - exact).sum() < 0.03
    code = np.array([1, 20, 0, 0])
    exact = np.bincount((tables @ code).astype(int), mass, 2000)
    observed = np.bincount((drawn.values @ code).astype(int), minlength=2000)[:2000] / 12_000
    assert 0.5 * np.abs(observed - exact).sum() < 0.06


def test_gibbs_agrees_with_the_exact_sampler():
    axes, cells = line((12, -3, 5, 30), scale=4.0)
    for total in (None, 40, release(45, Family.GAUSSIAN, 3.0)):
        table = NoisyTable(axes, cells, total)
        laws, _ = count_laws(table)
        drawn = draw_gibbs(table, 12_000, np.random.default_rng(6)).values
        for column, law in zip(drawn.T, laws, strict=True):
            observed = np.bincount(column.astype(int), minlength=400)[:400] / len(column)
            assert 0.5 * np.abs(observed - dense(law, 400)).sum() < 0.05


@pytest.mark.parametrize("family", [Family.DISCRETE_LAPLACE, Family.LAPLACE, Family.GAUSSIAN])
@pytest.mark.parametrize("fixed", [False, True])
def test_block_moves_alone_leave_the_target_invariant(family, fixed):
    # From exact draws: any number of moves must leave the exact law.
    cells = tuple(release(value, family, 1.5) for value in (9, 6, 5, 8))
    clamped = TableQuery((0.0, 1.0, 1.0, 0.0), release(9, Family.GAUSSIAN, 2.0, (None, 9.0)))
    table = NoisyTable(SQUARE, cells, 27 if fixed else None, (*MARGINS[:1], clamped))
    tables, mass = enumerate_table(table, 24)
    rng = np.random.default_rng(11)
    start = tables[rng.choice(len(tables), 20_000, p=mass)]
    factors = [one for one in table.factors if not fixed or len(set(one.weights)) > 1]
    curves = [lambda sums, one=one: lattice_log_likelihood(one.statistic, sums) for one in factors]
    blocks = Blocks.of(
        factors,
        curves,
        np.full(4, 27.0),
        fixed=fixed,
        centre=np.full(4, 9.0),
        deviation=np.ones(4),
    )
    assert blocks.useful
    moved = start
    for _ in range(6):
        moved = blocks.move(moved, rng)
    assert np.mean(np.any(moved != start, axis=1)) > 0.2
    code = np.array([8000, 400, 20, 1])
    for weights in (code, np.array([1, 1, 0, 0]), np.array([1, 30, 0, 0])):
        exact = np.bincount((tables @ weights).astype(int), mass)
        if weights is code:  # too many tables to count each: those with a share of their own
            exact = np.where(exact > 2e-4, exact, 0.0)
        observed = np.bincount((moved @ weights).astype(int), minlength=len(exact)) / len(moved)
        error = np.sqrt(exact * (1 - exact) / len(moved)) + 2 / len(moved)
        shown = exact > 0
        assert np.all(np.abs(observed - exact)[shown] < 5.5 * error[shown])


def test_gaussian_margins_far_from_zero_equal_generalised_least_squares():
    rng = np.random.default_rng(7)
    truth = np.array([[400.0, 300.0, 500.0], [250.0, 350.0, 450.0]])
    axes = (("g", ("a", "b")), ("o", ("x", "y", "z")))
    cells = tuple(
        release(round(value + rng.normal(0, 20)), Family.DISCRETE_GAUSSIAN, 20.0)
        for value in truth.ravel()
    )
    queries = []
    for mask in (np.eye(2)[row][:, None] * np.ones(3) for row in range(2)):
        value = round((mask * truth).sum() + rng.normal(0, 5))
        queries.append(
            TableQuery(tuple(mask.ravel()), release(value, Family.DISCRETE_GAUSSIAN, 5.0))
        )
    for mask in (np.ones((2, 1)) * np.eye(3)[column] for column in range(3)):
        value = round((mask * truth).sum() + rng.normal(0, 8))
        queries.append(
            TableQuery(tuple(mask.ravel()), release(value, Family.DISCRETE_GAUSSIAN, 8.0))
        )
    table = NoisyTable(axes, cells, None, tuple(queries))
    weights = np.array([factor.weights for factor in table.factors])
    precision = np.array([factor.statistic.law.scale**-2 for factor in table.factors])
    values = np.array([factor.statistic.value for factor in table.factors])
    covariance = np.linalg.inv(weights.T @ (precision[:, None] * weights))
    mean = covariance @ weights.T @ (precision * values)
    drawn = draw_counts(table, 20_000, np.random.default_rng(8))
    errors = np.sqrt(np.diag(covariance) / drawn.diagnostics.effective)
    assert np.all(np.abs(drawn.values.mean(axis=0) - mean) < 6 * errors)
    measured = np.cov(drawn.values.T)
    assert np.abs(measured - covariance).max() < 0.08 * covariance.max()
    assert drawn.diagnostics.r_hat < 1.02


def test_more_cells_than_the_partial_sums_can_hold_go_to_chains():
    # Noise wider than any window: the lattice hardly matters, and the normal law is right.
    sigma = 1e6
    axes, cells = line((5e7, 6e7), family=Family.DISCRETE_GAUSSIAN, scale=sigma)
    drawn = draw_counts(NoisyTable(axes, cells, 108_000_000), 4000, np.random.default_rng(9))
    assert drawn.diagnostics.method == "gibbs"
    assert np.all(drawn.values.sum(axis=1) == 108_000_000)
    error = sigma / np.sqrt(2) / np.sqrt(drawn.diagnostics.effective)
    assert drawn.values[:, 0].mean() == pytest.approx(4.9e7, abs=6 * error)
    assert drawn.values[:, 0].std() == pytest.approx(sigma / np.sqrt(2), rel=0.06)


def test_convergence_figures():
    rng = np.random.default_rng(10)
    fresh = rng.normal(size=(20, 400, 2))
    r_hat, effective = convergence(fresh)
    assert r_hat < 1.001
    assert effective == pytest.approx(8000, rel=0.2)
    # An autoregression of coefficient 0.8 is worth (1 - 0.8) / (1 + 0.8) of its length.
    chain = np.empty((400, 400, 1))
    chain[0] = rng.normal(size=(400, 1))
    for step in range(1, 400):
        chain[step] = 0.8 * chain[step - 1] + 0.6 * rng.normal(size=(400, 1))
    assert convergence(chain)[1] == pytest.approx(400 * 400 / 9, rel=0.25)
    # Eight groups of fifty that do not agree; R-hat is that of the definition.
    apart = fresh + 0.2 * np.repeat(np.arange(8), 50)[:, None]
    r_hat, effective = convergence(apart)
    assert r_hat == pytest.approx(np.sqrt(1 + 0.04 * 6.0 / (1 + 1 / 20)), rel=0.02)
    assert effective < 3000
    assert convergence(np.ones((10, 16, 2))) == (1.0, 160.0)


def test_progress_can_cancel():
    def stop(stage, done, total, detail):
        assert stage == "statistics"
        if done == 3:
            raise Cancelled("cancelled")

    cells = tuple(release(value) for value in (5, 3, 2, 4))
    with pytest.raises(Cancelled):
        draw_counts(NoisyTable(SQUARE, cells, None, MARGINS), 100, np.random.default_rng(0), stop)


def test_draws_repeat_with_the_seed():
    cells = tuple(release(value) for value in (5, 3, 2, 4))
    for queries in ((), MARGINS):
        table = NoisyTable(SQUARE, cells, None, queries)
        one, two = (draw_counts(table, 300, np.random.default_rng(3)).values for _ in range(2))
        assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cells": (release(1),)}, "one release for each"),
        ({"total": 0}, "at least 1"),
        ({"cap": 0}, "at least 1"),
        ({"total": 30, "cap": 10}, "cannot add up"),
        ({"axes": ()}, "at least one column"),
        ({"axes": (("answer", ("no", "no")),)}, "differ"),
        ({"axes": (("a", ("x",)), ("a", ("x", "y")))}, "must differ"),
        ({"queries": (TableQuery((1.0,), release(1)),)}, "one weight a cell"),
        ({"cells": (release(1.5), release(2))}, "no multiple"),
        (
            {"cells": (NoisyStatistic(1.0, NoiseLaw(Family.DISCRETE_LAPLACE, 1.0, 0.7)),) * 2},
            "must be 1",
        ),
    ],
)
def test_bad_tables_are_refused(change, words):
    whole = {"axes": BINARY, "cells": (release(1), release(2)), **change}
    with pytest.raises(StatisticError, match=words):
        NoisyTable(**whole)


def test_bad_queries_are_refused():
    for weights, words in (((0.5, 1.0), "whole"), ((0.0, 0.0), "other than 0")):
        with pytest.raises(StatisticError, match=words):
            TableQuery(weights, release(1))
    cells = tuple(release(value) for value in (5, 3, 2, 4))
    with pytest.raises(StatisticError, match="draw the counts"):
        count_laws(NoisyTable(SQUARE, cells, None, MARGINS))
