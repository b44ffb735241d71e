"""Regressions over areas whose counts carry noise: US counties, and simulated areas.

Noise on each area's value is outside PUMBA's theorem; the part measures in which regime imputing
every area's counts does no harm, and whether the corrected estimator works beyond it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from benchmarks import plots
from benchmarks.pumba_harness import (
    LEVEL,
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
from core.errors import EstimationError
from core.pumba.areal import (
    ArealData,
    ArealVariable,
    attenuation,
    corrected_fit,
    imputed_draws,
    naive_fit,
)
from core.pumba.laws import truncated
from core.simulation import discrete_gaussian
from core.statistics import Family, NoiseLaw

METHODS = {"naive": "naive", "imputed": "imputed area by area", "corrected": "**corrected Gram**"}
IMPUTATIONS = 100
#: Coverage below which a method counts as harmed in the summary (.95 less three standard errors).
HARMED = 0.9
#: Noise standard deviations beyond which an end of an interval does not matter.
FAR = 9.0
COVARIATES = ("poverty", "unemployment", "multi-unit homes", "log income", "metropolitan")
#: Column, and how many people stand behind one unit of its denominator.
COUNTED = {
    "poverty": 1.0,
    "unemployment_rate": 2.0,
    "multi_unit": 2.3,
    "homeownership": 2.5,
}
#: Budgets ρ of all four counts of a county.  The first is what the 2020 redistricting data spent on
#: counties: 447/4099 of ρ = 2.56.
BUDGETS = (0.28, 0.05, 0.01, 0.001, 0.0001)
CENSUS = BUDGETS[0]
#: Smallest population of the counties that are kept.
SMALLEST = (0, 5000)
RATIOS = (0.05, 0.1, 0.3)
AREAS = (500, 3000)


# -- counties --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counties:
    """Counts (m, 4) of poor, unemployed, multi-unit homes and owners, out of ``sizes`` (m, 4).

    ``public`` has log income and metropolitan (m, 2), without noise.
    """

    counts: FloatArray
    sizes: FloatArray
    public: FloatArray

    def table(self, values: FloatArray, sigma: float) -> ArealData:
        """Shares from counts with noise of that standard deviation."""
        shares, noise = values / self.sizes, sigma / self.sizes
        covariates = [
            *(ArealVariable(COVARIATES[j], shares[:, j], noise[:, j]) for j in range(3)),
            *(ArealVariable(COVARIATES[3 + j], self.public[:, j]) for j in range(2)),
        ]
        return ArealData(ArealVariable("owners", shares[:, 3], noise[:, 3]), tuple(covariates))

    def chosen(self, rows: FloatArray | None) -> Counties:
        """These counties, or some of them."""
        if rows is None:
            return self
        return Counties(self.counts[rows], self.sizes[rows], self.public[rows])


def read_counties(data: Path, smallest: int) -> Counties:
    """``county.csv`` without incomplete rows and counties with fewer people."""
    used = [*COUNTED, "pop2017", "median_hh_income", "metro"]
    frame = pd.read_csv(data / "county.csv", usecols=used).dropna()
    frame = frame[frame["pop2017"] >= smallest]
    people = frame["pop2017"].to_numpy(dtype=np.float64)
    sizes = np.column_stack([people / each for each in COUNTED.values()])
    shares = frame[list(COUNTED)].to_numpy(dtype=np.float64) / 100
    income = np.log(frame["median_hh_income"].to_numpy(dtype=np.float64))
    metro = (frame["metro"] == "yes").to_numpy(dtype=np.float64)
    return Counties(np.rint(shares * sizes), sizes, np.column_stack([income, metro]))


def budget_sigma(rho: float) -> float:
    """Noise of each of four counts (sensitivity 1) that share ρ: σ² = 4 / 2ρ."""
    return math.sqrt(len(COUNTED) / (2 * rho))


def impute_counties(
    counties: Counties, noisy: FloatArray, sigma: float, generator: np.random.Generator
) -> FloatArray:
    """Draws of the coefficients, counts imputed within 0 and the size of their denominator."""
    law = NoiseLaw(Family.GAUSSIAN, sigma)
    # Elsewhere the ends are so far away that the law is not cut.
    near = (noisy < FAR * sigma) | (noisy > counties.sizes - FAR * sigma)
    draws = []
    for _ in range(IMPUTATIONS):
        values = noisy + sigma * generator.standard_normal(noisy.shape)
        values[near] = truncated(law, noisy[near], 0.0, counties.sizes[near], generator)
        shares = values / counties.sizes
        design = np.column_stack([np.ones(len(shares)), shares[:, :3], counties.public])
        inverse = np.linalg.inv(design.T @ design)
        centre = inverse @ (design.T @ shares[:, 3])
        scores = design * (shares[:, 3] - design @ centre)[:, None]
        root = np.linalg.cholesky(inverse @ (scores.T @ scores) @ inverse)
        draws.append(centre + root @ generator.standard_normal(len(root)))
    return np.array(draws)


def normal_intervals(draws: FloatArray) -> FloatArray:
    """Mean ± z sd of a few draws."""
    reach = float(ndtri((1 + LEVEL) / 2)) * draws.std(axis=0, ddof=1)
    return np.stack([draws.mean(axis=0) - reach, draws.mean(axis=0) + reach], axis=-1)


def county_block(
    counties: Counties, rho: float, resample: bool, sets: int, generator: np.random.Generator
) -> dict[str, FloatArray]:
    """Intervals (sets, 5, 2) of the five slopes, those without noise, and the noise ratios."""
    sigma, areas = budget_sigma(rho), len(counties.sizes)
    found = {name: np.full((sets, len(COVARIATES), 2), np.nan) for name in METHODS}
    found["ratio"] = np.empty((sets, len(COVARIATES)))
    found["free"] = np.empty((sets, len(COVARIATES), 2))
    for index in range(sets):
        rows = generator.integers(areas, size=areas) if resample else None
        these = counties.chosen(rows)
        found["free"][index] = naive_fit(these.table(these.counts, 0.0)).intervals()[1:]
        noisy = these.counts + discrete_gaussian(generator, sigma, these.counts.shape)
        table = these.table(noisy, sigma)
        found["naive"][index] = naive_fit(table).intervals()[1:]
        draws = impute_counties(these, noisy, sigma, generator)
        found["imputed"][index] = normal_intervals(draws)[1:]
        with suppress(EstimationError):  # refused: no interval, and counted as such
            found["corrected"][index] = corrected_fit(table).intervals()[1:]
        found["ratio"][index] = [max(one.ratio, one.partial) for one in attenuation(table)]
    return found


def _judged(
    intervals: FloatArray, truth: FloatArray, clear: FloatArray
) -> dict[str, float | list[float]]:
    """Against the noise-free slopes, of which ``clear`` ones are significant.

    Over the repetitions that have intervals; the others are the share ``refused``.
    """
    given = ~np.isnan(intervals).any(axis=(1, 2))
    low, high = intervals[given, :, 0], intervals[given, :, 1]
    if not given.any():
        nothing = dict.fromkeys(("false_positive", "wrong_sign", "missed"), math.nan)
        return {"refused": 1.0, "coverage": [math.nan] * len(truth), **nothing}
    found = (low > 0) | (high < 0)
    wrong = np.sign(low + high) != np.sign(truth)
    return {
        "refused": float(1 - given.mean()),
        "coverage": ((low <= truth) & (truth <= high)).mean(axis=0).tolist(),
        "false_positive": float(found[:, ~clear].mean()),
        "wrong_sign": float(wrong[:, clear].mean()),
        "missed": float((~found)[:, clear].mean()),
    }


def _counties(settings: Settings) -> list[dict[str, Any]]:
    assert settings.data is not None
    figures = []
    for smallest in SMALLEST:
        counties = read_counties(settings.data, smallest)
        free = naive_fit(counties.table(counties.counts, 0.0))
        truth, ends = free.coefficients[1:], free.intervals()[1:]
        clear = (ends > 0).all(axis=1) | (ends < 0).all(axis=1)
        points = []
        for rho in BUDGETS:
            point: dict[str, Any] = {"rho": rho, "sigma": budget_sigma(rho)}
            for key, resample in (("fixed", False), ("resampled", True)):
                found = replicate(
                    partial(county_block, counties, rho, resample),
                    settings.sets(200, 6),
                    seed_of("counties", str(smallest), str(rho), key),
                    settings.pool,
                    size=3 if settings.quick else 25,
                )
                point[key] = {name: _judged(found[name], truth, clear) for name in METHODS}
            point["ratio"] = np.median(found["ratio"], axis=0).tolist()
            point["free"] = _judged(found["free"], truth, clear)["coverage"]
            points.append(point)
        figures.append(
            {
                "smallest": smallest,
                "areas": len(counties.sizes),
                "truth": truth.tolist(),
                "errors": free.standard_errors[1:].tolist(),
                "clear": clear.tolist(),
                "points": points,
            }
        )
    return figures


# -- simulated areas -------------------------------------------------------------------------


def simulated_block(
    ratio: float, areas: int, sets: int, generator: np.random.Generator
) -> dict[str, FloatArray]:
    """One covariate of spread 1 and noise sd ``ratio``, slope 1, residual sd 1."""
    found = {name: np.full((sets, 2), np.nan) for name in METHODS}
    found["warned"] = np.empty(sets)
    for index in range(sets):
        x = generator.standard_normal(areas)
        y = x + generator.standard_normal(areas)
        noisy = x + ratio * generator.standard_normal(areas)
        data = ArealData(ArealVariable("y", y), (ArealVariable("x", noisy, ratio),))
        found["naive"][index] = naive_fit(data).intervals()[1]
        found["imputed"][index] = equal_tails(imputed_draws(data, 200, generator))[:, 1]
        found["corrected"][index] = corrected_fit(data).intervals()[1]
        found["warned"][index] = attenuation(data)[0].serious
    return found


def _simulated(settings: Settings) -> list[dict[str, Any]]:
    figures = []
    for areas in AREAS:
        for ratio in RATIOS:
            found = replicate(
                partial(simulated_block, ratio, areas),
                settings.sets(1000, 20),
                seed_of("areas", str(areas), str(ratio)),
                settings.pool,
                size=10,
            )
            scores = {
                name: {
                    **score(found[name], 1.0),
                    "estimate": float(found[name].mean(axis=1).mean()),
                }
                for name in METHODS
            }
            warned = float(found["warned"].mean())
            figures.append({"areas": areas, "ratio": ratio, "methods": scores, "warned": warned})
    return figures


def run(settings: Settings) -> dict[str, Any]:
    """Counties, then simulated areas."""
    return {"counties": _counties(settings), "simulated": _simulated(settings)}


# -- words -----------------------------------------------------------------------------------


def lines(figures: dict[str, Any]) -> list[str]:
    """Counties by budget, then simulated areas."""
    text = [
        "Homeownership over US counties on poverty, unemployment, multi-unit homes, log income and "
        "metropolitan; discrete Gaussian noise on the four counts of each county, which share ρ "
        f"(ρ = {CENSUS:g} is what the 2020 redistricting data spent on counties); denominators, "
        "income and metropolitan are public. *Noise ratio*: noise over the spread between "
        "counties, of each noisy covariate (the larger of τ and of τ against what the other "
        "covariates leave). Imputation draws each count within 0 and its denominator and fits by "
        f"least squares, {IMPUTATIONS} times. All errors are robust to uneven spread.",
        "",
        "Counties fixed, new noise 200 times, against the noise-free fit: *false positive* is an "
        "interval without 0 for a covariate that is not significant without noise; *wrong sign* "
        "and *missed* are the shares, over the significant ones, of estimates with the other sign "
        "and of intervals that hold 0; *refused*: the estimator says that the noise leaves nothing "
        "to estimate, and the other columns are over the rest; *coverage* of the noise-free slope, "
        "smallest over the covariates (the intervals have sampling variance in them, so nearly 1 "
        "is right). *Resampled*: the same coverage with the counties drawn anew as well, so that "
        "the noise-free slope is the truth about a population and .95 is right.",
        "",
        _regime(figures),
        "",
    ]
    for group in figures["counties"]:
        text += _county_lines(group)
    text += ["### Simulated areas", ""]
    text += [
        "Slope 1, covariate and residual of spread 1, noise on the covariate of sd τ: coverage of "
        "the slope (mean estimate), and how often the warning fires.",
        "",
    ]
    return text + markdown(
        ("areas", "τ", *METHODS.values(), "warned", "data sets"),
        [
            (
                f"{one['areas']:,}",
                f"{one['ratio']:g}",
                *(
                    f"{one['methods'][name]['coverage']:.3f} "
                    f"({one['methods'][name]['estimate']:.3f})"
                    for name in METHODS
                ),
                f"{one['warned']:.0%}",
                f"{one['methods']['naive']['sets']:,}",
            )
            for one in figures["simulated"]
        ],
    )


def _regime(figures: dict[str, Any]) -> str:
    """What the census budget does, and up to which noise ratio imputation did no harm."""
    census = [group["points"][0] for group in figures["counties"]]
    wrong = max(
        point["fixed"][name][key]
        for point in census
        for name in METHODS
        for key in ("false_positive", "wrong_sign", "missed")
    )
    points = [
        (max(point["ratio"]), min(point["resampled"]["imputed"]["coverage"]))
        for group in figures["counties"]
        for point in group["points"]
    ]
    points += [
        (one["ratio"], one["methods"]["imputed"]["coverage"]) for one in figures["simulated"]
    ]
    failed = min((ratio for ratio, covered in points if covered < HARMED), default=math.inf)
    sound = max((ratio for ratio, _ in points if ratio < failed), default=0.0)
    again = {
        name: max(
            point["fixed"][name]["false_positive"]
            for group in figures["counties"]
            for point in group["points"]
            if not math.isnan(point["fixed"][name]["false_positive"])
        )
        for name in ("naive", "imputed")
    }
    return (
        "**Where the published claim holds.** The claim is that naive least squares finds effects "
        "that are not there, and that imputing every area's counts does not. With these counties "
        f"and the census budget there is nothing to mend: at most {wrong:.1%} of any method's "
        "findings differ from the noise-free fit's, the naive ones included. With less budget the "
        f"naive fit does find effects that are not there (in up to {again['naive']:.1%} of "
        f"releases) and imputation hardly ever (up to {again['imputed']:.1%}), but at the price of "
        "slopes drawn towards 0: noise is added once more. In the designs below imputation covers "
        f"at least {HARMED:g} for every slope up to a noise ratio of {sound:.2f}, and first fails "
        f"to at {failed:.2f}; from there on it covers less than the naive fit. The corrected sums "
        "keep their level throughout, where they can be solved at all."
    )


def _county_lines(group: dict[str, Any]) -> list[str]:
    people = f" with at least {group['smallest']:,} people" if group["smallest"] else ""
    text = [f"### {group['areas']:,} counties{people}", ""]
    text += markdown(
        ("without noise", *COVARIATES),
        [
            ("slope", *(f"{value:.4f}" for value in group["truth"])),
            ("robust error", *(f"{value:.4f}" for value in group["errors"])),
            ("significant", *("yes" if clear else "no" for clear in group["clear"])),
            ("coverage, resampled", *(share(value) for value in group["points"][0]["free"])),
        ],
    )
    rows = []
    for point in group["points"]:
        ratios = " ".join(f"{value:.2f}" for value in point["ratio"][:3])
        for name, words in METHODS.items():
            one, again = point["fixed"][name], point["resampled"][name]
            worst = int(np.argmin(again["coverage"]))
            rows.append(
                (
                    f"{point['rho']:g} (σ = {point['sigma']:.1f})" if name == "naive" else "",
                    ratios if name == "naive" else "",
                    words,
                    *(_percent(one[key]) for key in ("false_positive", "wrong_sign", "missed")),
                    _percent(one["refused"]),
                    share(min(one["coverage"])),
                    f"{share(again['coverage'][worst])} ({COVARIATES[worst]})",
                )
            )
    head = (
        "ρ a county", "noise ratios", "method", "false positive", "wrong sign", "missed",
        "refused", "coverage", "resampled",
    )  # fmt: skip
    return text + markdown(head, rows)


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1%}"


def bars(figures: dict[str, Any]) -> list[Bar]:
    """Simulated areas: corrected covers where imputation fails, and the warning fires."""
    simulated = figures["simulated"]
    corrected = [one["methods"]["corrected"]["coverage"] for one in simulated]
    failing = [one["methods"]["imputed"]["coverage"] for one in simulated if one["ratio"] >= 0.3]
    loud = [one["warned"] for one in simulated if one["ratio"] >= 0.1]
    quiet = [one["warned"] for one in simulated if one["ratio"] < 0.1]
    return [
        Bar(
            "areas, τ = .05, .1, .3: the corrected Gram covers at least .93",
            f"{min(corrected):.3f} to {max(corrected):.3f}",
            min(corrected) >= 0.93,
        ),
        Bar(
            "areas, τ = .3: imputation area by area covers less than .5",
            f"at most {max(failing):.3f}",
            max(failing) < 0.5,
        ),
        Bar(
            "areas: the warning fires from τ = .1 on (in 95 % of releases) and not at .05 (in 5 %)",
            f"{min(loud):.1%} from .1 on, {max(quiet):.1%} at .05",
            min(loud) >= 0.95 and max(quiet) <= 0.05,
        ),
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Smallest coverage over the covariates by budget, counties resampled."""
    panels = {}
    for group in figures["counties"]:
        budgets = [point["rho"] for point in group["points"]]
        people = f", at least {group['smallest']:,} people" if group["smallest"] else ""
        panels[f"{group['areas']:,} counties{people}"] = {
            words.strip("*"): (
                budgets,
                [min(point["resampled"][name]["coverage"]) for point in group["points"]],
            )
            for name, words in METHODS.items()
        }
    return [
        plots.curves(
            folder / "pumba-areal.svg",
            panels,
            across="ρ a county",
            up="smallest coverage over five slopes",
            alt="Smallest coverage over five slopes by budget, for each method, counties resampled",
        )
    ]


PART = Part("Areas with noisy covariates", run, lines, bars, draw)
