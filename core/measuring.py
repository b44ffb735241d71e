"""Charge, measure and store the parts of a plan; or replay what was paid for before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from core.attachment import Attached
from core.errors import Cancelled, JustitiaError, LedgerError, ReleaseError, SourceError
from core.outcome import READERS, Release, Releases
from core.parts import Part, parts_of
from core.plan import Plan
from core.private.accounts import Charge, Spend, SpendState
from core.private.grant import Grant
from core.private.ledger import Ledger
from core.private.vault import Vault
from core.protocols import Progress
from core.release_log import Act, ReleaseLog
from core.releases import TreeRelease

#: Attempts at one part that are looked through for the latest; more is a mistake.
MAXIMUM_ATTEMPTS = 10_000


@dataclass(frozen=True, eq=False)
class Measured:
    """One part with its release; ``replayed`` says that nothing was spent on it now."""

    part: Part
    request_id: str
    release: Release
    replayed: bool


def latest_attempt(part: Part, attached: Attached) -> int:
    """How often this very part was charged for this very table (0: never)."""
    attempt = 0
    while attached.ledger.spend(part.request_id(attached.table_id, attempt + 1)) is not None:
        attempt += 1
        if attempt >= MAXIMUM_ATTEMPTS:
            raise LedgerError("this plan was charged far too often; is a script looping?")
    return attempt


def identities_for(plan: Plan, attached: Attached, *, again: bool = False) -> tuple[str, ...]:
    """Request ids of a plan's parts: the latest of each.

    With ``again`` new ones, which will be paid for: for the parts that were spent without a
    result, or for all parts if there are none of these.
    """
    parts = parts_of(plan)
    attempts = [latest_attempt(part, attached) for part in parts]
    if again:
        lost = [
            _lost(attached.ledger, part.request_id(attached.table_id, attempt))
            for part, attempt in zip(parts, attempts, strict=True)
        ]
        renewed = lost if any(lost) else [True] * len(parts)
        attempts = [old + int(new) for old, new in zip(attempts, renewed, strict=True)]
    return tuple(
        part.request_id(attached.table_id, max(attempt, 1))
        for part, attempt in zip(parts, attempts, strict=True)
    )


def _lost(ledger: Ledger, identity: str) -> bool:
    spend = ledger.spend(identity)
    if spend is None or spend.state is SpendState.CHARGED:
        return False
    return spend.state is SpendState.NO_RESULT or ledger.release_blob(identity) is None


def unpaid(plan: Plan, attached: Attached, identities: Sequence[str]) -> Fraction:
    """What measuring would charge now: the price of the parts that no id has paid for yet."""
    pairs = zip(parts_of(plan), identities, strict=True)
    return sum(
        (part.rho for part, identity in pairs if attached.ledger.spend(identity) is None),
        Fraction(0),
    )


def stored_release(ledger: Ledger, spend: Spend) -> Release:
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
    if blob is None and spend.state is not SpendState.NO_RESULT:
        raise ReleaseError(
            f"rho = {spend.rho} was spent on this plan and table, and the result was deleted as "
            "the house's retention policy says; --new-release spends again"
        )
    if spend.state is SpendState.NO_RESULT or blob is None:
        raise ReleaseError(
            f"rho = {spend.rho} was spent on this plan and table and no result exists "
            f"({spend.message or 'the program ended early'}); --new-release spends again"
        )
    reader = READERS.get(spend.release_kind or "")
    if reader is None:
        raise ReleaseError(
            "the store holds a release of an unknown kind; was it made by another version?"
        )
    release = reader(blob)
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
    attached: Attached,
    plan: Plan,
    identities: Sequence[str],
    progress: Progress | None = None,
    *,
    actor: str | None = None,
) -> tuple[Measured, ...]:
    """Charge all parts that were not paid for, in one transaction; measure and store each.

    Parameters
    ----------
    attached, plan
        The table behind its door, and what to release.
    identities
        Request ids of the plan's parts, in the order of :func:`core.parts.parts_of`.
    actor
        Who asks, for the log of releases; it is written before anything is charged.  None, for
        simulations, writes none.

    Raises
    ------
    BudgetExceeded
        The cap would be passed; the table was not touched and nothing was charged.
    ReleaseError
        Charged, and no result exists.
    Cancelled
        Before anything was measured.  A cancel later keeps what was measured: the release is
        partial, and parts that were not begun stay spent without a result.
    """
    parts = parts_of(plan)
    charges = [
        Charge(identity, part.what, part.rho)
        for part, identity in zip(parts, identities, strict=True)
    ]
    fresh = _not_charged(attached.ledger, charges)
    if actor is not None:
        _log(attached, fresh, actor)
    grants = attached.vault.grants(charges)
    work = _Work(attached, parts, progress)
    found: list[Measured] = []
    attached.vault.watch(progress)
    try:
        for part, charge, grant in zip(parts, charges, grants, strict=True):
            found.append(work.one(part, charge, grant))
    finally:
        attached.vault.watch(None)
        for grant, charge in zip(grants, charges, strict=True):
            begun = charge.request_id in work.begun
            if grant is not None and not begun:
                _settle(attached.vault, grant, "stopped before anything was measured")
    return tuple(found)


def _not_charged(ledger: Ledger, charges: Sequence[Charge]) -> list[Charge]:
    """Charges that are new; refuses a plan that cannot be completed, which charges nothing more."""
    fresh = []
    for charge in charges:
        spend = ledger.spend(charge.request_id)
        if spend is None:
            fresh.append(charge)
        else:
            stored_release(ledger, spend)
    return fresh


def _log(attached: Attached, fresh: Sequence[Charge], actor: str) -> None:
    """Note who asks for what was not charged before."""
    population = attached.vault.population
    log = ReleaseLog(attached.ledger)
    for charge in fresh:
        log.add(
            actor,
            Act.ASKED,
            owner=population.owner,
            population=population.name,
            request_id=charge.request_id,
            detail=f"{charge.what} for rho = {charge.rho}",
        )


class _Work:
    """Measures part after part; analyses may use the tree's row count."""

    def __init__(
        self, attached: Attached, parts: tuple[Part, ...], progress: Progress | None
    ) -> None:
        self._attached, self._parts, self._progress = attached, parts, progress
        self._tree: TreeRelease | None = None
        self.begun: set[str] = set()

    def one(self, part: Part, charge: Charge, grant: Grant | None) -> Measured:
        """Measure one part, or replay it."""
        if grant is None:
            release = self._replay(charge)
        else:
            self.begun.add(charge.request_id)
            release = self._measure(part, grant)
        if isinstance(release, TreeRelease):
            self._tree = release
        if grant is not None and release.partial and part is not self._parts[-1]:
            raise Cancelled(
                f"cancelled; what had been measured of {part.title} is kept as a partial release, "
                "and every charge of this plan stays spent. Run the plan again with --new-release "
                "to pay for the parts that were not begun, and for no others"
            )
        return Measured(part, charge.request_id, release, grant is None)

    def _replay(self, charge: Charge) -> Release:
        spend = self._attached.ledger.spend(charge.request_id)
        if spend is None:
            raise LedgerError("the ledger lost a charge while it was being read; check the store")
        return stored_release(self._attached.ledger, spend)

    def _measure(self, part: Part, grant: Grant) -> Release:
        vault = self._attached.vault
        try:
            release = part.measure(grant, vault.schema, self._tree, self._progress)
            vault.complete(grant, release.to_bytes(), part.kind, partial=release.partial)
        except Cancelled:
            _settle(vault, grant, "cancelled before anything was measured")
            raise Cancelled(
                f"cancelled before anything was measured; the charge of rho = {part.rho} stays "
                "spent, because it was made before the table could be touched"
            ) from None
        except SourceError as error:  # its words name files, and hold no value
            recorded = _settle(vault, grant, f"{error}")
            raise ReleaseError(
                f"{error}. It had been charged: rho = {part.rho} stays spent{recorded}; "
                "--new-release spends again"
            ) from None
        except Exception as error:
            # The cause is not chained: its arguments may hold a value of the table.
            kind = type(error).__name__
            recorded = _settle(vault, grant, f"{kind} while measuring or storing")
            raise ReleaseError(
                f"measuring or storing failed ({kind}) after rho = {part.rho} had been charged; "
                f"it stays spent{recorded}. Please report this; --new-release spends again"
            ) from None
        except BaseException:
            _settle(vault, grant, "interrupted while measuring")
            raise
        return release


def _settle(vault: Vault, grant: Grant, message: str) -> str:
    """Record a charge as spent without a result; says so where even that was impossible."""
    try:
        vault.fail(grant, message)
    except JustitiaError as error:
        return f" (and the ledger could not note it: {type(error).__name__})"
    return ""


def releases_of(measured: Sequence[Measured]) -> Releases:
    """The releases of all parts."""
    return Releases.of(tuple(one.release for one in measured))
