"""The ledger's rows as people and programs read them."""

from __future__ import annotations

import json as plain_json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from core.documents import csv_table
from core.plan import PopulationPlan
from core.private.ledger import Ledger, Spend
from core.private.zcdp import format_rho
from core.runner import ledger_document
from pages.shared import house
from pages.shared.network import plain


def table(spends: Sequence[Spend]) -> dict[str, list[object]]:
    """One line a spend, the latest first."""
    latest = list(reversed(spends))
    return {
        "when (UTC)": [spend.created_at for spend in latest],
        "what": [spend.what for spend in latest],
        "ρ charged": [format_rho(spend.rho) for spend in latest],
        "ρ used": [
            "" if spend.debited is None else f"{float(spend.debited):.6g}" for spend in latest
        ],
        "state": [spend.state.value for spend in latest],
        "note": [spend.message for spend in latest],
        "request": [spend.request_id for spend in latest],
    }


def csv(spends: Sequence[Spend]) -> bytes:
    """The table as CSV."""
    columns = table(spends)
    lines = zip(*columns.values(), strict=True)
    # Moments are written as they are shown, in UTC.
    return csv_table(list(columns), [[str(cell) for cell in line] for line in lines])


def json(population: str, owner: str, spends: Sequence[Spend]) -> bytes:
    """The ledger document of a population up to its latest spend.

    The owner is an argument, because a download is made outside the session that asked for it.
    """
    document = ledger_document(house.ledger(), population, (spends[-1].request_id,), owner)
    return (plain_json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def chain(ledger: Ledger) -> str:
    """Whether every row of the ledger is what was written, in one line."""
    report = ledger.verify(releases=False)
    icon = ":material/link:" if report.intact else ":material/link_off:"
    words = plain(report.words)
    return f"{icon} {words[:1].upper()}{words[1:]}."


def with_cap(population: PopulationPlan | None, cap: Fraction) -> PopulationPlan | None:
    """The same population with another cap."""
    return None if population is None else replace(population, cap=cap)
