"""Justitia's headless package: private and fair releases of a sensitive table.

The names below are the public ones; each is loaded when it is first used, so that ``import core``
stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.bundle import verify
    from core.errors import JustitiaError
    from core.plan import Plan, parse_plan, read_plan
    from core.roles import Constraint, Role, Roles
    from core.runner import run, simulate
    from core.schema import Column, Kind, Schema
    from core.starting import demo_plan, draft_plan

_HOMES = {
    "Column": "core.schema",
    "Constraint": "core.roles",
    "JustitiaError": "core.errors",
    "Kind": "core.schema",
    "Plan": "core.plan",
    "Role": "core.roles",
    "Roles": "core.roles",
    "Schema": "core.schema",
    "demo_plan": "core.starting",
    "draft_plan": "core.starting",
    "parse_plan": "core.plan",
    "read_plan": "core.plan",
    "run": "core.runner",
    "simulate": "core.runner",
    "verify": "core.bundle",
}

__all__ = [
    "Column",
    "Constraint",
    "JustitiaError",
    "Kind",
    "Plan",
    "Role",
    "Roles",
    "Schema",
    "demo_plan",
    "draft_plan",
    "parse_plan",
    "read_plan",
    "run",
    "simulate",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module when the name is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
