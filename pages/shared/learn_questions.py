"""Guess first, then see: short questions with an answer of one sentence each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import streamlit as st

from core.lessons import Lesson, Stage, lesson, settling
from pages.shared.learn_controls import Choice, points
from pages.shared.network import label, plain

#: Budgets at which answers are worked out, whatever the student has set.
PLENTY, LITTLE, TENFOLD = Fraction(1), Fraction(1, 100_000), Fraction(1, 10_000)
LEAST = Fraction(1, 1_000_000)


@dataclass(frozen=True)
class Question:
    """A question, its options, which is right, and the answer, worked out when it is asked for."""

    key: str
    words: str
    options: Sequence[str]
    right: int
    answer: Callable[[], str]


def ask(questions: Sequence[Question]) -> None:
    """Options first; the answer once a guess is made and it is asked for."""
    count = len(questions)
    with st.expander(f"Guess first: {count} questions", icon=":material/quiz:"):
        for question in questions:
            guess = st.radio(
                question.words,
                range(len(question.options)),
                index=None,
                format_func=question.options.__getitem__,
                key=f"learn_guess_{question.key}",
                persist_state="session",
            )
            shown = st.toggle(
                "Show the answer",
                key=f"learn_answer_{question.key}",
                disabled=guess is None,
                persist_state="session",
            )
            if guess is None or not shown:
                continue
            if guess == question.right:
                st.success(f"**Right.** {question.answer()}", icon=":material/check_circle:")
            else:
                st.info(
                    f"**{plain(question.options[question.right])}.** {question.answer()}",
                    icon=":material/lightbulb:",
                )


def worlds(found: Lesson) -> None:
    """Questions on the three worlds."""
    stage, gaps = found.stage, found.true.gaps
    group = gaps.of(found.headline)
    assert group is not None

    def alike() -> str:
        return (
            f"{plain(gaps.outcome)} = {plain(gaps.best)} for {group.rate:.0%} of "
            f"{plain(group.group)} and {gaps.reference_rate or 0:.0%} of {plain(gaps.reference)}, "
            f"but the gap between people who are alike is {points(group.gap or 0.0)}, which is "
            "chance."
        )

    def back() -> str:
        dropped = lesson(stage, rho=PLENTY, structure="mst").released
        kept = lesson(stage, rho=PLENTY).released
        return (
            f"At ρ = 1 the model's information around the gates is {kept.model_bits or 0:.3f} "
            f"bits with the rule and {dropped.model_bits or 0:.3f} bits without it."
        )

    def chance() -> str:
        rows = lesson(stage, rho=PLENTY).released.rows
        return (
            f"Synthetic people show {rows.bits:.4f} bits, and shuffled ones, in whom only chance "
            f"is left, {rows.floor:.4f}; the model itself has 0."
        )

    ask(
        (
            Question(
                f"alike_{stage.name}",
                f"In the true world, do all groups of {label(stage.protected)} get "
                f"{label(gaps.outcome)} = {label(gaps.best)} equally often?",
                (
                    "Yes",
                    "No, though people who are alike are treated alike",
                    "No, and people who are alike are treated differently",
                ),
                1,
                alike,
            ),
            Question(
                f"back_{stage.name}",
                "The biased world is released without the rule. What becomes of the bias?",
                ("The noise washes it out", "It comes back in the release", "It is reversed"),
                1,
                back,
            ),
            Question(
                f"chance_{stage.name}",
                "Synthetic people, drawn from a release that kept the rule, show a little "
                "information around the gates. Is the rule broken?",
                ("Yes, it must be exactly zero", "No, chance alone does that"),
                1,
                chance,
            ),
        )
    )


def noise(choice: Choice) -> None:
    """Questions on the noise."""
    stage = choice.stage

    def settled() -> str:
        few, more = settling(stage, LITTLE), settling(stage, TENFOLD)
        return (
            f"From ρ = 0.00001 to 0.0001 the share of links as without noise rises from "
            f"{few.expected:.0%} to {more.expected:.0%} on average, and the number of links stays "
            "the same."
        )

    def promise() -> str:
        kept, dropped = settling(stage, LEAST), settling(stage, LEAST, "mst")
        return (
            f"Of {kept.draws} draws at ρ = 0.000001, {kept.broken:.0%} break it with the rule "
            f"and {dropped.broken:.0%} without."
        )

    ask(
        (
            Question(
                f"settled_{stage.name}",
                "The budget ρ is made ten times larger. What happens to the tree?",
                ("It gets more links", "It changes less from draw to draw", "Nothing"),
                1,
                settled,
            ),
            Question(
                f"promise_{stage.name}",
                "There is far too little budget, and the tree is nearly random. Can it break "
                "the rule?",
                ("Yes, with bad luck", "No, not in any draw"),
                1,
                promise,
            ),
        )
    )


def proxies(choice: Choice) -> None:
    """Questions on proxies."""
    plainly = Stage.of(choice.name)
    proxy, protected, outcome = (
        plain(name) for name in (plainly.proxy, plainly.protected, plainly.outcome)
    )

    def blind() -> str:
        found = lesson(Stage.of(choice.name, (), True), rho=PLENTY)
        way = next(way for way in found.ways if way.column == plainly.proxy)
        return (
            f"{proxy} takes away {way.tells:.0%} of the uncertainty about {protected}, and the "
            f"tree joins it with {outcome}: {way.linked_bits:.3f} bits around the gates."
        )

    def transfer() -> str:
        return (
            f"The proof is about the released world; among real people {proxy} still gives "
            f"{protected} away, and a model that uses it can tell them apart."
        )

    ask(
        (
            Question(
                f"blind_{choice.name}",
                f"{label(plainly.protected)} is left out of the table before it is released. "
                "Is the release fair now?",
                ("Yes, nobody can use what is not there", "No, another column takes its place"),
                1,
                blind,
            ),
            Question(
                f"transfer_{choice.name}",
                "The rule holds in the release. Is every model that is trained on it fair to "
                "real people?",
                ("Yes, that is proved", "Not necessarily"),
                1,
                transfer,
            ),
        )
    )
