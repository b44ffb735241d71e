"""How much of S a column carries: brute force, known answers, and nothing where nothing is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.audit.information import conditional_information
from core.audit.proxies import proxy_suggestions
from core.roles import Role, Roles
from tests.core.audit.made import world_of

ROLES = Roles({"s": Role.PROTECTED, "y": Role.OUTCOME, "a": Role.ADMISSIBLE})
RULE = ROLES.constraints[0]


def world(generator, rows=400, sizes=None, **columns):
    codes = {
        "s": generator.integers(0, 2, rows),
        "y": generator.integers(0, 2, rows),
        "a": generator.integers(0, 3, rows),
        **columns,
    }
    return world_of(codes, sizes)


def entropy(codes, given_):
    """H(codes | given) in bits, by definition."""
    total = 0.0
    for stratum in np.unique(given_):
        inside = codes[given_ == stratum]
        shares = np.bincount(inside) / len(inside)
        shares = shares[shares > 0]
        total -= len(inside) / len(codes) * float(shares @ np.log2(shares))
    return total


def ranked(x, s, a):
    """Chance of ranking two rows of a stratum right when x-cells are sorted by S's share."""
    right = pairs = 0.0
    for stratum in np.unique(a):
        for group in np.unique(s[a == stratum]):
            inside = a == stratum
            score = {
                cell: np.mean(s[inside & (x == cell)] == group) for cell in np.unique(x[inside])
            }
            ups = [score[cell] for cell in x[inside & (s == group)]]
            downs = [score[cell] for cell in x[inside & (s != group)]]
            right += sum((u > d) + (u == d) / 2 for u in ups for d in downs)
            pairs += len(ups) * len(downs)
    return right / pairs


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 5))
def test_figures_by_definition(seed, groups, cells):
    generator = np.random.default_rng(seed)
    s = generator.integers(0, groups, 90)
    x = np.where(generator.random(90) < 0.5, s, generator.integers(0, cells, 90)) % cells
    made = world(generator, 90, s=s, x=x)
    (found,) = proxy_suggestions(made, RULE, ROLES)
    a = made.codes["a"]
    expected = conditional_information(x, s, a) / entropy(s, a)
    assert found.share.value == pytest.approx(expected)
    assert found.ranking.value == pytest.approx(ranked(x, s, a))
    assert found.share.low <= found.share.value <= found.share.high


def test_a_copy_of_s_tells_all_and_a_function_of_a_tells_nothing():
    generator = np.random.default_rng(0)
    made = world(generator, 2000)
    codes = dict(made.codes)
    codes |= {"copy": codes["s"], "shadow": codes["a"] * 2 % 3}
    first, second = proxy_suggestions(world_of(codes), RULE, ROLES)
    assert (first.column, first.share.value, first.ranking.value) == ("copy", 1.0, 1.0)
    assert first.suggested
    assert first.clear
    assert "consider declaring it a proxy" in first.why
    assert second.share.value == pytest.approx(0.0, abs=1e-9)
    assert second.ranking.value == pytest.approx(0.5)
    assert not second.clear


def test_a_known_strength():
    # x equals s with probability 0.9: 1 - H(0.1) of one bit, and 0.9 of pairs ranked right
    generator = np.random.default_rng(1)
    rows = 40_000
    s = generator.integers(0, 2, rows)
    x = np.where(generator.random(rows) < 0.9, s, 1 - s)
    (found,) = proxy_suggestions(world(generator, rows, s=s, x=x), RULE, ROLES)
    expected = 1 + 0.9 * np.log2(0.9) + 0.1 * np.log2(0.1)
    assert found.share.low < expected < found.share.high
    assert found.ranking.value == pytest.approx(0.9, abs=0.01)


def test_the_interval_is_the_bootstraps():
    generator = np.random.default_rng(2)
    rows = 1500
    s = generator.integers(0, 2, rows)
    x = np.where(generator.random(rows) < 0.6, s, generator.integers(0, 3, rows))
    made = world(generator, rows, s=s, x=x)
    (found,) = proxy_suggestions(made, RULE, ROLES)
    drawn = []
    for _ in range(400):
        take = generator.integers(0, rows, rows)
        a = made.codes["a"][take]
        drawn.append(conditional_information(x[take], s[take], a) / entropy(s[take], a))
    width = (found.share.high - found.share.low) / (2 * 1.96)
    assert width == pytest.approx(np.std(drawn, ddof=1), rel=0.15)


def test_nothing_is_suggested_where_nothing_is_and_the_floor_is_unbiased():
    generator = np.random.default_rng(3)
    draws, excess, ranking = 200, [], []
    for seed in range(draws):
        made = world(generator, 300, x=generator.integers(0, 6, 300))
        (found,) = proxy_suggestions(made, RULE, ROLES, seed=seed)
        assert not found.suggested
        excess.append(found.excess)
        ranking.append(found.ranking.value - found.ranking.baseline)
    for values in (excess, ranking):
        assert abs(np.mean(values)) < 2.5 * np.std(values, ddof=1) / np.sqrt(draws)


