"""Two people on one server, with neighbouring tables of the same columns: neither sees the other.

The login is the real one: Streamlit's OIDC against a login service on loopback.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import monotonic, sleep

import pytest
from playwright.sync_api import Browser, Page, expect

from core.private.ledger import Ledger
from core.release_log import Act, ReleaseLog
from tests.browser import house
from tests.browser.house import go, press, settle
from tests.deploy.provider import COOKIE, provider, write_secrets
from tests.load.client import Client, Trouble
from tests.load.journey import declare, release
from tests.load.running import Running, free_port, serving

COLUMNS = ("sex", "grade", "field")
CODEBOOK = (
    "name,kind,categories\nsex,categorical,f|m\ngrade,categorical,A|B|C\nfield,categorical,x|y\n"
)
ROWS = [f"{'fm'[i % 2]},{'ABC'[i % 3]},{'xy'[i % 5 % 2]}" for i in range(400)]
PAGES = ("Start", "Data", "Roles", "Budget", "Tree", "Synthetic", "Posterior", "Ledger")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("shared")
    port = free_port()
    with provider() as service:
        secrets = write_secrets(folder, service, f"http://127.0.0.1:{port}")
        with serving(
            folder,
            port=port,
            options=(f"--secrets.files={secrets}", "--server.disconnectedSessionTTL=2"),
            expected=("MediaFileStorageError",),  # somebody asks for another one's download
            JUSTITIA_MODE="shared",
            JUSTITIA_CAP_KEEPERS="carla@example.org, mallory@example.org",
        ) as running:
            yield running


@dataclass
class Person:
    """Somebody in a browser profile of their own, logged in."""

    name: str
    visitor: house.Visitor
    page: Page

    @property
    def project(self) -> str:
        """The opaque id in the address."""
        found = re.search(r"project=(\w+)", self.page.url)
        assert found is not None
        return found[1]

    def text(self) -> str:
        """Everything on the page, the sidebar too."""
        return str(self.page.locator("body").inner_text())


def arrive(chrome: Browser, server: Running, name: str) -> Person:
    """Open the server in a fresh profile and log in."""
    visitor = house.visitor(chrome, server.address, viewport={"width": 1360, "height": 900})
    visitor.context.add_cookies([{"name": COOKIE, "value": name, "url": server.address}])
    page = visitor.open()
    expect(page.get_by_text("Without a login").first).to_be_visible(timeout=house.PATIENCE)
    page.locator(".st-key-log_in button:visible").first.click()
    expect(page.locator(".st-key-log_out button:visible").first).to_be_visible(
        timeout=house.PATIENCE
    )
    settle(page)
    expect(page.get_by_test_id("stSidebar").get_by_text(name.capitalize())).to_be_visible()
    return Person(name, visitor, page)


def bring_a_table(person: Person, folder: Path, rows: list[str]) -> None:
    """Upload a table of the same name and columns, declare it, and plan up to Tree."""
    folder.mkdir()
    table, book = folder / "staff.csv", folder / "book.csv"
    table.write_text("\n".join([",".join(COLUMNS), *rows]), encoding="utf-8")
    book.write_text(CODEBOOK, encoding="utf-8")
    page = person.page
    go(page, "Data")
    house.own_table(page, table, book, 3, "staff 2026")
    house.planned(page, "sex", "grade")


def test_two_people_with_neighbouring_tables_see_only_their_own(
    chrome: Browser, shared: Running, tmp_path: Path
) -> None:
    anna, ben = arrive(chrome, shared, "anna"), arrive(chrome, shared, "ben")
    bring_a_table(anna, tmp_path / "anna", [*ROWS, "f,annas-secret,x"])
    bring_a_table(ben, tmp_path / "ben", [*ROWS, "m,bens-secret,y"])

    # The preview of raw rows: one's own, in the private workspace, and nobody else's.
    for person, own, other in ((anna, "annas-secret", "bens"), (ben, "bens-secret", "annas")):
        go(person.page, "Data")
        assert own not in person.text()
        assert other not in person.text()

    for person in (anna, ben):
        go(person.page, "Tree")
        press(person.page, "release_tree", "The tree as it grew")

    ledger = Ledger(shared.ledger)
    owners = {found.owner: found for found in ledger.populations()}
    assert len(owners) == 2
    assert all(found.name == "staff 2026" for found in owners.values())
    spends = [ledger.spends("staff 2026", owner=owner) for owner in owners]
    assert [len(found) for found in spends] == [1, 1]
    assert spends[0][0].request_id != spends[1][0].request_id
    assert ledger.release_blob(spends[0][0].request_id) != ledger.release_blob(
        spends[1][0].request_id
    )
    asked = [entry for entry in ReleaseLog(ledger).entries() if entry.act is Act.ASKED]
    assert sorted(entry.actor.partition(" ")[0] for entry in asked) == [
        "anna@example.org",
        "ben@example.org",
    ]
    ledger.close()

    # Each other's address, typed in on every page: a refusal that tells nothing.
    projects = {anna.name: anna.project, ben.name: ben.project}
    for person, other in ((anna, ben), (ben, anna)):
        for name in PAGES:
            path = "" if name == "Start" else name.lower()
            person.page.goto(f"{shared.address}/{path}?project={projects[other.name]}")
            settle(person.page)
            text = person.text()
            assert "staff 2026" not in text, (person.name, name)
            assert "staff.csv" not in text
            assert f"{other.name}@" not in text
            assert "The tree as it grew" not in text
    for person in (anna, ben):
        assert person.visitor.problems == []
        person.visitor.context.close()


@pytest.fixture(scope="module")
def emil(chrome: Browser, shared: Running, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody with a table, planned up to Tree."""
    person = arrive(chrome, shared, "emil")
    bring_a_table(person, tmp_path_factory.mktemp("emil") / "files", ROWS)
    return person


