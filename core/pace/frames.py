"""What second moments are taken about and divided by: scales, the row count, the means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from core.errors import PlanError, SchemaError
from core.moments import FloatArray, MomentFrame, MomentRequest, Scale
from core.pace.release import Means, RowCount
from core.protocols import MomentGrant
from core.provenance import Relation
from core.schema import Schema

#: Share of the budget for private means.
MEAN_SHARE = Fraction(15, 100)
#: Share for the row count where it is private: every entry is divided by it.
COUNT_SHARE = Fraction(1, 100)

#: ``"private"``, or the public mean of every column.
MeansSetting = str | Mapping[str, float]


def covariance_schema(schema: Schema, columns: Sequence[str]) -> Schema:
    """Declarations of the columns of a covariance matrix, in file order.

    Raises
    ------
    SchemaError
        No column, one twice, an unknown one, or one that holds no numbers.
    """
    names = tuple(columns)
    if not names:
        raise SchemaError("a covariance matrix needs at least one numeric column")
    if len(set(names)) != len(names):
        raise SchemaError("a column is named twice for the covariance matrix; name it once")
    used = schema.select(names)
    for column in used.columns:
        if not column.axis:
            raise SchemaError(
                f"column {column.name!r}: a covariance needs integer, real or date columns"
            )
    return used


def checked_means(schema: Schema, means: MeansSetting) -> dict[str, float] | None:
    """Public means of all columns, or None for private ones.

    Raises
    ------
    PlanError
        A word other than ``private``, or a mapping that misses a column, names a stranger or
        leaves the declared bounds.
    """
    if isinstance(means, str):
        if means != "private":
            raise PlanError(f"covariance: means = {means!r} is neither 'private' nor a table")
        return None
    strangers = sorted(set(means) - set(schema.names))
    lacking = sorted(set(schema.names) - set(means))
    if strangers or lacking:
        words = f"names {strangers[0]!r}" if strangers else f"lacks {lacking[0]!r}"
        raise PlanError(f"covariance: the table of public means {words}; give one mean a column")
    for column in schema.columns:
        low, high = column.bounds
        if not low <= means[column.name] <= high:
            raise PlanError(
                f"covariance: the public mean of {column.name!r} lies outside its declared bounds"
            )
    return {name: float(value) for name, value in means.items()}


def checked_widths(schema: Schema, half_widths: Mapping[str, float] | None) -> dict[str, float]:
    """Half-width of every column: the declared one, or a public and smaller one.

    Raises
    ------
    PlanError
        For a stranger, or a half-width that is no positive number.
    """
    given = dict(half_widths or {})
    strangers = sorted(set(given) - set(schema.names))
    if strangers:
        raise PlanError(f"covariance: half_widths names {strangers[0]!r}, which is not measured")
    widths = {}
    for column in schema.columns:
        low, high = column.bounds
        # A column of one declared value has width 0; any positive width maps it to 0.
        width = float(given.get(column.name, (high - low) / 2 or 1.0))
        if not (math.isfinite(width) and width > 0):
            raise PlanError(
                f"covariance: the half-width of {column.name!r} must be a finite number above 0"
            )
        widths[column.name] = width
    return widths


def count_frame(schema: Schema) -> MomentFrame:
    """What is counted: rows that miss none of the columns."""
    return MomentFrame(MomentFrame.from_bounds(schema, schema.names).scales, complete=True)


def count_is_public(schema: Schema, relation: Relation) -> bool:
    """Whether the number of such rows is: by relation and declarations, never by the rows."""
    return relation is Relation.REPLACE_ONE and not count_frame(schema).may_miss(schema)


def measure_rows(
    grant: MomentGrant, schema: Schema, rho: Fraction, expected_rows: int | None
) -> RowCount:
    """The number of complete rows: noisy for ``rho``, or exact and free where it is public.

    A noisy count is averaged with the publicly expected one, taken to be half of itself off, so
    that noise beyond all reason gives way to it; at least 1 in any case.
    """
    answer = grant.moments(MomentRequest(count_frame(schema), ((),)), rho)
    noisy = round(float(answer.values[0]))
    if answer.unit_sigma == 0:
        return RowCount(float(max(noisy, 1)), None, 0.0, answer.rho)
    sigma = float(answer.sigmas[0])
    value = float(noisy)
    if expected_rows:
        trust, doubt = sigma**-2, (expected_rows / 2) ** -2
        value = (trust * noisy + doubt * expected_rows) / (trust + doubt)
    return RowCount(max(value, 1.0), noisy, sigma, answer.rho)


def public_means(schema: Schema, means: Mapping[str, float]) -> Means:
    """Declared means: no noise, no price."""
    values = np.array([means[name] for name in sorted(schema.names)])
    zeros = np.zeros(len(values))
    return Means(values, zeros, zeros, True, Fraction(0))


def measure_means(grant: MomentGrant, schema: Schema, rows: RowCount, rho: Fraction) -> Means:
    """Noisy means of all columns about the middle of their bounds, cut to the bounds."""
    frame = replace(MomentFrame.from_bounds(schema, schema.names), whole_rows=True)
    answer = grant.moments(MomentRequest(frame, tuple((name,) for name in frame.columns)), rho)
    centres = np.array([scale.centre for _, scale in frame.scales])
    widths = np.array([scale.half_width for _, scale in frame.scales])
    bounds = np.array([schema[name].bounds for name in frame.columns])
    values: FloatArray = np.clip(
        centres + widths * answer.values / rows.value, bounds[:, 0], bounds[:, 1]
    )
    return Means(values, widths * answer.sigmas / rows.value, answer.values, False, answer.rho)


def scales_about(means: Means, widths: Mapping[str, float]) -> tuple[tuple[str, Scale], ...]:
    """Centre and half-width of each column, sorted by name."""
    names = sorted(widths)
    return tuple(
        (name, Scale(float(centre), widths[name]))
        for name, centre in zip(names, means.values.tolist(), strict=True)
    )
