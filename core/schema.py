"""The columns of a table: public declarations, fixed before data are looked at.

A :class:`Schema` never touches rows.  It says which *cells* a column has; encoding rows into
cells happens in ``core.private``, decoding cells into values in ``core.decoding``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from core.axis import DATE_UNITS
from core.column import Column, require_columns
from core.errors import SchemaError
from core.kinds import (
    DEFAULT_BINS,
    EXCLUDED_KINDS,
    INTEGER_CELLS,
    LABELLED_KINDS,
    MAXIMUM_CELLS,
    NUMERIC_KINDS,
    Kind,
    Missing,
    OutOfDomain,
)

__all__ = [
    "DATE_UNITS",
    "DEFAULT_BINS",
    "EXCLUDED_KINDS",
    "INTEGER_CELLS",
    "LABELLED_KINDS",
    "MAXIMUM_CELLS",
    "NUMERIC_KINDS",
    "Column",
    "Kind",
    "Missing",
    "OutOfDomain",
    "Schema",
]


@dataclass(frozen=True)
class Schema:
    """The columns of a table in file order; validates on construction.

    >>> schema = Schema((Column("age", Kind.INTEGER, lower=18, upper=97, bins=4),))
    >>> schema["age"].cells
    ('18 to 37', '38 to 57', '58 to 77', '78 to 97', '(missing)')
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        """Refuse an empty schema and repeated names."""
        object.__setattr__(self, "columns", tuple(self.columns))
        if not all(isinstance(column, Column) for column in self.columns):
            raise SchemaError(
                "a schema is made of columns; use Schema.from_dict for plain settings"
            )
        names = [column.name for column in self.columns]
        if not names:
            raise SchemaError("a schema needs at least one column")
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise SchemaError(f"column {repeated[0]!r} is declared twice; rename or drop one")

    def __getitem__(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        require_columns((name,), self.names)
        raise AssertionError("unreachable: the name is not among the columns")

    def __contains__(self, name: object) -> bool:
        """Whether a column has that name."""
        return any(column.name == name for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names in file order."""
        return tuple(column.name for column in self.columns)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """Columns that can enter a release, in file order."""
        return tuple(column for column in self.columns if column.is_modelled)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Names of modelled columns whose declaration was suggested from values."""
        return tuple(column.name for column in self.modelled if column.data_dependent)

    def select(self, names: Sequence[str]) -> Schema:
        """The schema of these columns only, in schema order."""
        require_columns(names, self.names)
        wanted = set(names)
        return Schema(tuple(column for column in self.columns if column.name in wanted))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """Inverse of :meth:`to_dict`."""
        columns = plain.get("columns", ()) if isinstance(plain, Mapping) else None
        if not isinstance(columns, list | tuple):
            raise SchemaError("a schema is a table with a list called columns")
        unknown = sorted(str(key) for key in plain if key != "columns")
        if unknown:
            raise SchemaError(f"schema: unknown setting {unknown[0]!r}; known: columns")
        return cls(tuple(Column.from_dict(column) for column in columns))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, in hex."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
