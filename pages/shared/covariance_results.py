"""After a covariance release: the matrix, what stands out in it, how good it is, and the files."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.errors import EstimationError
from core.pace.estimate import Estimate
from core.pace.preview import plain_noise_error
from core.pace.release import CovarianceRelease
from core.pace.view import noise_error
from core.schema import Column, Kind
from pages.shared import (
    charts,
    covariance_charts,
    covariance_files,
    covariance_graph,
    covariance_posterior,
    covariance_regression,
    covariance_rounds,
    covariance_rows,
    widgets,
)
from pages.shared.covariance_draft import METHOD_HELP, METHOD_WORDS, plan_of, value_words
from pages.shared.money import format_rho
from pages.shared.network import plain
from pages.shared.project import Project, Run
from pages.shared.widgets import theme

ROUTE_WORDS = {
    "rounds": "the first look left single entries worth asking for, so the rest went to rounds",
    "second triangle": "the first look showed that a second look at everything would help most",
    "diagonal": "no correlation stood out from the noise, so the rest went to the variances",
}
TABS = (
    "What stands out",
    "Regression",
    "Against plain noise",
    "Means",
    "Gaussian rows",
    "Files",
    "What it estimates",
)
#: Up to so many means are a table that reads as text.
FEW = 12


def show(project: Project, run: Run) -> None:
    """Everything that follows from a release; free."""
    run = _chosen(project, run)
    release = project.released(run)
    assert isinstance(release, CovarianceRelease)
    try:
        fitted = covariance_rounds.replays_of(release).last
    except EstimationError as error:
        _heading(project, run, release, None)
        _kept(release, run)
        st.info(f"{plain(str(error))}.", icon=":material/info:")
        _means(release)
        return
    _heading(project, run, release, fitted)
    if release.partial:
        _kept(release, run)
    key = f"cov_{run.request_id[-12:]}"
    covariance_rounds.matrix(release, key, _facts(release, fitted))
    _tabs(release, fitted, key)
    covariance_posterior.draw(release, fitted, key)


def _chosen(project: Project, run: Run) -> Run:
    """Which of several releases is looked at."""
    runs = [known for known in project.runs_of("covariance") if project.released(known)]
    if len(runs) < 2:
        return run
    chosen = st.selectbox(
        "Release",
        range(len(runs)),
        index=len(runs) - 1,
        format_func=lambda index: f"{index + 1}: {_run_words(runs[index])}",
        key=f"cov_shown_{len(runs)}",
    )
    return runs[chosen]


def _run_words(run: Run) -> str:
    part = plan_of(run).covariance
    assert part is not None
    count = len(part.columns)
    return (
        f"{count} {'column' if count == 1 else 'columns'} of {run.table}, "
        f"ρ = {format_rho(part.rho)}"
    )


def _heading(
    project: Project, run: Run, release: CovarianceRelease, fitted: Estimate | None
) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        title = "The matrix, round by round" if release.rounds else "The matrix"
        st.header(title, anchor=False, width="content")
        widgets.stale_badge(project, run)
        if release.partial:
            st.badge("partial", icon=":material/timelapse:", color="orange")
        if fitted is not None and fitted.mostly_noise:
            st.badge("mostly noise", icon=":material/grain:", color="orange")
        if release.provenance.simulated:
            st.badge("simulated, not private", icon=":material/science:", color="red")


def _kept(release: CovarianceRelease, run: Run) -> None:
    part = plan_of(run).covariance
    assert part is not None
    count, rounds = len(release.pairs), len(release.rounds)
    st.warning(
        f"Cancelled on the way. Kept: the means of {release.size} columns, {count:,} noisy "
        f"{'entry' if count == 1 else 'entries'}, and {rounds:,} "
        f"{'round' if rounds == 1 else 'rounds'}. The whole charge of ρ = {format_rho(part.rho)} "
        "stays spent, because it was made before the table was touched. What was kept can be "
        "looked at and downloaded for nothing.",
        title="Partial release",
        icon=":material/timelapse:",
    )


def _facts(release: CovarianceRelease, fitted: Estimate) -> list[str]:
    """Method and route, row count, and how large the noise is."""
    words = f"**{METHOD_WORDS[release.method]}**: {_lower(METHOD_HELP[release.method])}"
    if release.route:
        words += f" Here, {ROUTE_WORDS[release.route]}."
    if release.rows.public:
        rows = f"{release.rows.value:,.0f} rows, a number that is public here."
    else:
        rows = (
            f"About **{release.rows.value:,.0f} rows** (± {release.rows.sigma:.2g}, noisy): every "
            "sum was divided by that."
        )
    facts = [words, rows]
    if release.size > 1 and np.isfinite(fitted.noise_level):
        level = fitted.noise_level
        noise = f"The noise blurs a typical measured correlation by ± {level:.2g}."
        if fitted.mostly_noise:
            noise += (
                " **Most of what the matrix shows is noise.** More ρ, fewer columns, or public "
                "half-widths would help."
            )
        facts.append(noise)
    return facts


def _lower(text: str) -> str:
    return text if text[:2].isupper() or text.startswith("Dong") else text[0].lower() + text[1:]


def _tabs(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    @st.fragment
    def draw() -> None:
        graph, slopes, compared, means, sample, files, about = st.tabs(
            TABS,
            key=f"{key}_tabs",
            on_change="rerun",
        )
        if graph.open:
            with graph:
                covariance_graph.draw(release, fitted, key)
        if slopes.open:
            with slopes:
                covariance_regression.draw(release, fitted, key)
        if compared.open:
            with compared:
                _compared(release, fitted, key)
        if means.open:
            with means:
                _means(release)
        if sample.open:
            with sample:
                covariance_rows.draw(release, fitted, key)
        if files.open:
            with files:
                covariance_files.downloads(release, fitted, key)
        if about.open:
            with about:
                st.markdown(plain(release.estimand), width=widgets.TEXT)

    draw()


def _compared(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    plain_noise, own = plain_noise_error(release, fitted), noise_error(fitted)
    st.plotly_chart(
        covariance_charts.compared(
            (
                ("this matrix (its noise alone)", own),
                ("plain noise on every entry (predicted)", plain_noise),
                ("a matrix of zeros", 1.0),
            ),
            theme(),
        ),
        key=f"{key}_compared",
        theme=None,
        config=charts.CHART,
        alt=f"Relative error: this matrix {own:.2g} from its noise alone, plain noise "
        f"{plain_noise:.2g} predicted, a matrix of zeros 1",
    )
    st.caption(
        "Relative error of the whole matrix: the distance from the true one over its size. Plain "
        "noise is predicted from its scale and the released matrix; nothing more is asked of the "
        "table. What this matrix leaves out (correlations too weak to be found) is not counted.",
        width=widgets.TEXT,
    )


def _length(column: Column, value: float) -> str:
    """A distance between values of a column."""
    words = f"{float(value):,.0f}" if value >= 1000 else f"{float(value):.3g}"
    return f"{words} days" if column.kind is Kind.DATE else words


def _means(release: CovarianceRelease) -> None:
    schema, means = release.schema, release.means
    place = {name: index for index, name in enumerate(release.columns)}
    rows = [place[name] for name in schema.names]
    if means.public:
        st.markdown("Public means, as typed. They cost nothing and have no noise.")
    else:
        st.markdown(
            "Noisy means, measured first. The ± is one standard deviation of the privacy noise."
        )
    columns = {
        "column": list(schema.names),
        "mean": [
            value_words(schema[name], float(means.values[row]))
            for name, row in zip(schema.names, rows, strict=True)
        ],
    }
    if not means.public:
        columns["±"] = [_length(schema[release.columns[row]], means.sigmas[row]) for row in rows]
    columns["half-width"] = [
        _length(schema[release.columns[row]], release.half_widths[row]) for row in rows
    ]
    if len(rows) <= FEW:
        columns["column"] = [plain(name) for name in schema.names]
        st.table(columns, hide_index=True, alt="Means of the columns")
    else:
        st.dataframe(columns, hide_index=True, height=420, alt="Means of the columns")
