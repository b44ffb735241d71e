"""A plan: everything that a person chose, as TOML, and nothing about the rows.

A plan names the population (relation, unit of protection, cap), declares every column, gives the
roles, and says what is released at which price and what is made of it for free.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from core.errors import BudgetError, PlanError
from core.kinds import MAXIMUM_TABLE_CELLS
from core.plan_sections import (
    ENGINES,
    FORMS,
    THIRDS,
    DemoOrigin,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
)
from core.private.zcdp import as_rho
from core.privci.select import modelled_schema
from core.releases import Relation, Unit
from core.roles import Constraint, Role, Roles
from core.schema import Column, Kind, Schema

__all__ = [
    "ENGINES",
    "FORMS",
    "THIRDS",
    "DemoOrigin",
    "Plan",
    "PopulationPlan",
    "ReadingPlan",
    "SyntheticPlan",
    "TreePlan",
    "parse_plan",
    "plan_from_dict",
    "read_plan",
    "roles_from_plan",
    "roles_to_plan",
]

VERSION = 1
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
    tree: TreePlan
    synthetic: SyntheticPlan = field(default_factory=SyntheticPlan)
    reading: ReadingPlan = field(default_factory=ReadingPlan)
    demo: DemoOrigin | None = None

    def __post_init__(self) -> None:
        """Check all that measuring would refuse, so that it is refused before a charge."""
        # A first draft may have nothing declared yet; attaching a table to it is refused.
        columns = self.released.columns if self.schema.modelled else ()
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
        if self.tree.rho > self.population.cap:
            raise PlanError(
                f"tree: rho = {self.tree.rho} is more than the population's cap of "
                f"{self.population.cap}; lower it, or raise the cap"
            )

    @property
    def released(self) -> Schema:
        """Declarations of the columns that a release models: not excluded, not ignored."""
        return modelled_schema(self.schema, self.roles)

    @property
    def encoded(self) -> Schema:
        """Declarations that coding needs: the released columns and the person-id column."""
        columns = {column.name: column for column in self.released.columns}
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
        population = self.population
        plain: dict[str, Any] = {
            "version": VERSION,
            "population": _without_none(
                {
                    "name": population.name,
                    "relation": population.relation.value,
                    "unit_rows": population.unit.rows,
                    "unit_person_column": population.unit.person_column,
                    "cap": str(population.cap),
                    "delta": population.delta,
                    "expected_rows": population.expected_rows,
                }
            ),
        }
        if self.demo is not None:
            plain["demo"] = {
                "name": self.demo.name,
                "rows": self.demo.rows,
                "seed": self.demo.seed,
            }
        reading = _without_none(
            {
                "delimiter": self.reading.delimiter,
                "encoding": self.reading.encoding,
                "decimal": self.reading.decimal,
                "sheet": self.reading.sheet,
                "rename": dict(self.reading.rename) or None,
                "day_numbers": list(self.reading.day_numbers) or None,
                "formula_guard": self.reading.formula_guard,
            }
        )
        if reading:
            plain["reading"] = reading
        plain["roles"] = roles_to_plan(self.roles)
        plain["tree"] = {
            "rho": str(self.tree.rho),
            "structure": self.tree.structure,
            "split": [str(part) for part in self.tree.split],
        }
        plain["synthetic"] = _without_none(
            {
                "rows": self.synthetic.rows,
                "engine": self.synthetic.engine,
                "seed": self.synthetic.seed,
                "files": None if self.synthetic.files == ("csv",) else list(self.synthetic.files),
                "types": dict(self.synthetic.types) or None,
            }
        )
        plain["columns"] = [column.to_dict() for column in self.schema.columns]
        return plain


def _identifier(column: Column) -> Column:
    """What counts of a person-id column: its name, and what means missing in it."""
    return Column(column.name, Kind.IDENTIFIER, missing_markers=column.missing_markers)


def _without_none(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if value is not None}


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


def roles_from_plan(plain: Mapping[str, Any]) -> Roles:
    """Inverse of :func:`roles_to_plan`.

    Raises
    ------
    PlanError
        Unknown settings, a column with two roles, or a text where a list is needed.
    """
    _known(plain, (*ROLE_KEYS, "proxies", "constraints"), "roles")
    by_column: dict[str, Role] = {}
    for key, role in ROLE_KEYS.items():
        for name in _names(plain, key):
            if name in by_column:
                raise PlanError(f"roles: column {name!r} has two roles; keep one")
            by_column[name] = role
    further = plain.get("constraints", ())
    if not isinstance(further, list | tuple) or not all(isinstance(x, Mapping) for x in further):
        raise PlanError("roles: constraints must be a list of tables, [[roles.constraints]]")
    return Roles(
        by_column,
        frozenset(_names(plain, "proxies")),
        tuple(Constraint.from_dict(item) for item in further),
    )


def _names(plain: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return _texts(plain.get(key, ()), f"roles: {key}", "column names")


def _texts(value: object, where: str, what: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise PlanError(f"{where} must be a list of {what}")
    return tuple(value)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file.

    Raises
    ------
    PlanError
        The file is not there, not TOML, or does not describe a plan; the message says where.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PlanError(f"plan {path.name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"plan {path.name}: is not UTF-8 text; save it as UTF-8") from error
    return parse_plan(text, path.name)


def parse_plan(text: str, name: str = "plan") -> Plan:
    """Parse a plan from TOML text; see :func:`read_plan`."""
    try:
        plain = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(f"{name}: is not valid TOML: {error}") from error
    try:
        return plan_from_dict(plain)
    except (TypeError, ValueError, AttributeError) as error:
        raise PlanError(f"{name}: a setting has the wrong type: {error}") from error


def plan_from_dict(plain: Mapping[str, Any]) -> Plan:
    """Inverse of :meth:`Plan.to_dict`; unknown settings are refused by name."""
    sections = ("version", "population", "demo", "reading", "roles", "tree", "synthetic", "columns")
    _known(plain, sections, "plan")
    if plain.get("version", VERSION) != VERSION:
        raise PlanError(f"plan: version must be {VERSION}; this program reads no other")
    for section in ("population", "tree", "columns"):
        if section not in plain:
            raise PlanError(f"plan: the section [{section}] is missing")
    demo = _section(plain, "demo", ("name", "rows", "seed"))
    return Plan(
        population=_population(_section(plain, "population")),
        schema=Schema.from_dict({"columns": plain["columns"]}),
        roles=roles_from_plan(_section(plain, "roles")),
        tree=_tree(_section(plain, "tree", ("rho", "structure", "split"))),
        synthetic=_synthetic(
            _section(plain, "synthetic", ("rows", "engine", "seed", "files", "types"))
        ),
        reading=_reading(_section(plain, "reading")),
        demo=DemoOrigin(str(demo["name"]), _whole(demo, "rows", 0), _whole(demo, "seed", 0))
        if demo
        else None,
    )


def _known(plain: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(plain) - set(known))
    if unknown:
        raise PlanError(f"{where}: unknown setting {unknown[0]!r}; known: {', '.join(known)}")


def _section(plain: Mapping[str, Any], name: str, known: tuple[str, ...] = ()) -> Mapping[str, Any]:
    section = plain.get(name, {})
    if not isinstance(section, Mapping):
        raise PlanError(f"plan: {name} must be a section, [{name}]")
    if known:
        _known(section, known, name)
    return section


def _whole(section: Mapping[str, Any], key: str, default: int) -> int:
    value = section.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"{key} must be a whole number")
    return value


def _price(value: object, where: str) -> Fraction:
    try:
        return as_rho(value)  # type: ignore[arg-type]
    except BudgetError as error:
        raise PlanError(f"{where}: {error}") from error


def _population(section: Mapping[str, Any]) -> PopulationPlan:
    keys = (
        "name",
        "relation",
        "unit_rows",
        "unit_person_column",
        "cap",
        "delta",
        "expected_rows",
    )
    _known(section, keys, "population")
    try:
        relation = Relation(section.get("relation", Relation.ADD_REMOVE))
    except ValueError as error:
        raise PlanError("population: relation must be add_remove or replace_one") from error
    person = section.get("unit_person_column") or None
    return PopulationPlan(
        name=str(section.get("name", "")),
        relation=relation,
        unit=Unit(_whole(section, "unit_rows", 1), None if person is None else str(person)),
        cap=_price(section.get("cap", "1"), "population cap"),
        delta=float(section.get("delta", 1e-9)),
        expected_rows=_whole(section, "expected_rows", 0) or None,
    )


def _tree(section: Mapping[str, Any]) -> TreePlan:
    if "rho" not in section:
        raise PlanError('tree: say what it may cost, for example rho = "0.5"')
    split = section.get("split", THIRDS)
    if isinstance(split, str) or len(split) != 3:
        raise PlanError("tree: split needs three positive shares (one-way, selection, two-way)")
    first, second, third = (_price(part, "tree split") for part in split)
    return TreePlan(
        _price(section["rho"], "tree rho"),
        str(section.get("structure", "privci")),
        (first, second, third),
    )


def _synthetic(section: Mapping[str, Any]) -> SyntheticPlan:
    return SyntheticPlan(
        rows=_whole(section, "rows", 0) if "rows" in section else None,
        engine=str(section.get("engine", "auto")),
        seed=_whole(section, "seed", 0),
        files=tuple(
            dict.fromkeys(_texts(section.get("files", ("csv",)), "synthetic: files", "file forms"))
        ),
        types=_mapping(section.get("types", {}), "synthetic: types"),
    )


def _mapping(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise PlanError(f"{where} must map column names to texts")
    return {str(key): str(text) for key, text in value.items()}


def _reading(section: Mapping[str, Any]) -> ReadingPlan:
    names = ("delimiter", "encoding", "decimal", "sheet")
    _known(section, (*names, "rename", "day_numbers", "formula_guard"), "reading")
    texts = {key: section.get(key) for key in names}
    for key, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise PlanError(f"reading: {key} must be a text")
    guard = section.get("formula_guard")
    if guard is not None and not isinstance(guard, bool):
        raise PlanError("reading: formula_guard must be true or false")
    return ReadingPlan(
        **texts,
        rename=_mapping(section.get("rename", {}), "reading: rename"),
        day_numbers=_texts(section.get("day_numbers", ()), "reading: day_numbers", "column names"),
        formula_guard=guard,
    )
