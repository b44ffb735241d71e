from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from core.audit.fairness import decision_fairness, group_columns, outcome_fairness
from core.audit.gaps import Unknown
from core.audit.information import conditional_information, permutation_test
from core.audit.worlds import World, real_world
from core.errors import EstimationError, SchemaError
from core.private.coding import encode
from core.private.reading import read_table
from core.roles import Constraint
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault
from tests.core.audit.made import BARE, RULE, labelled, random_world, world_of


def yes_no(name, labels=("no", "yes"), **more):
    return Column(name, Kind.BOOLEAN, categories=labels, other_label=labels[0], **more)


def figures_of(found):
    return {figure.key.split(".", 2)[2]: figure for figure in found.figures()}


# -- field cases ------------------------------------------------------------------------------

PEOPLE = {
    "group": ["r", "r", "r", "r", "s", "s", None],
    "label": [1, 0, 1, 0, 1, 0, 1],
    "decision": [1, 0, 0, 1, 1, 0, 0],
}


@pytest.mark.parametrize("real_nan", [False, True], ids=["as filed", "with a group called nan"])
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_f11_a_missing_group_is_a_group(tmp_path, kind, real_nan):
    people = {name: list(values) for name, values in PEOPLE.items()}
    if real_nan:
        people = {name: [*values, *values[:2]] for name, values in people.items()}
        people["group"][-2:] = ["nan", "nan"]
    frame, path = pd.DataFrame(people), tmp_path / f"people.{kind}"
    {
        "csv": lambda: frame.to_csv(path, index=False),
        "xlsx": lambda: frame.to_excel(path, index=False),
        "parquet": lambda: frame.to_parquet(path),
    }[kind]()
    schema = Schema(
        (
            Column("group", Kind.CATEGORICAL, categories=("r", "s", "nan"), missing_label="(none)"),
            yes_no("label", ("0", "1"), missing_label="0"),
            yes_no("decision", ("0", "1"), missing_label="0"),
        )
    )
    vault = simulated_vault(encode(read_table(path), schema), seed=0)
    world = real_world(vault.not_private("a test"), schema)
    rule = Constraint(frozenset({"group"}), frozenset({"decision"}))
    found = outcome_fairness(world, rule, minimum=1)
    rates = {rate.group: (rate.rows, rate.rate) for rate in found.columns[0].headline.rates}
    expected = {"r": (4, 0.5), "s": (2, 0.5), "(none)": (1, 0.0)}
    if real_nan:
        expected["nan"] = (2, 0.5)
    assert rates == expected
    assert sum(rows for rows, _ in rates.values()) == found.rows == (9 if real_nan else 7)
    assert found.columns[0].headline.parity.size == 0.5
    decided = Constraint(frozenset({"group"}), frozenset({"label"}))
    errors = decision_fairness(world, world.codes["decision"], decided, minimum=1).headline
    assert errors.true_positive.words == ("'(none)' 1.000 below 's' (0.000 and 1.000)")
    # among the labels 0 there is nobody without a group
    assert {errors.false_positive.one.group, errors.false_positive.other.group} <= {
        "r",
        "s",
        "nan",
    }
    assert errors.false_positive.size == 0.5


def f12_world():
    rows = [
        *[("A", 1, 1)] * 8,
        *[("A", 1, 0)] * 2,
        *[("A", 0, 1)] * 2,
        *[("A", 0, 0)] * 8,
        *[("B", 1, 1)] * 5,
        *[("B", 1, 0)] * 5,
        *[("B", 0, 1)] * 5,
        *[("B", 0, 0)] * 5,
    ]
    group, label, decision = zip(*rows, strict=True)
    columns = [
        Column("group", Kind.CATEGORICAL, categories=("A", "B")),
        yes_no("label", ("0", "1"), missing_label="0"),
        yes_no("decision", ("0", "1"), missing_label="0"),
    ]
    codes = {"group": [int(one == "B") for one in group], "label": label, "decision": decision}
    return world_of(codes, columns)


