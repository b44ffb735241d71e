"""Learn: what the rule does and what the noise does, on made-up people; costs nothing."""

from __future__ import annotations

import streamlit as st

from pages.shared import learn_controls, learn_noise, learn_proxies, learn_worlds, widgets

st.title("Learn")
st.markdown(
    "What does the rule do, and what does the noise do? See both on made-up people, whose truth "
    "is known because we wrote it. **Nobody is in these tables, and nothing here costs budget.**",
    width=widgets.TEXT,
)
st.badge("Simulated, not private: for learning", icon=":material/science:", color="orange")
STEPS = {
    "worlds": ("Three worlds", learn_worlds.draw),
    "noise": ("Noise", learn_noise.draw),
    "proxies": ("Proxies", learn_proxies.draw),
}
with st.container(horizontal=True, vertical_alignment="bottom"):
    name = learn_controls.world()
    step = st.segmented_control(
        "Step of the lesson",
        list(STEPS),
        default="worlds",
        required=True,
        format_func=lambda key: STEPS[key][0],
        key="learn_step",
        bind="query-params",
    )
choice = learn_controls.choose(name)
STEPS[step or "worlds"][1](choice)
