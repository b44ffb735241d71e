"""A slope under heteroscedastic errors: classical against sandwich sampling variance."""

from __future__ import annotations

from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import plots
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
from core.pumba.gram import GramVariable, NoisyGram, draw_grams
from core.pumba.regression import regression_posterior
from core.statistics import Family, NoiseLaw, NoisyStatistic

DRAWS = 2000
EPSILON = 5.0
SLOPE = 0.4
#: Data sets by number of rows: few where stage 1 of fourteen sums needs chains.
COUNTS = {300: 100, 3000: 300, 30_000: 2000}
NAMES = ("x", "y")
#: All sums of products of up to two, and of up to four, columns.
MONOMIALS = {
    degree: [
        key for size in range(1, degree + 1) for key in combinations_with_replacement(NAMES, size)
    ]
    for degree in (2, 4)
}
METHODS = {
    "classical": "classical, 5 sums",
    "classical-14": "classical, 14 sums",
    "hc": "sandwich, 14 sums",
}


def sample(generator: np.random.Generator, count: int) -> dict[str, FloatArray]:
    """Rows with x ~ U(0, 1), y = .3 + .4x + (2x − 1)² U(−.3, .3): within [0, 1]."""
    x = generator.random(count)
    spread = (2 * x - 1) ** 2
    return {"x": x, "y": 0.3 + SLOPE * x + spread * generator.uniform(-0.3, 0.3, count)}


def noisy_gram(
    rows: dict[str, FloatArray], degree: int, generator: np.random.Generator
) -> NoisyGram:
    """Sums of all monomials up to that degree, epsilon split equally (sensitivity 1 each)."""
    keys = MONOMIALS[degree]
    scale = len(keys) / EPSILON
    law = NoiseLaw(Family.LAPLACE, scale)
    sums = {
        key: NoisyStatistic(
            float(np.prod([rows[name] for name in key], axis=0).sum())
            + generator.laplace(0.0, scale),
            law,
        )
        for key in keys
    }
    return NoisyGram(
        tuple(GramVariable(name, 0.0, 1.0) for name in NAMES),
        len(rows["x"]),
        {key[0]: value for key, value in sums.items() if len(key) == 1},
        {(key[0], key[1]): value for key, value in sums.items() if len(key) == 2},
        {key: value for key, value in sums.items() if len(key) > 2},
    )


def block(count: int, sets: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Intervals of the slope, from five sums and from fourteen."""
    found = {name: np.empty((sets, 2)) for name in METHODS}
    for index in range(sets):
        rows = sample(generator, count)
        five, fourteen = noisy_gram(rows, 2, generator), noisy_gram(rows, 4, generator)
        few, many = (draw_grams(problem, DRAWS, generator) for problem in (five, fourteen))
        for name, problem, grams, vcov in (
            ("classical", five, few, "classical"),
            ("classical-14", fourteen, many, "classical"),
            ("hc", fourteen, many, "hc"),
        ):
            draws = regression_posterior(
                problem, grams, "y", ("x",), generator=generator, vcov=vcov
            )
            found[name][index] = equal_tails(draws.values[:, draws.names.index("x")])
    return found


def run(settings: Settings) -> dict[str, Any]:
    """Figures by number of rows."""
    points = []
    for count, sets in COUNTS.items():
        found = replicate(
            partial(block, count),
            settings.sets(sets, 10),
            seed_of("sandwich", str(count)),
            settings.pool,
            size=10,
        )
        points.append(
            {"count": count, "methods": {name: score(found[name], SLOPE) for name in METHODS}}
        )
    return {"points": points}


def lines(figures: dict[str, Any]) -> list[str]:
    """Coverage by n."""
    text = [
        f"x ~ U(0,1), y = .3 + .4x + (2x − 1)² U(−.3,.3), ε = {EPSILON:g} split equally, n known. "
        "The sandwich needs the sums of degree 3 and 4 (14 in all, so each is "
        "noisier); second moments cannot give it. Privacy noise covers for a wrong sampling "
        "variance while n is small; as n grows the classical interval fails.",
        "",
    ]
    return text + markdown(
        ("n", *METHODS.values(), "data sets"),
        [
            (
                f"{point['count']:,}",
                *(
                    f"{point['methods'][name]['coverage']:.3f} "
                    f"({point['methods'][name]['width']:.3g})"
                    for name in METHODS
                ),
                f"{point['methods']['hc']['sets']:,}",
            )
            for point in figures["points"]
        ],
    )


def bars(figures: dict[str, Any]) -> list[Bar]:
    """The sandwich covers at every n, the classical interval does not at the largest."""
    covered = [point["methods"]["hc"]["coverage"] for point in figures["points"]]
    classical = figures["points"][-1]["methods"]["classical"]["coverage"]
    return [
        Bar(
            "uneven errors: the sandwich covers at least .93 at every n",
            ", ".join(map(share, covered)),
            min(covered) >= 0.93,
        ),
        Bar(
            f"uneven errors: the classical interval fails (less than .93) at n = {max(COUNTS):,}",
            share(classical),
            classical < 0.93,
        ),
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Coverage over n."""
    counts = [point["count"] for point in figures["points"]]
    panel = {
        label: (counts, [point["methods"][name]["coverage"] for point in figures["points"]])
        for name, label in METHODS.items()
    }
    return [
        plots.curves(
            folder / "pumba-sandwich.svg",
            {"errors that spread with (2x − 1)²": panel},
            across="rows n",
            up="coverage of the slope",
            alt="Coverage of the slope over n, classical and sandwich variance",
        )
    ]


PART = Part("Uneven errors: classical and sandwich", run, lines, bars, draw)
