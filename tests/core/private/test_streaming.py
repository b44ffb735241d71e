"""Tables that pass through in batches give the numbers of the same table in memory."""

import datetime
import itertools
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Cancelled, ReadingError, SchemaError, SourceError
from core.moments import MomentFrame, MomentRequest
from core.private import batches as batches_module
from core.private import counting, streaming_csv, streaming_parquet
from core.private import source as source_module
from core.private.batches import BatchedSource
from core.private.coding import encode
from core.private.fingerprint import fingerprint
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.private.streaming import StreamedBatches, needs_batches, open_table, survey
from core.releases import Recoding, Unit
from core.schema import Column, Schema
from tests.core.schema_strategies import DIRT, MODELLED, QUICK, columns, schemas

KEY = bytes(range(32))


def source_of(table, schema):
    found = survey(table, KEY)
    return BatchedSource(StreamedBatches(table, schema, found.rows)), found


def assert_same(path, schema, **reading):
    """Codes, numbers, tables, moments and fingerprint of both ways to read."""
    raw = read_table(path, **reading)
    coded = encode(raw, schema)
    memory = InMemorySource(coded)
    stream, found = source_of(open_table(path, **reading), schema)
    assert found.rows == stream.row_count() == memory.row_count()
    assert found.mark == fingerprint(raw.frame, KEY)
    assert stream.numeric == memory.numeric
    assert stream.schema == memory.schema
    names = coded.schema.names
    passed = list(stream._batches.read(names, memory.numeric))
    for name in names:
        codes = np.concatenate([batch.codes[name] for batch in passed])
        np.testing.assert_array_equal(codes, coded.codes[name])
        assert codes.dtype == coded.codes[name].dtype
    for name in memory.numeric:
        numbers = np.concatenate([batch.numbers[name] for batch in passed])
        np.testing.assert_array_equal(numbers, coded.numbers[name])
    assert_answers(stream, memory)


def assert_answers(stream, memory):
    names = memory.schema.names
    cliques = [(n,) for n in names] + list(itertools.permutations(names, 2))
    halved = {n: np.arange(memory.schema[n].size) // 2 for n in names[::2]}
    for recoding in (None, Recoding(halved)):
        pairs = zip(stream.counts(cliques, recoding), memory.counts(cliques, recoding), strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
    if memory.numeric:
        frame = MomentFrame.from_bounds(memory.schema, sorted(memory.numeric))
        np.testing.assert_array_equal(stream.gram(frame), memory.gram(frame))
        np.testing.assert_array_equal(
            stream.norm_profile(frame, [1, 1000]), memory.norm_profile(frame, [1, 1000])
        )
        for degree in (1, 2, 3):
            monomials = tuple(itertools.combinations_with_replacement(frame.columns, degree))
            request = MomentRequest(frame, monomials)
            np.testing.assert_array_equal(stream.moments(request), memory.moments(request))


# -- one value, one cell ----------------------------------------------------------------------

WHOLE = st.one_of(st.integers(-3, 12), st.integers(-128, 127))
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
ARROW = {
    "text": (pa.string(), DIRT),
    "large text": (pa.large_string(), st.sampled_from(["a", "1", "2.0", "", "2024-02-29"])),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.one_of(WHOLE, st.integers(-(2**63), 2**63 - 1))),
    "small int64": (pa.int64(), WHOLE),
    "uint8": (pa.uint8(), st.integers(0, 255)),
    "uint64": (pa.uint64(), st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1))),
    "float": (pa.float64(), st.one_of(st.floats(), st.integers(-50, 50).map(float))),
    "float32": (pa.float32(), st.floats(width=32)),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(9, 2), st.integers(-9999, 9999).map(lambda n: Decimal(n) / 100)),
    "day": (pa.date32(), st.dates()),
    "days of one year": (
        pa.date32(),
        st.dates(datetime.date(2023, 1, 1), datetime.date(2024, 1, 1)),
    ),
    "moment": (pa.timestamp("us"), MOMENTS),
    "zoned": (pa.timestamp("ms", "Europe/Amsterdam"), MOMENTS),
    "nothing": (pa.null(), st.none()),
}


@st.composite
def arrow_columns(draw, rows, column):
    kind, values = ARROW[draw(st.sampled_from(sorted(ARROW)))]
    if kind == pa.string():
        values = st.one_of(
            values, st.sampled_from([*column.categories, *column.missing_markers, "7"])
        )
    blanks = draw(st.sampled_from([0, 1, 4]))
    cells = [None if draw(st.integers(0, 4)) < blanks else draw(values) for _ in range(rows)]
    array = pa.array(cells, kind)
    if kind in (pa.string(), pa.int8(), pa.int64()) and draw(st.booleans()):
        return array.dictionary_encode()
    return array


