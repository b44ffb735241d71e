"""Second step of the lesson: what the noise does to the tree, and how it settles."""

from __future__ import annotations

import streamlit as st

from core.lessons import Lesson, Settling, curve, ideal, settling
from pages.shared import learn_charts, learn_pictures, learn_questions, widgets
from pages.shared.learn_controls import Choice
from pages.shared.learn_worlds import take_home
from pages.shared.money import format_rho
from pages.shared.pictures import CHART


def draw(choice: Choice) -> None:
    """One draw as a picture, many draws as shares, and all budgets as a curve."""
    lesson = choice.lesson()
    many = settling(choice.stage, choice.rho, choice.structure)
    learn_questions.noise(choice)
    best = set(ideal(choice.stage, choice.structure))
    same = len(best & set(lesson.release.edges))
    allowed = "" if choice.structure == "mst" else " that the rule allows"
    st.header("This draw", anchor=False)
    st.markdown(
        f"The tree of draw {choice.seed} at ρ = {format_rho(choice.rho)}. Without any noise the "
        f"release would take the {len(best)} strongest links{allowed}; **this draw "
        f"has {same} of them.** Draw again, or move the budget.",
        width=widgets.TEXT,
    )
    learn_pictures.whole(lesson, lesson.released, "learn_tree")
    st.markdown(learn_pictures.verdict(lesson, lesson.released))
    edges_of(lesson)
    st.header(f"{many.draws} draws at once", anchor=False)
    frequencies(many)
    st.header("From hardly any budget to plenty", anchor=False)
    settles(choice)
    take_home(lesson, choice)


def edges_of(lesson: Lesson) -> None:
    """The table beside the picture."""
    best = set(ideal(lesson.stage, lesson.structure))
    with st.expander("The edges of this draw as a table", icon=":material/table_rows:"):
        steps = lesson.release.steps
        st.dataframe(
            {
                "step": [step.index + 1 for step in steps],
                "edge": [" — ".join(step.chosen) for step in steps],
                "could have been chosen": [step.candidates for step in steps],
                "also without noise": ["yes" if step.chosen in best else "no" for step in steps],
            },
            hide_index=True,
            alt="Edges of this draw in the order of choice",
        )


def frequencies(found: Settling) -> None:
    """How often each edge is chosen."""
    left, middle, right = st.columns(3)
    left.metric(
        "Edges as without noise",
        f"{found.expected:.0%}",
        help="Mean over the draws: how much of the tree without noise a draw finds.",
    )
    middle.metric(
        "Strength of the tree",
        f"{found.expected_quality:.0%}",
        help="Links that are swapped are often nearly as strong. This is the total strength of a "
        "draw's links, counted without noise, beside that of the tree without noise.",
    )
    right.metric(
        "Draws that break the rule",
        f"{found.broken:.0%}",
        help="Draws in which a path reaches the outcome around the gates. With the rule this is "
        "zero for every draw: the promise does not depend on luck.",
    )
    chart, table = st.tabs(["Chart", "Table"])
    with chart:
        st.plotly_chart(
            learn_charts.edge_chart(found, widgets.theme(), short=widgets.phone()),
            key="learn_edges",
            theme=None,
            config=CHART,
            alt=f"How often each edge was chosen in {found.draws} draws. A draw finds "
            f"{found.expected:.0%} of the tree without noise on average.",
        )
        rest = len(found.edges) - learn_charts.EDGES
        forbidden = any(one.forbidden for one in found.edges[: learn_charts.EDGES])
        st.caption(
            ("Hatched: pairs that the rule forbids. " if forbidden else "")
            + (f"{rest} rarer edges are in the table." if rest > 0 else "")
        )
    with table:
        st.dataframe(
            {
                "edge": [" — ".join(one.edge) for one in found.edges],
                "share of draws": [one.share for one in found.edges],
                "also without noise": ["yes" if one.ideal else "no" for one in found.edges],
                "forbidden by the rule": ["yes" if one.forbidden else "no" for one in found.edges],
            },
            hide_index=True,
            height=420,
            alt="How often each edge was chosen",
            column_config={"share of draws": st.column_config.NumberColumn(format="percent")},
        )


def settles(choice: Choice) -> None:
    """Agreement at every budget of the slider."""
    with st.spinner("Drawing the noise at every budget"):  # the first time in a server's life
        found = curve(choice.stage, choice.structure)
    st.markdown(
        f"{found[0].draws} draws at every budget. Where noise is large the tree is different "
        "every time; with more budget it **settles** on the strongest links. The dotted line "
        "is your budget.",
        width=widgets.TEXT,
    )
    chart, table = st.tabs(["Chart", "Table"])
    with chart:
        st.plotly_chart(
            learn_charts.agreement_chart(found, float(choice.rho), widgets.theme()),
            key="learn_curve",
            theme=None,
            config=CHART,
            alt=f"Share of edges as without noise, from {found[0].expected:.0%} at the smallest "
            f"budget to {found[-1].expected:.0%} at the largest.",
        )
    with table:
        st.dataframe(
            {
                "ρ": [float(one.rho) for one in found],
                "edges as without noise": [one.expected for one in found],
                "worst draw": [min(one.agreement) for one in found],
                "best draw": [max(one.agreement) for one in found],
                "strength of the tree": [one.expected_quality for one in found],
                "draws that break the rule": [one.broken for one in found],
            },
            hide_index=True,
            alt="Agreement with the tree without noise at every budget",
            column_config={
                name: st.column_config.NumberColumn(format="percent")
                for name in ("edges as without noise", "worst draw", "best draw",
                             "strength of the tree", "draws that break the rule")
            } | {"ρ": st.column_config.NumberColumn(format="%g")},
        )  # fmt: skip
