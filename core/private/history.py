"""What the events of the chain say: each kind of event, and the accounts that follow from them.

The tables of populations and spends are what programs read; the events are what happened.
:class:`Accounts` plays the events again and refuses one that could not have happened, such as a
charge that passes its cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from core.errors import LedgerError
from core.private.accounts import SpendState

#: Columns of a population and of a spend that the chain keeps.
POPULATION = (
    *("name", "owner", "relation", "unit_rows", "unit_person_column", "cap", "delta"),
    *("simulated", "expected_rows"),
)
_CHARGED = (*("request_id", "what", "rho", "created_at", "host", "pid", "process_start"),)
_SETTLED = ("state", "debited", "finished_at", "release_kind", "release_sha256", "message")
SPEND = (*_CHARGED, *_SETTLED)
#: Terms of a population that may change.
_CHANGING = ("cap", "delta", "expected_rows")
_UNSETTLED: Mapping[str, Any] = {
    **dict.fromkeys(_SETTLED),
    "state": SpendState.CHARGED.value,
    "message": "",
}


# -- kinds of events -----------------------------------------------------------------------


def opened(*, adopted: bool = False) -> dict[str, Any]:
    """The first row; ``adopted`` where the ledger is older than its chain."""
    return {"kind": "opened", "adopted": adopted, "at": datetime.now(UTC).isoformat()}


def population_made(columns: Mapping[str, Any]) -> dict[str, Any]:
    """A population and its terms."""
    return {"kind": "population", **{name: columns[name] for name in POPULATION}}


def terms_changed(name: str, owner: str, **changes: Any) -> dict[str, Any]:
    """Another cap, delta or expected number of rows."""
    return {"kind": "terms", "name": name, "owner": owner, "changes": changes}


def charged(
    name: str, owner: str, columns: Mapping[str, Any], *, adopted: bool = False
) -> dict[str, Any]:
    """A charge; ``adopted`` where the chain learns of it later."""
    kept = {key: columns[key] for key in _CHARGED}
    return {"kind": "charged", "name": name, "owner": owner, "adopted": adopted, **kept}


def settled(request_id: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a charge."""
    kept = {key: columns.get(key, _UNSETTLED[key]) for key in _SETTLED}
    return {"kind": "settled", "request_id": request_id, **kept}


def removed(request_id: str) -> dict[str, Any]:
    """A stored release was deleted on purpose; its charge and state stay."""
    return {"kind": "removed", "request_id": request_id, "at": datetime.now(UTC).isoformat()}


def lost(request_id: str, message: str) -> dict[str, Any]:
    """A stored release is gone; its charge stays."""
    return {"kind": "lost", "request_id": request_id, "message": message}


# -- what follows from them ----------------------------------------------------------------


@dataclass
class Accounts:
    """Populations by (name, owner), and spends by request id, as plain columns.

    Examples
    --------
    >>> accounts = Accounts()
    >>> accounts.apply(opened())
    >>> accounts.apply(terms_changed("people", "local", cap="1/1"))
    Traceback (most recent call last):
    core.errors.LedgerError: it speaks of a population that no row before it made
    """

    populations: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    spends: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Whose charge each spend is.
    payers: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: Requests whose stored release was deleted on purpose.
    removed: set[str] = field(default_factory=set)
    _spent: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    _begun: bool = False

    def apply(self, content: Mapping[str, Any]) -> None:
        """Let one event happen.

        Raises
        ------
        LedgerError
            It cannot have happened after those before it; the sentence goes on after "row 7:".
        """
        kinds = {
            "opened": self._opened,
            "population": self._population,
            "terms": self._terms,
            "charged": self._charge,
            "settled": self._settle,
            "removed": self._remove,
            "lost": self._lose,
        }
        kind = kinds.get(str(content.get("kind")))
        if kind is None:
            raise LedgerError("it is of a kind that this version does not know")
        if self._begun is (kind == self._opened):
            raise LedgerError("a chain begins with one row that opens it")
        try:
            kind(content)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise LedgerError("its content is incomplete") from error

    def stored(self) -> dict[str, str]:
        """SHA-256 of every release that should be in the store, by request id."""
        return {
            identity: str(spend["release_sha256"])
            for identity, spend in self.spends.items()
            if spend["release_sha256"] is not None and identity not in self.removed
        }

    def spent(self, payer: tuple[str, str]) -> Fraction:
        """Exact sum of a population's charges."""
        return self._spent.get(payer, Fraction(0))

    def _opened(self, _content: Mapping[str, Any]) -> None:
        self._begun = True

    def _population(self, content: Mapping[str, Any]) -> None:
        payer = (str(content["name"]), str(content["owner"]))
        if payer in self.populations:
            raise LedgerError("it makes a population that was there already")
        self.populations[payer] = {name: content[name] for name in POPULATION}

    def _payer(self, content: Mapping[str, Any]) -> tuple[str, str]:
        payer = (str(content["name"]), str(content["owner"]))
        if payer not in self.populations:
            raise LedgerError("it speaks of a population that no row before it made")
        return payer

    def _terms(self, content: Mapping[str, Any]) -> None:
        payer, changes = self._payer(content), content["changes"]
        if not set(changes) <= set(_CHANGING):
            raise LedgerError("it changes a term that is fixed when a population is made")
        if Fraction(changes.get("cap", self.populations[payer]["cap"])) < self.spent(payer):
            raise LedgerError("it lowers a cap below what was spent")
        self.populations[payer] |= changes

    def _charge(self, content: Mapping[str, Any]) -> None:
        payer, identity = self._payer(content), str(content["request_id"])
        rho = Fraction(content["rho"])
        if identity in self.spends:
            raise LedgerError("it charges a request that was charged before")
        if rho <= 0:
            raise LedgerError("it charges nothing, or less")
        cap = Fraction(self.populations[payer]["cap"])
        if self.spent(payer) + rho > cap and not content["adopted"]:
            raise LedgerError("its charge passes the population's cap")
        self._spent[payer] = self.spent(payer) + rho
        self.spends[identity] = {**{key: content[key] for key in _CHARGED}, **_UNSETTLED}
        self.payers[identity] = payer

    def _settle(self, content: Mapping[str, Any]) -> None:
        spend = self._spend(content)
        if spend["state"] != SpendState.CHARGED.value:
            raise LedgerError("it settles a charge that was settled before")
        spend |= {key: content[key] for key in _SETTLED}

    def _remove(self, content: Mapping[str, Any]) -> None:
        if self._spend(content)["release_sha256"] is None:
            raise LedgerError("it deletes a release that there never was")
        self.removed.add(str(content["request_id"]))

    def _lose(self, content: Mapping[str, Any]) -> None:
        spend = self._spend(content)
        if spend["release_sha256"] is None:
            raise LedgerError("it loses a release that there never was")
        spend |= {
            "state": SpendState.NO_RESULT.value,
            "release_kind": None,
            "release_sha256": None,
            "message": str(content["message"]),
        }

    def _spend(self, content: Mapping[str, Any]) -> dict[str, Any]:
        found = self.spends.get(str(content["request_id"]))
        if found is None:
            raise LedgerError("it speaks of a request that no row before it charged")
        return found
