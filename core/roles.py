"""Roles of columns and the conditional independences that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.errors import InfeasibleConstraint, RolesError


class Role(StrEnum):
    """What a column is to the rule ``outcome ⟂ protected | admissible``."""

    PROTECTED = "S"
    OUTCOME = "O"
    ADMISSIBLE = "A"
    INADMISSIBLE = "I"
    IGNORE = "ignore"


@dataclass(frozen=True)
class Constraint:
    """``outcome ⟂ protected | admissible``: every path between the two passes an admissible column.

    ``protected`` includes declared proxies.
    """

    protected: frozenset[str]
    outcome: frozenset[str]
    admissible: frozenset[str] = frozenset()
    name: str = "fairness"

    def __post_init__(self) -> None:
        """Freeze the sets; refuse a column on two sides."""
        for part in ("protected", "outcome", "admissible"):
            object.__setattr__(self, part, frozenset(getattr(self, part)))
        sides = (
            (self.protected, self.outcome, "protected and outcome"),
            (self.protected, self.admissible, "protected and admissible"),
            (self.outcome, self.admissible, "outcome and admissible"),
        )
        for one, other, words in sides:
            both = sorted(one & other)
            if both:
                raise InfeasibleConstraint(
                    f"constraint {self.name!r}: column {both[0]!r} is both {words}; pick one role"
                )

    @property
    def columns(self) -> frozenset[str]:
        """Every column that the constraint names."""
        return self.protected | self.outcome | self.admissible

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "name": self.name,
            "protected": sorted(self.protected),
            "outcome": sorted(self.outcome),
            "admissible": sorted(self.admissible),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Constraint:
        """Inverse of :meth:`to_dict`."""
        unknown = sorted(set(plain) - {"name", "protected", "outcome", "admissible"})
        if unknown:
            raise RolesError(f"constraint: unknown setting {unknown[0]!r}")
        for part in ("protected", "outcome", "admissible"):
            if isinstance(plain.get(part, ()), str):
                raise RolesError(f"constraint: {part} must be a list of column names")
        return cls(
            frozenset(plain.get("protected", ())),
            frozenset(plain.get("outcome", ())),
            frozenset(plain.get("admissible", ())),
            str(plain.get("name", "fairness")),
        )


@dataclass(frozen=True)
class Roles:
    """One role a column, declared proxies, and further constraints if there are any.

    Attributes
    ----------
    by_column
        Role of each column; columns that are not named are inadmissible (I).
    proxies
        I columns that the constraint treats as protected.
    further
        Constraints beside the one of the role table.
    """

    by_column: Mapping[str, Role] = field(default_factory=dict)
    proxies: frozenset[str] = frozenset()
    further: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        """Normalise; a proxy must be an I column."""
        roles: dict[str, Role] = {}
        for name, role in dict(self.by_column).items():
            try:
                roles[name] = Role(role)
            except ValueError as error:
                raise RolesError(f"column {name!r}: a role is one of S, O, A, I, ignore") from error
        object.__setattr__(self, "by_column", roles)
        object.__setattr__(self, "proxies", frozenset(self.proxies))
        object.__setattr__(self, "further", tuple(self.further))
        for name in sorted(self.proxies):
            if self.role(name) is not Role.INADMISSIBLE:
                raise RolesError(
                    f"column {name!r}: only an inadmissible (I) column can be a proxy; "
                    "change its role to I or take it off the proxies"
                )

    def role(self, name: str) -> Role:
        """Role of one column (I unless declared)."""
        return self.by_column.get(name, Role.INADMISSIBLE)

    def having(self, role: Role) -> frozenset[str]:
        """Declared columns of one role."""
        return frozenset(name for name, value in self.by_column.items() if value is role)

    @property
    def ignored(self) -> frozenset[str]:
        """Columns left out of the release."""
        return self.having(Role.IGNORE)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The role table's constraint (when it has an S or proxy and an O) and the further ones."""
        protected = self.having(Role.PROTECTED) | self.proxies
        outcome = self.having(Role.OUTCOME)
        table = (
            (Constraint(protected, outcome, self.having(Role.ADMISSIBLE)),)
            if protected and outcome
            else ()
        )
        return table + self.further

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse roles for unknown columns and constraints on ignored ones.

        Parameters
        ----------
        names
            Names of the columns that can be modelled.
        """
        known = set(names)
        named = set(self.by_column) | set(self.proxies)
        named -= self.ignored
        for constraint in self.further:
            named |= constraint.columns
        unknown = sorted(named - known)
        if unknown:
            raise RolesError(
                f"column {unknown[0]!r} has a role but cannot be modelled: it is not in the "
                "schema, or is an identifier or free text; set its role to ignore"
            )
        for constraint in self.further:
            ignored = sorted(constraint.columns & self.ignored)
            if ignored:
                raise RolesError(
                    f"constraint {constraint.name!r} names {ignored[0]!r}, which is ignored"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "columns": {name: role.value for name, role in sorted(self.by_column.items())},
            "proxies": sorted(self.proxies),
            "constraints": [constraint.to_dict() for constraint in self.further],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Roles:
        """Inverse of :meth:`to_dict`."""
        unknown = sorted(set(plain) - {"columns", "proxies", "constraints"})
        if unknown:
            raise RolesError(f"roles: unknown setting {unknown[0]!r}")
        return cls(
            dict(plain.get("columns", {})),
            frozenset(plain.get("proxies", ())),
            tuple(Constraint.from_dict(item) for item in plain.get("constraints", ())),
        )
