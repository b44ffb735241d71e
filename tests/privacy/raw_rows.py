"""Raw rows as a file might hold them, at their worst, and the way from there to a coded table."""

from __future__ import annotations

import pandas as pd

from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.releases import Unit
from core.roles import Role, Roles
from core.schema import Column, Kind, Missing, OutOfDomain, Schema

SCHEMA = Schema(
    (
        Column("person", Kind.IDENTIFIER),
        Column("sex", Kind.BOOLEAN, categories=("f", "m")),
        Column("job", Kind.CATEGORICAL, categories=("clerk", "cook", "judge")),
        Column("age", Kind.INTEGER, lower=18, upper=97, bins=4),
        Column("pay", Kind.REAL, lower=0, upper=90, bins=3, out_of_domain=OutOfDomain.OTHER),
        Column(
            "since",
            Kind.DATE,
            lower="2020-01-01",
            upper="2020-12-31",
            unit="quarter",
            missing=Missing.CONSTANT,
            missing_constant="2020-07-01",
        ),
        Column(
            "hired",
            Kind.CATEGORICAL,
            categories=("no", "yes"),
            other_label="no",
            missing_label="no",
        ),
    )
)

ROLES = Roles(
    {
        "sex": Role.PROTECTED,
        "job": Role.ADMISSIBLE,
        "hired": Role.OUTCOME,
        "age": Role.INADMISSIBLE,
        "pay": Role.INADMISSIBLE,
        "since": Role.INADMISSIBLE,
    },
    proxies=frozenset({"age"}),
)

#: Proper values first, then missing, out of domain, outliers and nonsense.
CELLS = {
    "sex": ["f", "m", "", "x", " f "],
    "job": ["clerk", "cook", "judge", "", "astronaut", "CLERK"],
    "age": [
        "18",
        "40",
        "97",
        "",
        "-3",
        "1000000000",
        "1e308",
        "inf",
        "-inf",
        "nan",
        "forty",
        "41.5",
    ],
    "pay": ["0", "31.25", "90", "", "-0.01", "9e99", "1e309", "NaN", "n/a", "12,5"],
    "since": ["2020-01-01", "2020-08-30", "", "1066-10-14", "9999-12-31", "soon", "2020-13-45"],
    "hired": ["no", "yes", "", "perhaps"],
}


def draw_row(generator):
    """One raw row; half of its cells are proper values."""
    row = {}
    for name, cells in CELLS.items():
        proper = 2 if generator.random() < 0.5 else len(cells)
        row[name] = cells[generator.integers(proper)]
    return row


def coded(rows, *, people=None, unit=None):
    """Encode raw rows, each with a person's id (all different unless given)."""
    people = [f"p{index}" for index in range(len(rows))] if people is None else people
    frame = pd.DataFrame(
        {"person": people, **{name: [row[name] for row in rows] for name in CELLS}}, dtype="str"
    )
    raw = RawTable(frame, "rows.csv", ReadingReport("csv"))
    return encode(raw, SCHEMA, unit=unit or Unit(), key=b"a fixed key for tests")
