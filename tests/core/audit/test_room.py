"""Both doors of the audit room: what may be published and what not, on every kind of table."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.audit.room import AuditSettings, audit_private, audit_released
from core.audit.scorecard import Verdict
from core.audit.worlds import World
from core.errors import Cancelled, EstimationError, PlanError
from core.private.table import CodedTable
from core.privci.certificate import certificate
from core.privci.sample import synthesize
from core.privci.select import release_tree
from core.roles import Constraint, Role, Roles
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault
from tests.core.audit import scenes
from tests.core.audit.made import labelled

CHEAP = AuditSettings(draws=20, permutations=20, learners=("logistic",), triples=50)


def made_of(world, roles, seed=0):
    """A release of a world's rows with little noise, synthetic rows of it, and its proof."""
    codes = {name: codes.astype(np.uint16) for name, codes in world.codes.items()}
    vault = simulated_vault(CodedTable(world.schema, codes, {}, world.rows), seed=seed)
    release = release_tree(vault.grant(Fraction(1000), "tree", "id"), world.schema, roles)
    return release, synthesize(release, rows=world.rows), certificate(release)


def real_of(world):
    return World("real table", world.schema, dict(world.codes), world.rows, private=True)


def both(world, roles, audit_settings=CHEAP, **more):
    found = audit_released(*made_of(world, roles, **more), settings=audit_settings)
    return found, audit_private(found, real_of(world))


# -- the two doors ----------------------------------------------------------------------------


def test_a_released_audit_may_be_published_and_a_private_one_may_not():
    released, private = scenes.released(), scenes.private()
    assert all(figure.publishable for figure in released.figures)
    assert all(figure.private for figure in private.figures)
    assert len(released.figures) > 20
    assert len(private.figures) > 30
    assert private.released is released


def test_nothing_private_can_be_passed_off_as_released():
    made, real = scenes.derived(), scenes.real()
    with pytest.raises(EstimationError, match="synthetic"):
        audit_released(made.release, real, made.certificate)
    with pytest.raises(EstimationError, match="real rows"):
        audit_private(scenes.released(), scenes.as_synthetic(real))


def test_a_private_audit_stays_in_its_process():
    private = scenes.private()
    for away in (pickle.dumps, copy.copy, copy.deepcopy, asdict, json.dumps):
        with pytest.raises(TypeError):
            away(private)
    assert "rows confidential" in repr(private.real)
    assert repr(private) == "PrivateAudit(not private, never to be exported)"
    assert str(private.real.rows) not in repr(private.real)


def test_declarations_must_agree():
    real = scenes.real()
    other = World("real table", real.schema.select(["age"]), dict(real.codes), real.rows, True)
    with pytest.raises(EstimationError, match="other declarations"):
        audit_private(scenes.released(), other)
    empty = World(
        "real table", real.schema, {name: codes[:0] for name, codes in real.codes.items()}, 0, True
    )
    with pytest.raises(EstimationError, match="no rows"):
        audit_private(scenes.released(), empty)


# -- steps ------------------------------------------------------------------------------------


def test_every_step_is_told_and_can_be_cancelled():
    made, real = scenes.derived(), scenes.real()
    cheap = replace(CHEAP, training_rows=200)
    told = []

    def audit(progress):
        found = audit_released(
            made.release, made.synthetic, made.certificate, settings=cheap, progress=progress
        )
        audit_private(found, real, progress=progress)

    audit(lambda *event: told.append(event))
    counts = [(done, total) for _, done, total, _ in told]
    first = counts[0][1]
    assert counts[:first] == [(done, first) for done in range(1, first + 1)]
    rest = len(counts) - first
    assert counts[first:] == [(done, rest) for done in range(1, rest + 1)]
    assert {stage for stage, *_ in told} == {"audit"}
    assert all(isinstance(words, str) and words for *_, words in told)

    for stop in (1, first, len(counts)):
        seen = []

        def cancel(*event, stop=stop, seen=seen):
            seen.append(event)
            if len(seen) == stop:
                raise Cancelled("cancelled")

        with pytest.raises(Cancelled):
            audit(cancel)
        assert len(seen) == stop


def test_progress_says_nothing_of_the_real_rows():
    told = []
    audit_private(scenes.released(), scenes.real(), progress=lambda *event: told.append(event))
    fewer = scenes.real().take(np.arange(1000))
    also = []
    audit_private(scenes.released(), fewer, progress=lambda *event: also.append(event))
    assert told == also


def test_the_same_seed_gives_the_same_audit():
    made = scenes.derived()
    one, two = (
        audit_released(made.release, made.synthetic, made.certificate, settings=CHEAP)
        for _ in range(2)
    )
    assert one.figures == two.figures
    assert one.scorecard == two.scorecard
    other = replace(CHEAP, seed=1)
    three = audit_released(made.release, made.synthetic, made.certificate, settings=other)
    assert one.figures != three.figures


# -- settings ---------------------------------------------------------------------------------


