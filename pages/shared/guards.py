"""What a page needs before it can work, derived from the project and never from a step number."""

from __future__ import annotations

import streamlit as st

from pages.shared.project import Project

STEPS = "pages/steps"
PAGES = {
    "start": f"{STEPS}/start.py",
    "data": f"{STEPS}/data.py",
    "roles": f"{STEPS}/roles.py",
    "budget": f"{STEPS}/budget.py",
    "tree": f"{STEPS}/tree.py",
    "synthetic": f"{STEPS}/synthetic.py",
    "posterior": f"{STEPS}/posterior.py",
    "covariance": f"{STEPS}/covariance.py",
    "audit": f"{STEPS}/audit.py",
    "release": f"{STEPS}/release.py",
    "ledger": f"{STEPS}/ledger.py",
}
#: For each need: what is missing in words, the page that makes it, and that page's name.
NEEDS = {
    "draft": ("There is no table yet.", "start", "Choose data on Start"),
    "schema": ("The columns are not declared yet.", "data", "Confirm the schema on Data"),
    "roles": ("The columns have no roles yet.", "roles", "Save roles on Roles"),
    "plan": ("There is no budget plan yet.", "budget", "Apply a plan on Budget"),
    "tree": ("The tree was not released yet.", "tree", "Release the tree on Tree"),
    "release": ("Nothing was released yet.", "tree", "Release the tree on Tree"),
}
ORDER = ("draft", "schema", "roles", "plan", "tree", "release")


def has(project: Project, need: str) -> bool:
    """Whether one need is met."""
    if need == "draft":
        return bool(project.draft)
    if need == "schema":
        return project.schema is not None and project.population is not None
    if need == "roles":
        return project.roles is not None
    if need == "plan":
        return project.plan is not None
    if need == "tree":
        return project.best_run() is not None
    return any(project.best_run(what) is not None for what in ("tree", "posterior", "covariance"))


def first_missing(project: Project, upto: str) -> str | None:
    """The earliest need that is not met, among those up to ``upto``."""
    if upto in {"tree", "release"} and has(project, upto):
        return None
    wanted = ORDER[: ORDER.index(upto) + 1]
    return next((need for need in wanted if not has(project, need)), None)


def require(project: Project, upto: str) -> None:
    """Stop the page with what is missing and a link to the page that makes it."""
    need = first_missing(project, upto)
    if need is None:
        return
    words, page, label = NEEDS[need]
    with st.container(border=True):
        st.markdown(f":material/lock: **{words}**")
        st.page_link(PAGES[page], label=label, icon=":material/arrow_forward:")
    st.stop()


def next_step(page: str, label: str) -> None:
    """A quiet link to the page that comes next."""
    st.page_link(PAGES[page], label=label, icon=":material/arrow_forward:")
