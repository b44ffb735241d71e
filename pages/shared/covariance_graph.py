"""What stands out: the network and the table of partial correlations, with both intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import streamlit as st

from core.errors import EstimationError
from core.pace.derived import Derived, DerivedTable, partial_correlations
from core.pace.estimate import Estimate
from core.pace.release import CovarianceRelease
from core.pace.view import selected_entries
from pages.shared import charts, covariance_network, heat
from pages.shared.network import plain
from pages.shared.widgets import TEXT, phone, theme

LEVELS = (0.9, 0.95, 0.99)
#: Pairs that are shown at first, and at most.
SHOWN, MOST = 40, 200
#: The same on a telephone.
FEW = 16
#: More columns in the picture than this get a search box.
MANY = 16
PARTIAL_HELP = (
    "How two columns go together once all other columns of the matrix are held fixed. Pairs "
    "without a line have nothing to do with each other directly, as far as can be told."
)
LEVEL_HELP = (
    "How often intervals made this way hold the true number. A line is drawn where the interval "
    "for privacy noise and sampling together leaves out 0."
)


@lru_cache(maxsize=16)
def partial_table(release: CovarianceRelease, fitted: Estimate, level: float) -> DerivedTable:
    """Partial correlations with intervals, kept between reruns."""
    return partial_correlations(fitted, level=level, selected=selected_entries(release, fitted))


@lru_cache(maxsize=16)
def strongest(table: DerivedTable) -> tuple[Derived, ...]:
    """Values from strong to weak; those that may be anything come last."""
    return tuple(sorted(table.values, key=lambda value: (not value.determined, -abs(value.value))))


def choose_level(key: str) -> float:
    """The level of intervals."""
    return (
        st.segmented_control(
            "Level of the intervals",
            LEVELS,
            default=LEVELS[1],
            required=True,
            format_func=lambda level: f"{level * 100:.0f} %",
            key=f"{key}_level",
            help=LEVEL_HELP,
        )
        or LEVELS[1]
    )


def draw(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    """Network and table of one release."""
    if release.size < 2:
        st.info("One column alone has no correlations.", icon=":material/info:")
        return
    level = choose_level(f"{key}_graph")
    try:
        table = partial_table(release, fitted, level)
    except EstimationError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    ordered = strongest(table)
    standing = [value for value in ordered if value.significant]
    shown = standing[: _how_many(len(standing), key)]
    if shown:
        _network(shown, key, level)
    else:
        st.info(
            f"No partial correlation stands out at the level of {level * 100:.0f} %. That does "
            "not say that there is none: more ρ would show weaker ones.",
            icon=":material/info:",
        )
    alone = release.size - len({name for value in standing for name in value.columns})
    words = f"{len(standing):,} of {len(table.values):,} measured pairs stand out."
    if standing and alone:
        words += f" {alone:,} {'column has' if alone == 1 else 'columns have'} no line."
    st.caption(words)
    _table(ordered[: max(len(shown), SHOWN)], len(ordered))
    for note in table.notes:
        st.caption(note, width=TEXT)
    if table.undetermined:
        names = ", ".join(plain(name) for name in table.undetermined[:8])
        more = len(table.undetermined) - 8
        st.caption(f"Undetermined: {names}{f' and {more} more' if more > 0 else ''}.")


def _how_many(standing: int, key: str) -> int:
    usual = FEW if phone() else SHOWN
    if standing <= usual:
        return usual
    return st.slider(
        "Strongest pairs in the picture",
        5,
        min(standing, MOST),
        usual,
        key=f"{key}_pairs",
    )


def _network(shown: Sequence[Derived], key: str, level: float) -> None:
    names = sorted({name for value in shown for name in value.columns})
    found = None
    if len(names) > MANY:
        found = st.selectbox(
            "Find a column",
            names,
            index=None,
            placeholder="type part of its name",
            key=f"{key}_find",
        )
    links = [
        covariance_network.Link(*value.columns, value.value, value.privacy, value.total)
        for value in shown
    ]
    st.markdown("**Partial correlations**", help=PARTIAL_HELP)
    st.plotly_chart(
        covariance_network.draw(
            links,
            theme(),
            letters=heat.FEW_LETTERS if phone() else heat.LETTERS,
            found=found,
            aspect=covariance_network.NARROW if phone() else covariance_network.WIDE,
        ),
        key=f"{key}_network",
        theme=None,
        config=heat.ZOOM if len(names) > MANY and not phone() else charts.CHART,
        alt=f"Network of {len(names)} columns with the {len(shown)} strongest partial "
        f"correlations that stand out at the level of {level * 100:.0f} %",
    )
    st.caption("Thick lines are strong; dashed ones are negative. Hover over a line's middle.")


def _table(values: Sequence[Derived], count: int) -> None:
    columns: dict[str, list[object]] = {
        "pair": [" — ".join(value.columns) for value in values],
        "partial correlation": [value.value for value in values],
        "privacy noise only": [interval(value.privacy) for value in values],
        "privacy + sampling": [interval(value.total) for value in values],
        "stands out": ["yes" if value.significant else "no" for value in values],
    }
    if any(value.selected for value in values):
        columns["selected"] = ["yes" if value.selected else "" for value in values]
    if len(values) < count:
        st.markdown(f"**The strongest {len(values)}** of {count:,} measured pairs")
    st.dataframe(
        columns,
        hide_index=True,
        height=38 + 35 * min(len(values), MANY),
        alt="Strongest partial correlations with their intervals",
        column_config={
            "partial correlation": st.column_config.NumberColumn(format="%.3f"),
            "privacy noise only": st.column_config.TextColumn(
                help="How far the noise may have moved the number."
            ),
            "privacy + sampling": st.column_config.TextColumn(
                help="The same, and how far the rows may differ from the population they are a "
                "sample of."
            ),
            "stands out": st.column_config.TextColumn(
                help="Whether the interval for privacy and sampling leaves out 0."
            ),
            "selected": st.column_config.TextColumn(
                help="Measured or kept because a noisy look made it stand out; see the note."
            ),
        },
    )


def interval(ends: tuple[float, float]) -> str:
    """Two ends in words.

    >>> interval((-0.1234, 0.5))
    '−0.123 to 0.500'
    """
    return " to ".join(f"{end:.3f}".replace("-", "−") for end in ends)
