"""What a budget buys for a covariance matrix, before anything is charged: public facts only.

Errors are predicted under a stated working assumption, and never looked up in the data: standard
deviations of a third of the half-width, a correlation of one half for as many pairs as there are
columns, and chance correlations for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from core.pace.estimate import MOSTLY_NOISE, Estimate
from core.pace.frames import COUNT_SHARE, MEAN_SHARE, MeansSetting, covariance_schema
from core.pace.release import CovarianceRelease
from core.pace.select import DIAGONAL_SHARE, SELECTION_SHARE
from core.private import sensitivity
from core.provenance import Relation, Unit
from core.schema import Schema

#: Working values: variance in the unit box, and the correlation of an edge.
VARIANCE = 1.0 / 9
CORRELATION = 0.5


class CovarianceTerms(Protocol):
    """What a plan says about the population."""

    @property
    def relation(self) -> Relation:
        """What neighbouring tables are."""
        ...

    @property
    def unit(self) -> Unit:
        """The unit of protection."""
        ...

    @property
    def expected_rows(self) -> int | None:
        """The steward's public guess."""
        ...


class CovarianceSettings(Protocol):
    """What a plan asks for."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the matrix."""
        ...

    @property
    def rho(self) -> Fraction:
        """Its price."""
        ...

    @property
    def method(self) -> str:
        """One of ``METHODS``."""
        ...

    @property
    def means_setting(self) -> MeansSetting:
        """``private``, or public means."""
        ...


@dataclass(frozen=True)
class CovariancePreview:
    """Predicted errors; relative ones are Frobenius distances over the matrix's own norm.

    Attributes
    ----------
    columns, entries
        d, and the d(d + 1)/2 numbers of the triangle.
    expected_rows
        The public guess that all of this rests on.
    moment_rho
        What is left for second moments after the row count and the means.
    entry_noise
        Noise of one entry under plain noise on all of them, as a correlation.
    plain_error
        Plain noise on every entry (method ``ssp``).
    no_correlations_error
        A matrix that knows all variances and no correlation: the zero reference.
    pace_error
        The adaptive loop, if the working assumption holds.
    count_error
        Relative error of the row count, by which everything is divided; 0 where it is public.
    """

    columns: int
    entries: int
    expected_rows: int
    moment_rho: Fraction
    entry_noise: float
    plain_error: float
    no_correlations_error: float
    pace_error: float
    count_error: float

    @property
    def mostly_noise(self) -> bool:
        """Whether plain noise would drown a typical correlation."""
        return self.entry_noise > MOSTLY_NOISE

    @property
    def sentences(self) -> tuple[str, ...]:
        """For people."""
        words = [
            f"Covariance of {self.columns} columns ({self.entries:,} entries): plain noise on "
            f"every entry would blur each correlation by about {self.entry_noise:.2g}.",
            "Predicted relative error if each column correlates with one other (0.5) and has a "
            f"standard deviation of a third of its half-width: plain noise {self.plain_error:.2g}, "
            f"the adaptive loop {self.pace_error:.2g}, no correlations at all "
            f"{self.no_correlations_error:.2g}.",
        ]
        if min(self.pace_error, self.plain_error) > self.no_correlations_error:
            words.append(
                "At this price a matrix without any correlation would be about as close: give it "
                "more budget, or fewer columns."
            )
        return tuple(words)


