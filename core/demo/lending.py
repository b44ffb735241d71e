"""Lending: origin may matter through the credit history, and in truth matters directly."""

from __future__ import annotations

from datetime import date

import numpy as np

from core.demo.world import (
    Array,
    Equation,
    Given,
    Holes,
    Outcome,
    World,
    at,
    cell,
    choose,
    complete,
    rank,
    roles_of,
)
from core.schema import Column, Kind, Schema

STORY = (
    "A bank decides on consumer loans: declined, a smaller counter-offer, or approved. People "
    "born abroad have had less time to build a credit history, and the history is a fair reason. "
    "Decisions should rest on the credit history and the bracket of the debt ratio. In truth the "
    "officers also lower the score of applicants born abroad, and the town is so segregated that "
    "the district gives the origin away. Employment, income, savings and purpose matter only "
    "through the debt ratio and the history."
)

_FIRST = date(2024, 1, 1).toordinal()
_DAYS = 366

SCHEMA = Schema(
    (
        Column("loan_id", Kind.IDENTIFIER, reason="a running number, different in every row"),
        Column(
            "origin",
            Kind.CATEGORICAL,
            categories=("born here", "born abroad"),
            other_label="born here",
            missing_label="not stated",
        ),
        complete(
            "district",
            Kind.CATEGORICAL,
            "Old Town",
            categories=("Old Town", "Lakeside", "North Park", "Mill Quarter", "Harbour", "Docks"),
        ),
        complete(
            "age",
            Kind.INTEGER,
            40,
            lower=18,
            upper=81,
            bins=8,
        ),
        Column(
            "employment",
            Kind.CATEGORICAL,
            categories=("employee", "public service", "self-employed", "student", "retired"),
        ),
        Column(
            "monthly_income",
            Kind.REAL,
            lower=0,
            upper=12_000,
            edges=(0, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000, 5_500, 12_000),
            decimals=2,
            missing_label="not stated",
        ),
        Column(
            "savings",
            Kind.INTEGER,
            lower=0,
            upper=100_000,
            edges=(0, 500, 2_000, 5_000, 10_000, 25_000, 100_000),
            missing_label="not stated",
        ),
        complete(
            "credit_history",
            Kind.ORDINAL,
            "none",
            categories=("none", "short", "fair", "good", "excellent"),
        ),
        complete(
            "existing_customer",
            Kind.BOOLEAN,
            "no",
            categories=("no", "yes"),
        ),
        complete(
            "purpose",
            Kind.CATEGORICAL,
            "other",
            categories=("car", "home repair", "education", "furniture", "travel", "other"),
        ),
        complete(
            "loan_amount",
            Kind.INTEGER,
            5_000,
            lower=500,
            upper=50_000,
            edges=(500, 2_000, 4_000, 7_000, 10_000, 15_000, 25_000, 50_000),
        ),
        complete(
            "debt_ratio",
            Kind.REAL,
            0,
            lower=0,
            upper=1,
            edges=(0, 0.05, 0.1, 0.15, 0.2, 0.3, 1),
            decimals=3,
        ),
        complete(
            "applied_on",
            Kind.DATE,
            "2024-01-01",
            lower="2024-01-01",
            upper="2024-12-31",
            unit="month",
        ),
        complete(
            "decision",
            Kind.ORDINAL,
            "declined",
            categories=("declined", "counter-offer", "approved"),
        ),
    )
)

ROLES = roles_of(
    SCHEMA,
    protected={"origin"},
    outcome={"decision"},
    admissible={"credit_history", "debt_ratio"},
    proxies={"district"},
)


