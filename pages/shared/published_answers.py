"""The door to numbers that somebody published with noise: paste or upload, check, infer; free."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.errors import JustitiaError
from core.pumba.published import (
    MAXIMUM_BYTES,
    Published,
    published_from_rows,
    read_published,
)
from core.pumba.settings import Settings
from core.statistics import Family
from pages.shared import answers, uploads
from pages.shared.network import label, plain
from pages.shared.project import Project

EXAMPLE = """analysis,kind,statistic,column,category,value,family,scale
tenure,table,count,tenure,owner,1463,discrete_laplace,10
tenure,table,count,tenure,tenant,645,discrete_laplace,10
tenure,table,count,tenure,other,242,discrete_laplace,10
"""
GUIDE = Path(__file__).parents[2] / "docs" / "published-statistics.md"
#: Larger tables are shown as they are read, without an editor.
EDITED_ROWS = 500


def draw(project: Project) -> None:
    """The whole door; needs no project."""
    st.markdown(
        "A census table, an OpenDP, Tumult or PipelineDP output: one line a statistic, with the "
        "family and scale of its noise. **It costs nothing and reads no table.**"
    )
    content, name = _content()
    if not content:
        return
    try:
        uploads.check_length(len(content), MAXIMUM_BYTES)
        published = read_published(content, name=name)
    except JustitiaError as error:
        st.error(plain(str(error)), title="These statistics cannot be used")
        return
    edited = _edited(published)
    if edited is None:
        return
    analyses = edited.analyses
    place = 0
    if len(analyses) > 1:
        place = st.selectbox(
            "Analysis",
            range(len(analyses)),
            format_func=lambda index: label(analyses[index].title),
            key="published_analysis",
        )
    st.header(plain(analyses[place].title), anchor=False)
    text = repr(edited.rows)
    key = f"published_{hashlib.sha256(text.encode()).hexdigest()[:16]}_{place}"
    answers.show(key, (analyses[place],), Settings())


def _content() -> tuple[bytes, str]:
    """What was pasted or uploaded; an upload wins."""

    def example() -> None:
        st.session_state["published_text"] = EXAMPLE

    left, right = st.columns([3, 2], gap="large")
    with left:
        st.text_area(
            "Paste statistics (CSV or JSON)",
            key="published_text",
            height=180,
            placeholder=EXAMPLE,
            persist_state="session",
        )
    with right:
        uploads.uploader(
            "Or upload a file",
            ["csv", "json", "txt"],
            "published_file",
            bytes_at_most=MAXIMUM_BYTES,
        )
        st.button("Fill in an example", key="published_example", on_click=example)
        with st.popover("What the file looks like", icon=":material/help:", width="stretch"):
            st.markdown(GUIDE.read_text("utf-8").partition("## The file")[2].partition("## ")[0])
    file = uploads.held("published_file")
    if file is not None:
        return file.getvalue(), file.name
    return str(st.session_state.get("published_text", "")).strip().encode(), "the pasted text"


def _edited(published: Published) -> Published | None:
    """The rows with family and scale open to correction."""
    if len(published.rows) > EDITED_ROWS:
        return published
    rows = [_plain(row) for row in published.rows]
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    for column in ("scale", "sd"):
        if column not in frame:
            frame[column] = None
    frame[["scale", "sd"]] = frame[["scale", "sd"]].astype(float)
    with st.expander(f"{len(rows)} statistics: check families and scales", icon=":material/table:"):
        changed = st.data_editor(
            frame,
            key=f"published_rows_{hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}",
            hide_index=True,
            disabled=[name for name in frame if name not in {"value", "family", "scale", "sd"}],
            column_config={
                "family": st.column_config.SelectboxColumn(
                    "family", options=[*(family.value for family in Family), "exact"], required=True
                ),
                "scale": st.column_config.NumberColumn(
                    "scale", help="Laplace's b, or the Gaussian's sigma, in units of the value."
                ),
                "sd": st.column_config.NumberColumn(
                    "sd", help="Instead of the scale: the noise's standard deviation."
                ),
            },
        )
    try:
        return published_from_rows(changed.to_dict("records"), name="the statistics")
    except JustitiaError as error:
        st.error(plain(str(error)), title="These statistics cannot be used")
        return None


def _plain(row: Any) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in row.__dataclass_fields__ if name != "where"}
    return {name: value for name, value in found.items() if value != ""}
