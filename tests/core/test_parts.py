"""Plans of several parts: one charge each, all or none, measured in order, replayed one by one."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import core.parts
from core import demo_plan, simulate
from core.bundle import MANIFEST, bundle_bytes, file_name, verify
from core.deriving import Derived
from core.errors import BundleError, PlanError
from core.measuring import identities_for
from core.outlook import outlook_for
from core.parts import parts_of
from core.plan import CovariancePlan, Plan, PosteriorPlan, parse_plan, read_plan
from core.plan_parts import settings_from, settings_to
from core.private.accounts import SpendState
from core.protocols import Progress
from core.pumba.priors import NormalPrior
from core.pumba.settings import Settings
from core.pumba.specification import AnalysisKind, AnalysisSpec
from core.runner import run as run_plan
from tests.core.command_line import files_in, run, spends

NUMBERS = ("age", "experience_years", "interview_score")
MEAN = PosteriorPlan(AnalysisSpec(AnalysisKind.MEAN, "mean age", outcome="age"), Fraction(1, 20))
SLOPE = PosteriorPlan(
    AnalysisSpec(AnalysisKind.REGRESSION, "slope", outcome="interview_score", predictors=("age",)),
    Fraction(1, 20),
    Settings(level=0.9),
)
MATRIX = CovariancePlan(NUMBERS, Fraction(1, 10))


@pytest.fixture(scope="module")
def plain() -> Plan:
    plan = demo_plan("hiring")
    assert plan.demo is not None
    return replace(plan, demo=replace(plan.demo, rows=1500))


@pytest.fixture(scope="module")
def whole(plain: Plan) -> Plan:
    return replace(plain, posteriors=(MEAN, SLOPE), covariance=MATRIX)


@pytest.fixture(scope="module")
def derived(whole: Plan) -> Derived:
    return simulate(whole, seed=3)


def change(demo: Path, **parts: object) -> Plan:
    """The demo's plan with more parts, written where it was."""
    path = demo / "plan.toml"
    plan = replace(read_plan(path), **parts)
    path.write_text(plan.to_toml(), encoding="utf-8")
    return plan


# -- plans -----------------------------------------------------------------------------------


def test_plans_of_every_mixture_of_parts_survive_their_text(whole: Plan) -> None:
    for parts in (
        {},
        {"tree": None},
        {"tree": None, "posteriors": ()},
        {"tree": None, "covariance": None},
        {"covariance": replace(MATRIX, method="ssp", means=dict.fromkeys(NUMBERS, 30.0))},
        {"covariance": replace(MATRIX, half_widths={"age": 15.0})},
        {"posteriors": (replace(MEAN, settings=Settings(priors={"mean": NormalPrior(40, 5)})),)},
        {"posteriors": (replace(MEAN, settings=Settings(rope=(-1.0, 1.0), draws=500)),)},
    ):
        plan = _with(whole, parts)
        assert parse_plan(plan.to_toml()) == plan
        assert plan.rho == sum(part.rho for part in parts_of(plan))


def _with(plan: Plan, parts: dict[str, object]) -> Plan:
    if "covariance" in parts and parts["covariance"] is not None:
        means = getattr(parts["covariance"], "means", {})
        inside = {name: float(np.mean(plan.schema[name].bounds)) for name in means}
        parts = {**parts, "covariance": replace(parts["covariance"], means=inside)}
    return replace(plan, **parts)


