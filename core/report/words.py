"""Numbers and users' texts as a report shows them."""

from __future__ import annotations

import html

from core.audit.figures import Figure
from core.audit.scorecard import Verdict
from core.visible import visible

#: Verdicts as a word and a shape, so that no colour is needed.
MARKS = {
    Verdict.GOOD: ("●", "good"),
    Verdict.WATCH: ("▲", "watch"),
    Verdict.POOR: ("■", "poor"),
    Verdict.UNKNOWN: ("○", "no verdict"),
}
NONE = "–"


def text(words: object) -> str:
    """A text made harmless inside HTML, in one line; characters that hide are shown by number.

    >>> text('<b> & "x"')
    '&lt;b&gt; &amp; &quot;x&quot;'
    """
    return html.escape(visible(str(words)), quote=True)


def number(value: float | None, unit: str) -> str:
    """A value with its unit and fixed decimals; shares as percentages.

    >>> number(0.1234, "share"), number(0.5, "AUC"), number(0.0012, "bits"), number(None, "bits")
    ('12.3 %', '0.500', '0.0012 bits', '–')
    """
    if value is None:
        return NONE
    if unit == "share" or unit.startswith("share "):
        return f"{100 * value:.1f} %"
    if unit in ("bits", "nats"):
        return f"{value:.4f} {unit}"
    return f"{value:.3f}"


def interval(figure: Figure) -> str:
    """Both ends of a figure's interval, or a dash."""
    if figure.value is None or figure.low is None or figure.high is None:
        return NONE
    return f"{number(figure.low, figure.unit)} to {number(figure.high, figure.unit)}"


def compared(figure: Figure) -> str:
    """What a figure is compared with, in words."""
    if figure.baseline is None:
        return NONE
    words = f" ({figure.baseline_words})" if figure.baseline_words else ""
    return f"{number(figure.baseline, figure.unit)}{words}"
