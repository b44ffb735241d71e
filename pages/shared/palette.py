"""Role colours, shapes and letters, the same in every picture (both themes)."""

from __future__ import annotations

from dataclasses import dataclass

from core.roles import Role


@dataclass(frozen=True)
class Look:
    """How a role is shown: colours, shapes in plotly and vis.js, mark, Streamlit's colour name."""

    light: str
    dark: str
    symbol: str
    shape: str
    mark: str
    streamlit: str
    words: str

    def colour(self, theme: str) -> str:
        """Colour in the given theme (``light`` or ``dark``)."""
        return self.dark if theme == "dark" else self.light


LOOKS = {
    Role.PROTECTED: Look("#C64E11", "#D9731A", "diamond", "diamond", "◆", "orange", "protected"),
    Role.OUTCOME: Look("#0B66E4", "#6C86F0", "star", "star", "★", "blue", "outcome"),
    Role.ADMISSIBLE: Look("#12493A", "#5CEBAA", "square", "square", "■", "green", "admissible"),
    Role.INADMISSIBLE: Look("#6F7078", "#A9AAB2", "circle", "dot", "●", "gray", "inadmissible"),
    Role.IGNORE: Look("#6F7078", "#A9AAB2", "x-thin", "text", "–", "gray", "left out"),
}


@dataclass(frozen=True)
class Ink:
    """Neutral colours of a theme."""

    text: str
    soft: str
    line: str
    wall: str
    paper: str
    accent: str


#: The system's own font, as on the pages.
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

INK = {
    "light": Ink("#0F1219", "#5B6172", "#8A90A2", "#CDD1DD", "#FFFFFF", "#3D4FB8"),
    "dark": Ink("#ECEEF4", "#A5AABA", "#7E8496", "#383E52", "#12141B", "#8C9BFF"),
}


def ink(theme: str) -> Ink:
    """Neutral colours of ``light`` or ``dark``."""
    return INK["dark" if theme == "dark" else "light"]


def badge(role: Role, *, letter: bool = True) -> str:
    """Markdown of a role's mark (and letter) in its colour."""
    look = LOOKS[role]
    words = f" {role.value}" if letter else ""
    return f":{look.streamlit}[{look.mark}{words}]"
