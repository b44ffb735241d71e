"""The audit page in a real browser: what may be published, the private workspace, axe, a phone."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser import house
from tests.browser.house import audited, compare_with_real, findings, overflow, settle


def open_audit(page: Page) -> None:
    house.journey(page, "synthetic")
    audited(page)


def test_the_report_holds_the_publishable_part_only_and_a_reload_forgets_the_look(
    visitor: house.Visitor,
) -> None:
    page = visitor.open()
    open_audit(page)
    public = page.locator(".st-key-audit_public")
    private = page.locator(".st-key-private_workspace")
    expect(public.get_by_text("may be published").first).to_be_visible()
    expect(private.get_by_text("for your eyes only").first).to_be_visible()
    assert private.get_by_role("button", name="Download").count() == 0
    compare_with_real(page)
    values = private.get_by_test_id("stMarkdown").all_inner_texts()
    assert any("%" in value for value in values)
    with page.expect_download() as download:
        public.get_by_role("button", name="Download this part").click()
    report = Path(download.value.path()).read_text(encoding="utf-8")
    assert "Scorecard" in report
    assert "<script" not in report
    assert "real table" not in report.replace("look at the audit of the real table", "")
    page.reload()
    settle(page)
    audited(page)
    expect(private.get_by_role("button", name="Compare with the real table")).to_be_visible()


def test_no_serious_accessibility_finding(coloured: house.Visitor) -> None:
    page = coloured.open()
    open_audit(page)
    compare_with_real(page)
    serious = []
    for tab in house.tabs(page):
        serious += findings(page, tab)
    assert serious == []


def test_nothing_overflows_on_a_phone(phone: house.Visitor) -> None:
    page = phone.open()
    open_audit(page)
    compare_with_real(page)
    for tab in house.tabs(page):
        assert overflow(page) <= 0, tab
