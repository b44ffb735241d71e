"""The report as a file: what it shows, what it must not, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from core.audit.figures import Figure
from core.audit.room import audit_released
from core.errors import PlanError
from core.private.table import CodedTable
from core.privci.certificate import certificate
from core.privci.sample import synthesize
from core.privci.select import release_tree
from core.releases import Provenance
from core.report.page import check_target, released_report, write_report
from core.report.picture import tree_picture
from core.report.words import number, text
from core.roles import Role, Roles
from core.schema import Schema
from core.simulation import simulated_vault
from tests.core.audit import scenes
from tests.core.audit.made import labelled

VOID = {"meta", "br", "line", "rect", "path"}
STAMP = "SIMULATED_NOT_PRIVATE_"


class Reader(HTMLParser):
    """Checks that tags close in order, and keeps tags, attributes and text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def released_page():
    return released_report(scenes.released()).content.decode()


def test_a_report_is_one_well_formed_file_that_fetches_and_runs_nothing():
    page = released_page()
    found = Reader(page)
    assert page.startswith("<!DOCTYPE html>")
    for tag in ("script", "link", "img", "iframe", "form", "object", "embed", "base", "a"):
        assert tag not in found.tags
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", page)
    (policy,) = [value for tag, _, value in found.attributes if "default-src" in value]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert ("html", "lang", "en") in found.attributes
    assert found.tags.count("h1") == 1
    assert found.tags.count("table") == found.tags.count("caption") > 3


def test_every_score_is_there_with_its_verdict_and_its_why():
    words = Reader(released_page()).text
    for score in scenes.released().scorecard.scores:
        assert " ".join(score.why.split()) in words
        assert score.figure.title in words
        assert number(score.figure.value, score.figure.unit) in words


def test_the_released_report_holds_nothing_of_the_real_table():
    page = released_page()
    assert "real table" not in page.replace("audit of the real table", "").replace(
        "predicted it in the real table", ""
    )
    words = Reader(page).text
    for score in scenes.private().scorecard.private:
        if not score.figure.key.endswith("proxies.strongest"):  # may say the same of both worlds
            assert score.why not in words
    assert "may be published with the release" in words


def test_a_private_figure_cannot_slip_into_the_released_report():
    audit = scenes.released()
    leak = Figure("leak", "A leak", 0.123, "share", True)
    score = replace(audit.scorecard.scores[0], figure=leak)
    card = replace(audit.scorecard, scores=(*audit.scorecard.scores, score))
    with pytest.raises(PlanError, match="real rows"):
        released_report(replace(audit, scorecard=card))
    with pytest.raises(PlanError, match="real rows"):
        released_report(replace(audit, rules=scenes.private().rules))


def test_names_say_what_a_file_is():
    simulated = released_report(scenes.released())
    assert simulated.name("audit.html") == f"{STAMP}audit.html"
    assert simulated.name(f"{STAMP}x.html") == f"{STAMP}x.html"
    assert "SIMULATED, NOT PRIVATE" in simulated.content.decode()
    real = Provenance(
        **{
            **{
                name: getattr(scenes.released().release.provenance, name)
                for name in Provenance.__dataclass_fields__
            },
            "simulated": False,
        }
    )
    audit = replace(scenes.released(), release=replace(scenes.released().release, provenance=real))
    assert released_report(audit).name("audit.html") == "audit.html"
    assert "SIMULATED" not in released_report(audit).content.decode()


def test_the_same_audit_gives_the_same_bytes():
    assert released_page() == released_page()


# -- hostile names ----------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</table></style><style>*{display:none}",
    "it's & <b>bold</b>",
    "turn\u202earound",
)


def hostile_audit():
    generator = np.random.default_rng(0)
    rows = 500
    codes = {name: generator.integers(0, 2, rows).astype(np.uint16) for name in HOSTILE}
    columns = [
        replace(
            labelled(name, 2),
            categories=("<i>yes</i>", "'no'"),
            missing_label="'no'",
            other_label="'no'",
        )
        for name in HOSTILE
    ]
    schema = Schema(tuple(columns))
    roles = Roles(
        {HOSTILE[0]: Role.PROTECTED, HOSTILE[1]: Role.OUTCOME, HOSTILE[2]: Role.ADMISSIBLE}
    )
    vault = simulated_vault(CodedTable(schema, codes, {}, rows), seed=0)
    release = release_tree(vault.grant(100, "tree", "id"), schema, roles)
    found = audit_released(
        release, synthesize(release), certificate(release), settings=scenes.SETTINGS
    )
    return found


def test_names_and_labels_cannot_break_out():
    page = released_report(hostile_audit()).content.decode()
    found = Reader(page)
    for tag in ("script", "img", "b", "i"):
        assert tag not in found.tags
    assert found.tags.count("style") == 1
    assert "onerror" not in [name for _, name, _ in found.attributes]
    assert "\u202e" not in page
    assert "(U+202E)" in page
    assert "<script>alert(1)</script>" in found.text


def test_texts_are_one_escaped_line():
    assert text('a\n<b>"') == "a &lt;b&gt;&quot;"


# -- the picture ------------------------------------------------------------------------------


def test_the_picture_has_every_column_and_edge_and_dashes_what_jumps_the_wall():
    for what, dashed in (((), False), (("mst", "5", False), True)):
        release = scenes.released(*what).release
        picture = tree_picture(release)
        found = Reader(picture)
        drawn = found.tags.count("line") + found.tags.count("path")
        assert drawn == len(release.edges)
        assert ("stroke-dasharray" in picture) is dashed
        for name in release.schema.names:
            assert f"{name}: " in found.text


def test_no_rule_no_picture():
    release = replace(scenes.released().release, roles=Roles())
    assert tree_picture(release) == ""


# -- where it is written ----------------------------------------------------------------------


def test_files_of_another_origin_are_never_written_over(tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("my own page")
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(b"zip")
    link = tmp_path / "link.html"
    link.symlink_to(mine)
    for out, words in (
        (mine, "is no audit report"),
        (link, "is no audit report"),
        (tmp_path, "is a folder"),
        (bundle, "same file"),
        (tmp_path / "none" / "x.html", "does not exist"),
    ):
        with pytest.raises(PlanError, match=words):
            check_target(out, [bundle])
    assert mine.read_text() == "my own page"


def test_an_earlier_report_is_replaced(tmp_path):
    report = released_report(scenes.released())
    for _ in range(2):
        path = write_report(report, tmp_path / "audit.html")
        assert path.name == f"{STAMP}audit.html"
        assert path.read_bytes() == report.content
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
