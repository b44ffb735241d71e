"""Verdicts: right where the answer is known, and never without a reason."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from core.audit import judging, judging_rules, verdicts
from core.audit.figures import Figure, Topic
from core.audit.room import audit_private, audit_released
from core.audit.scorecard import Score, Scorecard, Verdict
from core.privci.certificate import conditional_mutual_information
from tests.core.audit import scenes


def all_scores():
    return (
        *scenes.private().scorecard.scores,
        *scenes.private("mst", "5", False).scorecard.scores,
    )


def test_about_a_dozen_numbers_each_with_a_sentence():
    found = scenes.private().scorecard
    assert 7 <= len(found.publishable) <= 12
    assert 5 <= len(found.private) <= 8
    for score in all_scores():
        assert score.why.endswith(".")
        assert len(score.why) > 20
        assert score.figure.title
    assert {score.topic for score in found.scores} == set(Topic)


def test_keys_are_unique():
    for card in (scenes.released().scorecard, scenes.private().scorecard):
        keys = [score.figure.key for score in card.scores]
        assert len(set(keys)) == len(keys)


def test_the_split_is_clean():
    released, private = scenes.released().scorecard, scenes.private().scorecard
    assert released.private == ()
    assert private.publishable == released.publishable
    assert all(score.figure.private for score in private.private)
    assert set(private.publishable) | set(private.private) == set(private.scores)
    assert sum(len(private.about(topic)) for topic in Topic) == len(private.scores)


def test_scores_are_plain_json():
    for score in scenes.private().scorecard.scores:
        plain = score.to_dict()
        assert json.loads(json.dumps(plain)) == plain
        assert plain["publishable"] is not score.figure.private


def test_a_fair_tree_reads_well_and_an_unconstrained_one_does_not():
    fair, plain = (scenes.released(*what).scorecard for what in ((), ("mst", "5", False)))
    for end in ("fairness.proof", ".information", "hired.within", "decisions.within"):
        assert scenes.score(fair, end).verdict is Verdict.GOOD, end
        assert scenes.score(plain, end).verdict is Verdict.POOR, end
    for card in (fair, plain):
        assert scenes.score(card, "released.two_way.tv").verdict is Verdict.GOOD
        assert scenes.score(card, ".auc").verdict is Verdict.GOOD


def test_the_transfer_of_decisions_is_told_for_all_three_models():
    end = "private.fairness.fairness.hired.decisions.within"
    fair = scenes.score(scenes.private().scorecard, end)
    unfair = scenes.score(scenes.private("mst", "5", False).scorecard, end)
    assert (fair.verdict, unfair.verdict) == (Verdict.GOOD, Verdict.POOR)
    for score in (fair, unfair):
        assert "in the synthetic rows" in score.why
        assert "trained on the real table" in score.why


def test_noise_that_drowns_everything_is_not_good():
    loud = scenes.released("privci", "1/1000").scorecard
    assert scenes.score(loud, "released.noise").verdict is Verdict.POOR
    assert scenes.score(scenes.released().scorecard, "released.noise").verdict is Verdict.GOOD


def test_a_table_against_itself_is_perfect_and_against_shuffled_columns_terrible():
    made, real = scenes.derived(), scenes.real()

    def beside(rows):
        audit = audit_released(made.release, rows, made.certificate, settings=scenes.SETTINGS)
        return audit_private(audit, real).scorecard

    same, apart = beside(scenes.as_synthetic(real)), beside(scenes.shuffled(real))
    for end in ("private.fidelity.one_way.tv", "private.fidelity.two_way.tv"):
        found = scenes.score(same, end)
        assert found.figure.value == 0.0
        assert found.verdict is Verdict.GOOD
    assert scenes.score(same, "real_table.auc").verdict is Verdict.GOOD
    assert scenes.score(apart, "private.fidelity.one_way.tv").verdict is Verdict.GOOD
    assert scenes.score(apart, "private.fidelity.two_way.tv").verdict is not Verdict.GOOD
    assert scenes.score(apart, "released.two_way.tv").verdict is Verdict.POOR
    assert scenes.score(apart, "real_table.auc").verdict is Verdict.POOR
    assert scenes.score(apart, "synthetic_rows.auc").verdict is Verdict.WATCH


# -- thresholds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (-1.0, Verdict.GOOD),
        (0.05, Verdict.GOOD),
        (0.0501, Verdict.WATCH),
        (0.10, Verdict.WATCH),
        (0.1001, Verdict.POOR),
    ],
)
def test_thresholds_belong_to_the_better_side(value, verdict):
    assert verdicts.judged(value, 0.05, 0.10) is verdict


@pytest.mark.parametrize("gap", [0.02, 0.05, 0.10])
def test_bits_of_a_gap_are_those_of_two_equal_groups(gap):
    high, low = 0.5 + gap / 2, 0.5 - gap / 2
    table = np.array([[high, low], [low, high]])[:, :, None] / 2
    exact = conditional_mutual_information(table)
    assert judging_rules._bits_of(gap) == pytest.approx(exact, rel=0.01)
    assert math.isclose(judging_rules._bits_of(0.1), 0.0072, abs_tol=1e-4)


def test_the_worst_is_chosen_by_verdict_before_size():
    def score(verdict, value):
        figure = Figure("k", "t", value, "share", False)
        return Score(figure, Topic.FAIRNESS, verdict, "Because.")

    good, poor = score(Verdict.GOOD, 0.9), score(Verdict.POOR, 0.1)
    assert verdicts.worst([good, poor]) == [poor]
    watch = score(Verdict.WATCH, 0.2)
    assert verdicts.worst([watch, score(Verdict.WATCH, 0.1)]) == [watch]
    assert verdicts.worst([]) == []


def test_one_decision_for_everybody_gets_no_verdict():
    (model, *_) = scenes.released().rules[0].models
    alike = tuple(
        replace(one, rates=tuple(replace(rate, rate=0.0) for rate in one.rates))
        for one in model.fairness.classes
    )
    constant = replace(model, fairness=replace(model.fairness, classes=alike))
    found = judging_rules.decisions_score(constant)
    assert found.verdict is Verdict.UNKNOWN
    assert "the same for everybody" in found.why
    assert judging_rules.decisions_score(model).verdict is not Verdict.UNKNOWN


def test_several_rules_are_told_apart():
    audit = scenes.released()
    other = replace(audit.rules[0], rule=replace(audit.rules[0].rule, name="second rule"))
    found = judging.released_scorecard(
        audit.certificate, audit.against_release, (audit.rules[0], other)
    )
    titles = [score.figure.title for score in found.about(Topic.UTILITY)]
    assert len(titles) == 1
    assert "(rule " in titles[0]


def test_without_rules_nothing_about_fairness_is_claimed():
    audit = scenes.released()
    bare = replace(audit.certificate, separation=(), model=())
    found = judging.released_scorecard(bare, audit.against_release, ())
    (proof,) = found.about(Topic.FAIRNESS)
    assert proof.verdict is Verdict.UNKNOWN
    assert "nothing about fairness is proved" in proof.why
    assert Scorecard(found.scores).publishable == found.scores
