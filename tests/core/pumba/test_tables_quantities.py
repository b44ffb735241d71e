from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from core.errors import StatisticError
from core.pumba.draws import Diagnostics, StatisticDraws
from core.pumba.table_quantities import histogram_quantiles
from core.pumba.tables import NoisyTable, available, draw_counts, table_posterior
from core.statistics import Family, NoiseLaw, NoisyStatistic

SQUARE = (("group", ("a", "b")), ("outcome", ("no", "yes")))
THREE = (("group", ("a", "b", "c")), ("level", ("low", "mid", "high")))


def table_of(values, axes, scale=4.0, **kind):
    law = NoiseLaw(Family.DISCRETE_LAPLACE, scale)
    return NoisyTable(axes, tuple(NoisyStatistic(float(v), law) for v in values), **kind)


def exactly(values, draws=1):
    """Stage 1 as if the counts were known."""
    rows = np.repeat(np.atleast_2d(np.asarray(values, dtype=float)), draws, axis=0)
    return StatisticDraws(rows, Diagnostics("exact"))


def column(result, name):
    return result.values[:, result.names.index(name)]


def test_sample_quantities_of_a_square_table():
    counts = np.array([30, 70, 20, 80])
    table = table_of(counts, SQUARE)
    result = table_posterior(
        table, exactly(counts, 2), None, np.random.default_rng(0), estimand="sample"
    )
    odds = 70 * 20 / (30 * 80)
    expected = {
        "p(group=a, outcome=no)": 0.15,
        "p(outcome=yes | group=a)": 0.7,
        "p(outcome=yes | group=b)": 0.8,
        "risk difference of outcome=yes, group=b against a": 0.1,
        "risk ratio of outcome=yes, group=b against a": 8 / 7,
        "odds ratio of outcome=yes, group=b against a": 1 / odds,
        "log odds ratio of outcome=yes, group=b against a": -np.log(odds),
        "Cramér's V": np.sqrt(
            stats.chi2_contingency([[30, 70], [20, 80]], correction=False)[0] / 200
        ),
        "entropy (nats)": stats.entropy(counts / 200),
    }
    for name, value in expected.items():
        assert column(result, name) == pytest.approx([value, value]), name
    assert len(result.names) == 4 + 4 + 6
    assert np.array_equal(result.repeats, result.values)
    assert np.all(result.naive[:, 1] == 0)  # the rows themselves: nothing is sampled
    assert result.naive[:, 0] == pytest.approx(result.values[0])


def test_larger_tables_compare_each_group_and_outcome():
    counts = np.array([[5, 10, 15], [20, 10, 10], [1, 2, 3]])
    table = table_of(counts.ravel(), THREE)
    result = table_posterior(
        table, exactly(counts.ravel()), None, np.random.default_rng(0), estimand="sample"
    )
    assert column(result, "risk difference of level=high, group=b against a")[0] == pytest.approx(
        10 / 40 - 15 / 30
    )
    assert column(result, "odds ratio of level=low, group=c against a")[0] == pytest.approx(
        (1 / 5) / (5 / 25)
    )
    assert column(result, "risk ratio of level=mid, group=b against a")[0] == pytest.approx(0.75)
    v = np.sqrt(stats.chi2_contingency(counts)[0] / counts.sum() / 2)
    assert column(result, "Cramér's V")[0] == pytest.approx(v)


@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.0, 3.0])
def test_population_proportions_are_dirichlet(alpha):
    counts = np.array([0, 3, 40, 200])
    table = table_of(counts, SQUARE)
    result = table_posterior(
        table, exactly(counts, 20_000), ["proportions"], np.random.default_rng(1), alpha=alpha
    )
    shape = counts + alpha
    for index in range(4):
        law = stats.beta(shape[index], shape.sum() - shape[index])
        for drawn in (result.values[:, index], result.repeats[:, index]):
            if alpha > 0.1 or index:  # the least shares of a tiny shape are not told apart from 0
                assert stats.kstest(drawn, law.cdf).pvalue > 1e-4
    # Two draws given the same counts are independent of each other.
    assert abs(np.corrcoef(result.values[:, 2], result.repeats[:, 2])[0, 1]) < 0.04
    assert np.all(
        np.isfinite(
            table_posterior(
                table,
                exactly(counts, 200),
                ["log_odds_ratio"],
                np.random.default_rng(1),
                alpha=alpha,
            ).values
        )
    )


