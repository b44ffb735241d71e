"""The command line.

``python -m core demo | draft | check | forecast | run | audit | infer | ledger | verify``, and for
whoever runs a server ``retention | log``.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from core import housekeeping, safekeeping
from core.audit import command as audit_command
from core.command_parser import parser
from core.errors import Cancelled, JustitiaError, PlanError
from core.visible import shown

if TYPE_CHECKING:
    from core.outlook import Outlook


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 2 input, 3 budget, 4 spent, no result)."""
    options = parser().parse_args(arguments)
    commands: dict[str, Callable[[argparse.Namespace], None]] = {
        "demo": _demo,
        "draft": _draft,
        "check": _check,
        "forecast": _forecast,
        "run": _run,
        "infer": _infer,
        "ledger": _ledger,
        "retention": partial(_printed, housekeeping.retention),
        "log": partial(_printed, housekeeping.log),
        "verify": _verify,
        "audit": _audit,
    }
    try:
        commands[options.command](options)
    except JustitiaError as error:
        _say(f"justitia: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        _say(
            "justitia: interrupted; 'python -m core ledger' tells whether anything was spent",
            file=sys.stderr,
        )
        return 4
    except ModuleNotFoundError as error:
        _say(
            f"justitia: the package {error.name!r} is missing; run 'make setup' once and use "
            ".venv/bin/python",
            file=sys.stderr,
        )
        return 2
    except OSError as error:
        where = error.filename or "standard output"
        _say(f"justitia: {where}: {error.strerror}", file=sys.stderr)
        return 2
    except Exception as error:
        # No traceback: its lines may hold a value of the table.
        _say(
            f"justitia: an unexpected {type(error).__name__} stopped this command, in "
            f"{_place(error)}; 'python -m core ledger' tells what was spent. Please report this",
            file=sys.stderr,
        )
        return 2
    return 0


def _say(*lines: object, file: TextIO | None = None) -> None:
    """Lines for a terminal, which no name in them can steer."""
    for line in lines:
        print(shown(str(line)), file=file)


