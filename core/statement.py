"""The privacy statement: what was promised, at which price, in words that a lawyer can read.

Built from releases alone, so that anybody who holds the bundle can rebuild and compare it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from core.forecast import Verdict, forecast_of
from core.outcome import Releases
from core.plain_text import plain
from core.private.zcdp import epsilon
from core.promise import NO_PROTECTION, exact, guessing_sentence, protects, short
from core.releases import NoisyMarginal, Relation, TreeRelease
from core.roles import Constraint, Role
from core.statement_parts import further_measurements, further_parts

__all__ = [
    "FLAG_WORDS",
    "MOSTLY_NOISE",
    "NO_PROTECTION",
    "SIMULATED",
    "exact",
    "guessing_sentence",
    "plain",
    "quality_flags",
    "statement",
]

SIMULATED = "SIMULATED, NOT PRIVATE"
MOSTLY_NOISE = Verdict.MOSTLY_NOISE.value

RELATION_WORDS = {
    Relation.ADD_REMOVE: "adding or removing one unit (the number of rows is itself protected)",
    Relation.REPLACE_ONE: "replacing one unit by another (the number of rows is public)",
}
FLAG_WORDS = {
    "data-dependent domain": "At least one column's categories, bounds or bins were suggested from "
    "the data themselves. What such a suggestion reveals is not covered by any promise.",
    MOSTLY_NOISE: "Against the noisy number of rows, the noise is so large that the synthetic rows "
    "look close to random and the tree is close to arbitrary.",
    "unit unverified": "The bound on rows per person was declared and not enforced by a person-id "
    "column; a person with more rows is protected less than this statement says.",
    NO_PROTECTION: "The price is so high that somebody who would guess right about a person 1 time "
    "in 100 may be right more often than wrong.",
    SIMULATED: "The noise was drawn from a seeded generator. This output gives NO privacy and must "
    "not be published as a private release.",
}
ROLE_WORDS = {
    Role.PROTECTED: "protected",
    Role.OUTCOME: "outcome",
    Role.ADMISSIBLE: "admissible",
    Role.INADMISSIBLE: "inadmissible",
}


def quality_flags(releases: Releases) -> tuple[str, ...]:
    """Flags from noisy and public facts: ``mostly noise`` and ``no meaningful protection``.

    The first speaks of the tree, the second of the price; simulated releases, which protect
    nobody, do not carry that one.
    """
    tree = releases.tree
    noisy = tree is not None and forecast_of(tree).verdict is Verdict.MOSTLY_NOISE
    priceless = not releases.simulated and not protects(releases.rho)
    return (MOSTLY_NOISE,) * noisy + (NO_PROTECTION,) * priceless


def statement(releases: Releases) -> str:
    """The whole statement of a plan's releases, as Markdown; holds no date and no true value."""
    simulated, tree = releases.simulated, releases.tree
    lines = ["# Privacy statement", ""]
    lines += _nothing_promised(releases) if simulated else _promise(releases)
    lines += ["## What was released", ""]
    if tree is not None:
        lines += [*_columns(tree), ""]
    lines += further_parts(releases)
    if tree is not None:
        lines += [*_fairness(tree), ""]
    lines += ["## For specialists", ""]
    lines += [] if simulated else _price(releases)
    lines += [] if tree is None else _measured(tree)
    return "\n".join([*lines, *further_measurements(releases), ""])


def _nothing_promised(releases: Releases) -> list[str]:
    return [
        f"**{SIMULATED}**",
        "",
        "Nothing is protected. The noise was drawn from a seeded generator, so that whoever knows "
        "the seed can take it away again. This output must not be published as a private release.",
        "",
        f"Population: {plain(releases.terms.population)}",
        "",
        *_flags(releases, without=(SIMULATED, "unit unverified")),
        *_partial(releases),
    ]


def _promise(releases: Releases) -> list[str]:
    where = releases.terms
    count = (
        "How many rows there are is protected as well."
        if where.relation is Relation.ADD_REMOVE
        else "How many rows there are is public."
    )
    return [
        "## What is promised",
        "",
        f'This release is about the population "{plain(where.population)}". What it protects is '
        f"{plain(where.unit.words)}: noise limits how much that unit can change what is released, "
        f"whatever a reader knows already. {count}",
        "",
        guessing_sentence(releases.rho, relation=where.relation),
        "",
        *_flags(releases),
        *_partial(releases),
        "## What is not promised",
        "",
        "- What can be learnt from everyone else is not limited.",
        "- An attacker who answers only when sure can be right more often when answering.",
        "- The promise is about this release alone, and losses add up: every further release about "
        "the same people adds its price. What the population has spent in all up to this "
        "release, on which days, and out of which cap, is in `ledger.json` of the same bundle; "
        "this statement holds no dates.",
        "- Categories, bounds and bins were declared in public before the data were looked at, "
        "unless a flag in this statement says otherwise.",
        "",
    ]


