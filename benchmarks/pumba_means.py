"""Coverage and width of intervals for the mean of a bounded column, by method and design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks import pumba_plots
from benchmarks.pumba_comparators import (
    MeanReleases,
    bootstrap_mean,
    naive_mean,
    oracle,
    plug_in,
)
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
from core.pumba.means import BoundedMean, draw_sums, mean_posterior
from core.statistics import Family, NoiseLaw, NoisyStatistic

DRAWS = 2000
BOOTSTRAPS = 1000
HEADLINE = "A"
Sampler = Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def _beta(generator: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return generator.beta(2.0, 2.0, shape)


def _lognormal(generator: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Standard lognormal, clipped at 3 and scaled to [0, 1]."""
    return np.minimum(generator.lognormal(0.0, 1.0, shape), 3.0) / 3.0


def _lognormal_means() -> tuple[float, float]:
    """Mean of the clipped and of the whole standard lognormal, over 3."""
    end = np.log(3.0)
    clipped = np.exp(0.5) * ndtr(end - 1.0) + 3.0 * ndtr(-end)
    return float(clipped) / 3.0, float(np.exp(0.5)) / 3.0


@dataclass(frozen=True)
class Design:
    """Data on [0, 1], the budget of the two sums, and the true mean and variance."""

    key: str
    label: str
    sample: Sampler
    count: int
    epsilon: float
    first: float  #: share of epsilon for the sum of x; the rest is for the sum of x²
    mean: float
    variance: float
    beyond: float | None = None  #: mean of the data before they were clipped, if another one

    @property
    def scales(self) -> tuple[float, float]:
        """Laplace scales of the sums of x and x² (sensitivity 1 each, one row changed)."""
        return 1 / (self.first * self.epsilon), 1 / ((1 - self.first) * self.epsilon)


def designs() -> tuple[Design, ...]:
    """Design A, and those in which the plug-in looks better or the estimand worse."""
    clipped, whole = _lognormal_means()
    # E[min(X, 3)²]/9 for the standard lognormal X
    end = np.log(3.0)
    second = float(np.exp(2.0) * ndtr(end - 2.0) + 9.0 * ndtr(-end)) / 9.0
    spread = second - clipped**2
    return (
        Design(HEADLINE, "Beta(2,2), n = 200, ε = 2, 90/10", _beta, 200, 2.0, 0.9, 0.5, 0.05),
        Design("even-100", "Beta(2,2), n = 100, ε = 1, 50/50", _beta, 100, 1.0, 0.5, 0.5, 0.05),
        Design("even-1000", "Beta(2,2), n = 1000, ε = 1, 50/50", _beta, 1000, 1.0, 0.5, 0.5, 0.05),
        *(
            Design(
                f"clipped-{count}",
                f"lognormal clipped at 3, n = {count}, ε = 2, 50/50",
                _lognormal,
                count,
                2.0,
                0.5,
                clipped,
                spread,
                whole,
            )
            for count in (200, 2000)
        ),
    )


METHODS = {
    "oracle": "Wang et al., variance known",
    "pumba": "**PUMBA**",
    "plug_in": "plug-in, negative variance = no interval",
    "plug_in_floored": "plug-in, floored at 0",
    "bootstrap": "parametric bootstrap",
    "naive": "naive",
}


