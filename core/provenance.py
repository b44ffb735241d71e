"""Which budget, relation, unit and flags stand behind a release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any


class Relation(StrEnum):
    """What neighbouring tables are."""

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"


@dataclass(frozen=True)
class Unit:
    """The unit of protection: one row, or one person with at most ``rows`` rows.

    ``verified`` says whether a person-id column enforced the bound.
    """

    rows: int = 1
    person_column: str | None = None

    @property
    def verified(self) -> bool:
        """True when an id column enforced the bound, or when one row is the unit."""
        return self.rows == 1 or self.person_column is not None

    @property
    def words(self) -> str:
        """The unit as a phrase."""
        if self.person_column is not None:
            rows = "one row" if self.rows == 1 else f"{self.rows} rows"
            return f"one person (at most {rows} each, enforced; rows without an id left out)"
        if self.rows == 1:
            return "one row"
        return f"one person (at most {self.rows} rows each, unverified)"


@dataclass(frozen=True)
class Provenance:
    """Which budget, relation, unit and flags stand behind a release.

    ``rho`` is what the ledger charged, ``debited`` what the draws cost by OpenDP's maps.
    """

    what: str
    request_id: str
    population: str
    rho: Fraction
    debited: Fraction
    relation: Relation
    unit: Unit
    delta: float
    schema_digest: str
    noise: str
    simulated: bool
    flags: tuple[str, ...] = ()

    @property
    def forfeited(self) -> Fraction:
        """Charged and never used; it stays spent."""
        return self.rho - self.debited

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form; fractions as ``"numerator/denominator"``."""
        return {
            "what": self.what,
            "request_id": self.request_id,
            "population": self.population,
            "rho": str(self.rho),
            "debited": str(self.debited),
            "relation": self.relation.value,
            "unit_rows": self.unit.rows,
            "unit_person_column": self.unit.person_column,
            "delta": self.delta,
            "schema_digest": self.schema_digest,
            "noise": self.noise,
            "simulated": self.simulated,
            "flags": list(self.flags),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Provenance:
        """Inverse of :meth:`to_dict`."""
        return cls(
            plain["what"],
            plain["request_id"],
            plain["population"],
            Fraction(plain["rho"]),
            Fraction(plain["debited"]),
            Relation(plain["relation"]),
            Unit(plain["unit_rows"], plain["unit_person_column"]),
            float(plain["delta"]),
            plain["schema_digest"],
            plain["noise"],
            bool(plain["simulated"]),
            tuple(plain["flags"]),
        )
