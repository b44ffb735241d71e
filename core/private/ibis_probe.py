"""Whether an engine computes as this machine does: tried on public values before any charge.

Engines differ in how they compare texts (case, accents, blanks at the end) and may differ in the
last bit of a number.  Both are tried with the very expressions that will be asked of the rows, on
constants; what comes back says nothing about the table.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from core.errors import ReadingError
from core.moments import IntArray, MomentFrame, Scale
from core.private.coding import coded_column
from core.private.ibis_moments import grid_rows
from core.private.ibis_values import BLANKS, code_of, exact, label_texts
from core.private.moments import grid_rows as grid_rows_in_memory
from core.schema import LABELLED_KINDS, Column, Schema

#: Sends a query and brings back its columns.
Answer = Callable[[Any], dict[str, IntArray]]

#: Centres, half-widths and values whose quotients, roots and cuts end in every kind of bit.
_SCALES = (("a", Scale(0.1, 0.7)), ("b", Scale(-1e6 / 3, 12345.678)), ("c", Scale(1e-9, 3e-7)))
_POINTS = (
    (0.8, -333333.0, 2e-7),
    (-0.6, -320987.0, -1e-7),
    (0.3, -340000.1, 3.01e-7),
    (1e300, 1e300, -1e300),
    (0.1, -1e6 / 3, 1e-9),
    (0.45, -325000.25, 1.7e-7),
)
_CLIP = Fraction(5, 4)
_GRID = 1 << 12


def served_by(table: Any, schema: Schema, answer: Answer) -> bool:
    """Whether moments can be served; counts must be.

    Raises
    ------
    ReadingError
        Naming a text column that the engine compares otherwise than letter for letter.
    """
    one = table.limit(1)
    for column in schema.columns:
        if column.kind in LABELLED_KINDS and table[column.name].type().is_string():
            _check_texts(one, column, answer)
    numbers = any(column.kind not in LABELLED_KINDS for column in schema.columns)
    return not numbers or _same_arithmetic(one, answer)


def _check_texts(one: Any, column: Column, answer: Answer) -> None:
    import ibis
    import pandas as pd

    texts = probes(column)
    wanted, _ = coded_column(pd.Series(texts, dtype="str"), column, ".")
    # Never a value of the row: NULLIF of a value with itself is none; its rules of comparison stay.
    own = one[column.name]
    place = {
        f"p{index}": code_of(ibis.coalesce(own.nullif(own), ibis.literal(text)), column)
        for index, text in enumerate(texts)
    }
    found = answer(one.select(**place))
    if [int(found[name][0]) for name in place] != wanted.tolist():
        raise ReadingError(
            f"column {column.name!r}: the database does not compare its texts letter for letter; "
            "give the column a binary collation in a view, or export the table as a file"
        )


def probes(column: Column) -> list[str]:
    """Public texts that come close to the declared labels without being them, and these."""
    labels = [*column.categories[:1], "Straße"]
    texts: dict[str, None] = {}
    for label in dict.fromkeys(labels):
        for text in (
            label,
            label.swapcase(),
            f"{label}{BLANKS[1]}{BLANKS[-1]} ",
            f"{BLANKS[0]}{label}",
            f"{label}\u0301",
            f"{label}'\\",
        ):
            texts.setdefault(text)
    texts |= dict.fromkeys((" ", "\u200b"))
    return [*texts, *label_texts(column)[:4]]


def _same_arithmetic(one: Any, answer: Answer) -> bool:
    """Centring, scaling, cutting and the row clip, bit for bit."""
    import ibis

    names = [f"n{place}" for place in range(len(_SCALES))]
    points = [one.select(**dict(zip(names, map(exact, point), strict=True))) for point in _POINTS]
    numbers = {
        name: np.array(values)
        for (name, _), values in zip(_SCALES, zip(*_POINTS, strict=True), strict=True)
    }
    for frame in (MomentFrame(_SCALES), MomentFrame(_SCALES, _CLIP)):
        found = answer(grid_rows(ibis.union(*points), frame, _GRID))
        rows = zip(*(found[f"u{place}"].tolist() for place in range(len(_SCALES))), strict=True)
        (wanted,) = grid_rows_in_memory(numbers, frame, _GRID)
        # In no order: an engine may hand rows over as it likes.
        if sorted(rows) != sorted(tuple(row) for row in wanted.tolist()):
            return False
    return True