def test_a_cap_on_rows_is_said():
    made = scenes.derived()
    capped = replace(CHEAP, training_rows=300)
    found = audit_released(made.release, made.synthetic, made.certificate, settings=capped)
    assert any("random sample of 300 rows" in note for note in found.notes)
    assert found.rules[0].models[0].fairness.rows == 300
    assert found.rules[0].outcomes.rows == made.synthetic.rows
    assert not any("sample" in note for note in scenes.released().notes)
    assert any("protects nobody" in note for note in found.notes)


def test_blind_models_do_not_see_the_protected_columns(monkeypatch):
    from core.audit import room

    seen = []
    plain = room.cross_fit

    def spy(world, outcome, features, **more):
        seen.append(set(features))
        return plain(world, outcome, features, **more)

    monkeypatch.setattr(room, "cross_fit", spy)
    made = scenes.derived()
    for use in (True, False):
        audit_released(
            made.release,
            made.synthetic,
            made.certificate,
            settings=replace(CHEAP, use_protected=use),
        )
    rule = scenes.released().rules[0].rule
    assert rule.protected <= seen[0]
    assert seen[1] == seen[0] - rule.protected
    assert not rule.outcome & seen[0]


def test_the_favourable_class_can_be_named():
    made = scenes.derived()
    for label in ("no", "yes"):
        named = replace(CHEAP, favourable={"hired": label})
        found = audit_released(made.release, made.synthetic, made.certificate, settings=named)
        assert found.rules[0].outcomes.columns[0].headline.label == label
        assert found.rules[0].models[0].fairness.headline.label == label


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": 1.0},
        {"level": 0.2},
        {"draws": 3},
        {"permutations": 0},
        {"minimum": 0},
        {"learners": ("forest",)},
        {"training_rows": 10},
        {"triples": 0},
        {"seed": -1},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(PlanError, match="audit"):
        AuditSettings(**wrong)


# -- known answers ----------------------------------------------------------------------------


def test_an_outcome_side_column_that_carries_s_shows_in_the_real_world_only():
    """The transfer caveat: fair in the synthetic rows, unfair when the model meets real ones."""
    generator = np.random.default_rng(0)
    rows = 6000
    s, a = generator.integers(0, 2, (2, rows))
    # x carries S, and the outcome follows x more than the admissible a
    x = np.where(generator.random(rows) < 0.75, s, 1 - s)
    odds = 2 * (2 * a - 1) + 2.5 * (2 * x - 1)
    o = (generator.random(rows) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    schema = Schema(tuple(labelled(name, 2) for name in ("s", "a", "x", "o")))
    world = World("rows", schema, {"s": s, "a": a, "x": x, "o": o}, rows, False)
    roles = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME, "a": Role.ADMISSIBLE})
    released, private = both(world, roles)
    assert released.certificate.holds
    assert {"x", "o"} in map(set, released.release.edges)
    made = released.rules[0].models[0].fairness.headline
    (moved, native) = private.rules[0].models
    assert made.within.mean < 0.05
    assert moved.fairness.headline.within.mean > 0.4
    assert native.fairness.headline.within.mean > 0.4
    (proxy,) = private.rules[0].proxies
    assert (proxy.column, proxy.suggested, proxy.side) == ("x", True, "outcome")
    assert not released.rules[0].proxies[0].suggested
    gap = "fairness.fairness.o.decisions.within"
    assert scenes.score(released.scorecard, gap).verdict is Verdict.GOOD
    assert scenes.score(private.scorecard, f"private.{gap}").verdict is Verdict.POOR
    # declared a proxy, x is cut from the outcome, and the model has a alone to go by
    _, after = both(world, Roles(roles.by_column, proxies=frozenset({"x"})))
    assert after.rules[0].models[0].fairness.headline.within.mean < 0.02
    assert scenes.score(after.scorecard, f"private.{gap}").verdict is Verdict.GOOD


def test_decisions_that_hang_on_chance_get_no_verdict():
    """With nothing left to predict from, a model's tiny slopes decide: that is no finding."""
    generator = np.random.default_rng(0)
    s = generator.integers(0, 2, 4000)
    o = np.where(generator.random(4000) < 0.9, s, 1 - s)
    world = World(
        "rows", Schema((labelled("s", 2), labelled("o", 2))), {"s": s, "o": o}, 4000, False
    )
    released, private = both(world, Roles({"s": Role.PROTECTED, "o": Role.OUTCOME}))
    gap = "fairness.fairness.o.decisions.parity"
    for card, key in ((released.scorecard, gap), (private.scorecard, f"private.{gap}")):
        assert scenes.score(card, key).verdict is Verdict.UNKNOWN


def test_models_are_named_by_their_worlds():
    models = scenes.private().rules[0].models
    worlds = {(model.trained_on, model.tested_on) for model in models}
    assert worlds == {("synthetic rows", "real table"), ("real table", "real table")}
    assert all(model.utility.auc.private for model in models)
    native = next(model for model in models if model.trained_on == "real table")
    moved = next(model for model in models if model.trained_on == "synthetic rows")
    assert native.utility.auc.value > moved.utility.auc.value > 0.6


