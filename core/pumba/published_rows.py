"""Rows of published noisy statistics: fields, numbers and noise laws, checked one by one."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from core.errors import StatisticError
from core.notes import close_matches
from core.pumba.refusals import NON_ADDITIVE
from core.pumba.scales import scale_of
from core.statistics import Family, NoiseLaw, NoisyStatistic

KINDS = ("table", "histogram", "mean", "difference", "regression", "correlation")
STATISTICS = ("n", "count", "sum", "sum_squares", "sum_product", "sum_fourth", "moment")
EXACT = "exact"
ROLES = ("outcome", "predictor")
#: Treatments after the noise that leave the law of the noise known.
_HARMLESS = ("", "none", "weighted")
_FAMILIES = (*(family.value for family in Family), EXACT)
#: Other words for the same things, as other software writes them.
_MEANT = {
    "kind": {"proportion": "table", "proportions": "table", "counts": "table"},
    "statistic": {"total": "n", "rows": "n", "sum_of_squares": "sum_squares"},
    "family": {
        "normal": "gaussian",
        "discrete_normal": "discrete_gaussian",
        "geometric": "discrete_laplace",
        "integer_laplace": "discrete_laplace",
        "integer_gaussian": "discrete_gaussian",
        "float_laplace": "laplace",
        "float_gaussian": "gaussian",
    },
}
_HEADERS = {
    "variable": "column",
    "variable_2": "column_2",
    "b": "scale",
    "sigma": "scale",
    "noise": "family",
    "distribution": "family",
    "stddev": "sd",
    "std": "sd",
    "min": "lower",
    "max": "upper",
    "title": "analysis",
}
#: A value further outside of what is possible than this many standard deviations is an error.
IMPOSSIBLE = 40.0


@dataclass(frozen=True)
class PublishedRow:
    """One published statistic; empty fields are None.  ``docs/published-statistics.md``."""

    where: str
    analysis: str
    kind: str
    statistic: str
    column: str | None = None
    category: str | None = None
    column_2: str | None = None
    category_2: str | None = None
    power: int | None = None
    power_2: int | None = None
    value: float = math.nan
    family: str = ""
    scale: float | None = None
    sd: float | None = None
    step: float | None = None
    lower: float | None = None
    upper: float | None = None
    clamped_low: float | None = None
    clamped_high: float | None = None
    role: str | None = None
    processing: str | None = None
    release: str | None = None

    def fault(self, field: str, message: str) -> StatisticError:
        """The error of this row, naming line and field."""
        return StatisticError(f"{self.where}, {field}: {message}")

    @property
    def exact(self) -> bool:
        """Whether the value carries no noise."""
        return self.family == EXACT

    @cached_property
    def noisy(self) -> NoisyStatistic:
        """Value, noise law and clamp."""
        family = Family(self.family)
        scale = self.scale if self.sd is None else scale_of(family, self.sd, self.step or 1.0)
        if scale is None:  # checked when the row was read
            raise self.fault("scale", "a scale is needed")
        try:
            return NoisyStatistic(
                self.value,
                NoiseLaw(family, scale, self.step or 1.0),
                (self.clamped_low, self.clamped_high),
            )
        except StatisticError as error:
            raise self.fault("value", str(error)) from error

    def variable(self) -> str | None:
        """Name of the (first) variable; an indicator is named column=category."""
        return _variable(self.column, self.category)

    def variable_2(self) -> str | None:
        """Name of the second variable."""
        return _variable(self.column_2, self.category_2)

    def require(self, *names: str) -> None:
        """Refuse empty fields that this statistic needs.

        Raises
        ------
        StatisticError
            Naming line and field.
        """
        for name in names:
            if getattr(self, name) is None:
                raise self.fault(name, f"{self.statistic} needs this field; it is empty")

    def leave_empty(self, *names: str) -> None:
        """Refuse fields that mean nothing here, because something else may have been meant."""
        for name in names:
            if getattr(self, name) is not None:
                raise self.fault(name, f"{self.statistic} has no such field; leave it empty")

    def check_range(self, low: float, high: float, what: str) -> None:
        """Refuse a value that noise of the stated scale cannot have carried so far away."""
        outside = max(low - self.value, self.value - high, 0.0)
        if outside > IMPOSSIBLE * self.noisy.law.sd:
            raise self.fault(
                "value",
                f"lies {outside / self.noisy.law.sd:,.0f} noise standard deviations outside of "
                f"what {what} allows; check units, bounds and scale",
            )


#: Numbers whose squares, fourth powers and ratios floating point can still hold.
MOST, LEAST = 1e70, 1e-50
_LARGEST = {"lower": 2.0**53, "upper": 2.0**53}
FIELDS = tuple(item.name for item in fields(PublishedRow) if item.name != "where")
_NUMBERS = frozenset(
    ("value", "scale", "sd", "step", "lower", "upper", "clamped_low", "clamped_high")
)
_WHOLE = frozenset(("power", "power_2"))


def _variable(column: str | None, category: str | None) -> str | None:
    return column if column is None or category is None else f"{column}={category}"


def field_name(header: str, file: str) -> str:
    """A header's field, by its own name or another word for it.

    Raises
    ------
    StatisticError
        For an unknown one, with what may have been meant.
    """
    name = header.strip().lower().replace(" ", "_").replace("-", "_")
    name = _HEADERS.get(name, name)
    if name not in FIELDS:
        close = close_matches(name, FIELDS)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(FIELDS)}"
        raise StatisticError(f"{file}: the field {header.strip()!r} is unknown{hint}")
    return name


def read_row(plain: Mapping[str, Any], where: str, above: PublishedRow | None) -> PublishedRow:
    """One row from texts or numbers; an empty analysis or kind repeats the row above.

    Raises
    ------
    StatisticError
        Naming line and field.
    """
    given: dict[str, Any] = {}
    for name, cell in plain.items():
        found = _cell(name, cell, where)
        if found is not None:
            given[name] = found
    if above is not None:
        given.setdefault("analysis", above.analysis)
        if given["analysis"] == above.analysis:
            given.setdefault("kind", above.kind)
    for name, known in (("analysis", None), ("kind", KINDS), ("statistic", STATISTICS)):
        given[name] = _word(given.get(name), name, known, where)
    given["family"] = _word(given.get("family"), "family", _FAMILIES, where)
    if "value" not in given:
        raise StatisticError(f"{where}, value: a released value is needed; the field is empty")
    if "role" in given:
        given["role"] = _word(given["role"], "role", ROLES, where)
    row = PublishedRow(where=where, **given)
    _check_processing(row)
    _check_law(row)
    _check_bounds(row)
    return row


def _cell(name: str, cell: Any, where: str) -> Any:
    """A field's content, None where it is empty (blank text, None, and NaN of a data frame)."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if name not in _NUMBERS | _WHOLE:
        return _text(name, cell, where)
    if isinstance(cell, str) and not cell.strip():
        return None
    if isinstance(cell, bool):
        raise StatisticError(f"{where}, {name}: a number is needed, not true or false")
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        raise StatisticError(
            f"{where}, {name}: {str(cell)[:30]!r} is no number; write it like 1234.5, without "
            "thousands separators"
        ) from None
    if not math.isfinite(number):
        raise StatisticError(f"{where}, {name}: a finite number is needed, not {number}")
    if abs(number) > _LARGEST.get(name, MOST):
        raise StatisticError(f"{where}, {name}: {number:g} is too large for exact arithmetic")
    if name in ("scale", "sd", "step") and 0 < number < LEAST:
        raise StatisticError(f"{where}, {name}: {number:g} is too small for exact arithmetic")
    if name in _WHOLE:
        if number != int(number) or not 0 <= number <= 4:
            raise StatisticError(f"{where}, {name}: a power is a whole number from 0 to 4")
        return int(number)
    return number


