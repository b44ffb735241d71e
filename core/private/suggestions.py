"""Declarations suggested from values: on request only, and flagged to the end.

What is suggested here was read off confidential rows.  It is for the steward's marked private
workspace; every column carries ``data_dependent=True``, which follows each release made with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from core.column import Column
from core.kinds import FALSE_WORDS, LABELLED_KINDS, TRUE_WORDS, Kind, Missing
from core.notes import grouped
from core.private.forms import Cells, cells_of, doubtful_labels, markers_among_labels
from core.private.raw import RawTable
from core.private.suggested_axes import (
    FEW_ROWS,
    MOST_CATEGORIES,
    PERSON_NAME,
    note_of_markers,
    suggested_date,
    suggested_number,
)
from core.private.values import parsed_number, texts_of
from core.schema import Schema

_LONG_TEXT = 40
#: What to do about an identifier that occurs in several rows.
PERSON_NOTE = (
    "an identifier whose values repeat: if a person has several rows, name this column as "
    "unit_person_column under [population], and say with unit_rows how many rows of a person count"
)


@dataclass(frozen=True)
class Suggestion:
    """A schema read off the values, and what its reader should look at."""

    schema: Schema
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Counts only; the schema repeats values."""
        return f"Suggestion({len(self.schema.columns)} columns, {len(self.notes)} notes)"


def suggest_schema(raw: RawTable) -> Suggestion:
    """Kinds, categories and bounds read off the values of a table.

    Every column is flagged as data dependent.  Identifiers and free text are excluded with a
    reason.  Nothing is decided that only a person can know: numbers such as 999 that may mean
    "missing" are mentioned in the notes.  Columns that share a note share its line.
    """
    columns: list[Column] = []
    notes: list[tuple[str, str]] = []
    for name in raw.names:
        cells = cells_of(raw.frame[name], raw.report.decimal)
        column, said = _suggested(name, cells)
        if not column.is_modelled:
            said = [*said, f"left out: {column.reason}"]
            if column.kind is Kind.IDENTIFIER and cells.repeat:
                said.append(PERSON_NOTE)
        else:
            column, more = _closed(column, cells)
            said = [*said, *more]
        columns.append(replace(column, data_dependent=True))
        notes += [(name, words) for words in said]
    return Suggestion(Schema(tuple(columns)), grouped(notes))


def _suggested(name: str, cells: Cells) -> tuple[Column, list[str]]:
    if not cells.values:
        return _empty(name)
    if isinstance(cells.series.dtype, pd.CategoricalDtype):
        return _dictionary(name, cells.series)
    if isinstance(cells.series.dtype, pd.BooleanDtype):
        return Column(name, Kind.BOOLEAN, categories=("False", "True")), []
    attempts: tuple[Callable[[str, Cells], tuple[Column, list[str]] | None], ...] = (
        _truth,
        suggested_date,
        suggested_number,
    )
    for attempt in attempts:
        found = attempt(name, cells)
        if found is not None:
            return found
    return _labels(name, cells)


def _closed(column: Column, cells: Cells) -> tuple[Column, list[str]]:
    """Two values and nothing else in the file: no cells for what does not occur.

    Such cells would get noise of their own, and synthetic rows with it.
    """
    labelled = column.kind in LABELLED_KINDS
    found = dict(zip(cells.texts, cells.counts.tolist(), strict=True))
    whole = len(found) == 2 == column.declared_size and cells.nothing_missing
    if not whole or column.missing_markers != ("",):
        return column, []
    if not labelled and column.kind is not Kind.INTEGER:
        return column, []
    common = max(sorted(found), key=lambda text: found[text])
    if labelled and common not in column.categories:
        return column, []
    settings: dict[str, Any] = {"missing": Missing.CONSTANT, "missing_constant": common}
    if labelled:
        settings["other_label"] = common
    words = (
        "two values and nothing missing: anything else would count as the more frequent one "
        "(missing_constant, other_label), so that neither gets a cell of its own"
    )
    return replace(column, **settings), [words]


