"""One task of the scale benchmark in a process of its own; prints one JSON line.

``python -m benchmarks.scale_tasks TASK ...``, see :data:`TASKS`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

#: Cells of the columns, over and over.
SIZES = (2, 18, 5, 9, 3, 12, 7, 16, 4, 6, 14, 8, 2, 10, 11)
FILE_ROWS, GROUP_ROWS = 10_000_000, 1_000_000
#: Rows at once where one ``bincount`` a pair goes through its columns in chunks.
CHUNK = 32_768
#: Of everything in memory; the quickest counts.
REPEATS = 3


def sizes_of(columns: int) -> dict[str, int]:
    """Cells by name."""
    return {f"c{place:03}": SIZES[place % len(SIZES)] for place in range(columns)}


def pairs_of(columns: int) -> list[tuple[str, str]]:
    """All pairs of names."""
    return list(itertools.combinations(sizes_of(columns), 2))


def schema_of(columns: int, texts: bool) -> Any:
    """Whole numbers with a cell each, or labels."""
    from core.schema import Column, Kind, Schema

    def column(name: str, size: int) -> Column:
        if texts:
            return Column(name, Kind.CATEGORICAL, categories=labels(size))
        return Column(name, Kind.INTEGER, lower=0, upper=size - 1, bins=size)

    return Schema(tuple(column(*item) for item in sizes_of(columns).items()))


def labels(size: int) -> tuple[str, ...]:
    """Category names of a column."""
    return tuple(f"category {code}" for code in range(size))


def drawn(generator: np.random.Generator, size: int, rows: int) -> np.ndarray:
    """Codes of falling frequency."""
    uniform = generator.random(rows, dtype=np.float32)
    return np.minimum(uniform * uniform * size, size - 1).astype(np.uint8)


# -- what a process costs --------------------------------------------------------------------


def resident() -> tuple[float, float]:
    """Resident memory now and at most, in MiB."""
    facts = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, most = (int(facts[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def cost(work: Callable[[], Any], repeats: int = 1) -> dict[str, Any]:
    """Least wall and CPU seconds, and memory in MiB: at most, and beyond what was there before."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, _ = resident()
    seconds, busy = [], []
    for _ in range(repeats):
        wall, cpu = perf_counter(), process_time()
        found = work()
        seconds.append(perf_counter() - wall)
        busy.append(process_time() - cpu)
    _, peak = resident()
    return {
        "seconds": min(seconds),
        "cpu": min(busy),
        "peak": peak,
        "extra": peak - before,
        "digest": found,
    }


def digest(tables: Iterable[np.ndarray]) -> str:
    """What tells that two ways counted the same."""
    whole = hashlib.sha256()
    for table in tables:
        whole.update(np.ascontiguousarray(table, dtype="<i8").tobytes())
    return whole.hexdigest()


# -- in memory -------------------------------------------------------------------------------


