"""Pictures of the covariance benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.plots import curves

if TYPE_CHECKING:
    from benchmarks.pace import Results

SHOWN = ("ssp", "ssp_tight", "adaptive_cov", "ssp_clip_sure", "pace", "pace_auto")
TABLES = ("letter", "digits", "sylva", "ggm260", "corners260")


def error_curves(results: Results, folder: Path) -> str:
    """Error by rho, one panel a table, as Markdown; the pictures go into the folder."""
    from fractions import Fraction

    lines = ["## Curves", ""]
    rhos = [float(Fraction(rho)) for rho in results.rhos]
    for relation in ("add_remove", "replace_one"):
        for metric in ("frobenius", "mahalanobis"):
            panels = {
                table: {
                    method: (
                        rhos,
                        [
                            results.error(table, relation, method, rho, metric)
                            for rho in results.rhos
                        ],
                    )
                    for method in SHOWN
                }
                for table in TABLES
                if table in results.tables
            }
            name, alt = curves(
                folder / f"pace-{metric}-{relation}.svg",
                panels,
                across="rho",
                up=f"{metric.title()} error",
                alt=f"{metric.title()} error of six methods by rho, {relation}, a panel a table",
                level=1.0 if metric == "frobenius" else None,
                log_up=True,
            )
            lines += [f"![{alt}]({name})", ""]
    return "\n".join(lines) + "\n"
