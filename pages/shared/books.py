"""The ledger's rows as people and programs read them."""

from __future__ import annotations

import json as plain_json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from core.decoding import csv_bytes
from core.plan import PopulationPlan
from core.private.ledger import Spend
from core.private.zcdp import format_rho
from core.runner import ledger_document
from pages.shared import house


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
    import pandas as pd

    return csv_bytes(pd.DataFrame(table(spends)))


def json(population: str, spends: Sequence[Spend]) -> bytes:
    """The ledger document of a population up to its latest spend."""
    document = ledger_document(house.ledger(), population, (spends[-1].request_id,), house.owner())
    return (plain_json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def with_cap(population: PopulationPlan | None, cap: Fraction) -> PopulationPlan | None:
    """The same population with another cap."""
    return None if population is None else replace(population, cap=cap)