def _text(name: str, cell: Any, where: str) -> str | None:
    """A label; numbers from a data frame lose a needless .0."""
    if isinstance(cell, Mapping | list | tuple):
        raise StatisticError(f"{where}, {name}: a text is needed, not a list or an object")
    whole = isinstance(cell, float) and cell.is_integer()
    text = str(int(cell) if whole else cell).strip()
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise StatisticError(f"{where}, {name}: holds a line break or another control character")
    return text or None


def _word(cell: Any, name: str, known: tuple[str, ...] | None, where: str) -> str:
    if cell is None:
        raise StatisticError(f"{where}, {name}: this field is needed; it is empty")
    if known is None:
        return str(cell)
    word = str(cell).lower().replace(" ", "_").replace("-", "_")
    word = _MEANT.get(name, {}).get(word, word)
    if name == "statistic" and word in NON_ADDITIVE:
        raise StatisticError(f"{where}, statistic: {NON_ADDITIVE[word]}")
    if word not in known:
        close = close_matches(word, known)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise StatisticError(
            f"{where}, {name}: {str(cell)[:40]!r} is unknown; {hint}known: {', '.join(known)}"
        )
    return word


def _check_processing(row: PublishedRow) -> None:
    treatment = (row.processing or "").lower().replace(" ", "_")
    if treatment in NON_ADDITIVE:
        raise row.fault("processing", NON_ADDITIVE[treatment])
    if treatment == "clamped":
        raise row.fault(
            "processing", "say where it was clamped, in clamped_low and clamped_high, instead"
        )
    if treatment not in _HARMLESS:
        raise row.fault(
            "processing",
            f"{row.processing!r} is unknown; use none or weighted, or, to learn why it cannot be "
            "used, adjusted, rounded or thresholded",
        )


