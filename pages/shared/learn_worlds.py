"""First step of the lesson: the true, the biased and the released world side by side."""

from __future__ import annotations

import streamlit as st

from core import demo
from core.bundle import file_name
from core.lessons import Gap, Lesson, Shown
from pages.shared import learn_charts, learn_pictures, learn_questions, widgets
from pages.shared.explorer import standalone
from pages.shared.learn_controls import Choice, bits, gates, group, points
from pages.shared.network import label, plain
from pages.shared.pictures import CHART


def draw(choice: Choice) -> None:
    """Questions, three cards, and the figures behind them as charts and tables."""
    lesson = choice.lesson()
    learn_questions.worlds(lesson)
    with st.expander("The story", icon=":material/auto_stories:"):
        st.markdown(plain(demo.describe(choice.name)), width=widgets.TEXT)
    st.markdown(learn_pictures.LEGEND, width=widgets.TEXT)
    cards(lesson, choice)
    st.header("Outcomes of people who are alike", anchor=False)
    gaps(lesson, "worlds")
    st.header("Information that goes around the gates", anchor=False)
    information(lesson)
    st.header("Whole trees", anchor=False)
    learn_pictures.explorer(lesson)
    take_home(lesson, choice)


def cards(lesson: Lesson, choice: Choice) -> None:
    """Three worlds, each with its picture, its verdict and its two figures."""
    stage = lesson.stage
    words = {
        "true": (
            "Fair reasons decide.",
            f"Decisions rest on {gates(stage)}, and on nothing that {plain(stage.protected)} "
            "changes otherwise. We know, because we wrote it.",
        ),
        "biased": (
            "The same people, with a bias.",
            f"The same people with the same luck, but {plain(stage.protected)} changes the "
            "decision directly. This is the table that a steward holds.",
        ),
        "released": (
            "What is released.",
            f"A noisy release of the biased world: {choice.words}. Synthetic people are drawn "
            "from this tree.",
        ),
    }
    for place, world in zip(st.columns(3), lesson.shown, strict=True):
        with place.container(border=True, key=f"learn_card_{world.title}", height="stretch"):
            st.subheader(f"{world.title.capitalize()} world", anchor=False)
            short, long = words[world.title]
            st.markdown(short)
            learn_pictures.small(lesson, world, f"learn_picture_{world.title}")
            st.markdown(learn_pictures.verdict(lesson, world))
            figures(lesson, world)
            st.markdown(long)


def figures(lesson: Lesson, world: Shown) -> None:
    """The two numbers of a world."""
    stage, about = lesson.stage, world.gaps
    one, other = label(lesson.headline), label(about.reference)
    alike = label(" and ".join(stage.admissible))
    found = about.of(lesson.headline)
    error = None if found is None else found.standard_error
    st.metric(
        f"Gap by {label(about.column)}",
        "none can be told" if found is None or found.gap is None else points(found.gap),
        help=f"Share with {label(about.outcome)} = {label(about.best)} in the group {one}, less "
        f"the share in the group {other} among people who are alike in {alike}. Zero: people who "
        "are alike are treated alike."
        + (f" Chance alone moves it by about {100 * error:.1f} points." if error else ""),
    )
    st.caption(f"{plain(lesson.headline)} beside {plain(about.reference)}, alike")
    amount = world.rows.bits if world.model_bits is None else world.model_bits
    st.metric(
        "Information around the gates",
        bits(amount),
        help=f"Conditional mutual information: how much {label(stage.watched)} helps to guess "
        f"{label(stage.outcome)} once {alike} are known. 0 bits: not at all. In a table of people "
        f"chance alone gives about {world.rows.floor:.4f} bits, its floor.",
    )
    if world.model_bits is None:
        st.caption(f"in the rows; chance alone: {world.rows.floor:.4f}")
    else:
        st.caption(
            f"in the model; in its rows {world.rows.bits:.4f}, chance alone: {world.rows.floor:.4f}"
        )


