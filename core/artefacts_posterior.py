"""Files of analyses: the noisy statistics as measured, and the posteriors that follow from them."""

from __future__ import annotations

import io

import numpy as np

from core.documents import csv_table, json_bytes
from core.free import Free
from core.outcome import Releases
from core.pumba.exports import csv_bytes, document, draws_bytes
from core.pumba.release import StatisticsRelease

#: Stands for the release of one analysis; the first is ``statistics-1.npz``.
STATISTICS_BLOB = "statistics-N.npz"
POSTERIOR_FILES = {
    "posterior.csv": "Posterior means, intervals and shares of variance, one parameter a row. May "
    "be published.",
    "posterior.json": "The same with warnings in words. May be published.",
    "posterior-draws.npz": "Posterior draws: for each analysis its names and one row a draw. May "
    "be published.",
    "statistics.csv": "Noisy statistics behind the posteriors, as measured. May be published.",
    STATISTICS_BLOB: "The noisy statistics of an analysis; its posterior follows from them. May "
    "be published.",
}


def blob_name(index: int) -> str:
    """File of the release of one analysis.

    >>> blob_name(0)
    'statistics-1.npz'
    """
    return STATISTICS_BLOB.replace("N", str(index + 1))


def statistics_files(releases: Releases) -> dict[str, bytes]:
    """The releases of all analyses, and their noisy statistics in one table."""
    if not releases.statistics:
        return {}
    rows = [row for release in releases.statistics for row in _rows(release)]
    header = ("analysis", "statistic", "value", "sigma", "unit")
    files = {"statistics.csv": csv_table(header, rows)}
    for index, release in enumerate(releases.statistics):
        files[blob_name(index)] = release.to_bytes()
    return files


def posterior_files(free: Free, simulated: bool) -> dict[str, bytes]:
    """Summaries, warnings and draws of all analyses; empty forms where none can be answered."""
    posteriors = free.posteriors
    failed = [{"analysis": name, "reason": reason} for name, reason in free.unanswered]
    extra = {"unanswered": failed} if failed else {}
    if not posteriors:
        draws = io.BytesIO()
        np.savez_compressed(draws, allow_pickle=False, analyses=np.array(0))
        return {
            "posterior.csv": csv_table(("analysis", "parameter"), ()),
            "posterior.json": json_bytes({"posteriors": [], **extra}, simulated),
            "posterior-draws.npz": draws.getvalue(),
        }
    return {
        "posterior.csv": csv_bytes(posteriors),
        "posterior.json": json_bytes({**document(posteriors), **extra}, simulated),
        "posterior-draws.npz": draws_bytes(posteriors),
    }


def _rows(release: StatisticsRelease) -> list[tuple[object, ...]]:
    """One row a noisy number: cells in rows, sums of products in half-widths about the middle."""
    name = release.spec.name
    rows: list[tuple[object, ...]] = []
    for table in release.tables:
        cells = [release.schema[column].cells for column in table.clique]
        for place in np.ndindex(table.values.shape):
            labels = [
                f"{column}={labels[code]}"
                for column, labels, code in zip(table.clique, cells, place, strict=True)
            ]
            rows.append((name, " × ".join(labels), int(table.values[place]), table.sigma, "rows"))
    for monomial, statistic in release.measured.items():
        label = " × ".join(monomial) or "complete rows"
        unit = "half-widths about the middle of the bounds" if monomial else "rows"
        rows.append((name, label, statistic.value, statistic.law.sd, unit))
    return rows
