"""Bombs: small files that would unpack, nest or repeat themselves into all memory and time.

They are thrown in a process of its own with a limit on its address space, next to an honest file
whose time and memory they are measured against.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Address space of the process; its libraries alone reserve about a third.
ADDRESS_SPACE = 3_000_000_000
#: What a bomb may take beyond the honest file's: memory in bytes, and processor time as a ratio.
MEMORY = 400_000_000
RATIO = 15
#: What a table may unpack to here; the product's own limit is larger, and slow to make.
LIMIT = 100_000_000


def repeated_rows(count: int, row: str) -> bytes:
    from tests.hostile.test_tables import rows, sheet

    return sheet(rows(row * count))


def workbook_of_texts(count: int) -> bytes:
    from tests.hostile import seeds

    return seeds.with_shared_strings(["x"] * count, "0 0")


def long_text(letters: int) -> bytes:
    """One cell whose page unpacks to so many letters, and a footer that says it is small."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"a": ["x" * letters]}),
        buffer,
        compression="GZIP",
        use_dictionary=False,
        write_statistics=False,
    )
    data = bytearray(buffer.getvalue())
    chunk = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata.row_group(0).column(0)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    told = _varint(2 * chunk.total_uncompressed_size)
    small = bytes([0x80 | 20, *[0x80] * (len(told) - 2), 0])
    assert data[footer:].count(told) >= 1
    data[footer:] = data[footer:].replace(told, small)
    return bytes(data)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def many_equal_rows(count: int) -> bytes:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array(["x" * 10_000]))
    pq.write_table(pa.table({"a": column}), buffer, store_schema=False)
    return buffer.getvalue()


def bundle_of_zeros(size: int) -> bytes:
    from tests.hostile import seeds
    from tests.hostile.mutation import unzipped, zipped

    name = "SIMULATED_NOT_PRIVATE_synthetic.csv"
    return zipped({**unzipped(seeds.bundle()), name: bytes(size)})


def release_of_zeros(size: int) -> bytes:
    import numpy as np

    from core.bundle import bundle_bytes
    from tests.hostile import seeds

    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.zeros(4, np.uint8), a=np.zeros(size, np.uint8))
    return bundle_bytes({**seeds.derived().files, "release.npz": buffer.getvalue()}, True)


ROW = '<row><c t="inlineStr"><is><t>x</t></is></c><c><v>1</v></c></row>'
WIDE = '<row><c r="SF1"><v>1</v></c></row>'
TABLE, PARQUET, WORKBOOK, BUNDLE = "t.csv", "t.parquet", "t.xlsx", "bundle.zip"
BATCHES = "batches.parquet"
#: How each is made, what it is called, and words of the refusal.
BOMBS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "a sheet of one repeated row": (lambda: repeated_rows(400_000, ROW), WORKBOOK, "150 times"),
    "a table of one repeated text": (lambda: workbook_of_texts(1_500_000), WORKBOOK, "150 times"),
    "rows as wide as a sheet": (lambda: repeated_rows(110_000, WIDE), WORKBOOK, "30,000,000 cells"),
    "a row far below": (
        lambda: repeated_rows(1, '<row r="1"><c><v>1</v></c></row><row r="9999999999"/>' + ROW),
        WORKBOOK,
        "larger than 1048576 rows",
    ),
    "a page that the footer calls small": (
        lambda: long_text(LIMIT + 10**6),
        PARQUET,
        "larger than",
    ),
    "a page that does not fit into memory": (
        lambda: long_text(LIMIT + 10**6),
        BATCHES,
        "smaller pages",
    ),
    "long texts in ten million rows": (
        lambda: many_equal_rows(10_000_000),
        PARQUET,
        "texts are larger",
    ),
    "a bundle's table of zeros": (lambda: bundle_of_zeros(150_000_000), BUNDLE, "was changed"),
    "a bundle's release of zeros": (lambda: release_of_zeros(60_000_000), BUNDLE, "is damaged"),
    "a line of 50 MB": (lambda: b"a," * 25_000_000, TABLE, "10,000,000 characters"),
    "two million blank lines": (lambda: b"a,b\n" + b"\n" * 2_000_000, TABLE, "no row below"),
}
HONEST = "an honest workbook"


def throw(path: Path, name: str) -> str:
    """What a person is told about the file."""
    from core.bundle import verify
    from core.errors import JustitiaError
    from core.private import streaming, streaming_parquet
    from core.private.reading import Limits, read_table

    streaming_parquet.PAGE_BYTES = LIMIT
    data = path.read_bytes()
    try:
        if name == BUNDLE:
            verify(data)
        elif name == BATCHES:
            table = streaming.open_table(path)
            list(table.parts[0].batches(table.names))
        else:
            read_table(data, name=name, limits=Limits(unpacked_bytes=LIMIT))
    except JustitiaError as error:
        return str(error)
    return "read"


def child(folder: str) -> None:
    """Throw every file of a folder in turn, and print what happened as one JSON line each."""
    import pandas  # noqa: F401 - what every table needs is no part of what a bomb takes
    import pyarrow.parquet  # noqa: F401

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for path in sorted(Path(folder).iterdir()):
        reader = os.fork()
        if not reader:
            _thrown(path)
        os.waitpid(reader, 0)


def _thrown(path: Path) -> None:
    """In a process of its own, so that memory is this file's alone."""
    number, _, name = path.name.partition(" ")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        told = throw(path, name)
    except BaseException as error:
        told = f"RAISED {type(error).__name__}: {error}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    line = json.dumps([int(number), told, time.process_time() - start, grown])
    os.write(1, f"{line}\n".encode())
    os._exit(0)


@pytest.fixture(scope="module")
def thrown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    files = {HONEST: (lambda: repeated_rows(30_000, ROW), WORKBOOK, "read"), **BOMBS}
    for number, (make, name, _) in enumerate(files.values()):
        (folder / f"{number} {name}").write_bytes(make())
    code = f"from tests.hostile.test_bombs import child; child({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=280,
    )
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {number: rest for number, *rest in lines}
    return {case: found[number] for number, case in enumerate(files)}


def test_the_honest_file_is_read(thrown):
    assert thrown[HONEST][0] == "read"


@pytest.mark.parametrize("case", sorted(BOMBS))
def test_a_bomb_is_named_in_bounded_time_and_memory(case, thrown):
    told, seconds, grown = thrown[case]
    _, honest_seconds, honest_grown = thrown[HONEST]
    assert BOMBS[case][2] in told
    assert "\n" not in told
    assert not told.startswith("RAISED")
    assert seconds < RATIO * honest_seconds
    assert grown < honest_grown + MEMORY
