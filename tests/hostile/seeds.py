"""Valid files that the fuzzers damage; small, made in code, and full of canaries where rows are."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.schema import Column, Kind, Schema

ROOT = Path(__file__).parents[2]
#: Every confidential cell of a seed holds one of these; no message may.
CANARIES = ("canary", "98765432", "1877-03-07")

#: Declarations that fit the tables below.
SCHEMA = Schema(
    (
        Column("person", Kind.IDENTIFIER),
        Column("sex", Kind.CATEGORICAL, categories=("f", "m")),
        Column("age", Kind.INTEGER, lower=18, upper=97, bins=4),
        Column("pay", Kind.REAL, lower=0, upper=90, bins=3, out_of_domain="other"),
        Column("seen", Kind.DATE, lower="2020-01-01", upper="2020-12-31", unit="quarter"),
        Column("hired", Kind.BOOLEAN, categories=("no", "yes")),
    )
)
HEADER = ("person", "sex", "age", "pay", "seen", "hired")
ROWS: tuple[tuple[Any, ...], ...] = (
    ("canary-1", "f", 34, 1.5, date(2020, 2, 3), True),
    ("canary-2", "m", 51, 98765432.5, date(1877, 3, 7), False),
    ("canary-3", "canary", 98765432, None, None, None),
    ("canary-4", "f", -5, 80.25, date(2020, 11, 30), True),
)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


@lru_cache(maxsize=1)
def csv_files() -> tuple[bytes, ...]:
    """The table in several dialects."""
    plain = "\r\n".join(",".join(map(_text, row)) for row in (HEADER, *ROWS)) + "\r\n"
    quoted = "\n".join(";".join(f'"{_text(cell)}"' for cell in row) for row in (HEADER, *ROWS))
    return (
        plain.encode(),
        plain.replace("\r\n", "\r").encode("utf-8-sig"),
        plain.encode("utf-16"),
        quoted.replace("98765432.5", "98765432,5").encode("cp1252"),
        plain.replace(",", "\t").replace("canary", "canaryé").encode("latin-1"),
    )


@lru_cache(maxsize=1)
def parquet_files() -> tuple[bytes, ...]:
    """The table with the types of Parquet, in several layouts and compressions."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*ROWS, strict=True))
    plain = pa.table(dict(zip(HEADER, (pa.array(column) for column in columns), strict=True)))
    stamps = [
        None if day is None else datetime(*day.timetuple()[:6], tzinfo=UTC) for day in columns[4]
    ]
    typed = pa.table(
        {
            "person": pa.array(columns[0], pa.large_string()),
            "sex": pa.array(columns[1]).dictionary_encode(),
            "age": pa.array(columns[2], pa.int32()),
            "pay": pa.array(
                [None if x is None else Decimal(str(x)) for x in columns[3]], pa.decimal128(12, 2)
            ),
            "seen": pa.array(stamps, pa.timestamp("us", tz="Europe/Berlin")),
            "hired": pa.array(columns[5]),
            "half": pa.array([1.5, None, 2.5, np.nan], pa.float32()),
            "big": pa.array([2**64 - 1, 0, None, 1], pa.uint64()),
        }
    )
    files = []
    for table, settings in (
        (plain, {"compression": "NONE", "use_dictionary": False}),
        (typed, {"compression": "SNAPPY"}),
        (typed, {"compression": "ZSTD", "data_page_version": "2.0", "row_group_size": 2}),
        (plain, {"compression": "GZIP", "write_page_index": True}),
    ):
        buffer = io.BytesIO()
        pq.write_table(table, buffer, **settings)
        files.append(buffer.getvalue())
    return tuple(files)


@lru_cache(maxsize=1)
def workbooks() -> tuple[bytes, ...]:
    """The table as a workbook: typed, as texts, and with cells that are none of a table."""
    typed = (HEADER, *ROWS)
    texts = tuple(tuple(map(_text, row)) for row in typed)
    odd = (*typed, ("=1+1", "#DIV/0!", 1e308, time(3, 4), datetime(2020, 1, 1, 5), "x"))
    files = [_saved(rows) for rows in (typed, texts, odd)]
    return (*files, with_shared_strings(("person", "sex", "canary-1", "f")))


