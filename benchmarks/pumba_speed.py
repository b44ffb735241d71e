"""Effective draws a second against data augmentation, and cost against drawing the noise itself.

Times are processor seconds of one thread, so that ratios hold on a busy machine as well.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks import plots, pumba_multiple, pumba_regression
from benchmarks.pumba_augmentation import chain, interpreted_chain
from benchmarks.pumba_comparators import effective_size
from benchmarks.pumba_harness import FloatArray, Part, Settings, seed_of
from benchmarks.report import Bar, markdown
from core.pumba.draws import Diagnostics
from core.pumba.gram import Method, NoisyGram, draw_grams
from core.pumba.regression import regression_posterior

COUNTS = (30, 100, 300, 1000)
EPSILON = 2.0
RELEASES = 5
DRAWS, SWEEPS, BURN_IN, INTERPRETED_SWEEPS = 100_000, 20_000, 1_000, 200
#: The promised number of rows for the comparison with data augmentation.
PROMISED = 1000
WIDE = 10_000
WAYS = {
    "pumba": "PUMBA",
    "gibbs": "PUMBA, Gibbs only",
    "compiled": "DA-MCMC, numba",
    "interpreted": "DA-MCMC, NumPy",
}


def slopes(
    problem: NoisyGram, draws: int, generator: np.random.Generator, method: Method = "auto"
) -> tuple[FloatArray, Diagnostics]:
    """Both stages of a simple regression, and how the first went."""
    grams = draw_grams(problem, draws, generator, method=method)
    found = regression_posterior(problem, grams, "y", ("x",), generator=generator)
    return found.values[:, found.names.index("x")], found.diagnostics


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the fastest run."""
    best = np.inf
    for _ in range(repeats):
        start = process_time()
        work()
        best = min(best, process_time() - start)
    return float(best)


def _rates(count: int, sums: FloatArray, settings: Settings) -> dict[str, float]:
    """Effective draws of the slope a second, of every way, for one release."""
    scale = pumba_regression.LAPLACE_SUMS / EPSILON
    generator = np.random.default_rng(seed_of("speed", "draws", str(count)))
    problem = pumba_regression.noisy_gram(sums, count, scale)
    found = {}
    methods: dict[str, Method] = {"pumba": "auto", "gibbs": "gibbs"}
    for name, method in methods.items():
        draws = settings.sets(DRAWS, 20_000)
        start = process_time()
        drawn, diagnostics = slopes(problem, draws, generator, method)
        elapsed = process_time() - start
        # Chains run side by side, and their own diagnostics know what they are worth.
        chains = diagnostics.method == "gibbs"
        found[name] = (diagnostics.effective if chains else effective_size(drawn)) / elapsed
    begin = 0.5 + 0.25 * generator.standard_normal((2, count))
    sweeps = settings.sets(SWEEPS, 4000)
    start = process_time()
    drawn, _ = chain(sums, scale, begin, sweeps + BURN_IN, generator)
    elapsed = process_time() - start
    effective = effective_size(drawn[BURN_IN:])
    found["compiled"] = effective / elapsed
    # The interpreted chain is the same chain, so that its draws are worth as much.
    start = process_time()
    interpreted_chain(sums, scale, begin, INTERPRETED_SWEEPS, generator)
    elapsed = (process_time() - start) * (sweeps + BURN_IN) / INTERPRETED_SWEEPS
    found["interpreted"] = effective / elapsed
    return found


def _against_augmentation(settings: Settings) -> list[dict[str, Any]]:
    design = pumba_regression.Design(
        "speed", "", "arcsine", 0.2, 0.6, 0.2, EPSILON, COUNTS, 0, 0
    )  # the rows of setting B
    points = []
    for count in COUNTS:
        generator = np.random.default_rng(seed_of("speed", str(count)))
        releases = pumba_regression.releases(design, count, settings.sets(RELEASES, 2), generator)[
            1
        ]
        chain(releases[0], design.scale, np.full((2, count), 0.5), 2, generator)  # compiles
        slopes(pumba_regression.noisy_gram(releases[0], count, design.scale), 1000, generator)
        rates = [_rates(count, sums, settings) for sums in releases]
        medians = {name: float(np.median([rate[name] for rate in rates])) for name in WAYS}
        points.append({"count": count, "rates": medians})
    return points


