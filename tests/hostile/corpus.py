"""Hostile tables made in code: names and cells that have broken somebody's program before."""

from __future__ import annotations

import csv
import io
from datetime import date, datetime
from random import Random
from typing import Any

#: Names and texts that mean something to a browser, a spreadsheet, a terminal or a path.
PAYLOADS: tuple[str, ...] = (
    "<script>window.flag=1</script>",
    "</script><script>window.flag=1</script>",
    "<img src=x onerror=window.flag=1>",
    "\"><svg onload='window.flag=1'>",
    "javascript:window.flag=1",
    "[click](javascript:window.flag=1)",
    "![x](http://example.com/x.png)",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://example.com","x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "a;=1+1",
    "＝1+1",
    "'=1+1",
    "../../../etc/passwd",
    "C:\\windows\\system32",
    "a\x1b[2Jb\x07",
    "%s%n%x",
    "'; DROP TABLE x; --",
    "__proto__",
    "constructor",
    "toString",
    "</body><body>",
)
#: Letters that are hard to show: joined, turned round, unseen, without end.
LETTERS: tuple[str, ...] = (
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    "\U0001f1e9\U0001f1ea",
    "שלום עולם",
    "مرحبا",
    "\u202eevil\u202c",
    "\u2066a\u2069",
    "a\u200bb",
    "\ufeffa",
    "e\u0301",
    "é",
    "Z" + "\u0351\u0363\u0489" * 40,
    "\u00a0",
    "\u3000",
    "ｆｕｌｌ",
    "ß",
    "İ",
    "\U0010ffff",
    "\u2028x\u2029",
    "\x85",
    "东京",
)
NUMBERS: tuple[str, ...] = (
    *("0", "-0", "-0.0", "+5", "007", "1e5", "1E+5", "1e308", "-1e308", "1e309", "-1e309"),
    *("1e-400", "1e400", "nan", "NaN", "inf", "-Infinity", "1_000", "0x10", "١٢٣", "1,234"),
    *("1.234,5", "9007199254740993", "18446744073709551616", "9" * 400, "0." + "0" * 400 + "1"),
    *("1e", ".", "-", "+", "--1", "1.2.3", "½", "1\u00a0000", "1 000", "True", "NULL", "None"),
    *("2020-02-30", "0000-00-00", "9999-12-31", "10000-01-01", "20240131", "31.12.2020"),
    *("2020-01-01T25:00", "2020-01-01 12:00:00+99:99", "1877-03-07", "#REF!", "#DIV/0!", "?"),
)
TYPED: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, -(2**63), 2**63 - 1, 0.1, -0.0, 1e308, -1e308),
    *(5e-324, float("inf"), float("-inf"), float("nan")),
    *(date(1, 1, 1), date(9999, 12, 31), datetime(1970, 1, 1), datetime(2038, 1, 19, 3, 14, 8)),
)


def random_name(random: Random) -> str:
    """A column name; now and then one that is in the declarations."""
    from tests.hostile import seeds

    return random.choice(
        (
            random.choice(PAYLOADS),
            random.choice(LETTERS),
            random.choice(NUMBERS),
            random.choice(seeds.HEADER),
            random.choice(seeds.HEADER),
            "x" * random.choice((1, 199, 200, 201)),
            f"c{random.randrange(9)}",
        )
    )


def random_cell(random: Random) -> str:
    """A text cell."""
    kind = random.randrange(6)
    if kind == 0:
        return random.choice(PAYLOADS)
    if kind == 1:
        return random.choice(LETTERS)
    if kind == 2:
        return random.choice(("", " ", "a", "b", "f", "m", "yes", "no"))
    if kind == 3:
        return "x" * random.choice((1, 100, 5000))
    return random.choice(NUMBERS)


def random_table(random: Random, form: str) -> bytes:
    """A well-formed table of such names and cells as ``csv``, ``parquet`` or ``xlsx``."""
    width, height = random.randrange(1, 7), random.choice((1, 2, 3, 20, 60))
    names = [random_name(random) for _ in range(width)]
    if form == "csv":
        return _csv(random, names, height)
    if form == "parquet":
        return _parquet(random, names, height)
    return _workbook(random, names, height)


