"""Before a covariance release: columns, method, price, means, and what it will buy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import streamlit as st

from core.errors import JustitiaError
from core.pace.release import METHODS
from core.promise import protects
from core.schema import Kind
from pages.shared import charts, covariance_charts, money
from pages.shared.covariance_draft import (
    METHOD_HELP,
    METHOD_WORDS,
    Draft,
    change,
    numeric,
    outlook,
    value_words,
)
from pages.shared.network import label, plain
from pages.shared.project import Project
from pages.shared.widgets import phone, theme

#: More columns than this are chosen by what is left out, and typed in a grid.
MANY = 24
ALL, BUT, ONLY = "all", "all but", "only"
PRIVATE, PUBLIC = "measured privately", "public, typed here"
MEANS_HELP = (
    "Covariances are taken about the columns' means. Measured privately, the means cost 15 % of "
    "the price. Public ones cost nothing, but have to come from elsewhere, never from this table."
)
ERROR_HELP = (
    "Distance between the released matrix and the true one, over the size of the true one: "
    "0.1 is a good matrix, and 1 is as far off as a matrix of zeros."
)


def settings(project: Project, draft: Draft, left: Fraction) -> None:
    """Everything that is chosen before the release."""
    _columns(project, draft)
    _price(project, draft, left)
    _means(project, draft)
    with st.expander(
        f"Method: {METHOD_WORDS[draft.method]}", icon=":material/function:", key="cov_methods"
    ):
        st.radio(
            "Method",
            METHODS,
            index=METHODS.index(draft.method),
            format_func=lambda name: METHOD_WORDS[name],
            captions=[METHOD_HELP[name] for name in METHODS],
            key="cov_method",
            on_change=_take,
            args=(project, "method", "cov_method"),
            label_visibility="collapsed",
        )


def _take(project: Project, field: str, key: str) -> None:
    change(project, **{field: st.session_state[key]})


# -- columns ---------------------------------------------------------------------------------


def _columns(project: Project, draft: Draft) -> None:
    names = numeric(project)
    if len(names) <= MANY:
        st.session_state["cov_columns"] = list(draft.columns)
        st.pills(
            "Columns",
            names,
            selection_mode="multi",
            key="cov_columns",
            format_func=label,
            wrap=True,
            on_change=_only,
            args=(project, names, "cov_columns"),
            help="Columns that hold numbers or dates, with declared bounds.",
        )
        return
    how = st.segmented_control(
        "Columns",
        (ALL, BUT, ONLY),
        default=_how(draft, names),
        required=True,
        format_func=lambda word: {ALL: f"all {len(names)}", BUT: "all but …", ONLY: "only …"}[word],
        key="cov_how",
        on_change=_how_changed,
        args=(project, names),
        help="Columns that hold numbers or dates, with declared bounds.",
    )
    if how == BUT:
        st.multiselect(
            "Left out",
            names,
            default=[name for name in names if name not in set(draft.columns)],
            key="cov_left_out",
            placeholder="type part of a name",
            on_change=_all_but,
            args=(project, names),
        )
    elif how == ONLY:
        st.multiselect(
            "Columns of the matrix",
            names,
            default=list(draft.columns) if len(draft.columns) < len(names) else [],
            key="cov_only",
            placeholder="type part of a name",
            on_change=_only,
            args=(project, names, "cov_only"),
        )
    st.caption(f"{len(draft.columns)} of {len(names)} columns.")


def _how(draft: Draft, names: Sequence[str]) -> str:
    missing = len(names) - len(draft.columns)
    if not missing:
        return ALL
    return BUT if missing < len(draft.columns) else ONLY


def _how_changed(project: Project, names: tuple[str, ...]) -> None:
    if st.session_state["cov_how"] == ALL:
        change(project, columns=names)
    elif st.session_state["cov_how"] == ONLY:
        change(project, columns=())


def _only(project: Project, names: tuple[str, ...], key: str) -> None:
    chosen = set(st.session_state[key])
    change(project, columns=tuple(name for name in names if name in chosen))


def _all_but(project: Project, names: tuple[str, ...]) -> None:
    gone = set(st.session_state["cov_left_out"])
    change(project, columns=tuple(name for name in names if name not in gone))


# -- price -----------------------------------------------------------------------------------


def _price(project: Project, draft: Draft, left: Fraction) -> None:
    population = project.population
    assert population is not None

    def set_rho() -> None:
        change(project, rho=money.typed(st.session_state["cov_rho"], left))

    def type_rho() -> None:
        text = st.session_state["cov_rho_text"].strip()
        if not text:
            return
        try:
            change(project, rho=money.typed(text, left))
        except JustitiaError as error:
            project.problem = str(error)
            return
        st.session_state["cov_rho_text"] = ""

    st.session_state["cov_rho"] = str(draft.rho)
    st.select_slider(
        "ρ of this release",
        money.steps(left, draft.rho),
        key="cov_rho",
        format_func=money.words,
        on_change=set_rho,
        help="How much the matrix may depend on any one person. More ρ, less noise.",
    )
    st.markdown(
        f"**ρ = {money.format_rho(draft.rho)}**, shown as "
        f"ε = {money.epsilon(draft.rho, population.delta):.2f} at δ = {population.delta:.0e}"
    )
    st.text_input(
        "Or type ρ exactly",
        key="cov_rho_text",
        placeholder="such as 0.25 or 1/3",
        on_change=type_rho,
    )


# -- means -----------------------------------------------------------------------------------


def _means(project: Project, draft: Draft) -> None:
    st.segmented_control(
        "Means of the columns",
        (PRIVATE, PUBLIC),
        default=PUBLIC if draft.public else PRIVATE,
        required=True,
        key="cov_means",
        on_change=_means_changed,
        args=(project,),
        help=MEANS_HELP,
    )
    title = "Public means and half-widths" if draft.public else "Public half-widths (optional)"
    with st.expander(title, icon=":material/straighten:", expanded=draft.public):
        st.caption(
            "A half-width is how far values usually lie from their mean, known from elsewhere: "
            "three standard deviations, say. Values beyond are clipped, and all noise shrinks "
            "with it. Empty: half of the declared range."
        )
        if len(draft.columns) <= MANY:
            for index, name in enumerate(draft.columns):
                _line(project, draft, name, first=index == 0)
        else:
            _grid(project, draft)


def _means_changed(project: Project) -> None:
    change(project, public=st.session_state["cov_means"] == PUBLIC)


def _line(project: Project, draft: Draft, name: str, *, first: bool) -> None:
    assert project.schema is not None
    column = project.schema[name]
    low, high = column.bounds
    fields = ["widths"] if not draft.public else ["means", "widths"]
    places = st.columns([2, *(1.4 for _ in fields)], vertical_alignment="center")
    places[0].markdown(
        f"**{plain(name)}** :gray[{plain(value_words(column, low))} to "
        f"{plain(value_words(column, high))}]"
    )
    days = " (days)" if column.kind is Kind.DATE else ""
    examples = {
        "means": "public mean",
        "widths": f"{(high - low) / 2:.6g}{days}",
    }
    titles = {"means": "Public mean of", "widths": "Half-width of"}
    for place, which in zip(places[1:], fields, strict=True):
        if first and not phone():
            place.caption({"means": "public mean", "widths": "half-width"}[which])
        place.text_input(
            f"{titles[which]} {label(name)}",
            value=getattr(draft, which).get(name, ""),
            placeholder=examples[which],
            key=f"cov_{which}_{project.generation}_{name}",
            label_visibility="collapsed",
            on_change=_typed,
            args=(project, which, name),
        )


def _typed(project: Project, which: str, name: str) -> None:
    text = st.session_state[f"cov_{which}_{project.generation}_{name}"] or ""
    known = dict(getattr(project.covariance_draft, which))
    change(project, **{which: {**known, name: text}})


def _grid(project: Project, draft: Draft) -> None:
    import pandas as pd

    assert project.schema is not None
    key = f"cov_grid_{project.generation}_{len(draft.columns)}_{draft.public}"
    base = f"{key}_base"
    if key not in st.session_state or base not in st.session_state:
        # The grid starts from here; its edits are never fed back.
        st.session_state[base] = (draft.columns, dict(draft.means), dict(draft.widths))
    names, means, widths = st.session_state[base]
    if names != draft.columns:
        del st.session_state[base]
        st.session_state.pop(key, None)
        st.rerun()
    schema = project.schema
    words = [tuple(value_words(schema[n], end) for end in schema[n].bounds) for n in names]
    frame = pd.DataFrame(
        {
            "column": names,
            "lowest": [low for low, _ in words],
            "highest": [high for _, high in words],
            "means": [means.get(name, "") for name in names],
            "widths": [widths.get(name, "") for name in names],
        },
        dtype="str",
    )
    if not draft.public:
        frame = frame.drop(columns="means")
    st.data_editor(
        frame,
        key=key,
        hide_index=True,
        disabled=["column", "lowest", "highest"],
        height=320,
        alt="Public means and half-widths of the columns",
        on_change=_grid_edited,
        args=(project, key, names),
        column_config={
            "column": st.column_config.TextColumn("Column", pinned=True),
            "lowest": st.column_config.TextColumn("Lowest", width="small"),
            "highest": st.column_config.TextColumn("Highest", width="small"),
            "means": st.column_config.TextColumn("Public mean", width="small"),
            "widths": st.column_config.TextColumn("Half-width", width="small"),
        },
    )


def _grid_edited(project: Project, key: str, names: Sequence[str]) -> None:
    edits: dict[int, dict[str, Any]] = st.session_state[key]["edited_rows"]
    _, *starts = st.session_state[f"{key}_base"]
    texts = dict(zip(("means", "widths"), map(dict, starts), strict=True))
    for index, changes in edits.items():
        for which in texts.keys() & changes.keys():
            texts[which][names[int(index)]] = str(changes[which] or "")
    change(project, **texts)


# -- what it buys ----------------------------------------------------------------------------


def effect(project: Project, draft: Draft, left: Fraction) -> None:
    """Predicted errors and what the price means, from public facts only."""
    population = project.population
    assert population is not None
    st.markdown("**What it buys**", help=ERROR_HELP)
    found = outlook(population, draft, draft.rho)
    if not protects(draft.rho):
        st.badge("no meaningful protection", icon=":material/warning:", color="red")
    if found is None:
        st.info(
            "Say on Data how many rows you expect, and the error is predicted here. A guess from "
            "public knowledge is enough."
            if draft.columns
            else "Choose columns, and the error is predicted here.",
            icon=":material/info:",
        )
    else:
        _prediction(project, draft, left)
    st.markdown("**What ρ means for one person**")
    baseline = st.select_slider(
        "How often would somebody guess right about a person anyway?",
        [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
        value=0.01,
        format_func=lambda share: f"{share * 100:g} in 100",
        key="baseline",
        persist_state="session",
    )
    st.markdown(money.guess(draft.rho, baseline))
    spent = population.cap - left
    if spent > 0:
        st.markdown(f"With all that was spent before: {money.guess(spent + draft.rho, baseline)}")


def _prediction(project: Project, draft: Draft, left: Fraction) -> None:
    population = project.population
    assert population is not None
    found = outlook(population, draft, draft.rho)
    assert found is not None
    if found.mostly_noise:
        st.badge("mostly noise", icon=":material/grain:", color="orange")
    for words in found.sentences:
        st.markdown(words)
    amounts = [money.as_rho(text) for text in money.steps(left, draft.rho)]
    curve = [outlook(population, draft, rho) for rho in amounts]
    st.plotly_chart(
        covariance_charts.errors(
            [float(rho) for rho in amounts],
            [one for one in curve if one is not None],
            float(draft.rho),
            theme(),
        ),
        key="cov_errors",
        theme=None,
        config=charts.CHART,
        alt="Predicted relative error of the covariance matrix for every budget: adaptive loop "
        f"{found.pace_error:.2g}, plain noise {found.plain_error:.2g}, no correlations "
        f"{found.no_correlations_error:.2g} at the chosen one",
    )
    st.caption(
        "Predicted from noise scales, the number of columns and the number of rows that you "
        "typed. The table is not looked at."
    )
