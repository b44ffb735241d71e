"""Characters that hide: found, and shown by their number."""

from __future__ import annotations

import unicodedata

#: Marks that join letters in some scripts, and are therefore no trick.
_JOINERS = "\u200c\u200d"
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def hides(mark: str) -> bool:
    """Whether one character is a control, direction or zero-width one."""
    return mark not in _JOINERS and unicodedata.category(mark) in _INVISIBLE


def invisible(text: str) -> str | None:
    """The first control, direction or zero-width character of a text, or None.

    >>> print(invisible("ages 1 to 9"))
    None
    >>> invisible("a" + chr(0x202E) + "b") == chr(0x202E)
    True
    """
    return next((mark for mark in text if hides(mark)), None)


def shown(text: str) -> str:
    """A text whose hidden characters are written by their number, line ends included.

    >>> shown("a" + chr(27) + "[2J")
    'a(U+001B)[2J'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"(U+{ord(mark):04X})" if hides(mark) else mark for mark in text)


def visible(text: str) -> str:
    """A text in one line that cannot turn, hide or command anything where it is shown.

    >>> visible("a" + chr(0x202E) + "b" + chr(10) + "c")
    'a(U+202E)b c'
    """
    return shown(" ".join(text.split()))
