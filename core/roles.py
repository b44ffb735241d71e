"""Roles of columns and the conditional independences that they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from core.errors import InfeasibleConstraint, RolesError

#: Name of the constraint that the role table itself declares.
TABLE_CONSTRAINT = "fairness"


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

    Attributes
    ----------
    protected, outcome, admissible
        Column names; no column may stand in two of them.  ``protected`` includes proxies.  With
        either of the first two empty the constraint forbids nothing.
    name
        How messages and the certificate call it.
    proxies
        The part of ``protected`` that counts as such by declaration only; it changes words, never
        what is forbidden.

    Raises
    ------
    InfeasibleConstraint
        A column stands on two sides.
    RolesError
        A proxy is not among the protected columns.
    """

    protected: frozenset[str]
    outcome: frozenset[str]
    admissible: frozenset[str] = frozenset()
    name: str = TABLE_CONSTRAINT
    proxies: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Freeze the sets; refuse a column on two sides."""
        for part in ("protected", "outcome", "admissible", "proxies"):
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
        for name in sorted(self.proxies - self.protected):
            raise RolesError(
                f"constraint {self.name!r}: proxy {name!r} must be among the protected columns"
            )

    @property
    def is_active(self) -> bool:
        """Whether it can forbid anything: it has a protected and an outcome column."""
        return bool(self.protected and self.outcome)

    @property
    def words(self) -> str:
        """The rule in one sentence.

        >>> Constraint(frozenset({"sex"}), frozenset({"income"}), frozenset({"age"})).words
        "every path between 'sex' and 'income' passes through 'age'"
        """
        if not self.is_active:
            return "nothing is forbidden: it names no protected or no outcome column"
        sides = f"{quoted(self.protected)} and {quoted(self.outcome)}"
        if not self.admissible:
            return f"no path connects {sides}"
        via = quoted(self.admissible, "or")
        return f"every path between {sides} passes through {via}"

    @property
    def columns(self) -> frozenset[str]:
        """Every column that the constraint names."""
        return self.protected | self.outcome | self.admissible

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        plain: dict[str, Any] = {
            "name": self.name,
            "protected": sorted(self.protected),
            "outcome": sorted(self.outcome),
            "admissible": sorted(self.admissible),
        }
        if self.proxies:
            plain["proxies"] = sorted(self.proxies)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Constraint:
        """Inverse of :meth:`to_dict`."""
        parts = ("protected", "outcome", "admissible", "proxies")
        unknown = sorted(set(plain) - {"name", *parts})
        if unknown:
            raise RolesError(f"constraint: unknown setting {unknown[0]!r}")
        for part in parts:
            if isinstance(plain.get(part, ()), str):
                raise RolesError(f"constraint: {part} must be a list of column names")
        return cls(
            frozenset(plain.get("protected", ())),
            frozenset(plain.get("outcome", ())),
            frozenset(plain.get("admissible", ())),
            str(plain.get("name", TABLE_CONSTRAINT)),
            frozenset(plain.get("proxies", ())),
        )


def _distinct(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    """The same constraints, repeated names numbered, so that messages can tell them apart."""
    seen: set[str] = set()
    result = []
    for constraint in constraints:
        name, count = constraint.name, 2
        while name in seen:
            name, count = f"{constraint.name} ({count})", count + 1
        seen.add(name)
        result.append(constraint if name == constraint.name else replace(constraint, name=name))
    return tuple(result)


def quoted(names: Iterable[str], word: str = "and") -> str:
    """Quoted names in sorted order as a phrase, shortened after five.

    >>> quoted(["b", "a"]), quoted("abcdefg", "or")
    ("'a' and 'b'", "'a', 'b', 'c', 'd' or 3 others")
    """
    parts = [repr(name) for name in sorted(names)]
    if len(parts) > 5:
        parts = [*parts[:4], f"{len(parts) - 4} others"]
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


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
            (Constraint(protected, outcome, self.having(Role.ADMISSIBLE), proxies=self.proxies),)
            if protected and outcome
            else ()
        )
        return _distinct(table + self.further)

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse roles for unknown columns and constraints on ignored ones.

        Parameters
        ----------
        names
            Names of the columns that can be modelled.

        Raises
        ------
        RolesError
            Names the first column that does not fit, and the way out.
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


# -- suggestions from names ------------------------------------------------------------------


@dataclass(frozen=True)
class RoleSuggestion:
    """A role that a column's name hints at.  Nobody looked at values; a person decides."""

    name: str
    role: Role
    reason: str
    proxy: bool = False


