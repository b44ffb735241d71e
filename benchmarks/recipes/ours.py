"""Justitia: real OpenDP noise through vault and grant, default engine, rounded sampling."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from time import perf_counter

import opendp.prelude  # noqa: F401 - imported by the first draw; it counts as an import here
import pandas as pd

import core.decoding  # noqa: F401 - the same for the first sample
from core.private.coding import encode
from core.private.ledger import Ledger, Population
from core.private.raw import RawTable, ReadingReport
from core.private.source import InMemorySource
from core.private.vault import Vault
from core.private.zcdp import as_rho
from core.privci.reconstruct import fit
from core.privci.sample import synthesize
from core.privci.select import release_tree
from core.releases import Relation, TreeRelease, Unit
from core.roles import Roles
from core.schema import Column, Kind, Missing, Schema

LABEL = "Justitia"


def declare(sizes: Mapping[str, int]) -> Schema:
    """Integer codes 0 .. size-1, one cell a code, nothing missing."""
    return Schema(
        tuple(
            Column(
                name,
                Kind.INTEGER,
                lower=0,
                upper=size - 1,
                bins=size,
                missing=Missing.CONSTANT,
                missing_constant=0,
            )
            for name, size in sizes.items()
        )
    )


def released(
    frame: pd.DataFrame, sizes: Mapping[str, int], rho: float, stages: dict[str, float]
) -> TreeRelease:
    """Code, charge, measure and select; fills in the seconds of each stage."""
    start = perf_counter()
    schema = declare(sizes)
    table = encode(RawTable(frame, "table", ReadingReport("memory")), schema)
    stages["code the table"] = perf_counter() - start
    start = perf_counter()
    population = Population("benchmark", Relation.ADD_REMOVE, Unit(), cap=as_rho(rho))
    ledger = Ledger("sqlite://")
    ledger.create_population(population)
    vault = Vault(InMemorySource(table), population, ledger)
    grant = vault.grant(as_rho(rho), "tree", uuid.uuid4().hex)
    if grant is None:
        raise RuntimeError("a fresh ledger has already seen this request")
    stages["charge"] = perf_counter() - start
    start = perf_counter()
    marks: dict[str, float] = {}

    def progress(stage: str, done: int, total: int, _: object) -> None:
        if done == total:
            marks[stage] = perf_counter()

    release = release_tree(grant, schema, Roles(), structure="mst", progress=progress)
    for stage in ("one-way", "selection", "two-way"):
        stages[stage] = marks.get(stage, start) - start
        start = marks.get(stage, start)
    start = perf_counter()
    vault.complete(grant, release.to_bytes(), "TreeRelease")
    stages["store"] = perf_counter() - start
    return release


def run(
    frame: pd.DataFrame, sizes: Mapping[str, int], rho: float, seed: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Synthetic table and seconds a stage."""
    stages: dict[str, float] = {}
    release = released(frame, sizes, rho, stages)
    start = perf_counter()
    fitted = fit(release)
    stages[f"fit ({fitted.engine})"] = perf_counter() - start
    start = perf_counter()
    made = synthesize(release, fitted, seed=seed)
    stages["sample"] = perf_counter() - start
    return made.frame, stages
