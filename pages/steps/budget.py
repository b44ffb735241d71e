"""Budget: what the tree may cost, how it is split, and what it will buy, before paying."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from core.forecast import Verdict
from core.plan import TreePlan
from pages.shared import charts, guards, money
from pages.shared import project as state
from pages.shared.money import epsilon, format_rho
from pages.shared.network import plain
from pages.shared.shares import move
from pages.shared.widgets import account, head, main, theme

project = state.current()
head(
    "Budget",
    "ρ measures how much a release may depend on one person. It adds up over all releases about "
    "the same people, up to the cap. Nothing on this page spends it.",
    project,
)
guards.require(project, "roles")
population, schema, roles = project.population, project.schema, project.roles
assert population is not None and schema is not None and roles is not None  # noqa: PT018
found = account(project)
cap = population.cap if found is None else found[0].cap
spent = cap - cap if found is None else found[1]
left = cap - spent

PARTS = ("One-way tables", "Choosing the edges", "Two-way tables")
PART_HELP = (
    "Counts of every single column.",
    "Which pairs are joined, by the exponential mechanism.",
    "Counts of the joined pairs.",
)
STRUCTURE_WORDS = {
    "privci": "PrivCI: greedy under the rule (default)",
    "privci-exact": "PrivCI exact: the best tree under the rule, from noisy scores",
    "prefair": "PreFair: the outcome touches admissible columns only",
    "mst": "MST: no rule, the unconstrained baseline",
}
if left <= 0:
    st.error(
        "Everything up to the cap is spent. What was released stays usable; a new release needs "
        "a higher cap, which the ledger's owner can set on the Ledger page.",
        title="No budget left",
    )
    st.stop()

draft = project.tree_draft
if draft is None:
    draft = project.tree or money.first_plan(left, cap)
    project.tree_draft = draft
chosen = draft.rho if draft.rho <= left else left
options = money.steps(left, chosen)


def set_rho() -> None:
    project.change_draft(rho=money.typed(st.session_state["rho"], left))


def type_rho() -> None:
    text = st.session_state["rho_text"].strip()
    if not text:
        return
    try:
        wanted = money.typed(text, left)
    except JustitiaError as error:
        project.problem = str(error)
        return
    project.change_draft(rho=wanted)
    st.session_state["rho_text"] = ""


def set_structure() -> None:
    project.change_draft(structure=st.session_state["structure"])


def set_share(index: int) -> None:
    wanted = money.percent(st.session_state[f"share_{index}"])
    locked = [bool(st.session_state.get(f"lock_{i}")) for i in range(3)]
    assert project.tree_draft is not None
    project.change_draft(split=move(project.tree_draft.split, locked, index, wanted))


if project.problem:
    st.error(plain(project.problem), title="Not possible")
    project.problem = ""
settings, effect = st.columns([5, 6], gap="large")
with settings:
    st.session_state["rho"] = str(chosen)
    st.select_slider(
        "ρ of this release",
        options,
        key="rho",
        format_func=money.words,
        on_change=set_rho,
    )
    st.markdown(
        f"**ρ = {format_rho(chosen)}**, shown as ε = {epsilon(chosen, population.delta):.2f} "
        f"at δ = {population.delta:.0e}"
    )
    st.text_input(
        "Or type ρ exactly", key="rho_text", placeholder="such as 0.25 or 1/3", on_change=type_rho
    )
    st.plotly_chart(
        charts.budget_bar(float(spent), float(chosen), float(left - chosen), theme()),
        key="budget_bar",
        theme=None,
        config=charts.CHART,
        alt=f"Budget: spent {format_rho(spent)}, this release {format_rho(chosen)}, "
        f"reserve {format_rho(left - chosen)}",
    )
    st.caption(
        f"spent before {format_rho(spent)} · **this release {format_rho(chosen)}** · reserve for "
        f"later {format_rho(left - chosen)}"
    )
    st.selectbox(
        "Structure",
        list(STRUCTURE_WORDS),
        index=list(STRUCTURE_WORDS).index(draft.structure),
        format_func=lambda name: STRUCTURE_WORDS[name],
        key="structure",
        on_change=set_structure,
        help="The exact tree pays for noisy scores of all pairs at once. With many columns and few "
        "rows those drown, and the greedy trees, which pay edge by edge, come out better.",
    )
    if draft.structure == "mst" and roles.constraints:
        st.warning(
            "MST ignores the rule. Use it to see what an unconstrained tree does, not to publish "
            "a fair table.",
            icon=":material/warning:",
        )
    st.markdown("**How the release is split**")
    for index, part in enumerate(PARTS):
        st.session_state[f"share_{index}"] = round(float(draft.split[index]) * 100)
        slider, lock = st.columns([4, 1], vertical_alignment="bottom")
        locked = bool(st.session_state.get(f"lock_{index}"))
        slider.slider(
            part,
            1,
            97,
            key=f"share_{index}",
            format="%d %%",
            on_change=set_share,
            args=(index,),
            disabled=locked,
            help=PART_HELP[index],
        )
        lock.checkbox("lock", key=f"lock_{index}", persist_state="session")
    finish = st.container()

with effect:
    try:
        outlook = money.outlook(project, draft, chosen)
    except JustitiaError as error:
        st.error(plain(str(error)), title="This cannot be released")
        st.stop()
    st.markdown("**What it buys**")
    colour = {
        Verdict.CLEAR: "green",
        Verdict.COARSE: "blue",
        Verdict.MOSTLY_NOISE: "orange",
        Verdict.UNKNOWN: "gray",
    }[outlook.verdict]
    st.badge(outlook.verdict.value, color=colour)
    for flag in outlook.flags:
        st.badge(flag, icon=":material/warning:", color="red")
    for sentence in outlook.sentences:
        st.markdown(plain(sentence))
    for advice in outlook.suggestions:
        st.markdown(f":material/lightbulb: {plain(advice)}")
    curve = money.curve(project, draft, options)
    if curve is not None:
        st.plotly_chart(
            charts.error_curve(curve, float(chosen), theme()),
            key="error_curve",
            theme=None,
            config=charts.CHART,
            alt="Predicted noise of a cell for every budget",
        )
    st.caption(
        "Predicted from noise scales, domain sizes and the number of rows that you typed. The "
        "table is not looked at."
    )
    st.markdown("**What ρ means for one person**")
    baseline = st.select_slider(
        "How often would somebody guess right about a person anyway?",
        [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
        value=0.01,
        format_func=lambda share: f"{share * 100:g} in 100",
        key="baseline",
        persist_state="session",
    )
    st.markdown(money.guess(chosen, baseline))
    if spent > 0:
        st.markdown(f"With all that was spent before: {money.guess(spent + chosen, baseline)}")
    st.caption(
        "What can be learnt from everyone else is not limited, and an attacker who answers only "
        "when sure can be right more often when answering."
    )


def apply() -> None:
    """Take the plan as it stands."""
    project.change(tree=TreePlan(chosen, draft.structure, draft.split))
    if project.plan is None:
        project.problem = "the plan does not fit the confirmed schema and roles; confirm them again"
        return
    project.say("The plan is applied. Nothing was spent yet.")


finish.button(
    main("Apply plan", "check"),
    key="apply_plan",
    type="primary",
    on_click=apply,
)
if project.tree is not None:
    if project.tree != TreePlan(chosen, draft.structure, draft.split):
        finish.warning("The plan above differs from the applied one.", icon=":material/edit_note:")
    else:
        with finish:
            guards.next_step("tree", "Go on to Tree")