def test_the_strongest_comes_first_and_alone_is_suggested():
    generator = np.random.default_rng(4)
    rows = 3000
    s = generator.integers(0, 2, rows)
    weak, strong = (
        np.where(generator.random(rows) < share, s, generator.integers(0, 2, rows))
        for share in (0.5, 0.9)
    )
    made = world(
        generator, rows, s=s, weak=weak, strong=strong, none=generator.integers(0, 4, rows)
    )
    found = proxy_suggestions(made, RULE, ROLES)
    assert [one.column for one in found[:2]] == ["strong", "weak"]
    assert [one.suggested for one in found] == [True, False, False]
    assert [one.clear for one in found] == [True, True, False]


def test_only_inadmissible_columns_are_candidates():
    generator = np.random.default_rng(5)
    made = world(
        generator,
        x=generator.integers(0, 2, 400),
        p=generator.integers(0, 2, 400),
        gone=np.zeros(400),
    )
    roles = Roles(
        {**ROLES.by_column, "x": Role.INADMISSIBLE, "gone": Role.IGNORE}, proxies=frozenset({"p"})
    )
    found = proxy_suggestions(made, roles.constraints[0], roles)
    assert [one.column for one in found] == ["x"]


def test_declared_proxies_are_not_what_must_be_guessed():
    # x equals the proxy p, which has nothing to do with s: x carries none of S itself.
    generator = np.random.default_rng(6)
    p = generator.integers(0, 2, 2000)
    made = world(generator, 2000, x=p, p=p)
    roles = Roles(ROLES.by_column, proxies=frozenset({"p"}))
    (found,) = proxy_suggestions(made, roles.constraints[0], roles)
    assert found.share.value < 0.01


def test_several_protected_columns_are_guessed_together():
    generator = np.random.default_rng(7)
    s, t = generator.integers(0, 2, (2, 2000))
    made = world(generator, 2000, s=s, t=t, x=2 * s + t)
    roles = Roles({**ROLES.by_column, "t": Role.PROTECTED})
    (found,) = proxy_suggestions(made, roles.constraints[0], roles)
    assert found.share.value == pytest.approx(1.0)


def test_no_admissible_column_is_one_stratum():
    generator = np.random.default_rng(8)
    roles = Roles({"s": Role.PROTECTED, "y": Role.OUTCOME})
    s = generator.integers(0, 2, 500)
    found = proxy_suggestions(world(generator, 500, s=s, x=s), roles.constraints[0], roles)
    assert found[0].column == "x"
    assert found[0].share.value == pytest.approx(1.0)
    assert " given " not in found[0].why


@pytest.mark.parametrize("rows", [0, 1, 8])
def test_too_few_rows_give_a_reason(rows):
    generator = np.random.default_rng(9)
    made = world(generator, rows, sizes=[2, 2, 3, 2], x=generator.integers(0, 2, rows))
    (found,) = proxy_suggestions(made, RULE, ROLES)
    assert found.share.value is None
    assert "fewer than 10 rows" in found.share.reason
    assert not found.suggested


def test_admissible_columns_that_determine_s_leave_nothing_to_tell():
    generator = np.random.default_rng(10)
    s = generator.integers(0, 2, 300)
    made = world(generator, 300, s=s, a=s, x=s)
    (found,) = proxy_suggestions(made, RULE, ROLES)
    assert found.share.value is None


def test_sides_are_told():
    generator = np.random.default_rng(11)
    s = generator.integers(0, 2, 300)
    made = world(generator, 300, s=s, x=s)
    words = {
        side: proxy_suggestions(made, RULE, ROLES, sides={"x": side})[0].why
        for side in ("outcome", "protected", "")
    }
    assert "a model may use it" in words["outcome"]
    assert "the rule shields" in words["protected"]
    assert "side of" not in words[""]


def test_privacy_follows_the_world():
    generator = np.random.default_rng(12)
    made = world(generator, x=generator.integers(0, 2, 400))
    real = world_of(dict(made.codes), private=True)
    for one, private in ((made, False), (real, True)):
        (found,) = proxy_suggestions(one, RULE, ROLES)
        assert (found.share.private, found.ranking.private) == (private, private)


def test_order_and_words_are_of_what_is_told_beyond_chance():
    generator = np.random.default_rng(11)
    rows = 400
    s = generator.integers(0, 2, rows)
    weak = np.where(generator.random(rows) < 0.6, s, generator.integers(0, 2, rows))
    noise = generator.integers(0, 150, rows)  # so many cells tell much of so few rows by chance
    first, second = proxy_suggestions(
        world(generator, rows, s=s, weak=weak, noise=noise), RULE, ROLES
    )
    assert (first.column, second.column) == ("weak", "noise")
    assert second.share.value > first.share.value
    assert f"tells {100 * first.excess:.0f} %" in first.why
