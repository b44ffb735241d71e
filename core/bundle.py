"""The release bundle: one zip with a manifest of hashes, and the check that it tells the truth."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.archives import DAMAGE, open_archive
from core.artefacts import FORM_FILES, PREFIX, about, expected_files, released_files
from core.artefacts_covariance import COVARIANCE_BLOB
from core.artefacts_posterior import blob_name
from core.bundle_checks import (
    check_certificate,
    check_free,
    check_ledger,
    check_plan,
    check_row_count,
)
from core.bundle_prices import check_prices, check_tables
from core.documents import json_bytes
from core.errors import BundleError, JustitiaError, ReadingError
from core.free import Free, free_of
from core.machine import described
from core.outcome import Release, Releases
from core.pace.release import CovarianceRelease
from core.plain_data import json_value
from core.plan import Plan, read_plan_bytes
from core.pumba.release import StatisticsRelease
from core.releases import TreeRelease, digest
from core.version import VERSION

MANIFEST = "manifest.json"
#: A bundle larger than this when unpacked is refused before it is unpacked.
MAXIMUM_BYTES = 1_000_000_000
_LARGEST_MANIFEST = 20_000_000
#: What checking a made-up bundle can run into, where no check of ours names what is wrong.
_NONSENSE = (ArithmeticError, AttributeError, AssertionError, *DAMAGE)
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Verification:
    """What a check of a bundle found.

    ``checks`` are sentences of what holds, ``warnings`` of what this machine could not settle; a
    bundle that fails raises :class:`BundleError`.
    """

    simulated: bool
    statement: str
    checks: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Opened:
    """A bundle that was checked, and what it holds: plan, releases, and what follows from them."""

    plan: Plan
    releases: Releases
    free: Free
    verification: Verification


def file_name(name: str, simulated: bool) -> str:
    """Name of a file on disk: simulated output carries its stamp in the name.

    >>> file_name("marginals/one_way.csv", True)
    'marginals/SIMULATED_NOT_PRIVATE_one_way.csv'
    """
    if not simulated:
        return name
    folder, _, base = name.rpartition("/")
    return f"{folder}/{PREFIX}{base}" if folder else f"{PREFIX}{base}"


def manifest(files: Mapping[str, bytes], simulated: bool) -> dict[str, Any]:
    """Hash, size and meaning of every file, and on what the synthetic rows were drawn.

    Called where the rows were drawn a moment ago.
    """
    return {
        "program": f"Justitia {VERSION}",
        "simulated": simulated,
        "drawn_on": described(),
        "files": {
            file_name(name, simulated): {
                "sha256": digest(blob),
                "bytes": len(blob),
                "about": about(name),
            }
            for name, blob in sorted(files.items())
        },
    }


def bundle_bytes(files: Mapping[str, bytes], simulated: bool) -> bytes:
    """The zip; the same files give the same bytes (no dates, sorted names)."""
    buffer = io.BytesIO()
    content = {file_name(name, simulated): blob for name, blob in files.items()}
    content[file_name(MANIFEST, simulated)] = json_bytes(manifest(files, simulated), simulated)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content[name])
    return buffer.getvalue()


def verify(source: str | Path | bytes) -> Verification:
    """Check a bundle's hashes, and that its documents follow from the releases inside it.

    The statement, tree and noisy tables are rebuilt from the releases and compared byte for byte;
    model, certificate, synthetic rows, posteriors and matrices are made again.  What comes out
    otherwise is an error on the versions and processor that the manifest names, and a warning
    elsewhere.  A bundle is not signed: somebody who replaces a release *and* every file made from
    it, or the rows and the versions, can still lie, so compare the manifest with the publisher's.

    Raises
    ------
    BundleError
        Not a bundle, damaged, altered, or its documents disagree.
    """
    return opened(source).verification


def opened(source: str | Path | bytes) -> Opened:
    """Check a bundle as :func:`verify` does, and hand over what it holds.

    Raises
    ------
    BundleError
        Not a bundle, damaged, altered, or its documents disagree.
    """
    try:
        with np.errstate(all="ignore"):
            return _opened(source)
    except JustitiaError:
        raise
    except _NONSENSE as error:
        raise BundleError(
            "the bundle cannot be checked, because its parts do not fit together: it is damaged, "
            "or was made up"
        ) from error


def _opened(source: str | Path | bytes) -> Opened:
    files, simulated, drawn_on = _read(source)
    checks = [f"{len(files)} files match the manifest's SHA-256 hashes"]
    plan = _plan(files)
    releases = _releases(files, plan)
    if releases.simulated != simulated:
        raise BundleError("the manifest and the release disagree on whether it is simulated")
    if releases.tree is not None:
        check_tables(releases.tree)
        check_row_count(files, plan, releases.tree)
    for name, blob in released_files(releases).items():
        if files.get(name) != blob:
            raise BundleError(f"{name} does not follow from the release in this bundle")
    checks.append("statement, tree and noisy statistics follow from the releases")
    check_prices(releases)
    checks.append("noise, price, row counts and flags of the releases do not contradict each other")
    check_plan(plan, files["plan.toml"], releases)
    checks.append("the plan's terms and declarations are those of the releases")
    check_ledger(_json(files, "ledger.json"), releases)
    checks.append("the ledger adds up and lists the charges that the statement names")
    free = free_of(plan, releases)
    if releases.tree is not None and free.fitted is not None:
        check_certificate(_json(files, "certificate.json"), releases.tree, free.fitted)
        checks.append("the certificate follows from the edges and the fitted model")
    warnings = check_free(files, plan, releases, free, drawn_on)
    if not warnings:
        checks.append(
            "synthetic rows, posteriors and matrices are those that these releases, settings and "
            "seeds give"
        )
    found = Verification(simulated, files["statement.md"].decode(), tuple(checks), warnings)
    return Opened(plan, releases, free, found)


@contextmanager
def bundle_archive(source: str | Path | bytes) -> Iterator[zipfile.ZipFile]:
    """The zip file that a bundle is, bounded before anything in it is unpacked.

    Raises
    ------
    BundleError
        No such file, or no archive that can be opened safely.
    """
    source = source if isinstance(source, bytes) else Path(source)
    if isinstance(source, Path) and source.is_dir():
        raise BundleError(f"{source.name}: this is a folder; name the bundle.zip in it")
    if isinstance(source, Path) and not source.is_file():
        raise BundleError(f"{source.name}: no such file")
    # Tables may be as monotonous as they like.
    dense = [file_name(name, stamped) for name in FORM_FILES.values() for stamped in (False, True)]
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(
                open_archive(source, "this is not a bundle", MAXIMUM_BYTES, dense=dense)
            )
        except ReadingError as error:
            raise BundleError(str(error)) from error
        yield archive


def _read(source: str | Path | bytes) -> tuple[dict[str, bytes], bool, dict[str, str]]:
    """Files by plain name, hashes checked; whether they are simulated; where rows were drawn."""
    with bundle_archive(source) as archive:
        names = archive.namelist()
        if len(set(names)) != len(names):
            raise BundleError("this is not a bundle: it has repeated names")
        stamped = f"{PREFIX}{MANIFEST}" in names
        if not stamped and MANIFEST not in names:
            raise BundleError(f"this is not a bundle: it has no {MANIFEST}")
        name = file_name(MANIFEST, stamped)
        try:
            if archive.getinfo(name).file_size > _LARGEST_MANIFEST:
                raise BundleError(f"{name} is far too large")
            simulated, hashes, drawn_on = _manifest(archive.read(name).decode())
        except (AttributeError, ReadingError, *DAMAGE) as error:
            raise BundleError("the bundle or its manifest is damaged") from error
        if simulated != stamped:
            raise BundleError("the manifest's name and content disagree on whether it is simulated")
        for other in sorted({*hashes, name} ^ set(names)):
            found = "is listed but not there" if other in hashes else "is there but not listed"
            raise BundleError(f"{other} {found}")
        plain_names = {_plain_name(name, simulated): name for name in hashes}
        try:
            files = {plain: archive.read(name) for plain, name in plain_names.items()}
        except DAMAGE as error:
            raise BundleError("the bundle or its manifest is damaged") from error
    for plain, blob in files.items():
        if digest(blob) != hashes[plain_names[plain]]:
            raise BundleError(f"{plain_names[plain]} was changed after the bundle was written")
    return files, simulated, drawn_on


def _manifest(text: str) -> tuple[bool, dict[str, str], dict[str, str]]:
    """Whether it is simulated, hashes by name, and on what the rows were drawn."""
    plain = json_value(text, MANIFEST)
    listed: dict[str, Any] = plain["files"]
    return (
        bool(plain["simulated"]),
        {name: str(item["sha256"]) for name, item in listed.items()},
        {part: str(value) for part, value in plain.get("drawn_on", {}).items()},
    )


def _plain_name(name: str, simulated: bool) -> str:
    folder, _, base = name.rpartition("/")
    plain = base.removeprefix(PREFIX) if simulated else base
    plain = f"{folder}/{plain}" if folder else plain
    try:
        about(plain)
    except KeyError:
        raise BundleError(f"{name} does not belong in a bundle") from None
    if file_name(plain, simulated) != name:
        raise BundleError(f"{name} does not belong in a bundle")
    return plain


def _plan(files: Mapping[str, bytes]) -> Plan:
    """The plan, after checking that exactly the files are there that it asks for."""
    if "plan.toml" not in files:
        raise BundleError("the bundle lacks plan.toml")
    try:
        plan = read_plan_bytes(files["plan.toml"], "plan.toml")
    except JustitiaError as error:
        raise BundleError(f"plan.toml cannot be read: {error}") from error
    for name in sorted(expected_files(plan) ^ set(files)):
        found = "holds, and its plan does not ask for," if name in files else "lacks"
        raise BundleError(f"the bundle {found} {name}")
    return plan


def _releases(files: Mapping[str, bytes], plan: Plan) -> Releases:
    """The releases that the plan asks for, in its order."""
    wanted: list[tuple[str, Callable[[bytes], Release]]] = []
    if plan.tree is not None:
        wanted.append(("release.npz", TreeRelease.from_bytes))
    for index in range(len(plan.posteriors)):
        wanted.append((blob_name(index), StatisticsRelease.from_bytes))
    if plan.covariance is not None:
        wanted.append((COVARIANCE_BLOB, CovarianceRelease.from_bytes))
    found = []
    for name, read in wanted:
        try:
            found.append(read(files[name]))
        except JustitiaError as error:
            raise BundleError(f"{name} is damaged") from error
    try:
        return Releases.of(tuple(found))
    except JustitiaError as error:
        raise BundleError(str(error)) from error


def _json(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        plain = json_value(files[name].decode(), name)
    except (UnicodeDecodeError, ReadingError) as error:
        raise BundleError(f"{name} is damaged") from error
    if not isinstance(plain, dict):
        raise BundleError(f"{name} is damaged")
    return plain
