"""The audit's own arithmetic: bounds that hold, attacks that see, and claims at their edge."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from core.private.zcdp import guessing_bound
from tests.privacy.audit_scenes import log_ratio
from tests.privacy.auditing import (
    Learnt,
    Outcomes,
    Verdict,
    choose_attack,
    finest_bit,
    judge,
    lattice_excess,
    mu_bound,
    possible,
    rate_bounds,
    rho_bound,
)
from tests.privacy.replay import Draw, Recorder


def outcomes(numbers, *, likelihood=None, events=None, claimed=Fraction(1, 2)):
    numbers = np.asarray(numbers, dtype=float)
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    likelihood = numbers[:, 0] if likelihood is None else likelihood
    events = np.full(len(numbers), "") if events is None else np.asarray(events)
    return Outcomes(likelihood, numbers, events, claimed)


def normals(generator, runs, mu):
    """On one grid for every mu: a float sum ``mu + noise`` would show mu in its last bits."""
    return outcomes(np.rint(generator.normal(mu, 1.0, runs) * 1024) / 1024)


# -- bounds on rates -----------------------------------------------------------------------


@pytest.mark.parametrize(("fired", "runs"), [(0, 40), (3, 40), (40, 40), (997, 2000)])
def test_bounds_are_those_of_clopper_and_pearson(fired, runs):
    above, below = rate_bounds((fired, fired), (runs, runs), alarm=1e-6)
    found = stats.binomtest(fired, runs).proportion_ci(1 - 1e-6, method="exact")
    np.testing.assert_allclose((below, above), (found.low, found.high), rtol=1e-9)


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("runs", [5, 60])
def test_bounds_fail_together_no_more_often_than_they_say(runs, rate):
    """Exactly, by summing over everything that can be counted."""
    counts = np.arange(runs + 1)
    mass = stats.binom.pmf(counts, runs, rate)
    above, below = rate_bounds((counts, counts), (runs, runs), alarm=0.1)
    assert mass[above < rate].sum() + mass[below > rate].sum() <= 0.1 + 1e-12


def test_distances_of_normals():
    assert mu_bound(stats.norm.sf(1), stats.norm.sf(-1)) == pytest.approx(2)
    assert mu_bound(0.5, 0.4) == 0


@pytest.mark.parametrize(("rho", "rate"), [(0.1, 0.03), (2.0, 1e-4), (0.5, 0.9)])
def test_the_bound_on_rho_inverts_the_guessing_bound(rho, rate):
    assert rho_bound(rate, guessing_bound(rho, rate)) == pytest.approx(rho, rel=1e-3)
    assert rho_bound(rate, rate) == 0


@pytest.mark.parametrize("rho", [0.1, 0.5, 2.0])
def test_the_gaussian_mechanism_is_possible_and_no_more_than_that(rho):
    rates = stats.norm.sf(np.linspace(-2, 4, 13))
    mu = math.sqrt(2 * rho)
    for rate in rates:
        assert possible(rho, rate, stats.norm.sf(stats.norm.isf(rate) - mu))
    middle = stats.norm.sf(mu)
    assert not possible(rho, middle, 1 - middle)  # twice that mu


def test_the_exponential_mechanism_is_possible_though_its_mu_is_beyond_a_gaussian():
    """Two candidates that move apart by the whole range: epsilon = 2 at rho = 0.5."""
    rate = 1 / (1 + math.e)
    assert float(mu_bound(rate, 1 - rate)) == pytest.approx(1.2320, abs=1e-4)
    assert possible(Fraction(1, 2), rate, 1 - rate)
    twice = 1 / (1 + math.e**2)
    assert not possible(Fraction(1, 2), twice, 1 - twice)


# -- whole-numbered noise ------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "cells", "step"), [(0.8, 1, 1), (1.3, 2, 1), (1.1, 2, 3)])
def test_lattice_excess_by_enumeration(sigma, cells, step):
    """The sharpest test rejects where the likelihood ratio is large: all of them, one by one."""
    support = range(-9, 10)
    mass = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in support}
    whole = sum(mass.values())
    sums = {}
    for noise in itertools.product(support, repeat=cells):
        probability = math.prod(mass[z] / whole for z in noise)
        sums[sum(noise)] = sums.get(sum(noise), 0.0) + probability
    best = 0.0
    for cut in range(-3, 10):
        false = sum(p for total, p in sums.items() if total >= cut)
        true = sum(p for total, p in sums.items() if total + step * cells >= cut)
        if false > 1e-9 and 1 - true > 1e-9:
            best = max(best, float(mu_bound(false, true)))
    expected = best / (step * math.sqrt(cells) / sigma)
    assert lattice_excess(sigma, cells, step) == pytest.approx(max(expected, 1), rel=1e-4)


def test_wide_noise_is_a_gaussian():
    assert lattice_excess(1e6, 1, 1) == 1
    assert 1 < lattice_excess(20.0, 1, 1) < 1.0002


# -- views ---------------------------------------------------------------------------------


def test_the_finest_bit_of_known_numbers():
    found = finest_bit(outcomes([3.0, 2.0, 0.75, -0.125, 2.0**-60, 0.0]))
    assert found.tolist() == [0, -1, 2, 3, 60, -2000]
    assert finest_bit(outcomes([[4.0, 0.5]])).tolist() == [1]


def test_log_ratios_are_those_of_the_laws():
    recorder = Recorder(seed=1)
    low, high = np.array([3, 7]), np.array([4, 5])
    recorder.gaussian(low, sensitivity_squared=Fraction(5), rho=Fraction(1, 4))
    recorder.select(low, sensitivity=2, rho=Fraction(1, 4))
    gaussian, select = recorder.draws
    sigma, values = gaussian.answer.sigma, gaussian.answer.values

    def density(means):
        return stats.norm.logpdf(values, means, sigma).sum()

    other = Draw("gaussian", high, Fraction(5), Fraction(1, 4), gaussian.answer)
    found = log_ratio(gaussian, other, gaussian.answer)
    assert found == pytest.approx(density(high) - density(low))
    # Candidate i with probability proportional to exp(eps * score / (2 * sensitivity)).
    epsilon = math.sqrt(8 / 4)
    weights = [np.exp(epsilon * scores / 4) for scores in (low, high)]
    odds = [part[select.answer.index] / part.sum() for part in weights]
    other = Draw("select", high, Fraction(2), Fraction(1, 4), select.answer)
    found = log_ratio(select, other, select.answer)
    assert found == pytest.approx(math.log(odds[1] / odds[0]), rel=1e-6)


def test_a_learnt_direction_finds_the_difference_of_two_numbers_with_the_same_noise():
    generator = np.random.default_rng(1)
    noise = generator.normal(size=(2, 300))
    sides = tuple(
        outcomes(np.column_stack([noise[side], noise[side] + 0.1 * side])) for side in (0, 1)
    )
    learnt = Learnt(sides)
    assert learnt(sides[1]).min() > learnt(sides[0]).max()


def test_a_learnt_direction_weighs_events():
    sides = (
        outcomes(np.zeros(100), events=["left"] * 90 + ["right"] * 10),
        outcomes(np.zeros(100), events=["left"] * 10 + ["right"] * 90),
    )
    fresh = outcomes(np.zeros(3), events=["left", "right", "never seen"])
    low, high, unseen = Learnt(sides)(fresh)
    assert low == -high == pytest.approx(math.log(10.5 / 90.5))
    assert unseen == 0


def test_an_event_on_the_first_table_alone_is_an_attack_too():
    generator = np.random.default_rng(2)
    sides = tuple(
        outcomes(np.where(generator.random(1000) < share, 2.0**-60, 1.0), likelihood=np.zeros(1000))
        for share in (0.3, 0.0)
    )
    attack = choose_attack(sides)
    assert attack.name in {"finest bit", "learnt direction"}
    assert attack.swapped
    assert attack.counts(sides)[0] == 0
    verdict = judge(sides, sides, gaussian=False)
    assert not verdict.passes


# -- verdicts ------------------------------------------------------------------------------


def test_a_claim_that_just_holds_is_refuted_no_more_often_than_it_says():
    """mu = 1 at rho = 1/2, the edge of the Gaussian bound, at a false alarm of 5 %."""
    generator = np.random.default_rng(3)
    audits, refuted = 200, 0
    for _ in range(audits):
        learn, fresh = (
            (normals(generator, runs, 0.0), normals(generator, runs, 1.0)) for runs in (100, 400)
        )
        verdict = judge(learn, fresh, gaussian=True, alarm=0.05)
        refuted += verdict.mu > verdict.mu_claimed
    assert stats.binom.sf(refuted - 1, audits, 0.05) > 0.01


def test_more_than_was_claimed_is_refuted_and_measured():
    generator = np.random.default_rng(4)
    learn, fresh = (
        (normals(generator, runs, 0.0), normals(generator, runs, 2.0)) for runs in (500, 2000)
    )
    verdict = judge(learn, fresh, gaussian=True)
    assert not verdict.passes
    assert 1.6 < verdict.mu < 2 < verdict.mu / 0.7
    assert verdict.true_positive > verdict.permitted or verdict.rho < 0.5
    assert judge(learn, fresh, gaussian=True).claimed == Fraction(1, 2)


def test_selection_is_held_to_the_region_of_rho_alone():
    rates = {"false_positive": 0.28, "true_positive": 0.72}
    facts = {"claimed": Fraction(1, 2), "lattice": 1.0, "runs": 1, "view": ""}
    assert Verdict(gaussian=False, **facts, **rates).passes
    assert not Verdict(gaussian=True, **facts, **rates).passes


def test_nothing_may_be_seen_where_nothing_was_claimed():
    facts = {"claimed": Fraction(0), "gaussian": True, "lattice": 1.0, "runs": 1, "view": ""}
    assert Verdict(false_positive=0.3, true_positive=0.2, **facts).passes
    seen = Verdict(false_positive=0.3, true_positive=0.31, **facts)
    assert not seen.passes
    assert seen.share == math.inf
