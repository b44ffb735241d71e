"""A running server and a browser that may talk to nobody else."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.load.running import serving

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60_000


def chromium() -> str | None:
    """The system's Chromium; ``JUSTITIA_CHROMIUM`` overrides it."""
    named = os.environ.get("JUSTITIA_CHROMIUM")
    if named:
        return named
    return next((path for name in CANDIDATES if (path := shutil.which(name))), None)


@contextmanager
def server(folder: Path, **environment: str) -> Iterator[str]:
    """The application on a free port, with a ledger of its own; yields its address."""
    with serving(folder, **environment) as running:
        yield running.address


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, headless."""
    path = chromium()
    if path is None:
        raise RuntimeError("no Chromium was found")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield opened
        finally:
            opened.close()


@dataclass
class Visitor:
    """One browser profile at the application, with every request that it made."""

    context: BrowserContext
    address: str
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> Page:
        """A new tab."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(f"{self.address}{path}")
        settle(page)
        return page

    @property
    def foreign(self) -> list[str]:
        """Requests that went anywhere but to this server."""
        own = (self.address, self.address.replace("http", "ws", 1), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]


def visitor(opened: Browser, address: str, **settings: object) -> Visitor:
    """A fresh profile."""
    return Visitor(opened.new_context(**{"accept_downloads": True, **settings}), address)


def settle(page: Page) -> None:
    """Wait until the script is idle (true also just before a click is handled)."""
    page.wait_for_selector("[data-testid='stApp'][data-test-script-state='notRunning']")
    page.wait_for_timeout(150)
    page.wait_for_selector("[data-testid='stApp'][data-test-script-state='notRunning']")


def go(page: Page, name: str) -> None:
    """Follow the menu to a page (opens it first, and closes it again, where it is folded away)."""
    path = "" if name == "Start" else name.lower()
    title = "Justitia" if name == "Start" else name
    link = page.locator(f"[data-testid='stSidebarNavLink'][href$='/{path}']").first
    narrow = page.viewport_size["width"] < 700
    if narrow and page.get_by_test_id("stExpandSidebarButton").is_visible():
        page.get_by_test_id("stExpandSidebarButton").click()
    link.click()
    expect(page.get_by_test_id("stMain").locator("h1").first).to_have_text(title, timeout=PATIENCE)
    closer = page.get_by_test_id("stSidebarCollapseButton").locator("button").first
    if narrow and closer.is_visible():
        closer.click()
    settle(page)


def press(page: Page, key: str, then: str | None = None) -> None:
    """Click the button of a key, then wait for a text."""
    page.locator(f".st-key-{key} button:visible").first.click()
    if then is not None:
        expect(page.get_by_test_id("stMain").get_by_text(then).first).to_be_visible(
            timeout=PATIENCE
        )
    settle(page)


def tick(page: Page, key: str) -> None:
    """Tick a checkbox by the key of its widget; again if a rerun moved it under the pointer."""
    box = page.locator(f".st-key-{key} input[type=checkbox]").first
    for _ in range(3):
        settle(page)
        if box.is_checked():
            break
        page.locator(f".st-key-{key} label:visible").first.click()
        settle(page)
    expect(box).to_be_checked()


#: The way to a bundle: a name, the page, the key of its button, and what then is shown.
WAY = (
    ("data", "Data", "confirm_schema", "Confirmed."),
    ("roles", "Roles", "save_roles", "Roles are saved"),
    ("budget", "Budget", "apply_plan", "The plan is applied"),
    ("tree", "Tree", "release_tree", "The tree as it grew"),
    ("synthetic", "Synthetic", "fit_and_sample", "Every rule is proved"),
)


def journey(page: Page, upto: str = "release") -> None:
    """The demo by mouse clicks, up to a page."""
    press(page, "demo_hiring", "Where you left off")
    for name, title, key, then in WAY:
        go(page, title)
        if name == "data":
            tick(page, "public_domain")
        press(page, key, then)
        if name == upto:
            return
    go(page, "Release")


def release_covariance(page: Page, method: str = "Automatic") -> None:
    """Release all columns on the covariance page by one of its methods, and wait for the matrix."""
    if method != "Automatic":
        page.get_by_text("Method: Automatic").click()
        settle(page)
        page.get_by_text(method, exact=True).last.click()
        settle(page)
    press(page, "release_covariance")
    expect(page.get_by_role("heading", name=re.compile("^The matrix"))).to_be_visible(
        timeout=2 * PATIENCE
    )
    settle(page)


def audited(page: Page) -> None:
    """The Audit page of a release whose synthetic rows were made, once its figures are there."""
    go(page, "Audit")
    expect(page.locator(".st-key-audit_look")).to_be_visible(timeout=3 * PATIENCE)
    settle(page)


def compare_with_real(page: Page) -> None:
    """Open the private workspace of the Audit page with a reason."""
    field = page.locator(".st-key-audit_reason input")
    field.fill("check before signing")
    field.press("Enter")
    settle(page)
    page.locator(".st-key-audit_look button").click()
    expect(page.locator(".st-key-audit_close")).to_be_visible(timeout=3 * PATIENCE)
    settle(page)


def own_table(page: Page, table: Path, codebook: Path, columns: int, people: str) -> None:
    """Upload a table, declare it by a codebook, and confirm whose it is; starts on Data."""
    page.locator(".st-key-upload input[type=file]").set_input_files(table)
    expect(page.get_by_text(f"Attached: {table.name}")).to_be_visible(timeout=PATIENCE)
    settle(page)
    page.get_by_role("button", name="Import a codebook").click()
    page.locator(".st-key-codebook input[type=file]").set_input_files(codebook)
    expect(page.get_by_text(f"declarations of {columns} columns were taken")).to_be_visible(
        timeout=PATIENCE
    )
    page.keyboard.press("Escape")
    settle(page)  # what is told at the top comes before the fields below are drawn anew
    page.get_by_role("textbox", name="Name these people").fill(people)
    page.get_by_role("textbox", name="Name these people").press("Enter")
    settle(page)
    tick(page, "public_domain")
    press(page, "confirm_schema", "Confirmed.")


def planned(page: Page, protected: str, outcome: str) -> None:
    """Roles for two columns and the first plan, up to the page Tree."""
    go(page, "Roles")
    for name, place in ((protected, 0), (outcome, 1)):
        page.get_by_role("radiogroup", name=name).get_by_role("radio").nth(place).click()
        settle(page)
    press(page, "save_roles", "Roles are saved")
    go(page, "Budget")
    press(page, "apply_plan", "The plan is applied")
    go(page, "Tree")


def tabs(page: Page) -> Iterator[str]:
    """Open every tab of the page, one after the other; yields what stands on it."""
    for tab in page.get_by_role("tab").all():
        tab.click()
        settle(page)
        yield tab.inner_text()


def findings(page: Page, where: str) -> list[str]:
    """Serious and critical findings of axe-core."""
    page.wait_for_timeout(400)
    return [
        f"{where}: {item['id']} {node['target']} {node.get('failureSummary', '')[:160]}"
        for item in Axe().run(page).response["violations"]
        if item["impact"] in {"serious", "critical"}
        for node in item["nodes"]
    ]


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than the screen."""
    return int(
        page.evaluate(
            "() => Math.max(...[document.documentElement,"
            " document.querySelector('[data-testid=stMain]')]"
            ".map(e => e.scrollWidth - e.clientWidth))"
        )
    )
