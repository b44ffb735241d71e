"""The sign-off as a document of its own: who, what for, when, and the hashes it stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from core.bundle import file_name
from core.deriving import Derived
from core.plain_text import plain
from core.release_log import Act, ReleaseLog
from pages.shared import house
from pages.shared.held import Held


def sign_off(entry: Mapping[str, str], made: Derived, digest: str) -> bytes:
    """Markdown with name, purpose, date, the bundle's hash and every file's hash."""
    simulated = made.releases.simulated
    lines = ["# Sign-off", ""]
    if simulated:
        lines += ["**SIMULATED, NOT PRIVATE**", ""]
    lines += [
        f"- Signed by: {plain(entry.get('name', ''))}",
        f"- Date: {entry.get('date', '')}",
        f"- Purpose: {plain(entry.get('purpose', ''))}",
        *(f"- Request: {where.request_id}" for where in made.releases.provenances),
        f"- SHA-256 of bundle.zip: {digest}",
        "",
        "## Files",
        "",
    ]
    lines += [
        f"- {file_name(name, simulated)}: {hashlib.sha256(blob).hexdigest()}"
        for name, blob in sorted(made.files.items())
    ]
    return "\n".join([*lines, ""]).encode()


def log_signature(holding: Held, digest: str, entry: Mapping[str, str]) -> None:
    """Note in the log of releases who put which name under which bundle."""
    ReleaseLog(house.ledger()).add(
        house.actor(),
        Act.SIGNED,
        owner=house.owner(),
        population=holding.plan.population.name,
        request_id=holding.identities[0],
        detail=f"bundle SHA-256 {digest}; as {entry['name']}; for: {entry['purpose']}",
    )
