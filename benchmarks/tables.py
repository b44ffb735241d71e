"""The papers' research tables, coded as the papers coded them: public files, raw values.

The files are not part of the project; every benchmark takes their directory as ``--data``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import demo
from core.private.coding import encode
from core.private.raw import RawTable, ReadingReport
from core.roles import Role, Roles
from core.schema import Column, Kind, Missing, Schema

IntArray = NDArray[np.int64]

#: Tables that need no file.
DEMOS = demo.names()


@dataclass(frozen=True, eq=False)
class ResearchTable:
    """Integer codes with the schema and roles that a paper used.

    Attributes
    ----------
    name
        Key in ``TABLES``.
    schema
        One categorical or ordinal column a name, without other- or missing-cells, so that cells
        are exactly the codes; a demo keeps its own declarations.
    codes
        One code a row and column.
    roles
        The roles of the variant.
    """

    name: str
    schema: Schema
    codes: Mapping[str, IntArray]
    roles: Roles

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.codes.values())))


def load(name: str, data: Path) -> ResearchTable:
    """The table of that name from a directory of CSV files."""
    return TABLES[name](name, data)


def data_argument(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``--data``, the directory of the research tables."""
    parser.add_argument(
        "--data", type=Path, required=required, help="directory that holds adult.csv, compas.csv, …"
    )


def demo_table(name: str) -> ResearchTable:
    """An embedded demo as a table of codes: made-up people, no file needed."""
    schema = demo.schema(name)
    used = schema.select([column.name for column in schema.modelled])
    raw = RawTable(demo.table(name), name, ReadingReport("demo"))
    codes = {
        column: values.astype(np.int64) for column, values in encode(raw, schema).codes.items()
    }
    return ResearchTable(name, used, {name: codes[name] for name in used.names}, demo.roles(name))


# -- building --------------------------------------------------------------------------------


def _build(
    name: str,
    coded: Mapping[str, tuple[IntArray, Sequence[str]]],
    *,
    protected: str,
    outcome: str,
    admissible: str,
) -> ResearchTable:
    columns = tuple(_column(column, labels) for column, (_, labels) in coded.items())
    roles = {
        **dict.fromkeys(protected.split(), Role.PROTECTED),
        **dict.fromkeys(outcome.split(), Role.OUTCOME),
        **dict.fromkeys(admissible.split(), Role.ADMISSIBLE),
    }
    unknown = set(roles) - set(coded)
    if unknown:
        raise KeyError(f"{name}: roles for unknown columns {sorted(unknown)}")
    codes = {column: values for column, (values, _) in coded.items()}
    return ResearchTable(name, Schema(columns), codes, Roles(roles))


def _column(name: str, labels: Sequence[str]) -> Column:
    """Exactly one cell a label: nothing is missing or out of domain in these tables."""
    return Column(
        name,
        Kind.CATEGORICAL,
        categories=tuple(labels),
        missing=Missing.CONSTANT,
        missing_constant=labels[0],
        other_label=labels[0],
    )


def _levels(values: pd.Series[Any]) -> tuple[IntArray, Sequence[str]]:
    """Distinct values in sorted order as cells."""
    codes, levels = pd.factorize(values, sort=True)
    if (codes < 0).any():
        raise ValueError(f"{values.name}: a value is missing")
    return codes.astype(np.int64), [str(level) for level in levels]


def _bins(values: pd.Series[Any], uppers: Sequence[float]) -> tuple[IntArray, Sequence[str]]:
    """Cells (…, u1], (u1, u2], …, (uk, …)."""
    codes = np.digitize(values.to_numpy(), uppers, right=True).astype(np.int64)
    return codes, [*(f"up to {upper:g}" for upper in uppers), f"above {uppers[-1]:g}"]


def _integers(values: pd.Series[Any], low: int, high: int) -> tuple[IntArray, Sequence[str]]:
    """One cell an integer, clipped to the bounds."""
    codes = values.clip(low, high).to_numpy().astype(np.int64) - low
    return codes, [str(value) for value in range(low, high + 1)]


def _flag(condition: pd.Series[Any]) -> tuple[IntArray, Sequence[str]]:
    return condition.to_numpy().astype(np.int64), ["no", "yes"]


# -- the tables ------------------------------------------------------------------------------

_OCCUPATIONS = (
    "Exec-managerial Prof-specialty",
    "Tech-support Sales Protective-serv",
    "Craft-repair Transport-moving",
    "Adm-clerical Machine-op-inspct Farming-fishing Armed-Forces",
    "Handlers-cleaners Other-service",
    "Priv-house-serv",
    "?",
)


