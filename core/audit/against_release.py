"""Synthetic rows against the noisy tables that were released: free, and fit to be published.

The released tables are off by their noise, so each distance stands beside the distance that the
noise alone gives.  Rows that follow the release as far as it can be known lie at or below that
baseline; the triangle inequality then bounds how far they are from the real tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.audit.distances import kullback_leibler, total_variation
from core.audit.figures import Figure
from core.audit.worlds import World
from core.errors import EstimationError
from core.privci.compress import project_on_simplex
from core.releases import NoisyMarginal, TreeRelease

FloatArray = NDArray[np.float64]

#: Beyond this σ the discrete Gaussian's mean absolute value is the normal's to 1 in 10^6.
EXACT_SIGMA = 300.0
NOISE = "what the noise of the release alone gives"


@dataclass(frozen=True, eq=False, repr=False)
class NoisyDistances:
    """Distances of synthetic rows to released noisy tables.

    Attributes
    ----------
    names
        Columns of each table.
    tv
        (tables,) half the sum of absolute differences between noisy and synthetic shares; noise
        may take it above 1.
    kl
        (tables,) divergence of the synthetic shares from the noisy ones in nats, after the noisy
        table was projected on the simplex.
    tv_noise, kl_noise
        (tables,) what both would be on average if the synthetic shares were the truth.
    merged
        (tables,) True where the table has compressed cells.
    """

    names: tuple[tuple[str, ...], ...]
    tv: FloatArray
    kl: FloatArray
    tv_noise: FloatArray
    kl_noise: FloatArray
    merged: tuple[bool, ...]

    def worst(self, count: int) -> tuple[int, ...]:
        """Positions of the tables furthest beyond their noise, furthest first."""
        order = np.argsort(self.tv_noise - self.tv, kind="stable")[:count]
        return tuple(int(place) for place in order)


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseDistances:
    """Distances to the released one- and two-way tables; of synthetic rows they may be published.

    Attributes
    ----------
    one_way, two_way
        Tables that were released; None where ``reason`` says why.
    reason
        Why nothing could be compared, or an empty text.
    private
        True when real rows were compared instead of synthetic ones.
    """

    one_way: NoisyDistances | None
    two_way: NoisyDistances | None
    reason: str = ""
    private: bool = False

    def figures(self) -> tuple[Figure, ...]:
        """Means over the tables, and the tables that are furthest beyond their noise."""
        return (
            *_figures("one_way", "columns", self.one_way, self),
            *_figures("two_way", "pairs of columns", self.two_way, self),
        )


def against_release(
    release: TreeRelease, synthetic: World, *, draws: int = 200, seed: int = 0
) -> ReleaseDistances:
    """Compare synthetic rows with every released noisy table.

    Parameters
    ----------
    release
        Noisy one-way tables on declared cells, two-way tables on compressed cells.
    synthetic
        Rows with the release's cells; they are recoded to the compressed ones where needed.
    draws, seed
        Of the simulated noise behind ``kl_noise``.

    Raises
    ------
    EstimationError
        When the rows were not made with the release's declarations.

    Notes
    -----
    Costs nothing: post-processing of released values.  Under add_remove the row count is noisy
    too; its error is of second order here.
    """
    for column in release.schema.columns:
        if column.name not in synthetic.schema or synthetic.size(column.name) != column.size:
            raise EstimationError(f"column {column.name!r} has other cells than in the release")
    if synthetic.rows == 0:
        return ReleaseDistances(None, None, f"no rows in the {synthetic.name}", synthetic.private)
    if not release.total > 0:
        reason = "the released row count is not positive: the noise hides the table"
        return ReleaseDistances(None, None, reason, synthetic.private)
    generator = np.random.default_rng(seed)
    two_way = None
    if release.two_way:
        two_way = _distances(release, release.two_way, synthetic, draws, generator, recode=True)
    reason = "" if release.two_way else "no pair of columns was measured"
    one_way = _distances(release, release.one_way, synthetic, draws, generator, recode=False)
    return ReleaseDistances(one_way, two_way, reason, synthetic.private)


def _distances(
    release: TreeRelease,
    marginals: Sequence[NoisyMarginal],
    synthetic: World,
    draws: int,
    generator: np.random.Generator,
    *,
    recode: bool,
) -> NoisyDistances:
    """Distances to these tables, on compressed cells if ``recode``."""
    found = np.zeros((4, len(marginals)))
    merged = []
    for place, marginal in enumerate(marginals):
        p = released_shares(synthetic, marginal.clique, release, recode=recode)
        noisy = marginal.values.astype(np.float64).ravel() / release.total
        deviation = marginal.sigma / release.total
        drawn = p + generator.normal(0.0, deviation, (draws, p.size))
        found[:, place] = (
            total_variation(noisy, p),
            kullback_leibler(project_on_simplex(noisy, 1.0), p),
            0.5 * p.size * mean_absolute_noise(marginal.sigma) / release.total,
            np.mean([kullback_leibler(row, p) for row in _projected(drawn)]),
        )
        merged.append(recode and any(name in release.recoding.maps for name in marginal.clique))
    tv, kl, tv_noise, kl_noise = found
    names = tuple(marginal.clique for marginal in marginals)
    return NoisyDistances(names, tv, kl, tv_noise, kl_noise, tuple(merged))


def released_shares(
    synthetic: World, names: Sequence[str], release: TreeRelease, *, recode: bool
) -> FloatArray:
    """Synthetic shares on the cells of a released table, flat; on compressed ones if ``recode``."""
    flat, cells = np.zeros(synthetic.rows, dtype=np.int64), 1
    for name in names:
        size, codes = synthetic.size(name), synthetic.codes[name]
        if recode and name in release.recoding.maps:
            codes, size = release.recoding.maps[name][codes], release.recoding.size(name, size)
        flat, cells = flat * size + codes, cells * size
    return np.bincount(flat, minlength=cells) / max(synthetic.rows, 1)


def _projected(rows: FloatArray) -> FloatArray:
    """Nearest shares to each row (Euclidean): the simplex projection of many rows at once."""
    falling = -np.sort(-rows, axis=1)
    shifts = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = np.count_nonzero(falling > shifts, axis=1) - 1
    projected: FloatArray = np.maximum(rows - np.take_along_axis(shifts, last[:, None], 1), 0.0)
    return projected


def mean_absolute_noise(sigma: float) -> float:
    """Mean absolute value of the discrete Gaussian, in persons.

    >>> round(mean_absolute_noise(10.0), 4), round(mean_absolute_noise(1e6) / 1e6, 4)
    (7.9722, 0.7979)
    """
    if sigma > EXACT_SIGMA:
        return sigma * math.sqrt(2 / math.pi)
    reach = np.arange(1, max(math.ceil(12 * sigma), 1) + 1, dtype=np.float64)
    mass = np.exp(-(reach**2) / (2 * sigma**2))
    return float(2 * (reach @ mass) / (1 + 2 * mass.sum()))


def _figures(
    key: str, tables: str, found: NoisyDistances | None, whole: ReleaseDistances
) -> tuple[Figure, ...]:
    """Mean distances over some tables, and the worst one."""
    private = whole.private
    start, title = f"fidelity.released.{key}", f"to the released {tables}"
    if found is None:
        return (
            Figure(
                f"{start}.tv",
                f"Total variation {title}",
                None,
                "share",
                private,
                reason=whole.reason,
            ),
        )
    count = sum(found.merged)
    caveat = f"{count} of {len(found.names)} on pooled cells" if count else ""
    worst = found.worst(1)[0]
    furthest = "largest in view of its noise: " + " × ".join(found.names[worst])

    def figure(end: str, words: str, unit: str, value: float, noise: float) -> Figure:
        return Figure(
            f"{start}.{end}",
            words,
            value,
            unit,
            private,
            baseline=noise,
            baseline_words=NOISE,
            reason=caveat,
        )

    variation, divergence = f"Total variation {title}", f"Kullback-Leibler divergence {title}"
    mean, mean_noise = float(found.tv.mean()), float(found.tv_noise.mean())
    tv, noise = float(found.tv[worst]), float(found.tv_noise[worst])
    kl, kl_noise = float(found.kl.mean()), float(found.kl_noise.mean())
    return (
        figure("tv", f"{variation}, mean", "share", mean, mean_noise),
        figure("tv.worst", f"{variation}, {furthest}", "share", tv, noise),
        figure("kl", f"{divergence}, mean", "nats", kl, kl_noise),
    )
