"""What the command line understands; :mod:`core.__main__` does it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from core import addresses, housekeeping, safekeeping
from core.audit import command as audit_command

EXAMPLES = """examples:
  python -m core demo --out demo
  python -m core run demo/plan.toml --data demo/demo.csv --out out
  python -m core draft --data mine.csv --suggest --out mine.toml
  python -m core check mine.toml --data mine.csv
  python -m core forecast mine.toml
  python -m core infer statistics.csv --out results
  python -m core ledger
  python -m core ledger --verify
  python -m core ledger --backup ledger-backup.sqlite
  python -m core log
  python -m core retention --keep-releases 365
  python -m core verify out/bundle.zip
  python -m core audit out/bundle.zip --out audit.html
"""


class _Parser(argparse.ArgumentParser):
    """Complains in one line, like everything else."""

    def error(self, message: str) -> NoReturn:
        """One line and the exit code for bad input."""
        self.exit(2, f"justitia: {message}; see python -m core --help\n")


def _folder(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("a name is needed")
    return Path(text)


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError("a seed is a whole number of at least 0")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Every command and option."""
    top = _Parser(
        prog="python -m core",
        description="Release a sensitive table privately and fairly, without a browser.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="write a demo table and a plan for it")
    demo.add_argument("--out", required=True, type=_folder, help="folder to write into")
    demo.add_argument("--name", default="hiring", help="hiring, lending or admissions")
    demo.add_argument("--rows", default=20_000, type=int, help="rows of the table")
    demo.add_argument("--seed", default=0, type=_seed, help="seed of the demo's own randomness")

    draft = commands.add_parser("draft", help="start a plan for your own table")
    draft.add_argument(
        "--data", required=True, type=addresses.file, help="CSV, Parquet or Excel file"
    )
    draft.add_argument("--out", required=True, type=Path, help="plan file to write")
    draft.add_argument(
        "--codebook",
        type=Path,
        help="public declarations (CSV or JSON); docs/codebook.md describes the format",
    )
    draft.add_argument("--force", action="store_true", help="replace the plan file if there is one")
    draft.add_argument(
        "--suggest",
        action="store_true",
        help="suggest declarations from the values; the release is then flagged for ever",
    )
    draft.add_argument("--sheet", help="sheet of an Excel file")
    draft.add_argument(
        "--day-numbers",
        action="append",
        default=[],
        metavar="COLUMN",
        help="Excel: a date column whose plain numbers are day numbers",
    )
    draft.add_argument(
        "--accept-names",
        action="store_true",
        help="take the names offered for repeated or empty ones; the plan keeps them, edit there",
    )

    check = commands.add_parser(
        "check",
        help="whether a table fits a plan, in coarse shares for your own eyes; spends nothing",
    )
    check.add_argument("plan", type=Path, help="plan file (TOML)")
    check.add_argument(
        "--data", required=True, type=addresses.file, help="CSV, Parquet or Excel file"
    )

    forecast = commands.add_parser("forecast", help="what a plan's price buys; reads no data")
    forecast.add_argument("plan", type=Path, help="plan file (TOML)")

    run = commands.add_parser("run", help="perform a plan; a second run replays it for free")
    run.add_argument("plan", type=Path, help="plan file (TOML)")
    run.add_argument(
        "--data",
        required=True,
        type=addresses.table,
        help="CSV, Parquet or Excel file; or a folder or quoted glob of CSV or Parquet files, "
        "which are read in batches, as is a file larger than memory; or a table in a database, "
        "'duckdb:///PATH?table=NAME&version=TEXT'; docs/scale.md describes both",
    )
    run.add_argument("--out", required=True, type=_folder, help="folder to write into")
    run.add_argument(
        "--simulate", type=_seed, metavar="SEED", help="seeded noise: NOT PRIVATE, charges nothing"
    )
    run.add_argument(
        "--allow-real-data",
        action="store_true",
        help="let --simulate run on a table that is not the embedded demo",
    )
    run.add_argument("--population", help="use this population instead of the plan's")
    run.add_argument("--ledger", metavar="URL", help="SQLite or PostgreSQL URL of the ledger")
    run.add_argument("--new-release", action="store_true", help="spend again instead of replaying")
    run.add_argument("--quiet", action="store_true", help="no forecast and no progress on stderr")

    infer = commands.add_parser(
        "infer",
        help="posteriors of statistics that were published with noise; reads no data, spends "
        "nothing",
    )
    infer.add_argument(
        "statistics",
        type=Path,
        metavar="STATS",
        help="CSV or JSON; docs/published-statistics.md describes the format",
    )
    infer.add_argument("--out", required=True, type=_folder, help="folder to write into")
    infer.add_argument("--level", default=0.95, type=float, help="probability of the intervals")
    infer.add_argument("--draws", default=4000, type=int, help="posterior draws")
    infer.add_argument("--seed", default=0, type=_seed, help="seed of the draws")
    infer.add_argument(
        "--estimand",
        default="population",
        help="population (default) or sample: the measured rows themselves",
    )
    infer.add_argument("--population-size", type=int, help="rows of the finite population")
    infer.add_argument(
        "--design-effect", default=1.0, type=float, help="of a clustered or weighted sample"
    )
    infer.add_argument(
        "--vcov",
        default="classical",
        help="of regressions: classical, t, or hc where sums of degree 3 and 4 were published",
    )
    infer.add_argument("--parquet", action="store_true", help="write posterior.parquet too")

    ledger = commands.add_parser("ledger", help="list populations and what they spent")
    ledger.add_argument("--ledger", metavar="URL", help="SQLite or PostgreSQL URL of the ledger")
    ledger.add_argument("--population", help="only this one")
    ledger.add_argument(
        "--new-secret",
        action="store_true",
        help="replace a lost secret: tables seen before are not recognised any more",
    )

    safekeeping.add_options(ledger)
    housekeeping.add_commands(commands, ledger)

    _add_bundle_commands(commands)
    return top


def _add_bundle_commands(commands: Any) -> None:
    """What is done with a finished bundle."""
    verify = commands.add_parser("verify", help="check a bundle's hashes and statement")
    verify.add_argument("bundle", type=Path, help="bundle.zip")
    audit_command.add_command(commands, _seed)
