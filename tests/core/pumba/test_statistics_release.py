"""Frozen statistics: their bytes, the problems that follow, and the statement in words."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Cancelled, EstimationError, ReleaseError
from core.pumba.gram import NoisyGram, draw_grams
from core.pumba.means import BoundedMean, draw_sums, mean_posterior
from core.pumba.release import StatisticsRelease, problems, regressors, statement_lines
from core.pumba.requests import AnalysisSpec
from core.pumba.tables import NoisyTable, draw_counts
from core.releases import NoisyMarginal, TreeRelease, pack_bytes, unpack_bytes
from core.statistics import Family, NoiseLaw, NoisyStatistic
from tests.core.pumba.staff import ADD, REPLACE, SCHEMA, SPECS, measured

NAMES = sorted(SPECS)
SHARED = AnalysisSpec("mean", "age", outcome="age", rows="tree")
ROWS = NoisyStatistic(1998.5, NoiseLaw(Family.GAUSSIAN, 3.25))


def everything():
    yield from (measured(SPECS[name], relation=r) for name in NAMES for r in (ADD, REPLACE))
    yield measured(SHARED, row_count=ROWS)
    yield cancelled(SPECS["robust"], 3)


def cancelled(spec, place):
    def progress(stage, done, total, detail):
        if done == place:
            raise Cancelled("stop")

    return measured(spec, progress=progress)


# -- bytes ---------------------------------------------------------------------------------


def test_bytes_are_deterministic_and_lead_back():
    for release in everything():
        blob = release.to_bytes()
        again = StatisticsRelease.from_bytes(blob)
        assert again.to_bytes() == blob
        assert again.spec == release.spec
        assert again.schema == release.schema
        assert again.provenance == release.provenance
        assert again.split == release.split
        assert (again.public_rows, again.partial) == (release.public_rows, release.partial)
        assert again.shared_rows == release.shared_rows
        assert again.measured == release.measured
        assert statement_lines(again) == statement_lines(release)


def test_equal_seeds_give_equal_bytes():
    first, second, other = (measured(SPECS["robust"], seed=seed) for seed in (3, 3, 4))
    assert first.to_bytes() == second.to_bytes() != other.to_bytes()


def test_another_release_is_refused():
    blob = measured(SPECS["mean"]).to_bytes()
    with pytest.raises(ReleaseError, match="not a TreeRelease"):
        TreeRelease.from_bytes(blob)
    for damaged in (b"", b"x" * 100, blob[:-40]):
        with pytest.raises(ReleaseError):
            StatisticsRelease.from_bytes(damaged)


def altered(release, change):
    header, arrays = unpack_bytes(release.to_bytes(), "StatisticsRelease")
    change(header, arrays)
    return pack_bytes(header, arrays)


def setting(*path, value):
    def change(header, arrays):
        place = header
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def without(*path):
    def change(header, arrays):
        place = header
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


def array(name, value):
    def change(header, arrays):
        arrays[name] = value

    return change


DAMAGE = {
    "version": setting("version", value=2),
    "no version": without("version"),
    "no spec": without("spec"),
    "unknown kind": setting("spec", "kind", value="median"),
    "unknown column": setting("spec", "outcome", value="height"),
    "schema": setting("schema", "columns", 0, "lower", value=99),
    "split": setting("split", value=[["sums", "1/2"], ["count", "1/4"], ["products", "1/4"]]),
    "split share": setting("split", 0, 1, value="1/0"),
    "split plain": setting("split", value=7),
    "sigma": setting("sums", 0, "sigma", value=-1.0),
    "sigma text": setting("sums", 0, "sigma", value="wide"),
    "rho": setting("sums", 0, "rho", value="x"),
    "monomials": setting("sums", 0, "request", "monomials", value=[["nobody"]]),
    "request": setting("sums", 0, "request", value=[]),
    "scale": setting("sums", 0, "request", "scales", value=[["age", 0, 0]]),
    "indicator": setting("sums", 0, "request", "indicators", value=[["x", "job", -1]]),
    "rows": setting("public_rows", value=-3),
    "rows float": setting("public_rows", value=2.5),
    "shared rows": setting("shared_rows", value={"value": 1}),
    "shared scale": setting(
        "shared_rows",
        value={"value": 1, "family": "gaussian", "scale": 0, "lattice": 1, "clamped": [None, None]},
    ),
    "floats": array("sums_0", np.zeros(1)),
    "too many numbers": array("sums_0", np.zeros(4, dtype=np.int64)),
    "provenance": without("provenance", "rho"),
    "relation": setting("provenance", "relation", value="both"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_content_is_refused_in_words(name):
    blob = altered(measured(SPECS["mean"]), DAMAGE[name])
    with pytest.raises(ReleaseError):
        StatisticsRelease.from_bytes(blob)


def test_a_table_that_does_not_fit_is_refused():
    blob = altered(measured(SPECS["table"]), array("table_0", np.zeros((2, 2), dtype=np.int64)))
    with pytest.raises(ReleaseError, match="declarations"):
        StatisticsRelease.from_bytes(blob)
    blob = altered(measured(SPECS["table"]), setting("tables", 0, "clique", value=["job", "age"]))
    with pytest.raises(ReleaseError):
        StatisticsRelease.from_bytes(blob)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_alteration_of_the_header_escapes_the_family_of_errors(data):
    """Any plain value anywhere: a release or a ReleaseError, never a bare exception."""
    release = MEAN if data.draw(st.booleans()) else TABLE
    header, arrays = unpack_bytes(release.to_bytes(), "StatisticsRelease")
    place, key = header, None
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        place = inner
    if (place is header and key == "type") or "flags" in str(key):
        return
    junk = st.one_of(
        st.none(), st.booleans(), st.integers(-3, 3),
        st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3),
        st.just([]), st.just({}), st.just([1, "x"]),
    )  # fmt: skip
    place[key] = data.draw(junk)
    try:
        again = StatisticsRelease.from_bytes(pack_bytes(header, arrays))
    except ReleaseError:
        return
    assert isinstance(again, StatisticsRelease)


MEAN, TABLE = measured(SPECS["mean"], relation=REPLACE), measured(SPECS["table"])


def test_the_bytes_hold_no_pickle_and_a_readable_header():
    blob = MEAN.to_bytes()
    header, _ = unpack_bytes(blob, "StatisticsRelease")
    json.dumps(header, allow_nan=False)
    assert header["spec"]["kind"] == "mean"
    assert b"\x80\x04" not in blob[:2]


# -- problems ------------------------------------------------------------------------------


def test_problems_have_the_type_of_their_question():
    kinds = {
        "mean": (BoundedMean, 1),
        "means by group": (BoundedMean, 2),
        "difference": (BoundedMean, 2),
        "proportion": (NoisyTable, 1),
        "table": (NoisyTable, 1),
        "regression": (NoisyGram, 1),
        "correlation": (NoisyGram, 1),
    }
    for name, (kind, number) in kinds.items():
        for relation in (ADD, REPLACE):
            found = problems(measured(SPECS[name], relation=relation))
            assert [type(problem) for problem in found] == [kind] * number


def test_every_statistic_carries_its_own_lattice():
    release = measured(SPECS["regression"])
    (gram,) = problems(release)
    cells = gram.sums["job=clerk"].law
    assert cells.family is Family.DISCRETE_GAUSSIAN
    assert gram.count.law.lattice == 1.0
    assert gram.sums["age"].law.lattice == 2.0**-24
    assert cells.lattice == 2.0**-24  # drawn together with sums of numbers
    for statistic in (gram.count, *gram.sums.values(), *gram.products.values()):
        ratio = statistic.value / statistic.law.lattice
        assert ratio == round(ratio)
    assert len({s.law.scale for s in gram.sums.values()}) == 1
    groups = problems(measured(SPECS["means by group"]))
    assert all(group.count.law.lattice == 1.0 for group in groups)


def test_tables_keep_every_cell_and_the_total_only_where_it_is_public():
    (table,) = problems(measured(SPECS["proportion by group"]))
    assert [name for name, _ in table.axes] == ["sex", "job"]
    assert table.axes[1][1] == SCHEMA["job"].cells
    assert len(table.cells) == 2 * 5
    assert table.total is None
    assert table.cells[0].law == NoiseLaw(Family.DISCRETE_GAUSSIAN, 1.0)
    (table,) = problems(measured(SPECS["proportion by group"], relation=REPLACE))
    assert table.total == 2000


def test_regressions_name_their_predictors_in_order():
    release = measured(SPECS["regression"])
    (gram,) = problems(release)
    assert regressors(release) == ("job=clerk", "job=judge", "age", "sex=m")
    assert [v.exclusive for v in gram.variables] == ["job", "job", None, "sex", None]
    age = gram.variables[2]
    assert (age.origin, age.unit, age.lower, age.upper) == (40.0, 20.0, -1.0, 1.0)


def test_fourth_order_sums_come_complete_or_not_at_all():
    (gram,) = problems(measured(SPECS["robust"]))
    assert len(gram.fourth) == 9
    (gram,) = problems(cancelled(SPECS["robust"], 4))  # count, sums, products, cubes
    assert not gram.fourth


def test_problems_of_a_cancelled_release():
    for name, place, words in (
        ("regression", 1, "sums were measured"),
        ("regression", 2, "squares and products"),
        ("mean with gaps", 1, "sums were measured"),
    ):
        with pytest.raises(EstimationError, match=words):
            problems(cancelled(SPECS[name], place))
    (mean,) = problems(cancelled(SPECS["mean with gaps"], 2))
    assert mean.squares is None
    assert mean.quartics is None
    (mean,) = problems(cancelled(SPECS["mean with gaps"], 3))
    assert mean.squares is not None
    empty = replace(measured(SPECS["table"]), tables=(), partial=True)
    with pytest.raises(EstimationError, match="never measured"):
        problems(empty)
    uncounted = replace(measured(SHARED, row_count=ROWS), shared_rows=None)
    with pytest.raises(EstimationError, match="never counted"):
        problems(uncounted)


def test_releases_refuse_answers_to_another_question():
    release = measured(SPECS["table"])
    (table,) = release.tables
    with pytest.raises(ReleaseError):
        replace(release, tables=(NoisyMarginal(("job",), table.values, 1.0, table.rho),))
    with pytest.raises(ReleaseError):
        replace(release, split=(("sums", Fraction(1)),))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_posteriors_can_be_drawn_from_every_problem(relation):
    """The hand-over: stage 1 of each core accepts what the vault route measures."""
    generator = np.random.default_rng(0)
    for name in NAMES:
        for problem in problems(measured(SPECS[name], relation=relation)):
            if isinstance(problem, BoundedMean):
                found = draw_sums(problem, 200, generator)
                values = mean_posterior(problem, found, generator).values
                low, high = problem.origin - problem.unit, problem.origin + problem.unit
                assert np.all((values[:, 0] > low) & (values[:, 0] < high))
            elif isinstance(problem, NoisyTable):
                draws = draw_counts(problem, 200, generator).values
                assert draws.shape == (200, len(problem.cells))
                if relation is REPLACE:
                    assert np.all(draws.sum(axis=1) == 2000)
            else:
                draws = draw_grams(problem, 200, generator).values
                assert np.all(np.isfinite(draws))


# -- words ---------------------------------------------------------------------------------


def test_the_statement_says_what_was_measured_of_which_rows():
    lines = " ".join(statement_lines(measured(SPECS["regression"])))
    for words in (
        "age within 20 to 60",
        "pay within 0 to 10",
        "left out",
        "job: 2 indicators against 'cook'",
        "sex: 1 indicator against 'f'",
        "standard deviation",
    ):
        assert words in lines
    assert "left out" not in " ".join(statement_lines(measured(SPECS["mean"])))
    assert "public" in " ".join(statement_lines(MEAN))
    shared = " ".join(statement_lines(measured(SHARED, row_count=ROWS)))
    assert "earlier tree release, standard deviation 3.25" in shared
    assert "Cancelled" in statement_lines(cancelled(SPECS["robust"], 2))[-1]
    assert "Cells of the table of age × job (80)" in " ".join(statement_lines(TABLE))
