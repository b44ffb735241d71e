"""Run a plan: read, charge, measure, store, and make every file from the stored release.

This is the wiring that the command line, a notebook and the workbench share.  It passes the raw
table into the private room and never looks at it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from core.artefacts import artefacts
from core.attachment import (
    LOCAL_OWNER,
    Attached,
    attach,
    attach_simulated,
    latest_attempt,
    read_for,
    request_id,
)
from core.bundle import bundle_bytes
from core.errors import (
    Cancelled,
    JustitiaError,
    LedgerError,
    ReleaseError,
    SimulationError,
)
from core.forecast import Forecast, forecast_for
from core.output import BUNDLE, output_folder, write_files
from core.plan import Plan, read_plan
from core.private.ledger import Ledger, Spend, SpendState
from core.privci.certificate import Certificate, certificate
from core.privci.reconstruct import fit
from core.privci.sample import Synthetic, synthesize
from core.privci.select import release_tree
from core.protocols import Progress
from core.quality import misread_columns
from core.releases import TreeRelease

RELEASE_KIND = "TreeRelease"
#: Seconds to wait for another process that measures the same release.
PATIENCE = 600.0


@dataclass(frozen=True)
class Derived:
    """Everything that follows from a release for free, and the files that show it."""

    release: TreeRelease
    synthetic: Synthetic
    certificate: Certificate
    files: Mapping[str, bytes]
    bundle: bytes


@dataclass(frozen=True)
class RunResult:
    """What a run did.

    Attributes
    ----------
    derived
        Release, synthetic data, certificate and files.
    paths
        Where each file was written, by plain name.
    request_id
        Id of the charge; running the same plan on the same table again replays it.
    replayed
        True when nothing was spent.
    notes
        What the reader of the table and the ledger had to say, for its owner's own screen.
    """

    derived: Derived
    paths: Mapping[str, Path]
    request_id: str
    replayed: bool
    notes: tuple[str, ...] = ()


def stored_release(ledger: Ledger, spend: Spend) -> TreeRelease:
    """The release that a spend paid for.

    Raises
    ------
    ReleaseError
        It was spent without a result, or is still running; the message says what to do.
    """
    if spend.state is SpendState.CHARGED:
        raise ReleaseError(
            "this release is being measured by another process; wait for it and run again"
        )
    blob = ledger.release_blob(spend.request_id)
    if spend.state is SpendState.NO_RESULT or blob is None:
        raise ReleaseError(
            f"rho = {spend.rho} was spent on this plan and table and no result exists "
            f"({spend.message or 'the program ended early'}); --new-release spends again"
        )
    release = TreeRelease.from_bytes(blob)
    found = release.provenance
    if (found.request_id, found.population, found.rho) != (
        spend.request_id,
        spend.population,
        spend.rho,
    ):
        raise ReleaseError(
            "the stored release belongs to another charge; the store was altered: restore its "
            "backup"
        )
    return release


def measure(
    attached: Attached, plan: Plan, identity: str, progress: Progress | None = None
) -> tuple[TreeRelease, bool]:
    """Charge, measure and store; or replay what the id already paid for.

    Returns
    -------
    tuple
        The release, and whether it was replayed (nothing spent).

    Raises
    ------
    BudgetExceeded
        The cap would be passed; the table was not touched.
    ReleaseError
        Charged, and no result exists.
    """
    vault = attached.vault
    grant = vault.grant(plan.tree.rho, "tree", identity)
    if grant is None:
        spend = attached.ledger.spend(identity)
        if spend is None:
            raise LedgerError("the ledger lost a charge while it was being read; check the store")
        return stored_release(attached.ledger, spend), True
    fail = partial(vault.fail, grant)
    try:
        release = release_tree(
            grant,
            vault.schema,
            plan.roles,
            structure=plan.tree.structure,
            split=plan.tree.split,
            progress=progress,
        )
        vault.complete(grant, release.to_bytes(), RELEASE_KIND, partial=release.partial)
    except Cancelled:
        _settle(fail, "cancelled before anything was measured")
        raise Cancelled(
            f"cancelled before anything was measured; the charge of rho = {plan.tree.rho} stays "
            "spent, because it was made before the table could be touched"
        ) from None
    except Exception as error:
        # The cause is not chained: its arguments may hold a value of the table.
        kind = type(error).__name__
        recorded = _settle(fail, f"{kind} while measuring or storing")
        raise ReleaseError(
            f"measuring or storing failed ({kind}) after rho = {plan.tree.rho} had been charged; "
            f"it stays spent{recorded}. Please report this; --new-release spends again"
        ) from None
    except BaseException:
        _settle(fail, "interrupted while measuring")
        raise
    return release, False


def _settle(fail: Callable[[str], None], message: str) -> str:
    """Record a charge as spent without a result; says so where even that was impossible."""
    try:
        fail(message)
    except JustitiaError as error:
        return f" (and the ledger could not note it: {type(error).__name__})"
    return ""


def ledger_document(
    ledger: Ledger, population: str, identity: str, owner: str = LOCAL_OWNER
) -> dict[str, Any]:
    """Public account of a population up to and including one charge.

    Later charges are left out, so that a replay writes the same document.
    """
    terms = ledger.population(population, owner)
    spends = list(ledger.spends(population, owner=owner))
    ids = [spend.request_id for spend in spends]
    upto = spends[: ids.index(identity) + 1]
    spent = sum((spend.rho for spend in upto), Fraction(0))
    return {
        "population": terms.name,
        "relation": terms.relation.value,
        "unit": terms.unit.words,
        "cap_rho": str(terms.cap),
        "spent_rho": str(spent),
        "remaining_rho": str(terms.cap - spent),
        "delta": terms.delta,
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


def derive(
    plan: Plan,
    release: TreeRelease,
    ledger: Mapping[str, Any],
    progress: Progress | None = None,
) -> Derived:
    """Fit, sample, certify and write every file in memory; costs nothing, touches no rows."""
    settings = plan.synthetic
    fitted = fit(release, engine=settings.engine, progress=progress)
    synthetic = synthesize(
        release, fitted, rows=settings.rows, engine=settings.engine, seed=settings.seed
    )
    proof = certificate(release, fitted)
    files = artefacts(plan, release, synthetic, proof, ledger)
    return Derived(
        release, synthetic, proof, files, bundle_bytes(files, release.provenance.simulated)
    )


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
    before_charge: Callable[[Forecast, tuple[str, ...]], None] | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Perform every release in a plan and write the files; a second run replays them for free.

    Parameters
    ----------
    plan_path, data, out
        The plan, the table (CSV, Parquet or Excel) and the folder to write into.
    simulate
        Seed of simulated, not private noise; nothing is charged anywhere.
    population
        Use this population's name instead of the plan's.
    ledger_url
        Where the ledger lives; default is the one in the user's own folder.
    new_release
        Spend again, on purpose, instead of replaying.
    before_charge
        Called just before something is spent (or simulated), not for a replay, with the forecast,
        from public facts alone, and with notes on the population for its owner's screen.

    Raises
    ------
    JustitiaError
        With ``exit_code`` 2 (bad input), 3 (budget refused) or 4 (spent, no result).
    """
    plan = read_plan(plan_path)
    if population is not None:
        plan = replace(plan, population=replace(plan.population, name=population))
    with output_folder(Path(out), plan, (Path(plan_path), Path(data)), simulate is not None) as to:
        raw = read_for(plan, data)
        if simulate is not None:
            attached = attach_simulated(plan, raw, simulate, allow_real=allow_real_data)
        else:
            attached = attach(plan, raw, Ledger(ledger_url))
        notes = tuple(raw.report.notes)
        del raw
        attempt = max(latest_attempt(plan, attached) + int(new_release), 1)
        identity = request_id(plan, attached.table_id, attempt)
        if before_charge is not None and _affordable(attached, plan, identity):
            before_charge(forecast_for(plan), attached.notes)
        _wait_for_others(attached.ledger, identity)
        release, replayed = measure(attached, plan, identity, progress)
        attached.vault.close()
        if release.partial and not replayed:
            raise _kept_in_part(plan)
        derived = _derived(plan, release, attached, identity, progress)
        files = {**derived.files, BUNDLE: derived.bundle}
        paths = write_files(files, to, release.provenance.simulated)
    return RunResult(derived, paths, identity, replayed, (*notes, *_warnings(release)))


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
    release: TreeRelease,
    attached: Attached,
    identity: str,
    progress: Progress | None,
) -> Derived:
    account = ledger_document(attached.ledger, plan.population.name, identity)
    try:
        return derive(plan, release, account, progress)
    except Cancelled:
        raise Cancelled(
            "cancelled while fitting; the release is paid for and stored: run the command again "
            "without --new-release to write it for free"
        ) from None


def _warnings(release: TreeRelease) -> tuple[str, ...]:
    return tuple(
        f"by the noisy counts nearly every value of {name!r} is missing or outside its "
        "declaration; was it declared as the file writes it?"
        for name in misread_columns(release)
    )


def _kept_in_part(plan: Plan) -> Cancelled:
    return Cancelled(
        "cancelled; what had been measured is kept as a partial release and the charge of "
        f"rho = {plan.tree.rho} stays spent. Run the command again without --new-release to write "
        "it for free, or with --new-release to spend again"
    )


def _affordable(attached: Attached, plan: Plan, identity: str) -> bool:
    """Whether measuring would spend: not a replay, and not more than the cap leaves."""
    if attached.ledger.spend(identity) is not None:
        return False
    return plan.tree.rho <= attached.ledger.remaining(plan.population.name)


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
    identity = request_id(plan, attached.table_id)
    release, _ = measure(attached, plan, identity, progress)
    account = ledger_document(attached.ledger, plan.population.name, identity)
    return derive(plan, release, account, progress)
