"""The words and public constants that column declarations are made of."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a column holds."""

    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    DATE = "date"
    IDENTIFIER = "identifier"
    TEXT = "text"


class Missing(StrEnum):
    """What becomes of a missing value: a cell of its own, or a declared constant."""

    CATEGORY = "category"
    CONSTANT = "constant"


class OutOfDomain(StrEnum):
    """What becomes of a value outside the declared domain: nearest bound, or the other-cell."""

    CLIP = "clip"
    OTHER = "other"


NUMERIC_KINDS = (Kind.INTEGER, Kind.REAL)
LABELLED_KINDS = (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BOOLEAN)
EXCLUDED_KINDS = (Kind.IDENTIFIER, Kind.TEXT)
#: One cell per integer up to this many integers, equal-width bins beyond: a public constant.
INTEGER_CELLS = 32
#: Equal-width bins where a numeric column declares neither bins nor edges: a public constant.
DEFAULT_BINS = 16
#: More cells than this in one column would make every pair table unreasonable.
MAXIMUM_CELLS = 10_000
#: More cells than this in one table (the product over its columns) are refused.
MAXIMUM_TABLE_CELLS = 10**7
#: More decimals than this are beyond floating point.
MAXIMUM_DECIMALS = 15
#: Texts that say true and false where a boolean's own categories do not (case is ignored).
TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1", "on"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0", "off"})
