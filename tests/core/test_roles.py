"""Roles, constraints and suggestions from names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InfeasibleConstraint, RolesError
from core.roles import Constraint, Role, Roles, suggest_roles


def test_the_role_table_is_one_constraint() -> None:
    roles = Roles({"sex": "S", "income": "O", "age": "A", "id": "ignore"})
    (rule,) = roles.constraints
    assert rule == Constraint({"sex"}, {"income"}, {"age"})
    assert roles.role("anything") is Role.INADMISSIBLE
    assert roles.ignored == {"id"}


def test_proxies_count_as_protected() -> None:
    roles = Roles({"sex": "S", "income": "O", "zip": "I"}, proxies={"zip"})
    (rule,) = roles.constraints
    assert rule.protected == {"sex", "zip"}
    assert rule.proxies == {"zip"}
    only_proxy = Roles({"income": "O"}, proxies={"zip"})
    assert only_proxy.constraints[0].protected == {"zip"}


@pytest.mark.parametrize("table", [{"sex": "S"}, {"income": "O"}, {}, {"age": "A"}])
def test_without_both_sides_the_table_asks_for_nothing(table) -> None:
    assert Roles(table).constraints == ()


def test_further_constraints_keep_names_apart() -> None:
    further = tuple(Constraint({"a"}, {"b"}) for _ in range(2))
    roles = Roles({"s": "S", "o": "O"}, further=further)
    assert [rule.name for rule in roles.constraints] == [
        "fairness",
        "fairness (2)",
        "fairness (3)",
    ]


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (({"x"}, {"x"}, set()), "both protected and outcome"),
        (({"x"}, {"y"}, {"x"}), "both protected and admissible"),
        (({"x"}, {"y"}, {"y"}), "both outcome and admissible"),
    ],
)
def test_a_column_stands_on_one_side_only(sides, words) -> None:
    with pytest.raises(InfeasibleConstraint, match=words):
        Constraint(*sides)


def test_bad_roles_are_refused_in_words() -> None:
    with pytest.raises(RolesError, match="'x': a role is one of S, O, A, I, ignore"):
        Roles({"x": "Q"})
    with pytest.raises(RolesError, match="'sex': only an inadmissible"):
        Roles({"sex": "S"}, proxies={"sex"})
    with pytest.raises(RolesError, match="proxy 'zip' must be among the protected"):
        Constraint({"sex"}, {"income"}, proxies={"zip"})
    with pytest.raises(RolesError, match="unknown setting 'colour'"):
        Roles.from_dict({"colour": 1})
    with pytest.raises(RolesError, match="must be a list of column names"):
        Constraint.from_dict({"protected": "sex", "outcome": ["o"]})
    with pytest.raises(RolesError, match="unknown setting"):
        Constraint.from_dict({"protect": ["sex"]})


def test_check_names_the_column_that_does_not_fit() -> None:
    Roles({"a": "S", "gone": "ignore"}).check(("a", "b"))
    with pytest.raises(RolesError, match="'gone' has a role but cannot be modelled"):
        Roles({"gone": "S"}).check(("a",))
    with pytest.raises(RolesError, match="'gone' has a role but cannot be modelled"):
        Roles(proxies={"gone"}).check(("a",))
    rule = Constraint({"a"}, {"b"}, name="pay")
    with pytest.raises(RolesError, match="constraint 'pay' names 'b', which is ignored"):
        Roles({"b": "ignore"}, further=(rule,)).check(("a", "b"))


def test_plain_form_round_trips() -> None:
    roles = Roles(
        {"s": "S", "o": "O", "z": "I"},
        proxies={"z"},
        further=(Constraint({"s", "q"}, {"o"}, {"a"}, "second", proxies={"q"}),),
    )
    assert Roles.from_dict(roles.to_dict()) == roles
    assert Roles.from_dict(Roles().to_dict()) == Roles()


def test_constraints_say_themselves_in_words() -> None:
    rule = Constraint({"sex", "race"}, {"income"}, {"age", "hours"})
    assert rule.words == (
        "every path between 'race' and 'sex' and 'income' passes through 'age' or 'hours'"
    )
    assert Constraint({"s"}, {"o"}).words == "no path connects 's' and 'o'"
    assert "nothing is forbidden" in Constraint(set(), {"o"}).words
    assert not Constraint(set(), {"o"}).is_active


# -- suggestions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "role", "proxy"),
    [
        ("sex", Role.PROTECTED, False),
        ("Gender", Role.PROTECTED, False),
        ("native-country", Role.PROTECTED, False),
        ("applicantRace", Role.PROTECTED, False),
        ("income>50K", Role.OUTCOME, False),
        ("two_year_recid", Role.OUTCOME, False),
        ("class-label", Role.OUTCOME, False),
        ("pass_bar", Role.OUTCOME, False),
        ("hired", Role.OUTCOME, False),
        ("ZIP code", Role.INADMISSIBLE, True),
        ("marital-status", Role.INADMISSIBLE, True),
        ("age", Role.INADMISSIBLE, False),
        ("education-num", Role.ADMISSIBLE, False),
        ("c_charge_degree", Role.ADMISSIBLE, False),
        ("customer_id", Role.IGNORE, False),
        ("email", Role.IGNORE, False),
        ("geschlecht", Role.PROTECTED, False),
        ("fnlwgt", Role.INADMISSIBLE, False),
        # Words inside other words are no hint.
        ("sextant", Role.INADMISSIBLE, False),
        ("terrace", Role.INADMISSIBLE, False),
        ("video", Role.INADMISSIBLE, False),
        ("page", Role.INADMISSIBLE, False),
    ],
)
def test_suggestions_follow_the_name(name: str, role: Role, proxy: bool) -> None:
    (hint,) = suggest_roles([name])
    assert (hint.name, hint.role, hint.proxy) == (name, role, proxy)
    assert hint.reason


@given(st.lists(st.text(max_size=12)))
def test_every_name_gets_one_usable_suggestion(names: list[str]) -> None:
    hints = suggest_roles(names)
    assert [hint.name for hint in hints] == names
    assert all(hint.reason for hint in hints)
    unique = {hint.name: hint for hint in hints}
    roles = Roles(
        {name: hint.role for name, hint in unique.items()},
        proxies={name for name, hint in unique.items() if hint.proxy},
    )
    roles.check(tuple(unique))
