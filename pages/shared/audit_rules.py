"""What an audit says of one rule: outcomes by group, models, and columns that give S away."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.audit.audits import ModelAudit, PrivateAudit, ReleasedAudit, RuleAudit
from core.audit.gaps import StratumGap
from core.audit.proxies import ProxySuggestion
from core.privci.certificate import TRANSFER
from core.report.words import interval, number
from pages.shared import audit_cards, audit_charts, audit_detail, charts, guards, widgets
from pages.shared.network import label, plain

#: Most rows of the proxy table.
MOST = 60


def pick(rules: Sequence[RuleAudit], key: str) -> int | None:
    """Which rule to look at; None when there is none."""
    if not rules:
        st.info(
            "No rule was declared, so there is nothing to say about fairness.",
            icon=":material/info:",
        )
        return None
    if len(rules) == 1:
        return 0
    chosen = st.selectbox(
        "Rule",
        range(len(rules)),
        format_func=lambda index: label(rules[index].rule.name),
        key=key,
    )
    return chosen or 0


def outcomes(found: RuleAudit, key: str, heading: str = "", order: RuleAudit | None = None) -> None:
    """The outcome's share by group within equal admissible values, as a picture.

    ``order`` is another world whose order of strata is kept, so that lines can be compared.
    """
    if heading:
        st.markdown(f"**{heading}**")
    for column in found.outcomes.columns:
        head = column.headline
        if head is None:
            st.info(plain(f"{column.outcome}: {column.reason}"), icon=":material/info:")
            continue
        words = f"{column.outcome} = {head.label}"
        if not head.within.strata:
            st.caption(plain(f"{words}: {head.within.note}"))
            continue
        shown = _ordered(head.within.strata, order, column.outcome)
        st.plotly_chart(
            audit_charts.strata(shown, widgets.theme(), letters=audit_detail.letters()),
            key=f"{key}_{column.outcome}",
            theme=None,
            config=charts.CHART,
            alt=f"Share with {words} by protected group within equal admissible values",
        )
        given = ", ".join(head.within.columns) or "nothing"
        st.caption(
            plain(
                f"Share with {words}; one line a combination of {given}, those with the most rows "
                f"first. {head.within.note[:1].upper()}{head.within.note[1:]}."
            )
        )
        with st.expander("The same as a table"):
            rows = [
                (", ".join(one.labels) or "all rows", rate.group, rate.rate, one.gap.words)
                for one in head.within.strata
                for rate in one.rates
            ]
            st.dataframe(
                {
                    "admissible values": [row[0] for row in rows],
                    "group": [row[1] for row in rows],
                    "share": [number(row[2], "share") for row in rows],
                    "widest gap": [row[3] for row in rows],
                },
                hide_index=True,
                alt=f"Shares with {words} by group and stratum",
            )


def _ordered(
    strata: Sequence[StratumGap], order: RuleAudit | None, outcome: str
) -> Sequence[StratumGap]:
    """The strata in another world's order; those that it lacks come last."""
    heads = [] if order is None else order.outcomes.columns
    head = next((one.headline for one in heads if one.outcome == outcome), None)
    if head is None:
        return strata
    place = {one.labels: index for index, one in enumerate(head.within.strata)}
    return sorted(strata, key=lambda one: place.get(one.labels, len(place)))


def released(audit: ReleasedAudit) -> None:
    """One rule in the synthetic rows."""
    place = pick(audit.rules, "audit_rule")
    if place is None:
        return
    found = audit.rules[place]
    st.markdown(f"The rule: {plain(found.rule.words)}.")
    outcomes(found, "audit_strata")
    audit_cards.figures(found.outcomes.figures(), "Fairness of the outcomes in the synthetic rows")


def side_by_side(beside: PrivateAudit) -> None:
    """One rule in both worlds."""
    place = pick(beside.rules, "audit_private_rule")
    if place is None:
        return
    made, real = beside.released.rules[place], beside.rules[place]
    st.markdown(f"The rule: {plain(made.rule.words)}.")
    left, right = st.columns(2, gap="large")
    with left:
        outcomes(made, "audit_both_made", "Synthetic rows")
    with right:
        outcomes(real, "audit_both_real", "Real table (private)", made)
    audit_cards.both(
        made.outcomes.figures(), real.outcomes.figures(), "Fairness of the outcomes in both worlds"
    )


