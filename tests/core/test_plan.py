from dataclasses import replace
from fractions import Fraction

import pytest

from core.errors import JustitiaError, PlanError
from core.plan import (
    DemoOrigin,
    Plan,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
    parse_plan,
    read_plan,
)
from core.releases import Relation, Unit
from core.roles import Constraint, Role, Roles
from core.schema import Column, Kind, Schema

SCHEMA = Schema(
    (
        Column("größe", Kind.ORDINAL, categories=("klein", "=1+1", 'a "b"')),
        Column("age", Kind.INTEGER, lower=18, upper=97, bins=4, missing_markers=("", "?")),
        Column("hired", Kind.BOOLEAN, categories=("yes", "no"), other_label="no"),
        Column("id", Kind.IDENTIFIER, reason="names a person"),
        Column("day", Kind.DATE, lower="2020-01-01", upper="2021-12-31", unit="quarter"),
    )
)
PLAN = Plan(
    PopulationPlan("patients 2024", Relation.ADD_REMOVE, Unit(3, "id"), Fraction(7, 3), 1e-7, 500),
    SCHEMA,
    Roles(
        {"größe": Role.PROTECTED, "hired": Role.OUTCOME, "age": Role.ADMISSIBLE},
        frozenset({"day"}),
        (Constraint(frozenset({"age"}), frozenset({"hired"}), frozenset(), "second"),),
    ),
    TreePlan(Fraction(1, 3), "prefair", (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))),
    SyntheticPlan(10, "exact", 3, ("csv", "parquet")),
    ReadingPlan(sheet="May", rename={"Age": "age"}, day_numbers=("day",), formula_guard=False),
    demo=DemoOrigin("hiring", 10, 2),
)


def test_a_plan_comes_back_equal_from_its_text():
    assert parse_plan(PLAN.to_toml()) == PLAN


def test_shares_that_do_not_sum_to_one_are_scaled_exactly():
    tree = TreePlan(Fraction(1), split=(Fraction(1), Fraction(1), Fraction(2)))
    assert tree.split == (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    tenths = parse_plan(PLAN.to_toml().replace('"1/2"', "0.1").replace('"1/4"', "0.1")).tree.split
    assert tenths == (Fraction(1, 3),) * 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('rho = "1/3"', "rho = 0", "tree rho"),
        ('rho = "1/3"', "rho = nan", "tree rho"),
        ('rho = "1/3"', 'rho = ""', "tree rho"),
        ('rho = "1/3"', 'rho = "9"', "more than the population's cap"),
        ('rho = "1/3"\n', "", "what it may cost"),
        ('structure = "prefair"', 'structure = "best"', "structure must be one of"),
        ('engine = "exact"', 'engine = "magic"', "engine must be one of"),
        ('relation = "add_remove"', 'relation = "bounded"', "relation must be"),
        ("unit_rows = 3", "unit_rows = 0", "unit_rows"),
        ("unit_rows = 3", 'unit_rows = "3"', "unit_rows must be a whole number"),
        ("delta = 1e-07", "delta = 2.0", "delta"),
        ('name = "patients 2024"', 'name = " "', "give it a name"),
        ("version = 1", "version = 9", "version"),
        ("version = 1", "version = 1\nsecret = 1", "unknown setting 'secret'"),
        ("[tree]", "[tree]\nprice = 1", "unknown setting 'price'"),
        ('"größe",\n]\noutcome', '"nobody",\n]\noutcome', "nobody"),
        ("rows = 10\nengine", "rows = -1\nengine", "rows must lie"),
        ('"parquet"', '"xlsx"', "files lists some of csv, parquet, spreadsheet"),
        ('    "csv",\n', "", "and always csv"),
        (
            'files = [\n    "csv",\n    "parquet",\n]',
            'files = "csv"',
            "must be a list of file forms",
        ),
        ("formula_guard = false", 'formula_guard = "no"', "formula_guard must be true or false"),
        ('day_numbers = [\n    "day",\n]', 'day_numbers = "day"', "must be a list of column names"),
        ("[population]", "[population", "not valid TOML"),
    ],
)
def test_each_mistake_is_named(old, new, words):
    text = PLAN.to_toml()
    assert old in text
    with pytest.raises(JustitiaError, match=words):
        parse_plan(text.replace(old, new, 1))


def test_a_column_with_two_roles_is_refused():
    text = PLAN.to_toml().replace('outcome = [\n    "hired",', 'outcome = [\n    "hired", "age",')
    with pytest.raises(PlanError, match="two roles"):
        parse_plan(text)


def test_reading_a_plan_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("\ufeff" + PLAN.to_toml(), encoding="utf-8")
    assert read_plan(path) == PLAN
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(tmp_path / "none.toml")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="UTF-8"):
        read_plan(path)


def test_roles_must_fit_the_schema():
    with pytest.raises(JustitiaError, match="'id'"):
        replace(PLAN, roles=Roles({"id": Role.PROTECTED}))
