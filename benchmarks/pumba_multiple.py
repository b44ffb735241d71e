"""Coverage of each coefficient of a multiple regression from a noisy moment matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

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
HEADLINE = "p5"
#: Rows from which the coefficients of a clipped population are computed.
POPULATION_ROWS = 2_000_000


@dataclass(frozen=True)
class Design:
    """x_j ~ U(0, 1) independent, y = .25 + step·Σ x_j (−1)^j + U(−.15, .15), equal split.

    y is declared to lie in [low, high], clipped to that and scaled to [0, 1].  ``centre`` is taken
    off every column before it is summed.
    """

    key: str
    label: str
    predictors: int
    step: float
    low: float
    high: float
    count: int
    epsilon: float
    sets: int
    centre: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Predictors, then the outcome."""
        return (*(f"x{j + 1}" for j in range(self.predictors)), "y")

    @property
    def unit(self) -> float:
        """Laplace scale of a sum of sensitivity 1."""
        size = self.predictors + 1
        return (size + size * (size + 1) // 2) / self.epsilon

    @property
    def slopes(self) -> FloatArray:
        """Coefficients of the model."""
        return self.step * (-1.0) ** np.arange(1, self.predictors + 1)

    @property
    def clipped(self) -> bool:
        """Whether some y of the model lie outside their declared bounds."""
        slopes, tiny = self.slopes, 1e-9
        lowest = 0.25 + slopes[slopes < 0].sum() - 0.15
        highest = 0.25 + slopes[slopes > 0].sum() + 0.15
        return bool(lowest < self.low - tiny or highest > self.high + tiny)

    def sample(self, generator: np.random.Generator, rows: int) -> FloatArray:
        """Rows of predictors and scaled outcome, all in [0, 1]."""
        x = generator.random((rows, self.predictors))
        y = 0.25 + x @ self.slopes + generator.uniform(-0.15, 0.15, rows)
        scaled = (y - self.low) / (self.high - self.low)
        return np.column_stack([x, np.clip(scaled, 0.0, 1.0)])


DESIGNS = (
    Design(HEADLINE, "p = 5, n = 5,000, ε = 1, y in [−.2, .6]",
           5, 0.1, -0.2, 0.6, 5000, 1.0, 4000),
    Design("p5-centred", "the same, columns centred at .5 before they are summed",
           5, 0.1, -0.2, 0.6, 5000, 1.0, 2000, 0.5),
    Design("p5-clipped", "p = 5, n = 5,000, ε = 1, y clipped to [0, 1]",
           5, 0.1, 0.0, 1.0, 5000, 1.0, 2000),
    Design("p5-large", "p = 5, n = 50,000, ε = 1, y in [−.2, .6]",
           5, 0.1, -0.2, 0.6, 50_000, 1.0, 500),
    Design("p10", "p = 10, n = 50,000, ε = 5, y in [−.15, .65]",
           10, 0.05, -0.15, 0.65, 50_000, 5.0, 500),
)  # fmt: skip


def noisy_gram(rows: FloatArray, design: Design, generator: np.random.Generator) -> NoisyGram:
    """Every sum and sum of products of two columns with Laplace noise; n is known.

    Sensitivities are for one row changed: the width of what a row can add to the sum.
    """
    names, centre, unit = design.names, design.centre, design.unit
    low, high = -centre, 1.0 - centre
    square = max(low**2, high**2) - (0.0 if low <= 0 <= high else min(low**2, high**2))
    product = max(low**2, high**2) - min(low * high, low**2, high**2)
    width = design.high - design.low

    def noisy(value: float, sensitivity: float) -> NoisyStatistic:
        law = NoiseLaw(Family.LAPLACE, unit * sensitivity)
        return NoisyStatistic(float(value + generator.laplace(0.0, law.scale)), law)

    moved = rows - centre
    products = moved.T @ moved
    return NoisyGram(
        (
            *(GramVariable(name, low, high, origin=centre) for name in names[:-1]),
            GramVariable("y", low, high, origin=design.low + width * centre, unit=width),
        ),
        len(rows),
        {name: noisy(total, 1.0) for name, total in zip(names, moved.sum(axis=0), strict=True)},
        {
            (names[i], names[j]): noisy(products[i, j], square if i == j else product)
            for i in range(len(names))
            for j in range(i, len(names))
        },
    )


def slopes_of(rows: FloatArray) -> FloatArray:
    """Least-squares slopes of the last column on the others."""
    centred = rows - rows.mean(axis=0)
    moments = centred.T @ centred
    return np.asarray(np.linalg.solve(moments[:-1, :-1], moments[:-1, -1]))


def block(design: Design, sets: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Intervals of all slopes, and how stage 1 went."""
    intervals = np.empty((sets, design.predictors, 2))
    acceptance, outside = np.empty(sets), np.empty(sets)
    predictors = design.names[:-1]
    for index in range(sets):
        problem = noisy_gram(design.sample(generator, design.count), design, generator)
        grams = draw_grams(problem, DRAWS, generator)
        draws = regression_posterior(problem, grams, "y", predictors, generator=generator)
        chosen = [draws.names.index(name) for name in predictors]
        intervals[index] = equal_tails(draws.values[:, chosen]).T
        acceptance[index] = grams.diagnostics.acceptance
        outside[index] = grams.diagnostics.outside_support
    return {"intervals": intervals, "acceptance": acceptance, "outside": outside}


def run(settings: Settings) -> dict[str, Any]:
    """Coverage and width of every slope, by design."""
    figures = []
    for design in DESIGNS:
        found = replicate(
            partial(block, design),
            settings.sets(design.sets, 20),
            seed_of("multiple", design.key),
            settings.pool,
            size=25,
        )
        truth = design.slopes
        if design.clipped:
            generator = np.random.default_rng(seed_of("multiple", design.key, "population"))
            rows = design.sample(generator, POPULATION_ROWS)
            truth = slopes_of(rows) * (design.high - design.low)
        figures.append(
            {
                "key": design.key,
                "label": design.label,
                "slopes": [
                    score(found["intervals"][:, j], truth[j]) for j in range(design.predictors)
                ],
                "outside": float(found["outside"].mean()),
                "acceptance": float(np.nanmedian(found["acceptance"])),
            }
        )
    return {"designs": figures}


def lines(figures: dict[str, Any]) -> list[str]:
    """One row a design."""
    text = [
        "x_j ~ U(0,1) independent, y = .25 + .1·Σ x_j (−1)^j + U(−.15,.15) (.05 for p = 10), "
        "Laplace noise with an equal share of ε on every sum and sum of products, n known. y is "
        "declared to lie in the model's own range; bounds of [0, 1] would clip some rows, and the "
        "target is then the slope in the clipped population. Centring costs nothing and makes "
        "products less sensitive.",
        "",
    ]
    return text + markdown(
        ("design", "coverage of each slope", "mean width", "acceptance", "outside", "data sets"),
        [
            (
                design["label"],
                " ".join(share(found["coverage"]) for found in design["slopes"]),
                f"{np.mean([found['width'] for found in design['slopes']]):.3f}",
                f"{design['acceptance']:.2f}",
                f"{design['outside']:.1%}",
                f"{design['slopes'][0]['sets']:,}",
            )
            for design in figures["designs"]
        ],
    )


def bars(figures: dict[str, Any]) -> list[Bar]:
    """Each coefficient of the design with p = 5 within .93 to .98."""
    (design,) = [one for one in figures["designs"] if one["key"] == HEADLINE]
    covered = [found["coverage"] for found in design["slopes"]]
    return [
        Bar(
            "five slopes, n = 5,000, ε = 1: each covers .93 to .98",
            f"{min(covered):.3f} to {max(covered):.3f} (s.e. {design['slopes'][0]['error']:.3f})",
            min(covered) >= 0.93 and max(covered) <= 0.98,
        )
    ]


def draw(figures: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """No picture: the table says it all."""
    return []


PART = Part("Multiple regression", run, lines, bars, draw)