def test_a_guest_opens_nobodys_project(chrome: Browser, shared: Running, emil: Person) -> None:
    visitor = house.visitor(chrome, shared.address)
    page = visitor.open(f"/tree?project={emil.project}")
    expect(page.get_by_text("Choose data on Start").first).to_be_visible(timeout=house.PATIENCE)
    assert "staff" not in str(page.locator("body").inner_text())
    go(page, "Data")
    expect(page.get_by_text("demo data only").first).to_be_visible()
    assert page.locator("input[type=file]").count() == 0
    visitor.context.close()


def test_only_a_keeper_raises_caps_and_an_unchecked_address_is_nobody(
    chrome: Browser, shared: Running, emil: Person
) -> None:
    go(emil.page, "Ledger")
    assert "Caps that you keep" not in emil.text()
    emil.page.get_by_text("Change the cap").first.click()
    emil.page.get_by_label("Cap, as ρ").fill("5")
    emil.page.get_by_role("button", name="Change the cap").click()
    expect(emil.page.get_by_text("only a keeper of caps may raise it").last).to_be_visible()

    # Named by an address that the login service says it never checked.
    mallory = arrive(chrome, shared, "mallory")
    go(mallory.page, "Ledger")
    assert "Caps that you keep" not in mallory.text()
    mallory.visitor.context.close()

    carla = arrive(chrome, shared, "carla")
    go(carla.page, "Ledger")
    carla.page.get_by_text("Caps that you keep").click()
    settle(carla.page)
    box = carla.page.get_by_role("combobox", name="Population")
    box.click()
    carla.page.get_by_role("option", name=re.compile("staff 2026, of emil")).click()
    carla.page.get_by_label("New cap, as ρ").fill("1.5")
    carla.page.get_by_label("Why, for the log").fill("agreed with the works council")
    carla.page.get_by_role("button", name="Change this cap").click()
    settle(carla.page)
    ledger = Ledger(shared.ledger)
    (changed,) = [found for found in ledger.populations() if found.owner.startswith("emil")]
    assert changed.cap == Fraction(3, 2)
    (entry,) = [entry for entry in ReleaseLog(ledger).entries() if entry.act is Act.CAP]
    assert entry.actor.startswith("carla@example.org (carla at ")
    assert "works council" in entry.detail
    ledger.close()
    # A keeper sees accounts, never what is in them.
    assert "staff.csv" not in carla.text()
    carla.visitor.context.close()


def test_after_logging_out_the_same_browser_is_a_guest(emil: Person) -> None:
    address = emil.page.url
    emil.page.locator(".st-key-log_out button:visible").first.click()
    expect(emil.page.locator(".st-key-log_in button:visible").first).to_be_visible(
        timeout=house.PATIENCE
    )
    emil.page.goto(address)
    settle(emil.page)
    assert "staff 2026" not in emil.text()
    emil.visitor.context.close()


def status(url: str, method: str = "GET") -> int:
    """HTTP status of a bare request, without any cookie."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def fetched(url: str) -> bytes | None:
    """What is served there to anybody; None where nothing is."""
    try:
        with urllib.request.urlopen(url) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError:
        return None


def test_downloads_and_uploads_of_others_can_be_neither_listed_nor_guessed(
    shared: Running,
) -> None:
    with Client(shared.address) as one, Client(shared.address) as other:
        declare(one)
        release(one)
        one.go("ledger")
        media, content = one.download("ledger_csv")
        assert b"tree" in content
        # The address of a download is a key: 224 bits that nobody but its session was told.
        name, dot, ending = media.rpartition("/")[2].partition(".")
        assert re.fullmatch(r"[0-9a-f]{32,}", name)
        nearby = f"{media[: media.rindex('/')]}/{name[:-1]}{'0' if name[-1] != '0' else '1'}"
        assert status(f"{shared.address}{nearby}{dot}{ending}") == 404
        # Paths that are no download answer with the empty page that loads the application, or not.
        empty = fetched(f"{shared.address}/")
        for listing in ("/media", "/media/", "/_stcore/upload_file/", "/media/..%2fledger.sqlite"):
            assert fetched(f"{shared.address}{listing}") in {empty, None}
        with pytest.raises(Trouble, match="no download"):
            other.deferred(uuid.uuid4().hex)
        # An upload cannot be read back, not even by its session.
        url = f"{shared.address}/_stcore/upload_file/{one.session}/{uuid.uuid4()}"
        assert fetched(url) in {empty, None}
        assert one.session not in "".join(other.texts)
    # When the session is over, its download is gone, at the sweeps that follow.
    deadline = monotonic() + 120
    while status(f"{shared.address}{media}") != 404 and monotonic() < deadline:
        with Client(shared.address) as third:
            third.go("data")
        sleep(3)
    assert status(f"{shared.address}{media}") == 404
