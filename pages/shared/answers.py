"""A posterior on the screen: settings that are free, curves, numbers, warnings, downloads."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.bundle import file_name
from core.errors import JustitiaError
from core.plan_parts import settings_from, settings_to
from core.pumba import exports
from core.pumba.analyses import Analysis, RegressionAnalysis, TableAnalysis
from core.pumba.posterior import Posterior, StageOne, finish, stage_one
from core.pumba.settings import Settings
from core.pumba.warnings import Severity
from pages.shared import posterior_charts, waiting, widgets
from pages.shared.jobs import JobState, desk
from pages.shared.network import label, plain

#: Draws of stage 1 that are kept; they follow from released numbers, which are public.
KEPT = 48
#: Seconds that a page waits for a quick job before it shows the job's progress.
PATIENCE = 1.5
ICONS = {
    Severity.NOTE: ":material/info:",
    Severity.CAUTION: ":material/warning:",
    Severity.SERIOUS: ":material/error:",
}
TYPES = {"level": 0.01}
_stages: dict[str, StageOne] = {}
_lock = threading.Lock()


def show(
    key: str, analyses: Sequence[Analysis], settings: Settings, *, simulated: bool = False
) -> Settings:
    """Draw the answers to some analyses; returns the settings as the reader left them.

    Parameters
    ----------
    key
        Says which released numbers the analyses are made of: the same key, the same draws.
    settings
        Where the controls start.
    """
    chosen = _controls(key, analyses, settings)
    found = []
    for analysis in analyses:
        one = _posterior(key, analysis, chosen)
        if one is not None:
            found.append(one)
    if not found:
        return chosen
    shown = found[0]
    if len(found) > 1:
        place = st.selectbox(
            "Answer",
            range(len(found)),
            format_func=lambda index: label(found[index].title),
            key=f"answer_{key}",
        )
        shown = found[place or 0]
    _answer(key, shown)
    _downloads(key, found, simulated)
    return chosen


def _posterior(key: str, analysis: Analysis, settings: Settings) -> Posterior | None:
    """Stage 1 from a job that is joined where it runs already, stage 2 at once."""
    text = json.dumps([key, analysis.title, settings.draws, settings.seed])
    identity = f"posterior-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    with _lock:
        stage = _stages.get(identity)
    if stage is None:
        # A visitor's own, so that nobody cancels somebody else's; one that ended without a result
        # stays so until its person begins it again.
        work = f"{identity}-{st.session_state.setdefault('visit', secrets.token_hex(8))}"
        job = desk().find(work) or desk().submit(
            work,
            "Drawing the posterior",
            lambda progress: stage_one(analysis, settings.draws, settings.seed, progress),
        )
        until = time.monotonic() + PATIENCE
        while job.active and time.monotonic() < until:
            time.sleep(0.02)
        if job.active:
            widgets.job_panel(work, cancel="Nothing is spent either way.")
            st.stop()
        if job.state is not JobState.DONE:
            st.markdown(f"**{plain(analysis.title)}**: no posterior.")
            waiting.begin_again(job, f"begin_{work}")
            return None
        stage = job.result
        with _lock:
            _stages[identity] = stage
            while len(_stages) > KEPT:
                del _stages[next(iter(_stages))]
        desk().forget(work)
    try:
        return finish(analysis, stage, settings)
    except JustitiaError as error:
        st.error(plain(str(error)), title="These settings do not fit")
        return None


# -- settings --------------------------------------------------------------------------------


def _controls(key: str, analyses: Sequence[Analysis], settings: Settings) -> Settings:
    """What may be changed for nothing; a wrong entry is said and leaves the old setting."""
    plain_settings: dict[str, Any] = settings_to(settings)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        plain_settings["level"] = st.slider(
            "Level of the intervals",
            0.5,
            0.99,
            value=settings.level,
            step=0.01,
            key=f"level_{key}",
            width=280,
            help="How often an interval made like this holds the true value: 0.95 is 19 times in "
            "20.",
        )
        plain_settings["estimand"] = st.segmented_control(
            "About whom",
            ["population", "sample"],
            default=settings.estimand,
            required=True,
            format_func={
                "population": "everybody like them",
                "sample": "just these rows",
            }.__getitem__,
            key=f"estimand_{key}",
            help="Everybody like them: what the rows were drawn from, so that sampling adds "
            "uncertainty. Just these rows: only the privacy noise does.",
        )
    with st.expander("More settings (free)", icon=":material/tune:"):
        _more(key, analyses, settings, plain_settings)
    try:
        return settings_from({k: v for k, v in plain_settings.items() if v is not None})
    except JustitiaError as error:
        st.error(plain(str(error)), title="These settings do not fit")
        return settings


def _more(
    key: str, analyses: Sequence[Analysis], settings: Settings, found: dict[str, Any]
) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        found["draws"] = int(
            st.number_input(
                "Draws", 100, 1_000_000, value=settings.draws, step=1000, key=f"draws_{key}"
            )
        )
        found["seed"] = int(
            st.number_input("Seed", 0, 2**31 - 1, value=settings.seed, key=f"seed_{key}")
        )
        found["design_effect"] = st.number_input(
            "Design effect",
            min_value=0.01,
            value=settings.design_effect,
            key=f"deff_{key}",
            help="By how much clustering or weights multiply the sampling variance; 1 is none.",
        )
        found["population_size"] = st.number_input(
            "Size of the whole population",
            min_value=1,
            value=settings.population_size,
            step=1,
            key=f"fpc_{key}",
            help="Leave empty unless the rows are a known part of a finite population.",
        )
    if any(isinstance(analysis, TableAnalysis) for analysis in analyses):
        found["alpha"] = st.number_input(
            "Prior count of each cell",
            min_value=0.01,
            value=settings.alpha,
            key=f"alpha_{key}",
            help="Dirichlet prior; 1 treats all proportions alike, and is exact where the number "
            "of rows is known.",
        )
    if any(isinstance(analysis, RegressionAnalysis) for analysis in analyses):
        found["vcov"] = st.segmented_control(
            "Sampling errors",
            ["classical", "hc"],
            default=settings.vcov,
            required=True,
            format_func={"classical": "classical", "hc": "robust"}.__getitem__,
            key=f"vcov_{key}",
            help="Robust errors hold under unequal spread; they need sums of degree 3 and 4.",
        )
    _region(key, settings, found)
    if not any(isinstance(analysis, TableAnalysis) for analysis in analyses):
        _prior(key, settings, found)


def _region(key: str, settings: Settings, found: dict[str, Any]) -> None:
    rope = settings.rope if isinstance(settings.rope, tuple) else (None, None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        low = st.number_input(
            "As good as nothing: from",
            value=rope[0],
            key=f"rope_low_{key}",
            help="Region of practical equivalence: the posterior probability that the value lies "
            "in it is given beside the interval.",
        )
        high = st.number_input("to", value=rope[1], key=f"rope_high_{key}")
    if low is not None and high is not None:
        found["rope"] = [low, high]


def _prior(key: str, settings: Settings, found: dict[str, Any]) -> None:
    known = next(iter(settings.priors.items()), None)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(
            "Prior on",
            value="" if known is None else known[0],
            key=f"prior_name_{key}",
            placeholder="no prior",
            help="Name of a parameter, as in the table below. What was known before, as a normal "
            "distribution in its own units; empty: nothing.",
        )
        mean = st.number_input(
            "with mean", value=None if known is None else known[1].mean, key=f"prior_mean_{key}"
        )
        sd = st.number_input(
            "and standard deviation",
            value=None if known is None else known[1].sd,
            min_value=0.0,
            key=f"prior_sd_{key}",
        )
    if name.strip() and mean is not None and sd:
        found["priors"] = {name.strip(): {"mean": mean, "sd": sd}}


# -- the answer ------------------------------------------------------------------------------


def _answer(key: str, found: Posterior) -> None:
    theme = widgets.theme()
    level = found.settings.level
    place = 0
    if len(found.summary) > 1:
        place = (
            st.selectbox(
                "Parameter",
                range(len(found.summary)),
                format_func=lambda index: label(found.summary[index].name),
                key=f"parameter_{key}_{found.title}",
            )
            or 0
        )
    summary = found.summary[place]
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.plotly_chart(
            posterior_charts.density_figure(found, place, theme),
            key=f"density_{key}",
            theme=None,
            config={"displayModeBar": False},
            alt=f"Posterior density of {summary.name}, {level:.0%} interval from "
            f"{summary.eti_low:.4g} to {summary.eti_high:.4g}, beside the naive one",
        )
    with right:
        st.metric(
            plain(summary.name),
            f"{summary.median:.4g}",
            help="Median of the posterior.",
        )
        st.markdown(
            f"**{level:.0%} interval: {summary.eti_low:.4g} to {summary.eti_high:.4g}**  \n"
            f"{_naive_words(summary, level)}"
        )
        if 0 < summary.probability_positive < 1:
            st.markdown(f"Above zero with probability {summary.probability_positive:.3g}.")
        if summary.rope_probability is not None:
            st.markdown(f"As good as nothing with probability {summary.rope_probability:.3g}.")
        if summary.privacy_share is not None:
            st.plotly_chart(
                posterior_charts.shares_figure(summary, theme),
                key=f"shares_{key}",
                theme=None,
                config={"displayModeBar": False},
                alt=f"Variance: {summary.privacy_share:.0%} privacy noise, "
                f"{summary.sampling_share or 0:.0%} sampling",
            )
            st.caption(
                f"Where the uncertainty comes from: **privacy noise {summary.privacy_share:.0%}** "
                f"· sampling {summary.sampling_share or 0:.0%} (shares of the variance)"
            )
    for warning in found.warnings:
        st.markdown(
            f"{ICONS[warning.severity]} {plain(warning.sentence)} {plain(warning.advice)}",
            width=widgets.TEXT,
        )
    for note in found.parameters.notes:
        st.caption(plain(note))
    # A mean and its standard deviation have one picture each; parameters of a kind share one.
    if len(found.summary) > 2:
        st.plotly_chart(
            posterior_charts.interval_figure(found, theme),
            key=f"intervals_{key}",
            theme=None,
            config={"displayModeBar": False},
            alt=f"Intervals of {len(found.summary)} parameters, private and naive",
        )
    st.dataframe(
        _table(found),
        hide_index=True,
        key=f"table_{key}",
        alt=f"Summary of {len(found.summary)} parameters",
    )


def _naive_words(summary: Any, level: float) -> str:
    if summary.naive_low is None or summary.naive_high is None:
        return "Ignoring the noise there is no interval at all: it would need a negative variance."
    return f"naive, the noise ignored: {summary.naive_low:.4g} to {summary.naive_high:.4g}"


def _table(found: Posterior) -> Mapping[str, list[Any]]:
    rows, level = found.summary, f"{found.settings.level:.0%}"
    table: dict[str, list[Any]] = {
        "parameter": [row.name for row in rows],
        "median": [_short(row.median) for row in rows],
        f"{level} interval": [_range(row.eti_low, row.eti_high) for row in rows],
        "noise ignored": [_range(row.naive_low, row.naive_high) for row in rows],
        "privacy share": [
            "" if row.privacy_share is None else f"{row.privacy_share:.0%}" for row in rows
        ],
        "P(> 0)": [_short(row.probability_positive) for row in rows],
    }
    if not widgets.phone():
        table[f"shortest {level}"] = [_range(row.hdi_low, row.hdi_high) for row in rows]
        table["mean"] = [_short(row.mean) for row in rows]
        table["sd"] = [_short(row.sd) for row in rows]
    if any(row.r_hat is not None for row in rows):
        table["R-hat"] = [_short(row.r_hat) for row in rows]
        table["effective draws"] = [_short(row.effective) for row in rows]
    return table


def _range(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"{_short(low)} to {_short(high)}"


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"


def _downloads(key: str, found: Sequence[Posterior], simulated: bool) -> None:
    forms = (
        ("Summary (CSV)", "posterior.csv", lambda: exports.csv_bytes(found)),
        ("Summary (Parquet)", "posterior.parquet", lambda: exports.parquet_bytes(found)),
        ("With warnings (JSON)", "posterior.json", lambda: _json(found, simulated)),
        ("Draws (npz)", "draws.npz", lambda: exports.draws_bytes(found)),
    )
    with st.container(horizontal=True):
        for words, name, make in forms:
            widgets.download(words, make, file_name(name, simulated), f"{name}_{key}")


def _json(found: Sequence[Posterior], simulated: bool) -> bytes:
    from core.documents import json_bytes

    return json_bytes(exports.document(found), simulated)
