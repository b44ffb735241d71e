"""What a grant hands to the noise, what it answers, and which questions it refuses."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BudgetError, SchemaError
from core.moments import EntryReference, MomentFrame, MomentRequest, Scale
from core.private import checks
from core.private.moments import norm_grid
from core.private.source import InMemorySource
from core.releases import PairReference, Recoding, Unit
from tests.core.private.grants import (
    ADD,
    NAMES,
    ONE,
    REPLACE,
    SIZES,
    SilentNoise,
    frame_of,
    make,
    numeric_table,
    prepared,
    reference_of,
)
from tests.core.private.tables import numeric, random_coded

# -- sensitivities handed to the noise -----------------------------------------------------


@pytest.mark.parametrize(("relation", "factor"), [(ADD, 1), (REPLACE, 2)])
def test_sensitivities_of_counts_and_scores(relation, factor):
    noise = SilentNoise()
    grant, *_ = make(noise=noise, relation=relation)
    grant.counts([("a",), ("b",), ("a", "c")], Fraction(1, 4))
    grant.select_pair([("a", "b")], reference_of(), Fraction(1, 4))
    grant.score_pairs([("a", "b"), ("a", "c")], reference_of(), Fraction(1, 4))
    assert [call[1] for call in noise.calls] == [
        3 * factor,
        1024 * factor,
        2 * 1024**2 * factor**2,
    ]


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_k_rows_scale_the_sensitivity(name, rows):
    noises = SilentNoise(), SilentNoise()
    for noise, unit in zip(noises, (Unit(), Unit(rows)), strict=True):
        grant, _, _, call = prepared(name, noise=noise, unit=unit)
        call(grant, ONE)
    one, many = (noise.calls[0][1] for noise in noises)
    assert many == one * (rows if isinstance(one, int) else rows**2)


def test_moment_sensitivities_are_in_grid_units():
    noise = SilentNoise()
    grant, *_ = make(numeric_table(), noise=noise)
    frame = frame_of("xy")
    grant.moments(MomentRequest(frame, (("x",), ("y",))), Fraction(1, 4))
    grant.moments(MomentRequest(frame, (("x", "y"),)), Fraction(1, 4))
    grant.moments(MomentRequest.triangle(frame, Fraction(3, 2)), Fraction(1, 4))
    grant.moments(MomentRequest(frame, (("x", "x", "y"),)), Fraction(1, 4))
    assert [call[1] for call in noise.calls] == [
        2 * 2**48,
        2**48,
        (1 + 2 * Fraction(9, 4)) * 2**48 * 4,
        2**48,
    ]
    triangle = noise.calls[2][0]
    plain = InMemorySource(numeric_table()).moments(MomentRequest.triangle(frame))
    assert triangle.tolist() == (plain * [3, 2, 3]).tolist()


# -- answers -------------------------------------------------------------------------------


def test_counts_share_one_sigma_and_one_debit():
    noise = SilentNoise()
    grant, source, _ = make(noise=noise)
    cliques = [("b",), ("a", "c"), ("c", "a"), ("a", "b", "c")]
    answers = grant.counts(cliques, Fraction(1, 2))
    assert len(noise.calls) == 1
    for clique, answer, exact in zip(cliques, answers, source.counts(cliques), strict=True):
        assert answer.clique == clique
        np.testing.assert_array_equal(answer.values, exact)
        assert answer.sigma == 8.0
    assert sum(answer.rho for answer in answers) == grant.debited == Fraction(1, 2)


def test_counts_after_a_recoding():
    recoding = Recoding({"b": np.array([0, 1, 1, 1])})
    grant, source, _ = make()
    (answer,) = grant.counts([("a", "b")], ONE, recoding=recoding)
    np.testing.assert_array_equal(answer.values, source.counts([("a", "b")], recoding)[0])
    assert answer.values.shape == (3, 2)


def test_row_count_is_noisy_or_public():
    grant, *_ = make()
    answer = grant.row_count(Fraction(1, 2))
    assert (answer.clique, answer.values.shape, int(answer.values)) == ((), (), 60)
    assert (answer.sigma, grant.debited) == (8.0, Fraction(1, 2))
    public, *_ = make(relation=REPLACE)
    answer = public.row_count(Fraction(0))
    assert (int(answer.values), answer.sigma, answer.rho, public.debited) == (60, 0.0, 0, 0)
    private, *_ = make(relation=REPLACE, unit=Unit(2))
    with pytest.raises(BudgetError, match="private"):
        private.row_count(ONE)


def score(source, pair, reference):
    """Oracle: plain Python integers on the 1/1024 grid."""
    (table,) = source.counts([pair], reference.recoding)
    expected = reference.total * np.outer(reference.shares[pair[0]], reference.shares[pair[1]])
    grid = [[round(float(cell) * 1024) for cell in row] for row in expected]
    return sum(
        abs(1024 * int(table[i, j]) - grid[i][j])
        for i, j in itertools.product(*map(range, table.shape))
    )


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000), total=st.floats(0, 500), rows=st.integers(0, 80), pool=st.booleans()
)
def test_scores_are_exact_on_the_grid(seed, total, rows, pool):
    noise = SilentNoise()
    recoding = Recoding({"b": np.array([0, 1, 1, 1])}) if pool else Recoding()
    grant, source, _ = make(random_coded(SIZES, rows, seed), noise=noise)
    reference = reference_of(total=total, recoding=recoding)
    pairs = [("b", "c"), ("a", "b"), ("a", "c")]
    chosen = grant.select_pair(pairs, reference, Fraction(1, 2))
    expected = [score(source, pair, reference) for pair in pairs]
    assert noise.calls[0][0].tolist() == expected
    assert chosen == pairs[int(np.argmax(expected))]
    answer = grant.score_pairs(pairs, reference, Fraction(1, 2))
    assert noise.calls[1][0].tolist() == expected
    np.testing.assert_array_equal(answer.values, np.array(expected) / 1024)
    assert answer.sigma == 8.0 / 1024


def test_scores_of_a_reference_are_computed_once():
    grant, source, _ = make()
    first, second = reference_of(), reference_of(total=10.0)
    for reference in (first, first, second, first):
        grant.select_pair([("a", "b"), ("a", "c")], reference, Fraction(1, 10))
    grant.score_pairs([("b", "c")], second, Fraction(1, 10))
    assert source.accesses == 2


def test_moments_come_back_in_scaled_units():
    grant, source, _ = make(numeric_table())
    clipped = np.clip(np.stack([source.table.numbers[name] for name in "xyz"]), -1, 1)
    request = MomentRequest.triangle(frame_of(), Fraction(5, 2))
    answer = grant.moments(request, ONE)
    expected = (clipped @ clipped.T)[np.triu_indices(3)]
    np.testing.assert_allclose(answer.values, expected, atol=50 * 3 / 2**12)
    diagonal = np.array([a == b for a, b in request.monomials])
    np.testing.assert_allclose(answer.sigmas[~diagonal] / answer.sigmas[diagonal][0], 2.5)
    assert answer.rho == 1


def test_missing_values_count_as_the_centre():
    table = numeric({"x": [0.5, np.nan, np.nan]})
    grant, *_ = make(table)
    frame = MomentFrame((("x", Scale(0.25, 1.0)),))
    answer = grant.moments(MomentRequest(frame, (("x",),)), ONE)
    assert answer.values.tolist() == [0.25]


def test_select_entry_scores_are_exact_distances():
    noise = SilentNoise()
    grant, source, _ = make(numeric_table(), noise=noise)
    frame = frame_of()
    reference = EntryReference(frame, np.diag([10.0, 3.0, 0.5]))
    pairs = [("x", "x"), ("x", "y"), ("z", "y"), ("z", "z")]
    chosen = grant.select_entry(pairs, reference, Fraction(1, 2))
    exact, unit = source.gram(frame), 2**24
    expected = [
        abs(int(exact[0, 0]) - 10 * unit),
        abs(int(exact[0, 1])),
        abs(int(exact[2, 1])),
        abs(int(exact[2, 2]) - unit // 2),
    ]
    assert noise.calls[0][0].tolist() == expected
    assert noise.calls[0][1] == unit
    assert chosen == pairs[int(np.argmax(expected))]
    touched = source.accesses
    grant.select_entry(pairs, EntryReference(frame, np.eye(3)), Fraction(1, 2))
    assert source.accesses == touched  # one Gram matrix a frame


def test_clip_norm_scores():
    noise = SilentNoise()
    grant, source, _ = make(numeric_table(), noise=noise)
    frame = frame_of()
    candidates = [Fraction(1), Fraction(3, 2), Fraction(3)]
    grant.clip_norm(frame, candidates, [0.0, 2.0, 30.0], ONE)
    unit = norm_grid(3) ** 2
    assert noise.calls[0][1] == 3 * unit
    scores = -noise.calls[0][0] / unit
    rows = np.clip(np.stack([source.table.numbers[name] for name in "xyz"]), -1, 1)
    norms = (rows**2).sum(axis=0)
    excess = np.array([np.maximum(norms - float(clip), 0).sum() for clip in candidates])
    np.testing.assert_allclose(scores, excess + np.array([0.0, 2.0, 30.0]), atol=0.3)


# -- refusals that cost nothing ------------------------------------------------------------


def wrong_questions():
    frame, reference = frame_of(), reference_of()
    short = PairReference(1.0, {**reference.shares, "a": np.ones(2)})
    broken = PairReference(1.0, {**reference.shares, "a": np.array([0.1, np.nan, 0.1])})
    endless = PairReference(np.inf, reference.shares)
    misfit = Recoding({"a": np.array([0, 1])})
    return {
        "no table": lambda g: g.counts([], ONE),
        "empty clique": lambda g: g.counts([()], ONE),
        "twice": lambda g: g.counts([("a", "a")], ONE),
        "unknown": lambda g: g.counts([("nobody",)], ONE),
        "recoding": lambda g: g.counts([("a",)], ONE, recoding=misfit),
        "no candidate": lambda g: g.select_pair([], reference, ONE),
        "unsorted": lambda g: g.select_pair([("b", "a")], reference, ONE),
        "stranger": lambda g: g.select_pair([("a", "z")], reference, ONE),
        "no pairs": lambda g: g.score_pairs([], reference, ONE),
        "short shares": lambda g: g.select_pair([("a", "b")], short, ONE),
        "nan shares": lambda g: g.score_pairs([("a", "b")], broken, ONE),
        "infinite total": lambda g: g.select_pair([("a", "b")], endless, ONE),
        "no numbers": lambda g: g.moments(MomentRequest.triangle(frame), ONE),
        "no numbers to select": lambda g: g.select_entry(
            [("x", "y")], EntryReference(frame, np.eye(3)), ONE
        ),
        "no numbers to clip": lambda g: g.clip_norm(frame, [ONE], [0.0], ONE),
    }


@pytest.mark.parametrize("name", sorted(wrong_questions()))
def test_wrong_questions_cost_nothing(name):
    grant, source, _ = make()
    with pytest.raises(SchemaError):
        wrong_questions()[name](grant)
    assert (source.accesses, grant.debited) == (0, 0)


@pytest.mark.parametrize(
    ("clips", "penalties"),
    [([], []), ([Fraction(1, 2)], [0.0]), ([ONE], [0.0, 1.0]), ([ONE], [np.inf])],
)
def test_wrong_clips_cost_nothing(clips, penalties):
    grant, source, _ = make(numeric_table())
    with pytest.raises(SchemaError):
        grant.clip_norm(frame_of(), clips, penalties, ONE)
    with pytest.raises(SchemaError):
        grant.clip_norm(frame_of(clip=ONE), [ONE], [0.0], ONE)
    with pytest.raises(SchemaError):
        grant.select_entry([], EntryReference(frame_of(), np.eye(3)), ONE)
    assert (source.accesses, grant.debited) == (0, 0)


def test_huge_tables_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(checks, "MAXIMUM_TABLE_CELLS", 11)
    grant, source, _ = make()
    with pytest.raises(SchemaError, match="a × b has 12 cells"):
        grant.counts([("a", "b")], ONE)
    with pytest.raises(SchemaError, match="a × b has 12 cells"):
        grant.select_pair([("a", "b")], reference_of(), ONE)
    assert (source.accesses, grant.debited) == (0, 0)


def test_entry_references_are_frozen_and_checked():
    sums = np.eye(3)
    reference = EntryReference(frame_of(), sums)
    sums[0, 0] = 9.0
    assert reference.sums[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        reference.sums[0, 0] = 2.0
    for wrong in (np.eye(2), np.full((3, 3), np.nan), np.full((3, 3), 2.0**40)):
        with pytest.raises(SchemaError, match="reference"):
            EntryReference(frame_of(), wrong)
