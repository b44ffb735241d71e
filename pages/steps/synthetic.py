"""Synthetic: fit, sample and certify from what was released; free, as often as you like."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.artefacts import FORM_FILES
from core.bundle import file_name
from core.errors import JustitiaError
from core.plan import ENGINES
from pages.shared import actions, charts, fits, guards, tree_answers, widgets
from pages.shared import project as state
from pages.shared.held import held
from pages.shared.jobs import desk
from pages.shared.network import plain

project = state.current()
widgets.head(
    "Synthetic",
    "Fit a model to the noisy tables and draw rows from it. Everything here follows from the "
    "release: it is free and never touches the table.",
    project,
)
guards.require(project, "tree")
run = project.best_run()
assert run is not None
release = project.release(run)
holding = held(project)
assert release is not None and holding is not None  # noqa: PT018
widgets.stale_badge(project, run)
ENGINE_WORDS = {
    "auto": "automatic",
    "exact": "exact (with a proof of optimality)",
    "entropic": "entropic (stops early, for small signals)",
    "mbi": "mbi (the reference library)",
}


def make() -> None:
    """Take the settings and start the free job."""
    text = str(st.session_state["synthetic_rows"]).strip().replace(",", "")
    if text and not text.isdecimal():
        project.problem = "number of rows: type a whole number, or nothing for the noisy total"
        return
    try:
        settings = replace(
            project.synthetic,
            rows=int(text) if text else None,
            engine=st.session_state["engine"],
            seed=int(st.session_state["seed"]),
        )
    except JustitiaError as error:
        project.problem = str(error)
        return
    project.change(synthetic=settings, fitted=True)
    try:
        now = held(project)
        if now is not None:
            actions.derive_files(now)
    except JustitiaError as error:
        project.problem = str(error)


if project.problem:
    st.error(plain(project.problem), title="Not possible")
    project.problem = ""
settings = project.synthetic
with st.container(border=True, key="fit_box"):
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Rows",
            value="" if settings.rows is None else str(settings.rows),
            placeholder=f"about {release.total:,.0f} (noisy total)",
            key="synthetic_rows",
            help="Free to choose: the model does not know how many rows it is asked for.",
        )
        st.selectbox(
            "Engine",
            ENGINES,
            index=ENGINES.index(settings.engine),
            format_func=lambda name: ENGINE_WORDS[name],
            key="engine",
        )
        st.number_input(
            "Seed",
            min_value=0,
            max_value=2**31 - 1,
            value=settings.seed,
            key="seed",
            help="Same release, same settings, same seed: same rows.",
        )
        st.button(
            widgets.main("Fit and sample", "auto_awesome"),
            key="fit_and_sample",
            type="primary",
            on_click=make,
        )
    st.caption("Costs nothing.")

key = holding.key
job = desk().find(key)
made = actions.derived(project, holding)
if made is None and project.fitted and job is None:
    actions.derive_files(holding)  # after a reload: the same, made again for nothing
    job = desk().find(key)
    made = actions.derived(project, holding)
if made is None:
    if job is not None and job.active:
        widgets.job_panel(key, cancel="Nothing is lost: the release is stored and this is free.")
    else:
        widgets.job_ended(job)
    st.stop()

synthetic, certificate = made.synthetic, made.certificate
assert synthetic is not None and certificate is not None  # noqa: PT018
model = synthetic.fit.model
st.header("Certificate", anchor=False)
with st.container(border=True, key="certificate"):
    if not certificate.separation:
        st.markdown(":material/info: No rule was declared, so nothing about fairness is proved.")
    elif certificate.holds:
        st.markdown(":material/verified: **Every rule is proved for this tree.**")
    else:
        st.markdown(":material/gpp_bad: **A rule does not hold for this tree.**")
    for words in certificate.words:
        st.markdown(plain(words))
    with st.expander("The proof: parts of the tree without its admissible columns"):
        for proof in certificate.separation:
            st.markdown(f"**{plain(proof.constraint.name)}**: {plain(proof.constraint.words)}.")
            st.dataframe(
                {
                    "part": list(range(1, len(proof.components) + 1)),
                    "columns": [", ".join(part.columns) for part in proof.components],
                    "protected": [", ".join(part.protected) for part in proof.components],
                    "outcome": [", ".join(part.outcome) for part in proof.components],
                    "holds both": ["yes" if part.clashes else "no" for part in proof.components],
                },
                hide_index=True,
                alt=f"Parts of the tree for the rule {proof.constraint.name}",
            )

st.header("Measured and fitted", anchor=False)
one, two = st.tabs(["Columns", "Edges"])
with one:
    name = st.selectbox("Column", release.schema.names, key="marginal_column")
    compared = fits.column(release, model, name)
    st.plotly_chart(
        charts.marginal(
            compared.cells, compared.measured, compared.sigma, compared.fitted, widgets.theme()
        ),
        key="marginal",
        theme=None,
        config=charts.CHART,
        alt=f"Noisy counts of {name} with their noise, and the fitted model's counts",
    )
    st.caption(
        f"Noise of a measured cell: σ = {compared.sigma:.3g} rows. Cells that were too small to "
        "tell from noise are merged; sampling opens them again."
    )
with two:
    pairs = [edge for edge in release.edges if tuple(sorted(edge)) in model.edge_names]
    if pairs:
        which = st.selectbox(
            "Edge",
            range(len(pairs)),
            format_func=lambda index: " — ".join(pairs[index]),
            key="marginal_edge",
        )
        table, rows, columns = fits.edge(release, model, pairs[which])
        st.plotly_chart(
            charts.pair(table, rows, columns, tuple(sorted(pairs[which])), widgets.theme()),
            key="pair",
            theme=None,
            config=charts.CHART,
            alt=f"Fitted table of {' and '.join(pairs[which])}",
        )
fit = synthetic.fit
words = f"Engine {fit.engine}, {fit.iterations} steps"
if fit.gap is not None:
    words += f", provably within {fit.gap:.1e} of the best possible fit"
st.caption(f"{words}.")

st.header("Synthetic rows", anchor=False)
st.markdown(f"{synthetic.rows:,} rows. Nobody in them is real.")
st.dataframe(synthetic.frame.head(50), hide_index=True, height=320, alt="First synthetic rows")
FORMS = (
    ("csv", "CSV", "UTF-8 without a mark, values as they are: for programs."),
    (
        "spreadsheet",
        "CSV for Excel",
        "UTF-8 with a mark; texts that look like formulas get an apostrophe.",
    ),
    ("parquet", "Parquet", "With types; where a Parquet file was uploaded, with its types."),
)
with st.container(horizontal=True):
    for form, label, words in FORMS:
        widgets.download(
            label,
            lambda form=form: actions.table_bytes(holding, synthetic, form),
            file_name(FORM_FILES[form], release.provenance.simulated),
            form,
            help=words,
        )
st.header("What do the released marginals say?", anchor=False)
st.markdown(
    "The noisy tables that the tree paid for answer questions by themselves, with intervals that "
    "carry their noise. **This costs nothing further.**",
    width=widgets.TEXT,
)
if st.toggle("Show shares, differences and odds with intervals", key="tree_answers"):
    tree_answers.draw(release, run.request_id)
guards.next_step("posterior", "Ask the table itself, on Posterior")
guards.next_step("release", "Go on to Release")