def gaps(lesson: Lesson, key: str) -> None:
    """Every group's gap as chart and table."""
    about = lesson.biased.gaps
    st.markdown(
        f"Each line joins a group with people of **{group(about, about.reference)}** who are "
        f"alike in {gates(lesson.stage)}. **A short line means that people who are alike are "
        "treated alike.** The marks themselves may still differ between groups: that part "
        "goes through the gates, and the rule calls it fair.",
        width=widgets.TEXT,
    )
    chart, table = st.tabs(["Chart", "Table"])
    with chart:
        st.plotly_chart(
            learn_charts.gap_chart(lesson, widgets.theme(), short=widgets.phone()),
            key=f"learn_gaps_{key}",
            theme=None,
            config=CHART,
            alt="Shares with the best outcome by group in three worlds. "
            + " ".join(
                f"{world.title} world, {lesson.headline}: gap {points(found.gap)}."
                for world in lesson.shown
                if (found := world.gaps.of(lesson.headline)) is not None and found.gap is not None
            ),
        )
    with table:
        st.dataframe(
            {
                "world": [world.title for world, _ in _rows(lesson)],
                "group": [one.group for _, one in _rows(lesson)],
                "of all people": [one.share for _, one in _rows(lesson)],
                f"{about.outcome} = {about.best}": [one.rate for _, one in _rows(lesson)],
                f"{about.reference}, alike": [one.alike for _, one in _rows(lesson)],
                "gap in points": [
                    None if one.gap is None else round(100 * one.gap, 2) + 0.0
                    for _, one in _rows(lesson)
                ],
                "± 2 standard errors": [
                    None if one.standard_error is None else 200 * one.standard_error
                    for _, one in _rows(lesson)
                ],
            },
            hide_index=True,
            alt="Outcomes of groups and of people alike in three worlds",
            column_config={
                "of all people": st.column_config.NumberColumn(format="percent"),
                f"{about.outcome} = {about.best}": st.column_config.NumberColumn(format="percent"),
                f"{about.reference}, alike": st.column_config.NumberColumn(format="percent"),
                "gap in points": st.column_config.NumberColumn(format="%.1f"),
                "± 2 standard errors": st.column_config.NumberColumn(format="%.1f"),
            },
        )
        st.caption(
            "The released world is a model: it has no people, so its gaps have no standard errors."
        )


def _rows(lesson: Lesson) -> list[tuple[Shown, Gap]]:
    return [(world, one) for world in lesson.shown for one in world.gaps.groups]


def information(lesson: Lesson) -> None:
    """Bits and floors of the three worlds."""
    stage = lesson.stage
    st.markdown(
        f"How much {plain(stage.watched)} helps to guess {plain(stage.outcome)} once "
        f"{gates(stage)} are known. Even in a fair table the answer is not exactly zero: "
        "**chance alone** leaves a little. To see how much, shuffle "
        f"{plain(stage.watched)} among people who are alike, and count again.",
        width=widgets.TEXT,
    )
    chart, table = st.tabs(["Chart", "Table"])
    with chart:
        st.plotly_chart(
            learn_charts.information_chart(lesson, widgets.theme()),
            key="learn_information",
            theme=None,
            config=CHART,
            alt=" ".join(
                f"{world.title} world: {world.rows.bits:.4f} bits, chance alone "
                f"{world.rows.floor:.4f}."
                for world in lesson.shown
            ),
        )
    with table:
        st.dataframe(
            {
                "world": [world.title for world in lesson.shown],
                "bits in the rows": [world.rows.bits for world in lesson.shown],
                "chance alone": [world.rows.floor for world in lesson.shown],
                "above chance": [world.rows.excess for world in lesson.shown],
                "shuffles with as much": [world.rows.p_value for world in lesson.shown],
                "bits in the model": [world.model_bits for world in lesson.shown],
            },
            hide_index=True,
            alt="Conditional information and its floor in three worlds",
            column_config={
                name: st.column_config.NumberColumn(format="%.4f")
                for name in ("bits in the rows", "chance alone", "above chance",
                             "bits in the model")
            } | {"shuffles with as much": st.column_config.NumberColumn(format="percent")},
        )  # fmt: skip


def take_home(lesson: Lesson, choice: Choice) -> None:
    """The released tree as one file for a classroom without a network."""
    widgets.download(
        "Download the released tree (HTML, works offline)",
        lambda: standalone(lesson.release, f"Lesson {choice.name}: {choice.words}"),
        file_name(f"lesson-{choice.name}.html", True),
        f"learn_download_{choice.structure}",
        help="One file with its own step control; opens in any browser. It is marked SIMULATED, "
        "NOT PRIVATE.",
    )
