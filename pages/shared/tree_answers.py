"""What the marginals that a tree paid for say by themselves: posteriors at no further cost."""

from __future__ import annotations

import streamlit as st

from core.pumba.from_tree import tree_tables
from core.pumba.questions import analysis_of_tree_table
from core.pumba.settings import Settings
from core.releases import TreeRelease
from pages.shared import answers
from pages.shared.network import label, plain


def draw(release: TreeRelease, request_id: str) -> None:
    """Pick a measured column or pair; the answers carry the noise of its counts."""
    margins = st.session_state.get("tree_margins", False)
    found = tree_tables(release, margins=margins)
    tables = found.tables
    if not tables:
        st.markdown("No table of this release stands on its declared cells.")
        return
    pairs = [index for index, table in enumerate(tables) if len(table.columns) == 2]
    place = st.selectbox(
        "Measured table",
        range(len(tables)),
        index=pairs[0] if pairs else 0,
        format_func=lambda index: label(" × ".join(tables[index].columns)),
        key="tree_table",
        help="Single columns, and the joined pairs whose cells were not merged.",
    )
    chosen = tables[place or 0]
    if len(chosen.columns) == 2:
        st.checkbox(
            "Let the counts of the single columns inform the pair (narrower, slower)",
            key="tree_margins",
            persist_state="session",
        )
    for caveat in chosen.caveats:
        st.markdown(f":material/warning: {plain(caveat)}", width=680)
    analysis = analysis_of_tree_table(chosen, release.schema)
    name = "_".join(chosen.columns)
    answers.show(
        f"{request_id}_{name}_{margins}",
        (analysis,),
        Settings(),
        simulated=release.provenance.simulated,
    )
    if found.refusals:
        with st.expander("Pairs without a posterior, and why"):
            for pair, reason in found.refusals:
                st.markdown(f"**{plain(' — '.join(pair))}**: {plain(reason)}")
