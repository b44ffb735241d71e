"""The files that a person downloads, made from a release and never from rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.artefacts_covariance import COVARIANCE_FILES, covariance_files, measurement_files
from core.artefacts_posterior import (
    POSTERIOR_FILES,
    STATISTICS_BLOB,
    blob_name,
    posterior_files,
    statistics_files,
)
from core.decoding import csv_bytes, parquet_bytes
from core.documents import csv_table, json_bytes
from core.free import Free
from core.outcome import Releases
from core.plan import Plan
from core.privci.sample import Synthetic
from core.releases import ForbiddenPair, NoisyMarginal, TreeRelease
from core.statement import statement

PREFIX = "SIMULATED_NOT_PRIVATE_"
#: What each file is, and whether it may be published, in the bundle's manifest: every bundle's,
COMMON_FILES = {
    "ledger.json": "What this population has spent up to this release. May be published.",
    "statement.md": "The privacy statement. Publish it with the data.",
    "plan.toml": "Public declarations and settings. May be published.",
}
#: a tree's,
TREE_FILES = {
    "synthetic.csv": "Synthetic rows drawn from the fitted model, for programs: texts as they are. "
    "May be published.",
    "synthetic.parquet": "The same synthetic rows as Parquet; where the input was Parquet, in the "
    "column types of that file. May be published.",
    "synthetic-for-excel.csv": "The same synthetic rows for spreadsheets: with a byte-order mark, "
    "and an apostrophe before texts that look like formulas. May be published.",
    "tree.json": "Edges in order of choice, forbidden pairs with reasons. May be published.",
    "certificate.json": "Separation proof and model figures. May be published.",
    "marginals/one_way.csv": "Noisy one-way tables, as measured. May be published.",
    "marginals/two_way.csv": "Noisy two-way tables, as measured. May be published.",
    "release.npz": "The noisy tree release itself; the tree's other files follow from it. May be "
    "published.",
}
#: and those of further parts.
DESCRIPTIONS = {**TREE_FILES, **POSTERIOR_FILES, **COVARIANCE_FILES, **COMMON_FILES}
#: Files that hold the synthetic table, by the form that a plan asks for.
FORM_FILES = {
    "csv": "synthetic.csv",
    "parquet": "synthetic.parquet",
    "spreadsheet": "synthetic-for-excel.csv",
}


def about(name: str) -> str:
    """What a bundle's file is, and whether it may be published.

    Raises
    ------
    KeyError
        No bundle holds a file of this name.
    """
    return DESCRIPTIONS[re.sub(r"^statistics-[1-9][0-9]{0,3}\.npz$", STATISTICS_BLOB, name)]


def expected_files(plan: Plan) -> frozenset[str]:
    """Plain names of all files that a bundle of this plan holds, without the manifest."""
    names = set(COMMON_FILES)
    if plan.tree is not None:
        left_out = {name for form, name in FORM_FILES.items() if form not in plan.synthetic.files}
        names |= set(TREE_FILES) - left_out
    if plan.posteriors:
        names |= set(POSTERIOR_FILES) - {STATISTICS_BLOB}
        names |= {blob_name(index) for index in range(len(plan.posteriors))}
    if plan.covariance is not None:
        names |= set(COVARIANCE_FILES)
    return frozenset(names)


def tree_document(release: TreeRelease) -> dict[str, Any]:
    """Structure, edges in order, forbidden pairs with reasons, roles and merged cells."""
    schema = release.schema
    return {
        "structure": release.structure,
        "partial": release.partial,
        "columns": [
            {
                "name": column.name,
                "role": release.roles.role(column.name).value,
                "proxy": column.name in release.roles.proxies,
                "cells": column.size,
                "cells_measured": release.recoding.size(column.name, column.size),
                "merged": _merged(release, column.name),
            }
            for column in schema.columns
        ],
        "edges": [list(edge) for edge in release.edges],
        "components": _components(release),
        "forbidden_before": [_forbidden(pair) for pair in release.forbidden],
        "steps": [step.to_dict() for step in release.steps],
        "constraints": [constraint.to_dict() for constraint in release.roles.constraints],
    }


def _merged(release: TreeRelease, name: str) -> list[str]:
    """Public labels of the cells that were measured as one."""
    column = release.schema[name]
    cell = release.recoding.merged_cell(name)
    if cell is None:
        return []
    codes = release.recoding.members(name, column.size)[cell]
    return [column.cells[code] for code in codes]


def _components(release: TreeRelease) -> list[list[str]]:
    if release.steps:
        return [list(component) for component in release.steps[-1].components]
    return [[name] for name in sorted(release.schema.names)]


def _forbidden(pair: ForbiddenPair) -> dict[str, Any]:
    return {"pair": list(pair.pair), "constraint": pair.constraint, "reason": pair.reason}


def marginal_rows(
    marginals: Sequence[NoisyMarginal], release: TreeRelease
) -> list[tuple[str | int | float, ...]]:
    """Tidy rows of noisy tables: for each cell the columns, the cells' labels, count and sigma."""
    rows: list[tuple[str | int | float, ...]] = []
    declared = [marginal.values.ndim == 1 for marginal in marginals]
    for marginal, is_declared in zip(marginals, declared, strict=True):
        labels = [
            release.schema[name].cells if is_declared else compressed_labels(release, name)
            for name in marginal.clique
        ]
        if marginal.values.ndim == 1:
            (name,), (cells,) = marginal.clique, labels
            rows += [
                (name, cell, int(count), marginal.sigma)
                for cell, count in zip(cells, marginal.values, strict=True)
            ]
            continue
        one, two = marginal.clique
        rows += [
            (one, first, two, second, int(marginal.values[i, j]), marginal.sigma)
            for i, first in enumerate(labels[0])
            for j, second in enumerate(labels[1])
        ]
    return rows