@QUICK
@given(st.data())
def test_parquet_in_batches_is_parquet_in_memory(data):
    schema = data.draw(schemas())
    rows = data.draw(st.integers(1, 12))
    table = pa.table({c.name: data.draw(arrow_columns(rows, c)) for c in schema.columns})
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming_parquet, "BATCH_ROWS", data.draw(st.sampled_from([1, 2, 3, 100])))
        path = Path(folder) / "people.parquet"
        group = data.draw(st.sampled_from([1, 4, 100]))
        pq.write_table(table, path, row_group_size=group, use_dictionary=data.draw(st.booleans()))
        assert_same(path, schema)


@QUICK
@given(st.data())
def test_csv_in_batches_is_csv_in_memory(data):
    names = ["a", "b,", "c\n"][: data.draw(st.integers(1, 3))]
    schema = Schema(tuple(data.draw(columns(name, MODELLED)) for name in names))
    cells = [
        st.one_of(DIRT, st.sampled_from([*c.categories, *c.missing_markers, "7", "'=x"]))
        for c in schema.columns
    ]
    rows = data.draw(st.lists(st.tuples(*cells), min_size=1, max_size=9))
    quoted = [
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in [names, *rows]
    ]
    mark = data.draw(st.sampled_from(["", "\ufeff"]))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming_csv, "CHUNK_CELLS", data.draw(st.sampled_from([1, 2, 3, 100])))
        path = Path(folder) / "people.csv"
        path.write_bytes((mark + "\r\n".join(quoted) + "\r\n").encode())
        decimal = data.draw(st.sampled_from([".", ","]))
        assert_same(path, schema, delimiter=",", decimal=decimal)


# -- many files -------------------------------------------------------------------------------

PEOPLE = Schema(
    (
        Column("city", "categorical", categories=("Oslo", "Rome")),
        Column("age", "integer", lower=0, upper=99, bins=10),
        Column("pay", "real", lower=0, upper=9.5, bins=4),
    )
)


def people(rows, seed=0):
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "city": generator.choice(["Oslo", "Rome", "Bonn"], rows),
            "age": generator.integers(-5, 120, rows),
            "pay": generator.normal(5, 4, rows),
            "note": [f"note {n}" for n in generator.integers(0, 9, rows)],
        }
    )


