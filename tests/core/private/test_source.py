from __future__ import annotations

import itertools
import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ReadingError, SchemaError
from core.moments import MomentFrame, MomentRequest, Scale
from core.private import counting
from core.private.counting import CHUNK_ROWS, PACKED_CELLS, count_cliques, pack_columns
from core.private.moments import clip_rows, grid_rows, norm_grid, to_grid
from core.private.source import InMemorySource
from core.releases import Recoding
from tests.core.private.tables import coded, numeric, random_coded

ADULT_SIZES = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


def brute(table, clique, recoding=None):
    """Oracle: ``np.add.at`` on the recoded codes."""
    sizes, codes = [], []
    for name in clique:
        column, declared = table.codes[name].astype(np.int64), table.schema[name].size
        if recoding is not None and name in recoding.maps:
            column, declared = recoding.maps[name][column], int(recoding.maps[name].max()) + 1
        sizes.append(declared)
        codes.append(column)
    result = np.zeros(sizes, dtype=np.int64)
    np.add.at(result, tuple(codes), 1)
    return result


def assert_counts(table, cliques, recoding=None):
    answers = InMemorySource(table).counts(cliques, recoding)
    assert len(answers) == len(cliques)
    for clique, answer in zip(cliques, answers, strict=True):
        assert answer.dtype == np.int64
        np.testing.assert_array_equal(answer, brute(table, clique, recoding))