def test_f12_error_gaps_never_cancel():
    world = f12_world()
    rule = Constraint(frozenset({"group"}), frozenset({"label"}))
    found = decision_fairness(world, world.codes["decision"], rule)
    head = found.headline
    assert head.parity.size == 0.0
    assert head.true_positive.signed == pytest.approx(-0.3)
    assert head.false_positive.signed == pytest.approx(0.3)
    assert head.true_positive.signed + head.false_positive.signed == pytest.approx(0.0)
    assert head.equalized_odds.size == pytest.approx(0.3)
    assert head.mean_odds == pytest.approx(0.3)
    figures = figures_of(found)
    assert figures["label.decisions.equalized_odds"].value == pytest.approx(0.3)
    assert figures["label.decisions.true_positive"].reason.startswith("'B' 0.300 below 'A'")
    assert figures["label.decisions.false_positive"].reason.startswith("'B' 0.300 above 'A'")


def test_f12_as_a_rule_with_the_label_admissible():
    rule = Constraint(frozenset({"group"}), frozenset({"decision"}), frozenset({"label"}))
    found = outcome_fairness(f12_world(), rule)
    assert found.information.bits * np.log(2) == pytest.approx(0.0507, abs=5e-5)
    within = found.columns[0].headline.within
    assert within.mean == pytest.approx(0.3)
    assert sorted(one.gap.signed for one in within.strata) == pytest.approx([-0.3, 0.3])
    assert [one.labels for one in within.strata] == [("0",), ("1",)]
    figures = figures_of(found)
    assert figures["decision.parity"].value == 0.0
    assert figures["decision.within"].value == pytest.approx(0.3)


# -- what is looked at ------------------------------------------------------------------------


def test_favourable_classes():
    codes = {"s": [0, 1] * 20, "o": [0, 0, 1, 0] * 10}
    yes_first = Column("o", Kind.BOOLEAN, categories=("yes", "no"), other_label="no")
    columns = [labelled("s", 2), yes_first]
    world = world_of(codes, columns)
    (one,) = outcome_fairness(world, BARE).columns[0].classes
    assert one.label == "yes"
    assert one.parity.signed == pytest.approx(0.5)
    (other,) = outcome_fairness(world, BARE, favourable={"o": "no"}).columns[0].classes
    assert other.label == "no"
    assert other.parity.signed == pytest.approx(-0.5)
    with pytest.raises(EstimationError, match="'o' has no class called 'maybe'"):
        outcome_fairness(world, BARE, favourable={"o": "maybe"})


def test_several_classes_are_all_looked_at():
    generator = np.random.default_rng(2)
    group = generator.integers(0, 3, 900)
    grade = np.where(group == 2, generator.choice([0, 3], 900), generator.integers(0, 4, 900))
    world = world_of({"s": group, "o": grade, "a": generator.integers(0, 2, 900)}, [3, 6, 2])
    found = outcome_fairness(world, RULE, seed=1)
    column = found.columns[0]
    assert [one.label for one in column.classes] == ["v0", "v1", "v2", "v3"]  # v4, v5 never occur
    for code, one in enumerate(column.classes):
        rates = [np.mean(grade[group == value] == code) for value in range(3)]
        assert one.parity.size == pytest.approx(max(rates) - min(rates))
    assert column.headline.parity.size == max(one.parity.size for one in column.classes)
    assert found.information.bits == pytest.approx(
        conditional_information(grade, group, world.codes["a"])
    )
    decided = decision_fairness(world, np.roll(grade, 1), RULE)
    assert len(decided.classes) == 4
    assert figures_of(decided)["o.decisions.parity"].title.endswith(f"o = {decided.headline.label}")


