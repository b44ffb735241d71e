"""``python -m core audit``: from the bundle alone."""

from __future__ import annotations

import shutil
import zipfile
from fractions import Fraction

import pytest

from core.__main__ import main
from core.plan import read_plan
from tests.core.command_line import run, spends

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def bundle(demo, tmp_path):
    assert run(demo, tmp_path / "out", "--quiet") == 0
    return tmp_path / "out" / "bundle.zip"


def audit(bundle, out, *more):
    return main(["audit", str(bundle), "--out", str(out), *map(str, more)])


def test_the_bundle_alone_is_enough(bundle, demo, tmp_path, capsys):
    shutil.rmtree(demo)  # no table far and wide
    capsys.readouterr()
    assert audit(bundle, tmp_path / "audit.html") == 0
    told = capsys.readouterr()
    assert (tmp_path / "audit.html").exists()
    lines = told.out.strip().splitlines()
    assert lines[-1] == str(tmp_path / "audit.html")
    assert 7 <= len(lines) - 1 <= 12
    assert all(line.split(":")[0] in {"good", "watch", "poor", "unknown"} for line in lines[:-1])
    assert "raw access" not in told.err


def test_an_audit_changes_no_ledger_and_no_bundle(bundle, tmp_path):
    before, blob = spends(), bundle.read_bytes()
    assert audit(bundle, tmp_path / "a.html") == 0
    assert spends() == before
    assert bundle.read_bytes() == blob


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--data", "x.csv"), "--data"),
        (("--favourable", "hired"), "COLUMN=LABEL"),
        (("--favourable", "nobody=yes"), "nobody"),
        (("--favourable", "hired=perhaps"), "hired"),
        (("--seed", "-1"), "seed"),
    ],
)
def test_wrong_options_are_one_line(bundle, tmp_path, capsys, more, words):
    try:
        code = audit(bundle, tmp_path / "audit.html", *more)
    except SystemExit as stop:  # argparse
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "audit.html").exists()


def test_options_reach_the_audit(bundle, tmp_path):
    assert audit(bundle, tmp_path / "a.html") == 0
    assert audit(bundle, tmp_path / "b.html", "--favourable", "hired=no", "--blind") == 0
    plain, other = ((tmp_path / f"{name}.html").read_text() for name in "ab")
    assert "hired = yes" in plain
    assert "hired = no" in other
    assert "predicted from all columns but the protected ones" in other


def test_bad_bundles_and_places_are_refused_before_anything_is_written(
    bundle, demo, tmp_path, capsys
):
    broken = tmp_path / "broken.zip"
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name) + b" " * (name == "synthetic.csv"))
    mine = tmp_path / "mine.html"
    mine.write_text("my page")
    for source, out in (
        (broken, tmp_path / "a.html"),
        (tmp_path / "none.zip", tmp_path / "a.html"),
        (bundle, mine),
        (bundle, tmp_path),
        (bundle, bundle),
        (bundle, tmp_path / "no" / "a.html"),
    ):
        assert audit(source, out) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len([line for line in lines if line.startswith("justitia: ")]) == 6
    assert mine.read_text() == "my page"
    assert not (tmp_path / "a.html").exists()


def test_a_simulated_bundle_is_stamped(demo, tmp_path):
    assert run(demo, tmp_path / "out", "--simulate", "5", "--quiet") == 0
    bundle = tmp_path / "out/SIMULATED_NOT_PRIVATE_bundle.zip"
    assert audit(bundle, tmp_path / "audit.html") == 0
    page = (tmp_path / "SIMULATED_NOT_PRIVATE_audit.html").read_text()
    assert "SIMULATED, NOT PRIVATE" in page


def test_a_bundle_without_a_tree_has_no_audit(demo, tmp_path, capsys):
    from dataclasses import replace

    from core.plan_parts import CovariancePlan

    plan = read_plan(demo / "plan.toml")
    columns = tuple(column.name for column in plan.schema.columns if column.is_numeric)[:2]
    other = replace(
        plan, tree=None, demo=None, covariance=CovariancePlan(rho=Fraction(1, 2), columns=columns)
    )
    (demo / "plan.toml").write_text(other.to_toml())
    assert run(demo, tmp_path / "out", "--quiet") == 0
    capsys.readouterr()
    assert audit(tmp_path / "out/bundle.zip", tmp_path / "a.html") == 2
    assert "no tree" in capsys.readouterr().err
