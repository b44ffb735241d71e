"""Third step of the lesson: a column that gives the protected one away, and how to close it."""

from __future__ import annotations

import streamlit as st

from core import demo
from core.lessons import Lesson, Stage, Way, settling
from pages.shared import learn_pictures, learn_questions, learn_worlds, widgets
from pages.shared.learn_controls import ROUNDING, Choice, bits, gates
from pages.shared.network import label, plain


def draw(choice: Choice) -> None:
    """Controls, the released tree, the ways through other columns, and the gaps."""
    stage = _stage(choice.name)
    lesson = choice.lesson(stage)
    learn_questions.proxies(choice)
    if not choice.keeps:
        st.info(
            "The rule is dropped, so a proxy changes nothing. Choose “Keep the rule” above.",
            icon=":material/info:",
        )
    st.header("The released tree", anchor=False)
    _words(lesson, choice)
    learn_pictures.whole(lesson, lesson.released, "learn_proxy_tree")
    st.header("Ways through other columns", anchor=False)
    _ways(lesson, choice)
    if stage.hidden:
        st.header(f"Outcomes by {plain(stage.watched)}", anchor=False)
        learn_worlds.gaps(lesson, "proxies")


def _stage(name: str) -> Stage:
    plainly = Stage.of(name)
    with st.container(border=True, key="learn_proxy_controls"):
        hidden = st.toggle(
            f"Leave {label(plainly.protected)} out of the release",
            value=True,
            key=f"learn_hidden_{name}",
            persist_state="session",
            help="A popular idea: who does not know it cannot use it.",
        )
        chosen = st.pills(
            "Treat as proxy",
            plainly.candidates,
            selection_mode="multi",
            default=[],
            format_func=label,
            key=f"learn_proxies_{name}",
            persist_state="session",
            help="A proxy is a column that gives the protected one away. Declared as a proxy it "
            "is treated like the protected column itself: no path from it may avoid the gates.",
        )
    return Stage.of(name, tuple(chosen), hidden)


def _words(lesson: Lesson, choice: Choice) -> None:
    """What became of the column that the demo's equations make a proxy."""
    stage = lesson.stage
    way = next(way for way in lesson.ways if way.column == stage.proxy)
    name = plain(way.column)
    left, right = st.columns(2)
    left.metric(
        f"{label(way.column)} gives {label(stage.protected)} away by",
        f"{way.tells:.0%}",
        help="How much of the uncertainty about the protected column goes away when this one is "
        "known (mutual information over entropy). 0 %: nothing. 100 %: it is known exactly.",
    )
    right.metric(
        f"Its link to {label(stage.outcome)}",
        bits(way.linked_bits),
        help="Conditional mutual information in the released model: how much this column helps "
        f"to guess {label(stage.outcome)} once {label(' and '.join(stage.admissible))} are known.",
    )
    if way.open:
        st.markdown(
            f":material/error: The way through {name} is **open**: the tree joins it with "
            f"{plain(stage.outcome)} around the gates."
            + (" Declare it a proxy." if choice.keeps else "")
        )
    elif way.proxy and choice.keeps:
        st.markdown(f":material/check_circle: The way through {name} is **closed** by the rule.")
    else:
        st.markdown(
            f":material/check_circle: The way through {name} is closed in this draw, though "
            "nothing promises it for the next one."
        )
    if stage.hidden:
        st.caption(
            f"{name} is drawn on the protected side, declared or not, because it gives "
            f"{plain(stage.protected)} away."
        )


def _ways(lesson: Lesson, choice: Choice) -> None:
    stage = lesson.stage
    many = settling(stage, choice.rho, choice.structure)
    st.markdown(
        f"A column can carry {plain(stage.protected)} to {plain(stage.outcome)} when it **gives it "
        f"away** and when the tree **joins it with the outcome** around {gates(stage)}. Both "
        "are needed; declaring it a proxy forbids the second.",
        width=widgets.TEXT,
    )
    tells, link, often = (
        f"gives {stage.protected} away (%)",
        f"link to {stage.outcome} (bits)",
        f"open in {many.draws} draws (%)",
    )
    ways = sorted(lesson.ways, key=lambda way: -way.tells)
    st.dataframe(
        {
            "column": [way.column for way in ways],
            tells: [100 * way.tells for way in ways],
            link: [0.0 if way.linked_bits < ROUNDING else way.linked_bits for way in ways],
            "way in this draw": [_standing(way, choice) for way in ways],
            often: [100 * many.ways[way.column] for way in ways],
        },
        hide_index=True,
        alt="Ways through other columns: what each gives away, and whether its way is open",
        column_config={
            tells: st.column_config.NumberColumn(format="%.1f"),
            link: st.column_config.NumberColumn(format="%.4f"),
            often: st.column_config.NumberColumn(format="%.0f"),
        },
    )
    st.caption(
        "Independence holds in the released world. A model trained on it and used on real "
        "people may still use a column that gives the protected one away there. In this demo the "
        f"equations make {plain(demo.truth(stage.name).proxies[0])} the proxy."
    )


def _standing(way: Way, choice: Choice) -> str:
    if way.proxy and choice.keeps:
        return "closed by the rule"
    return "open" if way.open else "closed"
