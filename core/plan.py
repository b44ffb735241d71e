"""A plan: everything that a person chose, as TOML, and nothing about the rows.

A plan names the population (relation, unit of protection, cap), declares every column, gives the
roles, and says what is released at which price and what is made of it for free.  Its paid parts
are a tree, any number of analyses (``[[posterior]]``), and a covariance matrix; at least one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from core.errors import PlanError, ReadingError
from core.kinds import MAXIMUM_TABLE_CELLS
from core.plain_data import toml_table
from core.plan_parts import (
    CovariancePlan,
    PosteriorPlan,
    covariance_section,
    posterior_sections,
)
from core.plan_sections import (
    ENGINES,
    FORMS,
    THIRDS,
    DemoOrigin,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
    without_none,
)
from core.plan_settings import (
    Section,
    demo_section,
    population_section,
    reading_section,
    refuse_unknown,
    synthetic_section,
    tree_section,
)
from core.privci.select import modelled_schema
from core.roles import Constraint, Role, Roles
from core.schema import Column, Kind, Schema

__all__ = [
    "ENGINES",
    "FORMS",
    "THIRDS",
    "CovariancePlan",
    "DemoOrigin",
    "Plan",
    "PopulationPlan",
    "PosteriorPlan",
    "ReadingPlan",
    "SyntheticPlan",
    "TreePlan",
    "parse_plan",
    "plan_from_dict",
    "read_plan",
    "read_plan_bytes",
    "roles_from_plan",
    "roles_to_plan",
]

VERSION = 1
#: A plan is public text written by people; more than this is something else.
MAXIMUM_BYTES = 5_000_000
#: Decimal sign where a plan declares none.
POINT = "."
#: Sections of a plan file, in the order in which they are written.
SECTIONS = (
    *("version", "population", "demo", "reading", "roles"),
    *("tree", "posterior", "covariance", "synthetic", "columns"),
)
#: Role table keys in a plan, and the role each stands for.
ROLE_KEYS = {
    "protected": Role.PROTECTED,
    "outcome": Role.OUTCOME,
    "admissible": Role.ADMISSIBLE,
    "inadmissible": Role.INADMISSIBLE,
    "ignore": Role.IGNORE,
}


@dataclass(frozen=True)
class Plan:
    """A whole plan; see :func:`read_plan` and :meth:`to_toml`."""

    population: PopulationPlan
    schema: Schema
    roles: Roles
    tree: TreePlan | None
    synthetic: SyntheticPlan = field(default_factory=SyntheticPlan)
    reading: ReadingPlan = field(default_factory=ReadingPlan)
    demo: DemoOrigin | None = None
    posteriors: tuple[PosteriorPlan, ...] = ()
    covariance: CovariancePlan | None = None

    def __post_init__(self) -> None:
        """Check all that measuring would refuse, so that it is refused before a charge."""
        # A first draft may have nothing declared yet; attaching a table to it is refused.
        columns = self.tree_schema.columns if self.tree and self.schema.modelled else ()
        sizes = sorted((column.size, column.name) for column in columns)
        if len(sizes) > 1 and sizes[-1][0] * sizes[-2][0] > MAXIMUM_TABLE_CELLS:
            raise PlanError(
                f"columns {sizes[-1][1]!r} and {sizes[-2][1]!r} together have "
                f"{sizes[-1][0] * sizes[-2][0]} cells, more than {MAXIMUM_TABLE_CELLS}; declare "
                "fewer bins or categories in one of them"
            )
        person = self.population.unit.person_column
        if person is not None and person not in self.schema:
            raise PlanError(
                f"population: unit_person_column {person!r} is not a declared column; declare it "
                "(kind = identifier keeps it out of the release)"
            )
        if self.tree is None and not self.posteriors and self.covariance is None:
            raise PlanError(
                "plan: nothing is released; give it a [tree], a [[posterior]] or a [covariance]"
            )
        if self.rho > self.population.cap:
            what = "tree: rho" if self.rho == getattr(self.tree, "rho", None) else "plan: rho"
            raise PlanError(
                f"{what} = {self.rho} is more than the population's cap of "
                f"{self.population.cap}; lower it, or raise the cap"
            )
        self._check_parts()

    def _check_parts(self) -> None:
        """Analyses and the covariance ask for what the declarations allow."""
        names = [part.spec.name for part in self.posteriors]
        twice = sorted(name for name in set(names) if names.count(name) > 1)
        if twice:
            raise PlanError(f"posterior: two analyses are called {twice[0]!r}; name them apart")
        for part in self.posteriors:
            part.spec.check(self.schema)
            if part.spec.rows == "tree" and self.tree is None:
                raise PlanError(
                    f"posterior {part.spec.name!r}: rows = 'tree' needs a [tree] in the same plan; "
                    "leave it out to measure the number of rows"
                )
        if self.covariance is not None:
            self.covariance.check(self.schema)

    @property
    def rho(self) -> Fraction:
        """The price of all parts together."""
        parts = (self.tree, *self.posteriors, self.covariance)
        return sum((part.rho for part in parts if part is not None), Fraction(0))

    @property
    def tree_schema(self) -> Schema:
        """Declarations of the columns that the tree models: not excluded, not ignored."""
        return modelled_schema(self.schema, self.roles)

    @property
    def released(self) -> Schema:
        """Declarations of all columns that some part of the plan measures, in file order."""
        names = set(self.tree_schema.names) if self.tree is not None else set()
        for part in self.posteriors:
            names.update(part.spec.columns)
        if self.covariance is not None:
            names.update(self.covariance.columns)
        return self.schema.select([name for name in self.schema.names if name in names])

    @property
    def encoded(self) -> Schema:
        """Declarations that coding needs: the released columns and the person-id column."""
        return self.encoded_for(self.released)

    def encoded_for(self, released: Schema) -> Schema:
        """The same for one part of the plan."""
        columns = {column.name: column for column in released.columns}
        person = self.population.unit.person_column
        if person is not None and person not in columns:
            columns[person] = _identifier(self.schema[person])
        return Schema(tuple(columns[name] for name in self.schema.names if name in columns))

    def public(self) -> Plan:
        """The plan as a bundle carries it: nothing but the name of a column that is not released.

        Declarations of other columns may have been suggested from their values, and no flag of
        the release would say so.
        """
        kept = {column.name: column for column in self.encoded.columns}
        hidden = "not part of this release"
        columns = tuple(
            kept.get(name) or Column(name, Kind.TEXT, reason=hidden) for name in self.schema.names
        )
        types = {name: kind for name, kind in self.synthetic.types.items() if name in kept}
        return replace(self, schema=Schema(columns), synthetic=replace(self.synthetic, types=types))

    def to_toml(self) -> str:
        """The plan as TOML text; :func:`parse_plan` reads it back to an equal plan."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain form, without settings that are at their defaults."""
        sections = {
            "version": VERSION,
            "population": self.population.to_dict(),
            "demo": None if self.demo is None else self.demo.to_dict(),
            "reading": self.reading.to_dict() or None,
            "roles": roles_to_plan(self.roles) or (None if self.tree is None else {}),
            "tree": None if self.tree is None else self.tree.to_dict(),
            "posterior": [part.to_dict() for part in self.posteriors] or None,
            "covariance": None if self.covariance is None else self.covariance.to_dict(),
            "synthetic": self.synthetic.to_dict() if self.tree is not None else None,
            "columns": [column.to_dict() for column in self.schema.columns],
        }
        return without_none(sections)


