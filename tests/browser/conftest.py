"""One server and one browser for the module; a fresh profile for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import house


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    if house.chromium() is None:
        pytest.skip("no Chromium binary; install one (apt-get install chromium fonts-dejavu)")
    with house.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with house.server(tmp_path_factory.mktemp("house")) as found:
        # Streamlit knows the menu only after the first visit of a server's life.
        first = house.visitor(chrome, found)
        first.open()
        first.context.close()
        yield found


@pytest.fixture
def visitor(chrome: Browser, address: str) -> Iterator[house.Visitor]:
    found = house.visitor(chrome, address, viewport={"width": 1360, "height": 900})
    yield found
    assert found.foreign == [], "the browser asked somebody else for something"
    assert found.problems == [], "the page had errors in its console"
    found.context.close()