def preview(
    columns: int,
    rho: Fraction,
    *,
    expected_rows: int,
    relation: Relation = Relation.ADD_REMOVE,
    unit_rows: int = 1,
    private_means: bool = True,
) -> CovariancePreview:
    """Predict the errors of a covariance release.

    Parameters
    ----------
    columns
        Number of columns, 1 or more.
    rho
        Budget of the whole release.
    expected_rows
        Public guess at the number of rows.
    """
    counted = relation is Relation.ADD_REMOVE
    share = 1 - (COUNT_SHARE if counted else 0) - (MEAN_SHARE if private_means else 0)
    moments = rho * share
    rows = max(expected_rows, 1)
    plain = _plain_sigma(columns, relation, unit_rows, moments) / rows
    norm = VARIANCE * math.sqrt(columns * (1 + 2 * CORRELATION**2 * (columns > 1)))
    # What no method that leaves entries out can see: chance correlations of the rows themselves.
    chance = columns * max(columns - 3, 0) * VARIANCE**2 / rows
    missed = 2 * columns * (CORRELATION * VARIANCE) ** 2 if columns > 1 else 0.0
    count = math.sqrt(unit_rows**2 / (2 * rho * COUNT_SHARE)) / rows if counted else 0.0
    return CovariancePreview(
        columns=columns,
        entries=columns * (columns + 1) // 2,
        expected_rows=expected_rows,
        moment_rho=moments,
        entry_noise=plain / VARIANCE,
        plain_error=math.hypot(plain * columns / norm, count),
        no_correlations_error=math.sqrt(missed + chance) / norm,
        pace_error=math.hypot(
            math.sqrt(chance + _pace_squared(columns, relation, unit_rows, moments, rows)) / norm,
            count,
        ),
        count_error=count,
    )


def _plain_sigma(columns: int, relation: Relation, unit_rows: int, rho: Fraction) -> float:
    """Sigma of one entry's sum under the paper's equal noise on all."""
    squared = columns**2 * (1 if relation is Relation.ADD_REMOVE else 2) * unit_rows**2
    return math.sqrt(squared / (2 * rho))


def _pace_squared(
    columns: int, relation: Relation, unit_rows: int, rho: Fraction, rows: int
) -> float:
    """Expected squared Frobenius error of the loop, with one edge a column."""
    squares = float(sensitivity.diagonals(columns, relation, unit_rows)) / float(
        2 * rho * DIAGONAL_SHARE
    )
    error = columns * squares / rows**2
    if columns == 1:
        return error
    edges = min(columns, columns * (columns - 1) // 2)
    each = rho * (1 - DIAGONAL_SHARE) / edges
    reach = sensitivity.entry_score(relation, unit_rows)
    noise = reach**2 / float(2 * each * (1 - SELECTION_SHARE)) / rows**2
    epsilon = math.sqrt(8 * float(each * SELECTION_SHARE))
    lost = 2 * reach / epsilon * math.log(columns * (columns + 1) / 2) / rows
    signal = CORRELATION * VARIANCE
    # Where selection cannot see an edge, the loop measures another one and leaves this one out.
    return error + 2 * edges * (noise if lost < signal else min(signal**2 + noise, 2 * signal**2))


def preview_sentences(
    settings: CovarianceSettings, schema: Schema, terms: CovarianceTerms
) -> tuple[str, ...]:
    """What a plan's covariance section buys, in words; empty without an expected number of rows.

    Raises
    ------
    SchemaError
        Columns that cannot be measured.
    """
    used = covariance_schema(schema, settings.columns)
    if not terms.expected_rows:
        return (
            f"Covariance of {len(used.columns)} columns by {settings.method}: say how many rows "
            "you expect to see what the noise will do.",
        )
    found = preview(
        len(used.columns),
        settings.rho,
        expected_rows=terms.expected_rows,
        relation=terms.relation,
        unit_rows=terms.unit.rows,
        private_means=not isinstance(settings.means_setting, Mapping),
    )
    return found.sentences


def plain_noise_error(release: CovarianceRelease, fitted: Estimate) -> float:
    """Relative Frobenius error that plain noise would probably have had at the same price.

    Predicted from the noise that it would have added and the *released* matrix.
    """
    where = release.provenance
    spent = release.rows.rho + release.means.rho
    sigma = _plain_sigma(release.size, where.relation, where.unit.rows, where.rho - spent)
    norm = math.sqrt(float((fitted.scaled**2).sum()))
    return sigma / release.rows.value * release.size / norm
