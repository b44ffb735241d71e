"""What the statement says of analyses and of a covariance matrix."""

from __future__ import annotations

from core.outcome import Releases
from core.pace.release import CovarianceRelease
from core.plain_text import plain
from core.promise import short
from core.pumba.release import StatisticsRelease, statement_lines

#: Methods in words a reader can follow.
METHOD_WORDS = {
    "pace_auto": "adaptive rounds after a first measurement of everything",
    "pace": "adaptive rounds: the entry that looks worst is measured next",
    "ssp_clip_sure": "all entries once, rows shrunk to a private norm, noise shrunk away",
    "ssp_tight": "all entries once, at the tight sensitivity",
    "ssp": "all entries once",
    "diagonal": "variances only",
    "adaptive_cov": "all entries once, rows shrunk to a private norm",
}


def further_parts(releases: Releases) -> list[str]:
    """What was released beside a synthetic table, for readers."""
    lines = []
    for statistics in releases.statistics:
        lines += [*_statistics(statistics), ""]
    if releases.covariance is not None:
        lines += [*_covariance(releases.covariance), ""]
    return lines


def _statistics(release: StatisticsRelease) -> list[str]:
    names = ", ".join(plain(name) for name in release.schema.names)
    return [
        f"Noisy statistics for the analysis “{plain(release.spec.name)}” "
        f"({release.spec.kind.value}) of {names}. Posterior means and intervals follow from them, "
        "carry the noise, and cost nothing further.",
    ]


def _covariance(release: CovarianceRelease) -> list[str]:
    names = ", ".join(plain(name) for name in release.schema.names)
    return [
        f"A covariance matrix of {release.size} columns, and no others: {names}.",
        "",
        plain(release.estimand),
        "",
        "Correlations, the precision matrix and everything else that is computed from it cost "
        "nothing further.",
        *_chosen(release),
    ]


def _chosen(release: CovarianceRelease) -> list[str]:
    """What must be said of entries that a look at the same rows chose."""
    if not release.rounds:
        return []
    return [
        "",
        "Which entries were measured again was chosen by noisy looks at the same rows: entries "
        "marked as selected tend to look stronger than they are, and their intervals do not "
        "account for that.",
    ]


def further_measurements(releases: Releases) -> list[str]:
    """The same for specialists: numbers, scales and shares."""
    lines = []
    for statistics in releases.statistics:
        name = plain(statistics.spec.name)
        said = map(plain, statement_lines(statistics))
        lines += [f"- Analysis “{name}”: {words}" for words in said]
    if releases.covariance is not None:
        lines += _measured_covariance(releases.covariance)
    return lines


def _measured_covariance(release: CovarianceRelease) -> list[str]:
    rows = (
        "number of rows public"
        if release.rows.public
        else f"number of rows noisy, standard deviation {release.rows.sigma:.4g}"
    )
    means = (
        "means declared in public"
        if release.means.public
        else f"noisy means for {short(release.means.rho)} of rho"
    )
    lines = [
        f"- Covariance: {METHOD_WORDS[release.method]} ({release.method}); {rows}; {means}",
        f"- Covariance: {len(release.sums)} noisy sums in {len(release.draws)} draws, "
        f"{len(release.rounds)} rounds",
    ]
    if release.clip is not None:
        lines.append(
            f"- Covariance: rows shrunk to a squared norm of at most "
            f"{float(release.clip.squared):.4g}, chosen privately for {short(release.clip.rho)} of "
            "rho"
        )
    return lines