def _place(error: BaseException) -> str:
    """Module and line where an error arose."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def _demo(options: argparse.Namespace) -> None:
    from core.starting import write_demo

    for path in write_demo(options.out, options.name, options.rows, options.seed):
        _say(path)


def _draft(options: argparse.Namespace) -> None:
    from core.plan import ReadingPlan
    from core.starting import PRIVATE, check_output, draft_plan

    sources = [path for path in (options.data, options.codebook) if path is not None]
    check_output(options.out, sources, force=options.force)
    drafted = draft_plan(
        options.data,
        suggest=options.suggest,
        codebook=options.codebook,
        reading=ReadingPlan(sheet=options.sheet, day_numbers=tuple(options.day_numbers)),
        accept_names=options.accept_names,
    )
    options.out.write_text(drafted.text, encoding="utf-8")
    _say(f"{PRIVATE} (notes may speak of values)", file=sys.stderr)
    for note in drafted.notes:
        _say(f"note: {note}", file=sys.stderr)
    _say(options.out)


def _check(options: argparse.Namespace) -> None:
    from core.plan import read_plan
    from core.starting import check_fit

    for line in check_fit(read_plan(options.plan), options.data):
        _say(line)


def _forecast(options: argparse.Namespace) -> None:
    from core.outlook import outlook_for
    from core.plan import read_plan

    for line in _forecast_lines(outlook_for(read_plan(options.plan))):
        _say(line)


def _forecast_lines(found: Outlook) -> list[str]:
    return [
        *(f"forecast: {sentence}" for sentence in found.sentences),
        *(f"suggestion: {suggestion}" for suggestion in found.suggestions),
    ]


def _before_charge(stop: _Interrupt, quiet: bool, found: Outlook, notes: tuple[str, ...]) -> None:
    if stop.asked:
        raise PlanError("interrupted; nothing was spent")
    if quiet:
        return
    for note in notes:
        _say(f"note: {note}", file=sys.stderr)
    for line in _forecast_lines(found):
        _say(line, file=sys.stderr)


def _run(options: argparse.Namespace) -> None:
    stop = _Interrupt()
    previous = {name: signal.signal(name, stop.ask) for name in (signal.SIGINT, signal.SIGTERM)}
    from core.runner import run
    from core.statement import quality_flags

    try:
        result = run(
            options.plan,
            options.data,
            options.out,
            simulate=options.simulate,
            allow_real_data=options.allow_real_data,
            population=options.population,
            ledger_url=options.ledger,
            new_release=options.new_release,
            before_charge=partial(_before_charge, stop, options.quiet),
            progress=stop.report if options.quiet else stop.tell,
        )
    finally:
        for name, handler in previous.items():
            signal.signal(name, handler)
    releases = result.derived.releases
    for note in result.notes:
        _say(f"note: {note}", file=sys.stderr)
    for flag in dict.fromkeys((*releases.flags, *quality_flags(releases))):
        _say(f"flag: {flag}", file=sys.stderr)
    spent = Fraction(0) if releases.simulated else result.spent
    _say("replayed, nothing spent" if result.replayed else f"spent rho = {spent}")
    for path in result.paths.values():
        _say(path)


class _Interrupt:
    """Ctrl-C asks for a cancel at the next step, so that what was paid for is kept."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self, signum: int, frame: FrameType | None) -> None:
        """Remember the wish; a second one stops at once."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        _say("justitia: stopping after this step (again: at once)", file=sys.stderr)

    def report(self, stage: str, done: int, total: int, detail: object) -> None:
        """Raise the cancel where it is asked for."""
        if self.asked:
            raise Cancelled("cancelled")

    def tell(self, stage: str, done: int, total: int, detail: object) -> None:
        """Report to a person, then as :meth:`report`."""
        if sys.stderr.isatty():
            print(f"\r{stage} {done}/{total}\x1b[K", end="", file=sys.stderr, flush=True)
            if done >= total:
                print(file=sys.stderr)
        self.report(stage, done, total, detail)


def _infer(options: argparse.Namespace) -> None:
    from core.pumba.infer import FREE, infer, report
    from core.pumba.settings import Settings

    result = infer(
        options.statistics,
        options.out,
        Settings(
            level=options.level,
            draws=options.draws,
            seed=options.seed,
            estimand=options.estimand,
            population_size=options.population_size,
            design_effect=options.design_effect,
            vcov=options.vcov,
        ),
        parquet=options.parquet,
        progress=_Interrupt().tell,
    )
    for line in report(result.posteriors):
        _say(line)
    _say(FREE)
    for path in result.paths:
        _say(path)


def _printed(
    command: Callable[[argparse.Namespace], list[str]], options: argparse.Namespace
) -> None:
    for line in command(options):
        _say(line)


def _ledger(options: argparse.Namespace) -> None:
    from core.private.fingerprint import renew_secret
    from core.private.ledger import Ledger
    from core.private.zcdp import as_rho, epsilon
    from core.statement import exact

    lines = safekeeping.safekeeping(options)
    if lines is not None:
        _say(*lines)
        return
    ledger = Ledger(options.ledger)
    if ledger.trouble is not None:
        _say(f"warning: {ledger.trouble}", file=sys.stderr)
    if options.new_secret:
        renew_secret(ledger)
        _say("a new secret was made; back it up together with the ledger")
    if options.set_cap is not None:
        if options.population is None:
            raise PlanError("--set-cap needs --population: whose cap is it?")
        housekeeping.change_cap(ledger, options.population, as_rho(options.set_cap), options.owner)
    populations = ledger.populations()
    if options.population is not None:
        populations = [ledger.population(options.population, options.owner)]
    if not populations:
        _say("no population yet; the first release of a plan makes one")
    for population in populations:
        owner = population.owner
        spent = ledger.spent(population.name, owner=owner)
        shown = f", epsilon = {epsilon(spent, population.delta):.4g}" if spent else ""
        shared = "" if owner == "local" else f" (owner {owner})"
        _say(
            f"{population.name}{shared}: spent rho = {exact(spent)} of {exact(population.cap)}"
            f"{shown} at delta = {population.delta:g}; {population.relation.value}, "
            f"{population.unit.words}"
        )
        for spend in ledger.spends(population.name, owner=owner):
            _say(
                f"  {spend.created_at}  {spend.what:8} rho = {exact(spend.rho)}  "
                f"{spend.state.value}  {spend.request_id}"
            )


def _verify(options: argparse.Namespace) -> None:
    from core.bundle import verify

    found = verify(options.bundle)
    for check in found.checks:
        _say(f"ok: {check}")
    for warning in found.warnings:
        _say(f"warning: {warning}")
    if found.simulated:
        _say("SIMULATED, NOT PRIVATE: this bundle must not be published as a private release")


def _audit(options: argparse.Namespace) -> None:
    _say(*audit_command.audit(options, _Interrupt().tell))


if __name__ == "__main__":
    raise SystemExit(main())
