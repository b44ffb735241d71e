"""Continuous synthetic rows from the released covariance: Gaussian, within the bounds, free."""

from __future__ import annotations

from functools import lru_cache, partial

import streamlit as st

from core.bundle import file_name
from core.decoding import csv_bytes as table_bytes
from core.errors import EstimationError, JustitiaError
from core.pace.estimate import Estimate
from core.pace.release import CovarianceRelease
from core.pace.sampler import GaussianSample, gaussian_sample
from pages.shared import widgets
from pages.shared.network import plain
from pages.shared.widgets import TEXT

#: Rows that are shown, and cells that a file may have.
FIRST = 20
MOST_CELLS = 50_000_000


@lru_cache(maxsize=4)
def first_rows(release: CovarianceRelease, fitted: Estimate, seed: int) -> GaussianSample:
    """The first rows of a sample; a longer one of the same seed starts with them."""
    return gaussian_sample(fitted, release.schema, rows=FIRST, seed=seed)


def csv_bytes(
    release: CovarianceRelease,
    fitted: Estimate,
    rows: int,
    seed: int,
    *,
    spreadsheet: bool = False,
) -> bytes:
    """A sample as CSV: UTF-8, dates in the declared form; see :func:`core.decoding.csv_bytes`."""
    sample = gaussian_sample(fitted, release.schema, rows=rows, seed=seed)
    return table_bytes(sample.frame, spreadsheet)


def row_count(text: str, usual: int, columns: int) -> int:
    """How many rows were asked for.

    Raises
    ------
    EstimationError
        No whole number, or more cells than a file may have.
    """
    text = text.strip().replace(",", "").replace(" ", "")
    if text and not text.isdecimal():
        raise EstimationError("number of rows: type a whole number, or nothing for the noisy total")
    rows = int(text) if text else usual
    if rows * columns > MOST_CELLS:
        raise EstimationError(f"at most {MOST_CELLS // columns:,} rows of {columns} columns")
    return rows


def draw(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    """Settings, the first rows, and the file."""
    usual = max(round(release.rows.value), 1)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Rows",
            placeholder=f"{usual:,} (as released)",
            key=f"{key}_rows",
            width=220,
            help="Free to choose: the model does not know how many rows it is asked for.",
        )
        seed = st.number_input(
            "Seed",
            min_value=0,
            max_value=2**31 - 1,
            value=0,
            key=f"{key}_seed",
            width=160,
            help="Same release, same seed: same rows.",
        )
    try:
        rows = row_count(text or "", usual, release.size)
        sample = first_rows(release, fitted, int(seed))
    except JustitiaError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    st.warning(
        f"{plain(sample.label)} Rows follow a bell curve cut off at the bounds, whatever the "
        "columns look like in truth. For a synthetic table under a fairness rule go to Synthetic.",
        icon=":material/info:",
    )
    st.dataframe(
        sample.frame,
        hide_index=True,
        height=250,
        alt="First Gaussian rows; nobody in them is real",
    )
    st.caption(f"The first {min(FIRST, rows)} of {rows:,} rows. Nobody in them is real.")
    if sample.squeezed:
        names = ", ".join(plain(name) for name in sample.squeezed[:8])
        st.caption(
            f"Their noisy variance does not fit between the bounds, so it was cut: {names}"
            f"{' and others' if len(sample.squeezed) > 8 else ''}.",
            width=TEXT,
        )
    with st.container(horizontal=True):
        for words, name, spreadsheet in (
            ("Gaussian rows (CSV)", "gaussian-rows.csv", False),
            ("CSV for Excel", "gaussian-rows-for-excel.csv", True),
        ):
            widgets.download(
                words,
                partial(csv_bytes, release, fitted, rows, int(seed), spreadsheet=spreadsheet),
                file_name(name, release.provenance.simulated),
                f"{key}_{name}",
            )
