"""The command ``audit``: a bundle's scorecard and report, from released values alone."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import PlanError

if TYPE_CHECKING:
    from core.audit.scorecard import Scorecard
    from core.audit.settings import AuditSettings
    from core.bundle import Opened
    from core.protocols import Progress


def add_command(commands: Any, seed: Callable[[str], int]) -> None:
    """Add ``audit`` to the command line; ``seed`` reads a seed as the other commands do."""
    audit = commands.add_parser(
        "audit",
        help="how good and fair a bundle's synthetic rows are, as an HTML report; reads no data",
    )
    audit.add_argument("bundle", type=Path, help="bundle.zip")
    audit.add_argument("--out", required=True, type=Path, help="HTML file to write")
    audit.add_argument(
        "--favourable",
        action="append",
        default=[],
        metavar="COLUMN=LABEL",
        help="the favourable outcome; by default the last declared cell, or the true one",
    )
    audit.add_argument(
        "--blind", action="store_true", help="keep the protected columns from the models"
    )
    audit.add_argument("--seed", default=0, type=seed, help="seed of intervals, floors and folds")


def audit(options: argparse.Namespace, progress: Progress | None = None) -> list[str]:
    """Carry out ``audit``; returns the lines to print, which hold no figure of the real table.

    Raises
    ------
    JustitiaError
        The bundle is damaged or has no tree, or a file of another origin stands where the report
        would.
    """
    from core.audit.room import audit_released
    from core.audit.settings import AuditSettings
    from core.bundle import opened
    from core.report.page import check_target, released_report, write_report

    inputs = [options.bundle]
    check_target(options.out, inputs)
    settings = AuditSettings(
        favourable=_favourable(options.favourable),
        use_protected=not options.blind,
        seed=options.seed,
    )
    bundle = opened(options.bundle)
    tree, free = bundle.releases.tree, bundle.free
    if tree is None or free.synthetic is None or free.certificate is None:
        raise PlanError("this bundle holds no tree and no synthetic rows, so there is no audit")
    _check_labels(settings, bundle)
    found = audit_released(
        tree,
        free.synthetic,
        free.certificate,
        settings=settings,
        progress=progress,
        notes=tuple(_made_again(bundle)),
    )
    written = write_report(released_report(found), options.out, inputs)
    return [*scorecard_lines(found.scorecard), str(written)]


def scorecard_lines(scorecard: Scorecard) -> list[str]:
    """The publishable scores, one a line."""
    from core.report.words import number
    from core.visible import visible

    return [
        visible(
            f"{score.verdict.value}: {score.figure.title}: "
            f"{number(score.figure.value, score.figure.unit)}. {score.why}"
        )
        for score in scorecard.publishable
    ]


# -- details ---------------------------------------------------------------------------------


def _favourable(given: list[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, equals, label = item.rpartition("=")
        if not (name and equals and label):
            raise PlanError("--favourable is written COLUMN=LABEL")
        found[name] = label
    return found


def _check_labels(settings: AuditSettings, bundle: Opened) -> None:
    schema = bundle.plan.tree_schema
    outcomes = {one for rule in bundle.plan.roles.constraints for one in rule.outcome}
    for name, label in settings.favourable.items():
        if name not in schema:
            raise PlanError(f"--favourable: no released column is called {name!r}")
        if name not in outcomes:
            raise PlanError(f"--favourable: {name!r} is not the outcome of a rule")
        if label not in schema[name].cells:
            raise PlanError(f"--favourable: column {name!r} declares no cell of that label")


def _made_again(bundle: Opened) -> list[str]:
    """What the check of the bundle could not settle on this machine."""
    return [f"Of the bundle's check: {warning}." for warning in bundle.verification.warnings]
