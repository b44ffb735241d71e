"""From checked rows of published statistics to the problems that posteriors are drawn for."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import StatisticError
from core.pumba.analyses import Analysis, CorrelationAnalysis, RegressionAnalysis
from core.pumba.published_gram import build_gram
from core.pumba.published_means import build_difference, build_mean
from core.pumba.published_rows import PublishedRow
from core.pumba.published_tables import build_histogram, build_table


def build_analysis(rows: Sequence[PublishedRow], file: str) -> Analysis:
    """The problem of one analysis.

    Raises
    ------
    StatisticError
        Naming the line and field, or the row that is missing.
    """
    kind, title = rows[0].kind, rows[0].analysis
    for row in rows:
        if row.kind != kind:
            raise row.fault("kind", f"{title!r} is a {kind} above; an analysis has one kind")
    label = f"{file}, analysis {title!r}"
    if kind == "table":
        return build_table(rows, label)
    if kind == "histogram":
        return build_histogram(rows, label)
    if kind == "mean":
        return build_mean(rows, label)
    if kind == "difference":
        return build_difference(rows, label)
    gram, facts = build_gram(rows, label)
    if kind == "correlation":
        return CorrelationAnalysis(title, gram, facts=facts)
    outcome, predictors = _roles(rows, gram.names, label)
    return RegressionAnalysis(title, gram, outcome, predictors, facts)


def _roles(
    rows: Sequence[PublishedRow], names: Sequence[str], label: str
) -> tuple[str, tuple[str, ...]]:
    """Outcome, and predictors: those with that role, or all others where none has it."""
    roles: dict[str, PublishedRow] = {}
    for row in rows:
        name = row.variable()
        if row.role is None or name is None:
            if row.role is not None:
                raise row.fault("role", "a role belongs to a column; this row names none")
            continue
        if name in roles and roles[name].role != row.role:
            raise row.fault("role", f"{name!r} has another role in {roles[name].where}")
        roles[name] = row
    outcomes = [name for name, row in roles.items() if row.role == "outcome"]
    if len(outcomes) != 1:
        raise StatisticError(
            f"{label}: a regression needs exactly one column with role outcome, not {len(outcomes)}"
        )
    named = [name for name, row in roles.items() if row.role == "predictor"]
    predictors = [name for name in names if name != outcomes[0] and (not named or name in named)]
    if not predictors:
        raise StatisticError(f"{label}: a regression needs at least one predictor")
    return outcomes[0], tuple(predictors)
