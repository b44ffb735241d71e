"""The page Learn in a real browser: keyboard, shared addresses, axe, a telephone, a file."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser import house
from tests.browser.house import findings, overflow, settle

STEPS = ("Three worlds", "Noise", "Proxies")


def ready(page: Page) -> None:
    """The page with its pictures."""
    expect(page.get_by_role("heading", name="Learn", exact=True)).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=house.PATIENCE)
    settle(page)


def card(page: Page, world: str) -> str:
    """The words of one world's card."""
    return page.locator(f".st-key-learn_card_{world}").inner_text()


def test_the_forbidden_path_comes_back_and_goes_by_keyboard_alone(visitor: house.Visitor) -> None:
    page = visitor.open("/learn")
    ready(page)
    assert "jumps the wall" in card(page, "biased")
    assert "jumps the wall" not in card(page, "released")
    # A radio group is one stop of the tab key, and the arrows choose in it.
    rule = page.locator(".st-key-learn_rule [role=radio]")
    rule.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    released = page.locator(".st-key-learn_card_released")
    expect(released.get_by_text("jumps the wall")).to_be_visible(timeout=house.PATIENCE)
    settle(page)
    page.locator(".st-key-learn_rule [role=radio]").first.focus()
    page.keyboard.press("Enter")
    expect(released.get_by_text("passes a gate")).to_be_visible(timeout=house.PATIENCE)
    slider = page.locator(".st-key-learn_rho input[type=range]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(released.get_by_text("ρ = 0.001")).to_be_visible(timeout=house.PATIENCE)
    page.locator(".st-key-learn_next button").focus()
    page.keyboard.press("Enter")
    expect(released.get_by_text("draw 1")).to_be_visible(timeout=house.PATIENCE)


def test_an_address_brings_a_class_to_the_same_place(visitor: house.Visitor) -> None:
    page = visitor.open("/learn?learn_world=Lending&learn_rule=Drop+the+rule&learn_draw=7")
    ready(page)
    assert "without the rule" in card(page, "released")
    assert "draw 7" in card(page, "released")
    assert "Gap by origin" in card(page, "true")
    page.locator(".st-key-learn_step").get_by_text("Proxies").click()
    expect(page.get_by_text("Leave origin out of the release")).to_be_visible()
    settle(page)
    assert "learn_step=Proxies" in page.url
    assert "learn_world=Lending" in page.url


def test_a_proxy_is_declared_and_its_way_closes(visitor: house.Visitor) -> None:
    page = visitor.open("/learn?learn_step=Proxies")
    ready(page)
    expect(page.get_by_text("The way through career_gap_months is open")).to_be_visible()
    page.locator(".st-key-learn_proxies_hiring").get_by_text("career_gap_months").click()
    closed = page.get_by_text("The way through career_gap_months is closed by the rule")
    expect(closed).to_be_visible(timeout=house.PATIENCE)


def test_the_tree_goes_home_as_one_file_that_is_marked(
    visitor: house.Visitor, tmp_path: Path
) -> None:
    page = visitor.open("/learn")
    ready(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the released tree").click()
    assert download.value.suggested_filename == "SIMULATED_NOT_PRIVATE_lesson-hiring.html"
    file = tmp_path / "lesson.html"
    download.value.save_as(file)
    home = visitor.context.new_page()
    home.goto(file.as_uri())
    expect(home.get_by_role("heading")).to_contain_text("SIMULATED, NOT PRIVATE")
    home.close()


def test_no_serious_accessibility_finding(coloured: house.Visitor) -> None:
    serious = []
    for step in STEPS:
        page = coloured.open(f"/learn?learn_step={step.replace(' ', '+')}")
        ready(page)
        page.get_by_text("Guess first").click()
        settle(page)
        serious += findings(page, step)
        page.close()
    assert serious == []


def test_nothing_overflows_on_a_phone(chrome: Browser, address: str) -> None:
    found = house.visitor(
        chrome,
        address,
        viewport={"width": 390, "height": 844},
        user_agent="Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 Mobile Safari/537.36",
    )
    for step in STEPS:
        page = found.open(f"/learn?learn_step={step.replace(' ', '+')}&learn_world=Admissions")
        ready(page)
        page.get_by_text("Guess first").click()
        settle(page)
        assert overflow(page) <= 0, step
        page.close()
    found.context.close()
