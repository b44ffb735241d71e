"""From statistics to the posterior: the wiring of both stages, settings, and warnings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from core.errors import EstimationError
from core.pumba import gram, means, tables
from core.pumba.analyses import (
    CorrelationAnalysis,
    DifferenceAnalysis,
    Facts,
    MeanAnalysis,
    RegressionAnalysis,
    TableAnalysis,
)
from core.pumba.gram import GramVariable, NoisyGram
from core.pumba.means import BoundedMean
from core.pumba.posterior import analysis_of, finish, posterior, rows_behind, stage_one
from core.pumba.priors import NormalPrior
from core.pumba.settings import Settings
from core.pumba.tables import NoisyTable, TableQuery
from core.pumba.warnings import Severity
from core.statistics import Family, NoiseLaw, NoisyStatistic


def noisy(value, scale=2.0, family=Family.LAPLACE):
    return NoisyStatistic(value, NoiseLaw(family, scale))


def whole(value, scale=2.0):
    return noisy(value, scale, Family.DISCRETE_LAPLACE)


def mean_of(n=400, mean=0.4, scale=0.5):
    return BoundedMean("x", 0.0, 1.0, n, noisy(n * mean, scale), noisy(n * (mean**2 + 0.04), scale))


TABLE = NoisyTable((("sex", ("w", "m")),), (whole(60.0), whole(38.0)), 100)
GRAM = NoisyGram(
    (GramVariable("x", 0.0, 1.0), GramVariable("y", 0.0, 1.0)),
    2000,
    {"x": noisy(1000.0), "y": noisy(1000.0)},
    {("x", "x"): noisy(660.0), ("x", "y"): noisy(580.0), ("y", "y"): noisy(620.0)},
)
QUICK = Settings(draws=2000, seed=3)


def codes(result, severity=None):
    return [one.code for one in result.warnings if severity in (None, one.severity)]


def named(result, name):
    (one,) = [one for one in result.summary if one.name == name]
    return one


# -- both stages ---------------------------------------------------------------------------------


def test_a_proportion_has_the_exact_posterior():
    """n known and a uniform prior: a beta mixture over the lattice of counts."""
    k = np.arange(101)
    log = -np.abs(60 - k) / 2.0 - np.abs(38 - (100 - k)) / 2.0
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = weights @ ((k + 1) / 102)
    second = weights @ ((k + 1) * (k + 2) / (102 * 103))
    between = weights @ (((k + 1) / 102) ** 2) - mean**2
    result = posterior(TABLE, Settings(draws=40_000))
    one = named(result, "p(sex=w)")
    assert one.mean == pytest.approx(mean, abs=0.001)
    assert one.sd == pytest.approx(np.sqrt(second - mean**2), abs=0.001)
    assert one.privacy_share == pytest.approx(between / (second - mean**2), abs=0.03)
    assert one.r_hat is None


def test_a_mean_has_the_normal_laplace_posterior():
    """Wide support and large n: N(s/n, v/n) and Laplace(b/n), convolved."""
    problem = mean_of(n=10_000, scale=30.0)
    one = named(posterior(problem, Settings(draws=40_000)), "mean")
    privacy = 2 * (30.0 / 10_000) ** 2
    sampling = 0.04 / 10_000
    assert one.mean == pytest.approx(0.4, abs=0.0002)
    assert one.sd == pytest.approx(np.sqrt(privacy + sampling), rel=0.02)
    assert one.privacy_share == pytest.approx(privacy / (privacy + sampling), abs=0.02)


def test_a_difference_of_groups():
    analysis = DifferenceAnalysis("gap", mean_of(mean=0.6), mean_of(mean=0.4))
    result = posterior(analysis, QUICK)
    one = result.summary[0]
    single = named(posterior(mean_of(mean=0.6), QUICK), "mean")
    assert one.mean == pytest.approx(0.2, abs=0.005)
    assert one.sd == pytest.approx(np.sqrt(2) * single.sd, rel=0.1)


def test_the_groups_of_a_difference_have_noise_of_their_own():
    analysis = DifferenceAnalysis("gap", mean_of(), mean_of())
    first, second = stage_one(analysis, 500, 0).statistics
    assert abs(np.corrcoef(first.values[:, 0], second.values[:, 0])[0, 1]) < 0.2


def test_a_regression_and_a_correlation():
    slope = named(posterior(RegressionAnalysis("r", GRAM, "y", ("x",)), QUICK), "x")
    assert slope.mean == pytest.approx((580 / 2000 - 0.25) / (660 / 2000 - 0.25), abs=0.03)
    (r,) = posterior(CorrelationAnalysis("c", GRAM), QUICK).summary
    assert r.mean == pytest.approx(0.04 / np.sqrt(0.08 * 0.06), abs=0.03)


def test_bare_problems_get_their_usual_analysis():
    assert isinstance(analysis_of(TABLE), TableAnalysis)
    assert isinstance(analysis_of(mean_of()), MeanAnalysis)
    assert isinstance(analysis_of(GRAM), CorrelationAnalysis)
    analysis = MeanAnalysis("m", mean_of())
    assert analysis_of(analysis) is analysis
    assert posterior(TABLE, QUICK).title == "sex"


@pytest.mark.parametrize("problem", [TABLE, mean_of(), GRAM])
def test_the_same_seed_gives_the_same_draws(problem):
    first, again = posterior(problem, QUICK), posterior(problem, QUICK)
    other = posterior(problem, replace(QUICK, seed=4))
    assert np.array_equal(first.parameters.values, again.parameters.values)
    assert not np.array_equal(first.parameters.values, other.parameters.values)


def test_progress_reaches_the_sampler():
    margins = tuple(
        TableQuery(weights, whole(50.0)) for weights in ((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0))
    )
    axes = (("a", ("x", "y")), ("b", ("u", "v")))
    table = NoisyTable(axes, tuple(whole(v) for v in (20.0, 30.0, 25.0, 25.0)), None, margins)
    seen = []
    posterior(table, QUICK, lambda *step: seen.append(step))
    assert seen


# -- changing settings keeps stage 1 -------------------------------------------------------------


@pytest.mark.parametrize(
    "analysis",
    [
        TableAnalysis("t", TABLE),
        MeanAnalysis("m", mean_of()),
        RegressionAnalysis("r", GRAM, "y", ("x",)),
    ],
    ids=lambda one: one.title,
)
@pytest.mark.parametrize(
    "change",
    [{"level": 0.5}, {"rope": (-1.0, 1.0)}, {"estimand": "sample"}, {"design_effect": 2.0}],
    ids=str,
)
def test_settings_do_not_redo_stage_one(analysis, change, monkeypatch):
    stage = stage_one(analysis, QUICK.draws, QUICK.seed)
    for module, name in ((tables, "draw_counts"), (means, "draw_sums"), (gram, "draw_grams")):
        monkeypatch.setattr(module, name, None)
    before = finish(analysis, stage, QUICK)
    after = finish(analysis, stage, replace(QUICK, **change))
    assert after.summary != before.summary
    same = np.array_equal(before.parameters.values, after.parameters.values)
    assert same == (set(change) <= {"level", "rope"})


def test_other_draws_need_another_stage_one():
    stage = stage_one(TableAnalysis("t", TABLE), 2000, 3)
    for change in ({"draws": 1000}, {"seed": 4}):
        with pytest.raises(EstimationError, match="draw stage 1 again"):
            finish(TableAnalysis("t", TABLE), stage, replace(QUICK, **change))


def test_a_prior_pulls_the_mean():
    plain = named(posterior(mean_of(), QUICK), "mean")
    prior = NormalPrior(0.5, plain.sd)
    pulled = named(posterior(mean_of(), replace(QUICK, priors={"mean": prior})), "mean")
    assert plain.mean + 0.2 * (0.5 - plain.mean) < pulled.mean < 0.5


def test_a_prior_of_a_difference_holds_for_both_groups():
    analysis = DifferenceAnalysis("gap", mean_of(mean=0.6), mean_of(mean=0.4))
    prior = {"mean": NormalPrior(0.5, 0.001)}
    pulled = posterior(analysis, replace(QUICK, priors=prior)).summary[0]
    assert abs(pulled.mean) < 0.02


@pytest.mark.parametrize("problem", [TABLE, GRAM])
def test_priors_where_there_are_none(problem):
    with pytest.raises(EstimationError, match="prior"):
        posterior(problem, replace(QUICK, priors={"mean": NormalPrior(0.0, 1.0)}))


# -- sampling ------------------------------------------------------------------------------------


def test_for_the_sample_only_noise_is_left():
    result = posterior(mean_of(), replace(QUICK, estimand="sample"))
    one = named(result, "mean")
    assert one.privacy_share == pytest.approx(1.0)
    assert one.sd == pytest.approx(np.sqrt(2) * 0.5 / 400, rel=0.15)
    assert "P7" in codes(result)


def test_a_finite_population_shrinks_sampling_and_nothing_else():
    problem = mean_of(n=10_000, scale=30.0)
    privacy, sampling = 2 * (30.0 / 10_000) ** 2, 0.04 / 10_000
    for size, factor in ((10_000, 0.0), (20_000, 0.5), (10**9, 1.0)):
        one = named(posterior(problem, replace(QUICK, population_size=size, draws=20_000)), "mean")
        assert one.sd == pytest.approx(np.sqrt(privacy + factor * sampling), rel=0.03)


def test_a_design_effect_multiplies_sampling():
    problem = mean_of(n=10_000, scale=30.0)
    result = posterior(problem, replace(QUICK, design_effect=3.0, draws=20_000))
    expected = np.sqrt(2 * (30.0 / 10_000) ** 2 + 3 * 0.04 / 10_000)
    assert named(result, "mean").sd == pytest.approx(expected, rel=0.03)
    assert "P12" in codes(result)


@pytest.mark.parametrize("problem", [TABLE, mean_of(), GRAM])
def test_more_rows_than_the_population_has(problem):
    with pytest.raises(EstimationError, match="cannot come from a population of 50"):
        posterior(problem, replace(QUICK, population_size=50))


def test_rows_behind_noisy_counts_are_their_posterior_mean():
    table = NoisyTable(TABLE.axes, TABLE.cells, None)
    analysis = TableAnalysis("t", table)
    (rows,) = rows_behind(analysis, stage_one(analysis, 2000, 0))
    assert rows == pytest.approx(98, abs=1)
    mean = MeanAnalysis("m", replace(mean_of(), count=whole(400.0)))
    (rows,) = rows_behind(mean, stage_one(mean, 2000, 0))
    assert rows == pytest.approx(400, abs=2)
    regression = CorrelationAnalysis("c", replace(GRAM, count=noisy(2000.0)))
    (rows,) = rows_behind(regression, stage_one(regression, 2000, 0))
    assert rows == pytest.approx(2000, abs=2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": 1.0}, "level"),
        ({"estimand": "everyone"}, "everyone"),
        ({"draws": 10}, "draws"),
        ({"draws": 10**9}, "draws"),
        ({"seed": -1}, "seed"),
        ({"alpha": 0.0}, "alpha"),
        ({"vcov": "hc3"}, "hc3"),
        ({"design_effect": 0.0}, "design effect"),
        ({"design_effect": float("nan")}, "design effect"),
        ({"population_size": 0}, "population"),
    ],
)
def test_settings_that_no_posterior_can_have(change, words):
    with pytest.raises(EstimationError, match=words):
        Settings(**change)


# -- warnings ------------------------------------------------------------------------------------


def test_serious_warnings_come_first():
    facts = Facts(clipped=(("x", 0.0, 1.0),), attenuation=(("poverty", 0.3),), selected=("x",))
    result = posterior(MeanAnalysis("m", mean_of(), facts), QUICK)
    assert codes(result) == ["P1", "P8", "P6", "P9"]


def test_facts_reach_the_warnings():
    facts = Facts(repeated=("the sum of x",), weighted=True)
    result = posterior(MeanAnalysis("m", mean_of(), facts), QUICK)
    assert codes(result, Severity.SERIOUS) == ["P12"]
    assert "P8" in codes(result)
    deft = posterior(MeanAnalysis("m", mean_of(), facts), replace(QUICK, design_effect=2.0))
    assert "P12" not in codes(deft, Severity.SERIOUS)


def test_big_noise_on_few_rows_is_loud():
    problem = BoundedMean("x", 0.0, 1.0, 25, noisy(-20.0, 20.0), noisy(30.0, 20.0))
    result = posterior(problem, QUICK)
    serious = [one.sentence for one in result.warnings if one.severity is Severity.SERIOUS]
    assert any("No data could have exactly" in sentence for sentence in serious)
    assert any("nearly all privacy noise" in sentence for sentence in serious)
    assert any("25 rows" in sentence for sentence in serious)


def test_the_thinnest_group_of_a_two_way_table_is_named():
    axes = (("region", ("north", "south")), ("hired", ("yes", "no")))
    cells = tuple(whole(value) for value in (5.0, 12.0, 300.0, 500.0))
    result = posterior(NoisyTable(axes, cells, None), QUICK)
    assert any("region = north" in one.sentence for one in result.warnings if one.code == "P3")


def test_a_sparse_table():
    cells = tuple(whole(value) for value in (100.0, *[0.0] * 30))
    axes = (("job", tuple(f"j{i}" for i in range(31))),)
    result = posterior(NoisyTable(axes, cells, 100), QUICK)
    assert {"P2", "P4"} <= set(codes(result))
    assert "P2" not in codes(posterior(TABLE, QUICK))


def test_a_total_computed_from_the_cells():
    cells = tuple(whole(value, 20.0) for value in (1000.0, 900.0))
    suspicious = NoisyTable(TABLE.axes, cells, whole(1900.0, 20.0))
    assert "P10" in codes(posterior(suspicious, QUICK))
    honest = NoisyTable(TABLE.axes, cells, whole(1907.0, 20.0))
    assert "P10" not in codes(posterior(honest, QUICK))
    coincidence = NoisyTable(TABLE.axes, (whole(60.0), whole(40.0)), 100)
    assert "P10" not in codes(posterior(coincidence, QUICK))


def test_a_mean_at_its_bound_and_a_regression_that_explains_all():
    result = posterior(BoundedMean("x", 0.0, 1.0, 5000, noisy(20.0), noisy(10.0)), QUICK)
    assert any("lower bound" in one.sentence for one in result.warnings if one.code == "P4")
    sums = {"xx": 660.0, "xy": 577.0, "yy": 539.0}
    products = {(key[0], key[1]): noisy(value, 0.5) for key, value in sums.items()}
    result = posterior(
        RegressionAnalysis("r", replace(GRAM, products=products), "y", ("x",)), QUICK
    )
    assert any("explain about" in one.sentence for one in result.warnings if one.code == "P4")
    assert "P4" not in codes(posterior(RegressionAnalysis("r", GRAM, "y", ("x",)), QUICK))


def test_few_draws_are_told():
    result = posterior(mean_of(), Settings(draws=100))
    assert "P11" in codes(result)
    assert "P11" not in codes(posterior(mean_of(), Settings()))


def test_coverage_of_a_bounded_mean():
    """300 data sets: 90 % intervals cover the mean at 90 %, within 5 standard errors."""
    generator = np.random.default_rng(12)
    covered = 0
    for _ in range(300):
        x = generator.beta(2, 2, 200)
        problem = BoundedMean(
            "x",
            0.0,
            1.0,
            200,
            noisy(x.sum() + generator.laplace(0, 1.0), 1.0),
            noisy((x**2).sum() + generator.laplace(0, 2.0), 2.0),
        )
        one = named(posterior(problem, Settings(draws=800, level=0.9)), "mean")
        covered += one.eti_low <= 0.5 <= one.eti_high
    assert covered >= stats.binom(300, 0.9).ppf(1e-6)
    assert covered <= stats.binom(300, 0.97).ppf(1 - 1e-6)
