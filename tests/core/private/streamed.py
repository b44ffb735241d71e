"""A table in memory and in batches: the ways to make one, and what must be the same."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.moments import MomentFrame, MomentRequest
from core.private.batches import BatchedSource
from core.private.coding import encode
from core.private.fingerprint import fingerprint
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.private.streaming import StreamedBatches, open_table, survey
from core.releases import Recoding
from core.schema import Column, Schema

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
