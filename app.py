"""Justitia's workbench: ``streamlit run app.py``."""

from __future__ import annotations

import streamlit as st

from pages.shared import project as state
from pages.shared.widgets import sidebar

st.set_page_config(
    page_title="Justitia",
    page_icon="pages/shared/icon.png",
    layout="wide",
    initial_sidebar_state="auto",
)

STEPS = (
    ("start", "Start", ":material/home:", "Demo data, a table of your own, or a saved project."),
    ("data", "Data", ":material/table_chart:", "What each column may hold, and whose data it is."),
    ("roles", "Roles", ":material/balance:", "Who is protected from whom, and what that forbids."),
    ("budget", "Budget", ":material/tune:", "What the release may cost, and what it will buy."),
    ("tree", "Tree", ":material/account_tree:", "Release the tree and watch it grow."),
    ("synthetic", "Synthetic", ":material/dataset:", "Synthetic rows and the certificate, free."),
    (
        "posterior",
        "Posterior",
        ":material/show_chart:",
        "Intervals that carry the privacy noise, for your data or published numbers.",
    ),
    (
        "covariance",
        "Covariance",
        ":material/grid_on:",
        "A private covariance matrix, round by round.",
    ),
    ("release", "Release", ":material/inventory_2:", "Sign and download the bundle."),
    ("ledger", "Ledger", ":material/receipt_long:", "Every spend of this population."),
)

page = st.navigation(
    [
        st.Page(
            f"pages/steps/{name}.py",
            title=title,
            icon=icon,
            help=words,
            default=name == "start",
        )
        for name, title, icon, words in STEPS
    ]
)
project = state.current()
with st.sidebar:
    sidebar(project)
page.run()
