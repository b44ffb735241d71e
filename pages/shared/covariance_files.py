"""Downloads of the covariance page: every matrix in every form."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.artefacts_covariance import covariance_files
from core.bundle import file_name
from core.pace.estimate import Estimate
from core.pace.release import CovarianceRelease
from core.pace.view import npz_bytes, parquet_bytes
from pages.shared import widgets

#: File of the bundle, label, and what it is.
CSV = (
    ("covariance.csv", "Covariance", "In the columns' own units."),
    ("correlation.csv", "Correlation", "Between −1 and 1."),
    ("precision.csv", "Precision", "Inverse of the covariance."),
    (
        "standard-errors.csv",
        "Standard errors",
        "One standard deviation of the privacy noise in each covariance; sampling is not in it.",
    ),
    (
        "partial-correlations.csv",
        "Partial correlations",
        "With both intervals: privacy noise only, and with sampling.",
    ),
)


def downloads(release: CovarianceRelease, fitted: Estimate, key: str) -> None:
    """One button a file; each is written when it is pressed."""
    simulated = release.provenance.simulated
    st.markdown("**Tables** (CSV, one row a column of the matrix)")
    with st.container(horizontal=True):
        for name, label, words in CSV:
            widgets.download(
                label,
                partial(csv_bytes, release, fitted, name),
                file_name(name, simulated),
                f"{key}_{name}",
                help=words,
            )
    st.markdown("**Everything in one file**")
    with st.container(horizontal=True):
        widgets.download(
            "npz (NumPy)",
            lambda: npz_bytes(fitted),
            file_name("covariance.npz", simulated),
            f"{key}_npz",
            help="All matrices, means and names as arrays; no pickles.",
        )
        widgets.download(
            "Parquet, long form",
            lambda: parquet_bytes(fitted),
            file_name("covariance.parquet", simulated),
            f"{key}_parquet",
            help="One row a pair of columns, with every figure and whether it was measured.",
        )
    st.caption("Everything here follows from the noisy release and may be published.")


def csv_bytes(release: CovarianceRelease, fitted: Estimate, name: str) -> bytes:
    """One of the files of the bundle."""
    return covariance_files(release, fitted)[name]
