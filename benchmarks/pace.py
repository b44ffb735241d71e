"""Errors of the covariance methods over tables and budgets, and the promises about them.

``python -m benchmarks pace --data DIR --write``.  Every release is made through a grant with seeded
noise at the real noise's scale; errors are against the exact matrix.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pace_cells import Cell, Cells, geometric_mean, grid
from benchmarks.pace_data import FILE_COLUMNS, SOURCES
from benchmarks.report import FOLDER, Bar, bar_table

REPORT = FOLDER / "pace.md"
METHODS = ("ssp", "ssp_tight", "diagonal", "adaptive_cov", "ssp_clip_sure", "pace", "pace_auto")
RHOS = ("1/10000", "1/1000", "1/100", "1/10", "1", "10")
RELATIONS = ("replace_one", "add_remove")
METRICS = ("mahalanobis", "frobenius")
#: Tables of 30 columns or more: where the paper's claim is about.
WIDE = (
    *("breast_cancer", "digits", "spambase", "optdigits"),
    *("sylva", "ggm100", "ggm260", "corners260"),
)
MEANS_TABLES = ("wine", "diabetes", "letter", "digits", "optdigits", "spambase", "adult", "german")
QUICK_TABLES = ("wine", "letter", "digits", "ggm100")
#: (metric, rho, largest geometric mean of pace over ssp on wide tables).
PACE_BARS = (
    ("mahalanobis", "1/1000", 0.08),
    ("mahalanobis", "1", 0.25),
    ("frobenius", "1/1000", 0.08),
    ("frobenius", "1", 0.45),
)
AUTO_BAR, ABOVE_BAR = 1.25, 0.02


class Results:
    """Median errors over seeds."""

    def __init__(self, cells: Cells, tables: Sequence[str], rhos: Sequence[str], seeds: int):
        self.cells, self.tables, self.rhos, self.seeds = cells, tables, rhos, seeds

    def error(  # noqa: PLR0917 (the axes of the design, in its order)
        self, table: str, relation: str, method: str, rho: str, metric: str, means: str = "public"
    ) -> float:
        """Median over the seeds."""
        return self.cells.median(Cell(table, relation, means, method, rho, 0), self.seeds, metric)

    @property
    def wide(self) -> list[str]:
        """Tables of 30 columns or more."""
        return [table for table in self.tables if table in WIDE]

    def pace_ratio(self, relation: str, rho: str, metric: str) -> float:
        """Geometric mean of pace over ssp on wide tables."""
        return geometric_mean(
            self.error(table, relation, "pace", rho, metric)
            / self.error(table, relation, "ssp", rho, metric)
            for table in self.wide
        )

    def over_best(self, relation: str, method: str, metric: str) -> list[float]:
        """The method's error over the best *other* method's, every table and rho."""
        return [
            self.error(table, relation, method, rho, metric)
            / min(
                self.error(table, relation, other, rho, metric)
                for other in METHODS
                if other not in {method, "pace_auto"}
            )
            for table in self.tables
            for rho in self.rhos
        ]

    def share_above_ssp(self, relation: str, method: str, metric: str) -> float:
        """Share of cells in which plain noise was better."""
        worse = [
            self.error(table, relation, method, rho, metric)
            > self.error(table, relation, "ssp", rho, metric)
            for table in self.tables
            for rho in self.rhos
        ]
        return sum(worse) / len(worse)


def main(argv: list[str]) -> int:
    options = _options(argv)
    tables = list(QUICK_TABLES if options.quick else SOURCES)
    if options.data is not None and not options.quick:
        tables += list(FILE_COLUMNS)
    if options.only:
        tables = [table for table in tables if table in options.only.split(",")]
    rhos = RHOS[1::2] if options.quick else RHOS
    seeds = 2 if options.quick else options.seeds
    cells = Cells(options.cache)
    wanted = list(grid(tables, RELATIONS, METHODS, rhos, means="public", seeds=seeds))
    means_tables = [table for table in tables if table in MEANS_TABLES]
    for means in ("raw-public", "raw-private"):
        methods = ("pace_auto", "pace")
        wanted += grid(means_tables, RELATIONS[1:], methods, rhos[1:], means=means, seeds=seeds)
    cells.run(wanted, options.data)
    if options.only:
        return 0
    results = Results(cells, tables, rhos, seeds)
    bars = bars_of(results)
    text = report(results, bars, means_tables, rhos[1:])
    if options.write:
        from benchmarks.pace_plots import error_curves

        REPORT.parent.mkdir(parents=True, exist_ok=True)
        text += error_curves(results, REPORT.parent)
        REPORT.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(met for *_, met in bars) else 1


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pace", description=__doc__)
    parser.add_argument("--data", type=Path, help="directory of the research tables")
    parser.add_argument("--seeds", type=int, default=7, help="releases a cell")
    parser.add_argument("--quick", action="store_true", help="four tables, three rho, two seeds")
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks/pace.md")
    parser.add_argument(
        "--only", metavar="TABLE,...", help="fill the cache for these tables, without a report"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "pace-cells.jsonl",
        help="file of the cells that are known; a run that was stopped goes on from it",
    )
    return parser.parse_args(argv)


# -- words -----------------------------------------------------------------------------------


def bars_of(results: Results) -> list[Bar]:
    """(promise, found, met) under both relations."""
    bars: list[Bar] = []
    for relation in RELATIONS:
        if results.wide:
            for metric, rho, limit in PACE_BARS:
                if rho in results.rhos:
                    found = results.pace_ratio(relation, rho, metric)
                    words = f"{relation}: pace/ssp, {metric}, d >= 30, rho = {rho}: <= {limit}"
                    bars.append(Bar(words, f"{found:.3f}", found <= limit))
        for metric in METRICS:
            ratio = geometric_mean(results.over_best(relation, "pace_auto", metric))
            words = f"{relation}: pace_auto / best comparator, {metric}: <= {AUTO_BAR}"
            bars.append(Bar(words, f"{ratio:.3f}", ratio <= AUTO_BAR))
            above = results.share_above_ssp(relation, "pace_auto", metric)
            words = f"{relation}: pace_auto above ssp, {metric}: <= {ABOVE_BAR:.0%} of cells"
            bars.append(Bar(words, f"{above:.1%}", above <= ABOVE_BAR))
    return bars


def report(
    results: Results, bars: list[Bar], means_tables: Sequence[str], means_rhos: Sequence[str]
) -> str:
    """The whole page but its pictures."""
    lines = [
        "# Errors of the covariance methods",
        "",
        "Generated by `python -m benchmarks pace --data DIR --write`.",
        "",
        f"{len(results.tables)} tables, rho from {results.rhos[0]} to {results.rhos[-1]}, median "
        f"of {results.seeds} seeds. Columns standardised by public mean and deviation, cut at "
        "three deviations, divided by three. Errors are against the exact second moments S of the "
        "table: *Mahalanobis* is ‖S^-1/2 W S^-1/2 - I‖, *Frobenius* is ‖W - S‖/‖S‖. W = 0 has "
        "Mahalanobis error √d and Frobenius error 1. Under `add_remove` every sum is divided by a "
        "noisy row count, which the budget pays for; under `replace_one` the count is public.",
        "",
        "## Promises",
        "",
        *bar_table(bars),
    ]
    for relation in RELATIONS:
        lines += _methods(results, relation) + _pace_by_rho(results, relation)
    for relation in RELATIONS:
        lines += _errors(results, relation)
    lines += _lost(results)
    if means_tables:
        lines += _means(results, means_tables, means_rhos)
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _head(titles: Sequence[str]) -> list[str]:
    return [_row(titles), "| --- " * len(titles) + "|"]


def _methods(results: Results, relation: str) -> list[str]:
    """Each method against the best of the others."""
    lines = [
        f"## Methods against the best comparator, `{relation}`",
        "",
        "Error over that of the best other method (`pace_auto` not counted among those), geometric "
        "mean and worst over all tables and budgets; share of cells in which plain noise (`ssp`) "
        "was better.",
        "",
    ]
    titles = ["method", "Mahalanobis", "worst", "above ssp", "Frobenius", "worst", "above ssp"]
    lines += _head(titles)
    for method in METHODS:
        cells: list[str] = [f"`{method}`"]
        for metric in METRICS:
            ratios = results.over_best(relation, method, metric)
            above = results.share_above_ssp(relation, method, metric)
            share = "" if method == "ssp" else f"{above:.0%}"
            cells += [f"{geometric_mean(ratios):.2f}", _short(max(ratios)), share]
        lines.append(_row(cells))
    return [*lines, ""]


def _pace_by_rho(results: Results, relation: str) -> list[str]:
    if not results.wide:
        return []
    lines = [f"Geometric mean of `pace` over `ssp` on tables of 30 columns or more, `{relation}`:"]
    lines += ["", *_head(["metric", *(f"rho = {rho}" for rho in results.rhos)])]
    for metric in METRICS:
        ratios = [results.pace_ratio(relation, rho, metric) for rho in results.rhos]
        lines.append(_row([metric, *(f"{ratio:.3f}" for ratio in ratios)]))
    return [*lines, ""]


def _errors(results: Results, relation: str) -> list[str]:
    """All errors: Mahalanobis, and Frobenius in brackets."""
    lines = [
        f"## All errors, `{relation}`",
        "",
        "Mahalanobis (Frobenius); the best of a row in bold, by Mahalanobis.",
        "",
        *_head(["table", "rho", *(f"`{method}`" for method in METHODS), "route of `pace_auto`"]),
    ]
    for table in results.tables:
        for rho in results.rhos:
            found = {
                method: results.error(table, relation, method, rho, "mahalanobis")
                for method in METHODS
            }
            best = min(found, key=lambda method: found[method])
            cells = []
            for method, value in found.items():
                other = results.error(table, relation, method, rho, "frobenius")
                text = f"{_short(value)} ({_short(other)})"
                cells.append(f"**{text}**" if method == best else text)
            lines.append(_row([table, rho, *cells, _routes(results, table, relation, rho)]))
    return [*lines, ""]


def _routes(results: Results, table: str, relation: str, rho: str) -> str:
    known = results.cells.known
    routes = [
        known[Cell(table, relation, "public", "pace_auto", rho, seed)].route
        for seed in range(results.seeds)
    ]
    names = {"second triangle": "again", "rounds": "rounds", "diagonal": "diagonal"}
    counts = {names[route]: routes.count(route) for route in sorted(set(routes))}
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _lost(results: Results) -> list[str]:
    """Where plain noise beats the adaptive loop."""
    lines = [
        "## Where plain noise is better than the adaptive loop",
        "",
        "Error of `pace` over that of `ssp`, cells above 1 (Mahalanobis or Frobenius). It happens "
        "where plain noise is already small: few columns, many rows, much budget.",
        "",
        *_head(["relation", "table", "rho", "Mahalanobis", "Frobenius"]),
    ]
    for relation in RELATIONS:
        for table in results.tables:
            for rho in results.rhos:
                ratios = [
                    results.error(table, relation, "pace", rho, metric)
                    / results.error(table, relation, "ssp", rho, metric)
                    for metric in METRICS
                ]
                if max(ratios) > 1:
                    lines.append(_row([relation, table, rho, *(f"{r:.2f}" for r in ratios)]))
    return [*lines, ""]


def _means(results: Results, tables: Sequence[str], rhos: Sequence[str]) -> list[str]:
    """What private means cost."""
    lines = [
        "## Private means",
        "",
        "Raw tables within their range (public here), half-widths of three public deviations. "
        "Error with means that 15 % of the budget pays for, over the error with public means, "
        "`add_remove`: Mahalanobis (Frobenius). The target is the matrix about the true means, so "
        "that what is off in the released centre counts as error.",
        "",
        *_head(["table", "method", *(f"rho = {rho}" for rho in rhos)]),
    ]
    relation = RELATIONS[1]
    for table in tables:
        for method in ("pace_auto", "pace"):
            cells = []
            for rho in rhos:
                ratio = [
                    results.error(table, relation, method, rho, metric, "raw-private")
                    / results.error(table, relation, method, rho, metric, "raw-public")
                    for metric in METRICS
                ]
                cells.append(f"{ratio[0]:.2f} ({ratio[1]:.2f})")
            lines.append(_row([table, f"`{method}`", *cells]))
    return [*lines, ""]


def _short(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return str(value)
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{min(digits, 4)}f}"
