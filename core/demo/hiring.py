"""Hiring: gender may matter through the field of study, and in truth matters directly."""

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
    choose,
    complete,
    rank,
    roles_of,
)
from core.schema import Column, Kind, Schema

STORY = (
    "A group of firms takes applications through one portal. Women and men "
    "study different fields, and fields are in different demand: that difference may be "
    "explained. Decisions should rest on the field and the interview score. In truth the "
    "committees also mark women down, whatever their field and score, and long career gaps tell "
    "them who is who even where the gender is blanked out. Referred applicants have an easier "
    "time; salary wishes, age and region play no part in the decision."
)

_FIELDS = ("engineering", "business", "health", "social sciences", "languages and arts", "other")
_LEVELS = ("secondary", "vocational", "bachelor", "master", "doctorate")
_FIRST = date(2024, 1, 1).toordinal()
_DAYS = date(2025, 6, 30).toordinal() - _FIRST + 1

SCHEMA = Schema(
    (
        Column("applicant_id", Kind.IDENTIFIER, reason="a running number, different in every row"),
        complete(
            "gender",
            Kind.CATEGORICAL,
            "another",
            categories=("woman", "man", "another"),
        ),
        complete(
            "age",
            Kind.INTEGER,
            40,
            lower=18,
            upper=67,
            bins=10,
        ),
        Column(
            "region",
            Kind.CATEGORICAL,
            categories=("north", "south", "east", "west", "capital"),
        ),
        complete(
            "education",
            Kind.ORDINAL,
            "secondary",
            categories=_LEVELS,
        ),
        complete(
            "field",
            Kind.CATEGORICAL,
            "other",
            categories=_FIELDS,
        ),
        complete(
            "experience_years",
            Kind.INTEGER,
            0,
            lower=0,
            upper=45,
            edges=(0, 2, 5, 10, 15, 20, 30, 45),
        ),
        Column(
            "career_gap_months",
            Kind.INTEGER,
            lower=0,
            upper=60,
            edges=(0, 1, 7, 13, 25, 60),
            missing_label="not stated",
        ),
        complete(
            "referral",
            Kind.BOOLEAN,
            "no",
            categories=("no", "yes"),
        ),
        complete(
            "interview_score",
            Kind.INTEGER,
            1,
            lower=1,
            upper=10,
        ),
        Column(
            "salary_expectation",
            Kind.REAL,
            lower=15_000,
            upper=150_000,
            edges=(15_000, 25_000, 30_000, 35_000, 40_000, 50_000, 60_000, 80_000, 150_000),
            decimals=0,
            missing_label="not stated",
        ),
        complete(
            "applied_on",
            Kind.DATE,
            "2024-01-01",
            lower="2024-01-01",
            upper="2025-06-30",
            unit="quarter",
        ),
        complete(
            "hired",
            Kind.BOOLEAN,
            "no",
            categories=("no", "yes"),
        ),
    )
)

ROLES = roles_of(
    SCHEMA,
    protected={"gender"},
    outcome={"hired"},
    admissible={"field", "interview_score"},
    proxies={"career_gap_months"},
)


