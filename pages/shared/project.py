"""The one state of a browser session: what the steward chose, and handles to what came of it.

Pages read a :class:`Project` and change it through its methods; every change is kept in the store
at once (without rows), so that a reload or another tab finds it again by the opaque id in the
page's address.  Only ``table`` holds rows, and it lives and dies with the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from core.errors import JustitiaError, LedgerError
from core.outcome import Release
from core.plan import (
    DemoOrigin,
    Plan,
    PopulationPlan,
    ReadingPlan,
    SyntheticPlan,
    TreePlan,
    parse_plan,
)
from core.releases import TreeRelease
from core.roles import Role, Roles
from core.schema import Column, Schema
from core.sources import ServerTable
from pages.shared import house, uploads
from pages.shared.jobs import desk

KEY = "project"
ADDRESS = "project"


@dataclass(frozen=True)
class Run:
    """One paid request: its id, and the plan as it was when the steward pressed the button.

    ``table`` names the table in the steward's words; it holds no row and no fingerprint.  ``what``
    is ``tree``, ``posterior`` or ``covariance``; ``attempt`` counts purchases of the same thing.
    """

    request_id: str
    plan: str
    table: str
    table_id: str
    what: str = "tree"
    attempt: int = 1

    def read_plan(self) -> Plan:
        """The plan as it was."""
        return parse_plan(self.plan, "the plan of this release")


@dataclass
class Project:
    """Everything that one session works on.

    Attributes
    ----------
    identity
        Opaque random id from the store; the page's address carries it.  Empty until kept.
    name, listed
        The steward's name, and whether Start lists the project.
    demo
        Which embedded demo the table is, or None for a table of one's own.
    table, table_name, table_number
        The attached table (session only), its file name, and how many were attached so far.
    source
        The table as it stays on the server or in a database, in place of ``table``; no rows.
    way, listing, opening
        Which way to a table Start asked for, what the offered folder lists, and the release that
        waits until the table is opened (session only).
    draft, generation
        Rows of the declaration editor as typed, and how often they were replaced as a whole.
    schema, population, roles, tree
        What was confirmed; None until then.
    covariance_draft
        Settings of the next covariance release, as typed (session only).
    attempt
        How often the steward decided, on purpose, to spend again on an unchanged plan.
    runs
        Paid requests of all kinds, oldest first.
    views
        How the steward looks at each release (level, estimand, seed …), by request id; free.
    sign_off
        Name, purpose and date of the sign-off, by bundle hash.
    releases, derived
        Caches of stored releases and of what follows from them for free (session only).
    watching, drawn
        Which release this session watches grow, and how many edges are shown (session only).
    notes, problem
        Sentences to show once, on the next page that is drawn.
    curve
        The last outlook along the budget's slider, with the public facts it follows from.
    base
        What the grid of many columns started from (session only).
    audit_view, audit, look
        Settings of the audit, the audit made with them and its id, and the look at the real table
        (session only; what it found goes nowhere else).
    reading, settled
        How the steward wants the file read, and that with everything filled in that was found out.
    reading_notes, header
        How the file was understood, and proposed names where its own cannot be used.
    """

    identity: str
    owner: str
    name: str = ""
    listed: bool = False
    demo: DemoOrigin | None = None
    table: Any = field(default=None, repr=False)
    table_name: str = ""
    table_number: int = 0
    source: ServerTable | None = None
    way: str = ""
    listing: Any = field(default=None, repr=False)
    opening: Any = field(default=None, repr=False)
    reading: ReadingPlan = field(default_factory=ReadingPlan)
    settled: ReadingPlan = field(default_factory=ReadingPlan)
    draft: tuple[Mapping[str, Any], ...] = ()
    generation: int = 0
    population_draft: Mapping[str, Any] = field(default_factory=dict)
    schema: Schema | None = None
    population: PopulationPlan | None = None
    role_draft: Roles | None = None
    roles: Roles | None = None
    tree: TreePlan | None = None
    tree_draft: TreePlan | None = None
    covariance_draft: Any = field(default=None, repr=False)
    synthetic: SyntheticPlan = field(default_factory=SyntheticPlan)
    fitted: bool = False
    attempt: int = 1
    runs: tuple[Run, ...] = ()
    views: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sign_off: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    releases: dict[str, Release] = field(default_factory=dict, repr=False)
    derived: dict[str, Any] = field(default_factory=dict, repr=False)
    watching: str = ""
    drawn: int = 0
    notes: tuple[str, ...] = ()
    curve: Any = field(default=None, repr=False)
    base: tuple[Mapping[str, Any], ...] | None = field(default=None, repr=False)
    problem: str = ""
    confirm_problem: str = ""
    audit_view: Mapping[str, Any] = field(default_factory=dict)
    audit: Any = field(default=None, repr=False)
    look: Any = field(default=None, repr=False)
    reading_notes: tuple[str, ...] = ()
    header: tuple[str, ...] = ()

    # -- what is there ---------------------------------------------------------------------

    @property
    def modelled(self) -> tuple[Column, ...]:
        """Columns that can enter a release, in file order."""
        return () if self.schema is None else self.schema.modelled

    @property
    def released_names(self) -> tuple[str, ...]:
        """Names of modelled columns that are not left out."""
        ignored = (self.roles or Roles()).ignored
        return tuple(c.name for c in self.modelled if c.name not in ignored)

    @property
    def plan(self) -> Plan | None:
        """The whole plan, once every part of it is there and fits."""
        if self.schema is None or self.population is None:
            return None
        if self.roles is None or self.tree is None:
            return None
        try:
            return Plan(
                self.population,
                self.schema,
                self.roles,
                self.tree,
                self.synthetic,
                self.settled,
                self.demo,
            )
        except JustitiaError:
            return None

    def runs_of(self, what: str) -> tuple[Run, ...]:
        """Paid requests of one kind, oldest first."""
        return tuple(run for run in self.runs if run.what == what)

    @property
    def run(self) -> Run | None:
        """The latest paid request for a tree."""
        trees = self.runs_of("tree")
        return trees[-1] if trees else None

    def released(self, run: Run) -> Release | None:
        """The stored release of a run of any kind, or None while there is none."""
        if run.request_id not in self.releases:
            found = house.stored_release(run.request_id)
            if found is None:
                return None
            self.releases[run.request_id] = found
        return self.releases[run.request_id]

    def release(self, run: Run | None = None) -> TreeRelease | None:
        """The stored tree of a run (the latest one), or None while there is none."""
        run = run or self.run
        found = None if run is None else self.released(run)
        return found if isinstance(found, TreeRelease) else None

    def best_run(self, what: str = "tree") -> Run | None:
        """The latest run of a kind that has a release."""
        for run in reversed(self.runs_of(what)):
            if self.released(run) is not None:
                return run
        return None

    def stale(self, run: Run) -> tuple[str, ...]:
        """What differs between a run's plan and the choices of now, in words."""
        then = run.read_plan()
        now = self.schema if run.what == "tree" else _same_columns(then, self.schema)
        pairs: tuple[tuple[str, Any, Any], ...] = (
            ("declarations", then.schema if run.what == "tree" else then.released, now),
            ("population", then.population.name, self.population and self.population.name),
        )
        if run.what == "tree":
            pairs += (
                ("roles", then.roles, self.roles),
                ("budget or structure", then.tree, self.tree),
            )
        changed = tuple(words for words, old, new in pairs if new is not None and old != new)
        there = self.table is not None or self.source is not None
        table = there and run.table != self.table_label
        return (*changed, "table") if table else changed

    @property
    def table_label(self) -> str:
        """The attached table in the steward's words."""
        if self.demo is not None:
            return f"demo {self.demo.name}"
        return f"{self.table_name} (table {self.table_number})" if self.table_name else ""

    # -- changes ---------------------------------------------------------------------------

    def change(self, **changes: Any) -> None:
        """Set fields and keep the project in the store."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.keep()

    def change_draft(self, **changes: Any) -> None:
        """Change settings of the budget plan that is not applied yet."""
        if self.tree_draft is not None:
            self.tree_draft = replace(self.tree_draft, **changes)

    def keep(self) -> None:
        """Write everything but rows and caches to the store, if there is anything to keep."""
        house.save_project(self)

    def say(self, note: str) -> None:
        """Show a sentence on the next page that is drawn."""
        self.notes = (*self.notes, note)

    def attach(
        self,
        table: Any,
        table_name: str,
        columns: tuple[str, ...],
        source: ServerTable | None = None,
    ) -> None:
        """Take a newly read table; its population is asked for again.

        A table that stays where it is comes as ``source``, without rows.

        Roles carry over for columns that still exist; releases stay under their own table.
        """
        from pages.shared.declare import blank, keep_rows

        kept, gone = [], []
        for name in self.roles.by_column if self.roles else ():
            (kept if name in columns else gone).append(name)
        if self.roles is not None:
            self.roles = self.role_draft = _roles_within(self.roles, columns)
            note = f"Roles were carried over for {len(kept)} columns that are still there"
            self.say(f"{note}; gone: {', '.join(gone)}." if gone else f"{note}.")
        same = self.schema is not None and self.schema.names == columns
        self.draft = keep_rows(self.draft, columns) if self.draft else tuple(map(blank, columns))
        self.generation += 1
        self.demo = None
        self.table, self.table_name, self.source = table, table_name, source
        self.close_look()
        self.opening = None
        self.table_number += 1
        self.population = None
        self.population_draft = {}
        self.schema = self.schema if same else None
        self.attempt = 1
        self.keep()

    def forget_table(self) -> None:
        """Drop the rows and the file they were read from; everything that was released stays."""
        self.drop_rows()
        self.source = self.opening = None
        uploads.keeper().forget()
        self.keep()

    def drop_rows(self) -> None:
        """Let go of the rows, and of what was found by looking at them."""
        self.table = None
        self.close_look()

    def close_look(self) -> None:
        """Forget what was computed from real rows, or is still waiting to be."""
        opened, self.look = self.look, None
        if opened is not None:
            job = desk().find(opened.identity)
            if job is not None:
                job.cancel()
            desk().forget(opened.identity)


def _same_columns(plan: Plan, schema: Schema | None) -> Schema | None:
    """Today's declarations of the columns that a plan measured, or None where one is gone."""
    names = plan.released.names
    if schema is None or not set(names) <= set(schema.names):
        return None
    return schema.select(names)


