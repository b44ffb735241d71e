"""The posterior page in a real browser: pay once, look for nothing, axe, a telephone."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser import house
from tests.browser.house import findings, go, overflow, press, settle, tick


def ready(page: Page) -> None:
    """The hiring demo, confirmed, at the posterior page."""
    press(page, "demo_hiring", "Where you left off")
    go(page, "Data")
    tick(page, "public_domain")
    press(page, "confirm_schema", "Confirmed.")
    go(page, "Posterior")


def test_two_quick_clicks_and_a_reload_charge_once_and_the_answer_downloads(
    visitor: house.Visitor,
) -> None:
    page = visitor.open()
    ready(page)
    page.locator(".st-key-release_posterior button:visible").first.dblclick()
    answer = page.get_by_text("interval:").first
    expect(answer).to_be_visible(timeout=house.PATIENCE)
    page.reload()
    expect(answer).to_be_visible(timeout=house.PATIENCE)
    with page.expect_download() as download:
        page.get_by_role("button", name="With warnings (JSON)").click()
    found = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [one["name"] for one in found["posteriors"][0]["parameters"]] == ["mean", "sd"]
    go(page, "Ledger")
    expect(page.get_by_text("spent ρ = 0.1").first).to_be_visible()


def test_no_serious_accessibility_finding(coloured: house.Visitor) -> None:
    page = coloured.open()
    ready(page)
    serious = findings(page, "question")
    published(page)
    serious += findings(page, "published")
    assert serious == []


def test_nothing_overflows_on_a_phone(phone: house.Visitor) -> None:
    page = phone.open()
    ready(page)
    assert overflow(page) <= 0
    published(page)
    assert overflow(page) <= 0


def published(page: Page) -> None:
    """The answer to the example of published statistics."""
    page.locator(".st-key-posterior_door").get_by_text("Published").first.click()
    settle(page)
    press(page, "published_example", "interval:")
