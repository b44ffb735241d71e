"""Bundles of a demo: what the manifest records, and which mismatches are errors or warnings."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import core.machine
from core import demo_plan, simulate
from core.bundle import MANIFEST, bundle_bytes, file_name, verify
from core.deriving import Derived
from core.errors import BundleError
from core.machine import described, differences
from core.plan import parse_plan


@pytest.fixture(scope="module")
def derived() -> Derived:
    plan = demo_plan("hiring")
    assert plan.demo is not None
    return simulate(replace(plan, demo=replace(plan.demo, rows=1500)), seed=3)


def with_other_row(derived: Derived) -> dict[str, bytes]:
    """One answer changed into another that the declarations allow."""
    files = dict(derived.files)
    files["synthetic.csv"] = _flip(files["synthetic.csv"])
    return files


def _flip(blob: bytes) -> bytes:
    rows = list(csv.reader(io.StringIO(blob.decode(), newline="")))
    place = rows[0].index("hired")
    labels = sorted({row[place] for row in rows[1:]} - {""})
    rows[1][place] = next(label for label in labels if label != rows[1][place])
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    return buffer.getvalue().encode()


def rezipped(blob: bytes, change: Callable[[dict[str, object]], None]) -> bytes:
    """The bundle with another manifest."""
    name = file_name(MANIFEST, simulated=True)
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        content = {entry: archive.read(entry) for entry in archive.namelist()}
    plain = json.loads(content[name])
    change(plain)
    content[name] = json.dumps(plain).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, data in content.items():
            archive.writestr(entry, data)
    return buffer.getvalue()


def test_a_bundle_says_on_what_its_rows_were_drawn(derived: Derived) -> None:
    with zipfile.ZipFile(io.BytesIO(derived.bundle)) as archive:
        manifest = json.loads(archive.read(file_name(MANIFEST, simulated=True)))
    assert manifest["drawn_on"] == described()
    assert {"justitia", "python", "numpy", "scipy", "machine"} <= set(manifest["drawn_on"])
    assert bundle_bytes(derived.files, True) == derived.bundle
    found = verify(derived.bundle)
    assert found.warnings == ()
    assert "matrices are those" in found.checks[-1]


def test_other_rows_are_an_error_where_the_versions_are_the_same(derived: Derived) -> None:
    with pytest.raises(BundleError, match=r"synthetic\.csv does not follow from the release"):
        verify(bundle_bytes(with_other_row(derived), True))


def test_other_rows_are_a_warning_that_names_the_versions_elsewhere(
    derived: Derived, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = bundle_bytes(with_other_row(derived), True)
    monkeypatch.setattr(core.machine, "described", lambda: described() | {"numpy": "9.9.9"})
    (warning,) = verify(blob).warnings
    assert f"numpy {described()['numpy']} there, 9.9.9 here" in warning
    assert "scipy" not in warning
    # Rows that come out the same are the same, whatever the versions.
    assert verify(derived.bundle).warnings == ()


@pytest.mark.parametrize("part", [None, "scipy"])
def test_a_manifest_without_versions_leaves_a_warning(derived: Derived, part: str | None) -> None:
    def drop(plain: dict[str, object]) -> None:
        drawn_on = plain["drawn_on"]
        assert isinstance(drawn_on, dict)
        if part is None:
            del plain["drawn_on"]
        else:
            del drawn_on[part]

    blob = rezipped(bundle_bytes(with_other_row(derived), True), drop)
    (warning,) = verify(blob).warnings
    assert "scipy unknown there" in warning


@pytest.mark.parametrize("rubbish", [5, [], "numpy", None])
def test_a_manifest_with_rubbish_for_versions_is_damaged(derived: Derived, rubbish: object) -> None:
    blob = rezipped(derived.bundle, lambda plain: plain.update(drawn_on=rubbish))
    with pytest.raises(BundleError, match="damaged"):
        verify(blob)


def test_differences_name_both_sides() -> None:
    assert differences(described()) == ()
    assert differences(described() | {"python": "2.7"})[0].startswith("python 2.7 there, ")
    assert differences(described() | {"abacus": "1"}) == ("abacus 1 there, unknown here",)


def test_a_comment_in_the_plan_is_refused(derived: Derived) -> None:
    files = dict(derived.files)
    files["plan.toml"] = b"# approved\n" + files["plan.toml"]
    with pytest.raises(BundleError, match="more than the public plan"):
        verify(bundle_bytes(files, True))


def test_the_public_plan_is_its_own_public_plan(derived: Derived) -> None:
    text = derived.files["plan.toml"].decode()
    assert parse_plan(text).public().to_toml() == text


def test_a_ledger_that_spent_more_than_its_cap_is_refused(derived: Derived) -> None:
    account = json.loads(derived.files["ledger.json"])
    account |= {"cap_rho": "1/4", "remaining_rho": "-1/4"}
    files: Mapping[str, bytes] = {
        **derived.files,
        "ledger.json": json.dumps(account).encode(),
    }
    with pytest.raises(BundleError, match="more was spent than its cap"):
        verify(bundle_bytes(files, True))


@pytest.mark.parametrize("name", ["marginals/one_way.csv", "marginals/two_way.csv"])
def test_no_published_number_shows_the_dust_of_floating_point(derived: Derived, name: str) -> None:
    sigmas = {
        row["sigma"]
        for row in csv.DictReader(io.StringIO(derived.files[name].decode(), newline=""))
    }
    assert sigmas
    marginals = derived.release.one_way if "one" in name else derived.release.two_way
    for text in sigmas:
        assert len(text.replace(".", "")) <= 12
        assert any(float(text) == pytest.approx(m.sigma, rel=1e-11) for m in marginals)
