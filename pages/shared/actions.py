"""What buttons do: start, read, confirm, release, derive.  Core does the work; nothing is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from core import demo, starting
from core.artefacts import synthetic_bytes
from core.attachment import attach, attach_simulated, read_as, request_id, settled
from core.errors import JustitiaError, ReadingError
from core.plan import Plan, SyntheticPlan
from core.private.reading import HeaderError, read_table
from core.private.vault import Vault
from core.privci.structures import STRUCTURES
from core.protocols import Progress
from core.releases import TreeRelease
from core.runner import derive, ledger_document, measure
from pages.shared import house
from pages.shared.declare import row_of
from pages.shared.jobs import Job, desk
from pages.shared.project import Project, Run, fresh

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
    if project.table is not None:
        return project.table
    if project.demo is not None:
        origin = project.demo
        return read_table(demo_bytes(origin.name, origin.rows, origin.seed), name="demo.csv")
    raise ReadingError("no table is attached; attach it on the Data page to spend again")


def has_rows(project: Project) -> bool:
    """Whether paid actions are possible."""
    return project.table is not None or project.demo is not None


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


def table_bytes(project: Project, run: Run, made: Any, form: str) -> bytes:
    """The synthetic table in one of its forms, with the types that the plan declares."""
    plan = replace(run.read_plan(), synthetic=project.synthetic)
    return synthetic_bytes(plan, made.synthetic, form)


# -- paid ------------------------------------------------------------------------------------


def release_tree(project: Project) -> Run:
    """Charge and measure in a job; the same plan, table and attempt is the same request.

    The request id follows from what is paid for, so that a second click, a reload or another tab
    joins or replays it.  The run is kept before the job starts.
    """
    plan = project.plan
    if plan is None:
        raise ReadingError("the plan is not complete; nothing was spent")
    attached = attach(plan, rows_of(project), house.ledger(), house.owner())
    identity = request_id(plan, attached.table_id, project.attempt)
    for note in attached.notes:
        project.say(note)
    run = Run(identity, plan.to_toml(), project.table_label, attached.table_id)
    others = tuple(known for known in project.runs if known.request_id != identity)
    project.change(runs=(*others, run))
    work = _Measurement(attached, plan, identity)
    desk().submit(identity, "Releasing the tree", work)
    return run


class _Measurement:
    """The paid job; owns the vault and lets it go when measuring ends."""

    def __init__(self, attached: Any, plan: Plan, identity: str) -> None:
        self._attached, self._plan, self._identity = attached, plan, identity

    def __call__(self, progress: Progress) -> None:
        attached, self._attached = self._attached, None
        vault: Vault = attached.vault
        try:
            measure(attached, self._plan, self._identity, progress)
        finally:
            vault.close()


def release_again(project: Project, seen_attempt: int) -> None:
    """Spend again on an unchanged plan; ``seen_attempt`` is what the steward's page showed."""
    if project.attempt != seen_attempt:
        return  # a second click on the same button: the first one has moved on already
    project.change(attempt=project.attempt + 1)
    release_tree(project)


# -- free ------------------------------------------------------------------------------------


def derived_key(run: Run, settings: SyntheticPlan) -> str:
    """Id of the free job that makes synthetic data from a release."""
    return f"derive-{run.request_id}-{settings.rows}-{settings.engine}-{settings.seed}"


def derive_files(project: Project, run: Run, release: TreeRelease) -> Job:
    """Fit, sample, certify and write every file, in a job; costs nothing."""
    plan = replace(run.read_plan(), synthetic=project.synthetic)
    account = ledger_document(house.ledger(), plan.population.name, run.request_id, house.owner())

    def work(progress: Progress) -> Any:
        return derive(plan, release, account, progress)

    return desk().submit(derived_key(run, project.synthetic), "Fitting and sampling", work)


def derived(project: Project, run: Run) -> Any | None:
    """What was made from a release with the settings of now, if it was made already."""
    key = derived_key(run, project.synthetic)
    if key not in project.derived:
        job = desk().find(key)
        if job is None or job.result is None:
            return None
        project.derived.clear()  # one artefact at a time: it can be made again for nothing
        project.derived[key] = job.result
    return project.derived[key]


def comparison_key(project: Project) -> str | None:
    """Id of the comparison of structures on the demo's plan; None on real data."""
    plan = project.plan
    if plan is None or project.demo is None:
        return None
    return "compare-" + request_id(plan, "simulated")


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
                found[structure], _ = measure(attached, changed, request_id(changed, "simulated"))
            except JustitiaError as error:
                found[structure] = str(error)
            finally:
                attached.vault.close()
        return found

    return desk().submit(key, "Simulating four structures", work)
