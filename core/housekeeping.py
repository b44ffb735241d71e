"""The commands ``retention`` and ``log``: what is kept for how long, and who released what."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.private.ledger import Ledger


def add_commands(commands: Any, ledger: argparse.ArgumentParser) -> None:
    """Add both commands, and to ``ledger`` what changes a cap."""
    ledger.add_argument("--set-cap", metavar="RHO", help="change the cap of --population")
    ledger.add_argument(
        "--owner", default="local", help="whose --population it is, on a server with a login"
    )
    retention = commands.add_parser(
        "retention", help="list what a retention policy no longer keeps; --delete deletes it"
    )
    retention.add_argument("--ledger", metavar="URL", help="SQLite or PostgreSQL URL of the ledger")
    retention.add_argument(
        "--keep-releases",
        metavar="DAYS",
        help="keep stored releases for so long (default: JUSTITIA_KEEP_RELEASES_DAYS, or for ever)",
    )
    retention.add_argument(
        "--keep-projects",
        metavar="DAYS",
        help="keep projects that nobody saves again for so long (default: "
        "JUSTITIA_KEEP_PROJECTS_DAYS, or for ever)",
    )
    retention.add_argument(
        "--delete",
        action="store_true",
        help="delete; charges stay in the ledger, and the budget stays spent",
    )

    log = commands.add_parser("log", help="who released what, as CSV; and whether it was altered")
    log.add_argument("--ledger", metavar="URL", help="SQLite or PostgreSQL URL of the ledger")
    log.add_argument("--owner", help="only what is about this owner's populations")
    log.add_argument("--out", type=Path, help="file to write; printed unless given")
    log.add_argument("--check", action="store_true", help="only check that the log is unaltered")


def retention(options: argparse.Namespace) -> list[str]:
    """Carry out ``retention``; returns the lines to print."""
    from core.private.ledger import Ledger
    from core.release_log import account
    from core.retention import Policy, days, enforce, expired, policy_from

    declared = policy_from()
    policy = Policy(
        declared.releases
        if options.keep_releases is None
        else days(options.keep_releases, "--keep-releases"),
        declared.projects
        if options.keep_projects is None
        else days(options.keep_projects, "--keep-projects"),
    )
    ledger = Ledger(options.ledger)
    found = enforce(ledger, policy, account()) if options.delete else expired(ledger, policy)
    verb = "deleted" if options.delete else "would be deleted with --delete"
    return [
        f"policy: {policy.words}",
        *(f"{verb}: release of request {identity}" for identity in found.releases),
        *(f"{verb}: project {identity}" for identity in found.projects),
        f"{len(found.releases)} releases, {len(found.projects)} projects; no charge was changed",
    ]


def log(options: argparse.Namespace) -> list[str]:
    """Carry out ``log``; returns the lines to print."""
    from core.private.ledger import Ledger
    from core.release_log import ReleaseLog, csv_text, who_released_what

    ledger = Ledger(options.ledger)
    journal = ReleaseLog(ledger)
    count = journal.check()
    if options.check:
        entries = journal.entries()
        last = f"; the last digest is {entries[-1].digest}" if entries else ""
        return [f"{count} entries, each following from the one before{last}"]
    text = csv_text(list(who_released_what(ledger, owner=options.owner)))
    if options.out is None:
        return text.splitlines()
    options.out.write_text(text, encoding="utf-8")
    return [str(options.out)]


def change_cap(ledger: Ledger, population: str, cap: Fraction, owner: str) -> None:
    """Change a cap from the command line, and log it.

    Raises
    ------
    LedgerError
        There is no such population, or it spent more than that.
    """
    from core.release_log import account, set_cap

    set_cap(ledger, account(), population, cap, owner=owner, reason="on the command line")
