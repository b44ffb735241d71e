"""Drill-down of an audit: single columns and pairs, readable with sixty of them."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.audit.against_release import NoisyDistances
from core.audit.audits import PrivateAudit, ReleasedAudit
from core.audit.distances import MarginalDistances
from core.audit.shares import PairShares, column_shares, measured_pair, pair_matrix, real_pair
from core.errors import JustitiaError
from core.report.words import number
from pages.shared import audit_cards, audit_charts, charts, heat, widgets
from pages.shared.network import label, plain

#: Bars drawn; the table below has all.
SHOWN = 15
NOISE = "what noise alone gives"
CHANCE = "what chance alone gives"
#: Between the columns of a pair.
JOINED = " — "


def letters() -> int:
    """How much of a name is written out beside a chart."""
    return audit_charts.FEW_LETTERS if widgets.phone() else audit_charts.LETTERS


def _distances(
    found: NoisyDistances | MarginalDistances, key: str, what: str
) -> list[tuple[str, ...]]:
    """The largest as a picture, all as a table; returns what was ranked, the worst first."""
    noisy = isinstance(found, NoisyDistances)
    words, floor = (NOISE, found.tv_noise) if noisy else (CHANCE, found.chance)
    places = found.worst(len(found.names))
    ranked = [found.names[place] for place in places]
    names = [JOINED.join(one) for one in ranked]
    values = [float(found.tv[place]) for place in places]
    compared = [float(floor[place]) for place in places]
    count = min(SHOWN, len(names))
    st.plotly_chart(
        audit_charts.ranked(
            names[:count],
            values[:count],
            compared[:count],
            words,
            widgets.theme(),
            letters=letters(),
        ),
        key=f"{key}_ranked",
        theme=None,
        config=charts.CHART,
        alt=f"The {count} {what} that are furthest off, with {words}",
    )
    st.caption(
        "Distance (total variation): the share of rows that would have to change to make both "
        f"alike. The tick is {words}"
        + ("; those furthest beyond it come first." if noisy else ", for tables of these sizes.")
    )
    with st.expander(f"All {len(names):,} {what} as a table"):
        st.dataframe(
            {
                what: names,
                "distance": [number(value, "share") for value in values],
                words: [number(value, "share") for value in compared],
            },
            hide_index=True,
            alt=f"Distances of all {what}",
        )
    return ranked


def columns(audit: ReleasedAudit, beside: PrivateAudit | None = None) -> None:
    """Which columns are furthest off, and one of them in full."""
    key = "audit_private_column" if beside is not None else "audit_column"
    found = audit.against_release.one_way if beside is None else _marginals(beside, 1)
    if found is None:
        st.info(plain(audit.against_release.reason), icon=":material/info:")
        return
    order = [name for (name,) in _distances(found, key, "columns")]
    name = st.selectbox("Column", order, key=key, format_func=label)
    shares = column_shares(audit, name or order[0], beside)
    st.plotly_chart(
        audit_charts.column(shares, widgets.theme()),
        key=f"{key}_chart",
        theme=None,
        config=charts.CHART,
        alt=f"Shares of the cells of {shares.name} in the worlds compared",
    )
    table = {"cell": [plain(cell) for cell in shares.cells]}
    if shares.released is not None:
        table["released"] = [number(float(one), "share") for one in shares.released]
    table["synthetic"] = [number(float(one), "share") for one in shares.synthetic]
    if shares.real is not None:
        table["real (private)"] = [number(float(one), "share") for one in shares.real]
    with st.expander("The same as a table"):
        st.dataframe(table, hide_index=True, alt=f"Shares of the cells of {shares.name}")


def _difference(shares: PairShares, key: str) -> None:
    """One pair's table in both worlds, subtracted."""
    first, second = shares.names
    st.plotly_chart(
        audit_charts.pair(shares, widgets.theme()),
        key=key,
        theme=None,
        config=charts.CHART,
        alt=f"Shares of {first} and {second}: synthetic rows less {shares.against}",
    )
    st.caption(f"Synthetic rows less {shares.against}, in percentage points of all rows.")


def released_pairs(audit: ReleasedAudit) -> None:
    """The measured pairs, those furthest beyond their noise first, and one of them in full."""
    found = audit.against_release.two_way
    if found is None or not found.names:
        reason = audit.against_release.reason or "no pair was measured"
        st.info(plain(reason), icon=":material/info:")
        return
    pairs = _distances(found, "audit_pair", "measured pairs")
    st.caption(
        "Only the pairs that the tree joins were measured. All others follow from them, and how "
        "near they are to the real table can be seen in the private workspace alone."
    )
    chosen = st.selectbox(
        "Measured pair",
        range(len(pairs)),
        format_func=lambda index: label(JOINED.join(pairs[index])),
        key="audit_pair",
    )
    first, second = pairs[chosen or 0]
    try:
        shares = measured_pair(audit, (first, second))
    except JustitiaError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    _difference(shares, "audit_pair_chart")


def real_pairs(beside: PrivateAudit) -> None:
    """Every pair as a heat map, and one of them in full."""
    names, matrix = pair_matrix(beside)
    found = _marginals(beside, 2)
    if not found.names:
        st.info("There is one column only, so there are no pairs.", icon=":material/info:")
        return
    if found.sampled:
        st.caption(
            f"A random sample of {len(found.names):,} of {found.possible:,} pairs; the others are "
            "blank."
        )
    top = float(found.tv.max())
    none = np.zeros(matrix.shape, dtype=bool)
    square = heat.Square(
        names, matrix, matrix, max(top, 1e-9), "distance", "distance", none, positive=True
    )
    st.plotly_chart(
        heat.draw(square, widgets.theme(), height=min(max(300, 22 * len(names) + 120), 640)),
        key="audit_matrix",
        theme=None,
        config=heat.ZOOM if len(names) > heat.NAMED else charts.CHART,
        alt="Distance of every pair of columns between the synthetic rows and the real table",
    )
    pairs = _distances(found, "audit_real_pair", "pairs")
    chosen = st.selectbox(
        "Pair",
        range(len(pairs)),
        format_func=lambda index: label(JOINED.join(pairs[index])),
        key="audit_real_pair",
        help="The pairs that are furthest off come first; type to search.",
    )
    first, second = pairs[chosen or 0]
    shares = real_pair(beside, first, second)
    _difference(shares, "audit_real_pair_chart")


def _marginals(beside: PrivateAudit, ways: int) -> MarginalDistances:
    """Distances to the real table over all tables of so many columns."""
    return next(part for part in beside.fidelity.marginals if part.ways == ways)


def everything(beside: PrivateAudit) -> None:
    """All distances, correlations and quantiles as figures."""
    audit_cards.figures(
        beside.fidelity.figures(), "All figures of how near the synthetic rows are to the table"
    )
