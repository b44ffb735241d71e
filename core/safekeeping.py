"""Keeping a ledger safe from the command line: verify, back up, restore and mend it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from core.archives import DAMAGE
from core.errors import BundleError, LedgerError
from core.private.zcdp import format_rho

if TYPE_CHECKING:
    from core.private.ledger import Ledger
    from core.private.mending import Mended

_ACCOUNT = "ledger.json"


def add_options(ledger: argparse.ArgumentParser) -> None:
    """Add to ``ledger`` what keeps it safe; one of these at a time."""
    one = ledger.add_mutually_exclusive_group()
    one.add_argument(
        "--verify",
        nargs="*",
        type=Path,
        metavar="BUNDLE",
        help="whether nothing in the ledger was changed or lost, also since these bundles",
    )
    one.add_argument(
        "--backup", type=Path, metavar="FILE", help="copy the ledger and its secret, while in use"
    )
    one.add_argument(
        "--restore",
        type=Path,
        metavar="FILE",
        help="put a backup in place; what was charged since comes back from the witness file",
    )
    one.add_argument(
        "--mend",
        action="store_true",
        help="put back what this machine saw and the ledger lacks; nothing is ever spent less",
    )


def safekeeping(options: argparse.Namespace) -> list[str] | None:
    """Do what was asked and return the lines to print; None when nothing of this was asked.

    Raises
    ------
    LedgerError, BundleError
        It could not be done, or the ledger is not what it should be; one sentence says why.
    """
    if options.verify is not None:
        return _verify(options.ledger, options.verify)
    if options.backup is not None:
        return _back_up(options.ledger, options.backup)
    if options.restore is not None:
        return _restore(options.ledger, options.restore)
    return _mend(options.ledger) if options.mend else None


def _opened(url: str | None) -> Ledger:
    from core.private.backup import existing

    return existing(url)


def _verify(url: str | None, bundles: list[Path]) -> list[str]:
    ledger = _opened(url)
    report = ledger.verify()
    if not report.intact:
        raise LedgerError(report.words)
    return [f"ok: {report.words}", *(f"ok: {check_published(ledger, file)}" for file in bundles)]


def _back_up(url: str | None, file: Path) -> list[str]:
    from core.private.backup import back_up

    files, report = back_up(_opened(url), file)
    if not report.intact:
        raise LedgerError(f"{file} was written, but the ledger is not in order: {report.words}")
    secret = [] if len(files) > 1 else ["note: the ledger has no secret yet, so none was copied"]
    return [*map(str, files), f"ok: {report.words}", *secret]


def _restore(url: str | None, file: Path) -> list[str]:
    from core.private.backup import restore

    found = restore(url, file)
    if not found.report.intact:
        raise LedgerError(f"{file} was restored, but is not in order: {found.report.words}")
    return [
        f"restored: {found.file}",
        *(f"kept what was there before: {path}" for path in found.kept),
        *_mended(found.mended),
        f"ok: {found.report.words}",
        *(() if found.has_secret else ("warning: the backup has no secret beside it",)),
    ]


def _mend(url: str | None) -> list[str]:
    ledger = _opened(url)
    mended = _mended(ledger.mend())
    report = ledger.verify()
    if not report.intact:
        raise LedgerError(report.words)
    return [*mended, f"ok: {report.words}"]


def _mended(found: Mended) -> list[str]:
    lines = [
        f"{found.rows} rows came back from the witness file: {found.charges} charges, "
        f"rho = {format_rho(found.rho)}"
    ]
    if found.adopted:
        lines.append(f"{found.adopted} charges that the chain did not know were taken into it")
    lines += [f"lost, and its charge stays spent: release of {identity}" for identity in found.lost]
    return lines


# -- what a bundle remembers -------------------------------------------------------------------


def published_head(bundle: Path) -> str:
    """Hash of the ledger's chain in a bundle: it covers everything up to its release.

    Raises
    ------
    BundleError
        It is no bundle, or holds no such hash (simulated, or made before ledgers had a chain).
    """
    from core.bundle import bundle_archive

    with bundle_archive(bundle) as archive:
        try:
            head = json.loads(archive.read(_ACCOUNT))["chain_head"]
        except KeyError as error:
            raise BundleError(
                f"{bundle.name} remembers nothing of a ledger: it was simulated, or made before "
                "ledgers had a chain"
            ) from error
        except DAMAGE as error:
            raise BundleError(f"{bundle.name}: its {_ACCOUNT} cannot be read") from error
    return str(head)


def check_published(ledger: Ledger, bundle: Path) -> str:
    """Whether a ledger still holds what it held when a bundle was made, in one sentence.

    Raises
    ------
    BundleError
        It does not, or the bundle cannot tell.
    """
    if not ledger.has_event(published_head(bundle)):
        raise BundleError(
            f"this ledger does not hold what it held when {bundle.name} was made: an older copy "
            "was put back, it was rewritten, or the bundle comes from another ledger"
        )
    return f"it holds everything that it held when {bundle.name} was made"
