"""Raw access for an audit, written down before it happens."""

from __future__ import annotations

from core.private.ledger import Ledger
from core.private.vault import NotPrivate, Vault
from core.release_log import Act, ReleaseLog


def look(vault: Vault, ledger: Ledger, actor: str, reason: str) -> NotPrivate:
    """A handle on the real rows, after who looks and why went into the log beside the ledger.

    Parameters
    ----------
    vault, ledger
        The attached table, and the ledger whose log is kept.
    actor
        Who looks, as the login or the command line names them.
    reason
        Why, in words that name nobody.

    Raises
    ------
    ReadingError
        Without a reason.
    LedgerError
        The log refused; then there is no handle.

    Notes
    -----
    Charges no budget and gives no privacy.
    """
    handle = vault.not_private(reason)
    where = vault.population
    ReleaseLog(ledger).add(
        actor,
        Act.LOOKED,
        owner=where.owner,
        population=where.name,
        detail=" ".join(reason.split()),
    )
    return handle