def _against_noise() -> list[dict[str, Any]]:
    """Cost of posteriors in units of drawing as many Laplace variates as there are sums."""
    generator = np.random.default_rng(seed_of("speed", "noise"))
    design = pumba_regression.DESIGNS[0]
    sums = pumba_regression.releases(design, PROMISED, 1, generator)[1][0]
    simple = pumba_regression.noisy_gram(sums, PROMISED, design.scale)
    (wide,) = [one for one in pumba_multiple.DESIGNS if one.key == "p10"]
    gram = pumba_multiple.noisy_gram(wide.sample(generator, wide.count), wide, generator)
    predictors = wide.names[:-1]

    def multiple() -> None:
        grams = draw_grams(gram, WIDE, generator)
        regression_posterior(gram, grams, "y", predictors, generator=generator)

    cases = (
        ("simple", DRAWS, 5, lambda: slopes(simple, DRAWS, generator)),
        ("p10", WIDE, 77, multiple),
    )
    found = []
    for key, draws, size, work in cases:
        noise = seconds(lambda d=draws, s=size: generator.laplace(size=(d, s)), 15)  # type: ignore[misc]
        found.append(
            {"key": key, "draws": draws, "sums": size, "noise": noise, "work": seconds(work, 7)}
        )
    return found


def run(settings: Settings) -> dict[str, Any]:
    """Both comparisons."""
    return {"augmentation": _against_augmentation(settings), "noise": _against_noise()}


def lines(figures: dict[str, Any]) -> list[str]:
    """Effective draws a second, then cost in units of noise."""
    text = [
        f"Rows of setting B, ε = {EPSILON:g}; effective draws of the slope a processor second "
        "(Geyer's initial monotone sequence; independent draws count fully), both stages, one "
        "thread, median over releases. The augmentation is one function, compiled by numba and "
        "run as NumPy; ratios to it are mostly ratios of implementations and of O(n) to O(1), so "
        "they belong to this machine and these programs.",
        "",
    ]
    text += markdown(
        ("n", *WAYS.values(), "PUMBA / numba", "PUMBA / NumPy"),
        [
            (
                f"{point['count']:,}",
                *(f"{point['rates'][name]:,.0f}" for name in WAYS),
                f"{_ratio(point, 'compiled'):,.0f}x",
                f"{_ratio(point, 'interpreted'):,.0f}x",
            )
            for point in figures["augmentation"]
        ],
    )
    names = {
        "simple": "simple regression, setting B, n = 1,000",
        "p10": "ten predictors, n = 50,000, ε = 5",
    }
    text += ["### Against drawing the noise", ""]
    return text + markdown(
        ("posterior", "draws", "both stages, ms", "Laplace variates alone, ms", "ratio"),
        [
            (
                names[case["key"]],
                f"{case['draws']:,}",
                f"{1000 * case['work']:.1f}",
                f"{1000 * case['noise']:.1f} (× {case['sums']})",
                f"{case['work'] / case['noise']:.1f}",
            )
            for case in figures["noise"]
        ],
    )


def _ratio(point: dict[str, Any], way: str) -> float:
    return float(point["rates"]["pumba"] / point["rates"][way])


def bars(figures: dict[str, Any]) -> list[Bar]:
    """At least 1,000 times the compiled augmentation; at most 20 and 60 times the noise."""
    (point,) = [one for one in figures["augmentation"] if one["count"] == PROMISED]
    cost = {case["key"]: case["work"] / case["noise"] for case in figures["noise"]}
    return [
        Bar(
            "n = 1,000: at least 1,000 effective draws for one of compiled DA-MCMC",
            f"{_ratio(point, 'compiled'):,.0f} (NumPy: {_ratio(point, 'interpreted'):,.0f})",
            _ratio(point, "compiled") >= 1000,
        ),
        Bar(
            "100,000 draws of simple regression cost at most 20 times 100,000 × 5 Laplace variates",
            f"{cost['simple']:.1f}",
            cost["simple"] <= 20,
        ),
        Bar(
            "10,000 draws with p = 10 cost at most 60 times 10,000 × 77 Laplace variates",
            f"{cost['p10']:.1f}",
            cost["p10"] <= 60,
        ),
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Effective draws a second over n."""
    counts = [point["count"] for point in figures["augmentation"]]
    panel = {
        label: (counts, [point["rates"][name] for point in figures["augmentation"]])
        for name, label in WAYS.items()
    }
    return [
        plots.curves(
            folder / "pumba-speed.svg",
            {"slope of a simple regression": panel},
            across="rows n",
            up="effective draws a second",
            alt="Effective draws a second over n, of PUMBA and of data augmentation",
            level=None,
            log_up=True,
        )
    ]


PART = Part("Speed", run, lines, bars, draw)
