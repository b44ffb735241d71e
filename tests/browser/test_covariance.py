"""The covariance page in a real browser: clicks, reload, replay, downloads, axe, a telephone."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser import house
from tests.browser.house import findings, go, overflow, press, settle, tick

MATRIX = re.compile(r"^The matrix")


def ready(page: Page) -> None:
    """The lending demo, confirmed, at the covariance page."""
    press(page, "demo_lending", "Where you left off")
    go(page, "Data")
    tick(page, "public_domain")
    press(page, "confirm_schema", "Confirmed.")
    go(page, "Covariance")


def released(page: Page) -> None:
    ready(page)
    house.release_covariance(page, "Adaptive loop")


def finished(page: Page) -> None:
    expect(page.get_by_role("heading", name=MATRIX)).to_be_visible(timeout=2 * house.PATIENCE)
    settle(page)


def charges(page: Page) -> int:
    go(page, "Ledger")
    with page.expect_download() as download:
        page.locator(".st-key-ledger_csv button:visible").first.click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    return len(list(csv.DictReader(text.splitlines())))


def test_two_quick_clicks_and_a_reload_charge_once(visitor: house.Visitor) -> None:
    page = visitor.open()
    ready(page)
    page.locator(".st-key-release_covariance button:visible").dblclick()
    expect(page.locator(".st-key-job").or_(page.get_by_role("heading", name=MATRIX))).to_be_visible(
        timeout=house.PATIENCE
    )
    page.reload()
    finished(page)
    assert charges(page) == 1


def test_the_replay_by_keyboard_and_a_download(visitor: house.Visitor) -> None:
    page = visitor.open()
    released(page)
    slider = page.get_by_role("slider", name="Round").first
    slider.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text("Before the first round")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text(re.compile(r"^Round 1 of \d+"))).to_be_visible()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_text(re.compile(r"^Round [3-9] of \d+"))).to_be_visible(timeout=20_000)
    page.get_by_role("button", name="Pause").click()
    settle(page)
    page.get_by_role("tab", name="Files").click()
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Correlation", exact=True).click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    names = next(csv.reader(lines))[1:]
    assert {"age", "savings", "debt_ratio"} <= set(names)
    assert len(lines) == len(names) + 1
    assert charges(page) == 1


def test_no_serious_accessibility_finding(coloured: house.Visitor) -> None:
    page = coloured.open()
    ready(page)
    serious = [*findings(page, "before")]
    house.release_covariance(page, "Adaptive loop")
    for tab in house.tabs(page):
        serious += findings(page, tab)
    assert serious == []


def test_nothing_overflows_on_a_phone(phone: house.Visitor) -> None:
    page = phone.open()
    ready(page)
    assert overflow(page) <= 0
    house.release_covariance(page)
    for tab in house.tabs(page):
        assert overflow(page) <= 0, tab
