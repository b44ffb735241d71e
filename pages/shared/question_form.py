"""The form that asks a question of one's own data: kind, columns, price; nothing is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import streamlit as st

from core.column import Column
from core.errors import JustitiaError
from core.kinds import LABELLED_KINDS
from core.plan import Plan
from core.plan_parts import PosteriorPlan, typed_rho
from core.pumba.requests import StatisticsRequest, plan_request
from core.pumba.specification import AnalysisKind, AnalysisSpec, declared_cells
from core.roles import Roles
from pages.shared import money
from pages.shared.network import label, plain
from pages.shared.project import Project

KIND_WORDS = {
    AnalysisKind.MEAN: "Mean",
    AnalysisKind.DIFFERENCE: "Difference of means",
    AnalysisKind.PROPORTION: "Proportions",
    AnalysisKind.TABLE: "Table",
    AnalysisKind.REGRESSION: "Regression",
    AnalysisKind.CORRELATION: "Correlation",
}
KIND_HELP = (
    "Mean of a number · difference of its means between groups · shares of a column's categories, "
    "perhaps within groups · a table of one or two columns with odds ratios · linear regression · "
    "correlations of numbers."
)


@dataclass(frozen=True)
class Asked:
    """A question with its price, or what is missing for it to be one."""

    part: PosteriorPlan | None
    missing: str = ""


def ask(project: Project, left: Fraction) -> Asked:
    """Draw the form; what cannot be asked is said in words, and costs nothing."""
    schema = project.schema
    assert schema is not None
    kind = st.selectbox(
        "What do you want to know?",
        list(KIND_WORDS),
        format_func=KIND_WORDS.__getitem__,
        key="question_kind",
        persist_state="session",
        help=KIND_HELP,
    )
    columns = schema.modelled
    numbers = [column.name for column in columns if column.kind not in LABELLED_KINDS]
    names = [column.name for column in columns]
    labelled = [name for name in names if name not in numbers]
    settings: dict[str, Any] = _columns(kind, numbers, names, labelled)
    missing = settings.pop("missing", "")
    if missing:
        return Asked(None, missing)
    _details(project, kind, settings)
    usual = _usual_name(kind, settings)
    name = st.text_input(
        "Name of the analysis",
        key=f"question_name_{usual}",
        placeholder=usual,
        max_chars=120,
        help="Results and files carry it.",
    )
    rho = _price(left)
    try:
        spec = AnalysisSpec(kind, name.strip() or usual, **settings)
        spec.check(schema)
        return Asked(PosteriorPlan(spec, rho))
    except JustitiaError as error:
        return Asked(None, str(error))


def _columns(
    kind: AnalysisKind, numbers: list[str], names: list[str], labelled: list[str]
) -> dict[str, Any]:
    """Which columns; ``missing`` says what the table lacks for this question."""
    if kind in {AnalysisKind.TABLE, AnalysisKind.CORRELATION}:
        options = names if kind is AnalysisKind.TABLE else numbers
        most = 2 if kind is AnalysisKind.TABLE else None
        picked = st.multiselect(
            "Columns",
            options,
            format_func=label,
            max_selections=most,
            key=f"question_{kind.value}",
            persist_state="session",
        )
        least = 1 if kind is AnalysisKind.TABLE else 2
        short = len(picked) < least
        return {
            "variables": tuple(picked),
            "missing": f"Choose at least {least} column{'s' if least > 1 else ''}." * short,
        }
    options = names if kind is AnalysisKind.PROPORTION else numbers
    if not options:
        return {"missing": "There is no column with numbers and bounds; declare one on Data."}
    outcome = st.selectbox(
        "Outcome" if kind is AnalysisKind.REGRESSION else "Column",
        options,
        format_func=label,
        key=f"question_outcome_{kind.value}",
        persist_state="session",
    )
    found: dict[str, Any] = {"outcome": outcome}
    if kind is AnalysisKind.REGRESSION:
        picked = st.multiselect(
            "Predictors",
            [name for name in names if name != outcome],
            format_func=label,
            key="question_predictors",
            persist_state="session",
            help="Columns of categories enter as one indicator for each but the first.",
        )
        found["predictors"] = tuple(name for name in picked if name != outcome)
        if not found["predictors"]:
            found["missing"] = "Choose at least one predictor."
        return found
    needed = kind is AnalysisKind.DIFFERENCE
    groups = [name for name in labelled if name != outcome]
    if needed and not groups:
        return {"missing": "There is no column of categories to form groups; declare one on Data."}
    by = st.selectbox(
        "Groups",
        groups,
        index=0 if needed else None,
        format_func=label,
        placeholder="no groups",
        key=f"question_by_{kind.value}",
        persist_state="session",
    )
    return found if by is None else {**found, "by": by}


def _details(project: Project, kind: AnalysisKind, settings: dict[str, Any]) -> None:
    """Choices that only some questions have."""
    schema = project.schema
    assert schema is not None
    by = settings.get("by")
    if by is not None and kind in {AnalysisKind.MEAN, AnalysisKind.DIFFERENCE}:
        cells = declared_cells(schema[by])
        picked = st.multiselect(
            "Only these groups",
            cells,
            format_func=label,
            placeholder="all of them",
            key=f"question_groups_{by}",
        )
        if picked and len(picked) < len(cells):
            settings["groups"] = tuple(cell for cell in cells if cell in picked)
    predictors = settings.get("predictors", ())
    if kind is AnalysisKind.REGRESSION and len(predictors) == 1:
        column: Column = schema[predictors[0]]
        if column.kind not in LABELLED_KINDS and st.checkbox(
            "Robust to unequal spread (measures 9 more sums)", key="question_robust"
        ):
            settings["robust"] = True
    if by is None and kind in {
        AnalysisKind.MEAN,
        AnalysisKind.REGRESSION,
        AnalysisKind.CORRELATION,
    }:
        _rows(project, settings)


def _rows(project: Project, settings: dict[str, Any]) -> None:
    """Offer the tree's row count, where one was paid for and the rows are the same."""
    run = project.best_run()
    if run is None or run.table != project.table_label:
        return
    if st.checkbox(
        "Use the number of rows that the tree release paid for",
        key="question_rows",
        help="Saves the part of the price that would count rows again. Possible where none of the "
        "columns can be missing.",
    ):
        settings["rows"] = "tree"


