"""Admissions: the parents' degrees may matter through the exam, and in truth matter directly."""

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
from core.schema import Column, Kind, Missing, Schema

STORY = (
    "A university admits students to six programmes by an entrance exam. Children of graduates "
    "prepare a little better for the exam, and the exam is a fair reason, as is how full a "
    "programme is. In truth the committee also prefers applicants whose parents hold degrees, "
    "and the type of school they went to tells who they are. School grades, distance, gender and "
    "a request for financial aid play no part; the request still says something about the "
    "parents, though nobody declared it a proxy."
)

_FIRST = date(2025, 1, 6).toordinal()
_DAYS = date(2025, 4, 27).toordinal() - _FIRST + 1

SCHEMA = Schema(
    (
        Column("candidate_id", Kind.IDENTIFIER, reason="a running number, different in every row"),
        complete(
            "parents_degree",
            Kind.ORDINAL,
            "neither",
            categories=("neither", "one", "both"),
        ),
        Column(
            "school_type",
            Kind.CATEGORICAL,
            categories=("state", "vocational", "church", "private", "international"),
            other_label="state",
            missing_label="not stated",
        ),
        complete(
            "gender",
            Kind.CATEGORICAL,
            "another",
            categories=("woman", "man", "another"),
        ),
        complete(
            "age",
            Kind.INTEGER,
            19,
            lower=17,
            upper=40,
            edges=(17, 18, 19, 20, 22, 25, 30, 40),
        ),
        Column(
            "home_region",
            Kind.CATEGORICAL,
            categories=("city", "suburbs", "towns", "countryside", "abroad"),
            other_label="abroad",
            missing=Missing.CONSTANT,
            missing_constant="city",
        ),
        Column(
            "distance_km",
            Kind.REAL,
            lower=0,
            upper=2_000,
            edges=(0, 5, 15, 40, 100, 250, 600, 2_000),
            decimals=1,
            missing_label="not stated",
        ),
        Column(
            "school_grade",
            Kind.REAL,
            lower=1,
            upper=4,
            edges=(1, 1.5, 2, 2.5, 3, 3.5, 4),
            decimals=1,
            missing_label="not stated",
        ),
        complete(
            "programme",
            Kind.CATEGORICAL,
            "history",
            categories=("medicine", "law", "psychology", "informatics", "history", "physics"),
        ),
        complete(
            "exam_points",
            Kind.INTEGER,
            0,
            lower=0,
            upper=100,
            edges=(0, 30, 40, 50, 60, 70, 80, 90, 100),
        ),
        complete(
            "aid_requested",
            Kind.BOOLEAN,
            "no",
            categories=("no", "yes"),
        ),
        complete(
            "applied_on",
            Kind.DATE,
            "2025-01-06",
            lower="2025-01-06",
            upper="2025-04-27",
            edges=(
                "2025-01-06",
                "2025-01-20",
                "2025-02-03",
                "2025-02-17",
                "2025-03-03",
                "2025-03-17",
                "2025-03-31",
                "2025-04-14",
                "2025-04-27",
            ),
        ),
        complete(
            "admitted",
            Kind.BOOLEAN,
            "no",
            categories=("no", "yes"),
        ),
    )
)

ROLES = roles_of(
    SCHEMA,
    protected={"parents_degree"},
    outcome={"admitted"},
    admissible={"exam_points", "programme"},
    proxies={"school_type"},
)