def _check_law(row: PublishedRow) -> None:
    if row.exact:
        if row.statistic != "n":
            raise row.fault("family", "only n may be exact; other values need the law of noise")
        row.leave_empty("scale", "sd", "step", "clamped_low", "clamped_high")
        if row.value != int(row.value) or row.value < 1:
            raise row.fault("value", "an exact n is a whole number of at least 1")
        return
    if (row.scale is None) == (row.sd is None):
        raise row.fault(
            "scale",
            "give exactly one of scale (Laplace's b, or sigma) and sd (standard deviation)",
        )
    for name in ("scale", "sd", "step"):
        number = getattr(row, name)
        if number is not None and number <= 0:
            raise row.fault(name, f"must be above 0, not {number:g}")
    if Family(row.family).discrete:
        steps = row.value / (row.step or 1.0)
        if abs(steps - round(steps)) > 1e-6 * max(1.0, abs(steps) * 1e-6):
            raise row.fault(
                "value",
                "discrete noise gives whole numbers (multiples of step); use a continuous family, "
                "give the step, or enter the value as it was before rounding or scaling",
            )
    elif row.step is not None:
        raise row.fault("step", "only discrete noise has a step; leave it empty")
    if row.statistic in ("n", "count"):
        if max(abs(row.value), row.scale or 0.0, row.sd or 0.0) > 2.0**53:
            raise row.fault("value", "a count and its noise are at most 2**53")
        row.check_range(0.0, math.inf, "a count")
    _ = row.noisy


def _check_bounds(row: PublishedRow) -> None:
    if (row.lower is None) != (row.upper is None):
        missing = "lower" if row.lower is None else "upper"
        raise row.fault(missing, "bounds come in pairs; this one is empty")
    if row.lower is not None and row.upper is not None and not row.lower < row.upper:
        raise row.fault("upper", f"must lie above lower ({row.lower:g}), not at {row.upper:g}")


def weighted(rows: Iterable[PublishedRow]) -> bool:
    """Whether any row says that it sums survey weights."""
    return any((row.processing or "").lower() == "weighted" for row in rows)


def total_of(rows: Sequence[PublishedRow], label: str) -> int | NoisyStatistic | None:
    """The row called n, exact or noisy; None without one."""
    found = [row for row in rows if row.statistic == "n"]
    if len(found) > 1:
        raise found[1].fault("statistic", f"n was given before ({found[0].where}); keep one")
    for row in found:
        row.leave_empty("power", "power_2", "column_2", "category_2")
        return int(row.value) if row.exact else row.noisy
    return None


def only(rows: Sequence[PublishedRow], kind: str, known: tuple[str, ...]) -> None:
    """Refuse statistics that this kind of analysis does not use."""
    for row in rows:
        if row.statistic not in known:
            raise row.fault("statistic", f"a {kind} uses {', '.join(known)}, not {row.statistic}")


def refuse_repetition(row: PublishedRow, before: PublishedRow | None) -> None:
    """The same statistic twice under one release."""
    if before is None:
        return
    same = before.value == row.value
    raise row.fault(
        "statistic",
        f"this statistic was entered before ({before.where}); "
        + (
            "the same release must count once, so remove one of the rows"
            if same
            else "if both were measured with noise of their own, give them different names in "
            "the field release; otherwise keep one"
        ),
    )


def bounds_of(name: str, rows: Sequence[PublishedRow], label: str) -> tuple[float, float]:
    """A column's bounds from whichever of its rows give them.

    Raises
    ------
    StatisticError
        No row does, or two disagree.
    """
    found: PublishedRow | None = None
    for row in rows:
        if row.column != name or row.lower is None:
            continue
        if found is not None and (row.lower, row.upper) != (found.lower, found.upper):
            raise row.fault("lower", f"{name!r} has other bounds in {found.where}; keep one pair")
        found = found or row
    if found is None or found.lower is None or found.upper is None:
        raise StatisticError(
            f"{label}: column {name!r} needs lower and upper, the bounds to which its values were "
            "clipped before they were summed"
        )
    return found.lower, found.upper
