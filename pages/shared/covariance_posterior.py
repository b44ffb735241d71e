"""What the measured entries of a covariance release say by themselves: posteriors, for nothing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import streamlit as st

from core.pace.estimate import Estimate
from core.pace.release import CovarianceRelease
from core.pumba.from_covariance import MOST_COLUMNS, MeasuredAnswer, MeasuredEntries
from core.pumba.settings import Settings
from pages.shared import answers, widgets
from pages.shared.network import label, plain

REGRESSION, CORRELATION = "regression", "correlation"
#: Predictors that are chosen at first.
AT_FIRST = 3


@lru_cache(maxsize=8)
def entries_of(release: CovarianceRelease) -> MeasuredEntries:
    """The measured entries of a release, sorted out once."""
    return MeasuredEntries(release)


def draw(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    """Choose columns; the answer carries the noise of their entries, or says why there is none.

    Parameters
    ----------
    fitted
        The matrix, which suggests predictors.
    key
        Says which release it is.
    """
    st.header("Ask the measured entries", anchor=False)
    st.markdown(
        "Where every square and product of some columns was measured, they answer questions by "
        "themselves: nothing is filled in, and the intervals carry noise and sampling. **This "
        "costs nothing further.**",
        width=widgets.TEXT,
    )
    if not st.toggle("Show slopes and correlations from measured entries", key=f"{key}_ask"):
        return
    entries = entries_of(release)
    if not entries.columns:
        st.info(plain(entries.refusal or ""), title="No posterior", icon=":material/info:")
        return
    kind = st.segmented_control(
        "Question",
        [REGRESSION, CORRELATION],
        default=REGRESSION,
        required=True,
        key=f"{key}_ask_kind",
    )
    chosen = _predictors(entries, fitted, key) if kind == REGRESSION else _pair(entries, key)
    if chosen is None:
        return
    *others, last = chosen
    reason = entries.refusal_of(chosen)
    if reason is not None:
        st.info(plain(reason), title="No posterior for these columns", icon=":material/info:")
        return
    found = entries.regression(last, others) if kind == REGRESSION else entries.correlations(chosen)
    _answer(release, found, f"{key}_{kind}_{'_'.join(chosen)}")


def _predictors(entries: MeasuredEntries, fitted: Estimate, key: str) -> tuple[str, ...] | None:
    """Predictors, then the outcome."""
    columns = entries.columns
    outcome = st.selectbox(
        "Outcome",
        columns,
        index=len(columns) - 1,
        format_func=label,
        key=f"{key}_ask_outcome",
        help="The column that is explained by others.",
    )
    partners = entries.partners(outcome)
    chosen = st.multiselect(
        "Predictors",
        partners,
        default=_suggested(entries, fitted, outcome, partners),
        max_selections=MOST_COLUMNS - 1,
        format_func=label,
        key=f"{key}_ask_predictors_{outcome}",
        help="Columns whose product with the outcome was measured.",
    )
    if not chosen:
        st.info("Choose at least one predictor.", icon=":material/info:")
        return None
    return (*chosen, outcome)


def _suggested(
    entries: MeasuredEntries, fitted: Estimate, outcome: str, partners: tuple[str, ...]
) -> list[str]:
    """The partners that the matrix correlates most with the outcome, as long as they fit."""
    place = {name: index for index, name in enumerate(fitted.columns)}
    strength = np.abs(fitted.correlation[place[outcome]])
    chosen: list[str] = []
    for name in sorted(partners, key=lambda other: -strength[place[other]]):
        if len(chosen) < AT_FIRST and entries.refusal_of((*chosen, name, outcome)) is None:
            chosen.append(name)
    return [name for name in partners if name in chosen]


def _pair(entries: MeasuredEntries, key: str) -> tuple[str, ...]:
    """Two columns."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = st.selectbox(
            "Column", entries.columns, format_func=label, key=f"{key}_ask_first", width=280
        )
        second = st.selectbox(
            "with",
            entries.partners(first),
            format_func=label,
            key=f"{key}_ask_second_{first}",
            width=280,
        )
    return (first, second)


def _answer(release: CovarianceRelease, found: MeasuredAnswer, key: str) -> None:
    for caveat in found.caveats:
        st.markdown(f":material/warning: {plain(caveat)}", width=widgets.TEXT)
    answers.show(key, (found.analysis,), Settings(), simulated=release.provenance.simulated)
