"""A table of employees and questions of every kind about it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from core.private.table import CodedTable
from core.pumba.measure import release_statistics
from core.pumba.requests import AnalysisSpec
from core.releases import Relation
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE

SCHEMA = Schema(
    (
        Column("age", Kind.INTEGER, lower=20, upper=60, missing="constant", missing_constant=40),
        Column("pay", Kind.REAL, lower=0, upper=10, bins=5),
        Column("job", Kind.CATEGORICAL, categories=("clerk", "cook", "judge")),
        Column("sex", Kind.BOOLEAN, categories=("f", "m"), other_label="f", missing_label="f"),
        Column("id", Kind.IDENTIFIER),
    )
)

SPECS = {
    "mean": AnalysisSpec("mean", "age", outcome="age"),
    "mean with gaps": AnalysisSpec("mean", "pay", outcome="pay", moments=4),
    "means by group": AnalysisSpec("mean", "pay by sex", outcome="pay", by="sex"),
    "proportion": AnalysisSpec("proportion", "jobs", outcome="job"),
    "proportion by group": AnalysisSpec("proportion", "jobs by sex", outcome="job", by="sex"),
    "table": AnalysisSpec("table", "age and job", variables=("age", "job")),
    "difference": AnalysisSpec(
        "difference", "gap", outcome="pay", by="job", groups=("judge", "clerk"), moments=4
    ),
    "regression": AnalysisSpec(
        "regression",
        "wages",
        outcome="pay",
        predictors=("job", "age", "sex"),
        reference={"job": "cook"},
    ),
    "robust": AnalysisSpec("regression", "robust", outcome="pay", predictors=("age",), robust=True),
    "correlation": AnalysisSpec("correlation", "r", variables=("pay", "age")),
}


def staff(rows=2000, seed=0):
    """Coded rows: a tenth of the pay is missing, some jobs are none of those declared."""
    generator = np.random.default_rng(seed)
    job = generator.integers(0, SCHEMA["job"].size, rows)
    age = generator.integers(20, 61, rows).astype(float)
    sex = generator.integers(0, 2, rows)
    pay = np.clip(2 + 0.1 * (age - 40) + job + sex + generator.normal(size=rows), 0, 10)
    pay[generator.random(rows) < 0.1] = np.nan
    cells = np.where(np.isnan(pay), SCHEMA["pay"].missing_code, np.nan_to_num(pay) // 2.0001)
    ages = np.searchsorted(SCHEMA["age"].axis[1:-1], age, side="right")
    codes = {"job": job, "sex": sex, "pay": cells, "age": ages}
    return CodedTable(
        Schema(SCHEMA.modelled),
        {name: values.astype(np.uint8) for name, values in codes.items()},
        {"age": age, "pay": pay},
        rows,
    )


def grant_of(table=None, *, relation=ADD, rho=Fraction(1, 2), seed=1):
    """A grant with seeded noise."""
    vault = simulated_vault(staff() if table is None else table, seed=seed, relation=relation)
    return vault.grant(rho, "posterior", "id")


def measured(spec, table=None, *, relation=ADD, rho=Fraction(1, 2), seed=1, **settings):
    """The release of a question."""
    grant = grant_of(table, relation=relation, rho=rho, seed=seed)
    return release_statistics(grant, SCHEMA, spec, **settings)
