"""The released matrix as heat maps, round by round, and the rounds while they come in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import streamlit as st

from core.errors import EstimationError
from core.moments import IntArray
from core.pace.estimate import Estimate
from core.pace.release import CovarianceRelease, Round
from core.pace.view import (
    FOLLOWED,
    Replays,
    RoundView,
    cluster_order,
    entry_states,
    file_order,
    round_view,
    strongest,
)
from pages.shared import charts, heat
from pages.shared.jobs import Job, JobState
from pages.shared.network import plain
from pages.shared.player import player
from pages.shared.project import Project
from pages.shared.widgets import phone, theme

#: About how many pictures the incoming rounds are shown in, and a replay plays through.
LOOKS_AT_MOST = 24
HEIGHT, LOW = 560, 340
#: Widths of the picture and of the words beside it.
SIDES = (8, 5)
KINDS = ("correlation", "covariance", "precision", "partial correlation")
KIND_HELP = (
    "Correlation: from −1 to 1, whatever the units. Covariance: in the columns' own units. "
    "Precision: the covariance's inverse; an entry near 0 says that two columns have nothing to "
    "do with each other once all others are known. Partial correlation: the same as a "
    "correlation between −1 and 1."
)
LIKE, FILE, STRONG = "by likeness", "as in the file", "strongest"


@lru_cache(maxsize=8)
def replays_of(release: CovarianceRelease) -> Replays:
    """The matrices of a release, kept between reruns; releases are public."""
    return Replays(release)


@lru_cache(maxsize=8)
def _clusters(fitted: Estimate) -> IntArray:
    return cluster_order(fitted.correlation)


def sentence(view: RoundView) -> str:
    """What one round did, in one sentence of Markdown."""
    one, other = (plain(name) for name in view.pair)
    places = decimals(view.error)
    expected, measured, error = (
        f"{number:.{places}f}".replace("-", "−")
        for number in (view.expected, view.measured, view.error)
    )
    if view.variance:
        words = (
            f"**{one}** by itself: its variance was expected at {expected} of what it is now, "
            f"measured {measured} ± {error}"
        )
    else:
        words = (
            f"**{one} — {other}**: the matrix expected a correlation of {expected}, measured "
            f"was {measured} ± {error}"
        )
    return f"{words}; {_verdict(view)}"


def decimals(error: float) -> int:
    """Decimals that show an error with one digit that counts, with two if the first is a 1.

    >>> decimals(0.0049), decimals(0.014), decimals(0.3), decimals(7.0)
    (3, 3, 1, 1)
    """
    if not (math.isfinite(error) and error > 0):
        return 2
    power = math.floor(math.log10(error))
    return min(max((error < 2 * 10**power) - power, 1), 6)


def _verdict(view: RoundView) -> str:
    if not view.joined:
        return "too close to call, so it was **only kept** for later rounds."
    return "it **joined**: the matrix follows it from here on."


# -- while it is measured ----------------------------------------------------------------------


def live(job: Job, project: Project, names: Sequence[str]) -> bool:
    """Entries as they were measured, a few at a time; false once all of them are shown."""
    chosen = [detail for _, detail in job.events if isinstance(detail, Round)]
    steps = chosen[: project.drawn]
    if not chosen:
        st.caption("No single entry has been measured yet.")
        return False
    picture, said = st.columns(SIDES, gap="medium", vertical_alignment="center")
    with said:
        if steps:
            one, other = (plain(name) for name in steps[-1].chosen)
            st.markdown(
                f"Round {len(steps)}: **{one} — {other}** "
                f"{'joined' if steps[-1].edge else 'was measured and kept'}."
            )
        st.caption("● measured so far. □ this round's entry.")
    with picture:
        _live_picture(steps, names)
    project.drawn = min(project.drawn + max(1, len(chosen) // LOOKS_AT_MOST), len(chosen))
    return len(steps) < len(chosen) and job.state is not JobState.FAILED


def _live_picture(steps: Sequence[Round], names: Sequence[str]) -> None:
    place = {name: index for index, name in enumerate(names)}
    values = np.full((len(names), len(names)), np.nan)
    newest = None
    for step in steps:
        newest = place[step.chosen[0]], place[step.chosen[1]]
        values[newest] = values[newest[::-1]] = step.measured
    found = np.abs(values[np.isfinite(values)])
    square = heat.Square(
        names,
        values,
        values,
        float(found.max()) if found.size else 1.0,
        "measured",
        "half-width units",
        np.isfinite(values),
        newest,
    )
    st.plotly_chart(
        heat.draw(square, theme(), height=LOW, letters=_letters()),
        key="live_matrix",
        theme=None,
        config=charts.CHART,
        alt=f"Entries measured so far: {len(steps)}",
    )


def _letters() -> int:
    return heat.FEW_LETTERS if phone() else heat.LETTERS


# -- afterwards --------------------------------------------------------------------------------


def matrix(release: CovarianceRelease, key: str, facts: Sequence[str]) -> None:
    """The heat map with its controls; with rounds, a slider through them.

    ``facts`` are sentences that stand beside it.
    """
    with st.container(horizontal=True, gap="medium"):
        chosen = st.segmented_control(
            "Matrix",
            KINDS,
            default=KINDS[0],
            required=True,
            key=f"{key}_kind",
            help=KIND_HELP,
            wrap=True,
        )
        ordered = st.segmented_control(
            "Columns",
            (LIKE, FILE, STRONG) if release.size > heat.NAMED else (LIKE, FILE),
            default=LIKE,
            required=True,
            key=f"{key}_order",
            format_func=lambda name: f"{name} {heat.NAMED}" if name == STRONG else name,
            wrap=True,
            help="By likeness puts columns that go together side by side, so that groups show "
            "as blocks. The strongest are the columns with the largest correlations.",
        )
    steps = len(release.rounds)
    player(
        key,
        steps,
        "Round",
        lambda step: _step(release, step, _Look(key, chosen or KINDS[0], ordered or LIKE, facts)),
        stride=max(1, steps // LOOKS_AT_MOST),
    )


@dataclass(frozen=True)
class _Look:
    key: str
    kind: str
    order: str
    facts: Sequence[str]


def _step(release: CovarianceRelease, step: int, look: _Look) -> None:
    replays = replays_of(release)
    try:
        fitted = replays.at(step)
    except EstimationError as error:
        st.info(plain(str(error)))
        return
    steps = len(release.rounds)
    view = round_view(release.rounds[step - 1], fitted) if step else None
    order = _order(release, replays.last, look.order)
    square = square_of(fitted, look.kind, order, None if view is None else view.pair)
    many = len(square.names) > heat.NAMED
    narrow = phone()
    picture, words = st.columns(SIDES, gap="medium", vertical_alignment="center")
    with words:
        if view is not None:
            st.markdown(f"Round {step} of {steps}: {sentence(view)}")
        elif steps:
            st.markdown(_before(release))
        st.caption(_legend(square, look.kind, many))
        for fact in look.facts:
            st.markdown(fact)
    with picture:
        st.plotly_chart(
            heat.draw(square, theme(), height=LOW if narrow else HEIGHT, letters=_letters()),
            key=f"{look.key}_heat",
            theme=None,
            config=heat.ZOOM if many and not narrow else charts.CHART,
            alt=_alt(square, look.kind, step, steps),
        )


def _order(release: CovarianceRelease, last: Estimate, name: str) -> IntArray:
    if name == FILE:
        return file_order(release)
    order = _clusters(last)
    if name == LIKE:
        return order
    kept = strongest(last.correlation, heat.NAMED)
    return order[np.isin(order, kept)]


def _before(release: CovarianceRelease) -> str:
    if release.draws and release.draws[0].stage == "triangle":
        return (
            "Before the first round: every entry was measured once, roughly; the matrix follows "
            "those that stand out from the noise."
        )
    return (
        "Before the first round: every column's variance was measured, and no correlation is known."
    )


def square_of(
    fitted: Estimate, kind: str, order: IntArray, newest: tuple[str, str] | None = None
) -> heat.Square:
    """One matrix of an estimate, ready to draw."""
    numbers, colours, scale = _numbers(fitted, kind)
    grid = np.ix_(order, order)
    names = [fitted.columns[index] for index in order]
    place = {name: index for index, name in enumerate(names)}
    if colours is numbers:  # diagonals of ones tell nothing, and drown the rest
        colours = numbers = numbers.copy()
        np.fill_diagonal(colours, np.nan)
    off = np.abs(colours[~np.eye(len(colours), dtype=bool)])
    shown = colours[grid]
    return heat.Square(
        names,
        shown,
        shown if numbers is colours else numbers[grid],
        _bound(off, kind),
        kind,
        scale,
        entry_states(fitted)[grid] == FOLLOWED,
        _place(newest, place),
    )


def _place(newest: tuple[str, str] | None, place: Mapping[str, int]) -> tuple[int, int] | None:
    """Where the newest entry is drawn; nowhere, if one of its columns is not shown."""
    if newest is None or not all(name in place for name in newest):
        return None
    return place[newest[0]], place[newest[1]]


def _numbers(fitted: Estimate, kind: str) -> tuple[np.ndarray, np.ndarray, str]:
    if kind == "covariance":
        return fitted.covariance, fitted.scaled, "half-width units"
    if kind == "precision":
        return fitted.precision, fitted.scaled_precision, "half-width units"
    matrix = fitted.correlation if kind == "correlation" else fitted.partial_correlation
    return matrix, matrix, kind


def _bound(off: np.ndarray, kind: str) -> float:
    """Where the colours end: the largest entry off the diagonal, rounded up."""
    largest = float(off.max()) if off.size else 1.0
    if kind in {"correlation", "partial correlation"}:
        return min(max(np.ceil(largest * 10) / 10, 0.1), 1.0)
    return largest or 1.0


def _alt(square: heat.Square, kind: str, step: int, steps: int) -> str:
    words = f"Heat map of the {kind} matrix of {len(square.names)} columns"
    return f"{words} after round {step} of {steps}" if steps else words


def _legend(square: heat.Square, kind: str, many: bool) -> str:
    parts = []
    size = len(square.names)
    marked = int(np.triu(square.marked, 1).sum())
    pairs = size * (size - 1) // 2
    if heat.dotted(square.marked):
        parts.append(
            f"● above the diagonal: measured, and the matrix follows it ({marked:,} of {pairs:,} "
            "pairs); the rest is filled in from these."
        )
    elif marked == pairs and pairs:
        parts.append(f"Every one of the {pairs:,} pairs was measured.")
    elif marked:
        parts.append(f"The matrix follows {marked:,} measured pairs of {pairs:,}.")
    elif pairs:
        parts.append("No pair was measured well enough to follow it; the rest is filled in.")
    if square.newest is not None:
        parts.append("□ this round's entry.")
    if kind in {"covariance", "precision"}:
        parts.append(
            "Colours are in units of the half-widths, so that columns can be compared, and end "
            "at the largest entry off the diagonal; hover for the number in the columns' own units."
        )
    if many:
        parts.append("Hover for names; drag to zoom in, double-click to zoom out.")
    return " ".join(parts)
