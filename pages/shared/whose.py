"""Whose data it is: the population, its neighbouring relation, its unit of protection, its cap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import JustitiaError, PlanError
from core.plan import PopulationPlan
from core.private.zcdp import as_rho, format_rho
from core.releases import Relation, Unit
from pages.shared import house
from pages.shared.network import plain
from pages.shared.project import Project

RELATIONS = {
    Relation.ADD_REMOVE: "Whether somebody is in the table at all (the number of rows is private)",
    Relation.REPLACE_ONE: "What somebody's row says (the number of rows is public)",
}
NEW = "other people, not in any earlier table"
ROW, PERSON, UNVERIFIED = "one row", "one person, by an id column", "one person, no id column"
DEFAULTS: Mapping[str, Any] = {
    "same": None,
    "name": "",
    "relation": Relation.ADD_REMOVE.value,
    "unit": ROW,
    "person": None,
    "rows": 1,
    "cap": "1",
    "delta": "1e-9",
    "expected_rows": "",
}


def population_draft(project: Project) -> dict[str, Any]:
    """What was typed so far, with the defaults for the rest."""
    return {**DEFAULTS, **project.population_draft}


def population_name(draft: Mapping[str, Any]) -> str:
    """The chosen or typed name."""
    same = draft["same"]
    return str(same) if same not in {None, NEW} else str(draft["name"] or "").strip()


def _set(project: Project, field: str, key: str) -> None:
    value = st.session_state[key]
    project.change(population_draft={**project.population_draft, field: value})


def edit_population(project: Project) -> None:
    """Draw the questions; every answer goes into the project's draft at once."""
    draft = population_draft(project)
    known = house.known_populations()
    prefix = f"population_{project.generation}"

    def settings(field: str) -> dict[str, Any]:
        key = f"{prefix}_{field}"
        return {"key": key, "on_change": _set, "args": (project, field, key)}

    _who(project, draft, known, settings)
    name = population_name(draft)
    terms = existing_terms(name)
    if terms is not None:
        st.info(
            f"“{plain(name)}” is known. Its terms are fixed: {terms.unit.words}; "
            f"{RELATIONS[terms.relation].lower()}; cap ρ = {format_rho(terms.cap)}.",
            icon=":material/link:",
        )
        _expected_rows(draft, settings)
        return
    st.radio(
        "What is kept secret?",
        [relation.value for relation in RELATIONS],
        index=[relation.value for relation in RELATIONS].index(draft["relation"]),
        format_func=lambda value: RELATIONS[Relation(value)],
        **settings("relation"),
    )
    left, right = st.columns(2)
    with left:
        st.selectbox(
            "Who is protected?",
            (ROW, PERSON, UNVERIFIED),
            index=(ROW, PERSON, UNVERIFIED).index(draft["unit"]),
            help="With several rows a person the whole person can be protected; the noise grows "
            "with the square of the number of rows.",
            **settings("unit"),
        )
    with right:
        st.text_input(
            "Cap: the most that may ever be spent, as ρ",
            value=draft["cap"],
            help="Losses add up over all releases about this population. When the cap is reached "
            "the ledger refuses.",
            **settings("cap"),
        )
    if draft["unit"] != ROW:
        _person(project, draft, settings)
    _expected_rows(draft, settings)
    with st.expander("δ, for showing ρ as ε"):
        st.text_input("δ", value=draft["delta"], **settings("delta"))
        st.caption("ρ is the promise; ε at this δ is only another way of showing it.")


def _who(project: Project, draft: Mapping[str, Any], known: tuple[str, ...], settings: Any) -> None:
    """The population: one that the ledger knows, or a new one by name."""
    if project.demo is not None:
        st.markdown(f"Made-up people: **{plain(draft['name'])}**, a ledger of this project's own.")
        return
    if known:
        options = [NEW, *known]
        st.selectbox(
            "Are these the same people as …?",
            options,
            index=options.index(draft["same"]) if draft["same"] in options else None,
            placeholder="choose",
            help="All tables about the same people share one budget, whatever their file is "
            "called. If these people are in an earlier table, choose that population.",
            **settings("same"),
        )
        if draft["same"] not in {None, NEW}:
            return
    st.text_input(
        "Name these people",
        value=draft["name"],
        placeholder="such as “applicants 2026”",
        help="The name under which the ledger keeps their budget.",
        max_chars=120,
        **settings("name"),
    )


def _person(project: Project, draft: Mapping[str, Any], settings: Any) -> None:
    left, right = st.columns(2)
    names = [row["name"] for row in project.draft]
    if draft["unit"] == PERSON:
        with left:
            st.selectbox(
                "Column with the person's id",
                names,
                index=names.index(draft["person"]) if draft["person"] in names else None,
                **settings("person"),
            )
    with right:
        st.number_input(
            "Most rows a person may have",
            min_value=1,
            max_value=1000,
            value=int(draft["rows"]),
            help="Rows beyond that are dropped before anything is measured."
            if draft["unit"] == PERSON
            else "Nothing enforces this without an id column; the statement will say so.",
            **settings("rows"),
        )


def _expected_rows(draft: Mapping[str, Any], settings: Any) -> None:
    st.text_input(
        "About how many rows, from public knowledge (optional)",
        value=draft["expected_rows"],
        placeholder="such as 20000",
        help="Used for the predicted error only. The true number is never looked up.",
        **settings("expected_rows"),
    )


def existing_terms(name: str) -> Any:
    """The ledger's terms of a population of that name, or None."""
    if not name or (house.shared() and name not in house.own_populations()):
        return None
    try:
        return house.ledger().population(name, house.owner())
    except JustitiaError:
        return None


def read_population(project: Project) -> PopulationPlan:
    """The population that the answers describe.

    Raises
    ------
    PlanError, BudgetError
        An answer cannot be accepted; the message names it.
    """
    draft = population_draft(project)
    expected = str(draft["expected_rows"]).strip().replace(",", "").replace(" ", "")
    if expected and not expected.isdecimal():
        raise PlanError("expected rows: type a whole number, such as 20000, or nothing")
    rows = int(expected) or None if expected else None
    name = population_name(draft)
    asked = project.demo is None and project.population is None and house.known_populations()
    if asked and draft["same"] is None:
        raise PlanError(
            "people: say whether these are the same people as in an earlier table, or other people"
        )
    terms = existing_terms(name)
    if terms is not None:
        return PopulationPlan(
            name, terms.relation, terms.unit, terms.cap, terms.delta, rows or terms.expected_rows
        )
    if draft["unit"] == PERSON and not draft["person"]:
        raise PlanError("who is protected: choose the column with the person's id")
    unit = Unit()
    if draft["unit"] == PERSON:
        unit = Unit(int(draft["rows"]), draft["person"])
    elif draft["unit"] == UNVERIFIED:
        unit = Unit(int(draft["rows"]))
    try:
        delta = float(str(draft["delta"]))
    except ValueError as error:
        raise PlanError("δ: type a number such as 1e-9") from error
    return PopulationPlan(
        name, Relation(draft["relation"]), unit, as_rho(str(draft["cap"]).strip()), delta, rows
    )
