"""Regressions over areas whose counts carry noise: US counties, and simulated areas.

Noise on each area's value is outside PUMBA's theorem; the part measures in which regime imputing
every area's counts does no harm, and whether the corrected estimator works beyond it.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import plots
from benchmarks.pumba_counties import (
    CENSUS,
    COVARIATES,
    IMPUTATIONS,
    METHODS,
    over_counties,
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
from core.pumba.areal import (
    ArealData,
    ArealVariable,
    attenuation,
    corrected_fit,
    imputed_draws,
    naive_fit,
)

#: Coverage below which a method counts as harmed in the summary (.95 less three standard errors).
HARMED = 0.9
RATIOS = (0.05, 0.1, 0.3)
AREAS = (500, 3000)


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
    return {"counties": over_counties(settings), "simulated": _simulated(settings)}


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