@settings(max_examples=80, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_counts_equal_brute_force(data, seed):
    sizes = {
        f"c{index}": data.draw(st.integers(1, 40)) for index in range(data.draw(st.integers(1, 7)))
    }
    table = random_coded(sizes, data.draw(st.integers(0, 300)), seed)
    orders = [
        clique
        for order in range(1, min(4, len(sizes)) + 1)
        for clique in itertools.permutations(sizes, order)
        if np.prod([sizes[name] for name in clique]) < 10_000
    ]
    cliques = data.draw(st.lists(st.sampled_from(orders), min_size=1, max_size=12))
    generator = np.random.default_rng(seed)
    maps = {
        name: generator.permutation(np.arange(size) % data.draw(st.integers(1, size)))
        for name, size in sizes.items()
        if data.draw(st.booleans())
    }
    assert_counts(table, cliques)
    assert_counts(table, cliques, Recoding(maps))


def test_counts_equal_pandas_crosstab():
    table = random_coded({"a": 4, "b": 7}, 500, 1)
    frame = pd.DataFrame({name: table.codes[name] for name in ("a", "b")})
    (answer,) = InMemorySource(table).counts([("a", "b")])
    np.testing.assert_array_equal(answer, pd.crosstab(frame["a"], frame["b"]).to_numpy())


@pytest.mark.parametrize("rows", [0, 1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_chunk_borders(rows):
    table = random_coded({"a": 3, "b": 100, "c": 200}, rows, 2)
    assert_counts(table, [("a",), ("b", "a"), ("c", "b"), ("a", "b", "c")])


@pytest.mark.parametrize("sizes", [(255, 257), (256, 256), (300, 300), (1, 1), (128, 129)])
def test_index_types_at_their_edges(sizes):
    names = dict(zip("ab", sizes, strict=True))
    last = {name: [size - 1, 0, size - 1] for name, size in names.items()}
    assert_counts(coded(names, last), [("a", "b"), ("b", "a"), ("a",), ("b",)])


def test_histograms_are_grouped_when_they_do_not_fit_together(monkeypatch):
    monkeypatch.setattr(counting, "GROUP_CELLS", 500)
    table = random_coded(dict.fromkeys("abcdef", 30), 400, 3)
    assert_counts(table, list(itertools.combinations("abcdef", 2)))


def test_packing_respects_the_limit_and_loses_no_column():
    sizes = {f"c{index}": size for index, size in enumerate(ADULT_SIZES)}
    groups = pack_columns(sizes)
    assert sorted(itertools.chain(*groups)) == sorted(sizes)
    for group in groups:
        assert len(group) == 1 or np.prod([sizes[name] for name in group]) <= PACKED_CELLS
    assert len(groups) < len(sizes)


def test_all_pairs_of_a_wide_table_are_fast_and_small():
    rows = 48_842
    sizes = {f"c{index:02}": size for index, size in enumerate(ADULT_SIZES)}
    table = random_coded(sizes, rows, 4)
    pairs = list(itertools.combinations(sorted(sizes), 2))
    source = InMemorySource(table)
    best = min(_seconds(lambda: source.counts(pairs)) for _ in range(5))
    assert best < 0.15  # about 0.01 s on a quiet core; np.add.at takes more than 1 s
    assert_counts(table, pairs[:20])
    tracemalloc.start()
    for _, table_of_pair in source.each_count(pairs):
        assert table_of_pair.sum() == rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * counting.GROUP_CELLS


def _seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def test_peak_memory_does_not_grow_with_rows():
    peaks = []
    for rows in (200_000, 800_000):
        source = InMemorySource(random_coded(dict.fromkeys("abcdef", 12), rows, 5))
        tracemalloc.start()
        source.counts(list(itertools.combinations("abcdef", 2)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_a_recoding_that_does_not_fit_is_refused():
    source = InMemorySource(random_coded({"a": 3}, 10, 0))
    with pytest.raises(SchemaError, match="'a'"):
        source.counts([("a",)], Recoding({"a": np.array([0, 1])}))
    with pytest.raises(SchemaError, match="'a'"):
        source.counts([("a",)], Recoding({"a": np.array([0, 1, -1])}))


def test_codes_are_left_as_they_were():
    table = random_coded({"a": 3, "b": 3}, 50, 0)
    before = {name: codes.copy() for name, codes in table.codes.items()}
    assert_counts(table, [("a", "b"), ("a",)])
    for name, codes in before.items():
        np.testing.assert_array_equal(codes, table.codes[name])


def test_no_data_in_words():
    assert repr(InMemorySource(random_coded({"a": 3}, 1234, 0))) == (
        "InMemorySource(1 columns, rows confidential)"
    )


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr("core.private.source.MAXIMUM_ROWS", 10)
    with pytest.raises(ReadingError, match="2\\*\\*29"):
        InMemorySource(random_coded({"a": 3}, 10, 0))


# -- moments -------------------------------------------------------------------------------


def frame_of(names, *, half_width=1.0, centre=0.0, clip_squared=None):
    return MomentFrame(tuple((n, Scale(centre, half_width)) for n in names), clip_squared)


def exact_units(values, centre, half_width, grid):
    """Oracle in exact fractions, for values whose scaled form is a float without rounding."""
    units = []
    for value in values:
        if np.isnan(value):
            units.append(0)
            continue
        ratio = (Fraction(value) - Fraction(centre)) / Fraction(half_width)
        units.append(int(min(max(ratio, Fraction(-1)), Fraction(1)) * grid))  # towards zero
    return units


@settings(max_examples=60, deadline=None)
@given(data=st.data(), degree=st.integers(1, 4))
def test_moments_equal_python_integers(data, degree):
    numbers = st.one_of(
        st.integers(-3000, 3000).map(lambda value: value / 1024),
        st.sampled_from([np.nan, 1e300, -1e300, 1.0, -1.0]),
    )
    rows = data.draw(st.integers(0, 12))
    values = {
        name: data.draw(st.lists(numbers, min_size=rows, max_size=rows)) for name in ("x", "y", "z")
    }
    monomials = tuple(itertools.combinations_with_replacement("xyz", degree))
    request = MomentRequest(frame_of("xyz", half_width=2.0, centre=0.25), monomials)
    answer = InMemorySource(numeric(values, bound=2.0)).moments(request)
    units = {name: exact_units(values[name], 0.25, 2.0, request.grid) for name in values}
    for monomial, total in zip(monomials, answer, strict=True):
        expected = sum(
            int(np.prod([units[name][row] for name in monomial], dtype=object))
            for row in range(rows)
        )
        assert int(total) == expected


def test_gram_is_the_matrix_of_second_moments():
    generator = np.random.default_rng(0)
    source = InMemorySource(numeric({name: generator.normal(size=50) for name in "abc"}))
    frame = frame_of("abc")
    request = MomentRequest.triangle(frame)
    matrix = source.gram(frame)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(matrix[np.triu_indices(3)], source.moments(request))


def test_grid_truncates_towards_zero_and_clips():
    scaled = np.array([0.9999999, -0.9999999, 1.5, -1.5, np.inf, -np.inf, np.nan, 0.25])
    np.testing.assert_array_equal(to_grid(scaled, 4), [3, -3, 4, -4, 4, -4, 0, 1])


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-1.5, 1.5), min_size=4, max_size=4), min_size=1, max_size=8),
    clip=st.fractions(1, 4, max_denominator=50),
    bits=st.sampled_from([2, 5, 12]),
)
def test_clipped_rows_obey_the_clip_exactly(rows, clip, bits):
    grid = 1 << bits
    units = to_grid(np.array(rows), grid)
    before = units.copy()
    clip_rows(units, grid, clip)
    norms = [sum(int(unit) ** 2 for unit in row) for row in units]
    assert all(norm <= clip * grid**2 for norm in norms)
    assert np.all(np.abs(units) <= np.abs(before))
    inside = np.array([sum(int(u) ** 2 for u in row) <= int(clip * grid**2) for row in before])
    np.testing.assert_array_equal(units[inside], before[inside])
    # Not needlessly short: at most two units a coordinate below the exact radial projection.
    outside = ~inside
    shrink = np.sqrt(float(clip)) * grid / np.maximum(np.sqrt((before**2).sum(axis=1)), 1)
    assert np.all(np.abs(units[outside]) >= np.abs(before * shrink[:, None])[outside] - 2.01)


def test_norm_profile_equals_python_integers():
    generator = np.random.default_rng(1)
    values = {name: generator.normal(scale=0.8, size=40) for name in "abc"}
    values["a"][3] = np.nan
    source, frame = InMemorySource(numeric(values)), frame_of("abc")
    unit = norm_grid(3)
    radii = [unit**2, unit**2 * 2, 3 * unit**2 + 1]
    units = np.vstack(list(grid_rows(source.table.numbers, frame, unit))).astype(int)
    norms = [sum(int(u) ** 2 for u in row) for row in units]
    expected = [sum(max(norm - radius, 0) for norm in norms) for radius in radii]
    assert source.norm_profile(frame, radii).tolist() == expected
    assert expected[0] > expected[1] > expected[2] == 0


def test_chunks_of_rows_add_up(monkeypatch):
    generator = np.random.default_rng(2)
    source = InMemorySource(numeric({name: generator.normal(size=101) for name in "ab"}))
    request = MomentRequest.triangle(frame_of("ab", clip_squared=Fraction(3, 2)))
    whole = source.moments(request)
    monkeypatch.setattr("core.private.moments.CHUNK_NUMBERS", 14)
    np.testing.assert_array_equal(source.moments(request), whole)


def test_frames_and_requests_refuse_nonsense():
    frame = frame_of("ab")
    for monomials in [(), (("a",), ("a", "b")), (("a",) * 5,), (("a", "b"), ("b", "a")), (("c",),)]:
        with pytest.raises(SchemaError):
            MomentRequest(frame, monomials)
    for weight in (Fraction(0), Fraction(-1), Fraction(1, 513), Fraction(513, 512), Fraction(600)):
        with pytest.raises(SchemaError, match="diagonal weight"):
            MomentRequest(frame, (("a", "a"),), weight)
    with pytest.raises(SchemaError, match="diagonal weight"):
        MomentRequest(frame, (("a",),), Fraction(2))
    for scale in [(0.0, 0.0), (0.0, -1.0), (np.nan, 1.0), (0.0, np.inf)]:
        with pytest.raises(SchemaError, match="scale"):
            Scale(*scale)
    with pytest.raises(SchemaError, match="at least one column"):
        MomentFrame(())
    with pytest.raises(SchemaError, match="twice"):
        MomentFrame((("a", Scale(0, 1)), ("a", Scale(0, 2))))
    with pytest.raises(SchemaError, match="at least 1"):
        frame_of("ab", clip_squared=Fraction(99, 100))


def test_frame_from_bounds_centres_at_released_means_too():
    table = numeric({"a": [0.0], "b": [0.0]}, bound=4.0)
    frame = MomentFrame.from_bounds(table.schema, ["b", "a"], centres={"a": 1.5})
    assert dict(frame.scales) == {"a": Scale(1.5, 4.0), "b": Scale(0.0, 4.0)}
    with pytest.raises(SchemaError, match="integer, real or date"):
        MomentFrame.from_bounds(random_coded({"a": 2}, 1, 0).schema, ["a"])


def test_count_cliques_of_an_empty_request_is_empty():
    assert list(count_cliques({}, {}, [])) == []
