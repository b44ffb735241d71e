"""What other software prints about its noisy answers, as statistics with known noise.

Nothing here imports that software: the functions take mappings, such as the records of a data
frame (``frame.to_dicts()`` in Polars, ``frame.to_dict("records")`` in pandas), and return
:class:`NamedStatistic` values, whose :meth:`~NamedStatistic.row` fits
:func:`core.pumba.published.published_from_rows`.

Forms as seen in OpenDP 0.16 (``summarize``), Tumult Analytics (``Session._noise_info``),
PipelineDP (``output_noise_stddev``) and the Noisy Measurement Files of the 2020 Census.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import StatisticError
from core.pumba.refusals import NON_ADDITIVE
from core.pumba.scales import scale_of
from core.statistics import Family, NoiseLaw, NoisyStatistic

Record = Mapping[str, Any]


@dataclass(frozen=True)
class NamedStatistic:
    """A noisy statistic and what it is of.

    Attributes
    ----------
    statistic
        ``n`` (all rows), ``count`` (rows of a group) or ``sum``.
    column
        The summed column; None for counts.
    group
        (column, category) of the group that was counted or summed in; empty without groups.
    noisy
        Value, law and clamp.
    """

    statistic: str
    column: str | None
    group: tuple[tuple[str, str], ...]
    noisy: NoisyStatistic

    def row(self, analysis: str, kind: str) -> dict[str, Any]:
        """A row of the format of published statistics.

        Raises
        ------
        StatisticError
            The format has no place for it: more than two grouping columns, or a sum in groups of
            more than one.
        """
        if len(self.group) > (1 if self.column is not None else 2):
            raise StatisticError(
                f"{self.statistic} by {len(self.group)} columns: tables have one or two columns, "
                "and sums one grouping column; add the cells of the others up first"
            )
        law = self.noisy.law
        row: dict[str, Any] = {
            "analysis": analysis,
            "kind": kind,
            "statistic": self.statistic,
            "value": self.noisy.value,
            "family": law.family.value,
            "scale": law.scale,
            "step": law.lattice if law.family.discrete else None,
            "clamped_low": self.noisy.clamped[0],
            "clamped_high": self.noisy.clamped[1],
            "column": self.column,
        }
        if self.column is not None or kind == "difference":
            row["category"] = self.group[0][1] if self.group else None
            return row
        for suffix, (column, category) in zip(("", "_2"), self.group, strict=False):
            row[f"column{suffix}"], row[f"category{suffix}"] = column, category
        return row


# -- OpenDP --------------------------------------------------------------------------------------

_OPENDP_FAMILIES = {
    "integer laplace": Family.DISCRETE_LAPLACE,
    "integer gaussian": Family.DISCRETE_GAUSSIAN,
    "float laplace": Family.LAPLACE,
    "float gaussian": Family.GAUSSIAN,
}
_OPENDP_COUNTS = frozenset(("frame length", "length", "count"))


def from_opendp(
    summary: Iterable[Record],
    collected: Iterable[Record],
    *,
    group_by: Sequence[str] = (),
    signed: bool = False,
) -> tuple[NamedStatistic, ...]:
    """Statistics of an OpenDP query: the records of ``summarize()`` and of ``collect()``.

    Parameters
    ----------
    summary
        Records with column, aggregate, distribution and scale.
    collected
        The released rows.
    group_by
        Columns that the query grouped by.
    signed
        Counts were asked for as signed numbers; otherwise OpenDP cuts them off at 0.

    Raises
    ------
    StatisticError
        An aggregate is no count or sum (a mean, say), a count was thresholded, or a distribution
        or scale is unknown.
    """
    described = list(summary)
    means = _opendp_means(described)
    rows = list(collected)
    found = []
    for entry in described:
        name, aggregate = str(_need(entry, "column")), str(_need(entry, "aggregate"))
        if name in means:
            raise StatisticError(f"OpenDP's column {name!r}: {NON_ADDITIVE['mean']}")
        counting = aggregate.lower() in _OPENDP_COUNTS
        if not counting and aggregate.lower() != "sum":
            raise StatisticError(
                f"OpenDP's column {name!r}: the aggregate {aggregate!r} has no additive noise; "
                "counts and sums have"
            )
        if entry.get("threshold") is not None and not _is_nan(entry["threshold"]):
            raise StatisticError(
                f"OpenDP's column {name!r}: {NON_ADDITIVE['thresholded']} (name the groups in the "
                "query's margin, so that no threshold is needed)"
            )
        law = _opendp_law(entry, name)
        clamp = (0.0, None) if counting and not signed else (None, None)
        for row in rows:
            group = tuple((column, str(_need(row, column))) for column in group_by)
            kind = ("count" if group else "n") if counting else "sum"
            noisy = NoisyStatistic(_number(_need(row, name), name), law, clamp)
            found.append(NamedStatistic(kind, None if counting else name, group, noisy))
    return tuple(found)


def _opendp_means(described: Sequence[Record]) -> set[str]:
    """Columns released as a ratio: summarize lists a sum and a length of the same column."""
    aggregates: dict[str, set[str]] = {}
    for entry in described:
        name = str(_need(entry, "column"))
        aggregates.setdefault(name, set()).add(str(_need(entry, "aggregate")).lower())
    return {name for name, kinds in aggregates.items() if len(kinds) > 1}


def _opendp_law(entry: Record, name: str) -> NoiseLaw:
    if entry.get("distribution") is None:
        raise StatisticError(
            f"OpenDP's column {name!r} has no noise: leave it out here, and enter an exact n as "
            "family exact"
        )
    words = str(entry["distribution"])
    family = _OPENDP_FAMILIES.get(words.strip().lower())
    if family is None:
        raise StatisticError(
            f"OpenDP's column {name!r}: the distribution {words!r} is unknown; known: "
            f"{', '.join(_OPENDP_FAMILIES)}"
        )
    return NoiseLaw(family, _number(_need(entry, "scale"), f"{name}: scale"))


# -- Tumult Analytics ----------------------------------------------------------------------------


def from_tumult(
    noise_info: Iterable[Record],
    answers: Iterable[Record],
    value: str,
    *,
    statistic: str = "count",
    column: str | None = None,
    group_by: Sequence[str] = (),
) -> tuple[NamedStatistic, ...]:
    """Statistics of one Tumult Analytics query.

    Parameters
    ----------
    noise_info
        What ``session._noise_info(query, budget)`` holds: one record with noise_mechanism and
        noise_parameter (b of a Laplace or geometric law, **sigma squared** of a Gaussian one).
    answers
        The rows of ``session.evaluate``.
    value
        The column of ``answers`` that holds the noisy number.
    statistic
        ``count`` or ``sum``.
    column
        The summed column, for a sum.
    group_by
        Columns that the query grouped by.

    Raises
    ------
    StatisticError
        The query used several noises (an average does) or a mechanism without additive noise.
    """
    if statistic not in ("count", "sum") or (statistic == "sum") != (column is not None):
        raise StatisticError("statistic is count, or sum together with the summed column")
    described = list(noise_info)
    if len(described) != 1:
        raise StatisticError(
            f"the query used {len(described)} noisy numbers for one answer; "
            f"{NON_ADDITIVE['mean']}, from two queries"
        )
    law = _tumult_law(described[0])
    found = []
    for row in answers:
        group = tuple((name, str(_need(row, name))) for name in group_by)
        kind = "n" if statistic == "count" and not group else statistic
        noisy = NoisyStatistic(_number(_need(row, value), value), law)
        found.append(NamedStatistic(kind, column, group, noisy))
    return tuple(found)


def _tumult_law(described: Record) -> NoiseLaw:
    mechanism = str(_need(described, "noise_mechanism")).rsplit(".", maxsplit=1)[-1].strip("<> ")
    mechanism = mechanism.split(":", maxsplit=1)[0].upper()
    parameter = _number(_need(described, "noise_parameter"), "noise_parameter")
    if mechanism == "LAPLACE":
        return NoiseLaw(Family.LAPLACE, parameter)
    if mechanism == "GEOMETRIC":
        return NoiseLaw(Family.DISCRETE_LAPLACE, parameter)
    if mechanism in ("GAUSSIAN", "DISCRETE_GAUSSIAN"):
        return NoiseLaw(Family(mechanism.lower()), _root(parameter, "noise_parameter"))
    if mechanism == "EXPONENTIAL":
        raise StatisticError(f"Tumult's quantiles: {NON_ADDITIVE['quantile']}")
    raise StatisticError(f"Tumult's noise mechanism {mechanism!r} is unknown")


# -- PipelineDP ----------------------------------------------------------------------------------


def from_pipeline_dp(
    rows: Iterable[tuple[Any, Any]],
    metric: str,
    family: Family | str,
    *,
    partition: str | Sequence[str],
    column: str | None = None,
) -> tuple[NamedStatistic, ...]:
    """Statistics of PipelineDP with ``output_noise_stddev=True``.

    Parameters
    ----------
    rows
        (partition key, metrics) pairs; the metrics are a named tuple or mapping with, for the
        metric ``count``, the fields ``count`` and ``count_noise_stddev``.
    metric
        ``count``, ``privacy_id_count`` or ``sum``.
    family
        ``laplace`` or ``gaussian``, the noise kind of the parameters; PipelineDP does not repeat
        it in its output.
    partition
        Name of the column, or of the columns, that make the partition key.
    column
        The summed column, for the metric ``sum``.

    Raises
    ------
    StatisticError
        Another metric, or output without standard deviations.
    """
    if metric not in ("count", "privacy_id_count", "sum"):
        reason = NON_ADDITIVE.get(metric, "PipelineDP gives no standard deviation of its noise")
        raise StatisticError(f"PipelineDP's metric {metric!r}: {reason}")
    if (metric == "sum") != (column is not None):
        raise StatisticError("the metric sum, and only it, needs the summed column")
    names = (partition,) if isinstance(partition, str) else tuple(partition)
    known = _family(family)
    found = []
    for key, metrics in rows:
        plain = metrics._asdict() if hasattr(metrics, "_asdict") else metrics
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(names):
            raise StatisticError(f"a partition key has {len(keys)} parts, not {len(names)}")
        sd = _number(_need(plain, f"{metric}_noise_stddev"), f"{metric}_noise_stddev")
        value = _number(_need(plain, metric), metric)
        noisy = NoisyStatistic(value, NoiseLaw(known, scale_of(known, sd)))
        group = tuple(zip(names, map(str, keys), strict=True))
        found.append(NamedStatistic("sum" if column else "count", column, group, noisy))
    return tuple(found)


# -- Census noisy measurements -------------------------------------------------------------------


def from_census(
    rows: Iterable[Record],
    *,
    group_by: Sequence[str],
    value: str = "value",
    variance: str = "variance",
) -> tuple[NamedStatistic, ...]:
    """Counts of a Noisy Measurement File: discrete Gaussian noise with a stated variance.

    Parameters
    ----------
    rows
        One noisy count each, with its labels; negative counts are as they should be.
    group_by
        Label columns of the table (the levels of the query); empty for a total.
    value, variance
        Names of the fields that hold the count and the variance of its noise.

    Raises
    ------
    StatisticError
        A count is no whole number, so it is not a measurement but was processed afterwards.
    """
    found = []
    for row in rows:
        count = _number(_need(row, value), value)
        if count != int(count):
            raise StatisticError(f"the count {count:g} is no noisy measurement: it is not whole")
        sd = _root(_number(_need(row, variance), variance), variance)
        family = Family.DISCRETE_GAUSSIAN
        group = tuple((name, str(_need(row, name))) for name in group_by)
        noisy = NoisyStatistic(count, NoiseLaw(family, scale_of(family, sd)))
        found.append(NamedStatistic("count" if group else "n", None, group, noisy))
    return tuple(found)


def _family(family: Family | str) -> Family:
    try:
        return Family(str(family).lower())
    except ValueError:
        raise StatisticError(
            f"the noise family {str(family)!r} is unknown; known: {', '.join(Family)}"
        ) from None


def _need(record: Record, name: str) -> Any:
    if name not in record or record[name] is None:
        raise StatisticError(f"the field {name!r} is missing; there are: {', '.join(record)}")
    return record[name]


def _number(cell: Any, name: str) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        raise StatisticError(f"the field {name!r} must hold a number") from None
    if not math.isfinite(number):
        raise StatisticError(f"the field {name!r} must hold a finite number, not {number}")
    return number


def _root(variance: float, name: str) -> float:
    if variance <= 0:
        raise StatisticError(f"the field {name!r} must be above 0; it is the variance of the noise")
    return math.sqrt(variance)


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)
