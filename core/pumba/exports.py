"""Posteriors as files: CSV, Parquet, JSON, draws as NPZ, and ArviZ's form."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from typing import Any, cast

import numpy as np

from core.errors import EstimationError
from core.pumba.draws import FloatArray
from core.pumba.posterior import Posterior
from core.pumba.settings import Settings
from core.spreadsheet import guarded_label

#: Significant digits of numbers in a CSV file.
DIGITS = 12
CHAINS = 4


def summary_rows(posteriors: Sequence[Posterior]) -> list[dict[str, str | float | None]]:
    """One record a parameter: analysis, parameter, and all fields of its summary.

    Raises
    ------
    EstimationError
        Two posteriors have one title, so that their rows could not be told apart.
    """
    _titles(posteriors)
    rows: list[dict[str, str | float | None]] = []
    for one in posteriors:
        for parameter in one.summary:
            plain = asdict(parameter)
            name = plain.pop("name")
            rows.append({"analysis": one.title, "parameter": name, "level": one.settings.level})
            rows[-1].update(plain)
    return rows


def csv_bytes(posteriors: Sequence[Posterior]) -> bytes:
    """The summaries as CSV in UTF-8; undefined numbers are empty cells.

    Names that a spreadsheet would run get an apostrophe, see :mod:`core.spreadsheet`.
    """
    stream = io.StringIO(newline="")
    rows = summary_rows(posteriors)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows([_text(cell) for cell in row.values()] for row in rows)
    return stream.getvalue().encode()


def _text(cell: str | float | None) -> str:
    if cell is None:
        return ""
    return guarded_label(cell) if isinstance(cell, str) else f"{cell:.{DIGITS}g}"


def parquet_bytes(posteriors: Sequence[Posterior]) -> bytes:
    """The summaries as Parquet; undefined numbers are null."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = summary_rows(posteriors)
    texts = ("analysis", "parameter")
    columns = {
        name: pa.array([row[name] for row in rows], pa.string() if name in texts else pa.float64())
        for name in rows[0]
    }
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def document(posteriors: Sequence[Posterior]) -> dict[str, Any]:
    """Summaries, warnings, notes, diagnostics and settings as plain JSON content."""
    _titles(posteriors)
    return {
        "privacy_cost": "none: computed from released values only",
        "posteriors": [_plain(one) for one in posteriors],
    }


def _plain(one: Posterior) -> dict[str, Any]:
    diagnostics = one.parameters.diagnostics
    return {
        "analysis": one.title,
        "settings": settings_document(one.settings),
        "parameters": [asdict(parameter) for parameter in one.summary],
        "warnings": [
            {
                "code": warning.code,
                "severity": warning.severity.value,
                "sentence": warning.sentence,
                "advice": warning.advice,
            }
            for warning in one.warnings
        ],
        "notes": list(one.parameters.notes),
        "sampling": {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in asdict(diagnostics).items()
        },
    }


def settings_document(settings: Settings) -> dict[str, Any]:
    """Settings as plain JSON content."""
    plain: dict[str, Any] = {
        item.name: getattr(settings, item.name)
        for item in fields(settings)
        if item.name not in ("priors", "rope")
    }
    plain["priors"] = {
        name: {"mean": prior.mean, "sd": prior.sd} for name, prior in settings.priors.items()
    }
    rope = settings.rope
    plain["rope"] = (
        None
        if rope is None
        else {name: list(ends) for name, ends in rope.items()}
        if isinstance(rope, Mapping)
        else list(rope)
    )
    return plain


def draws_bytes(posteriors: Sequence[Posterior]) -> bytes:
    """All draws as NPZ without pickles.

    For the analysis numbered ``i`` from 0: ``title_i`` and ``names_i`` (text), ``values_i`` and
    ``repeats_i``, both (draws, parameters); ``analyses`` is their number.
    """
    _titles(posteriors)
    arrays: dict[str, Any] = {"analyses": np.array(len(posteriors))}
    for index, one in enumerate(posteriors):
        arrays[f"title_{index}"] = np.array(one.title)
        arrays[f"names_{index}"] = np.array(one.parameters.names)
        arrays[f"values_{index}"] = one.parameters.values
        arrays[f"repeats_{index}"] = one.parameters.repeats
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **cast(Any, arrays))
    return buffer.getvalue()


def chains(values: FloatArray) -> FloatArray:
    """Draws (R, k) as (4, R // 4, k): the last R % 4 are left out."""
    length = values.shape[0] // CHAINS
    return values[: CHAINS * length].reshape(CHAINS, length, -1)


def inference_data(one: Posterior) -> Any:
    """The draws in ArviZ's form (InferenceData of 0.x, DataTree of 1.x), in four chains.

    Raises
    ------
    EstimationError
        ArviZ is not installed.
    """
    try:
        arviz: Any = import_module("arviz")
    except ModuleNotFoundError as error:
        raise EstimationError(
            "this export needs the package arviz, which is not installed; install it (pip install "
            "arviz) or use the draws in draws.npz"
        ) from error
    blocks = chains(one.parameters.values)
    group = {name: blocks[:, :, index] for index, name in enumerate(one.parameters.names)}
    if int(str(arviz.__version__).split(".", maxsplit=1)[0]) >= 1:
        return arviz.from_dict({"posterior": group})
    return arviz.from_dict(posterior=group)


def _titles(posteriors: Sequence[Posterior]) -> None:
    if not posteriors:
        raise EstimationError("there is no posterior to write")
    titles = [one.title for one in posteriors]
    for title in titles:
        if titles.count(title) > 1:
            raise EstimationError(f"two analyses are called {title!r}; give them different names")