def models(found: Sequence[ModelAudit], alt: str) -> None:
    """How well models predict and how their decisions treat the groups."""
    if not found:
        return
    st.table(
        {
            "model": [plain(f"{one.outcome}, {one.learner}") for one in found],
            "trained on": [one.trained_on for one in found],
            "tested on": [one.tested_on for one in found],
            "ranking (AUC)": [number(one.utility.auc.value, "AUC") for one in found],
            "right": [number(one.utility.accuracy.value, "share") for one in found],
            "calibration": [number(one.utility.calibration.value, "") for one in found],
            "Brier": [number(one.utility.brier.value, "") for one in found],
        },
        hide_index=True,
        alt=alt,
    )
    st.caption(
        "AUC: how often a row with the outcome is ranked above one without it; 50 % is a guess. "
        "Calibration: how far stated probabilities are from shares. Brier: squared error of "
        "probabilities. Smaller is better for the last two."
    )
    chosen = st.selectbox(
        "Decisions of",
        range(len(found)),
        format_func=lambda index: label(
            f"{found[index].learner} model of {found[index].outcome}, trained on the "
            f"{found[index].trained_on}, about the {found[index].tested_on}"
        ),
        key=f"audit_model_{alt}",
    )
    one = found[chosen or 0]
    audit_cards.figures(one.fairness.figures(), "Fairness of the model's decisions")
    if one.utility.auc.reason:
        st.caption(plain(one.utility.auc.reason))


def released_models(audit: ReleasedAudit) -> None:
    """Models trained and tested on synthetic rows."""
    place = pick(audit.rules, "audit_model_rule")
    if place is not None:
        models(audit.rules[place].models, "Models trained and tested on synthetic rows")


def transfer(beside: PrivateAudit) -> None:
    """Models trained on synthetic rows, put to work in the real world."""
    place = pick(beside.rules, "audit_private_model_rule")
    if place is None:
        return
    st.warning(plain(TRANSFER), title="Transfer", icon=":material/moving:")
    together = (*beside.released.rules[place].models, *beside.rules[place].models)
    models(together, "Models in both worlds")


def proxies(rules: Sequence[RuleAudit], key: str) -> None:
    """Inadmissible columns that tell of the protected ones, the strongest first."""
    place = pick(rules, f"{key}_rule")
    if place is None:
        return
    found = rules[place]
    if not found.proxies:
        st.info(
            "The release has no inadmissible column, so none can stand in for a protected one.",
            icon=":material/info:",
        )
        return
    best: ProxySuggestion | None = next((one for one in found.proxies if one.suggested), None)
    if best is not None:
        st.warning(
            f"{plain(best.why)} Declared a proxy on Roles, it counts as protected in the next "
            "release.",
            title=f"Consider “{plain(best.column)}” as a proxy",
            icon=":material/alt_route:",
        )
        st.page_link(guards.PAGES["roles"], label="Go to Roles", icon=":material/arrow_forward:")
    else:
        st.markdown(
            ":material/check_circle: No inadmissible column tells enough of the protected ones to "
            "be suggested as a proxy."
        )
    if found.rule.proxies:
        names = ", ".join(plain(name) for name in sorted(found.rule.proxies))
        st.markdown(f":material/shield: Declared as proxies already, and protected: {names}.")
    shown = found.proxies[:MOST]
    st.dataframe(
        {
            "column": [one.column for one in shown],
            "share told": [number(one.share.value, one.share.unit) for one in shown],
            "interval": [interval(one.share) for one in shown],
            "by chance alone": [number(one.share.baseline, one.share.unit) for one in shown],
            "stands on": [f"{one.side}'s side" if one.side else "neither side" for one in shown],
            "in words": [one.why for one in shown],
        },
        hide_index=True,
        key=key,
        alt="Inadmissible columns and what they tell of the protected ones",
    )
    st.caption(
        "Share told: of what the admissible columns leave open about the protected ones, the part "
        "that this column settles."
    )
