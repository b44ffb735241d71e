"""Coverage, width and type I error for the slope of a noisy simple regression, by method."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import plots
from benchmarks.pumba_augmentation import slopes_given
from benchmarks.pumba_comparators import LineReleases, hybrid_bootstrap, slope_by_ols
from benchmarks.pumba_harness import (
    FloatArray,
    Part,
    Settings,
    equal_tails,
    rejected,
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
BOOTSTRAPS = 1000
SWEEPS, BURN_IN = 20_000, 2_000
LAPLACE_SUMS = 5
VARIABLES = (GramVariable("x", 0.0, 1.0), GramVariable("y", 0.0, 1.0))


@dataclass(frozen=True)
class Design:
    """y = intercept + slope·x + error on [0, 1], five sums with equal shares of epsilon.

    ``x`` is ``arcsine`` (Beta(.5, .5)), ``uniform`` or ``normal`` (N(.5, .2²), clipped);
    ``spread`` is the half-width of a uniform error, or the sd of a normal one with normal x.
    """

    key: str
    label: str
    x: str
    intercept: float
    slope: float
    spread: float
    epsilon: float
    counts: tuple[int, ...]
    sets: int  #: data sets; a quarter of them where n is 30 and stage 1 needs chains
    chains: int  #: data sets on which the data augmentation is run as well

    @property
    def scale(self) -> float:
        """Laplace scale of each sum (sensitivity 1, one row changed)."""
        return LAPLACE_SUMS / self.epsilon

    def sample(
        self, generator: np.random.Generator, shape: tuple[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Rows x and y, clipped to [0, 1]."""
        if self.x == "normal":
            x = generator.normal(0.5, 0.2, shape)
            error = generator.normal(0.0, self.spread, shape)
        else:
            arcsine = self.x == "arcsine"
            x = generator.beta(0.5, 0.5, shape) if arcsine else generator.random(shape)
            error = generator.uniform(-self.spread, self.spread, shape)
        y = self.intercept + self.slope * x + error
        return np.clip(x, 0.0, 1.0), np.clip(y, 0.0, 1.0)


SMALL = (30, 100, 300, 1000)
LARGE = (*SMALL, 10_000)
B = "B"
NULL = "null"
DESIGNS = (
    Design(B, "Setting B: x ~ Beta(.5,.5), y = .2 + .6x + U(−.2,.2), ε = 1.75",
           "arcsine", 0.2, 0.6, 0.2, 1.75, SMALL, 4000, 200),
    Design("milder", "Milder: x ~ Beta(.5,.5), y = .3 + .4x + U(−.3,.3), ε = 2",
           "arcsine", 0.3, 0.4, 0.3, 2.0, SMALL, 2000, 100),
    Design("adverse", "Adverse (R² ≈ .94): x ~ U(0,1), y = .1 + .8x + U(−.1,.1), ε = 2",
           "uniform", 0.1, 0.8, 0.1, 2.0, LARGE, 4000, 0),
    Design("normal-300", "The augmentation's own model: x ~ N(.5,.2²), y = .3 + .4x + N(0,.15²), "
           "ε = 5", "normal", 0.3, 0.4, 0.15, 5.0, (300,), 2000, 100),
    Design("normal-1000", "The augmentation's own model: x ~ N(.5,.2²), y = .3 + .4x + N(0,.15²), "
           "ε = 3", "normal", 0.3, 0.4, 0.15, 3.0, (1000,), 2000, 100),
    Design(NULL, "No effect: x ~ Beta(.5,.5), y = .5 + U(−.3,.3), ε = 2",
           "arcsine", 0.5, 0.0, 0.3, 2.0, LARGE, 4000, 0),
)  # fmt: skip
METHODS = {
    "ols": "least squares, no privacy",
    "naive": "naive",
    "pumba": "**PUMBA**",
    "bootstrap": "hybrid bootstrap",
    "augmentation": "DA-MCMC",
}


