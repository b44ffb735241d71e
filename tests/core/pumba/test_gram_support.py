"""The support of noisy moments against explicit inequalities and against tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.pumba.gram import GramVariable
from core.pumba.gram_support import moment_support, positive_definite
from core.pumba.polynomials import Ring

UNIT = (GramVariable("x", 0.0, 1.0), GramVariable("y", 0.0, 1.0))


def test_two_columns_in_the_unit_square_match_the_written_out_inequalities() -> None:
    rows = 10.0
    generator = np.random.default_rng(1)
    support = moment_support(UNIT)
    assert support.coordinates == ((), (0,), (1,), (0, 0), (0, 1), (1, 1))
    # Around the moments of uniform columns, so that every inequality decides for some.
    centre = np.array([0.5, 0.5, 1 / 3, 0.25, 1 / 3])
    points = rows * (centre[:, None] + generator.normal(0, 0.15, (5, 40_000)))
    x, y, xx, xy, yy = points
    cxx, cyy, cxy = xx - x * x / rows, yy - y * y / rows, xy - x * y / rows
    expected = (cxx > 0) & (cyy > 0) & (cxx * cyy > cxy**2) & (xx <= x) & (x <= rows)
    expected &= (yy <= y) & (y <= rows)
    expected &= (np.maximum(0, x + y - rows) <= xy) & (xy <= np.minimum(x, y))
    found = support.raw.contains(np.vstack([np.full(points.shape[1], rows), points]))
    assert 0.01 < expected.mean() < 0.5
    np.testing.assert_array_equal(found, expected)


def _random_rows(
    variables: tuple[GramVariable, ...], rows: int, generator: np.random.Generator
) -> np.ndarray:
    """Rows that the declarations allow: inside the bounds, at most one of a group on."""
    table = np.empty((rows, len(variables)))
    ring = Ring(variables)
    for index, one in enumerate(variables):
        table[:, index] = generator.uniform(one.lower, one.upper, rows)
        if one.indicator:
            table[:, index] = one.lower
    for group in {ring.group(index) for index, one in enumerate(variables) if one.indicator}:
        state = generator.integers(0, len(group) + 1, rows)
        for position, index in enumerate(group):
            table[state == position, index] = variables[index].upper
    return table


MIXED = (
    GramVariable("age", 18.0, 97.0),
    GramVariable("a", 0.0, 1.0, indicator=True, exclusive="k"),
    GramVariable("b", -1.0, 1.0, indicator=True, exclusive="k"),
    GramVariable("c", 0.0, 1.0, indicator=True),
    GramVariable("pay", -3.0, 5.0),
)
WITH_INDICATOR = (GramVariable("b", 0.0, 1.0, indicator=True), GramVariable("y", 2.0, 3.0))


@pytest.mark.parametrize(
    ("variables", "degree"),
    [(UNIT, 2), (MIXED, 2), (UNIT, 4), (WITH_INDICATOR, 2), (WITH_INDICATOR, 4)],
)
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_sums_of_every_table_are_admissible(
    variables: tuple[GramVariable, ...], degree: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    table = _random_rows(variables, 60, generator)
    support = moment_support(variables, degree)
    columns = [table[:, list(one)].prod(axis=1) for one in support.coordinates]
    sums = np.array([column.sum() for column in columns])
    assert support.raw.contains(sums[:, None])[0]
    scaled = support.to_scaled @ sums
    assert support.scaled.contains(scaled[:, None])[0]
    np.testing.assert_allclose(support.to_raw @ scaled, sums, rtol=1e-9, atol=1e-9)
    basis = np.column_stack([table[:, list(one)].prod(axis=1) for one in support.basis])
    matrix = basis.T @ basis
    np.testing.assert_allclose(support.moments @ sums, matrix, rtol=1e-9, atol=1e-9)
    expected = support.scaling @ matrix @ support.scaling.T
    np.testing.assert_allclose(
        support.scaled.matrices(scaled[:, None])[:, :, 0], expected, rtol=1e-7, atol=1e-6
    )
    assert np.all(support.low - 1e-9 <= sums / 60)
    assert np.all(sums / 60 <= support.high + 1e-9)


@pytest.mark.parametrize(
    ("variables", "degree"), [(UNIT, 2), (MIXED, 2), (UNIT, 4), (WITH_INDICATOR, 4)]
)
def test_uniform_columns_are_in_the_interior(
    variables: tuple[GramVariable, ...], degree: int
) -> None:
    support = moment_support(variables, degree)
    point = 7.0 * support.uniform
    assert (support.scaled.rows @ point).min() > 0.01
    assert np.linalg.eigvalsh(support.scaled.matrices(point[:, None])[:, :, 0])[0] > 0.01


def test_exclusive_indicators_leave_room_for_no_overlap() -> None:
    support = moment_support(MIXED[1:3])
    # Sums of a (0/1) and b (-1/1) over 10 rows: 6 and 5 are on, one more than there are rows.
    assert support.coordinates == ((), (0,), (1,))
    assert not support.raw.contains(np.array([[10.0], [6.0], [5.0 - 5.0]]))[0]
    assert support.raw.contains(np.array([[10.0], [6.0], [3.0 - 7.0]]))[0]


def test_positive_definite_agrees_with_eigenvalues() -> None:
    generator = np.random.default_rng(2)
    factors = generator.normal(size=(500, 4, 4))
    matrices = factors @ np.swapaxes(factors, 1, 2)
    matrices -= generator.uniform(0, 1, 500)[:, None, None] * np.eye(4)
    expected = np.linalg.eigvalsh(matrices)[:, 0] > 0
    assert 0.1 < expected.mean() < 0.9
    found = positive_definite(np.moveaxis(matrices, 0, 2).copy(), np.zeros(500))
    np.testing.assert_array_equal(found, expected)
