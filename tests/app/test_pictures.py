"""Pictures: only public roles and released figures, escaped, and offline."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest

from core.privci.constraint import ConstraintFilter
from core.releases import (
    NoisyMarginal,
    Provenance,
    Recoding,
    Relation,
    SelectionStep,
    TreeRelease,
    Unit,
)
from core.roles import Roles
from core.schema import Column, Kind, Schema
from pages.shared import network
from pages.shared.explorer import POLICY, standalone
from pages.shared.palette import INK, LOOKS
from pages.shared.strength import strengths

NASTY = 'x</script><img src=x onerror="alert(1)">'


class Tags(HTMLParser):
    """Names of all elements, as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


@pytest.fixture
def release() -> TreeRelease:
    names = ("sex", NASTY, "degree", "hired")
    roles = Roles({"sex": "S", "degree": "A", "hired": "O"})
    schema = Schema(tuple(Column(n, Kind.CATEGORICAL, categories=("a", "b")) for n in names))
    rows = ConstraintFilter(names, roles.constraints)
    before = rows.forbidden()
    steps = []
    for index, edge in enumerate((("sex", NASTY), ("degree", "sex"), ("degree", "hired"))):
        count = len(rows.candidates())
        forbidden = rows.join(*edge)
        steps.append(
            SelectionStep(index, tuple(sorted(edge)), count, rows.components, tuple(forbidden))
        )
    rho = Fraction(1)
    provenance = Provenance(
        "tree", "r1", "people", rho, rho, Relation.ADD_REMOVE, Unit(), 1e-9, schema.digest,
        "noise", False,
    )  # fmt: skip
    two_way = tuple(
        NoisyMarginal(step.chosen, np.array([[50, -3], [1, 40 + step.index]]), 1.0, rho)
        for step in steps
    )
    third = Fraction(1, 3)
    return TreeRelease(
        provenance, "privci", schema, roles, (third, third, third), before, tuple(steps),
        (), Recoding(), two_way,
    )  # fmt: skip


def test_names_are_escaped_in_the_chart(release: TreeRelease) -> None:
    figure = network.draw(release.schema.names, release.roles, release.edges)
    assert "<img" not in figure.to_json().replace("\\u003c", "<")


def test_widths_follow_the_noisy_strength(release: TreeRelease) -> None:
    strong = strengths(release)
    figure = network.draw(release.schema.names, release.roles, release.edges, strengths=strong)
    widths = [trace.line.width for trace in figure.data if trace.mode == "lines"]
    order = [strong[edge] for edge in release.edges]
    assert len(widths) == len(order)
    widths[-1] -= 1  # the newest edge is drawn wider by one
    assert sorted(range(3), key=widths.__getitem__) == sorted(range(3), key=order.__getitem__)


def test_strength_is_mutual_information_of_the_clipped_table(release: TreeRelease) -> None:
    joint = np.array([[50, 0], [1, 40]]) / 91
    outer = np.outer(joint.sum(1), joint.sum(0))
    expected = sum(
        joint[i, j] * np.log2(joint[i, j] / outer[i, j])
        for i in range(2)
        for j in range(2)
        if joint[i, j] > 0
    )
    assert strengths(release)[release.edges[0]] == pytest.approx(expected)


def test_the_standalone_picture_is_offline_and_escaped(release: TreeRelease) -> None:
    text = standalone(release, "Tree of <people>").decode()
    loads = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)\s*=[^>]*>", text)
    assert loads == []
    assert "jsdelivr" not in text
    assert "cdnjs" not in text
    assert f'content="{POLICY}"' in text
    assert "<img src=x" not in text
    assert "Tree of &lt;people&gt;" in text
    tags = Tags()
    tags.feed(text)
    assert "img" not in tags.found
    assert "script" in tags.found
    assert 'type="range"' in text


def test_simulated_pictures_say_so(release: TreeRelease) -> None:
    from dataclasses import replace

    simulated = replace(release, provenance=replace(release.provenance, simulated=True))
    assert b"SIMULATED, NOT PRIVATE" in standalone(simulated)
    assert b"SIMULATED" not in standalone(release)


def test_a_step_is_told_with_what_it_forbade(release: TreeRelease) -> None:
    step = release.steps[0]
    assert step.forbidden, "joining sex with the neutral column forbids that one and hired"
    words = network.sentence(step)
    assert "1 pair became forbidden" in words
    assert "<img" not in words.replace("\\<", "")


def test_forbidden_pairs_are_dashed_and_labelled(release: TreeRelease) -> None:
    figure = network.draw(release.schema.names, release.roles, (), forbidden=release.forbidden)
    assert any(trace.mode == "lines" and trace.line.dash == "dash" for trace in figure.data)
    assert any("forbidden: 1 pair" in note.text for note in figure.layout.annotations)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_role_colours_stand_out_from_the_paper(theme: str) -> None:
    paper = luminance(INK[theme].paper)
    for look in LOOKS.values():
        colour = luminance(look.colour(theme))
        ratio = (max(paper, colour) + 0.05) / (min(paper, colour) + 0.05)
        assert ratio >= 4.6, (look.words, theme, ratio)


def test_every_role_has_its_own_shape() -> None:
    shapes = [look.symbol for look in LOOKS.values()]
    assert len(set(shapes)) == len(shapes)


def test_plain_leaves_no_markdown() -> None:
    assert network.plain("a*b_c[x](y) :red[z] `q` $k$ <b>") == (
        r"a\*b\_c\[x\](y) \:red\[z\] \`q\` \$k\$ \<b\>"
    )
