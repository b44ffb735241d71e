"""A table with planted values, its plan, and the search for what was planted."""

from __future__ import annotations

import io
import struct
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from core.__main__ import main
from core.plan import Plan, PopulationPlan, ReadingPlan, TreePlan
from core.private.ledger import Ledger
from core.private.source import InMemorySource
from core.releases import Unit
from core.roles import Role, Roles
from core.schema import Column, Kind, OutOfDomain, Schema

ROOT = Path(__file__).parents[2]
ROWS = 400
#: Numbers of one outlying row; no bound, count or setting equals them.
OUTLIERS = (98765432, 87654321.625)

SCHEMA = Schema(
    (
        Column("person", Kind.IDENTIFIER),
        Column("sex", Kind.CATEGORICAL, categories=("f", "m")),
        Column("job", Kind.CATEGORICAL, categories=("clerk", "cook")),
        Column("age", Kind.INTEGER, lower=18, upper=97, bins=4),
        Column("pay", Kind.REAL, lower=0, upper=90, bins=3, out_of_domain=OutOfDomain.OTHER),
        Column("seen", Kind.DATE, lower="2020-01-01", upper="2020-12-31", unit="quarter"),
        Column("hired", Kind.BOOLEAN, categories=("no", "yes")),
        Column("illness", Kind.CATEGORICAL, categories=("cold", "flu")),
        Column("wealth", Kind.REAL, lower=0, upper=1000),
        Column("note", Kind.TEXT),
    )
)
ROLES = Roles(
    {
        "sex": Role.PROTECTED,
        "job": Role.ADMISSIBLE,
        "age": Role.INADMISSIBLE,
        "pay": Role.INADMISSIBLE,
        "seen": Role.INADMISSIBLE,
        "hired": Role.OUTCOME,
        "illness": Role.IGNORE,
        "wealth": Role.IGNORE,
    }
)
PEOPLE = Unit(2, "person")


def plan(*, unit=PEOPLE, schema=SCHEMA, roles=ROLES, rho="1/2", reading=None, **terms):
    return Plan(
        population=PopulationPlan("people", unit=unit, cap=Fraction(1000), **terms),
        schema=schema,
        roles=roles,
        tree=TreePlan(Fraction(rho)),
        reading=ReadingPlan(delimiter=",", encoding="utf-8", decimal=".")
        if reading is None
        else reading,
    )


def frame():
    """Ordinary people, and one with three rows of canaries in every column of the file."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "person": [f"P{number}" for number in range(ROWS)],
            "sex": generator.choice(["f", "m"], ROWS),
            "job": generator.choice(["clerk", "cook"], ROWS),
            "age": generator.integers(18, 80, ROWS).astype(str),
            "pay": generator.integers(0, 90, ROWS).astype(str),
            "seen": generator.choice(["2020-02-03", "2020-11-30"], ROWS),
            "hired": generator.choice(["no", "yes"], ROWS),
            "illness": generator.choice(["cold", "flu"], ROWS),
            "wealth": generator.integers(0, 900, ROWS).astype(str),
            "note": "nothing",
            "undeclared": "0",
        }
    )
    canary = {
        "person": "canary-id",
        "sex": "canary-sex",
        "job": "canary-job",
        "age": str(OUTLIERS[0]),
        "pay": str(OUTLIERS[1]),
        "seen": "1877-03-07",
        "hired": "canary-hired",
        "illness": "canary-illness",
        "wealth": str(OUTLIERS[1]),
        "note": "canary-note",
        "undeclared": "canary-undeclared",
    }
    return pd.concat([table, pd.DataFrame([canary] * 3)], ignore_index=True)


NEEDLES = (
    b"canary",
    b"98765432",
    b"87654321",
    b"1877-03-07",
    b"P399",
    *(struct.pack(form, number) for form in ("<q", "<d") for number in map(int, OUTLIERS)),
    struct.pack("<d", OUTLIERS[1]),
)


def needles_in(blob):
    """Which planted values a blob holds, archives opened."""
    found = {needle for needle in NEEDLES if needle in blob}
    found |= {needle for needle in NEEDLES if needle.decode("latin-1").encode("utf-16-le") in blob}
    if blob.startswith(b"PK") and zipfile.is_zipfile(io.BytesIO(blob)):
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            for name in archive.namelist():
                found |= needles_in(archive.read(name)) | needles_in(name.encode())
    return found


def traces(folder):
    """Planted values in names and contents of all files below a folder."""
    found = {}
    for path in folder.rglob("*"):
        here = needles_in(str(path.relative_to(folder)).encode())
        here |= needles_in(path.read_bytes()) if path.is_file() else set()
        if here:
            found[path.name] = here
    return found


def write(folder, form):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"table.{form}"
    table = frame()
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "parquet":
        for name in ("age", "pay", "wealth"):
            table[name] = table[name].astype(float)
        table.to_parquet(path)
    else:
        table.to_excel(path, index=False)
    return path


def chain(error):
    """An exception and what a printed traceback would show below it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def spends():
    ledger = Ledger()
    return [spend for terms in ledger.populations() for spend in ledger.spends(terms.name)]


def broken(error):
    def each_count(self, cliques, recoding=None):
        raise error

    return each_count


def failing_run(tmp_path, monkeypatch, error):
    monkeypatch.setattr(InMemorySource, "each_count", broken(error))
    data = write(tmp_path / "data", "csv")
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    arguments = ["run", str(tmp_path / "plan.toml"), "--data", str(data)]
    return main([*arguments, "--out", str(tmp_path / "out"), "--quiet"])
