"""The privacy statement: what was promised, at which price, in words that a lawyer can read.

Built from a release alone, so that anybody who holds the bundle can rebuild and compare it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from core.forecast import Verdict, forecast_of
from core.private.zcdp import epsilon, guessing_bound
from core.releases import Provenance, Relation, TreeRelease

SIMULATED = "SIMULATED, NOT PRIVATE"
MOSTLY_NOISE = Verdict.MOSTLY_NOISE.value
#: The guess that the statement explains: right once in a hundred without the person's row.
BASELINE = 0.01

RELATION_WORDS = {
    Relation.ADD_REMOVE: "adding or removing one unit (the number of rows is itself protected)",
    Relation.REPLACE_ONE: "replacing one unit by another (the number of rows is public)",
}
FLAG_WORDS = {
    "data-dependent domain": "At least one column's categories, bounds or bins were suggested from "
    "the data themselves. The guarantee below does not cover what that suggestion reveals.",
    MOSTLY_NOISE: "Against the noisy number of rows, the noise is so large that the synthetic rows "
    "look close to random and the tree is close to arbitrary.",
    "unit unverified": "The bound on rows per person was declared and not enforced by a person-id "
    "column; for a person with more rows the guarantee is weaker than stated.",
    SIMULATED: "The noise was drawn from a seeded generator. This output gives NO privacy and must "
    "not be published as a private release.",
}


def exact(rho: Fraction) -> str:
    """A fraction as people read it: the decimal if it is short and exact, else both forms.

    >>> exact(Fraction(1, 2)), exact(Fraction(1, 3))
    ('0.5', '1/3 (about 0.333333)')
    """
    if 0 < rho < Fraction(1, 10**12):
        return "less than 1e-12"
    decimal = f"{float(rho):.6g}"
    if Fraction(decimal) == rho:
        return decimal
    if rho.denominator > 10**6:
        return f"about {decimal}"
    return f"{rho} (about {decimal})"


def guessing_sentence(rho: Fraction, baseline: float = BASELINE) -> str:
    """What rho means for somebody who guesses about one protected unit, in one sentence."""
    bound = guessing_bound(rho, baseline)
    return (
        f"Someone who would guess right about a person {_times(baseline)} in 100 from a release "
        f"made without that person's row guesses right at most {_times(bound)} in 100, on "
        "average, with it."
    )


def _times(probability: float) -> str:
    """Times in a hundred, rounded up to a hundredth: the sentence says 'at most'."""
    times = math.ceil(probability * 10_000 - 1e-9) / 100
    return "1 time" if times == 1 else f"{times:g} times"


def privacy_lines(provenance: Provenance, further: Sequence[str] = ()) -> list[str]:
    """The guarantee of one release, as Markdown lines; ``further`` flags come last."""
    rho, delta = provenance.rho, provenance.delta
    lines = [
        f"- Population: {plain(provenance.population)}",
        f"- Guarantee: zero-concentrated differential privacy, rho = {exact(rho)}",
        f"- Shown as (epsilon, delta): epsilon = {epsilon(rho, delta):.4g} at delta = {delta:g} "
        "(Canonne, Kamath and Steinke's conversion; rho is the promise)",
        f"- Neighbouring tables: {RELATION_WORDS[provenance.relation]}",
        f"- Unit of protection: {plain(provenance.unit.words)}",
        f"- Debited by the draws: {exact(provenance.debited)}; "
        f"forfeited (charged, never used): {exact(provenance.forfeited)}",
        f"- Noise: {plain(provenance.noise)}",
    ]
    lines += [
        f"- Flag: **{flag}**. {FLAG_WORDS.get(flag, '')}".rstrip()
        for flag in (*_flags(provenance), *further)
    ]
    return lines


def _flags(provenance: Provenance) -> tuple[str, ...]:
    if provenance.simulated and SIMULATED not in provenance.flags:
        return (SIMULATED, *provenance.flags)
    return provenance.flags


def quality_flags(release: TreeRelease) -> tuple[str, ...]:
    """Flags on what the result is worth, from noisy and public facts: ``mostly noise``, or none."""
    return (MOSTLY_NOISE,) if forecast_of(release).verdict is Verdict.MOSTLY_NOISE else ()


def plain(text: str) -> str:
    """A user's text made harmless inside Markdown and HTML: one line, marks escaped."""
    escapes = {mark: f"\\{mark}" for mark in "\\`*_[]|#!"}
    escapes |= {mark: f"&#{ord(mark)};" for mark in "<>&"}
    return "".join(escapes.get(mark, mark) for mark in " ".join(text.split()))


def statement(release: TreeRelease) -> str:
    """The whole statement of a tree release, as Markdown; contains no date and no true value."""
    provenance = release.provenance
    lines = ["# Privacy statement", ""]
    if provenance.simulated:
        lines += [f"**{SIMULATED}**", ""]
    lines += ["## What was promised", "", *privacy_lines(provenance, quality_flags(release)), ""]
    if release.partial:
        lines += [
            "**Partial release.** It was cancelled after part of it had been measured; what had "
            "been measured was kept, and the whole charge stays spent.",
            "",
        ]
    lines += [
        "## What that means",
        "",
        guessing_sentence(provenance.rho),
        "What can be learnt from everyone else is not limited, and an attacker who answers only "
        "when sure can be right more often when answering. The promise is per protected unit, and "
        "it adds up: every further release about the same people adds its rho.",
        "",
        "## What was measured",
        "",
        *_measured(release),
        "",
        "## What was not measured",
        "",
        "The synthetic table, the intervals and every chart are computed from the noisy tables "
        "above and cost nothing further. Categories, bounds and bins were declared in public "
        "before the data were looked at, unless a flag above says otherwise.",
        "",
        *_fairness(release),
        "",
    ]
    return "\n".join(lines)


def _measured(release: TreeRelease) -> list[str]:
    shares = ", ".join(exact(release.provenance.rho * part) for part in release.split)
    lines = [
        f"- Shares of rho for one-way tables, selection and two-way tables: {shares}",
        f"- {len(release.one_way)} one-way tables"
        + (
            f", noise of standard deviation {release.one_way[0].sigma:.4g} a cell"
            if release.one_way
            else ""
        ),
        f"- {len(release.two_way)} two-way tables of the chosen pairs"
        + (
            f", noise of standard deviation {release.two_way[0].sigma:.4g} a cell"
            if release.two_way
            else ""
        ),
    ]
    merged = sorted(release.recoding.maps)
    if merged:
        names = ", ".join(plain(name) for name in merged)
        lines.append(
            f"- Rare cells were merged, judged by noisy counts only, in: {names}. Sampling opens "
            "the merged cells again; cells that were kept are biased upwards by this choice."
        )
    return lines


def _fairness(release: TreeRelease) -> list[str]:
    lines = ["## The fairness rule", ""]
    if not release.roles.constraints:
        return [*lines, "No rule was declared."]
    for constraint in release.roles.constraints:
        sides = [
            ", ".join(plain(name) for name in sorted(part)) or "nothing"
            for part in (constraint.outcome, constraint.protected, constraint.admissible)
        ]
        lines.append(
            f"- {plain(constraint.name)}: {sides[0]} independent of {sides[1]}, given {sides[2]}"
            + (
                " (not enforced: structure mst is the unconstrained baseline)"
                if release.structure == "mst"
                else ""
            )
        )
    return [
        *lines,
        "",
        "The rule holds in the synthetic world. A model trained on it may use columns on the "
        "outcome's side, which in the real world can still carry the protected attribute.",
    ]