def _flags(releases: Releases, without: Sequence[str] = ()) -> list[str]:
    flags = dict.fromkeys((*releases.flags, *quality_flags(releases)))
    lines = [
        f"- Flag: **{plain(flag)}**. {FLAG_WORDS.get(flag, '')}".rstrip()
        for flag in flags
        if flag not in without
    ]
    return [*lines, ""] if lines else []


def _partial(releases: Releases) -> list[str]:
    if not releases.partial:
        return []
    return [
        "**Partial release.** It was cancelled after part of it had been measured; what had "
        "been measured was kept, and the whole charge stays spent.",
        "",
    ]


def _columns(release: TreeRelease) -> list[str]:
    """Every released column with its cells and its role; a proxy is called one."""
    columns = release.schema.columns
    lines = [f"A synthetic table of {len(columns)} columns, and no others:", ""]
    for column in columns:
        role = ROLE_WORDS.get(release.roles.role(column.name), "")
        if column.name in release.roles.proxies:
            role = "proxy, counted as protected"
        lines.append(f"- {plain(column.name)}: {column.size} cells, {role}")
    lines += [
        "",
        "The synthetic table and every chart are computed from noisy tables of these columns and "
        "cost nothing further.",
    ]
    merged = sorted(release.recoding.maps)
    if merged:
        names = ", ".join(plain(name) for name in merged)
        lines += [
            "",
            f"Rare cells were merged, judged by noisy counts only, in: {names}. Sampling opens "
            "the merged cells again; cells that were kept are biased upwards by this choice.",
        ]
    return lines


def _fairness(release: TreeRelease) -> list[str]:
    lines = ["## The fairness rule", ""]
    constraints = release.roles.constraints
    if not constraints:
        return [*lines, "No rule was declared."]
    unforced = (
        " (not enforced: structure mst is the unconstrained baseline)"
        if release.structure == "mst"
        else ""
    )
    lines += [f"- {_rule(constraint)}{unforced}" for constraint in constraints]
    if any(constraint.proxies for constraint in constraints):
        lines += [
            "",
            "A proxy is not protected for its own sake: it was declared to give a protected column "
            "away, and the rule treats it as if it were protected.",
        ]
    return [
        *lines,
        "",
        "The rule holds in the synthetic world. A model trained on it may use columns on the "
        "outcome's side, which in the real world can still carry the protected attribute.",
    ]


def _rule(constraint: Constraint) -> str:
    outcome, protected, admissible = (
        ", ".join(
            plain(name) + (" (a proxy)" if name in constraint.proxies else "")
            for name in sorted(part)
        )
        or "nothing"
        for part in (constraint.outcome, constraint.protected, constraint.admissible)
    )
    return f"{plain(constraint.name)}: {outcome} independent of {protected}, given {admissible}"


def _price(releases: Releases) -> list[str]:
    where, rho = releases.terms, releases.rho
    debited = sum((one.debited for one in releases.provenances), Fraction(0))
    lines = [
        f"- Guarantee: zero-concentrated differential privacy, rho = {exact(rho)}",
        f"- Shown as (epsilon, delta): epsilon = {epsilon(rho, where.delta):.4g} at "
        f"delta = {where.delta:g} (Canonne, Kamath and Steinke's conversion; rho is the promise)",
        f"- Neighbouring tables: {RELATION_WORDS[where.relation]}",
        f"- Debited by the draws: {short(debited)}; "
        f"forfeited (charged, never used): {short(rho - debited)}",
        f"- Noise: {plain(where.noise)}",
    ]
    if len(releases.all) > 1:
        prices = ", ".join(f"{plain(one.what)} {exact(one.rho)}" for one in releases.provenances)
        lines.append(f"- Charges that make up this price: {prices}")
    if releases.tree is not None:
        tree = releases.tree
        shares = ", ".join(short(tree.provenance.rho * part) for part in tree.split)
        lines.append(f"- Shares of rho for one-way tables, selection and two-way tables: {shares}")
    return lines


def _measured(release: TreeRelease) -> list[str]:
    return [
        f"- {len(release.one_way)} one-way tables{_sigma(release.one_way)}",
        f"- {len(release.two_way)} two-way tables of the chosen pairs{_sigma(release.two_way)}",
    ]


def _sigma(marginals: Sequence[NoisyMarginal]) -> str:
    if not marginals:
        return ""
    return f", noise of standard deviation {marginals[0].sigma:.4g} a cell"
