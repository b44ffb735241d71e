"""The audit as a standalone page that may be published: released values, and nothing else.

Static texts, every value escaped, inline styles for both themes, a policy that forbids scripts and
requests.  It opens offline and prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.artefacts import PREFIX
from core.audit.audits import ReleasedAudit
from core.errors import PlanError
from core.report.parts import (
    proof,
    released_fidelity,
    released_rule,
    score_cards,
    settings_list,
)
from core.report.picture import tree_picture
from core.report.style import POLICY, STYLE
from core.report.words import text
from core.statement import SIMULATED

#: By this a report knows an earlier one, which it may replace.
GENERATOR = '<meta name="generator" content="Justitia audit report">'

TITLE = "Audit of a release"
PUBLISHABLE = (
    "Everything in this report follows from released values. It costs no further budget and may be "
    "published with the release."
)


@dataclass(frozen=True)
class Report:
    """A finished page.

    Attributes
    ----------
    prefix
        What its file's name must begin with; empty unless the release was simulated.
    content
        The whole file.
    """

    prefix: str
    content: bytes

    def __repr__(self) -> str:
        """Without the content."""
        return f"Report({self.prefix!r}, {len(self.content):,} bytes)"

    def name(self, wanted: str = "audit.html") -> str:
        """A file name that says what the file is.

        >>> Report("SIMULATED_NOT_PRIVATE_", b"").name("audit.html")
        'SIMULATED_NOT_PRIVATE_audit.html'
        """
        return wanted if wanted.startswith(self.prefix) else f"{self.prefix}{wanted}"


def released_report(audit: ReleasedAudit) -> Report:
    """The report that may be published: released values, and nothing else.

    Raises
    ------
    PlanError
        A figure in the audit was computed from real rows.
    """
    figures = (*audit.figures, *(score.figure for score in audit.scorecard.scores))
    if any(figure.private for figure in figures):
        raise PlanError("a figure of real rows cannot go into the report on released values")
    simulated = audit.release.provenance.simulated
    sections = [
        _section("Scorecard", score_cards(audit.scorecard)),
        _section("What the tree proves", tree_picture(audit.release) + proof(audit.certificate)),
        _section("Against the released tables", released_fidelity(audit.against_release)),
        *(
            _section(f"Rule: {found.rule.name}", released_rule(found, audit.settings))
            for found in audit.rules
        ),
        _section("How this was computed", settings_list(audit.settings)),
    ]
    return Report(PREFIX if simulated else "", _page(audit, sections))


def check_target(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse a place where a report would harm another file.

    Raises
    ------
    PlanError
        It is a folder, one of the inputs, or a file that is no earlier report.
    """
    if not out.name:
        raise PlanError("--out needs the name of a file")
    if out.is_dir():
        raise PlanError(f"--out {out.name} is a folder; name a file in it")
    if not out.parent.is_dir():
        raise PlanError(f"--out {out.name}: its folder does not exist; make it first")
    for path in inputs:
        same = out.resolve() == path.resolve()
        if same or (out.exists() and path.exists() and out.samefile(path)):
            raise PlanError(
                f"--out {out.name} is the same file as {path.name}, which would be lost; give the "
                "report another name"
            )
    if out.is_symlink() or (out.exists() and not _earlier(out)):
        raise PlanError(f"--out {out.name} is there and is no audit report; choose another name")


def write_report(report: Report, out: Path, inputs: Sequence[Path] = ()) -> Path:
    """Write a report under a name that says what it is.

    Returns
    -------
    Path
        Where it was written; the name begins with the report's prefix.

    Raises
    ------
    PlanError
        As :func:`check_target`.
    """
    target = out.with_name(report.name(out.name))
    check_target(target, inputs)
    target.unlink(missing_ok=True)
    with target.open("xb") as file:
        file.write(report.content)
    return target


# -- details ---------------------------------------------------------------------------------


def _earlier(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(2000)


def _section(title: str, body: str) -> str:
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def _page(audit: ReleasedAudit, sections: Iterable[str]) -> bytes:
    where = audit.release.provenance
    stamp = f'<p class="banner warning"><strong>{text(SIMULATED)}</strong></p>'
    facts = (
        f"Population “{where.population}”, structure {audit.release.structure}, "
        f"{len(audit.release.schema.columns)} columns, {audit.synthetic.rows:,} synthetic rows."
    )
    listed = "".join(f"<li>{text(note)}</li>" for note in audit.notes)
    page = [
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">{GENERATOR}',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{TITLE}</title>{STYLE}</head><body><main>",
        f'<p class="banner public">{text(PUBLISHABLE)}</p>',
        stamp if where.simulated else "",
        f"<h1>{TITLE}</h1><p>{text(facts)}</p>",
        f"<ul>{listed}</ul>" if listed else "",
        *sections,
        "</main></body></html>\n",
    ]
    return "".join(page).encode()