def _words(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split("_")) for phrase in text.split())


_IDENTIFIER_WORDS = _words("id uuid ssn email passport iban surname firstname lastname")
_PROTECTED_WORDS = _words(
    "sex gender race ethnicity ethnic religion religious faith disability disabled handicap "
    "nationality citizenship citizen native_country country_birth birthplace birth_place pregnant "
    "pregnancy caste skin_colour skin_color sexual_orientation foreign foreigner immigrant "
    "migration geschlecht herkunft behinderung staatsangehörigkeit konfession"
)
_OUTCOME_WORDS = _words(
    "outcome target label decision income salary wage hired hire approved approval granted "
    "admitted admission accepted promoted default defaulted recid recidivism pass_bar passed "
    "rejected loan_status credit_risk eligible churn entscheidung einkommen gehalt"
)
_PROXY_WORDS = _words(
    "zip zipcode postcode postal plz neighbourhood neighborhood district language mother_tongue "
    "marital marital_status relationship household_position first_name given_name school_name"
)
_ADMISSIBLE_WORDS = _words(
    "education edu qualification qualifications degree experience skill skills grade gpa "
    "certificate hours_per_week test_score lsat exam ausbildung erfahrung abschluss"
)
_AGE_WORDS = _words("age birth_year birthdate birth_date birthday dob alter geburtsjahr")


def _tokens(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-zß-ÿ0-9])(?=[A-Z])", " ", name)
    return tuple(token for token in re.split(r"[^0-9a-zß-ÿ]+", spaced.lower()) if token)


def _hint(name: str, phrases: tuple[tuple[str, ...], ...]) -> str | None:
    """The first phrase whose words stand side by side in the name."""
    tokens = _tokens(name)
    for phrase in phrases:
        width = len(phrase)
        if any(tokens[i : i + width] == phrase for i in range(len(tokens) - width + 1)):
            return " ".join(phrase)
    return None


def suggest_roles(names: Iterable[str]) -> tuple[RoleSuggestion, ...]:
    """A role for every column from its name alone, with the reason in words.

    Values are never looked at, so a suggestion is public.  Unknown names stay inadmissible: what
    may legitimately explain an outcome is for a person to argue.

    >>> [(hint.name, hint.role.value) for hint in suggest_roles(["sex", "Hired", "shoe size"])]
    [('sex', 'S'), ('Hired', 'O'), ('shoe size', 'I')]
    """
    return tuple(_suggest(name) for name in names)


def _suggest(name: str) -> RoleSuggestion:
    if word := _hint(name, _IDENTIFIER_WORDS):
        return RoleSuggestion(
            name, Role.IGNORE, f"'{word}' in the name points to single persons; leave it out"
        )
    if word := _hint(name, _PROTECTED_WORDS):
        return RoleSuggestion(
            name, Role.PROTECTED, f"'{word}' in the name: protected by law in many places"
        )
    if word := _hint(name, _OUTCOME_WORDS):
        return RoleSuggestion(
            name, Role.OUTCOME, f"'{word}' in the name sounds like what is decided or predicted"
        )
    if word := _hint(name, _PROXY_WORDS):
        return RoleSuggestion(
            name,
            Role.INADMISSIBLE,
            f"'{word}' in the name often stands in for a protected column; consider it a proxy",
            proxy=True,
        )
    if word := _hint(name, _AGE_WORDS):
        return RoleSuggestion(
            name,
            Role.INADMISSIBLE,
            f"'{word}' in the name: protected in some settings, a fair reason in others; decide",
        )
    if word := _hint(name, _ADMISSIBLE_WORDS):
        return RoleSuggestion(
            name,
            Role.ADMISSIBLE,
            f"'{word}' in the name is often argued as a fair reason for a decision; argue it too",
        )
    return RoleSuggestion(
        name,
        Role.INADMISSIBLE,
        "the name gives no hint: inadmissible until somebody argues that it is a fair reason",
    )