def _identifier(column: Column) -> Column:
    """What counts of a person-id column: its name, and what means missing in it."""
    return Column(column.name, Kind.IDENTIFIER, missing_markers=column.missing_markers)


def roles_to_plan(roles: Roles) -> dict[str, Any]:
    """Roles as lists of names a role, which is how people write them."""
    plain: dict[str, Any] = {
        key: sorted(roles.having(role)) for key, role in ROLE_KEYS.items() if roles.having(role)
    }
    if roles.proxies:
        plain["proxies"] = sorted(roles.proxies)
    if roles.further:
        plain["constraints"] = [constraint.to_dict() for constraint in roles.further]
    return plain


def roles_from_plan(plain: object) -> Roles:
    """Inverse of :func:`roles_to_plan`.

    Raises
    ------
    PlanError
        Unknown settings, a column with two roles, or a text where a list is needed.
    """
    section = Section("roles", plain, (*ROLE_KEYS, "proxies", "constraints"))
    by_column: dict[str, Role] = {}
    for key, role in ROLE_KEYS.items():
        for name in section.texts(key, "column names"):
            if name in by_column:
                raise PlanError(f"roles: column {name!r} has two roles; keep one")
            by_column[name] = role
    further = section.plain.get("constraints", ())
    if not isinstance(further, list | tuple):
        raise PlanError("roles: constraints must be a list of tables, [[roles.constraints]]")
    return Roles(
        by_column,
        frozenset(section.texts("proxies", "column names")),
        tuple(_constraint(item) for item in further),
    )


