"""Tables in DuckDB and in memory, side by side: what the tests of database sources share."""

import io
import itertools
import warnings

import numpy as np
import pyarrow.parquet as pq

from core.moments import Indicator, MomentFrame, MomentRequest
from core.private.coding import encode
from core.private.reading import read_table
from core.private.source import InMemorySource
from core.releases import Recoding


def connected():
    """An empty DuckDB database in memory, through Ibis."""
    import ibis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ibis.duckdb.connect()


def put(connection, table, name="people"):
    """An Arrow table as a DuckDB table."""
    connection.con.register("given", table)
    quoted = name.replace('"', '""')
    connection.con.execute(f'CREATE OR REPLACE TABLE "{quoted}" AS SELECT * FROM given')
    connection.con.unregister("given")
    return connection.table(name)


def in_memory(table, schema):
    """The same rows through a Parquet file and the coder."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return InMemorySource(encode(read_table(buffer.getvalue(), name="people.parquet"), schema))


def frames(schema, numeric):
    """Frames of every kind that a plan can ask for."""
    names = sorted(numeric)
    plain = MomentFrame.from_bounds(schema, names)
    yield plain
    yield MomentFrame.from_bounds(
        schema, names, centres={names[0]: schema[names[0]].bounds[0] + 1 / 3}
    )
    for clip in (1, len(names)):
        yield MomentFrame(plain.scales, clip_squared=clip * 1.0001, whole_rows=clip == 1)
    yield MomentFrame(plain.scales, complete=True)
    cells = [
        (f"cell {place}", Indicator(column.name, column.size - 1))
        for place, column in enumerate(schema.columns)
        if column.name not in numeric
    ]
    if cells:
        yield MomentFrame(plain.scales, indicators=tuple(cells[:2]), complete=True)
        yield MomentFrame((), indicators=tuple(cells[:2]))


def requests(frame):
    """Sums of every degree of a frame."""
    features = frame.features
    if frame.plain:
        for degree in (1, 2, 3, 4):
            some = itertools.combinations_with_replacement(features[:3], degree)
            yield MomentRequest(frame, tuple(some))
        return
    cells = frame.cells
    mixed = [(name,) for name in features]
    mixed += [
        (one, other)
        for one, other in itertools.combinations(features, 2)
        if not (one in cells and other in cells and cells[one].column == cells[other].column)
    ]
    mixed += [(name, name, other) for name in frame.columns[:2] for other in features[:3]]
    if frame.complete:
        mixed.append(())
    wanted = tuple(dict.fromkeys(tuple(sorted(names)) for names in mixed))
    wanted = tuple(n for n in wanted if all(n.count(f) == 1 or f not in cells for f in n))
    yield MomentRequest(frame, wanted, mixed=True)


def assert_same_answers(source, memory):
    """Counts and moments of every kind, number for number."""
    schema, names = memory.schema, memory.schema.names
    assert source.schema == schema
    assert source.row_count() == memory.row_count()
    assert source.numeric == memory.numeric
    cliques = [(n,) for n in names] + list(itertools.permutations(names, 2)) + [tuple(names[:3])]
    halved = {n: np.arange(schema[n].size) // 2 for n in names[::2]}
    for recoding in (None, Recoding(halved)):
        pairs = zip(source.counts(cliques, recoding), memory.counts(cliques, recoding), strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
    if not memory.numeric:
        return
    for frame in frames(schema, memory.numeric):
        for request in requests(frame):
            np.testing.assert_array_equal(source.moments(request), memory.moments(request))
        if frame.plain:
            np.testing.assert_array_equal(source.gram(frame), memory.gram(frame))
        if frame.plain and frame.clip_squared is None:
            radii = [0, 1, 1000, 1 << 40]
            np.testing.assert_array_equal(
                source.norm_profile(frame, radii), memory.norm_profile(frame, radii)
            )
