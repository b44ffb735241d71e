from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from core.errors import BudgetError
from core.private.noise import OpenDPNoise
from core.releases import Relation, Unit
from core.simulation import TABLE_SIGMA, SeededNoise, discrete_gaussian, simulated_vault
from tests.core.private.tables import random_coded

ONE = Fraction(1)


def discrete_mass(sigma):
    reach = int(np.ceil(15 * sigma)) + 2
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-(support.astype(float) ** 2) / (2 * sigma**2))
    return support, mass / mass.sum()


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 4.0, TABLE_SIGMA, TABLE_SIGMA + 0.01, 80.0])
def test_discrete_gaussian_follows_its_law(sigma):
    drawn = discrete_gaussian(np.random.default_rng(5), sigma, (60_000,))
    support, mass = discrete_mass(sigma)
    assert drawn.dtype == np.int64
    observed = np.bincount(drawn - support[0], minlength=support.size)
    expected = mass * drawn.size
    # Cells with few expected draws are pooled, from both ends.
    cells = np.clip(np.cumsum(expected) // 20, 0, drawn.size // 20 - 1).astype(int)
    pooled = np.bincount(cells, expected), np.bincount(cells, observed)
    kept = pooled[0] >= 5
    statistic = ((pooled[1] - pooled[0])[kept] ** 2 / pooled[0][kept]).sum()
    assert stats.chi2.sf(statistic, max(kept.sum() - 1, 1)) > 1e-4
    assert drawn.mean() == pytest.approx(0, abs=5 * sigma / np.sqrt(drawn.size) + 1e-9)


def test_a_wrong_sigma_is_told_apart():
    drawn = discrete_gaussian(np.random.default_rng(5), 4.2, (60_000,))
    assert stats.chi2.sf(60_000 * drawn.var() / 16.0, 60_000) < 1e-6


@pytest.mark.parametrize("rho", [Fraction(1, 100), Fraction(1, 3), Fraction(5)])
def test_scales_and_debits_are_those_of_the_real_noise(rho):
    values, scores = np.arange(6).reshape(2, 3), np.array([3, 1, 2])
    draws = [
        (
            noise.gaussian(values, sensitivity_squared=Fraction(7), rho=rho),
            noise.select(scores, sensitivity=2, rho=rho),
        )
        for noise in (SeededNoise(1), OpenDPNoise())
    ]
    for seeded, real in zip(*draws, strict=True):
        scale = "sigma" if hasattr(seeded, "sigma") else "scale"
        assert getattr(seeded, scale) == pytest.approx(getattr(real, scale), rel=1e-9)
        assert float(seeded.rho) == pytest.approx(float(real.rho), rel=1e-9)
        assert rho * Fraction(999, 1000) <= seeded.rho <= rho
    assert draws[0][0].values.shape == (2, 3)


def test_selection_is_the_exponential_mechanism():
    scores, rho = np.array([0, 1024, 2048]), Fraction(1, 8)
    noise = SeededNoise(3)
    chosen = [noise.select(scores, sensitivity=1024, rho=rho).index for _ in range(20_000)]
    weights = np.exp(scores / 2048)  # eps = sqrt(8 rho) = 1: exp(eps * score / (2 * 1024))
    expected = weights / weights.sum() * len(chosen)
    assert stats.chisquare(np.bincount(chosen), expected).pvalue > 1e-4


def test_same_seed_same_answers():
    values = np.zeros(50, dtype=np.int64)
    first, again, other = (
        SeededNoise(seed).gaussian(values, sensitivity_squared=ONE, rho=ONE / 100).values
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_impossible_budgets_are_refused_as_by_the_real_noise():
    noise = SeededNoise(0)
    with pytest.raises(BudgetError):
        noise.gaussian(np.zeros(1, dtype=np.int64), sensitivity_squared=Fraction(0), rho=ONE)
    with pytest.raises(BudgetError):
        noise.select(np.zeros(1, dtype=np.int64), sensitivity=1, rho=Fraction(0))


@pytest.mark.parametrize("relation", list(Relation))
def test_a_simulated_vault_stamps_everything(relation):
    table = random_coded({"a": 3, "b": 2}, 40, 0)
    vault = simulated_vault(table, seed=1, relation=relation, cap="2")
    grant = vault.grant(Fraction(3, 2), "tree", "r1")
    grant.counts([("a", "b")], Fraction(1, 2))
    where = grant.provenance()
    assert where.simulated
    assert where.flags == ("SIMULATED, NOT PRIVATE",)
    assert "not private" in where.noise
    assert where.relation is relation
    assert vault.population.cap == 2
    assert vault.population.simulated


def test_a_simulated_vault_takes_a_unit():
    vault = simulated_vault(random_coded({"a": 3}, 40, 0), seed=1, unit=Unit(4))
    assert vault.grant(ONE, "tree", "r1").provenance().unit == Unit(4)


def test_vaults_do_not_share_ledgers():
    table = random_coded({"a": 3}, 40, 0)
    for _ in range(2):
        assert simulated_vault(table, seed=1, cap=1).grant(ONE, "tree", "r1") is not None
