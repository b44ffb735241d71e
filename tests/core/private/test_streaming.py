"""Tables that pass through in batches give the numbers of the same table in memory."""

import datetime
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ReadingError, SchemaError
from core.private import streaming_csv, streaming_parquet
from core.private.batches import BatchedSource
from core.private.coding import encode
from core.private.fingerprint import fingerprint
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.private.streaming import StreamedBatches, needs_batches, open_table, survey
from core.releases import Unit
from core.schema import Schema
from tests.core.private.streamed import (
    KEY,
    PEOPLE,
    assert_answers,
    assert_same,
    folder_of,
    people,
    source_of,
)
from tests.core.schema_strategies import DIRT, MODELLED, QUICK, columns, schemas

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