def test_free_settings_have_a_plain_form() -> None:
    settings = Settings(
        level=0.8,
        estimand="sample",
        draws=777,
        seed=3,
        priors={"mean": NormalPrior(1.0, 2.0)},
        design_effect=1.5,
        population_size=9_000,
        rope={"mean": (-1.0, 1.0)},
    )
    assert settings_from(settings_to(settings)) == settings
    assert settings_to(Settings()) == {}
    assert settings_from({"level": 0.5}, settings) == replace(settings, level=0.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="age"', "what it may cost"),
        ('[[posterior]]\nname="m"\nkind="median"\noutcome="age"\nrho="0.1"', "mean, proportion"),
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="nobody"\nrho="0.1"', "nobody"),
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="age"\nrho="-1"', "rho"),
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="age"\nrho="0.1"\nlevel=1', "level"),
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="age"\nrho="0.1"\nvcov="hc"', "robust"),
        ('[[posterior]]\nname="m"\nkind="table"\nvariables=["gender"]\nrho="0.1"\n'
         'priors={p={mean=0,sd=1}}', "alpha"),
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="age"\nrho="0.1"\nrope=[1]', "rope"),
        ('[[posterior]]\nname="m"\nkind="mean"\noutcome="age"\nrho="0.1"\ncolour="red"', "colour"),
        ('[covariance]\ncolumns=["age"]', "what it may cost"),
        ('[covariance]\nrho="0.1"', "list its columns"),
        ('[covariance]\nrho="0.1"\ncolumns=["age","age"]', "twice"),
        ('[covariance]\nrho="0.1"\ncolumns=["gender"]', "gender"),
        ('[covariance]\nrho="0.1"\ncolumns=["age"]\nmethod="magic"', "pace_auto"),
        ('[covariance]\nrho="0.1"\ncolumns=["age"]\nmeans={age=1e9}', "bounds"),
        ('[covariance]\nrho="0.1"\ncolumns=["age"]\nhalf_widths={age=0}', "half-width"),
        ('[covariance]\nrho="9"\ncolumns=["age"]', "cap"),
    ],
)  # fmt: skip
def test_what_a_part_cannot_mean_is_refused_before_anything(
    plain: Plan, text: str, said: str
) -> None:
    whole = plain.to_toml()
    before, after = whole.split("[synthetic]")
    with pytest.raises(Exception, match=said) as caught:
        parse_plan(f"{before}\n{text}\n\n[synthetic]{after}")
    assert caught.value.exit_code == 2


def test_two_analyses_of_one_name_and_an_empty_plan_are_refused(plain: Plan) -> None:
    with pytest.raises(PlanError, match="name them apart"):
        replace(plain, posteriors=(MEAN, MEAN))
    with pytest.raises(PlanError, match="nothing is released"):
        replace(plain, tree=None)


def test_the_outlook_speaks_of_the_whole_price_and_every_part(whole: Plan) -> None:
    found = outlook_for(whole)
    assert "0.7" in found.sentences[0]
    text = "\n".join(found.sentences)
    for words in ("mean age:", "slope:", "Covariance of 3 columns", "two-way"):
        assert words in text or words == "two-way"
    assert found.tree is not None
    assert outlook_for(replace(whole, tree=None)).tree is None


def test_an_id_follows_from_what_its_own_part_pays_for(whole: Plan) -> None:
    ids = [part.request_id("t") for part in parts_of(whole)]
    assert len(set(ids)) == len(ids)
    free = replace(whole, posteriors=(replace(MEAN, settings=Settings(level=0.5)), SLOPE))
    assert [part.request_id("t") for part in parts_of(free)] == ids
    dearer = replace(whole, covariance=replace(MATRIX, rho=Fraction(1, 5)))
    now = [part.request_id("t") for part in parts_of(dearer)]
    assert now[:-1] == ids[:-1]
    assert now[-1] != ids[-1]
    more = replace(whole, population=replace(whole.population, expected_rows=99))
    others = [part.request_id("t") for part in parts_of(more)]
    assert others[0] == ids[0]
    assert all(new != old for new, old in zip(others[1:], ids[1:], strict=True))


# -- bundles ---------------------------------------------------------------------------------


def test_a_bundle_of_all_parts_verifies_and_names_every_charge(derived: Derived) -> None:
    assert verify(derived.bundle).warnings == ()
    text = derived.files["statement.md"].decode()
    for words in ("mean age", "slope", "covariance matrix of 3 columns"):
        assert words in text
    account = json.loads(derived.files["ledger.json"])
    assert [spend["what"] for spend in account["spends"]] == [
        "tree", "posterior", "posterior", "covariance",
    ]  # fmt: skip
    assert Fraction(account["spent_rho"]) == Fraction(7, 10)
    rows = list(csv.DictReader(io.StringIO(derived.files["posterior.csv"].decode())))
    assert {row["analysis"] for row in rows} == {"mean age", "slope"}
    assert {row["level"] for row in rows if row["analysis"] == "slope"} == {"0.9"}
    matrix = np.genfromtxt(
        io.BytesIO(derived.files["covariance.csv"]), delimiter=",", skip_header=1
    )[:, 1:]
    assert np.allclose(matrix, matrix.T)
    assert np.all(np.linalg.eigvalsh(matrix) > 0)


