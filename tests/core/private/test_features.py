"""Exact sums of numbers and indicators over complete rows, against pandas."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import SchemaError
from core.moments import Indicator, MomentFrame, MomentRequest, Scale
from core.private import features
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.releases import Unit
from core.schema import Column, Kind, Schema
from tests.core.private.grants import ADD, ONE, REPLACE, SilentNoise, make

SCHEMA = Schema(
    (
        Column("pay", Kind.REAL, lower=0, upper=10),
        Column("age", Kind.INTEGER, lower=0, upper=99, missing="constant", missing_constant=50),
        Column("job", Kind.CATEGORICAL, categories=("clerk", "cook", "judge")),
        Column("sex", Kind.BOOLEAN, categories=("f", "m"), other_label="f", missing_label="f"),
    )
)
FRAME = MomentFrame(
    MomentFrame.from_bounds(SCHEMA, ["pay", "age"]).scales,
    indicators=(("cook", Indicator("job", 1)), ("judge", Indicator("job", 2))),
    complete=True,
)
REQUEST = MomentRequest(
    FRAME,
    (
        (), ("pay",), ("age",), ("cook",), ("judge",), ("cook", "pay"), ("age", "pay"),
        ("pay", "pay"), ("judge", "pay", "pay"), ("pay",) * 4, ("age", "cook", "pay"),
    ),
    mixed=True,
)  # fmt: skip


def table_of(rows=400, seed=0):
    """Numbers beyond their bounds go in as they are, as if the coder had failed."""
    generator = np.random.default_rng(seed)
    pay = generator.normal(5, 4, rows)
    pay[generator.random(rows) < 0.2] = np.nan
    job = SCHEMA["job"]
    codes = {
        "pay": np.zeros(rows, np.uint8),
        "age": np.zeros(rows, np.uint8),
        "job": generator.integers(0, job.size, rows).astype(np.uint8),
        "sex": generator.integers(0, 2, rows).astype(np.uint8),
    }
    numbers = {"pay": pay, "age": generator.integers(-10, 120, rows).astype(float)}
    return CodedTable(SCHEMA, codes, numbers, rows)


def oracle(table, request):
    """Plain pandas on complete rows."""
    frame = pd.DataFrame(
        {
            "pay": (table.numbers["pay"] - 5) / 5,
            "age": (table.numbers["age"] - 49.5) / 49.5,
            "job": table.codes["job"],
        }
    )
    frame = frame[frame["pay"].notna() & (frame["job"] < 3)]
    columns = {
        "pay": frame["pay"].clip(-1, 1),
        "age": frame["age"].clip(-1, 1),
        "cook": (frame["job"] == 1).astype(float),
        "judge": (frame["job"] == 2).astype(float),
    }
    sums = []
    for names in request.monomials:
        product = pd.Series(1.0, index=frame.index)
        for name in names:
            product = product * columns[name]
        sums.append(product.sum())
    return np.array(sums)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 300))
def test_sums_are_those_of_complete_rows(seed, rows):
    table = table_of(rows, seed)
    found = InMemorySource(table).moments(REQUEST)
    assert found.dtype == np.int64
    exact = oracle(table, REQUEST)
    np.testing.assert_allclose(found / 2**24, exact, atol=(rows + 1) / 2**24)
    assert np.all(np.abs(found) <= np.abs(exact) * 2**24 + rows)
    assert found[0] == exact[0] * 2**24  # the count is exact


def test_a_missing_complete_case_rule_is_caught(monkeypatch):
    table = table_of()
    monkeypatch.setattr(
        features, "counted_rows", lambda table, *_: np.ones(table.rows, dtype=np.bool_)
    )
    found = InMemorySource(table).moments(REQUEST) / 2**24
    assert abs(found[0] - oracle(table, REQUEST)[0]) > 50


def test_chunks_do_not_change_the_sums(monkeypatch):
    table = table_of()
    whole = features.feature_moments(table, REQUEST)
    monkeypatch.setattr(features, "CHUNK_NUMBERS", 30)
    assert features.feature_moments(table, REQUEST).tolist() == whole.tolist()


def test_counts_of_cells_are_whole_rows():
    table = table_of()
    request = MomentRequest(FRAME, (("cook",), ("judge",)))
    assert request.whole == 1
    assert features.feature_moments(table, request).tolist() == oracle(table, request).tolist()
    assert MomentRequest(FRAME, ((),)).whole == 1


def test_without_complete_cases_every_row_counts_and_missing_is_the_centre():
    table = table_of()
    frame = MomentFrame(FRAME.scales, indicators=FRAME.indicators)
    request = MomentRequest(frame, (("cook",), ("cook", "pay")), mixed=True)
    cooks = table.codes["job"] == 1
    pay = np.nan_to_num(np.clip((table.numbers["pay"] - 5) / 5, -1, 1))
    found = features.feature_moments(table, request) / 2**24
    assert found[0] == cooks.sum()
    assert found[1] == pytest.approx((pay * cooks).sum(), abs=1e-4)


def test_an_undeclared_cell_counts_when_an_indicator_names_it():
    table = table_of()
    job = SCHEMA["job"]
    frame = MomentFrame(
        (), indicators=(("gone", Indicator("job", job.missing_code)),), complete=True
    )
    found = features.feature_moments(table, MomentRequest(frame, ((),)))
    assert found[0] == np.isin(table.codes["job"], [0, 1, 2, job.missing_code]).sum()
    assert found[0] < table.rows


def test_rows_that_may_not_miss_by_declaration_all_count():
    """The public number of rows and the sums rest on one rule, even if the coder had failed."""
    table = table_of(50)
    table.numbers["age"][:3] = np.nan
    frame = MomentFrame(MomentFrame.from_bounds(SCHEMA, ["age"]).scales, complete=True)
    assert not frame.may_miss(SCHEMA)
    assert features.feature_moments(table, MomentRequest(frame, ((),))).tolist() == [50]


# -- through the grant ---------------------------------------------------------------------


def test_a_grant_prices_features_in_their_own_units():
    noise = SilentNoise()
    grant, source, _ = make(table_of(), noise=noise, relation=REPLACE)
    answer = grant.moments(REQUEST, Fraction(1, 2))
    assert noise.calls[0][1] > 4 * 2**48
    np.testing.assert_allclose(answer.values, oracle(source.table, REQUEST), atol=1e-4)
    cells = grant.moments(MomentRequest(FRAME, (("cook",), ("judge",))), Fraction(1, 2))
    assert noise.calls[1][1] == 2
    assert cells.sigmas.tolist() == [8.0, 8.0]
    assert grant.debited == 1


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_complete_rows_are_counted_with_noise_as_soon_as_one_may_be_missing(relation):
    noise = SilentNoise()
    grant, _, _ = make(table_of(), noise=noise, relation=relation)
    answer = grant.moments(MomentRequest(FRAME, ((),)), ONE)
    assert [call[1] for call in noise.calls] == [1]
    assert (answer.unit_sigma, grant.debited) == (8.0, 1)


@pytest.mark.parametrize("rows", [0, 37])
def test_the_count_is_free_where_the_declarations_let_no_row_be_missing(rows):
    frame = MomentFrame(MomentFrame.from_bounds(SCHEMA, ["age"]).scales, complete=True)
    noise = SilentNoise()
    grant, _, _ = make(table_of(rows), noise=noise, relation=REPLACE)
    answer = grant.moments(MomentRequest(frame, ((),)), ONE)
    assert (answer.values.tolist(), answer.unit_sigma, grant.debited) == ([rows], 0.0, 0)
    assert not noise.calls
    private, _, _ = make(table_of(rows), noise=noise, relation=ADD)
    private.moments(MomentRequest(frame, ((),)), ONE)
    assert noise.calls[0][1] == 1


def test_k_rows_a_unit():
    noise = SilentNoise()
    grant, _, _ = make(table_of(), noise=noise, unit=Unit(3))
    grant.moments(MomentRequest(FRAME, (("cook", "pay"), ("judge", "pay"))), ONE)
    assert noise.calls[0][1] == 9 * 2**48


def test_wrong_questions_cost_nothing():
    grant, source, _ = make(table_of())
    stranger = MomentFrame((), indicators=(("x", Indicator("job", 5)),), complete=True)
    nobody = MomentFrame((), indicators=(("x", Indicator("nobody", 0)),), complete=True)
    text = MomentFrame((("job", Scale(0, 1)),), complete=True)
    for frame in (stranger, nobody, text):
        with pytest.raises(SchemaError):
            grant.moments(MomentRequest(frame, ((),)), ONE)
    for ask in (
        lambda: grant.clip_norm(FRAME, [ONE], [0.0], ONE),
        lambda: grant.moments(MomentRequest(FRAME, (("pay",), ("pay", "pay"))), ONE),
    ):
        with pytest.raises(SchemaError):
            ask()
    assert (source.accesses, grant.debited) == (0, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indicators": (("pay", Indicator("job", 1)),)}, "scaled twice"),
        ({"indicators": (("x", Indicator("job", 1)), ("y", Indicator("job", 1)))}, "same cell"),
        ({"clip_squared": ONE}, "numbers only"),
    ],
)
def test_frames_that_cannot_be_meant(change, words):
    settings_ = {"scales": FRAME.scales, "complete": True, **change}
    with pytest.raises(SchemaError, match=words):
        MomentFrame(**settings_)


@pytest.mark.parametrize("code", [-1, 1.0, True, "1"])
def test_indicators_name_a_cell_by_number(code):
    with pytest.raises(SchemaError, match="number of a cell"):
        Indicator("job", code)


@pytest.mark.parametrize(
    ("monomials", "settings_", "words"),
    [
        ((("cook", "judge"),), {}, "two cells"),
        ((("cook", "cook"),), {}, "two cells"),
        ((("pay",) * 5,), {}, "four numbers"),
        ((("pay",), ()), {}, "one degree"),
        ((("nobody",),), {}, "no scale"),
        ((("pay", "pay"),), {"diagonal_weight": Fraction(2)}, "diagonal weight"),
        ((), {}, "one degree"),
    ],
)
def test_requests_that_cannot_be_meant(monomials, settings_, words):
    with pytest.raises(SchemaError, match=words):
        MomentRequest(FRAME, monomials, **settings_)


def test_only_complete_frames_count_rows_and_only_feature_frames_mix():
    with pytest.raises(SchemaError, match="row count"):
        MomentRequest(MomentFrame(FRAME.scales, indicators=FRAME.indicators), ((),))
    plain = MomentFrame(FRAME.scales)
    with pytest.raises(SchemaError, match="one degree"):
        MomentRequest(plain, (("pay",), ("pay", "pay")), mixed=True)


def test_requests_survive_their_plain_form():
    for request in (REQUEST, MomentRequest.triangle(MomentFrame(FRAME.scales, Fraction(3, 2)))):
        assert MomentRequest.from_dict(request.to_dict()) == request
