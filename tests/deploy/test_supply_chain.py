"""What we depend on: every file by its hash, every version in its range, every licence known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks import licences
from tests.load.running import ROOT

LOCKS = {
    "requirements.lock": "requirements-server.txt",
    "requirements-dev.lock": "requirements-dev.txt",
    "requirements-spark.lock": "requirements-spark.txt",
}
FEWEST = {"requirements-spark.lock": 10}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")


def entries(lock: Path) -> list[tuple[Requirement, int]]:
    """Each pinned requirement of a lock file, and how many hashes it has."""
    text = re.sub(r"\\\n\s*", " ", lock.read_text(encoding="utf-8"))
    found = []
    for line in text.splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            words = line.partition(" --hash")[0].strip()
            found.append((Requirement(words), len(HASH.findall(line))))
    return found


def wanted(file: Path) -> list[Requirement]:
    """The requirements of a list and of the lists that it includes."""
    found = []
    for written in file.read_text(encoding="utf-8").splitlines():
        line = written.partition("#")[0].strip()
        if line.startswith("-r "):
            found += wanted(file.parent / line[3:].strip())
        elif line:
            found.append(Requirement(line))
    return found


def unmet(requirement: Requirement, lock: list[tuple[Requirement, int]]) -> str:
    """Why a lock does not satisfy a requirement, or nothing."""
    pins = [
        pin for pin, _ in lock if canonicalize_name(pin.name) == canonicalize_name(requirement.name)
    ]
    if not pins:
        return f"{requirement.name} is not locked; run make lock"
    for pin in pins:
        version = str(pin.specifier).removeprefix("==")
        if not requirement.specifier.contains(version):
            return f"{pin} is not {requirement}; run make lock"
    return ""


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_file_has_a_hash_and_one_version(name: str) -> None:
    found = entries(ROOT / name)
    assert len(found) >= FEWEST.get(name, 60)
    for pin, hashes in found:
        assert hashes >= 1, pin
        assert re.fullmatch(r"==[\w.]+", str(pin.specifier)), pin
        assert pin.url is None, pin
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "--index-url" not in text
    assert "--extra-index" not in text


@pytest.mark.parametrize(("name", "source"), LOCKS.items())
def test_the_lock_satisfies_the_list_that_it_was_made_from(name: str, source: str) -> None:
    lock = entries(ROOT / name)
    assert [found for need in wanted(ROOT / source) if (found := unmet(need, lock))] == []


def test_the_locks_agree() -> None:
    server, dev, spark = (
        {(pin.name, str(pin.specifier)) for pin, _ in entries(ROOT / name)} for name in LOCKS
    )
    assert server <= dev
    # Installing Spark's list afterwards changes nothing that is there.
    assert {name for name, _ in spark - dev} == {"pyspark", "py4j"}


def test_a_stale_lock_is_noticed() -> None:
    lock = entries(ROOT / "requirements.lock")
    assert "not locked" in unmet(Requirement("left-pad>=1"), lock)
    assert "run make lock" in unmet(Requirement("streamlit>=99"), lock)
    assert unmet(Requirement("streamlit>=1"), lock) == ""


def test_what_runs_these_tests_is_what_is_locked() -> None:
    from importlib import metadata

    differing = []
    for pin, _ in entries(ROOT / "requirements.lock"):
        if pin.marker is None or pin.marker.evaluate():
            installed = metadata.version(pin.name)
            if not pin.specifier.contains(installed):
                differing.append(f"{pin.name}: locked {pin.specifier}, installed {installed}")
    assert differing == []


def test_make_and_image_install_from_the_locks() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--require-hashes" in makefile
    assert re.search(r"\$\(INSTALL\) -r requirements\.lock", makefile)
    assert re.search(r"\$\(INSTALL\) -r requirements-dev\.lock", makefile)
    assert re.search(r"\$\(INSTALL\) -r requirements-spark\.lock", makefile)


def test_every_licence_is_known_and_allowed() -> None:
    packages = licences.everything()
    assert len(packages) > 60
    assert [f"{one.name} {one.trouble}" for one in packages if one.trouble] == []


def test_the_list_of_licences_is_of_this_lock() -> None:
    listed = dict(
        re.findall(r"^\| (\S+) \| \S+ \| (.+?) \|", licences.TABLE.read_text("utf-8"), re.MULTILINE)
    )
    now = {one.name: " and ".join(one.licences) for one in licences.everything()}
    assert {name: listed.get(name) for name in now} == now, "run make licences"


@pytest.mark.parametrize(
    ("expression", "trouble"),
    [
        ("MIT", ""),
        ("Apache-2.0 OR GPL-2.0-only", ""),
        ("MIT AND GPL-3.0-only", "GPL-3.0-only"),
        ("AGPL-3.0-or-later", "AGPL-3.0-or-later"),
        ("LicenseRef-Proprietary", "LicenseRef-Proprietary"),
        ("GPL-3.0-only WITH GCC-exception-3.1", "GPL-3.0-only"),
    ],
)
def test_a_licence_that_is_not_allowed_is_noticed(expression: str, trouble: str) -> None:
    found = licences.Licensed("x", "1", licences.parts(expression), "license expression")
    assert trouble in found.trouble
    assert bool(found.trouble) == bool(trouble)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("BSD License", "BSD-3-Clause"),
        ("GNU Lesser General Public License v3 (LGPLv3)", "LGPL-3.0-only"),
        ("GNU General Public License v3 (GPLv3)", "GPL"),
        ("GNU Affero General Public License v3", "AGPL"),
        ("Something of our own", ""),
    ],
)
def test_old_names_of_licences(words: str, name: str) -> None:
    assert licences.spdx(words) == name
    assert bool(licences.Licensed("x", "1", (name,) if name else (), "").trouble) == (
        name not in licences.ALLOWED
    )
