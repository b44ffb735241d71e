"""Predicted errors against errors that simulations have."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from core.errors import SchemaError
from core.pace.estimate import estimate
from core.pace.preview import plain_noise_error, preview, preview_sentences
from core.releases import Relation, Unit
from core.schema import Column, Kind, Schema
from tests.core.pace.tables import ADD, BOTH, REPLACE, released


def paired(rows, columns, seed):
    """The working assumption: deviation of a third, each column correlates with one other."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(rows, columns))
    values[:, 1::2] = 0.5 * values[:, ::2] + np.sqrt(0.75) * values[:, 1::2]
    return values / 3


def unclipped_noise_error(release, values):
    truth = values.T @ values / len(values)
    noisy = np.zeros_like(truth)
    rows, columns = release.pairs[:, 0], release.pairs[:, 1]
    noisy[rows, columns] = noisy[columns, rows] = release.sums / release.rows.value
    return np.linalg.norm(noisy - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("columns", "rho"), [(6, "1/10"), (20, "1")])
def test_plain_noise_is_predicted(columns, rho, relation):
    """A pair of correlated columns counts as one edge here, as two in the assumption."""
    values = paired(4000, columns, 1)
    found = preview(
        columns, Fraction(rho), expected_rows=4000, relation=relation, private_means=False
    )
    errors = [
        unclipped_noise_error(
            released(values, rho, method="ssp", relation=relation, seed=seed), values
        )
        for seed in range(20)
    ]
    assert np.mean(errors) == pytest.approx(found.plain_error, rel=0.2)


def test_without_correlations_the_error_is_what_they_are():
    found = preview(10, Fraction(1), expected_rows=100)
    chance = 10 * 7 / 100 / (10 * 1.5)
    assert found.no_correlations_error == pytest.approx(np.sqrt(0.5 / 1.5 + chance))
    assert preview(1, Fraction(1), expected_rows=100).no_correlations_error == 0


@pytest.mark.parametrize("relation", BOTH)
def test_the_loop_is_predicted_to_within_a_factor_of_two(relation):
    values = paired(20_000, 40, 2)
    truth = values.T @ values / len(values)
    found = preview(
        40, Fraction(1, 5), expected_rows=20_000, relation=relation, private_means=False
    )
    errors = [
        np.linalg.norm(
            estimate(released(values, "1/5", method="pace", relation=relation, seed=seed)).scaled
            - truth
        )
        / np.linalg.norm(truth)
        for seed in range(4)
    ]
    assert 0.5 < np.median(errors) / found.pace_error < 2


def test_more_budget_rows_or_fewer_columns_are_never_worse():
    base = preview(30, Fraction(1, 10), expected_rows=1000)
    for better in (
        preview(30, Fraction(1), expected_rows=1000),
        preview(30, Fraction(1, 10), expected_rows=5000),
        preview(10, Fraction(1, 10), expected_rows=1000),
        preview(30, Fraction(1, 10), expected_rows=1000, private_means=False),
    ):
        assert better.plain_error < base.plain_error
        assert better.pace_error <= base.pace_error
        assert better.entry_noise < base.entry_noise
    assert preview(30, Fraction(1, 10), expected_rows=1000, unit_rows=3).plain_error > (
        2.9 * base.plain_error
    )


def test_a_public_count_has_no_error():
    assert preview(5, Fraction(1), expected_rows=100, relation=REPLACE).count_error == 0
    assert preview(5, Fraction(1), expected_rows=100, relation=ADD).count_error > 0


@dataclass(frozen=True)
class Terms:
    relation: Relation = ADD
    unit: Unit = field(default_factory=Unit)
    expected_rows: int | None = 1000


@dataclass(frozen=True)
class Settings:
    columns: tuple[str, ...] = ("a", "b")
    rho: Fraction = Fraction(1)
    method: str = "pace_auto"
    means_setting: object = "private"


SCHEMA = Schema(
    (
        Column("a", Kind.REAL, lower=0, upper=1, bins=2),
        Column("b", Kind.REAL, lower=0, upper=1, bins=2),
        Column("c", Kind.CATEGORICAL, categories=("x", "y")),
    )
)


def test_sentences():
    words = " ".join(preview_sentences(Settings(), SCHEMA, Terms()))
    assert "2 columns (3 entries)" in words
    assert "would be about as close" not in words
    poor = " ".join(preview_sentences(Settings(rho=Fraction(1, 10**6)), SCHEMA, Terms()))
    assert "would be about as close" in poor
    unknown = preview_sentences(Settings(), SCHEMA, Terms(expected_rows=None))
    assert "how many rows" in unknown[0]
    with pytest.raises(SchemaError, match="'c'"):
        preview_sentences(Settings(columns=("a", "c")), SCHEMA, Terms())


def test_what_plain_noise_would_have_given_comes_from_released_numbers():
    values = paired(3000, 12, 3)
    adaptive = released(values, "1/5", method="pace_auto")
    predicted = plain_noise_error(adaptive, estimate(adaptive))
    actual = np.mean(
        [
            unclipped_noise_error(released(values, "1/5", method="ssp", seed=seed), values)
            for seed in range(20)
        ]
    )
    assert predicted == pytest.approx(actual, rel=0.25)
