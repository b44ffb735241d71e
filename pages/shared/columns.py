"""The declaration editor: a line of fields a column, or one grid where there are many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.schema import DATE_UNITS, EXCLUDED_KINDS, LABELLED_KINDS, Kind
from pages.shared.declare import FIELDS, KIND_WORDS, OWN_CELL, column_of, problem
from pages.shared.network import label, plain
from pages.shared.project import Project
from pages.shared.widgets import phone

#: More columns than this are edited in a grid.
LINES = 24
#: Shares of a line: name, kind, domain, bins, missing rule.
WIDTHS = (2.8, 2.4, 3.9, 1.6, 1.6)
KINDS = tuple(str(kind) for kind in KIND_WORDS)


def edit_columns(project: Project) -> None:
    """Draw the editor; every change goes into the project's draft at once."""
    if len(project.draft) > LINES:
        _grid(project)
    else:
        if not phone():
            _headings()
        for index in range(len(project.draft)):
            _line(project, index)


def _headings() -> None:
    """What the fields of a line are, above the first one (on a telephone they stack)."""
    words = ("column", "holds", "categories, or lowest and highest", "bins", "missing is")
    for place, word in zip(st.columns(WIDTHS), words, strict=True):
        place.caption(word, help=HELP.get(word))


def _key(project: Project, index: int, field: str) -> str:
    return f"column_{project.generation}_{index}_{field}"


def _set(project: Project, index: int, field: str) -> None:
    value = st.session_state[_key(project, index, field)]
    rows = list(project.draft)
    rows[index] = {**rows[index], field: "" if value is None else value}
    project.change(draft=tuple(rows))


def _line(project: Project, index: int) -> None:
    row = project.draft[index]
    with st.container(key=f"line_{index}", gap="xsmall"):
        name, kind, domain, bins, missing = st.columns(WIDTHS, vertical_alignment="center")
        flag = " :orange-badge[suggested from values]" if row["flagged"] else ""
        name.markdown(f"**{plain(row['name'])}**{flag}")
        with kind:
            _select(project, index, "kind", KINDS, f"What {label(row['name'])} holds")
        chosen = row["kind"]
        if chosen in LABELLED_KINDS:
            with domain:
                _text(project, index, "categories", "low | middle | high")
        elif chosen and chosen not in EXCLUDED_KINDS:
            lower, upper = domain.columns(2)
            example = ("2000-01-01", "2030-12-31") if chosen == Kind.DATE else ("0", "100")
            with lower:
                _text(project, index, "lower", f"lowest, such as {example[0]}")
            with upper:
                _text(project, index, "upper", f"highest, such as {example[1]}")
            with bins:
                if chosen == Kind.DATE and "|" not in row["bins"]:
                    _select(project, index, "bins", DATE_UNITS, f"Bins of {label(row['name'])}")
                else:
                    _text(project, index, "bins", "bins")
        if chosen and chosen not in EXCLUDED_KINDS:
            with missing:
                _text(project, index, "missing", OWN_CELL)
        st.caption(_verdict(row))  # always one line, so that nothing moves under the pointer


def _verdict(row: Mapping[str, Any]) -> str:
    """What a line amounts to: cells, or what is wrong with it."""
    if not row["kind"]:
        return "Not declared yet."
    wrong = problem(row)
    if wrong:
        return f":material/error: :orange[{plain(wrong)}]"
    column = column_of(row)
    return f"{column.size} cells" if column.is_modelled else "Left out of every release."


def _select(project: Project, index: int, field: str, options: tuple[str, ...], label: str) -> None:
    value = project.draft[index][field]
    st.selectbox(
        label,
        options,
        index=options.index(value) if value in options else None,
        format_func=lambda kind: KIND_WORDS.get(kind, kind),
        placeholder="choose…",
        key=_key(project, index, field),
        label_visibility="collapsed",
        on_change=_set,
        args=(project, index, field),
    )


LABELS = {
    "categories": "Categories of",
    "lower": "Lowest value of",
    "upper": "Highest value of",
    "bins": "Bins of",
    "missing": "Missing rule of",
}
HELP = {
    "bins": "Where numbers are cut: a count, or the edges between bars. Empty: a usual number.",
    "missing is": "“own cell” keeps them apart; anything else is the value that they count as.",
}


def _text(project: Project, index: int, field: str, placeholder: str) -> None:
    row = project.draft[index]
    st.text_input(
        f"{LABELS[field]} {label(row['name'])}",
        value=str(row[field]),
        placeholder=placeholder,
        key=_key(project, index, field),
        label_visibility="collapsed",
        on_change=_set,
        args=(project, index, field),
    )


# -- many columns ----------------------------------------------------------------------------


def _grid(project: Project) -> None:
    import pandas as pd

    key = f"columns_{project.generation}"
    if key not in st.session_state or project.base is None:
        project.base = project.draft  # the grid starts from here; its edits are never fed back
    frame = pd.DataFrame(
        [
            {"name": row["name"], **{field: str(row[field]) for field in FIELDS}}
            for row in project.base
        ],
        dtype="str",
    )
    frame["flagged"] = [bool(row["flagged"]) for row in project.base]
    st.data_editor(
        frame,
        key=key,
        hide_index=True,
        disabled=["name", "flagged"],
        height=560,
        alt="Declarations of all columns",
        on_change=_grid_edited,
        args=(project, key),
        column_config={
            "name": st.column_config.TextColumn("Column", pinned=True),
            "kind": st.column_config.SelectboxColumn(
                "Holds", options=[kind for kind in KINDS if kind], width="small"
            ),
            "categories": st.column_config.TextColumn("Categories, between |", width="large"),
            "lower": st.column_config.TextColumn("Lowest", width="small"),
            "upper": st.column_config.TextColumn("Highest", width="small"),
            "bins": st.column_config.TextColumn("Bins", width="small"),
            "missing": st.column_config.TextColumn("Missing", width="small"),
            "flagged": st.column_config.CheckboxColumn("From values", width="small"),
        },
    )
    wrong = [(row["name"], problem(row)) for row in project.draft if row["kind"]]
    wrong = [(name, words) for name, words in wrong if words]
    for _, words in wrong[:12]:
        st.markdown(f":material/error: :orange[{plain(words or '')}]")
    if len(wrong) > 12:
        st.caption(f"and {len(wrong) - 12} more")


def _grid_edited(project: Project, key: str) -> None:
    edits: dict[int, dict[str, Any]] = st.session_state[key]["edited_rows"]
    rows = [dict(row) for row in project.base or ()]
    for index, changes in edits.items():
        known = {field: value for field, value in changes.items() if field in FIELDS}
        rows[int(index)].update({f: "" if v is None else str(v) for f, v in known.items()})
    project.change(draft=tuple(rows))
