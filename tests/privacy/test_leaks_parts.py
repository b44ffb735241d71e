"""Analyses and covariances: ids, exact numbers, contradicting bundles, selection and user text."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from core import simulate
from core.bundle import verify
from core.deriving import derive
from core.errors import BundleError
from core.moments import Scale
from core.outcome import Releases
from core.pace.estimate import estimate
from core.pace.release import RowCount
from core.pace.view import selected_entries
from core.parts import parts_of
from core.plan import (
    CovariancePlan,
    DemoOrigin,
    Plan,
    PopulationPlan,
    PosteriorPlan,
    ReadingPlan,
    TreePlan,
)
from core.pumba.settings import Settings
from core.pumba.specification import AnalysisSpec
from core.releases import Relation, Unit, digest
from core.roles import Roles
from core.schema import Column, Kind, Missing, OutOfDomain, Schema
from core.statement import statement

ROWS = 300
NUMBERS = ("age", "experience_years", "interview_score")
SCHEMA = Schema(
    (
        Column("applicant_id", Kind.IDENTIFIER),
        Column(
            "age",
            Kind.INTEGER,
            lower=18,
            upper=70,
            bins=6,
            missing=Missing.CONSTANT,
            missing_constant=40,
        ),
        Column("experience_years", Kind.REAL, lower=0, upper=40, bins=4),
        Column("interview_score", Kind.REAL, lower=0, upper=10, bins=4),
        Column("gender", Kind.CATEGORICAL, categories=("woman", "man")),
        Column("region", Kind.CATEGORICAL, categories=("north", "east")),
    )
)
ROLES = Roles()
PRICE = Fraction(1)
SHARED = PosteriorPlan(AnalysisSpec("mean", "shared", outcome="age", rows="tree"), PRICE)
MEAN = PosteriorPlan(AnalysisSpec("mean", "own", outcome="experience_years"), PRICE)
SHARES = PosteriorPlan(AnalysisSpec("proportion", "shares", outcome="gender"), PRICE)
MATRIX = CovariancePlan(NUMBERS, PRICE)


def whole(*, schema=SCHEMA, posteriors=(SHARED, MEAN, SHARES), covariance=MATRIX, **terms):
    return Plan(
        population=PopulationPlan("people", cap=Fraction(100), **terms),
        schema=schema,
        roles=ROLES,
        tree=TreePlan(PRICE),
        demo=DemoOrigin("hiring", ROWS, 1),
        reading=ReadingPlan(delimiter=",", encoding="utf-8", decimal="."),
        posteriors=posteriors,
        covariance=covariance,
    )


def ids(plan):
    parts = parts_of(plan)
    names = ["tree", *(part.spec.name for part in plan.posteriors), "covariance"]
    return dict(zip(names, (part.request_id("table") for part in parts), strict=True))


def declared(name, **changes):
    """The schema with another declaration of one column."""
    return Schema(
        tuple(
            replace(column, **changes) if column.name == name else column
            for column in SCHEMA.columns
        )
    )


# -- ids ---------------------------------------------------------------------------------------

#: A change of the plan, and the parts whose paid draws it changes.
CHANGES = {
    "relation": (whole(relation=Relation.REPLACE_ONE), {"all"}),
    "unit": (whole(unit=Unit(3, "applicant_id")), {"all"}),
    "bounds": (
        whole(schema=declared("experience_years", upper=50)),
        {"tree", "shared", "own", "covariance"},
    ),
    "missing rule": (
        whole(schema=declared("age", missing=Missing.CATEGORY, missing_constant=None),
              posteriors=(MEAN, SHARES)),
        {"tree", "covariance"},
    ),
    "missing constant": (
        whole(schema=declared("age", missing_constant=41)), {"tree", "shared", "covariance"},
    ),
    "out of domain": (
        whole(schema=declared("experience_years", out_of_domain=OutOfDomain.OTHER)),
        {"tree", "shared", "own", "covariance"},
    ),
    "missing marker": (
        whole(schema=declared("experience_years", missing_markers=("-1",))),
        {"tree", "shared", "own", "covariance"},
    ),
    "suggested from values": (
        whole(schema=declared("interview_score", data_dependent=True)),
        {"tree", "shared", "covariance"},
    ),
    "expected rows": (whole(expected_rows=999), {"shared", "own", "covariance"}),
    "method": (whole(covariance=replace(MATRIX, method="ssp")), {"covariance"}),
    "columns": (whole(covariance=replace(MATRIX, columns=NUMBERS[:2])), {"covariance"}),
    "means": (
        whole(covariance=replace(MATRIX, means=dict.fromkeys(NUMBERS, 20.0) | {NUMBERS[2]: 5.0})),
        {"covariance"},
    ),
    "half-widths": (whole(covariance=replace(MATRIX, half_widths={"age": 9.0})), {"covariance"}),
    "price": (whole(posteriors=(SHARED, replace(MEAN, rho=PRICE / 2), SHARES)), {"own"}),
    "question": (
        whole(posteriors=(SHARED, replace(MEAN, spec=replace(MEAN.spec, moments=4)), SHARES)),
        {"own"},
    ),
    "groups": (
        whole(posteriors=(SHARED, replace(MEAN, spec=replace(MEAN.spec, by="gender")), SHARES)),
        {"own"},
    ),
    "free settings": (
        whole(posteriors=(SHARED, replace(MEAN, settings=Settings(level=0.5, seed=9)), SHARES)),
        set(),
    ),
    "order of columns": (whole(covariance=replace(MATRIX, columns=NUMBERS[::-1])), set()),
    "delta": (whole(delta=1e-6), set()),
}  # fmt: skip


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_an_id_changes_with_what_is_drawn_and_with_nothing_else(change):
    plan, touched = CHANGES[change]
    before, after = ids(whole()), ids(plan)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == (set(after) if touched == {"all"} else touched)


# -- bundles -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest():
    return simulate(whole(), 3)


def check(made, plan, releases):
    """Verify a bundle whose every document was rebuilt from other releases."""
    account = json.loads(made.files["ledger.json"])
    account.pop("warning")
    known = {one.provenance.request_id: one for one in releases.all}
    for spend in account["spends"]:
        one = known[spend["request_id"]]
        spend["release_sha256"] = digest(one.to_bytes())
        spend["debited"] = str(one.provenance.debited)
    return verify(derive(plan, releases, account).bundle)


def of_matrix(change):
    return lambda found: replace(found, covariance=change(found.covariance))


def of_mean(change):
    def changed(found):
        first, second, third = found.statistics
        return replace(found, statistics=(first, change(second), third))

    return changed


def marked(one, flags):
    """A release whose declarations were suggested from values, with these flags."""
    schema = Schema(tuple(replace(column, data_dependent=True) for column in one.schema.columns))
    return replace(one, schema=schema, provenance=replace(one.provenance, flags=flags))


def quieter(sums):
    name, moments = sums[0]
    return ((name, replace(moments, unit_sigma=moments.unit_sigma / 2)), *sums[1:])


def debiting(one, rho):
    return replace(one, provenance=replace(one.provenance, debited=rho))


LIES = {
    "an exact row count under a matrix": of_matrix(
        lambda one: replace(one, rows=RowCount(float(ROWS), None, 0.0, Fraction(0)))
    ),
    "an exact row count under an analysis": of_mean(lambda one: replace(one, public_rows=ROWS)),
    "an exact row count under a tree": lambda found: replace(
        found, tree=replace(found.tree, public_rows=ROWS)
    ),
    "tables with less noise": lambda found: replace(
        found,
        tree=replace(
            found.tree,
            one_way=tuple(replace(one, sigma=one.sigma / 2) for one in found.tree.one_way),
        ),
    ),
    "a tree that cost less": lambda found: replace(
        found, tree=debiting(found.tree, Fraction(1, 1000))
    ),
    "a row count of a tree that is not used": lambda found: of_mean(
        lambda one: replace(one, shared_rows=found.statistics[0].shared_rows)
    )(found),
    "a matrix that cost less": of_matrix(lambda one: debiting(one, Fraction(1, 1000))),
    "an analysis that cost less": of_mean(lambda one: debiting(one, Fraction(1, 1000))),
    "a matrix with less noise": of_matrix(lambda one: replace(one, sigmas=one.sigmas / 2)),
    "sums with less noise": of_mean(lambda one: replace(one, sums=quieter(one.sums))),
    "means with less noise": of_matrix(
        lambda one: replace(one, means=replace(one.means, sigmas=one.means.sigmas / 2))
    ),
    "narrower half-widths than the plan has": of_matrix(
        lambda one: replace(
            one,
            scales=tuple(
                (name, Scale(scale.centre, scale.half_width / 2)) for name, scale in one.scales
            ),
        )
    ),
    "other centres than the means": of_matrix(
        lambda one: replace(
            one,
            scales=tuple(
                (name, Scale(scale.centre + 1, scale.half_width)) for name, scale in one.scales
            ),
        )
    ),
    "a matrix without its flags": of_matrix(
        lambda one: replace(one, provenance=replace(one.provenance, flags=()))
    ),
}


def test_rebuilt_documents_of_the_honest_releases_pass(honest):
    assert check(honest, whole(), honest.releases).warnings == ()


@pytest.mark.parametrize("lie", sorted(LIES))
def test_no_release_of_a_bundle_contradicts_its_own_price_and_terms(lie, honest):
    with pytest.raises(BundleError):
        check(honest, whole(), LIES[lie](honest.releases))


def test_sums_that_a_question_does_not_need_are_found(honest):
    def widened(one):
        name, moments = one.sums[0]
        ((column, scale),) = moments.request.frame.scales
        frame = replace(
            moments.request.frame, scales=((column, Scale(scale.centre, scale.half_width / 4)),)
        )
        request = replace(moments.request, frame=frame)
        return replace(one, sums=((name, replace(moments, request=request)), *one.sums[1:]))

    with pytest.raises(BundleError, match="does not need"):
        check(honest, whole(), of_mean(widened)(honest.releases))


@pytest.mark.parametrize("kept", ["tree", "statistics", "covariance"])
def test_every_release_of_suggested_columns_carries_the_flag(kept, honest):
    schema = Schema(tuple(replace(column, data_dependent=True) for column in SCHEMA.columns))
    schema = Schema(
        tuple(
            column if column.name != "applicant_id" else SCHEMA["applicant_id"]
            for column in schema.columns
        )
    )
    simulated = ("SIMULATED, NOT PRIVATE",)
    flags = dict.fromkeys(
        ("tree", "statistics", "covariance"), (*simulated, "data-dependent domain")
    )
    flags[kept] = simulated
    found = honest.releases
    lie = Releases(
        marked(found.tree, flags["tree"]),
        tuple(marked(one, flags["statistics"]) for one in found.statistics),
        marked(found.covariance, flags["covariance"]),
    )
    with pytest.raises(BundleError, match="leaves out its flag"):
        check(honest, whole(schema=schema), lie)


def test_the_flag_reaches_every_part_that_uses_a_suggested_column():
    plan = whole(schema=declared("age", data_dependent=True))
    for one in simulate(plan, 1).releases.all:
        assert "data-dependent domain" in one.provenance.flags


@pytest.mark.parametrize("unit", [Unit(3), Unit(3, "applicant_id")])
def test_units_of_several_rows_are_priced_and_flagged_in_every_part(unit):
    made = simulate(whole(unit=unit), 4)
    assert verify(made.bundle).warnings == ()
    for one in made.releases.all:
        assert ("unit unverified" in one.provenance.flags) == (unit.person_column is None)
    # The same noise under a unit of more rows is too little.
    dearer = Unit(4, unit.person_column)
    changed = [
        replace(one, provenance=replace(one.provenance, unit=dearer)) for one in made.releases.all
    ]
    found = Releases.of(tuple(changed))
    with pytest.raises(BundleError, match="less noise"):
        check(made, whole(unit=dearer), found)


def test_an_exact_row_count_is_fine_where_it_is_public():
    made = simulate(whole(relation=Relation.REPLACE_ONE), 2)
    # Rows may miss a column by these declarations: then their number is protected here too.
    assert not made.releases.covariance.rows.public
    assert verify(made.bundle).warnings == ()
    full = replace(SCHEMA["experience_years"], missing=Missing.CONSTANT, missing_constant=0.0)
    other = replace(SCHEMA["interview_score"], missing=Missing.CONSTANT, missing_constant=0.0)
    columns = {column.name: column for column in (*SCHEMA.columns, full, other)}
    made = simulate(whole(relation=Relation.REPLACE_ONE, schema=Schema(tuple(columns.values()))), 2)
    assert made.releases.covariance.rows.public
    assert verify(made.bundle).warnings == ()


@pytest.mark.parametrize(
    "method", ["pace", "ssp", "ssp_tight", "ssp_clip_sure", "diagonal", "adaptive_cov"]
)
@pytest.mark.parametrize("relation", list(Relation))
def test_honest_matrices_of_every_method_pass(method, relation):
    half_widths = {"age": 9.0} if method == "pace" else {}
    means = dict(zip(NUMBERS, (40.0, 8.0, 5.0), strict=True)) if method == "ssp" else {}
    part = CovariancePlan(NUMBERS, PRICE, method, means, half_widths)
    plan = replace(
        whole(posteriors=(), covariance=part, relation=relation, expected_rows=ROWS), tree=None
    )
    made = simulate(plan, 5)
    assert verify(made.bundle).warnings == ()
    where = made.releases.covariance.provenance
    if method != "ssp":
        assert where.debited >= where.rho * Fraction(999, 1000)


@pytest.mark.parametrize("relation", list(Relation))
def test_honest_analyses_of_every_kind_pass(relation):
    specs = (
        AnalysisSpec("mean", "four", outcome="age", moments=4),
        AnalysisSpec("mean", "groups", outcome="age", by="gender"),
        AnalysisSpec("difference", "gap", outcome="age", by="gender"),
        AnalysisSpec("table", "two", variables=("gender", "region")),
        AnalysisSpec("regression", "line", outcome="age", predictors=("interview_score",),
                     robust=True),
        AnalysisSpec("regression", "mixed", outcome="age", predictors=("gender", "region")),
        AnalysisSpec("correlation", "pairs", variables=("age", "interview_score")),
    )  # fmt: skip
    parts = tuple(PosteriorPlan(spec, Fraction(10), Settings(draws=200)) for spec in specs)
    plan = replace(whole(posteriors=parts, covariance=None, relation=relation), tree=None)
    made = simulate(plan, 6)
    check(made, plan, made.releases)
    for one in made.releases.statistics:
        assert one.provenance.debited >= one.provenance.rho * Fraction(999, 1000)


# -- selection and text ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pace", "pace_auto"])
def test_entries_that_rounds_chose_are_marked_and_the_statement_says_so(method):
    part = CovariancePlan(NUMBERS, Fraction(50), method)
    plan = replace(whole(posteriors=(), covariance=part, expected_rows=ROWS), tree=None)
    made = simulate(plan, 5)
    release = made.releases.covariance
    chosen = {step.chosen for step in release.rounds if step.edge and len(set(step.chosen)) == 2}
    text = statement(made.releases)
    assert bool(release.rounds) == ("noisy looks at the same rows" in text)
    if method == "pace":
        assert chosen
    marks = selected_entries(release, estimate(release))
    for one, other in chosen:
        assert marks[release.columns.index(one), release.columns.index(other)]
    assert not np.diag(marks).any()


def test_no_text_of_a_release_is_markup_in_the_statement(honest):
    nasty = "<img src=x onerror=alert(1)> ![p](http://x) **b** `c` | # d"
    found = honest.releases
    mean = found.statistics[1]
    named = replace(
        mean,
        spec=replace(mean.spec, name=nasty),
        provenance=replace(mean.provenance, what=nasty, noise=nasty, flags=(nasty,)),
    )
    real = [
        replace(one, provenance=replace(one.provenance, simulated=False))
        for one in (found.tree, named, found.covariance)
    ]
    for text in (
        statement(Releases(real[0], (real[1],), real[2])),
        statement(Releases(found.tree, (named,), found.covariance)),
    ):
        for mark in ("<img", "![p]", "**b**", "`c`"):
            assert mark not in text


def test_no_simulated_document_lacks_its_stamp(honest):
    for name, blob in honest.files.items():
        if name.endswith(".json"):
            assert json.loads(blob)["warning"] == "SIMULATED, NOT PRIVATE"