def _adult(name: str, data: Path) -> ResearchTable:
    frame = pd.read_csv(data / "adult.csv", keep_default_na=False)
    group = {job: i for i, jobs in enumerate(_OCCUPATIONS) for job in jobs.split()}
    marital = frame["marital-status"]
    codes = np.select([marital == "Never-married", marital.str.startswith("Married")], [0, 1], 2)
    coded = {
        "age": _bins(frame["age"], (25, 35, 45, 60)),
        "education-num": _integers(frame["education-num"], 5, 13),
        "hours-per-week": _bins(frame["hours-per-week"], (20, 35, 40, 45, 60)),
        "income": _levels(frame["income"]),
        "marital-status": (codes.astype(np.int64), ["never", "married", "other"]),
        "occupation": (frame["occupation"].map(group).to_numpy().astype(np.int64), _OCCUPATIONS),
        "sex": _levels(frame["sex"]),
    }
    return _build(
        name,
        coded,
        protected="sex",
        outcome="income",
        admissible="occupation education-num hours-per-week age",
    )


_ADULT_ADMISSIBLE = {
    "adult-prefair": "workclass fnlwgt education-num occupation capital-gain capital-loss "
    "hours-per-week",
    "adult-prefair-small": "education-num occupation",
}


def _adult_codes(name: str, data: Path) -> ResearchTable:
    frame = pd.read_csv(data / "adult_codes.csv")
    sizes = json.loads((data / "adult_codes-domain.json").read_text(encoding="utf-8"))
    coded = {column: _integers(frame[column], 0, size - 1) for column, size in sizes.items()}
    return _build(
        name,
        coded,
        protected="race sex native-country",
        outcome="income>50K",
        admissible=_ADULT_ADMISSIBLE[name],
    )


def _compas(name: str, data: Path) -> ResearchTable:
    frame = pd.read_csv(data / "compas.csv")
    frame = frame[frame["race"].isin(["African-American", "Caucasian"])]
    priors = np.digitize(frame["priors_count"].to_numpy(), (1, 4)).astype(np.int64)
    coded = {
        "race": _levels(frame["race"]),
        "no_recid": _flag(frame["is_recid"] == 0),
        "c_charge_degree": _levels(frame["c_charge_degree"]),
        "age_cat": _levels(frame["age_cat"]),
        "priors_count": (priors, ["0", "1 to 3", "4 and more"]),
    }
    return _build(name, coded, protected="race", outcome="no_recid", admissible="c_charge_degree")


def _compas_prefair(name: str, data: Path) -> ResearchTable:
    frame = pd.read_csv(data / "compas.csv")
    coded = {
        "sex": _levels(frame["sex"]),
        "race": _levels(frame["race"]),
        "two_year_recid": _flag(frame["two_year_recid"] == 1),
        "c_charge_degree": _levels(frame["c_charge_degree"]),
        "priors_count": _integers(frame["priors_count"], 0, 15),
        "score_not_low": _flag(frame["score_text"] != "Low"),
        "age_above_45": _flag(frame["age_cat"] == "Greater than 45"),
        "age_below_25": _flag(frame["age_cat"] == "Less than 25"),
    }
    return _build(
        name,
        coded,
        protected="sex race",
        outcome="two_year_recid",
        admissible="c_charge_degree priors_count",
    )


_DUTCH_ADMISSIBLE = {
    "dutch": "edu_level economic_status cur_eco_activity",
    "dutch-alt": "economic_status household_position household_size",
}


def _dutch(name: str, data: Path) -> ResearchTable:
    frame = pd.read_csv(data / "dutch.csv")
    coded = {str(column): _levels(frame[column]) for column in frame.columns}
    return _build(
        name,
        coded,
        protected="sex",
        outcome="occupation",
        admissible=_DUTCH_ADMISSIBLE[name],
    )


def _law(name: str, data: Path) -> ResearchTable:
    used = ["race", "pass_bar", "decile3", "decile1", "grad", "indxgrp2", "cluster", "tier"]
    frame = pd.read_csv(data / "law.csv", usecols=used).dropna()
    return _build(
        name,
        {column: _levels(frame[column]) for column in used},
        protected="race",
        outcome="pass_bar",
        admissible="decile3 decile1 grad",
    )


def _german(name: str, data: Path) -> ResearchTable:
    frame = pd.read_csv(data / "german.csv", keep_default_na=False)
    coded = {str(column): _levels(frame[column]) for column in frame.columns}
    amount = frame["credit-amount"]
    coded["duration"] = _bins(frame["duration"], (12, 24, 36))
    coded["age"] = _bins(frame["age"], (25, 35, 50))
    coded["credit-amount"] = _bins(amount, amount.quantile([0.25, 0.5, 0.75]).tolist())
    return _build(
        name,
        coded,
        protected="sex",
        outcome="class-label",
        admissible="checking-account credit-history duration credit-amount savings-account "
        "employment-since installment-rate existing-credits other-debtors property",
    )


TABLES: Mapping[str, Callable[[str, Path], ResearchTable]] = {
    "adult": _adult,
    "adult-prefair": _adult_codes,
    "adult-prefair-small": _adult_codes,
    "compas": _compas,
    "compas-prefair": _compas_prefair,
    "dutch": _dutch,
    "dutch-alt": _dutch,
    "law": _law,
    "german": _german,
}
