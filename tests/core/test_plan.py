import copy
from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from core.errors import JustitiaError, PlanError, ReadingError
from core.plan import (
    DemoOrigin,
    Plan,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
    parse_plan,
    plan_from_dict,
    read_plan,
)
from core.private.coding import encode
from core.private.reading import read_table
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
        ("rows = 10\nengine", "rows = -1\nengine", "rows must be a whole number of at least 0"),
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
        ('name = "patients 2024"', "name = []", "^population: name must be a text"),
        ('name = "patients 2024"', 'name = "a\\u202Eb"', r"invisible character \(U\+202E\)"),
        ('name = "patients 2024"', 'name = "a\\u200Bb"', r"invisible character \(U\+200B\)"),
        ('name = "patients 2024"', 'name = "a\\u0007b"', r"invisible character \(U\+0007\)"),
        ('name = "patients 2024"', 'name = "a\\nb"', r"invisible character \(U\+000A\)"),
        ('rho = "1/3"', 'rho = "1_000"', "^tree rho: rho is not a number in plain digits"),
        ('cap = "7/3"', 'cap = "x"', "^population cap: cap is not a number"),
        ('"1/2"', '"0"', "^tree split: a share is zero"),
        ('"1/2"', '"x"', "^tree split: a share is not a number"),
        ("unit_rows = 3", "unit_rows = 10000000000", "unit_rows .* at most 1,000,000"),
        ("expected_rows = 500", f"expected_rows = {10**30}", "expected_rows .* at most"),
        ("rows = 10\nengine", f"rows = {10**30}\nengine", "^synthetic: rows .* at most"),
        ("rows = 10\nseed", f"rows = {10**30}\nseed", "^demo: rows .* at most"),
        ("seed = 3", f"seed = {2**63}", "^synthetic: seed .* at most"),
        ("bins = 4", f"bins = {10**30}", "'age': bins must be a whole number between 1 and 10000"),
        ("seed = 3", f"seed = {'9' * 5000}", "not valid TOML"),
        ("version = 1", "version = true", "version"),
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


WRONG = (-1, 0.5, True, "", "none", [], {}, [1], [[]], {"a": 1}, [{"a": 1}], date(2020, 1, 1))


def settings_of(plain, path=()):
    """Every table and setting of a plan by the keys that lead to it."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from settings_of(value, (*path, key))


@pytest.mark.parametrize("path", list(settings_of(PLAN.to_dict())), ids=str)
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_setting_of_the_wrong_type_is_called_by_its_name(path, wrong):
    plain = copy.deepcopy(PLAN.to_dict())
    inner = plain
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    try:
        plan_from_dict(plain)
    except JustitiaError as error:
        told = str(error)
        keys = [key for key in path if isinstance(key, str) and key != "Age"]
        if not isinstance(wrong, str):  # a text may be fine here, and clash with another setting
            assert keys[-1].removesuffix("s") in told, told
        for words in ("could not convert", "object is not", "has no attribute", "unhashable"):
            assert words not in told


@pytest.mark.parametrize("delta", ['"x"', "true", "[]", '"1e-9"'])
def test_a_delta_that_is_no_number_is_named(delta):
    with pytest.raises(PlanError, match=r"^population: delta must be a number"):
        parse_plan(PLAN.to_toml().replace("delta = 1e-07", f"delta = {delta}"))


def test_messages_about_a_share_or_a_cap_do_not_speak_of_rho():
    for old, new in (('"1/2"', '"-1"'), ('cap = "7/3"', 'cap = "inf"')):
        with pytest.raises(PlanError) as caught:
            parse_plan(PLAN.to_toml().replace(old, new, 1))
        assert "rho" not in str(caught.value)


def test_letters_that_are_joined_by_invisible_marks_are_letters():
    assert PopulationPlan("می\u200cخواهم").name == "می\u200cخواهم"


def test_a_category_named_like_the_default_cell_is_that_cell():
    column = Column("x", Kind.CATEGORICAL, categories=("(other)", "a", "(missing)"))
    assert column.cells == ("(other)", "a", "(missing)")
    assert (column.other_code, column.missing_code) == (0, 2)
    raw = read_table(b"x\n(other)\nunheard of\na\n(missing)\n \n", name="x.csv")
    assert encode(raw, Schema((column,))).codes["x"].tolist() == [0, 0, 1, 2, 2]


def test_a_comma_may_be_delimiter_and_decimal_sign_where_numbers_are_quoted():
    both = ReadingPlan(delimiter=",", decimal=",")
    assert parse_plan(replace(PLAN, reading=both).to_toml()).reading == both
    raw = read_table(b'x,y\n"1,5",a\n', name="x.csv", delimiter=",", decimal=",")
    column = Column("x", Kind.REAL, edges=(0, 1, 2, 20))
    assert encode(raw, Schema((column,))).codes["x"].tolist() == [1]
    with pytest.raises(ReadingError, match="cells"):
        read_table(b"x,y\n1,5,a\n", name="x.csv", delimiter=",", decimal=",")
