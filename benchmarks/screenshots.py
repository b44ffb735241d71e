"""Every page in light, dark and narrow, into ``docs/screenshots`` (``make screenshots``)."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tests.browser import house

PAGES = ("Start", "Data", "Roles", "Budget", "Tree", "Synthetic", "Release", "Ledger")
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1360, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1360, "height": 900}},
    "narrow": {
        "color_scheme": "light",
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "user_agent": (
            "Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/156.0.0.0 Mobile Safari/537.36"
        ),
    },
}


def whole(page: Page) -> int:
    """Height of the page's content in pixels."""
    return int(page.evaluate(
        "document.querySelector('[data-testid=stMain]').scrollHeight"
    ))  # fmt: skip


def shoot(page: Page, path: Path) -> None:
    """A screenshot with 255 colours, which is plenty here and a third of the bytes."""
    page.screenshot(path=path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(
            255, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    small.save(path, optimize=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/screenshots"))
    parser.add_argument("--looks", nargs="*", default=list(LOOKS), choices=list(LOOKS))
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        house.server(Path(folder)) as address,
        house.browser() as opened,
    ):
        for look in arguments.looks:
            _shoot(house.visitor(opened, address, **LOOKS[look]), look, arguments.out)
    return 0


def _shoot(visitor: house.Visitor, look: str, out: Path) -> None:
    page = visitor.open()
    width, height = (LOOKS[look]["viewport"][side] for side in ("width", "height"))
    shoot(page, out / f"welcome-{look}.png")
    house.journey(page)

    def take(name: str) -> None:
        page.set_viewport_size({"width": width, "height": min(max(whole(page), height), 6000)})
        page.wait_for_timeout(1500)
        shoot(page, out / f"{name}-{look}.png")
        page.set_viewport_size({"width": width, "height": height})

    for name in PAGES:
        house.go(page, name)
        take(name.lower())
    house.go(page, "Posterior")
    take("posterior-before")
    house.press(page, "release_posterior", "interval:")
    take("posterior")
    page.locator(".st-key-posterior_door").get_by_text("Why it matters").first.click()
    house.settle(page)
    start = page.locator(".st-key-teach button:visible")
    if start.count():  # the server remembers what an earlier look had redrawn
        start.first.click()
    page.get_by_text("Naive intervals").first.wait_for()
    house.settle(page)
    take("posterior-learn")
    house.go(page, "Covariance")
    take("covariance-before")
    house.release_covariance(page, "Adaptive loop")
    take("covariance")
    house.audited(page)
    take("audit")
    house.compare_with_real(page)
    page.locator(".st-key-private_workspace").get_by_role("tab", name="Both worlds").click()
    house.settle(page)
    take("audit-private")
    house.go(page, "Learn")
    take("learn")
    for step in ("Noise", "Proxies"):
        page.locator(".st-key-learn_step").get_by_text(step).click()
        house.settle(page)
        take(f"learn-{step.lower()}")
    print(f"{look}: {len(PAGES)} pages, {len(visitor.foreign)} requests elsewhere")


if __name__ == "__main__":
    raise SystemExit(main())