def block(design: Design, sets: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Intervals of every method on ``sets`` data sets, and PUMBA's for the sample's own mean."""
    rows = design.sample(generator, (sets, design.count))
    first, second = design.scales
    totals = rows.sum(axis=1) + generator.laplace(0.0, first, sets)
    squares = (rows**2).sum(axis=1) + generator.laplace(0.0, second, sets)
    releases = MeanReleases(totals, squares, design.count, first)
    found = {
        "oracle": oracle(releases, design.variance),
        "plug_in": plug_in(releases, floor=False),
        "plug_in_floored": plug_in(releases, floor=True),
        "bootstrap": bootstrap_mean(releases, BOOTSTRAPS, generator),
        "naive": naive_mean(releases),
        "pumba": np.empty((sets, 2)),
        "pumba_sample": np.empty((sets, 2)),
        "sample_mean": rows.mean(axis=1),
    }
    for index in range(sets):
        problem = BoundedMean(
            "x",
            0.0,
            1.0,
            design.count,
            NoisyStatistic(totals[index], NoiseLaw(Family.LAPLACE, first)),
            NoisyStatistic(squares[index], NoiseLaw(Family.LAPLACE, second)),
        )
        sums = draw_sums(problem, DRAWS, generator)
        for name, estimand in (("pumba", "population"), ("pumba_sample", "sample")):
            draws = mean_posterior(problem, sums, generator=generator, estimand=estimand)
            found[name][index] = equal_tails(draws.values[:, 0])
    return found


def run(settings: Settings) -> dict[str, Any]:
    """Figures of every design: by method, and of the estimands."""
    figures = []
    for design in designs():
        sets = settings.sets(10_000, 500)
        found = replicate(partial(block, design), sets, seed_of("means", design.key), settings.pool)
        sample = found["sample_mean"]
        estimands = {
            "population interval, population mean": score(found["pumba"], design.mean),
            "population interval, mean of the rows": score(found["pumba"], sample),
            "sample interval, mean of the rows": score(found["pumba_sample"], sample),
        }
        if design.beyond is not None:
            estimands["population interval, mean before clipping"] = score(
                found["pumba"], design.beyond
            )
        figures.append(
            {
                "key": design.key,
                "label": design.label,
                "methods": {name: score(found[name], design.mean) for name in METHODS},
                "estimands": estimands,
            }
        )
    return {"designs": figures}


def lines(figures: dict[str, Any]) -> list[str]:
    """One table a question."""
    text = [
        f"x in [0, 1], Laplace noise on Σx and Σx², n known, {DRAWS:,} draws a posterior. Coverage "
        "of the true mean by the 95 % interval, with the mean width of the intervals that exist; a "
        "data set without an interval is a miss. The plug-in's failure depends on the split of the "
        "budget and on what is done with a negative variance: with an even split and a floor it is "
        "nearly fine, and at n = 1000 every method but the naive one is.",
        "",
    ]
    for design in figures["designs"]:
        sets = design["methods"]["pumba"]["sets"]
        text += [f"### {design['label']} ({sets:,} data sets)", ""]
        text += markdown(
            ("method", "coverage", "s.e.", "mean width", "no interval"),
            [
                (
                    METHODS[name],
                    share(found["coverage"]),
                    f"{found['error']:.4f}",
                    f"{found['width']:.4f}",
                    f"{found['undefined']:.1%}" if found["undefined"] else "",
                )
                for name, found in design["methods"].items()
            ],
        )
    text += [
        "### What PUMBA's interval is about",
        "",
        "The interval for the population has sampling variance in it, the one for the rows "
        "themselves has not; and it is the clipped population's mean that the sums know.",
        "",
    ]
    text += markdown(
        ("design", "interval and target", "coverage", "mean width"),
        [
            (design["label"], name, share(found["coverage"]), f"{found['width']:.4f}")
            for design in figures["designs"]
            for name, found in design["estimands"].items()
        ],
    )
    return text


def bars(figures: dict[str, Any]) -> list[Bar]:
    """Design A: coverage of PUMBA within .945 to .965, of the plug-in below .88."""
    (found,) = [one["methods"] for one in figures["designs"] if one["key"] == HEADLINE]
    pumba, plug = found["pumba"]["coverage"], found["plug_in"]["coverage"]
    return [
        Bar("mean, design A: PUMBA covers .945 to .965", share(pumba), 0.945 <= pumba <= 0.965),
        Bar("mean, design A: the plug-in covers less than .88", share(plug), plug < 0.88),
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Coverage against relative width, a point a method."""
    return [pumba_plots.coverage_and_width(figures["designs"], folder / "pumba-means.svg")]


PART = Part("Mean of a bounded column", run, lines, bars, draw)