def _roles_within(roles: Roles, columns: tuple[str, ...]) -> Roles:
    inside = set(columns)
    return Roles(
        {name: role for name, role in roles.by_column.items() if name in inside},
        frozenset(roles.proxies & inside),
        tuple(rule for rule in roles.further if rule.columns <= inside),
    )


def start_roles(schema: Schema) -> Roles:
    """Everything inadmissible, which is the cautious start."""
    return Roles(dict.fromkeys((c.name for c in schema.modelled), Role.INADMISSIBLE))


# -- the session's project -------------------------------------------------------------------


def current() -> Project:
    """The session's project: the one it has, the one in the address, or a new empty one."""
    project = st.session_state.get(KEY)
    if project is None:
        project = _addressed(st.query_params.get(ADDRESS, ""))
        st.session_state[KEY] = project
    uploads.keeper().touch(project)
    if project.identity and st.query_params.get(ADDRESS) != project.identity:
        st.query_params[ADDRESS] = project.identity
    return project


def _addressed(identity: str) -> Project:
    """The project that the address names, or a new one that says why it is not that."""
    if not identity:
        return fresh()
    try:
        return house.open_project(identity)
    except LedgerError as error:
        project = fresh()
        project.say(str(error))
        return project


def fresh() -> Project:
    """A new, empty project."""
    return Project("", house.owner())


def put(project: Project) -> None:
    """Make a project the session's own; the rows of the one before are let go."""
    before = st.session_state.get(KEY)
    if before is not None and before is not project:
        before.drop_rows()
        uploads.keeper().forget()
    st.session_state[KEY] = project
