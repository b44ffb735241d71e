"""Justitia's workbench: ``streamlit run app.py``."""

from __future__ import annotations

import streamlit as st

from pages.shared import project as state
from pages.shared import warming
from pages.shared.menu import STEPS
from pages.shared.widgets import sidebar

st.set_page_config(
    page_title="Justitia",
    page_icon="pages/shared/icon.png",
    layout="wide",
    initial_sidebar_state="auto",
)

warming.begin()

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
