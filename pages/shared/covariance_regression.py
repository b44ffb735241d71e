"""Regression of one column on others, as the released matrix has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import streamlit as st

from core.axis import day_text
from core.bundle import file_name
from core.errors import EstimationError
from core.pace.derived import Derived
from core.pace.estimate import Estimate
from core.pace.regression import Regression, regression
from core.pace.release import CovarianceRelease
from core.pace.view import regression_csv, selected_entries, standard_units
from core.schema import Column, Kind
from pages.shared import charts, covariance_charts, heat, widgets
from pages.shared.covariance_graph import choose_level
from pages.shared.covariance_rounds import decimals
from pages.shared.network import label, plain
from pages.shared.widgets import TEXT, phone, theme

#: Up to so many columns are chosen by pills, more by searching.
PILLS = 24
#: Numbers in a line below this are written with their power of ten.
SMALL = 1e-3
#: Slopes in the picture.
DRAWN = 24
STANDARD_HELP = (
    "By how many of its standard deviations the outcome moves when the predictor moves by one of "
    "its own and all others stay: numbers that can be compared between columns."
)


@lru_cache(maxsize=16)
def _fit(
    release: CovarianceRelease,
    fitted: Estimate,
    outcome: str,
    predictors: tuple[str, ...],
    level: float,
) -> Regression:
    return regression(
        fitted,
        outcome,
        predictors or None,
        level=level,
        selected=selected_entries(release, fitted),
    )


def draw(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    """Choices, picture, table and file of one regression."""
    if release.size < 2:
        st.info("A regression needs two columns.", icon=":material/info:")
        return
    names = release.schema.names
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        outcome = st.selectbox(
            "Outcome",
            names,
            index=_usual(release),
            key=f"{key}_outcome",
            width=280,
            help="The column that is explained by others.",
        )
        level = choose_level(f"{key}_regression")
    predictors = _predictors([name for name in names if name != outcome], outcome, key)
    if predictors is None:
        st.info("Choose at least one predictor.", icon=":material/info:")
        return
    try:
        found = _fit(release, fitted, outcome, predictors, level)
    except EstimationError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    _results(release, fitted, found, key)


def _usual(release: CovarianceRelease) -> int:
    """The last column that is no date, or the last one."""
    columns = release.schema.columns
    return max(
        (index for index, column in enumerate(columns) if column.kind is not Kind.DATE),
        default=len(columns) - 1,
    )


def _predictors(others: Sequence[str], outcome: str, key: str) -> tuple[str, ...] | None:
    """Chosen predictors; none chosen means all where there are many."""
    if len(others) <= PILLS:
        chosen = st.pills(
            "Predictors",
            others,
            selection_mode="multi",
            default=list(others),
            format_func=label,
            key=f"{key}_predictors_{outcome}",
            wrap=True,
        )
        return tuple(chosen) or None
    return tuple(
        st.multiselect(
            "Predictors",
            others,
            key=f"{key}_predictors_{outcome}",
            placeholder=f"all {len(others)} others; type part of a name to choose",
        )
    )


def _results(release: CovarianceRelease, fitted: Estimate, found: Regression, key: str) -> None:
    slopes = found.coefficients.values
    units = standard_units(fitted, found)
    order = sorted(
        range(len(slopes)),
        key=lambda i: (not slopes[i].determined, -abs(units[i] * slopes[i].value)),
    )
    drawn = [i for i in order if slopes[i].determined][:DRAWN]
    st.markdown(
        f"**{plain(found.outcome)}**: {found.explained * 100:.0f} % of its variance is explained; "
        f"what is left has a standard deviation of "
        f"{found.residual_deviation:,.4g}."
    )
    if drawn:
        rows = [_scaled(slopes[i], units[i]) for i in drawn]
        st.markdown("**Slopes in standard deviations**", help=STANDARD_HELP)
        st.plotly_chart(
            covariance_charts.intervals(
                rows, theme(), letters=heat.FEW_LETTERS if phone() else heat.LETTERS
            ),
            key=f"{key}_slopes",
            theme=None,
            config=charts.CHART,
            alt=f"Slopes of {len(rows)} predictors of {found.outcome} in standard deviations, "
            "with the interval of the privacy noise and with that of privacy and sampling",
        )
        st.caption("Thick: privacy noise only. Thin: privacy and sampling.")
    _table([found.intercept, *(slopes[i] for i in order)], release.schema[found.outcome])
    for note in found.coefficients.notes:
        st.caption(note, width=TEXT)
    widgets.download(
        "Coefficients (CSV)",
        partial(regression_csv, found),
        file_name("regression.csv", release.provenance.simulated),
        f"{key}_regression_csv",
        help="Intercept and slopes with both intervals.",
    )


def _scaled(slope: Derived, unit: float) -> covariance_charts.Row:
    """A slope and its intervals times a unit."""
    (low, high), (least, most) = slope.privacy, slope.total
    return covariance_charts.Row(
        slope.columns[0], unit * slope.value, (unit * low, unit * high), (unit * least, unit * most)
    )


def _table(values: Sequence[Derived], outcome: Column) -> None:
    intercept, *slopes = values
    lines = [_line(intercept, outcome.kind is Kind.DATE), *(_line(slope) for slope in slopes)]
    st.dataframe(
        {
            "term": [value.columns[0] for value in values],
            "estimate": [line[0] for line in lines],
            "privacy noise only": [line[1] for line in lines],
            "privacy + sampling": [line[2] for line in lines],
            "stands out": ["yes" if value.significant else "no" for value in values],
        },
        hide_index=True,
        height=38 + 35 * min(len(values), 14),
        alt="Intercept and slopes with their intervals",
        column_config={
            "estimate": st.column_config.TextColumn(
                help="Units of the outcome for one unit of the predictor; dates count in days."
            )
        },
    )


def _line(term: Derived, date: bool = False) -> tuple[str, str, str]:
    """Estimate and both intervals in words."""
    if term.value == 0:
        return "0", "no direct link", "no direct link"
    size = max(abs(number) for number in (term.value, *term.privacy, *term.total))

    def words(number: float) -> str:
        return day_text(round(number), None) if date else figures(number, term.total_error, size)

    return (
        words(term.value),
        " to ".join(words(end) for end in term.privacy),
        " to ".join(words(end) for end in term.total),
    )


def figures(number: float, error: float, size: float) -> str:
    """A number with as many digits as its error leaves; tiny ones with their power of ten.

    >>> figures(-1234.567, 12.0, 2000.0), figures(0.01234, 0.0003, 0.02), figures(2e-6, 1e-7, 3e-6)
    ('−1,235', '0.0123', '2.00e-06')
    """
    if size < SMALL:
        words = f"{number:.2e}"
    elif error >= 10:
        words = f"{number:,.0f}"
    else:
        words = f"{number:,.{decimals(error)}f}"
    return words.replace("-", "−", 1) if number < 0 else words
