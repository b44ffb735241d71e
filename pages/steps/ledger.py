"""Ledger: every spend of this population, its state, and the cap."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from pages.shared import books, guards, house, widgets
from pages.shared import project as state
from pages.shared.money import as_rho, epsilon, format_rho
from pages.shared.network import plain

project = state.current()
widgets.head(
    "Ledger",
    "Every charge about these people, from whichever table, kept outside this browser. A charge "
    "is never refunded: what was learnt stays learnt.",
    project,
)
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
        widgets.download(
            "JSON", lambda: books.json(population.name, spends), "ledger.json", "ledger_json"
        )
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
        house.ledger().set_cap(
            population.name, as_rho(st.session_state["cap"].strip()), owner=house.owner()
        )
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
    if project.problem:
        st.error(plain(project.problem), title="Not changed")
        project.problem = ""
    with (
        st.form("cap_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input("Cap, as ρ", value=format_rho(population.cap), key="cap")
        st.form_submit_button("Change the cap", on_click=raise_cap)
