"""Small helps for sentences: notes of columns in one line, and names that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Comparing texts takes time that grows with the product of their lengths.
_COMPARED = 200


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


def close_matches(name: str, known: Sequence[str]) -> list[str]:
    """The known name that may have been meant, if any; long texts are no slips of the pen.

    >>> close_matches("catgories", ["kind", "categories"])
    ['categories']
    """
    import difflib

    short = [other for other in known if len(other) <= _COMPARED]
    return difflib.get_close_matches(name, short, n=1) if len(name) <= _COMPARED else []
