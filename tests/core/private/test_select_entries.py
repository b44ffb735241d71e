"""Selection among many candidates: drawn by blocks, priced and distributed as if drawn at once."""

from __future__ import annotations

import decimal
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from core.errors import SchemaError
from core.moments import EntryReference
from core.private import noise as noise_module
from core.private.noise import BLOCKED_FROM, OpenDPNoise, block_slack
from core.private.scales import selection_scale
from tests.core.private.grants import ONE, SilentNoise, frame_of, make, numeric_table

NOISE = OpenDPNoise()
GRID = 2**24


def softmax(scores, scale):
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


class Exact:
    """Stands in for OpenDP's measurement: keeps the argument, and answers what it is told."""

    def __init__(self, *answers):
        self.answers, self.arguments = list(answers), []

    def __call__(self, scores):
        self.arguments.append(scores.copy())
        return self.answers.pop(0)


def blocked_law(scores, scale):
    """Probability of every candidate, from the arguments that the two draws are given."""
    width = math.isqrt(scores.size - 1) + 1
    probabilities = np.empty(scores.size)
    for block in range(math.ceil(scores.size / width)):
        measure = Exact(block, 0)
        first = noise_module._select_by_blocks(measure, scores, scale)
        assert first == block * width
        outer, inner = measure.arguments
        inside = softmax(inner, scale)
        probabilities[first : first + inner.size] = softmax(outer, scale)[block] * inside
    return probabilities


def random_scores(generator, size, scale, spread):
    return np.rint(generator.normal(size=size) * spread * scale).astype(np.int64)


@pytest.mark.parametrize("spread", [0.0, 0.3, 5.0, 200.0])
@pytest.mark.parametrize("size", [256, 257, 1000, 1024])
def test_both_draws_together_are_the_exponential_mechanism(size, spread):
    generator = np.random.default_rng(size)
    scale = 3.7 * GRID
    scores = random_scores(generator, size, scale, spread)
    law = blocked_law(scores, scale)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    # Rounding a block's value moves a probability by a factor of exp(1 / (2 scale)) at most.
    np.testing.assert_allclose(law, softmax(scores, scale), rtol=1.1 / scale + 1e-12, atol=1e-250)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([256, 300, 700]),
    scale=st.floats(5e3, 1e9),
    spread=st.floats(0.0, 50.0),
    sensitivity=st.sampled_from([2**14, 2**20, 2**24]),
)
def test_the_price_covers_the_worst_ratio_between_neighbours(
    seed, size, scale, spread, sensitivity
):
    """Bounded range: the spread of log ratios is at most eps = 2 (sensitivity + slack) / scale."""
    generator = np.random.default_rng(seed)
    scores = random_scores(generator, size, scale, spread)
    moves = generator.choice([-sensitivity, 0, sensitivity], size)
    slack = block_slack(size, sensitivity, scale)
    assert slack is not None
    logs = [log_law(table, scale) for table in (scores, scores + moves)]
    ratios = logs[0] - logs[1]
    limit = 2 * (sensitivity + slack) / scale
    assert ratios.max() - ratios.min() <= limit * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("exponent", [12, 24, 40, 52])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_block_values_are_as_exact_as_the_slack_says(exponent, spread):
    """Against sixty digits: no value is off by more than half of the declared slack."""
    size, scale = 1024, 1.37 * 2.0**exponent
    generator = np.random.default_rng(exponent)
    scores = random_scores(generator, size, scale, spread)
    measure = Exact(0, 0)
    noise_module._select_by_blocks(measure, scores, scale)
    slack = block_slack(size, 2**52, scale)
    with decimal.localcontext(decimal.Context(prec=60)):
        exact_scale = decimal.Decimal(scale)
        for block, value in enumerate(measure.arguments[0].tolist()):
            part = scores[32 * block : 32 * block + 32].tolist()
            total = sum((decimal.Decimal(score) / exact_scale).exp() for score in part)
            off = abs(decimal.Decimal(value) - exact_scale * total.ln())
            assert 2 * off <= slack - 1


def log_law(scores, scale, values_of=None):
    """Logarithm of the law up to a constant: it does not underflow.

    ``values_of`` plants other block values than those that the draw is given.
    """
    width = math.isqrt(scores.size - 1) + 1
    if values_of is None:
        measure = Exact(0, 0)
        noise_module._select_by_blocks(measure, scores, scale)
        values = measure.arguments[0]
    else:
        values = values_of(scores, np.arange(0, scores.size, width))
    logs = np.empty(scores.size)
    for block, start in enumerate(range(0, scores.size, width)):
        part = scores[start : start + width]
        highest = part.max()
        inside = (part - highest) / scale
        logs[start : start + width] = values[block] / scale + inside
        logs[start : start + width] -= math.log(np.exp(inside).sum())
    return logs


def coarse(scores, starts):
    """Rounded to whole sensitivities of 1000."""
    return 1000 * np.rint(np.maximum.reduceat(scores, starts) / 1000 + 0.5)