def test_the_same_seed_gives_the_same_bundle(whole: Plan, derived: Derived) -> None:
    assert simulate(whole, seed=3).bundle == derived.bundle


@pytest.mark.parametrize(
    "name",
    [
        *("posterior.csv", "posterior.json", "posterior-draws.npz", "statistics.csv"),
        *("covariance.csv", "precision.csv", "partial-correlations.csv", "statistics-2.npz"),
        *("covariance-release.npz", "covariance-measurements.csv", "ledger.json", "plan.toml"),
    ],
)
def test_every_changed_file_is_found(derived: Derived, name: str) -> None:
    files = dict(derived.files)
    blob = bytearray(files[name])
    blob[len(blob) // 2] ^= 1
    files[name] = bytes(blob)
    with pytest.raises(BundleError):
        verify(bundle_bytes(files, True))


def test_statistics_of_another_question_are_found(derived: Derived) -> None:
    files = dict(derived.files)
    files["statistics-1.npz"], files["statistics-2.npz"] = (
        files["statistics-2.npz"],
        files["statistics-1.npz"],
    )
    with pytest.raises(BundleError):
        verify(bundle_bytes(files, True))


def test_files_are_stamped_where_the_noise_was_seeded(derived: Derived) -> None:
    with zipfile.ZipFile(io.BytesIO(derived.bundle)) as archive:
        assert all("SIMULATED_NOT_PRIVATE_" in name for name in archive.namelist())
    assert file_name(MANIFEST, True) in archive.namelist()
    assert json.loads(derived.files["posterior.json"])["warning"] == "SIMULATED, NOT PRIVATE"


# -- paying ----------------------------------------------------------------------------------

pays = pytest.mark.usefixtures("home")


@pays
def test_an_added_analysis_is_the_only_new_charge(demo: Path, tmp_path: Path) -> None:
    assert run(demo, tmp_path / "one") == 0
    change(demo, posteriors=(MEAN,))
    assert run(demo, tmp_path / "two") == 0
    assert [spend.what for spend in spends()] == ["tree", "posterior"]
    assert sum(spend.rho for spend in spends()) == Fraction(11, 20)
    one, two = files_in(tmp_path / "one"), files_in(tmp_path / "two")
    assert one["release.npz"] == two["release.npz"]
    assert one["synthetic.csv"] == two["synthetic.csv"]
    assert verify(tmp_path / "two" / "bundle.zip").warnings == ()
    assert run(demo, tmp_path / "three") == 0
    assert files_in(tmp_path / "three") == two
    assert len(spends()) == 2


@pays
def test_a_plan_whose_last_part_passes_the_cap_charges_nothing(demo: Path, tmp_path: Path) -> None:
    assert run(demo, tmp_path / "one") == 0
    # The ledger's cap counts, whatever a later plan says.
    roomy = replace(read_plan(demo / "plan.toml").population, cap=Fraction(5))
    matrix = replace(MATRIX, rho=Fraction(3, 2))
    change(demo, posteriors=(MEAN,), covariance=matrix, population=roomy)
    assert run(demo, tmp_path / "two") == 3
    assert len(spends()) == 1
    assert not (tmp_path / "two").exists()


@pays
def test_a_part_that_fails_costs_its_charge_and_no_other_part_is_lost(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(demo, posteriors=(MEAN,), covariance=MATRIX)

    def broken(*arguments: object, **settings: object) -> None:
        raise RuntimeError("value 12345 of somebody")

    with monkeypatch.context() as patch:
        patch.setattr(core.parts, "release_statistics", broken)
        assert run(demo, tmp_path / "out") == 4
    assert [spend.state for spend in spends()] == [
        SpendState.DONE, SpendState.NO_RESULT, SpendState.NO_RESULT,
    ]  # fmt: skip
    assert run(demo, tmp_path / "out") == 4
    assert len(spends()) == 3
    assert run(demo, tmp_path / "out", "--new-release") == 0
    again = spends()
    assert [spend.what for spend in again] == [
        "tree", "posterior", "covariance", "posterior", "covariance",
    ]  # fmt: skip


@pays
def test_a_cancel_between_two_parts_keeps_the_first(demo: Path, tmp_path: Path) -> None:
    change(demo, posteriors=(MEAN, SLOPE))
    progress = _StopAt("statistics")
    with pytest.raises(Exception, match="stays spent"):
        run_plan(demo / "plan.toml", demo / "demo.csv", tmp_path / "out", progress=progress)
    assert [spend.state for spend in spends()] == [
        SpendState.DONE, SpendState.NO_RESULT, SpendState.NO_RESULT,
    ]  # fmt: skip


class _StopAt:
    """Cancels at the first report of a stage."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def __call__(self, stage: str, done: int, total: int, detail: object) -> None:
        from core.errors import Cancelled

        if stage == self.stage:
            raise Cancelled("cancelled")


@pays
def test_a_partial_analysis_is_kept_and_says_what_it_lacks(demo: Path, tmp_path: Path) -> None:
    change(demo, tree=None, posteriors=(SLOPE,))

    def progress(stage: str, done: int, total: int, detail: object) -> None:
        from core.errors import Cancelled

        if stage == "statistics" and done == 1:
            raise Cancelled("cancelled")

    _check: Progress = progress
    with pytest.raises(Exception, match="partial release"):
        run_plan(demo / "plan.toml", demo / "demo.csv", tmp_path / "out", progress=_check)
    (spend,) = spends()
    assert spend.state is SpendState.PARTIAL
    found = run_plan(demo / "plan.toml", demo / "demo.csv", tmp_path / "out")
    assert found.replayed
    assert found.derived.posteriors == ()
    assert "Partial release" in (tmp_path / "out" / "statement.md").read_text()
    assert verify(tmp_path / "out" / "bundle.zip").warnings == ()


@pays
def test_an_analysis_may_use_the_trees_row_count(demo: Path, tmp_path: Path) -> None:
    spec = replace(MEAN.spec, rows="tree")
    change(demo, posteriors=(replace(MEAN, spec=spec),))
    assert run(demo, tmp_path / "out") == 0
    text = (tmp_path / "out" / "statement.md").read_text()
    assert "the noisy one of an earlier tree release" in text
    change(demo, tree=None, posteriors=(MEAN,))
    with pytest.raises(PlanError, match="needs a"):
        change(demo, posteriors=(replace(MEAN, spec=spec),))


@pays
def test_a_plan_without_a_tree_writes_no_synthetic_table(demo: Path, tmp_path: Path) -> None:
    change(demo, tree=None, covariance=MATRIX)
    assert run(demo, tmp_path / "out") == 0
    names = set(files_in(tmp_path / "out"))
    assert "covariance.csv" in names
    assert not names & {"synthetic.csv", "tree.json", "release.npz", "posterior.csv"}
    assert verify(tmp_path / "out" / "bundle.zip").warnings == ()


def test_new_ids_are_for_lost_parts_first(whole: Plan) -> None:
    from core import demo as worlds
    from core.attachment import attach_simulated, read_for

    assert whole.demo is not None
    raw = read_for(whole, worlds.csv_bytes("hiring", rows=1500, seed=whole.demo.seed))
    attached = attach_simulated(whole, raw, 1)
    first = identities_for(whole, attached)
    grants = attached.vault.grants(
        [
            core.measuring.Charge(i, p.what, p.rho)
            for i, p in zip(first, parts_of(whole), strict=True)
        ]
    )
    for grant in grants[:2]:
        assert grant is not None
        attached.vault.fail(grant, "lost")
    for grant in grants[2:]:
        assert grant is not None
        attached.vault.complete(grant, b"blob", "TreeRelease")
    assert identities_for(whole, attached) == first
    again = identities_for(whole, attached, again=True)
    assert [new != old for new, old in zip(again, first, strict=True)] == [True, True, False, False]