def _csv(random: Random, names: list[str], height: int) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer,
        delimiter=random.choice(",;\t|"),
        lineterminator=random.choice(("\n", "\r\n", "\r")),
        quoting=random.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL)),
    )
    writer.writerow(names)
    pools = [[random_cell(random) for _ in range(random.choice((1, 3, 40)))] for _ in names]
    for _ in range(height):
        writer.writerow([random.choice(pool) for pool in pools])
    codec = random.choice(("utf-8", "utf-8-sig", "utf-16", "utf-8", "cp1252", "latin-1"))
    return buffer.getvalue().encode(codec, "replace")


def _parquet(random: Random, names: list[str], height: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = [_array(random, height) for _ in names]
    buffer = io.BytesIO()
    pq.write_table(
        pa.table(arrays, names=names),
        buffer,
        compression=random.choice(("NONE", "SNAPPY", "GZIP", "ZSTD")),
        row_group_size=random.choice((1, 7, 1000)),
    )
    return buffer.getvalue()


def _array(random: Random, height: int) -> Any:
    """A column of a random type: extreme values, nulls, and types that cannot be read."""
    from decimal import Decimal

    import pyarrow as pa

    whole = [random.choice((None, 0, 1, -1, 2**7 - 1, -(2**7))) for _ in range(height)]
    unit = random.choice(("s", "ms", "us", "ns"))
    far = 2**62 if unit in ("us", "ns") else 2**53
    stamps = [random.choice((None, 0, 1, -far, far, 10**15)) for _ in range(height)]
    reals = [
        random.choice((None, 0.0, -0.0, 1e308, -1e308, 5e-324, float("inf"), float("nan")))
        for _ in range(height)
    ]
    texts = [random.choice((None, random_cell(random))) for _ in range(height)]
    makers = (
        lambda: pa.array(whole, pa.int8()),
        lambda: pa.array(whole, pa.int64()),
        lambda: pa.array([None if x is None else abs(x) + 2**63 for x in whole], pa.uint64()),
        lambda: pa.array(reals, pa.float64()),
        lambda: pa.array([None if x is None else 1.5 for x in reals], pa.float16()),
        lambda: pa.array([None if x is None else Decimal(x) for x in whole], pa.decimal128(38, 0)),
        lambda: pa.array([None if x is None else Decimal(x) for x in whole], pa.decimal256(76, 3)),
        lambda: pa.array(stamps, pa.timestamp(unit)),
        lambda: pa.array(stamps, pa.timestamp(unit, tz=random.choice(("UTC", "+14:00")))),
        lambda: pa.array([None if x is None else x % 2**31 for x in stamps], pa.date32()),
        lambda: pa.array([None if x is None else x > 0 for x in whole], pa.bool_()),
        lambda: pa.array(texts),
        lambda: pa.array(texts, pa.string()).dictionary_encode(),
        lambda: pa.array(whole, pa.int64()).dictionary_encode(),
        lambda: pa.nulls(height),
        lambda: pa.array([[1]] * height),
        lambda: pa.array([{"a": 1}] * height),
        lambda: pa.array([b"\xff"] * height),
        lambda: pa.array([None if x is None else 5 for x in whole], pa.time64("us")),
        lambda: pa.array([None if x is None else 5 for x in whole], pa.duration("s")),
        lambda: pa.array(texts, pa.string_view()),
    )
    return random.choice(makers)()


def _workbook(random: Random, names: list[str], height: int) -> bytes:
    import openpyxl
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = openpyxl.Workbook()
    pools = [
        [
            random.choice((random_cell(random), random.choice(TYPED)))
            for _ in range(random.choice((1, 3, 40)))
        ]
        for _ in names
    ]
    for row in (names, *([random.choice(pool) for pool in pools] for _ in range(height))):
        try:
            book.active.append(row)
        except (IllegalCharacterError, ValueError):
            book.active.append(["x"] * len(row))
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()
