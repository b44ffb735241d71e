"""Posteriors of published statistics, from file to files; reads no data and touches no ledger."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import PlanError
from core.protocols import Progress
from core.pumba.exports import csv_bytes, document, draws_bytes, parquet_bytes
from core.pumba.posterior import Posterior, posterior
from core.pumba.published import Published, read_published
from core.pumba.settings import Settings
from core.pumba.summaries import ParameterSummary

#: What marks a folder as written by this module.
FORMAT = "posteriors of published statistics, version 1"
FREE = "computed from published values only: costs no privacy budget, and no ledger was touched"
_NAMES = ("posterior.csv", "posterior.json", "draws.npz", "posterior.parquet")


@dataclass(frozen=True, eq=False)
class Inference:
    """What was read, what came out, and where it was written."""

    published: Published
    posteriors: tuple[Posterior, ...]
    paths: tuple[Path, ...]


def infer(
    source: str | Path,
    out: str | Path,
    settings: Settings | None = None,
    *,
    parquet: bool = False,
    progress: Progress | None = None,
) -> Inference:
    """Posteriors of all analyses in a file of published statistics; deterministic, free.

    Parameters
    ----------
    source
        CSV or JSON as ``docs/published-statistics.md`` describes it.
    out
        Folder for ``posterior.csv``, ``posterior.json`` and ``draws.npz``; made if missing.
    settings
        The same for all analyses.
    parquet
        Write ``posterior.parquet`` too.

    Raises
    ------
    ReadingError, StatisticError, EstimationError
        The file or a statistic cannot be used; nothing was written.
    PlanError
        ``out`` cannot be written, or holds files of another origin.
    """
    settings = settings or Settings()
    folder, path = Path(out), Path(source)
    names = _NAMES if parquet else _NAMES[:-1]
    check_targets(folder, names, path)
    published = read_published(path)
    posteriors = tuple(posterior(one, settings, progress) for one in published.analyses)
    content = {"format": FORMAT, "source": published.name, **document(posteriors)}
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    files = {
        "posterior.csv": csv_bytes(posteriors),
        "posterior.json": (text + "\n").encode(),
        "draws.npz": draws_bytes(posteriors),
    }
    if parquet:
        files["posterior.parquet"] = parquet_bytes(posteriors)
    return Inference(published, posteriors, _write(files, folder))


def check_targets(out: Path, names: Iterable[str], source: Path) -> None:
    """Refuse to write over the source, or over files that no earlier run left there.

    Raises
    ------
    PlanError
        Naming the file.
    """
    if not str(out).strip() or str(out) == ".":
        raise PlanError("--out needs the name of a folder for the results, not this folder itself")
    if out.exists() and not out.is_dir():
        raise PlanError(f"--out {out.name}: there is a file of this name; choose another folder")
    there = [out / name for name in names if (out / name).exists()]
    for target in there:
        if source.exists() and target.samefile(source):
            raise PlanError(
                f"--out {out.name}: {target.name} there is what this run reads; choose another "
                "folder"
            )
        if not target.is_file():
            raise PlanError(
                f"--out {out.name}: {target.name} there is no file; choose another folder"
            )
    if there and not _ours(out / "posterior.json"):
        raise PlanError(
            f"--out {out.name}: {there[0].name} there is not from an earlier run of infer and "
            "would be overwritten; choose another folder"
        )


def _ours(path: Path) -> bool:
    """Whether a document was written by this module."""
    try:
        plain = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(plain, dict) and plain.get("format") == FORMAT


def _write(files: dict[str, bytes], out: Path) -> tuple[Path, ...]:
    """All files beside the old ones first, then over them."""
    staging: Path | None = None
    try:
        out.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".justitia-", dir=out))
        for name, blob in files.items():
            (staging / name).write_bytes(blob)
        for name in files:
            (staging / name).replace(out / name)
    except OSError as error:
        raise PlanError(
            f"--out {out.name}: cannot write there ({error.strerror}); choose another folder"
        ) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return tuple(out / name for name in files)


def report(posteriors: Sequence[Posterior]) -> list[str]:
    """Summaries and warnings in words, one line each, for a terminal."""
    lines: list[str] = []
    for one in posteriors:
        lines.append(f"{one.title}:")
        lines += [f"  {sentence(parameter, one.settings.level)}" for parameter in one.summary]
        for warning in one.warnings:
            lines.append(
                f"  {warning.severity} {warning.code}: {warning.sentence} {warning.advice}"
            )
        lines += [f"  note: {note}" for note in one.parameters.notes]
    return lines


def sentence(parameter: ParameterSummary, level: float) -> str:
    """One parameter in a line: mean, interval, share of privacy noise, naive interval."""
    digits = _decimals(parameter.sd)

    def shown(number: float) -> str:
        return f"{number:,.{digits}f}"

    parts = [
        f"{parameter.name}: {shown(parameter.mean)}, {100 * level:g} % interval "
        f"{shown(parameter.eti_low)} to {shown(parameter.eti_high)}"
    ]
    if parameter.privacy_share is not None:
        parts.append(f"{100 * parameter.privacy_share:.0f} % of the variance is privacy noise")
    if parameter.naive_low is None or parameter.naive_high is None:
        parts.append("ignoring the noise: undefined")
    else:
        parts.append(
            f"ignoring the noise: {shown(parameter.naive_low)} to {shown(parameter.naive_high)}"
        )
    return "; ".join(parts)


def _decimals(sd: float) -> int:
    """Decimals that show two digits of a standard deviation."""
    return min(max(1 - math.floor(math.log10(sd)), 0), 12) if sd > 0 else 6
