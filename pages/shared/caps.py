"""Caps on a shared server: their keepers see every population's account, and nothing else of it."""

from __future__ import annotations

import streamlit as st

from core.errors import JustitiaError
from core.private.zcdp import as_rho, format_rho
from core.release_log import HEADER, csv_text, set_cap, who_released_what
from pages.shared import house, people
from pages.shared.network import plain
from pages.shared.project import Project


def change_own(project: Project, population: str, typed: str) -> None:
    """Change the cap of a population of one's own.

    Raises
    ------
    JustitiaError
        This person may not set that cap, or more than that is spent already.
    """
    cap, mine = as_rho(typed.strip()), people.owner()
    stands = house.ledger().population(population, mine).cap
    if project.demo is None:
        people.check_cap(cap, stands)
    set_cap(house.ledger(), people.actor(), population, cap, owner=mine, reason="by its owner")


def keep() -> None:
    """The table of all accounts and the form that changes one; draws nothing for others."""
    if not people.shared() or not people.keeps_caps():
        return
    known = [found for found in house.ledger().populations() if not found.simulated]
    with st.expander("Caps that you keep", icon=":material/key:"):
        st.markdown(
            "You may change the cap of every population on this server. You see their accounts, "
            "never their tables, declarations or releases."
        )
        if not known:
            st.caption("No population yet.")
            return
        spent = [house.ledger().spent(found.name, owner=found.owner) for found in known]
        st.dataframe(
            {
                "population": [found.name for found in known],
                "owner": [found.owner for found in known],
                "spent ρ": [format_rho(rho) for rho in spent],
                "cap ρ": [format_rho(found.cap) for found in known],
            },
            hide_index=True,
            alt="Accounts of all populations",
        )

        def change() -> None:
            chosen = known[st.session_state["kept_population"]]
            try:
                reason = st.session_state["kept_reason"].strip()
                if not reason:
                    raise JustitiaError("say why, for the log")
                set_cap(
                    house.ledger(),
                    people.actor(),
                    chosen.name,
                    as_rho(st.session_state["kept_cap"].strip()),
                    owner=chosen.owner,
                    reason=reason,
                )
            except JustitiaError as error:
                st.session_state["kept_problem"] = str(error)

        with st.form("kept_form", border=False):
            st.selectbox(
                "Population",
                range(len(known)),
                format_func=lambda index: f"{known[index].name}, of {known[index].owner}",
                key="kept_population",
            )
            st.text_input("New cap, as ρ", key="kept_cap", placeholder="such as 1.5")
            st.text_input("Why, for the log", key="kept_reason", max_chars=300)
            st.form_submit_button("Change this cap", on_click=change)
        problem = st.session_state.pop("kept_problem", "")
        if problem:
            st.error(plain(problem), title="Not changed")


def who_released() -> None:
    """Who released what: of one's own populations, or of everybody's for a keeper of caps."""
    from pages.shared import widgets

    if people.demo_only():
        return
    everybody = people.shared() and people.keeps_caps()
    mine = None if everybody else people.owner()
    with st.expander("Who released what, and who looked", icon=":material/history_edu:"):
        lines = list(who_released_what(house.ledger(), owner=mine))
        st.markdown(
            "Who asked for each release, who signed, who looked at the real table and why, and who "
            "changed a cap, of "
            f"{'all populations on this server' if everybody else 'your populations'}. Entries "
            "are only ever added."
        )
        if not lines:
            st.caption("Nothing yet.")
            return
        shown = ("when (UTC)", "who", "act", "population", "rho", "state", "detail")
        places = [HEADER.index(name) for name in shown]
        st.dataframe(
            {
                name.replace("rho", "ρ"): [line[place] for line in reversed(lines)]
                for name, place in zip(shown, places, strict=True)
            },
            hide_index=True,
            alt="Who released what, the latest first",
        )
        widgets.download(
            "Log as CSV", lambda: csv_text(lines).encode(), "log.csv", "release_log_csv"
        )