# -- every kind of table ----------------------------------------------------------------------


def test_without_a_rule_there_is_still_fidelity():
    generator = np.random.default_rng(1)
    world = World(
        "rows",
        Schema((labelled("a", 3), labelled("b", 2))),
        {"a": generator.integers(0, 3, 200), "b": generator.integers(0, 2, 200)},
        200,
        False,
    )
    released, private = both(world, Roles())
    assert released.rules == ()
    assert released.scorecard.scores
    assert private.scorecard.private


def test_several_rules_and_outcomes():
    generator = np.random.default_rng(2)
    names = ("s", "t", "o", "p", "a", "i")
    codes = {name: generator.integers(0, 3, 400) for name in names}
    world = World("rows", Schema(tuple(labelled(name, 3) for name in names)), codes, 400, False)
    roles = Roles(
        {"s": Role.PROTECTED, "o": Role.OUTCOME, "p": Role.OUTCOME, "a": Role.ADMISSIBLE},
        further=(Constraint(frozenset({"t"}), frozenset({"o"}), name="second"),),
    )
    released, private = both(world, roles)
    assert [found.rule.name for found in released.rules] == ["fairness", "second"]
    assert [model.outcome for model in released.rules[0].models] == ["o", "p"]
    assert len(private.rules[0].models) == 4
    keys = [figure.key for figure in released.figures]
    assert len(set(keys)) == len(keys)


KINDS = (
    lambda name: labelled(name, 2),
    lambda name: labelled(name, 4),
    lambda name: Column(name, Kind.BOOLEAN, categories=("no", "yes")),
    lambda name: Column(name, Kind.INTEGER, lower=0, upper=9, bins=3),
    lambda name: Column(name, Kind.REAL, lower=0, upper=1, bins=4),
    lambda name: Column(name, Kind.DATE, lower="2020-01-01", upper="2020-12-31", unit="quarter"),
)
ROLES = st.sampled_from([Role.PROTECTED, Role.OUTCOME, Role.ADMISSIBLE, Role.INADMISSIBLE])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_table_makes_it_stumble(data):
    """Tiny, one-class, empty-celled, multi-class: a reason each, no warning, no crash."""
    count = data.draw(st.integers(3, 5))
    names = [f"c{index}" for index in range(count)]
    columns = [data.draw(st.sampled_from(KINDS))(name) for name in names]
    rows = data.draw(st.sampled_from([1, 3, 12, 60]))
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    codes = {
        column.name: generator.integers(0, data.draw(st.integers(1, column.size)), rows)
        for column in columns
    }
    roles = Roles(
        {"c0": Role.PROTECTED, "c1": Role.OUTCOME} | {name: data.draw(ROLES) for name in names[2:]}
    )
    world = World("rows", Schema(tuple(columns)), codes, rows, False)
    released, private = both(world, roles)
    for score in private.scorecard.scores:
        assert score.why
        assert score.figure.value is not None or score.figure.reason
    assert all(figure.publishable for figure in released.figures)
    assert all(figure.private for figure in private.figures)


def test_sixty_columns_are_sampled_and_said_so():
    generator = np.random.default_rng(3)
    names = [f"c{index:02}" for index in range(60)]
    codes = {name: generator.integers(0, 3, 300) for name in names}
    world = World("rows", Schema(tuple(labelled(name, 3) for name in names)), codes, 300, False)
    roles = Roles({"c00": Role.PROTECTED, "c01": Role.OUTCOME, "c02": Role.ADMISSIBLE})
    _, private = both(world, roles)
    triples = private.fidelity.marginals[2]
    assert triples.sampled
    assert len(triples.names) == 50
    assert "random sample of 50" in triples.figures()[0].reason
    assert len(private.rules[0].proxies) == 57


def test_a_gap_of_decisions_is_the_models_own_where_the_rule_is_proved():
    """Outcomes near one half: small fits flip whole strata, though S and O are independent."""
    generator = np.random.default_rng(4)
    rows = 5000
    a, s = generator.integers(0, 6, rows), generator.integers(0, 3, rows)
    codes = {"s": s, "a": a, "o": (generator.random(rows) < 0.44 + 0.02 * a).astype(np.int64)}
    schema = Schema(tuple(labelled(name, int(codes[name].max()) + 1) for name in codes))
    roles = Roles({"s": Role.PROTECTED, "a": Role.ADMISSIBLE, "o": Role.OUTCOME})
    vault = simulated_vault(CodedTable(schema, codes, {}, rows), seed=0)
    release = release_tree(vault.grant(Fraction(1, 2), "tree", "id"), schema, roles)
    found = audit_released(release, synthesize(release), certificate(release))
    score = scenes.score(found.scorecard, "decisions.within")
    assert certificate(release).holds
    assert (score.figure.value or 0) > 0.1 + (score.figure.baseline or 0)  # it is there to be seen
    assert score.verdict in (Verdict.WATCH, Verdict.UNKNOWN)
