"""What buttons do: start, read, confirm, release, derive.  Core does the work; nothing is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from core import demo, starting
from core.artefacts import synthetic_bytes
from core.attachment import Attached, attach, attach_simulated, read_as, settled
from core.deriving import Derived, derive
from core.errors import JustitiaError, ReadingError
from core.measuring import identities_for, measure
from core.parts import Part, parts_of
from core.plan import Plan
from core.private.reading import HeaderError, read_table
from core.privci.sample import Synthetic
from core.privci.structures import STRUCTURES
from core.protocols import Progress
from core.releases import TreeRelease
from core.runner import ledger_document
from pages.shared import house, opening
from pages.shared.declare import row_of
from pages.shared.held import Held
from pages.shared.jobs import Job, desk
from pages.shared.project import Project, Run, fresh
from pages.shared.sources import NO_ROWS

#: Rows and seed of the demo in the workbench: public constants.
DEMO_ROWS = 20_000
DEMO_SEED = 2026
#: Seed of the comparison of structures; simulated noise, demo data only.
COMPARISON_SEED = 7


# -- tables ----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def demo_bytes(name: str, rows: int, seed: int) -> bytes:
    """A demo table as a file; made-up people, so it may be kept for everybody."""
    return demo.csv_bytes(name, rows=rows, seed=seed)


def start_demo(name: str) -> Project:
    """A fresh project on an embedded demo table, with a population of its own."""
    project = fresh()
    plan = starting.demo_plan(name, DEMO_ROWS, DEMO_SEED)
    project.demo = plan.demo
    project.name = f"Demo {name}"
    project.draft = tuple(row_of(column) for column in plan.schema.columns)
    project.keep()
    project.population_draft = {
        "name": f"demo {name} {project.identity[:6]}",
        "cap": str(plan.population.cap),
        "expected_rows": str(DEMO_ROWS),
    }
    project.role_draft = plan.roles
    project.keep()
    return project


def rows_of(project: Project) -> Any:
    """The attached table; a demo table is made again whenever it is needed."""
    table = project.table  # once: the sweep may let it go at any time
    if table is not None:
        return table
    if project.demo is not None:
        origin = project.demo
        return read_table(demo_bytes(origin.name, origin.rows, origin.seed), name="demo.csv")
    if project.source is not None:
        raise ReadingError(NO_ROWS)
    raise ReadingError("no table is attached; attach it on the Data page to spend again")


def has_rows(project: Project) -> bool:
    """Whether rows are held here, to be shown or looked at."""
    return project.table is not None or project.demo is not None


def has_table(project: Project) -> bool:
    """Whether paid actions are possible."""
    return has_rows(project) or project.source is not None


def take_upload(project: Project, name: str, content: bytes) -> None:
    """Read an uploaded file and attach it; what cannot be read changes nothing."""
    reading = project.reading
    project.header = ()
    try:
        table = read_as(reading, content, name)
    except HeaderError as error:
        project.header = error.proposal
        project.problem = str(error)
        return
    except JustitiaError as error:
        project.problem = str(error)
        return
    project.reading_notes = tuple(table.report.notes)
    # What was found out is declared from here on: no row may decide how others are read.
    project.settled = settled(reading, table.report)
    types = dict(table.storage) if table.report.format == "parquet" else {}
    project.synthetic = replace(project.synthetic, types=types)
    project.attach(table, name, table.names)


def table_bytes(holding: Held, synthetic: Synthetic, form: str) -> bytes:
    """The synthetic table in one of its forms, with the types that the plan declares."""
    return synthetic_bytes(holding.plan, synthetic, form)


# -- paid ------------------------------------------------------------------------------------


def release_tree(project: Project) -> None:
    """Charge and measure the tree of the project's plan in a job; see :func:`release_part`."""
    plan = project.plan
    if plan is None:
        raise ReadingError("the plan is not complete; nothing was spent")
    release_part(project, plan, "tree", project.attempt)


def release_part(project: Project, plan: Plan, what: str, attempt: int) -> None:
    """Charge and measure the last part of a plan; see :func:`pay`.

    A table that stays where it is is opened first, in a job of its own.
    """
    if project.source is not None:
        opening.start(project, plan, what, attempt)
        return
    attached = attach(plan, rows_of(project), house.ledger(), house.owner())
    pay(project, attached, plan, what, attempt)


