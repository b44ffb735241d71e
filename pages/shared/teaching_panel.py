"""Teaching: redraw made-up people and noise, and watch naive and private coverage part."""

from __future__ import annotations

from fractions import Fraction

import streamlit as st

from core import demo
from core.teaching import coverage, numeric_columns
from pages.shared import posterior_charts, widgets
from pages.shared.jobs import desk
from pages.shared.money import as_rho, format_rho
from pages.shared.network import label
from pages.shared.project import Project

REPETITIONS = 200
ROWS = (100, 200, 500, 1000, 2000, 5000)
PRICES = ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.5", "2")


def draw(project: Project) -> None:
    """The whole panel; made-up people, seeded noise, nothing charged."""
    st.markdown(
        "Draw a table of made-up people, release its mean with noise, and make two 95 % "
        "intervals: a naive one that forgets the noise, and a private one. Do it 200 times. **19 "
        "of 20 intervals should hold the truth.**",
        width=widgets.TEXT,
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        world = st.selectbox("Made-up world", demo.names(), key="teach_world")
        column = st.selectbox(
            "Mean of", numeric_columns(world), format_func=label, key=f"teach_column_{world}"
        )
        rows = st.select_slider("People a table", ROWS, value=500, key="teach_rows")
        price = st.select_slider(
            "ρ of each release",
            PRICES,
            value="0.01",
            key="teach_rho",
            help="Small ρ, much noise.",
        )
        seed = int(st.number_input("Seed", 0, 10_000, value=1, key="teach_seed"))
    rho: Fraction = as_rho(price)
    key = f"teach-{world}-{column}-{rows}-{price}-{seed}"
    job = desk().find(key)

    def start() -> None:
        desk().submit(
            key,
            "Redrawing",
            lambda progress: coverage(
                world,
                column,
                rows=rows,
                rho=rho,
                repetitions=REPETITIONS,
                seed=seed,
                progress=progress,
            ),
        )

    if job is None or not (job.active or job.result):
        st.button(
            widgets.main(f"Redraw {REPETITIONS} times", "replay"),
            key="teach",
            type="primary",
            on_click=start,
        )
        widgets.job_ended(job)
        return
    if job.active:
        widgets.job_panel(key, cancel="Nothing is spent either way.")
        st.stop()
    found = job.result
    left, right = st.columns(2)
    left.metric(
        "Private intervals that hold the truth", f"{found.private:.0%}", help="95 % is the aim."
    )
    right.metric(
        "Naive intervals that hold the truth",
        f"{found.naive:.0%}",
        help="Where the noise makes a variance negative there is no naive interval: a miss.",
    )
    st.plotly_chart(
        posterior_charts.coverage_figure(found, widgets.theme()),
        key="coverage",
        theme=None,
        config={"displayModeBar": False},
        alt=f"{REPETITIONS} intervals each: private ones hold the truth in {found.private:.0%}, "
        f"naive ones in {found.naive:.0%}",
    )
    st.caption(
        "Left: intervals that carry the noise. Right: intervals that ignore it. One line a "
        "repetition, thick where it misses the dotted truth. Made-up people, seeded noise: "
        f"**simulated, not private**. {rows:,} people, ρ = {format_rho(rho)}."
    )
