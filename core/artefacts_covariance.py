"""Files of a covariance release: what was measured, and the matrices completed from it."""

from __future__ import annotations

import numpy as np

from core.documents import csv_table
from core.outcome import Releases
from core.pace.derived import partial_correlations
from core.pace.estimate import Estimate
from core.pace.release import CovarianceRelease
from core.pace.view import selected_entries

COVARIANCE_BLOB = "covariance-release.npz"
COVARIANCE_FILES = {
    "covariance.csv": "Covariance matrix in the columns' own units, completed from the noisy "
    "entries. May be published.",
    "correlation.csv": "The same as correlations. May be published.",
    "precision.csv": "Its inverse; zero where no entry was measured. May be published.",
    "standard-errors.csv": "Standard errors of the covariances, privacy noise only; empty where an "
    "entry was never measured. May be published.",
    "partial-correlations.csv": "Partial correlations of measured pairs with 95 % intervals, for "
    "the privacy noise alone (privacy) and with sampling (total). May be published.",
    "covariance-measurements.csv": "Noisy sums as measured, round by round. May be published.",
    COVARIANCE_BLOB: "The noisy covariance release itself; the covariance's other files follow "
    "from it. May be published.",
}


def measurement_files(releases: Releases) -> dict[str, bytes]:
    """The release and its noisy sums in the order in which they were measured."""
    release = releases.covariance
    if release is None:
        return {}
    rows: list[tuple[object, ...]] = []
    for draw in release.draws:
        for index in range(draw.start, draw.stop):
            a, b = (release.columns[int(column)] for column in release.pairs[index])
            value, sigma = float(release.sums[index]), float(release.sigmas[index])
            rows.append((draw.stage, a, b, value, sigma))
    header = ("stage", "column_1", "column_2", "noisy_scaled_sum", "sigma")
    return {
        "covariance-measurements.csv": csv_table(header, rows),
        COVARIANCE_BLOB: release.to_bytes(),
    }


def covariance_files(release: CovarianceRelease, found: Estimate) -> dict[str, bytes]:
    """The completed matrices, and partial correlations of measured pairs."""
    header = ("column", *found.columns)
    files = {}
    for name, matrix in (
        ("covariance.csv", found.covariance),
        ("correlation.csv", found.correlation),
        ("precision.csv", found.precision),
        # What the matrix takes for granted where nothing was measured has no error to state.
        ("standard-errors.csv", np.where(found.measured, found.standard_errors, np.nan)),
    ):
        rows = [
            (column, *(None if np.isnan(value) else float(value) for value in row))
            for column, row in zip(found.columns, matrix, strict=True)
        ]
        files[name] = csv_table(header, rows)
    return files | {"partial-correlations.csv": _partial_table(release, found)}


def _partial_table(release: CovarianceRelease, found: Estimate) -> bytes:
    header = (
        *("column_1", "column_2", "partial_correlation"),
        *("privacy_error", "privacy_low", "privacy_high"),
        *("total_error", "total_low", "total_high", "determined", "selected"),
    )
    table = partial_correlations(found, selected=selected_entries(release, found))
    rows = [
        (
            *(*one.columns, one.value),
            *(one.privacy_error, *one.privacy),
            *(one.total_error, *one.total, str(one.determined), str(one.selected)),
        )
        for one in table.values
    ]
    return csv_table(header, rows)
