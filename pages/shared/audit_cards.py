"""The scorecard: one card a number, with its verdict as a word and a mark, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from core.audit.figures import Figure, Topic
from core.audit.scorecard import Score, Verdict
from core.report.words import NONE, interval, number
from pages.shared.network import plain

#: Icon, colour name and word of each verdict.
LOOKS = {
    Verdict.GOOD: (":material/check_circle:", "green", "good"),
    Verdict.WATCH: (":material/visibility:", "orange", "look closer"),
    Verdict.POOR: (":material/error:", "red", "poor"),
    Verdict.UNKNOWN: (":material/help:", "gray", "no verdict"),
}
TOPICS = {
    Topic.FIDELITY: ("How faithful", ":material/fingerprint:"),
    Topic.FAIRNESS: ("How fair", ":material/balance:"),
    Topic.UTILITY: ("How useful", ":material/model_training:"),
}
#: Cards side by side.
ACROSS = 3


def summary(scores: Sequence[Score]) -> str:
    """How many numbers read how, in one line of Markdown."""
    parts = []
    for verdict, (icon, colour, word) in LOOKS.items():
        count = sum(score.verdict is verdict for score in scores)
        if count:
            parts.append(f":{colour}[{icon}] **{count}** {word}")
    return " · ".join(parts)


def board(scores: Sequence[Score], key: str) -> None:
    """All cards, by topic, in rows of three where there is room."""
    for topic, (title, icon) in TOPICS.items():
        chosen = [score for score in scores if score.topic is topic]
        if not chosen:
            continue
        st.markdown(f"**{icon} {title}**")
        with st.container(key=f"{key}_{topic.value}"):
            for start in range(0, len(chosen), ACROSS):
                row = chosen[start : start + ACROSS]
                for place, score in zip(st.columns(ACROSS), row, strict=False):
                    with place:
                        card(score)


def card(score: Score) -> None:
    """One number; interval and comparison are in its help."""
    figure = score.figure
    icon, colour, word = LOOKS[score.verdict]
    with st.container(border=True, height="stretch"):
        st.markdown(plain(figure.title), help=details(figure) or None)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"### {plain(number(figure.value, figure.unit))}", width="content")
            st.badge(word, icon=icon, color=colour)  # type: ignore[arg-type]
        st.caption(plain(score.why))


def details(figure: Figure) -> str:
    """Interval, comparison and caveat in one line of Markdown."""
    parts = []
    ends = interval(figure)
    if ends != NONE:
        parts.append(f"{figure.level:.0%} interval {ends}")
    if figure.baseline is not None and figure.baseline_words:
        compared = number(figure.baseline, figure.unit)
        parts.append(f"to compare: {compared} ({figure.baseline_words})")
    if figure.reason:
        parts.append(figure.reason)
    return ". ".join(plain(part[:1].upper() + part[1:]) for part in parts) + "." * bool(parts)


def figures(items: Iterable[Figure], alt: str) -> None:
    """A table of figures."""
    rows = list(items)
    table = {
        "what": [plain(figure.title) for figure in rows],
        "value": [plain(number(figure.value, figure.unit)) for figure in rows],
        "interval": [plain(interval(figure)) for figure in rows],
        "to compare": [
            NONE
            if figure.baseline is None
            else plain(f"{number(figure.baseline, figure.unit)} ({figure.baseline_words})")
            for figure in rows
        ],
        "to know": [plain(figure.reason) or NONE for figure in rows],
    }
    st.table(table, hide_index=True, alt=alt)


def both(made: Sequence[Figure], real: Sequence[Figure], alt: str) -> None:
    """The same figures in the synthetic rows and in the real table, side by side."""
    there = {figure.key: figure for figure in real}
    titles = {figure.key: figure for figure in (*real, *made)}
    here = {figure.key: figure for figure in made}
    keys = list(dict.fromkeys([*here, *there]))
    st.table(
        {
            "what": [plain(titles[key].title) for key in keys],
            "synthetic rows": [_short(here.get(key)) for key in keys],
            "real table": [_short(there.get(key)) for key in keys],
            "to know": [plain((there.get(key) or here[key]).reason) or NONE for key in keys],
        },
        hide_index=True,
        alt=alt,
    )


def _short(figure: Figure | None) -> str:
    if figure is None:
        return NONE
    ends = interval(figure)
    value = number(figure.value, figure.unit)
    return plain(value if ends == NONE else f"{value} ({ends})")
