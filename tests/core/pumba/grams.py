"""Gram problems from made-up rows, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from core.pumba.gram import GramVariable, NoisyGram
from core.statistics import Family, NoiseLaw, NoisyStatistic


def noisy_gram(
    columns: Mapping[str, NDArray[np.float64]],
    law: NoiseLaw,
    seed: int,
    *,
    variables: tuple[GramVariable, ...] | None = None,
    noisy_count: bool = False,
    degree: int = 2,
) -> NoisyGram:
    """Release all sums of products of up to ``degree`` columns, each with noise of ``law``."""
    generator = np.random.default_rng(seed)
    names = tuple(columns)
    rows = len(next(iter(columns.values())))

    def release(true: float) -> NoisyStatistic:
        if law.family.laplace:
            noise = generator.laplace(scale=law.scale)
        else:
            noise = generator.normal(scale=law.scale)
        return NoisyStatistic(true + noise, law)

    def moment(chosen: tuple[str, ...]) -> NoisyStatistic:
        return release(float(np.prod([columns[name] for name in chosen], axis=0).sum()))

    declared = variables or tuple(GramVariable(name, 0.0, 1.0) for name in names)
    tied = {variable.name: variable for variable in declared}

    def needed(chosen: tuple[str, ...]) -> bool:
        first, second = (tied[name] for name in chosen)
        if chosen[0] == chosen[1]:
            return not first.indicator
        return first.exclusive is None or first.exclusive != second.exclusive

    pairs = [pair for pair in combinations_with_replacement(names, 2) if needed(pair)]
    higher = [
        chosen
        for power in range(3, degree + 1)
        for chosen in combinations_with_replacement(names, power)
    ]
    return NoisyGram(
        variables=declared,
        count=release(rows) if noisy_count else rows,
        sums={name: moment((name,)) for name in names},
        products={(first, second): moment((first, second)) for first, second in pairs},
        fourth={chosen: moment(chosen) for chosen in higher},
    )


def laplace(scale: float) -> NoiseLaw:
    """Laplace noise."""
    return NoiseLaw(Family.LAPLACE, scale)


def gaussian(scale: float) -> NoiseLaw:
    """Gaussian noise."""
    return NoiseLaw(Family.GAUSSIAN, scale)


def line(rows: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """x from Beta(1/2, 1/2), y = .2 + .6 x + U(-.2, .2): the design with published figures."""
    generator = np.random.default_rng(seed)
    x = generator.beta(0.5, 0.5, rows)
    return {"x": x, "y": 0.2 + 0.6 * x + generator.uniform(-0.2, 0.2, rows)}
