"""Posterior: intervals that carry the noise, for one's own data or for published numbers."""

from __future__ import annotations

import streamlit as st

from pages.shared import own_answers, published_answers, teaching_panel, widgets
from pages.shared import project as state

project = state.current()
widgets.head(
    "Posterior",
    "Means, shares, tables and regressions, with intervals that carry the privacy noise as well as "
    "the sampling. Ask your own data for a price, or bring numbers that somebody published with "
    "noise: those are free.",
    project,
)
DOORS = {
    "own": "My data",
    "published": "Published statistics",
    "learn": "Why it matters (demo)",
}
door = st.segmented_control(
    "Where the numbers come from",
    list(DOORS),
    default="own",
    required=True,
    format_func=DOORS.__getitem__,
    key="posterior_door",
    persist_state="session",
    help="My data: costs budget. Published statistics: free, no table is needed. Why it matters: "
    "watch naive intervals fail on made-up people.",
)
{
    "own": own_answers.draw,
    "published": published_answers.draw,
    "learn": teaching_panel.draw,
}[door or "own"](project)