def test_several_protected_columns_make_joint_groups_and_proxies_none():
    generator = np.random.default_rng(4)
    world = random_world(generator, 800, [2, 2, 3, 2, 2])
    rule = Constraint(
        frozenset({"c0", "c1", "c2"}),
        frozenset({"c3", "c4"}),
        name="pay",
        proxies=frozenset({"c2"}),
    )
    found = outcome_fairness(world, rule)
    assert found.group_columns == ("c0", "c1")
    assert [rate.group for rate in found.columns[0].headline.rates] == [
        "v0, v0",
        "v0, v1",
        "v1, v0",
        "v1, v1",
    ]
    assert [column.outcome for column in found.columns] == ["c3", "c4"]
    assert [figure.key for figure in found.figures()] == [
        "fairness.pay.c3.parity",
        "fairness.pay.c3.within",
        "fairness.pay.c4.parity",
        "fairness.pay.c4.within",
        "fairness.pay.information",
    ]
    # information is the rule's own: proxies and both outcomes included
    joint = [world.joint(names) for names in (["c3", "c4"], ["c0", "c1", "c2"], [])]
    assert found.information == permutation_test(*joint)
    only = Constraint(frozenset({"c2"}), frozenset({"c3"}), proxies=frozenset({"c2"}))
    assert group_columns(only) == ("c2",)
    with pytest.raises(EstimationError, match=r"which outcome was decided: 'c3' or 'c4'"):
        decision_fairness(world, world.codes["c3"], rule)
    assert decision_fairness(world, world.codes["c3"], rule, outcome="c4").outcome == "c4"


def test_small_groups_are_left_out_and_counted():
    group = np.repeat([0, 1, 2, 3], [40, 40, 9, 3])
    outcome = np.concatenate([np.tile([0, 1], 40), np.ones(12, dtype=int)])
    stratum = np.concatenate([np.repeat([0, 1, 2], [36, 4, 0]), np.repeat([0, 2], [40, 12])])
    world = world_of({"s": group, "o": outcome, "a": stratum}, [4, 2, 3])
    head = outcome_fairness(world, RULE).columns[0].headline
    assert [rate.group for rate in head.rates] == ["v0", "v1"]
    assert head.parity.size == 0.0
    assert head.parity.note == "2 groups of fewer than 10 rows left out"
    assert [one.labels for one in head.within.strata] == [("v0",)]
    assert head.within.covered == pytest.approx(76 / 92)
    assert "2 left out: fewer than two groups of at least 10 rows" in head.within.note
    all_of_them = outcome_fairness(world, RULE, minimum=1).columns[0].headline
    assert len(all_of_them.rates) == 4
    assert all_of_them.parity.size == 0.5


def test_a_missing_outcome_is_a_class_of_its_own_and_no_error():
    column = Column("o", Kind.BOOLEAN, categories=("no", "yes"), other_label="no")
    truth = np.array([0, 1, 2, 2] * 20)
    decision = np.array([0, 1, 1, 1] * 20)
    world = world_of({"s": [0, 1, 0, 1] * 20, "o": truth}, [labelled("s", 2), column])
    found = outcome_fairness(world, BARE)
    assert found.columns[0].headline.parity.signed == pytest.approx(0.5)
    assert "50.0% of the outcomes are missing" in found.figures()[0].reason
    errors = decision_fairness(world, decision, BARE, minimum=1).headline
    # among the known "no" rows (group v0 only) nobody was decided "yes"
    assert isinstance(errors.false_positive, Unknown)
    assert errors.parity.signed == pytest.approx(0.5)


def test_numeric_outcomes_say_that_they_are_binned():
    pay = Column("o", Kind.REAL, lower=0.0, upper=4.0, bins=4)
    codes = {"s": [0, 1] * 40, "o": [0, 1, 2, 3] * 20}
    found = outcome_fairness(world_of(codes, [labelled("s", 2), pay]), BARE)
    assert "'o' is numeric: classes are its declared cells" in found.figures()[0].reason
    count = Column("o", Kind.INTEGER, lower=0, upper=3)
    found = outcome_fairness(world_of(codes, [labelled("s", 2), count]), BARE)
    assert "numeric" not in found.figures()[0].reason


