"""Coverage for 2 × 2 tables, for a rare category, and how far a sparse table goes astray."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pumba_comparators import wald_difference, woolf
from benchmarks.pumba_harness import (
    FloatArray,
    Part,
    Settings,
    equal_tails,
    replicate,
    score,
    seed_of,
    share,
)
from benchmarks.report import Bar, markdown
from core.pumba.tables import NoisyTable, draw_counts, table_posterior
from core.statistics import Family, NoiseLaw, NoisyStatistic

DRAWS = 2000
SHARES = np.array([0.2, 0.3, 0.15, 0.35])
SCALE = 4.0
COUNTS = (100, 400, 2000)
#: (share of the rare category, rows)
RARE = ((0.02, 200), (0.02, 2000), (0.002, 2000))
AXES = (("group", ("first", "second")), ("outcome", ("no", "yes")))
TARGETS = {
    "log_odds_ratio": float(np.log(SHARES) @ np.array([1, -1, -1, 1])),
    "risk_difference": 0.35 / 0.5 - 0.3 / 0.5,
}
METHODS = {"naive": "naive", "unknown": "**PUMBA**, n unknown", "known": "**PUMBA**, n known"}


@dataclass(frozen=True)
class Sparse:
    """Many empty cells: ``used`` of ``cells`` hold all rows, evenly."""

    cells: int = 100
    used: int = 10
    rows: int = 1000
    scale: float = 2.0


def discrete_laplace(
    generator: np.random.Generator, scale: float, shape: tuple[int, ...]
) -> FloatArray:
    """Integers with P(z) proportional to exp(−|z|/scale), as a difference of two geometrics."""
    chance = -np.expm1(-1 / scale)
    noise = generator.geometric(chance, shape) - generator.geometric(chance, shape)
    return noise.astype(np.float64)


def noisy_table(
    axes: tuple[tuple[str, tuple[str, ...]], ...],
    values: FloatArray,
    scale: float,
    total: int | None,
) -> NoisyTable:
    """Cells with discrete Laplace noise, the number of rows known or not."""
    law = NoiseLaw(Family.DISCRETE_LAPLACE, scale)
    return NoisyTable(axes, tuple(NoisyStatistic(float(v), law) for v in values), total)


def two_way_block(count: int, sets: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Intervals of log odds ratio and risk difference of setting D."""
    true = generator.multinomial(count, SHARES, sets)
    noisy = true + discrete_laplace(generator, SCALE, true.shape)
    found = {
        "log_odds_ratio naive": woolf(noisy),
        "risk_difference naive": wald_difference(noisy),
    }
    for method, total in (("unknown", None), ("known", count)):
        for target in TARGETS:
            found[f"{target} {method}"] = np.empty((sets, 2))
        for index, values in enumerate(noisy):
            table = noisy_table(AXES, values, SCALE, total)
            drawn = draw_counts(table, DRAWS, generator)
            draws = table_posterior(table, drawn, tuple(TARGETS), generator)
            for target, ends in zip(TARGETS, equal_tails(draws.values).T, strict=True):
                found[f"{target} {method}"][index] = ends
    return found


def rare_block(
    chance: float, count: int, sets: int, generator: np.random.Generator
) -> dict[str, FloatArray]:
    """Intervals of a small proportion, n known."""
    hits = generator.binomial(count, chance, sets)
    true = np.column_stack([count - hits, hits])
    noisy = true + discrete_laplace(generator, SCALE, true.shape)
    intervals = np.empty((sets, 2))
    for index, values in enumerate(noisy):
        table = noisy_table((AXES[1],), values, SCALE, count)
        drawn = draw_counts(table, DRAWS, generator)
        draws = table_posterior(table, drawn, ("proportions",), generator)
        intervals[index] = equal_tails(draws.values[:, 1])
    estimate = noisy[:, 1] / count
    with np.errstate(invalid="ignore"):
        half = 1.959964 * np.sqrt(estimate * (1 - estimate) / count)
    return {"pumba": intervals, "naive": np.column_stack([estimate - half, estimate + half])}


