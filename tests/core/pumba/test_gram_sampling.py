"""Stage 1 for Gram matrices: rejection against brute force, Gibbs against rejection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from core.errors import EstimationError
from core.pumba.gram import GramVariable, NoisyGram, draw_grams
from core.statistics import NoisyStatistic
from tests.core.pumba.grams import gaussian, laplace, line, noisy_gram

SEEDS = (11, 12, 13, 14, 15)

#: Family-wise error over all comparisons of one test, with fixed seeds.
LEVEL = 1e-3


def holm(p_values: list[float]) -> bool:
    """Whether no hypothesis is rejected by Holm's step-down procedure."""
    # Holm starts at the smallest; if that stays, all stay.
    return min(p_values) > LEVEL / len(p_values)


def moving(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distinct entries that are drawn, (R, entries)."""
    size = values.shape[1]
    entries = values[:, *np.tril_indices(size)]
    spread = entries.std(axis=0)
    chosen = entries[:, spread > 1e-9 * (1 + np.abs(entries).max(axis=0))]
    _, first = np.unique(chosen[0], return_index=True)
    result: NDArray[np.float64] = chosen[:, np.sort(first)]
    return result


def centred_line(rows: int, seed: int) -> dict[str, NDArray[np.float64]]:
    return {name: 2 * column - 1 for name, column in line(rows, seed).items()}


def groups(rows: int, seed: int) -> dict[str, NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, rows)
    y = 0.3 + 0.2 * (kind == 1) + generator.uniform(0, 0.4, rows)
    return {"k1": (kind == 1) * 1.0, "k2": (kind == 2) * 1.0, "y": y}


GROUPS = (
    GramVariable("k1", 0.0, 1.0, indicator=True, exclusive="k"),
    GramVariable("k2", 0.0, 1.0, indicator=True, exclusive="k"),
    GramVariable("y", 0.0, 1.0),
)
SIGNED = (
    GramVariable("b", -1.0, 1.0, indicator=True),
    GramVariable("y", -1.0, 1.0),
)


def signed(rows: int, seed: int) -> dict[str, NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    b = np.where(generator.random(rows) < 0.4, 1.0, -1.0)
    return {"b": b, "y": 0.3 * b + generator.uniform(-0.5, 0.5, rows)}


def shifted(rows: int, seed: int) -> dict[str, NDArray[np.float64]]:
    return {name: column + 5.0 for name, column in line(rows, seed).items()}


SHIFTED = tuple(GramVariable(name, 5.0, 6.0) for name in "xy")
CENTRED = tuple(GramVariable(name, -1.0, 1.0) for name in "xy")

DESIGNS: dict[str, Callable[[int], NoisyGram]] = {
    "simple": lambda seed: noisy_gram(line(60, seed), laplace(3.0), seed),
    "gaussian": lambda seed: noisy_gram(line(100, seed), gaussian(5.0), seed),
    "unknown count": lambda seed: noisy_gram(line(40, seed), laplace(2.0), seed, noisy_count=True),
    "indicators": lambda seed: noisy_gram(groups(60, seed), laplace(3.0), seed, variables=GROUPS),
    "signed, unknown count": lambda seed: noisy_gram(
        signed(60, seed), laplace(5.0), seed, variables=SIGNED, noisy_count=True
    ),
    "bounds far from 0": lambda seed: noisy_gram(
        shifted(200, seed), gaussian(3.0), seed, variables=SHIFTED
    ),
}


@pytest.mark.parametrize("design", list(DESIGNS))
def test_gibbs_and_rejection_draw_from_one_law(design: str) -> None:
    p_values = []
    for seed in SEEDS:
        problem = DESIGNS[design](seed)
        exact = draw_grams(problem, 2000, np.random.default_rng(seed), method="rejection")
        chains = draw_grams(problem, 1000, np.random.default_rng(seed + 50), method="gibbs")
        assert chains.diagnostics.method == "gibbs"
        assert chains.diagnostics.r_hat < 1.005
        assert chains.diagnostics.effective > 600
        assert exact.diagnostics.effective == 2000
        first, second = moving(exact.values), moving(chains.values)
        assert first.shape[1] == second.shape[1]
        p_values += [ks_2samp(a, b).pvalue for a, b in zip(first.T, second.T, strict=True)]
    assert holm(p_values)


def test_gibbs_and_rejection_agree_for_sums_of_degree_four() -> None:
    problem = noisy_gram(centred_line(500, 1), laplace(4.0), 2, variables=CENTRED, degree=4)
    exact = draw_grams(problem, 1500, np.random.default_rng(3), method="rejection")
    chains = draw_grams(problem, 1000, np.random.default_rng(4), method="gibbs")
    first, second = moving(exact.values), moving(chains.values)
    assert first.shape[1] == 14
    assert holm([ks_2samp(a, b).pvalue for a, b in zip(first.T, second.T, strict=True)])


def brute_force(problem: NoisyGram, rows: int, draws: int, seed: int) -> NDArray[np.float64]:
    """(x, y, xx, xy, yy) by naive rejection on the written-out support of the unit square."""
    generator = np.random.default_rng(seed)
    released = [
        problem.sums["x"],
        problem.sums["y"],
        *(problem.products[pair] for pair in (("x", "x"), ("x", "y"), ("y", "y"))),
    ]
    kept: list[NDArray[np.float64]] = []
    while sum(len(part) for part in kept) < draws:
        noise = generator.laplace(size=(200_000, 5))
        values = [one.value for one in released if isinstance(one, NoisyStatistic)]
        scales = [one.law.scale for one in released if isinstance(one, NoisyStatistic)]
        x, y, xx, xy, yy = (np.array(values) - noise * scales).T
        cxx, cyy, cxy = xx - x * x / rows, yy - y * y / rows, xy - x * y / rows
        good = (cxx > 0) & (cyy > 0) & (cxx * cyy > cxy**2) & (xx <= x) & (x <= rows)
        good &= (yy <= y) & (y <= rows)
        good &= (np.maximum(0, x + y - rows) <= xy) & (xy <= np.minimum(x, y))
        kept.append(np.column_stack([x, y, xx, xy, yy])[good])
    return np.concatenate(kept)[:draws]


def test_both_methods_agree_with_brute_force_far_outside_the_support() -> None:
    problem = noisy_gram(line(30, 5), laplace(2.857), 6)
    expected = brute_force(problem, 30, 2000, 7)
    p_values = []
    for method in ("rejection", "gibbs"):
        found = draw_grams(problem, 2000, np.random.default_rng(8), method=method)
        assert found.diagnostics.outside_support
        entries = found.values[:, [0, 0, 1, 1, 2], [1, 2, 1, 2, 2]]
        p_values += [ks_2samp(a, b).pvalue for a, b in zip(entries.T, expected.T, strict=True)]
    assert holm(p_values)


def test_automatic_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    easy = draw_grams(noisy_gram(line(1000, 1), laplace(1.0), 1), 500, np.random.default_rng(1))
    assert easy.diagnostics.method == "rejection"
    assert easy.diagnostics.acceptance > 0.9
    assert not easy.diagnostics.outside_support
    problem = noisy_gram(line(30, 2), laplace(8.0), 2)
    cheap = draw_grams(problem, 500, np.random.default_rng(1)).diagnostics
    assert cheap.method == "rejection"  # rarely accepts, but takes no time for two columns
    assert cheap.acceptance < 0.01
    monkeypatch.setattr("core.pumba.gram_rejection.WORTHWHILE", 1_000_000)
    hard = draw_grams(problem, 500, np.random.default_rng(1))
    assert hard.diagnostics.method == "gibbs"
    assert hard.diagnostics.chains >= 500
    assert hard.diagnostics.outside_support


def test_draws_are_deterministic_and_inside_the_support() -> None:
    problem = DESIGNS["indicators"](1)
    for method in ("rejection", "gibbs"):
        first = draw_grams(problem, 600, np.random.default_rng(3), method=method).values
        again = draw_grams(problem, 600, np.random.default_rng(3), method=method).values
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first, np.swapaxes(first, 1, 2))
        assert np.linalg.eigvalsh(first)[:, 0].min() > 0
        np.testing.assert_allclose(first[:, 0, 0], 60)
        np.testing.assert_allclose(first[:, 1, 1], first[:, 0, 1])  # the square of an indicator
        np.testing.assert_allclose(first[:, 1, 2], 0, atol=1e-9)  # exclusive ones
        assert np.all(first[:, 0, 1] + first[:, 0, 2] <= 60)


def test_unknown_count_is_drawn_and_handed_on() -> None:
    problem = DESIGNS["unknown count"](3)
    drawn = draw_grams(problem, 800, np.random.default_rng(1))
    assert drawn.counts is not None
    np.testing.assert_array_equal(drawn.counts, drawn.values[:, 0, 0])
    assert drawn.counts.min() >= 1
    assert drawn.counts.std() > 0.5


def test_insisting_on_hopeless_rejection_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.pumba.gram_rejection.MOST_PROPOSALS", 20_000)
    problem = noisy_gram(line(30, 2), laplace(0.01), 2)
    far = NoisyGram(
        problem.variables,
        30,
        problem.sums,
        {**problem.products, ("x", "x"): NoisyStatistic(0.0, laplace(0.01))},
    )
    with pytest.raises(EstimationError, match="use parallel Gibbs"):
        draw_grams(far, 100, np.random.default_rng(1), method="rejection")
    with pytest.raises(EstimationError, match="at least 1"):
        draw_grams(problem, 0, np.random.default_rng(1))


def test_progress_can_cancel() -> None:
    class Stopped(Exception):
        pass

    def stop(stage: str, done: int, total: int, detail: object) -> None:
        assert stage == "statistics"
        assert 0 < done <= total
        raise Stopped(detail)

    problem = DESIGNS["simple"](1)
    for method in ("rejection", "gibbs"):
        with pytest.raises(Stopped):
            draw_grams(problem, 500, np.random.default_rng(1), method=method, progress=stop)
