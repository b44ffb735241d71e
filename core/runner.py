"""Run a plan: read, charge, measure, store, and make every file from the stored release.

This is the wiring that the command line, a notebook and the workbench share.  It passes the raw
table into the private room and never looks at it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from core.attachment import (
    LOCAL_OWNER,
    Attached,
    attach,
    attach_simulated,
    open_for,
    places_of,
    read_for,
)
from core.deriving import Derived, derive
from core.errors import Cancelled, PlanError, SimulationError
from core.measuring import Measured, identities_for, measure, releases_of, unpaid
from core.outcome import Releases
from core.outlook import Outlook, outlook_for
from core.output import BUNDLE, output_folder, write_files
from core.plan import Plan, read_plan
from core.private.ledger import Ledger, Spend, SpendState
from core.protocols import Progress
from core.quality import misread_columns
from core.release_log import account

#: Seconds to wait for another process that measures the same release.
PATIENCE = 600.0


@dataclass(frozen=True)
class RunResult:
    """What a run did.

    Attributes
    ----------
    derived
        Releases, what follows from them, and files.
    paths
        Where each file was written, by plain name.
    request_ids
        Ids of the charges; running the same plan on the same table again replays them.
    spent
        What this run charged in all; 0 where everything was replayed.
    notes
        What the reader of the table and the ledger had to say, for its owner's own screen.
    """

    derived: Derived
    paths: Mapping[str, Path]
    request_ids: tuple[str, ...]
    spent: Fraction
    notes: tuple[str, ...] = ()

    @property
    def replayed(self) -> bool:
        """Whether nothing was spent."""
        return self.spent == 0


def ledger_document(
    ledger: Ledger, population: str, identities: Iterable[str], owner: str = LOCAL_OWNER
) -> dict[str, Any]:
    """Public account of a population up to and including the latest of these charges.

    Later charges are left out, so that a replay writes the same document.
    """
    terms = ledger.population(population, owner)
    spends = list(ledger.spends(population, owner=owner))
    ids = [spend.request_id for spend in spends]
    upto = spends[: max(ids.index(identity) for identity in identities) + 1]
    spent = sum((spend.rho for spend in upto), Fraction(0))
    return {
        "population": terms.name,
        "relation": terms.relation.value,
        "unit": terms.unit.words,
        "cap_rho": str(terms.cap),
        "spent_rho": str(spent),
        "remaining_rho": str(terms.cap - spent),
        "delta": terms.delta,
        # Salted, and so no clock either; the ledger proves later that it has not forgotten this.
        "chain_head": None
        if terms.simulated
        else ledger.chain_head([spend.request_id for spend in upto]),
        "spends": [_spend_dict(spend, timed=not terms.simulated) for spend in upto],
    }


def _spend_dict(spend: Spend, *, timed: bool) -> dict[str, Any]:
    return {
        "request_id": spend.request_id,
        "what": spend.what,
        "rho": str(spend.rho),
        "debited": None if spend.debited is None else str(spend.debited),
        "state": spend.state.value,
        # Simulated output must be reproducible byte for byte, so it carries no clock.
        # A day, no finer: how long measuring took grows with the protected number of rows.
        "charged_on": spend.created_at.date().isoformat() if timed else None,
        "release_sha256": spend.release_sha256,
    }


def run(
    plan_path: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    simulate: int | None = None,
    allow_real_data: bool = False,
    population: str | None = None,
    ledger_url: str | None = None,
    new_release: bool = False,
    before_charge: Callable[[Outlook, tuple[str, ...]], None] | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Perform every release in a plan and write the files; a second run replays them for free.

    Parameters
    ----------
    plan_path, data, out
        The plan, the table (a CSV, Parquet or Excel file; a folder or glob of CSV or Parquet
        files; the address of a table in a database) and the folder to write into.
    simulate
        Seed of simulated, not private noise; nothing is charged anywhere.
    population
        Use this population's name instead of the plan's.
    ledger_url
        Where the ledger lives; default is the one in the user's own folder.
    new_release
        Spend again, on purpose, instead of replaying.
    before_charge
        Called just before something is spent (or simulated), not for a replay, with the outlook,
        from public facts alone, and with notes on the population for its owner's screen.

    Raises
    ------
    JustitiaError
        With ``exit_code`` 2 (bad input), 3 (budget refused) or 4 (spent, no result).
    """
    plan = read_plan(plan_path)
    if population is not None:
        plan = replace(plan, population=replace(plan.population, name=population))
    inputs = (Path(plan_path), *places_of(data))
    with output_folder(Path(out), plan, inputs, simulate is not None) as to:
        raw = open_for(plan, data)
        try:
            if simulate is not None:
                attached = attach_simulated(
                    plan, raw, simulate, allow_real=allow_real_data, progress=progress
                )
            else:
                attached = attach(plan, raw, Ledger(ledger_url), progress=progress)
        except Cancelled:
            raise PlanError("cancelled while the table was read; nothing was spent") from None
        notes = tuple(raw.report.notes)
        del raw
        identities = identities_for(plan, attached, again=new_release)
        due = unpaid(plan, attached, identities)
        if before_charge is not None and 0 < due <= _left(attached, plan):
            before_charge(outlook_for(plan), attached.notes)
        for identity in identities:
            _wait_for_others(attached.ledger, identity)
        actor = account() if simulate is None else None
        measured = measure(attached, plan, identities, progress, actor=actor)
        attached.vault.close()
        for one in measured:
            if one.release.partial and not one.replayed:
                raise _kept_in_part(one)
        derived = _derived(plan, releases_of(measured), attached, identities, progress)
        files = {**derived.files, BUNDLE: derived.bundle}
        paths = write_files(files, to, derived.releases.simulated)
    spent = sum((one.part.rho for one in measured if not one.replayed), Fraction(0))
    return RunResult(derived, paths, identities, spent, (*notes, *_warnings(derived)))


