"""A slider and a play button over numbered steps; nothing plays by itself."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

SECONDS = 0.9


def player(
    key: str, last: int, label: str, picture: Callable[[int], None], *, stride: int = 1
) -> None:
    """Show a step that the person chooses, the last one at first, or one after the other.

    Parameters
    ----------
    key
        Start of the widgets' keys.
    last
        Number of the last step; 0 is before the first.
    label
        What the slider is called.
    picture
        Draws one step.
    stride
        Steps from one picture to the next while it plays.
    """
    slider, playing = f"{key}_step", f"{key}_playing"
    st.session_state.setdefault(slider, last)
    every = SECONDS if st.session_state.get(playing) else None

    @st.fragment(run_every=every)
    def draw() -> None:
        if st.session_state.get(playing) and every:
            if st.session_state[slider] >= last:
                st.session_state[playing] = False
                st.rerun()
            st.session_state[slider] = min(st.session_state[slider] + stride, last)
        _controls(key, last, label)
        picture(st.session_state[slider])

    draw()


def _toggle(slider: str, playing: str, last: int) -> None:
    on = not st.session_state.get(playing, False)
    st.session_state[playing] = on
    if on and st.session_state[slider] >= last:
        st.session_state[slider] = 0
    st.rerun()  # the whole page: only that gives the fragment its clock, or takes it away


def _stop(playing: str) -> None:
    if st.session_state.get(playing):
        st.session_state[playing] = False
        st.rerun()


def _controls(key: str, last: int, label: str) -> None:
    slider, playing = f"{key}_step", f"{key}_playing"
    if not last:
        return
    button, bar = st.columns([1, 5], vertical_alignment="bottom")
    on = bool(st.session_state.get(playing))
    button.button(
        "Pause" if on else "Play",
        key=f"{key}_play",
        icon=":material/pause:" if on else ":material/play_arrow:",
        on_click=_toggle,
        args=(slider, playing, last),
        width="stretch",
    )
    bar.slider(label, 0, last, key=slider, on_change=_stop, args=(playing,), format="%d")
