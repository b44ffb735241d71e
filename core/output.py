"""Where a run writes: checked before anything is spent, written all together at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.artefacts import expected_files
from core.bundle import file_name
from core.errors import PlanError, ReleaseError
from core.plan import Plan

BUNDLE = "bundle.zip"


@contextmanager
def output_folder(out: Path, plan: Plan, inputs: Iterable[Path], simulated: bool) -> Iterator[Path]:
    """The folder, after a check that writing there works and harms no other file.

    A folder that was made for this run and stays empty is taken away again.

    Raises
    ------
    PlanError
        It cannot be written, or a file of another origin stands where ours would.
    """
    if not str(out).strip() or str(out) == ".":
        raise PlanError("--out needs the name of a folder for the release, not this folder itself")
    _check_targets(out, plan, inputs, simulated)
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise PlanError(
            f"--out {out.name}: cannot write there ({error.strerror}); choose another folder"
        ) from error
    try:
        yield out
    finally:
        if made and out.is_dir() and not any(out.iterdir()):
            out.rmdir()


def _check_targets(out: Path, plan: Plan, inputs: Iterable[Path], simulated: bool) -> None:
    names = [file_name(name, simulated) for name in (*expected_files(plan), BUNDLE)]
    there = [name for name in sorted(names) if (out / name).exists()]
    mine = [path.resolve() for path in inputs if path.exists()]
    if out.resolve() in mine:
        raise PlanError(f"--out {out.name}: the data are read from there; choose another folder")
    for name in there:
        target = out / name
        if target.resolve() in mine or any(target.samefile(path) for path in mine):
            raise PlanError(
                f"--out {out.name}: {name} there is what this run reads; choose another folder"
            )
        if not target.is_file():
            raise PlanError(f"--out {out.name}: {name} there is no file; choose another folder")
    folder = out / file_name("marginals", False)
    if folder.exists() and not folder.is_dir():
        raise PlanError(f"--out {out.name}: marginals there is no folder; choose another one")
    if there and file_name(BUNDLE, simulated) not in there:
        raise PlanError(
            f"--out {out.name}: {there[0]} there is not from an earlier release and would be "
            "overwritten; choose another folder"
        )


def write_files(files: Mapping[str, bytes], out: Path, simulated: bool) -> dict[str, Path]:
    """Write every file: first beside the old ones, then over them; returns paths by plain name.

    Raises
    ------
    ReleaseError
        The disk refused; the release itself is in the store.
    """
    paths: dict[str, Path] = {}
    staging: Path | None = None
    try:
        staging = Path(tempfile.mkdtemp(prefix=".justitia-", dir=out))
        for name, blob in files.items():
            path = staging / file_name(name, simulated)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob)
        for name in files:
            final = out / file_name(name, simulated)
            final.parent.mkdir(parents=True, exist_ok=True)
            (staging / file_name(name, simulated)).replace(final)
            paths[name] = final
    except OSError as error:
        raise ReleaseError(
            f"--out {out.name}: could not be written ({error.strerror}); the release is stored, "
            "so run the command again without --new-release: nothing more is spent"
        ) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return paths