def _parents(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return choose(noise, rows, [0.45, 0.25, 0.30])


def _school(noise: np.random.Generator, rows: int, given: Given) -> Array:
    shares = np.array(
        [
            [0.50, 0.38, 0.08, 0.03, 0.01],
            [0.46, 0.14, 0.21, 0.14, 0.05],
            [0.16, 0.03, 0.20, 0.41, 0.20],
        ]
    )
    return choose(noise, rows, shares[given["parents_degree"]])


def _gender(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return choose(noise, rows, [0.53, 0.45, 0.02])


def _age(noise: np.random.Generator, rows: int, _: Given) -> Array:
    years: Array = np.minimum(17 + np.floor(noise.gamma(1.6, 1.7, rows)), 40)
    return years


def _region(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return choose(noise, rows, [0.30, 0.24, 0.22, 0.16, 0.08])


def _distance(noise: np.random.Generator, rows: int, given: Given) -> Array:
    middle = at([5.0, 16.0, 60.0, 110.0, 800.0], given["home_region"])
    spread = at([0.6, 0.5, 0.8, 0.7, 0.4], given["home_region"])
    distance: Array = np.clip(middle * np.exp(spread * noise.normal(size=rows)), 0, 2_000)
    return distance


def _talent(noise: np.random.Generator, rows: int, _: Given) -> Array:
    return noise.normal(size=rows)


def _grade(noise: np.random.Generator, rows: int, given: Given) -> Array:
    return np.clip(np.round(2.4 - 0.55 * given["talent"] + noise.normal(0, 0.3, rows), 1), 1, 4)


def _programme(noise: np.random.Generator, rows: int, given: Given) -> Array:
    shares = np.array(
        [
            [0.24, 0.18, 0.26, 0.10, 0.15, 0.07],
            [0.16, 0.20, 0.10, 0.29, 0.11, 0.14],
            [0.19, 0.18, 0.20, 0.18, 0.16, 0.09],
        ]
    )
    return choose(noise, rows, shares[given["gender"]])


def _exam(noise: np.random.Generator, rows: int, given: Given) -> Array:
    prepared = at([0.0, 2.0, 4.0], given["parents_degree"])
    points = 55 + 14 * given["talent"] + prepared + noise.normal(0, 8, rows)
    return np.clip(np.rint(points), 0, 100)


def _aid(noise: np.random.Generator, rows: int, given: Given) -> Array:
    likely = at([-0.1, -0.6, -1.1], given["parents_degree"])
    away = at([-0.7, -0.3, 0.5, 0.8, 1.0], given["home_region"])
    return rank(noise, likely + away, (0.0,))


def _applied(noise: np.random.Generator, rows: int, given: Given) -> Array:
    # The oldest decide late; everybody else is spread over the season, thicker at its end.
    late = 2.6 + 0.12 * (given["age"] - 17)
    return _FIRST + np.floor(_DAYS * noise.beta(late, 2.2, rows) * 0.999999)


def _score(given: Given) -> Array:
    # The committee works by the public brackets of the exam, not by single points.
    bracket = cell(SCHEMA["exam_points"], given["exam_points"])
    exam = at([-3.6, -2.6, -1.7, -0.7, 0.4, 1.5, 2.5, 3.3], bracket)
    room = at([-1.3, -0.2, -0.8, 0.5, 0.9, 1.2], given["programme"])
    return exam + room


WORLD = World(
    name="admissions",
    story=STORY,
    schema=SCHEMA,
    roles=ROLES,
    equations=(
        Equation(
            "parents_degree",
            (),
            "neither parent 45 %, one 25 %, both 30 % with a university degree",
            _parents,
        ),
        Equation(
            "school_type",
            ("parents_degree",),
            "private and international schools: 4 % without a degree at home, 61 % with two "
            "(the proxy)",
            _school,
        ),
        Equation("gender", (), "53 % women, 45 % men, 2 % another gender", _gender),
        Equation("age", (), "17 to 40, most of them 18 to 20", _age),
        Equation("home_region", (), "five kinds of home, 30 % in the city", _region),
        Equation("distance_km", ("home_region",), "a middle distance for each home", _distance),
        Equation("talent", (), "standard normal, never seen in the table", _talent),
        Equation("school_grade", ("talent",), "1 is best; falls with talent", _grade),
        Equation("programme", ("gender",), "women and men choose differently", _programme),
        Equation(
            "exam_points",
            ("talent", "parents_degree"),
            "55 + 14 a unit of talent + 2 points a parent with a degree (the legitimate path)",
            _exam,
        ),
        Equation(
            "aid_requested",
            ("parents_degree", "home_region"),
            "likelier far from home and without degrees at home (a weak, undeclared proxy)",
            _aid,
        ),
        Equation("applied_on", ("age",), "older applicants apply later", _applied),
    ),
    outcome=Outcome(
        "admitted",
        ("exam_points", "programme"),
        "log-odds: points for the exam's bracket and for the room in the programme; the biased "
        "world adds 0.9 a parent with a degree",
        _score,
        (0.0,),
        "parents_degree",
        (0.0, 0.9, 1.8),
    ),
    holes=(
        Holes("school_type", "2 % left empty, by chance alone", (0.02,)),
        Holes("distance_km", "4 % left empty, by chance alone", (0.04,)),
        Holes(
            "school_grade",
            "1 % left empty; 25 % of applicants from abroad, where grades differ",
            (0.01, 0.01, 0.01, 0.01, 0.25),
            "home_region",
        ),
    ),
    identifier="C",
)
