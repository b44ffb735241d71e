"""Verdicts on rules: fairness of outcomes and decisions, proxies, and what models learn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from core.audit.figures import Figure, Topic
from core.audit.scorecard import Score, Verdict
from core.audit.verdicts import (
    CONVENTION,
    EDGE,
    HALF_KEPT,
    KEPT,
    LARGE_GAP,
    MISCALIBRATED,
    SIGNIFICANT,
    SMALL_GAP,
    WELL_CALIBRATED,
    figure_of,
    judged,
    percent,
    points,
    shown,
    unknown,
)
from core.privci.certificate import Certificate

if TYPE_CHECKING:
    from core.audit.audits import ModelAudit, RuleAudit
    from core.audit.fairness import ClassFairness, DecisionFairness, OutcomeFairness
    from core.roles import Constraint

# -- fairness --------------------------------------------------------------------------------


def proof_score(certificate: Certificate) -> Score:
    """How many of the declared rules the edges prove."""
    proofs = certificate.separation
    held = sum(proof.holds for proof in proofs)
    title = "Rules that the tree proves"
    if not proofs:
        reason = "no rule was declared"
        figure = Figure("fairness.proof", title, None, "share", False, reason=reason)
        why = "No rule was declared, so nothing about fairness is proved."
        return Score(figure, Topic.FAIRNESS, Verdict.UNKNOWN, why)
    figure = Figure("fairness.proof", title, held / len(proofs), "share", False)
    first = next((proof for proof in proofs if not proof.holds), proofs[0])
    return Score(
        figure, Topic.FAIRNESS, Verdict.GOOD if certificate.holds else Verdict.POOR, first.words
    )


def information_score(found: OutcomeFairness, where: str) -> Score:
    """Conditional information beyond its permutation floor."""
    figure = figure_of(found.figures(), ".information", where)
    test = found.information
    if figure.value is None:
        return unknown(figure, Topic.FAIRNESS)
    if test.p_value >= SIGNIFICANT:
        why = (
            "The outcome tells no more about the protected columns, among rows with equal "
            f"admissible values, than shuffled columns do (p = {test.p_value:.2f})."
        )
        return Score(figure, Topic.FAIRNESS, Verdict.GOOD, why)
    verdict = judged(test.excess, _bits_of(SMALL_GAP), _bits_of(LARGE_GAP))
    why = (
        f"{test.excess:.4f} bits more than shuffled columns show (p = {test.p_value:.3f}); "
        f"{CONVENTION} up to {_bits_of(SMALL_GAP):.4f} bits, a gap of about {points(SMALL_GAP)} "
        "between two equal groups, is small."
    )
    return Score(figure, Topic.FAIRNESS, verdict, why)


def _bits_of(gap: float) -> float:
    """Information of a gap in a balanced outcome between two equally large groups, small gaps."""
    return gap**2 / (2 * math.log(2))


def within_scores(found: OutcomeFairness, where: str) -> list[Score]:
    """Gaps of outcomes within admissible cells, one an outcome column."""
    return [
        _gap(figure_of(found.figures(), f".{column.outcome}.within", where), column.headline)
        for column in found.columns
    ]


def _gap(figure: Figure, head: ClassFairness | None, before: str = "") -> Score:
    """A mean gap within admissible cells beyond what chance gives in them."""
    if figure.value is None or head is None:
        return unknown(figure, Topic.FAIRNESS)
    beyond = max(0.0, figure.value - (figure.baseline or 0.0))
    within = bool(head.within.columns)
    among = "Among rows with equal admissible values the" if within else "The"
    why = (
        f"{before}{among} groups differ by {points(beyond)} "
        f"more than chance gives; {CONVENTION} up to {100 * SMALL_GAP:.0f} is small, above "
        f"{100 * LARGE_GAP:.0f} large."
    )
    return Score(figure, Topic.FAIRNESS, judged(beyond, SMALL_GAP, LARGE_GAP), why)


def parity_scores(found: OutcomeFairness, where: str) -> list[Score]:
    """Demographic parity gaps, one an outcome column."""
    scores = []
    for column in found.columns:
        figure = figure_of(found.figures(), f".{column.outcome}.parity", where)
        if figure.value is None:
            scores.append(unknown(figure, Topic.FAIRNESS))
            continue
        beyond = max(0.0, figure.value - (figure.baseline or 0.0))
        verdict = judged(beyond, SMALL_GAP, LARGE_GAP)
        why = (
            f"The widest gap between two groups' shares is {points(beyond)} more than chance "
            f"gives; {CONVENTION} up to {100 * SMALL_GAP:.0f} is small."
        )
        if found.rule.admissible and verdict is not Verdict.GOOD:
            verdict = Verdict.WATCH
            why += " The rule allows the part that the admissible columns explain."
        scores.append(Score(figure, Topic.FAIRNESS, verdict, why))
    return scores


def decisions_score(model: ModelAudit, *, proven: bool = False) -> Score:
    """A model's decisions in the world that it was trained in.

    Where the tree proves the rule there is no dependence in the rows to be learnt: a gap then comes
    from the model, which turns small accidents into decisions near its threshold.
    """
    where = f"{model.learner} model, {model.tested_on}"
    found = model.fairness
    figure = figure_of(found.figures(), f".decisions.{_kind(found.rule)}", where)
    if _constant(found) or not _decides(model):
        return _saying_nothing(figure, model)
    score = _gap(figure, found.headline)
    if not proven or score.verdict in (Verdict.GOOD, Verdict.UNKNOWN):
        return score
    why = (
        f"{score.why} The rule is proved for these rows, so this gap is the model's own: near its "
        "threshold it turns accidents into decisions. Look at decisions before you use such a "
        "model."
    )
    return replace(score, verdict=Verdict.WATCH, why=why)


def _kind(rule: Constraint) -> str:
    """Which gap speaks for a rule: within admissible cells, or over all where there are none."""
    return "within" if rule.admissible else "parity"


def _ranks(model: ModelAudit | None) -> bool:
    """Whether a model ranks clearly better than a guess."""
    if model is None or model.utility.auc.value is None:
        return False
    return model.utility.auc.value >= EDGE and (model.utility.auc.low or 0.0) > 0.5


def _decides(model: ModelAudit | None) -> bool:
    """Whether a model ranks, and is right, more often than a guess."""
    if model is None or not _ranks(model):
        return False
    right = model.utility.accuracy
    return (right.low or 0.0) > (right.baseline or 0.0)


def _constant(found: DecisionFairness) -> bool:
    """Whether every row of every group is decided alike."""
    rates = [rate.rate for one in found.classes for rate in one.rates]
    return bool(rates) and all(rate in (0.0, 1.0) for rate in rates) and len(set(rates)) == 1


def _saying_nothing(figure: Figure, model: ModelAudit) -> Score:
    why = (
        f"The {model.learner} model decides the same for everybody, so its decisions show no gap "
        "and no use; look at its ranking instead."
        if _constant(model.fairness)
        else f"The {model.learner} model is not right more often than a guess, so its decisions "
        "hang on chance, and a gap between groups says nothing about the release."
    )
    return Score(figure, Topic.FAIRNESS, Verdict.UNKNOWN, why)


def real_within_scores(made: RuleAudit, real: RuleAudit) -> list[Score]:
    """The real table's own gap, beside that of the synthetic rows.

    It is a fact about the world and no fault of the release, so that it has no verdict.
    """
    scores = []
    for column in real.outcomes.columns:
        end = f".{column.outcome}.{_kind(real.rule)}"
        figure = figure_of(real.outcomes.figures(), end, "real table")
        there = figure_of(made.outcomes.figures(), end)
        before = f"The synthetic rows show {shown(there)}, the real table shows {shown(figure)}. "
        score = _gap(figure, column.headline, before)
        if score.verdict in (Verdict.WATCH, Verdict.POOR):
            why = f"{score.why} This is what the rule keeps out of the synthetic rows."
            score = replace(score, verdict=Verdict.UNKNOWN, why=why)
        scores.append(score)
    return scores


def transfer_scores(made: RuleAudit, real: RuleAudit) -> list[Score]:
    """Decisions of models trained on synthetic rows, about real people."""
    scores = []
    for model in real.models:
        if not model.moved:
            continue
        at_home = _same(made.models, model)
        native = _same((other for other in real.models if not other.moved), model)
        figure = figure_of(
            model.fairness.figures(),
            f".decisions.{_kind(real.rule)}",
            f"{model.learner} model trained on synthetic rows, real table",
        )
        if _constant(model.fairness) or not _decides(at_home):
            scores.append(_saying_nothing(figure, model))
            continue
        before = (
            f"The same kind of model shows {_gap_words(at_home)} in the synthetic rows, and "
            f"{_gap_words(native)} when it is trained on the real table. "
        )
        score = _gap(figure, model.fairness.headline, before)
        independent = made.outcomes.information.p_value >= SIGNIFICANT
        if score.verdict is Verdict.POOR and independent and _no_wider(model, at_home):
            why = f"{score.why} It is no wider than in the synthetic rows: the model's own."
            score = replace(score, verdict=Verdict.WATCH, why=why)
        scores.append(score)
    return scores


def _no_wider(model: ModelAudit, other: ModelAudit | None) -> bool:
    """Whether a model's gap within cells is that of another one, or smaller, by the convention."""
    heads = [one.fairness.headline for one in (model, other) if one is not None]
    means = [head.within.mean for head in heads if head is not None]
    if len(means) < 2 or means[0] is None or means[1] is None:
        return False
    return means[0] - means[1] <= SMALL_GAP