def memory(rows: str, columns: str, sample: str) -> dict[str, Any]:
    """Packed counting, one ``bincount`` a pair (whole and in chunks), and pandas, on one table."""
    import pandas as pd

    from core.private.source import InMemorySource
    from core.private.table import CodedTable

    count, sizes, pairs = int(rows), sizes_of(int(columns)), pairs_of(int(columns))
    generator = np.random.default_rng(0)
    codes = {name: np.empty(count, dtype=np.uint8) for name in sizes}
    for name, column in codes.items():
        for start in range(0, count, GROUP_ROWS):
            stop = min(start + GROUP_ROWS, count)
            column[start:stop] = drawn(generator, sizes[name], stop - start)
    source = InMemorySource(CodedTable(schema_of(int(columns), False), codes, {}, count))
    few = pairs[:: max(len(pairs) // int(sample), 1)]

    def ours(wanted: Sequence[tuple[str, str]]) -> str:
        first: dict[int, np.ndarray] = {}
        for index, table in source.each_count(wanted):
            if wanted[index] in few:
                a, b = wanted[index]
                first[index] = table[: sizes[a], : sizes[b]]
        return digest(first[index] for index in sorted(first))

    def bincount(wanted: Sequence[tuple[str, str]], step: int) -> str:
        tables = []
        for a, b in wanted:
            total = np.zeros(sizes[a] * sizes[b], dtype=np.int64)
            for start in range(0, count, step):
                part = slice(start, start + step)
                index = codes[a][part].astype(np.uint16) * np.uint16(sizes[b]) + codes[b][part]
                total += np.bincount(index, minlength=len(total))
            tables.append(total)
        return digest(tables)

    def grouped(frame: pd.DataFrame) -> str:
        tables = []
        for a, b in few:
            found = frame.groupby([a, b]).size()
            table = np.zeros((sizes[a], sizes[b]), dtype=np.int64)
            table[found.index.get_level_values(0), found.index.get_level_values(1)] = found
            tables.append(table)
        return digest(tables)

    frame = pd.DataFrame(codes, copy=False)
    return {
        "ours": cost(lambda: ours(pairs), REPEATS),
        "chunks": cost(lambda: bincount(few, CHUNK), REPEATS),
        "whole": cost(lambda: bincount(few, count), REPEATS),
        "pandas": cost(lambda: grouped(frame), REPEATS),
        "pairs": len(pairs),
        "sample": len(few),
    }


# -- from Parquet ----------------------------------------------------------------------------


def write(folder: str, rows: str, columns: str, texts: str) -> dict[str, Any]:
    """Files of ten million rows, in row groups of a million."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sizes, left, number = sizes_of(int(columns)), int(rows), 0
    words = {name: pa.array(labels(size)) for name, size in sizes.items()}
    while left:
        generator = np.random.default_rng(number)
        here, writer = min(left, FILE_ROWS), None
        left -= here
        path = Path(folder) / f"part-{number:03}.parquet"
        for start in range(0, here, GROUP_ROWS):
            group = min(GROUP_ROWS, here - start)
            arrays = {}
            for name, size in sizes.items():
                arrays[name] = pa.array(drawn(generator, size, group))
                if texts == "texts":
                    arrays[name] = pa.DictionaryArray.from_arrays(
                        arrays[name].cast(pa.int32()), words[name]
                    ).cast(pa.string())
            table = pa.table(arrays)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table, row_group_size=GROUP_ROWS)
        assert writer is not None
        writer.close()
        number += 1
    return {"bytes": sum(file.stat().st_size for file in Path(folder).iterdir())}


def ours(path: str, columns: str, texts: str, sample: str, look: str) -> dict[str, Any]:
    """All pair tables of a file, folder or glob in batches; beforehand, the look at all rows."""
    from core.private.batches import BatchedSource
    from core.private.streaming import StreamedBatches, open_table, survey

    schema, sizes = schema_of(int(columns), texts == "texts"), sizes_of(int(columns))
    pairs = pairs_of(int(columns))
    few = pairs[:: max(len(pairs) // int(sample), 1)]
    table = open_table(path)
    found: dict[str, Any] = {}
    rows = sum(part.rows or 0 for part in table.parts)
    if look == "look":
        found["look"] = cost(lambda: survey(table, b"k" * 32).mark)
    source = BatchedSource(StreamedBatches(table, schema, rows))

    def counted() -> str:
        tables = dict(zip(pairs, source.counts(pairs), strict=True))
        return digest(tables[a, b][: sizes[a], : sizes[b]] for a, b in few)

    found["count"] = cost(counted)
    return {**found, "rows": rows, "pairs": len(pairs)}


def duckdb(path: str, columns: str, texts: str, sample: str, every: str) -> dict[str, Any]:
    """One query a pair; all pairs, or the sample."""
    import duckdb as engine

    sizes, pairs = sizes_of(int(columns)), pairs_of(int(columns))
    few = pairs[:: max(len(pairs) // int(sample), 1)]
    wanted = pairs if every == "every" else few
    code = {word: place for place, word in enumerate(labels(max(SIZES)))}
    connection = engine.connect()

    def counted() -> str:
        tables = {}
        for a, b in wanted:
            pair = f"{a}, {b}"
            found = connection.read_parquet(path).aggregate(f"{pair}, count(*)", pair)
            table = np.zeros((sizes[a], sizes[b]), dtype=np.int64)
            for one, other, count in found.fetchall():
                place = (code[one], code[other]) if texts == "texts" else (one, other)
                table[place] = count
            tables[a, b] = table
        return digest(tables[pair] for pair in few)

    return {"count": cost(counted), "pairs": len(pairs), "sample": len(wanted)}


TASKS = {"memory": memory, "write": write, "ours": ours, "duckdb": duckdb}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])) + "\n")
