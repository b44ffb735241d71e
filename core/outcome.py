"""What a plan paid for: up to one tree, any number of statistics, up to one covariance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from core.errors import ReleaseError
from core.pace.release import CovarianceRelease
from core.provenance import Provenance
from core.pumba.release import StatisticsRelease
from core.releases import TreeRelease

Release = TreeRelease | StatisticsRelease | CovarianceRelease

#: Readers of stored releases, by the type's name in the ledger.
READERS: dict[str, Callable[[bytes], Release]] = {
    "TreeRelease": TreeRelease.from_bytes,
    "StatisticsRelease": StatisticsRelease.from_bytes,
    "CovarianceRelease": CovarianceRelease.from_bytes,
}


@dataclass(frozen=True, eq=False)
class Releases:
    """The releases of one plan, on one table, of one population.

    Raises
    ------
    ReleaseError
        There is none, or they are about different populations, relations or units.
    """

    tree: TreeRelease | None = None
    statistics: tuple[StatisticsRelease, ...] = ()
    covariance: CovarianceRelease | None = None

    def __post_init__(self) -> None:
        """Refuse what does not belong together."""
        terms = {
            (where.population, where.relation, where.unit, where.delta, where.simulated)
            for where in self.provenances
        }
        if len(terms) != 1:
            raise ReleaseError(
                "releases of different populations, relations or units do not go into one bundle"
                if terms
                else "nothing was released yet"
            )

    @classmethod
    def of(cls, releases: tuple[Release, ...]) -> Releases:
        """Sort releases by their type; analyses keep their order."""
        trees = [one for one in releases if isinstance(one, TreeRelease)]
        covariances = [one for one in releases if isinstance(one, CovarianceRelease)]
        if len(trees) > 1 or len(covariances) > 1:
            raise ReleaseError("a bundle holds one tree and one covariance at most")
        return cls(
            trees[0] if trees else None,
            tuple(one for one in releases if isinstance(one, StatisticsRelease)),
            covariances[0] if covariances else None,
        )

    @property
    def all(self) -> tuple[Release, ...]:
        """Every release: the tree, the analyses in order, the covariance."""
        parts: tuple[Release | None, ...] = (self.tree, *self.statistics, self.covariance)
        return tuple(part for part in parts if part is not None)

    @property
    def provenances(self) -> tuple[Provenance, ...]:
        """Where each came from, in the same order."""
        return tuple(part.provenance for part in self.all)

    @property
    def terms(self) -> Provenance:
        """The first provenance: population, relation, unit and delta are those of all."""
        return self.provenances[0]

    @property
    def rho(self) -> Fraction:
        """What all charges come to."""
        return sum((where.rho for where in self.provenances), Fraction(0))

    @property
    def simulated(self) -> bool:
        """Whether the noise was seeded: nothing is protected then."""
        return self.terms.simulated

    @property
    def partial(self) -> bool:
        """Whether a cancel ended one of them early."""
        return any(part.partial for part in self.all)

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag of every part, once."""
        return tuple(dict.fromkeys(flag for where in self.provenances for flag in where.flags))
