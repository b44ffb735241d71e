"""Licences of everything the server runs on, from the packages' own metadata (`make licences`)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
TABLE = ROOT / "docs" / "licences.md"

#: What is allowed: permissive licences, and weak copyleft that ends at the package's own files.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "HPND",
    "ISC",
    "LGPL-3.0-only",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MPL-2.0",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "Zlib",
}
#: Longer names and old classifiers, by the words they contain; the first that fits wins.
NAMES = (
    (r"lesser general public license v3|lgpl.*3", "LGPL-3.0-only"),
    (r"affero|agpl", "AGPL"),
    (r"general public license|\bgpl", "GPL"),
    (r"apache.*2|apache software|^apache$", "Apache-2.0"),
    (r"mozilla.*2|mpl.?2", "MPL-2.0"),
    (r"3-clause|bsd 3|new bsd|bsd-3", "BSD-3-Clause"),
    (r"2-clause|simplified bsd|bsd-2", "BSD-2-Clause"),
    (r"bsd", "BSD-3-Clause"),
    (r"mit-cmu", "MIT-CMU"),
    (r"\bmit\b", "MIT"),
    (r"isc", "ISC"),
    (r"python software foundation|psf", "PSF-2.0"),
    (r"hpnd|historical permission", "HPND"),
    (r"unlicense", "Unlicense"),
)


@dataclass(frozen=True)
class Licensed:
    """One package as it is locked, and its licences as SPDX names."""

    name: str
    version: str
    licences: tuple[str, ...]
    source: str

    @property
    def trouble(self) -> str:
        """Why it may not be shipped, or nothing."""
        if not self.licences:
            return "names no licence that is known"
        unknown = [name for name in self.licences if name not in ALLOWED]
        return f"is under {', '.join(unknown)}" if unknown else ""


def locked(lock: Path = LOCK) -> Iterator[Requirement]:
    """What the lock file pins for this Python and this system."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            requirement = Requirement(line.rstrip(" \\"))
            if requirement.marker is None or requirement.marker.evaluate():
                yield requirement


def licences_of(name: str) -> tuple[tuple[str, ...], str]:
    """SPDX names of an installed package's licences, and where they were found."""
    about = metadata.metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return parts(expression), "license expression"
    classifiers = [
        found.rpartition(" :: ")[2]
        for found in about.get_all("Classifier") or []
        if found.startswith("License :: ") and found != "License :: OSI Approved"
    ]
    found = tuple(dict.fromkeys(filter(None, map(spdx, classifiers))))
    if found:
        return found, "classifier"
    first = (about.get("License") or "").strip().splitlines()[:1]
    return tuple(filter(None, map(spdx, first))), "license field"


def parts(expression: str) -> tuple[str, ...]:
    """The licences of an expression; of alternatives, one that is allowed is enough.

    Exceptions only widen a licence, so that what stands after WITH is left out.
    """
    found: list[str] = []
    for part in re.split(r"\s+AND\s+", re.sub(r"\s+WITH\s+[\w.-]+", "", expression)):
        choices = [choice.strip("() ") for choice in re.split(r"\s+OR\s+", part)]
        found.append(next((choice for choice in choices if choice in ALLOWED), choices[0]))
    return tuple(dict.fromkeys(found))


def spdx(words: str) -> str:
    """The SPDX name of a licence's longer name; empty where nothing fits."""
    if words in ALLOWED:
        return words
    return next((name for sign, name in NAMES if re.search(sign, words, re.IGNORECASE)), "")


def everything() -> list[Licensed]:
    """All locked packages with their licences, by name."""
    found = []
    for requirement in locked():
        names, source = licences_of(requirement.name)
        version = str(requirement.specifier).removeprefix("==")
        found.append(Licensed(requirement.name, version, names, source))
    return sorted(found, key=lambda package: package.name)


def table(packages: list[Licensed]) -> str:
    """The list as a document."""
    lines = [
        "# Licences",
        "",
        "Justitia itself is under Apache-2.0. The server runs on the packages below, at the",
        "versions of `requirements.lock`; their licences are what their own metadata say. Made by",
        "`make licences`; a test refuses a package whose licence is unknown or not allowed, and a",
        "list that is older than the lock file.",
        "",
        "| package | version | licence | read from |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.name} | {one.version} | {' and '.join(one.licences) or '**unknown**'} "
        f"| {one.source} |"
        for one in packages
    ]
    return "\n".join([*lines, ""])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="licences", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    arguments = parser.parse_args(argv)
    packages = everything()
    if arguments.write:
        TABLE.write_text(table(packages), encoding="utf-8")
    else:
        print(table(packages))
    troubles = [f"{one.name} {one.trouble}" for one in packages if one.trouble]
    for trouble in troubles:
        print(trouble)
    return 1 if troubles else 0


if __name__ == "__main__":
    raise SystemExit(main())
