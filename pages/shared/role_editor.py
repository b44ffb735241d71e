"""Choosing roles: one line a column, further rules, and suggestions from names only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.errors import JustitiaError
from core.roles import Constraint, Role, Roles, suggest_roles
from pages.shared.network import plain
from pages.shared.palette import badge
from pages.shared.project import Project

#: Columns on one page of the list.
PAGE = 30
PROXY = "proxy"
CHOICES = ("S", "O", "A", "I", PROXY, "ignore")
WORDS = {
    Role.PROTECTED: "protected: must not reach the outcome except through admissible columns",
    Role.OUTCOME: "outcome: what is decided or predicted",
    Role.ADMISSIBLE: "admissible: a legitimate reason, a gate in the wall",
    Role.INADMISSIBLE: "inadmissible: everything else; may stand on one side of the wall",
    Role.IGNORE: "left out of the release",
}


def _marked(name: str, chosen: str) -> str:
    """A column's name behind the coloured mark of its role."""
    mark = ":orange[◇]" if chosen == PROXY else badge(Role(chosen), letter=False)
    return f"{mark} **{plain(name)}**"


def _set_role(project: Project, name: str, key: str) -> None:
    value = st.session_state[key]
    draft = project.role_draft or Roles()
    if value not in CHOICES:
        return
    role = Role.INADMISSIBLE if value == PROXY else Role(value)
    proxies = draft.proxies | {name} if value == PROXY else draft.proxies - {name}
    further = draft.further
    if role is Role.IGNORE:
        further = tuple(rule for rule in further if name not in rule.columns)
    project.change(role_draft=Roles({**draft.by_column, name: role}, frozenset(proxies), further))


def legend() -> None:
    """What the letters mean."""
    for role, words in WORDS.items():
        st.markdown(f"{badge(role)} {words}")
    st.markdown(
        ":orange[◇ P] proxy: inadmissible, and treated as protected because it stands in for it"
    )


def edit_roles(project: Project) -> None:
    """One line a column: its name and a segmented control."""
    draft = project.role_draft or Roles()
    names = [column.name for column in project.modelled]
    if len(names) > PAGE:
        names = _page_of(names)
    for name in names:
        chosen = PROXY if name in draft.proxies else draft.role(name).value
        key = f"role_{project.identity}_{name}"
        st.session_state[key] = chosen
        st.segmented_control(
            _marked(name, chosen),
            CHOICES,
            required=True,
            key=key,
            on_change=_set_role,
            args=(project, name, key),
            width="content",
        )


def _page_of(names: Sequence[str]) -> list[str]:
    wanted = st.text_input("Find a column", key="find_role", placeholder="part of its name")
    found = [name for name in names if wanted.lower() in name.lower()]
    pages = max(-(-len(found) // PAGE), 1)
    page = st.pagination(pages, key="role_page") if pages > 1 else 1
    st.caption(f"{len(found)} of {len(names)} columns")
    return found[(page - 1) * PAGE : page * PAGE]


def suggest(project: Project) -> None:
    """Roles from names only, for columns that are still inadmissible; the steward decides."""
    draft = project.role_draft or Roles()
    names = [column.name for column in project.modelled]
    roles, proxies, said = dict(draft.by_column), set(draft.proxies), []
    for hint in suggest_roles(names):
        if draft.role(hint.name) is not Role.INADMISSIBLE or hint.name in draft.proxies:
            continue
        if hint.role is not Role.INADMISSIBLE:
            roles[hint.name] = hint.role
            said.append(f"{hint.name} → {hint.role.value} ({hint.reason})")
        elif hint.proxy:
            said.append(f"{hint.name}: {hint.reason}")
    project.role_draft = Roles(roles, frozenset(proxies), draft.further)
    project.say(
        "Suggested from names only, no value was looked at: " + "; ".join(said) + "."
        if said
        else "No name says anything about a role."
    )
    project.keep()


# -- further rules ---------------------------------------------------------------------------


def edit_rules(project: Project) -> None:
    """Rules beside that of the role table: list, remove, add."""
    draft = project.role_draft or Roles()
    for index, rule in enumerate(draft.further):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(rule.name)}**: {plain(rule.words)}", width="stretch")
            st.button(
                "Remove",
                key=f"remove_rule_{index}",
                icon=":material/delete:",
                on_click=_remove_rule,
                args=(project, index),
            )
    with st.popover("Add a rule", icon=":material/add:"):
        names = [c.name for c in project.modelled if draft.role(c.name) is not Role.IGNORE]
        st.text_input(
            "Name of the rule", key="rule_name", placeholder=f"rule {len(draft.further) + 2}"
        )
        st.multiselect("Protected", names, key="rule_protected")
        st.multiselect("Outcome", names, key="rule_outcome")
        st.multiselect("Admissible", names, key="rule_admissible")
        st.button("Add", key="rule_add", on_click=_add_rule, args=(project,))


def _remove_rule(project: Project, index: int) -> None:
    draft = project.role_draft or Roles()
    further = tuple(rule for at, rule in enumerate(draft.further) if at != index)
    project.change(role_draft=replace(draft, further=further))


def _add_rule(project: Project) -> None:
    draft = project.role_draft or Roles()
    typed: Mapping[str, Any] = st.session_state
    try:
        rule = Constraint(
            frozenset(typed["rule_protected"]),
            frozenset(typed["rule_outcome"]),
            frozenset(typed["rule_admissible"]),
            typed["rule_name"].strip() or f"rule {len(draft.further) + 2}",
        )
        wanted = replace(draft, further=(*draft.further, rule))
        wanted.check(tuple(column.name for column in project.modelled))
    except JustitiaError as error:
        project.problem = str(error)
        return
    if not rule.is_active:
        project.problem = "a rule needs at least one protected and one outcome column"
        return
    project.change(role_draft=wanted)
    for key in ("rule_name", "rule_protected", "rule_outcome", "rule_admissible"):
        del st.session_state[key]