def _gender(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return choose(noise, rows, [0.48, 0.50, 0.02])


def _age(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return 18 + np.floor(50 * noise.beta(1.6, 2.6, rows))


def _region(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return choose(noise, rows, [0.18, 0.22, 0.15, 0.20, 0.25])


def _education(noise: np.random.Generator, rows: int, given: Given) -> Array:
    grown = np.clip(given["age"] - 18, 0, 10)
    return rank(noise, 0.35 * grown - 2.2, (-1.6, 0.0, 1.6, 4.4))


def _field(noise: np.random.Generator, rows: int, given: Given) -> Array:
    shares = np.array(
        [
            [0.16, 0.22, 0.27, 0.17, 0.12, 0.06],
            [0.32, 0.24, 0.14, 0.14, 0.10, 0.06],
            [0.24, 0.21, 0.19, 0.17, 0.13, 0.06],
        ]
    )
    return choose(noise, rows, shares[given["gender"]])


def _gap(noise: np.random.Generator, rows: int, given: Given) -> Array:
    any_gap = noise.random(rows) < at([0.78, 0.08, 0.40], given["gender"])
    months = 1 + np.floor(noise.exponential(at([17.0, 6.0, 10.0], given["gender"])))
    return np.where(any_gap, np.minimum(months, 60), 0)


def _experience(noise: np.random.Generator, rows: int, given: Given) -> Array:
    study = at([0, 2, 3, 5, 8], given["education"])
    years = given["age"] - 18 - study - given["career_gap_months"] / 12
    return np.clip(np.floor(years - noise.exponential(1.5, rows)), 0, 45)


def _referral(noise: np.random.Generator, rows: int, given: Given) -> Array:
    share = at([0.14, 0.14, 0.12, 0.16, 0.26], given["region"])
    return (noise.random(rows) < share).astype(np.int64)


def _interview(noise: np.random.Generator, rows: int, given: Given) -> Array:
    learned = 0.7 * given["education"] + 0.9 * np.log1p(given["experience_years"])
    return np.clip(np.rint(2.4 + learned + noise.normal(0, 1.6, rows)), 1, 10)


def _salary(noise: np.random.Generator, rows: int, given: Given) -> Array:
    log = (
        np.log(25_000)
        + 0.11 * given["education"]
        + 0.017 * given["experience_years"]
        + at([0.16, 0.10, 0.02, -0.04, -0.10, 0.0], given["field"])
        + at([0.0, 0.05, -0.06, 0.03, 0.14], given["region"])
    )
    euros = np.exp(log + noise.normal(0, 0.14, rows))
    salary: Array = np.clip(100 * np.rint(euros / 100), 15_000, 150_000)
    return salary


def _applied(noise: np.random.Generator, rows: int, given: Given) -> Array:
    season = np.array(
        [
            [0.10, 0.14, 0.20, 0.28, 0.12, 0.16],
            [0.10, 0.16, 0.24, 0.24, 0.12, 0.14],
            [0.26, 0.16, 0.12, 0.10, 0.22, 0.14],
            [0.18, 0.18, 0.16, 0.14, 0.18, 0.16],
            [0.16, 0.20, 0.16, 0.14, 0.16, 0.18],
            [0.17, 0.17, 0.17, 0.17, 0.16, 0.16],
        ]
    )
    quarter = choose(noise, rows, season[given["field"]])
    days = (quarter + noise.random(rows)) * _DAYS / 6
    return _FIRST + np.minimum(np.floor(days), _DAYS - 1)


def _score(given: Given) -> Array:
    demand = at([1.0, 0.4, -0.1, -0.4, -0.8, -0.2], given["field"])
    return -0.4 + demand + 0.55 * (given["interview_score"] - 6) + 0.8 * given["referral"]


WORLD = World(
    name="hiring",
    story=STORY,
    schema=SCHEMA,
    roles=ROLES,
    equations=(
        Equation("gender", (), "48 % women, 50 % men, 2 % another gender", _gender),
        Equation("age", (), "18 to 67, most in their thirties", _age),
        Equation("region", (), "five regions, a quarter in the capital", _region),
        Equation("education", ("age",), "rises until the late twenties, with luck", _education),
        Equation(
            "field",
            ("gender",),
            "men choose engineering more often, women health (the legitimate path)",
            _field,
        ),
        Equation(
            "career_gap_months",
            ("gender",),
            "78 % of women and 8 % of men have a gap, women a longer one (the proxy)",
            _gap,
        ),
        Equation(
            "experience_years",
            ("age", "education", "career_gap_months"),
            "years since school, less study, less the gap, less a short search",
            _experience,
        ),
        Equation("referral", ("region",), "26 % in the capital, 12 to 16 % elsewhere", _referral),
        Equation(
            "interview_score",
            ("education", "experience_years"),
            "1 to 10; rises with education and with the logarithm of experience",
            _interview,
        ),
        Equation(
            "salary_expectation",
            ("education", "experience_years", "field", "region"),
            "log-linear in education, experience, field and region",
            _salary,
        ),
        Equation("applied_on", ("field",), "each field has its season", _applied),
    ),
    outcome=Outcome(
        "hired",
        ("field", "interview_score", "referral"),
        "log-odds: demand for the field + 0.55 a point of the interview + 0.8 if referred; "
        "the biased world takes 1.6 off for everyone who is not a man",
        _score,
        (0.0,),
        "gender",
        (-1.6, 0.0, -1.6),
    ),
    holes=(
        Holes("career_gap_months", "3 % left empty, by chance alone", (0.03,)),
        Holes(
            "salary_expectation",
            "5 % left empty; 14 % of referred applicants, who settled it beforehand",
            (0.05, 0.14),
            "referral",
        ),
        Holes("region", "1 % left empty, by chance alone", (0.01,)),
    ),
    identifier="A",
)
