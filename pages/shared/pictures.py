"""The tree picture with its words and its table, as several pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.privci.constraint import ConstraintFilter
from core.releases import ForbiddenPair, TreeRelease
from core.roles import Constraint, Roles
from pages.shared import network
from pages.shared.lanes import Edge
from pages.shared.network import plain
from pages.shared.widgets import phone, theme

CHART = {"displayModeBar": False, "scrollZoom": False}
#: More columns than this get a search box.
MANY = 16
#: Letters of a name in a picture that stands beside something else.
SHORT = 12
TINY = 8
#: Up to so many pairs are shown as a table of whole sentences, more as a grid that scrolls.
FEW = 12


def choose_rule(roles: Roles, key: str) -> Constraint | None:
    """Which of several rules the picture's sides belong to."""
    rules = roles.constraints
    if len(rules) < 2:
        return rules[0] if rules else None
    names = [rule.name for rule in rules]
    chosen = st.segmented_control(
        "Rule shown in the picture", range(len(rules)), default=0, required=True, key=key,
        format_func=lambda index: plain(names[index]),
    )  # fmt: skip
    return rules[chosen or 0]


def find_column(names: Sequence[str], key: str) -> str | None:
    """A search box for large pictures."""
    if len(names) <= MANY:
        return None
    return st.selectbox(
        "Find a column", list(names), index=None, placeholder="type part of its name", key=key
    )


def show(
    names: Sequence[str],
    roles: Roles,
    edges: Sequence[Edge] = (),
    *,
    key: str,
    settled: Sequence[Edge] | None = None,
    forbidden: Sequence[ForbiddenPair] = (),
    strengths: Mapping[Edge, float] | None = None,
    constraint: Constraint | None = None,
    found: str | None = None,
    letters: int = network.LETTERS,
    narrow: bool = False,
) -> None:
    """Draw one step; ``narrow`` for a picture that stands beside others."""
    figure = network.draw(
        names,
        roles,
        edges,
        settled=settled,
        forbidden=forbidden,
        strengths=strengths,
        constraint=constraint,
        found=found,
        theme=theme(),
        letters=TINY if phone() and not narrow else letters,
        narrow=narrow,
    )
    st.plotly_chart(
        figure,
        key=key,
        theme=None,
        config=CHART,
        alt=network.describe(names, roles, edges, len(forbidden) or None),
    )


def before(names: Sequence[str], roles: Roles, key: str) -> tuple[ForbiddenPair, ...]:
    """What the rule forbids before anything is measured; returns the pairs."""
    pairs = ConstraintFilter(names, roles.constraints).forbidden()
    constraint = choose_rule(roles, f"{key}_rule")
    shown = [pair for pair in pairs if constraint is None or pair.constraint == constraint.name]
    show(
        names,
        roles,
        key=key,
        forbidden=shown,
        constraint=constraint,
        found=find_column(names, f"{key}_find"),
        letters=SHORT,
    )
    return pairs


def forbidden_table(pairs: Sequence[ForbiddenPair], height: int = 260) -> None:
    """Pairs with the sentence why."""
    if not pairs:
        st.caption("The rule forbids no pair.")
        return
    columns = {
        "pair": [" — ".join(pair.pair) for pair in pairs],
        "why it is forbidden": [pair.reason for pair in pairs],
    }
    if len({pair.constraint for pair in pairs}) > 1:
        columns["rule"] = [pair.constraint for pair in pairs]
    if len(pairs) <= FEW:
        st.table(
            {name: [plain(cell) for cell in cells] for name, cells in columns.items()},
            hide_index=True,
            alt="Forbidden pairs with reasons",
        )
        return
    st.dataframe(
        columns,
        hide_index=True,
        height=height,
        row_height=64,  # room for a sentence on three lines
        alt="Forbidden pairs with reasons",
        column_config={"why it is forbidden": st.column_config.TextColumn(width="large")},
    )


def edge_table(release: TreeRelease, strengths: Mapping[Edge, float] | None = None) -> None:
    """Edges in the order of choice, how many candidates each had, and what it forbade."""
    strong = strengths or {}
    steps = release.steps
    columns: dict[str, list[object]] = {
        "step": [index + 1 for index in range(len(steps))],
        "edge": [" — ".join(step.chosen) for step in steps],
        "could have been chosen": [step.candidates for step in steps],
        "pairs it forbade": [len(step.forbidden) for step in steps],
    }
    if strong:
        columns["noisy strength"] = [strong.get(step.chosen) for step in steps]
    if any(step.forbidden for step in steps):
        columns["why"] = [step.forbidden[0].reason if step.forbidden else "" for step in steps]
    st.dataframe(
        columns,
        hide_index=True,
        height=38 + 35 * min(len(steps), MANY),
        alt="Edges of the tree in the order of choice",
        column_config={"noisy strength": st.column_config.NumberColumn(format="%.3f")},
    )
