"""Pooling and projection against loops and a general-purpose optimiser."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.privci.compress import compress, compressed_one_ways, project_on_simplex
from core.releases import NoisyMarginal, Recoding
from core.schema import Column, Kind, Schema


def column(cells: int, name: str = "c") -> Column:
    """A categorical column of exactly that many cells; from three on, the last two are other and
    missing."""
    if cells > 2:
        labels = tuple(f"v{i}" for i in range(cells - 2))
        return Column(name, Kind.CATEGORICAL, categories=labels)
    labels = tuple(f"v{i}" for i in range(cells))
    return Column(
        name,
        Kind.CATEGORICAL,
        categories=labels,
        missing="constant",
        missing_constant="v0",
        other_label="v0",
    )


def measured(values: list[int], sigma: float = 10.0, name: str = "c") -> NoisyMarginal:
    return NoisyMarginal((name,), np.array(values, dtype=np.int64), sigma, Fraction(1, 10))


def pooled(values: list[int], sigma: float = 10.0) -> tuple[tuple[int, ...], ...]:
    """Declared codes behind every compressed cell."""
    recoding = compress([measured(values, sigma)], Schema((column(len(values)),)))
    return recoding.members("c", len(values))


def test_cells_below_three_sigma_are_pooled_last_and_kept_ones_stay_in_order() -> None:
    assert pooled([500, 29, 30, 12, 400]) == ((0,), (2,), (4,), (1, 3))


def test_missing_and_other_cells_are_pooled_like_any_other() -> None:
    assert pooled([500, 300, 3, 1, -4]) == ((0,), (1,), (2, 3, 4))


def test_a_single_rare_cell_stays_as_it_is() -> None:
    assert pooled([500, 12, 300]) == ((0,), (1,), (2,))
    marginal = measured([500, 12, 300])
    assert compress([marginal], Schema((column(3),))).maps == {}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], ((0,), (1,))),
        ([5], ((0,),)),
        ([1, 9, 9, -3], ((1,), (0, 2, 3))),
        ([0, 0, 0], ((0,), (1, 2))),
    ],
)
def test_a_column_never_falls_below_two_cells(values, expected) -> None:
    assert pooled(values, sigma=100.0) == expected


@given(st.lists(st.integers(-200, 2000), min_size=1, max_size=12), st.floats(0.5, 300))
@settings(max_examples=200, deadline=None)
def test_pooling_by_its_words(values: list[int], sigma: float) -> None:
    members = pooled(values, sigma)
    assert sorted(code for cell in members for code in cell) == list(range(len(values)))
    assert len(members) >= min(2, len(values))
    singles = [cell[0] for cell in members if len(cell) == 1]
    assert singles == sorted(singles)
    many = [cell for cell in members if len(cell) > 1]
    assert len(many) <= 1
    if many:
        assert members[-1] == many[0], "the pooled cell is the last one"
        assert all(values[code] < 3 * sigma for code in many[0])
        rare = [code for code in range(len(values)) if values[code] < 3 * sigma]
        left_out = set(rare) - set(many[0])
        assert len(left_out) <= 1
        if left_out:  # only so that two cells remain
            assert len(members) == 2
            assert all(values[left_out.copy().pop()] >= values[code] for code in many[0])
    else:
        assert sum(value < 3 * sigma for value in values) < 2 or len(values) <= 2


def test_the_pooled_cell_is_a_sum_with_the_noise_of_a_sum() -> None:
    marginal = measured([500, 29, 30, 12, 400], sigma=10.0)
    schema = Schema((column(5), column(3, "d")))
    other = measured([50, 60, 70], sigma=4.0, name="d")
    recoding = compress([marginal, other], schema)
    one, two = compressed_one_ways([marginal, other], recoding, schema)
    assert one.clique == ("c",)
    assert one.values.tolist() == [500.0, 30.0, 400.0, 41.0]
    assert one.deviations.tolist() == pytest.approx([10.0, 10.0, 10.0, 10.0 * 2**0.5])
    assert two.values.tolist() == [50.0, 60.0, 70.0]
    assert two.deviations.tolist() == [4.0, 4.0, 4.0]


def test_the_stated_deviation_is_the_one_seen() -> None:
    rng = np.random.default_rng(5)
    recoding = Recoding({"c": np.array([0, 2, 1, 2, 2])})
    schema = Schema((column(5),))
    draws = np.array(
        [
            compressed_one_ways(
                [measured(np.rint(rng.normal(100, 20, 5)).astype(int).tolist(), 20.0)],
                recoding,
                schema,
            )[0].values
            for _ in range(4000)
        ]
    )
    stated = compressed_one_ways([measured([1, 1, 1, 1, 1], 20.0)], recoding, schema)[0].deviations
    assert draws.std(axis=0) == pytest.approx(stated, rel=0.05)
    assert draws.mean(axis=0) == pytest.approx([100, 100, 300], abs=3)


def test_a_rare_level_of_one_per_cent_survives_a_fair_budget() -> None:
    # 100 of 10,000 rows at rho = 1 under thirds: sigma about 2; at rho = 0.001 about 67.
    schema = Schema((column(3),))
    assert compress([measured([6000, 3900, 100], 2.1)], schema).maps == {}
    assert pooled([6000, 150, 100], sigma=67.0) == ((0,), (1, 2))


def test_a_table_that_does_not_fit_its_declaration_is_a_fault() -> None:
    with pytest.raises(ValueError, match="does not fit its declaration"):
        compress([measured([1, 2, 3])], Schema((column(4),)))


# -- projection --------------------------------------------------------------------------------


@given(
    st.lists(st.integers(-500, 500), min_size=1, max_size=8),
    st.floats(1, 2000),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_projection_satisfies_its_optimality_conditions(values, total: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = np.array(values, dtype=np.float64)
    deviations = rng.uniform(0.5, 5, size=len(values))
    result = project_on_simplex(target, total, deviations)
    assert result.min() >= 0
    assert result.sum() == pytest.approx(total)
    # Karush-Kuhn-Tucker: one price on every positive cell, no cheaper cell left at zero.
    price = (result - target) / deviations**2
    positive = result > 1e-9 * total
    assert price[positive].max() - price[positive].min() < 1e-6 * (1 + abs(price).max())
    if not positive.all():
        assert price[~positive].min() >= price[positive].max() - 1e-6 * (1 + abs(price).max())


def test_projection_equals_a_general_optimiser() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    for _ in range(5):
        target, deviations = rng.normal(5, 10, size=6), rng.uniform(1, 4, size=6)
        found = minimize(
            lambda x, t=target, d=deviations: (((x - t) / d) ** 2).sum(),
            np.full(6, 5.0),
            bounds=[(0, None)] * 6,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 30.0},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert project_on_simplex(target, 30.0, deviations) == pytest.approx(found.x, abs=1e-4)


def test_equal_deviations_make_the_euclidean_projection() -> None:
    target = np.array([5.0, 3.0, -4.0])
    assert project_on_simplex(target, 6.0, np.full(3, 7.0)).tolist() == pytest.approx([4, 2, 0])
    assert project_on_simplex(target, 6.0).tolist() == pytest.approx([4, 2, 0])
    with pytest.raises(ValueError, match="positive"):
        project_on_simplex(target, 0.0)