def _origin(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return choose(noise, rows, [0.66, 0.34])


def _district(noise: np.random.Generator, rows: int, given: Given) -> Array:
    shares = np.array([[0.27, 0.24, 0.23, 0.14, 0.07, 0.05], [0.05, 0.04, 0.06, 0.17, 0.33, 0.35]])
    return choose(noise, rows, shares[given["origin"]])


def _age(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return 18 + np.floor(64 * noise.beta(1.7, 2.5, rows))


def _employment(noise: np.random.Generator, rows: int, given: Given) -> Array:
    shares = np.array(
        [
            [0.48, 0.08, 0.05, 0.39, 0.00],
            [0.66, 0.17, 0.14, 0.03, 0.00],
            [0.60, 0.20, 0.20, 0.00, 0.00],
            [0.13, 0.05, 0.09, 0.00, 0.73],
        ]
    )
    return choose(noise, rows, shares[np.searchsorted([26, 40, 62], given["age"], side="right")])


def _income(noise: np.random.Generator, rows: int, given: Given) -> Array:
    middle = at([2_500, 2_900, 2_600, 900, 1_700], given["employment"])
    spread = at([0.34, 0.24, 0.55, 0.30, 0.30], given["employment"])
    career = 0.012 * (np.clip(given["age"], 18, 60) - 40)
    euros = middle * np.exp(career + spread * noise.normal(size=rows))
    income: Array = np.clip(euros, 300, 12_000)
    return income


def _savings(noise: np.random.Generator, rows: int, given: Given) -> Array:
    months = np.exp(-0.3 + 0.03 * (given["age"] - 40) + 1.1 * noise.normal(size=rows))
    savings: Array = np.clip(np.floor(given["monthly_income"] * months), 0, 100_000)
    return savings


def _history(noise: np.random.Generator, rows: int, given: Given) -> Array:
    wealth = 0.9 * np.log1p(given["savings"] / 1_000)
    newcomer = at([0.0, -0.75], given["origin"])
    return rank(noise, wealth + newcomer, (-1.0, 0.2, 1.5, 3.0))


def _customer(noise: np.random.Generator, rows: int, given: Given) -> Array:
    share = 0.15 + 0.008 * (given["age"] - 18)
    return (noise.random(rows) < share).astype(np.int64)


def _purpose(noise: np.random.Generator, rows: int, given: Given) -> Array:
    shares = np.array(
        [
            [0.24, 0.04, 0.30, 0.16, 0.16, 0.10],
            [0.34, 0.18, 0.06, 0.20, 0.12, 0.10],
            [0.30, 0.32, 0.02, 0.12, 0.12, 0.12],
        ]
    )
    return choose(noise, rows, shares[np.searchsorted([27, 45], given["age"], side="right")])


def _amount(noise: np.random.Generator, rows: int, given: Given) -> Array:
    middle = at([12_000, 9_000, 6_000, 2_600, 2_000, 4_500], given["purpose"])
    means = 0.4 * np.log(given["monthly_income"] / 2_200)
    euros = middle * np.exp(means + 0.4 * noise.normal(size=rows))
    amount: Array = np.clip(100 * np.rint(euros / 100), 500, 50_000)
    return amount


def _debt(noise: np.random.Generator, rows: int, given: Given) -> Array:
    instalment = given["loan_amount"] / 36 + noise.exponential(90, rows)
    return np.clip(np.round(instalment / given["monthly_income"], 3), 0, 1)


def _applied(noise: np.random.Generator, rows: int, given: Given) -> Array:
    # Twelve equal parts of the year: travel is booked early, education starts in autumn.
    season = np.ones((6, 12))
    season[4, 1:6] = 2.5
    season[2, 6:10] = 3.0
    season[1, 2:7] = 1.6
    month = choose(noise, rows, season[given["purpose"]])
    days = (month + noise.random(rows)) * _DAYS / 12
    return _FIRST + np.minimum(np.floor(days), _DAYS - 1)


def _score(given: Given) -> Array:
    # The bank works by the public brackets of the debt ratio, not by its decimals.
    bracket = cell(SCHEMA["debt_ratio"], given["debt_ratio"])
    burden = at([0.9, 0.5, 0.0, -0.6, -1.3, -2.4], bracket)
    history = at([-1.9, -0.9, 0.0, 1.0, 1.9], given["credit_history"])
    return history + burden


WORLD = World(
    name="lending",
    story=STORY,
    schema=SCHEMA,
    roles=ROLES,
    equations=(
        Equation("origin", (), "66 % born here, 34 % born abroad", _origin),
        Equation(
            "district",
            ("origin",),
            "85 % of people born abroad live in three of six districts, 26 % of the others "
            "(the proxy)",
            _district,
        ),
        Equation("age", (), "18 to 81, most in their thirties and forties", _age),
        Equation("employment", ("age",), "students are young, the retired are old", _employment),
        Equation(
            "monthly_income",
            ("employment", "age"),
            "a middle income for each employment, 1.2 % more a year of age up to 60, with luck",
            _income,
        ),
        Equation("savings", ("monthly_income", "age"), "months of income; more with age", _savings),
        Equation(
            "credit_history",
            ("savings", "origin"),
            "rises with savings; people born abroad had less time (the legitimate path)",
            _history,
        ),
        Equation("existing_customer", ("age",), "0.8 points likelier a year of age", _customer),
        Equation("purpose", ("age",), "education when young, home repair later", _purpose),
        Equation(
            "loan_amount",
            ("purpose", "monthly_income"),
            "a middle amount for each purpose, more with income",
            _amount,
        ),
        Equation(
            "debt_ratio",
            ("loan_amount", "monthly_income"),
            "instalment of 36 months and older debts, divided by income",
            _debt,
        ),
        Equation("applied_on", ("purpose",), "travel in spring, education in autumn", _applied),
    ),
    outcome=Outcome(
        "decision",
        ("credit_history", "debt_ratio"),
        "latent score: points for the credit history and for the debt ratio's bracket; declined "
        "below -0.7, counter-offer below 0.5; the biased world takes 1.8 off for people born "
        "abroad",
        _score,
        (-0.7, 0.5),
        "origin",
        (0.0, -1.8),
    ),
    holes=(
        Holes("origin", "2 % left empty, by chance alone", (0.02,)),
        Holes("employment", "1 % left empty, by chance alone", (0.01,)),
        Holes(
            "monthly_income",
            "2 % left empty; 10 % of the self-employed, whose books are not closed",
            (0.02, 0.02, 0.10, 0.02, 0.02),
            "employment",
        ),
        Holes(
            "savings",
            "6 % left empty; 2 % of existing customers",
            (0.06, 0.02),
            "existing_customer",
        ),
    ),
    identifier="L",
)