def _empty(name: str) -> tuple[Column, list[str]]:
    label = Column(name, Kind.TEXT).missing_label
    column = Column(name, Kind.CATEGORICAL, other_label=label)
    return column, ["every cell is empty; it stays empty in the synthetic table"]


def _truth(name: str, cells: Cells) -> tuple[Column, list[str]] | None:
    """Two labels of which one says false and one true."""
    markers = markers_among_labels(cells)
    labels = sorted(set(cells.texts) - set(markers))
    if len(labels) != 2:
        return None
    false = [label for label in labels if label.casefold() in FALSE_WORDS]
    true = [label for label in labels if label.casefold() in TRUE_WORDS]
    if len(false) != 1 or len(true) != 1:
        return None
    column = Column(
        name, Kind.BOOLEAN, categories=(false[0], true[0]), missing_markers=("", *markers)
    )
    return column, note_of_markers(markers)


# -- labels --------------------------------------------------------------------------------


def _dictionary(name: str, series: pd.Series[Any]) -> tuple[Column, list[str]]:
    """A Parquet dictionary: its own values are the categories, its order the order."""
    labels = tuple(texts_of(value)[0] for value in series.cat.categories)
    named = tuple(label for label in labels if label.strip())
    if len(named) > MOST_CATEGORIES:
        reason = f"more than {MOST_CATEGORIES} different texts"
        return Column(name, Kind.TEXT, reason=reason), []
    kind = Kind.ORDINAL if series.cat.ordered else Kind.CATEGORICAL
    return Column(name, kind, categories=named), ["categories are those of the file's dictionary"]


def _labels(name: str, cells: Cells) -> tuple[Column, list[str]]:
    markers = markers_among_labels(cells)
    kept = [index for index, text in enumerate(cells.texts) if text not in markers]
    labels = sorted({cells.texts[index] for index in kept})
    rows = int(cells.counts[kept].sum())
    if not labels:
        column, notes = _empty(name)
        return replace(column, missing_markers=("", *markers)), [*note_of_markers(markers), *notes]
    if len(labels) == rows >= FEW_ROWS:
        return Column(name, Kind.IDENTIFIER, reason="a different text in every row"), []
    if len(labels) > MOST_CATEGORIES and PERSON_NAME.search(name):
        reason = "many different texts, and a name that says identifier"
        return Column(name, Kind.IDENTIFIER, reason=reason), []
    length = sum(len(cells.texts[i]) * int(cells.counts[i]) for i in kept) / rows
    if length > _LONG_TEXT and len(labels) > FEW_ROWS:
        return Column(name, Kind.TEXT, reason="long texts of many kinds"), []
    if len(labels) > MOST_CATEGORIES:
        reason = f"more than {MOST_CATEGORIES} different texts"
        return Column(name, Kind.TEXT, reason=reason), _almost(cells)
    notes = [*note_of_markers(markers), *_almost(cells)]
    doubtful = doubtful_labels(labels)
    if doubtful:
        listed = ", ".join(repr(label) for label in doubtful)
        notes.append(f"{listed} is kept as a category; if it means missing, make it a marker")
    notes.append("categories are those that occur; add public ones that do not")
    column = Column(
        name, Kind.CATEGORICAL, categories=tuple(labels), missing_markers=("", *markers)
    )
    return column, notes


def _almost(cells: Cells) -> list[str]:
    """Whether most cells are numbers, in a column that could not be read as numbers."""
    read = sum(
        count
        for text, count in zip(cells.texts, cells.counts.tolist(), strict=True)
        if parsed_number(text, cells.decimal) is not None and not re.match(r"[+-]?0\d", text)
    )
    if 4 * read < 3 * int(cells.counts.sum()):
        return []
    return [
        "most cells are numbers, but some are not; if it is a number, mend those cells, or name "
        "them as missing_markers"
    ]
