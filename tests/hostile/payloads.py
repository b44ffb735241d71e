"""A plan and a table in which every name and label means something to somebody's program."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from typing import Any

import numpy as np

from core.plan import (
    CovariancePlan,
    Plan,
    PopulationPlan,
    PosteriorPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
)
from core.pumba.settings import Settings
from core.pumba.specification import AnalysisSpec
from core.roles import Role, Roles
from core.schema import Column, Kind, Schema

FLAG = "window.flag=1"
#: Columns, by what they are.
GROUP = f"<script>{FLAG}</script>"
OUTCOME = '=HYPERLINK("http://example.com","x")'
NUMBER = "-2+3+cmd|' /C calc'!A0"
OTHER = f"\"><img src=x onerror='{FLAG}'>"
HIDDEN = "\u202eevil"
PROTO = "__proto__"
MARKDOWN = "[x](javascript:alert) ![y](http://example.com/y.png) |a|"
LABELS = (
    *("=1+1", "@SUM(1+1)", "+1+cmd|' /C calc'!A0", "a;=1+1", "\t=1"),
    f"</script><script>{FLAG}//",
)
ANALYSES = ("=cmd|' /C calc'!A0", f"<img src=x onerror={FLAG}>", "@mean")
POPULATION = f"=1+1 <script>{FLAG}</script> | people"
ROWS = 600


def schema() -> Schema:
    return Schema(
        (
            Column(GROUP, Kind.CATEGORICAL, categories=LABELS),
            Column(OUTCOME, Kind.BOOLEAN, categories=("-no", "=yes")),
            Column(NUMBER, Kind.INTEGER, lower=-50, upper=49, bins=4),
            Column(OTHER, Kind.REAL, lower=-1, upper=1, bins=4, decimals=2),
            Column(HIDDEN, Kind.ORDINAL, categories=("-5", "5", "שלום")),
            Column(PROTO, Kind.CATEGORICAL, categories=("constructor", "toString")),
            Column(MARKDOWN, Kind.CATEGORICAL, categories=("# a", "* b")),
        )
    )


def plan() -> Plan:
    """A tree, three analyses and a covariance."""
    asked: tuple[dict[str, Any], ...] = (
        {"kind": "mean", "outcome": NUMBER, "by": GROUP, "groups": LABELS[:3]},
        {"kind": "regression", "outcome": NUMBER, "predictors": (OTHER, OUTCOME)},
        {"kind": "table", "variables": (GROUP, HIDDEN)},
    )
    return Plan(
        population=PopulationPlan(POPULATION, cap=Fraction(9)),
        schema=schema(),
        roles=Roles({GROUP: Role.PROTECTED, OUTCOME: Role.OUTCOME, NUMBER: Role.ADMISSIBLE}),
        tree=TreePlan(Fraction(1)),
        reading=ReadingPlan(delimiter=",", encoding="utf-8", decimal="."),
        synthetic=SyntheticPlan(rows=80, files=("csv", "parquet", "spreadsheet")),
        posteriors=tuple(
            PosteriorPlan(
                AnalysisSpec.from_dict({"name": name, **question}), Fraction(1), Settings(draws=200)
            )
            for name, question in zip(ANALYSES, asked, strict=True)
        ),
        covariance=CovariancePlan((NUMBER, OTHER), Fraction(1)),
    )


def table() -> bytes:
    """Rows that fit, as CSV."""
    generator = np.random.default_rng(0)
    columns = [
        generator.choice(column.categories, ROWS)
        if column.categories
        else generator.integers(-40, 40, ROWS)
        if column.kind is Kind.INTEGER
        else generator.uniform(-1, 1, ROWS).round(2)
        for column in schema().columns
    ]
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(schema().names)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
    return buffer.getvalue().encode()