def _saved(rows: Sequence[Sequence[Any]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("second").append(["a"])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def with_shared_strings(texts: Sequence[str], indexes: str = "0 1 2 3") -> bytes:
    """A workbook of two columns as Excel itself writes it: texts in a table of their own."""
    from tests.hostile.mutation import unzipped, zipped

    namespace = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    cells = iter(indexes.split())
    rows = "".join(
        f'<row><c t="s"><v>{one}</v></c><c t="s"><v>{other}</v></c></row>'
        for one, other in zip(cells, cells, strict=True)
    )
    members = unzipped(_saved([["a"]]))
    members["xl/worksheets/sheet1.xml"] = (
        f"<worksheet {namespace}><sheetData>{rows}</sheetData></worksheet>".encode()
    )
    items = "".join(f"<si><t>{text}</t></si>" for text in texts)
    members["xl/sharedStrings.xml"] = f"<sst {namespace}>{items}</sst>".encode()
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    members["[Content_Types].xml"] = members["[Content_Types].xml"].replace(
        b"</Types>",
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'.encode(),
    )
    return zipped(members)


# -- public files ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def whole_plan() -> Any:
    """A plan with every section and every kind of analysis, on the small demo."""
    from core.plan import parse_plan
    from core.starting import demo_plan

    plan = demo_plan("hiring", rows=400)
    plan = replace(plan, population=replace(plan.population, cap=plan.population.cap * 4))
    numeric = [c.name for c in plan.schema.columns if c.kind in (Kind.INTEGER, Kind.REAL)]
    labelled = [c.name for c in plan.schema.columns if c.kind in (Kind.CATEGORICAL, Kind.ORDINAL)]
    text = plan.to_toml() + "\n".join(
        (
            "[reading]",
            'delimiter = ","',
            "[[posterior]]",
            'kind = "mean"',
            'name = "mean"',
            f"outcome = {json.dumps(numeric[0])}",
            f"by = {json.dumps(labelled[0])}",
            'rho = "1/10"',
            "draws = 100",
            "[[posterior]]",
            'kind = "regression"',
            'name = "slope"',
            f"outcome = {json.dumps(numeric[0])}",
            f"predictors = [{json.dumps(numeric[1])}]",
            'rho = "1/10"',
            "draws = 100",
            "[[posterior]]",
            'kind = "table"',
            'name = "table"',
            f"variables = [{json.dumps(labelled[0])}, {json.dumps(labelled[1])}]",
            'rho = "1/10"',
            "draws = 100",
            "[covariance]",
            'rho = "1/10"',
            f"columns = {json.dumps(numeric[:3])}",
            "",
        )
    )
    return parse_plan(text)


@lru_cache(maxsize=1)
def plans() -> tuple[bytes, ...]:
    """The whole plan, and one that a person wrote."""
    return (whole_plan().to_toml().encode(), _written().encode("utf-8-sig"))


def _written() -> str:
    return "\n".join(
        (
            "# a plan",
            "version = 1",
            "[population]",
            "name = 'people' # whose",
            "cap = '3/2'",
            "delta = 1e-9",
            "unit_rows = 2",
            'unit_person_column = "person"',
            "[reading]",
            'rename = { "a.b" = "sex" }',
            "[roles]",
            "protected = ['sex']",
            "outcome = ['hired']",
            "[[roles.constraints]]",
            "name = 'second'",
            "protected = ['sex']",
            "outcome = ['age']",
            "[tree]",
            "rho = 0.5",
            "split = [0.2, 0.5, 0.3]",
            *(
                line
                for column in SCHEMA.to_dict()["columns"]
                for line in (
                    "[[columns]]",
                    *(f"{key} = {json.dumps(value)}" for key, value in column.items()),
                )
            ),
            "",
        )
    )


@lru_cache(maxsize=1)
def codebooks() -> tuple[bytes, ...]:
    """The declarations as CSV and JSON."""
    from core.codebook import codebook_bytes

    schemas = (SCHEMA, whole_plan().schema)
    return tuple(codebook_bytes(schema, form) for schema in schemas for form in ("csv", "json"))


@lru_cache(maxsize=1)
def published() -> tuple[bytes, ...]:
    """Every example of the guide to published statistics, as CSV and as JSON."""
    import csv

    guide = (ROOT / "docs/published-statistics.md").read_text("utf-8")
    found = [text.encode() for text in re.findall(r"```csv\n(.*?)```", guide, flags=re.DOTALL)]
    assert len(found) >= 5
    for blob in found[:3]:
        rows = list(csv.DictReader(io.StringIO(blob.decode())))
        found.append(json.dumps({"statistics": rows}).encode())
    return tuple(found)


@lru_cache(maxsize=1)
def derived() -> Any:
    """A simulated run of the whole plan."""
    from core.runner import simulate

    return simulate(whole_plan(), seed=1)


def bundle() -> bytes:
    """Its bundle."""
    return bytes(derived().bundle)


@lru_cache(maxsize=1)
def projects() -> tuple[dict[str, Any], ...]:
    """Documents of kept projects."""
    from pages.shared.project import Project, Run
    from pages.shared.saved import to_plain

    plan = whole_plan()
    full = Project(
        identity="0" * 16,
        owner="local",
        name="project",
        demo=plan.demo,
        schema=plan.schema,
        population=plan.population,
        role_draft=plan.roles,
        roles=plan.roles,
        tree=plan.tree,
        synthetic=plan.synthetic,
        runs=(Run("r" * 16, plan.to_toml(), "demo", "table", "tree", 1),),
        views={"covariance": {"columns": ["a"]}},
        sign_off={"00": {"name": "a", "purpose": "b", "date": "2026-01-01"}},
    )
    return to_plain(full), to_plain(Project(identity="1" * 16, owner="local"))
