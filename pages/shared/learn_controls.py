"""What a student sets: made-up world, rule, budget and draw of the noise; view state only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import streamlit as st

from core import demo
from core.lessons import RHOS, Gaps, Lesson, Stage, lesson
from pages.shared.money import epsilon, format_rho
from pages.shared.network import label, plain

#: Where the slider starts: the tree has settled, and not quite.
START = "0.0003"
#: As on the other pages.
DELTA = 1e-9
MOST_SEEDS = 9_999
#: What is nearer to zero than this is zero, but for rounding of floating-point sums.
ROUNDING = 1e-9
RULES = {"privci": "Keep the rule", "mst": "Drop the rule"}


@dataclass(frozen=True)
class Choice:
    """The controls' values, and what follows from them."""

    name: str
    structure: str
    rho: Fraction
    seed: int

    @property
    def stage(self) -> Stage:
        """The demo as it declares itself."""
        return Stage.of(self.name)

    def lesson(self, stage: Stage | None = None) -> Lesson:
        """The three worlds of these settings."""
        return lesson(stage or self.stage, rho=self.rho, structure=self.structure, seed=self.seed)

    @property
    def keeps(self) -> bool:
        """Whether the release keeps the rule."""
        return self.structure != "mst"

    @property
    def words(self) -> str:
        """The settings in one line."""
        rule = "with the rule" if self.keeps else "without the rule"
        return f"{rule}, ρ = {format_rho(self.rho)}, draw {self.seed}"


def rho_words(text: str) -> str:
    """A budget with the same as epsilon."""
    rho = Fraction(text)
    return f"{format_rho(rho)} (ε {epsilon(rho, DELTA):.2g})"


def group(gaps: Gaps, name: str) -> str:
    """A group with its column, as Markdown."""
    return f"{plain(gaps.column)}: {plain(name)}"


def points(gap: float) -> str:
    """A difference of shares in percentage points, with a sign and no minus zero."""
    shown = round(100 * gap, 1)
    if not shown:
        return "0 points" if abs(gap) < ROUNDING else "0.0 points"
    return f"{'−' if shown < 0 else '+'}{abs(shown):.1f} points"


def bits(amount: float) -> str:
    """Information in bits; what is zero but for rounding is zero."""
    return "0 bits" if amount < ROUNDING else f"{amount:.4f} bits"


def gates(stage: Stage) -> str:
    """The admissible columns as a phrase of Markdown."""
    return " and ".join(plain(name) for name in stage.admissible)


def world() -> str:
    """The picker of the demo world."""
    chosen = st.segmented_control(
        "Made-up world",
        demo.names(),
        default=demo.names()[0],
        required=True,
        format_func=str.capitalize,
        key="learn_world",
        bind="query-params",
        help="Three stories with made-up people. In each one we wrote the equations ourselves, so "
        "that the truth is known.",
    )
    return chosen or demo.names()[0]


def _next() -> None:
    seed = int(st.session_state.get("learn_draw", 0))
    st.session_state["learn_draw"] = (seed + 1) % (MOST_SEEDS + 1)


def choose(name: str) -> Choice:
    """The bar of controls that all steps share."""
    stage = Stage.of(name)
    with st.container(
        border=True, horizontal=True, vertical_alignment="bottom", key="learn_controls"
    ):
        structure = st.segmented_control(
            "The rule",
            list(RULES),
            default="privci",
            required=True,
            format_func=RULES.__getitem__,
            key="learn_rule",
            bind="query-params",
            help=f"The rule: every path from {label(stage.protected)} to {label(stage.outcome)} "
            f"must pass through {label(' or '.join(stage.admissible))}. These are the gates in "
            "the wall: reasons that count as fair.",
        )
        rho = st.select_slider(
            "Budget of the release, ρ",
            [str(rho) for rho in RHOS],
            value=str(Fraction(START)),
            format_func=rho_words,
            key="learn_rho",
            persist_state="session",
            width=260,
            help="ρ (rho) and ε (epsilon) are two units of the same thing: how much a release may "
            "depend on any one person. A small budget means much noise and strong protection, a "
            f"large one little noise. ε is given at δ = {DELTA:.0e}.",
        )
        seed = st.number_input(
            "Draw of the noise",
            0,
            MOST_SEEDS,
            key="learn_draw",
            width=150,
            bind="query-params",
            help="The noise is drawn by lot. Every number is one draw: the same number always "
            "gives the same noise, so you can go back.",
        )
        st.button("Draw again", key="learn_next", icon=":material/casino:", on_click=_next)
    return Choice(name, structure or "privci", Fraction(rho), int(seed))