def _constraint(plain: object) -> Constraint:
    sides = ("protected", "outcome", "admissible", "proxies")
    section = Section("roles.constraints", plain, ("name", *sides))
    section.text("name")
    for side in sides:
        section.texts(side, "column names")
    return Constraint.from_dict(section.plain)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file.

    Raises
    ------
    PlanError
        The file is not there, not TOML, or does not describe a plan; the message says where.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MAXIMUM_BYTES else b""
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or "its name is no name of a file"
        raise PlanError(f"plan {path.name}: cannot be read ({words})") from error
    if size > MAXIMUM_BYTES:
        raise _too_large(f"plan {path.name}")
    return read_plan_bytes(data, path.name)


def read_plan_bytes(data: bytes, name: str = "plan") -> Plan:
    """A plan from the content of its file; see :func:`read_plan`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError(f"plan {name}: is not UTF-8 text; save it as UTF-8") from None
    return parse_plan(text, name)


def parse_plan(text: str, name: str = "plan") -> Plan:
    """Parse a plan from TOML text; see :func:`read_plan`."""
    if len(text) > MAXIMUM_BYTES:
        raise _too_large(name)
    try:
        plain = toml_table(text, name)
    except ReadingError as error:
        raise PlanError(str(error)) from error
    return plan_from_dict(plain)


def _too_large(name: str) -> PlanError:
    return PlanError(f"{name}: a plan has at most {MAXIMUM_BYTES:,} bytes; is this the table?")


def plan_from_dict(plain: Mapping[str, Any]) -> Plan:
    """Inverse of :meth:`Plan.to_dict`; unknown settings are refused by name."""
    refuse_unknown(plain, SECTIONS, "plan")
    version = plain.get("version", VERSION)
    if isinstance(version, bool) or version != VERSION:
        raise PlanError(f"plan: version must be {VERSION}; this program reads no other")
    for section in ("population", "columns"):
        if section not in plain:
            raise PlanError(f"plan: the section [{section}] is missing")
    if not any(section in plain for section in ("tree", "posterior", "covariance")):
        raise PlanError("plan: the section [tree] is missing (or [[posterior]], or [covariance])")
    if not isinstance(plain["columns"], list | tuple):
        raise PlanError("plan: columns must be a list of tables, [[columns]]")
    return Plan(
        population=population_section(plain["population"]),
        schema=Schema.from_dict({"columns": plain["columns"]}),
        roles=roles_from_plan(plain.get("roles", {})),
        tree=tree_section(plain["tree"]) if "tree" in plain else None,
        synthetic=synthetic_section(plain.get("synthetic", {})),
        reading=reading_section(plain.get("reading", {})),
        demo=demo_section(plain["demo"]) if plain.get("demo") else None,
        posteriors=posterior_sections(plain.get("posterior", ())),
        covariance=covariance_section(plain["covariance"]) if "covariance" in plain else None,
    )