def _same(models: Iterable[ModelAudit], wanted: ModelAudit) -> ModelAudit | None:
    """The model of the same outcome and learner."""
    return next(
        (
            model
            for model in models
            if (model.outcome, model.learner) == (wanted.outcome, wanted.learner)
        ),
        None,
    )


def _gap_words(model: ModelAudit | None) -> str:
    head = None if model is None else model.fairness.headline
    if head is None or head.within.mean is None:
        return "no gap that can be measured"
    return f"a gap of {points(head.within.mean)}"


def proxies_scores(found: RuleAudit) -> list[Score]:
    """The inadmissible column that carries most of S."""
    if not found.proxies:
        return []
    first = next((proxy for proxy in found.proxies if proxy.suggested), found.proxies[0])
    figure = replace(first.share, key="fairness.proxies.strongest")
    if figure.value is None:
        return [unknown(figure, Topic.FAIRNESS)]
    exposed = [proxy for proxy in found.proxies if proxy.clear and proxy.side != "protected"]
    verdict = Verdict.GOOD
    if first.suggested:
        verdict = Verdict.POOR if figure.private and exposed else Verdict.WATCH
    why = first.why
    others = [proxy.column for proxy in exposed if proxy is not first]
    if others:
        why += f" Also clearly above chance, and not shielded by the tree: {', '.join(others)}."
    return [Score(figure, Topic.FAIRNESS, verdict, why)]