@pytest.mark.parametrize("values_of", [np.maximum.reduceat, np.add.reduceat, coarse])
def test_other_block_values_break_the_price(values_of):
    """The check of the ratios has power: plausible block values of another kind fail it."""
    scale = sensitivity = 1000
    base = np.zeros(256, dtype=np.int64)
    moved = base.copy()
    moved[1:16] -= sensitivity
    moved[0] += sensitivity
    moved[16:] -= sensitivity
    limit = 2 * (sensitivity + 3) / scale

    def spread(values_of):
        ratios = log_law(moved, scale, values_of) - log_law(base, scale, values_of)
        return ratios.max() - ratios.min()

    assert spread(None) <= limit
    assert spread(values_of) > 1.05 * limit


@pytest.mark.parametrize("size", [1, 2, BLOCKED_FROM - 1])
def test_few_candidates_are_drawn_at_once(size):
    assert block_slack(size, GRID, 10.0 * GRID) is None


def test_coarse_scores_are_drawn_at_once():
    """On the grid of pair scores half a unit would be felt."""
    assert block_slack(1000, 1024, 5000.0) is None
    assert block_slack(1000, 2**14, 5000.0) is not None


def test_the_slack_grows_with_the_scale_and_never_falls_below_two():
    assert block_slack(33_930, GRID, 1.0) == 3
    assert block_slack(33_930, GRID, 2.0**52) > block_slack(33_930, GRID, 2.0**48) > 3
    assert block_slack(33_930, 2 * GRID, 2.0**53) <= 2 * GRID // 4096


@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 2000), Fraction(10**6)])
def test_the_debit_is_that_of_one_draw_with_the_slack(rho):
    scores = np.arange(1000, dtype=np.int64)
    draw = NOISE.select(scores, sensitivity=GRID, rho=rho)
    slack = block_slack(1000, GRID, selection_scale(GRID, rho))
    exact = Fraction(GRID + slack) ** 2 / (2 * Fraction(draw.scale) ** 2)
    assert exact <= draw.rho <= rho
    assert draw.rho >= rho * Fraction(999, 1000)
    plain = selection_scale(GRID, rho)
    assert plain < draw.scale <= plain * (1 + 1 / 4000)


def test_draws_among_many_follow_the_exponential_mechanism():
    """Real noise, 400 candidates in four kinds: frequencies against softmax."""
    draws, rho = 3_000, Fraction(1, 8)
    scale = selection_scale(GRID, rho)
    kinds = np.arange(400) % 4
    scores = np.rint(kinds * 0.9 * scale).astype(np.int64)
    scores[7] = int(6 * scale)  # one stands out of its kind
    groups = np.where(np.arange(400) == 7, 4, kinds)
    counts = np.zeros(5)
    for _ in range(draws):
        counts[groups[NOISE.select(scores, sensitivity=GRID, rho=rho).index]] += 1

    def p_value(law):
        expected = np.bincount(groups, weights=law) * draws
        return chi2.sf(((counts - expected) ** 2 / expected).sum(), 4)

    assert p_value(softmax(scores, scale)) > 1e-6
    assert p_value(softmax(scores, 1.2 * scale)) < 1e-6
    assert p_value(softmax(scores, scale / 1.2)) < 1e-6


def test_a_lone_winner_is_found_and_cheap():
    """What the blocks are for: one candidate far above 33,929 others."""
    scores = np.zeros(33_930, dtype=np.int64)
    scores[20_000] = 100 * GRID
    found = {NOISE.select(scores, sensitivity=GRID, rho=Fraction(1, 2)).index for _ in range(30)}
    assert found == {20_000}


def test_blocks_of_extreme_scores_stay_exact():
    scores = np.full(300, -(2**54), dtype=np.int64)
    scores[123] = 2**54
    assert NOISE.select(scores, sensitivity=GRID, rho=ONE).index == 123


# -- the grant's side ----------------------------------------------------------------------


def test_no_candidates_named_means_the_whole_triangle():
    noise = SilentNoise()
    grant, source, _ = make(numeric_table(), noise=noise)
    frame = frame_of()
    reference = EntryReference(frame, np.diag([10.0, 3.0, 0.5]))
    chosen = grant.select_entry(None, reference, Fraction(1, 2))
    names = frame.columns
    triangle = list(itertools.combinations_with_replacement(names, 2))
    same = grant.select_entry(triangle, reference, Fraction(1, 2))
    assert chosen == same
    np.testing.assert_array_equal(noise.calls[0][0], noise.calls[1][0])
    assert noise.calls[0][0].size == 6
    assert source.accesses == 1


def test_an_empty_list_of_candidates_is_refused():
    grant, source, _ = make(numeric_table())
    with pytest.raises(SchemaError, match="candidates"):
        grant.select_entry([], EntryReference(frame_of(), np.eye(3)), ONE)
    assert (source.accesses, grant.debited) == (0, 0)
