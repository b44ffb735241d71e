import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.errors import EstimationError, SchemaError
from core.kinds import Kind
from core.pace.estimate import Estimate
from core.pace.sampler import (
    GAUSSIAN_LABEL,
    gaussian_sample,
    matched_truncation,
    truncated_moments,
)
from core.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("pay", Kind.REAL, lower=0, upper=100, decimals=1),
        Column("age", Kind.INTEGER, lower=20, upper=60),
        Column("hired", Kind.DATE, lower="2020-01-01", upper="2020-12-31"),
        Column("score", Kind.REAL, lower=-1, upper=1),
    )
)
COLUMNS = ("age", "hired", "pay", "score")
CORRELATION = np.array(
    [[1, 0.5, 0.3, 0.0], [0.5, 1, 0.2, -0.4], [0.3, 0.2, 1, 0.1], [0.0, -0.4, 0.1, 1.0]]
)
FIRST_DAY = pd.Timestamp("2020-01-01").toordinal()


def estimate(means, deviations, correlation=CORRELATION, *, rows=5000, columns=COLUMNS):
    d = len(columns)
    half = np.array([20.0, 182.5, 50.0, 1.0])[:d]
    scaled = correlation * np.outer(deviations, deviations) / np.outer(half, half)
    everything = np.ones((d, d), dtype=bool)
    return Estimate(
        columns=columns,
        scaled=scaled,
        scaled_precision=np.linalg.inv(scaled),
        half_widths=half,
        means=np.array(means, dtype=float),
        mean_errors=np.zeros(d),
        rows=rows,
        measured=everything,
        graph=everything,
        entry_sigmas=np.full((d, d), 1e-3),
    )


PLAIN = estimate([40, FIRST_DAY + 180, 50, 0.0], [4.0, 40.0, 10.0, 0.2])


def test_moments_are_those_of_the_estimate_where_bounds_are_far():
    drawn = gaussian_sample(PLAIN, SCHEMA, rows=40_000, seed=1)
    frame = drawn.frame.copy()
    frame["hired"] = [pd.Timestamp(day).toordinal() for day in frame["hired"]]
    values = frame[list(COLUMNS)].to_numpy(dtype=float)
    error = np.array([4.0, 40.0, 10.0, 0.2]) / np.sqrt(40_000)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - PLAIN.means), 6 * error)
    np.testing.assert_allclose(values.std(axis=0), np.sqrt(PLAIN.covariance.diagonal()), rtol=0.03)
    np.testing.assert_allclose(np.corrcoef(values.T), CORRELATION, atol=0.03)
    assert drawn.squeezed == ()
    assert drawn.label == GAUSSIAN_LABEL
    assert "no fairness rule" in drawn.label


def test_columns_keep_kind_order_and_grid():
    frame = gaussian_sample(PLAIN, SCHEMA, rows=500, seed=2).frame
    assert list(frame.columns) == ["pay", "age", "hired", "score"]
    assert frame["age"].dtype == "Int64"
    assert frame["score"].dtype == "float64"
    np.testing.assert_allclose(frame["pay"] * 10, np.rint(frame["pay"] * 10), atol=1e-9)
    assert frame["hired"].str.fullmatch(r"2020-\d\d-\d\d").all()
    assert not frame.isna().any().any()


@pytest.mark.parametrize("factor", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0, 1.4])
def test_no_value_leaves_its_bounds_whatever_the_moments(factor, place):
    low = np.array([20, FIRST_DAY, 0, -1.0])
    high = np.array([60, FIRST_DAY + 365, 100, 1.0])
    found = estimate(low + place * (high - low), factor * np.array([4.0, 40.0, 10.0, 0.2]))
    drawn = gaussian_sample(found, SCHEMA, rows=2000, seed=3)
    frame = drawn.frame
    assert frame["pay"].between(0, 100).all()
    assert frame["age"].between(20, 60).all()
    assert frame["hired"].between("2020-01-01", "2020-12-31").all()
    assert frame["score"].between(-1, 1).all()
    assert (len(drawn.squeezed) == 4) == (factor > 1)
    # Nothing piles up at a bound.
    assert ((frame["score"] == 1) | (frame["score"] == -1)).mean() < 0.01


def test_the_same_seed_gives_the_same_table_and_file_order_does_not_matter():
    first = gaussian_sample(PLAIN, SCHEMA, seed=4)
    again = gaussian_sample(PLAIN, SCHEMA, seed=4)
    other = gaussian_sample(PLAIN, SCHEMA, seed=5)
    turned = gaussian_sample(PLAIN, Schema(tuple(reversed(SCHEMA.columns))), seed=4)
    assert len(first.frame) == 5000
    pd.testing.assert_frame_equal(first.frame, again.frame)
    pd.testing.assert_frame_equal(first.frame, turned.frame[first.frame.columns])
    assert not first.frame["score"].equals(other.frame["score"])
    assert gaussian_sample(PLAIN, SCHEMA, rows=0).frame.shape == (0, 4)


def test_truncated_moments_agree_with_scipy():
    location = np.array([0.0, -2.0, 3.0, 0.5, 1.5])
    scale = np.array([1.0, 1.0, 0.8, 3.0, 0.3])
    low, high = np.zeros(5), np.ones(5)
    mean, deviation = truncated_moments(location, scale, low, high)
    law = stats.truncnorm((low - location) / scale, (high - location) / scale, location, scale)
    np.testing.assert_allclose(mean, law.mean(), rtol=1e-9)
    np.testing.assert_allclose(deviation, law.std(), rtol=1e-7)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.02, 0.98), st.floats(0.001, 0.28))
def test_mean_and_variance_are_matched_where_a_truncated_normal_has_them(mean, deviation):
    # A truncated normal is no wider than the truncated exponential law of its mean, whose
    # variance is about 1/12 - tilt²/240 near the middle; stay clear of that.
    tilt = 12 * (mean - 0.5)
    near_middle = np.sqrt(max(1 / 12 - tilt**2 / 240, 0.15**2))
    deviation = min(deviation, 0.9 * near_middle, 0.8 * min(mean, 1 - mean))
    ends = np.array([0.0]), np.array([1.0])
    location, scale = matched_truncation(np.array([mean]), np.array([deviation]), *ends)
    found_mean, found_deviation = truncated_moments(location, scale, *ends)
    assert found_mean[0] == pytest.approx(mean, abs=1e-6)
    assert found_deviation[0] == pytest.approx(deviation, rel=1e-6)


def test_singular_correlations_and_single_columns_work():
    twins = np.ones((2, 2)) * (1 - 1e-9) + 1e-9 * np.eye(2)
    found = estimate([40, FIRST_DAY + 100], [4.0, 30.0], twins, columns=("age", "hired"))
    frame = gaussian_sample(found, SCHEMA, rows=300).frame
    days = np.array([pd.Timestamp(day).toordinal() for day in frame["hired"]])
    assert np.corrcoef(frame["age"].to_numpy(dtype=float), days)[0, 1] > 0.99
    one = estimate([40.0], [4.0], np.eye(1), columns=("age",))
    assert gaussian_sample(one, SCHEMA, rows=10).frame["age"].between(20, 60).all()


def test_bad_requests_are_refused():
    with pytest.raises(EstimationError, match="whole number of at least 0"):
        gaussian_sample(PLAIN, SCHEMA, rows=-1)
    with pytest.raises(SchemaError):
        gaussian_sample(PLAIN, SCHEMA.select(["age", "pay"]))