# -- nothing to compare -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ({"s": [], "o": [], "a": []}, "no rows in the synthetic rows"),
        ({"s": [0, 1] * 20, "o": [1] * 40, "a": [0] * 40}, "'o' has one value only"),
        ({"s": [1] * 40, "o": [0, 1] * 20, "a": [0] * 40}, "fewer than two groups"),
        ({"s": [0, 1] * 4, "o": [0, 0, 1, 1] * 2, "a": [0] * 8}, "at least 10 rows"),
    ],
    ids=["no rows", "one class", "one group", "tiny"],
)
def test_reasons_instead_of_gaps(codes, words):
    world = world_of(codes, [2, 2, 2])
    figures = figures_of(outcome_fairness(world, RULE))
    assert figures["o.parity"].value is None
    assert words in figures["o.parity"].reason
    assert figures["o.within"].value is None
    decisions = figures_of(decision_fairness(world, world.codes["o"], RULE))
    assert decisions["o.decisions.within"].reason
    if "one value" not in words:
        assert decisions["o.decisions.parity"].value is None


def test_decisions_that_are_all_the_same_are_level_and_say_so():
    world = world_of({"s": [0, 1] * 40, "o": [0, 0, 1, 1] * 20}, [2, 2])
    figures = figures_of(decision_fairness(world, np.ones(80, dtype=int), BARE))
    assert figures["o.decisions.parity"].value == 0.0
    assert figures["o.decisions.equalized_odds"].value == 0.0
    assert "every decision is the same" in figures["o.decisions.parity"].reason
    assert figures["o.decisions.information"].value is None


def test_without_admissible_columns_parity_says_it_all():
    world = world_of({"s": [0, 1] * 40, "o": [0, 0, 1, 1] * 20}, [2, 2])
    figures = figures_of(outcome_fairness(world, BARE))
    assert figures["o.within"].value is None
    assert "no admissible column" in figures["o.within"].reason
    assert figures["o.parity"].value == 0.0


def test_a_stratum_a_row():
    generator = np.random.default_rng(0)
    codes = {"s": generator.integers(0, 2, 300), "o": generator.integers(0, 2, 300)}
    world = world_of({**codes, "a": np.arange(300)}, [2, 2, 300])
    figures = figures_of(outcome_fairness(world, RULE))
    assert figures["o.parity"].value is not None
    assert "no stratum has two groups" in figures["o.within"].reason
    assert "no stratum holds two groups" in figures["information"].reason
    few = World(
        "synthetic rows",
        world.schema,
        {**world.codes, "a": np.arange(300) // 2},
        300,
        False,
    )
    assert (
        "of the rows lie in cells where groups"
        in figures_of(outcome_fairness(few, RULE))["information"].reason
    )


@pytest.mark.parametrize("private", [False, True])
def test_every_figure_carries_the_mark(private):
    world = random_world(np.random.default_rng(1), 300, [2, 2, 3], private=private)
    rule = Constraint(frozenset({"c0"}), frozenset({"c1"}), frozenset({"c2"}))
    empty = world.take(np.zeros(0, dtype=int))
    figures = []
    for one in (world, empty):
        figures += outcome_fairness(one, rule).figures()
        figures += decision_fairness(one, one.codes["c1"], rule).figures()
    assert {figure.private for figure in figures} == {private}
    assert len(figures) == 18


def test_rules_and_decisions_must_fit():
    world = random_world(np.random.default_rng(1), 30, [2, 2])
    with pytest.raises(EstimationError, match="no protected or no outcome"):
        outcome_fairness(world, Constraint(frozenset({"c0"}), frozenset()))
    with pytest.raises(SchemaError, match=re.escape("no column is called 'c9'")):
        outcome_fairness(world, Constraint(frozenset({"c0"}), frozenset({"c9"})))
    rule = Constraint(frozenset({"c0"}), frozenset({"c1"}))
    with pytest.raises(EstimationError, match="one a row"):
        decision_fairness(world, np.zeros(29, dtype=int), rule)
    with pytest.raises(EstimationError, match="not a cell"):
        decision_fairness(world, np.full(30, 2), rule)
    with pytest.raises(EstimationError, match="not a cell"):
        decision_fairness(world, np.full(30, -1), rule)


def test_same_seed_same_figures():
    world = random_world(np.random.default_rng(1), 300, [2, 2, 3])
    rule = Constraint(frozenset({"c0"}), frozenset({"c1"}), frozenset({"c2"}))
    one, again, other = (outcome_fairness(world, rule, seed=seed).figures() for seed in (1, 1, 2))
    assert one == again
    assert one != other
