"""Tables in batches at work: files that change, what is counted anew, memory, progress, cancel."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import Cancelled, SourceError
from core.moments import MomentFrame, MomentRequest
from core.private import batches as batches_module
from core.private import counting, streaming_csv, streaming_parquet
from core.private import source as source_module
from core.private.batches import BatchedSource
from core.private.coding import encode
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.private.streaming import StreamedBatches, needs_batches, open_table, survey
from core.releases import Recoding
from tests.core.private.streamed import KEY, PEOPLE, assert_answers, folder_of, people, source_of

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
