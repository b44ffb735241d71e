"""What the Audit page starts: the free audit of a release, and the logged look at the real table.

What a look finds is held by the session alone.  It goes into no store and no bundle, and ends with
the session, with "forget this table", and with the button that closes it.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from secrets import token_hex
from typing import Any

from core.attachment import Attached, attach
from core.audit.audits import PrivateAudit, ReleasedAudit
from core.audit.looking import look
from core.audit.room import audit_private, audit_released
from core.audit.settings import AuditSettings
from core.audit.worlds import real_world
from core.deriving import Derived
from core.errors import Cancelled, JustitiaError, ReadingError
from core.protocols import Progress
from pages.shared import house
from pages.shared.actions import rows_of
from pages.shared.held import Held
from pages.shared.jobs import Job, desk
from pages.shared.project import Project


class Look:
    """One look at the real table: its job, and what it found."""

    def __init__(self, audit_key: str) -> None:
        self.identity = f"look-{token_hex(16)}"
        self.audit_key = audit_key
        self.found: PrivateAudit | None = None


def settings_of(project: Project) -> AuditSettings:
    """The audit's settings as the steward left them."""
    return AuditSettings(**project.audit_view)


def key_of(holding: Held, settings: AuditSettings) -> str:
    """Id of an audit: what is looked at, and how."""
    text = json.dumps([holding.key, asdict(settings)], sort_keys=True)
    return f"audit-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def start(made: Derived, key: str, settings: AuditSettings) -> Job:
    """Audit synthetic rows against their release, in a job; free, and fit to be published."""
    synthetic, certificate = made.synthetic, made.certificate
    if synthetic is None or certificate is None:
        raise ReadingError("there are no synthetic rows to audit; make them on Synthetic")

    def work(progress: Progress) -> ReleasedAudit:
        return audit_released(
            made.release, synthetic, certificate, settings=settings, progress=progress
        )

    return desk().submit(key, "Auditing the synthetic rows", work)


def released(project: Project, key: str) -> ReleasedAudit | None:
    """The audit of that id, if it was made already."""
    if project.audit is None or project.audit[0] != key:
        job = desk().find(key)
        if job is None or job.result is None:
            return None
        project.audit = (key, job.result)
    found: ReleasedAudit = project.audit[1]
    return found


def open_look(project: Project, holding: Held, audit: ReleasedAudit, key: str, reason: str) -> None:
    """Set the real table beside the synthetic rows, in a job; the look is logged first.

    A second click joins the look that the first one opened.

    Raises
    ------
    JustitiaError
        Without a reason, without the table, or with another table than the released one.
    """
    if project.look is not None and project.look.audit_key == key:
        return
    if not reason.strip():
        raise ReadingError("say why you look at the real table; the reason is logged")
    opened = project.look = Look(key)  # at once: opening the table takes a while
    try:
        attached = _released_table(project, holding)
    except BaseException:  # whatever it was, the door must open again
        project.close_look()
        raise
    work = _Looking(attached, audit, house.actor(), reason, weakref.ref(opened))
    if project.look is not opened:  # closed, or the table was forgotten, while it was opened
        attached.vault.close()
        return
    job = desk().submit(opened.identity, "Comparing with the real table", work)
    if project.look is not opened:
        job.cancel()


def _released_table(project: Project, holding: Held) -> Attached:
    """The attached table, if it is the one that was released."""
    run = holding.runs[0]
    attached = attach(run.read_plan(), rows_of(project), house.ledger(), house.owner())
    if attached.table_id != run.table_id:
        attached.vault.close()
        raise ReadingError(
            "the attached table is not the one that was released; attach that one on Data"
        )
    return attached


class _Looking:
    """The job; it holds the rows while it runs, and leaves its findings with the session alone."""

    def __init__(
        self,
        attached: Attached,
        audit: ReleasedAudit,
        actor: str,
        reason: str,
        box: weakref.ref[Look],
    ) -> None:
        self._attached: Attached | None = attached
        self._audit, self._actor, self._reason, self._box = audit, actor, reason, box

    def __call__(self, progress: Progress) -> None:
        attached, self._attached = self._attached, None
        if attached is None or self._box() is None:
            return

        def told(stage: str, done: int, total: int, detail: object) -> None:
            if self._box() is None:  # closed, or the table was forgotten: the rows go at once
                raise Cancelled("Closed on the way; nothing was kept.")
            progress(stage, done, total, detail)

        try:
            handle = look(attached.vault, attached.ledger, self._actor, self._reason)
            real = real_world(handle, self._audit.release.schema)
            found = audit_private(self._audit, real, progress=told)
            box = self._box()
            if box is not None:
                box.found = found
        finally:
            attached.vault.close()


def change_settings(project: Project, changes: Mapping[str, Any]) -> str:
    """Take settings that are possible; a sentence where they are not."""
    try:
        AuditSettings(**{**project.audit_view, **changes})
    except JustitiaError as error:
        return str(error)
    project.audit_view = {**project.audit_view, **changes}
    return ""
