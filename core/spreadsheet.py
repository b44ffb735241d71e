"""Texts that a spreadsheet would run as formulas: guarded by an apostrophe, and back.

After OWASP's advice on CSV injection (Application Security Verification Standard 1.2.10): a cell
that starts with one of ``= + - @``, a tab or a line end is taken for a formula.  Where the
spreadsheet separates by another sign than the comma, the same holds after a semicolon, tab or line
end within a text.
"""

from __future__ import annotations

import re

#: What starts a formula; the wide forms do where Japanese or Chinese is the spreadsheet's language.
STARTS = "=+\\-@\t\r\n＝＋－＠"
#: An apostrophe (or more) that guards, as a pattern that both ``re`` and RE2 know.
GUARDED = rf"(^|[;\t\r\n])'+[{STARTS}]"
_PLACE = re.compile(rf"(?:\A|(?<=[;\t\r\n]))(?='*[{STARTS}])")
_GUARD = re.compile(rf"(?:\A|(?<=[;\t\r\n]))'(?='*[{STARTS}])")
#: Numbers, and the ranges that bins are called by: nothing that runs.
_FIGURE = re.compile(r"[+-]?\d[\d.,]*([eE][+-]?\d+)?( to [+-]?\d[\d.,]*)?", re.ASCII)


def guarded(text: str) -> str:
    """A text that no spreadsheet runs; :func:`unguarded` gives it back letter for letter.

    >>> guarded("=1+1"), guarded("a;=1"), guarded("'=1"), guarded("'quoted'")
    ("'=1+1", "a;'=1", "''=1", "'quoted'")
    """
    return _PLACE.sub("'", text)


def unguarded(text: str) -> str:
    """Inverse of :func:`guarded`.

    >>> unguarded("'=1+1"), unguarded("a;'=1"), unguarded("'quoted'")
    ('=1+1', 'a;=1', "'quoted'")
    """
    return _GUARD.sub("", text)


def guarded_label(text: str) -> str:
    """The same for tables of figures, where a number or a bin is no formula.

    >>> guarded_label("-5 to 10"), guarded_label("-5"), guarded_label("-2+3+cmd|' /C calc'!A0")
    ('-5 to 10', '-5', "'-2+3+cmd|' /C calc'!A0")
    """
    return text if _FIGURE.fullmatch(text) else guarded(text)