def folder_of(path, table, pieces=3):
    path.mkdir()
    size = -(-table.num_rows // pieces)
    for piece in range(pieces):
        pq.write_table(table.slice(piece * size, size), path / f"part-{piece}.parquet")
    return path


def test_a_folder_and_a_glob_are_one_table(tmp_path):
    table = people(200)
    pq.write_table(table, tmp_path / "whole.parquet")
    folder = folder_of(tmp_path / "folder", table)
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-0.parquet.crc").write_text("")
    raw = read_table(tmp_path / "whole.parquet")
    memory = InMemorySource(encode(raw, PEOPLE))
    for path in (folder, folder / "*.parquet", tmp_path / "*" / "part-?.parquet"):
        assert needs_batches(path)
        stream, found = source_of(open_table(path), PEOPLE)
        assert found.mark == fingerprint(raw.frame, KEY)
        assert_answers(stream, memory)


def test_a_folder_of_csv_files_is_one_table(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.csv").write_text("city;age;pay\nRome;7;2,5\n")
    (folder / "a.csv").write_text('city;age;pay\n"Oslo";99;1,25\nBonn;;\n')
    (tmp_path / "whole.csv").write_text("city;age;pay\nBonn;;\nRome;7;2,5\nOslo;99;1,25\n")
    raw = read_table(tmp_path / "whole.csv", decimal=",")
    stream, found = source_of(open_table(folder, decimal=","), PEOPLE)
    assert found.mark == fingerprint(raw.frame, KEY)
    assert_answers(stream, InMemorySource(encode(raw, PEOPLE)))


def refused(path, words, error=ReadingError):
    with pytest.raises(error, match=words) as caught:
        survey(open_table(path), KEY)
    assert "\n" not in str(caught.value)


def test_files_that_do_not_fit_together_are_refused(tmp_path):
    folder = folder_of(tmp_path / "folder", people(30))
    pq.write_table(people(5).drop(["note"]), folder / "part-3.parquet")
    refused(folder, r"part-3.parquet has other columns than part-0.parquet")
    odd = people(5)
    odd = odd.set_column(1, "age", odd["age"].cast(pa.float64()))
    pq.write_table(odd, folder / "part-3.parquet")
    refused(folder, r"column 'age' is int64 in part-0.parquet and double in part-3.parquet")
    (folder / "part-3.parquet").unlink()
    (folder / "more.csv").write_text("city,age,pay,note\n")
    refused(folder, "one format")
    (folder / "more.csv").unlink()
    (folder / "read me.md").write_text("hello")
    refused(folder, "read me.md is no Parquet or CSV file")
    (folder / "read me.md").unlink()
    (folder / "deeper").mkdir()
    refused(folder, r"folder/\*/\*.parquet")
    refused(tmp_path / "nobody-*.parquet", "no Parquet or CSV file")
    refused(tmp_path / "folder" / "deeper", "no Parquet or CSV file")
    refused(tmp_path / "nobody.parquet", "no such file")


def test_partitioned_folders_are_refused(tmp_path):
    for city in ("Oslo", "Rome"):
        folder_of(tmp_path / f"city={city}", people(5).drop(["city"]), 1)
    refused(tmp_path / "*" / "*.parquet", r"\(city=…\)")


def test_csv_files_that_are_written_otherwise_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("city,age\nOslo,7\n")
    (tmp_path / "b.csv").write_text("city;age\nOslo;7\n")
    refused(tmp_path, "delimited or encoded otherwise")
    (tmp_path / "b.csv").write_bytes("city,age\nTromsø,7\n".encode("cp1252"))
    refused(tmp_path, "b.csv: the text after line . does not fit the encoding utf-8")
    (tmp_path / "b.csv").write_text("city,age\nOslo,7,8\n")
    refused(tmp_path, "b.csv: line 2 has 3 fields")
    (tmp_path / "b.csv").write_bytes(b"\x1f\x8b\x08")
    refused(tmp_path, "b.csv: this is a gzip archive")
    (tmp_path / "b.csv").write_bytes(b"")
    refused(tmp_path, "b.csv: this is an empty file")


def test_a_table_without_rows_is_refused(tmp_path):
    pq.write_table(people(0), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "no row")


def test_damaged_files_are_refused_before_anything_is_charged(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(people(500), path, compression="none")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    refused(path, "damaged")
    path.write_bytes(whole[:60] + b"\xff" * 300 + whole[360:])
    refused(path, "damaged")


def test_missing_columns_and_persons_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(people(5).drop(["age"]), path)
    with pytest.raises(SchemaError, match="'age'"):
        StreamedBatches(open_table(path), PEOPLE, 5)
    pq.write_table(people(5), path)
    unit = Unit(2, "note")
    with pytest.raises(ReadingError, match="'note'"):
        BatchedSource(StreamedBatches(open_table(path), PEOPLE, 5), unit)


# -- files that change ------------------------------------------------------------------------


def test_a_file_that_changes_is_noticed(tmp_path):
    folder = folder_of(tmp_path / "folder", people(60))
    stream, _ = source_of(open_table(folder), PEOPLE)
    stream.counts([("city",)])
    other = people(60, seed=1).slice(0, 20)
    pq.write_table(other, folder / "part-1.parquet")
    with pytest.raises(SourceError, match=r"part-1\.parquet: the file was changed"):
        stream.counts([("age",)])
    (folder / "part-1.parquet").unlink()
    with pytest.raises(SourceError, match=r"part-1\.parquet: the file cannot be read any more"):
        stream.counts([("pay",)])


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path):
    path, other = tmp_path / "a.parquet", tmp_path / "other.parquet"
    pq.write_table(people(60), path)
    passing = StreamedBatches(open_table(path), PEOPLE, 60).read({"city"}, ())
    next(passing)
    pq.write_table(people(60, seed=1), other)
    other.replace(path)
    with pytest.raises(SourceError, match=r"a\.parquet: the file was changed"):
        list(passing)


def test_other_rows_than_at_the_survey_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(people(60), path)
    for rows in (59, 61):
        stream = BatchedSource(StreamedBatches(open_table(path), PEOPLE, rows))
        with pytest.raises(SourceError, match="other rows"):
            stream.counts([("city",)])


def test_a_page_that_went_bad_after_the_survey_names_no_value(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(people(60), path)
    stream, _ = source_of(open_table(path), PEOPLE)

    def broken(*_):
        raise pa.ArrowInvalid("cannot convert 'Oslo'")

    monkeypatch.setattr(streaming_parquet, "within_calendar", broken)
    with pytest.raises(SourceError) as caught:
        stream.counts([("city",)])
    assert "Oslo" not in str(caught.value)
    assert caught.value.__cause__ is None


# -- how often, how much, how far -------------------------------------------------------------


class CountedBatches(StreamedBatches):
    passes = 0

    def read(self, names, numbers):
        self.passes += 1
        self.asked = set(names)
        return super().read(names, numbers)


@pytest.fixture
def counted(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(people(400), path)
    table = open_table(path)
    return CountedBatches(table, PEOPLE, survey(table, KEY).rows), read_table(path)


def test_tables_that_were_counted_are_not_counted_again(counted):
    batches, raw = counted
    stream, memory = BatchedSource(batches), InMemorySource(encode(raw, PEOPLE))
    pairs = list(itertools.combinations(PEOPLE.names, 2))
    recoding = Recoding({"age": np.minimum(np.arange(PEOPLE["age"].size), 3)})
    for asked in (None, recoding, None):
        for one, other in zip(
            stream.counts(pairs, asked), memory.counts(pairs, asked), strict=True
        ):
            np.testing.assert_array_equal(one, other)
    assert batches.passes == 1
    stream.counts([("city",)])
    assert (batches.passes, batches.asked) == (2, {"city"})


def test_memory_for_tables_is_bounded(counted, monkeypatch):
    batches, raw = counted
    stream, memory = BatchedSource(batches), InMemorySource(encode(raw, PEOPLE))
    monkeypatch.setattr(batches_module, "KEPT_CELLS", 60)
    monkeypatch.setattr(batches_module, "PASS_CELLS", 40)
    assert_answers(stream, memory)
    assert sum(table.size for table in stream._kept.values()) <= 60
    assert batches.passes > 5


def test_a_stream_can_be_cancelled_between_batches(counted, monkeypatch):
    monkeypatch.setattr(streaming_parquet, "BATCH_ROWS", 100)
    batches, _ = counted
    stream = BatchedSource(batches)
    heard = []

    def progress(stage, done, total, detail):
        heard.append((stage, done, total, detail))
        if done >= 50:
            raise Cancelled("cancelled")

    stream.watch(progress)
    with pytest.raises(Cancelled):
        stream.counts([("city",)])
    # In tenths: a quarter, exactly, would tell that the table has four batches.
    assert heard == [("rows", 20, 100, None), ("rows", 50, 100, None)]
    stream.watch(None)
    assert stream.counts([("city",)])[0].sum() == 400


def test_counting_in_memory_can_be_cancelled_between_chunks(counted, monkeypatch):
    _, raw = counted
    memory = InMemorySource(encode(raw, PEOPLE))

    def progress(stage, done, total, detail):
        raise Cancelled("cancelled")

    memory.watch(progress)
    memory.counts([("city",)])  # one chunk
    monkeypatch.setattr(counting, "CHUNK_ROWS", 100)
    with pytest.raises(Cancelled):
        memory.counts([("city",)])
    frame = MomentFrame.from_bounds(PEOPLE, ["age", "pay"])
    whole = memory.gram(frame)
    monkeypatch.setattr(source_module, "SLICE_ROWS", 150)
    with pytest.raises(Cancelled):
        memory.gram(frame)
    memory.watch(None)
    np.testing.assert_array_equal(memory.gram(frame), whole)


def test_a_survey_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming_csv, "CHUNK_CELLS", 3000)
    lines = [f"Oslo,{n % 90},1.5" for n in range(20_000)]
    (tmp_path / "a.csv").write_text("city,age,pay\n" + "\n".join(lines))
    heard = []
    found = survey(open_table(tmp_path / "a.csv"), KEY, lambda *told: heard.append(told[1]))
    assert found.rows == 20_000
    assert heard == sorted(heard)
    assert heard[-1] == 100
    assert len(set(heard)) > 5
    assert {told % 10 for told in heard} == {0}


def test_only_large_or_many_files_are_read_in_batches(tmp_path):
    from core.private.raw import Limits

    path = tmp_path / "a.parquet"
    pq.write_table(people(100), path)
    assert not needs_batches(path)
    assert not needs_batches(tmp_path / "nobody.csv")
    assert needs_batches(path, Limits(bytes=100))
    assert needs_batches(path, Limits(rows=99))
    assert needs_batches(path, Limits(unpacked_bytes=100))
    for bad in (b"", b"PAR1", path.read_bytes()[:-3]):
        (tmp_path / "bad.parquet").write_bytes(bad)
        assert not needs_batches(tmp_path / "bad.parquet")
    odd = tmp_path / "a[1].parquet"
    pq.write_table(people(10), odd)
    assert not needs_batches(odd)
    assert survey(open_table(odd), KEY).rows == 10


def test_moments_with_cells_as_features(counted):
    from core.moments import Indicator

    batches, raw = counted
    stream, memory = BatchedSource(batches), InMemorySource(encode(raw, PEOPLE))
    plain = MomentFrame.from_bounds(PEOPLE, ["age", "pay"])
    frame = MomentFrame(plain.scales, indicators=(("rome", Indicator("city", 1)),), complete=True)
    request = MomentRequest(frame, (("age", "rome"), ("pay", "rome"), ("age", "pay")))
    np.testing.assert_array_equal(stream.moments(request), memory.moments(request))
    clipped = MomentFrame.from_bounds(PEOPLE, ["age", "pay"], clip_squared=Fraction(5, 4))
    np.testing.assert_array_equal(stream.gram(clipped), memory.gram(clipped))
