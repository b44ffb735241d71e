"""US counties whose counts carry noise: which estimator of a regression over them stands."""

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

from benchmarks.pumba_harness import (
    LEVEL,
    FloatArray,
    Settings,
    replicate,
    seed_of,
)
from core.errors import EstimationError
from core.pumba.areal import (
    ArealData,
    ArealVariable,
    attenuation,
    corrected_fit,
    naive_fit,
)
from core.pumba.laws import truncated
from core.simulation import discrete_gaussian
from core.statistics import Family, NoiseLaw

METHODS = {"naive": "naive", "imputed": "imputed area by area", "corrected": "**corrected Gram**"}
IMPUTATIONS = 100
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


def over_counties(settings: Settings) -> list[dict[str, Any]]:
    """Figures for each smallest population and budget; needs ``settings.data``."""
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
