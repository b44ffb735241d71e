"""Whether a release can be what it says: its draws, noise and flags against its price and terms.

A bundle is not signed, and a release that was made up can still be consistent.  What is refused
here is one that contradicts itself: more noise promised than added, draws that cost another sum
than the account says, an exact number of rows where that number is protected, a flag left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from core.errors import BundleError
from core.moments import FloatArray, MomentRequest
from core.outcome import Release, Releases
from core.pace.frames import count_is_public
from core.pace.release import CovarianceRelease, Draw
from core.private import sensitivity
from core.private.feature_sensitivity import moments_sensitivity
from core.private.vault import DOMAIN_FLAG, SIMULATED_FLAG, UNIT_FLAG
from core.provenance import Provenance, Relation
from core.pumba.layouts import layouts
from core.pumba.release import StatisticsRelease
from core.releases import TreeRelease

#: Scales are floats: they may fall short of their price by this much.
ROUNDING = 1e-9


def check_prices(releases: Releases) -> None:
    """Refuse releases that contradict their own price, terms or flags.

    Raises
    ------
    BundleError
        Naming what does not fit.
    """
    for release in releases.all:
        _check_flags(release)
    if releases.tree is not None:
        _check_tree(releases.tree)
    for statistics in releases.statistics:
        _check_statistics(statistics)
    if releases.covariance is not None:
        _check_covariance(releases.covariance)


def check_tables(release: TreeRelease) -> None:
    """Refuse a tree whose tables are not those of its columns, merged cells and edges.

    Raises
    ------
    BundleError
        Naming what does not fit.
    """
    sizes = {column.name: column.size for column in release.schema.columns}
    for name, cells in release.recoding.maps.items():
        whole = cells.ndim == 1 and cells.dtype.kind in "iu" and len(cells) == sizes.get(name)
        if not whole or set(cells.tolist()) != set(range(len(set(cells.tolist())))):
            raise BundleError(f"the tree merges cells of {name!r} in an impossible way")
    merged = {name: release.recoding.size(name, size) for name, size in sizes.items()}
    alone = [(name,) for name in sorted(sizes)]
    for tables, cliques, shape in (
        (release.one_way, alone, sizes),
        (release.two_way, list(release.edges), merged),
    ):
        # A tree that was cancelled lacks the last ones.
        whole = release.partial or len(tables) == len(cliques)
        if not whole or [table.clique for table in tables] != cliques[: len(tables)]:
            raise BundleError("the tables of the tree are not those of its columns and edges")
        for table in tables:
            wanted = tuple(shape.get(name, 0) for name in table.clique)
            sound = table.values.shape == wanted and table.values.dtype == np.int64
            if not sound or not 0 < table.sigma < math.inf:
                raise BundleError(f"the table of {' × '.join(table.clique)} has another shape")


def _check_flags(release: Release) -> None:
    """Caveats that follow from what the release holds are among its flags."""
    where = release.provenance
    needed = {
        SIMULATED_FLAG: where.simulated,
        DOMAIN_FLAG: bool(release.schema.data_dependent),
        UNIT_FLAG: not where.unit.verified,
    }
    for flag, applies in needed.items():
        if applies and flag not in where.flags:
            raise BundleError(f"the release of {where.what!r} leaves out its flag: {flag}")


def _rows_are_public(where: Provenance) -> bool:
    return where.relation is Relation.REPLACE_ONE and where.unit.rows == 1


def _check_rows(where: Provenance, exact: bool) -> None:
    if exact and not _rows_are_public(where):
        raise BundleError(
            f"the release of {where.what!r} holds an exact number of rows, which its relation "
            "protects"
        )


def _check_sum(where: Provenance, costs: Iterable[Fraction]) -> None:
    if sum(costs, Fraction(0)) != where.debited or where.debited > where.rho:
        raise BundleError(
            f"the draws of the release of {where.what!r} cost another sum than its account says"
        )


def _check_noise(where: Provenance, sigmas: FloatArray, squared: Fraction, rho: Fraction) -> None:
    """Noise of these standard deviations costs no more than ``rho``."""
    least = math.inf if rho <= 0 else math.sqrt(squared / (2 * rho))
    if np.any(sigmas < least * (1 - ROUNDING)):
        raise BundleError(
            f"the release of {where.what!r} has less noise than the price of its draws asks for"
        )


def _check_tree(release: TreeRelease) -> None:
    """Tables that were drawn together share their price evenly."""
    where = release.provenance
    _check_rows(where, release.public_rows is not None)
    squared = sensitivity.histograms(1, where.relation, where.unit.rows)
    for table in (*release.one_way, *release.two_way):
        _check_noise(where, np.array([table.sigma]), squared, table.rho)
    if sum(table.rho for table in (*release.one_way, *release.two_way)) > where.debited:
        raise BundleError("the tables of the tree cost more than its account says")


# -- analyses --------------------------------------------------------------------------------


def _check_statistics(release: StatisticsRelease) -> None:
    where, spec = release.provenance, release.spec
    _check_rows(where, release.public_rows is not None)
    if release.shared_rows is not None and (spec.rows != "tree" or _rows_are_public(where)):
        raise BundleError(f"analysis {spec.name!r} holds a number of rows that it does not use")
    costs = (*(table.rho for table in release.tables), *(sums.rho for _, sums in release.sums))
    _check_sum(where, costs)
    for table in release.tables:
        squared = sensitivity.histograms(1, where.relation, where.unit.rows)
        _check_noise(where, np.array([table.sigma]), squared, table.rho)
    asked = _asked(release)
    for name, sums in release.sums:
        if asked.get(name) != sums.request:
            raise BundleError(f"analysis {spec.name!r} holds sums that its question does not need")
        squared = moments_sensitivity(sums.request, release.schema, where.relation, where.unit.rows)
        sigma = sums.unit_sigma / sums.request.whole
        _check_noise(where, np.array([sigma]), squared, sums.rho)


def _asked(release: StatisticsRelease) -> dict[str, MomentRequest]:
    """Sums that the question needs, by the draws that the release names."""
    where, spec = release.provenance, release.spec
    if spec.counts:
        return {}
    frame = spec.frame(release.schema)
    free = _rows_are_public(where) and not frame.may_miss(release.schema)
    known = spec.by is None and (spec.rows == "tree" or free)
    names = tuple(name for name, _ in release.split)
    for layout in layouts(spec, frame, where.relation, count_known=known):
        if layout.names == names:
            return dict(layout.draws)
    return {}


# -- a covariance ----------------------------------------------------------------------------


def _check_covariance(release: CovarianceRelease) -> None:
    where, rows, means = release.provenance, release.rows, release.means
    _check_rows(where, rows.public)
    if rows.public and not count_is_public(release.schema, where.relation):
        raise BundleError(
            "the covariance holds an exact number of complete rows, and rows may miss a column"
        )
    costs = [rows.rho, means.rho, *(draw.rho for draw in release.draws)]
    costs += [step.selection_rho for step in release.rounds]
    costs += [] if release.clip is None else [release.clip.rho]
    _check_sum(where, costs)
    if not rows.public:
        squared = Fraction(where.unit.rows**2)  # one row more, less, or no longer complete
        _check_noise(where, np.array([rows.sigma]), squared, rows.rho)
    if not means.public:
        _check_means(release)
    centres = np.array([scale.centre for _, scale in release.scales])
    if not np.array_equal(centres, means.values):
        raise BundleError("the covariance is about other centres than the means it names")
    for draw in release.draws:
        _check_draw(release, draw)


def _check_means(release: CovarianceRelease) -> None:
    """Means are measured about the middle of the declared bounds, in half-ranges."""
    where, means = release.provenance, release.means
    ranges = [release.schema[name].bounds for name in release.columns]
    widths = np.array([(high - low) / 2 or 1.0 for low, high in ranges])
    squared = sensitivity.centred_sums(
        [Fraction(1)] * release.size, where.relation, where.unit.rows
    )
    _check_noise(where, means.sigmas * release.rows.value / widths, squared, means.rho)


def _check_draw(release: CovarianceRelease, draw: Draw) -> None:
    where = release.provenance
    pairs = release.pairs[draw.start : draw.stop]
    if not len(pairs):
        raise BundleError("a draw of the covariance measured nothing")
    squared = sensitivity.moment_vector(
        [(release.columns[a], release.columns[b]) for a, b in pairs.tolist()],
        where.relation,
        where.unit.rows,
        weight_squared=draw.diagonal_weight**2,
        clip_squared=draw.clip_squared,
    )
    weights = np.where(pairs[:, 0] == pairs[:, 1], float(draw.diagonal_weight), 1.0)
    _check_noise(where, release.sigmas[draw.start : draw.stop] * weights, squared, draw.rho)