def compressed_labels(release: TreeRelease, name: str) -> tuple[str, ...]:
    """Public labels of a column's cells after merging."""
    column = release.schema[name]
    members = release.recoding.members(name, column.size)
    return tuple(
        column.cells[codes[0]] if len(codes) == 1 else f"(merged: {len(codes)} cells)"
        for codes in members
    )


def released_files(releases: Releases) -> dict[str, bytes]:
    """Files that follow from the releases alone, byte for byte."""
    files = {
        "statement.md": statement(releases).encode(),
        **statistics_files(releases),
        **measurement_files(releases),
    }
    return files if releases.tree is None else {**files, **_tree_files(releases.tree)}


def _tree_files(release: TreeRelease) -> dict[str, bytes]:
    one = ("column", "cell", "noisy_count", "sigma")
    two = ("column_1", "cell_1", "column_2", "cell_2", "noisy_count", "sigma")
    return {
        "tree.json": json_bytes(tree_document(release), release.provenance.simulated),
        "marginals/one_way.csv": csv_table(one, marginal_rows(release.one_way, release)),
        "marginals/two_way.csv": csv_table(two, marginal_rows(release.two_way, release)),
        "release.npz": release.to_bytes(),
    }


def artefacts(
    plan: Plan, releases: Releases, free: Free, ledger: Mapping[str, Any]
) -> dict[str, bytes]:
    """Every file of the bundle by plain name, except the manifest.

    Parameters
    ----------
    plan, releases, free
        What was chosen, measured, and made of it.
    ledger
        Public ledger document of the population, up to these releases.
    """
    files = {
        **released_files(releases),
        **free_files(plan, releases, free),
        "ledger.json": json_bytes(ledger, releases.simulated),
        "plan.toml": plan.public().to_toml().encode(),
    }
    if free.certificate is not None:
        files["certificate.json"] = json_bytes(free.certificate.to_dict(), releases.simulated)
    return files


def free_files(plan: Plan, releases: Releases, free: Free) -> dict[str, bytes]:
    """Files that follow from the releases up to a machine's last digits: rows, draws, matrices."""
    files = {} if free.synthetic is None else synthetic_files(plan, free.synthetic)
    if plan.posteriors:
        files |= posterior_files(free, releases.simulated)
    if releases.covariance is not None and free.estimate is not None:
        files |= covariance_files(releases.covariance, free.estimate)
    return files


def synthetic_files(plan: Plan, synthetic: Synthetic) -> dict[str, bytes]:
    """The synthetic table in every form that the plan asks for, by plain file name."""
    return {
        FORM_FILES[form]: synthetic_bytes(plan, synthetic, form) for form in plan.synthetic.files
    }


def synthetic_bytes(plan: Plan, synthetic: Synthetic, form: str) -> bytes:
    """The synthetic table in one form: ``csv``, ``parquet`` or ``spreadsheet``."""
    if form == "parquet":
        return parquet_bytes(synthetic.frame, plan.schema, plan.synthetic.types)
    return csv_bytes(synthetic.frame, spreadsheet=form == "spreadsheet")
