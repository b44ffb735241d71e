"""Users' texts made harmless where they are shown."""

from __future__ import annotations

from core.visible import visible


def plain(text: str) -> str:
    """A user's text made harmless inside Markdown and HTML: one line, marks escaped.

    Control and direction characters are shown by their number, so that no name can hide one.
    """
    escapes = {mark: f"\\{mark}" for mark in "\\`*_[]|#!"}
    escapes |= {mark: f"&#{ord(mark)};" for mark in "<>&"}
    return "".join(escapes.get(mark, mark) for mark in visible(text))
