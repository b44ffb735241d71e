"""Files that a browser opens: payloads in names stay text, in Chromium too."""

from __future__ import annotations

import html.parser

import pytest

from pages.shared import explorer
from tests.hostile import payloads
from tests.hostile.test_downloads import made

__all__ = ["made"]


@pytest.fixture(scope="module")
def page(made) -> bytes:
    return explorer.standalone(made.releases.tree, title=payloads.POPULATION)


class Tags(html.parser.HTMLParser):
    """Tags with their attributes, and what scripts hold."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_no_payload_becomes_a_tag_or_an_attribute(page):
    parser = Tags()
    parser.feed(page.decode())
    assert not [tag for tag, _ in parser.tags if tag in {"img", "svg", "iframe", "base", "form"}]
    assert not [
        (tag, attributes)
        for tag, attributes in parser.tags
        if any(name.startswith("on") for name in attributes)
    ]
    outside = [
        attributes
        for _, attributes in parser.tags
        for name in ("src", "href")
        if (attributes.get(name) or "").startswith(("http", "//", "javascript"))
    ]
    assert outside == []
    policies = [
        attributes["content"]
        for tag, attributes in parser.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [explorer.POLICY]
    # The policy stands before anything that it has to govern.
    first = next(index for index, (tag, _) in enumerate(parser.tags) if tag in {"script", "style"})
    policy = next(i for i, (_, found) in enumerate(parser.tags) if "http-equiv" in found)
    assert policy < first


def test_in_chromium_nothing_runs_and_nothing_is_fetched(page, chrome, tmp_path):
    path = tmp_path / "tree.html"
    path.write_bytes(page)
    context = chrome.new_context()
    opened = context.new_page()
    asked: list[str] = []
    faults: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(path.as_uri())
    opened.wait_for_function("document.getElementById('words').textContent.length > 0")
    for _ in range(3):
        opened.click("#back")
    assert opened.evaluate("window.flag === undefined")
    assert opened.evaluate("document.querySelectorAll('img, svg, iframe').length") == 0
    assert opened.evaluate("nodes.getIds().length") == len(payloads.schema().names)
    assert set(opened.evaluate("nodes.getIds()")) == set(payloads.schema().names)
    assert payloads.POPULATION in opened.inner_text("h1")
    # A column called __proto__ moves with the others.
    moved = opened.evaluate("nodes.get('__proto__').x") is not None
    assert moved
    assert faults == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


def test_the_same_page_without_escaping_would_set_the_flag(chrome, tmp_path):
    """The watch can fail: the payload is one."""
    path = tmp_path / "bad.html"
    path.write_text(f"<body>{payloads.GROUP}</body>")
    context = chrome.new_context()
    opened = context.new_page()
    opened.goto(path.as_uri())
    assert opened.evaluate("window.flag") == 1
    context.close()