def test_sampling_factor_scales_the_variance():
    counts = np.array([300, 200, 100, 400])
    table = table_of(counts, SQUARE)
    wide, plain, none = (
        table_posterior(
            table,
            exactly(counts, 20_000),
            ["proportions"],
            np.random.default_rng(2),
            sampling=factor,
        )
        for factor in (4.0, 1.0, 0.0)
    )
    ratio = wide.values.var(axis=0) / plain.values.var(axis=0)
    assert ratio == pytest.approx(4.0, rel=0.08)
    assert none.values == pytest.approx(np.tile(counts / 1000, (20_000, 1)))
    assert np.all(none.naive[:, 1] == 0)


def test_naive_errors_are_those_of_an_exact_table():
    counts = np.array([30.0, 70.0, 20.0, 80.0])
    table = table_of(counts, SQUARE)
    result = table_posterior(table, exactly(counts), None, np.random.default_rng(0))
    errors = dict(zip(result.names, result.naive[:, 1], strict=True))
    woolf = np.sqrt((1 / counts).sum())
    risk_a, risk_b = 0.7 * 0.3 / 100, 0.8 * 0.2 / 100
    assert errors["p(group=a, outcome=no)"] == pytest.approx(np.sqrt(0.15 * 0.85 / 200))
    assert errors["p(outcome=yes | group=a)"] == pytest.approx(np.sqrt(risk_a))
    name = "outcome=yes, group=b against a"
    assert errors[f"risk difference of {name}"] == pytest.approx(np.sqrt(risk_a + risk_b))
    assert errors[f"log odds ratio of {name}"] == pytest.approx(woolf)
    odds = 80 * 30 / (20 * 70)
    assert errors[f"odds ratio of {name}"] == pytest.approx(odds * woolf)
    assert errors[f"risk ratio of {name}"] == pytest.approx(
        8 / 7 * np.sqrt(risk_a / 0.49 + risk_b / 0.64)
    )
    shares = counts / 200
    spread = (shares * np.log(shares) ** 2).sum() - (shares * np.log(shares)).sum() ** 2
    assert errors["entropy (nats)"] == pytest.approx(np.sqrt(spread / 200))


def test_naive_figures_are_missing_where_undefined():
    table = table_of([-3, 70, 20, 80], SQUARE)
    counts = draw_counts(table, 500, np.random.default_rng(0))
    result = table_posterior(table, counts, None, np.random.default_rng(0))
    naive = dict(zip(result.names, result.naive, strict=True))
    assert np.all(np.isnan(naive["log odds ratio of outcome=yes, group=b against a"]))
    assert np.all(np.isnan(naive["entropy (nats)"]))
    assert naive["p(group=a, outcome=no)"][0] == pytest.approx(-3 / 167)
    assert np.isnan(naive["p(group=a, outcome=no)"][1])
    assert naive["p(outcome=yes | group=b)"] == pytest.approx([0.8, 0.04])
    nothing = table_of([-3, -70, 2, 8], SQUARE)
    counts = draw_counts(nothing, 500, np.random.default_rng(0))
    result = table_posterior(nothing, counts, None, np.random.default_rng(0))
    assert np.all(np.isnan(result.naive))


def test_undefined_quantities_of_the_sample_are_left_out_and_said():
    table = table_of([0, 70, 20, 80], SQUARE)
    draws = StatisticDraws(
        np.array([[0.0, 70, 20, 80], [1, 70, 20, 80], [2, 70, 20, 80], [3, 70, 20, 80]]),
        Diagnostics("exact"),
    )
    result = table_posterior(table, draws, None, np.random.default_rng(0), estimand="sample")
    # An odds ratio of 0 exists, its logarithm does not.
    assert "odds ratio of outcome=yes, group=b against a" in result.names
    assert not any("log" in name for name in result.names)
    assert len(result.notes) == 1
    assert "25.0% of the draws" in result.notes[0]
    assert "ask for the population" in result.notes[0]
    with pytest.raises(StatisticError, match="undefined"):
        table_posterior(
            table, draws, ["log_odds_ratio"], np.random.default_rng(0), estimand="sample"
        )
    population = table_posterior(table, draws, None, np.random.default_rng(0))
    assert any("log" in name for name in population.names)
    assert population.notes == ()
    empty = exactly([0, 0, 0, 0], 3)
    with pytest.raises(StatisticError, match="no rows"):
        table_posterior(table, empty, None, np.random.default_rng(0), estimand="sample")


