"""Ledger: every spend of this population, its state, and the cap."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from pages.shared import books, caps, guards, house, people, widgets
from pages.shared import project as state
from pages.shared.money import epsilon, format_rho
from pages.shared.network import plain

project = state.current()
widgets.head(
    "Ledger",
    "Every charge about these people, from whichever table, kept outside this browser. A charge "
    "is never refunded: what was learnt stays learnt.",
    project,
)
caps.keep()
if house.shared():
    caps.who_released()
guards.require(project, "schema")
found = widgets.account(project)
if found is None:
    st.info("Nothing was charged yet.", icon=":material/receipt_long:")
    st.stop()
population, spent = found
left = population.cap - spent
with st.container(horizontal=True):
    st.metric("Spent ρ", format_rho(spent), border=True)
    st.metric("Left ρ", format_rho(left), border=True)
    st.metric("Cap ρ", format_rho(population.cap), border=True)
    if spent > 0:
        st.metric(
            f"ε at δ = {population.delta:.0e}",
            f"{epsilon(spent, population.delta):.2f}",
            border=True,
        )
st.caption(
    f"{plain(population.name)} · protected: {population.unit.words} · neighbouring tables differ "
    f"by {'adding or removing' if population.relation == 'add_remove' else 'replacing'} one"
)
spends = house.ledger().spends(population.name, owner=house.owner())
if not spends:
    st.info("Nothing was charged yet.", icon=":material/receipt_long:")
else:
    st.dataframe(
        books.table(spends),
        hide_index=True,
        alt="Every spend of this population",
        column_config={
            "when (UTC)": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
        },
    )
    with st.container(horizontal=True):
        widgets.download("CSV", lambda: books.csv(spends), "ledger.csv", "ledger_csv")
        mine = population.owner
        widgets.download(
            "JSON", lambda: books.json(population.name, mine, spends), "ledger.json", "ledger_json"
        )
if not house.shared():
    caps.who_released()
st.caption(books.chain(house.ledger()))
with st.expander("What the states mean"):
    st.markdown(
        "- **charged**: being measured now\n"
        "- **done**: measured and stored\n"
        "- **partial**: cancelled on the way; what had been measured is stored\n"
        "- **spent, no result**: the program ended after the charge; nothing is refunded, because "
        "the table may have been touched"
    )


def raise_cap() -> None:
    """Change the cap, on purpose."""
    try:
        caps.change_own(project, population.name, st.session_state["cap"])
    except JustitiaError as error:
        project.problem = str(error)
        return
    known = house.ledger().population(population.name, house.owner())
    project.change(population=books.with_cap(project.population, known.cap))
    project.say(f"The cap is ρ = {format_rho(known.cap)} now.")


with st.expander("Change the cap"):
    st.markdown(
        "The cap is a promise to the people in the table. Raise it only with those who are "
        "responsible for them; it can never go below what is spent."
    )
    if not people.keeps_caps() and project.demo is None:
        st.caption(":material/key: You may lower it here; only a keeper of caps may raise it.")
    if project.problem:
        st.error(plain(project.problem), title="Not changed")
        project.problem = ""
    with (
        st.form("cap_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input("Cap, as ρ", value=format_rho(population.cap), key="cap")
        st.form_submit_button("Change the cap", on_click=raise_cap)
