"""The one-shot methods: their noise, their clips, their sensitivities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from core.pace import baselines
from core.pace.baselines import (
    clip_candidates,
    free_weight,
    matrix_of,
    rounded_weight,
    triangle_sensitivity,
)
from core.pace.estimate import scaled_measurements
from core.pace.measurements import Measurements
from core.private import sensitivity
from tests.core.pace.tables import ADD, BOTH, REPLACE, correlated, released


def noise_of(release):
    """Sigma of products and of squares, as sums."""
    squares = release.pairs[:, 0] == release.pairs[:, 1]
    return float(release.sigmas[~squares][0]), float(release.sigmas[squares][0])


@pytest.mark.parametrize("columns", [2, 5, 6])
def test_plain_noise_is_the_papers(columns):
    """Sigma = sqrt(2) d / sqrt(2 rho) where rows are replaced; its edge over the tight one."""
    values = correlated(100, columns, 0)
    plain = noise_of(released(values, "1/2", method="ssp", relation=REPLACE))
    assert plain == pytest.approx((math.sqrt(2) * columns,) * 2, rel=1e-6)
    added = released(values, "1/2", method="ssp", relation=ADD)
    left = 1 - float(added.rows.rho) * 2
    assert noise_of(added) == pytest.approx((columns / math.sqrt(left),) * 2, rel=1e-6)
    assert added.provenance.forfeited > Fraction(1, 10)


@pytest.mark.parametrize("columns", [2, 6, 11])
def test_the_tight_triangle(columns):
    values = correlated(100, columns, 0)
    products, squares = noise_of(released(values, "1/2", method="ssp_tight", relation=REPLACE))
    assert products == pytest.approx(columns, rel=1e-6)
    # Squares are sharper for nothing, up to the rounding of their weight.
    assert squares <= products * math.sqrt(2 / (columns + 1)) * 1.07
    assert squares >= products * math.sqrt(2 / (columns + 1))
    added = released(values, "1/2", method="ssp_tight", relation=ADD)
    left = 1 - float(added.rows.rho) * 2
    expected = math.sqrt(columns * (columns + 1) / 2 / left)
    assert noise_of(added) == pytest.approx((expected, expected), rel=1e-6)


@pytest.mark.parametrize("columns", [1, 2, 7, 50, 400])
def test_free_squares_are_free(columns):
    weight = free_weight(columns, REPLACE)
    assert weight >= 1
    assert sensitivity.triangle(columns, REPLACE, 1, weight**2) == columns**2 or columns == 1
    dearer = weight + Fraction(1, baselines.WEIGHT_STEPS)
    assert sensitivity.triangle(columns, REPLACE, 1, dearer**2) > columns**2
    assert free_weight(columns, ADD) == 1


def test_weights_are_short_fractions():
    for precision in (0.1, 1.0, 2.0, 17.3, 1e4):
        weight = rounded_weight(precision)
        assert weight.denominator <= 512
        assert weight.numerator <= 512
        assert weight**2 <= max(precision, 1.0)


@pytest.mark.parametrize("columns", [1, 2, 3, 13, 260])
def test_clip_candidates_fall_from_d_to_one(columns):
    candidates = clip_candidates(columns)
    assert candidates[0] == columns
    assert min(candidates) >= 1
    ratios = [float(b / a) for a, b in itertools.pairwise(candidates)]
    assert ratios == pytest.approx([2**-0.5] * len(ratios), rel=1e-2)
    assert columns * 2 ** (-len(candidates) / 2) < 1.01


def rows_within(columns, clip, count, seed):
    """Rows in the box with squared norm at most the clip, many of them at its edge."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (count, columns))
    rows[: count // 2] = generator.choice([-1, 0, 1], (count // 2, columns))
    norms = np.sqrt((rows**2).sum(axis=1))
    return rows * np.minimum(1, math.sqrt(clip) / np.maximum(norms, 1e-9))[:, None]


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("columns", "clip"), [(2, 1.0), (3, 1.5), (4, 2.0), (4, 2.83)])
def test_the_clipped_triangle_never_changes_by_more(columns, clip, relation):
    weight = rounded_weight(max(1.0, clip / 8))
    bound = triangle_sensitivity(columns, relation, Fraction(clip), weight)
    rows = rows_within(columns, clip, 400, columns)
    upper = np.triu_indices(columns)
    scale = np.where(upper[0] == upper[1], float(weight), 1.0)
    products = (rows[:, :, None] * rows[:, None, :])[:, upper[0], upper[1]] * scale
    if relation is ADD:
        worst = (products**2).sum(axis=1).max()
    else:
        worst = max(((products - one) ** 2).sum(axis=1).max() for one in products)
    assert 0.6 * float(bound) < worst <= float(bound) * (1 + 1e-9)


def test_a_clip_at_d_clips_nothing_and_costs_what_the_box_does():
    for relation in BOTH:
        box = triangle_sensitivity(5, relation, Fraction(5), Fraction(1))
        assert box == sensitivity.triangle(5, relation)
        assert triangle_sensitivity(5, relation, Fraction(2), Fraction(1)) < box


def test_a_small_clip_is_chosen_for_short_rows_and_none_for_corners():
    values = correlated(3000, 60, 1, scale=0.1)
    short = [released(values, "1/2", method="ssp_clip_sure", seed=seed) for seed in range(5)]
    assert np.median([float(release.clip.squared) for release in short]) <= 6
    for release in short:
        assert release.draws[0].clip_squared == release.clip.squared
    tight = noise_of(released(values, "1/2", method="ssp_tight"))
    assert np.median([noise_of(release)[0] for release in short]) < tight[0] / 5
    corner = released(np.sign(correlated(3000, 30, 1)), "100", method="ssp_clip_sure")
    assert corner.clip.squared == 30
    assert corner.draws[0].clip_squared is None


@pytest.mark.parametrize("method", ["ssp_clip_sure", "adaptive_cov"])
def test_the_clip_has_its_share(method):
    release = released(correlated(500, 6, 2), "1", method=method, relation=REPLACE)
    share = {"ssp_clip_sure": baselines.CLIP_SHARE, "adaptive_cov": baselines.ADAPTIVE_SHARE}
    assert share[method] * Fraction(999, 1000) <= release.clip.rho <= share[method]
    assert release.clip.squared in release.clip.candidates


def test_matrices_of_measurements():
    pooled = Measurements(3, [[0, 0], [0, 2], [2, 0]], [1.0, 2.0, 4.0], [1.0, 4.0, 4.0])
    values, sigmas = matrix_of(pooled)
    assert values.tolist() == [[1, 0, 3], [0, 0, 0], [3, 0, 0]]
    assert sigmas[0, 2] == sigmas[2, 0] == pytest.approx(8**-0.5)
    assert np.isinf(sigmas[1, 1])


def test_sums_are_divided_by_the_rows():
    release = released(correlated(400, 3, 4), "1000000", method="ssp_tight")
    pooled = scaled_measurements(release)
    np.testing.assert_allclose(pooled.values * release.rows.value, release.sums, rtol=1e-12)
    np.testing.assert_allclose(
        pooled.precisions**-0.5 * release.rows.value, release.sigmas, rtol=1e-12
    )
