"""An exact stand-in for a grant, and tables with a known chain of dependence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from core.private.table import CodedTable
from core.privci.select import release_tree
from core.releases import (
    NoisyMarginal,
    NoisyScores,
    PairReference,
    Provenance,
    Recoding,
    Relation,
    TreeRelease,
    Unit,
)
from core.roles import Role, Roles
from core.schema import Column, Kind, Schema
from core.simulation import simulated_vault

Codes = dict[str, np.ndarray]


def schema_of(codes: Codes) -> Schema:
    """Exactly one cell a code."""
    return Schema(
        tuple(
            Column(
                name,
                Kind.CATEGORICAL,
                categories=tuple(f"v{i}" for i in range(int(values.max(initial=0)) + 1)),
                missing="constant",
                missing_constant="v0",
                other_label="v0",
            )
            for name, values in codes.items()
        )
    )


@dataclass
class ExactGrant:
    """A grant whose noise is zero; it writes down every call and what it was asked to cost."""

    codes: Codes
    rho: Fraction = Fraction(1)
    sigma: float = 0.01
    relation: Relation = Relation.ADD_REMOVE
    calls: list[tuple[str, Fraction, object]] = field(default_factory=list)

    @property
    def remaining(self) -> Fraction:
        return self.rho - sum((rho for _, rho, _ in self.calls), Fraction(0))

    def table(self, clique: Sequence[str], recoding: Recoding | None) -> np.ndarray:
        recoded = []
        for name in clique:
            size = int(schema_of(self.codes)[name].size)
            values = self.codes[name]
            if recoding is not None and name in recoding.maps:
                values, size = recoding.maps[name][values], recoding.size(name, size)
            recoded.append((values, size))
        result = np.zeros([size for _, size in recoded], dtype=np.int64)
        np.add.at(result, tuple(values for values, _ in recoded), 1)
        return result

    def score(self, pair: tuple[str, str], reference: PairReference) -> float:
        shares = np.outer(reference.shares[pair[0]], reference.shares[pair[1]])
        table = self.table(pair, reference.recoding)
        return float(np.abs(table - reference.total * shares).sum())

    def counts(self, cliques, rho, *, recoding=None):
        self.calls.append(("counts", rho, tuple(cliques)))
        return tuple(
            NoisyMarginal(tuple(clique), self.table(clique, recoding), self.sigma, rho)
            for clique in cliques
        )

    def row_count(self, rho):
        self.calls.append(("row_count", rho, None))
        rows = len(next(iter(self.codes.values())))
        return NoisyMarginal((), np.array(rows), 0.0, Fraction(0))

    def select_pair(self, candidates, reference, rho):
        self.calls.append(("select_pair", rho, (tuple(candidates), reference)))
        return max(candidates, key=lambda pair: self.score(pair, reference))

    def score_pairs(self, pairs, reference, rho):
        self.calls.append(("score_pairs", rho, (tuple(pairs), reference)))
        values = np.array([self.score(pair, reference) for pair in pairs])
        return NoisyScores(tuple(pairs), values, self.sigma, rho)

    def provenance(self, *, flags=()):
        return Provenance(
            "tree", "id", "people", self.rho, self.rho - self.remaining, self.relation, Unit(),
            1e-9, "digest", "none", True, tuple(flags),
        )  # fmt: skip


def chain_codes(rng: np.random.Generator, names: Sequence[str], rows: int = 2000) -> Codes:
    """Columns of two to four cells, each a noisy copy of an earlier one."""
    codes: Codes = {}
    for i, name in enumerate(names):
        size = int(rng.integers(2, 5))
        fresh = rng.integers(0, size, rows)
        fresh[:size] = np.arange(size)
        if i:
            parent = codes[names[int(rng.integers(i))]]
            keep = rng.random(rows) < rng.uniform(0.2, 0.8)
            keep[:size] = False
            fresh = np.where(keep, parent % size, fresh)
        codes[name] = fresh
    return codes


ROLES = Roles({"s": Role.PROTECTED, "o": Role.OUTCOME, "a": Role.ADMISSIBLE})


def simulated(
    codes: Codes, roles: Roles, rho: Fraction, seed: int = 0, **arguments: object
) -> TreeRelease:
    schema = schema_of(codes)
    small = {name: values.astype(np.uint16) for name, values in codes.items()}
    table = CodedTable(schema, small, {}, len(next(iter(codes.values()))))
    grant = simulated_vault(table, seed=seed).grant(rho, "tree", "id")
    assert grant is not None
    return release_tree(grant, schema, roles, **arguments)