def _wait_for_others(ledger: Ledger, identity: str) -> None:
    """Wait while another process measures this very release, as long as it lives."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        spend = ledger.spend(identity)
        if spend is None or spend.state is not SpendState.CHARGED:
            return
        time.sleep(0.5)
        ledger.recover()


def _derived(
    plan: Plan,
    releases: Releases,
    attached: Attached,
    identities: tuple[str, ...],
    progress: Progress | None,
) -> Derived:
    account = ledger_document(attached.ledger, plan.population.name, identities)
    try:
        return derive(plan, releases, account, progress)
    except Cancelled:
        raise Cancelled(
            "cancelled while fitting; the release is paid for and stored: run the command again "
            "without --new-release to write it for free"
        ) from None


def _warnings(derived: Derived) -> tuple[str, ...]:
    tree = derived.releases.tree
    misread = () if tree is None else misread_columns(tree)
    return (
        *(
            f"by the noisy counts nearly every value of {name!r} is missing or outside its "
            "declaration; was it declared as the file writes it?"
            for name in misread
        ),
        *(f"{name}: {reason}" for name, reason in derived.free.unanswered),
        *(
            f"{found.title}: {warning.sentence}"
            for found in derived.posteriors
            for warning in found.warnings
        ),
    )


def _kept_in_part(one: Measured) -> Cancelled:
    return Cancelled(
        "cancelled; what had been measured is kept as a partial release and the charge of "
        f"rho = {one.part.rho} stays spent. Run the command again without --new-release to write "
        "it for free, or with --new-release to spend again"
    )


def _left(attached: Attached, plan: Plan) -> Fraction:
    """What the cap leaves."""
    return attached.ledger.remaining(plan.population.name)


def simulate(plan: Plan, seed: int, progress: Progress | None = None) -> Derived:
    """Play a demo's plan through with seeded noise: for notebooks, teaching and tests.

    NOT PRIVATE: the noise is seeded.  Works on the embedded demo that the plan names, and charges
    nothing.

    Raises
    ------
    SimulationError
        The plan was not written for an embedded demo.
    """
    from core import demo

    if plan.demo is None:
        raise SimulationError("the plan names no embedded demo; use run(..., simulate=seed)")
    origin = plan.demo
    raw = read_for(plan, demo.csv_bytes(origin.name, rows=origin.rows, seed=origin.seed))
    attached = attach_simulated(plan, raw, seed)
    identities = identities_for(plan, attached)
    releases = releases_of(measure(attached, plan, identities, progress))
    account = ledger_document(attached.ledger, plan.population.name, identities)
    return derive(plan, releases, account, progress)