# -- utility ---------------------------------------------------------------------------------


def _best(models: Iterable[ModelAudit]) -> ModelAudit | None:
    """The model that ranks best, of those that rank at all."""
    able = [model for model in models if model.utility.auc.value is not None]
    return max(able, key=lambda model: model.utility.auc.value or 0.0, default=None)


def _by_outcome(models: Iterable[ModelAudit]) -> dict[str, list[ModelAudit]]:
    found: dict[str, list[ModelAudit]] = {}
    for model in models:
        found.setdefault(model.outcome, []).append(model)
    return found


def synthetic_models_scores(found: RuleAudit, *, noisy: bool = False) -> list[Score]:
    """Whether anything can be learnt from the synthetic rows; of mostly noise it is not good."""
    scores = []
    for outcome, models in _by_outcome(found.models).items():
        best = _best(models) or models[0]
        figure = figure_of([best.utility.auc], ".auc", f"{outcome}, {best.learner}, synthetic rows")
        if figure.value is None:
            scores.append(unknown(figure, Topic.UTILITY))
            continue
        learnt = _ranks(best)
        why = (
            "A model learns to rank the outcome clearly better than a guess."
            if learnt
            else "No model ranks the outcome clearly better than a guess: whatever predicted it "
            "in the real table is cut by the rule or drowned by the noise."
        )
        if learnt and noisy:
            why += " But the release is mostly noise, and so may be what it learns."
        verdict = Verdict.GOOD if learnt and not noisy else Verdict.WATCH
        scores.append(Score(figure, Topic.UTILITY, verdict, why))
    return scores