def pay(
    project: Project,
    attached: Attached,
    plan: Plan,
    what: str,
    attempt: int,
    *,
    check: Callable[[], object] | None = None,
) -> Run:
    """Charge and measure the last part of a plan in a job.

    The request id follows from what is paid for, so that a second click, a reload or another tab
    joins or replays it.  Parts before the last must be paid for already: a tree whose row count
    an analysis uses.  The run is kept before the job starts.  ``check`` is asked right before the
    charge, and may refuse.
    """
    parts = parts_of(plan)
    identity = parts[-1].request_id(attached.table_id, attempt)
    before = tuple(_paid_before(project, part, attached.table_id) for part in parts[:-1])
    for note in attached.notes:
        project.say(note)
    run = Run(identity, plan.to_toml(), project.table_label, attached.table_id, what, attempt)
    others = tuple(known for known in project.runs if known.request_id != identity)
    project.change(runs=(*others, run))
    work = _Measurement(attached, plan, (*before, identity), house.actor(), check)
    desk().submit(identity, f"Releasing {parts[-1].title}", work)
    return run


def _paid_before(project: Project, part: Part, table_id: str) -> str:
    """Id of the latest purchase of a part."""
    for run in reversed(project.runs_of(part.what)):
        if run.request_id == part.request_id(table_id, run.attempt):
            return run.request_id
    raise ReadingError(f"{part.title} of this very table has to be released first")


class _Measurement:
    """The paid job; owns the vault and lets it go when measuring ends."""

    def __init__(
        self,
        attached: Attached,
        plan: Plan,
        identities: tuple[str, ...],
        actor: str,
        check: Callable[[], object] | None,
    ) -> None:
        self._attached: Attached | None = attached
        self._plan, self._identities, self._actor = plan, identities, actor
        self._check = check

    def __call__(self, progress: Progress) -> None:
        attached, self._attached = self._attached, None
        assert attached is not None
        try:
            if self._check is not None:
                _last_look(self._check)
            measure(attached, self._plan, self._identities, progress, actor=self._actor)
        finally:
            attached.vault.close()


def _last_look(check: Callable[[], object]) -> None:
    """Whether the table is still the one that was opened; the last moment that costs nothing."""
    try:
        check()
    except JustitiaError as error:
        raise ReadingError(f"{str(error).rstrip('.')}. Nothing was spent.") from None


def release_again(project: Project, seen_attempt: int) -> None:
    """Spend again on an unchanged plan; ``seen_attempt`` is what the steward's page showed."""
    if project.attempt != seen_attempt:
        return  # a second click on the same button: the first one has moved on already
    project.change(attempt=project.attempt + 1)
    release_tree(project)


# -- free ------------------------------------------------------------------------------------


def derive_files(holding: Held) -> Job:
    """Fit, sample, infer, certify and write every file, in a job; costs nothing."""
    population = holding.plan.population.name
    account = ledger_document(house.ledger(), population, holding.identities, house.owner())

    def work(progress: Progress) -> Derived:
        return derive(holding.plan, holding.releases, account, progress)

    return desk().submit(holding.key, "Making everything that follows", work)


def derived(project: Project, holding: Held) -> Derived | None:
    """What was made from the releases with the settings of now, if it was made already."""
    if holding.key not in project.derived:
        job = desk().find(holding.key)
        if job is None or job.result is None:
            return None
        project.derived.clear()  # one artefact at a time: it can be made again for nothing
        project.derived[holding.key] = job.result
    return project.derived[holding.key]


def comparison_key(project: Project) -> str | None:
    """Id of the comparison of structures on the demo's plan; None on real data."""
    plan = project.plan
    if plan is None or project.demo is None:
        return None
    return "compare-" + parts_of(plan)[0].request_id("simulated")


def compare_structures(project: Project) -> Job | None:
    """All structures on demo data with simulated noise and throw-away ledgers, in a job."""
    plan, key = project.plan, comparison_key(project)
    if plan is None or key is None:
        return None
    table = rows_of(project)

    def work(progress: Progress) -> Mapping[str, TreeRelease | str]:
        found: dict[str, TreeRelease | str] = {}
        for index, structure in enumerate(STRUCTURES):
            progress(f"simulating {structure}", index, len(STRUCTURES), None)
            changed = replace(plan, tree=replace(plan.tree, structure=structure))
            attached = attach_simulated(changed, table, COMPARISON_SEED)
            try:
                (only,) = measure(attached, changed, identities_for(changed, attached))
                found[structure] = only.release
            except JustitiaError as error:
                found[structure] = str(error)
            finally:
                attached.vault.close()
        return found

    return desk().submit(key, "Simulating four structures", work)