def power_sums(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sums of x, x², y, xy, y² along the last axis."""
    products = (x, x * x, y, x * y, y * y)
    return np.stack([product.sum(axis=-1) for product in products], axis=-1)


def noisy_gram(sums: FloatArray, count: int, scale: float) -> NoisyGram:
    """The five noisy sums as PUMBA takes them."""
    law = NoiseLaw(Family.LAPLACE, scale)
    x, xx, y, xy, yy = (NoisyStatistic(float(value), law) for value in sums)
    products = {("x", "x"): xx, ("x", "y"): xy, ("y", "y"): yy}
    return NoisyGram(VARIABLES, count, {"x": x, "y": y}, products)


def releases(
    design: Design, count: int, sets: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """True and noisy sums of data sets, one a row."""
    truth = power_sums(*design.sample(generator, (sets, count)))
    return truth, truth + generator.laplace(0.0, design.scale, truth.shape)


def block(
    design: Design, count: int, sets: int, generator: np.random.Generator
) -> dict[str, FloatArray]:
    """Intervals for the slope of every fast method, and how PUMBA's stage 1 went."""
    truth, noisy = releases(design, count, sets, generator)
    found = {
        "ols": slope_by_ols(LineReleases(truth, count)),
        "naive": slope_by_ols(LineReleases(noisy, count)),
        "pumba": np.empty((sets, 2)),
        "bootstrap": np.empty((sets, 2)),
        "outside": np.empty(sets),
        "gibbs": np.empty(sets),
    }
    for index, sums in enumerate(noisy):
        problem = noisy_gram(sums, count, design.scale)
        grams = draw_grams(problem, DRAWS, generator)
        draws = regression_posterior(problem, grams, "y", ("x",), generator=generator)
        found["pumba"][index] = equal_tails(draws.values[:, draws.names.index("x")])
        found["outside"][index] = grams.diagnostics.outside_support
        found["gibbs"][index] = grams.diagnostics.method == "gibbs"
        found["bootstrap"][index] = hybrid_bootstrap(
            sums, count, design.scale, BOOTSTRAPS, generator
        )
    return found


def augmented_block(
    design: Design, count: int, sets: int, generator: np.random.Generator
) -> dict[str, FloatArray]:
    """Interval and median of the slope by data augmentation."""
    intervals, medians = np.empty((sets, 2)), np.empty(sets)
    for index, sums in enumerate(releases(design, count, sets, generator)[1]):
        slopes = slopes_given(sums, design.scale, count, SWEEPS + BURN_IN, generator)
        intervals[index] = equal_tails(slopes[BURN_IN:])
        medians[index] = np.median(slopes[BURN_IN:])
    return {"interval": intervals, "median": medians}


def run(settings: Settings) -> dict[str, Any]:
    """Figures of every design and number of rows."""
    figures = []
    for design in DESIGNS:
        points = [_point(design, count, settings) for count in design.counts]
        figures.append(
            {
                "key": design.key,
                "label": design.label,
                "slope": design.slope,
                "points": points,
            }
        )
    return {"designs": figures}


def _point(design: Design, count: int, settings: Settings) -> dict[str, Any]:
    print(f"  {design.key}, n = {count:,}", file=sys.stderr, flush=True)
    sets = settings.sets(design.sets // (4 if count == SMALL[0] else 1), 60)
    found = replicate(
        partial(block, design, count),
        sets,
        seed_of("regression", design.key, str(count)),
        settings.pool,
    )
    methods = {name: score(found[name], design.slope) for name in METHODS if name in found}
    zero = {name: rejected(found[name]) for name in METHODS if name in found}
    point: dict[str, Any] = {
        "count": count,
        "methods": methods,
        "rejects_zero": zero,
        "outside": float(found["outside"].mean()),
        "gibbs": float(found["gibbs"].mean()),
    }
    if design.chains:
        again = replicate(
            partial(augmented_block, design, count),
            settings.sets(design.chains, 4),
            seed_of("regression", design.key, str(count), "augmentation"),
            settings.pool,
            size=10,
        )
        methods["augmentation"] = score(again["interval"], design.slope)
        zero["augmentation"] = rejected(again["interval"])
        point["augmentation_median"] = float(np.median(again["median"]))
    return point


# -- words -----------------------------------------------------------------------------------


def lines(figures: dict[str, Any]) -> list[str]:
    """Coverage tables, then how often a slope of zero is rejected."""
    text = [
        "x and y in [0, 1], n known, Laplace noise with a fifth of ε on each of Σx, Σx², Σy, Σxy, "
        f"Σy². Coverage of the true slope by the 95 % interval (mean width), {DRAWS:,} draws a "
        "posterior. Naive treats the release as the truth; where its x² or residuals sum to 0 or "
        f"less it has no interval, which counts as a miss. DA-MCMC runs {SWEEPS:,} sweeps after "
        f"{BURN_IN:,}, on fewer data sets; its model takes x and y to be Gaussian before clamping, "
        "which is wrong but in the rows that say otherwise. *Outside*: releases that are no "
        "table's sums. PUMBA is no promise of at least .95: it is far above where n is small, and "
        "a little below where R² is high.",
        "",
    ]
    for design in figures["designs"]:
        if design["key"] == NULL:
            continue
        text += [f"### {design['label']}", ""]
        text += markdown(
            ("n", *METHODS.values(), "DA median", "outside", "data sets"),
            [
                (
                    f"{point['count']:,}",
                    *(_cell(point["methods"].get(name)) for name in METHODS),
                    share(point.get("augmentation_median", float("nan"))),
                    f"{point['outside']:.1%}",
                    _sets(point),
                )
                for point in design["points"]
            ],
        )
    return text + _type_one(figures)


def _type_one(figures: dict[str, Any]) -> list[str]:
    (design,) = [one for one in figures["designs"] if one["key"] == NULL]
    text = [
        "### Type I error",
        "",
        f"{design['label']}: share of data sets whose 95 % interval excludes a slope of 0 (no "
        "interval: not excluded, in favour of the naive method).",
        "",
    ]
    return text + markdown(
        ("n", *(METHODS[name] for name in ("ols", "naive", "pumba", "bootstrap")), "outside"),
        [
            (
                f"{point['count']:,}",
                *(
                    share(point["rejects_zero"][name])
                    for name in ("ols", "naive", "pumba", "bootstrap")
                ),
                f"{point['outside']:.1%}",
            )
            for point in design["points"]
        ],
    )


def _cell(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['coverage']:.3f} ({found['width']:.3g})"


def _sets(point: dict[str, Any]) -> str:
    methods = point["methods"]
    text = f"{methods['pumba']['sets']:,}"
    return f"{text}, DA {methods['augmentation']['sets']}" if "augmentation" in methods else text


def bars(figures: dict[str, Any]) -> list[Bar]:
    """Setting B, and the type I error."""
    designs = {one["key"]: one["points"] for one in figures["designs"]}
    by_count = {point["count"]: point["methods"] for point in designs[B]}
    covered = [by_count[count]["pumba"]["coverage"] for count in (100, 300, 1000)]
    naive = by_count[30]["naive"]["coverage"]
    errors = [point["rejects_zero"]["pumba"] for point in designs[NULL]]
    return [
        Bar(
            "slope, setting B: PUMBA covers at least .945 at n = 100, 300, 1000",
            ", ".join(map(share, covered)),
            min(covered) >= 0.945,
        ),
        Bar("slope, setting B: naive covers less than .15 at n = 30", share(naive), naive < 0.15),
        Bar(
            "slope of 0: PUMBA's type I error is at most .06 at every n",
            f"at most {max(errors):.3f}",
            max(errors) <= 0.06,
        ),
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Coverage over n, a panel a design."""
    titles = {B: "setting B", "milder": "milder", "adverse": "adverse (R² ≈ .94)"}
    panels = {
        titles[design["key"]]: {
            METHODS[name].strip("*"): (
                [point["count"] for point in design["points"]],
                [point["methods"][name]["coverage"] for point in design["points"]],
            )
            for name in METHODS
            if name in design["points"][0]["methods"]
        }
        for design in figures["designs"]
        if design["key"] in titles
    }
    return [
        plots.curves(
            folder / "pumba-regression.svg",
            panels,
            across="rows n",
            up="coverage of the slope",
            alt="Coverage of the slope over n for each method, one panel a design",
        )
    ]


PART = Part("Slope of a simple regression", run, lines, bars, draw)
