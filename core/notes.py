"""Notes about columns, one line for each kind of note instead of one for each column."""

from __future__ import annotations

from collections.abc import Iterable


def grouped(notes: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Lines for (column, words) pairs; columns that share their words share a line.

    >>> grouped([("a", "is empty"), ("b", "is long"), ("c", "is empty")])
    ("columns 'a', 'c': is empty", "column 'b': is long")
    """
    by_words: dict[str, list[str]] = {}
    for name, words in notes:
        names = by_words.setdefault(words, [])
        if name not in names:
            names.append(name)
    return tuple(
        f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}: {words}"
        for words, names in by_words.items()
    )
