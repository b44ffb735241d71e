"""The journey in a real browser: what a person does with mouse, reload button and second tab."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Browser, Page, expect

from tests.browser import house
from tests.browser.house import findings, go, journey, overflow, press, settle, tick

PAGES = ("Start", "Data", "Roles", "Budget", "Tree", "Synthetic", "Release", "Ledger")
MAIN = "stMain"


def ledger_rows(page: Page) -> list[dict[str, str]]:
    """Rows of the ledger page's table, read from its export."""
    go(page, "Ledger")
    with page.expect_download() as download:
        page.locator(".st-key-ledger_csv button:visible").first.click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def charges(page: Page) -> int:
    """How many charges the ledger holds."""
    return len(ledger_rows(page))


def back_to(page: Page, title: str) -> None:
    """Press Back until another page is shown: the address may have changed within one page."""
    here = page.url.split("?")[0]
    for _ in range(3):
        page.go_back()
        settle(page)
        if page.url.split("?")[0] != here:
            break
    expect(page.get_by_test_id(MAIN).locator("h1").first).to_have_text(title, timeout=20_000)


def sign(page: Page) -> None:
    page.get_by_label("Name of the person who signs").fill("A. Steward")
    page.get_by_label("Purpose of the release").fill("teaching")
    page.get_by_role("button", name="Sign", exact=False).first.click()
    expect(page.get_by_text("Signed by A. Steward")).to_be_visible()
    settle(page)


def test_the_demo_from_start_to_a_verified_bundle(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page)
    sign(page)
    with page.expect_download() as download:
        page.locator(".st-key-bundle button:visible").first.click()
    bundle = Path(download.value.path()).read_bytes()
    from core.bundle import verify

    assert not verify(bundle).simulated
    names = zipfile.ZipFile(io.BytesIO(bundle)).namelist()
    assert {"synthetic.csv", "statement.md", "certificate.json", "tree.json"} <= set(names)
    assert charges(page) == 1


def test_an_own_table_from_upload_to_synthetic_rows(visitor: house.Visitor, tmp_path: Path) -> None:
    file = tmp_path / "staff.csv"
    lines = [f"{'fm'[i % 2]},{'ABC'[i % 3]},{20 + i % 40}" for i in range(600)]
    file.write_text("\n".join(["sex,grade,age", *lines]), encoding="utf-8")
    page = visitor.open("/data")
    page.locator(".st-key-upload input[type=file]").set_input_files(file)
    expect(page.get_by_text("Attached: staff.csv")).to_be_visible(timeout=house.PATIENCE)
    settle(page)
    for name, kind in (("sex", "category"), ("grade", "ordered"), ("age", "whole number")):
        box = page.get_by_role("combobox", name=f"What {name} holds")
        box.evaluate("element => element.scrollIntoView({block: 'center'})")
        box.click()
        page.get_by_role("option", name=kind, exact=True).click()
        settle(page)
    for label, text in (
        ("Categories of sex", "f | m"),
        ("Categories of grade", "A | B | C"),
        ("Lowest value of age", "18"),
    ):
        page.get_by_label(label).fill(text)
        page.keyboard.press("Tab")
        settle(page)
    page.get_by_label("Highest value of age").fill("12o")
    # straight on, with the cursor still in the field
    page.get_by_role("textbox", name="Name these people").fill("browser staff")
    settle(page)
    expect(page.get_by_text("upper must be a number").first).to_be_visible()
    expect(page.get_by_label("Highest value of age")).to_have_value("12o")
    page.get_by_label("Highest value of age").fill("67")
    page.keyboard.press("Tab")
    expect(page.get_by_text("upper must be a number")).to_have_count(0, timeout=20_000)
    tick(page, "public_domain")
    press(page, "confirm_schema", "Confirmed.")
    page.reload()
    settle(page)
    expect(page.get_by_label("Highest value of age")).to_have_value("67")
    expect(page.get_by_text("is no longer attached")).to_be_visible()
    page.get_by_text("Upload a table of your own").click()
    page.locator(".st-key-upload input[type=file]").set_input_files(file)
    expect(page.get_by_text("Attached: staff.csv")).to_be_visible(timeout=house.PATIENCE)


def test_edges_appear_one_after_the_other(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page, "budget")
    go(page, "Tree")
    page.locator(".st-key-release_tree button:visible").click()
    early = page.get_by_text(re.compile(r"^Step [1-7]:")).first
    expect(early).to_be_visible(timeout=house.PATIENCE)
    expect(page.get_by_text("The tree as it grew")).to_be_visible(timeout=house.PATIENCE)
    settle(page)


def test_two_quick_clicks_charge_once(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page, "budget")
    go(page, "Tree")
    page.locator(".st-key-release_tree button:visible").dblclick()
    expect(page.get_by_text("The tree as it grew")).to_be_visible(timeout=house.PATIENCE)
    settle(page)
    assert charges(page) == 1


def test_a_reload_in_mid_release_loses_nothing(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page, "budget")
    go(page, "Tree")
    page.locator(".st-key-release_tree button:visible").click()
    expect(page.locator(".st-key-job")).to_be_visible(timeout=house.PATIENCE)
    page.reload()
    expect(page.get_by_text("The tree as it grew")).to_be_visible(timeout=house.PATIENCE)
    settle(page)
    assert charges(page) == 1
    page.keyboard.press("c")  # Streamlit's "clear caches" must not lose it either
    go(page, "Tree")
    expect(page.get_by_text("The tree as it grew")).to_be_visible()


