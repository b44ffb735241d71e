"""What a column's name and stored type tell of its kind, without a look at any value."""

from __future__ import annotations

import re

from core.kinds import Kind


def kind_for(name: str, kind: str) -> Kind | None:
    """What a column may hold, by its name and its stored type alone; None where they do not tell.

    >>> kind_for("income", "double"), kind_for("case_id", "int64"), kind_for("town", "text")
    (<Kind.REAL: 'real'>, <Kind.IDENTIFIER: 'identifier'>, None)
    """
    words = re.split(r"[^a-z0-9]+", name.casefold())
    stored = kind.lstrip("!").casefold()
    text = stored.startswith(("text", "string", "large_string", "utf8", "dictionary", "varchar"))
    number = re.fullmatch(r"u?int\d+", stored) is not None
    if (text or number) and words[-1] in {"id", "uuid", "guid", "email", "phone", "surname"}:
        return Kind.IDENTIFIER
    if text and words[-1] in {"comment", "comments", "notes", "remarks", "freetext"}:
        return Kind.TEXT
    if stored.startswith("bool"):
        return Kind.BOOLEAN
    if number:
        return Kind.INTEGER
    if stored.startswith(("float", "double", "halffloat", "half_float", "decimal")):
        return Kind.REAL
    if stored.startswith(("date", "timestamp")):
        return Kind.DATE
    return Kind.CATEGORICAL if text and stored != "text" else None
