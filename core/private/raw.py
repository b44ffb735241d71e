"""A table as it was uploaded, how it was read, and the names of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from core.errors import ReadingError


@dataclass(frozen=True)
class Limits:
    """What is refused before a table is parsed.

    Attributes
    ----------
    bytes
        Size of the file.
    unpacked_bytes
        Size of a Parquet or Excel file once decompressed.
    columns, rows
        Size of the table.
    name_length
        Characters of one column name.
    """

    bytes: int = 500_000_000
    unpacked_bytes: int = 2_000_000_000
    columns: int = 500
    rows: int = 20_000_000
    name_length: int = 200


@dataclass(frozen=True)
class ReadingReport:
    """How a file was understood; for the steward's eyes, without any value of the table.

    Attributes
    ----------
    format
        ``csv``, ``parquet`` or ``excel``.
    delimiter, encoding, decimal
        As used; ``decimal`` also tells the coder how to read numbers written as text.
    sheet, sheets
        The Excel sheet that was read, and all there are.
    guessed
        Which of delimiter, encoding and decimal were guessed from the content.  A guess looks at
        rows; declare the same setting in the plan to fix it before the data are looked at.
    notes
        Plain sentences.
    """

    format: str
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class RawTable:
    """Confidential rows as uploaded.  It never leaves ``core.private`` but for its preview.

    Attributes
    ----------
    frame
        CSV: text columns, every cell exactly as written.  Parquet and Excel: typed columns.
    name
        File name, for messages.
    report
        How the file was understood.
    storage
        Arrow type name of each column of a typed file (empty for CSV), so that a Parquet download
        can have the types of the input.  Holds no categories.
    """

    frame: pd.DataFrame
    name: str
    report: ReadingReport
    storage: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Only public facts."""
        return f"RawTable({self.name!r}, {self.frame.shape[1]} columns, rows confidential)"

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(str(name) for name in self.frame.columns)


class HeaderError(ReadingError):
    """Column names are repeated or empty; ``proposal`` offers one usable name a column.

    Attributes
    ----------
    names
        Names as found in the file.
    proposal
        Names that would do, the same at every upload; pass them (edited or not) as ``rename``.
    """

    def __init__(self, message: str, names: tuple[str, ...], proposal: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names = names
        self.proposal = proposal


def proposed_names(names: Sequence[str]) -> tuple[str, ...]:
    """One usable name a column: repeated ones are numbered, empty ones named by position.

    >>> proposed_names(["age", "age", "", "city"])
    ('age', 'age_2', 'column_3', 'city')
    """
    taken = {name for name in names if name.strip()}
    seen: set[str] = set()
    proposal = []
    for position, name in enumerate(names, 1):
        base = name if name.strip() else f"column_{position}"
        chosen, number = base, 1
        while chosen in seen or (chosen != name and chosen in taken):
            number += 1
            chosen = f"{base}_{number}"
        seen.add(chosen)
        proposal.append(chosen)
    return tuple(proposal)


def settle_names(
    names: Sequence[str],
    rename: Mapping[str, str] | Sequence[str] | None,
    file: str,
    limits: Limits,
) -> tuple[str, ...]:
    """Final column names: as found, or as the person renamed them.

    Parameters
    ----------
    names
        As found in the file.
    rename
        All names in order, or a map from a name (for repeated and empty ones: the proposed name,
        such as ``age_2`` or ``column_3``) to the wanted one.

    Raises
    ------
    HeaderError
        If names are repeated or empty and not all of those were renamed: one message for all.
    ReadingError
        If there are too many columns, a name is too long, or ``rename`` does not fit the file.
    """
    found = tuple(names)
    if len(found) > limits.columns:
        raise ReadingError(
            f"{file}: {len(found)} columns are more than {limits.columns}; keep those you need"
        )
    proposal = proposed_names(found)
    final, settled = _renamed(found, proposal, rename, file)
    _refuse_long(final, file, limits)
    trouble = _trouble(final)
    if trouble:
        offer = proposed_names(final) if settled else proposal
        raise HeaderError(
            f"{file}: {', '.join(trouble)}; rename them in the file, or accept these names "
            f"(draft --accept-names, or [reading.rename] in the plan): {', '.join(offer)}",
            found,
            offer,
        )
    return final


def _refuse_long(names: tuple[str, ...], file: str, limits: Limits) -> None:
    for position, name in enumerate(names, 1):
        if len(name) > limits.name_length:
            raise ReadingError(
                f"{file}: the name of column {position} is longer than {limits.name_length} "
                "characters; is the first line really the header? Shorten it in the file, "
                "or give another name under [reading.rename] in the plan"
            )


def _renamed(
    found: tuple[str, ...],
    proposal: tuple[str, ...],
    rename: Mapping[str, str] | Sequence[str] | None,
    file: str,
) -> tuple[tuple[str, ...], bool]:
    """Names after renaming, and whether every repeated or empty one was settled by it."""
    if rename is None:
        return found, found == proposal
    if isinstance(rename, Mapping):
        unknown = sorted(str(key) for key in rename if key not in proposal)
        if unknown:
            raise ReadingError(
                f"{file}: rename ([reading.rename] in a plan) knows no column {unknown[0]!r}; the "
                "columns are "
                f"{', '.join(proposal)}"
            )
        open_ones = any(a != b and b not in rename for a, b in zip(found, proposal, strict=True))
        if open_ones:
            return found, False
        return tuple(str(rename.get(name, name)) for name in proposal), True
    if isinstance(rename, str) or len(rename) != len(found):
        raise ReadingError(
            f"{file}: rename must give one name for each of the {len(found)} columns"
        )
    return tuple(str(name) for name in rename), True


def _trouble(names: tuple[str, ...]) -> list[str]:
    """Repeated and empty names in words."""
    counts = Counter(name for name in names if name.strip())
    words = [
        f"column name {name!r} appears {'twice' if count == 2 else f'{count} times'}"
        for name, count in counts.items()
        if count > 1
    ]
    empty = [str(i) for i, name in enumerate(names, 1) if not name.strip()]
    if empty:
        words.append(f"column{'s' if len(empty) > 1 else ''} {', '.join(empty)} without a name")
    return words
