"""One server and one browser for the module; a fresh profile for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import house

WIDE = {"width": 1360, "height": 900}


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


def watched(found: house.Visitor) -> Iterator[house.Visitor]:
    """A visitor whose browser asked nobody else and found no error, by the end of the test."""
    yield found
    assert found.foreign == [], "the browser asked somebody else for something"
    assert found.problems == [], "the page had errors in its console"
    found.context.close()


@pytest.fixture
def visitor(chrome: Browser, address: str) -> Iterator[house.Visitor]:
    yield from watched(house.visitor(chrome, address, viewport=WIDE))


@pytest.fixture(params=["light", "dark"])
def coloured(
    request: pytest.FixtureRequest, chrome: Browser, address: str
) -> Iterator[house.Visitor]:
    """Once in each of the two schemes of colours."""
    yield from watched(house.visitor(chrome, address, viewport=WIDE, color_scheme=request.param))


@pytest.fixture
def phone(chrome: Browser, address: str) -> Iterator[house.Visitor]:
    yield from watched(house.visitor(chrome, address, viewport={"width": 390, "height": 844}))
