"""The scorecard's numbers, each with what it is compared with and how it reads then.

Comparisons come first: with the noise of the release, with chance, with the real table's own
figure.  What remains beyond those is judged by thresholds that are conventions
(:mod:`core.audit.verdicts`), and the sentence beside the verdict says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.audit.figures import Figure, Topic
from core.audit.judging_rules import (
    calibrated_scores,
    decisions_score,
    information_score,
    kept_scores,
    parity_scores,
    proof_score,
    proxies_scores,
    real_within_scores,
    synthetic_models_scores,
    transfer_scores,
    within_scores,
)
from core.audit.scorecard import Score, Scorecard
from core.audit.verdicts import (
    BEYOND_NOISE,
    CLOSE_TO_NOISE,
    CONVENTION,
    FAR,
    NEAR,
    SEVERITY,
    figure_of,
    judged,
    percent,
    unknown,
    worst_of,
)
from core.privci.certificate import Certificate

if TYPE_CHECKING:
    from core.audit.audits import ReleasedAudit, RuleAudit
    from core.audit.fidelity import Fidelity, MarginalDistances, NoisyDistances, ReleaseDistances


def released_scorecard(
    certificate: Certificate,
    distances: ReleaseDistances,
    rules: Sequence[RuleAudit],
    *,
    noisy: bool = False,
) -> Scorecard:
    """Scores of a released audit: every one may be published.

    ``noisy`` tells that the release carries the flag "mostly noise".
    """
    scores = [
        proof_score(certificate),
        *_to_release(distances),
        *worst_of(rules, lambda found: [information_score(found.outcomes, "synthetic rows")]),
        *worst_of(rules, lambda found: within_scores(found.outcomes, "synthetic rows")),
        *worst_of(rules, lambda found: parity_scores(found.outcomes, "synthetic rows")),
        *worst_of(rules, lambda found: synthetic_models_scores(found, noisy=noisy)),
        *worst_of(rules, lambda found: _decisions(certificate, found)),
        *worst_of(rules, proxies_scores),
    ]
    return Scorecard(tuple(scores))


def private_scorecard(
    released: ReleasedAudit, fidelity: Fidelity, rules: Sequence[RuleAudit]
) -> Scorecard:
    """The released scores, and what the real table adds: those are private."""
    noise = released.against_release
    made = {found.rule.name: found for found in released.rules}

    def beside(kind: Callable[[RuleAudit, RuleAudit], list[Score]]) -> list[Score]:
        return worst_of(rules, lambda real: kind(made[real.rule.name], real))

    scores = [
        _to_real(fidelity.marginals[0], noise.one_way, fidelity.level),
        _to_real(fidelity.marginals[1], noise.two_way, fidelity.level),
        *beside(real_within_scores),
        *beside(transfer_scores),
        *worst_of(rules, kept_scores),
        *worst_of(rules, calibrated_scores),
        *worst_of(rules, proxies_scores),
    ]
    # the same measure in another world has a key of its own
    keyed = (
        replace(score, figure=replace(score.figure, key=f"private.{score.figure.key}"))
        for score in scores
    )
    return Scorecard((*released.scorecard.scores, *keyed))


def _decisions(certificate: Certificate, found: RuleAudit) -> list[Score]:
    proofs = (proof for proof in certificate.separation if proof.constraint == found.rule)
    proven = any(proof.holds for proof in proofs)
    return [decisions_score(one, proven=proven) for one in found.models]


# -- fidelity --------------------------------------------------------------------------------


def _to_release(distances: ReleaseDistances) -> list[Score]:
    """How well rows follow the released tables, and how far the noise moves such tables."""
    end, found = (".two_way.tv", distances.two_way)
    if found is None:
        end, found = (".one_way.tv", distances.one_way)
    figure = figure_of(distances.figures(), end)
    if found is None or figure.value is None or not figure.baseline:
        return [unknown(figure, Topic.FIDELITY)]
    times = figure.value / figure.baseline
    verdict = judged(times, CLOSE_TO_NOISE, BEYOND_NOISE)
    why = (
        f"The synthetic rows differ from the released tables by {times:.2g} times what the "
        f"privacy noise alone gives; up to {CLOSE_TO_NOISE:g} times they follow them as well as "
        "can be known."
    )
    return [Score(figure, Topic.FIDELITY, verdict, why), _noise(figure, found)]


def _noise(figure: Figure, found: NoisyDistances) -> Score:
    kind = "pairs" if len(found.names[0]) > 1 else "columns"
    value = float(found.tv_noise.mean())
    noise = Figure(
        "fidelity.released.noise",
        f"What the privacy noise moves in the released tables of {kind}, mean",
        value,
        figure.unit,
        False,
        reason=figure.reason,
    )
    why = (
        f"The noise stands for {percent(value)} of the rows of such a table; {CONVENTION} up to "
        f"{percent(NEAR, 0)} is little, and above {percent(FAR, 0)} small effects drown."
    )
    return Score(noise, Topic.FIDELITY, judged(value, NEAR, FAR), why)


def _to_real(found: MarginalDistances, noise: NoisyDistances | None, level: float) -> Score:
    """How far rows are from the real table, beyond what two samples differ by."""
    figure = figure_of(found.figures(level), ".tv", "against the real table")
    if figure.value is None or figure.baseline is None:
        return unknown(figure, Topic.FIDELITY)
    beyond = max(0.0, figure.value - figure.baseline)
    place = int((found.tv - found.chance).argmax())
    worst = float(found.tv[place] - found.chance[place])
    verdict = max(
        judged(beyond, NEAR, FAR), judged(worst, FAR, 2 * FAR), key=lambda one: SEVERITY[one]
    )
    explained = (
        ""
        if noise is None
        else f" The released tables are off by {percent(float(noise.tv_noise.mean()))} on "
        "average by their noise alone."
    )
    furthest = (
        f" Furthest: {' × '.join(found.names[place])} with {percent(worst)}."
        if round(worst, 3) > 0
        else ""
    )
    why = (
        f"{percent(beyond)} of the rows would have to change, beyond what two samples of one "
        f"table differ by; {CONVENTION} up to {percent(NEAR, 0)} is near, above "
        f"{percent(FAR, 0)} far.{furthest}{explained}"
    )
    return Score(figure, Topic.FIDELITY, verdict, why)