def test_histogram_quantiles_invert_the_line_within_bins():
    edges = np.array([0.0, 10.0, 20.0, 50.0])
    shares = np.array([[0.2, 0.3, 0.5], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])
    levels = np.array([0.25, 0.5, 0.75])
    expected = [[10 + 10 * 0.05 / 0.3, 20.0, 35.0], [5.0, 10.0, 35.0], [2.5, 5.0, 7.5]]
    assert histogram_quantiles(shares, edges, levels) == pytest.approx(np.array(expected))
    # Against numpy on a fine sample of one row.
    sample = np.concatenate(
        [
            np.linspace(lo, hi, int(1e5 * share), endpoint=False)
            for lo, hi, share in zip(edges, edges[1:], shares[0], strict=False)
        ]
    )
    assert np.quantile(sample, levels) == pytest.approx(expected[0], abs=1e-3)


def test_median_of_a_noisy_histogram():
    rng = np.random.default_rng(3)
    ages = rng.integers(20, 80, 3000)
    edges = tuple(float(edge) for edge in range(20, 81, 5))
    counts = np.histogram(ages, edges)[0]
    axes = (("age", tuple(f"{low:g}" for low in edges[:-1])),)
    table = table_of(counts + rng.integers(-6, 7, len(counts)), axes)
    draws = draw_counts(table, 4000, rng)
    result = table_posterior(table, draws, None, rng, edges=edges)
    median = column(result, "median of age")
    low, high = np.quantile(median, [0.0005, 0.9995])
    assert low < 50 < high
    assert high - low < 8
    assert result.naive[result.names.index("median of age"), 1] == pytest.approx(
        60 * 0.5 / np.sqrt(3000), rel=0.1
    )
    with pytest.raises(StatisticError, match="edges"):
        table_posterior(table, draws, ["quantiles"], rng)
    with pytest.raises(StatisticError, match="rising"):
        table_posterior(table, draws, None, rng, edges=edges[:-1])


def test_shapes_and_settings_are_checked():
    rng = np.random.default_rng(0)
    table = table_of([3, 4, 5, 6], SQUARE)
    draws = draw_counts(table, 100, rng)
    for change, words in (
        ({"quantities": ["odds"]}, "no quantity"),
        ({"quantities": []}, "at least one"),
        ({"quantities": ["quantiles"], "edges": (0, 1, 2, 3, 4)}, "another shape"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"estimand": "truth"}, "estimand"),
        ({"sampling": -1.0}, "sampling"),
    ):
        keywords = {"quantities": None, **change}
        with pytest.raises(StatisticError, match=words):
            table_posterior(table, draws, keywords.pop("quantities"), rng, **keywords)
    line = table_of([3, 4], (("x", ("a", "b")),))
    assert available(line) == ("proportions", "entropy")
    cube = (("x", ("a", "b")), ("y", ("c", "d")), ("z", ("e", "f")))
    assert available(table_of(range(8), cube)) == ("proportions", "entropy")
    assert available(table, edges=(0, 1, 2, 3, 4)) == available(table)


def test_coverage_of_the_log_odds_ratio():
    # 2 x 2 with shares .2 .3 .15 .35, discrete Laplace of scale 4 a cell, 100 rows.
    rng = np.random.default_rng(4)
    shares = np.array([0.2, 0.3, 0.15, 0.35])
    truth = np.log(0.2 * 0.35 / (0.3 * 0.15))
    name = "log odds ratio of outcome=yes, group=b against a"
    hits = {"unknown": 0, "known": 0, "naive": 0}
    sets = 500
    for _ in range(sets):
        counts = rng.multinomial(100, shares)
        noise = rng.geometric(1 - np.exp(-0.25), 4) - rng.geometric(1 - np.exp(-0.25), 4)
        for total in (None, 100):
            table = table_of(counts + noise, SQUARE, total=total)
            draws = draw_counts(table, 800, rng)
            result = table_posterior(table, draws, ["log_odds_ratio"], rng)
            low, high = np.quantile(column(result, name), [0.025, 0.975])
            hits["unknown" if total is None else "known"] += low <= truth <= high
        estimate, error = result.naive[0]
        hits["naive"] += abs(estimate - truth) <= 1.96 * error  # NaN counts as a miss
    # Standard error .010 (.019 for the naive interval).
    assert 0.91 < hits["unknown"] / sets < 0.985
    assert 0.91 < hits["known"] / sets < 0.985
    assert 0.66 < hits["naive"] / sets < 0.86