def sparse_block(sets: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Posterior mean of all rows, and of the rows in cells that are truly empty."""
    design = Sparse()
    axes = (("cell", tuple(str(i) for i in range(design.cells))),)
    true = np.zeros(design.cells)
    true[: design.used] = design.rows / design.used
    found = {}
    for method, total in (("unknown", None), ("known", design.rows)):
        found[method] = np.empty((sets, 2))
        for index in range(sets):
            noisy = true + discrete_laplace(generator, design.scale, true.shape)
            drawn = draw_counts(noisy_table(axes, noisy, design.scale, total), DRAWS, generator)
            means = drawn.values.mean(axis=0)
            found[method][index] = means.sum(), means[design.used :].sum()
    return found


def run(settings: Settings) -> dict[str, Any]:
    """Figures of setting D, of rare categories, and of the sparse table."""
    points = []
    for count in COUNTS:
        found = replicate(
            partial(two_way_block, count),
            settings.sets(4000, 200),
            seed_of("tables", str(count)),
            settings.pool,
        )
        scores = {
            target: {name: score(found[f"{target} {name}"], truth) for name in METHODS}
            for target, truth in TARGETS.items()
        }
        points.append({"count": count, "targets": scores})
    rare = []
    for chance, count in RARE:
        found = replicate(
            partial(rare_block, chance, count),
            settings.sets(4000, 200),
            seed_of("rare", str(chance), str(count)),
            settings.pool,
        )
        methods = {name: score(found[name], chance) for name in ("naive", "pumba")}
        rare.append({"chance": chance, "count": count, "methods": methods})
    found = replicate(sparse_block, settings.sets(100, 10), seed_of("sparse"), None)
    sparse = {name: found[name].mean(axis=0).tolist() for name in ("unknown", "known")}
    return {"points": points, "rare": rare, "sparse": sparse}


def lines(figures: dict[str, Any]) -> list[str]:
    """Setting D by target, then the unfavourable tables."""
    sets = figures["points"][0]["targets"]["log_odds_ratio"]["known"]["sets"]
    text = [
        f"2 × 2 table with shares {', '.join(f'{p:g}' for p in SHARES)}, discrete Laplace noise "
        f"of scale {SCALE:g} on each cell, {sets:,} data sets, coverage (mean width). Naive is "
        "Woolf's interval of the log odds ratio, and Wald's of the risk difference, on the noisy "
        "cells; it has none where a cell is 0 or less.",
        "",
    ]
    for target, words in (
        ("log_odds_ratio", "log odds ratio"),
        ("risk_difference", "risk difference"),
    ):
        rows = [
            (
                f"{point['count']:,}",
                *(_cell(point["targets"][target][name]) for name in METHODS),
            )
            for point in figures["points"]
        ]
        text += markdown((f"{words}: n", *METHODS.values()), rows)
    text += [
        "### A rare category",
        "",
        "Coverage of its share, n known. The posterior with Dirichlet(1) is exact for shares "
        "spread evenly over 0 to 1; these lie at its edge, with counts as small as the noise.",
        "",
    ]
    text += markdown(
        ("share", "n", "naive", "**PUMBA**"),
        [
            (
                f"{one['chance']:g}",
                f"{one['count']:,}",
                *(_cell(one["methods"][name]) for name in ("naive", "pumba")),
            )
            for one in figures["rare"]
        ],
    )
    return text + _sparse_lines(figures["sparse"])


def _sparse_lines(sparse: dict[str, list[float]]) -> list[str]:
    design = Sparse()
    text = [
        "### A sparse table",
        "",
        f"{design.cells} cells of which {design.cells - design.used} are empty, {design.rows:,} "
        f"rows, scale {design.scale:g}: counts cannot be negative, so empty cells are believed to "
        "hold rows. This is why PUMBA warns about sparse tables.",
        "",
    ]
    return text + markdown(
        ("", "posterior mean of all rows", "of them in empty cells"),
        [
            (METHODS[name], f"{total:,.0f}", f"{empty:,.0f}")
            for name, (total, empty) in sparse.items()
        ],
    )


def _cell(found: dict[str, float]) -> str:
    return f"{found['coverage']:.3f} ({found['width']:.3g})"


def bars(figures: dict[str, Any]) -> list[Bar]:
    """Setting D: PUMBA within .93 to .97 for both targets, at every n, n known or not."""
    covered = [
        point["targets"][target][name]["coverage"]
        for point in figures["points"]
        for target in TARGETS
        for name in ("unknown", "known")
    ]
    naive = figures["points"][0]["targets"]["log_odds_ratio"]["naive"]["coverage"]
    return [
        Bar(
            "2 × 2 tables: PUMBA covers .93 to .97 for both targets, all n, n known or not",
            f"{min(covered):.3f} to {max(covered):.3f}",
            min(covered) >= 0.93 and max(covered) <= 0.97,
        ),
        Bar("2 × 2 table, n = 100: naive covers less than .85", share(naive), naive < 0.85),
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """No picture: the tables say it all."""
    return []


PART = Part("Tables of counts", run, lines, bars, draw)
