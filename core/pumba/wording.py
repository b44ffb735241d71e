"""What an analysis measured, of which rows, at which noise: words for the privacy statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.promise import short
from core.pumba.layouts import DRAW_WORDS
from core.pumba.specification import declared_cells, reference_label

if TYPE_CHECKING:
    from core.pumba.release import StatisticsRelease


def statement_lines(release: StatisticsRelease) -> tuple[str, ...]:
    """What was measured, of which rows, at which noise: for the privacy statement."""
    return (*_question_lines(release), *_measured_lines(release))


def _question_lines(release: StatisticsRelease) -> list[str]:
    spec, schema = release.spec, release.schema
    if spec.counts:
        return []
    frame = spec.frame(schema)
    bounds = []
    for name, scale in frame.scales:
        low, high = scale.centre - scale.half_width, scale.centre + scale.half_width
        bounds.append(f"{name} within {low:g} to {high:g}")
    lines = [
        f"Values outside their bounds count as the nearest bound or as missing, as declared: "
        f"{'; '.join(bounds)}. Sums are about the middle of the bounds, in half-widths."
    ]
    if frame.may_miss(schema):
        lines.append(
            "Rows that miss one of the columns, or lie outside their declarations, are left out."
        )
    for column in spec.predictors:
        if any(cell.column == column for _, cell in frame.indicators):
            reference = reference_label(spec, schema[column])
            others = len(declared_cells(schema[column])) - 1
            noun = "indicator" if others == 1 else "indicators"
            lines.append(f"{column}: {others} {noun} against {reference!r}.")
    return lines


def _measured_lines(release: StatisticsRelease) -> list[str]:
    lines = []
    if release.public_rows is not None:
        lines.append("The number of rows is public under this relation and cost nothing.")
    if release.shared_rows is not None:
        lines.append(
            "The number of rows is the noisy one of an earlier tree release, standard deviation "
            f"{release.shared_rows.law.sd:.4g}."
        )
    for table in release.tables:
        lines.append(
            f"Cells of the table of {' × '.join(table.clique)} ({table.values.size}): noise of "
            f"standard deviation {table.sigma:.4g} rows, for {short(table.rho)} of rho."
        )
    for name, moments in release.sums:
        unit = " (numbers in half-widths)" if moments.request.real_degree else ""
        words = DRAW_WORDS[name]
        lines.append(
            f"{words[0].upper()}{words[1:]} ({len(moments.units)}): noise of standard deviation "
            f"{moments.sigmas[0]:.4g}{unit}, for {short(moments.rho)} of rho."
        )
    if release.partial:
        lines.append("Cancelled before everything was measured.")
    return lines
