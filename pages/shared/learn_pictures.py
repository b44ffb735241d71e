"""Tree pictures of the lessons: small ones beside each other, and their words."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core import demo
from core.lessons import Lesson, Shown, Stage, forbidden_pairs, outline, way_around
from core.roles import Roles
from pages.shared import pictures
from pages.shared.network import plain

#: Letters of a name in a picture that is a third of the page wide.
LETTERS = 10

#: How to read the pictures.
LEGEND = (
    "How to read the pictures: a line joins columns that tell about each other. "
    ":orange[◆ S] is protected, :blue[★ O] is the outcome, and :green[■ A] are the gates in the "
    "wall between them: reasons that count as fair. :gray[◇ P] is a proxy, a column that gives the "
    "protected one away. All other columns are in the whole trees further down."
)


def roles_in(stage: Stage) -> Roles:
    """Roles as they are drawn: a column that gives the hidden one away stands on its side."""
    proxies = set(stage.proxies) | ({stage.watched} if stage.hidden else set())
    return replace(demo.roles(stage.name), proxies=frozenset(proxies))


def small(lesson: Lesson, world: Shown, key: str) -> None:
    """The wall with its gates and what the rule names on either side of it."""
    stage = lesson.stage
    kept = [name for name in world.columns if name in stage.judge.columns]
    pictures.show(
        kept,
        roles_in(stage),
        outline(stage, world.edges),
        key=key,
        constraint=stage.judge,
        letters=LETTERS,
        narrow=True,
    )


def whole(lesson: Lesson, world: Shown, key: str) -> None:
    """Every column of a world."""
    pictures.show(
        world.columns,
        roles_in(lesson.stage),
        world.edges,
        key=key,
        constraint=lesson.stage.judge,
        letters=pictures.SHORT,
    )


def verdict(lesson: Lesson, world: Shown) -> str:
    """Whether a path avoids the gates, in one sentence of Markdown."""
    path = way_around(lesson.stage, world.edges)
    if not path:
        outcome = plain(lesson.stage.outcome)
        return f":material/check_circle: Every path to {outcome} passes a gate."
    words = " — ".join(plain(name) for name in path)
    return f":material/error: A path **jumps the wall**: {words}."


def explorer(lesson: Lesson) -> None:
    """All columns of one world, as a picture and as a table."""
    shown = {world.title: world for world in lesson.shown}
    title = st.segmented_control(
        "World",
        list(shown),
        default="biased",
        required=True,
        format_func=str.capitalize,
        key="learn_explored",
        persist_state="session",
    )
    world = shown[title or "biased"]
    whole(lesson, world, f"learn_explored_{world.title}")
    forbidden = set(world.edges) & {pair.pair for pair in forbidden_pairs(lesson.stage)}
    st.dataframe(
        {
            "edge": [" — ".join(edge) for edge in world.edges],
            "forbidden by the rule": ["yes" if e in forbidden else "no" for e in world.edges],
        },
        hide_index=True,
        alt=f"Edges of the {world.title} world's tree",
    )