def _usual_name(kind: AnalysisKind, settings: Mapping[str, Any]) -> str:
    outcome = settings.get("outcome")
    by = settings.get("by")
    if kind is AnalysisKind.REGRESSION:
        return f"{outcome} on {', '.join(settings['predictors'])}"[:120]
    if outcome is None:
        return f"{kind.value} of {', '.join(settings['variables'])}"[:120]
    words = {
        AnalysisKind.MEAN: "mean of",
        AnalysisKind.DIFFERENCE: "difference in",
        AnalysisKind.PROPORTION: "proportions of",
    }[kind]
    return f"{words} {outcome}" + (f" by {by}" if by else "")


def _price(left: Fraction) -> Fraction:
    """Slider and exact entry, in step."""
    start = min(left, Fraction(1, 10))
    chosen = st.session_state.get("question_rho_value", start)
    chosen = min(chosen, left)

    def slide() -> None:
        st.session_state["question_rho_value"] = money.as_rho(st.session_state["question_rho"])

    def type_in() -> None:
        text = st.session_state["question_rho_text"]
        st.session_state["question_rho_problem"] = ""
        if not text.strip():
            return
        try:
            wanted = typed_rho(text)
            st.session_state["question_rho_value"] = money.typed(str(wanted), left)
        except JustitiaError as error:
            st.session_state["question_rho_problem"] = str(error)
            return
        st.session_state["question_rho_text"] = ""

    options = money.steps(left, chosen)
    st.session_state["question_rho"] = str(chosen)
    st.select_slider(
        "ρ of this analysis", options, key="question_rho", format_func=money.words, on_change=slide
    )
    st.text_input(
        "Or type ρ exactly",
        key="question_rho_text",
        placeholder="such as 0.05 or 1/30",
        on_change=type_in,
    )
    if st.session_state.get("question_rho_problem"):
        st.error(plain(st.session_state["question_rho_problem"]), title="Not possible")
    return chosen


def planned(project: Project, part: PosteriorPlan) -> StatisticsRequest:
    """What the question would measure and buy, from public facts."""
    schema, population = project.schema, project.population
    assert schema is not None and population is not None  # noqa: PT018
    return plan_request(
        part.spec,
        schema,
        population.relation,
        population.unit,
        part.rho,
        expected_rows=population.expected_rows,
    )


def plan_for(project: Project, part: PosteriorPlan) -> Plan:
    """A plan with this question as its last part, after the tree whose row count it uses."""
    schema, population = project.schema, project.population
    assert schema is not None and population is not None  # noqa: PT018
    run = project.best_run()
    shared = part.spec.rows == "tree" and run is not None
    before = run.read_plan() if shared and run is not None else None
    return Plan(
        population,
        schema,
        Roles() if before is None else before.roles,
        None if before is None else before.tree,
        reading=project.settled,
        demo=project.demo,
        posteriors=(part,),
    )
