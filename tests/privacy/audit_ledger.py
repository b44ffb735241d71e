"""Audits through vault and ledger: what the ledger says was spent is the claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from core.private.ledger import Ledger, Population
from core.private.noise import Noise
from core.private.source import InMemorySource
from core.private.table import CodedTable
from core.private.vault import Vault
from core.releases import Relation
from tests.privacy.audit_scenes import RHO, noises
from tests.privacy.auditing import Outcomes, lattice_excess


@dataclass(eq=False)
class LedgerScene:
    """Requests to one population, each a count of all columns.

    Attributes
    ----------
    requests
        (request id, version of the table) in order; an id that was paid for is read from the store.
    versions
        Neighbouring tables of each version.
    rho
        Price of a request.
    noise
        A planted fault's noise, made from a seed.
    """

    title: str
    group: str
    relation: Relation
    requests: tuple[tuple[str, int], ...]
    versions: tuple[tuple[CodedTable, CodedTable], ...]
    rho: Fraction = RHO
    noise: Callable[[int], Noise] | None = None
    gaussian: bool = True
    effort: int = 1

    def play(self, side: int, runs: int, seed: int, *, real: bool) -> Outcomes:
        """Make all requests again and again, each run for people of its own."""
        ledger = Ledger("sqlite://")
        seeds = noises(self, side, runs, seed, real=real)
        found = [self._once(ledger, side, run, noise) for run, noise in enumerate(seeds)]
        ledger.close()
        numbers = np.array([values for values, _ in found], dtype=np.float64)
        tables = len(self._cliques)
        sigma = float((tables * self._moved / (2 * self.rho)) ** 0.5)
        return Outcomes(
            numbers @ np.concatenate([self._change(version) for _, version in self.requests]),
            numbers,
            np.full(runs, ""),
            max(spent for _, spent in found),
            lattice_excess(round(sigma, 6), tables * self._moved, 1),
        )

    @property
    def whole(self) -> bool:
        """Whether the canary takes part in everything that is paid for."""
        return all(first is not second for first, second in self.versions)

    @property
    def _cliques(self) -> list[tuple[str, ...]]:
        return [(name,) for name in self.versions[0][0].schema.names]

    @property
    def _moved(self) -> int:
        return 1 if self.relation is Relation.ADD_REMOVE else 2

    def _change(self, version: int) -> np.ndarray:
        """What the canary adds to the counts, counted without the product."""
        first, second = (
            np.concatenate(
                [
                    np.bincount(table.codes[column.name], minlength=column.size)
                    for column in table.schema.columns
                ]
            )
            for table in self.versions[version]
        )
        return (second - first).astype(np.float64)

    def _once(self, ledger: Ledger, side: int, run: int, noise: Noise):
        people = Population(
            f"people {run}", self.relation, self.versions[0][0].unit, Fraction(1000), simulated=True
        )
        ledger.create_population(people)
        vaults = [
            Vault(InMemorySource(tables[side]), people, ledger, noise) for tables in self.versions
        ]
        answers = [
            self._request(vaults[version], f"{run} {identity}", ledger)
            for identity, version in self.requests
        ]
        return np.concatenate(answers), ledger.spent(people.name)

    def _request(self, vault: Vault, identity: str, ledger: Ledger) -> np.ndarray:
        grant = vault.grant(self.rho, "counts", identity)
        if grant is None:
            return np.frombuffer(ledger.release_blob(identity) or b"", dtype=np.int64)
        answers = grant.counts(self._cliques, grant.rho)
        values = np.concatenate([answer.values for answer in answers])
        vault.complete(grant, values.tobytes(), "counts")
        return values