def kept_scores(real: RuleAudit) -> list[Score]:
    """How much of the real table's edge over a guess a synthetic model keeps on real rows."""
    scores = []
    for outcome, models in _by_outcome(real.models).items():
        moved = _best(model for model in models if model.moved)
        native = _best(model for model in models if not model.moved)
        tested = moved or models[0]
        figure = figure_of(
            [tested.utility.auc], ".auc", f"{outcome}, trained on synthetic rows, tested on real"
        )
        if moved is None or native is None or figure.value is None:
            reason = figure.reason or "no model ranks this outcome"
            bare = Figure(figure.key, figure.title, None, figure.unit, True, reason=reason)
            scores.append(unknown(bare, Topic.UTILITY))
            continue
        edge = figure.value - 0.5
        own = native.utility.auc.value or 0.5
        figure = replace(figure, baseline=own, baseline_words="trained on the real table itself")
        if own < EDGE:
            why = "The real table itself does not let a model rank this outcome."
            scores.append(Score(figure, Topic.UTILITY, Verdict.UNKNOWN, why))
            continue
        kept = edge / (own - 0.5)
        verdict = judged(-kept, -KEPT, -HALF_KEPT)
        why = (
            f"A model trained on synthetic rows keeps {percent(max(0.0, kept), 0)} of the edge "
            f"over a guess that one trained on the real table has; {CONVENTION} "
            f"{percent(KEPT, 0)} is good, below {percent(HALF_KEPT, 0)} poor. A rule that "
            "cuts a real path costs some of it."
        )
        scores.append(Score(figure, Topic.UTILITY, verdict, why))
    return scores


def calibrated_scores(real: RuleAudit) -> list[Score]:
    """Whether a synthetic model's probabilities hold among real rows."""
    scores = []
    for outcome, models in _by_outcome(real.models).items():
        moved = _best(model for model in models if model.moved)
        if moved is None:
            continue
        native = _same((one for one in models if not one.moved), moved)
        figure = figure_of(
            [moved.utility.calibration],
            ".calibration",
            f"{outcome}, {moved.learner} trained on synthetic rows, tested on real",
        )
        if figure.value is None or figure.baseline is None:
            scores.append(unknown(figure, Topic.UTILITY))
            continue
        own = None if native is None else native.utility.calibration.value
        beyond = figure.value - max(figure.baseline, own or 0.0)
        trained = "" if own is None else f", and one trained on the real table shows {own:.3f}"
        why = (
            f"Stated probabilities are off by {figure.value:.3f} on average; chance alone gives "
            f"{figure.baseline:.3f}{trained}. {CONVENTION.capitalize()} {WELL_CALIBRATED:g} beyond "
            f"both is little, above {MISCALIBRATED:g} much."
        )
        verdict = judged(beyond, WELL_CALIBRATED, MISCALIBRATED)
        scores.append(Score(figure, Topic.UTILITY, verdict, why))
    return scores
