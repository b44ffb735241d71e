"""The published MST recipe on mbi 2.x's public API, as it stands.

McKenna, Miklau and Sheldon (2021), Winning the NIST contest: Gaussian one-ways, cells below three
deviations merged, pair scores against a model fitted to the one-ways (2,500 steps, every score
through the model's ``project``), exponential mechanism, Gaussian two-ways, 10,000 steps of mirror
descent in double precision, the library's own synthetic data.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)

import mbi  # noqa: E402 - the two settings above come first, as the library asks
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.cluster.hierarchy import DisjointSet  # noqa: E402

LABEL = "MST recipe on mbi"
FIRST_STEPS = 2_500
STEPS = 10_000


def one_ways(
    data: mbi.Dataset, sigma: float, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Noisy histogram of every column."""
    return {
        name: noisy(data.project((name,)).datavector(), sigma, generator)
        for name in data.domain.attributes
    }


def noisy(counts: Any, sigma: float, generator: np.random.Generator) -> np.ndarray:
    counts = np.asarray(counts)
    return counts + generator.normal(0, sigma, counts.shape)


def compress(
    data: mbi.Dataset, histograms: Mapping[str, np.ndarray], sigma: float
) -> tuple[mbi.Dataset, list[mbi.LinearMeasurement], dict[str, np.ndarray]]:
    """Merge rare cells; the merged cell is the last one and is weighted as the recipe does."""
    measurements, maps = [], {}
    for name, noisy_counts in histograms.items():
        kept = noisy_counts >= 3 * sigma
        mapping = np.where(kept, np.cumsum(kept) - 1, kept.sum())
        if kept.all():
            measurements.append(mbi.LinearMeasurement(noisy_counts, (name,), sigma))
        else:
            weights = np.ones(int(kept.sum()) + 1)
            weights[-1] = 1 / np.sqrt((~kept).sum())
            summed = np.append(noisy_counts[kept], noisy_counts[~kept].sum()) * weights
            query = mbi.WeightedQuery(weights)
            measurements.append(mbi.LinearMeasurement(summed, (name,), sigma, query=query))
        maps[name] = mapping
    return data.compress(maps), measurements, maps


def spanning_tree(
    scores: Mapping[tuple[str, str], float], names: tuple[str, ...], rho: float, rng: Any
) -> list[tuple[str, str]]:
    """Kruskal's algorithm, each step by the exponential mechanism."""
    joined = DisjointSet(names)
    epsilon = np.sqrt(8 * rho / (len(names) - 1))
    chosen = []
    for _ in range(len(names) - 1):
        open_pairs = [pair for pair in scores if not joined.connected(*pair)]
        quality = np.array([scores[pair] for pair in open_pairs])
        odds = np.exp(0.5 * epsilon * (quality - quality.max()))
        chosen.append(open_pairs[rng.choice(len(open_pairs), p=odds / odds.sum())])
        joined.merge(*chosen[-1])
    return chosen


def undo(
    synthetic: mbi.Dataset, maps: Mapping[str, np.ndarray], rng: np.random.Generator
) -> pd.DataFrame:
    """Merged cells spread uniformly over their members."""
    columns = {}
    for name, mapping in maps.items():
        codes = np.asarray(synthetic.data[name])
        last = mapping.max()
        first = np.array([np.flatnonzero(mapping == cell)[0] for cell in range(last + 1)])
        column = first[codes]
        inside = np.flatnonzero(mapping == last)
        if len(inside) > 1:
            column[codes == last] = rng.choice(inside, int((codes == last).sum()))
        columns[name] = column
    return pd.DataFrame(columns)


def run(
    frame: pd.DataFrame, sizes: Mapping[str, int], rho: float, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Synthetic table and seconds a stage."""
    rng = np.random.default_rng(seed)
    np.random.seed(seed)
    marks = [("start", perf_counter())]
    names = tuple(frame.columns)
    data = mbi.Dataset(
        {name: frame[name].to_numpy() for name in names}, mbi.Domain.fromdict(dict(sizes))
    )
    sigma = np.sqrt(3 * len(names) / (2 * rho))
    histograms = one_ways(data, sigma, rng)
    marks.append(("one-way", perf_counter()))
    data, first, maps = compress(data, histograms, sigma)
    marks.append(("compression", perf_counter()))
    independent = mbi.estimation.MirrorDescent().estimate(data.domain, first, iters=FIRST_STEPS)
    scores = {}
    for pair in itertools.combinations(names, 2):
        expected = np.asarray(independent.project(pair).datavector())
        scores[pair] = float(np.abs(np.asarray(data.project(pair).datavector()) - expected).sum())
    tree = spanning_tree(scores, names, rho / 3, rng)
    marks.append(("selection", perf_counter()))
    sigma = np.sqrt(3 * len(tree) / (2 * rho))
    second = [
        mbi.LinearMeasurement(noisy(data.project(pair).datavector(), sigma, rng), pair, sigma)
        for pair in tree
    ]
    marks.append(("two-way", perf_counter()))
    model = mbi.estimation.MirrorDescent().estimate(data.domain, first + second, iters=STEPS)
    marks.append(("fit", perf_counter()))
    synthetic = undo(model.synthetic_data(), maps, rng)[list(names)]
    marks.append(("sample", perf_counter()))
    return synthetic, {
        name: at - before for (name, at), (_, before) in zip(marks[1:], marks[:-1], strict=True)
    }
