"""A folder on the server in a real browser: choose, type, refuse, release, reload, a telephone."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import house
from tests.browser.house import findings, go, overflow, press, settle, tick

ROWS = 4_000


@pytest.fixture(scope="module")
def address(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that offers a folder with a table in two files, beside a file that it does not."""
    place = tmp_path_factory.mktemp("house")
    folder = place / "registry" / "staff"
    folder.mkdir(parents=True)
    frame = pd.DataFrame({"sex": ["f", "m"] * (ROWS // 2), "grade": ["A", "A", "B", "C"] * 1_000})
    for part in (0, 1):
        frame.iloc[part::2].to_parquet(folder / f"{part}.parquet")
    frame.to_parquet(place / "outside.parquet")
    (place / "sources.toml").write_text(f"[folders.registry]\npath = '{folder.parent}'\n")
    with house.server(place, JUSTITIA_SOURCES=str(place / "sources.toml")) as found:
        first = house.visitor(chrome, found)
        first.open()
        first.context.close()
        yield found


def typed(page: Page, key: str, text: str) -> None:
    field = page.locator(f".st-key-{key} input").first
    field.fill(text)
    field.press("Enter")
    settle(page)


def chosen(page: Page) -> None:
    press(page, "way_folder", "Where is the table?")
    page.locator(".st-key-server_path_registry input").first.click()
    page.get_by_role("option", name="staff/", exact=True).click()
    settle(page)
    press(page, "server_use", "staff in registry")


def test_a_folder_is_released_and_found_again_after_a_reload(visitor: house.Visitor) -> None:
    page = visitor.open()
    chosen(page)
    typed(page, "column_1_0_categories", "f | m")
    typed(page, "column_1_1_categories", "A | B | C")
    typed(page, "population_1_name", "staff 2026")
    tick(page, "public_domain")
    press(page, "confirm_schema", "Confirmed.")
    go(page, "Roles")
    press(page, "save_roles", "Roles are saved")
    go(page, "Budget")
    press(page, "apply_plan", "The plan is applied")
    go(page, "Data")
    page.reload()
    settle(page)
    expect(page.get_by_test_id("stMain").get_by_text("staff in registry").first).to_be_visible()
    go(page, "Tree")
    press(page, "release_tree", "The tree as it grew")
    assert findings(page, "Tree") == []


def test_no_typed_path_leads_out_of_the_folder(visitor: house.Visitor) -> None:
    page = visitor.open()
    press(page, "way_folder", "Where is the table?")
    typed(page, "server_path_registry", "../outside.parquet")
    press(page, "server_use", "there is no such table below")
    typed(page, "server_path_registry", "staff/0.parquet")
    press(page, "server_use", "staff/0.parquet in registry")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_choice_on_a_telephone(chrome: Browser, address: str, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    found = house.visitor(chrome, address, viewport=size, color_scheme=scheme)
    page = found.open()
    assert overflow(page) == 0
    press(page, "way_folder", "Where is the table?")
    assert overflow(page) == 0
    assert findings(page, f"Data {scheme}") == []
    assert found.foreign == []
    assert found.problems == []
    found.context.close()