def test_a_second_tab_sees_the_release_and_replays_it(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page, "budget")
    go(page, "Tree")
    query = re.search(r"\?.*", page.url)
    assert query is not None
    other = visitor.open(f"/tree{query[0]}")
    press(page, "release_tree", "The tree as it grew")
    press(other, "release_tree", "The tree as it grew")
    assert charges(other) == 1


def test_the_back_button_and_the_replay(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page, "tree")
    page.locator("input[type=range]").first.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text("Before the first step")).to_be_visible()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_text(re.compile(r"Step [2-9] of \d+"))).to_be_visible(timeout=20_000)
    page.get_by_role("button", name="Pause").click()
    settle(page)
    back_to(page, "Budget")
    settle(page)
    assert charges(page) == 1


def test_another_profile_sees_nothing_of_it(
    visitor: house.Visitor, chrome: Browser, address: str
) -> None:
    page = visitor.open()
    journey(page, "roles")
    stranger = house.visitor(chrome, address)
    theirs = stranger.open()
    for name in PAGES:
        go(theirs, name)
        assert "career_gap" not in theirs.get_by_test_id(MAIN).inner_text()
    stranger.context.close()


def test_roles_by_keyboard_alone(visitor: house.Visitor) -> None:
    page = visitor.open()
    journey(page, "data")
    go(page, "Roles")
    age = page.get_by_role("radiogroup", name="age").get_by_role("radio")
    age.nth(3).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    settle(page)
    expect(page.get_by_role("radiogroup", name="age").get_by_role("radio").nth(2)).to_be_checked()
    page.locator(".st-key-save_roles button:visible").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Roles are saved")).to_be_visible()
    settle(page)


def test_no_serious_accessibility_finding_on_any_page(coloured: house.Visitor) -> None:
    page = coloured.open()
    journey(page)
    serious = []
    for name in PAGES:
        go(page, name)
        serious += findings(page, name)
    assert serious == []


def test_nothing_overflows_on_a_phone(phone: house.Visitor) -> None:
    page = phone.open()
    journey(page)
    for name in PAGES:
        go(page, name)
        assert overflow(page) <= 0, name


@contextmanager
def wide_table(
    chrome: Browser, folder: Path, *, columns: int, rows: int
) -> Iterator[tuple[house.Visitor, Page]]:
    """A server of its own with a wide table, declared by a codebook and planned up to Tree."""
    file, book = folder / "wide.parquet", folder / "book.csv"
    names = [f"q{i:03d}" for i in range(columns)]
    chance = np.random.default_rng(1)
    table = {name: np.where(chance.random(rows) < 0.5, "a", "b") for name in names}
    pd.DataFrame(table).to_parquet(file)
    lines = [f"{name},categorical,a|b" for name in names]
    book.write_text("\n".join(["name,kind,categories", *lines]), encoding="utf-8")
    with house.server(folder) as address:
        found = house.visitor(chrome, address, viewport={"width": 1360, "height": 900})
        page = found.open()
        go(page, "Data")
        house.own_table(page, file, book, columns, "a panel")
        house.planned(page, "q000", "q001")
        yield found, page
        assert found.foreign == []
        assert found.problems == []
        found.context.close()


def test_a_large_table_with_sixty_columns_and_a_codebook(chrome: Browser, tmp_path: Path) -> None:
    with wide_table(chrome, tmp_path, columns=60, rows=400_000) as (_, page):
        page.locator(".st-key-release_tree button:visible").click()
        expect(page.get_by_text("The tree as it grew")).to_be_visible(timeout=house.PATIENCE)
        expect(page.get_by_role("combobox", name="Find a column")).to_be_visible()
        settle(page)
        assert charges(page) == 1


def test_cancel_in_mid_release_keeps_what_was_measured(chrome: Browser, tmp_path: Path) -> None:
    columns = 200  # wide enough that choosing the edges takes seconds, without any slow motion
    with wide_table(chrome, tmp_path, columns=columns, rows=3_000) as (_, page):
        page.locator(".st-key-release_tree button:visible").click()
        working = page.get_by_text(re.compile(r"selection \(\d+ of \d+\)")).first
        expect(working).to_be_visible(timeout=house.PATIENCE)
        page.locator("[class*='st-key-cancel_'] button:visible").click()
        kept = page.get_by_text("Cancelled on the way. Kept:").first
        expect(kept).to_be_visible(timeout=house.PATIENCE)
        settle(page)
        found = re.search(r"of (\d+) columns, (\d+) edges?.* of (\d+) pairs", kept.inner_text())
        assert found is not None
        assert int(found[1]) == columns
        assert 1 <= int(found[2]) < columns - 2
        assert int(found[3]) == 0
        assert "stays spent" in kept.inner_text()
        assert re.search(r"Step (\d+) of \1:", page.get_by_test_id(MAIN).inner_text())
        (spend,) = ledger_rows(page)
        assert spend["state"] == "partial"
        go(page, "Tree")  # and the page still works
        page.get_by_role("button", name="Play").click()
        expect(page.get_by_text(re.compile(r"^Step [1-9] of"))).to_be_visible()
        page.get_by_role("button", name="Pause").click()
        settle(page)
