"""Posteriors from the measured entries of a covariance release."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from core.errors import Cancelled, EstimationError, StatisticError
from core.pace.estimate import estimate
from core.pace.regression import regression
from core.pace.release import Clip
from core.pace.select import release_covariance
from core.pumba.from_covariance import (
    MOST_COLUMNS,
    PUBLIC_MEANS,
    MeasuredEntries,
)
from core.pumba.gram import draw_grams
from core.pumba.gram_variable import GramVariable
from core.pumba.posterior import posterior
from core.pumba.settings import Settings
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault
from core.statistics import Family, NoisyStatistic
from tests.core.pace.tables import ADD, BOTH, REPLACE, correlated, names_of, released

OUTCOME, PREDICTORS = "x03", ("x00", "x01", "x02")
NAMES = (*PREDICTORS, OUTCOME)
EXACT = 10**8


def rows_of(count, seed):
    """Columns within the box, off its middle, three of which explain the fourth."""
    generator = np.random.default_rng(seed)
    first, third, noise = generator.normal(size=(3, count))
    second = 0.5 * first + 0.8 * generator.normal(size=count)
    outcome = 0.6 * first - 0.4 * second + 0.5 * noise
    values = 0.15 * np.column_stack([first, second, third, outcome])
    return np.clip(values + np.array([0.3, -0.25, 0.1, 0.15]), -1, 1)


def private(values, rho, **settings):
    return released(values, rho, means="private", **{"method": "ssp", **settings})


def least_squares(values):
    design = np.column_stack([np.ones(len(values)), values[:, :-1]])
    return np.linalg.lstsq(design, values[:, -1], rcond=None)[0]


# -- the sums --------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
def test_sums_are_those_of_the_scaled_rows(relation):
    """At next to no noise every released sum equals the one that its variable says it is."""
    values = rows_of(800, 1)
    widths = dict.fromkeys(NAMES, 1.5)
    release = private(values, EXACT, relation=relation, half_widths=widths)
    gram = MeasuredEntries(release).regression(OUTCOME, PREDICTORS).analysis.gram
    assert gram.names == NAMES
    scaled = (values - release.means.values) / 1.5
    for place, variable in enumerate(gram.variables):
        assert (variable.origin, variable.unit) == (release.means.values[place], 1.5)
        total = gram.sums[variable.name]
        assert total.value == pytest.approx(
            (scaled[:, place] + variable.offset).sum(), abs=1e-3 * len(values)
        )
        assert total.value == pytest.approx(values[:, place].sum() / 1.5, abs=0.01)
    for (a, b), (found,) in gram.products.items():
        one, other = scaled[:, NAMES.index(a)], scaled[:, NAMES.index(b)]
        assert found.value == pytest.approx(one @ other, abs=0.5), "cut to a grid of 2⁻¹²"
    if relation is REPLACE:
        assert gram.count == len(values)
    else:
        assert isinstance(gram.count, NoisyStatistic)
        assert gram.count.value == len(values)


def test_the_noise_of_the_sums_has_the_scale_that_they_say():
    """Over seeds, the error of the sum of u + offset is a draw of its law."""
    values = rows_of(500, 2)
    scores = []
    for seed in range(60):
        release = private(values, "1/2", seed=seed, half_widths=dict.fromkeys(NAMES, 1.9))
        gram = MeasuredEntries(release).correlations(NAMES).analysis.gram
        for place, name in enumerate(NAMES):
            found = gram.sums[name]
            assert found.law.family is Family.DISCRETE_GAUSSIAN
            assert found.value / found.law.lattice == pytest.approx(
                round(found.value / found.law.lattice)
            )
            scores.append((found.value - values[:, place].sum() / 1.9) / found.law.sd)
    assert abs(np.mean(scores)) < 5 / np.sqrt(len(scores))
    assert abs(np.std(scores) - 1) < 5 / np.sqrt(2 * len(scores))


def test_an_unknown_count_and_the_sums_move_together():
    """Where the count is the only thing unknown, the sum of u falls by the offset a row."""
    values = rows_of(4000, 3)
    release = private(values, EXACT)
    blurred = replace(release, rows=replace(release.rows, sigma=20.0))
    gram = MeasuredEntries(blurred).regression(OUTCOME, PREDICTORS).analysis.gram
    draws = draw_grams(gram, 2000, np.random.default_rng(0))
    counts = draws.values[:, 0, 0]
    assert counts.std() == pytest.approx(20.0, rel=0.1)
    for place, variable in enumerate(gram.variables, 1):
        slope = np.polyfit(counts - 4000, draws.values[:, 0, place], 1)[0]
        assert slope == pytest.approx(-variable.offset, abs=1e-3)


def test_repeated_releases_of_an_entry_stay_apart_and_keep_their_steps():
    release = private(rows_of(300, 4), "1/2", method="ssp_tight", relation=REPLACE)
    twice = MeasuredEntries(doubled(release)).correlations(NAMES).analysis.gram
    once = MeasuredEntries(release).correlations(NAMES).analysis.gram
    weight = float(release.draws[0].diagonal_weight)
    assert weight > 1
    for entry, (found,) in once.products.items():
        assert twice.products[entry] == (found, found)
        step = release.draws[0].step / (weight if entry[0] == entry[1] else 1.0)
        assert found.law.lattice == step
        assert found.value / step == pytest.approx(round(found.value / step), abs=1e-6)


def doubled(release, *, clip=None):
    """The same draw twice, the first under a row clip where one is given."""
    (draw,) = release.draws
    count = draw.stop
    return replace(
        release,
        draws=(
            replace(draw, clip_squared=clip),
            replace(draw, start=count, stop=2 * count, stage="second triangle"),
        ),
        pairs=np.concatenate([release.pairs] * 2),
        sums=np.concatenate([release.sums] * 2),
        sigmas=np.concatenate([release.sigmas] * 2),
        clip=None if clip is None else Clip(clip, (clip,), Fraction(1, 100)),
    )


# -- the answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("relation", BOTH)
def test_intervals_cover_the_population(relation):
    """Nominal 95 %; slopes, intercept, a correlation, and the slopes of the rows themselves."""
    everybody = rows_of(1_000_000, 99)
    truth = least_squares(everybody)
    correlation = np.corrcoef(everybody[:, :2].T)[0, 1]
    hits, own = [], []
    for seed in range(40):
        values = rows_of(1500, 1000 + seed)
        entries = MeasuredEntries(private(values, "2", seed=seed, relation=relation))
        settings = Settings(draws=500, seed=seed)
        question = entries.regression(OUTCOME, PREDICTORS).analysis
        found = posterior(question, settings).summary[:4]
        pair = posterior(entries.correlations(("x00", "x01")).analysis, settings).summary
        hits.append(inside((*found, *pair), (*truth, correlation)))
        rows = posterior(question, replace(settings, estimand="sample")).summary[:4]
        own.append(inside(rows, least_squares(values)))
    for rates in (np.mean(hits, axis=0), np.mean(own, axis=0)):
        assert rates.min() >= 0.85, rates
        assert 0.915 <= rates.mean() < 0.995, rates


def inside(summary, truth):
    return [one.eti_low <= true <= one.eti_high for one, true in zip(summary, truth, strict=True)]


@pytest.mark.parametrize("relation", BOTH)
def test_next_to_no_noise_gives_the_regression_of_the_matrix(relation):
    release = private(rows_of(3000, 5), EXACT, relation=relation)
    expected = regression(estimate(release), OUTCOME, PREDICTORS)
    question = MeasuredEntries(release).regression(OUTCOME, PREDICTORS).analysis
    found = posterior(question, Settings(draws=200, estimand="sample")).summary
    wanted = [expected.intercept, *expected.coefficients.values]
    np.testing.assert_allclose(
        [one.mean for one in found[:4]], [one.value for one in wanted], atol=2e-4
    )
    assert found[4].mean == pytest.approx(expected.residual_deviation, rel=2e-3)
    pair = MeasuredEntries(release).correlations(("x03", "x00")).analysis
    (value,) = posterior(pair, Settings(draws=200, estimand="sample")).summary
    assert value.mean == pytest.approx(estimate(release).correlation[0, 3], abs=2e-4)


# -- what is said ----------------------------------------------------------------------------


def test_public_means_are_refused():
    entries = MeasuredEntries(released(rows_of(100, 0), "1", method="ssp"))
    assert entries.refusal == PUBLIC_MEANS
    assert entries.columns == ()
    with pytest.raises(EstimationError, match="were public"):
        entries.regression(OUTCOME, PREDICTORS)


def test_entries_that_were_never_measured_are_named():
    entries = MeasuredEntries(private(rows_of(300, 0), "1", method="diagonal"))
    assert "x00 × x01, x00 × x02, x00 × x03 and 3 more were never measured" in entries.refusal
    assert entries.refusal_of(("x02", "x01")) == (
        "x01 × x02 was never measured; the matrix fills such entries in, which is no measurement."
    )
    assert entries.columns == ()


def test_an_adaptive_release_answers_what_its_rounds_measured():
    values = correlated(2000, 6, 3)
    release = private(values, "1/20", method="pace", seed=3)
    entries = MeasuredEntries(release)
    measured = {step.chosen for step in release.rounds if step.chosen[0] != step.chosen[1]}
    assert measured
    assert entries.refusal is not None
    found = {tuple(sorted((a, b))) for a in entries.columns for b in entries.partners(a)}
    assert found == measured
    pair = min(measured)
    facts = entries.correlations(pair).analysis.facts
    assert facts.selected == (f"{pair[0]} × {pair[1]}",)
    assert not facts.stated


def test_one_shot_methods_select_nothing_and_name_the_bounds():
    release = private(rows_of(300, 0), "1")
    entries = MeasuredEntries(release)
    assert entries.refusal is None
    assert entries.columns == NAMES
    facts = entries.regression(OUTCOME, PREDICTORS).analysis.facts
    assert facts.selected == ()
    for place, (name, low, high) in enumerate(facts.clipped):
        assert name == NAMES[place]
        assert (low + high) / 2 == pytest.approx(release.means.values[place])
        assert high - low == pytest.approx(2.0)


def test_a_cancelled_release_says_so():
    def progress(stage, done, total, detail):
        if stage == "means" and done == 1:
            raise Cancelled("stop")

    entries = MeasuredEntries(private(rows_of(300, 0), "1", progress=progress))
    assert "The release was cancelled early" in entries.refusal


def test_shrunk_rows_are_used_last_and_said():
    release = private(rows_of(300, 0), "1")
    both = MeasuredEntries(doubled(release, clip=Fraction(3, 2)))
    answer = both.correlations(NAMES)
    assert {len(found) for found in answer.analysis.gram.products.values()} == {1}
    assert not any("shrunk" in words for words in answer.caveats)
    (draw,) = release.draws
    clip = Clip(Fraction(3, 2), (Fraction(3, 2),), Fraction(1, 100))
    shrunk = replace(release, draws=(replace(draw, clip_squared=clip.squared),), clip=clip)
    answer = MeasuredEntries(shrunk).correlations(NAMES)
    assert any("squared norm of 1.5 (of 4)" in words for words in answer.caveats)
    wide = replace(release, draws=(replace(draw, clip_squared=Fraction(4)),))
    assert not any("shrunk" in w for w in MeasuredEntries(wide).correlations(NAMES).caveats)


def test_cutting_is_said_where_it_can_matter():
    """Narrow half-widths cut values in the products that the sums hold in full."""
    values = rows_of(2000, 6)
    narrow = MeasuredEntries(private(values, "1", half_widths=dict.fromkeys(NAMES, 0.15)))
    wide = MeasuredEntries(private(values, "1", half_widths=dict.fromkeys(NAMES, 2.0)))
    assert any("cut" in words for words in narrow.correlations(NAMES).caveats)
    assert not any("cut" in words for words in wide.correlations(NAMES).caveats)


def table_of(columns, values):
    """A release of columns with declarations of their own."""
    from core.private.table import CodedTable

    codes = {column.name: np.zeros(len(values), dtype=np.uint8) for column in columns}
    arrays = {column.name: values[:, place] for place, column in enumerate(columns)}
    table = CodedTable(Schema(columns), codes, arrays, len(values))
    grant = simulated_vault(table, seed=0, relation=ADD, cap="100").grant(
        Fraction(1), "covariance", "request-1"
    )
    return release_covariance(grant, table.schema, table.schema.names, method="ssp")


def test_a_column_of_one_declared_value_is_refused():
    columns = (
        Column("a", Kind.REAL, lower=-1, upper=1, bins=2),
        Column("b", Kind.INTEGER, lower=3, upper=3),
    )
    values = np.column_stack([rows_of(400, 7)[:, 0], np.full(400, 3.0)])
    entries = MeasuredEntries(table_of(columns, values))
    assert entries.refusal == "b: only one value is declared, so there is no variation."


def test_too_many_too_few_and_wrong_columns():
    many = MOST_COLUMNS + 1
    entries = MeasuredEntries(private(correlated(200, many, 0), "1"))
    assert f"choose up to {MOST_COLUMNS}" in entries.refusal
    assert entries.refusal_of(names_of(many)[:3]) is None
    assert "two columns" in entries.refusal_of(("x00",))
    with pytest.raises(EstimationError, match="not in this covariance"):
        entries.refusal_of(("x00", "nobody"))
    with pytest.raises(EstimationError, match="named twice"):
        entries.regression("x00", ("x00",))


def test_an_offset_fits_numbers_only():
    assert GramVariable("x", -1.0, 1.0, offset=0.5).offset == 0.5
    with pytest.raises(StatisticError, match="offset"):
        GramVariable("x", 0.0, 1.0, indicator=True, offset=0.5)
    with pytest.raises(StatisticError, match="offset"):
        GramVariable("x", -1.0, 1.0, offset=float("nan"))
